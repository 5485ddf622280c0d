package geo_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/internal/geo"
)

func parse(t testing.TB, wkt string) *geo.Place {
	t.Helper()
	p, err := geo.ParseWKT(wkt, 1000)
	if err != nil {
		t.Fatalf("%s: %v", wkt, err)
	}
	return p
}

// vector is a point on the unit sphere, by arithmetic of its own.
type vector [3]float64

func at(latitude, longitude float64) vector {
	lat, lng := latitude*math.Pi/180, longitude*math.Pi/180
	return vector{math.Cos(lat) * math.Cos(lng), math.Cos(lat) * math.Sin(lng), math.Sin(lat)}
}

// haversine is a distance in metres.
func haversine(lat1, lng1, lat2, lng2 float64) float64 {
	r := math.Pi / 180
	a := math.Pow(math.Sin((lat2-lat1)*r/2), 2) + math.Cos(lat1*r)*math.Cos(lat2*r)*math.Pow(math.Sin((lng2-lng1)*r/2), 2)
	return 2 * geo.Radius * math.Asin(math.Min(1, math.Sqrt(a)))
}

// Ensure that distances are those of the haversine formula, everywhere.
func TestDistance(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(37, 1))
	for range 5000 {
		lat1, lng1, lat2, lng2 := r.Float64()*180-90, r.Float64()*360-180, r.Float64()*180-90, r.Float64()*360-180
		if r.IntN(2) == 0 { // near
			lat2, lng2 = max(-90, min(90, lat1+r.NormFloat64()/100)), max(-180, min(180, lng1+r.NormFloat64()/100))
		}
		p, err := geo.Point(lat1, lng1)
		if err != nil {
			t.Fatal(err)
		}
		to, err := geo.NewTarget(geo.Spot{Latitude: lat2, Longitude: lng2})
		if err != nil {
			t.Fatal(err)
		}
		got := to.Metres(geo.Value{Other: p})
		want := haversine(lat1, lng1, lat2, lng2)
		if math.Abs(got-want) > 1e-3+want*1e-9 && want < 20_000_000 {
			t.Fatalf("%v %v to %v %v: %v, want %v", lat1, lng1, lat2, lng2, got, want)
		}
	}
}

// Ensure that a circle has the points that the haversine formula gives it, over the antimeridian and at the poles.
func TestCircle(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(37, 2))
	for range 3000 {
		lat, lng, radius := r.Float64()*180-90, r.Float64()*360-180, math.Exp(r.Float64()*12)*10
		if r.IntN(3) == 0 {
			lat, lng = []float64{90, -90, 89.9, lat}[r.IntN(4)], []float64{180, -180, 179.999, lng}[r.IntN(4)]
		}
		c, err := geo.Circle(lat, lng, radius)
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			away := radius * r.Float64() * 2 / geo.Radius * 180 / math.Pi
			lat2, lng2 := max(-90, min(90, lat+away*r.NormFloat64())), lng+away*r.NormFloat64()
			lng2 = math.Mod(lng2+540+360*10, 360) - 180
			want := haversine(lat, lng, lat2, lng2)
			if math.Abs(want-radius) < 1e-3+radius*1e-8 {
				continue
			}
			p, err := geo.Point(lat2, lng2)
			if err != nil {
				t.Fatal(err)
			}
			if got := c.Contains(p); got != (want < radius) || c.Intersects(p) != got || p.Intersects(c) != got {
				t.Fatalf("circle %v %v %v has %v %v: %v, distance %v", lat, lng, radius, lat2, lng2, got, want)
			}
		}
	}
}

// inside reports whether a point is in a polygon, by a projection from its middle in which great circles are straight lines.
func inside(ring [][2]float64, middle, point [2]float64) bool {
	project := func(p [2]float64) (x, y float64) {
		m, v := at(middle[0], middle[1]), at(p[0], p[1])
		lng := middle[1] * math.Pi / 180
		east := vector{-math.Sin(lng), math.Cos(lng), 0}
		north := vector{m[1]*east[2] - m[2]*east[1], m[2]*east[0] - m[0]*east[2], m[0]*east[1] - m[1]*east[0]}
		dot := func(a, b vector) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }
		d := dot(m, v)
		return dot(east, v) / d, dot(north, v) / d
	}
	px, py := project(point)
	in := false
	for i := range ring {
		ax, ay := project(ring[i])
		bx, by := project(ring[(i+1)%len(ring)])
		if (ay > py) != (by > py) && px < (bx-ax)*(py-ay)/(by-ay)+ax {
			in = !in
		}
	}
	return in
}

// Ensure that areas have the points that a projection of their own finds in them, anywhere on the earth.
func TestArea(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(37, 3))
	found := 0
	for range 1000 {
		middle := [2]float64{r.Float64()*170 - 85, r.Float64()*360 - 180}
		if r.IntN(3) == 0 {
			middle[1] = 179.9
		}
		size := 0.01 + r.Float64()*3
		var ring [][2]float64
		var text []string
		n := 3 + r.IntN(8)
		wrap := func(lng float64) float64 { return math.Mod(lng+540, 360) - 180 }
		for i := range n {
			a := 2 * math.Pi * float64(i) / float64(n)
			d := size * (0.3 + r.Float64())
			v := [2]float64{middle[0] + d*math.Sin(a), wrap(middle[1] + d*math.Cos(a)/math.Cos(middle[0]*math.Pi/180))}
			ring = append(ring, v)
			text = append(text, fmt.Sprintf("%.12f %.12f", v[1], v[0]))
		}
		p, err := geo.ParseWKT("POLYGON(("+strings.Join(append(text, text[0]), ", ")+"))", 1)
		if err != nil {
			continue // its sides may cross, far from the middle
		}
		for range 10 {
			q := [2]float64{middle[0] + size*1.5*(r.Float64()*2-1), wrap(middle[1] + size*1.5*(r.Float64()*2-1)/math.Cos(middle[0]*math.Pi/180))}
			if math.Abs(q[0]) > 89 {
				continue
			}
			o, err := geo.Point(q[0], q[1])
			if err != nil {
				t.Fatal(err)
			}
			want := inside(ring, middle, q)
			if got := p.Contains(o); got != want || p.Intersects(o) != want {
				to, err := geo.NewTarget(geo.Spot{Latitude: q[0], Longitude: q[1]})
				if err != nil {
					t.Fatal(err)
				}
				if d := to.Metres(geo.Value{Other: p}); d > 0 && d < 0.01 {
					continue
				}
				t.Fatalf("%v in %v: %v (%v), want %v", q, ring, got, p.Intersects(o), want)
			}
			if want {
				found++
			}
		}
	}
	if found < 1000 {
		t.Errorf("only %d points inside", found)
	}
}

// Ensure how places of each kind lie to one another.
func TestRelations(t *testing.T) {
	t.Parallel()
	const square, hole = "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0))", "POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 3 1, 3 3, 1 3, 1 1))"
	for _, one := range []struct {
		a, b                 string
		intersects, contains bool
	}{
		{square, "POINT(1 1)", true, true},
		{square, "POINT(5 1)", false, false},
		{square, "MULTIPOINT(1 1, 5 1)", true, false},
		{square, "LINESTRING(1 1, 2 2)", true, true},
		{square, "LINESTRING(1 1, 5 5)", true, false},
		{square, "LINESTRING(-1 2, 5 2)", true, false}, // neither end is in it
		{square, "LINESTRING(6 6, 7 7)", false, false},
		{square, square, true, true},
		{square, "POLYGON((1 1, 2 1, 2 2, 1 1))", true, true},
		{square, "POLYGON((3 3, 5 3, 5 5, 3 3))", true, false},
		{square, "POLYGON((-1 1, 5 1, 5 2, -1 2, -1 1))", true, false}, // no vertex of one is in the other
		{square, "POLYGON((6 6, 7 6, 7 7, 6 6))", false, false},
		{hole, "POINT(2 2)", false, false},
		{hole, "POINT(0.5 0.5)", true, true},
		{hole, "POLYGON((1.5 1.5, 2.5 1.5, 2.5 2.5, 1.5 1.5))", false, false},
		{hole, square, true, false},
		{square, hole, true, true},
		{hole, "LINESTRING(0.5 2, 3.5 2)", true, false}, // both ends are in it
		{square, "CIRCLE(2 2 d=100)", true, true},
		{square, "CIRCLE(2 2 d=300)", true, false},
		{square, "CIRCLE(6 2 d=100)", false, false},
		{"CIRCLE(2 2 d=400)", square, true, true},
		{"CIRCLE(2 2 d=300)", square, true, false},
		{"CIRCLE(2 2 d=300)", "CIRCLE(2 2 d=200)", true, true},
		{"CIRCLE(2 2 d=300)", "CIRCLE(6 2 d=200)", true, false},
		{"CIRCLE(2 2 d=300)", "CIRCLE(9 2 d=200)", false, false},
		{"ENVELOPE(0, 4, 4, 0)", "POINT(4 4)", true, true},
		{"ENVELOPE(0, 4, 4, 0)", "POINT(4.1 4)", false, false},
		{"ENVELOPE(0, 4, 4, 0)", "LINESTRING(1 1, 3 3)", true, true},
		{"ENVELOPE(0, 4, 4, 0)", "LINESTRING(-1 2, 5 2)", true, false},
		{"ENVELOPE(0, 4, 4, 0)", "ENVELOPE(1, 2, 2, 1)", true, true},
		{"ENVELOPE(0, 4, 4, 0)", "ENVELOPE(1, 5, 2, 1)", true, false},
		{"ENVELOPE(0, 4, 4, 0)", "ENVELOPE(5, 6, 2, 1)", false, false},
		{"ENVELOPE(0, 4, 4, 0)", "CIRCLE(2 2 d=100)", true, true},
		{"ENVELOPE(0, 4, 4, 0)", "CIRCLE(4 2 d=100)", true, false},
		{"ENVELOPE(170, -170, 10, -10)", "POINT(180 0)", true, true},
		{"ENVELOPE(170, -170, 10, -10)", "POINT(-180 0)", true, true},
		{"ENVELOPE(170, -170, 10, -10)", "POINT(0 0)", false, false},
		{"ENVELOPE(170, -170, 10, -10)", "LINESTRING(175 0, -175 0)", true, true},
		{"ENVELOPE(-180, 180, 90, 80)", "POINT(12 85)", true, true},
		{"ENVELOPE(-180, 180, 90, 80)", "POINT(12 79)", false, false},
		{"ENVELOPE(-180, 180, 90, 80)", "LINESTRING(0 85, 180 85)", true, true}, // over the pole
		{"ENVELOPE(-180, 180, 90, 80)", "POLYGON((0 70, 1 70, 1 71, 0 70))", false, false},
		{"ENVELOPE(-180, 180, 60, 50)", "POLYGON((0 40, 10 40, 5 55, 0 40))", true, false},
		{"POLYGON((170 -10, -170 -10, -170 10, 170 10, 170 -10))", "POINT(180 0)", true, true},
		{"POLYGON((170 -10, -170 -10, -170 10, 170 10, 170 -10))", "POINT(0 0)", false, false},
		{"POLYGON((0 80, 120 80, -120 80, 0 80))", "POINT(55 90)", true, true}, // around the pole
		{"LINESTRING(0 0, 4 0)", "POINT(2 0)", true, true},
		{"LINESTRING(0 0, 4 0)", "POINT(2 0.1)", false, false},
		{"LINESTRING(0 0, 4 0)", "LINESTRING(2 -1, 2 1)", true, false},
		{"LINESTRING(0 0, 4 0)", "LINESTRING(2 0, 2 1)", true, false}, // touches
		{"LINESTRING(0 0, 4 0)", "LINESTRING(2 1, 2 2)", false, false},
		{"POINT(1 1)", "POINT(1 1)", true, true},
		{"POINT(1 1)", "POINT(1 1.001)", false, false},
		{"GEOMETRYCOLLECTION(POINT(9 9), " + square + ")", "MULTIPOINT(1 1, 9 9)", true, true},
		{"POINT EMPTY", "POINT(1 1)", false, false},
		{square, "POINT EMPTY", false, false},
		{"MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((3 0, 4 0, 4 1, 3 0)))", "POINT(3.5 0.2)", true, true},
		{"MULTIPOLYGON(((0 0, 1 0, 1 1, 0 0)), ((3 0, 4 0, 4 1, 3 0)))", "LINESTRING(0.5 0.2, 3.5 0.2)", true, false},
	} {
		a, b := parse(t, one.a), parse(t, one.b)
		if got := a.Intersects(b); got != one.intersects {
			t.Errorf("%s intersects %s: %v", one.a, one.b, got)
		}
		if got := b.Intersects(a); got != one.intersects {
			t.Errorf("%s intersects %s: %v", one.b, one.a, got)
		}
		if got := a.Contains(b); got != one.contains {
			t.Errorf("%s contains %s: %v", one.a, one.b, got)
		}
	}
}

// Ensure that what is no place is refused by a typed error that names the rule.
func TestRefused(t *testing.T) {
	t.Parallel()
	many := strings.Repeat("1 1, ", geo.MaxVertices)
	for text, rule := range map[string]string{
		"":                                   "WKT has POINT",
		"POINT":                              "'('",
		"POINT(1)":                           "a number",
		"POINT(1 2":                          "')'",
		"POINT(1 2) x":                       "the end",
		"POINT(1 91)":                        "latitude",
		"POINT(181 1)":                       "longitude",
		"POINT(NaN 1)":                       "a number",
		"POINT(1e999 1)":                     "a number",
		"LINESTRING(1 1, 1 1)":               "two vertices",
		"LINESTRING(0 0, 180 0)":             "opposite",
		"POLYGON((0 0, 1 0, 1 1))":           "ends where it begins",
		"POLYGON((0 0, 1 0, 0 0))":           "three vertices",
		"POLYGON((0 0, 1 1, 1 0, 0 1, 0 0))": "cross",
		"POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (5 5, 6 5, 6 6, 5 5))":                                 "holes are inside",
		"POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 5 1, 5 2, 1 1))":                                 "cross",
		"POLYGON((0 0, 4 0, 4 4, 0 4, 0 0), (1 1, 3 1, 3 3, 1 1), (2 1.5, 2.5 1.5, 2.5 2, 2 1.5))": "a hole is not in another",
		"POLYGON((0 0, 2 0, 1 1, 2 2, 0 2, 1 1, 0 0))":                                             "each vertex once",
		"CIRCLE(0 0 d=-1)":                        "radius",
		"CIRCLE(0 0)":                             "d=",
		"ENVELOPE(0, 1, 0, 1)":                    "south",
		"ENVELOPE(0, 1, 1)":                       "west, east",
		"MULTIPOINT(" + many + "1 1)":             "vertices",
		strings.Repeat("GEOMETRYCOLLECTION(", 20): "levels",
	} {
		_, err := geo.ParseWKT(text, 1)
		var refused *geo.Error
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), rule) {
			t.Errorf("%.60s: %v, want %q", text, err, rule)
		}
	}
	for json, rule := range map[string]string{
		`5`:                                      "object",
		`{}`:                                     "type",
		`{"type":"Point"}`:                       "arrays",
		`{"type":"Point","coordinates":[1]}`:     "longitude and a latitude",
		`{"type":"Point","coordinates":["1",2]}`: "number",
		`{"type":"Point","coordinates":[1,95]}`:  "latitude",
		`{"type":"Polygon","coordinates":[]}`:    "ring",
		strings.Repeat(`{"type":"GeometryCollection","geometries":[`, 20) + strings.Repeat(`]}`, 20): "levels",
	} {
		_, err := geo.ParseGeoJSON(gjson.Parse(json))
		var refused *geo.Error
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), rule) {
			t.Errorf("%.60s: %v, want %q", json, err, rule)
		}
	}
}

// Ensure that WKT and GeoJSON say the same, with a third coordinate or without.
func TestGeoJSON(t *testing.T) {
	t.Parallel()
	for json, wkt := range map[string]string{
		`{"type":"Point","coordinates":[1,2,99]}`:                                                     "POINT Z (1 2 7)",
		`{"type":"MultiPoint","coordinates":[[1,2],[3,4]]}`:                                           "multipoint((1 2), (3 4))",
		`{"type":"LineString","coordinates":[[1,2],[3,4]]}`:                                           "LINESTRING (1 2, 3 4)",
		`{"type":"MultiLineString","coordinates":[[[1,2],[3,4]],[[5,6],[7,8]]]}`:                      "MULTILINESTRING((1 2, 3 4), (5 6, 7 8))",
		`{"type":"Polygon","coordinates":[[[0,0],[4,0],[4,4],[0,0]]]}`:                                "POLYGON((0 0, 4 4, 4 0, 0 0))",
		`{"type":"MultiPolygon","coordinates":[[[[0,0],[4,0],[4,4],[0,0]]]]}`:                         "MULTIPOLYGON(((0 0, 4 0, 4 4, 0 0)))",
		`{"type":"GeometryCollection","geometries":[{"type":"Point","coordinates":[1,2]}]}`:           "GEOMETRYCOLLECTION(POINT(1 2))",
		`{"type":"Feature","properties":{},"geometry":{"type":"Point","coordinates":[1,2]},"id":"x"}`: "POINT(1 2)",
	} {
		a, err := geo.ParseGeoJSON(gjson.Parse(json))
		if err != nil {
			t.Errorf("%s: %v", json, err)
			continue
		}
		if b := parse(t, wkt); !a.Contains(b) || !b.Contains(a) {
			t.Errorf("%s is not %s", json, wkt)
		}
	}
	if p, err := geo.ParseGeoJSON(gjson.Parse(`{"type":"Feature","geometry":null}`)); err != nil || !p.IsEmpty() {
		t.Errorf("a feature without a geometry: %v", err)
	}
}

// Ensure that a box without an inside is a line or a point, and meets what that meets only.
func TestBox_Flat(t *testing.T) {
	for _, row := range []struct {
		box   [4]float64
		meets string
		not   string
	}{
		{[4]float64{-64, 43.7, -60, 43.7}, "LINESTRING(40 -62, 50 -62)", "POLYGON((12 51, 15 51, 15 53, 13 54, 12 51))"},
		{[4]float64{10, 20, 10, 30}, "LINESTRING(25 0, 25 20)", "LINESTRING(35 0, 35 20)"},
		{[4]float64{10, 20, 10, 20}, "POLYGON((0 0, 40 0, 40 40, 0 40, 0 0))", "LINESTRING(21 0, 21 20)"},
	} {
		b, err := geo.Box(row.box[0], row.box[1], row.box[2], row.box[3])
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]bool{row.meets: true, row.not: false} {
			p, err := geo.ParseWKT(text, 1)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.Intersects(p); got != want {
				t.Errorf("%v and %s: got %v", row.box, text, got)
			}
			if got := p.Intersects(b); got != want {
				t.Errorf("%s and %v: got %v", text, row.box, got)
			}
		}
	}
}

// Ensure that a box and a triangle meet, whichever is asked, and whichever has more sides.
func TestBox_Triangle(t *testing.T) {
	b, err := geo.Box(52.3, 13, 52.45, 14)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"POLYGON((13 52, 14 52, 14 53, 13 52))": true, "LINESTRING(13 52, 14 53)": true, "POLYGON((0 40, 40 40, 40 60, 0 60, 0 40))": true, "POLYGON((13.4 52.4, 13.5 52.4, 13.5 52.41, 13.4 52.4))": true, "POLYGON((15 52, 16 52, 16 53, 15 52))": false} {
		p, err := geo.ParseWKT(text, 1)
		if err != nil {
			t.Fatal(err)
		}
		if one, other := b.Intersects(p), p.Intersects(b); one != want || other != want {
			t.Errorf("%s: got %v and %v", text, one, other)
		}
	}
}

// Ensure that the boxes of a place are outlined once, and not for each of the many that a query compares it with.
func TestPlace_Contains_BoxesOnce(t *testing.T) {
	asked, triangle := parse(t, "ENVELOPE(170, -170, 10, -10)"), parse(t, "POLYGON((13 52, 14 52, 14 53, 13 52))")
	if n := testing.AllocsPerRun(100, func() {
		if triangle.Contains(asked) {
			t.Error("a triangle contains it")
		}
	}); n > 20 {
		t.Errorf("%v allocations", n)
	}
	if !parse(t, "POLYGON((160 -20, -160 -20, -160 20, 160 20, 160 -20))").Contains(asked) {
		t.Error("it is not in a polygon around it")
	}
}
