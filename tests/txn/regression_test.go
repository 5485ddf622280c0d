package txn_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
)

// gapsOf returns how many HiLo numbers of a tag were drawn and not used.
func gapsOf(t testing.TB, db *jay.DB, tag string) int64 {
	t.Helper()
	stats, err := db.Stats(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return stats.Gaps[tag]
}

// loseOnce changes a document that the transaction has read, in its first run.
func loseOnce(t testing.TB, db *jay.DB, tx *jay.Tx, runs *int) error {
	t.Helper()
	if _, err := tx.Exists(ctx, "contended"); err != nil {
		return err
	}
	if *runs++; *runs == 1 {
		put(t, db, "contended", `{}`)
	}
	return nil
}

// Ensure that a HiLo ID that the transaction itself wrote by hand is passed
// over: it used to be drawn again, and the commit failed for ever.
func TestTx_Store_TakenByOwnWrite(t *testing.T) {
	db := memory(t, nil)
	var m jay.Metadata
	err := db.Update(ctx, func(tx *jay.Tx) (err error) {
		if _, err := tx.Put(ctx, "users/1-A", json.RawMessage(`{"by":"hand"}`), jay.InCollection("Users")); err != nil {
			return err
		}
		m, err = tx.Store(ctx, "Users", json.RawMessage(`{"by":"store"}`))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, m.ID, "users/2-A")
	equal(t, body(t, db, "users/1-A"), `{"by":"hand"}`)
}

// Ensure that a run gives no other value the number that a struct has kept
// since the run before: an insert of the struct then met its own ID.
func TestTx_Retry_KeptNumberStays(t *testing.T) {
	db := memory(t, nil)
	users := collectionOf[User](t, db)
	kept := &User{Name: "kept"}
	runs := 0
	err := db.Update(ctx, func(tx *jay.Tx) error {
		if err := loseOnce(t, db, tx, &runs); err != nil {
			return err
		}
		if runs > 1 { // as goroutines of the function may do in any order
			if _, err := users.In(tx).Put(ctx, &User{Name: "other"}); err != nil {
				return err
			}
		}
		_, err := users.In(tx).Put(ctx, kept)
		return err
	}, jay.Retry(1))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for u, err := range users.All(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, u.Name)
	}
	if len(names) != 2 {
		t.Errorf("stored: %v, want kept and other", names)
	}
}

// Ensure that a number that a run has drawn and the committed one has not used
// is counted as a gap.
func TestTx_Retry_UnusedNumberIsGap(t *testing.T) {
	db := memory(t, nil)
	runs := 0
	err := db.Update(ctx, func(tx *jay.Tx) error {
		if err := loseOnce(t, db, tx, &runs); err != nil {
			return err
		}
		for range 3 - runs { // two, then one
			if _, err := tx.Store(ctx, "Users", json.RawMessage(`{}`)); err != nil {
				return err
			}
		}
		return nil
	}, jay.Retry(1))
	if err != nil {
		t.Fatal(err)
	}
	drawn := afterPrefix(strings.TrimSuffix(store(t, db, "Users"), "-A"), "users/") - 1
	equal(t, gapsOf(t, db, "users"), drawn-1)
}

// Ensure that the number of a write that was taken back, with the batch it was
// in, is used by the next one or counted as a gap.
func TestTx_Apply_NumberOfRefusedBatch(t *testing.T) {
	db := memory(t, nil)
	var m jay.Metadata
	err := db.Update(ctx, func(tx *jay.Tx) (err error) {
		var b jay.Batch
		b.Store("Users", json.RawMessage(`{}`))
		b.Replace("no/such", json.RawMessage(`{}`))
		if _, err := tx.Apply(ctx, &b); !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("batch: %v", err)
		}
		m, err = tx.Store(ctx, "Users", json.RawMessage(`{}`))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if gaps := gapsOf(t, db, "users"); m.ID != "users/1-A" && gaps != 1 {
		t.Errorf("stored as %s, %d gaps", m.ID, gaps)
	}
}

// Ensure that the numbers of a function that panics are counted as gaps.
func TestTx_Panic_NumbersAreGaps(t *testing.T) {
	db := memory(t, nil)
	func() {
		defer func() { _ = recover() }()
		_ = db.Update(ctx, func(tx *jay.Tx) error {
			_, err := tx.Store(ctx, "Users", json.RawMessage(`{}`))
			if err != nil {
				t.Error(err)
			}
			panic("user code")
		})
	}()
	equal(t, gapsOf(t, db, "users"), 1)
}

// Ensure that metadata that a write has returned is the caller's: a change to
// it used to change what an identity's document got.
func TestTx_Put_ReturnedMetadataIsTheCallers(t *testing.T) {
	db := memory(t, nil)
	var final jay.Metadata
	err := db.Update(ctx, func(tx *jay.Tx) error {
		for _, id := range []string{"users|", "users/ann"} {
			m, err := tx.Put(ctx, id, json.RawMessage(`{}`), jay.WithMetadata([]byte(`{"k":"v"}`)), jay.Returning(&final))
			if err != nil {
				return err
			}
			copy(m.Custom, "#########")
		}
		doc, err := tx.Get(ctx, "users/ann")
		if err != nil {
			return err
		}
		equal(t, string(doc.Metadata().Custom), `{"k":"v"}`)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"users/1", "users/ann"} {
		doc, err := db.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		equal(t, string(doc.Metadata().Custom), `{"k":"v"}`)
	}
	equal(t, string(final.Custom), `{"k":"v"}`)
}

// Ensure that a value that was read from the transaction's own blind write can
// be written back: its version, "", used to be compared with that of the
// document before the transaction.
func TestTx_Version_OfOwnBlindWrite(t *testing.T) {
	db := memory(t, nil)
	accounts := collectionOf[Account](t, db)
	put(t, db, "accounts/1", `{"Balance":1}`, jay.InCollection("Accounts"))
	err := db.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Put(ctx, "accounts/1", json.RawMessage(`{"Balance":2}`), jay.InCollection("Accounts")); err != nil {
			return err
		}
		a, err := accounts.In(tx).Get(ctx, "accounts/1")
		if err != nil {
			return err
		}
		a.Balance++
		_, err = accounts.In(tx).Put(ctx, a)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	equal(t, body(t, db, "accounts/1"), `{"Balance":3}`)
}

// Account is a type with a version.
type Account struct {
	ID      string
	Version string `jay:"version"`
	Balance int
}

// Ensure that a document that the transaction itself has deleted does not
// exist, for IfMatch as for Insert: a batch of DB.Apply has it so.
func TestTx_IfMatch_AfterOwnDelete(t *testing.T) {
	db := memory(t, nil)
	v := put(t, db, "a", `{}`).ChangeVector
	err := db.Update(ctx, func(tx *jay.Tx) error {
		if err := tx.Delete(ctx, "a"); err != nil {
			return err
		}
		if _, err := tx.Put(ctx, "a", json.RawMessage(`{"old":true}`), jay.IfMatch(v)); !errors.Is(err, jay.ErrConflict) {
			t.Errorf("with the version of the deleted document: %v, want ErrConflict", err)
		}
		if err := tx.Delete(ctx, "a", jay.IfMatch(v)); !errors.Is(err, jay.ErrConflict) {
			t.Errorf("second delete: %v, want ErrConflict", err)
		}
		_, err := tx.Put(ctx, "a", json.RawMessage(`{"new":true}`), jay.IfMatch(""))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that a loop that is kept alive past the end of its transaction ends
// with ErrTxDone, even if only the transaction's own writes are left in it.
func TestTx_Documents_PulledPastTheEnd(t *testing.T) {
	for _, update := range []bool{true, false} {
		db := memory(t, nil)
		put(t, db, "z1", `{}`)
		put(t, db, "z2", `{}`)
		var next func() (*jay.Document, error, bool)
		var stop func()
		fn := func(tx *jay.Tx) error {
			if update {
				for _, id := range []string{"b1", "b2", "b3"} {
					if _, err := tx.Put(ctx, id, json.RawMessage(`{}`)); err != nil {
						return err
					}
				}
			}
			next, stop = iter.Pull2(tx.Documents(ctx, jay.Scan{}))
			_, err, _ := next()
			return err
		}
		run := db.View
		if update {
			run = func(ctx context.Context, fn func(*jay.Tx) error) error { return db.Update(ctx, fn) }
		}
		if err := run(ctx, fn); err != nil {
			t.Fatal(err)
		}
		doc, err, more := next()
		if doc != nil || !errors.Is(err, jay.ErrTxDone) {
			t.Errorf("after the end: %v, %v, %v; want ErrTxDone", doc, err, more)
		}
		stop()
	}
}

// Ensure that goroutines of one transaction may walk over its own writes and
// read at the same time: the walk used to read a map without the lock.
func TestTx_Documents_BesideReads(t *testing.T) {
	db := memory(t, nil)
	err := db.Update(ctx, func(tx *jay.Tx) error {
		for i := range 1000 {
			if _, err := tx.Put(ctx, "a/"+strconv.Itoa(i), json.RawMessage(`{}`)); err != nil {
				return err
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for _, err := range tx.Documents(ctx, jay.Scan{}) {
				if err != nil {
					t.Error(err)
				}
			}
		})
		wg.Go(func() {
			for i := range 1000 {
				if _, err := tx.Exists(ctx, "b/"+strconv.Itoa(i)); err != nil {
					t.Error(err)
				}
			}
		})
		wg.Wait()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that a transaction does not lose against itself: the range of HiLo
// numbers that it draws from is a document, too.
func TestTx_Store_AfterWalkOverAll(t *testing.T) {
	db := memory(t, nil)
	err := db.Update(ctx, func(tx *jay.Tx) error {
		if err := walkIn(jay.Scan{})(tx); err != nil {
			return err
		}
		_, err := tx.Store(ctx, "Users", json.RawMessage(`{}`))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that the metadata of a delete has only an ID, as in DB.Apply.
func TestTx_Apply_MetadataOfDelete(t *testing.T) {
	db := memory(t, nil)
	err := db.Update(ctx, func(tx *jay.Tx) error {
		var b jay.Batch
		b.Delete("a")
		metas, err := tx.Apply(ctx, &b)
		if err != nil {
			return err
		}
		equal(t, metas[0].Collection, "")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Ensure that an error inside a transaction says once what failed.
func TestTx_Put_ErrorSaysItOnce(t *testing.T) {
	db := memory(t, nil)
	_ = db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "users/ann", json.RawMessage(`{`))
		if !errors.Is(err, jay.ErrInvalidDocument) || strings.Count(err.Error(), `put "users/ann"`) != 1 {
			t.Errorf("got %v", err)
		}
		return nil
	})
}

// Ensure that a batch that is used again leaves the documents alone that it has
// put into a transaction.
func TestTx_Apply_BatchUsedAgain(t *testing.T) {
	db := memory(t, nil)
	var b jay.Batch
	b.Put("Users/1", json.RawMessage(`{}`))
	_, err := db.Apply(ctx, &b)
	must(t, err)
	err = db.Update(ctx, func(tx *jay.Tx) error {
		for _, id := range []string{"Users/2", "Users/3"} {
			b.Reset()
			b.Put(id, json.RawMessage(`{}`))
			if _, err := tx.Apply(ctx, &b); err != nil {
				return err
			}
		}
		doc, err := tx.Get(ctx, "users/2")
		if err == nil {
			equal(t, doc.ID(), "Users/2")
		}
		return err
	})
	must(t, err)
}

// Ensure that a batch that has made an ID does not stage its next document
// under that ID.
func TestTx_Apply_BatchAppliedBefore(t *testing.T) {
	db := memory(t, nil)
	var b jay.Batch
	b.Put("users|", json.RawMessage(`{"n":1}`))
	_, err := db.Apply(ctx, &b)
	must(t, err)
	err = db.Update(ctx, func(tx *jay.Tx) error {
		must(t, tx.Delete(ctx, "users/1"))
		metas, err := tx.Apply(ctx, &b)
		if err != nil {
			return err
		}
		equal(t, metas[0].ID, "users|")
		found, err := tx.Exists(ctx, "users/1")
		equal(t, found, false)
		return err
	})
	must(t, err)
}

// Ensure that each answer to a write is the caller's: those of Returning and of
// Apply shared the custom metadata.
func TestApply_MetadataIsTheCallers(t *testing.T) {
	db := memory(t, nil)
	var b jay.Batch
	var meta jay.Metadata
	b.Put("users/1", json.RawMessage(`{"n":1,"@metadata":{"k":"v"}}`), jay.Returning(&meta))
	metas, err := db.Apply(ctx, &b)
	must(t, err)
	equal(t, string(meta.Custom), `{"k":"v"}`)
	clear(meta.Custom)
	equal(t, string(metas[0].Custom), `{"k":"v"}`)
}
