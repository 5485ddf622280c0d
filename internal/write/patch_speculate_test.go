package write_test

// Whether a patch is made in the transaction or outside cannot be seen in the
// public API, and who overtakes whom cannot be arranged there.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// padded returns a document with a member n and n bytes more.
func padded(n int) []byte {
	return fmt.Appendf(nil, `{"n":1,"pad":"%s"}`, strings.Repeat("x", n))
}

// largePad makes a document too large to be patched in a transaction.
const largePad = 2 * write.MaxWorkHere

func memoryDB(t *testing.T) *jay.DB {
	t.Helper()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

// patchOf returns the write of a patch.
func patchOf(id string, opts ...jay.PatchOption) *write.Op {
	var b jay.Batch
	b.Patch(id, opts...)
	return parts.Ops(&b)[0]
}

func mustPut(t *testing.T, db *jay.DB, id string, body []byte) {
	t.Helper()
	if _, err := db.Put(context.Background(), id, body); err != nil {
		t.Fatal(err)
	}
}

func bodyOf(t *testing.T, db *jay.DB, id string) string {
	t.Helper()
	doc, err := db.Get(context.Background(), id)
	if err != nil {
		t.Fatal(err)
	}
	return string(doc.Body())
}

// Ensure that a patch whose document was changed by another writer since it was
// made is made again: in the transaction if the document is small, and outside
// if it is large, and that it ends with its context.
func TestPatch_Overtaken(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct {
		name  string
		pad   int
		stale error
	}{{"small", 10, nil}, {"large", largePad, write.ErrStale}} {
		t.Run(test.name, func(t *testing.T) {
			db := memoryDB(t)
			mustPut(t, db, "docs/1", padded(test.pad))
			ops := []*write.Op{patchOf("docs/1", jay.Increment("n", 10))}
			if err := parts.Of(db).Writer.PrepareAll(ops); err != nil {
				t.Fatal(err)
			}
			g, err := parts.Of(db).Writer.SpeculatePatches(ctx, ops)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			rival := bytes.Replace(padded(test.pad), []byte(`"n":1`), []byte(`"n":5`), 1)
			mustPut(t, db, "docs/1", rival)

			if err := parts.Of(db).Writer.Commit(ctx, ops, nil, true); !errors.Is(err, test.stale) {
				t.Fatalf("got %v, want %v", err, test.stale)
			}
			if test.stale != nil {
				if got := bodyOf(t, db, "docs/1"); got != string(rival) {
					t.Fatalf("got %.20s", got)
				}
				ended, cancel := context.WithCancel(ctx)
				cancel()
				if err := parts.Of(db).Writer.ResolveAndCommit(ended, ops, nil, g); !errors.Is(err, context.Canceled) {
					t.Errorf("with a context that has ended: got %v", err)
				}
				if err := g.Again(ended); !errors.Is(err, context.Canceled) {
					t.Errorf("again with a context that has ended: got %v", err)
				}
				if err := parts.Of(db).Writer.ResolveAndCommit(ctx, ops, nil, g); err != nil {
					t.Fatal(err)
				}
			}
			if got := bodyOf(t, db, "docs/1"); !strings.HasPrefix(got, `{"n":15,`) {
				t.Errorf("got %.20s", got)
			}
		})
	}
}

// Ensure that a patch whose document was deleted since it was made inserts its own, with
// the edits: made in the transaction if the document is small, and outside if it is
// large.
func TestPatch_Overtaken_Inserts(t *testing.T) {
	ctx := context.Background()
	for _, test := range []struct {
		pad   int
		stale error
	}{{10, nil}, {largePad, write.ErrStale}} {
		db := memoryDB(t)
		mustPut(t, db, "docs/1", padded(10))
		o := patchOf("docs/1", jay.Increment("n", 10), jay.OrInsertPatched(json.RawMessage(padded(test.pad))))
		ops := []*write.Op{o}
		if err := parts.Of(db).Writer.PrepareAll(ops); err != nil {
			t.Fatal(err)
		}
		g, err := parts.Of(db).Writer.SpeculatePatches(ctx, ops)
		if err != nil {
			t.Fatal(err)
		}
		defer g.Close()
		if err := db.Delete(ctx, "docs/1"); err != nil {
			t.Fatal(err)
		}
		if err := parts.Of(db).Writer.Commit(ctx, ops, nil, true); !errors.Is(err, test.stale) {
			t.Fatalf("got %v, want %v", err, test.stale)
		}
		if test.stale != nil {
			if err := parts.Of(db).Writer.ResolveAndCommit(ctx, ops, nil, g); err != nil {
				t.Fatal(err)
			}
		}
		if got := bodyOf(t, db, "docs/1"); o.Patching.Status != write.StatusCreated || !strings.HasPrefix(got, `{"n":11,`) || len(got) < test.pad {
			t.Errorf("%s: got %.20s", o.Patching.Status, got)
		}
	}
}

// Ensure that a transaction makes few patches itself, however small they are.
func TestPatch_Overtaken_Many(t *testing.T) {
	db := memoryDB(t)
	var b jay.Batch
	for i := range write.MaxPatchesHere + 1 {
		mustPut(t, db, fmt.Sprint("docs/", i), padded(10))
		b.Patch(fmt.Sprint("docs/", i), jay.Increment("n", 10))
	}
	if err := parts.Of(db).Writer.PrepareAll(parts.Ops(&b)); err != nil {
		t.Fatal(err)
	}
	if err := parts.Of(db).Writer.Commit(context.Background(), parts.Ops(&b)[:write.MaxPatchesHere], nil, true); err != nil {
		t.Errorf("%d patches: got %v", write.MaxPatchesHere, err)
	}
	if err := parts.Of(db).Writer.Commit(context.Background(), parts.Ops(&b), nil, true); !errors.Is(err, write.ErrStale) {
		t.Errorf("%d patches: got %v", write.MaxPatchesHere+1, err)
	}
	if _, err := db.Apply(context.Background(), &b); err != nil {
		t.Error(err)
	}
	for i := range write.MaxPatchesHere + 1 {
		want := `{"n":21,`
		if i == write.MaxPatchesHere {
			want = `{"n":11,`
		}
		if got := bodyOf(t, db, fmt.Sprint("docs/", i)); !strings.HasPrefix(got, want) {
			t.Errorf("docs/%d: got %.20s, want %s", i, got, want)
		}
	}
}

// Ensure that a batch in which patches follow other writes of the same document
// does what its writes do one by one, with documents that are too large to be
// patched in the transaction, too, and that it needs no second transaction.
func TestPatch_AfterWritesOfItsBatch(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for _, pad := range []int{10, largePad} {
		t.Run(fmt.Sprint(pad), func(t *testing.T) {
			writes := func(add func(func(b *jay.Batch))) {
				a := jay.InCollection("Docs")
				add(func(b *jay.Batch) { b.Patch("docs/1", jay.Increment("n", 1)) })
				add(func(b *jay.Batch) { b.Patch("Docs/1", jay.Append("l", 1), jay.Set("o.p", 2)) })
				add(func(b *jay.Batch) { b.Put("docs/2", padded(pad), a) })
				add(func(b *jay.Batch) { b.Patch("docs/2", jay.Increment("n", 100)) })
				add(func(b *jay.Batch) { b.Patch("docs/2", jay.Unset("none")) })
				add(func(b *jay.Batch) { b.Patch("docs/2", jay.Increment("n", 1000)) })
				add(func(b *jay.Batch) { b.Delete("docs/1") })
				add(func(b *jay.Batch) { b.Patch("docs/1", jay.Set("n", 7)) })
				add(func(b *jay.Batch) { b.Patch("docs/1", jay.Set("n", 7), jay.OrInsert(map[string]any{"n": 3}), a) })
				add(func(b *jay.Batch) { b.Patch("docs/1", jay.Increment("n", 4)) })
				add(func(b *jay.Batch) { b.Patch("docs/3", jay.Increment("n", 1)) })
				add(func(b *jay.Batch) { b.Put("docs/3", padded(pad+1), a) })
				add(func(b *jay.Batch) { b.Patch("docs/3", jay.Increment("n", 1)) })
				add(func(b *jay.Batch) { b.Patch("docs/4", jay.Increment("n", 1), jay.OrInsert(map[string]any{"n": 3}), a) })
				add(func(b *jay.Batch) { b.Patch("DOCS/4", jay.Increment("n", 5)) })
			}
			open := func() *jay.DB {
				db := memoryDB(t)
				if err := db.EnsureIndex(ctx, "Docs", jay.Index{Name: "n", Fields: []string{"n"}}); err != nil {
					t.Fatal(err)
				}
				for _, id := range []string{"docs/1", "docs/3"} {
					if _, err := db.Put(ctx, id, padded(pad), jay.InCollection("Docs")); err != nil {
						t.Fatal(err)
					}
				}
				return db
			}

			one, batched := open(), open()
			writes(func(add func(b *jay.Batch)) {
				var b jay.Batch
				add(&b)
				if _, err := one.Apply(ctx, &b); err != nil {
					t.Fatal(err)
				}
			})
			var b jay.Batch
			writes(func(add func(b *jay.Batch)) { add(&b) })
			if err := parts.Of(batched).Writer.PrepareAll(parts.Ops(&b)); err != nil {
				t.Fatal(err)
			}
			g, err := parts.Of(batched).Writer.SpeculatePatches(ctx, parts.Ops(&b))
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			if err := parts.Of(batched).Writer.Commit(ctx, parts.Ops(&b), nil, true); err != nil {
				t.Fatal(err)
			}
			for i := 1; i <= 4; i++ {
				id := fmt.Sprint("docs/", i)
				if got, want := bodyOf(t, batched, id), bodyOf(t, one, id); got != want {
					t.Errorf("%s: got %.60s, want %.60s", id, got, want)
				}
			}
			for n := range 1200 {
				got, err := batched.Query("Docs").Where(jay.Eq("n", n)).NoScan().Count(ctx)
				if err != nil {
					t.Fatal(err)
				}
				want, err := one.Query("Docs").Where(jay.Eq("n", n)).NoScan().Count(ctx)
				if got != want || err != nil {
					t.Errorf("n = %d: the index has %d, want %d: %v", n, got, want, err)
				}
			}
			if _, err := batched.Apply(ctx, &b); err != nil { // again
				t.Error(err)
			}
		})
	}
}

// countingEngine counts the look-ups of transactions.
type countingEngine struct {
	storage.Engine
	gets int
}

func (e *countingEngine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	return e.Engine.Update(ctx, sync, func(tx storage.Tx) error { return fn(countingTx{tx, e}) })
}

type countingTx struct {
	storage.Tx
	e *countingEngine
}

func (t countingTx) Get(key []byte) ([]byte, io.Closer, error) {
	if key[0] == format.SpaceDocument {
		t.e.gets++
	}
	return t.Tx.Get(key)
}

// Ensure that the transaction of a patch does not read the document again, for which
// other writes would wait, unless it was written in between.
func TestPatch_UnchangedIsNotReadAgain(t *testing.T) {
	ctx := context.Background()
	db := memoryDB(t)
	mustPut(t, db, "docs/1", padded(largePad))
	e := &countingEngine{Engine: parts.Of(db).Env.Engine}
	parts.Of(db).Env.Engine = e
	for _, edit := range []jay.PatchOption{jay.Increment("n", 1), jay.Increment("n", 0)} {
		e.gets = 0
		if _, err := db.Patch(ctx, "docs/1", edit); err != nil || e.gets != 0 {
			t.Errorf("the transaction has read the document %d times, %v", e.gets, err)
		}
	}

	ops := []*write.Op{patchOf("docs/1", jay.Increment("n", 10))}
	if err := parts.Of(db).Writer.PrepareAll(ops); err != nil {
		t.Fatal(err)
	}
	g, err := parts.Of(db).Writer.SpeculatePatches(ctx, ops)
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	mustPut(t, db, "docs/1", padded(largePad))
	e.gets = 0
	if err := parts.Of(db).Writer.Commit(ctx, ops, nil, true); !errors.Is(err, write.ErrStale) || e.gets != 1 {
		t.Errorf("a document that was written in between: %v, read %d times", err, e.gets)
	}
	if err := parts.Of(db).Writer.ResolveAndCommit(ctx, ops, nil, g); err != nil {
		t.Fatal(err)
	}
	if got := bodyOf(t, db, "docs/1"); !strings.HasPrefix(got, `{"n":11,`) {
		t.Errorf("got %.20s", got)
	}
}

// Ensure that a patch of a document whose ID its own batch makes comes to an end,
// though the transaction finds what could not be known before.
func TestPatch_OfMadeID(t *testing.T) {
	for _, pad := range []int{10, largePad} {
		db := memoryDB(t)
		var b jay.Batch
		b.Put("users|", padded(pad))
		b.Patch("users/1", jay.Increment("n", 10))
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute) // a hang
		defer cancel()
		if _, err := db.Apply(ctx, &b); err != nil {
			t.Fatal(err)
		}
		if got := bodyOf(t, db, "users/1"); !strings.HasPrefix(got, `{"n":11,`) {
			t.Errorf("got %.20s", got)
		}
	}
}

// Ensure that a patch uses what is stored, and not what a caller did to a body
// that it was given.
func TestPatch_ScribbledBody(t *testing.T) {
	ctx := context.Background()
	db := memoryDB(t)
	mustPut(t, db, "docs/1", []byte(`{"n":1,"s":"text"}`))
	for range 3 { // in the cache
		bodyOf(t, db, "docs/1")
	}
	doc, err := db.Get(ctx, "docs/1")
	if err != nil {
		t.Fatal(err)
	}
	copy(doc.Body()[12:], "XXXX")
	if _, err := db.Patch(ctx, "docs/1", jay.Set("n", 2)); err != nil {
		t.Fatal(err)
	}
	if got := bodyOf(t, db, "docs/1"); got != `{"n":2,"s":"text"}` {
		t.Errorf("got %s", got)
	}
}

// Ensure that a version which is made a revision after a patch of it was made outside the transaction is kept by the
// patch, also if the patch is looked at again: making it a revision gives it no new version.
func TestPatch_ForcedMeanwhile(t *testing.T) {
	ctx := context.Background()
	db := memoryDB(t)
	mustPut(t, db, "docs/1", padded(largePad))
	ops := []*write.Op{patchOf("docs/1", jay.Increment("n", 10))}
	jaytest.Must(t, parts.Of(db).Writer.PrepareAll(ops))
	g, err := parts.Of(db).Writer.SpeculatePatches(ctx, ops)
	jaytest.Must(t, err)
	defer g.Close()
	_, err = db.Revisions().Force(ctx, "docs/1")
	jaytest.Must(t, err)
	jaytest.Must(t, g.Again(ctx)) // as after another patch of the same batch has lost
	jaytest.Must(t, parts.Of(db).Writer.ResolveAndCommit(ctx, ops, nil, g))
	kept := 0
	for r, err := range db.Revisions().List(ctx, "docs/1", jay.RevisionPage{}) {
		jaytest.Must(t, err)
		if kept++; !strings.HasPrefix(string(r.Body()), `{"n":1,`) {
			t.Errorf("the revision is %.20s", r.Body())
		}
	}
	if kept != 1 {
		t.Errorf("%d revisions are there, and not the one that was asked for", kept)
	}
}
