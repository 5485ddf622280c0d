package places_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/places"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

var ctx = context.Background()

const onNumbers = "spatial.point(Lat, Lng)"

// shops returns a database with an index, and n documents anywhere, half of them in one city.
func shops(t testing.TB, n int) (db *jay.DB, spots [][2]float64) {
	t.Helper()
	db = jaytest.Memory(t, nil)
	r := rand.New(rand.NewPCG(37, 1))
	var b jay.Batch
	for i := range n {
		lat, lng := math.Asin(2*r.Float64()-1)*180/math.Pi, r.Float64()*360-180
		if i%2 == 0 {
			lat, lng = 52.5+r.NormFloat64()/20, 13.4+r.NormFloat64()/20
		}
		spots = append(spots, [2]float64{lat, lng})
		b.Put(fmt.Sprintf("shops/%06d", i), []byte(fmt.Sprintf(`{"Lat":%v,"Lng":%v,"N":%d}`, lat, lng, i)), jay.InCollection("Shops"))
	}
	_, err := db.Apply(ctx, &b)
	jaytest.Must(t, err)
	jaytest.Must(t, db.EnsureIndex(ctx, "Shops", jay.Index{Name: "At", Kind: "places", Fields: []string{onNumbers}}))
	return db, spots
}

// haversine returns how far two points are from each other, in kilometers, by the formula that is not that of the index.
func haversine(a, b [2]float64) float64 {
	const rad = math.Pi / 180
	h := math.Pow(math.Sin((b[0]-a[0])*rad/2), 2) + math.Cos(a[0]*rad)*math.Cos(b[0]*rad)*math.Pow(math.Sin((b[1]-a[1])*rad/2), 2)
	return 2 * 6371.0088 * math.Asin(min(1, math.Sqrt(h)))
}

// Ensure that the nearest of many come first, as the haversine formula has them, and that few keys are read for a few.
func TestPlaces_Nearest(t *testing.T) {
	const n = 20_000
	db, spots := shops(t, n)
	for _, from := range [][2]float64{{52.5, 13.4}, {52.6, 13.3}, {0, 180}, {-90, 0}, {35, -120}} {
		order := make([]int, n)
		for i := range order {
			order[i] = i
		}
		slices.SortFunc(order, func(a, b int) int {
			if haversine(spots[a], from) < haversine(spots[b], from) {
				return -1
			}
			return 1
		})
		q := db.Query("Shops").OrderBy(jay.Near(onNumbers, from[0], from[1])).Limit(10)
		var got []string
		for doc, err := range q.Iter(ctx) {
			jaytest.Must(t, err)
			got = append(got, doc.ID())
		}
		for i, id := range got {
			var at int
			_, err := fmt.Sscanf(id, "shops/%d", &at)
			jaytest.Must(t, err)
			if want := haversine(spots[order[i]], from); math.Abs(haversine(spots[at], from)-want) > 1e-6 {
				t.Errorf("from %v, answer %d: got %s at %v km, want %v km", from, i, id, haversine(spots[at], from), want)
			}
		}
		x, err := q.Explain(ctx)
		jaytest.Must(t, err)
		if plan := strings.Join(x.Plan, "; "); len(got) != 10 || !strings.Contains(plan, "the nearest first") || x.Keys > 1000 || x.Documents > 32 {
			t.Errorf("from %v: %d answers, %s: %d keys, %d documents", from, len(got), plan, x.Keys, x.Documents)
		}
	}
}

// Ensure that a circle reads what is in it and little more, and counts without a document.
func TestPlaces_Circle(t *testing.T) {
	db, spots := shops(t, 20_000)
	for _, km := range []float64{1, 5, 1000} {
		from := [2]float64{52.5, 13.4}
		want := 0
		for _, s := range spots {
			if haversine(s, from) <= km {
				want++
			}
		}
		q := db.Query("Shops").Where(jay.Within(onNumbers, jay.Circle(from[0], from[1], km))).NoScan()
		n, err := q.Count(ctx)
		jaytest.Must(t, err)
		x, err := q.Explain(ctx)
		jaytest.Must(t, err)
		if int(n) != want || x.Keys > int64(2*want)+200 {
			t.Errorf("%v km: got %d, want %d; %d keys, %s", km, n, want, x.Keys, strings.Join(x.Plan, "; "))
		}
	}
}

// Ensure that documents at one and the same place are found, and come by their IDs, and that more of them than the bound are refused.
func TestPlaces_Crowd(t *testing.T) {
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Shops", jay.Index{Name: "At", Kind: "places", Fields: []string{onNumbers}}))
	var b jay.Batch
	for i := range 300 {
		b.Put(fmt.Sprintf("shops/%03d", 299-i), []byte(`{"Lat":52.5,"Lng":13.4}`), jay.InCollection("Shops"))
	}
	_, err := db.Apply(ctx, &b)
	jaytest.Must(t, err)
	var got []string
	for doc, err := range db.Query("Shops").OrderBy(jay.Near(onNumbers, 52.5, 13.4)).NoScan().Limit(50).Iter(ctx) {
		jaytest.Must(t, err)
		got = append(got, doc.ID())
	}
	if len(got) != 50 || !slices.IsSorted(got) || got[0] != "shops/000" {
		t.Errorf("got %v", got)
	}

	defer places.SetMaxSeen(250)()
	_, err = db.Query("Shops").OrderBy(jay.Near(onNumbers, 52.5, 13.4)).NoScan().Limit(50).All(ctx)
	var limit *query.LimitError
	if !errors.As(err, &limit) || !errors.Is(err, jay.ErrQuery) || limit.Limit != 250 {
		t.Errorf("300 documents at one place, and a bound of 250: got %v", err)
	}
}

// Ensure that of documents with several places the nearest counts, also where a condition is on another one.
func TestPlaces_Several(t *testing.T) {
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Shops", jay.Index{Name: "At", Kind: "places", Fields: []string{"At"}}))
	var b jay.Batch
	for i := range 200 {
		b.Put(fmt.Sprintf("shops/9%03d", i), fmt.Appendf(nil, `{"At":"POINT(%v %v)"}`, 50+float64(i%20)/100, 50+float64(i/20)/100), jay.InCollection("Shops"))
	}
	for id, body := range map[string]string{
		"shops/1": `{"At":["POINT(0 0)","POINT(50.9 50.9)"]}`,
		"shops/2": `{"At":"POINT(49.2 49.2)"}`,
		"shops/3": `{"At":["POINT(50.1 50)","POINT(49.3 49.3)"]}`,
		"shops/4": `{"At":"POINT(1 0)"}`,
	} {
		b.Put(id, []byte(body), jay.InCollection("Shops"))
	}
	_, err := db.Apply(ctx, &b)
	jaytest.Must(t, err)
	var got []string
	for doc, err := range db.Query("Shops").Where(jay.Within("At", jay.Circle(50, 50, 200))).OrderBy(jay.Near("At", 0, 1)).NoScan().Limit(3).Iter(ctx) {
		jaytest.Must(t, err)
		got = append(got, doc.ID())
	}
	if want := []string{"shops/1", "shops/2", "shops/3"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Ensure that documents at one distance come by their IDs, also if one is found in a large cell and the other in a small one.
func TestPlaces_Ties(t *testing.T) {
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Shops", jay.Index{Name: "At", Kind: "places", Fields: []string{"At"}}))
	var b jay.Batch
	for i := range 100 {
		b.Put(fmt.Sprintf("shops/3%02d", i), fmt.Appendf(nil, `{"At":"POINT(%v %v)"}`, 13+float64(i%10)/1000, 52+float64(i/10+1)/1000), jay.InCollection("Shops"))
	}
	b.Put("shops/2", []byte(`{"At":"POLYGON((-20 20, 40 20, 40 70, -20 70, -20 20))"}`), jay.InCollection("Shops"))
	b.Put("shops/1", []byte(`{"At":"POINT(13 52)"}`), jay.InCollection("Shops"))
	_, err := db.Apply(ctx, &b)
	jaytest.Must(t, err)
	var got []string
	for doc, err := range db.Query("Shops").OrderBy(jay.Near("At", 52, 13)).NoScan().Limit(3).Iter(ctx) {
		jaytest.Must(t, err)
		got = append(got, doc.ID())
	}
	if want := []string{"shops/1", "shops/2", "shops/300"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Ensure that an older program refuses a database with an index of places, by the name of the feature.
func TestPlaces_Format(t *testing.T) {
	dir := t.TempDir() + "/db"
	db, err := jay.Open(dir, nil)
	jaytest.Must(t, err)
	jaytest.Must(t, db.EnsureIndex(ctx, "Shops", jay.Index{Name: "At", Kind: "places", Fields: []string{"At"}}))
	jaytest.Must(t, db.Close())
	older := storage.Features(storage.AllFeatures[:storage.FeaturePlaces.Format-storage.BaseFormat-1])
	_, err = jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
	var newer *jay.FormatError
	if !errors.As(err, &newer) || newer.Found != storage.FeaturePlaces.Format || !slices.Equal(newer.Features, []string{"places"}) {
		t.Errorf("got %v", err)
	}
}

// Ensure that the nearest come in order where places are dense around the point: over the edges of the cells around it, and with areas that have cells above it.
func TestPlaces_Dense(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	for round := range 6 {
		db := jaytest.Memory(t, nil)
		jaytest.Must(t, db.EnsureIndex(ctx, "Shops", jay.Index{Name: "Spots", Kind: "places", Fields: []string{"At"}}))
		lat, lng := r.Float64()*140-70, r.Float64()*340-170
		var b jay.Batch
		for i := range 400 {
			y, x := lat+r.NormFloat64()/100, lng+r.NormFloat64()/100
			at := fmt.Sprintf("POINT(%v %v)", x, y)
			if round%2 == 1 && i%20 == 0 {
				at = fmt.Sprintf("LINESTRING(%v %v, %v %v)", x, y, x+r.Float64()*3, y+r.Float64()*3)
			}
			b.Put(fmt.Sprintf("shops/%03d", i), json.RawMessage(fmt.Sprintf(`{"At":%q}`, at)), jay.InCollection("Shops"))
		}
		_, err := db.Apply(ctx, &b)
		jaytest.Must(t, err)
		jaytest.Must(t, db.Flush(ctx))
		for range 20 {
			near := db.Query("Shops").OrderBy(jay.Near("At", lat+r.NormFloat64()/100, lng+r.NormFloat64()/100)).Limit(60)
			var found, want []string
			for doc, err := range near.NoScan().Iter(ctx) {
				jaytest.Must(t, err)
				found = append(found, doc.ID())
			}
			for doc, err := range near.NoIndex().Iter(ctx) {
				jaytest.Must(t, err)
				want = append(want, doc.ID())
			}
			if len(want) != 60 || !slices.Equal(found, want) {
				t.Fatalf("round %d: found %q, want %q", round, found, want)
			}
		}
	}
}
