package lsm_test

import (
	"errors"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// Ensure that a watch begins while a transaction is under way, which may never
// end on an engine that has failed, and that what that one writes is noted.
func TestEngine_TrackWrites_BesideTransaction(t *testing.T) {
	e, err := lsm.Open("db", lsm.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	key := []byte("key")
	if err := set(e, "key", "old"); err != nil {
		t.Fatal(err)
	}

	began := make(chan storage.WriteTracker, 1)
	var w storage.WriteTracker
	err = e.Update(ctx, false, func(tx storage.Tx) error {
		tx.Set(key, []byte("new"), nil)
		go func() { began <- e.TrackWrites() }()
		select {
		case w = <-began:
		case <-time.After(time.Minute):
			return errors.New("TrackWrites waits for the transaction")
		}
		look, err := w.NewReader()
		if err != nil {
			return err
		}
		if value, err := look.Get(key); string(value) != "old" || err != nil {
			t.Errorf("got %q, %v, want old", value, err)
		}
		return look.Close()
	})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	err = e.Update(ctx, false, func(tx storage.Tx) error {
		if tx.Unchanged(w, key) {
			t.Error("the key is unchanged, but was written behind the look")
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
