package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

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
