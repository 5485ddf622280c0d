package lsm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/storage"
)

// request is one call of Update or Sync. The goroutine of the call waits while a
// leader works on the request: see commit.go.
//
// The call returns early when its context ends, however long Pebble holds the
// leader up, be it by a write stall or because the disk does not answer. What
// the call then returns depends on the state of the request:
//
//	queued    no leader has taken the request: it is withdrawn, and nothing
//	          has changed
//	running   the transaction runs, or its batch is being made from the
//	          caller's memory: the call waits for the end of that, which
//	          writes nothing to the disk
//	released  the batch is made: the call returns ErrUnknownOutcome, and the
//	          commit goes on without it
type request struct {
	fn     func(storage.Tx) error // nil for Sync
	commit uint64                 // of Sync: the commit that must be on disk
	sync   bool                   // asked for, or required by fn

	// Until the request is answered, its leader owns the fields from here on, but
	// for state.
	state        atomic.Int32
	entries, end int             // fn staged the entries [entries, end)
	sequence     uint64          // last number drawn, if fn staged anything
	size         int             // of the entries, in bytes
	batch        *batch          // with the entries, or whose sync the request waits for; nil for none
	decider      storage.Decider // to be called when the commit is durable
	err          error           // result of Update
	panicked     any             // value that Update panics with

	messages chan message
}

// The states of a request. Changes that leader and call compete for are made by
// compare-and-swap.
const (
	queued    int32 = iota // in the commit queue
	running                // a leader has it and uses the caller's memory
	leaving                // running, and the call is about to return early
	released               // a leader has it and uses no memory of the caller's
	withdrawn              // taken out of the queue by its call
)

// message is what a leader sends to the goroutine of a call: at most two for a
// request, which the channel holds, so that a leader never blocks.
type message int

const (
	answered message = iota // the request is the caller's again
	mayLeave                // the caller's memory is; the commit goes on
)

var requests = sync.Pool{New: func() any { return &request{messages: make(chan message, 2)} }}

// staged reports whether r has anything to commit.
func (r *request) staged() bool { return r.entries < r.end }

// waitsForDisk reports whether r, which has run, is answered only after the sync
// of its batch.
func (r *request) waitsForDisk() bool { return r.sync && r.batch != nil }

// Update implements storage.Engine.
func (e *Engine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	if e.readOnly {
		return storage.ErrReadOnly
	}
	r := requests.Get().(*request)
	r.fn, r.sync = fn, sync
	return e.do(ctx, r)
}

// Sync implements storage.Engine.
func (e *Engine) Sync(ctx context.Context) error {
	return e.syncUpTo(ctx, e.durability.applying.Load())
}

// syncUpTo returns when the commit and all before it are on disk.
func (e *Engine) syncUpTo(ctx context.Context, commit uint64) error {
	if commit <= e.durability.durable.Load() {
		return nil
	}
	if failure := e.failure.Load(); failure != nil {
		return fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, *failure)
	}
	r := requests.Get().(*request)
	r.commit, r.sync = commit, true
	err := e.do(ctx, r)
	if err != nil && !errors.Is(err, storage.ErrUnknownOutcome) {
		return fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, err)
	}
	return err
}

// do enqueues r and returns its outcome.
func (e *Engine) do(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if failure := e.failure.Load(); failure != nil {
		return fmt.Errorf("%w: %w", storage.ErrFailed, *failure)
	}
	if r.sync {
		e.courtesy.begin()
		defer e.courtesy.end()
	}
	if lead, only := e.queue.push(r); lead {
		// A commit that stays in memory is not worth two changes of goroutines.
		if only && !r.sync {
			e.leadInline(r)
		} else {
			e.startLeader()
		}
	}
	if err := e.await(ctx, r); err != nil {
		return err // a leader may still use r: it is not recycled
	}
	err, panicked := r.err, r.panicked
	*r = request{messages: r.messages}
	requests.Put(r)
	if panicked != nil {
		panic(panicked)
	}
	return err
}

// await returns nil when r has been answered. An error means that the call
// returns early, with this error: its context has ended, or the engine has
// failed.
func (e *Engine) await(ctx context.Context, r *request) error {
	select {
	case <-r.messages: // answered before there was anything to wait for
		return nil
	default:
	}
	done, failed, abandoned := ctx.Done(), e.failed, e.abandoned
	var cause, refused error // refused is the result if nothing has changed
	for {
		select {
		case m := <-r.messages:
			if m == mayLeave {
				return fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, cause)
			}
			if cause != nil && r.err == errAbandoned {
				return refused // r would have had to run again
			}
			return nil
		case <-failed:
			failed = nil // a running request is answered, if Pebble lets its leader go on
			if e.withdraw(r) {
				return fmt.Errorf("%w: %w", storage.ErrFailed, *e.failure.Load())
			}
			continue
		case <-done:
			cause = ctx.Err()
			refused = cause
		case <-abandoned:
			cause = *e.failure.Load()
			refused = fmt.Errorf("%w: %w", storage.ErrFailed, cause)
		}

		// A leader may take r, and put it back to run it again, between any two of
		// these steps.
		for !r.state.CompareAndSwap(running, leaving) {
			if e.withdraw(r) {
				return refused
			}
			if r.state.Load() == released {
				return fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, cause)
			}
		}
		// The leader sees that and sends a message.
		done, failed, abandoned = nil, nil, nil
	}
}

// withdraw takes r out of the queue and returns true, unless a leader has taken
// it before.
func (e *Engine) withdraw(r *request) bool {
	if !r.state.CompareAndSwap(queued, withdrawn) {
		return false
	}
	e.queue.remove(r)
	return true
}
