package lsm

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/jaydb/jay/storage"
)

// A write group is full when it has maxGroup requests or has staged
// maxGroupBytes. A request that stages more than smallBytes is the last of its
// group and gets a batch of its own, so that the small ones before it do not wait
// for its sync.
const (
	maxGroup      = 512
	maxGroupBytes = 256 << 10
	smallBytes    = 64 << 10
)

// group is a write group: the requests that one leader runs and commits.
type group struct {
	requests []*request // that have run, in order
	waiting  []*request // of requests, those that wait for the disk
	batches  []*batch
	memory   []*request // backs batch.requests
	reader   groupReader
	sequence uint64      // last number drawn
	tx       transaction // of the request that runs
	small    bool        // the group is one small batch that must be synced
}

var groups = sync.Pool{New: func() any { return new(group) }}

// syncs reports whether the group has to wait for the disk.
func (g *group) syncs() bool {
	return slices.ContainsFunc(g.batches, func(b *batch) bool { return b.sync })
}

// startLeader makes an idle leader lead, or starts one.
func (e *Engine) startLeader() {
	select {
	case e.wake <- struct{}{}:
	default:
		e.leaders.Go(e.leader)
	}
}

// maxIdle is how many idle leaders are kept for the next requests.
const maxIdle = 4

// leader is the goroutine of a leader. It leads group after group while there
// are requests, and then waits to be woken.
func (e *Engine) leader() {
	for {
		for e.lead() {
		}
		if e.idle.Add(1) > maxIdle {
			e.idle.Add(-1)
			return
		}
		select {
		case <-e.wake:
			e.idle.Add(-1)
		case <-e.quit:
			return
		}
	}
}

// lead makes, commits and answers one group. It returns true if the caller must
// lead again.
func (e *Engine) lead() (again bool) {
	returned := false
	e.queue.awaitFollowers()
	g := e.beginGroup()
	defer func() {
		again = e.endGroup(g)
		if again && !returned { // runtime.Goexit in a function ends this leader
			e.startLeader()
		}
	}()
	for len(g.requests) < maxGroup && e.staged.size < maxGroupBytes {
		r := e.queue.pop()
		if r == nil {
			break
		}
		if !r.state.CompareAndSwap(queued, running) {
			continue // withdrawn
		}
		if !e.run(g, r) {
			// r opens the next group. If its call waits to return early, it need not
			// run again.
			if r.state.CompareAndSwap(running, queued) {
				e.queue.pushFront(r)
				break
			}
			r.err = errAbandoned
			g.requests = append(g.requests, r)
		}
		if r.size > smallBytes {
			break
		}
	}
	returned = true
	return false // the deferred function sets the result
}

// leadInline makes the goroutine that called Update the leader of a group with
// one request, its own, which asks for no sync. If the commit may block, since it
// must be synced after all or would make Pebble begin a new memtable, a leader's
// goroutine finishes the group, so that the call can still return early.
func (e *Engine) leadInline(r *request) {
	g := e.beginGroup()
	defer func() {
		if e.memTable.fits(e.staged.size, len(e.staged.entries)) && !r.sync {
			if e.endGroup(g) {
				e.startLeader()
			}
			return
		}
		e.leaders.Go(func() {
			if e.endGroup(g) {
				e.leader()
			}
		})
	}()
	if e.queue.pop(); r.state.CompareAndSwap(queued, running) {
		e.run(g, r) // true: the first of a group never has to run again
	}
}

// beginGroup begins a group and locks e.mu. endGroup must follow, on any
// goroutine.
func (e *Engine) beginGroup() *group {
	g := groups.Get().(*group)
	e.mu.Lock()
	g.sequence, g.reader = e.sequence, groupReader{}
	return g
}

// endGroup commits what a group has staged, makes way for the next leader and
// answers the group. It returns true if the caller must lead the next group.
func (e *Engine) endGroup(g *group) bool {
	e.commit(g)
	e.mu.Unlock()
	more := e.queue.endLead(g.small)
	if more && g.syncs() {
		e.startLeader() // this goroutine waits for the disk
		more = false
	}
	return e.answer(g) || more
}

// run runs the function of r and adds r to the group. It returns false if r must
// run again, as the first of a group.
func (e *Engine) run(g *group, r *request) (done bool) {
	if failure := e.failure.Load(); failure != nil {
		r.err = fmt.Errorf("%w: %w", storage.ErrFailed, *failure)
		g.requests = append(g.requests, r)
		return true
	}
	if r.fn == nil { // Sync
		g.requests = append(g.requests, r)
		return true
	}

	before := e.staged.mark()
	tx := &g.tx
	*tx = transaction{staging: e.staged, engine: e, reader: &g.reader, sequence: g.sequence, sync: r.sync, isFirst: before.entries == 0}
	g.reader.gets = 0

	// A panic must not end the process, and runtime.Goexit must not leave the
	// group unanswered: the request bears the consequence, the group goes on.
	r.err = errNoReturn
	defer func() {
		if r.err == errNoReturn {
			tx.rerun = false
			if r.panicked = recover(); r.panicked != nil {
				e.log.Error("jay: a transaction's function panics", "dir", e.dir, "panic", r.panicked, "stack", string(debug.Stack()))
			}
		}
		if r.err != nil {
			e.staged.rollback(before)
		}
		if done = !tx.rerun; done {
			g.requests = append(g.requests, r)
		}
	}()

	err := r.fn(tx)
	size := e.staged.size - before.size
	switch {
	case tx.rerun:
		err = errFirst
	case err == nil && size > storage.MaxTxBytes:
		err = fmt.Errorf("%w: %d bytes, at most %d", storage.ErrTooLarge, size, storage.MaxTxBytes)
	}
	r.sync, r.decider = tx.sync, tx.decider
	if r.err = err; err == nil {
		r.entries, r.end, r.size = before.entries, len(e.staged.entries), size
		if r.staged() {
			g.sequence, r.sequence = tx.sequence, tx.sequence
		}
	}
	return // the deferred function sets done
}

var (
	// errNoReturn is the error of a function that panicked or called
	// runtime.Goexit.
	errNoReturn = errors.New("the transaction's function ended its goroutine")

	// errFirst is returned by what only the first transaction of a group can do,
	// to make the function return. It then runs again.
	errFirst = errors.New("the transaction must be the first of its group")

	// errAbandoned is the error of an abandoned request: it would have to run
	// again, but its call is about to return early.
	errAbandoned = errors.New("the caller has left")
)
