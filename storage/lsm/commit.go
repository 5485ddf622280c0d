package lsm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

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

// batch is what a group hands to Pebble at once.
type batch struct {
	pebble   *pebble.Batch
	requests []*request // whose writes it has, or who wait for it, in order
	lo, hi   int        // the entries of the staging that it has
	sequence uint64     // the last number drawn by its requests, 0 for none
	number   uint64     // of the commit, as Engine.applied counts them
	sync     bool       // a request waits for the disk
}

var groups = sync.Pool{New: func() any { return new(group) }}

// syncs reports whether the group has to wait for the disk.
func (g *group) syncs() bool {
	return slices.ContainsFunc(g.batches, func(b *batch) bool { return b.sync })
}

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

// commit hands to Pebble what the group has staged, in order, without waiting
// for the disk. e.mu is held.
func (e *Engine) commit(g *group) {
	defer e.staged.reset()
	g.reader.close()
	err := e.makeBatches(g)
	for _, r := range g.requests {
		if r.state.CompareAndSwap(running, released) {
			continue
		}
		r.state.Store(released)
		if r.err != errAbandoned {
			r.messages <- mayLeave
		}
	}
	for _, b := range g.batches {
		if err == nil {
			err = e.write(b)
		}
		if err == nil {
			continue
		}
		for _, r := range b.requests {
			r.err, r.batch = err, nil
		}
	}
	if err != nil {
		g.batches = slices.DeleteFunc(g.batches, func(b *batch) bool { return b.number == 0 })
	}
	g.small = len(g.batches) == 1 && g.batches[0].sync && e.staged.size <= maxGroupBytes
	if cap(e.staged.arena) > 4<<20 || cap(e.staged.entries) > 1<<16 {
		e.staged = newStaging() // one huge transaction must not hold memory for ever
	}
}

// makeBatches fills the batches of the group. From then on nothing is needed of
// the callers' memory.
func (e *Engine) makeBatches(g *group) error {
	doubt := !e.durability.allDurable() // whether a request may have seen what is not on disk
	for first, end := 0, 0; first < len(g.requests); first = end {
		end = first + 1
		for end < len(g.requests) && max(g.requests[first].size, g.requests[end].size) <= smallBytes {
			end++
		}
		b := &batch{lo: len(e.staged.entries)}
		size, writers, members := 0, 0, len(g.memory)
		for _, r := range g.requests[first:end] {
			switch {
			case r.staged():
				b.lo, b.hi, b.sync = min(b.lo, r.entries), r.end, b.sync || r.sync
				b.sequence, size = r.sequence, size+r.size
				writers++
				doubt = true
			case doubt && e.dependsOnDisk(r):
				// What it may have seen is on disk before it is answered.
				r.sync, b.sync = true, true
			default:
				continue
			}
			r.batch = b
			g.memory = append(g.memory, r)
		}
		if b.requests = g.memory[members:]; len(b.requests) == 0 {
			continue
		}
		g.batches = append(g.batches, b)
		if err := e.fillBatch(b, size, writers); err != nil {
			return err
		}
	}
	return nil
}

// rests reports whether the answer of r, which has staged nothing, depends on
// what was committed before: it waits for the disk if a write would.
func (e *Engine) dependsOnDisk(r *request) bool {
	if r.fn == nil {
		return r.commit > e.durability.durable.Load()
	}
	return r.sync && r.err == nil && r.panicked == nil
}

// fillBatch makes Pebble's batch of b.
func (e *Engine) fillBatch(b *batch, size, writers int) (err error) {
	if writers == 0 {
		b.pebble = e.db.NewBatchWithSize(0)
		return b.pebble.LogData(nil, nil)
	}
	// The gaps learn of each transaction by itself, and before the commit, whose
	// outcome may stay unknown.
	if writers > 1 {
		for _, r := range b.requests {
			if r.staged() {
				e.absent.invalidate(e.staged, e.staged.sorted(r.entries, r.end))
			}
		}
	}
	order := e.staged.sorted(b.lo, b.hi)
	if writers == 1 {
		e.absent.invalidate(e.staged, order)
	}
	b.pebble, err = e.fill(e.staged, order, size)
	return err
}

// write hands b to Pebble.
func (e *Engine) write(b *batch) error {
	b.number = e.applied
	if b.lo < b.hi {
		b.number++
	}
	e.durability.begin(e.db, b.number)
	e.memTable.use(b.pebble.Len(), b.hi-b.lo)
	if err := e.apply(b.pebble, b.sync); err != nil {
		e.fail(err)
		b.number = 0 // nothing of it can be waited for
		return fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, err)
	}
	if b.sync {
		e.durability.applied(e.db, b.number)
	}
	if b.lo == b.hi {
		return nil
	}
	e.sequence, e.applied = max(e.sequence, b.sequence), b.number
	e.writes.record(e.staged, b.lo, b.hi, e.applied)
	e.visible.Store(e.applied)
	return nil
}

// fill makes a batch of entries, whose keys and values have so many bytes. order is
// that of the keys: Pebble remembers where in the skip list the last key went,
// which helps only if the next one goes beside it. Writes of one key keep their
// order.
func (e *Engine) fill(s *staging, order []int32, size int) (*pebble.Batch, error) {
	batch := e.db.NewBatchWithSize(size + 16*len(order))
	for _, i := range order {
		if err := put(batch, s, int(i)); err != nil {
			return nil, errors.Join(err, batch.Close())
		}
	}
	return batch, nil
}

// put adds entry i of s to batch, writing it where Pebble will keep it.
func put(batch *pebble.Batch, s *staging, i int) error {
	key := s.key(i)
	if s.entries[i].deleted {
		return batch.Delete(key, nil)
	}
	head, tail := s.head(i), s.entries[i].tail
	op := batch.SetDeferred(len(key), len(head)+len(tail))
	copy(op.Key, key)
	copy(op.Value[copy(op.Value, head):], tail)
	return op.Finish()
}

// apply gives batch to Pebble. With sync, batch.SyncWait must follow.
func (e *Engine) apply(batch *pebble.Batch, sync bool) error {
	return e.protect(func() error {
		if sync {
			return e.db.ApplyNoSyncWait(batch, pebble.Sync)
		}
		return e.db.Apply(batch, pebble.NoSync)
	})
}

// answer answers those whose requests were run: at once, or when the disk is
// done. A request belongs to its goroutine again once it has been answered. It
// returns true if its caller must lead.
func (e *Engine) answer(g *group) (lead bool) {
	g.waiting = g.requests[:0]
	for _, r := range g.requests {
		if r.waitsForDisk() {
			g.waiting = append(g.waiting, r)
		} else {
			e.finish(r)
		}
	}
	var start time.Time
	if g.small {
		start = time.Now()
	}
	for _, b := range g.batches {
		if !b.sync {
			continue
		}
		if err := b.pebble.SyncWait(); err != nil {
			e.fail(err)
		} else if e.failure.Load() == nil { // logFS hides a failed sync from Pebble
			e.durability.reached(b.number)
		}
		expected := len(g.waiting)
		if g.small {
			expected += e.queue.length()
		}
		for len(g.waiting) > 0 && g.waiting[0].batch == b {
			e.finish(g.waiting[0])
			g.waiting = g.waiting[1:]
		}
		if g.small {
			lead = e.queue.syncEnded(expected, time.Since(start))
		}
	}
	e.durability.closeUnused()
	if e.failure.Load() == nil {
		for _, b := range g.batches {
			// The commit stands; a batch that cannot be recycled is only garbage.
			_ = b.pebble.Close()
		}
	}
	clear(g.requests[:cap(g.requests)])
	clear(g.batches)
	clear(g.memory)
	*g = group{requests: g.requests[:0], batches: g.batches[:0], memory: g.memory[:0]}
	groups.Put(g)
	return lead
}

// finish answers one request.
func (e *Engine) finish(r *request) {
	failure := e.failure.Load()
	switch {
	case r.err != nil || r.panicked != nil || r.batch == nil && !r.staged(): // nothing to wait for
	case failure != nil:
		r.err = fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, *failure)
	case r.batch == nil: // commit has not come to its end
		r.err = storage.ErrUnknownOutcome
	case r.staged():
		e.commits.Add(1)
	}
	e.decide(r)
	r.messages <- answered
}

// decide calls the decider of r when what r has done is durable, or will never
// be. What is in doubt since the engine failed stays so.
func (e *Engine) decide(r *request) {
	switch {
	case r.decider == nil || errors.Is(r.err, storage.ErrUnknownOutcome):
	case r.err == nil && r.staged() && e.durability.keepViews:
		e.durability.onDurable(r.batch.number, r.decider)
	default:
		r.decider.Decided()
	}
}

// pebbleTx is a Tx on Pebble. It reads committed state through the engine, and
// what the transactions before it in the group have staged: nothing else commits
// while it runs.
type transaction struct {
	*staging
	engine   *Engine
	reader   *groupReader
	sequence uint64
	decider  storage.Decider
	sync     bool
	isFirst  bool // nobody in the group has staged anything before
	rerun    bool // it must run again, as the first
}

// Get implements storage.Tx.
func (t *transaction) Get(key []byte) ([]byte, io.Closer, error) {
	if i := t.find(key); i >= 0 {
		if t.entries[i].deleted {
			return nil, nil, storage.ErrNotFound
		}
		return t.staging.value(i), noCloser, nil
	}
	return t.reader.get(t.engine.db, key)
}

// Iterate implements storage.Tx. An iterator sees only what Pebble has got.
func (t *transaction) Iterate(lo, hi []byte) (storage.Iterator, error) {
	if !t.isFirst {
		t.rerun = true
		return nil, errFirst
	}
	return iterate(t.engine.db, lo, hi)
}

// Unchanged implements storage.Tx.
func (t *transaction) Unchanged(w storage.Watch, key []byte) bool {
	return *t.engine.writes.stripe(key) <= w.(*watch).since && t.find(key) < 0
}

// Set implements storage.Tx.
func (t *transaction) Set(key, head, tail []byte) { t.add(key, head, tail, false) }

// Delete implements storage.Tx.
func (t *transaction) Delete(key []byte) { t.add(key, nil, nil, true) }

// Sequence implements storage.Tx.
func (t *transaction) Sequence() (uint64, error) {
	last := max(t.sequence, t.engine.minSequence.Load())
	if last >= math.MaxInt64 {
		return 0, storage.ErrSequenceExhausted
	}
	t.sequence = last + 1
	return t.sequence, nil
}

// RequireSync implements storage.Tx.
func (t *transaction) RequireSync() { t.sync = true }

// OnDecided implements storage.Tx.
func (t *transaction) OnDecided(d storage.Decider) { t.decider = d }
