package browser_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// places puts documents with places into shop.
func (s *studio) places() {
	s.t.Helper()
	for id, body := range map[string]string{
		"shops/berlin":   `{"Name":"Acorns of Berlin","N":52.52,"E":13.40}`,
		"shops/potsdam":  `{"Name":"Potsdam","N":52.39,"E":13.06}`,
		"shops/leipzig":  `{"Name":"Leipzig","At":"POINT(12.37 51.34)"}`,
		"shops/fiji":     `{"Name":"Fiji","At":{"type":"Point","coordinates":[178.4,-18.1]}}`,
		"shops/samoa":    `{"Name":"Samoa","At":"POINT(-171.8 -13.8)"}`,
		"shops/nowhere":  `{"Name":"Nowhere","At":"here"}`,
		"shops/saxony":   `{"Name":"Saxony","At":"POLYGON((11.9 50.4, 12.9 50.4, 15.0 50.9, 14.7 51.5, 12.2 51.6, 11.9 50.4), (13.5 50.95, 13.9 50.95, 13.9 51.2, 13.5 51.2, 13.5 50.95))"}`,
		"shops/river":    `{"Name":"A river","At":"LINESTRING(14.1 50.9, 13.74 51.05, 13.0 51.6, 12.65 51.87, 11.63 52.13)"}`,
		"shops/ring":     `{"Name":"Around Berlin","At":"CIRCLE(13.4 52.5 d=60000)"}`,
		"poles/cap":      `{"Name":"A cap","At":"POLYGON((0 70, 90 70, 180 70, -90 70, 0 70))"}`,
		"poles/dateline": `{"Name":"Over the antimeridian","At":"ENVELOPE(170, -160, 10, -20)"}`,
		"poles/flight":   `{"Name":"A flight","At":"LINESTRING(139.8 35.5, -122.4 37.6)"}`,
	} {
		collection := "Shops"
		if strings.HasPrefix(id, "poles") {
			collection = "Poles"
		}
		s.put(id, collection, body)
	}
}

// marks counts what is drawn of a kind.
func (p *tab) marks(kind string, want int) {
	p.t.Helper()
	p.until(fmt.Sprintf(`document.querySelectorAll('.map-mark.%s').length === %d`, kind, want))
}

// Ensure that answers of a query are drawn on a map, of the fields that it names and of what is WKT or GeoJSON; that it is used with the mouse and with keys; and
// that the antimeridian and the poles are right.
func TestMap(t *testing.T) {
	s := startStudio(t)
	s.places()
	near := "from Shops where spatial.within(spatial.point(N, E), spatial.circle(1000, 52, 13)) or At != null"
	p := s.openQuery(near)
	p.viewport(1200, 800)
	p.click("tab", "Map")
	p.find("application", "Map of 8 places")
	p.marks("point", 5)
	p.marks("area", 2)
	p.marks("line", 1)
	p.see("8 places of 8 documents; 1 answer has no place")
	if !strings.Contains(p.address(), "view=map") {
		t.Errorf("the address is %s", p.address())
	}

	// The nearest way around the earth that has all of them: from Germany to Samoa, over the antimeridian.
	var order bool
	p.eval(`(() => { const x = (id) => document.querySelector('.map-mark.point[data-row="' + id + '"]').getBoundingClientRect().x; const all = [...document.querySelectorAll('.map-mark.point')].map((m) => m.getBoundingClientRect().x); return Math.max(...all) - Math.min(...all) > 300 })()`, &order)
	if !order {
		t.Error("the points are not spread over the map")
	}

	// With keys: from document to document, nearer, and all again.
	p.focus("application", "Map of 8 places")
	p.press("PageDown")
	p.find("region", "The document")
	p.until(`document.querySelectorAll('.map-mark.chosen').length >= 1`)
	var scale string
	p.eval(`document.querySelector('.map-scale text').textContent`, &scale)
	p.press("+", "+", "+")
	var nearer string
	p.eval(`document.querySelector('.map-scale text').textContent`, &nearer)
	if scale == nearer || !strings.HasSuffix(scale, "km") {
		t.Errorf("the scale is %s, and %s nearer", scale, nearer)
	}
	p.press("Escape")
	p.lacks("region", "The document")
	p.press("0")
	p.until(fmt.Sprintf(`document.querySelector('.map-scale text').textContent === %q`, scale))

	// A click shows the document.
	p.visit("/studio/db/shop/query?view=map&q=" + escaped("from Shops where spatial.within(spatial.point(N, E), spatial.circle(20, 52.5, 13.4))"))
	p.marks("point", 1)
	var at struct{ X, Y float64 }
	p.eval(`(() => { const b = document.querySelector('.map-mark.point').getBoundingClientRect(); return {X: b.x + b.width / 2, Y: b.y + b.height / 2} })()`, &at)
	p.clickAt(at.X, at.Y, 1)
	p.find("link", "shops/berlin")
	p.see("Acorns of Berlin")
	p.auditEverywhere("the map")
	p.click("link", "shops/berlin")
	p.find("textbox", "Document shops/berlin")

	// What goes around a pole, and over the antimeridian.
	p.visit("/studio/db/shop/query?view=map&q=" + escaped("from Poles"))
	p.marks("line", 1)
	var whole bool
	p.eval(`(() => { const earth = document.querySelector('.map-earth').getBBox(); const cap = [...document.querySelectorAll('.map-mark.area')].map((m) => m.getBBox()).find((b) => b.width > earth.width * 0.99); return cap !== undefined && Math.abs(cap.y - earth.y) < 1 })()`, &whole)
	if !whole {
		t.Error("an area around the pole does not go up to it over all longitudes")
	}

	// Where nothing is a place the page says what is one.
	p.visit("/studio/db/shop/query?view=map&q=" + escaped("from Shops where Name = 'Nowhere'"))
	p.see("No place in these answers.")
}

// Ensure that many places are cut at a bound, which is said, and that the list of a collection leads to the map if it has an index of places.
func TestMap_Many(t *testing.T) {
	s := startStudio(t)
	s.putMany("Stops", 1200, func(i int) (string, string) {
		return fmt.Sprintf("stops/%05d", i), fmt.Sprintf(`{"At":{"lat":%d,"lng":%d},"To":[{"lat":%d.5,"lng":%d.5},{"lat":%d.25,"lng":%d.25}]}`, i%160-80, i%340-170, i%160-80, i%340-170, i%160-80, i%340-170)
	})
	p := s.open("/studio/db/shop/documents?collection=Stops")
	p.see("stops/01199")
	p.lacks("link", "Map")
	s.want(201, "PUT", "/jay/v1/databases/shop/indexes", `{"collection":"Stops","index":{"name":"Spots","kind":"places","fields":["spatial.point(At.lat, At.lng)"]}}`)
	p.reload()
	p.click("link", "Map")
	p.see("2,000 places")
	p.see("more than 2,000 are not drawn")
	p.see("only the first 1,000 answers are here")
	var n int
	p.eval(`document.querySelectorAll('.map-mark').length`, &n)
	if n < 1000 || n > 4000 {
		t.Errorf("%d marks are drawn", n)
	}
}

// Pictures of the map to look at, into $JAY_MAPS.
func TestMap_Pictures(t *testing.T) {
	dir := os.Getenv("JAY_MAPS")
	if dir == "" {
		t.Skip("JAY_MAPS says where they go")
	}
	s := startStudio(t)
	s.places()
	p := s.openQuery("from Shops where Name != 'Fiji' and Name != 'Samoa'\norder by spatial.distance(spatial.point(N, E), spatial.point(52, 13))", "&view=map")
	p.viewport(1200, 800)
	p.marks("line", 1)
	p.picture(filepath.Join(dir, "map-near.png"))
	p.focus("application", "Map of *")
	p.press("PageDown")
	p.dark(true)
	p.picture(filepath.Join(dir, "map-dark.png"))
	p.dark(false)
	p.visit("/studio/db/shop/query?view=map&q=" + escaped("from Poles"))
	p.marks("line", 1)
	p.picture(filepath.Join(dir, "map-poles.png"))
	p.viewport(390, 800)
	p.visit("/studio/db/shop/query?view=map&q=" + escaped("from Shops"))
	p.picture(filepath.Join(dir, "map-phone.png"))
}
