package lsm

// Internals are needed to be between two steps of a leader.

import (
	"context"
	"errors"
	"testing"

	"github.com/jaydb/jay/storage"
)

// Ensure that a call whose context ends while a leader puts its request back
// into the queue, to run it again, does not return as if the commit went on: the
// function would run after Update has returned.
func TestRequest_AwaitBesideRerun(t *testing.T) {
	e, err := Open("db", Options{InMemory: true})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	rounds := 30_000
	if testing.Short() {
		rounds = 4000
	}
	for round := range rounds {
		r := &request{messages: make(chan message, 2)}
		r.state.Store(running)
		begun, done := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(done)
			close(begun)
			for {
				switch {
				case r.state.CompareAndSwap(running, queued):
				case r.state.CompareAndSwap(queued, running):
				case r.state.Load() == leaving:
					r.messages <- answered
					return
				case r.state.Load() == withdrawn:
					return
				}
			}
		}()
		<-begun
		for range round % 100 {
			_ = r.state.Load()
		}
		err := e.await(ctx, r)
		if errors.Is(err, storage.ErrUnknownOutcome) {
			t.Fatalf("round %d: %v, and a leader has the request in state %d", round, err, r.state.Load())
		}
		<-done
		if state := r.state.Load(); (err == nil) != (state == leaving) {
			t.Fatalf("round %d: %v in state %d", round, err, state)
		}
	}
}
