package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// expiring opens a database in memory that sweeps only when it is asked to.
func expiring(t *testing.T, exact bool) (*jay.DB, *jaytest.Clock) {
	t.Helper()
	restore := jay.NoSweeper()
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
	must(t, jay.CheckTimes(db))
	must(t, jay.CheckCounts(db))
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
			must(t, jay.CheckTimes(db))
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
		must(t, jay.CheckTimes(db))
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
		must(t, jay.CheckTimes(db))
		equal(t, custom(t, db, l.ID), "")
		_, err = jaytest.PatchIn(where, db, l.ID, []jay.PatchOption{jay.WithTTL(time.Hour), jay.RefreshAt(clock.Now().Add(time.Minute))})
		must(t, err)
		must(t, jay.CheckTimes(db))
		equal(t, custom(t, db, l.ID), `{"@expires":"2026-11-21T14:00:00.0000000Z","@refresh":"2026-11-21T13:01:00.0000000Z"}`)
	}
	keep("a put removes it", func() error { _, err := collection.Put(ctx, l); return err })
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
	must(t, jay.CheckIndexes(db))
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

var _ = []any{context.Background, rand.New, slices.Sort[[]int], sync.OnceFunc, storagetest.NewDisk}
