package lsm

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/storage"
)

// Updates that want to commit wait in a queue, the line. A leader, which is a
// goroutine of the engine, takes a group of them, runs their transactions one
// after another, each on top of what those before it have staged, and hands the
// group to Pebble as one batch. Then it lets the next leader begin, waits for
// the disk and answers the group. So many small transactions cost one record of
// the log, one pass through Pebble's commit pipeline and one sync.
//
// The goroutine that called Update only waits. It can leave when its context
// ends, however long Pebble makes the leader wait, behind a write stall or
// behind a disk that does not answer. What leaving means depends on how far its
// request has come:
//
//	queued    no leader has taken it: it is withdrawn, nothing has changed
//	running   its transaction runs, or its batch is being made from the
//	          caller's memory: the caller waits for the end of that, which
//	          writes nothing to the disk
//	released  the batch is made: the caller gets ErrUnknownOutcome, and the
//	          commit goes on without it

// request is one call of Update, or of Sync.
type request struct {
	fn     func(storage.Tx) error // nil for Sync
	commit uint64                 // of Sync: the commit that must be on disk
	sync   bool                   // asked for, or required by fn

	state        atomic.Int32
	entries, end int             // what it has staged: entries up to end
	sequence     uint64          // the last number, if it has staged anything
	size         int             // of that, in bytes
	batch        *batch          // that it waits for, or that has what it staged; nil for none
	decider      storage.Decider // is called when that is durable
	err          error           // what Update returns
	panicked     any             // what Update panics with

	messages chan message
}

// The states of a request. Every change is a compare-and-swap.
const (
	queued    int32 = iota // in line
	running                // a leader has it, and uses the caller's memory
	leaving                // running, and the caller waits to leave
	released               // a leader has it, and uses nothing of the caller's
	withdrawn              // taken out of the line by the caller
)

// message is what a leader sends to a request. A request gets two at most, so
// that no leader waits for a caller.
type message int

const (
	answered message = iota
	mayLeave
)

var requests = sync.Pool{New: func() any { return &request{messages: make(chan message, 2)} }}

// staged reports whether r has anything to commit.
func (r *request) staged() bool { return r.entries < r.end }

// waits reports whether r, which was run, is answered only when the disk is
// done.
func (r *request) waitsForDisk() bool { return r.sync && r.batch != nil }

// Update implements storage.Engine.
func (e *Engine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	r := requests.Get().(*request)
	r.fn, r.sync = fn, sync
	return e.do(ctx, r)
}

// Sync implements storage.Engine.
func (e *Engine) Sync(ctx context.Context) error {
	return e.syncUpTo(ctx, e.durability.applying.Load())
}

// syncUpTo returns when commit and all before it are on disk.
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

// do puts r in line and returns its outcome.
func (e *Engine) do(ctx context.Context, r *request) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if failure := e.failure.Load(); failure != nil {
		return fmt.Errorf("%w: %w", storage.ErrFailed, *failure)
	}
	if lead, only := e.queue.push(r); lead {
		if only && !r.sync {
			e.leadInline(r)
		} else {
			e.startLeader()
		}
	}
	if err := e.await(ctx, r); err != nil {
		return err // a leader may still hold r
	}
	err, panicked := r.err, r.panicked
	*r = request{messages: r.messages}
	requests.Put(r)
	if panicked != nil {
		panic(panicked)
	}
	return err
}

// await returns nil when r has been answered. An error is the caller's outcome,
// who has left before that.
func (e *Engine) await(ctx context.Context, r *request) error {
	select {
	case <-r.messages: // answered before there was anything to wait for
		return nil
	default:
	}
	done, failed, abandoned := ctx.Done(), e.failed, e.abandoned
	var cause error
	for {
		select {
		case m := <-r.messages:
			if m == mayLeave {
				return fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, cause)
			}
			if cause != nil && r.err == errAbandoned {
				return cause
			}
			return nil
		case <-failed:
			failed = nil // the leader answers, if Pebble lets it
			if e.withdraw(r) {
				return fmt.Errorf("%w: %w", storage.ErrFailed, *e.failure.Load())
			}
			continue
		case <-done:
			cause = ctx.Err()
			if e.withdraw(r) {
				return cause
			}
		case <-abandoned:
			cause = *e.failure.Load()
			if e.withdraw(r) {
				return fmt.Errorf("%w: %w", storage.ErrFailed, cause)
			}
		}
		if !r.state.CompareAndSwap(running, leaving) {
			return fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, cause)
		}
		done, failed, abandoned = nil, nil, nil // a message comes
	}
}

// withdraw takes r out of the line, unless a leader has taken it.
func (e *Engine) withdraw(r *request) bool {
	if !r.state.CompareAndSwap(queued, withdrawn) {
		return false
	}
	e.queue.remove(r)
	return true
}
