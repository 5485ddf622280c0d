package jay_test

import (
	"errors"
	"testing"

	"github.com/jaydb/jay"
)

type customer struct {
	ID   string
	Name string
}

type line struct {
	Product string
	Qty     int
}

type order struct {
	ID       string
	Customer string
	Lines    []line
}

type invoice struct {
	ID    string
	Order string
}

// Ensure that a session gives IDs at once, keeps one entity for a document,
// and saves what was changed and nothing else.
func TestSession(t *testing.T) {
	db := memory(t, nil)
	s := db.OpenSession()
	ann := &customer{Name: "Ann"}
	must(t, s.Store(ctx, ann))
	if ann.ID != "customers/1-A" {
		t.Fatalf("id after Store: %q", ann.ID)
	}
	o := &order{Customer: ann.ID, Lines: []line{{"products/1", 2}}}
	must(t, s.Store(ctx, o))
	inv := &invoice{ID: "invoices|", Order: o.ID}
	must(t, s.Store(ctx, inv))
	if _, err := db.Get(ctx, ann.ID); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("before SaveChanges: %v", err)
	}
	must(t, s.SaveChanges(ctx))
	if inv.ID != "invoices/1" {
		t.Errorf("identity after SaveChanges: %q", inv.ID)
	}
	before := lastEtag(t, db)
	must(t, s.SaveChanges(ctx))
	if after := lastEtag(t, db); after != before {
		t.Errorf("a save without changes wrote: etag %d, then %d", before, after)
	}

	again, err := jay.Load[customer](ctx, s, "CUSTOMERS/1-a")
	must(t, err)
	if again != ann {
		t.Error("the same document became another entity")
	}
	ann.Name = "Anna"
	if changed, err := s.HasChanges(); !changed || err != nil {
		t.Errorf("HasChanges: %v, %v", changed, err)
	}
	must(t, s.SaveChanges(ctx))
	if doc, err := db.Get(ctx, ann.ID); err != nil || string(doc.Body()) != `{"Name":"Anna"}` {
		t.Errorf("got %v, %v", doc, err)
	}
	if after := lastEtag(t, db); after != before+1 {
		t.Errorf("one change took %d writes", after-before)
	}

	must(t, s.Delete(o))
	if _, err := jay.Load[order](ctx, s, o.ID); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("load of what will be deleted: %v", err)
	}
	must(t, s.SaveChanges(ctx))
	if found, _ := db.Exists(ctx, o.ID); found {
		t.Error("deleted document is there")
	}
}

// Ensure that includes come along with a load and answer later loads.
func TestSession_Include(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "customers/1", `{"Name":"Ann","@metadata":{"@collection":"Customers"}}`)
	put(t, db, "products/1", `{"Name":"Nut","@metadata":{"@collection":"Customers"}}`)
	put(t, db, "orders/1", `{"Customer":"customers/1","Lines":[{"Product":"products/1"},{"Product":"none"},{"Product":7}],"@metadata":{"@collection":"Orders"}}`)
	s := db.OpenSession()
	_, err := jay.Load[struct {
		ID string
		X  int
	}](ctx, s, "orders/1")
	if !errors.Is(err, jay.ErrType) {
		t.Errorf("a type without a name: %v", err)
	}
	o, err := jay.Load[struct2](ctx, db.OpenSession(), "orders/1")
	if !errors.Is(err, jay.ErrCollection) {
		t.Errorf("another collection: %v, %v", o, err)
	}
	s = db.OpenSession()
	type Order struct {
		ID, Customer string
	}
	if _, err := jay.Load[Order](ctx, s, "orders/1", jay.Include("Customer", "Lines[].Product")); err != nil {
		t.Fatal(err)
	}
	for id, want := range map[string]bool{"customers/1": true, "products/1": true, "none": false} {
		if s.Holds(id) != want {
			t.Errorf("holds %s: %v", id, !want)
		}
	}
	must(t, db.Delete(ctx, "customers/1"))
	if c, err := jay.Load[customer](ctx, s, "customers/1"); err != nil || c.Name != "Ann" {
		t.Errorf("included document: %v, %v", c, err)
	}
	if _, err := jay.Load[customer](ctx, s, "orders/1"); !errors.Is(err, jay.ErrType) {
		t.Errorf("held as another type: %v", err)
	}
}

type struct2 struct{ ID string }

// Ensure that optimistic concurrency refuses a save over another's change, and
// that the session can save once it has looked again.
func TestSession_OptimisticConcurrency(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "customers/1", `{"Name":"Ann","@metadata":{"@collection":"Customers","tag":"x"}}`)
	s := db.OpenSession(jay.OptimisticConcurrency())
	ann, err := jay.Load[customer](ctx, s, "customers/1")
	must(t, err)
	put(t, db, "customers/1", `{"Name":"Bea","@metadata":{"@collection":"Customers","tag":"x"}}`)
	ann.Name = "Cyd"
	must(t, s.Store(ctx, &customer{Name: "new"}))
	var conflict *jay.ConflictError
	if err := s.SaveChanges(ctx); !errors.As(err, &conflict) || conflict.ID != "customers/1" {
		t.Fatalf("got %v", err)
	}
	if found, _ := db.Exists(ctx, "customers/1-A"); found {
		t.Error("half of a refused save is there")
	}
	must(t, s.Refresh(ctx, ann))
	if ann.Name != "Bea" {
		t.Errorf("after Refresh: %v", ann)
	}
	ann.Name = "Cyd"
	must(t, s.SaveChanges(ctx))
	doc, err := db.Get(ctx, "customers/1")
	must(t, err)
	if string(doc.Body()) != `{"Name":"Cyd"}` || string(doc.Metadata().Custom) != `{"tag":"x"}` {
		t.Errorf("got %s, %s", doc.Body(), doc.Metadata().Custom)
	}
	if err := db.OpenSession(jay.OptimisticConcurrency()).Store(ctx, 5); !errors.Is(err, jay.ErrType) {
		t.Errorf("store of a number: %v", err)
	}
}

// lastEtag returns the highest etag of all documents.
func lastEtag(t *testing.T, db *jay.DB) (last uint64) {
	t.Helper()
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		must(t, err)
		last = max(last, doc.Metadata().Etag)
	}
	return last
}
