// Command groups measures groups that are made along an index, beside those of a scan.
//
//	go run ./groups [-n DOCUMENTS] [-groups G] [-pairs P] [-dir DIR] [-builds] [-loads] [-rebuilds] [-peers] [-smoke]
//
// One database has an index on the customer and the total of each order. Each query runs with the index and without it in turns, and both must
// answer alike, to the last byte. Behind that, computed indexes are built and dropped, in turn with an ordinary index on the same field. The figures are
// medians, and those of the ratios of the pairs. With -loads an index that loads the documents of a reference is measured beside one of the
// reference, in two databases. With -rebuilds an index of each kind is built, as after a restore. With -peers
// kept counts and sums are read beside those of SQLite.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/report"
	"github.com/jaydb/jay/bench/stats"
	"github.com/jaydb/jay/index"
)

func main() {
	n := flag.Int("n", 200_000, "documents")
	groups := flag.Int("groups", 1000, "groups")
	pairs := flag.Int("pairs", 20, "runs of each query, with the index and without it in turn")
	dir := flag.String("dir", os.TempDir(), "where the database is put, and removed")
	onlyBuilds := flag.Bool("builds", false, "only the table of builds")
	onlyLoads := flag.Bool("loads", false, "only the table of an index that loads documents")
	onlyRebuilds := flag.Bool("rebuilds", false, "only the table of builds of each kind of index")
	onlyPeers := flag.Bool("peers", false, "only the table of kept counts and sums beside SQLite")
	smoke := flag.Bool("smoke", false, "few documents and one pair, to see that it works")
	flag.Parse()
	if *smoke {
		*n, *groups, *pairs = 2000, 50, 1
	}
	ctx := context.Background()
	measure := func(dir string, db *jay.DB) error { return run(ctx, db, *n, *groups, *pairs, dir, *onlyBuilds) }
	if *onlyLoads {
		measure = func(_ string, one *jay.DB) error {
			return inDatabase(*dir, func(_ string, other *jay.DB) error { return loads(ctx, [2]*jay.DB{one, other}, *dir, *n, *pairs) })
		}
	}
	if *onlyPeers {
		measure = func(dir string, db *jay.DB) error { return peers(ctx, db, dir, *n, *groups, *pairs) }
	}
	if *onlyRebuilds {
		measure = func(dir string, db *jay.DB) error { return rebuilds(ctx, db, dir, *n, max(1, *pairs/10)) }
	}
	if err := inDatabase(*dir, measure); err != nil {
		fmt.Fprintln(os.Stderr, "groups:", err)
		os.Exit(1)
	}
}

// queries are the rows of the table.
var queries = []struct{ name, text string }{
	{"count", "from Orders group by Customer order by Customer select Customer, count() as n"},
	{"count, sum, least, greatest", "from Orders group by Customer order by Customer select Customer, count() as n, sum(Total) as s, min(Total) as least, max(Total) as most"},
	{"least, greatest", "from Orders group by Customer order by Customer select Customer, min(Total) as least, max(Total) as most"},
	{"groups", "from Orders group by Customer order by Customer select Customer"},
	{"first ten groups", "from Orders group by Customer order by Customer select Customer, count() as n, sum(Total) as s limit 10"},
	{"by total, not in front", "from Orders group by Total order by Total select Total, count() as n"},
}

// kept are the rows with an index that keeps counts and sums, too.
var kept = []struct{ name, text string }{
	{"kept count and sum, least, greatest beside", "from Orders group by Customer order by Customer select Customer, count() as n, sum(Total) as s, min(Total) as least, max(Total) as most"},
	{"facet, kept", "from Orders select facet(Customer, sum(Total))"},
	{"facet along the index", "from Orders select facet(Customer, max(Total))"},
	{"last in an order", "from Orders group by Customer order by Customer select Customer, last(Total order by At) as last"},
	{"kept count and sum, last in an order beside", "from Orders group by Customer order by Customer select Customer, count() as n, sum(Total) as s, last(Total order by At) as last"},
}

// inDatabase calls fn with a new database below parent, in a directory that is removed when fn has returned, and that fn may use, too.
func inDatabase(parent string, fn func(dir string, db *jay.DB) error) (err error) {
	dir, err := os.MkdirTemp(parent, "jay-groups-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(filepath.Join(dir, "db"), nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return fn(dir, db)
}

func run(ctx context.Context, db *jay.DB, n, groups, pairs int, dir string, onlyBuilds bool) error {
	if err := fill(ctx, db, n, groups); err != nil {
		return err
	}
	machine, err := report.ThisMachine(dir)
	if err != nil {
		return err
	}
	if onlyBuilds {
		fmt.Printf("%s\n\n%d documents, %d groups, %d pairs\n", machine.String(), n, groups, pairs)
		return builds(ctx, db, pairs)
	}
	fmt.Printf("%s\n\n%d documents, %d groups, %d pairs\n\n| | scan | along the index | ratio (least–most) |\n|---|---:|---:|---:|\n", machine.String(), n, groups, pairs)
	for _, q := range queries {
		if err := compare(ctx, db, q.name, q.text, pairs); err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
	}
	if err := db.EnsureIndex(ctx, "Orders", jay.Index{Kind: "groups", Fields: []string{"Customer"}, Options: map[string]string{"sums": "Total"}}); err != nil {
		return err
	}
	if err := db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Customer", "At", "Total"}}); err != nil {
		return err
	}
	for _, q := range kept {
		if err := compare(ctx, db, q.name, q.text, pairs); err != nil {
			return fmt.Errorf("%s: %w", q.name, err)
		}
	}
	return builds(ctx, db, pairs)
}

// computed are the indexes whose builds are measured.
var computed = []struct {
	name    string
	results []index.Member
}{
	{"count and sum", []index.Member{{Name: "Customer"}, {Name: "N", Expression: "count()"}, {Name: "S", Expression: "sum(Total)"}}},
	{"least", []index.Member{{Name: "Customer"}, {Name: "L", Expression: "min(Total)"}}},
	{"count, sum, least, last", []index.Member{{Name: "Customer"}, {Name: "N", Expression: "count()"}, {Name: "S", Expression: "sum(Total)"}, {Name: "L", Expression: "min(Total)"}, {Name: "O", Expression: "last(Total order by At)"}}},
}

// builds prints what the builds of computed indexes take beside that of an ordinary index on the same field.
func builds(ctx context.Context, db *jay.DB, pairs int) error {
	fmt.Printf("\n| build | ordinary | computed | ratio (least–most) |\n|---|---:|---:|---:|\n")
	ordinary := jay.Index{Name: "ordinary", Fields: []string{"Customer"}}
	for _, c := range computed {
		declared := jay.Computed{Name: "computed", Maps: []index.Map{{Collection: "Orders", Select: []index.Member{{Name: "Customer"}, {Name: "Total"}, {Name: "At"}}}}, Reduce: &index.Reduce{GroupBy: []string{"Customer"}, Select: c.results}}
		build := func(i int) error {
			if i == 1 {
				return jay.ComputedOf(db).Ensure(ctx, declared)
			}
			return db.EnsureIndex(ctx, "Orders", ordinary)
		}
		drop := func(i int) error {
			if i == 1 {
				return jay.ComputedOf(db).Drop(ctx, declared.Name)
			}
			return db.DropIndex(ctx, "Orders", ordinary.Name)
		}
		if err := inTurns(c.name, pairs, 1, build, drop); err != nil {
			return err
		}
	}
	return nil
}

// inTurns prints a row: what one of so many things takes, on both sides in turns. undo is not measured, and nil for nothing.
func inTurns(name string, pairs, things int, do, undo func(side int) error) error {
	var took [2][]float64
	var ratios []float64
	for range pairs {
		for _, i := range rand.Perm(2) {
			begun := time.Now()
			if err := do(i); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
			took[i] = append(took[i], time.Since(begun).Seconds()/float64(things))
			if undo == nil {
				continue
			}
			if err := undo(i); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
		last := len(took[0]) - 1
		ratios = append(ratios, took[1][last]/took[0][last])
	}
	fmt.Printf("| %s | %v | %v | %.2f (%.2f–%.2f) |\n", name, duration(took[0]), duration(took[1]), stats.Median(ratios), slices.Min(ratios), slices.Max(ratios))
	return nil
}

// fill stores the documents, of some 200 bytes each.
func fill(ctx context.Context, db *jay.DB, n, groups int) error {
	if err := db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"Customer", "Total"}}); err != nil {
		return err
	}
	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		body := fmt.Sprintf(`{"Customer":"customer-%d","Total":%d.%02d,"At":"2026-01-%02dT12:00:00Z","Note":"%0120d"}`, random.IntN(groups), i%1000, i%100, 1+i%28, i)
		if _, err := w.Put(ctx, fmt.Sprintf("orders/%08d", i), json.RawMessage(body), jay.InCollection("Orders")); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return errors.Join(w.Close(), db.Compact(ctx))
}

// compare prints a row.
func compare(ctx context.Context, db *jay.DB, name, text string, pairs int) error {
	q, err := db.RQL(text, nil)
	if err != nil {
		return err
	}
	ways := [2]jay.Query[jay.Row]{q.NoIndex(), q}
	var took [2][]float64
	var ratios []float64
	for range pairs + 1 {
		var answers [2]string
		for _, i := range rand.Perm(2) {
			begun := time.Now()
			for row, err := range ways[i].Iter(ctx) {
				if err != nil {
					return err
				}
				answers[i] += string(row.JSON)
			}
			took[i] = append(took[i], time.Since(begun).Seconds())
		}
		if answers[0] != answers[1] {
			return fmt.Errorf("the answers differ:\n%.300s\n%.300s", answers[0], answers[1])
		}
		last := len(took[0]) - 1
		ratios = append(ratios, took[1][last]/took[0][last])
	}
	if pairs > 1 { // the first pair finds nothing in memory
		took[0], took[1], ratios = took[0][1:], took[1][1:], ratios[1:]
	}
	fmt.Printf("| %s | %v | %v | %.3f (%.3f–%.3f) |\n", name, duration(took[0]), duration(took[1]), stats.Median(ratios), slices.Min(ratios), slices.Max(ratios))
	return nil
}

func duration(seconds []float64) time.Duration {
	return time.Duration(stats.Median(seconds) * float64(time.Second)).Round(time.Microsecond)
}
