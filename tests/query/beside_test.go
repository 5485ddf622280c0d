package query_test

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/querytest"
	"github.com/jaydb/jay/internal/sample"
)

// besideIndexes keep sums of groups, and have the extremes of some of them.
var besideIndexes = []jay.Index{
	{Name: "KA", Kind: "groups", Fields: []string{"A"}, Options: map[string]string{"sums": "T"}},
	{Name: "KBA", Kind: "groups", Fields: []string{"B", "A"}, Options: map[string]string{"sums": "T"}},
	{Name: "Kpart", Kind: "groups", Fields: []string{"A"}, Options: map[string]string{"sums": "T"}, Where: "T > 1"},
	{Name: "KN", Kind: "groups", Fields: []string{"N.X", "N.Y"}},
	{Name: "AT", Fields: []string{"-A", "T"}},
	{Name: "ABT", Fields: []string{"A", "B", "-T"}},
	{Name: "B", Fields: []string{"B", "At as date"}},
	{Name: "ApartT", Fields: []string{"A", "T"}, Where: "T > 1"},
	{Name: "NT", Fields: []string{"N.X", "N.Y", "T"}},
	{Name: "T", Fields: []string{"T"}},
}

// besideQuery returns a query of groups with counts or sums and extremes.
func besideQuery(r *rand.Rand) (text string, ordered bool) {
	by := [][]string{nil, {"A"}, {"A"}, {"B"}, {"A", "B"}, {"B", "A"}, {"N.X", "N.Y"}}[r.IntN(7)]
	var where, columns, orders []string
	for _, c := range []string{"A = 'a'", "A in ('a', 'b', 'A')", "B >= 'a'", "T > 1", "A = null", "A != 'b'", "A != 'a' and B = 'a'"} {
		if r.IntN(9) == 0 {
			where = append(where, c)
		}
	}
	for i, f := range by {
		columns = append(columns, fmt.Sprintf("%s as k%d", f, i))
		orders = append(orders, fmt.Sprintf("k%d", i))
	}
	added := []string{"count()", "sum(T)", "avg(T)"}
	others := []string{"min(T)", "max(T)", "count(distinct T)", "min(At as date)", "max(A)"}
	for i := range 1 + r.IntN(2) {
		columns = append(columns, fmt.Sprintf("%s as s%d", added[r.IntN(len(added))], i))
	}
	for i := range 1 + r.IntN(3) {
		columns = append(columns, fmt.Sprintf("%s as x%d", others[r.IntN(len(others))], i))
	}
	text = "from Things "
	if len(by) > 0 {
		text += "group by " + strings.Join(by, ", ")
	}
	if r.IntN(5) == 0 {
		where = append(where, "max(T) > 50")
	}
	if len(where) > 0 {
		text += " where " + strings.Join(where, " and ")
	}
	if len(orders) > 0 && r.IntN(2) == 0 {
		text, ordered = text+" order by "+strings.Join(orders, " desc, "), true
	}
	text += " select " + strings.Join(columns, ", ")
	if ordered && r.IntN(2) == 0 {
		text += fmt.Sprintf(" limit %d offset %d", r.IntN(5), r.IntN(3))
	}
	return text, ordered
}

// facetQuery returns a query with facets.
func facetQuery(r *rand.Rand) string {
	facets := []string{"facet(A)", "facet(A, sum(T))", "facet(B)", "facet(T)", "facet()", "facet(B, avg(T), sum(T))", "facet(N.X)", `facet(A, options('{"TermSortMode":"CountDesc","PageSize":2,"IncludeRemainingTerms":true}'))`, "facet(A, max(T))", "facet(T < 5)", "facet(At as date)"}
	where := []string{"", "", "", "where A = 'a' ", "where T > 1 ", "where B >= 'a' "}[r.IntN(6)]
	var list []string
	for range 1 + r.IntN(2) {
		list = append(list, facets[r.IntN(len(facets))])
	}
	return "from Things " + where + "select " + strings.Join(list, ", ")
}

// Ensure that groups of which an index keeps the sums and others have the extremes are those of a scan, and so are facets that
// indexes count: with documents that have expired, in transactions that have written, and beside documents with several values.
func TestGroupBy_Beside(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.NoSweeper()() // one for all tests, so this one is not parallel
	seed := querytest.Seed(t)
	t.Log("JAY_QUERY_SEED", seed)
	used := map[string]int{}
	for round := range querytest.Rounds(t, 12) {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		clock := jaytest.NewClock()
		db := memory(t, &jay.Options{Now: clock.Now, ExactExpiry: true})
		must(t, db.EnsureIndexes(ctx, "Things", besideIndexes))
		b := new(jay.Batch)
		for i := range 400 {
			options := []jay.WriteOption{jay.InCollection("Things")}
			if round%2 == 1 && i%5 == 0 {
				options = append(options, jay.ExpiresAt(clock.Now().Add(time.Duration(i)*time.Second)))
			}
			b.Put(fmt.Sprintf("Things/%d", i), []byte(alongThing(r, round%4 == 2 && i > 380)), options...)
		}
		_, err := db.Apply(ctx, b)
		must(t, err)
		clock.Advance(200 * time.Second)
		compare := func(from querier) {
			t.Helper()
			for range 60 {
				text, ordered := besideQuery(r)
				if r.IntN(3) == 0 {
					text, ordered = facetQuery(r), true
				}
				likeScan(t, from, text, ordered, used)
			}
		}
		compare(db)
		must(t, db.Update(ctx, func(tx *jay.Tx) error {
			for range 20 {
				id := fmt.Sprintf("Things/%d", r.IntN(420))
				if r.IntN(3) == 0 {
					if err := tx.Delete(ctx, id); err != nil && !errors.Is(err, jay.ErrNotFound) {
						return err
					}
				} else if _, err := tx.Put(ctx, id, []byte(alongThing(r, false)), jay.InCollection("Things")); err != nil {
					return err
				}
			}
			compare(tx)
			return nil
		}, jay.Retry()))
	}
	for _, part := range []string{
		`beside it index "AT", all of it`, `beside it index "T", all of it`, `beside it index "ABT", `,
		"from the ends of each group", "from one value to the next", `facet A: groups (sums=T) index "KA", kept counts`, "facet T: index",
	} {
		if !slices.ContainsFunc(slices.Collect(maps.Keys(used)), func(step string) bool { return strings.Contains(step, part) }) {
			t.Errorf("no query: %s", part)
		}
	}
}

// Ensure that plans say which index has what, that NoScan accepts them, and which queries are left to other plans.
func TestGroupBy_BesidePlans(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := memory(t, nil)
	must(t, db.EnsureIndexes(ctx, "Things", append(besideIndexes[:len(besideIndexes):len(besideIndexes)], jay.Index{Name: "CT", Fields: []string{"C", "T"}})))
	b := new(jay.Batch)
	for i := range 5000 {
		b.Put(fmt.Sprint("Things/", i), []byte(fmt.Sprintf(`{"A":"a%d","B":%d,"T":%d,"C":%d,"D":1}`, i%20, i%3, i%1000, i%7)), jay.InCollection("Things"))
	}
	_, err := db.Apply(ctx, b)
	must(t, err)
	for text, want := range map[string]string{
		"group by A select A, count(), sum(T), min(T), max(T)":      `groups (sums=T) index "KA", kept counts and sums;    beside it index "AT", all of it, for min(T), max(T), from the ends of each group; read no documents`,
		"group by A where A = 'a7' select A, sum(T), max(T)":        `groups (sums=T) index "KA", kept counts and sums, one range of groups;    beside it index "AT", one range, for max(T), from the ends of each group; read no documents`,
		"group by A where T > 1 select A, count(), min(T)":          `groups (sums=T) index "Kpart", kept counts;    beside it index "ApartT", all of it, for min(T), from the ends of each group; read no documents`,
		"group by A where max(T) > 998 select A, sum(T)":            `groups (sums=T) index "KA", kept counts and sums;    beside it index "AT", all of it, for max(T), from the ends of each group; read no documents; keep groups: max(T) > 998`,
		"select sum(T), max(T)":                                     `groups (sums=T) index "KA", kept counts and sums;    beside it index "T", all of it, for max(T), from the ends of each group; read no documents`,
		"select facet(A, sum(T)), facet(T)":                         `facet A: groups (sums=T) index "KA", kept counts and sums; facet T: index "T", all of it; read no documents`,
		"where A = 'a7' select facet(A)":                            `facet A: groups (sums=T) index "KA", kept counts, one range of groups; read no documents`,
		"select facet(A, max(T))":                                   `facet A: index "AT", all of it; read no documents`,
		"where D = 1 select facet(A)":                               `scan Things; filter: D = 1; count for 1 facets in memory`,
		"select facet(A), facet(T < 5)":                             `scan Things; count for 2 facets in memory`,
		"group by A select A, min(T), max(T)":                       `index "AT", all of it; answer from entries, read no documents; group along the index, from the ends of each group`,
		"group by C select C, sum(T), max(T)":                       `index "CT", all of it; answer from entries, read no documents; group along the index`,
		"group by B where D = 1 select B, count(), max(At as date)": `scan Things; filter: D = 1; group in memory`,
	} {
		q, err := db.RQL("from Things "+text, nil)
		must(t, err)
		e, err := q.Explain(ctx)
		must(t, err)
		if got := strings.Join(e.Plan, "; "); got != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, got, want)
		}
		if strings.HasPrefix(want, "scan") {
			continue
		}
		if _, err := q.NoScan().All(ctx); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if strings.HasPrefix(want, "groups") && e.Keys > 2000 { // the ends of 20 groups
			t.Errorf("%s examined %d keys", text, e.Keys)
		}
		likeScan(t, db, "from Things "+text, false, map[string]int{})
	}
}

// likeScan compares the answers of a query with those of the scan.
func likeScan(t *testing.T, from querier, text string, ordered bool, used map[string]int) {
	t.Helper()
	q, err := from.RQL(text, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	want, wantErr := rowsOf(q.NoIndex())
	got, err := rowsOf(q)
	if !ordered {
		slices.Sort(want)
		slices.Sort(got)
	}
	e, _ := q.Explain(ctx)
	if !slices.Equal(got, want) || (err == nil) != (wantErr == nil) {
		_, inTx := from.(*jay.Tx)
		t.Errorf("tx %v, %s: got %v, %v\nwant %v, %v\n%s", inTx, q, got, err, want, wantErr, e)
	}
	for _, step := range e.Plan {
		used[step]++
	}
}
