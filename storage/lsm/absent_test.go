package lsm_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a table that cannot be read for a while leaves no belief behind
// that its keys are not there: the search for what lies beside an absent key
// ends at the error, not at the end of the keys.
func TestEngine_Update_AbsentUnreadable(t *testing.T) {
	disk := storagetest.NewDisk()
	open := func() *lsm.Engine {
		e, err := lsm.Open("db", lsm.Options{FS: disk, CacheBytes: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	const keys = 4000
	key := func(i int) []byte { return fmt.Appendf(nil, "d%06d", i) }
	e := open()
	err := e.Update(ctx, false, func(tx storage.Tx) error {
		for i := range keys {
			tx.Set(key(2*i), make([]byte, 1000), nil)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second Open writes the log into tables
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		e = open()
	}
	defer e.Close()

	random := rand.New(rand.NewPCG(1, 2))
	failures := 0
	for round := range 1000 {
		disk.FailReads(0)
		err := e.Update(ctx, false, func(tx storage.Tx) error {
			n := 0
			for i := range 40 {
				if i%8 == 0 { // the others find what the first did: it pays to look
					n = random.IntN(2 * keys)
					disk.FailReads(random.IntN(5))
				}
				value, closer, err := tx.Get(key(n))
				switch {
				case err == nil:
					if n%2 == 1 || len(value) != 1000 {
						return fmt.Errorf("%s: %d bytes", key(n), len(value))
					}
					if err := closer.Close(); err != nil {
						return err
					}
				case errors.Is(err, storage.ErrNotFound):
					if n%2 == 0 {
						t.Fatalf("round %d: %s is there, and was not found", round, key(n))
					}
				default:
					failures++
				}
			}
			return nil
		})
		if err != nil && !errors.Is(err, storagetest.ErrInjected) {
			t.Fatal(err)
		}
	}
	if failures == 0 {
		t.Error("no read failed")
	}
}

// Ensure that nothing is believed of a commit whose outcome is unknown: the
// engine runs no transaction after it.
func TestEngine_Update_AbsentUnknownOutcome(t *testing.T) {
	disk := storagetest.NewDisk()
	e := openDisk(t, disk)
	for i := range 100 {
		if err := insert(e, fmt.Sprintf("d%d", i)); err != nil {
			t.Fatal(err)
		}
	}
	disk.Fail()
	if err := insert(e, "d100"); !errors.Is(err, storage.ErrUnknownOutcome) {
		t.Fatalf("got %v, want ErrUnknownOutcome", err)
	}
	err := e.Update(ctx, true, func(tx storage.Tx) error { t.Error("a transaction ran after the failure"); return nil })
	if !errors.Is(err, storage.ErrFailed) {
		t.Errorf("got %v, want ErrFailed", err)
	}
	_ = e.Close() // must return
}

// insert commits a key that must not be there.
func insert(e storage.Engine, key string) error {
	return e.Update(ctx, true, func(tx storage.Tx) error {
		_, closer, err := tx.Get([]byte(key))
		if err == nil {
			return errors.Join(fmt.Errorf("%s is there", key), closer.Close())
		}
		if !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		tx.Set([]byte(key), []byte("v"), nil)
		return nil
	})
}
