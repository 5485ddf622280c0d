package vectors_test

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
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/internal/vectors"
	"github.com/jaydb/jay/query"
)

var ctx = context.Background()

// indexed returns a database in memory with an index of vectors, whose parts the test settles.
func indexed(t *testing.T, options map[string]string) *jay.DB {
	t.Helper()
	t.Cleanup(checks.NoSettler())
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Alike", Kind: "vectors", Fields: []string{"At"}, Options: options}))
	return db
}

// cloud returns vectors around some centers, or, without any, in all directions.
func cloud(seed uint64, n, dimensions, centers int, spread float64) [][]float32 {
	r := rand.New(rand.NewPCG(seed, 0))
	middle := make([][]float64, centers)
	for c := range middle {
		middle[c] = make([]float64, dimensions)
		for i := range middle[c] {
			middle[c][i] = r.NormFloat64()
		}
	}
	all := make([][]float32, n)
	for i := range all {
		all[i] = make([]float32, dimensions)
		around := r.IntN(max(1, centers))
		for d := range all[i] {
			if all[i][d] = float32(r.NormFloat64()); centers > 0 {
				all[i][d] = float32(middle[around][d] + spread*r.NormFloat64())
			}
		}
	}
	return all
}

// settle settles all, such that queries see it.
func settle(t *testing.T, db *jay.DB) {
	t.Helper()
	jaytest.Must(t, checks.Settle(db))
	jaytest.Must(t, db.Flush(ctx))
}

func store(t *testing.T, db *jay.DB, all [][]float32) {
	t.Helper()
	for from := 0; from < len(all); from += 500 {
		var b jay.Batch
		for i := from; i < min(len(all), from+500); i++ {
			body, err := json.Marshal(map[string]any{"At": query.Numbers(all[i]), "N": i})
			jaytest.Must(t, err)
			b.Put(fmt.Sprintf("notes/%05d", i), body, jay.InCollection("Notes"))
		}
		_, err := db.Apply(ctx, &b)
		jaytest.Must(t, err)
	}
}

// ids returns the IDs that a query finds, and what Explain says of it.
func ids(t *testing.T, q jay.Query[jay.Document]) (found []string, plan string) {
	t.Helper()
	for doc, err := range q.Iter(ctx) {
		jaytest.Must(t, err)
		found = append(found, doc.ID())
	}
	x, err := q.Explain(ctx)
	jaytest.Must(t, err)
	return found, strings.Join(x.Plan, "; ")
}

// shared returns how many of some IDs are among others.
func shared(some, others []string) (n int) {
	for _, id := range some {
		if slices.Contains(others, id) {
			n++
		}
	}
	return n
}

// Ensure that the ten nearest of 3,000 vectors are found: nearly all of them by the index where vectors lie in groups, most where they lie anywhere, and all
// with exact(); at the right distances, beside a condition as many as there are, and none that has changed or is gone.
func TestVectors_Recall(t *testing.T) {
	sample.OneGoroutine(t)
	const n, dimensions = 3000, 24
	for _, c := range []struct {
		name    string
		centers int
		least   float64 // of recall
	}{{"groups", 30, 0.97}, {"anywhere", 0, 0.6}} {
		t.Run(c.name, func(t *testing.T) {
			defer vectors.SetPartitions(32, 8)()
			defer vectors.SetCandidates(600)()
			db := indexed(t, map[string]string{"dimensions": fmt.Sprint(dimensions)})
			all := cloud(1, n, dimensions, c.centers, 0.4)
			store(t, db, all)
			settle(t, db)
			for i := 0; i < n; i += 7 { // one of seven is where another one was
				all[i] = all[(i+1501)%n]
			}
			store(t, db, all)
			for i := 0; i < n; i += 11 {
				jaytest.Must(t, db.Delete(ctx, fmt.Sprintf("notes/%05d", i)))
			}
			settle(t, db)
			jaytest.Verify(t, db)

			found, wanted := 0, 0
			for _, to := range cloud(2, 15, dimensions, c.centers, 0.4) {
				if c.centers > 0 {
					to = all[rand.New(rand.NewPCG(uint64(wanted), 0)).IntN(n)]
				}
				by := jay.Nearest("At", to)
				want, plan := ids(t, db.Query("Notes").OrderBy(by).Limit(10).NoIndex())
				if strings.Contains(plan, "Alike") {
					t.Fatalf("the scan is %s", plan)
				}
				exact, plan := ids(t, db.Query("Notes").OrderBy("exact("+by+")").Limit(10).NoScan())
				if !slices.Equal(exact, want) || !strings.Contains(plan, "no neighbour is missed") {
					t.Errorf("exact: got %q, want %q, by %s", exact, want, plan)
				}
				got, plan := ids(t, db.Query("Notes").OrderBy(by).Limit(10).NoScan())
				if len(got) != 10 || !strings.Contains(plan, "neighbours in the others may be missed") {
					t.Errorf("got %q by %s", got, plan)
				}
				found, wanted = found+shared(got, want), wanted+10
				few, _ := ids(t, db.Query("Notes").Where(jay.Eq("N", 17)).OrderBy(by).Limit(10))
				if !slices.Equal(few, []string{"notes/00017"}) {
					t.Errorf("beside a condition: got %q", few)
				}
			}
			if recall := float64(found) / float64(wanted); recall < c.least {
				t.Errorf("%.3f of the nearest were found", recall)
			} else {
				t.Logf("recall %.3f", recall)
			}
		})
	}
}

// Ensure that what the index finds is as far away as it says, and satisfies the condition: with all of those that do, if they are few.
func TestVectors_Conditions(t *testing.T) {
	const n, dimensions = 3000, 16
	defer vectors.SetPartitions(32, 8)()
	defer vectors.SetCandidates(200)()
	db := indexed(t, map[string]string{"dimensions": fmt.Sprint(dimensions), "metric": "euclidean"})
	all := cloud(3, n, dimensions, 0, 0)
	store(t, db, all)
	settle(t, db)
	to := cloud(4, 1, dimensions, 0, 0)[0]
	for _, c := range []struct {
		where jay.Condition
		is    func(i int) bool
	}{{jay.Ge("N", 2990), func(i int) bool { return i >= 2990 }}, {jay.Lt("N", 3), func(i int) bool { return i < 3 }}, {jay.Lt("N", 100), func(i int) bool { return i < 100 }}} {
		got, _ := ids(t, db.Query("Notes").Where(c.where).OrderBy(jay.Distance("At", to, "euclidean")).Limit(10).NoScan())
		want, _ := ids(t, db.Query("Notes").Where(c.where).OrderBy(jay.Distance("At", to, "euclidean")).Limit(10).NoIndex())
		if len(got) != len(want) {
			t.Errorf("got %q, want as many as %q", got, want)
		}
		last := 0.0
		for _, id := range got {
			i := 0
			fmt.Sscanf(id, "notes/%d", &i)
			sum := 0.0
			for d := range to {
				sum += math.Pow(float64(to[d])-float64(all[i][d]), 2)
			}
			if !c.is(i) || math.Sqrt(sum) < last {
				t.Errorf("%s at %v, after one at %v", id, math.Sqrt(sum), last)
			}
			last = math.Sqrt(sum)
		}
	}
	page, err := db.Query("Notes").OrderBy(jay.Distance("At", to, "euclidean")).Limit(5).Page(ctx)
	jaytest.Must(t, err)
	first, _ := ids(t, db.Query("Notes").OrderBy(jay.Distance("At", to, "euclidean")).Limit(5))
	for i, doc := range page.Items {
		if doc.ID() != first[i] {
			t.Errorf("a page begins with %q, and not %q", doc.ID(), first[i])
		}
	}
	page, err = db.Query("Notes").OrderBy(jay.Distance("At", to, "euclidean")).Limit(5).After(page.Next).Page(ctx)
	jaytest.Must(t, err)
	if len(page.Items) != 5 || slices.Contains(first, page.Items[0].ID()) {
		t.Errorf("the second page has %d documents", len(page.Items))
	}
}

// Ensure that a transaction finds what it has written, and not what it has removed.
func TestVectors_Transaction(t *testing.T) {
	db := indexed(t, map[string]string{"dimensions": "8"})
	all := cloud(5, 3000, 8, 0, 0)
	store(t, db, all)
	settle(t, db)
	jaytest.Must(t, db.Update(ctx, func(tx *jay.Tx) error {
		jaytest.Must(t, tx.Delete(ctx, "notes/00007"))
		body, _ := json.Marshal(map[string]any{"At": all[7]})
		if _, err := tx.Put(ctx, "own/1", body, jay.InCollection("Notes")); err != nil {
			return err
		}
		q := tx.Query("Notes").OrderBy(jay.Nearest("At", all[7])).Limit(3)
		var found []string
		for doc, err := range q.Iter(ctx) {
			jaytest.Must(t, err)
			found = append(found, doc.ID())
		}
		if len(found) != 3 || found[0] != "own/1" || slices.Contains(found, "notes/00007") {
			t.Errorf("got %q", found)
		}
		return nil
	}))
}

// Ensure that a strict index refuses what is no vector of its dimensions, names what it refuses, and is not built over it; and that a lenient one leaves it out.
func TestVectors_Strict(t *testing.T) {
	db := indexed(t, map[string]string{"dimensions": "3"})
	for _, c := range []struct{ value, rule, found string }{
		{`[1,2]`, "a vector of this index has 3 numbers", "there are 2"},
		{`"AACAPw=="`, "a vector of this index has 3 numbers", "there are 1"},
		{`[0,0,0]`, "a vector has a direction, if its cosine is asked for", "all of its 3 numbers are 0"},
		{`[1,2,1e39]`, "a vector is of numbers that float32 can hold", "number 3 is 1e39"},
		{`"AACAfwAAgH8AAIB/"`, "a vector is of numbers that float32 can hold", "number 1 is +Inf"},
		{`[]`, "a vector has at least one number", "[]"},
		{`true`, "a vector is an array of numbers, or its base64", "true"},
		{`[[1,2,3],[1,2]]`, "a vector of this index has 3 numbers", "there are 2"},
	} {
		_, err := db.Put(ctx, "notes/1", []byte(`{"At":`+c.value+`}`), jay.InCollection("Notes"))
		var refused *jay.ValueError
		want := jay.ValueError{Index: "Alike", Collection: "Notes", Field: "At", ID: "notes/1", Rule: c.rule, Value: c.found}
		if !errors.As(err, &refused) || !errors.Is(err, jay.ErrInvalidDocument) || *refused != want {
			t.Errorf("%s: got %v, want %v", c.value, err, &want)
		}
	}
	for i, fine := range []string{`{}`, `{"At":null}`, `{"At":[1,2,3]}`, `{"At":{"@vector":[1,2,3]}}`} {
		jaytest.Put(t, db, fmt.Sprint("notes/", i), fine, jay.InCollection("Notes"))
	}
	jaytest.Must(t, db.DropIndex(ctx, "Notes", "Alike"))
	jaytest.Put(t, db, "notes/9", `{"At":[1,2]}`, jay.InCollection("Notes"))
	ix := jay.Index{Name: "Alike", Kind: "vectors", Fields: []string{"At"}, Options: map[string]string{"dimensions": "3"}}
	var refused *jay.ValueError
	if err := db.EnsureIndex(ctx, "Notes", ix); !errors.As(err, &refused) || refused.ID != "notes/9" {
		t.Errorf("a build: got %v", err)
	}
	ix.Options["strict"] = "no"
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", ix))
	found, _ := ids(t, db.Query("Notes").OrderBy(jay.Nearest("At", []float32{1, 2, 3})).Limit(9).NoScan())
	if want := []string{"notes/2", "notes/3", "notes/0", "notes/1", "notes/9"}; !slices.Equal(found, want) {
		t.Errorf("got %q, want %q", found, want)
	}
}

// Ensure that an index answers only with its metric, its dimensions, a limit and one direction; and says so where a scan is refused.
func TestVectors_NotAnswered(t *testing.T) {
	db := indexed(t, map[string]string{"dimensions": "3"})
	store(t, db, [][]float32{{1, 2, 3}, {3, 2, 1}})
	for name, q := range map[string]jay.Query[jay.Document]{
		"another metric":     db.Query("Notes").OrderBy(jay.Distance("At", []float32{1, 2, 3}, "dot")).Limit(3),
		"other dimensions":   db.Query("Notes").OrderBy(jay.Nearest("At", []float32{1, 2})).Limit(3),
		"no limit":           db.Query("Notes").OrderBy(jay.Nearest("At", []float32{1, 2, 3})),
		"descending":         db.Query("Notes").OrderBy("-" + jay.Nearest("At", []float32{1, 2, 3})).Limit(3),
		"two orders":         db.Query("Notes").OrderBy(jay.Nearest("At", []float32{1, 2, 3}), "N").Limit(3),
		"another field":      db.Query("Notes").OrderBy(jay.Nearest("On", []float32{1, 2, 3})).Limit(3),
		"a search elsewhere": db.Query("Notes").Where(jay.Similar("On", []float32{1, 2, 3}, 0.5)),
	} {
		if _, err := q.NoScan().All(ctx); !errors.Is(err, jay.ErrNoIndex) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// Ensure that the bound of documents in memory holds.
func TestVectors_Crowd(t *testing.T) {
	defer vectors.SetMaxSeen(5)()
	db := indexed(t, map[string]string{"dimensions": "2"})
	for i := range 8 {
		jaytest.Put(t, db, fmt.Sprint("notes/", i), `{"At":[[1,2],[2,1]]}`, jay.InCollection("Notes"))
	}
	defer vectors.Quickly()()
	settle(t, db)
	var large *query.LimitError
	if _, err := db.Query("Notes").Where(jay.Similar("At", []float32{1, 1}, 0.1)).All(ctx); !errors.As(err, &large) || !errors.Is(err, jay.ErrQuery) || large.Limit != 5 {
		t.Errorf("got %v", err)
	}
}

// Ensure that a document has at most MaxVectors vectors.
func TestVectors_Many(t *testing.T) {
	db := indexed(t, map[string]string{"dimensions": "1"})
	body := func(n int) []byte { return []byte(`{"At":[` + strings.Repeat("[1],", n-1) + `[2]]}`) }
	_, err := db.Put(ctx, "notes/1", body(vectors.MaxVectors), jay.InCollection("Notes"))
	jaytest.Must(t, err)
	var many *jay.DocumentError
	if _, err = db.Put(ctx, "notes/2", body(vectors.MaxVectors+1), jay.InCollection("Notes")); !errors.As(err, &many) || many.Limit != vectors.MaxVectors {
		t.Errorf("got %v", err)
	}
}

// Ensure that an index of numbers answers for numbers only, and that signs of numbers are compared with and without it.
func TestVectors_Forms(t *testing.T) {
	const dimensions = 12
	db := indexed(t, map[string]string{"dimensions": fmt.Sprint(dimensions)})
	all := cloud(5, 400, dimensions, 10, 0.5)
	store(t, db, all)
	settle(t, db)
	where := db.Query("Notes").Where(jay.Similar("embedding.f32_i1(At)", all[0], 0.8))
	found, plan := ids(t, where)
	if want, _ := ids(t, where.NoIndex()); len(found) < 2 || len(found) == len(all) || !slices.Equal(slices.Sorted(slices.Values(found)), slices.Sorted(slices.Values(want))) {
		t.Errorf("found %q, want %q", found, want)
	}
	if strings.Contains(plan, "Alike") {
		t.Errorf("the plan is %s", plan)
	}
	near := db.Query("Notes").OrderBy(jay.Nearest("embedding.f32_i1(At)", all[0])).Limit(7)
	found, plan = ids(t, near)
	if want, _ := ids(t, near.NoIndex()); !slices.Equal(found, want) || strings.Contains(plan, "Alike") {
		t.Errorf("found %q, want %q; %s", found, want, plan)
	}
	if _, plan = ids(t, db.Query("Notes").Where(jay.Similar("embedding.f32_i8(At)", all[0], 0.8))); !strings.Contains(plan, "Alike") {
		t.Errorf("the plan is %s", plan)
	}
}

// Ensure that a search for vectors or for something else is answered by both indexes, and finds what a scan finds.
func TestVectors_Union(t *testing.T) {
	db := indexed(t, map[string]string{"dimensions": "16"})
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Numbers", Fields: []string{"N"}}))
	all := cloud(6, 3000, 16, 60, 0.4)
	store(t, db, all)
	settle(t, db)
	either := db.Query("Notes").Where(jay.Or(jay.Between("N", 100, 120), jay.Similar("At", all[0], 0.8)))
	found, plan := ids(t, either)
	want, _ := ids(t, either.NoIndex())
	slices.Sort(found)
	if slices.Sort(want); len(found) < 30 || len(found) > 300 || !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
	if !strings.Contains(plan, "union") || !strings.Contains(plan, "Alike") || !strings.Contains(plan, "Numbers") {
		t.Errorf("the plan is %s", plan)
	}
}
