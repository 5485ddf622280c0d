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
