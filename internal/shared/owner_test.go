package shared

import (
	"context"
	"errors"
	"testing"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/memory"
)

// This file is inside the package for the keys of its records.

// Ensure that the version of an Owner's snapshots rises with each change of a definition and with nothing else, that each
// snapshot keeps its own, and that the last etag is shown in the place of the reservation.
func TestOwner(t *testing.T) {
	e, err := new(memory.Driver).Open("store", storage.OpenOptions{})
	if err != nil {
		t.Fatal(err)
	}
	write := func(key []byte, value string) {
		t.Helper()
		err := e.Update(context.Background(), true, func(tx storage.Tx) error {
			if value == "" {
				tx.Delete(key)
			} else {
				tx.Set(key, nil, []byte(value))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	o := NewOwner(e, func(storage.Reader) (uint64, error) { return 42, nil }, 43)
	version := func(s storage.Snapshot) uint64 {
		t.Helper()
		n, found, err := env.NumberAt(s, versionKey)
		if err != nil || !found {
			t.Fatal(found, err)
		}
		return n
	}
	take := func() storage.Snapshot {
		t.Helper()
		s, err := o.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	write(etagKey, "reserved")
	first := take()
	last := version(first)
	for _, key := range format.Defining {
		for _, value := range []string{"a", "b", ""} {
			write(key, value)
			if now := version(take()); now <= last {
				t.Errorf("%q = %q: version %d after %d", key, value, now, last)
			} else {
				last = now
			}
			write([]byte("document"), value)
			if now := version(take()); now != last {
				t.Errorf("a document: version %d, want %d", now, last)
			}
		}
	}
	if n := version(first); n != 1 {
		t.Errorf("the first snapshot has version %d by now", n)
	}
	if n, _, err := env.NumberAt(first, etagKey); n != 42 || err != nil {
		t.Errorf("the last etag: %d, %v", n, err)
	}
	if n, _, err := env.NumberAt(first, sessionKey); n != 43 || err != nil {
		t.Errorf("the session: %d, %v", n, err)
	}
	if _, _, err := first.Get([]byte("document")); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("a later document: %v", err)
	}
}
