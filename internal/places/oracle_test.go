package places_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// An oracle that is not S2: vectors, and the sines and cosines of their angles. It answers what lies far enough from a border, and says so of the rest.

type vector [3]float64

func toVector(lat, lng float64) vector {
	lat, lng = lat*math.Pi/180, lng*math.Pi/180
	return vector{math.Cos(lat) * math.Cos(lng), math.Cos(lat) * math.Sin(lng), math.Sin(lat)}
}

func dot(a, b vector) float64 { return a[0]*b[0] + a[1]*b[1] + a[2]*b[2] }

func cross(a, b vector) vector {
	return vector{a[1]*b[2] - a[2]*b[1], a[2]*b[0] - a[0]*b[2], a[0]*b[1] - a[1]*b[0]}
}

func length(a vector) float64 { return math.Sqrt(dot(a, a)) }

// angle is the distance of two points in radians.
func angle(a, b vector) float64 { return math.Atan2(length(cross(a, b)), dot(a, b)) }

// toSide is the distance of a point from a side, in radians.
func toSide(p, a, b vector) float64 {
	n := cross(a, b)
	if l := length(n); l > 1e-12 && dot(cross(n, a), p) > 0 && dot(cross(b, n), p) > 0 {
		return math.Abs(math.Asin(max(-1, min(1, dot(n, p)/l))))
	}
	return min(angle(p, a), angle(p, b))
}

// figure is a place of the oracle: a point, a line, or an area of at most a third of the earth around its middle.
type figure struct {
	vertices []vector
	area     bool
	middle   vector
}

func (f *figure) sides() (all [][2]vector) {
	for i := 1; i < len(f.vertices); i++ {
		all = append(all, [2]vector{f.vertices[i-1], f.vertices[i]})
	}
	if f.area {
		all = append(all, [2]vector{f.vertices[len(f.vertices)-1], f.vertices[0]})
	}
	return all
}

// has reports whether an area has a point: seen from it, the ring goes around once.
func (f *figure) has(p vector) bool {
	if !f.area || dot(p, f.middle) < 0 {
		return false
	}
	sum := 0.0
	for _, s := range f.sides() {
		a, b := cross(p, s[0]), cross(p, s[1])
		sum += math.Atan2(dot(p, cross(a, b)), dot(a, b))
	}
	return math.Abs(sum) > math.Pi
}

// margin is how near to a border, in radians, the oracle does not answer: 6 mm, which is more than points may lie beside a line.
const margin = 1e-9

// distance is how far a point is from the figure, in radians.
func (f *figure) distance(p vector) float64 {
	if f.has(p) {
		return 0
	}
	least := angle(p, f.vertices[0])
	for _, s := range f.sides() {
		least = min(least, toSide(p, s[0], s[1]))
	}
	return least
}

// border is how far a point is from the sides.
func (f *figure) border(p vector) float64 {
	least := math.Inf(1)
	for _, s := range f.sides() {
		least = min(least, toSide(p, s[0], s[1]))
	}
	return least
}

// meets reports whether figures have a point together, and within whether f has all of o. Sure is false too near to a border.
func (f *figure) meets(o *figure) (meets, within, sure bool) {
	sure, within = true, f.area
	for _, v := range o.vertices {
		if f.area && f.border(v) < margin {
			sure = false
		}
		if f.has(v) {
			meets = true
		} else {
			within = false
		}
	}
	for _, v := range f.vertices {
		if len(o.vertices) > 1 && o.border(v) < margin {
			sure = false
		}
		meets = meets || o.has(v)
	}
	for _, s := range f.sides() {
		for _, t := range o.sides() {
			n, m := cross(s[0], s[1]), cross(t[0], t[1])
			a, b, c, d := dot(n, t[0]), dot(n, t[1]), dot(m, s[0]), dot(m, s[1])
			if min(math.Abs(a), math.Abs(b), math.Abs(c), math.Abs(d)) < 1e-13 {
				sure = false
			}
			// The ends of each are on two sides of the other, and not on the other side of the earth.
			if a*b < 0 && c*d < 0 && a*d > 0 {
				meets, within = true, false
			}
		}
	}
	return meets, within, sure
}

// drawn is a figure with its texts.
type drawn struct {
	figure
	wkt    string
	circle bool
	radius float64 // in radians
}

// figureOf draws a figure around a point: near towns, at the antimeridian, at the poles, and anywhere.
func figureOf(r *rand.Rand, kinds string) drawn {
	lat, lng := 50+4*r.Float64(), 12+4*r.Float64()
	switch r.IntN(6) {
	case 0:
		lat, lng = r.Float64()*178-89, r.Float64()*360-180
	case 1:
		lat, lng = []float64{89.9, -89.8, 90, -90}[r.IntN(4)], r.Float64()*360-180
	case 2:
		lat, lng = r.Float64()*20-10, []float64{179.9, -179.9, 180, -180}[r.IntN(4)]
	}
	middle, λ := toVector(lat, lng), lng*math.Pi/180
	east := vector{-math.Sin(λ), math.Cos(λ), 0}
	north := cross(middle, east)
	at := func(away, turn float64) (float64, float64) { // from the middle, in radians
		var v vector
		for i := range v {
			v[i] = middle[i]*math.Cos(away) + (north[i]*math.Cos(turn)+east[i]*math.Sin(turn))*math.Sin(away)
		}
		return math.Atan2(v[2], math.Hypot(v[0], v[1])) * 180 / math.Pi, math.Atan2(v[1], v[0]) * 180 / math.Pi
	}
	size := []float64{0.001, 0.02, 0.3}[r.IntN(3)]
	d := drawn{figure: figure{middle: middle}}
	list := func(n int, away func(i int) (float64, float64)) string {
		var texts []string
		for i := range n {
			la, lo := at(away(i))
			texts = append(texts, fmt.Sprintf("%v %v", lo, la))
			d.vertices = append(d.vertices, toVector(la, lo))
		}
		return strings.Join(texts, ", ")
	}
	switch kinds[r.IntN(len(kinds))] {
	case 'p':
		d.vertices, d.wkt = []vector{d.middle}, fmt.Sprintf("POINT(%v %v)", lng, lat)
	case 'l':
		d.wkt = "LINESTRING(" + list(2+r.IntN(3), func(int) (float64, float64) { return size * (0.1 + r.Float64()), r.Float64() * 2 * math.Pi }) + ")"
	case 'c':
		d.vertices, d.circle, d.radius = []vector{d.middle}, true, size*(0.5+r.Float64())
		d.wkt = fmt.Sprintf("CIRCLE(%v %v d=%v)", lng, lat, d.radius*6_371_008.8)
	default:
		n, way := 3+r.IntN(6), float64(1-2*r.IntN(2)) // which way the ring goes does not matter
		ring := list(n, func(i int) (float64, float64) {
			return size * (0.4 + r.Float64()), way * (float64(i) + r.Float64()*0.3) * 2 * math.Pi / float64(n)
		})
		d.area = true
		d.wkt = "POLYGON((" + ring + ", " + ring[:strings.Index(ring, ",")] + "))"
	}
	return d
}

// answers is what the oracle says of a condition: true, false, or that it does not know.
func answers(relation string, place, shape *drawn) (holds, sure bool) {
	if shape.circle {
		far, near := 0.0, place.distance(shape.middle)
		for _, v := range place.vertices {
			far = max(far, angle(shape.middle, v))
		}
		switch relation {
		case "within": // a side may bulge out of a circle between two vertices in it, if that is large
			return far < shape.radius, math.Abs(far-shape.radius) > margin && (len(place.vertices) == 1 || far > shape.radius || far < 0.9*shape.radius && shape.radius < 0.5)
		case "contains":
			inner := place.border(shape.middle)
			return place.has(shape.middle) && inner > shape.radius, !place.area || math.Abs(inner-shape.radius) > margin
		}
		return (near <= shape.radius) == (relation == "intersects"), math.Abs(near-shape.radius) > margin
	}
	if len(place.vertices) == 1 && !shape.area || len(shape.vertices) == 1 && !place.area { // a point and a line, or a point
		near := min(place.distance(shape.vertices[0]), shape.distance(place.vertices[0]))
		return false != (relation == "disjoint"), near > margin
	}
	meets, within, sure := shape.meets(&place.figure)
	switch relation {
	case "within":
		return within, sure
	case "contains":
		_, has, sure := place.meets(&shape.figure)
		return has, sure
	}
	return meets == (relation == "intersects"), sure
}

// Ensure that what an index of places finds is what an oracle finds that is not S2, after each part of random histories with crashes, with changes and
// deletions. JAY_PLACES says how many histories there are.
func TestPlaces_Oracle(t *testing.T) {
	t.Parallel()
	histories := 12
	if text := os.Getenv("JAY_PLACES"); text != "" {
		var err error
		histories, err = strconv.Atoi(text)
		jaytest.Must(t, err)
	}
	seed := uint64(37)
	if text := os.Getenv("JAY_SEED"); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		jaytest.Must(t, err)
		seed = n
	}
	asked, found, unsure := 0, 0, 0
	for n := range histories {
		h := &history{t: t, name: fmt.Sprintf("history %d of JAY_SEED=%d", n, seed), r: rand.New(rand.NewPCG(seed, uint64(n))), disk: storagetest.NewDisk(), documents: make(map[string]*drawn)}
		h.run()
		asked, found, unsure = asked+h.asked, found+h.found, unsure+h.unsure
	}
	t.Logf("%d histories, %d places judged, %d of them found, %d not judged", histories, asked, found, unsure)
	if found < asked/100 || unsure > asked/20 {
		t.Errorf("%d of %d places are found, and %d are not judged", found, asked, unsure)
	}
}

// history is a database and what it must have.
type history struct {
	t         *testing.T
	name      string
	r         *rand.Rand
	disk      *storagetest.Disk
	db        *jay.DB
	documents map[string]*drawn

	asked, found, unsure int
}

func (h *history) open() {
	h.t.Helper()
	var err error
	h.db, err = jay.Open("db", &jay.Options{FS: h.disk, MemTableBytes: 256 << 10, CacheBytes: 1 << 20})
	jaytest.Must(h.t, err)
	jaytest.Must(h.t, h.db.EnsureIndex(ctx, "Shops", jay.Index{Name: "At", Kind: "places", Fields: []string{"At"}}))
}

func (h *history) run() {
	h.t.Helper()
	h.open()
	for range 3 {
		for range 8 {
			h.change()
		}
		if h.r.IntN(2) == 0 { // the power fails
			crashed := h.disk.Crash(h.r.IntN(101), rand.New(rand.NewPCG(h.r.Uint64(), 1)))
			jaytest.Must(h.t, h.db.Close())
			h.disk = crashed
			h.open()
		}
		for range 4 {
			h.ask()
		}
		h.nearest()
	}
	v, err := h.db.Verify(ctx, nil)
	jaytest.Must(h.t, err)
	if v.Found > 0 {
		h.t.Errorf("%s: %v", h.name, v.Damages)
	}
	jaytest.Must(h.t, h.db.Close())
}

// change writes or deletes documents in one commit.
func (h *history) change() {
	h.t.Helper()
	var b jay.Batch
	seen := make(map[string]bool)
	for range 1 + h.r.IntN(4) {
		id := fmt.Sprintf("shops/%02d", h.r.IntN(40))
		if seen[id] {
			continue
		}
		seen[id] = true
		if h.r.IntN(5) == 0 && h.documents[id] != nil {
			b.Delete(id)
			delete(h.documents, id)
			continue
		}
		d := figureOf(h.r, "pppplaa")
		h.documents[id] = &d
		b.Put(id, fmt.Appendf(nil, `{"At":%q}`, d.wkt), jay.InCollection("Shops"))
	}
	_, err := h.db.Apply(ctx, &b)
	jaytest.Must(h.t, err)
}

// ask compares the answers of a condition with those of the oracle.
func (h *history) ask() {
	h.t.Helper()
	relation, shape := []string{"within", "intersects", "contains", "disjoint"}[h.r.IntN(4)], figureOf(h.r, "ccaalp")
	rql := fmt.Sprintf("from Shops where spatial.%s(At, spatial.wkt('%s', 'meters')) select id() as id", relation, shape.wkt)
	got := make(map[string]bool)
	for _, row := range jaytest.Rows(h.t, h.db, rql) {
		got[strings.TrimSuffix(strings.TrimPrefix(row, `{"id":"`), `"}`)] = true
	}
	for id, d := range h.documents {
		want, sure := answers(relation, d, &shape)
		h.asked++
		switch {
		case !sure:
			h.unsure++
		case want != got[id]:
			h.t.Errorf("%s: %s: %s of %s is %v, want %v", h.name, rql, id, d.wkt, got[id], want)
		case want:
			h.found++
		}
		delete(got, id)
	}
	if len(got) > 0 {
		h.t.Errorf("%s: %s also finds %v", h.name, rql, got)
	}
}

// nearest compares the first answers of an order with the distances of the oracle.
func (h *history) nearest() {
	h.t.Helper()
	from := figureOf(h.r, "p")
	lng, lat, _ := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(from.wkt, "POINT("), ")"), " ")
	rql := fmt.Sprintf("from Shops order by spatial.distance(At, spatial.point(%s, %s)) select id() as id limit 7", lat, lng)
	var all []float64
	for _, d := range h.documents {
		all = append(all, d.distance(from.middle))
	}
	slices.Sort(all)
	rows := jaytest.Rows(h.t, h.db, rql)
	if len(rows) != min(7, len(all)) {
		h.t.Errorf("%s: %s has %d answers of %d documents", h.name, rql, len(rows), len(all))
	}
	for i, row := range rows {
		id := strings.TrimSuffix(strings.TrimPrefix(row, `{"id":"`), `"}`)
		if d := h.documents[id]; d == nil || math.Abs(d.distance(from.middle)-all[i]) > margin {
			h.t.Errorf("%s: %s: answer %d is %s, and is not as far as %v", h.name, rql, i, row, all[i])
		}
	}
}
