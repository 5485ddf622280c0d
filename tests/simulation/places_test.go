package simulation_test

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/jaydb/jay/ids"
)

// spot is where a document is in queries and in the index "p": a place of its two numbers, from the equator to 84 degrees north, all around the earth.
const spot = "spatial.point(a * 12, n % 361 - 180)"

// at returns the latitude and the longitude of a document, by the numbers of spot.
func (d *doc) at() (lat, lng float64, is bool) {
	return float64(12 * d.a), float64(d.n%361 - 180), d.a >= 0
}

// away is a distance in kilometers, by the haversine formula, which is not that of the index.
func away(lat1, lng1, lat2, lng2 float64) float64 {
	const rad = math.Pi / 180
	h := math.Pow(math.Sin((lat2-lat1)*rad/2), 2) + math.Cos(lat1*rad)*math.Cos(lat2*rad)*math.Pow(math.Sin((lng2-lng1)*rad/2), 2)
	return 2 * 6371.0088 * math.Asin(min(1, math.Sqrt(h)))
}

// centers are where questions are asked from: at the antimeridian, at the poles, and elsewhere. No document is as far from one as a radius is.
var (
	centers = [][2]float64{{0.5, 179.75}, {50.25, 13.5}, {-89.5, 20}, {90, 0}, {83.5, -179.5}}
	radii   = []float64{150.3, 2000.7, 9000.1, 19000.9}
)

// askPlaces asks which documents are near a point or in a box, the nearest first or not, by an index of places or without one.
func askPlaces(w *world) {
	collection := w.pick(collections)
	c, radius := centers[w.intn(len(centers))], radii[w.intn(len(radii))]
	circle := fmt.Sprintf("spatial.circle(%v, %v, %v)", radius, c[0], c[1])
	var where string
	var lies func(lat, lng float64) bool
	near := func(lat, lng float64) bool { return away(lat, lng, c[0], c[1]) <= radius }
	switch w.intn(5) {
	case 0:
		where, lies = "spatial.disjoint("+spot+", "+circle+")", func(lat, lng float64) bool { return !near(lat, lng) }
	case 1:
		where = "spatial.intersects(" + spot + ", spatial.box(11.5, 169.5, 61, -100.5))"
		lies = func(lat, lng float64) bool { return lat > 11.5 && lat < 61 && (lng > 169.5 || lng < -100.5) }
	case 2:
		where, lies = "spatial.within("+spot+", "+circle+") and a > 2", func(lat, lng float64) bool { return near(lat, lng) && lat > 24 }
	default:
		where, lies = "spatial.within("+spot+", "+circle+")", near
	}
	most := -1
	text := fmt.Sprintf("from '%s' where %s", collection, where)
	if w.intn(2) == 0 {
		most = 1 + w.intn(10)
		text += fmt.Sprintf(" order by spatial.distance(%s, spatial.point(%v, %v)), id() select id() as id limit %d", spot, c[0], c[1], most)
	} else {
		text += " select id() as id"
	}

	distances := make(map[string]float64)
	var want []string
	for _, key := range w.model.documents(collection) {
		if lat, lng, is := w.model.state[key].at(); is && lies(lat, lng) {
			want, distances[key] = append(want, key), away(lat, lng, c[0], c[1])
		}
	}
	q, err := w.db.RQL(text, nil)
	w.must(err)
	var got []string
	for row, err := range q.Iter(ctx) {
		w.must(err)
		var one struct{ ID string }
		w.must(json.Unmarshal(row.JSON, &one))
		got = append(got, ids.Fold(one.ID))
	}
	if most < 0 {
		slices.Sort(got)
		if !slices.Equal(got, want) {
			w.fail("%s gives %v, want %v", text, got, want)
		}
	} else {
		var far []float64
		for _, key := range want {
			far = append(far, distances[key])
		}
		slices.Sort(far)
		if len(got) != min(most, len(want)) {
			w.fail("%s gives %d answers, want %d", text, len(got), min(most, len(want)))
		}
		for i, key := range got { // of two as far as each other the order is not known: the formulas differ in the last digits
			if d, is := distances[key]; !is || math.Abs(d-far[i]) > 1e-6 || slices.Contains(got[:i], key) {
				w.fail("%s gives %v, of which answer %d is at %v, want %v", text, got, i, d, far[i])
			}
		}
	}
	fmt.Fprintf(w.log, "%s: %d. ", text, len(want))
}
