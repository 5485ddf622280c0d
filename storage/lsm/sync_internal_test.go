package lsm

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that Sync waits for a commit whose call has returned early, also in the moment in which
// its leader has not handed it to Pebble yet: behind Sync, it is decided.
func TestSync_CommitOfWhoLeft(t *testing.T) {
	e, err := Open("db", Options{FS: storagetest.NewDisk(), DurableReads: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	released, goOn := make(chan struct{}), make(chan struct{})
	e.mu.Lock()
	e.onRelease = sync.OnceFunc(func() { close(released); <-goOn })
	e.mu.Unlock()

	limited, cancel := context.WithCancel(t.Context())
	left := make(chan error)
	go func() {
		left <- e.Update(limited, true, func(tx storage.Tx) error { tx.Set([]byte("k"), nil, nil); return nil })
	}()
	<-released
	cancel()
	if err := <-left; !errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("the call that left: %v, want ErrUnknownOutcome", err)
	}
	if err := e.Sync(limited); !errors.Is(err, storage.ErrUnknownOutcome) {
		t.Errorf("a Sync whose context has ended: %v, want ErrUnknownOutcome: the commit is not on disk", err)
	}
	synced := make(chan error)
	go func() { synced <- e.Sync(t.Context()) }()
	close(goOn)
	if err := <-synced; err != nil {
		t.Fatal(err)
	}
	value, closer, err := e.Get([]byte("k"))
	if err != nil {
		t.Fatalf("behind Sync: %v", err)
	}
	if err := closer.Close(); err != nil || len(value) > 0 {
		t.Errorf("got %q, %v", value, err)
	}
}

// Ensure that a Sync in a group before a large transaction, which has a batch of its own, counts as no commit: those
// who watch commits would see one more, with the number of another.
func TestSync_BeforeLargeTransaction(t *testing.T) {
	e, err := Open("db", Options{FS: storagetest.NewDisk(), DurableReads: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.Update(t.Context(), false, func(tx storage.Tx) error { tx.Set([]byte("k"), nil, nil); return nil }); err != nil {
		t.Fatal(err)
	}
	var seen []uint64
	snapshot, _, err := e.WatchCommits(t.Context(), func(c storage.Commit) { seen = append(seen, c.Number) })
	if err != nil {
		t.Fatal(err)
	}
	if err := snapshot.Close(); err != nil {
		t.Fatal(err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.durability.durable.Store(0) // as if the first commit was not on disk yet
	e.staged.add([]byte("large"), nil, make([]byte, smallBytes+1), false)
	before := e.applied
	g := &group{requests: []*request{{commit: e.applied, messages: make(chan message, 2)}, {end: 1, size: smallBytes + 6, messages: make(chan message, 2)}}}
	if err := e.makeBatches(g); err != nil {
		t.Fatal(err)
	}
	if len(g.batches) != 2 || g.writes() != 1 {
		t.Fatalf("%d batches, %d of them write", len(g.batches), g.writes())
	}
	for _, b := range g.batches {
		if err := e.write(b); err != nil {
			t.Fatal(err)
		}
		if b.sync {
			if err := b.pebble.SyncWait(); err != nil {
				t.Error(err)
			}
		}
	}
	e.staged.reset()
	if e.applied != before+1 || len(seen) != 1 || seen[0] != e.applied {
		t.Errorf("commit %d, and %v was seen, want %d", e.applied, seen, before+1)
	}
}
