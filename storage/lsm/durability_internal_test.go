package lsm

// This test counts Pebble's snapshots.

import (
	"context"
	"testing"
	"time"

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
	snapshots := func() int { return e.db.Metrics().Snapshots.Count }

	// So few commits that no unused view is closed meanwhile.
	commit()
	v := e.durability.acquire()
	commit() // v is no longer the newest
	before := snapshots()
	e.durability.release(v)
	if after := snapshots(); after != before-1 {
		t.Errorf("%d snapshots are open before a reader ends and %d after", before, after)
	}

	for range 10 * maxUnused {
		commit()
	}
	// Views are closed after the callers have their answers, so perhaps not yet. One
	// more is the newest durable state, and one may be that of the last commit.
	deadline := time.Now().Add(time.Minute)
	for snapshots() > maxUnused+2 && time.Now().Before(deadline) {
		time.Sleep(time.Millisecond)
	}
	if n := snapshots(); n > maxUnused+2 || n < 1 {
		t.Errorf("%d snapshots are open, want 1 to %d", n, maxUnused+2)
	}
}
