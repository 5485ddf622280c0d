package query_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/query"
)

// places is a table of conditions on places, with bodies of which they are true and of which they are not.
var placeConditions = []struct {
	name, where string
	true, false []string
}{
	{"two numbers", "spatial.within(spatial.point(Lat, Lng), spatial.circle(10, 52, 13))",
		[]string{`{"Lat":52,"Lng":13}`, `{"Lat":5.205e1,"Lng":13.05}`},
		[]string{`{"Lat":52.2,"Lng":13}`, `{"Lat":52}`, `{"Lat":null,"Lng":13}`, `{"Lat":"52","Lng":13}`, `{"Lat":152,"Lng":13}`, `{"Lat":128,"Lng":-167}`, `{"Lat":[52,52],"Lng":13}`, `{}`}},
	{"a member", "spatial.within(At, spatial.circle(10, 52, 13))",
		[]string{`{"At":"POINT(13 52)"}`, `{"At":"point (13.0 52.0)"}`, `{"At":{"type":"Point","coordinates":[13,52]}}`, `{"At":["POINT(0 0)",{"type":"Point","coordinates":[13,52]}]}`, `{"At":"LINESTRING(13 52, 13.01 52)"}`},
		[]string{`{"At":"POINT(52 13)"}`, `{"At":"POINT(13 91)"}`, `{"At":"Berlin"}`, `{"At":5}`, `{"At":{"a":1}}`, `{"At":[]}`, `{"At":"LINESTRING(13 52, 14 52)"}`, `{"At":"POINT EMPTY"}`, `{"At":"POLYGON((0 0,2 2,2 0,0 2,0 0))"}`}},
	{"over the antimeridian", "spatial.intersects(At, spatial.box(-10, 170, 10, -170))",
		[]string{`{"At":"POINT(179 0)"}`, `{"At":"POINT(-180 5)"}`, `{"At":"POINT(180 5)"}`, `{"At":"POLYGON((175 -1, -175 -1, -175 1, 175 1, 175 -1))"}`, `{"At":"LINESTRING(160 0, 175 0)"}`},
		[]string{`{"At":"POINT(169 0)"}`, `{"At":"POINT(0 0)"}`, `{"At":"LINESTRING(-160 0, 160 50)"}`}},
	{"a circle over the antimeridian", "spatial.within(At, spatial.circle(300, 0, 179))",
		[]string{`{"At":"POINT(-179 0)"}`, `{"At":"POINT(178 1)"}`}, []string{`{"At":"POINT(-177 0)"}`, `{"At":"POINT(0 0)"}`}},
	{"at the pole", "spatial.within(At, spatial.circle(200, 90, 0))",
		[]string{`{"At":"POINT(0 90)"}`, `{"At":"POINT(-135 89)"}`, `{"At":"POLYGON((0 89, 120 89, -120 89, 0 89))"}`}, []string{`{"At":"POINT(45 88)"}`, `{"At":"POINT(0 -90)"}`}},
	{"miles", "spatial.within(At, spatial.circle(10, 0, 0, 'miles'))", []string{`{"At":"POINT(0.14 0)"}`}, []string{`{"At":"POINT(0.15 0)"}`}},
	{"metres", "spatial.within(At, spatial.circle(100, 0, 0, 'meters'))", []string{`{"At":"POINT(0.00089 0)"}`}, []string{`{"At":"POINT(0.0009 0)"}`}},
	{"a hole", "spatial.within(At, spatial.wkt('POLYGON((0 0, 10 0, 10 10, 0 10, 0 0), (4 4, 6 4, 6 6, 4 6, 4 4))'))",
		[]string{`{"At":"POINT(1 1)"}`}, []string{`{"At":"POINT(5 5)"}`, `{"At":"POINT(11 5)"}`}},
	{"contains", "spatial.contains(At, spatial.point(1, 2))",
		[]string{`{"At":"POINT(2 1)"}`, `{"At":"POLYGON((0 0, 5 0, 5 5, 0 5, 0 0))"}`, `{"At":"ENVELOPE(1, 3, 2, 0)"}`, `{"At":"CIRCLE(2 1 d=10)"}`}, []string{`{"At":"POINT(1 2)"}`, `{"At":"LINESTRING(0 0, 1 1)"}`}},
	{"disjoint is asked of each place", "spatial.disjoint(At, spatial.circle(10, 0, 0))",
		[]string{`{"At":"POINT(5 5)"}`, `{"At":["POINT(0 0)","POINT(5 5)"]}`}, []string{`{"At":"POINT(0 0)"}`, `{"At":"nowhere"}`, `{}`}},
	{"disjoint of no place", "spatial.disjoint(At, spatial.circle(10, 50, 50))", []string{`{"At":"POINT(0 0)"}`}, []string{`{"At":"nowhere"}`, `{"At":7}`, `{"At":{}}`, `{}`}},
	{"an element", "elemMatch(Stops, spatial.within(At, spatial.circle(10, 0, 0)) and Open = true)",
		[]string{`{"Stops":[{"At":"POINT(5 5)","Open":true},{"At":"POINT(0 0)","Open":true}]}`}, []string{`{"Stops":[{"At":"POINT(5 5)","Open":true},{"At":"POINT(0 0)","Open":false}]}`}},
	{"a distance", "spatial.distance(At, spatial.point(0, 0)) between 111 and 112",
		[]string{`{"At":"POINT(1 0)"}`, `{"At":["POINT(9 9)","POINT(0 -1)"]}`, `{"At":"LINESTRING(1 -5, 1 5)"}`}, []string{`{"At":"POINT(2 0)"}`, `{"At":["POINT(1 0)","POINT(0 0)"]}`, `{}`, `{"At":7}`}},
}

// Ensure conditions on places are true of the places that lie so, and of nothing that is no place.
func TestPlace(t *testing.T) {
	for _, row := range placeConditions {
		t.Run(row.name, func(t *testing.T) {
			e, err := query.ParseCondition(row.where, nil)
			if err != nil {
				t.Fatal(err)
			}
			m, err := query.Compile(e)
			if err != nil {
				t.Fatal(err)
			}
			for i, bodies := range [][]string{row.true, row.false} {
				for _, body := range bodies {
					if got := m.Match(query.Doc{Body: []byte(body)}); got != (i == 0) {
						t.Errorf("%s: got %v", body, got)
					}
				}
			}
		})
	}
}

// haversine returns the distance of two points in kilometers, by the formula that is not that of S2.
func haversine(lat1, lng1, lat2, lng2 float64) float64 {
	const rad = math.Pi / 180
	a := math.Pow(math.Sin((lat2-lat1)*rad/2), 2) + math.Cos(lat1*rad)*math.Cos(lat2*rad)*math.Pow(math.Sin((lng2-lng1)*rad/2), 2)
	return 2 * 6371.0088 * math.Asin(min(1, math.Sqrt(a)))
}

// Ensure circles, boxes and distances of random points are those of the haversine formula.
func TestPlace_Haversine(t *testing.T) {
	r := rand.New(rand.NewPCG(37, 0))
	spot := func() (lat, lng float64) {
		lat, lng = r.Float64()*180-90, r.Float64()*360-180
		if r.IntN(8) == 0 {
			lat = []float64{-90, 90, 0}[r.IntN(3)]
		}
		if r.IntN(8) == 0 {
			lng = []float64{-180, 180, 0}[r.IntN(3)]
		}
		return lat, lng
	}
	inside := 0
	for range sample.Of(t, 4).Rounds(20_000) {
		lat, lng := spot()
		cLat, cLng := spot()
		radius := r.Float64() * 12_000
		body := fmt.Sprintf(`{"Lat":%v,"Lng":%v}`, lat, lng)
		want := haversine(lat, lng, cLat, cLng)
		circle, err := query.CircleShape(cLat, cLng, radius, "")
		if err != nil {
			t.Fatal(err)
		}
		point, err := query.ParseExpression("spatial.point(Lat, Lng)")
		if err != nil {
			t.Fatal(err)
		}
		m, err := query.Compile(query.Place{Field: point, Shape: circle})
		if err != nil {
			t.Fatal(err)
		}
		if got := m.Match(query.Doc{Body: []byte(body)}); got != (want <= radius) && math.Abs(want-radius) > 0.01 {
			t.Fatalf("%s in %s: got %v, the distance is %v", body, circle, got, want)
		} else if got {
			inside++
		}
		f, err := query.ParseExpression(query.DistanceText("spatial.point(Lat, Lng)", cLat, cLng))
		if err != nil {
			t.Fatal(err)
		}
		reader := query.NewReader([]query.Field{f})
		reader.Reset(query.Doc{Body: []byte(body)})
		if v := reader.Values(0); len(v) != 1 {
			t.Fatalf("%s of %s: got %v", f, body, v)
		} else if got, err := strconv.ParseFloat(v[0].String(), 64); err != nil || math.Abs(got-want) > 0.01 {
			t.Fatalf("%s of %s: got %v, want %v", f, body, got, want)
		}
	}
	if inside < 1000 {
		t.Errorf("%d points in their circles", inside)
	}
}

// Ensure an order by distance has documents without a place last, and with desc first.
func TestPlace_Order(t *testing.T) {
	bodies := []string{`{"At":"POINT(5 0)"}`, `{}`, `{"At":"POINT(1 0)"}`, `{"At":"here"}`, `{"At":["POINT(9 0)","POINT(2 0)"]}`}
	for text, want := range map[string][]int{
		"spatial.distance(At, spatial.point(0, 0))":              {2, 4, 0, 1, 3},
		"spatial.distance(At, spatial.point(0, 0)) desc":         {1, 3, 0, 4, 2},
		"spatial.distance(At, spatial.point(0, 0), 'miles')":     {2, 4, 0, 1, 3},
		"spatial.distance(At, spatial.point(0, 0), 400)":         {2, 4, 0, 1, 3},
		"spatial.distance(At, spatial.point(0, 0), 'm', 400000)": {2, 4, 0, 1, 3},
	} {
		q, err := query.Parse("from Shops order by "+text, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, err := query.NewSorter(q.OrderBy)
		if err != nil {
			t.Fatal(err)
		}
		got := []int{0, 1, 2, 3, 4}
		slices.SortStableFunc(got, func(a, b int) int {
			return s.Compare(query.Doc{Body: []byte(bodies[a])}, query.Doc{Body: []byte(bodies[b])})
		})
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

// Ensure shapes that are none are refused with the rule and the value, and too many conditions with the bound.
func TestPlace_Refused(t *testing.T) {
	ring := func(n int) string {
		var b strings.Builder
		b.WriteString("POLYGON((")
		for i := range n + 1 {
			if i > 0 {
				b.WriteByte(',')
			}
			a := 2 * math.Pi * float64(i%n) / float64(n)
			fmt.Fprintf(&b, "%v %v", 10*math.Cos(a), 10*math.Sin(a))
		}
		return b.String() + "))"
	}
	for _, row := range []struct {
		text, rule, value string
	}{
		{"POINT(181 0)", "a longitude is between -180 and 180", "181"},
		{"POLYGON((0 0, 2 2, 2 0, 0 2, 0 0))", "a ring does not cross itself or another one", "at about"},
		{"POLYGON((0 0, 1 0, 1 1, 0 1))", "a ring ends where it begins", "ring 1"},
		{"POLYGON((0 0, 1 0, 0 0))", "a ring has at least three vertices that differ", "ring 1 has 2"},
		{"LINESTRING(0 0, 180 0)", "neighbouring vertices are not opposite", "0, 180"},
		{"POINT EMPTY", "a shape has a point", "POINT EMPTY"},
		{"CIRCLE(0 0 d=30000)", "the radius of a circle is between 0 and 20,015 km", "3e+07 m"},
		{ring(1_000_000), fmt.Sprintf("a place has at most %d vertices", query.MaxVertices), "there are more"},
	} {
		_, err := query.WKTShape(row.text, "")
		var e *query.PlaceError
		if !errors.As(err, &e) || !strings.Contains(e.Rule, row.rule) || !strings.Contains(e.Value, row.value) {
			t.Errorf("%.60s: got %v", row.text, err)
		}
	}
	if _, err := query.WKTShape(ring(query.MaxVertices-1), ""); err != nil {
		t.Errorf("%d vertices: %v", query.MaxVertices-1, err)
	}
	s, err := query.PointShape(1, 2)
	if err != nil {
		t.Fatal(err)
	}
	f, err := query.ParseExpression("At")
	if err != nil {
		t.Fatal(err)
	}
	many := slices.Repeat([]query.Expr{query.Place{Field: f, Shape: s}}, query.MaxPlaces+1)
	if _, err := query.Compile(query.Or(many[1:])); err != nil {
		t.Error(err)
	}
	var limit *query.LimitError
	if _, err := query.Compile(query.Or(many)); !errors.As(err, &limit) || limit.Limit != query.MaxPlaces || limit.What != "conditions on places" {
		t.Errorf("got %v", err)
	}
	if _, err := query.Compile(query.Place{Field: f}); !errors.Is(err, query.ErrCondition) {
		t.Errorf("without a shape: got %v", err)
	}
}

func ExamplePlace() {
	e, err := query.ParseCondition("spatial.within(spatial.point(Lat, Lng), spatial.circle(5, 52.52, 13.4))", nil)
	if err != nil {
		panic(err)
	}
	m, err := query.Compile(e)
	if err != nil {
		panic(err)
	}
	fmt.Println(m.Match(query.Doc{Body: []byte(`{"Lat":52.51,"Lng":13.41}`)}))
	// Output: true
}

func ExampleShape() {
	s, err := query.BoxShape(-10, 170, 10, -170)
	fmt.Println(s, err)
	_, err = query.PointShape(91, 0)
	fmt.Println(err)
	// Output:
	// spatial.box(-10, 170, 10, -170) <nil>
	// a latitude is between -90 and 90: 91
}

func ExamplePlaceError() {
	_, err := query.CircleShape(0, 0, 5, "leagues")
	fmt.Println(err)
	// Output: a unit of distance is kilometers, miles or meters: leagues
}

func ExampleDistance() {
	f, err := query.ParseExpression("spatial.distance(Location, spatial.point(52, 13), 'km')")
	if err != nil {
		panic(err)
	}
	d, is := f.Distance()
	fmt.Println(is, d.Place, d.Unit, f)
	// Output: true Location kilometers spatial.distance(Location, spatial.point(52, 13), 'kilometers')
}

func ExampleRelation() {
	e, err := query.ParseCondition("spatial.intersects(Area, spatial.point(1, 2))", nil)
	if err != nil {
		panic(err)
	}
	fmt.Println(e.(query.Place).Relation == query.PlaceIntersects)
	// Output: true
}

// Ensure that the place of a distance is the text that an index of it has, also if a condition chooses it.
func TestDistance_Place(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"At", "spatial.point(Lat, Lng)", "spatial.point(Lat + 1, Stop.Lng)", "spatial.point(if(Open = true and Lat != null, Lat, null), if(Lng > 5, Lng, 5))"} {
		f, err := query.ParseExpression("spatial.distance(" + place + ", spatial.point(1, 2))")
		if err != nil {
			t.Fatal(err)
		}
		if d, is := f.Distance(); !is || d.Place.String() != place {
			t.Errorf("the place of %s is %s, %v", f, d.Place, is)
		}
	}
}

// Ensure that a place in quotes, as RavenDB's clients send it, is the place, and that another text in quotes is a field.
func TestPlace_Quoted(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"from Shops order by spatial.distance('spatial.point(Lat, Lng)', spatial.point(1, 2)) desc":                      "from Shops order by spatial.distance(spatial.point(Lat, Lng), spatial.point(1, 2)) desc",
		"from Shops as s order by spatial.distance(\"spatial.point(s.Lat, s.Lng)\", spatial.point(1, 2), 10)":            "from Shops order by spatial.distance(spatial.point(Lat, Lng), spatial.point(1, 2), 10)",
		"from Shops where Open = true order by Spatial.Distance('Spatial.WKT(Area)', spatial.point(1, 2)), Name limit 5": "from Shops where Open = true order by spatial.distance(Area, spatial.point(1, 2)), Name limit 5",
		"from Shops where spatial.within('spatial.point(Lat, Lng)', spatial.point(1, 2)) and Open = true":                "from Shops where spatial.within(spatial.point(Lat, Lng), spatial.point(1, 2)) and Open = true",
		"from Shops where spatial.within('spatial area', spatial.point(1, 2))":                                           "from Shops where spatial.within('spatial area', spatial.point(1, 2))",
		"from Shops where spatial.within('spatial.area', spatial.point(1, 2))":                                           "from Shops where spatial.within('spatial.area', spatial.point(1, 2))",
	} {
		q, err := query.Parse(text, nil)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := q.String(); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"from Shops order by spatial.distance('spatial.point(Lat, Lng) x', spatial.point(1, 2))":  "the place in quotes",
		"from Shops order by spatial.distance('spatial.circle(1, 2)', spatial.point(1, 2))":       "there is no spatial.circle() here",
		"from Shops where spatial.within('spatial.point(Lat', spatial.point(1, 2))":               "the place in quotes",
		"from Shops where spatial.within('spatial.wkt(\\'spatial.wkt(a)\\'', spatial.point(1,2))": "the place in quotes",
	} {
		if _, err := query.Parse(text, nil); !errors.Is(err, query.ErrSyntax) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
