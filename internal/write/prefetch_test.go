package write_test

// This file counts change entries as they lie in storage, which the public API
// does not list.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/write"
)

// checkChanges makes sure that every document has one change entry, its own.
func checkChanges(t *testing.T, db *jay.DB) {
	t.Helper()
	it, err := parts.Of(db).Env.Engine.Iterate([]byte{format.SpaceChanges}, []byte{format.SpaceChanges + 1})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		c, err := format.DecodeChange(it.Value())
		if err != nil {
			t.Fatal(err)
		}
		etag, err := format.EtagOf(it.Key())
		if err != nil {
			t.Fatal(err)
		}
		doc, err := db.Get(context.Background(), c.FoldedID)
		switch {
		case c.Kind == format.ChangeDelete:
		case err != nil:
			t.Errorf("change %d of %q: %v", etag, c.FoldedID, err)
		case doc.Metadata().Etag != etag:
			t.Errorf("change %d is of %q, whose etag is %d", etag, c.FoldedID, doc.Metadata().Etag)
		}
	}
	if err := it.Error(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that large batches, which read the documents they meet before their
// transaction, replace what is there when they commit: the changes of others
// in between, and those of the batch itself, must not be missed.
func TestApply_ReadsAhead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{Durability: jay.Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const documents = 200

	var writers sync.WaitGroup
	for writer := range 4 {
		writers.Go(func() {
			for round := range 25 {
				var b jay.Batch
				for i := range documents {
					id := fmt.Sprintf("users/%d", (i*7+writer)%documents)
					switch {
					case i%50 == 0 && round%3 == 0:
						b.Delete(id)
					case i%40 == 0:
						b.Put(id, []byte(`{"twice":1}`), jay.InCollection("Users"))
						fallthrough
					default:
						b.Put(id, fmt.Appendf(nil, `{"w":%d,"r":%d}`, writer, round), jay.InCollection("Users"))
					}
				}
				if _, err := db.Apply(ctx, &b); err != nil {
					t.Error(err)
				}
			}
		})
		writers.Go(func() {
			for i := range 500 {
				if _, err := db.Put(ctx, fmt.Sprintf("users/%d", i%documents), []byte(`{}`), jay.InCollection("Users")); err != nil {
					t.Error(err)
				}
			}
		})
	}
	if err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"w"}}); err != nil {
		t.Error(err)
	}
	writers.Wait()
	checkChanges(t, db)
	if err := checks.Indexes(db); err != nil {
		t.Error(err)
	}
}

// Ensure that a version that was current when a large batch read ahead, but not
// when it committed, is a conflict: one of many batches that expect the same
// version wins.
func TestApply_ReadsAhead_Conflict(t *testing.T) {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{Durability: jay.Relaxed})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for round := range 30 {
		id := fmt.Sprintf("users/%d", round)
		before, err := db.Put(ctx, id, []byte(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var writers sync.WaitGroup
		won := 0
		for writer := range 4 {
			writers.Go(func() {
				var b jay.Batch
				for i := range 2 * write.ManyOps {
					b.Put(fmt.Sprintf("w%d/%d", writer, i), []byte(`{}`))
				}
				b.Put(id, []byte(`{"n":1}`), jay.IfMatch(before.ChangeVector))
				_, err := db.Apply(ctx, &b)
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					won++
				} else if !errors.Is(err, jay.ErrConflict) {
					t.Error(err)
				}
			})
		}
		writers.Wait()
		if won != 1 {
			t.Fatalf("round %d: %d batches replaced the same version", round, won)
		}
	}
	checkChanges(t, db)
}

// Ensure that an index that is made between the reading ahead, which keeps no
// bodies without one, and the commit loses the entries of the old documents.
func TestApply_ReadsAhead_NewIndex(t *testing.T) {
	ctx := context.Background()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	batch := func(text string) *jay.Batch {
		b := new(jay.Batch)
		for i := range write.ManyOps {
			b.Put(fmt.Sprintf("users/%d", i), fmt.Appendf(nil, `{"Name":%q}`, text), jay.InCollection("Users"))
		}
		return b
	}
	if _, err := db.Apply(ctx, batch("before")); err != nil {
		t.Fatal(err)
	}

	// db.write, with something in its middle.
	ops := parts.Ops(batch("after"))
	if err := parts.Of(db).Writer.PrepareAll(ops); err != nil {
		t.Fatal(err)
	}
	a, err := parts.Of(db).Writer.Prefetch(context.Background(), ops)
	if err != nil || a == nil {
		t.Fatalf("read ahead: %v, %v", a, err)
	}
	defer a.Close(ops)
	if err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"Name"}}); err != nil {
		t.Fatal(err)
	}
	if err := parts.Of(db).Writer.Commit(ctx, ops, a, true); err != nil {
		t.Fatal(err)
	}
	if err := checks.Indexes(db); err != nil {
		t.Error(err)
	}
}

// Ensure that of several bad documents in a large batch the first is named,
// whichever goroutine meets it.
func TestApply_FirstErrorOfMany(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for range 50 {
		var b jay.Batch
		for i := range 1000 {
			body := `{}`
			if i >= 517 && i%3 == 1 {
				body = `{`
			}
			b.Put(fmt.Sprintf("users/%d", i), []byte(body))
		}
		_, err := db.Apply(context.Background(), &b)
		if want := `write 518 of 1000: put "users/517"`; err == nil || err.Error()[:len(want)] != want {
			t.Fatalf("got %v, want %s…", err, want)
		}
	}
}

// Ensure that what is read ahead is bounded, and that what is not read ahead
// leaves the indexes as well.
func TestApply_ReadsAhead_Bounded(t *testing.T) {
	defer func(old int64) { write.MaxPrefetchBytes = old }(write.MaxPrefetchBytes)
	write.MaxPrefetchBytes = 10_000
	t.Run("one by one", func(t *testing.T) {
		db, err := jay.OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		testReadsAheadBounded(t, db)
	})
	t.Run("together", func(t *testing.T) { // as of a server, which is asked for many keys
		testReadsAheadBounded(t, jaytest.Open(t, "db", &jay.Options{Engine: jaytest.SharedDriver(t)}))
	})
}

func testReadsAheadBounded(t *testing.T, db *jay.DB) {
	t.Helper()
	defer db.Close()
	ctx := context.Background()
	if err := db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"n"}}); err != nil {
		t.Fatal(err)
	}
	var puts, deletes jay.Batch
	for i := range 1000 {
		id := fmt.Sprint("users/", i)
		puts.Put(id, fmt.Appendf(nil, `{"n":%d,"pad":"%0100d"}`, i, i), jay.InCollection("Users"))
		deletes.Delete(id)
	}
	if _, err := db.Apply(ctx, &puts); err != nil {
		t.Fatal(err)
	}
	if err := parts.Of(db).Writer.PrepareAll(parts.Ops(&deletes)); err != nil {
		t.Fatal(err)
	}
	a, err := parts.Of(db).Writer.Prefetch(ctx, parts.Ops(&deletes))
	if err != nil {
		t.Fatal(err)
	}
	ahead := 0
	for _, o := range parts.Ops(&deletes) {
		if o.Before != nil {
			ahead += len(o.Before.Body)
		}
	}
	// Each goroutine may have one more under way.
	if ahead == 0 || ahead > 10_000+parallel.MaxWorkers*200 {
		t.Errorf("%d bytes were read ahead", ahead)
	}
	a.Close(parts.Ops(&deletes))
	if _, err := db.Apply(ctx, &deletes); err != nil {
		t.Fatal(err)
	}
	for _, o := range parts.Ops(&deletes) {
		if o.Before != nil {
			t.Fatalf("the batch still holds the old body of %s", o.ID)
		}
	}
	it, err := parts.Of(db).Env.Engine.Iterate([]byte{format.SpaceIndex}, []byte{format.SpaceIndex + 1})
	if err != nil {
		t.Fatal(err)
	}
	defer it.Close()
	if it.First() {
		t.Errorf("an entry is left: %q", it.Key())
	}
}

// Ensure that large batches of new documents, which look for their IDs all together,
// overwrite no document that was put under one of them by hand.
func TestApply_ReadsAhead_NewIDs(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, byHand := range []int{2, 9, 57, 99, 100, 233, 300} {
		for _, bulk := range []bool{false, true} {
			db, err := jay.OpenMemory(&jay.Options{Durability: jay.Relaxed})
			if err != nil {
				t.Fatal(err)
			}
			store := func(n int) {
				t.Helper()
				var b jay.Batch
				for i := range n {
					b.Store("Orders", fmt.Appendf(nil, `{"n":%d}`, i))
					if i%3 == 0 {
						b.Store("Users", []byte(`{}`))
					}
				}
				if _, err := db.Apply(ctx, &b); err != nil {
					t.Fatal(err)
				}
			}
			store(1) // the range is known
			id := fmt.Sprintf("orders/%d-A", byHand)
			if _, err := db.Insert(ctx, id, []byte(`{"by":"hand"}`), jay.InCollection("Orders")); err != nil {
				t.Fatal(err)
			}
			if bulk {
				w, err := db.BulkInsert(nil)
				if err != nil {
					t.Fatal(err)
				}
				for range 300 {
					if _, err := w.Store(ctx, "Orders", []byte(`{}`)); err != nil {
						t.Fatal(err)
					}
				}
				if err := w.Close(); !errors.Is(err, jay.ErrExists) {
					t.Errorf("%s: the bulk writer returns %v, want %v", id, err, jay.ErrExists)
				}
			} else {
				store(300)
			}
			if doc, err := db.Get(ctx, id); err != nil || string(doc.Body()) != `{"by":"hand"}` {
				t.Errorf("%s: %v, %v", id, doc, err)
			}
			checkWhole(t, db)
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
		}
	}
}
