package computed_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	public "github.com/jaydb/jay/jaytest"
	"github.com/jaydb/jay/standby"
)

// fillLoads stores orders, customers and products.
func fillLoads(t testing.TB, db *jay.DB) {
	t.Helper()
	for i := range 6 {
		jaytest.Put(t, db, fmt.Sprint("orders/", i), fmt.Sprintf(`{"Customer":"customers/%d","Total":%d,"Lines":[{"Product":"products/%d","Pieces":2}]}`, i%4, i, i%2), jay.InCollection("Orders"))
	}
	for i := range 3 { // and one that is not there
		jaytest.Put(t, db, fmt.Sprint("customers/", i), fmt.Sprintf(`{"Name":%q,"Rate":%d,"Boss":"customers/0","Address":{"City":"Bern"}}`, []string{"ann", "bob", "cid"}[i], i+1), jay.InCollection("Customers"))
		jaytest.Put(t, db, fmt.Sprint("products/", i), fmt.Sprintf(`{"Name":"p%d","Weight":%d}`, i, i+1), jay.InCollection("Products"))
	}
}

func ensureLoads(t testing.TB, db *jay.DB) {
	t.Helper()
	for _, l := range loading {
		jaytest.Must(t, jay.ComputedOf(db).Ensure(t.Context(), l.of))
	}
	checks.WaitIndexTasks(db)
}

// sameLoads compares the answers of indexes that load with those of the documents.
func sameLoads(t testing.TB, db *jay.DB) {
	t.Helper()
	for _, l := range loading {
		jaytest.Equal(t, rowsOf(t, t.Context(), db, l.kept, true), rowsOf(t, t.Context(), db, l.from, false))
	}
	jaytest.Verify(t, db)
}

// Ensure that a preview, and the list of errors, look at documents with what they load.
func TestLoads_PreviewAndErrors(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	fillLoads(t, db)
	p, err := jay.ComputedOf(db).Preview(ctx, loading[0].of, "orders/1", "orders/3")
	jaytest.Must(t, err)
	text, err := json.Marshal(p.Documents)
	jaytest.Must(t, err)
	jaytest.Equal(t, string(text), `[{"id":"orders/1","collection":"Orders","maps":[{"map":1,"entries":[{"Name":"bob","City":"Bern","Boss":"ann"}]}]},{"id":"orders/3","collection":"Orders","maps":[{"map":1,"entries":[{"Name":null,"City":null,"Boss":null}]}]}]`)

	c := jay.Computed{Name: "Rates", Maps: []index.Map{{Collection: "Orders", Select: []index.Member{{Name: "R", Expression: "Total / load(Customer).Rate"}}}}}
	jaytest.Must(t, jay.ComputedOf(db).Ensure(ctx, c))
	jaytest.Put(t, db, "customers/1", `{"Name":"bob","Rate":0}`)
	jaytest.Put(t, db, "customers/2", `{"Name":"cid","Rate":"x"}`)
	list, err := jay.ComputedOf(db).Errors(ctx, "Rates", 0)
	jaytest.Must(t, err)
	reasons := ""
	for _, f := range list {
		reasons += f.ID + " " + f.Reason + "\n"
	}
	jaytest.Equal(t, reasons, "orders/1 /: a division by zero\norders/2 /: a number is wanted, not the text \"x\"\norders/5 /: a division by zero\n")
}

// Ensure that a backup that is restored and a repaired copy have the entries and the references, and go on.
func TestLoads_RestoreAndRepair(t *testing.T) {
	ctx, dir := t.Context(), filepath.Join(t.TempDir(), "db")
	db := jaytest.Open(t, dir, nil)
	fillLoads(t, db)
	ensureLoads(t, db)
	for _, copied := range copiesOf(t, db, dir) {
		db := jaytest.Open(t, copied, nil)
		checks.WaitIndexTasks(db)
		sameLoads(t, db)
		jaytest.Put(t, db, "customers/1", `{"Name":"ann","Rate":7}`)
		jaytest.Must(t, db.Delete(ctx, "products/1"))
		jaytest.Put(t, db, "customers/3", `{"Name":"dan","Rate":2}`, jay.InCollection("Customers"))
		sameLoads(t, db)
		jaytest.Close(t, db)
	}
}

// Ensure that a change by query whose condition loads a document that has expired, and is not deleted, is no conflict.
func TestLoads_ChangesOfExpired(t *testing.T) {
	defer checks.NoSweeper()() // so what has expired stays
	clock := jaytest.NewClock()
	db := jaytest.Memory(t, &jay.Options{ExactExpiry: true, Now: clock.Now})
	jaytest.Put(t, db, "orders/1", `{"Customer":"customers/1"}`, jay.InCollection("Orders"))
	jaytest.Put(t, db, "customers/1", `{"Name":"bob"}`, jay.ExpiresAt(clock.Now().Add(time.Minute)))
	q, err := db.RQL("from Orders where load(Customer).Name = 'bob'", nil)
	jaytest.Must(t, err)
	m, err := q.Matcher()
	jaytest.Must(t, err)
	order, err := db.Get(t.Context(), "orders/1")
	jaytest.Must(t, err)
	clock.Advance(2 * time.Minute)
	jaytest.Must(t, db.Update(t.Context(), func(tx *jay.Tx) error {
		matches, err := m.MatchIn(t.Context(), tx, order)
		if !matches {
			t.Error("a document that has expired is not loaded")
		}
		jaytest.Must(t, err)
		return tx.Delete(t.Context(), "orders/1")
	}))
}

// Ensure that changes by query go by what documents load when they are changed: they join the read set of the transaction, so that it is in conflict if they change.
func TestLoads_Changes(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	fillLoads(t, db)
	ensureLoads(t, db)
	q, err := db.RQL("from Orders where load(Customer).Name = 'bob' and load(load(Customer).Boss).Name = 'ann'", nil)
	jaytest.Must(t, err)
	m, err := q.Matcher()
	jaytest.Must(t, err)
	order, err := db.Get(ctx, "orders/1")
	jaytest.Must(t, err)
	if _, err := m.Match(ctx, order); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("a document by itself: got %v", err)
	}
	for _, change := range []func(){
		func() { jaytest.Put(t, db, "customers/1", `{"Name":"bob","Rate":3,"Boss":"customers/0"}`) },
		func() { jaytest.Must(t, db.Delete(ctx, "customers/0")) },
	} {
		err := db.Update(ctx, func(tx *jay.Tx) error {
			matches, err := m.MatchIn(ctx, tx, order)
			if err != nil || !matches {
				t.Errorf("got %v, %v", matches, err)
			}
			change()
			_, err = tx.Put(ctx, "others/1", json.RawMessage(`{}`))
			return err
		})
		if !errors.Is(err, jay.ErrConflict) {
			t.Errorf("a loaded document has changed: got %v", err)
		}
	}
	jaytest.Must(t, db.Update(ctx, func(tx *jay.Tx) error { // its own writes
		if _, err := tx.Put(ctx, "customers/0", json.RawMessage(`{"Name":"ann"}`)); err != nil {
			return err
		}
		matches, err := m.MatchIn(ctx, tx, order)
		if !matches {
			t.Error("the transaction does not see what it has written")
		}
		if err := tx.Delete(ctx, "customers/1"); err != nil {
			return err
		}
		if gone, err := m.MatchIn(ctx, tx, order); gone || err != nil {
			t.Errorf("a document that the transaction has deleted is loaded: %v", err)
		}
		return err
	}))
	jaytest.Put(t, db, "customers/1", `{"Name":"bob","Boss":"customers/0"}`, jay.InCollection("Customers"))
	done, err := q.Delete(ctx)
	jaytest.Must(t, err)
	jaytest.Equal(t, done.Documents, int64(2))
	sameLoads(t, db)
	text := "from Orders as o load o.Customer as c where c.Name = 'cid' order by c.Name, Total select { T: o.Total, Name: c.Name }"
	jaytest.Equal(t, fmt.Sprint(jaytest.Rows(t, db, text)), `[{"T":2,"Name":"cid"}]`)
	q, err = db.RQL(text, nil)
	jaytest.Must(t, err)
	if again, err := db.RQL(q.String(), nil); err != nil || again.String() != q.String() {
		t.Errorf("%s is read again as %s: %v", q, again, err)
	}
	jaytest.Equal(t, fmt.Sprint(jaytest.Rows(t, db, "from Orders as o load o.Customer as c where not exists(o.c) select { T: o.Total } limit 1")), `[{"T":0}]`)
}

// Ensure that a query whose condition an index decides, and one that looks at the documents, answer with documents as they are stored.
func TestLoads_AnswersAsStored(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	fillLoads(t, db)
	jaytest.Must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"load(Customer).Name"}}))
	for _, text := range []string{
		"from Orders where load(Customer).Name = 'bob' order by id()",
		"from Orders where load(Customer).Name = 'bob' order by load(Customer).Rate, id()",
		"from Orders use no index where load(Customer).Name = 'bob' order by id()",
		"from Orders where load(Customer).Name in ('bob', 'none') and Total > 0 order by id() include Customer",
	} {
		q, err := db.RQL(text, nil)
		jaytest.Must(t, err)
		rows, err := q.All(ctx)
		jaytest.Must(t, err)
		jaytest.Equal(t, len(rows), 2)
		for _, row := range rows {
			stored, err := db.Get(ctx, row.Document.ID())
			jaytest.Must(t, err)
			if string(row.Document.Body()) != string(stored.Body()) {
				t.Errorf("%s: got %s, stored %s", text, row.Document.Body(), stored.Body())
			}
			for _, other := range row.Included {
				stored, err := db.Get(ctx, other.ID())
				jaytest.Must(t, err)
				jaytest.Equal(t, string(other.Body()), string(stored.Body()))
			}
		}
	}
}

// Ensure that renames, of the collection of an index and of that of what it loads, change no answer.
func TestLoads_Rename(t *testing.T) {
	ctx, db := t.Context(), jaytest.Memory(t, nil)
	fillLoads(t, db)
	ensureLoads(t, db)
	was := rowsOf(t, ctx, db, loading[0].kept, true)
	for _, names := range [][2]string{{"Customers", "People"}, {"Orders", "Sales"}} {
		_, err := db.RenameCollection(ctx, names[0], names[1])
		jaytest.Must(t, err)
	}
	checks.WaitIndexTasks(db)
	jaytest.Equal(t, rowsOf(t, ctx, db, loading[0].kept, true), was)
	jaytest.Put(t, db, "customers/1", `{"Name":"ann","Rate":7}`)
	jaytest.Equal(t, rowsOf(t, ctx, db, "from index 'ByName' where Name = 'ann' order by id() select id() as id", true), `{"id":"orders/0"}{"id":"orders/1"}{"id":"orders/4"}{"id":"orders/5"}`)
	jaytest.Verify(t, db)
}

// Ensure that whenever the power goes, while documents that load and that are loaded change, and while the index is built, the next process has the
// entries of its documents.
func TestLoads_PowerCut(t *testing.T) {
	cuts := public.EveryPowerCut(t, nil, func(db *public.DB) { fillLoads(t, db.DB) }, func(db *public.DB) {
		ctx := t.Context()
		r := rand.New(rand.NewPCG(35, 0))
		_ = jay.ComputedOf(db.DB).Ensure(ctx, loading[1].of) // the power goes, after which there are errors
		for i := range 8 {
			_, _ = db.Put(ctx, fmt.Sprint("customers/", r.IntN(4)), json.RawMessage(fmt.Sprintf(`{"Rate":%d,"Address":{"City":"C%d"}}`, i, i%2)), jay.InCollection("Customers"))
			_, _ = db.Put(ctx, fmt.Sprint("orders/", r.IntN(6)), json.RawMessage(fmt.Sprintf(`{"Customer":"customers/%d","Total":2}`, r.IntN(4))), jay.InCollection("Orders"))
			if i == 4 {
				_ = db.Delete(ctx, "customers/0")
			}
		}
	}, func(db *public.DB) {
		checks.WaitIndexTasks(db.DB)
		jaytest.Verify(t, db.DB)
		list, err := jay.ComputedOf(db.DB).List(t.Context())
		jaytest.Must(t, err)
		if len(list) == 1 {
			jaytest.Equal(t, rowsOf(t, t.Context(), db, loading[1].kept, true), rowsOf(t, t.Context(), db, loading[1].from, false))
		}
	})
	if cuts < 10 {
		t.Errorf("%d power failures, of too few", cuts)
	}
}

// Ensure that of two processes on one store, one of which writes what the documents of the other load, none misses the other.
func TestLoads_Shared(t *testing.T) {
	ctx := t.Context()
	dbs := twoProcesses(t)
	fillLoads(t, dbs[0])
	ensureLoads(t, dbs[1])
	var writers sync.WaitGroup
	for i, db := range dbs {
		for w := range 2 {
			writers.Go(func() {
				for n := range 200 {
					id, body, in := fmt.Sprint("customers/", n%4), fmt.Sprintf(`{"Name":"%d-%d","Rate":%d,"Address":{"City":"C%d"}}`, i, n, n, n%2), "Customers"
					if w == 1 {
						id, body, in = fmt.Sprint("orders/", n%6), fmt.Sprintf(`{"Customer":"customers/%d","Total":%d,"Lines":[{"Product":"products/%d","Pieces":%d}]}`, (n+i)%4, n, n%3, i), "Orders"
					}
					if _, err := db.Put(ctx, id, json.RawMessage(body), jay.InCollection(in)); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	writers.Wait()
	for _, db := range dbs {
		sameLoads(t, db)
	}
}

// Ensure that a standby has the entries, though its source changes only what is loaded, and that the database it becomes goes on.
func TestLoads_Standby(t *testing.T) {
	ctx := t.Context()
	source, copied := jaytest.Memory(t, nil), filepath.Join(t.TempDir(), "copy")
	fillLoads(t, source)
	s, err := standby.Open(copied, standby.From(source), standby.Options{Database: &jay.Options{NoLook: true}, Retry: 100 * time.Millisecond})
	jaytest.Must(t, err)
	ensureLoads(t, source)
	jaytest.Put(t, source, "customers/2", `{"Name":"ann","Rate":5}`)
	want, kept := "", []string(nil)
	for _, l := range loading {
		want += rowsOf(t, ctx, source, l.kept, true)
		kept = append(kept, l.kept)
	}
	waitFor(t, s, want, kept...)
	promoted := promote(t, s, source, copied)
	defer jaytest.Close(t, promoted)
	jaytest.Put(t, promoted, "customers/1", `{"Name":"ann","Rate":7}`)
	sameLoads(t, promoted)
}
