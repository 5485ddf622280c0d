package places_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/kindtest"
	"github.com/jaydb/jay/internal/places"
)

// spot returns a latitude and a longitude: of a few that are special, near others, or anywhere.
func spot(r *rand.Rand) (lat, lng float64) {
	switch r.IntN(5) {
	case 0:
		return []float64{-90, 90, 0, 45}[r.IntN(4)], []float64{-180, 180, 0, 90, 179.9999999}[r.IntN(5)]
	case 1:
		return r.Float64()*180 - 90, r.Float64()*360 - 180
	}
	return 52 + r.Float64(), 13 + r.Float64()
}

// place returns a value of JSON that is a place, or looks like one.
func place(r *rand.Rand) string {
	lat, lng := spot(r)
	size := []float64{0.01, 1, 20}[r.IntN(3)]
	ring := func(separator, begin, end string) string {
		var all []string
		for _, c := range [][2]float64{{-1, -1}, {1, -1}, {1, 1}, {-1, 1}, {-1, -1}} {
			x := lng + c[0]*size
			if x > 180 {
				x -= 360
			} else if x < -180 {
				x += 360
			}
			all = append(all, fmt.Sprintf("%s%v%s%v%s", begin, x, separator, max(-89.9, min(89.9, lat/1.3+c[1]*size)), end))
		}
		return strings.Join(all, ",")
	}
	switch r.IntN(12) {
	case 0:
		return []string{`"Berlin"`, `null`, `7`, `"POINT(1 91)"`, `{"type":"Point"}`, `"POINT EMPTY"`, `"POLYGON((0 0,2 2,2 0,0 2,0 0))"`, `[]`, `{"a":{"type":"Point","coordinates":[1,2]}}`}[r.IntN(9)]
	case 1:
		return `"POLYGON((` + ring(" ", "", "") + `))"`
	case 2:
		return `{"type":"Polygon","coordinates":[[` + ring(",", "[", "]") + `]]}`
	case 3:
		return fmt.Sprintf(`"LINESTRING(%v %v, %v %v)"`, lng, lat, lng/2, lat/2+1)
	case 4:
		return fmt.Sprintf(`"CIRCLE(%v %v d=%v)"`, lng, lat, size*10_000)
	case 5:
		return fmt.Sprintf(`{"type":"MultiPoint","coordinates":[[%v,%v],[13.5,52.5]]}`, lng, lat)
	case 6:
		return fmt.Sprintf(`{"type":"Point","coordinates":[%v,%v]}`, lng, lat)
	}
	return fmt.Sprintf(`"POINT(%v %v)"`, lng, lat)
}

// body returns a document with a place, several or none.
func body(r *rand.Rand) string {
	lat, lng := spot(r)
	switch r.IntN(8) {
	case 0:
		return fmt.Sprintf(`{"Lat":%v}`, lat)
	case 1:
		return fmt.Sprintf(`{"At":[%s,%s],"Lat":%v,"Lng":%v}`, place(r), place(r), lat, lng)
	}
	return fmt.Sprintf(`{"At":%s,"Lat":%v,"Lng":%v}`, place(r), lat, lng)
}

// shape returns a shape in RQL.
func shape(r *rand.Rand) string {
	lat, lng := spot(r)
	switch r.IntN(10) {
	case 0, 5:
		return fmt.Sprintf("spatial.box(%v, %v, %v, %v)", max(-90, lat-2), lng, min(90, lat+2), min(180, lng+[]float64{0, 3, 20}[r.IntN(3)]))
	case 1:
		return fmt.Sprintf("spatial.point(%v, %v)", lat, lng)
	case 2:
		return "spatial.wkt('POLYGON((12 51, 15 51, 15 53, 13 54, 12 51))')"
	case 3:
		return "spatial.wkt('LINESTRING(13.5 52.5, 13 90, -170 0)')"
	}
	return fmt.Sprintf("spatial.circle(%v, %v, %v)", []float64{0, 20, 60, 3000, 15000}[r.IntN(5)], lat, lng)
}

// condition returns a condition on a field.
func condition(field string) func(r *rand.Rand) string {
	return func(r *rand.Rand) string {
		one := fmt.Sprintf("spatial.%s(%s, %s)", []string{"within", "within", "intersects", "intersects", "contains"}[r.IntN(5)], field, shape(r))
		switch r.IntN(6) {
		case 0:
			return fmt.Sprintf("%s and spatial.intersects(%s, %s)", one, field, shape(r))
		case 1:
			return one + " and Lat > 20"
		case 2:
			return fmt.Sprintf("%s and not spatial.disjoint(%s, %s)", one, field, shape(r))
		}
		return one
	}
}

// Ensure that an index of members is a kind of index, and finds what a scan finds.
func TestPlaces(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:      places.Name,
		Kind:      catalog.Kind{},
		Index:     jay.Index{Fields: []string{"At"}},
		Body:      body,
		Condition: condition("At"),
		Order:     "spatial.distance(At, spatial.point(52.5, 13.5))",
		Explained: "places",
		Invalid:   []jay.Index{{}, {Fields: []string{"-At"}}, {Fields: []string{"At as date"}}, {Fields: []string{"At", "Lat"}}, {Fields: []string{"Lat * 2"}}, {Fields: []string{"spatial.distance(At, spatial.point(1, 2))"}}, {Fields: []string{"spatial.point(1, 2)"}}},
	})
}

// Ensure the same of an index of two numbers.
func TestPlaces_Numbers(t *testing.T) {
	kindtest.Run(t, kindtest.Subject{
		Name:      places.Name,
		Kind:      catalog.Kind{},
		Index:     jay.Index{Fields: []string{"spatial.point(Lat, Lng)"}, Where: "exists(Lat)"},
		Body:      body,
		Condition: func(r *rand.Rand) string { return condition("spatial.point(Lat, Lng)")(r) + " and exists(Lat)" },
		Order:     "spatial.distance(spatial.point(Lat, Lng), spatial.point(-89, 179), 'miles')",
		Explained: "places",
	})
}
