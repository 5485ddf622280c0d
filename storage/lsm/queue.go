package lsm

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/storage"
)

// commitQueue is the queue in which requests wait for a leader: see commit.go.
// There is one leader at a time; push, endLead and syncEnded say when the next
// must begin.
//
// While the log is synced for a small group, requests that want a sync stay in
// the queue, as their own sync cannot begin before that one has ended. The next
// leader then waits for a commit delay: goroutines that write one document after
// another come back as soon as they are answered, and share the next sync with
// all others. Without the delay they would fall into two halves that take turns,
// and each would wait for two syncs.
type commitQueue struct {
	mu        sync.Mutex
	waiting   []*request // the queue is waiting[first:]. Guarded by mu.
	first     int        // Guarded by mu.
	unsynced  int        // requests in the queue that want no sync. Guarded by mu.
	hasLeader bool       // a leader works, or is about to begin. Guarded by mu.
	syncing   int        // small groups whose sync is under way. Guarded by mu.

	expected int       // length of the queue once all answered callers are back. Guarded by mu.
	deadline time.Time // end of the commit delay. Guarded by mu.

	// A delay that ends before all are back costs latency for nothing. The next
	// skips leaders then do not delay, about twice as many each time. Only the
	// leader uses these fields.
	skips   int
	backOff int // skips after the next delay that was too short
}

const (
	maxCommitDelay   = 500 * time.Microsecond
	maxSkippedDelays = 63
)

// push appends r. It returns true if a leader must begin, and whether r is the
// only request in the queue.
func (q *commitQueue) push(r *request) (lead, only bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first > len(q.waiting)/2 { // a busy queue is never empty: reclaim its front
		n := copy(q.waiting, q.waiting[q.first:])
		clear(q.waiting[n:])
		q.waiting, q.first = q.waiting[:n], 0
	}
	q.waiting = append(q.waiting, r)
	if !r.sync {
		q.unsynced++
	}
	if q.hasLeader || q.syncing > 0 && r.sync {
		return false, false
	}
	q.hasLeader = true
	return true, q.count() == 1
}

// maxYields bounds how often the leader yields, far above what fits into the delay: a clock may stand
// still, as in a bubble of synctest.
const maxYields = 1 << 16

// awaitFollowers waits out the commit delay: until the expected requests are in
// the queue or the deadline has passed. It returns at once if a request wants no
// sync, and so need not wait for one. Only the leader calls it.
func (q *commitQueue) awaitFollowers() {
	q.mu.Lock()
	expected, until := q.expected, q.deadline
	q.expected = 0
	ready := q.ready(expected)
	q.mu.Unlock()
	if ready {
		return
	}
	if q.skips > 0 {
		q.skips--
		return
	}
	for yields := 0; !ready; yields++ {
		if yields == maxYields || time.Now().After(until) {
			q.backOff = min(2*q.backOff+1, maxSkippedDelays)
			q.skips = q.backOff
			return
		}
		runtime.Gosched() // the answered goroutines are about to run
		q.mu.Lock()
		ready = q.ready(expected)
		q.mu.Unlock()
	}
	q.backOff = 0
}

// ready reports whether there is no reason to delay. q.mu is held.
func (q *commitQueue) ready(expected int) bool { return q.count() >= expected || q.unsynced > 0 }

// length returns how many requests are in the queue.
func (q *commitQueue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count()
}

// count is length with q.mu held.
func (q *commitQueue) count() int { return len(q.waiting) - q.first }

// pop takes the first request out of the queue; nil if there is none. Only the
// leader calls it.
func (q *commitQueue) pop() *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count() == 0 {
		return nil
	}
	r := q.waiting[q.first]
	q.waiting[q.first] = nil
	if q.first++; q.count() == 0 {
		q.waiting, q.first = q.waiting[:0], 0
	}
	if !r.sync {
		q.unsynced--
	}
	return r
}

// pushFront puts r back, before all others.
func (q *commitQueue) pushFront(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first > 0 {
		q.first--
		q.waiting[q.first] = r
	} else {
		q.waiting = slices.Insert(q.waiting, 0, r)
	}
	if !r.sync {
		q.unsynced++
	}
}

// remove takes r out of the queue, if it is still in it.
func (q *commitQueue) remove(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting[q.first:], r)
	if i < 0 {
		return
	}
	q.waiting = slices.Delete(q.waiting, q.first+i, q.first+i+1)
	if !r.sync {
		q.unsynced--
	}
}

// endLead ends the work of the leader. With syncs, a small group now waits for
// the disk, and syncEnded follows. It returns true if the next leader must begin.
func (q *commitQueue) endLead(syncs bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hasLeader = false
	if syncs {
		q.syncing++
	}
	return q.claimLead()
}

// syncEnded notes that the sync of a small group has ended, after it took so
// long. expected is how many requests were in the queue before the group was
// answered, and how many were answered. It returns true if a leader must begin.
func (q *commitQueue) syncEnded(expected int, took time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.syncing--
	q.expected, q.deadline = expected, time.Now().Add(min(took/2, maxCommitDelay))
	return q.claimLead()
}

// claimLead returns true if a leader must begin: there is none, and a request can
// make progress now. q.mu is held.
func (q *commitQueue) claimLead() bool {
	if q.hasLeader || q.count() == 0 || q.syncing > 0 && q.unsynced == 0 {
		return false
	}
	q.hasLeader = true
	return true
}

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
	return e.syncUpTo(ctx, max(e.durability.applying.Load(), e.durability.promised.Load()))
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
	sequence uint64 // last number drawn
	needs    storage.FeatureSet
	tx       transaction // of the request that runs
	small    bool        // the group is one small batch that must be synced
}

var groups = sync.Pool{New: func() any { return new(group) }}

// syncs reports whether the group has to wait for the disk.
func (g *group) syncs() bool {
	return slices.ContainsFunc(g.batches, func(b *batch) bool { return b.sync })
}

// writes returns how many of the batches have something to write: each is a commit.
func (g *group) writes() (n uint64) {
	for _, b := range g.batches {
		if b.lo < b.hi {
			n++
		}
	}
	return n
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
	*tx = transaction{staging: e.staged, engine: e, reader: &g.reader, sequence: g.sequence, sync: r.sync, before: before.entries}
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
	case err == nil:
		if err = e.Limits().Check(storage.Sizes{Tx: int64(size)}); err == nil {
			err = tx.needs.Err()
		}
	}
	r.sync, r.decider = tx.sync, tx.decider
	if r.err = err; err == nil {
		r.entries, r.end, r.size = before.entries, len(e.staged.entries), size
		if r.staged() {
			g.sequence, r.sequence = tx.sequence, tx.sequence
		}
		g.needs |= tx.needs.Features
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
