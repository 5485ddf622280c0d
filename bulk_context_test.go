package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

// endsWhenWaitedFor is a context that ends when its end is waited for.
type endsWhenWaitedFor struct {
	context.Context
	end context.CancelFunc
}

func (c endsWhenWaitedFor) Done() <-chan struct{} { c.end(); return c.Context.Done() }

func newEndsWhenWaitedFor() context.Context {
	inner, end := context.WithCancel(context.Background())
	return endsWhenWaitedFor{inner, end}
}

// Ensure that a call which waits for a free batch returns when its context
// ends, with its document not added, and that the writer goes on.
func TestBulkWriter_WaitingHonoursContext(t *testing.T) {
	db := memory(t, nil)
	var held sync.Mutex // holds the committer up
	held.Lock()
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 1, Progress: func(jay.BulkProgress) {
		held.Lock()
		defer held.Unlock()
	}})
	if err != nil {
		t.Fatal(err)
	}
	soon := func(name string, call func() error) error {
		ended := make(chan error, 1)
		go func() { ended <- call() }()
		select {
		case err := <-ended:
			return err
		case <-time.After(time.Minute):
			held.Unlock()
			t.Fatalf("%s waits on, although its context has ended", name)
			return nil
		}
	}
	for i := range 3 { // one is being committed, two wait
		put := func() error {
			_, err := w.Put(newEndsWhenWaitedFor(), fmt.Sprintf("things/%d", i), json.RawMessage(`{}`))
			return err
		}
		if err := soon("Put", put); err != nil {
			t.Fatal(err)
		}
	}
	for name, call := range map[string]func(ctx context.Context) error{
		"Put": func(ctx context.Context) error {
			_, err := w.Put(ctx, "things/never", json.RawMessage(`{}`))
			return err
		},
		"Store": func(ctx context.Context) error { _, err := w.Store(ctx, "Things", json.RawMessage(`{}`)); return err },
		"Flush": w.Flush,
	} {
		if err := soon(name, func() error { return call(newEndsWhenWaitedFor()) }); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got %v, want context.Canceled", name, err)
		}
	}

	var group sync.WaitGroup // some that wait longer, and get their turn
	for i := range 8 {
		group.Go(func() {
			if _, err := w.Put(ctx, fmt.Sprintf("things/later%d", i), json.RawMessage(`{}`)); err != nil {
				t.Error(err)
			}
		})
	}
	held.Unlock()
	group.Wait()
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if n := count(t, db, "@empty"); n != 11 {
		t.Errorf("got %d documents, want 11", n)
	}
}

// Ensure that Close ends a writer whose batches are all on their way, with
// callers waiting for one.
func TestBulkWriter_CloseWhileOthersWait(t *testing.T) {
	db := memory(t, nil)
	var held sync.Mutex
	held.Lock()
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 1, Progress: func(jay.BulkProgress) {
		held.Lock()
		defer held.Unlock()
	}})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	var mu sync.Mutex
	stored := 0
	for i := range 16 {
		group.Go(func() {
			_, err := w.Put(ctx, fmt.Sprintf("things/%d", i), json.RawMessage(`{}`))
			if err != nil && !errors.Is(err, jay.ErrClosed) {
				t.Error(err)
			}
			if err == nil {
				mu.Lock()
				defer mu.Unlock()
				stored++
			}
		})
	}
	group.Go(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	held.Unlock()
	group.Wait()
	if n := count(t, db, "@empty"); n != stored {
		t.Errorf("got %d documents, want %d", n, stored)
	}
}
