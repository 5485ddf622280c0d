package computed_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/standbytest"
	public "github.com/jaydb/jay/jaytest"
	"github.com/jaydb/jay/standby"
)

// byLine is an index of elements whose groups have ends.
func byLine() jay.Computed {
	return jay.Computed{
		Name: "Line",
		Maps: []index.Map{{Collection: "Orders", Each: "Lines", As: "line", Select: []index.Member{{Name: "Product", Expression: "line.Product"}, {Name: "Pieces", Expression: "line.Pieces"}}}},
		Reduce: &index.Reduce{GroupBy: []string{"Product"}, Select: []index.Member{
			{Name: "Product"}, {Name: "Least", Expression: "min(Pieces)"}, {Name: "Last", Expression: "last(Product order by Pieces)"}, {Name: "Kinds", Expression: "count(distinct Pieces)"},
		}},
	}
}

const fromLine = "from index 'Line' order by Product"

// fillSplit stores orders, for one of which the function fails.
func fillSplit(t testing.TB, db *jay.DB) {
	t.Helper()
	for i := range 8 {
		jaytest.Put(t, db, fmt.Sprint("orders/", i), splitOrder(i), jay.InCollection("Orders"))
	}
	jaytest.Put(t, db, "orders/fails", `{"Fails":"reason"}`, jay.InCollection("Orders"))
}

func splitOrder(i int) string {
	return fmt.Sprintf(`{"Lines":[{"Product":"p%d","Pieces":%d},{"Product":"none","Pieces":1},{"Product":"p1","Pieces":%d}]}`, i%3, i, i%4)
}

// sameSplit compares what the parts of both indexes answer with what a scan answers, in which the function of this version is called, and returns
// the answers.
func sameSplit(t testing.TB, db *jay.DB, version string) string {
	t.Helper()
	ctx := t.Context()
	split := rowsOf(t, ctx, db, fromSplit, true)
	jaytest.Equal(t, split, rowsOf(t, ctx, db, fmt.Sprintf(scanSplit, version), false))
	line := rowsOf(t, ctx, db, fromLine, true)
	jaytest.Equal(t, line, rowsOf(t, ctx, db, strings.Replace(fromLine, " order", " use no index order", 1), false))
	return split + line
}

// ensureSplit declares both indexes.
func ensureSplit(t testing.TB, db *jay.DB, version string) {
	t.Helper()
	jaytest.Must(t, jay.ComputedOf(db).Ensure(t.Context(), bySplit(version), jay.ReplaceIndex()))
	jaytest.Must(t, jay.ComputedOf(db).Ensure(t.Context(), byLine()))
	checks.WaitIndexTasks(db)
}

// isMissing reports whether err is the refusal of a program that has not registered the function, and names it.
func isMissing(err error) bool {
	var missing *jay.FunctionError
	return errors.As(err, &missing) && missing.Function == "orders/split" && missing.Version == "1" && strings.Contains(err.Error(), `"orders/split" in version "1"`)
}

// Ensure that renames keep the answers of functions and of ends at each moment, that a program without the function renames and drops nothing, and that a
// dropped collection takes the indexes with it.
func TestFunctions_Rename(t *testing.T) {
	ctx, dir := t.Context(), t.TempDir()
	undo := register(t, "1", 1)
	db := jaytest.Open(t, dir, nil)
	fillSplit(t, db)
	ensureSplit(t, db, "1")
	want := sameSplit(t, db, "1")
	answers := func() string { return rowsOf(t, ctx, db, fromSplit, false) + rowsOf(t, ctx, db, fromLine, false) }
	for _, names := range [][2]string{{"Orders", "Sales"}, {"Sales", "Orders"}} {
		_, err := db.RenameCollection(ctx, names[0], names[1], jay.CollectionProgress(func(int64) { jaytest.Equal(t, answers(), want) }))
		jaytest.Must(t, err)
		checks.WaitIndexTasks(db)
		jaytest.Equal(t, rowsOf(t, ctx, db, fromSplit, true)+rowsOf(t, ctx, db, fromLine, true), want)
		jaytest.Verify(t, db)
	}
	jaytest.Close(t, db)
	undo()

	db = jaytest.Open(t, dir, nil)
	if _, err := db.RenameCollection(ctx, "Orders", "Sales"); !isMissing(err) {
		t.Errorf("a rename without the function: got %v", err)
	}
	if _, err := db.DropCollection(ctx, "Orders"); !isMissing(err) {
		t.Errorf("a drop without the function: got %v", err)
	}
	jaytest.Equal(t, len(jaytest.Rows(t, db, "from Orders")), 9)
	jaytest.Equal(t, strings.Contains(fmt.Sprint(partsOf(t, db)), "Sales"), false) // nothing has begun
	jaytest.Close(t, db)

	defer register(t, "1", 1)()
	db = jaytest.Open(t, dir, nil)
	defer jaytest.Close(t, db)
	checks.WaitIndexTasks(db)
	jaytest.Equal(t, sameSplit(t, db, "1"), want)
	_, err := db.DropCollection(ctx, "Orders")
	jaytest.Must(t, err)
	checks.WaitIndexTasks(db)
	jaytest.Equal(t, len(partsOf(t, db)), 0)
	jaytest.Verify(t, db)
}

// Ensure that a standby whose program has not registered the function follows, and answers what needs no function; and that the database it becomes refuses
// writes into the collection until a program has the function, which then goes on.
func TestFunctions_Standby(t *testing.T) {
	ctx := t.Context()
	copied, switched := filepath.Join(t.TempDir(), "copy"), new(standbytest.Switch)
	source := jaytest.Memory(t, nil)
	s, err := standby.Open(copied, switched, standby.Options{Database: &jay.Options{NoLook: true}, Retry: 20 * time.Millisecond})
	jaytest.Must(t, err)
	want := ""
	for round := range 3 { // the source has the function while it writes, the standby follows without
		undo := register(t, "1", 1)
		if round == 0 {
			fillSplit(t, source)
			ensureSplit(t, source, "1")
		}
		jaytest.Put(t, source, "orders/more", splitOrder(5+round), jay.InCollection("Orders"))
		jaytest.Must(t, source.Delete(ctx, fmt.Sprint("orders/", round)))
		want = sameSplit(t, source, "1")
		line := rowsOf(t, ctx, source, fromLine, true)
		undo()
		switched.Set(standby.From(source))
		waitFor(t, s, line, fromLine)
		switched.Set(nil)
	}
	db, err := s.DB(ctx)
	jaytest.Must(t, err)
	q, err := db.RQL(fromSplit, nil)
	jaytest.Must(t, err)
	if _, err := q.All(ctx); !errors.Is(err, jay.ErrQuery) || !strings.Contains(err.Error(), "function('orders/split', '1')") {
		t.Errorf("a query of the function: got %v", err)
	}

	promoted := promote(t, s, source, copied)
	if _, err := promoted.Put(ctx, "orders/1", json.RawMessage(`{}`), jay.InCollection("Orders")); !isMissing(err) {
		t.Errorf("a write without the function: got %v", err)
	}
	jaytest.Equal(t, len(jaytest.Rows(t, promoted, "from Orders")), 7)
	jaytest.Close(t, promoted)
	defer register(t, "1", 1)()
	promoted = jaytest.Open(t, copied, nil)
	defer jaytest.Close(t, promoted)
	checks.WaitIndexTasks(promoted)
	jaytest.Equal(t, sameSplit(t, promoted, "1"), want)
	fillSplit(t, promoted)
	sameSplit(t, promoted, "1")
	jaytest.Verify(t, promoted)
}

// Ensure that two processes on one store, which write at once while one of them replaces the function by another version, have right answers of both indexes.
func TestFunctions_Shared(t *testing.T) {
	ctx := t.Context()
	undo := register(t, "1", 1)
	defer func() { undo() }()
	defer register(t, "2", 10)()
	dbs := twoProcesses(t)
	fillSplit(t, dbs[0])
	ensureSplit(t, dbs[1], "1")
	var writers sync.WaitGroup
	for _, db := range dbs {
		writers.Go(func() {
			for n := range 150 {
				if _, err := db.Put(ctx, fmt.Sprint("orders/", n%8), json.RawMessage(splitOrder(n)), jay.InCollection("Orders")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	jaytest.Must(t, jay.ComputedOf(dbs[0]).Ensure(ctx, bySplit("2"), jay.ReplaceIndex()))
	writers.Wait()
	for _, db := range dbs {
		checks.WaitIndexTasks(db)
	}
	first := sameSplit(t, dbs[0], "2")
	jaytest.Equal(t, sameSplit(t, dbs[1], "2"), first)
	jaytest.Verify(t, dbs[1])
	undo() // nothing needs the first version any more
	undo = func() {}
	jaytest.Put(t, dbs[1], "orders/1", splitOrder(77), jay.InCollection("Orders"))
	jaytest.Equal(t, sameSplit(t, dbs[0], "2"), sameSplit(t, dbs[1], "2"))
}

// Ensure that a program without the function restores backups, a full one and those behind it, and reads and backs up what it has restored; and that one with
// the function builds the index there.
func TestFunctions_Restore(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "db")
	undo := register(t, "1", 1)
	db := jaytest.Open(t, dir, nil)
	fillSplit(t, db)
	ensureSplit(t, db, "1")
	want := sameSplit(t, db, "1")
	jaytest.Close(t, db)
	undo()

	db = jaytest.Open(t, dir, nil)
	for _, copied := range copiesOf(t, db, dir) {
		db := jaytest.Open(t, copied, nil)
		checks.WaitIndexTasks(db)
		if _, err := db.Put(ctx, "orders/x", json.RawMessage(`{}`), jay.InCollection("Orders")); !isMissing(err) {
			t.Errorf("a write without the function: got %v", err)
		}
		err := db.Update(ctx, func(tx *jay.Tx) error { return tx.Delete(ctx, "orders/1") })
		if !isMissing(err) {
			t.Errorf("a transaction without the function: got %v", err)
		}
		jaytest.Equal(t, len(jaytest.Rows(t, db, "from Orders")), 9)
		rowsOf(t, ctx, db, fromLine, true)
		report, err := db.Verify(ctx, nil)
		if err != nil || report.Found != 0 || !strings.Contains(strings.Join(report.NotCompared, "; "), "orders/split") {
			t.Errorf("got %+v, %v", report, err)
		}
		_, stream := jaytest.BackUp(t, db)
		jaytest.Close(t, db)
		again := copied + ".again"
		_, err = jay.Restore(ctx, again, jay.RestoreOptions{CopyTag: "D"}, bytes.NewReader(stream))
		jaytest.Must(t, err)

		undo := register(t, "1", 1)
		for _, copied := range []string{copied, again} {
			db = jaytest.Open(t, copied, nil)
			checks.WaitIndexTasks(db)
			jaytest.Equal(t, sameSplit(t, db, "1"), want)
			jaytest.Put(t, db, "orders/x", splitOrder(9), jay.InCollection("Orders"))
			sameSplit(t, db, "1")
			jaytest.Verify(t, db)
			jaytest.Must(t, checks.Indexes(db))
			jaytest.Close(t, db)
		}
		undo()
	}
}

// Ensure that documents that expire in a program without the function are not shown, and stay until a program has it, which removes them from the index.
func TestFunctions_Expiry(t *testing.T) {
	ctx, dir, clock := t.Context(), t.TempDir(), jaytest.NewClock()
	o := &jay.Options{Now: clock.Now, ExactExpiry: true}
	undo := register(t, "1", 1)
	db := jaytest.Open(t, dir, o)
	fillSplit(t, db)
	ensureSplit(t, db, "1")
	want := sameSplit(t, db, "1")
	for i := range 3 {
		jaytest.Put(t, db, fmt.Sprint("orders/soon", i), splitOrder(i), jay.InCollection("Orders"), jay.ExpiresAt(clock.Now().Add(time.Minute)))
	}
	jaytest.Put(t, db, "others/soon", `{}`, jay.InCollection("Others"), jay.ExpiresAt(clock.Now().Add(time.Hour)))
	jaytest.Close(t, db)
	undo()

	clock.Advance(2 * time.Hour)
	db = jaytest.Open(t, dir, o)
	if _, err := db.Sweep(ctx); err != nil && !isMissing(err) {
		t.Errorf("got %v", err)
	}
	jaytest.Equal(t, len(jaytest.Rows(t, db, "from Orders")), 9)
	if _, err := db.Get(ctx, "others/soon"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	jaytest.Close(t, db)

	defer register(t, "1", 1)()
	db = jaytest.Open(t, dir, o)
	defer jaytest.Close(t, db)
	_, err := db.Sweep(ctx)
	jaytest.Must(t, err)
	jaytest.Equal(t, sameSplit(t, db, "1"), want)
	jaytest.Verify(t, db)
}

// Ensure that a version that is built beside another one, by commits and by tables, has what 8 writers have done meanwhile.
func TestFunctions_Version_Writers(t *testing.T) {
	defer register(t, "1", 1)()
	defer register(t, "2", 10)()
	for _, documents := range []int{1 << 30, 1} { // from which on there are tables
		func() {
			defer checks.SetBuildTables(documents, 64<<10, 16<<10)()
			defer checks.SetBuildChunks(5, 5)()
			ctx, db := t.Context(), jaytest.Memory(t, nil)
			fillSplit(t, db)
			ensureSplit(t, db, "1")
			var writers sync.WaitGroup
			for g := range 8 {
				writers.Go(func() {
					for n := range 60 {
						id := fmt.Sprintf("orders/%d-%d", g%4, n%9) // two write each
						if n%5 == 4 {
							if err := db.Delete(ctx, id); err != nil && !errors.Is(err, jay.ErrNotFound) {
								t.Error(err)
							}
							continue
						}
						if _, err := db.Put(ctx, id, json.RawMessage(splitOrder(n)), jay.InCollection("Orders")); err != nil {
							t.Error(err)
						}
					}
				})
			}
			for _, version := range []string{"2", "1", "2"} {
				jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, bySplit(version), jay.ReplaceIndex()))
				_ = rowsOf(t, ctx, db, fromSplit, false)
			}
			writers.Wait()
			checks.WaitIndexTasks(db)
			sameSplit(t, db, "2")
			jaytest.Verify(t, db)
			jaytest.Must(t, checks.Indexes(db))
		}()
	}
}

// Ensure that whenever the power goes while another version is built, by commits and by tables, beside a writer, one of the versions is there with right answers.
func TestFunctions_Version_PowerCut(t *testing.T) {
	defer register(t, "1", 1)()
	defer register(t, "2", 10)()
	for _, documents := range []int{1 << 30, 1} {
		t.Run(fmt.Sprint(documents), func(t *testing.T) {
			defer checks.SetBuildTables(documents, 64<<10, 16<<10)()
			defer checks.SetBuildChunks(3, 3)()
			seen := make(map[string]int)
			cuts := public.EveryPowerCut(t, nil, func(db *public.DB) {
				fillSplit(t, db.DB)
				ensureSplit(t, db.DB, "1")
			}, func(db *public.DB) {
				ctx := t.Context()
				var writer sync.WaitGroup
				writer.Go(func() {
					for i := range 4 {
						_, _ = db.Put(ctx, fmt.Sprint("orders/", 2*i), json.RawMessage(splitOrder(20+i)), jay.InCollection("Orders")) // the power goes
					}
				})
				_ = jay.ComputedOf(db.DB).Ensure(ctx, bySplit("2"), jay.ReplaceIndex())
				writer.Wait()
			}, func(db *public.DB) {
				checks.WaitIndexTasks(db.DB)
				list, err := jay.ComputedOf(db.DB).List(t.Context())
				jaytest.Must(t, err)
				jaytest.Equal(t, len(list), 2)
				for _, info := range list {
					if info.Next != nil || info.State != jay.IndexReady {
						t.Errorf("got %+v", info)
					}
					if info.Name == "Split" {
						sameSplit(t, db.DB, info.Maps[0].Version)
						seen[info.Maps[0].Version]++
					}
				}
				jaytest.Must(t, checks.Indexes(db.DB))
			})
			if cuts < 10 || seen["1"] == 0 || seen["2"] == 0 {
				t.Errorf("%d power failures, versions %v", cuts, seen)
			}
		})
	}
}
