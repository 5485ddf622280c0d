package txn_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
)

// eachVerb calls every method of a transaction and returns the errors.
func eachVerb(db *jay.DB, tx *jay.Tx, ctx context.Context) map[string]error {
	users, err := jay.CollectionOf[User](db)
	if err != nil {
		panic(err)
	}
	in, empty := users.In(tx), json.RawMessage(`{}`)
	var b jay.Batch
	b.Put("batched", empty)
	errs := map[string]error{"Delete": tx.Delete(ctx, "a"), "Collection.Delete": in.Delete(ctx, "a")}
	_, errs["Get"] = tx.Get(ctx, "a")
	_, errs["GetMany"] = tx.GetMany(ctx, "a", "b")
	_, errs["Exists"] = tx.Exists(ctx, "a")
	_, errs["Put"] = tx.Put(ctx, "a", empty)
	_, errs["Insert"] = tx.Insert(ctx, "new", empty)
	_, errs["Store"] = tx.Store(ctx, "Users", empty)
	_, errs["Replace"] = tx.Replace(ctx, "a", empty)
	_, errs["Apply"] = tx.Apply(ctx, &b)
	_, errs["Collection.Get"] = in.Get(ctx, "a")
	_, errs["Collection.GetMany"] = in.GetMany(ctx, "a")
	_, errs["Collection.Exists"] = in.Exists(ctx, "a")
	_, errs["Collection.Insert"] = in.Insert(ctx, &User{})
	_, errs["Collection.InsertMany"] = in.InsertMany(ctx, []*User{{}})
	_, errs["Collection.Put"] = in.Put(ctx, &User{})
	_, errs["Collection.PutMany"] = in.PutMany(ctx, []*User{{}})
	_, errs["Collection.Replace"] = in.Replace(ctx, &User{ID: "a"})
	for _, err := range tx.Documents(ctx, jay.Scan{}) {
		errs["Documents"] = err
	}
	for _, err := range in.All(ctx) {
		errs["Collection.All"] = err
	}
	return errs
}

// all checks that every method of a transaction returns the same error.
func all(t *testing.T, errs map[string]error, want error) {
	t.Helper()
	for verb, err := range errs {
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", verb, err, want)
		}
	}
}

// Ensure that a transaction that is over does nothing, however it ended,
// for every caller.
func TestTx_Done(t *testing.T) {
	endings := map[string]func(db *jay.DB, keep func(*jay.Tx)){
		"committed": func(db *jay.DB, keep func(*jay.Tx)) {
			_ = db.Update(ctx, func(tx *jay.Tx) error { keep(tx); return tx.Delete(ctx, "nothing") })
		},
		"empty": func(db *jay.DB, keep func(*jay.Tx)) {
			_ = db.Update(ctx, func(tx *jay.Tx) error { keep(tx); return nil })
		},
		"viewed": func(db *jay.DB, keep func(*jay.Tx)) {
			_ = db.View(ctx, func(tx *jay.Tx) error { keep(tx); return nil })
		},
		"failed": func(db *jay.DB, keep func(*jay.Tx)) {
			_ = db.Update(ctx, func(tx *jay.Tx) error { keep(tx); return errGivenUp })
		},
		"panicked": func(db *jay.DB, keep func(*jay.Tx)) {
			defer func() { _ = recover() }()
			_ = db.Update(ctx, func(tx *jay.Tx) error { keep(tx); panic("user code") })
		},
		"exited": func(db *jay.DB, keep func(*jay.Tx)) {
			var wg sync.WaitGroup
			wg.Go(func() {
				_ = db.Update(ctx, func(tx *jay.Tx) error { keep(tx); (&testing.T{}).SkipNow(); return nil })
			})
			wg.Wait()
		},
		"lost": func(db *jay.DB, keep func(*jay.Tx)) {
			_ = db.Update(ctx, func(tx *jay.Tx) error {
				keep(tx)
				if err := increment(tx, "a"); err != nil {
					return err
				}
				_, err := db.Put(ctx, "a", json.RawMessage(`{"N":7}`))
				return err
			})
		},
	}
	for name, end := range endings {
		t.Run(name, func(t *testing.T) {
			db := memory(t, nil)
			put(t, db, "a", `{"N":1}`)
			var kept *jay.Tx
			end(db, func(tx *jay.Tx) { kept = tx })
			before := dump(t, db)
			all(t, eachVerb(db, kept, ctx), jay.ErrTxDone)
			var wg sync.WaitGroup
			wg.Go(func() { all(t, eachVerb(db, kept, ctx), jay.ErrTxDone) })
			wg.Wait()
			equal(t, dump(t, db), before)
		})
	}
}

// Ensure that goroutines that go on past the end of their transaction get
// ErrTxDone, whenever that is, and that nothing of theirs is stored afterwards.
func TestTx_Done_Racing(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	for i := range 20 {
		put(t, db, fmt.Sprintf("a/%d", i), `{}`)
	}
	for round := range 30 {
		var wg sync.WaitGroup
		err := db.Update(ctx, func(tx *jay.Tx) error {
			// They yield after each call: otherwise they keep the processors from the commit
			// that ends them.
			started := make(chan struct{}, 3)
			wg.Go(func() {
				started <- struct{}{}
				for {
					if _, err := tx.Put(ctx, fmt.Sprintf("r/%d", round), json.RawMessage(`{}`)); err != nil {
						all(t, map[string]error{"put": err}, jay.ErrTxDone)
						return
					}
					runtime.Gosched()
				}
			})
			wg.Go(func() {
				started <- struct{}{}
				for {
					for _, err := range tx.Documents(ctx, jay.Scan{}) {
						if err != nil {
							all(t, map[string]error{"documents": err}, jay.ErrTxDone)
							return
						}
					}
					runtime.Gosched()
				}
			})
			wg.Go(func() {
				started <- struct{}{}
				for {
					if _, err := tx.GetMany(ctx, "a/1", "b/1"); err != nil {
						all(t, map[string]error{"get": err}, jay.ErrTxDone)
						return
					}
					runtime.Gosched()
				}
			})
			for range 3 {
				<-started
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		after := dump(t, db)
		wg.Wait()
		equal(t, dump(t, db), after)
	}
}

// Ensure that Close does not wait for a transaction, which gets ErrClosed from
// then on, walks in it included, and commits nothing. Pebble's Close panics if
// anything of it was left open.
func TestTx_DatabaseCloses(t *testing.T) {
	for _, update := range []bool{true, false} {
		db, err := openMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			put(t, db, fmt.Sprintf("a/%d", i), `{}`)
		}
		fn := func(tx *jay.Tx) error {
			if update {
				if _, err := tx.Put(ctx, "a/00", json.RawMessage(`{}`)); err != nil {
					return err
				}
			}
			pulled, stop := iter.Pull2(tx.Documents(ctx, jay.Scan{}))
			defer stop()
			if _, err, _ := pulled(); err != nil {
				return err
			}
			n := 0
			for _, err := range tx.Documents(ctx, jay.Scan{Prefix: "a/"}) {
				if n++; n == 1 {
					if err := db.Close(); err != nil {
						t.Errorf("close: %v", err)
					}
					continue
				}
				all(t, map[string]error{"loop": err}, jay.ErrClosed)
			}
			equal(t, n, 2)
			_, err, _ := pulled()
			all(t, map[string]error{"pulled": err}, jay.ErrClosed)
			all(t, eachVerb(db, tx, ctx), jay.ErrClosed)
			return nil
		}
		if update {
			if err := db.Update(ctx, fn); !errors.Is(err, jay.ErrClosed) {
				t.Errorf("update: %v, want ErrClosed", err)
			}
		} else if err := db.View(ctx, fn); err != nil {
			t.Errorf("view: %v", err)
		}
		if err := db.Update(ctx, fn); !errors.Is(err, jay.ErrClosed) {
			t.Errorf("a later update: %v", err)
		}
		if err := db.View(ctx, fn); !errors.Is(err, jay.ErrClosed) {
			t.Errorf("a later view: %v", err)
		}
	}
}

// Ensure that a walk that is never ended is released with its transaction.
func TestTx_Documents_NeverEnded(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{}`)
	put(t, db, "b", `{}`)
	for _, fn := range []func(tx *jay.Tx) error{
		func(tx *jay.Tx) error {
			next, _ := iter.Pull2(tx.Documents(ctx, jay.Scan{}))
			_, err, _ := next()
			return err
		},
		func(tx *jay.Tx) error {
			for range tx.Documents(ctx, jay.Scan{}) {
				panic("user code")
			}
			return nil
		},
	} {
		func() {
			defer func() { _ = recover() }()
			if err := db.Update(ctx, fn); err != nil {
				t.Error(err)
			}
		}()
	}
} // the test's Close would panic

// Ensure that a panic in the function comes through, and leaves nothing.
func TestTx_Panic(t *testing.T) {
	db := memory(t, nil)
	before := dump(t, db)
	for name, run := range map[string]func(fn func(tx *jay.Tx) error) error{
		"update": func(fn func(tx *jay.Tx) error) error { return db.Update(ctx, fn, jay.Retry(5)) },
		"view":   func(fn func(tx *jay.Tx) error) error { return db.View(ctx, fn) },
	} {
		func() {
			defer func() { equal(t, recover(), any("user code")) }()
			err := run(func(tx *jay.Tx) error {
				_, _ = tx.Put(ctx, "a", json.RawMessage(`{}`))
				panic("user code")
			})
			t.Errorf("%s returned %v", name, err)
		}()
	}
	equal(t, dump(t, db), before)
	put(t, db, "a", `{}`)
}

// Ensure that a context that is cancelled in the middle stops all, and nothing
// is stored.
func TestTx_Cancelled(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{}`)
	before := dump(t, db)
	ofUpdate, cancel := context.WithCancel(ctx)
	runs := 0
	err := db.Update(ofUpdate, func(tx *jay.Tx) error {
		runs++
		if _, err := tx.Put(ctx, "b", json.RawMessage(`{}`)); err != nil {
			return err
		}
		cancel()
		return nil
	}, jay.Retry(3))
	equal(t, err, context.Canceled)
	equal(t, runs, 1)
	equal(t, dump(t, db), before)
	unseen := func(*jay.Tx) error { t.Error("the function ran"); return nil }
	equal(t, db.Update(ofUpdate, unseen), context.Canceled)
	equal(t, db.View(ofUpdate, unseen), context.Canceled)

	// Each call looks at its own.
	ofCall, cancelCall := context.WithCancel(ctx)
	err = db.Update(ctx, func(tx *jay.Tx) error {
		n := 0
		for _, id := range []string{"b1", "b2"} {
			if _, err := tx.Put(ctx, id, json.RawMessage(`{}`)); err != nil {
				return err
			}
		}
		for _, err := range tx.Documents(ofCall, jay.Scan{After: "a"}) { // only own writes are left
			if n++; n == 2 {
				all(t, map[string]error{"loop": err}, context.Canceled)
			}
			cancelCall()
		}
		equal(t, n, 2)
		all(t, eachVerb(db, tx, ofCall), context.Canceled)
		return errGivenUp
	})
	equal(t, err, errGivenUp)
	equal(t, dump(t, db), before)
}

// Ensure that what the caller does with its slices after a call changes
// nothing.
func TestTx_CallersBytes(t *testing.T) {
	db := memory(t, nil)
	text := []byte(`{"n":1}`)
	custom := []byte(`{"k":1}`)
	spoil := func() { copy(text, "#######"); copy(custom, "#######") }
	err := db.Update(ctx, func(tx *jay.Tx) error {
		for _, id := range []string{"a", "a|", "a/", ""} {
			copy(text, `{"n":1}`)
			copy(custom, `{"k":1}`)
			if _, err := tx.Put(ctx, id, text, jay.InCollection("A"), jay.WithMetadata(custom)); err != nil {
				return err
			}
			spoil()
			copy(text, `{"n":1}`)
			copy(custom, `{"k":1}`)
			var b jay.Batch
			b.Store("A", text, jay.WithMetadata(custom))
			if _, err := tx.Apply(ctx, &b); err != nil {
				return err
			}
			b.Reset()
			b.Put("spoilt", json.RawMessage(`{"n":9}`))
			spoil()
		}
		doc, err := tx.Get(ctx, "a")
		if err != nil {
			return err
		}
		equal(t, string(doc.Body()), `{"n":1}`)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: "A"}) {
		if err != nil {
			t.Fatal(err)
		}
		n++
		equal(t, string(doc.Body()), `{"n":1}`)
		equal(t, string(doc.Metadata().Custom), `{"k":1}`)
	}
	equal(t, n, 8)
}

// Ensure that transactions and plain calls within a transaction do not wait
// for it: they are others, and what they change under it is a conflict.
func TestTx_Nested(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "n", `{"N":0}`)
	add := func(tx *jay.Tx) error { return increment(tx, "n") }
	err := db.Update(ctx, func(outer *jay.Tx) error {
		if err := db.Update(ctx, add); err != nil {
			return err
		}
		put(t, db, "other", `{}`)
		for range outer.Documents(ctx, jay.Scan{Prefix: "n"}) {
			if err := db.Update(ctx, add); err != nil {
				return err
			}
		}
		return increment(outer, "n")
	})
	var conflict *jay.ConflictError
	if !errors.As(err, &conflict) || conflict.ID != "n" {
		t.Errorf("got %v, want a conflict on n", err)
	}
	equal(t, body(t, db, "n"), `{"N":2}`)

	// The conflict of an inner one is an error of the function: Retry of the
	// outer one is not for it.
	runs := 0
	err = db.Update(ctx, func(outer *jay.Tx) error {
		runs++
		return db.Update(ctx, func(inner *jay.Tx) error {
			if err := add(inner); err != nil {
				return err
			}
			return db.Update(ctx, add)
		})
	}, jay.Retry(3))
	if !errors.Is(err, jay.ErrConflict) || runs != 1 {
		t.Errorf("got %v after %d runs", err, runs)
	}
}

// Ensure that View refuses every write, and reads nevertheless.
func TestTx_View_Writes(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{}`, jay.InCollection("Users"))
	before := dump(t, db)
	err := db.View(ctx, func(tx *jay.Tx) error {
		for verb, err := range eachVerb(db, tx, ctx) {
			switch strings.TrimPrefix(verb, "Collection.") {
			case "Get", "GetMany", "Exists", "Documents", "All":
				if err != nil {
					t.Errorf("%s: %v", verb, err)
				}
			default:
				all(t, map[string]error{verb: err}, jay.ErrUsage)
			}
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
	equal(t, dump(t, db), before)
}

// Ensure that an error of the function comes back as it is, whatever it is.
func TestTx_ErrorAsItIs(t *testing.T) {
	db := memory(t, nil)
	for _, want := range []error{errGivenUp, jay.ErrConflict, &jay.ConflictError{ID: "a"}, jay.ErrNotFound, context.Canceled} {
		runs := 0
		fn := func(tx *jay.Tx) error {
			runs++
			if _, err := tx.Exists(ctx, "a"); err != nil {
				return err
			}
			return want
		}
		equal(t, db.Update(ctx, fn, jay.Retry(3)), want)
		equal(t, db.View(ctx, fn), want)
		equal(t, runs, 2)
	}
}

// Ensure that values that cannot be stored are refused by the write, and that
// the transaction goes on without them.
func TestTx_BadInput(t *testing.T) {
	db := memory(t, nil)
	type node struct {
		ID   string
		Next *node
	}
	cyclic := &node{}
	cyclic.Next = cyclic
	nodes := collectionOf[node](t, db)
	err := db.Update(ctx, func(tx *jay.Tx) error {
		for want, call := range map[error]func() error{
			jay.ErrInvalidDocument: func() error { _, err := tx.Put(ctx, "a", json.RawMessage(`{"a":1`)); return err },
			jay.ErrInvalidID:       func() error { _, err := tx.Put(ctx, strings.Repeat("x", 3000), json.RawMessage(`{}`)); return err },
			jay.ErrUsage:           func() error { _, err := tx.Apply(ctx, nil); return err },
			jay.ErrType:            func() error { _, err := nodes.In(tx).Put(ctx, cyclic); return err },
			jay.ErrNotFound:        func() error { _, err := tx.Replace(ctx, "no/such", json.RawMessage(`{}`)); return err },
		} {
			if err := call(); !errors.Is(err, want) {
				t.Errorf("got %v, want %v", err, want)
			}
		}
		if _, err := nodes.In(tx).Put(ctx, nil); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("nil value: %v", err)
		}
		_, err := tx.Put(ctx, "good", json.RawMessage(`{}`))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, cyclic.ID, "")
	equal(t, gapsOf(t, db, "nodes"), 0)
	n := 0
	for range db.Documents(ctx, jay.Scan{}) {
		n++
	}
	equal(t, n, 1)
}
