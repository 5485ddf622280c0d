package jay

// Whether a patch is made in the transaction or outside cannot be seen from
// outside, and who overtakes whom cannot be arranged there.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// padded returns a document with a member n and n bytes more.
func padded(n int) []byte {
	return fmt.Appendf(nil, `{"n":1,"pad":"%s"}`, strings.Repeat("x", n))
}

// largePad makes a document too large to be patched in a transaction.
const largePad = 2 * maxWorkHere

func memoryDB(t *testing.T) *DB {
	t.Helper()
	db, err := OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustPut(t *testing.T, db *DB, id string, body []byte) {
	t.Helper()
	if _, err := db.Put(context.Background(), id, body); err != nil {
		t.Fatal(err)
	}
}

func bodyOf(t *testing.T, db *DB, id string) string {
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
	}{{"small", 10, nil}, {"large", largePad, errStale}} {
		t.Run(test.name, func(t *testing.T) {
			db := memoryDB(t)
			mustPut(t, db, "docs/1", padded(test.pad))
			ops := []*op{newPatch("docs/1", []PatchOption{Increment("n", 10)})}
			if err := db.prepareAll(ops); err != nil {
				t.Fatal(err)
			}
			g, err := db.speculatePatches(ctx, ops)
			if err != nil {
				t.Fatal(err)
			}
			defer g.close()
			rival := bytes.Replace(padded(test.pad), []byte(`"n":1`), []byte(`"n":5`), 1)
			mustPut(t, db, "docs/1", rival)

			if err := db.commit(ctx, ops, nil); !errors.Is(err, test.stale) {
				t.Fatalf("got %v, want %v", err, test.stale)
			}
			if test.stale != nil {
				if got := bodyOf(t, db, "docs/1"); got != string(rival) {
					t.Fatalf("got %.20s", got)
				}
				ended, cancel := context.WithCancel(ctx)
				cancel()
				if err := db.resolveAndCommit(ended, ops, nil, g); !errors.Is(err, context.Canceled) {
					t.Errorf("with a context that has ended: got %v", err)
				}
				if err := g.again(ended); !errors.Is(err, context.Canceled) {
					t.Errorf("again with a context that has ended: got %v", err)
				}
				if err := db.resolveAndCommit(ctx, ops, nil, g); err != nil {
					t.Fatal(err)
				}
			}
			if got := bodyOf(t, db, "docs/1"); !strings.HasPrefix(got, `{"n":15,`) {
				t.Errorf("got %.20s", got)
			}
		})
	}
}

// Ensure that a transaction makes few patches itself, however small they are.
func TestPatch_Overtaken_Many(t *testing.T) {
	db := memoryDB(t)
	var b Batch
	for i := range maxPatchesHere + 1 {
		mustPut(t, db, fmt.Sprint("docs/", i), padded(10))
		b.Patch(fmt.Sprint("docs/", i), Increment("n", 10))
	}
	if err := db.prepareAll(b.ops); err != nil {
		t.Fatal(err)
	}
	if err := db.commit(context.Background(), b.ops[:maxPatchesHere], nil); err != nil {
		t.Errorf("%d patches: got %v", maxPatchesHere, err)
	}
	if err := db.commit(context.Background(), b.ops, nil); !errors.Is(err, errStale) {
		t.Errorf("%d patches: got %v", maxPatchesHere+1, err)
	}
	if _, err := db.Apply(context.Background(), &b); err != nil {
		t.Error(err)
	}
	for i := range maxPatchesHere + 1 {
		want := `{"n":21,`
		if i == maxPatchesHere {
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
	ctx := context.Background()
	for _, pad := range []int{10, largePad} {
		t.Run(fmt.Sprint(pad), func(t *testing.T) {
			writes := func(add func(func(b *Batch))) {
				a := InCollection("Docs")
				add(func(b *Batch) { b.Patch("docs/1", Increment("n", 1)) })
				add(func(b *Batch) { b.Patch("Docs/1", Append("l", 1), Set("o.p", 2)) })
				add(func(b *Batch) { b.Put("docs/2", padded(pad), a) })
				add(func(b *Batch) { b.Patch("docs/2", Increment("n", 100)) })
				add(func(b *Batch) { b.Patch("docs/2", Unset("none")) })
				add(func(b *Batch) { b.Patch("docs/2", Increment("n", 1000)) })
				add(func(b *Batch) { b.Delete("docs/1") })
				add(func(b *Batch) { b.Patch("docs/1", Set("n", 7)) })
				add(func(b *Batch) { b.Patch("docs/1", Set("n", 7), OrInsert(map[string]any{"n": 3}), a) })
				add(func(b *Batch) { b.Patch("docs/1", Increment("n", 4)) })
				add(func(b *Batch) { b.Patch("docs/3", Increment("n", 1)) })
				add(func(b *Batch) { b.Put("docs/3", padded(pad+1), a) })
				add(func(b *Batch) { b.Patch("docs/3", Increment("n", 1)) })
				add(func(b *Batch) { b.Patch("docs/4", Increment("n", 1), OrInsert(map[string]any{"n": 3}), a) })
				add(func(b *Batch) { b.Patch("DOCS/4", Increment("n", 5)) })
			}
			open := func() *DB {
				db := memoryDB(t)
				if err := db.EnsureIndex(ctx, "Docs", Index{Name: "n", Fields: []string{"n"}}); err != nil {
					t.Fatal(err)
				}
				for _, id := range []string{"docs/1", "docs/3"} {
					if _, err := db.Put(ctx, id, padded(pad), InCollection("Docs")); err != nil {
						t.Fatal(err)
					}
				}
				return db
			}

			one, batched := open(), open()
			writes(func(add func(b *Batch)) {
				var b Batch
				add(&b)
				if _, err := one.Apply(ctx, &b); err != nil {
					t.Fatal(err)
				}
			})
			var b Batch
			writes(func(add func(b *Batch)) { add(&b) })
			if err := batched.prepareAll(b.ops); err != nil {
				t.Fatal(err)
			}
			g, err := batched.speculatePatches(ctx, b.ops)
			if err != nil {
				t.Fatal(err)
			}
			defer g.close()
			if err := batched.commit(ctx, b.ops, nil); err != nil {
				t.Fatal(err)
			}
			for i := 1; i <= 4; i++ {
				id := fmt.Sprint("docs/", i)
				if got, want := bodyOf(t, batched, id), bodyOf(t, one, id); got != want {
					t.Errorf("%s: got %.60s, want %.60s", id, got, want)
				}
			}
			for n := range 1200 {
				got, err := batched.Query("Docs").Where(Eq("n", n)).NoScan().Count(ctx)
				if err != nil {
					t.Fatal(err)
				}
				want, err := one.Query("Docs").Where(Eq("n", n)).NoScan().Count(ctx)
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

// Ensure that a patch of a document whose ID its own batch makes comes to an end,
// though the transaction finds what could not be known before.
func TestPatch_OfMadeID(t *testing.T) {
	for _, pad := range []int{10, largePad} {
		db := memoryDB(t)
		var b Batch
		b.Put("users|", padded(pad))
		b.Patch("users/1", Increment("n", 10))
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
	if _, err := db.Patch(ctx, "docs/1", Set("n", 2)); err != nil {
		t.Fatal(err)
	}
	if got := bodyOf(t, db, "docs/1"); got != `{"n":2,"s":"text"}` {
		t.Errorf("got %s", got)
	}
}

// Ensure that turns are given in the order in which they are asked for, that who
// gives up loses nothing of others, and that nothing is kept.
func TestPatchTurns(t *testing.T) {
	ctx := context.Background()
	var turns patchTurns
	if turns.awaited("a") {
		t.Error("a turn is awaited that no patch took")
	}
	leave, err := turns.take(ctx, []string{"b", "a", "b"})
	if err != nil || !turns.awaited("a") || !turns.awaited("b") || turns.awaited("c") {
		t.Fatal(err)
	}
	waiters := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			turns.mu.Lock()
			users := turns.byID["a"].users
			turns.mu.Unlock()
			if users == n {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d have the turn or wait for it, want %d", users, n)
			}
		}
	}
	var order []int
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			leave, err := turns.take(ctx, []string{"a"})
			if err != nil {
				t.Error(err)
				return
			}
			order = append(order, i) // guarded by the turn
			leave()
		})
		waiters(2 + i)
	}
	ended, cancel := context.WithCancel(ctx)
	wg.Go(func() {
		if _, err := turns.take(ended, []string{"a", "c"}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	waiters(7)
	cancel()
	waiters(6)
	leave()
	wg.Wait()
	if fmt.Sprint(order) != "[0 1 2 3 4]" {
		t.Errorf("the order is %v", order)
	}
	if len(turns.byID) != 0 || turns.waiting.Load() != 0 {
		t.Errorf("%d turns are left, %d users", len(turns.byID), turns.waiting.Load())
	}
}
