package jay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// expiring opens a database in memory that sweeps only when it is asked to.
func expiring(t *testing.T, exact bool) (*jay.DB, *jaytest.Clock) {
	t.Helper()
	restore := checks.NoSweeper()
	clock := newClock()
	db := memory(t, &jay.Options{Now: clock.Now, ExactExpiry: exact})
	restore()
	return db, clock
}

// swept sweeps, and checks that this many documents were deleted and refreshed.
func swept(t *testing.T, db *jay.DB, deleted, refreshed int64) {
	t.Helper()
	got, err := db.Sweep(ctx)
	must(t, err)
	if want := (jay.Swept{Deleted: deleted, Refreshed: refreshed}); got != want {
		t.Errorf("swept %+v, want %+v", got, want)
	}
	must(t, checks.Times(db))
	must(t, checks.Counts(db))
}

// custom returns the custom metadata of a document.
func custom(t *testing.T, db *jay.DB, id string) string {
	t.Helper()
	doc, err := db.Get(ctx, id)
	must(t, err)
	return string(doc.Metadata().Custom)
}

type lease struct {
	ID    string
	Owner string
}

// Ensure that every verb that writes a document takes the options, and that the
// document goes at its instant and not before.
func TestExpiry_Verbs(t *testing.T) {
	inBatch := func(fn func(b *jay.Batch)) func(*jay.DB) error {
		return func(db *jay.DB) error {
			var b jay.Batch
			fn(&b)
			_, err := db.Apply(ctx, &b)
			return err
		}
	}
	inTx := func(fn func(tx *jay.Tx) error) func(*jay.DB) error {
		return func(db *jay.DB) error { return db.Update(ctx, fn) }
	}
	ttl := jay.WithTTL(time.Hour)
	at := time.Date(2026, 11, 21, 13, 0, 0, 0, time.UTC)
	empty := json.RawMessage(`{}`)
	tests := map[string]func(db *jay.DB) error{
		"Put":    func(db *jay.DB) error { _, err := db.Put(ctx, "leases/1", empty, ttl); return err },
		"Put at": func(db *jay.DB) error { _, err := db.Put(ctx, "leases/1", empty, jay.ExpiresAt(at)); return err },
		"Put metadata": func(db *jay.DB) error {
			_, err := db.Put(ctx, "leases/1", []byte(`{"@metadata":{"@expires":"2026-11-21T14:00:00+01:00"}}`))
			return err
		},
		"option first": func(db *jay.DB) error {
			_, err := db.Put(ctx, "leases/1", []byte(`{"@metadata":{"@expires":"2026-11-21T12:30:00Z"}}`), ttl)
			return err
		},
		"last option": func(db *jay.DB) error {
			_, err := db.Put(ctx, "leases/1", empty, jay.ExpiresAt(at.Add(time.Hour)), ttl)
			return err
		},
		"WithMetadata": func(db *jay.DB) error {
			_, err := db.Put(ctx, "leases/1", empty, jay.WithMetadata([]byte(`{"@expires":"2026-11-21T13:00:00Z"}`)))
			return err
		},
		"Insert":      func(db *jay.DB) error { _, err := db.Insert(ctx, "leases/1", empty, ttl); return err },
		"Store":       func(db *jay.DB) error { _, err := db.Store(ctx, "Leases", empty, ttl); return err },
		"identity":    func(db *jay.DB) error { _, err := db.Put(ctx, "leases|", empty, ttl); return err },
		"server-side": func(db *jay.DB) error { _, err := db.Put(ctx, "leases/", empty, ttl); return err },
		"GUID":        func(db *jay.DB) error { _, err := db.Put(ctx, "", empty, ttl); return err },
		"Replace": func(db *jay.DB) error {
			if _, err := db.Put(ctx, "leases/1", empty, jay.WithTTL(time.Minute)); err != nil {
				return err
			}
			_, err := db.Replace(ctx, "leases/1", empty, ttl)
			return err
		},
		"Patch": func(db *jay.DB) error {
			if _, err := db.Put(ctx, "leases/1", empty, jay.WithTTL(time.Minute)); err != nil {
				return err
			}
			_, err := db.Patch(ctx, "leases/1", jay.Set("a", 1), ttl)
			return err
		},
		"Patch that inserts": func(db *jay.DB) error {
			_, err := db.Patch(ctx, "leases/1", jay.Increment("n", 1), jay.OrInsertPatched(struct{}{}), ttl)
			return err
		},
		"Batch.Put":    inBatch(func(b *jay.Batch) { b.Put("leases/1", empty, ttl) }),
		"Batch.Insert": inBatch(func(b *jay.Batch) { b.Insert("leases/1", empty, ttl) }),
		"Batch.Store":  inBatch(func(b *jay.Batch) { b.Store("Leases", empty, ttl) }),
		"Batch.Patch": inBatch(func(b *jay.Batch) {
			b.Put("leases/1", empty)
			b.Patch("leases/1", ttl)
		}),
		"Tx.Put":   inTx(func(tx *jay.Tx) error { _, err := tx.Put(ctx, "leases/1", empty, ttl); return err }),
		"Tx.Store": inTx(func(tx *jay.Tx) error { _, err := tx.Store(ctx, "Leases", empty, ttl); return err }),
		"Tx.Patch": inTx(func(tx *jay.Tx) error {
			if _, err := tx.Put(ctx, "leases/1", empty); err != nil {
				return err
			}
			_, err := tx.Patch(ctx, "leases/1", ttl)
			return err
		}),
		"Tx.Patch that inserts": inTx(func(tx *jay.Tx) error {
			_, err := tx.Patch(ctx, "leases/1", jay.Increment("n", 1), jay.OrInsert(struct{}{}), ttl)
			return err
		}),
		"Collection.Insert": func(db *jay.DB) error {
			_, err := collectionOf[lease](t, db).Insert(ctx, &lease{Owner: "ann"}, ttl)
			return err
		},
		"Collection.PutMany": func(db *jay.DB) error {
			_, err := collectionOf[lease](t, db).PutMany(ctx, []*lease{{Owner: "ann"}}, ttl)
			return err
		},
		"BulkWriter": func(db *jay.DB) error {
			w, err := db.BulkInsert(nil)
			if err != nil {
				return err
			}
			if _, err := w.Put(ctx, "leases/1", empty, ttl); err != nil {
				return err
			}
			return w.Close()
		},
		"BulkStore": func(db *jay.DB) error {
			w, err := db.BulkInsert(nil)
			if err != nil {
				return err
			}
			if err := collectionOf[lease](t, db).BulkStore(ctx, w, &lease{}, ttl); err != nil {
				return err
			}
			return w.Close()
		},
		"Session": func(db *jay.DB) error {
			s := db.OpenSession()
			l := &lease{Owner: "ann"}
			if err := s.Store(ctx, l); err != nil {
				return err
			}
			if err := s.SetMetadata(l, []byte(`{"@expires":"2026-11-21T13:00:00Z"}`)); err != nil {
				return err
			}
			if err := s.SaveChanges(ctx); err != nil {
				return err
			}
			l.Owner = "bob" // the next save keeps it
			return s.SaveChanges(ctx)
		},
		"Query.Patch": func(db *jay.DB) error {
			if _, err := db.Put(ctx, "leases/1", empty, jay.InCollection("Leases")); err != nil {
				return err
			}
			_, err := db.Query("Leases").Patch(ctx, ttl)
			return err
		},
	}
	for name, write := range tests {
		t.Run(name, func(t *testing.T) {
			db, clock := expiring(t, false)
			must(t, write(db))
			must(t, checks.Times(db))
			clock.Advance(time.Hour - 1)
			swept(t, db, 0, 0)
			clock.Advance(1)
			swept(t, db, 1, 0)
			for doc, err := range db.Documents(ctx, jay.Scan{}) {
				must(t, err)
				if doc.Collection() != "@hilo" {
					t.Errorf("%s is still there", doc.ID())
				}
			}
		})
	}
}

// Ensure that what makes no sense is refused, by its rule, and changes nothing.
func TestExpiry_Refused(t *testing.T) {
	db, clock := expiring(t, false)
	put(t, db, "a", `{}`)
	before := dump(t, db)
	empty := json.RawMessage(`{}`)
	late := time.Date(10_000, 1, 1, 0, 0, 0, 0, time.UTC)
	for name, test := range map[string]struct {
		want error
		do   func() error
	}{
		"no time to live":   {jay.ErrUsage, func() error { _, err := db.Put(ctx, "a", empty, jay.WithTTL(0)); return err }},
		"negative":          {jay.ErrUsage, func() error { _, err := db.Put(ctx, "a", empty, jay.WithTTL(-1)); return err }},
		"year 10000":        {jay.ErrUsage, func() error { _, err := db.Put(ctx, "a", empty, jay.ExpiresAt(late)); return err }},
		"refresh 10000":     {jay.ErrUsage, func() error { _, err := db.Put(ctx, "a", empty, jay.RefreshAt(late)); return err }},
		"patch, year 10000": {jay.ErrUsage, func() error { _, err := db.Patch(ctx, "a", jay.ExpiresAt(late)); return err }},
		"delete":            {jay.ErrUsage, func() error { return db.Delete(ctx, "a", jay.WithTTL(time.Hour)) }},
		"empty patch":       {jay.ErrUsage, func() error { _, err := db.Patch(ctx, "a"); return err }},
		"no instant": {jay.ErrInvalidDocument, func() error {
			_, err := db.Put(ctx, "a", []byte(`{"@metadata":{"@expires":"tomorrow"}}`))
			return err
		}},
		"no instant, in a session": {jay.ErrInvalidDocument, func() error {
			s, l := db.OpenSession(), new(lease)
			must(t, s.Store(ctx, l))
			return s.SetMetadata(l, []byte(`{"@refresh":"2026-01-01"}`))
		}},
	} {
		if err := test.do(); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", name, err, test.want)
		}
	}
	clock.Advance(100 * 365 * 24 * time.Hour)
	swept(t, db, 0, 0)
	if after := dump(t, db); !strings.HasPrefix(after, before[:strings.LastIndex(before, "\n")]) {
		t.Errorf("got %s, want %s", after, before)
	}
}

// Ensure that a write decides anew when its document expires, and that a patch keeps it,
// moves it and removes it.
func TestExpiry_Moved(t *testing.T) {
	db, clock := expiring(t, false)
	collection := collectionOf[lease](t, db)
	keep := func(name string, write func() error) {
		t.Helper()
		must(t, write())
		must(t, checks.Times(db))
		if t.Failed() {
			t.Fatal(name)
		}
	}
	l := &lease{Owner: "ann"}
	keep("insert", func() error { _, err := collection.Insert(ctx, l, jay.WithTTL(time.Hour)); return err })
	keep("move it back", func() error { _, err := db.Patch(ctx, l.ID, jay.WithTTL(2*time.Hour)); return err })
	clock.Advance(time.Hour)
	swept(t, db, 0, 0)
	keep("a patch keeps it", func() error { _, err := db.Patch(ctx, l.ID, jay.Set("Owner", "bob")); return err })
	equal(t, custom(t, db, l.ID), `{"@expires":"2026-11-21T14:00:00.0000000Z"}`)
	keep("and one in a transaction", func() error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			_, err := tx.Patch(ctx, l.ID, jay.Set("Owner", "cyd"))
			return err
		})
	})
	equal(t, custom(t, db, l.ID), `{"@expires":"2026-11-21T14:00:00.0000000Z"}`)

	// A patch that changes nothing, not even that, writes nothing.
	r, err := db.Patch(ctx, l.ID, jay.Set("Owner", "cyd"), jay.ExpiresAt(time.Date(2026, 11, 21, 14, 0, 0, 0, time.UTC)))
	must(t, err)
	equal(t, r.Status, jay.PatchNotModified)

	for _, where := range []string{"database", "batch", "transaction"} {
		_, err := jaytest.PatchIn(where, db, l.ID, []jay.PatchOption{jay.ExpiresAt(time.Time{}), jay.RefreshAt(time.Time{})})
		must(t, err)
		must(t, checks.Times(db))
		equal(t, custom(t, db, l.ID), "")
		_, err = jaytest.PatchIn(where, db, l.ID, []jay.PatchOption{jay.WithTTL(time.Hour), jay.RefreshAt(clock.Now().Add(time.Minute))})
		must(t, err)
		must(t, checks.Times(db))
		equal(t, custom(t, db, l.ID), `{"@expires":"2026-11-21T14:00:00.0000000Z","@refresh":"2026-11-21T13:01:00.0000000Z"}`)
	}
	keep("a put of JSON removes it", func() error { _, err := db.Put(ctx, l.ID, []byte(`{"Owner":"cyd"}`)); return err })
	equal(t, custom(t, db, l.ID), "")
	clock.Advance(1000 * time.Hour)
	swept(t, db, 0, 0)
	keep("one that has passed", func() error { _, err := collection.Put(ctx, l, jay.ExpiresAt(clock.Now().Add(-1))); return err })
	swept(t, db, 1, 0)

	// A deletion takes the entries along, in every way.
	for name, remove := range map[string]func() error{
		"delete":      func() error { return db.Delete(ctx, "leases/x") },
		"batch":       func() error { var b jay.Batch; b.Delete("leases/x"); _, err := db.Apply(ctx, &b); return err },
		"transaction": func() error { return db.Update(ctx, func(tx *jay.Tx) error { return tx.Delete(ctx, "leases/x") }) },
		"query":       func() error { _, err := db.Query("Leases").Delete(ctx); return err },
		"collection":  func() error { _, err := db.DropCollection(ctx, "Leases"); return err },
		"session": func() error {
			s := db.OpenSession()
			must(t, s.DeleteID("leases/x"))
			return s.SaveChanges(ctx)
		},
	} {
		put(t, db, "leases/x", `{}`, jay.InCollection("Leases"), jay.WithTTL(time.Hour), jay.RefreshAt(clock.Now()))
		keep(name, remove)
		equal(t, body(t, db, "leases/x"), "absent")
	}
	clock.Advance(time.Hour)
	swept(t, db, 0, 0)

	// A rename takes them along.
	put(t, db, "leases/x", `{}`, jay.InCollection("Leases"), jay.WithTTL(time.Hour), jay.RefreshAt(clock.Now()))
	keep("rename", func() error { _, err := db.RenameCollection(ctx, "Leases", "Rents"); return err })
	swept(t, db, 0, 1)
	clock.Advance(time.Hour)
	swept(t, db, 1, 0)
}

// Ensure that a refresh gives a document a new version at its instant, once, and leaves
// everything else as it was.
func TestRefresh(t *testing.T) {
	db, clock := expiring(t, false)
	must(t, db.EnsureIndex(ctx, "Leases", jay.Index{Fields: []string{"Owner"}, Unique: true}))
	before := put(t, db, "Leases/X", `{"Owner":"ann"}`, jay.InCollection("Leases"), jay.WithMetadata([]byte(`{"k":1}`)),
		jay.RefreshAt(clock.Now().Add(time.Minute)), jay.WithTTL(time.Hour))
	clock.Advance(time.Minute - 1)
	swept(t, db, 0, 0)
	clock.Advance(1)
	swept(t, db, 0, 1)
	doc, err := db.Get(ctx, "leases/x")
	must(t, err)
	after := doc.Metadata()
	equal(t, after.ID, "Leases/X")
	equal(t, after.Collection, "Leases")
	equal(t, string(doc.Body()), `{"Owner":"ann"}`)
	equal(t, string(after.Custom), `{"k":1,"@expires":"2026-11-21T13:00:00.0000000Z"}`)
	if after.ChangeVector == before.ChangeVector || after.Etag <= before.Etag || !after.LastModified.Equal(clock.Now()) {
		t.Errorf("got %+v, before %+v", after, before)
	}
	n, err := db.Query("Leases").Where(jay.Eq("Owner", "ann")).Count(ctx)
	must(t, err)
	equal(t, n, 1)
	must(t, checks.Indexes(db))
	swept(t, db, 0, 0)
	clock.Advance(time.Hour)
	swept(t, db, 1, 0)

	// One that is due together with its expiry is only deleted.
	put(t, db, "both", `{}`, jay.RefreshAt(clock.Now()), jay.WithTTL(1))
	clock.Advance(1)
	swept(t, db, 1, 0)
	equal(t, body(t, db, "both"), "absent")
}

// Ensure that a clock that jumps forth and back does what is due by it, and nothing twice,
// and that what is due at an instant that was passed before is not forgotten.
func TestExpiry_ClockJumps(t *testing.T) {
	for _, exact := range []bool{false, true} {
		db, clock := expiring(t, exact)
		for i := range 8 {
			put(t, db, fmt.Sprint("leases/", i), `{}`, jay.InCollection("Leases"), jay.WithTTL(time.Duration(i+1)*15*time.Minute))
		}
		clock.Advance(-time.Hour)
		swept(t, db, 0, 0)
		clock.Advance(2 * time.Hour) // an hour after the beginning
		swept(t, db, 4, 0)
		clock.Advance(-time.Hour)
		swept(t, db, 0, 0)
		put(t, db, "leases/new", `{}`, jay.InCollection("Leases"), jay.WithTTL(time.Minute))
		n, err := db.Query("Leases").Count(ctx)
		must(t, err)
		equal(t, n, 5)
		clock.Advance(time.Minute)
		n, err = db.Query("Leases").Count(ctx)
		must(t, err)
		if exact {
			equal(t, n, 4)
		}
		swept(t, db, 1, 0)
		clock.Advance(2 * time.Hour)
		swept(t, db, 4, 0)
	}
}

// Ensure that with ExactExpiry no read shows a document from its instant on, whether or
// not it was deleted, and that without it every read does until it is deleted.
func TestExactExpiry_Reads(t *testing.T) {
	db, clock := expiring(t, true)
	leases := collectionOf[lease](t, db)
	must(t, db.EnsureIndex(ctx, "Leases", jay.Index{Fields: []string{"Owner"}}))
	put(t, db, "leases/stays", `{"Owner":"ann"}`, jay.InCollection("Leases"), jay.WithTTL(2*time.Hour))
	put(t, db, "leases/goes", `{"Owner":"bob"}`, jay.InCollection("Leases"), jay.WithTTL(time.Hour))
	put(t, db, "other", `{"Lease":"leases/goes"}`, jay.InCollection("Others"), jay.WithTTL(time.Hour))
	put(t, db, "index", `{"Lease":"leases/goes"}`, jay.InCollection("Index"))

	found := func(err error) bool {
		t.Helper()
		if err != nil && !errors.Is(err, jay.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	count := func(n int64, err error) bool {
		t.Helper()
		must(t, err)
		if n != 1 && n != 2 {
			t.Errorf("counted %d", n)
		}
		return n == 2
	}
	view := func(fn func(tx *jay.Tx) bool) (shown bool) {
		must(t, db.View(ctx, func(tx *jay.Tx) error { shown = fn(tx); return nil }))
		return shown
	}
	update := func(fn func(tx *jay.Tx) bool) (shown bool) {
		must(t, db.Update(ctx, func(tx *jay.Tx) error { shown = fn(tx); return nil }))
		return shown
	}
	rql := func(text string) bool { return len(rows(t, db, text)) > 0 }
	reads := map[string]func() bool{
		"Get":             func() bool { _, err := db.Get(ctx, "leases/goes"); return found(err) },
		"GetMany":         func() bool { docs, err := db.GetMany(ctx, "leases/goes"); must(t, err); return docs[0] != nil },
		"Exists":          func() bool { ok, err := db.Exists(ctx, "leases/goes"); must(t, err); return ok },
		"Read":            func() bool { return found(db.Read(ctx, "leases/goes", func(*jay.RawDocument) error { return nil })) },
		"Collection.Get":  func() bool { _, err := leases.Get(ctx, "leases/goes"); return found(err) },
		"Collection.Many": func() bool { vs, err := leases.GetMany(ctx, "leases/goes"); must(t, err); return vs[0] != nil },
		"Collection.Is":   func() bool { ok, err := leases.Exists(ctx, "leases/goes"); must(t, err); return ok },
		"Documents": func() (shown bool) {
			for doc, err := range db.Documents(ctx, jay.Scan{}) {
				must(t, err)
				shown = shown || doc.ID() == "leases/goes"
			}
			return shown
		},
		"Documents backwards": func() (shown bool) {
			for doc, err := range db.Documents(ctx, jay.Scan{Collection: "Leases", Reverse: true}) {
				must(t, err)
				shown = shown || doc.ID() == "leases/goes"
			}
			return shown
		},
		"Collection.All": func() (shown bool) {
			for v, err := range leases.All(ctx) {
				must(t, err)
				shown = shown || v.Owner == "bob"
			}
			return shown
		},
		"Count":            func() bool { return count(leases.Count(ctx)) },
		"Count of a query": func() bool { return count(leases.Query().Where(jay.Gt("Owner", "a")).Count(ctx)) },
		"Count without an index": func() bool {
			return count(leases.Query().Where(jay.Ne("Owner", "x")).Count(ctx))
		},
		"Query.Exists": func() bool {
			ok, err := leases.Query().Where(jay.Eq("Owner", "bob")).Exists(ctx)
			must(t, err)
			return ok
		},
		"Query": func() bool {
			vs, err := leases.Query().Where(jay.Eq("Owner", "bob")).All(ctx)
			must(t, err)
			return len(vs) > 0
		},
		"covering":   func() bool { return rql(`from Leases where Owner = 'bob' select Owner`) },
		"scan":       func() bool { return rql(`from Leases where Owner != 'ann'`) },
		"IDs":        func() bool { return rql(`from Leases where id() = 'leases/goes'`) },
		"newest":     func() bool { return count(int64(len(rows(t, db, `from Leases order by @metadata.'@etag' desc`))), nil) },
		"collection": func() bool { return rql(`from Others`) },
		"distinct":   func() bool { return count(int64(len(rows(t, db, `from Leases select distinct Owner`))), nil) },
		"groups": func() bool {
			return count(int64(len(rows(t, db, `from Leases group by Owner select Owner, count()`))), nil)
		},
		"ends": func() bool {
			return strings.Contains(rows(t, db, `from Leases select max(Owner) as Last`)[0], "bob")
		},
		"counted": func() bool { return strings.Contains(rows(t, db, `from Leases select count() as N`)[0], "2") },
		"include": func() (shown bool) {
			q, err := db.RQL(`from Index include Lease`, nil)
			must(t, err)
			for row, err := range q.Iter(ctx) {
				must(t, err)
				shown = len(row.Included) > 0
			}
			return shown
		},
		"Collections": func() bool {
			all, err := db.Collections(ctx)
			must(t, err)
			text := fmt.Sprint(all)
			if strings.Contains(text, "{Others 1}") != strings.Contains(text, "{Leases 2}") {
				t.Errorf("got %s", text)
			}
			return strings.Contains(text, "Others")
		},
		"Stats": func() bool {
			s, err := db.Stats(ctx)
			must(t, err)
			return len(s.Collections) == 3
		},
		"session": func() bool { _, err := jay.Load[lease](ctx, db.OpenSession(), "leases/goes"); return found(err) },
		"session's query": func() bool {
			vs, err := jay.QueryOf[lease](db.OpenSession()).Where(jay.Eq("Owner", "bob")).All(ctx)
			must(t, err)
			return len(vs) > 0
		},
		"View.Get": func() bool {
			return view(func(tx *jay.Tx) bool { _, err := tx.Get(ctx, "leases/goes"); return found(err) })
		},
		"View.GetMany": func() bool {
			return view(func(tx *jay.Tx) bool {
				docs, err := tx.GetMany(ctx, "leases/goes")
				must(t, err)
				return docs[0] != nil
			})
		},
		"View.Count": func() bool { return view(func(tx *jay.Tx) bool { return count(leases.In(tx).Count(ctx)) }) },
		"Update.Get": func() bool {
			return update(func(tx *jay.Tx) bool { _, err := tx.Get(ctx, "leases/goes"); return found(err) })
		},
		"Update.Exists": func() bool {
			return update(func(tx *jay.Tx) bool { ok, err := tx.Exists(ctx, "leases/goes"); must(t, err); return ok })
		},
		"Update.Count": func() bool { return update(func(tx *jay.Tx) bool { return count(leases.In(tx).Count(ctx)) }) },
		"View.Collections": func() bool {
			return view(func(tx *jay.Tx) bool {
				all, err := tx.Collections(ctx)
				must(t, err)
				return strings.Contains(fmt.Sprint(all), "{Others 1}")
			})
		},
		"Update.Documents": func() bool {
			return update(func(tx *jay.Tx) bool {
				n := int64(0)
				for _, err := range tx.Documents(ctx, jay.Scan{Collection: "Leases"}) {
					must(t, err)
					n++
				}
				return count(n, nil)
			})
		},
		"patch": func() bool {
			r, err := db.Patch(ctx, "leases/goes", jay.Set("Owner", "bob"))
			must(t, err)
			return r.Status != jay.PatchNotFound
		},
	}
	check := func(when string, want bool) {
		t.Helper()
		for name, read := range reads {
			for range 3 { // the third comes from the cache
				if read() != want {
					t.Errorf("%s, %s: shown %v, want %v", when, name, !want, want)
					break
				}
			}
		}
	}
	clock.Advance(time.Hour - 1)
	check("before", true)
	clock.Advance(1)
	check("expired", false)
	swept(t, db, 2, 0)
	check("deleted", false)
}

// Ensure that what reads of one moment goes on showing what was there when it began.
func TestExactExpiry_OneMoment(t *testing.T) {
	db, clock := expiring(t, true)
	for i := range 3 {
		put(t, db, fmt.Sprint("leases/", i), `{}`, jay.InCollection("Leases"), jay.WithTTL(time.Hour))
	}
	n := 0
	for _, err := range db.Documents(ctx, jay.Scan{}) {
		must(t, err)
		n++
		clock.Advance(time.Hour)
		swept(t, db, map[int]int64{1: 3}[n], 0)
	}
	equal(t, n, 3)

	put(t, db, "leases/x", `{}`, jay.InCollection("Leases"), jay.WithTTL(time.Hour))
	must(t, db.View(ctx, func(tx *jay.Tx) error {
		clock.Advance(time.Hour)
		_, err := tx.Get(ctx, "leases/x")
		return err
	}))

	// A transaction that writes must not rest on a document that has expired meanwhile.
	put(t, db, "leases/x", `{}`, jay.InCollection("Leases"), jay.WithTTL(time.Hour))
	runs := 0
	err := db.Update(ctx, func(tx *jay.Tx) error {
		runs++
		_, err := tx.Get(ctx, "leases/x")
		clock.Advance(time.Hour)
		if errors.Is(err, jay.ErrNotFound) && runs == 2 {
			err = nil
		}
		_, failed := tx.Put(ctx, "seen", []byte(`{}`))
		return errors.Join(err, failed)
	}, jay.Retry(1))
	must(t, err)
	equal(t, runs, 2)

	// One that has found a document expired commits whether or not it is deleted.
	put(t, db, "leases/y", `{}`, jay.InCollection("Leases"), jay.WithTTL(time.Hour))
	clock.Advance(time.Hour)
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		if ok, err := tx.Exists(ctx, "leases/y"); ok || err != nil {
			t.Errorf("got %v, %v", ok, err)
		}
		if _, err := db.Sweep(ctx); err != nil {
			return err
		}
		_, err := tx.Put(ctx, "seen", []byte(`{}`))
		return err
	}))
}

// Ensure that writes pass by what has expired: under their ID, and in a unique index.
func TestExactExpiry_Writes(t *testing.T) {
	empty := json.RawMessage(`{"Owner":"ann"}`)
	in := jay.InCollection("Leases")
	tests := map[string]struct {
		do   func(db *jay.DB) error
		want error
	}{
		"Insert": {func(db *jay.DB) error { _, err := db.Insert(ctx, "leases/old", empty, in); return err }, nil},
		"Put":    {func(db *jay.DB) error { _, err := db.Put(ctx, "leases/old", empty, in); return err }, nil},
		"other collection": {func(db *jay.DB) error {
			_, err := db.Put(ctx, "leases/old", empty, jay.InCollection("Others"))
			return err
		}, nil},
		"IfMatch of none": {func(db *jay.DB) error { _, err := db.Put(ctx, "leases/old", empty, in, jay.IfMatch("")); return err }, nil},
		"unique":          {func(db *jay.DB) error { _, err := db.Insert(ctx, "leases/new", empty, in); return err }, nil},
		"unique, HiLo":    {func(db *jay.DB) error { _, err := db.Store(ctx, "Leases", empty); return err }, nil},
		"Replace":         {func(db *jay.DB) error { _, err := db.Replace(ctx, "leases/old", empty, in); return err }, jay.ErrNotFound},
		"Delete":          {func(db *jay.DB) error { return db.Delete(ctx, "leases/old") }, nil},
		"Force": {func(db *jay.DB) error {
			_, err := db.Revisions().Force(ctx, "leases/old")
			return err
		}, jay.ErrNotFound},
		"Patch or insert": {func(db *jay.DB) error {
			_, err := db.Patch(ctx, "leases/old", jay.Set("n", 1), jay.OrInsertPatched(empty), in)
			return err
		}, nil},
		"unique, by patch": {func(db *jay.DB) error { _, err := db.Patch(ctx, "leases/bob", jay.Set("Owner", "ann")); return err }, nil},
		"unique still": {func(db *jay.DB) error {
			_, err := db.Insert(ctx, "leases/new", []byte(`{"Owner":"bob"}`), in)
			return err
		}, jay.ErrUnique},
		"Batch": {func(db *jay.DB) error {
			var b jay.Batch
			for i := range 3 {
				b.Insert(fmt.Sprint("leases/old", []string{"", "2", "3"}[i]), []byte(fmt.Sprintf(`{"Owner":%d}`, i)), in)
			}
			_, err := db.Apply(ctx, &b)
			return err
		}, nil},
		"Tx": {func(db *jay.DB) error {
			return db.Update(ctx, func(tx *jay.Tx) error {
				if _, err := tx.Insert(ctx, "leases/old", empty, in); err != nil {
					return err
				}
				_, err := tx.Patch(ctx, "leases/old2", jay.Set("n", 1), jay.OrInsert(json.RawMessage(`{}`)), in)
				return err
			})
		}, nil},
		"Tx without collection": {func(db *jay.DB) error {
			return db.Update(ctx, func(tx *jay.Tx) error { _, err := tx.Put(ctx, "leases/old", empty); return err })
		}, nil},
		"bulk": {func(db *jay.DB) error {
			w, err := db.BulkInsert(nil)
			if err != nil {
				return err
			}
			if _, err := w.Put(ctx, "leases/old", empty, jay.InCollection("Others")); err != nil {
				return err
			}
			return w.Close()
		}, nil},
		"index": {func(db *jay.DB) error {
			if _, err := db.Put(ctx, "leases/new", []byte(`{"Mail":"m"}`), in); err != nil {
				return err
			}
			return db.EnsureIndex(ctx, "Leases", jay.Index{Fields: []string{"Mail"}, Unique: true})
		}, nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			db, clock := expiring(t, true)
			must(t, db.EnsureIndex(ctx, "Leases", jay.Index{Fields: []string{"Owner"}, Unique: true}))
			put(t, db, "leases/old", `{"Owner":"ann","Mail":"m"}`, in, jay.WithTTL(time.Hour))
			put(t, db, "leases/old2", `{}`, in, jay.WithTTL(time.Hour))
			put(t, db, "leases/old3", `{}`, in, jay.WithTTL(time.Hour))
			put(t, db, "leases/bob", `{"Owner":"bob"}`, in)
			clock.Advance(time.Hour)
			if err := test.do(db); !errors.Is(err, test.want) || err != nil && test.want == nil {
				t.Fatalf("got %v, want %v", err, test.want)
			}
			must(t, checks.Times(db))
			must(t, checks.Indexes(db))
			must(t, checks.Counts(db))
			if _, err := db.Sweep(ctx); err != nil {
				t.Fatal(err)
			}
			must(t, checks.Times(db))
			must(t, checks.Indexes(db))
		})
	}

	// Without the option they do not pass it by.
	db, clock := expiring(t, false)
	put(t, db, "leases/old", `{"Owner":"ann"}`, in, jay.WithTTL(time.Hour))
	clock.Advance(time.Hour)
	if _, err := db.Insert(ctx, "leases/old", empty, in); !errors.Is(err, jay.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
}

// expiryModel is what a database with expiry is to hold.
type expiryModel struct {
	exact bool
	docs  map[string]*expiryDoc
}

type expiryDoc struct {
	body             string
	expires, refresh time.Time
}

func (m *expiryModel) get(id string, now time.Time) *expiryDoc {
	d := m.docs[id]
	if d != nil && m.exact && !d.expires.IsZero() && !d.expires.After(now) {
		return nil
	}
	return d
}

// sweep does what is due.
func (m *expiryModel) sweep(now time.Time) {
	for id, d := range m.docs {
		if !d.expires.IsZero() && !d.expires.After(now) {
			delete(m.docs, id)
		} else if !d.refresh.IsZero() && !d.refresh.After(now) {
			d.refresh = time.Time{}
		}
	}
}

// Ensure that random histories of writes, sweeps and a clock that jumps do what a model
// does, with ExactExpiry and without it.
func TestExpiry_Model(t *testing.T) {
	sample.OneGoroutine(t)
	for _, exact := range []bool{false, true} {
		for seed := range uint64(expiryRounds(20)) {
			if expiryHistory(t, exact, seed); t.Failed() {
				t.Fatalf("exact %v, seed %d", exact, seed)
			}
		}
	}
}

// expiryRounds is how many rounds a test makes: JAY_EXPIRY_ROUNDS times as many, if
// that is set.
func expiryRounds(n int) int {
	if more, err := strconv.Atoi(os.Getenv("JAY_EXPIRY_ROUNDS")); err == nil {
		return n * more
	}
	return n
}

func expiryHistory(t *testing.T, exact bool, seed uint64) {
	defer checks.SetSweepBatches(3, 2)()
	random := rand.New(rand.NewPCG(seed, 7))
	db, clock := expiring(t, exact)
	must(t, db.EnsureIndex(ctx, "Leases", jay.Index{Fields: []string{"n"}}))
	m := &expiryModel{exact: exact, docs: make(map[string]*expiryDoc)}
	instant := func() time.Time {
		if random.IntN(4) == 0 {
			return time.Time{}
		}
		return clock.Now().Add(time.Duration(random.IntN(120)-10) * time.Minute)
	}
	options := func() (opts []jay.WriteOption, expires, refresh time.Time) {
		expires, refresh = instant(), instant()
		return []jay.WriteOption{jay.InCollection("Leases"), jay.ExpiresAt(expires), jay.RefreshAt(refresh)}, expires, refresh
	}
	for step := range 150 {
		id := fmt.Sprint("leases/", random.IntN(8))
		text := fmt.Sprintf(`{"n":%d}`, step)
		now := clock.Now()
		before := m.get(id, now)
		switch random.IntN(10) {
		case 0, 1, 2:
			opts, expires, refresh := options()
			put(t, db, id, text, opts...)
			m.docs[id] = &expiryDoc{text, expires, refresh}
		case 3:
			opts, expires, refresh := options()
			_, err := db.Insert(ctx, id, json.RawMessage(text), opts...)
			if (err == nil) != (before == nil) || err != nil && !errors.Is(err, jay.ErrExists) {
				t.Errorf("step %d: insert %s: %v", step, id, err)
			}
			if err == nil {
				m.docs[id] = &expiryDoc{text, expires, refresh}
			}
		case 4, 5:
			where := []string{"database", "batch", "transaction"}[random.IntN(3)]
			patches := []jay.PatchOption{jay.Set("n", step)}
			move := random.IntN(2) == 0
			expires := instant()
			if move {
				patches = append(patches, jay.ExpiresAt(expires))
			}
			_, err := jaytest.PatchIn(where, db, id, patches)
			must(t, err)
			if before != nil {
				if before.body = text; move {
					before.expires = expires
				}
			}
		case 6:
			must(t, db.Delete(ctx, id))
			if before != nil {
				delete(m.docs, id)
			}
		case 7:
			clock.Advance(time.Duration(random.IntN(180)-60) * time.Minute)
		case 8:
			_, err := db.Sweep(ctx)
			must(t, err)
			m.sweep(now)
			must(t, checks.Times(db))
		case 9:
			must(t, db.Update(ctx, func(tx *jay.Tx) error {
				doc, err := tx.Get(ctx, id)
				if errors.Is(err, jay.ErrNotFound) {
					return nil
				}
				if err != nil {
					return err
				}
				full, err := doc.MarshalJSON()
				if err != nil {
					return err
				}
				_, err = tx.Put(ctx, id, full)
				return err
			}))
		}
		now = clock.Now()
		shown := int64(0)
		for i := range 8 {
			id := fmt.Sprint("leases/", i)
			want := "absent"
			if d := m.get(id, now); d != nil {
				want = d.body
				shown++
			}
			equal(t, body(t, db, id), want)
		}
		n, err := db.Query("Leases").Count(ctx)
		must(t, err)
		equal(t, n, shown)
		n, err = db.Query("Leases").Where(jay.Ge("n", 0)).Count(ctx)
		must(t, err)
		equal(t, n, shown)
		if t.Failed() {
			t.Fatalf("step %d", step)
		}
	}
	must(t, checks.Times(db))
	must(t, checks.Indexes(db))
}

// Ensure that a loss of power at any sync leaves each document with its entries, and no
// others, and no document that was to go and has been seen to be gone.
func TestExpiry_Crash_AtAnySync(t *testing.T) {
	defer checks.NoSweeper()()
	defer checks.SetSweepBatches(3, 2)()
	for _, percent := range []int{0, 50, 100} {
		for syncs := range expiryRounds(12) {
			random := rand.New(rand.NewPCG(uint64(percent), uint64(syncs)))
			clock := newClock()
			disk := storagetest.NewDisk()
			db := onDisk(t, disk, jay.Options{Now: clock.Now})
			gone := make(map[string]bool) // as a sweep before the crash has reported
			cut := disk.CutPower(syncs, percent, random)
			alive := make(map[string]time.Time)
			for step := 0; !cut.Happened(); step++ {
				id := fmt.Sprint("leases/", step)
				expires := clock.Now().Add(time.Duration(random.IntN(60)) * time.Minute)
				put(t, db, id, `{}`, jay.InCollection("Leases"), jay.ExpiresAt(expires), jay.RefreshAt(expires.Add(-20*time.Minute)))
				alive[id] = expires
				if step%4 == 3 {
					clock.Advance(15 * time.Minute)
					_, err := db.Sweep(ctx)
					must(t, err)
					for id, at := range alive {
						if !cut.Happened() && !at.After(clock.Now()) {
							gone[id] = true
							delete(alive, id)
						}
					}
				}
			}
			disk.OnSync(func() {})
			closeDB(t, db)
			db = onDisk(t, cut.Disk(), jay.Options{Now: clock.Now})
			must(t, checks.Times(db))
			must(t, checks.Counts(db))
			for id := range gone {
				if body(t, db, id) != "absent" {
					t.Errorf("%d%%, sync %d: %s is there again", percent, syncs, id)
				}
			}
			clock.Advance(2 * time.Hour)
			_, err := db.Sweep(ctx)
			must(t, err)
			n, err := db.Query("Leases").Count(ctx)
			must(t, err)
			equal(t, n, 0)
			must(t, checks.Times(db))
			closeDB(t, db)
		}
	}
}

// Ensure that the sweeper does not delete a document whose expiry is moved after the
// sweeper has found it due, nor refresh one that another write has changed.
func TestExpiry_MovedMeanwhile(t *testing.T) {
	var db *jay.DB
	var clock *jaytest.Clock
	first := true
	defer checks.OnSweepBatch(func(context.Context) {
		if !first {
			return
		}
		first = false
		put(t, db, "moved", `{"n":2}`, jay.ExpiresAt(clock.Now().Add(time.Hour)))
		put(t, db, "stays", `{"n":2}`)
		put(t, db, "again", `{"n":2}`, jay.ExpiresAt(clock.Now()))
		must(t, db.Delete(ctx, "deleted"))
		put(t, db, "changed", `{"n":2}`, jay.RefreshAt(clock.Now()))
		put(t, db, "refreshed", `{"n":2}`)
		must(t, db.Delete(ctx, "away"))
	})()
	db, clock = expiring(t, false)
	at := clock.Now()
	for _, id := range []string{"moved", "stays", "again", "deleted", "due"} {
		put(t, db, id, `{"n":1}`, jay.ExpiresAt(at))
	}
	for _, id := range []string{"changed", "refreshed", "away", "late"} {
		put(t, db, id, `{"n":1}`, jay.RefreshAt(at))
	}
	swept(t, db, 2, 2) // again, due; changed, late
	for id, want := range map[string]string{"moved": `{"n":2}`, "stays": `{"n":2}`, "again": "absent", "deleted": "absent", "due": "absent",
		"changed": `{"n":2}`, "refreshed": `{"n":2}`, "away": "absent", "late": `{"n":1}`} {
		if got := body(t, db, id); got != want {
			t.Errorf("%s: got %s, want %s", id, got, want)
		}
	}
	equal(t, first, false)
}

// Ensure that a document with which the sweeper fails does not keep it from the others,
// and that it is tried again.
func TestExpiry_FailingDocument(t *testing.T) {
	db, clock := expiring(t, false)
	for i := range 5 {
		put(t, db, fmt.Sprint("leases/", i), fmt.Sprintf(`{"n":%d}`, i), jay.InCollection("Leases"), jay.RefreshAt(clock.Now()))
	}
	repair := jaytest.BreakDocument(t, db, "leases/2")
	for range 2 {
		_, err := db.Sweep(ctx)
		must(t, err)
	}
	repair()
	must(t, checks.Counts(db))
	refreshed := func() (n int) {
		for i := range 5 {
			if custom(t, db, fmt.Sprint("leases/", i)) == "" {
				n++
			}
		}
		return n
	}
	equal(t, refreshed(), 4)
	swept(t, db, 0, 0)
	clock.Advance(time.Minute)
	swept(t, db, 0, 1)
	equal(t, refreshed(), 5)
}

// Ensure that writers that move expiries beside the sweeper, and transactions that rest on
// documents that go, leave each document as its last write says.
func TestExpiry_Stress(t *testing.T) {
	t.Parallel()
	for round := range expiryRounds(2) {
		expiryStress(t, round%2 == 0)
	}
}

func expiryStress(t *testing.T, exact bool) {
	db := memory(t, &jay.Options{ExactExpiry: exact, DocumentCacheBytes: 64 << 10})
	must(t, db.EnsureIndex(ctx, "Leases", jay.Index{Fields: []string{"n"}}))
	var mu sync.Mutex
	goes := make(map[string]bool) // by ID, whether the last write lets it expire
	concurrently(t, func(g int, random *rand.Rand) {
		for step := range 60 {
			id := fmt.Sprintf("leases/%d-%d", g, random.IntN(6))
			soon := random.IntN(2) == 0
			expires := jay.ExpiresAt(time.Now().Add(time.Hour))
			if soon {
				expires = jay.ExpiresAt(time.Now().Add(time.Duration(random.IntN(4)-2) * time.Millisecond))
			}
			refresh := jay.RefreshAt(time.Now().Add(time.Duration(random.IntN(4)-2) * time.Millisecond))
			text := json.RawMessage(fmt.Sprintf(`{"n":%d}`, step))
			var err error
			switch random.IntN(4) {
			case 0:
				_, err = db.Patch(ctx, id, jay.Set("n", step), expires, refresh, jay.OrInsert(text), jay.InCollection("Leases"))
			case 1:
				err = db.Update(ctx, func(tx *jay.Tx) error {
					if _, err := tx.Exists(ctx, id); err != nil {
						return err
					}
					_, err := tx.Put(ctx, id, text, expires, jay.InCollection("Leases"))
					return err
				}, jay.Retry())
			default:
				_, err = db.Put(ctx, id, text, expires, refresh, jay.InCollection("Leases"))
			}
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			goes[id] = soon
			mu.Unlock()
			if step%10 == 0 {
				if _, err := db.Query("Leases").Where(jay.Ge("n", 0)).Count(ctx); err != nil {
					t.Error(err)
				}
			}
		}
	})
	time.Sleep(2 * time.Millisecond) // the last ones are due
	_, err := db.Sweep(ctx)
	must(t, err)
	for id, gone := range goes {
		if (body(t, db, id) == "absent") != gone {
			t.Errorf("exact %v: %s is there: %v", exact, id, gone)
		}
	}
	must(t, checks.Times(db))
	must(t, checks.Counts(db))
	must(t, checks.Indexes(db))
}

// Ensure that the database sweeps by itself: what is due when it is opened, what a write
// makes due, and what is due at an instant to come.
func TestExpiry_BackgroundSweep(t *testing.T) {
	disk := storagetest.NewDisk()
	restore := checks.NoSweeper()
	db := onDisk(t, disk, jay.Options{})
	put(t, db, "a", `{}`, jay.ExpiresAt(time.Now()))
	closeDB(t, db)
	restore()

	db = onDisk(t, disk, jay.Options{})
	gone := func(id string) {
		t.Helper()
		begun := time.Now()
		for body(t, db, id) != "absent" {
			if time.Since(begun) > jaytest.HangGuard {
				t.Fatalf("%s is still there", id)
			}
			time.Sleep(time.Millisecond)
		}
	}
	gone("a")
	put(t, db, "b", `{}`, jay.ExpiresAt(time.Now().Add(-time.Hour)))
	gone("b")
	put(t, db, "later", `{}`, jay.WithTTL(time.Hour))
	put(t, db, "c", `{}`, jay.WithTTL(30*time.Millisecond))
	gone("c")
	must(t, checks.Times(db))
	closeDB(t, db)
}

// Ensure that Close ends a sweep that a program has asked for.
func TestExpiry_CloseDuringSweep(t *testing.T) {
	begun := make(chan struct{})
	defer checks.OnSweepBatch(func(closing context.Context) {
		close(begun)
		<-closing.Done()
	})()
	restore := checks.NoSweeper()
	db := onDisk(t, storagetest.NewDisk(), jay.Options{})
	restore()
	put(t, db, "a", `{}`, jay.ExpiresAt(time.Now()))
	ended := make(chan error, 1)
	go func() { _, err := db.Sweep(ctx); ended <- err }()
	<-begun
	closeDB(t, db)
	if err := within(t, ended, "the sweep"); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("got %v, want ErrClosed", err)
	}
	if _, err := db.Sweep(ctx); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("after Close: got %v, want ErrClosed", err)
	}
}

// Ensure that Close ends a sweep between two transactions, and that the next Open goes on.
func TestExpiry_CloseInTheMiddle(t *testing.T) {
	defer checks.SetSweepBatches(2, 16)()
	disk := storagetest.NewDisk()
	restore := checks.NoSweeper()
	db := onDisk(t, disk, jay.Options{})
	for i := range 20 {
		put(t, db, fmt.Sprint("leases/", i), `{}`, jay.ExpiresAt(time.Now()))
	}
	closeDB(t, db)
	restore()

	begun := make(chan struct{})
	var once sync.Once
	batches := 0
	hook := checks.OnSweepBatch(func(closing context.Context) {
		if batches++; batches == 4 {
			once.Do(func() { close(begun) })
			<-closing.Done()
		}
	})
	db = onDisk(t, disk, jay.Options{})
	<-begun
	closeDB(t, db)
	hook()
	restore = checks.NoSweeper()
	defer restore()
	db = onDisk(t, disk, jay.Options{})
	defer closeDB(t, db)
	n, err := db.Query("").Count(ctx)
	must(t, err)
	if n != 14 {
		t.Errorf("%d documents are left, want 14", n)
	}
	swept(t, db, n, 0)
}

// Ensure that a document with attachments and revisions leaves neither behind but what
// is kept of its past, when it expires.
func TestExpiry_AttachmentsAndRevisions(t *testing.T) {
	for _, exact := range []bool{false, true} {
		db, clock := expiring(t, exact)
		must(t, db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: &jay.RevisionRule{}}))
		_, err := db.Put(ctx, "leases/1", json.RawMessage(`{"n":1}`), jay.InCollection("Leases"), jay.WithTTL(time.Hour))
		must(t, err)
		files := db.Attachments("leases/1")
		_, err = files.Put(ctx, "a.txt", strings.NewReader("some text"))
		must(t, err)
		_, err = db.Put(ctx, "leases/2", json.RawMessage(`{"n":1}`), jay.InCollection("Leases"))
		must(t, err)
		_, err = db.Attachments("leases/2").Put(ctx, "a.txt", strings.NewReader("some text"))
		must(t, err)

		clock.Advance(2 * time.Hour)
		want := error(nil)
		if exact {
			want = jay.ErrNotFound
		}
		if _, err := files.List(ctx); !errors.Is(err, want) {
			t.Errorf("exact %v: List: got %v, want %v", exact, err, want)
		}
		r, err := files.Get(ctx, "a.txt")
		if !errors.Is(err, want) {
			t.Errorf("exact %v: Get: got %v, want %v", exact, err, want)
		}
		if err == nil {
			must(t, r.Close())
		}
		if exact {
			if _, err := files.Put(ctx, "b.txt", strings.NewReader("other text")); !errors.Is(err, jay.ErrNotFound) {
				t.Errorf("attached to a document that has expired: got %v", err)
			}
		}
		swept(t, db, 1, 0)
		must(t, checks.Contents(db))

		kinds := []string{}
		for r, err := range db.Revisions().List(ctx, "leases/1", jay.RevisionPage{}) {
			must(t, err)
			kinds = append(kinds, fmt.Sprint(r.Deletion()))
		}
		equal(t, strings.Join(kinds, " "), "true false false")
		left, err := db.Attachments("leases/2").List(ctx)
		must(t, err)
		equal(t, len(left), 1)
	}
}

// unswept opens a database on disk that sweeps only when it is asked to.
func unswept(t *testing.T, dir string, o jay.Options) *jay.DB {
	t.Helper()
	restore := checks.NoSweeper()
	defer restore()
	db, err := jay.Open(dir, &o)
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

// Ensure that @expires has no effect where expiration is disabled, on any way to read and
// to write, that a document whose instant has passed is seen again when it is disabled,
// and that it goes when it is enabled.
func TestExpiration_Disabled(t *testing.T) {
	for _, exact := range []bool{false, true} {
		db, clock := expiring(t, exact)
		must(t, db.EnsureIndex(ctx, "Leases", jay.Index{Fields: []string{"n"}}))
		_, err := db.Put(ctx, "leases/1", json.RawMessage(`{"n":1}`), jay.InCollection("Leases"), jay.WithTTL(time.Hour))
		must(t, err)
		_, err = db.Put(ctx, "leases/2", json.RawMessage(`{"n":2}`), jay.InCollection("Leases"))
		must(t, err)
		if c := db.ExpirationConfiguration(); c.Disabled {
			t.Fatalf("a new database has %+v", c)
		}
		clock.Advance(2 * time.Hour)
		seen := func(want int) {
			t.Helper()
			if _, err := db.Get(ctx, "leases/1"); (err == nil) != (want == 2) {
				t.Errorf("exact %v: Get: %v", exact, err)
			}
			n, err := db.Query("Leases").Where(jay.Ge("n", 0)).Count(ctx)
			must(t, err)
			stats, err := db.Stats(ctx)
			must(t, err)
			changes := 0
			for c, err := range db.Changes(ctx, "", jay.UntilCaughtUp()) {
				must(t, err)
				if !c.Deleted {
					changes++
				}
			}
			exported := 0
			for _, err := range db.Documents(ctx, jay.Scan{}) {
				must(t, err)
				exported++
			}
			if n != int64(want) || stats.Collections[0].Documents != int64(want) || changes != want || exported != want {
				t.Errorf("exact %v: a query counts %d, Stats %d, the feed has %d, a scan %d; want %d", exact, n, stats.Collections[0].Documents, changes, exported, want)
			}
		}
		if exact {
			seen(1)
		}
		must(t, db.ConfigureExpiration(ctx, jay.ExpirationConfiguration{Disabled: true}))
		seen(2)
		swept(t, db, 0, 0)
		if stats, err := db.Stats(ctx); err != nil || stats.Expiry.Due != 0 || !stats.Expiry.Disabled || stats.Expiry.Expiring != 1 {
			t.Errorf("%+v, %v", stats.Expiry, err)
		}
		if _, err := db.Insert(ctx, "leases/1", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrExists) {
			t.Errorf("exact %v: an insert over a document that does not expire: %v", exact, err)
		}
		must(t, db.Update(ctx, func(tx *jay.Tx) error {
			_, err := tx.Patch(ctx, "leases/1", jay.Increment("n", 5))
			return err
		}))
		_, err = db.Put(ctx, "leases/3", json.RawMessage(`{"n":3}`), jay.InCollection("Leases"), jay.ExpiresAt(clock.Now().Add(-time.Hour)))
		must(t, err)
		must(t, db.Delete(ctx, "leases/2"))
		seen(2)

		must(t, db.ConfigureExpiration(ctx, jay.ExpirationConfiguration{}))
		swept(t, db, 2, 0)
		if _, err := db.Get(ctx, "leases/1"); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("exact %v: Get of what was swept: %v", exact, err)
		}
	}
}

// Ensure that @refresh has no effect where refresh is disabled, and expiration does not
// care, and the other way round.
func TestRefresh_Disabled(t *testing.T) {
	db, clock := expiring(t, false)
	_, err := db.Put(ctx, "a", json.RawMessage(`{}`), jay.RefreshAt(clock.Now().Add(time.Minute)))
	must(t, err)
	_, err = db.Put(ctx, "b", json.RawMessage(`{}`), jay.WithTTL(time.Minute))
	must(t, err)
	must(t, db.ConfigureRefresh(ctx, jay.RefreshConfiguration{Disabled: true}))
	clock.Advance(time.Hour)
	swept(t, db, 1, 0)
	if !db.RefreshConfiguration().Disabled || db.ExpirationConfiguration().Disabled {
		t.Error("the one has changed the other")
	}
	must(t, db.ConfigureExpiration(ctx, jay.ExpirationConfiguration{Disabled: true}))
	_, err = db.Put(ctx, "b", json.RawMessage(`{}`), jay.WithTTL(time.Minute))
	must(t, err)
	must(t, db.ConfigureRefresh(ctx, jay.RefreshConfiguration{}))
	clock.Advance(time.Hour)
	swept(t, db, 0, 1)
}

// Ensure that the background sweeper heeds the setting: it does what was due as soon as
// expiration is enabled.
func TestExpiration_EnabledWhileOpen(t *testing.T) {
	db := memory(t, &jay.Options{ExpirationDisabled: true})
	_, err := db.Put(ctx, "gone", json.RawMessage(`{}`), jay.ExpiresAt(time.Now().Add(-time.Hour)))
	must(t, err)
	got, err := db.Sweep(ctx)
	must(t, err)
	if got != (jay.Swept{}) {
		t.Fatalf("swept %+v where expiration is disabled", got)
	}
	must(t, db.ConfigureExpiration(ctx, jay.ExpirationConfiguration{}))
	for _, err = range db.Changes(ctx, "") { // waits for the deletion
		must(t, err)
		if _, err := db.Get(ctx, "gone"); errors.Is(err, jay.ErrNotFound) {
			return
		}
	}
}

// Ensure that the setting is stored: it survives a reopening, a read-only one included, a
// backup, an incremental one, and a repair; an existing database keeps its own whatever
// the options say.
func TestExpiration_Stored(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	clock := newClock()
	o := jay.Options{Now: clock.Now, ExactExpiry: true, ExpirationDisabled: true, RefreshDisabled: true}
	db := unswept(t, dir, o)
	_, err := db.Put(ctx, "a", json.RawMessage(`{}`), jay.ExpiresAt(clock.Now().Add(-time.Hour)))
	must(t, err)
	var full bytes.Buffer
	info, err := db.Backup(ctx, &full)
	must(t, err)
	check := func(what string, dir string, o jay.Options, disabled bool) {
		t.Helper()
		db := unswept(t, dir, o)
		if e, r := db.ExpirationConfiguration().Disabled, db.RefreshConfiguration().Disabled; e != disabled || !r {
			t.Errorf("%s: expiration disabled %v, refresh %v", what, e, r)
		}
		if _, err := db.Get(ctx, "a"); (err == nil) != disabled {
			t.Errorf("%s: Get: %v", what, err)
		}
		if report, err := db.Verify(ctx, nil); err != nil || report.Found > 0 {
			t.Errorf("%s: %+v, %v", what, report, err)
		}
		must(t, db.Close())
	}
	must(t, db.Close())
	plain := jay.Options{Now: clock.Now, ExactExpiry: true}
	check("reopened", dir, plain, true)
	readOnly := plain
	readOnly.ReadOnly = true
	check("read-only", dir, readOnly, true)

	db = unswept(t, dir, plain)
	must(t, db.ConfigureExpiration(ctx, jay.ExpirationConfiguration{}))
	var more bytes.Buffer
	_, err = db.Backup(ctx, &more, jay.BackupSince(info.ID))
	must(t, err)
	must(t, db.Close())
	check("enabled", dir, o, false)

	restored := filepath.Join(t.TempDir(), "full")
	_, err = jay.Restore(ctx, restored, jay.RestoreOptions{CopyTag: "B"}, bytes.NewReader(full.Bytes()))
	must(t, err)
	check("restored", restored, plain, true)
	restored = filepath.Join(t.TempDir(), "both")
	_, err = jay.Restore(ctx, restored, jay.RestoreOptions{CopyTag: "B"}, bytes.NewReader(full.Bytes()), bytes.NewReader(more.Bytes()))
	must(t, err)
	check("restored with the second backup", restored, plain, false)

	repaired := filepath.Join(t.TempDir(), "repaired")
	source := filepath.Join(t.TempDir(), "source")
	_, err = jay.Restore(ctx, source, jay.RestoreOptions{CopyTag: "B"}, bytes.NewReader(full.Bytes()))
	must(t, err)
	_, err = jay.Repair(ctx, source, repaired, nil, nil)
	must(t, err)
	check("repaired", repaired, plain, true)
}

// Ensure that a read-only database refuses to be configured, and stays as it is.
func TestExpiration_ReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	must(t, unswept(t, dir, jay.Options{}).Close())
	db := unswept(t, dir, jay.Options{ReadOnly: true})
	if err := db.ConfigureExpiration(ctx, jay.ExpirationConfiguration{Disabled: true}); !errors.Is(err, jay.ErrReadOnly) {
		t.Errorf("got %v, want ErrReadOnly", err)
	}
	if db.ExpirationConfiguration().Disabled {
		t.Error("it is disabled none the less")
	}
}
