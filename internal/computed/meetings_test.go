package computed_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/memory"
	"github.com/jaydb/jay/storage/storagetest"
)

// stock is an index of two collections, with groups.
func stock() jay.Computed {
	return jay.Computed{
		Name: "Stock",
		Maps: []index.Map{
			{Collection: "Orders", Each: "Lines", As: "line", Select: []index.Member{{Name: "Product", Expression: "line.Product"}, {Name: "N", Expression: "0 - line.N"}}},
			{Collection: "Deliveries", Select: []index.Member{{Name: "Product"}, {Name: "N"}}},
		},
		Reduce: &index.Reduce{GroupBy: []string{"Product"}, Select: []index.Member{{Name: "Product"}, {Name: "N", Expression: "sum(N)"}}},
	}
}

// counted is another declaration of the name, which has a part of stock and a new one.
func counted() jay.Computed {
	c := stock()
	c.Maps = c.Maps[1:]
	c.Reduce = &index.Reduce{GroupBy: []string{"Product"}, Select: []index.Member{{Name: "Product"}, {Name: "N", Expression: "sum(N)"}, {Name: "Times", Expression: "count()"}}}
	return c
}

// latest is an index of deliveries with extremes and values of an order, which ordered indexes keep.
func latest() jay.Computed {
	return jay.Computed{
		Name: "Latest",
		Maps: []index.Map{{Collection: "Deliveries", Select: []index.Member{{Name: "Product"}, {Name: "N"}, {Name: "At", Expression: "N * -1"}}}},
		Reduce: &index.Reduce{GroupBy: []string{"Product"}, Select: []index.Member{
			{Name: "Product"}, {Name: "Times", Expression: "count()"}, {Name: "Last", Expression: "last(N order by At)"}, {Name: "Most", Expression: "max(N)"},
		}},
	}
}

// latestOfFilled is what it says of what fill stores.
const latestOfFilled = `{"Product":"p0","Times":3,"Last":0,"Most":4} {"Product":"p1","Times":3,"Last":1,"Most":5}`

func fill(t testing.TB, db *jay.DB) {
	t.Helper()
	for i := range 6 {
		jaytest.Put(t, db, fmt.Sprint("deliveries/", i), fmt.Sprintf(`{"Product":"p%d","N":%d}`, i%2, i), jay.InCollection("Deliveries"))
		jaytest.Put(t, db, fmt.Sprint("orders/", i), fmt.Sprintf(`{"Lines":[{"Product":"p%d","N":1},{"Product":"p0","N":0.5}]}`, i%3), jay.InCollection("Orders"))
	}
}

const filled = `{"Product":"p0","N":1} {"Product":"p1","N":7} {"Product":"p2","N":-2}`

// says returns the answers of an index, which must be those of the scan.
func says(t testing.TB, db *jay.DB, name string) string {
	t.Helper()
	text := "from index '" + name + "' order by Product"
	kept, plain := jaytest.Rows(t, db, text), jaytest.Rows(t, db, strings.Replace(text, " order", " use no index order", 1))
	if !slices.Equal(kept, plain) {
		t.Errorf("kept %v, scanned %v", kept, plain)
	}
	return strings.Join(kept, " ")
}

// partsOf returns the names of the indexes of a database, with their states.
func partsOf(t testing.TB, db *jay.DB) (all []string) {
	t.Helper()
	infos, err := db.Indexes(t.Context(), "")
	jaytest.Must(t, err)
	for _, ix := range infos {
		all = append(all, fmt.Sprintf("%s %s", ix.Collection, ix.State))
	}
	return all
}

// Ensure that a loss of power at any sync of declaring, replacing and dropping leaves a state from which Open goes on: one of the two declarations
// or none, with its parts and no others, and right answers.
func TestComputed_Crash_AtEachSync(t *testing.T) {
	ctx := t.Context()
	for n := 1; ; n++ {
		disk := storagetest.NewDisk()
		db := jaytest.OnDisk(t, disk, jay.Options{})
		fill(t, db)
		cut := disk.CutPower(n, 50, rand.New(rand.NewPCG(uint64(n), 163)))
		indexes := jay.ComputedOf(db)
		jaytest.Must(t, indexes.Ensure(ctx, stock()))
		jaytest.Must(t, indexes.Ensure(ctx, counted(), jay.ReplaceIndex()))
		jaytest.Must(t, indexes.Drop(ctx, "stock"))
		jaytest.Close(t, db)
		if !cut.Happened() {
			if n < 6 {
				t.Errorf("only %d syncs", n)
			}
			return
		}
		again := jaytest.OnDisk(t, cut.Disk(), jay.Options{})
		checks.WaitIndexTasks(again)
		list, err := jay.ComputedOf(again).List(ctx)
		jaytest.Must(t, err)
		parts := partsOf(t, again)
		switch {
		case len(list) == 0:
			jaytest.Equal(t, len(parts), 0)
		case len(list[0].Maps) == 2:
			jaytest.Equal(t, says(t, again, "stock"), filled)
			jaytest.Equal(t, fmt.Sprint(parts), "[Deliveries ready Orders ready]")
		default:
			jaytest.Equal(t, says(t, again, "stock"), `{"Product":"p0","N":6,"Times":3} {"Product":"p1","N":9,"Times":3}`)
			jaytest.Equal(t, fmt.Sprint(parts), "[Deliveries ready]")
		}
		for _, info := range list {
			if info.Next != nil || info.State != jay.IndexReady {
				t.Errorf("cut %d: got %+v", n, info)
			}
		}
		jaytest.Verify(t, again)
		jaytest.Must(t, checks.Indexes(again))
		jaytest.Close(t, again)
	}
}

// Ensure that the maps of a collection follow its new name, that each document counts once at each moment of a rename, and that the
// opposite rename goes back.
func TestComputed_Rename(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	fill(t, db)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, stock()))
	for _, names := range [][2]string{{"Deliveries", "Received"}, {"Orders", "Sales"}, {"Received", "Deliveries"}} {
		_, err := db.RenameCollection(ctx, names[0], names[1], jay.CollectionProgress(func(int64) { jaytest.Equal(t, says(t, db, "Stock"), filled) }))
		jaytest.Must(t, err)
		jaytest.Equal(t, says(t, db, "Stock"), filled)
	}
	checks.WaitIndexTasks(db)
	jaytest.Equal(t, fmt.Sprint(partsOf(t, db)), "[Deliveries ready Sales ready]")
	jaytest.Verify(t, db)
	if _, err := db.RenameCollection(ctx, "Sales", "Deliveries"); err == nil {
		t.Error("two collections became one")
	}
	_, err := db.DropCollection(ctx, "Deliveries")
	jaytest.Must(t, err)
	if _, err := db.RenameCollection(ctx, "Sales", "Deliveries"); !errors.Is(err, jay.ErrIndexExists) {
		t.Errorf("maps of both collections that differ: got %v", err)
	}
	jaytest.Equal(t, says(t, db, "Stock"), `{"Product":"p0","N":-5} {"Product":"p1","N":-2} {"Product":"p2","N":-2}`)
}

// Ensure that a dropped collection takes the indexes with it that have no map of another one, and no others.
func TestComputed_DropCollection(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	fill(t, db)
	one := counted()
	one.Name = "One"
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, stock()))
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, one))
	_, err := db.DropCollection(ctx, "Deliveries")
	jaytest.Must(t, err)
	list, err := jay.ComputedOf(db).List(ctx)
	jaytest.Must(t, err)
	jaytest.Equal(t, len(list), 1)
	jaytest.Equal(t, list[0].Name, "Stock")
	jaytest.Equal(t, fmt.Sprint(partsOf(t, db)), "[Deliveries ready Orders ready]")
	jaytest.Verify(t, db)
}

// copiesOf closes the database in dir, and returns the directories of one that is restored from its backup, and of one that is repaired.
func copiesOf(t *testing.T, db *jay.DB, dir string) (copies []string) {
	t.Helper()
	restored, repaired := dir+".restored", dir+".repaired"
	_, backup := jaytest.BackUp(t, db)
	jaytest.Close(t, db)
	_, err := jay.Restore(t.Context(), restored, jay.RestoreOptions{CopyTag: "C"}, bytes.NewReader(backup))
	jaytest.Must(t, err)
	_, err = jay.Repair(t.Context(), dir, repaired, nil, nil)
	jaytest.Must(t, err)
	return []string{restored, repaired}
}

// Ensure that a backup that is restored, and a repaired copy, have the index and its parts, and go on.
func TestComputed_RestoreAndRepair(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "db")
	db := jaytest.Open(t, dir, nil)
	fill(t, db)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, stock()))
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, latest()))
	for _, copied := range copiesOf(t, db, dir) {
		db := jaytest.Open(t, copied, nil)
		jaytest.Equal(t, says(t, db, "Stock"), filled)
		jaytest.Equal(t, says(t, db, "Latest"), latestOfFilled)
		_, err := jay.QueryIndex[json.RawMessage](db, "Latest").NoScan().All(ctx)
		jaytest.Must(t, err)
		jaytest.Equal(t, fmt.Sprint(partsOf(t, db)), "[Deliveries ready Deliveries ready Deliveries ready Deliveries ready Orders ready]")
		jaytest.Must(t, jay.ComputedOf(db).Drop(ctx, "Latest"))
		jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, counted(), jay.ReplaceIndex()))
		checks.WaitIndexTasks(db)
		jaytest.Equal(t, fmt.Sprint(partsOf(t, db)), "[Deliveries ready]")
		jaytest.Verify(t, db)
		jaytest.Close(t, db)
	}
}

// Ensure that documents that refuse a part take a new declaration with it, and leave the one that it was to replace.
func TestComputed_RefusedByDocuments(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	fill(t, db)
	jaytest.Put(t, db, "deliveries/x", `{"Product":"p9","N":1,"By":0}`, jay.InCollection("Deliveries"))
	strict := counted()
	strict.Strict = true
	strict.Maps[0].Select[1].Expression = "N / By"
	if err := jay.ComputedOf(db).Ensure(ctx, strict); !errors.Is(err, jay.ErrInvalidDocument) {
		t.Errorf("got %v", err)
	}
	checks.WaitIndexTasks(db)
	jaytest.Equal(t, len(partsOf(t, db)), 0)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, counted()))
	if err := jay.ComputedOf(db).Ensure(ctx, strict, jay.ReplaceIndex()); !errors.Is(err, jay.ErrInvalidDocument) {
		t.Errorf("got %v", err)
	}
	checks.WaitIndexTasks(db)
	jaytest.Equal(t, fmt.Sprint(partsOf(t, db)), "[Deliveries ready]")
	jaytest.Equal(t, says(t, db, "Stock"), `{"Product":"p0","N":6,"Times":3} {"Product":"p1","N":9,"Times":3} {"Product":"p9","N":1,"Times":1}`)
	jaytest.Must(t, db.Delete(ctx, "deliveries/x"))
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, strict, jay.ReplaceIndex()))
	if _, err := db.Put(ctx, "deliveries/y", json.RawMessage(`{"Product":"a","N":1,"By":0}`), jay.InCollection("Deliveries")); !errors.Is(err, jay.ErrInvalidDocument) {
		t.Errorf("a document that fails: got %v", err)
	}
}

// twoProcesses returns two databases on one store, which the end of the test closes.
func twoProcesses(t *testing.T) (dbs []*jay.DB) {
	t.Helper()
	driver := &memory.Driver{Shared: true}
	for range 2 {
		db := jaytest.Open(t, "db", &jay.Options{Engine: driver})
		t.Cleanup(func() { jaytest.Close(t, db) })
		dbs = append(dbs, db)
	}
	return dbs
}

// Ensure that several processes on one store declare an index once, and that each sees the answers.
func TestComputed_Shared(t *testing.T) {
	ctx := t.Context()
	dbs := twoProcesses(t)
	fill(t, dbs[0])
	jaytest.Must(t, jay.ComputedOf(dbs[0]).Ensure(ctx, stock()))
	jaytest.Must(t, jay.ComputedOf(dbs[1]).Ensure(ctx, stock()))
	p, err := jay.ComputedOf(dbs[1]).Preview(ctx, latest())
	jaytest.Must(t, err)
	jaytest.Equal(t, len(p.Results), 2)
	jaytest.Must(t, jay.ComputedOf(dbs[1]).Ensure(ctx, latest()))
	for _, db := range dbs {
		jaytest.Equal(t, says(t, db, "Latest"), latestOfFilled)
		list, err := jay.ComputedOf(db).Errors(ctx, "Latest", 0)
		jaytest.Must(t, err)
		jaytest.Equal(t, len(list), 0)
	}
	jaytest.Must(t, jay.ComputedOf(dbs[0]).Drop(ctx, "Latest"))
	for _, db := range dbs {
		jaytest.Equal(t, says(t, db, "Stock"), filled)
		jaytest.Equal(t, fmt.Sprint(partsOf(t, db)), "[Deliveries ready Orders ready]")
	}
	jaytest.Must(t, jay.ComputedOf(dbs[1]).Drop(ctx, "Stock"))
	if _, err := jay.QueryIndex[json.RawMessage](dbs[0], "Stock").All(ctx); !errors.Is(err, jay.ErrNoIndex) {
		t.Errorf("got %v", err)
	}
}

// Ensure that 64 writers and replacements of the index do not hinder one another, and that the numbers are right.
func TestComputed_Writers(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, stock()))
	var writers sync.WaitGroup
	for g := range 64 {
		writers.Go(func() {
			for i := range 20 {
				jaytest.Put(t, db, fmt.Sprintf("deliveries/%d-%d", g, i%7), fmt.Sprintf(`{"Product":"p%d","N":%d.25}`, i%3, g), jay.InCollection("Deliveries"))
			}
		})
	}
	for i := range 6 {
		c := stock()
		if i%2 == 0 {
			c = counted()
		}
		jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, c, jay.ReplaceIndex()))
		if _, err := jay.QueryIndex[json.RawMessage](db, "Stock").NoScan().Count(ctx); err != nil && !errors.Is(err, jay.ErrNoIndex) {
			t.Error(err)
		}
	}
	writers.Wait()
	says(t, db, "Stock")
	checks.WaitIndexTasks(db)
	jaytest.Verify(t, db)
}

// Ensure that a loss of power at any sync of a rename leaves each document counted once, and parts from which the index answers; and that the
// rename goes on where it was, after which the index is of the new name only.
func TestComputed_Rename_Crash(t *testing.T) {
	ctx := t.Context()
	declared := stock()
	declared.Maps[1].Select = append(declared.Maps[1].Select, index.Member{Name: "At", Expression: "N"})
	declared.Maps = declared.Maps[1:]
	declared.Reduce.Select = append(declared.Reduce.Select, index.Member{Name: "Last", Expression: "last(Product order by At)"}, index.Member{Name: "Most", Expression: "max(N)"})
	const want = `{"Product":"p0","N":6,"Last":"p0","Most":4} {"Product":"p1","N":9,"Last":"p1","Most":5}`
	for n := 1; ; n++ {
		disk := storagetest.NewDisk()
		db := jaytest.OnDisk(t, disk, jay.Options{})
		fill(t, db)
		jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, declared))
		jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, jay.Computed{Name: "Both", Maps: stock().Maps, Reduce: stock().Reduce}))
		cut := disk.CutPower(n, 50, rand.New(rand.NewPCG(uint64(n), 176)))
		_, err := db.RenameCollection(ctx, "Deliveries", "Received")
		jaytest.Must(t, err)
		jaytest.Close(t, db)
		if !cut.Happened() {
			if n < 6 {
				t.Errorf("only %d syncs", n)
			}
			return
		}
		again := jaytest.OnDisk(t, cut.Disk(), jay.Options{})
		jaytest.Equal(t, says(t, again, "Stock"), want)
		jaytest.Equal(t, says(t, again, "Both"), filled)
		if _, err := again.RenameCollection(ctx, "Deliveries", "Received"); err != nil && !errors.Is(err, jay.ErrNotFound) { // which was done
			t.Errorf("cut %d: %v", n, err)
		}
		checks.WaitIndexTasks(again)
		jaytest.Equal(t, says(t, again, "Stock"), want)
		jaytest.Equal(t, says(t, again, "Both"), filled)
		if got := fmt.Sprint(partsOf(t, again)); strings.Contains(got, "Deliveries") || strings.Contains(got, "building") {
			t.Errorf("cut %d: the parts are %s", n, got)
		}
		jaytest.Verify(t, again)
		jaytest.Must(t, checks.Indexes(again))
		jaytest.Close(t, again)
		if t.Failed() {
			return
		}
	}
}

// Ensure that a computed index that is declared, replaced and dropped leaves no warning in the log.
func TestComputed_NoWarnings(t *testing.T) {
	ctx := t.Context()
	var log bytes.Buffer
	db, err := jay.Open("db", &jay.Options{Engine: &memory.Driver{}, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	jaytest.Must(t, err)
	fill(t, db)
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, stock()))
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, counted(), jay.ReplaceIndex()))
	jaytest.Must(t, jay.ComputedOf(db).Drop(ctx, "Stock"))
	jaytest.Close(t, db)
	jaytest.Equal(t, log.String(), "")
}

// Ensure that the members of groups do not mix if one map has the same expression for two of them: the order of the maps does not matter.
func TestComputed_EqualMembers(t *testing.T) {
	ctx := t.Context()
	of := func(collection, x, y string) index.Map {
		return index.Map{Collection: collection, Select: []index.Member{{Name: "Y", Expression: y}, {Name: "X", Expression: x}}}
	}
	want := `[{"S":1,"X":1,"Y":1} {"S":2,"X":2,"Y":7} {"S":3,"X":7,"Y":8}]`
	for _, maps := range [][]index.Map{{of("Orders", "A", "A"), of("Others", "A", "B")}, {of("Others", "A", "B"), of("Orders", "A", "A")}} {
		db, err := jay.Open("db", &jay.Options{Engine: &memory.Driver{}})
		jaytest.Must(t, err)
		for id, body := range map[string]string{"Orders/1": `{"A":1}`, "Others/1": `{"A":2,"B":7}`, "Others/2": `{"A":7,"B":8}`} {
			_, err := db.Put(ctx, id, json.RawMessage(body), jay.InCollection(id[:6]))
			jaytest.Must(t, err)
		}
		for i := range maps {
			maps[i].Select = append(maps[i].Select, index.Member{Name: "V", Expression: map[string]string{"Orders": "A", "Others": "if(A = 2, 2, 3)"}[maps[i].Collection]})
		}
		d := jay.Computed{Name: "Pairs", Maps: maps, Reduce: &index.Reduce{GroupBy: []string{"X", "Y"}, Select: []index.Member{{Name: "S", Expression: "sum(V)"}, {Name: "X"}, {Name: "Y"}}}}
		jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, d))
		rows := jaytest.Rows(t, db, "from index 'Pairs' order by X select S, X, Y")
		jaytest.Equal(t, fmt.Sprint(rows), want)
		rows = jaytest.Rows(t, db, "from index 'Pairs' where X = 7 select S, X, Y")
		jaytest.Equal(t, fmt.Sprint(rows), `[{"S":3,"X":7,"Y":8}]`)
		jaytest.Close(t, db)
	}
}

// Ensure that conditions on members that are dates have the same answers, and the same errors, whatever answers them.
func TestComputed_ConditionsOnDates(t *testing.T) {
	ctx := t.Context()
	db, err := jay.Open("db", &jay.Options{Engine: &memory.Driver{}})
	jaytest.Must(t, err)
	defer jaytest.Close(t, db)
	for i := range 4 {
		_, err := db.Put(ctx, fmt.Sprint("events/", i), json.RawMessage(fmt.Sprintf(`{"N":%d,"At":"2026-01-0%dT00:00:00Z","Due":"2026-01-02T01:00:00+01:00"}`, i, i+1)), jay.InCollection("Events"))
		jaytest.Must(t, err)
	}
	members := []index.Member{{Name: "N"}, {Name: "At", Expression: "At as date"}, {Name: "Year", Expression: "year(At)"}, {Name: "Due"}}
	events := index.Map{Collection: "Events", Select: members}
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, jay.Computed{Name: "One", Maps: []index.Map{events}}))
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, jay.Computed{Name: "Two", Maps: []index.Map{events, {Collection: "Others", Select: members}}}))
	for _, row := range []struct{ condition, want string }{
		{"At > '2026-01-03T01:00:00+01:00'", "3"}, // the instant, and not the text
		{"At as date > '2026-01-03T01:00:00+01:00'", "3"},
		{"At > $time", "3"},
		{"At between '2026-01-01T23:00:00-01:00' and '2026-01-03T00:00:00Z'", "1 2"},
		{"At in ('2026-01-01T00:00:00.0Z', '2026-01-04T00:00:00Z')", "0 3"},
		{"not At <= Due", "2 3"},
		{"Year = '2026' and N = 1", "1"},
		{"Year = 2026", "refused"},
		{"Year = 2026 and N > 7", "refused"},
		{"At = 5", "refused"},
		{"At = 'yesterday'", "refused"},
		{"startsWith(At, '2026') and N > 7", "refused"},
	} {
		params := map[string]any{"time": time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)}
		if !strings.Contains(row.condition, "$") {
			params = nil
		}
		for _, name := range []string{"One", "Two"} {
			q, err := db.RQL("from index '"+name+"' where "+row.condition+" order by N select N", params)
			jaytest.Must(t, err)
			for _, q := range []jay.Query[jay.Row]{q, q.NoIndex()} {
				rows, err := q.All(ctx)
				var found []string
				for _, r := range rows {
					found = append(found, strings.Trim(string(r.JSON), `{}"N:`))
				}
				got := strings.Join(found, " ")
				if errors.Is(err, jay.ErrQuery) {
					got = "refused"
				}
				if got != row.want || err != nil && got != "refused" {
					t.Errorf("index %s, %s: got %s, %v, want %s", name, row.condition, got, err, row.want)
				}
				if _, err := q.Count(ctx); errors.Is(err, jay.ErrQuery) != (row.want == "refused") {
					t.Errorf("index %s, %s: Count: %v", name, row.condition, err)
				}
			}
		}
	}
}

// Ensure that an index which is declared while its collection is renamed is of the new one: it was dropped with the old ones, so that a
// unique one refused nothing any more.
func TestRename_IndexDeclaredMeanwhile(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	fill(t, db)
	var once sync.Once
	_, err := db.RenameCollection(ctx, "Deliveries", "Received", jay.CollectionProgress(func(int64) {
		once.Do(func() {
			jaytest.Must(t, db.EnsureIndex(ctx, "Deliveries", jay.Index{Name: "code", Fields: []string{"Code"}, Unique: true, Where: "exists(Code)"}))
		})
	}))
	jaytest.Must(t, err)
	all, err := db.Indexes(ctx, "")
	jaytest.Must(t, err)
	if len(all) != 1 || all[0].Collection != "Received" || all[0].Name != "code" || all[0].State != jay.IndexReady {
		t.Errorf("the indexes are %v", all)
	}
	for i := range 2 {
		_, err = db.Put(ctx, fmt.Sprint("received/", i), []byte(`{"Code":"twice"}`), jay.InCollection("Received"))
	}
	if !errors.Is(err, jay.ErrUnique) {
		t.Errorf("a second document of a code: %v", err)
	}
}

// Ensure that a rename awaits computed indexes of its collections only.
func TestRename_OtherComputedReplaced(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	fill(t, db)
	other := counted() // of Deliveries only
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, other))
	building, release, restore := checks.HoldBuild()
	defer restore()
	defer release()
	next := counted()
	next.Maps[0].Where = "N > 0"
	ensured := make(chan error, 1)
	go func() { ensured <- jay.ComputedOf(db).Ensure(ctx, next, jay.ReplaceIndex()) }()
	<-building
	_, err := db.RenameCollection(ctx, "Orders", "Sales") // would wait for the build, which is held
	jaytest.Must(t, err)
	release()
	jaytest.Must(t, <-ensured)
	checks.WaitIndexTasks(db) // of the replaced parts, which look at the hook that restore sets back
}

// Ensure that a rename which a power failure has interrupted can go back by exchanged names, wherever it was: with its indexes and its
// computed index.
func TestRename_GoesBack(t *testing.T) {
	ctx := t.Context()
	back := 0
	for n := 1; ; n++ {
		disk := storagetest.NewDisk()
		db := jaytest.OnDisk(t, disk, jay.Options{})
		fill(t, db)
		jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, counted()))
		jaytest.Must(t, db.EnsureIndex(ctx, "Deliveries", jay.Index{Name: "n", Fields: []string{"N"}}))
		cut := disk.CutPower(n, 50, rand.New(rand.NewPCG(uint64(n), 176)))
		_, err := db.RenameCollection(ctx, "Deliveries", "Received")
		jaytest.Must(t, err)
		jaytest.Close(t, db)
		if !cut.Happened() {
			break
		}
		again := jaytest.OnDisk(t, cut.Disk(), jay.Options{})
		checks.WaitIndexTasks(again)
		switch _, err = again.RenameCollection(ctx, "Received", "Deliveries"); {
		case err == nil:
			back++
		case !errors.Is(err, jay.ErrNotFound): // it had not begun
			t.Errorf("cut %d: going back: %v", n, err)
		}
		checks.WaitIndexTasks(again)
		if got := fmt.Sprint(partsOf(t, again)); strings.Contains(got, "Received") {
			t.Errorf("cut %d: after going back the indexes are %s", n, got)
		}
		if err := jay.ComputedOf(again).Ensure(ctx, counted()); err != nil {
			t.Errorf("cut %d: the program declares its index again: %v", n, err)
		}
		jaytest.Close(t, again)
	}
	if back < 5 {
		t.Errorf("%d renames went back", back)
	}
}
