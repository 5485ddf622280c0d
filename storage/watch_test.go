package storage_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jaydb/jay/storage"
)

// Ensure that a transaction is told of every key that was written after it was
// read ahead, by others or by itself, and may rely on those that were not.
func TestPebble_Watch(t *testing.T) {
	e, err := storage.Open("db", storage.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	put := func(key string) {
		t.Helper()
		if err := set(e, key, "x"); err != nil {
			t.Fatal(err)
		}
	}
	const keys = 100
	key := func(i int) []byte { return fmt.Appendf(nil, "k%d", i) }
	for i := range keys {
		put(string(key(i)))
	}

	w := e.Watch()
	defer w.Close()
	put("k7")
	look, err := w.Look()
	if err != nil {
		t.Fatal(err)
	}
	put("k8") // the look does not see it
	if _, err := look.Get([]byte("k8")); err != nil {
		t.Errorf("get k8: %v", err)
	}
	if _, err := look.Get([]byte("k")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("get k: %v, want %v", err, storage.ErrNotFound)
	}
	if err := look.Close(); err != nil {
		t.Fatal(err)
	}
	err = e.Update(ctx, false, func(tx storage.Tx) error { tx.Delete([]byte("k9")); return nil })
	if err != nil {
		t.Fatal(err)
	}

	unchanged := 0
	err = e.Update(ctx, false, func(tx storage.Tx) error {
		tx.Set([]byte("k10"), nil, nil)
		tx.Delete([]byte("k11"))
		for i := range keys {
			if tx.Unchanged(w, key(i)) {
				unchanged++
				if 7 <= i && i <= 11 {
					t.Errorf("%s is unchanged, but was written", key(i))
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if unchanged < keys/2 {
		t.Errorf("%d of %d keys are unchanged, want nearly all", unchanged, keys)
	}
}

// Ensure that a watch begins while a transaction is under way, which may never
// end on an engine that has failed, and that what that one writes is noted.
func TestPebble_Watch_BesideTransaction(t *testing.T) {
	e, err := storage.Open("db", storage.Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	key := []byte("key")
	if err := set(e, "key", "old"); err != nil {
		t.Fatal(err)
	}

	began := make(chan storage.Watch, 1)
	var w storage.Watch
	err = e.Update(ctx, false, func(tx storage.Tx) error {
		tx.Set(key, []byte("new"), nil)
		go func() { began <- e.Watch() }()
		select {
		case w = <-began:
		case <-time.After(10 * time.Second):
			return errors.New("Watch waits for the transaction")
		}
		look, err := w.Look()
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
