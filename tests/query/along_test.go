package query_test

import (
	"errors"
	"fmt"
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

// alongIndexes are those that groups are made along.
var alongIndexes = []jay.Index{
	{Name: "A", Fields: []string{"A"}},
	{Name: "AB", Fields: []string{"A", "B"}},
	{Name: "BAT", Fields: []string{"B", "-A", "T"}},
	{Name: "AT", Fields: []string{"A", "T"}},
	{Name: "dAT", Fields: []string{"-A", "-T"}},
	{Name: "N", Fields: []string{"N.X", "N.Y", "T"}},
	{Name: "T", Fields: []string{"T"}},
	{Name: "part", Fields: []string{"B", "T"}, Where: "T > 1"},
	{Name: "Dates", Fields: []string{"At as date", "A"}},
}

// alongThing returns a document of few groups, some of them large, with values that are missing, null, of several kinds and spelt in odd ways.
func alongThing(r *rand.Rand, arrays bool) string {
	pick := func(of ...string) string { return of[r.IntN(len(of))] }
	member := func(name string, of ...string) string {
		if v := pick(of...); v != "" {
			return fmt.Sprintf("%q:%s,", name, v)
		}
		return ""
	}
	few := []string{`"a"`, `"a"`, `"a"`, `"a"`, `"a"`, `"A"`, `"b"`, "null", "null", "", "", "1", "1.0", "true", `"a"`}
	text := "{" + member("A", few...) + member("B", append(few, `["b"]`, "[]")...)
	text += member("T", "1", "2.50", "-3", "1e2", "10", "null", "", `"t"`, "7", fmt.Sprint(r.IntN(1000)), "123456789012345678901234567890.5")
	text += member("At", `"2026-01-01T00:00:00Z"`, `"2026-01-01T01:00:00+01:00"`, `"2026-02-01T00:00:00Z"`, `"x"`, "null", "")
	text += member("N", `{"X":1,"Y":2}`, `{"X":1}`, `{"Y":2}`, `{"X":1,"Y":null}`, `[{"X":1},{"Y":2}]`, `[{"X":1,"Y":2}]`, "1", "", `{"X":"a","Y":"a"}`)
	if arrays {
		text += member("B", `["a","b"]`, "")
		text = strings.Replace(text, `"B":`, `"B2":`, strings.Count(text, `"B":`)-1) // no name is there twice
	}
	return strings.TrimSuffix(text, ",") + "}"
}

// alongQuery returns a query of groups, and whether all its rows come in one order.
func alongQuery(r *rand.Rand) (text string, ordered bool) {
	fields := []string{"A", "B", "T", "N.X", "N.Y", "At as date"}
	r.Shuffle(len(fields), func(i, j int) { fields[i], fields[j] = fields[j], fields[i] })
	by := fields[:r.IntN(3)]
	if r.IntN(8) == 0 {
		by = []string{"N.X", "N.Y"}
	}
	text = "from Things "
	if len(by) > 0 {
		text += "group by " + strings.Join(by, ", ")
	}
	var where []string
	for _, c := range []string{"A = 'a'", "A in ('a', 'b')", "B > 'a'", "T > 1", "T >= 2 and T < 100", "A = null", "A != 'b'", "T > 5 or A = 'b'", "exists(B)"} {
		if r.IntN(9) == 0 {
			where = append(where, "("+c+")")
		}
	}
	columns, orders := []string{}, []string{}
	for i, f := range by {
		columns = append(columns, fmt.Sprintf("%s as k%d", strings.TrimSuffix(f, " as date"), i))
		orders = append(orders, fmt.Sprintf("k%d%s", i, []string{"", " desc"}[r.IntN(2)]))
	}
	if r.IntN(2) == 0 { // one direction
		d := []string{"", " desc"}[r.IntN(2)]
		for i := range orders {
			orders[i] = fmt.Sprintf("k%d%s", i, d)
		}
	}
	functions := []string{"count()", "sum(T)", "avg(T)", "min(T)", "max(T)", "min(A)", "max(B)", "sum(N.Y)", "min(At as date)"}
	if r.IntN(3) == 0 {
		functions = []string{"count(distinct T)", "count(distinct A)", "max(T)"}
	}
	if r.IntN(3) == 0 {
		functions = []string{"min(T)", "max(T)"}
	}
	for i := range r.IntN(3) {
		columns = append(columns, fmt.Sprintf("%s as f%d", functions[r.IntN(len(functions))], i))
	}
	if len(columns) == 0 {
		columns = []string{"sum(T) as f0"}
	}
	if r.IntN(6) == 0 {
		where = append(where, "count() > 3")
		if len(by) == 0 {
			columns = append(columns, "count() as n")
		}
	}
	if len(where) > 0 {
		text += " where " + strings.Join(where, " and ")
	}
	r.Shuffle(len(orders), func(i, j int) { orders[i], orders[j] = orders[j], orders[i] })
	if len(orders) > 0 && r.IntN(3) > 0 {
		text, ordered = text+" order by "+strings.Join(orders, ", "), true
	}
	text += " select " + strings.Join(columns, ", ")
	if ordered && r.IntN(2) == 0 {
		text += fmt.Sprintf(" limit %d offset %d", r.IntN(5), r.IntN(3))
	}
	return text, ordered
}

// Ensure that groups along an index are those of a scan: by random queries and indexes, with documents that have expired, in
// transactions that have written, and beside documents with several values.
func TestGroupBy_Along(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.NoSweeper()() // so what has expired stays; one for all tests, so this one is not parallel
	seed := querytest.Seed(t)
	t.Log("JAY_QUERY_SEED", seed)
	used := map[string]int{}
	for round := range querytest.Rounds(t, 16) {
		r := rand.New(rand.NewPCG(seed, uint64(round)))
		clock := jaytest.NewClock()
		db := memory(t, &jay.Options{Now: clock.Now, ExactExpiry: true})
		must(t, db.EnsureIndexes(ctx, "Things", alongIndexes))
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
				text, ordered := alongQuery(r)
				alongLikeScan(t, from, text, ordered, used)
			}
		}
		compare(db)
		// A put onto a document that has expired deletes that first, in a commit of its own, with which a transaction that has walked over
		// the collection before conflicts: so it is run again.
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
	for _, step := range []string{"group along the index", "group along the index, from the ends of each group", "group along the index, from one value to the next", "group entries in memory", "already in order"} {
		if used[step] == 0 {
			t.Errorf("no query: %s (%v)", step, used)
		}
	}
}

// querier is a database or a transaction.
type querier interface {
	RQL(text string, params map[string]any) (jay.Query[jay.Row], error)
}

// alongLikeScan compares the answers of a query, of the plan that is chosen and of each index, with those of the scan.
func alongLikeScan(t *testing.T, from querier, text string, ordered bool, used map[string]int) {
	t.Helper()
	q, err := from.RQL(text, nil)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	want, wantErr := rowsOf(q.NoIndex())
	if !ordered {
		slices.Sort(want)
	}
	queries := []jay.Query[jay.Row]{q}
	for _, ix := range alongIndexes {
		queries = append(queries, q.UseIndex(ix.Name))
	}
	for _, q := range queries {
		got, err := rowsOf(q)
		if errors.Is(err, jay.ErrNoIndex) {
			continue
		}
		if !ordered {
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
}
