package lsm

// This test counts Pebble's snapshots.

import (
	"context"
	"testing"

	"github.com/jaydb/jay/storage"
)

// Ensure that unused views do not pile up: at most maxUnused wait to be closed, and
// the view of a reader is closed when the reader ends.
func TestDurability_UnusedViews(t *testing.T) {
	e, err := Open("db", Options{InMemory: true, DurableReads: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	commit := func() {
		t.Helper()
		err := e.Update(context.Background(), true, func(tx storage.Tx) error { tx.Set([]byte("k"), nil, nil); return nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	most := 0
	for range 10 * maxUnused {
		commit()
		most = max(most, e.db.Metrics().Snapshots.Count)
	}
	// One is the newest durable state, and one may be that of the commit just made.
	if most > maxUnused+2 || most < 2 {
		t.Errorf("%d snapshots were open, want 2 to %d", most, maxUnused+2)
	}

	v := e.durability.acquire()
	commit() // v is no longer the newest
	before := e.db.Metrics().Snapshots.Count
	e.durability.release(v)
	if after := e.db.Metrics().Snapshots.Count; after != before-1 {
		t.Errorf("%d snapshots are open before a reader ends and %d after", before, after)
	}
}
