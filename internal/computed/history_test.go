package computed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// tagged is an index whose documents are in several groups, or in that of those without a tag.
func tagged() jay.Computed {
	return jay.Computed{
		Name: "Tagged",
		Maps: []index.Map{
			{Collection: "Notes", Where: "not Hidden = true", Select: []index.Member{{Name: "Tag", Expression: "Tags"}, {Name: "N"}}},
			{Collection: "Orders", Each: "Lines", As: "line", Select: []index.Member{{Name: "Tag", Expression: "line.Tag"}, {Name: "N", Expression: "line.N * 2"}}},
		},
		Reduce: &index.Reduce{GroupBy: []string{"Tag"}, Select: []index.Member{{Name: "Tag"}, {Name: "Count", Expression: "count()"}, {Name: "Sum", Expression: "sum(N)"}, {Name: "Mean", Expression: "avg(N)"}}},
	}
}

// model computes the count and the sum of each tag from bodies, in quarters, without the query language.
func model(bodies map[string]string) map[string][2]int {
	out := make(map[string][2]int)
	add := func(tag any, quarters int) {
		key := "null"
		if s, ok := tag.(string); ok {
			key = s
		}
		was := out[key]
		out[key] = [2]int{was[0] + 1, was[1] + quarters}
	}
	for _, body := range bodies {
		var doc struct {
			Tags   []string
			N      float64
			Hidden bool
			Lines  []struct {
				Tag any
				N   float64
			}
		}
		if err := json.Unmarshal([]byte(body), &doc); err != nil {
			panic(err)
		}
		if strings.Contains(body, "Lines") {
			for _, line := range doc.Lines {
				add(line.Tag, int(line.N*8))
			}
			continue
		}
		if doc.Hidden {
			continue
		}
		tags := slices.Compact(slices.Sorted(slices.Values(doc.Tags)))
		for _, tag := range tags {
			add(tag, int(doc.N*4))
		}
		if len(tags) == 0 {
			add(nil, int(doc.N*4))
		}
	}
	return out
}

// history is a database of a random history, and the bodies that it must have.
type history struct {
	t      *testing.T
	db     *jay.DB
	clock  *jaytest.Clock
	bodies map[string]string
}

// begin opens the database of a history, with a computed index.
func begin(t *testing.T, c jay.Computed) *history {
	t.Helper()
	h := &history{t: t, clock: jaytest.NewClock(), bodies: make(map[string]string)}
	h.db = jaytest.Memory(t, &jay.Options{ExactExpiry: true, Now: h.clock.Now})
	jaytest.Must(t, jay.ComputedOf(h.db).Ensure(t.Context(), c))
	return h
}

// remove deletes a document, if it is there.
func (h *history) remove(id string) {
	h.t.Helper()
	if err := h.db.Delete(h.t.Context(), id); err != nil && !errors.Is(err, jay.ErrNotFound) {
		h.t.Fatal(err)
	}
	delete(h.bodies, id)
}

// expire writes a document, and goes on to when it has expired.
func (h *history) expire(id, body string, in jay.WriteOption) {
	h.t.Helper()
	_, err := h.db.Put(h.t.Context(), id, json.RawMessage(body), in, jay.ExpiresAt(h.clock.Now().Add(time.Minute)))
	jaytest.Must(h.t, err)
	h.clock.Advance(2 * time.Minute)
	delete(h.bodies, id)
}

// transact writes a document in a transaction, and calls check in it.
func (h *history) transact(id, body string, in jay.WriteOption, check func(tx *jay.Tx)) {
	h.t.Helper()
	err := jay.ErrConflict
	for errors.Is(err, jay.ErrConflict) { // with the worker that deletes what has expired
		err = h.db.Update(h.t.Context(), func(tx *jay.Tx) error {
			if _, err := tx.Put(h.t.Context(), id, json.RawMessage(body), in); err != nil {
				return err
			}
			h.bodies[id] = body
			check(tx)
			return nil
		})
	}
	jaytest.Must(h.t, err)
}

// put writes a document.
func (h *history) put(id, body string, in jay.WriteOption) {
	h.t.Helper()
	_, err := h.db.Put(h.t.Context(), id, json.RawMessage(body), in)
	jaytest.Must(h.t, err)
	h.bodies[id] = body
}

// Ensure that after random histories of writes, transactions, expiry and replacements the answers are those that are computed from all
// bodies, kept and scanned, with every kind of condition, in transactions and outside.
func TestComputed_History(t *testing.T) {
	ctx := t.Context()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 163))
	h := begin(t, tagged())
	body := func(id string) string {
		if strings.HasPrefix(id, "orders") {
			var lines []string
			for range r.IntN(4) {
				tag := fmt.Sprintf(`"t%d"`, r.IntN(4))
				if r.IntN(4) == 0 {
					tag = "null"
				}
				lines = append(lines, fmt.Sprintf(`{"Tag":%s,"N":%d.25}`, tag, r.IntN(9)-4))
			}
			return `{"Lines":[` + strings.Join(lines, ",") + `]}`
		}
		tags := ""
		if n := r.IntN(3); n > 0 {
			var some []string
			for range n {
				some = append(some, fmt.Sprintf(`"t%d"`, r.IntN(4)))
			}
			tags = `"Tags":[` + strings.Join(some, ",") + `],`
		}
		return fmt.Sprintf(`{%s"N":%d.5,"Hidden":%v}`, tags, r.IntN(9)-4, r.IntN(4) == 0)
	}
	steps := 150
	if testing.Short() {
		steps = 60
	}
	for step := range steps {
		id := fmt.Sprint([]string{"notes/", "orders/"}[r.IntN(2)], r.IntN(8))
		in := jay.InCollection(map[byte]string{'n': "Notes", 'o': "Orders"}[id[0]])
		text := body(id)
		switch r.IntN(6) {
		case 0:
			h.remove(id)
		case 1:
			h.expire(id, text, in)
		case 2:
			h.transact(id, text, in, func(tx *jay.Tx) { compare(t, tx, h.bodies) })
		case 3:
			c := tagged()
			if r.IntN(2) == 0 {
				c.Reduce.Select = append(c.Reduce.Select, index.Member{Name: "Twice", Expression: "sum(N * 2)"})
			}
			jaytest.Must(t, jay.ComputedOf(h.db).Ensure(ctx, c, jay.ReplaceIndex()))
		default:
			h.put(id, text, in)
		}
		compare(t, h.db, h.bodies)
		if t.Failed() {
			t.Fatalf("after step %d", step)
		}
	}
	jaytest.Verify(t, h.db)
}

// compare compares the answers of several queries with the model.
func compare(t testing.TB, from interface {
	RQL(string, map[string]any) (jay.Query[jay.Row], error)
}, bodies map[string]string) {
	t.Helper()
	type result struct {
		Tag   *string
		Count int
		Sum   float64
	}
	all := model(bodies)
	for where, wanted := range map[string]func(tag string, sum float64) bool{
		"":                                 func(string, float64) bool { return true },
		"where Tag = 't1'":                 func(tag string, _ float64) bool { return tag == "t1" },
		"where Tag = null":                 func(tag string, _ float64) bool { return tag == "null" },
		"where Tag in ('t0', 't2')":        func(tag string, _ float64) bool { return tag == "t0" || tag == "t2" },
		"where Tag > 't1' and Sum >= 0":    func(tag string, sum float64) bool { return tag > "t1" && sum >= 0 },
		"where not Tag = 't1' and Sum < 0": func(tag string, sum float64) bool { return tag != "t1" && sum < 0 },
	} {
		for _, how := range []string{"", "use no index "} {
			q, err := from.RQL("from index 'tagged' "+how+where, nil)
			jaytest.Must(t, err)
			rows, err := q.All(t.Context())
			jaytest.Must(t, err)
			got := make(map[string][2]int)
			for _, row := range rows {
				var one result
				jaytest.Must(t, json.Unmarshal(row.JSON, &one))
				key := "null"
				if one.Tag != nil {
					key = *one.Tag
				}
				got[key] = [2]int{one.Count, int(one.Sum * 4)}
			}
			want := make(map[string][2]int)
			for tag, n := range all {
				if wanted(tag, float64(n[1])) && (!strings.Contains(where, "> 't1'") || tag != "null") {
					want[tag] = n
				}
			}
			if fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s%s: got %v, want %v", how, where, got, want)
			}
		}
	}
}

// Ensure that a program which does not know computed indexes refuses a database as soon as it has one, and no earlier.
func TestComputed_FormatRises(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	older := storage.Features(storage.AllFeatures[:7])
	for _, declared := range []bool{false, true} {
		db := jaytest.Open(t, dir, nil)
		if declared {
			jaytest.Must(t, jay.ComputedOf(db).Ensure(t.Context(), jay.Computed{Name: "i", Maps: []index.Map{{Collection: "A", Select: []index.Member{{Name: "A"}}}}}))
		}
		jaytest.Close(t, db)
		again, err := jay.Open(dir, &jay.Options{Engine: lsm.Driver{Options: lsm.Options{Features: older}}})
		if newer := (*jay.FormatError)(nil); declared != errors.As(err, &newer) {
			t.Errorf("declared %v: got %v", declared, err)
		}
		if err == nil {
			jaytest.Close(t, again)
		}
	}
}
