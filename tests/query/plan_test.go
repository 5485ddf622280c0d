package query_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/plan"
	"github.com/jaydb/jay/internal/sample"
)

// skewed fills Things with n documents of different selectivity: Half has two
// values, Twelfth twelve, Tenth ten, each seven times in a row, Few as many as there are groups of ten documents, N is
// unique, Rare is 1 in one of a thousand. Words holds two texts.
func skewed(t testing.TB, db *jay.DB, n int) {
	t.Helper()
	w, err := db.BulkInsert(nil)
	must(t, err)
	for i := range n {
		_, err := w.Put(ctx, fmt.Sprintf("things/%05d", i), json.RawMessage(fmt.Sprintf(
			`{"Half":%d,"Twelfth":%d,"Tenth":%d,"Few":%d,"N":%d,"Rare":%d,"Name":"name%d","Words":["w%d","v%d"]}`,
			i%2, i*5%12, i/7%10, i%(n/10), i, min(1, i%1000)^1, i%50, i%3, i%11)), jay.InCollection("Things"))
		must(t, err)
	}
	must(t, w.Close())
}

func ensure(t testing.TB, db *jay.DB, fields ...string) {
	t.Helper()
	for _, f := range fields {
		must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: strings.Split(f, ",")}))
	}
}

func explained(t testing.TB, db *jay.DB, rql string) jay.Explanation {
	t.Helper()
	q, err := db.RQL(rql, nil)
	must(t, err)
	e, err := q.Explain(ctx)
	must(t, err)
	return e
}

// Ensure that Explain in a transaction that has written says what is checked on documents: the whole condition, as its own are in no index.
func TestPlan_FilterOfOwnDocuments(t *testing.T) {
	db := memory(t, nil)
	ensure(t, db, "N")
	put(t, db, "things/1", `{"N":1}`, jay.InCollection("Things"))
	for _, row := range []struct{ rql, before, after string }{
		{"from Things where N = 1", "", "filter: N = 1"},
		{"from Things where N = 1 and M = 2", "filter: M = 2", "filter: N = 1 and M = 2"},
		{"from Things order by N", "", ""},
	} {
		err := db.Update(ctx, func(tx *jay.Tx) error {
			for _, want := range []string{row.before, row.after} {
				q, err := tx.RQL(row.rql, nil)
				must(t, err)
				e, err := q.Explain(ctx)
				must(t, err)
				got := ""
				for _, step := range e.Plan {
					if strings.HasPrefix(step, "filter") {
						got = step
					}
				}
				equal(t, got, want)
				_, err = tx.Put(ctx, "things/2", json.RawMessage(`{"N":1}`), jay.InCollection("Things"))
				must(t, err)
			}
			return errors.New("enough")
		})
		equal(t, err.Error(), "enough")
	}
}

// Ensure that the order in which criteria are written changes neither the plan
// nor its cost.
func TestPlan_OrderOfCriteria(t *testing.T) {
	db := memory(t, nil)
	skewed(t, db, 3000)
	ensure(t, db, "Half", "Tenth", "Few", "N", "Half,Tenth", "Words")
	sets := [][]string{
		{"Half = 1", "Tenth = 3", "N < 2000"},
		{"Half = 1", "Few = 7", "N > 5", "Tenth = 2"},
		{"Half = 0", "Tenth in (1,2)", "Words = 'w1'", "Words = 'v2'"},
		{"(Few = 1 or N = 5)", "Half = 1", "Tenth > 2"},
		{"N >= 100", "N < 110", "Half = 1"},
		{"Half = 1", "Half = 0"},
	}
	for _, set := range sets {
		explained(t, db, "from Things where "+strings.Join(set, " and ")) // samples what later plans know
		first := ""
		for _, criteria := range permutations(set) {
			rql := "from Things where " + strings.Join(criteria, " and ")
			e := explained(t, db, rql)
			steps := slices.DeleteFunc(e.Plan, func(s string) bool { return strings.HasPrefix(s, "filter") })
			cost := fmt.Sprintf("%s; %d keys, %d documents, %d returned", strings.Join(steps, "; "), e.Keys, e.Documents, e.Returned)
			if first == "" {
				first = cost
			}
			if cost != first {
				t.Fatalf("%s\n%s\nin the first order:\n%s", rql, cost, first)
			}
		}
	}
}

func permutations(list []string) [][]string {
	if len(list) < 2 {
		return [][]string{slices.Clone(list)}
	}
	var out [][]string
	for i := range list {
		rest := slices.Delete(slices.Clone(list), i, i+1)
		for _, p := range permutations(rest) {
			out = append(out, append([]string{list[i]}, p...))
		}
	}
	return out
}

// Ensure that the planner picks the selective index, whatever the names and
// however large both are, intersects and unites where it spares reads, and
// counts entries where they are the answer.
func TestPlan_Choice(t *testing.T) {
	sample.OneGoroutine(t)
	defer func(keys, many int) { plan.EstimateKeys, plan.EstimateMany = keys, many }(plan.EstimateKeys, plan.EstimateMany)
	plan.EstimateKeys, plan.EstimateMany = 500, 20_000
	db := memory(t, nil)
	skewed(t, db, 12_000)
	ensure(t, db, "Half", "Twelfth", "Tenth", "Few", "N", "Rare", "Words")
	must(t, db.EnsureIndex(ctx, "Things", jay.Index{Name: "a-half", Fields: []string{"Half"}}))
	must(t, db.EnsureIndex(ctx, "Things", jay.Index{Name: "z-tenth", Fields: []string{"Tenth", "Name"}}))
	tests := []struct {
		where           string
		plan            string // a step begins so
		keys, documents int64  // at most
	}{
		{"Half = 1 and Few = 7", `index "Few"`, 1100, 10},
		{"Few = 7 and Half = 1", `index "Few"`, 1100, 10},
		{"Half = 1 and N between 100 and 119", `index "N"`, 1100, 20},
		{"Rare = 0 and N < 700", `index "N"`, 30_000, 700},   // both above the first estimate
		{"N < 700 and Rare = 0", `index "N"`, 30_000, 700},   //
		{"Rare = 0 and N > 11300", `index "N"`, 30_000, 700}, //
		{"Half = 1 and Twelfth = 3", "keep what is in", 30_000, 1000},
		{"Half = 1 and Tenth = 3", `index "Tenth"`, 30_000, 1300}, // neighbours, which are read as in a scan
		{"Few = 3 or N = 77", "union of", 2000, 11},
		{"Few = 3 or N = 77 or N = 3", "union of", 2000, 12},
		{"Few = 3 or Name = 'name1'", "scan", 2000, 12_000},
		{"(Few = 3 or N = 77) and Half = 1", "union of", 3000, 11},
		{"(Few = 3 or Few = 4) and N = 3", `index "N"`, 3000, 1},
		{"Words = 'w1' and N < 30", `index "N"`, 2000, 30},
		{"Half in (0, 1) and Few in (1, 2, 3)", `index "Few"`, 3000, 30},
		{"Rare = 1", `index "Rare"`, 1000, 12},
	}
	for _, test := range tests {
		e := explained(t, db, "from Things where "+test.where)
		if !slices.ContainsFunc(e.Plan, func(s string) bool { return strings.HasPrefix(s, test.plan) }) || e.Keys > test.keys || e.Documents > test.documents {
			t.Errorf("%s: want %s, at most %d keys and %d documents; got\n%s", test.where, test.plan, test.keys, test.documents, e)
		}
	}
	for where, want := range map[string]int64{"Half = 1": 6000, "Rare = 0": 11_988, "N between 10 and 19": 10, "Words in ('w1','v1')": 0, "Words = 'w1'": 4000, "Tenth = 1 and exact(Name = 'name1')": 0} {
		q, err := db.RQL("from Things where "+where, nil)
		must(t, err)
		n, err := q.Count(ctx)
		must(t, err)
		if want == 0 {
			for doc, err := range db.Query("Things").Iter(ctx) {
				must(t, err)
				var v struct {
					Tenth int
					Name  string
					Words []string
				}
				must(t, json.Unmarshal(doc.Body(), &v))
				if strings.HasPrefix(where, "Words") && (v.Words[0] == "w1" || v.Words[1] == "v1") || !strings.HasPrefix(where, "Words") && v.Tenth == 1 && v.Name == "name1" {
					want++
				}
			}
		}
		e := explained(t, db, "from Things where "+where+" select count() as n")
		if n != want || e.Documents != 0 || e.Returned != 1 {
			t.Errorf("count where %s: %d, want %d, without reading documents\n%s", where, n, want, e)
		}
	}
	// The order of an index spares the sort, and a limit the rest.
	for rql, most := range map[string]int64{
		"from Things order by N limit 5":                                    5,
		"from Things order by N desc limit 5":                               5,
		"from Things where N > 1000 order by N limit 5":                     5,
		"from Things where Half = 1 order by N desc limit 5":                11,
		"from Things where N > 1000 and N < 11000 order by N desc limit 10": 10,
	} {
		if e := explained(t, db, rql); e.Documents > most {
			t.Errorf("%s: more than %d documents\n%s", rql, most, e)
		}
	}
}

// Ensure that NoScan refuses a query that no index serves, names one that would,
// and that the index that is suggested is then used.
func TestPlan_Suggestion(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	queries := []string{
		"from Things where Few = 3",
		"from Things where Few = 3 and Tenth > 2",
		"from Things where Name = 'NAME3' and Half = 1",
		"from Things where startsWith(Name, 'name1')",
		"from Things where N between 3 and 9",
		"from Things where N > 5 order by Few",
		"from Things where N > 2900 order by Few limit 3",
		"from Things where Half = 1 order by N desc limit 3",
		"from Things where Name = 'name1' order by N",
		"from Things where Few in (1,2) and N > 3 order by N",
		"from Things where Words = 'w1'",
		"from Things where Few = 3 and Half = 1 order by Tenth, N",
		"from Things where Few = 3 order by id()",
		"from Things order by N",
		"from Things order by Tenth desc, N desc limit 5",
		"from Things order by N, id() limit 5",
		"from Things order by Few as long",
		"from Things where N = 5 and id() > 'a' order by Name",
		"from Things where Words all in ('w1', 'v1')",
		"from Things group by Half where Few > 3 select Half, count() as n",
	}
	for _, rql := range queries {
		db := memory(t, nil)
		skewed(t, db, 3000)
		q, err := db.RQL(rql, nil)
		must(t, err)
		e, err := q.Explain(ctx)
		must(t, err)
		{
			_, err := q.NoScan().All(ctx)
			if !errors.Is(err, jay.ErrNoIndex) {
				t.Errorf("%s: NoScan: %v", rql, err)
			}
			if e.Suggestion != nil && !strings.Contains(fmt.Sprint(err), "jay index create Things ") {
				t.Errorf("%s: the error suggests nothing: %v", rql, err)
			}
		}
		if e.Suggestion == nil {
			if strings.Contains(rql, "where") {
				t.Errorf("%s: no suggestion", rql)
			}
			continue
		}
		must(t, db.EnsureIndex(ctx, "Things", *e.Suggestion))
		e2, err := q.Explain(ctx)
		must(t, err)
		considered := strings.HasPrefix(e2.Plan[0], "index") || slices.ContainsFunc(e2.Plan, func(s string) bool { return strings.Contains(s, " and not ") && strings.Contains(s, "by index") })
		if !considered || e2.Returned != e.Returned || e2.Suggestion != nil {
			t.Errorf("%s: suggested %v, which is not used:\n%s", rql, e.Suggestion.Fields, e2)
		}
		if _, err := q.NoScan().All(ctx); err != nil {
			t.Errorf("%s: NoScan with the suggested index: %v", rql, err)
		}
	}
}

// Ensure that automatic indexes are made, listed as such, and never more than
// allowed, also when many queries ask at once.
func TestPlan_AutoIndexes(t *testing.T) {
	db := memory(t, &jay.Options{AutoIndexes: 2})
	skewed(t, db, 2000)
	fields := []string{"Few", "N", "Name", "Tenth", "Words", "Half"}
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			for range 3 {
				_, err := db.Query("Things").Where(jay.Eq(fields[i%len(fields)], 77)).All(ctx)
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	checks.WaitIndexTasks(db)
	infos, err := db.Indexes(ctx, "Things")
	must(t, err)
	for _, info := range infos {
		if !info.Automatic || !strings.HasPrefix(info.Name, "Auto/Things/By") {
			t.Errorf("not marked as automatic: %+v", info)
		}
		must(t, db.EnsureIndex(ctx, "Things", info.Index))
	}
	if len(infos) != 2 {
		t.Errorf("%d automatic indexes, want 2: %+v", len(infos), infos)
	}
	if err := checks.Indexes(db); err != nil {
		t.Error(err)
	}
	e := explained(t, db, "from Things where "+infos[0].Fields[0]+" = 77")
	if !strings.HasPrefix(e.Plan[0], "index") {
		t.Errorf("the automatic index is not used:\n%s", e)
	}
}

// Ensure that Close ends queries and builds that are under way with ErrClosed,
// and leaves no iterator open (which Pebble's Close would panic about).
func TestPlan_Close_UnderWay(t *testing.T) {
	t.Parallel()
	for round := range 12 {
		db, err := openMemory(nil)
		must(t, err)
		skewed(t, db, 1500)
		ensure(t, db, "N", "Words", "Half")
		var wg sync.WaitGroup
		begun := make(chan struct{}, 64)
		for n, rql := range []string{
			"from Things", "from Things where Half = 1 and N > 3", "from Things order by Name", "from Things where Words = 'w1'", "from Things order by N desc",
			"from Things group by Few select Few, count()", "from Things where N = 3 or N = 4", "from Things select distinct Name",
		} {
			wg.Go(func() {
				q, err := db.RQL(rql, nil)
				if err != nil {
					t.Error(err)
					return
				}
				for err == nil {
					rows := 0
					for _, e := range q.Iter(ctx) {
						if rows++; rows == 1 {
							select {
							case begun <- struct{}{}:
							default:
							}
						}
						if err = e; e == nil && rows > 20+n {
							break
						}
					}
					if err == nil {
						_, err = q.Count(ctx)
					}
					if err == nil {
						_, err = q.Explain(ctx)
					}
				}
				if !errors.Is(err, jay.ErrClosed) {
					t.Errorf("%s: %v, want ErrClosed", rql, err)
				}
			})
			wg.Go(func() {
				var err error
				for err == nil {
					err = db.View(ctx, func(tx *jay.Tx) error {
						q, err := tx.RQL(rql, nil)
						if err != nil {
							return err
						}
						for _, err := range q.Iter(ctx) {
							if err != nil {
								return err
							}
						}
						return nil
					})
				}
				if !errors.Is(err, jay.ErrClosed) {
					t.Errorf("%s in a transaction: %v, want ErrClosed", rql, err)
				}
			})
		}
		wg.Go(func() {
			var err error
			for i := 0; err == nil; i++ {
				err = db.EnsureIndex(ctx, "Things", jay.Index{Name: fmt.Sprint(i), Fields: []string{"Few"}})
				if err == nil {
					err = db.DropIndex(ctx, "Things", fmt.Sprint(i))
				}
			}
			if !errors.Is(err, jay.ErrClosed) {
				t.Errorf("build: %v, want ErrClosed", err)
			}
		})
		for range 1 + round*3 {
			<-begun
		}
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		wg.Wait()
	}
}

// Ensure that a loop that is left, at any answer, releases what it held, and
// that a cancelled context ends a query in the middle of a long step.
func TestPlan_LeftEarly(t *testing.T) {
	db, err := openMemory(nil)
	must(t, err)
	skewed(t, db, 2000)
	ensure(t, db, "N", "Words", "Half")
	queries := []string{
		"from Things", "from Things where Half = 1", "from Things order by Name", "from Things where Words in ('w1', 'v1')", "from Things order by N desc limit 100",
		"from Things where N = 3 or N = 4", "from Things where Half = 1 and N > 4", "from Things select distinct Name", "from Things group by Few select Few", "from Things where id() in ('things/00001','things/00002')",
	}
	for _, rql := range queries {
		q, err := db.RQL(rql, nil)
		must(t, err)
		for stop := range 4 {
			n := 0
			for _, err := range q.Iter(ctx) {
				must(t, err)
				if n++; n > stop {
					break
				}
			}
		}
		_, err = q.First(ctx)
		must(t, err)
	}
	slow := []string{"from Things where Name = 'none'", "from Things where N >= 0 and Name = 'none'", "from Things order by Name", "from Things group by Few select Few", "from Things select sum(N) as s"}
	for _, rql := range slow {
		q, err := db.RQL(rql, nil)
		must(t, err)
		for _, calls := range []int{1, 2, 3, 8} {
			c := &countedContext{Context: ctx, left: calls}
			var got error
			for _, err := range q.Iter(c) {
				got = err
			}
			if !errors.Is(got, context.Canceled) {
				t.Errorf("%s, cancelled after %d looks: %v", rql, calls, got)
			}
			if rql == "from Things order by Name" {
				continue // the database keeps that number
			}
			c = &countedContext{Context: ctx, left: calls}
			if _, err := q.Count(c); !errors.Is(err, context.Canceled) {
				t.Errorf("count of %s, cancelled after %d looks: %v", rql, calls, err)
			}
		}
	}
	must(t, db.Close()) // panics if an iterator is open
}

// countedContext is cancelled after it was looked at so many times.
type countedContext struct {
	context.Context
	mu   sync.Mutex
	left int
}

func (c *countedContext) Err() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

func (c *countedContext) Deadline() (time.Time, bool) { return time.Time{}, false }
