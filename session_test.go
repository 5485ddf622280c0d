package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
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

// Ensure that a session that was moved to another handle maps new types by the conventions of that
// one, and no longer by those of the closed one.
func TestSession_Reattach_Conventions(t *testing.T) {
	disk := storagetest.NewDisk()
	named := func(prefix string) jay.Options {
		return jay.Options{Conventions: jay.Conventions{CollectionName: func(t reflect.Type) string { return prefix + t.Name() }}}
	}
	db := onDisk(t, disk, named("Old"))
	s := db.OpenSession()
	must(t, s.Store(ctx, &customer{ID: "a", Name: "Ann"}))
	must(t, s.SaveChanges(ctx))
	must(t, db.Close())
	again := onDisk(t, disk, named("New"))
	defer closeDB(t, again)
	must(t, s.Reattach(again))
	must(t, s.Store(ctx, &invoice{ID: "i", Order: "o"}))
	must(t, s.SaveChanges(ctx))
	doc, err := again.Get(ctx, "i")
	must(t, err)
	equal(t, doc.Metadata().Collection, "Newinvoice")
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

// onlyReader hides that a reader can seek.
type onlyReader struct{ io.Reader }

type pictured struct {
	ID, Name string
}

// Ensure that attachments of entities, new, changed and unchanged, are saved in one
// write with them, and that the session goes on from what was saved.
func TestSession_Attachments(t *testing.T) {
	db := memory(t, nil)
	s := db.OpenSession(jay.OptimisticConcurrency())
	ann, bob := &pictured{Name: "Ann"}, &pictured{Name: "Bob"}
	must(t, s.Store(ctx, ann))
	must(t, s.Store(ctx, bob))
	must(t, s.Attachments(ann).Store("photo", strings.NewReader("first"), "text/plain"))
	must(t, s.Attachments(ann).Store("Photo", strings.NewReader("photo"), "text/plain"))
	must(t, s.Attachments(ann).Store("note", onlyReader{strings.NewReader("note")}, ""))
	must(t, s.SaveChanges(ctx))
	list, err := s.Attachments(ann).List()
	must(t, err)
	equal(t, len(list), 2)
	equal(t, list[1].Name, "Photo")
	got, err := attached(t, db.Attachments(ann.ID), "photo")
	must(t, err)
	equal(t, string(got), "photo")
	changed, err := s.HasChanges()
	must(t, err)
	equal(t, changed, false)

	// An entity of which nothing else changes.
	must(t, s.Attachments(bob).Store("cv", strings.NewReader("cv"), ""))
	must(t, s.Attachments(ann).Delete("note"))
	changes, err := s.WhatChanged()
	must(t, err)
	equal(t, len(changes), 2)
	must(t, s.SaveChanges(ctx))
	m, err := s.Metadata(bob)
	must(t, err)
	doc, err := db.Get(ctx, bob.ID)
	must(t, err)
	equal(t, m.ChangeVector, doc.ChangeVector())
	equal(t, len(m.Attachments), 1)
	bob.Name = "Bobby"
	must(t, s.SaveChanges(ctx)) // with the version of the write before
	r, err := s.Attachments(bob).Get(ctx, "cv")
	must(t, err)
	must(t, r.Close())

	// A save that fails stores nothing, and can be repeated where streams can be.
	put(t, db, ann.ID, `{"Name":"overtaken"}`)
	must(t, s.Attachments(ann).Store("again", strings.NewReader("again"), ""))
	must(t, s.Attachments(bob).Store("once", onlyReader{strings.NewReader("once")}, ""))
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrConflict) {
		t.Fatalf("a stale save: %v", err)
	}
	equal(t, jaytest.AttachmentCounts(t, db).Attachments, 2)
	must(t, s.Refresh(ctx, ann))
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUsage) {
		t.Fatalf("a stream that was read: %v", err)
	}
	must(t, s.Attachments(bob).Store("once", strings.NewReader("once"), ""))
	must(t, s.SaveChanges(ctx))
	equal(t, jaytest.AttachmentCounts(t, db).Attachments, 4)

	must(t, s.Delete(ann))
	must(t, s.SaveChanges(ctx))
	jaytest.CheckContents(t, db)
	if err := s.Attachments(ann).Delete("x"); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("an entity that the session does not hold: %v", err)
	}
	if err := s.Attachments(bob).Store("", strings.NewReader(""), ""); !errors.Is(err, jay.ErrInvalidAttachment) {
		t.Errorf("an empty name: %v", err)
	}
	if err := s.Attachments(bob).Store("x", nil, ""); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("no reader: %v", err)
	}
}

// Ensure that a save of an attachment does not make the session overwrite what another
// writer has put into the document.
func TestSession_Attachments_OtherWriter(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "pictureds/1", `{"Name":"Ann"}`, jay.InCollection("Pictureds"))
	s := db.OpenSession()
	ann, err := jay.Load[pictured](ctx, s, "pictureds/1")
	must(t, err)
	put(t, db, "pictureds/1", `{"Name":"Anna"}`)
	must(t, s.Attachments(ann).Store("x", strings.NewReader("x"), ""))
	must(t, s.SaveChanges(ctx))
	changed, err := s.HasChanges()
	must(t, err)
	equal(t, changed, false)
	doc, err := db.Get(ctx, "pictureds/1")
	must(t, err)
	equal(t, string(doc.Body()), `{"Name":"Anna"}`)
	equal(t, len(doc.Metadata().Attachments), 1)
}

// parcel has a member of every kind that Go and JSON have.
type parcel struct {
	ID       string
	Count    int
	Price    float64
	Sent     *time.Time `json:",omitempty"`
	Labels   map[string]string
	Lines    []line
	Nested   [][]int
	Any      map[string]any
	Raw      json.RawMessage `json:",omitempty"`
	Pointer  *line           `json:",omitempty"`
	Skipped  string          `json:"-"`
	internal int
}

func fullParcel() *parcel {
	sent := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	return &parcel{
		ID: "parcels/1", Count: 1, Price: 1.5, Sent: &sent,
		Labels: map[string]string{"b": "2", "a": "1", "html": "<&>"},
		Lines:  []line{{"p/1", 1}, {"p/2", 2}},
		Nested: [][]int{{1}, {2, 3}, nil},
		Any:    map[string]any{"n": json.Number("12345678901234567890"), "l": []any{"x", nil}},
		Raw:    json.RawMessage(`{"b":1,"a":2}`), Pointer: &line{"p/3", 3},
	}
}

// Ensure that each change of a struct, however deep, is noticed, reported and
// written, that taking it back is no change, and that fields which are not
// stored are none.
func TestSession_WhatChanged(t *testing.T) {
	tests := []struct {
		name   string
		change func(p *parcel)
		path   string // of the difference; "" if there is none
	}{
		{"nothing", func(p *parcel) {}, ""},
		{"number", func(p *parcel) { p.Count = 2 }, "Count"},
		{"map member", func(p *parcel) { p.Labels["a"] = "x" }, "Labels.a"},
		{"new map member", func(p *parcel) { p.Labels["c"] = "x" }, "Labels.c"},
		{"map member gone", func(p *parcel) { delete(p.Labels, "b") }, "Labels.b"},
		{"element", func(p *parcel) { p.Lines[1].Qty = 9 }, "Lines[1].Qty"},
		{"nested element", func(p *parcel) { p.Nested[1][1] = 9 }, "Nested[1][1]"},
		{"appended", func(p *parcel) { p.Lines = append(p.Lines, line{}) }, "Lines[2]"},
		{"behind a pointer", func(p *parcel) { p.Pointer.Qty++ }, "Pointer.Qty"},
		{"digit of a large number", func(p *parcel) { p.Any["n"] = json.Number("12345678901234567891") }, "Any.n"},
		{"pointer gone", func(p *parcel) { p.Sent = nil }, "Sent"},
		{"nil for empty", func(p *parcel) { p.Lines = nil }, "Lines"},
		{"unexported", func(p *parcel) { p.internal = 7 }, ""},
		{"not stored", func(p *parcel) { p.Skipped = "x" }, ""},
		{"the same again", func(p *parcel) { p.Count = 2; p.Count = 1 }, ""},
		{"maps rebuilt", func(p *parcel) { p.Labels = map[string]string{"html": "<&>", "a": "1", "b": "2"} }, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, nil)
			first := db.OpenSession()
			stored := fullParcel()
			must(t, first.Store(ctx, stored))
			must(t, first.SaveChanges(ctx))

			loaded := db.OpenSession()
			for name, s := range map[string]*jay.Session{"stored": first, "loaded": loaded} {
				p := stored
				if name == "loaded" {
					p = load[parcel](t, s, "parcels/1")
				}
				test.change(p)
				before := lastEtag(t, db)
				changes, err := s.WhatChanged()
				must(t, err)
				has, err := s.HasChanges()
				must(t, err)
				equal(t, has, len(changes) > 0)
				if test.path == "" {
					if len(changes) != 0 {
						t.Errorf("%s: %+v", name, changes)
					}
				} else if len(changes) != 1 || changes[0].State != jay.EntityChanged || changes[0].Entity != any(p) || !namesPath(changes[0].Fields, test.path) {
					t.Errorf("%s: %+v, want %s", name, changes, test.path)
				}
				if name == "stored" && test.path != "" {
					continue // the other session shall change the same
				}
				must(t, s.SaveChanges(ctx))
				if wrote := lastEtag(t, db) != before; wrote != (test.path != "") {
					t.Errorf("%s: written %v", name, wrote)
				}
				has, err = s.HasChanges()
				must(t, err)
				equal(t, has, false)
			}
		})
	}
}

func namesPath(fields []jay.FieldChange, path string) bool {
	return len(fields) == 1 && strings.Contains(fmt.Sprintf("%+v", fields[0]), path)
}

// Ensure that a document which another program wrote, in another order, with
// members that the struct does not know and without some that it does, counts
// as unchanged until the struct changes.
func TestSession_Changes_OtherProgram(t *testing.T) {
	const foreign = `{"unknown":{"x":[1,2]},"Lines":[{"Qty":2,"extra":true,"Product":"p/1"}],"Customer":"c\u002f1"}`
	db := memory(t, nil)
	put(t, db, "orders/1", foreign, jay.InCollection("orders"), jay.WithMetadata([]byte(`{"a":1}`)))
	s := db.OpenSession()
	o := load[order](t, s, "orders/1")
	changes, err := s.WhatChanged()
	must(t, err)
	equal(t, len(changes), 0)
	before := lastEtag(t, db)
	must(t, s.SaveChanges(ctx))
	equal(t, lastEtag(t, db), before)

	// Only metadata: the body stays as it is, byte for byte.
	must(t, s.SetMetadata(o, []byte(`{"b":2}`)))
	changes, err = s.WhatChanged()
	must(t, err)
	if len(changes) != 1 || changes[0].State != jay.EntityChanged || len(changes[0].Fields) != 0 {
		t.Errorf("metadata alone: %+v", changes)
	}
	must(t, s.SaveChanges(ctx))
	doc, err := db.Get(ctx, "orders/1")
	must(t, err)
	equal(t, string(doc.Body()), foreign)
	equal(t, string(doc.Metadata().Custom), `{"b":2}`)
	changes, err = s.WhatChanged()
	must(t, err)
	equal(t, len(changes), 0)

	o.Lines[0].Qty = 3
	changes, err = s.WhatChanged()
	must(t, err)
	if len(changes) != 1 || !namesPath(changes[0].Fields, "Lines[0].Qty") {
		t.Errorf("got %+v", changes)
	}
	must(t, s.SaveChanges(ctx))
	doc, err = db.Get(ctx, "orders/1")
	must(t, err)
	equal(t, string(doc.Body()), `{"Customer":"c/1","Lines":[{"Product":"p/1","Qty":3}]}`)
	equal(t, string(doc.Metadata().Custom), `{"b":2}`)
}

// Ensure that custom metadata stays through changes of the entity, can be
// replaced and taken away, and is refused where it cannot be.
func TestSession_Metadata(t *testing.T) {
	db := memory(t, nil)
	const custom = `{"k":1,"@expires":"2030-01-01T00:00:00Z","nested":{"@x":[1]}}`
	was := put(t, db, "customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"), jay.WithMetadata([]byte(custom)))
	s := db.OpenSession()
	ann := load[customer](t, s, "customers/1")
	m, err := s.Metadata(ann)
	must(t, err)
	equal(t, m.ChangeVector, was.ChangeVector)
	equal(t, string(m.Custom), string(was.Custom))
	for round := range 3 { // keys that Jay knows must not pile up or get lost
		ann.Name = fmt.Sprint("Ann", round)
		must(t, s.SaveChanges(ctx))
		doc, err := db.Get(ctx, "customers/1")
		must(t, err)
		equal(t, string(doc.Metadata().Custom), string(was.Custom))
	}

	for given, want := range map[string]error{
		``:                             jay.ErrInvalidDocument,
		`7`:                            jay.ErrInvalidDocument,
		`{"a":`:                        jay.ErrInvalidDocument,
		`{"@collection":"Others"}`:     jay.ErrCollection,
		`{"a":1,"a":2}`:                jay.ErrInvalidDocument,
		`{ "@collection":"CUSTOMERS"}`: nil,
	} {
		if err := s.SetMetadata(ann, []byte(given)); !errors.Is(err, want) {
			t.Errorf("%s: %v", given, err)
		}
	}
	text := []byte(`{ "k" : 2 }`)
	must(t, s.SetMetadata(ann, text))
	clear(text) // the session keeps nothing of the caller's
	m, err = s.Metadata(ann)
	must(t, err)
	equal(t, string(m.Custom), `{"k":2}`)
	clear(m.Custom)
	must(t, s.SaveChanges(ctx))
	doc, err := db.Get(ctx, "customers/1")
	must(t, err)
	equal(t, string(doc.Metadata().Custom), `{"k":2}`)

	must(t, s.SetMetadata(ann, []byte(`{"k":2}`)))
	changed, err := s.HasChanges()
	must(t, err)
	equal(t, changed, false)
	must(t, s.SetMetadata(ann, []byte(`{}`)))
	must(t, s.SaveChanges(ctx))
	doc, err = db.Get(ctx, "customers/1")
	must(t, err)
	equal(t, string(doc.Metadata().Custom), "")

	fresh := &customer{ID: "customers|"}
	must(t, s.Store(ctx, fresh))
	must(t, s.SetMetadata(fresh, []byte(`{"new":true}`)))
	m, err = s.Metadata(fresh)
	must(t, err)
	equal(t, m.ID+m.Collection+string(m.Custom), `customers|customers{"new":true}`)
	must(t, s.SaveChanges(ctx))
	doc, err = db.Get(ctx, fresh.ID)
	must(t, err)
	equal(t, string(doc.Metadata().Custom), `{"new":true}`)
}

// Ensure that SaveChanges writes in the order that it states, and that
// WhatChanged has the same order.
func TestSession_SaveChanges_Order(t *testing.T) {
	db := memory(t, nil)
	for i := range 4 {
		put(t, db, fmt.Sprintf("customers/%d", i), `{"Name":"x"}`, jay.InCollection("Customers"))
	}
	s := db.OpenSession()
	named, made := &customer{ID: "customers/z"}, &customer{ID: "customers|"}
	must(t, s.Store(ctx, made))
	must(t, s.Store(ctx, named))
	b, a := load[customer](t, s, "customers/2"), load[customer](t, s, "customers/1")
	b.Name, a.Name = "b", "a"
	hilo := &customer{}
	must(t, s.Store(ctx, hilo))
	must(t, s.DeleteID("customers/3"))
	must(t, s.DeleteID("customers/0"))
	changes, err := s.WhatChanged()
	must(t, err)
	var listed []string
	for _, c := range changes {
		listed = append(listed, string(c.State)+" "+c.ID)
	}
	want := "deleted customers/3,deleted customers/0,added customers/z,changed customers/2,changed customers/1,added customers/1-A,added customers|"
	equal(t, strings.Join(listed, ","), want)
	must(t, s.SaveChanges(ctx))
	last := uint64(0)
	for _, v := range []*customer{named, b, a, hilo, made} {
		m, err := s.Metadata(v)
		must(t, err)
		if m.Etag <= last {
			t.Errorf("%s has etag %d, after %d", m.ID, m.Etag, last)
		}
		last = m.Etag
	}
}

// Ensure that a type with a version field is checked at each save, that the
// field is kept up to date, and that what was read elsewhere keeps its version.
func TestSession_VersionField(t *testing.T) {
	db := memory(t, nil)
	people := collectionOf[person](t, db)
	s := db.OpenSession()
	ann := &person{ID: "people/1", Name: "Ann"}
	must(t, s.Store(ctx, ann))
	must(t, s.SaveChanges(ctx))
	m, err := s.Metadata(ann)
	must(t, err)
	equal(t, ann.Version, m.ChangeVector)
	equal(t, bodyAt(t, db, ann.ID), `{"Name":"Ann"}`)

	// A value that was read outside the session.
	detached, err := people.Get(ctx, ann.ID)
	must(t, err)
	detached.Name = "Bea"
	other := db.OpenSession()
	must(t, other.Store(ctx, detached))
	must(t, other.SaveChanges(ctx))
	equal(t, bodyAt(t, db, ann.ID), `{"Name":"Bea"}`)

	ann.Name = "Cyd"
	var conflict *jay.ConflictError
	if err := s.SaveChanges(ctx); !errors.As(err, &conflict) || conflict.Actual != detached.Version {
		t.Fatalf("stale: %v", err)
	}
	equal(t, ann.Name, "Cyd")
	must(t, s.Refresh(ctx, ann))
	ann.Name = "Dee"
	must(t, s.SaveChanges(ctx))

	// An empty field means that there must be none.
	must(t, other.Evict(detached))
	must(t, other.Store(ctx, &person{ID: "people/1"}))
	if err := other.SaveChanges(ctx); !errors.Is(err, jay.ErrConflict) || !errors.Is(err, jay.ErrExists) {
		t.Errorf("empty version over a document: %v", err)
	}
	// A stale delete is refused, too.
	stale := db.OpenSession()
	v := load[person](t, stale, "people/1")
	ann.Name = "Eve"
	must(t, s.SaveChanges(ctx))
	must(t, stale.Delete(v))
	if err := stale.SaveChanges(ctx); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("stale delete: %v", err)
	}
	must(t, db.Delete(ctx, "people/1"))
	if err := stale.SaveChanges(ctx); !errors.Is(err, jay.ErrConflict) {
		t.Errorf("delete of what is gone: %v", err)
	}
	must(t, stale.Evict(v))
	must(t, stale.SaveChanges(ctx))
	ann.Name = "Fay"
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrConflict) || !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("change of what is gone: %v", err)
	}
}

// Ensure that without optimistic concurrency the last save wins, and that with
// it a new document must not be there.
func TestSession_Optimistic_New(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "customers/x", `{"Name":"old"}`, jay.InCollection("Customers"))
	for _, optimistic := range []bool{true, false} {
		var opts []jay.SessionOption
		if optimistic {
			opts = append(opts, jay.OptimisticConcurrency())
		}
		s := db.OpenSession(opts...)
		must(t, s.Store(ctx, &customer{ID: "customers/x", Name: "new"}))
		if err := s.SaveChanges(ctx); errors.Is(err, jay.ErrConflict) != optimistic || !optimistic && err != nil {
			t.Errorf("optimistic %v: %v", optimistic, err)
		}
	}
	equal(t, bodyAt(t, db, "customers/x"), `{"Name":"new"}`)
}

// Ensure that deletions which survived a failure are not repeated on a document
// that another writer has made anew, and that those which did not survive are.
func TestSession_UnknownOutcome_DeletedAndMadeAnew(t *testing.T) {
	for _, missing := range []bool{false, true} {
		for _, survive := range []int{0, 100} {
			t.Run(fmt.Sprintf("%d%% survive, a missing one too %v", survive, missing), func(t *testing.T) {
				disk := storagetest.NewDisk()
				db := onDisk(t, disk, jay.Options{})
				put(t, db, "customers/1", `{"Name":"old"}`, jay.InCollection("Customers"))
				put(t, db, "customers/2", `{"Name":"old"}`, jay.InCollection("Customers"))
				s := db.OpenSession()
				if missing {
					must(t, s.DeleteID("customers/none"))
				}
				must(t, s.Delete(load[customer](t, s, "customers/1")))
				must(t, s.DeleteID("customers/2"))
				disk.FailAfter(0)
				if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
					t.Fatal(err)
				}

				crashed := disk.Crash(survive, rand.New(rand.NewPCG(1, 2)))
				_ = db.Close()
				again := onDisk(t, crashed, jay.Options{})
				defer closeDB(t, again)
				want := ""
				if survive == 100 {
					want = `{"Name":"new"}`
				}
				put(t, again, "customers/1", `{"Name":"new"}`, jay.InCollection("Customers"))
				must(t, s.Reattach(again))
				must(t, s.SaveChanges(ctx))
				equal(t, bodyAt(t, again, "customers/1"), want)
				equal(t, bodyAt(t, again, "customers/2"), "")
				changed, err := s.HasChanges()
				must(t, err)
				equal(t, changed, false)
			})
		}
	}
}

// person is a document with its version.
type person struct {
	ID      string
	Version string `jay:"version"`
	Name    string
}

func load[T any](t testing.TB, s *jay.Session, id string, opts ...jay.LoadOption) *T {
	t.Helper()
	v, err := jay.Load[T](ctx, s, id, opts...)
	if err != nil {
		t.Fatalf("load %q: %v", id, err)
	}
	return v
}

// bodyAt returns the body of a document, "" if it is not there.
func bodyAt(t testing.TB, db *jay.DB, id string) string {
	t.Helper()
	doc, err := db.Get(ctx, id)
	if errors.Is(err, jay.ErrNotFound) {
		return ""
	}
	must(t, err)
	return string(doc.Body())
}

// Ensure that an ID in any spelling is one entity, and that a second entity
// under it is refused and changes nothing.
func TestSession_IdentityMap(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "Customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
	s := db.OpenSession()
	ann := load[customer](t, s, "customers/1")
	equal(t, ann.ID, "Customers/1")
	for _, id := range []string{"Customers/1", "CUSTOMERS/1", "customers/1"} {
		if load[customer](t, s, id) != ann {
			t.Errorf("%s is another entity", id)
		}
		if err := s.Store(ctx, &customer{ID: id}); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("store of another entity as %s: %v", id, err)
		}
	}
	must(t, s.Store(ctx, ann)) // held already
	changed, err := s.HasChanges()
	equal(t, changed, false)
	must(t, err)

	all, err := jay.LoadMany[customer](ctx, s, []string{"customers/1", "none", "CUSTOMERS/1", "none"})
	must(t, err)
	if len(all) != 4 || all[0] != ann || all[2] != ann || all[1] != nil || all[3] != nil {
		t.Errorf("LoadMany: %v", all)
	}
	fresh, err := jay.LoadMany[customer](ctx, db.OpenSession(), []string{"customers/1", "CUSTOMERS/1"})
	must(t, err)
	if fresh[0] != fresh[1] || fresh[0] == ann {
		t.Errorf("LoadMany of one document twice: %p, %p", fresh[0], fresh[1])
	}
	none, err := jay.LoadMany[customer](ctx, s, nil)
	must(t, err)
	equal(t, len(none), 0)
}

// Ensure that IDs that differ in case are two entities where IDs are
// case-sensitive.
func TestSession_CaseSensitive(t *testing.T) {
	db := memory(t, &jay.Options{CaseSensitive: true})
	s := db.OpenSession()
	a, b := &customer{ID: "x/1", Name: "a"}, &customer{ID: "X/1", Name: "b"}
	must(t, s.Store(ctx, a))
	must(t, s.Store(ctx, b))
	must(t, s.SaveChanges(ctx))
	equal(t, bodyAt(t, db, "x/1"), `{"Name":"a"}`)
	equal(t, bodyAt(t, db, "X/1"), `{"Name":"b"}`)
	if load[customer](t, s, "X/1") != b {
		t.Error("another entity")
	}
}

// Ensure that Store gives the ID that each strategy and convention gives: at
// once where that can be known, and after SaveChanges otherwise.
func TestSession_Store_Strategies(t *testing.T) {
	tests := []struct {
		name   string
		id     string // in the field before Store
		option jay.CollectionOption
		prefix string
		stored func(id string) bool // after Store
		saved  func(id string) bool // after SaveChanges; nil for no change
	}{
		{name: "HiLo", stored: is("customers/1-A")},
		{name: "HiLo with a prefix", prefix: "clients", stored: is("clients/1-A")},
		{name: "semantic", id: "Customers/ann", stored: is("Customers/ann")},
		{name: "blank is a GUID", id: " ", stored: isGUID},
		{name: "request for a GUID", option: jay.WithIDRequest(""), stored: isGUID},
		{name: "generator of a semantic id", option: jay.WithIDs(makes("customers/x")), stored: is("customers/x")},
		{name: "request for an identity", option: jay.WithIDRequest("customers|"), stored: is("customers|"), saved: is("customers/1")},
		{name: "identity", id: "customers|", stored: is("customers|"), saved: is("customers/1")},
		{name: "server-side", id: "customers/", stored: is("customers/"), saved: func(id string) bool {
			return strings.HasPrefix(id, "customers/000000000000000000") && strings.HasSuffix(id, "-A")
		}},
		{name: "generator is not asked for an id that is there", id: "customers/y", option: jay.WithIDs(makes("customers/x")), stored: is("customers/y")},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			db := memory(t, nil)
			var opts []jay.CollectionOption
			if test.option != nil {
				opts = append(opts, test.option)
			}
			if test.prefix != "" {
				opts = append(opts, jay.WithPrefix(test.prefix))
			}
			customers, err := jay.CollectionOf[customer](db, opts...)
			must(t, err)
			s := db.OpenSession(jay.WithCollections(customers))
			v := &customer{ID: test.id, Name: "Ann"}
			must(t, s.Store(ctx, v))
			if !test.stored(v.ID) {
				t.Fatalf("after Store: %q", v.ID)
			}
			before := v.ID
			must(t, s.SaveChanges(ctx))
			if test.saved == nil && v.ID != before || test.saved != nil && !test.saved(v.ID) {
				t.Fatalf("after SaveChanges: %q", v.ID)
			}
			equal(t, bodyAt(t, db, v.ID), `{"Name":"Ann"}`)
			held, err := s.IDOf(v)
			must(t, err)
			equal(t, held, v.ID)
			if load[customer](t, s, strings.ToUpper(v.ID)) != v {
				t.Error("the session does not find its entity again")
			}
			v.Name = "Bea" // the second save is a change, not a second document
			must(t, s.SaveChanges(ctx))
			equal(t, bodyAt(t, db, v.ID), `{"Name":"Bea"}`)
			equal(t, count(t, db, "Customers"), 1)
		})
	}
}

func is(want string) func(string) bool { return func(id string) bool { return id == want } }

func isGUID(id string) bool { return len(id) == 36 && strings.Count(id, "-") == 4 }

func makes(id string) func(context.Context, *customer) (string, error) {
	return func(context.Context, *customer) (string, error) { return id, nil }
}

// count returns the number of documents in a collection, "" for all but those
// of HiLo.
func count(t testing.TB, db *jay.DB, collection string) (n int) {
	t.Helper()
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: collection}) {
		must(t, err)
		if collection != "" || doc.Collection() != "@hilo" {
			n++
		}
	}
	return n
}

// Ensure that a generator that fails, or makes what is no ID, stores nothing
// and leaves the value as it was.
func TestSession_Store_Refused(t *testing.T) {
	db := memory(t, &jay.Options{MaxIDBytes: 64})
	boom := errors.New("boom")
	failing, err := jay.CollectionOf[customer](db, jay.WithIDs(func(context.Context, *customer) (string, error) { return "", boom }))
	must(t, err)
	v := &customer{Name: "Ann"}
	s := db.OpenSession(jay.WithCollections(failing))
	if err := s.Store(ctx, v); !errors.Is(err, boom) || v.ID != "" {
		t.Errorf("failing generator: %v, %q", err, v.ID)
	}
	var nobody *customer
	noID := &struct{ Name string }{}
	for _, test := range []struct {
		name string
		v    any
		want error
	}{
		{"nil", nil, jay.ErrType},
		{"typed nil", nobody, jay.ErrType},
		{"struct", customer{}, jay.ErrType},
		{"pointer to a pointer", &nobody, jay.ErrType},
		{"map", map[string]any{}, jay.ErrType},
		{"func", func() {}, jay.ErrType},
		{"no id field", noID, jay.ErrType},
		{"unexported id field", &struct{ id string }{}, jay.ErrType},
		{"too long", &customer{ID: strings.Repeat("x", 70)}, jay.ErrInvalidID},
		{"backslash", &customer{ID: `a\b`}, jay.ErrInvalidID},
		{"control character", &customer{ID: "a\x00b"}, jay.ErrInvalidID},
	} {
		if err := s.Store(ctx, test.v); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", test.name, err)
		}
		for verb, err := range map[string]error{"delete": s.Delete(test.v), "evict": s.Evict(test.v), "refresh": s.Refresh(ctx, test.v)} {
			if !errors.Is(err, jay.ErrUsage) {
				t.Errorf("%s of %s: %v", verb, test.name, err)
			}
		}
	}
	changed, err := s.HasChanges()
	must(t, err)
	equal(t, changed, false)
	must(t, s.SaveChanges(ctx))
	equal(t, count(t, db, ""), 0)
}

// Ensure that an ID field that the user has changed is refused, that nothing is
// saved, and that the session goes on when it is set right.
func TestSession_IDFieldChanged(t *testing.T) {
	for _, id := range []string{"", "customers/x", "customers|", "customers/"} {
		t.Run(fmt.Sprintf("id %q", id), func(t *testing.T) {
			db := memory(t, nil)
			s := db.OpenSession()
			v, other := &customer{ID: id, Name: "Ann"}, &customer{Name: "other"}
			must(t, s.Store(ctx, v))
			must(t, s.Store(ctx, other))
			given := v.ID
			v.ID = "customers/mine"
			if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUsage) {
				t.Fatalf("new: %v", err)
			}
			if _, err := s.HasChanges(); !errors.Is(err, jay.ErrUsage) {
				t.Errorf("HasChanges: %v", err)
			}
			equal(t, count(t, db, ""), 0)
			v.ID = given
			must(t, s.SaveChanges(ctx))
			saved := v.ID
			v.ID = strings.ToUpper(saved)
			if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUsage) {
				t.Errorf("saved: %v", err)
			}
			v.ID = saved
			must(t, s.SaveChanges(ctx))
			equal(t, count(t, db, ""), 2)
		})
	}
}

// Ensure that an identity never takes the ID that another entity of the same
// save has by name.
func TestSession_Identity_BesideItsOwnNumber(t *testing.T) {
	db := memory(t, nil)
	s := db.OpenSession()
	made, named := &customer{ID: "customers|", Name: "made"}, &customer{ID: "customers/1", Name: "named"}
	must(t, s.Store(ctx, made))
	must(t, s.Store(ctx, named))
	must(t, s.SaveChanges(ctx))
	if made.ID == named.ID {
		t.Fatalf("both are %s", made.ID)
	}
	equal(t, bodyAt(t, db, named.ID), `{"Name":"named"}`)
	equal(t, bodyAt(t, db, made.ID), `{"Name":"made"}`)
}

// Ensure that Delete, DeleteID, Evict and Clear do what they say, each on new,
// loaded and changed entities.
func TestSession_Forgetting(t *testing.T) {
	setup := func(t *testing.T) (*jay.DB, *jay.Session, *customer, *customer) {
		db := memory(t, nil)
		put(t, db, "customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
		s := db.OpenSession()
		fresh := &customer{Name: "new"}
		must(t, s.Store(ctx, fresh))
		return db, s, load[customer](t, s, "customers/1"), fresh
	}
	t.Run("Delete", func(t *testing.T) {
		db, s, ann, fresh := setup(t)
		ann.Name = "changed"
		must(t, s.Delete(ann))
		must(t, s.Delete(fresh)) // never saved: only forgotten
		if err := s.Delete(ann); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("twice: %v", err)
		}
		equal(t, s.Holds("customers/1"), false)
		if _, err := jay.Load[customer](ctx, s, "customers/1"); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("load: %v", err)
		}
		equal(t, bodyAt(t, db, "customers/1"), `{"Name":"Ann"}`)
		must(t, s.SaveChanges(ctx))
		equal(t, count(t, db, ""), 0)
		if _, err := jay.Load[customer](ctx, s, "customers/1"); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("load afterwards: %v", err)
		}
		must(t, s.SaveChanges(ctx))
	})
	t.Run("DeleteID", func(t *testing.T) {
		db, s, _, fresh := setup(t)
		must(t, s.DeleteID("CUSTOMERS/1"))
		must(t, s.DeleteID(fresh.ID))
		must(t, s.DeleteID("none"))
		must(t, s.DeleteID("none"))
		if err := s.DeleteID(""); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("empty id: %v", err)
		}
		must(t, s.SaveChanges(ctx))
		equal(t, count(t, db, ""), 0)
	})
	t.Run("Evict", func(t *testing.T) {
		db, s, ann, fresh := setup(t)
		ann.Name = "changed"
		must(t, s.Evict(ann))
		must(t, s.Evict(fresh))
		must(t, s.SaveChanges(ctx))
		equal(t, bodyAt(t, db, "customers/1"), `{"Name":"Ann"}`)
		equal(t, count(t, db, ""), 1)
		if again := load[customer](t, s, "customers/1"); again == ann || again.Name != "Ann" {
			t.Errorf("loaded again: %v", again)
		}
		must(t, s.Store(ctx, fresh)) // as a new one, under the ID that it has
		must(t, s.SaveChanges(ctx))
		equal(t, count(t, db, ""), 2)
	})
	t.Run("Evict takes a Delete back", func(t *testing.T) {
		db, s, ann, _ := setup(t)
		must(t, s.Delete(ann))
		must(t, s.Evict(ann))
		must(t, s.SaveChanges(ctx))
		equal(t, bodyAt(t, db, "customers/1"), `{"Name":"Ann"}`)
		if load[customer](t, s, "customers/1").Name != "Ann" {
			t.Error("not loaded")
		}
	})
	t.Run("Clear", func(t *testing.T) {
		db, s, ann, fresh := setup(t)
		must(t, s.Delete(ann))
		s.Clear()
		must(t, s.SaveChanges(ctx))
		equal(t, count(t, db, ""), 1)
		if err := s.Evict(fresh); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("after Clear: %v", err)
		}
	})
}

// Ensure that a document can be deleted and stored anew, in one save, under one
// ID: with and without versions.
func TestSession_DeleteAndStore(t *testing.T) {
	for _, optimistic := range []bool{false, true} {
		db := memory(t, nil)
		put(t, db, "people/1", `{"Name":"Ann"}`, jay.InCollection("People"))
		var opts []jay.SessionOption
		if optimistic {
			opts = append(opts, jay.OptimisticConcurrency())
		}
		s := db.OpenSession(opts...)
		ann := load[person](t, s, "people/1")
		must(t, s.Delete(ann))
		bea := &person{ID: "PEOPLE/1", Name: "Bea"}
		must(t, s.Store(ctx, bea))
		must(t, s.SaveChanges(ctx))
		equal(t, bodyAt(t, db, "people/1"), `{"Name":"Bea"}`)
		// The same value again, which still has the version of before.
		must(t, s.Delete(bea))
		bea.Name = "Cyd"
		must(t, s.Store(ctx, bea))
		must(t, s.SaveChanges(ctx))
		equal(t, bodyAt(t, db, "people/1"), `{"Name":"Cyd"}`)
		bea.Name = "Dee"
		must(t, s.SaveChanges(ctx))
		equal(t, bodyAt(t, db, "people/1"), `{"Name":"Dee"}`)
	}
}

// Ensure that Refresh takes over what is there, the spelling of the ID
// included, and that the session goes on from it.
func TestSession_Refresh(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
	s := db.OpenSession(jay.OptimisticConcurrency())
	ann := load[customer](t, s, "customers/1")
	ann.Name = "mine"
	put(t, db, "Customers/1", `{"Name":"theirs"}`, jay.InCollection("Customers"))
	must(t, s.Refresh(ctx, ann))
	equal(t, *ann, customer{"Customers/1", "theirs"})
	changed, err := s.HasChanges()
	must(t, err)
	equal(t, changed, false)
	ann.Name = "mine"
	must(t, s.SaveChanges(ctx))
	equal(t, bodyAt(t, db, "customers/1"), `{"Name":"mine"}`)

	must(t, db.Delete(ctx, "customers/1"))
	ann.Name = "kept"
	if err := s.Refresh(ctx, ann); !errors.Is(err, jay.ErrNotFound) || ann.Name != "kept" {
		t.Errorf("refresh of what is gone: %v, %v", err, ann)
	}
	put(t, db, "customers/1", `{}`, jay.InCollection("Others"))
	if err := s.Refresh(ctx, ann); !errors.Is(err, jay.ErrCollection) || ann.Name != "kept" {
		t.Errorf("refresh from another collection: %v, %v", err, ann)
	}
	for _, v := range []*customer{{ID: "customers|"}, {}} {
		must(t, s.Store(ctx, v))
		if err := s.Refresh(ctx, v); err == nil {
			t.Errorf("refresh of a new entity %q worked", v.ID)
		}
	}
}

// Ensure that a Load names what is wrong, and that the session holds nothing
// afterwards that it did not hold before.
func TestSession_Load_Refused(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "customers/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
	put(t, db, "customers/2", `{"Name":7}`, jay.InCollection("Customers"))
	put(t, db, "orders/1", `{"Customer":"customers/1"}`, jay.InCollection("Orders"))
	s := db.OpenSession()
	for _, test := range []struct {
		ids  []string
		want error
	}{
		{[]string{"customers/1", "orders/1"}, jay.ErrCollection},
		{[]string{"customers/1", "customers/2"}, nil},
	} {
		if _, err := jay.LoadMany[customer](ctx, s, test.ids); err == nil || test.want != nil && !errors.Is(err, test.want) {
			t.Errorf("%v: %v", test.ids, err)
		}
		equal(t, s.Holds("customers/1"), false)
	}
	// The same, if one of them came along before.
	load[order](t, s, "orders/1", jay.Include("Customer"))
	if _, err := jay.LoadMany[order](ctx, s, []string{"orders/1", "customers/1"}); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("included: %v", err)
	}
	equal(t, load[customer](t, s, "customers/1").Name, "Ann")
	if _, err := jay.LoadMany[order](ctx, s, []string{"customers/1"}); !errors.Is(err, jay.ErrType) {
		t.Errorf("held as another type: %v", err)
	}
	for _, id := range []string{"", "users/", "users|", " ", strings.Repeat("x", 5000), "a\x00"} {
		if _, err := jay.Load[customer](ctx, s, id); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("load %.20q: %v", id, err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for _, id := range []string{"customers/1", "customers/3"} {
		if _, err := jay.Load[customer](cancelled, s, id); !errors.Is(err, context.Canceled) {
			t.Errorf("cancelled load of %s: %v", id, err)
		}
	}
	if _, err := jay.Load[int](ctx, s, "customers/1"); !errors.Is(err, jay.ErrType) {
		t.Errorf("load of a number: %v", err)
	}
	if _, err := jay.Load[customer](ctx, s, "customers/1", jay.Include("a..b")); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("wrong include: %v", err)
	}
}

// Ensure that includes reach every place that a path can name, and pass over
// what is no ID of a document.
func TestSession_Include_Paths(t *testing.T) {
	const body = `{"Customer":"c/1","Address":{"Owner":"c/2","Deep":{"x":["c/3",["c/9"],{"y":"c/9"},null,7,"","none"]}},` +
		`"Items":[{"productId":"c/4","Tags":["c/5","c/6"]},{"productId":7},{},null,{"productId":"c/\u0037"}],"dot.ted":"c/8","Same":"C/1"}`
	tests := map[string][]string{
		"Customer":                {"c/1"},
		"Address.Owner":           {"c/2"},
		"Address.Deep.x":          {"c/3"},
		"Address.Deep.x[]":        {"c/3", "c/9"},
		"Address.Deep.x[0]":       {"c/3"},
		"Items[].productId":       {"c/4", "c/7"},
		"Items.productId":         {"c/4", "c/7"},
		"Items[0].Tags":           {"c/5", "c/6"},
		"Items[].Tags[1]":         {"c/6"},
		"'dot.ted'":               {"c/8"},
		"Address":                 nil,
		"Nothing.At.All[].Is":     nil,
		"Customer.deeper":         nil,
		"Customer, Address.Owner": {"c/1", "c/2"},
	}
	for paths, want := range tests {
		db := memory(t, nil)
		for i := range 10 {
			put(t, db, fmt.Sprintf("c/%d", i), `{}`)
		}
		put(t, db, "orders/1", body, jay.InCollection("Struct3s"))
		s := db.OpenSession()
		load[struct3](t, s, "orders/1", jay.Include(strings.Split(paths, ", ")...))
		var got []string
		for i := range 10 {
			if id := fmt.Sprintf("c/%d", i); s.Holds(id) {
				got = append(got, id)
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: got %v, want %v", paths, got, want)
		}
	}
}

type struct3 struct{ ID string }

// Ensure that documents that name each other, and are loaded together, stay
// one entity each.
func TestSession_Include_EachOther(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "customers/1", `{"Name":"customers/2"}`, jay.InCollection("Customers"))
	put(t, db, "customers/2", `{"Name":"customers/1"}`, jay.InCollection("Customers"))
	s := db.OpenSession()
	both, err := jay.LoadMany[customer](ctx, s, []string{"customers/1", "customers/2"}, jay.Include("Name"))
	must(t, err)
	both[0].Name, both[1].Name = "a", "b"
	must(t, s.SaveChanges(ctx))
	equal(t, bodyAt(t, db, "customers/1")+bodyAt(t, db, "customers/2"), `{"Name":"a"}{"Name":"b"}`)
	// An include of an entity that is held, and of one that will be deleted.
	put(t, db, "customers/3", `{"Name":"customers/1"}`, jay.InCollection("Customers"))
	put(t, db, "customers/4", `{"Name":"customers/2"}`, jay.InCollection("Customers"))
	must(t, s.Delete(both[1]))
	load[customer](t, s, "customers/3", jay.Include("Name"))
	load[customer](t, s, "customers/4", jay.Include("Name"))
	if load[customer](t, s, "customers/1") != both[0] {
		t.Error("an include replaced an entity")
	}
	equal(t, s.Holds("customers/2"), false)
	// Includes of what is held already are read, too.
	put(t, db, "customers/5", `{"Name":"customers/6"}`, jay.InCollection("Customers"))
	put(t, db, "customers/6", `{"Name":""}`, jay.InCollection("Customers"))
	load[customer](t, s, "customers/5")
	load[customer](t, s, "customers/5", jay.Include("Name"))
	equal(t, s.Holds("customers/6"), true)
}

// Ensure that one load brings at most 10,000 documents along.
func TestSession_Include_TooMany(t *testing.T) {
	db := memory(t, nil)
	list := func(n int) string {
		ids := make([]string, n)
		for i := range ids {
			ids[i] = fmt.Sprintf(`"c/%d"`, i)
		}
		return `{"Lines":[` + strings.Join(ids, ",") + `]}`
	}
	put(t, db, "orders/1", list(10_001), jay.InCollection("Struct3s"))
	put(t, db, "orders/2", list(10_000), jay.InCollection("Struct3s"))
	s := db.OpenSession()
	if _, err := jay.Load[struct3](ctx, s, "orders/1", jay.Include("Lines")); !errors.Is(err, jay.ErrTooLarge) {
		t.Errorf("got %v", err)
	}
	equal(t, s.Holds("orders/1"), false)
	load[struct3](t, s, "orders/2", jay.Include("Lines"))
}

// anything is a document that can hold what cannot be stored.
type anything struct {
	ID    string
	Email string `json:",omitempty"`
	Any   any    `json:",omitempty"`
}

// Ensure that a save that is refused, for whatever reason, writes nothing and
// loses nothing: once its cause is gone, the next save writes all of it, under
// the IDs that Store gave, and nothing twice.
func TestSession_SaveChanges_Refused(t *testing.T) {
	deep := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	tests := []struct {
		name   string
		opts   []jay.SessionOption
		want   error
		poison func(t *testing.T, db *jay.DB, s *jay.Session) (cure func())
	}{
		{name: "cyclic value", want: jay.ErrType, poison: value(loop())},
		{name: "channel", want: jay.ErrType, poison: value(make(chan int))},
		{name: "not a number", want: jay.ErrType, poison: value(math.NaN())},
		{name: "too deep", want: jay.ErrInvalidDocument, poison: value(raw(deep))},
		{name: "too large", want: jay.ErrInvalidDocument, poison: value(strings.Repeat("x", 5000))},
		{name: "too large, of a loaded one", want: jay.ErrInvalidDocument, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := load[anything](t, s, "anythings/there")
			v.Any = strings.Repeat("x", 5000)
			return func() { v.Any = nil }
		}},
		{name: "unique index", want: jay.ErrUnique, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := &anything{Email: "taken"}
			must(t, s.Store(ctx, v))
			return func() { v.Email = "free" }
		}},
		{name: "conflict", opts: []jay.SessionOption{jay.OptimisticConcurrency()}, want: jay.ErrConflict, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := load[anything](t, s, "anythings/there")
			put(t, db, "anythings/there", `{"Email":"taken"}`, jay.InCollection("Anythings"))
			v.Any = 1
			return func() { must(t, s.Refresh(ctx, v)) }
		}},
		{name: "conflict of a delete", opts: []jay.SessionOption{jay.OptimisticConcurrency()}, want: jay.ErrConflict, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := load[anything](t, s, "anythings/there")
			put(t, db, "anythings/there", `{"Email":"taken"}`, jay.InCollection("Anythings"))
			must(t, s.Delete(v))
			return func() { must(t, s.Evict(v)) }
		}},
		{name: "another collection", want: jay.ErrCollection, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := &customer{ID: "anythings/there"}
			must(t, s.Store(ctx, v))
			return func() { must(t, s.Evict(v)) }
		}},
		{name: "id taken by hand", want: jay.ErrExists, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := &anything{}
			must(t, s.Store(ctx, v))
			put(t, db, v.ID, `{"Any":"by hand"}`, jay.InCollection("Anythings"))
			return func() {
				must(t, s.Evict(v))
				v.ID = ""
				must(t, s.Store(ctx, v))
			}
		}},
		{name: "id field changed", want: jay.ErrUsage, poison: func(t *testing.T, db *jay.DB, s *jay.Session) func() {
			v := load[anything](t, s, "anythings/there")
			v.ID = "x"
			return func() { v.ID = "anythings/there" }
		}},
	}
	for _, test := range tests {
		for _, first := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, first %v", test.name, first), func(t *testing.T) {
				db := memory(t, &jay.Options{MaxDocumentBytes: 4000, MaxDepth: 50})
				must(t, db.EnsureIndex(ctx, "Anythings", jay.Index{Fields: []string{"Email"}, Unique: true}))
				put(t, db, "anythings/there", `{"Email":"taken"}`, jay.InCollection("Anythings"))
				put(t, db, "kept/1", `{"Name":"Ann"}`, jay.InCollection("Customers"))
				put(t, db, "kept/2", `{"Name":"Bea"}`, jay.InCollection("Customers"))

				s := db.OpenSession(test.opts...)
				var cure func()
				evicted := &customer{Name: "evicted"} // leaves a hole before the others
				must(t, s.Store(ctx, evicted))
				if first {
					cure = test.poison(t, db, s)
				}
				hilo, made := &customer{Name: "hilo"}, &customer{ID: "customers|", Name: "made"}
				must(t, s.Store(ctx, hilo))
				must(t, s.Store(ctx, made))
				ann, bea := load[customer](t, s, "kept/1"), load[customer](t, s, "kept/2")
				ann.Name = "Anna"
				must(t, s.Delete(bea))
				if !first {
					cure = test.poison(t, db, s)
				}
				must(t, s.Evict(evicted))
				given := hilo.ID
				before := everything(t, db)
				for range 2 {
					if err := s.SaveChanges(ctx); !errors.Is(err, test.want) {
						t.Fatalf("got %v, want %v", err, test.want)
					}
				}
				equal(t, everything(t, db), before)
				equal(t, hilo.ID, given)
				equal(t, made.ID, "customers|")
				equal(t, ann.Name, "Anna")

				cure()
				must(t, s.SaveChanges(ctx))
				equal(t, hilo.ID, given)
				equal(t, made.ID, "customers/1")
				equal(t, bodyAt(t, db, given)+bodyAt(t, db, made.ID)+bodyAt(t, db, "kept/1")+bodyAt(t, db, "kept/2"), `{"Name":"hilo"}{"Name":"made"}{"Name":"Anna"}`)
				equal(t, count(t, db, "Customers"), 3)
				after := everything(t, db)
				must(t, s.SaveChanges(ctx))
				equal(t, everything(t, db), after)
			})
		}
	}
}

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

// value stores an entity with a value that cannot be.
func value(v any) func(*testing.T, *jay.DB, *jay.Session) func() {
	return func(t *testing.T, db *jay.DB, s *jay.Session) func() {
		bad := &anything{Any: v}
		must(t, s.Store(ctx, bad))
		return func() { bad.Any = nil }
	}
}

// everything returns all documents with their versions, but those of HiLo.
func everything(t testing.TB, db *jay.DB) string {
	t.Helper()
	var all strings.Builder
	for doc, err := range db.Documents(ctx, jay.Scan{}) {
		must(t, err)
		if doc.Collection() != "@hilo" {
			fmt.Fprintf(&all, "%s %s %s %s\n", doc.ID(), doc.ChangeVector(), doc.Body(), doc.Metadata().Custom)
		}
	}
	return all.String()
}

// Ensure that a save with a cancelled context, or on a closed database, is
// refused and can be repeated, in the second case on a new handle.
func TestSession_SaveChanges_CancelledAndClosed(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, nil)
	s := db.OpenSession()
	hilo, made := &customer{Name: "hilo"}, &customer{ID: "customers|", Name: "made"}
	must(t, s.Store(ctx, hilo))
	must(t, s.Store(ctx, made))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if err := s.SaveChanges(cancelled); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	closeDB(t, db)
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("closed: %v", err)
	}
	if err := s.Store(ctx, &customer{}); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("store: %v", err)
	}
	if _, err := jay.Load[customer](ctx, s, "customers/1"); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("load: %v", err)
	}
	if err := s.Reattach(memory(t, nil)); !errors.Is(err, jay.ErrUsage) {
		t.Errorf("reattach to another database: %v", err)
	}
	db = open(t, dir, nil)
	defer closeDB(t, db)
	must(t, s.Reattach(db))
	must(t, s.SaveChanges(ctx))
	equal(t, hilo.ID, "customers/1-A")
	equal(t, made.ID, "customers/1")
	equal(t, count(t, db, "Customers"), 2)
}

// Ensure that a save whose outcome the disk left open is recognised after the
// reopen, whether it survived or not: SaveChanges is refused until then, and
// afterwards no document is there twice, no ID came twice, no deletion is lost,
// and what survived is not written again; whatever the user did meanwhile.
func TestSession_UnknownOutcome(t *testing.T) {
	kinds := map[string]func(t *testing.T, s *jay.Session, u *unknown){
		"identities": func(t *testing.T, s *jay.Session, u *unknown) { u.storeMade(t, s) },
		"HiLo":       func(t *testing.T, s *jay.Session, u *unknown) { u.storeHiLo(t, s) },
		"changes":    func(t *testing.T, s *jay.Session, u *unknown) { u.change(t, s) },
		"deletions":  func(t *testing.T, s *jay.Session, u *unknown) { u.remove(t, s) },
		"all": func(t *testing.T, s *jay.Session, u *unknown) {
			u.storeMade(t, s)
			u.storeHiLo(t, s)
			u.change(t, s)
			u.remove(t, s)
		},
	}
	meanwhile := map[string]func(t *testing.T, s *jay.Session, u *unknown){
		"nothing": func(*testing.T, *jay.Session, *unknown) {},
		"entities change again": func(t *testing.T, s *jay.Session, u *unknown) {
			for v := range u.want {
				v.Name += ", again"
				u.want[v] = v.Name
			}
		},
		"entities are deleted": func(t *testing.T, s *jay.Session, u *unknown) {
			for v := range u.want {
				must(t, s.Delete(v))
				delete(u.want, v)
			}
		},
		"more is stored": func(t *testing.T, s *jay.Session, u *unknown) { u.storeMade(t, s) },
	}
	for kind, prepare := range kinds {
		for meant, do := range meanwhile {
			for _, survive := range []int{0, 100} {
				for _, optimistic := range []bool{false, true} {
					t.Run(fmt.Sprintf("%s, then %s, %d%% survive, optimistic %v", kind, meant, survive, optimistic), func(t *testing.T) {
						t.Parallel()
						testUnknownOutcome(t, prepare, do, survive, optimistic)
					})
				}
			}
		}
	}
}

// unknown is what must be there in the end.
type unknown struct {
	want map[*customer]string // names, by entity
	gone []string
}

func (u *unknown) storeMade(t *testing.T, s *jay.Session) {
	for range 2 {
		u.store(t, s, &customer{ID: "customers|", Name: fmt.Sprint("made ", len(u.want))})
	}
}

func (u *unknown) storeHiLo(t *testing.T, s *jay.Session) {
	u.store(t, s, &customer{Name: fmt.Sprint("HiLo ", len(u.want))})
}

func (u *unknown) store(t *testing.T, s *jay.Session, v *customer) {
	must(t, s.Store(ctx, v))
	u.want[v] = v.Name
}

func (u *unknown) change(t *testing.T, s *jay.Session) {
	v := load[customer](t, s, "kept/1")
	v.Name = "changed"
	u.want[v] = v.Name
}

func (u *unknown) remove(t *testing.T, s *jay.Session) {
	must(t, s.Delete(load[customer](t, s, "gone/1")))
	must(t, s.DeleteID("gone/2"))
	u.gone = append(u.gone, "gone/1", "gone/2")
}

func testUnknownOutcome(t *testing.T, prepare, meanwhile func(*testing.T, *jay.Session, *unknown), survive int, optimistic bool) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	for _, id := range []string{"kept/1", "gone/1", "gone/2"} {
		put(t, db, id, `{"Name":"before"}`, jay.InCollection("Customers"))
	}
	var opts []jay.SessionOption
	if optimistic {
		opts = append(opts, jay.OptimisticConcurrency())
	}
	s := db.OpenSession(opts...)
	warm := &customer{Name: "warm"} // the range of HiLo is on disk
	must(t, s.Store(ctx, warm))
	must(t, s.SaveChanges(ctx))
	u := &unknown{want: map[*customer]string{warm: "warm"}}
	prepare(t, s, u)
	given := make(map[*customer]string)
	for v := range u.want {
		given[v] = v.ID
	}

	disk.FailAfter(0)
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatalf("on a failing disk: %v", err)
	}
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrFailed) {
		t.Fatalf("again on the same handle: %v", err)
	}
	for v, id := range given {
		equal(t, v.ID, id)
	}
	meanwhile(t, s, u)
	crashed := disk.Crash(survive, rand.New(rand.NewPCG(1, 2)))
	_ = db.Close()

	again := onDisk(t, crashed, jay.Options{})
	defer closeDB(t, again)
	survived := bodyAt(t, again, "gone/1") == "" || bodyAt(t, again, "kept/1") == `{"Name":"changed"}` || count(t, again, "Customers") > 4
	equal(t, survived, survive == 100)
	must(t, s.Reattach(again))
	must(t, s.SaveChanges(ctx))

	ids := make(map[string]bool)
	for v, name := range u.want {
		if ids[v.ID] || strings.HasSuffix(v.ID, "|") {
			t.Errorf("id %q", v.ID)
		}
		ids[v.ID] = true
		if before := given[v]; before != "" && !strings.HasSuffix(before, "|") {
			equal(t, v.ID, before)
		}
		equal(t, bodyAt(t, again, v.ID), fmt.Sprintf(`{"Name":%q}`, name))
	}
	for _, id := range u.gone {
		equal(t, bodyAt(t, again, id), "")
	}
	for doc, err := range again.Documents(ctx, jay.Scan{Collection: "Customers"}) {
		must(t, err)
		if !ids[doc.ID()] && string(doc.Body()) != `{"Name":"before"}` {
			t.Errorf("%s is there, too: %s", doc.ID(), doc.Body())
		}
	}
	after := everything(t, again)
	must(t, s.SaveChanges(ctx))
	equal(t, everything(t, again), after)
	for v := range u.want {
		v.Name = "last"
	}
	must(t, s.SaveChanges(ctx))
	for v := range u.want {
		equal(t, bodyAt(t, again, v.ID), `{"Name":"last"}`)
	}
}

// Ensure that a save that survived is not written a second time.
func TestSession_UnknownOutcome_NotRepeated(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	put(t, db, "warm", `{}`)
	s := db.OpenSession()
	v := &customer{ID: "customers|"}
	must(t, s.Store(ctx, v))
	disk.FailAfter(0)
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	crashed := disk.Crash(100, rand.New(rand.NewPCG(1, 2)))
	_ = db.Close()
	again := onDisk(t, crashed, jay.Options{})
	defer closeDB(t, again)
	before := everything(t, again)
	must(t, s.Reattach(again))
	must(t, s.SaveChanges(ctx))
	equal(t, everything(t, again), before)
	equal(t, v.ID, "customers/1")
}

// Ensure that a save which survived is recognised even if everything it wrote
// was overwritten or deleted before the session asked.
func TestSession_UnknownOutcome_Overwritten(t *testing.T) {
	for _, by := range []string{"put", "delete"} {
		for _, survive := range []int{0, 100} {
			disk := storagetest.NewDisk()
			db := onDisk(t, disk, jay.Options{})
			put(t, db, "warm", `{}`)
			s := db.OpenSession()
			v := &customer{ID: "customers|", Name: "mine"}
			must(t, s.Store(ctx, v))
			disk.FailAfter(0)
			if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
				t.Fatal(err)
			}
			crashed := disk.Crash(survive, rand.New(rand.NewPCG(1, 2)))
			_ = db.Close()
			again := onDisk(t, crashed, jay.Options{})
			if by == "put" {
				put(t, again, "customers/1", `{"Name":"theirs"}`, jay.InCollection("Customers"))
			} else {
				must(t, again.Delete(ctx, "customers/1"))
			}
			must(t, s.Reattach(again))
			must(t, s.SaveChanges(ctx))
			theirs, mine := 0, 1
			if by == "put" {
				theirs = 1
			}
			if survive == 100 {
				mine = 0 // it was there and another writer has replaced it
			}
			if n := count(t, again, "Customers"); n != theirs+mine {
				t.Errorf("%s, %d%%: %d documents:\n%s", by, survive, n, everything(t, again))
			}
			closeDB(t, again)
		}
	}
}

// Ensure that deletions are not lost if what failed was the reservation of
// version numbers, before anything was written.
func TestSession_UnknownOutcome_BeforeTheWrite(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	put(t, db, "gone/1", `{}`, jay.InCollection("Customers"))
	closeDB(t, db)
	db = onDisk(t, disk, jay.Options{}) // nothing is reserved any more
	s := db.OpenSession()
	must(t, s.DeleteID("gone/1"))
	disk.FailAfter(0)
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	for _, survive := range []int{0, 100} {
		crashed := disk.Crash(survive, rand.New(rand.NewPCG(1, 2)))
		again := onDisk(t, crashed, jay.Options{})
		must(t, s.Reattach(again))
		must(t, s.SaveChanges(ctx))
		equal(t, bodyAt(t, again, "gone/1"), "")
		closeDB(t, again)
		break
	}
	_ = db.Close()
}

// Ensure that an entity which was refreshed after a failed save goes on from
// what it was refreshed to.
func TestSession_UnknownOutcome_Refresh(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	put(t, db, "customers/1", `{"Name":"before"}`, jay.InCollection("Customers"))
	put(t, db, "customers/2", `{"Name":"before"}`, jay.InCollection("Customers"))
	s := db.OpenSession(jay.OptimisticConcurrency())
	a, b := load[customer](t, s, "customers/1"), load[customer](t, s, "customers/2")
	a.Name, b.Name = "a", "b"
	disk.FailAfter(0)
	if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatal(err)
	}
	crashed := disk.Crash(100, rand.New(rand.NewPCG(1, 2)))
	_ = db.Close()
	again := onDisk(t, crashed, jay.Options{})
	defer closeDB(t, again)
	put(t, again, "customers/1", `{"Name":"theirs"}`, jay.InCollection("Customers"))
	must(t, s.Reattach(again))
	must(t, s.Refresh(ctx, a))
	before := everything(t, again)
	must(t, s.SaveChanges(ctx))
	equal(t, everything(t, again), before)
	a.Name = "mine"
	must(t, s.SaveChanges(ctx))
	equal(t, bodyAt(t, again, "customers/1"), `{"Name":"mine"}`)
}

// Ensure that goroutines with a session each, on shared documents, lose no
// change if they load anew after a conflict.
func TestSession_Concurrent(t *testing.T) {
	const goroutines, rounds = 8, 40
	type Counter struct {
		ID  string
		N   int
		Log []string
	}
	db := memory(t, nil)
	for i := range 3 {
		put(t, db, fmt.Sprintf("counters/%d", i), `{"N":0,"Log":[]}`, jay.InCollection("Counters"))
	}
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(g), 1))
			for i := range rounds {
				from, to := fmt.Sprintf("counters/%d", random.IntN(3)), fmt.Sprintf("counters/%d", random.IntN(3))
				for {
					s := db.OpenSession(jay.OptimisticConcurrency())
					both, err := jay.LoadMany[Counter](ctx, s, []string{from, to})
					if err != nil {
						t.Error(err)
						return
					}
					both[0].N--
					both[1].N++
					both[1].Log = append(both[1].Log, fmt.Sprintf("%d.%d", g, i))
					if err = s.SaveChanges(ctx); err == nil {
						break
					}
					if !errors.Is(err, jay.ErrConflict) {
						t.Error(err)
						return
					}
				}
			}
		})
	}
	wg.Wait()
	sum, seen := 0, make(map[string]bool)
	s := db.OpenSession()
	for i := range 3 {
		c := load[Counter](t, s, fmt.Sprintf("counters/%d", i))
		sum += c.N
		for _, entry := range c.Log {
			if seen[entry] {
				t.Errorf("%s came twice", entry)
			}
			seen[entry] = true
		}
	}
	equal(t, sum, 0)
	equal(t, len(seen), goroutines*rounds)
}

// Ensure that a save which survived is recognised by its versions, too, when
// others have opened, written and closed the database before the session moves
// to it. What was found at the last opening says nothing then: if none of its documents is
// there, they may be deleted, and the session says that it does not know.
func TestSession_UnknownOutcome_SecondReopen(t *testing.T) {
	for _, survive := range []int{0, 100} {
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		put(t, db, "warm", `{}`)
		s := db.OpenSession()
		one, two := &customer{ID: "customers|", Name: "one"}, &customer{ID: "customers|", Name: "two"}
		must(t, s.Store(ctx, one))
		must(t, s.Store(ctx, two))
		disk.FailAfter(0)
		if err := s.SaveChanges(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
			t.Fatal(err)
		}
		crashed := disk.Crash(survive, rand.New(rand.NewPCG(1, 2)))
		_ = db.Close()
		others := onDisk(t, crashed, jay.Options{})
		must(t, others.Delete(ctx, "customers/1")) // one of two is enough to show it
		put(t, others, "later", `{}`)
		closeDB(t, others)
		again := onDisk(t, crashed, jay.Options{})
		must(t, s.Reattach(again))
		err := s.SaveChanges(ctx)
		if survive == 0 {
			if !errors.Is(err, jay.ErrUnknownOutcome) || count(t, again, "Customers") != 0 {
				t.Errorf("nothing is left of the save: %v", err)
			}
			s.Clear()
			must(t, s.Store(ctx, &customer{ID: "customers|", Name: "anew"}))
			err = s.SaveChanges(ctx)
		}
		must(t, err)
		equal(t, count(t, again, "Customers"), 1)
		closeDB(t, again)
	}
}

type versionedBike struct {
	ID      string
	Serial  string
	Version string `jay:"version"`
}

// Ensure that a session takes the version field of a loaded entity for the version
// that is expected, so that a form with an older version does not overwrite a newer
// document.
func TestSession_ChangedVersionField(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]jay.SessionOption{nil, {jay.OptimisticConcurrency()}} {
		db := memory(t, nil)
		bikes, err := jay.CollectionOf[versionedBike](db)
		must(t, err)
		bike := &versionedBike{Serial: "a"}
		_, err = bikes.Insert(ctx, bike)
		must(t, err)
		form := bike.Version
		bike.Serial = "b"
		_, err = bikes.Put(ctx, bike)
		must(t, err)
		current := bike.Version

		wantConflict := func(what string, err error) {
			t.Helper()
			var conflict *jay.ConflictError
			if !errors.As(err, &conflict) || conflict.Expected != form || conflict.Actual != current || conflict.ID != bike.ID {
				t.Errorf("%s: got %v, want a conflict of %s", what, err, form)
			}
			if doc, err := bikes.Get(ctx, bike.ID); err != nil || doc.Serial != "b" || doc.Version != current {
				t.Fatalf("%s: the document is %+v (%v), want it unchanged", what, doc, err)
			}
		}
		load := func() (*jay.Session, *versionedBike) {
			s := db.OpenSession(opts...)
			v, err := jay.Load[versionedBike](ctx, s, bike.ID)
			must(t, err)
			return s, v
		}

		s, v := load()
		v.Version, v.Serial = form, "lost"
		wantConflict("changed", s.SaveChanges(ctx))
		wantConflict("called again", s.SaveChanges(ctx))
		must(t, s.Refresh(ctx, v))
		must(t, s.SaveChanges(ctx))

		s, v = load()
		v.Version = form
		wantConflict("no other field changed", s.SaveChanges(ctx))

		s, v = load()
		v.Version = form
		must(t, s.Delete(v))
		wantConflict("deleted", s.SaveChanges(ctx))

		// A session that is older than the form would write old fields beside the new ones.
		s, v = load()
		bike.Serial = "b"
		_, err = bikes.Put(ctx, bike)
		must(t, err)
		form, v.Version, v.Serial = bike.Version, bike.Version, "lost"
		err = s.SaveChanges(ctx)
		current, form = form, current
		if !errors.Is(err, jay.ErrConflict) {
			t.Errorf("stale session: got %v, want a conflict", err)
		}

		for _, version := range []string{current, ""} {
			s, v = load()
			v.Version, v.Serial = version, v.Serial+"c"
			must(t, s.SaveChanges(ctx))
			if current == v.Version {
				t.Errorf("version %q: the field still holds %s after the save", version, v.Version)
			}
			current = v.Version
			v.Serial += "d" // saved again, with the new version
			must(t, s.SaveChanges(ctx))
			current = v.Version
		}
		s, v = load()
		v.Version = current
		must(t, s.Delete(v))
		v.Version = "reused"
		must(t, s.SaveChanges(ctx))
		if found, err := bikes.Exists(ctx, bike.ID); found || err != nil {
			t.Errorf("after Delete: found %v, %v", found, err)
		}
	}
}
