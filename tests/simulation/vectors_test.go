package simulation_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/vectors"
)

// lengths are the texts that are vectors, of one number each, in base64. The index "v" leaves out the other texts.
var lengths = map[string]float64{"AACAPw": 1, "AAAAwA": -2, "AAAAQQ": 8}

// Parts and partitions are small, so that a few documents are moved, split and joined in the background.
func init() { vectors.Quickly() }

// askVectors asks which documents have a vector near to a number, or in its direction, the nearest first or not, by an index of vectors or without one.
func askVectors(w *world) {
	collection := w.pick(collections)
	to := []float64{1, -2, 0.5, 7, -100}[w.intn(5)]
	far := func(d *doc) float64 { // those without a vector are the last
		if x, is := lengths[d.text]; is {
			return math.Abs(x - to)
		}
		return math.Inf(1)
	}
	text, most := fmt.Sprintf("from '%s'", collection), -1
	finds := func(*doc) bool { return true }
	switch w.intn(4) {
	case 0:
		text += fmt.Sprintf(" where vector.search(t, [%v], 0.5)", to)
		finds = func(d *doc) bool { x, is := lengths[d.text]; return is && x*to > 0 }
	case 1:
		text += " where a > 2"
		finds = func(d *doc) bool { return d.a > 2 }
	}
	if w.intn(3) > 0 {
		by := fmt.Sprintf("vector.distance(t, [%v], 'euclidean')", to)
		if w.intn(2) == 0 {
			by = "exact(" + by + ")"
		}
		most = 1 + w.intn(12)
		text += fmt.Sprintf(" order by %s select id() as id limit %d", by, most)
	} else {
		text += " select id() as id"
	}

	want := slices.DeleteFunc(w.model.documents(collection), func(key string) bool { return !finds(w.model.state[key]) })
	q, err := w.db.RQL(text, nil)
	w.must(err)
	var got []string
	for row, err := range q.Iter(ctx) {
		w.must(err)
		var one struct{ ID string }
		w.must(json.Unmarshal(row.JSON, &one))
		got = append(got, ids.Fold(one.ID))
	}
	all := len(want)
	if most < 0 {
		slices.Sort(got)
	} else {
		slices.SortFunc(want, func(x, y string) int {
			return cmp.Or(cmp.Compare(far(w.model.state[x]), far(w.model.state[y])), cmp.Compare(x, y))
		})
		want = want[:min(most, len(want))]
	}
	if !slices.Equal(got, want) {
		w.fail("%s gives %v, want %v", text, got, want)
	}
	fmt.Fprintf(w.log, "%s: %d. ", text, all)
}
