package lsm

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/jaydb/jay/storage"
)

// A group is full when it has maxGroup requests, or has staged maxGroupBytes.
// A request that stages more than smallBytes is the last of its group, and has a
// batch of its own: the small ones before it need not wait until the disk has it.
const (
	maxGroup      = 512
	maxGroupBytes = 256 << 10
	smallBytes    = 64 << 10
)

// group is what one leader runs.
type group struct {
	requests []*request // those that were run, in order
	waiting  []*request // of them, those that wait for the disk
	batches  []*batch
	memory   []*request // memory for batch.requests
	reader   groupReader
	sequence uint64
	tx       transaction // of the one that runs
	small    bool        // one small batch, which the disk must sync
}

var groups = sync.Pool{New: func() any { return new(group) }}

// syncs reports whether the group has to wait for the disk.
func (g *group) syncs() bool {
	return slices.ContainsFunc(g.batches, func(b *batch) bool { return b.sync })
}

// startLeader lets a goroutine lead: one that waits for that, or a new one.
func (e *Engine) startLeader() {
	select {
	case e.wake <- struct{}{}:
	default:
		e.leaders.Go(e.leader)
	}
}

// maxIdle is how many goroutines wait to be leaders.
const maxIdle = 4

// leader leads until there is nothing to do, and then waits for more.
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

// lead runs one group and answers it. It returns true if the caller must lead
// again.
func (e *Engine) lead() (again bool) {
	normal := false
	e.queue.awaitFollowers()
	g := e.beginGroup()
	defer func() {
		again = e.endGroup(g)
		if again && !normal { // a function ends this goroutine
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
	normal = true
	return false // set above
}

// leadOwn lets the goroutine that called Update lead a group of its own request,
// which is the only one in line and needs no sync: a commit that stays in memory
// is not worth two changes of goroutines. What could make it wait, such as a
// write stall, is left to a leader.
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
		e.run(g, r) // which is the first of its group
	}
}

// beginGroup begins a group. endGroup must follow, on any goroutine.
func (e *Engine) beginGroup() *group {
	g := groups.Get().(*group)
	e.mu.Lock()
	g.sequence, g.reader = e.sequence, groupReader{absent: &e.absent}
	return g
}

// endGroup commits what a group has staged, ends the lead and answers the group.
// It returns true if the caller must lead.
func (e *Engine) endGroup(g *group) bool {
	e.commit(g)
	e.mu.Unlock()
	more := e.queue.endLead(g.small)
	if more && g.syncs() {
		e.startLeader() // this goroutine has to wait
		more = false
	}
	return e.answer(g) || more
}

// run runs the function of r. It returns false if r must be the first of a
// group.
func (e *Engine) run(g *group, r *request) (done bool) {
	if failure := e.failure.Load(); failure != nil {
		r.err = fmt.Errorf("%w: %w", storage.ErrFailed, *failure)
		g.requests = append(g.requests, r)
		return true
	}
	if r.fn == nil {
		g.requests = append(g.requests, r)
		return true
	}
	before := e.staged.mark()
	tx := &g.tx
	*tx = transaction{staging: e.staged, engine: e, reader: &g.reader, sequence: g.sequence, sync: r.sync, isFirst: before.entries == 0}
	g.reader.gets = 0
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
	return // done is set above
}

var (
	// errGone is the error of a function that did not return.
	errNoReturn = errors.New("the transaction's function ended its goroutine")

	// errFirst is what a transaction gets that asks for what only the first of a
	// group can have. It runs again.
	errFirst = errors.New("the transaction must be the first of its group")

	// errLeft is the error of a request that would have to run again, and whose
	// caller wants to leave.
	errAbandoned = errors.New("the caller has left")
)
