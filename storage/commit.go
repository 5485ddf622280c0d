package storage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// Who wants to commit stands in line. The first one leads: it runs the
// transactions of those behind it too, one after another, each seeing what the
// ones before it have staged, and hands them to Pebble as one batch. Then it
// gives the lead to whoever is first by now, waits for the disk, and wakes those
// whose transactions it ran. So many small transactions cost one record of the
// log, one pass of Pebble's commit pipeline and one wait; a goroutine sleeps
// once for all of them, and the lock is not handed from one to the next.

// request is one call of Update.
type request struct {
	fn   func(Tx) error
	sync bool // asked for, or required by fn

	entries, end int    // what it has staged: entries up to end
	sequence     uint64 // the last number, if it has staged anything
	size         int    // of that, in bytes
	batch        *batch // in which that is, nil if Pebble has not got it
	err          error  // what Update returns
	settle       bool   // nothing was staged: Update waits for what fn may have seen
	panicked     any    // what Update panics with

	turn  chan turn
	group *group // with toWait
}

// turn is what a request is told.
type turn int

const (
	answered turn = iota
	toLead
	toWait // for the disk, in the place of the leader
)

var requests = sync.Pool{New: func() any { return &request{turn: make(chan turn, 1)} }}

// waits tells whether r, which was run, is answered only when the disk is done.
func (r *request) waits() bool { return r.err == nil && r.sync && r.batch != nil }

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
	writers  []*request // of them, those of one batch
	left     []*request // of them, that wait for the disk
	batches  []*batch
	lookups  lookups
	sequence uint64
	tx       pebbleTx // of the one that runs
	small    bool     // one small batch, which the disk must sync
	stays    bool     // its leader has to wait for the disk
}

// batch is what a group hands to Pebble at once.
type batch struct {
	pebble *pebble.Batch
	number uint64 // counts it, as Pebble.applied does
	sync   bool   // somebody waits for the disk
}

var groups = sync.Pool{New: func() any { return new(group) }}

// Update implements Engine.
func (e *Pebble) Update(ctx context.Context, sync bool, fn func(Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if failure := e.failure.Load(); failure != nil {
		return fmt.Errorf("%w: %w", ErrFailed, *failure) // before standing in line: the leader may be stuck behind a full disk
	}
	r := requests.Get().(*request)
	*r = request{fn: fn, sync: sync, turn: r.turn}
	if e.line.join(r) {
		e.lead(r)
	}
	e.attend(r)
	sync, err, settle, panicked := r.sync, r.err, r.settle, r.panicked
	*r = request{turn: r.turn}
	requests.Put(r)
	switch {
	case panicked != nil:
		panic(panicked)
	case err == nil && settle:
		return e.settled(sync)
	}
	return err
}

// attend does what r is told until it is answered.
func (e *Pebble) attend(r *request) {
	for {
		switch <-r.turn {
		case toLead:
			e.lead(r)
		case toWait:
			e.wait(r.group)
		default:
			return
		}
	}
}

// lead runs a group: that of those who are first in line, mostly with own, the
// request of this goroutine, among them.
func (e *Pebble) lead(own *request) {
	g := groups.Get().(*group)
	done := false
	defer e.answer(g) // even if a function ends this goroutine
	defer func() { e.line.leave(g.small) }()
	defer func() {
		if !done {
			e.orphan(own)
		}
	}()
	e.line.gather()
	e.mu.Lock()
	defer e.mu.Unlock()
	defer func() {
		e.commit(g)
		g.stays = own.waits() // own may not be of this group: then it is somebody else's after leave
	}()

	g.sequence, g.lookups = e.sequence, lookups{gaps: &e.gaps}
	for len(g.requests) < maxGroup && e.staged.size < maxGroupBytes {
		r := e.line.next()
		if r == nil {
			break
		}
		if !e.run(g, r) {
			e.line.putBack(r)
			break
		}
		if r.size > smallBytes {
			break
		}
	}
	done = true
}

// orphan sees to the request of a leader whose goroutine was ended by a function
// of a request: nobody waits for its answer, but the lead may come to it, or the
// group that it is in may ask it to wait. If it was not run, it never is.
func (e *Pebble) orphan(own *request) {
	if own.batch == nil {
		own.fn = func(Tx) error { return errGone }
	}
	go e.attend(own)
}

// run runs the function of r. It returns false if r must be the first of a
// group.
func (e *Pebble) run(g *group, r *request) (done bool) {
	if failure := e.failure.Load(); failure != nil {
		r.err = fmt.Errorf("%w: %w", ErrFailed, *failure)
		g.requests = append(g.requests, r)
		return true
	}
	before := e.staged.mark()
	tx := &g.tx
	*tx = pebbleTx{staging: e.staged, db: e.db, watches: &e.watches, lookups: &g.lookups, sequence: g.sequence, sync: r.sync, first: before.entries == 0}
	g.lookups.gets = 0
	r.err = errGone
	defer func() {
		if r.err == errGone {
			tx.again = false
			if r.panicked = recover(); r.panicked != nil {
				e.log.Error("jay: a transaction's function panics", "dir", e.dir, "panic", r.panicked, "stack", string(debug.Stack()))
			}
		}
		if r.err != nil {
			e.staged.rollback(before)
		}
		if done = !tx.again; done {
			g.requests = append(g.requests, r)
		}
	}()
	err := r.fn(tx)
	size := e.staged.size - before.size
	switch {
	case tx.again:
		err = errFirst
	case err == nil && size > MaxTxBytes:
		err = fmt.Errorf("%w: %d bytes, at most %d", ErrTooLarge, size, MaxTxBytes)
	}
	if r.err = err; err == nil {
		r.sync, r.entries, r.end, r.size = tx.sync, before.entries, len(e.staged.entries), size
		if r.settle = r.entries == r.end; !r.settle {
			g.sequence, r.sequence = tx.sequence, tx.sequence
		}
	}
	return // done is set above
}

var (
	// errGone is the error of a function that did not return.
	errGone = errors.New("the transaction's function ended its goroutine")

	// errFirst is what a transaction gets that asks for what only the first of a
	// group can have. It runs again.
	errFirst = errors.New("the transaction must be the first of its group")
)

// commit hands to Pebble what the group has staged, in order, without waiting
// for the disk. e.mu is held.
func (e *Pebble) commit(g *group) {
	defer e.staged.reset()
	g.lookups.close()
	var err error
	for first, end := 0, 0; first < len(g.requests); first = end {
		end = first + 1
		for end < len(g.requests) && max(g.requests[first].size, g.requests[end].size) <= smallBytes {
			end++
		}
		if err == nil {
			err = e.write(g, g.requests[first:end])
		}
		for _, r := range g.requests[first:end] {
			if r.err == nil && r.panicked == nil {
				r.err = err
			}
		}
	}
	g.small = len(g.batches) == 1 && g.batches[0].sync && e.staged.size <= maxGroupBytes
	if cap(e.staged.arena) > 4<<20 || cap(e.staged.entries) > 1<<16 {
		e.staged = newStaging() // one huge transaction must not hold memory for ever
	}
}

// write hands to Pebble what some requests have staged, one behind the other.
func (e *Pebble) write(g *group, some []*request) error {
	sync := false
	lo, hi, size := len(e.staged.entries), 0, 0
	writers := g.writers[:0]
	for _, r := range some {
		if r.entries < r.end {
			lo, hi, sync = min(lo, r.entries), r.end, sync || r.sync
			writers, size = append(writers, r), size+r.size
		}
	}
	if g.writers = writers; len(writers) == 0 {
		return nil
	}

	// The gaps are told of each transaction by itself, and before the commit,
	// whose outcome may stay unknown.
	if len(writers) > 1 {
		for _, r := range writers {
			e.gaps.occupy(e.staged, e.staged.sorted(r.entries, r.end))
		}
	}
	order := e.staged.sorted(lo, hi)
	if len(writers) == 1 {
		e.gaps.occupy(e.staged, order)
	}
	filled, err := e.fill(e.staged, order, size)
	if err != nil {
		return err
	}
	if err := e.apply(filled, sync); err != nil {
		e.fail(err)
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, err)
	}
	e.sequence = writers[len(writers)-1].sequence
	e.applied++
	b := &batch{pebble: filled, number: e.applied, sync: sync}
	e.watches.note(e.staged, lo, hi, e.applied)
	e.pending.Store(e.applied)
	g.batches = append(g.batches, b)
	for _, r := range writers {
		r.batch = b
	}
	return nil
}

// fill makes a batch of entries, whose keys and values have so many bytes. order is
// that of the keys: Pebble remembers where in the skip list the last key went,
// which helps only if the next one goes beside it. Writes of one key keep their
// order.
func (e *Pebble) fill(s *staging, order []int32, size int) (*pebble.Batch, error) {
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
func (e *Pebble) apply(batch *pebble.Batch, sync bool) error {
	return e.protect(func() error {
		if sync {
			return e.db.ApplyNoSyncWait(batch, pebble.Sync)
		}
		return e.db.Apply(batch, pebble.NoSync)
	})
}

// answer wakes those whose requests were run, now or when the disk is done. A
// request belongs to its goroutine again once it has been answered.
func (e *Pebble) answer(g *group) {
	g.left = g.requests[:0]
	for _, r := range g.requests {
		if r.waits() {
			g.left = append(g.left, r)
		} else {
			e.finish(r)
		}
	}
	if g.stays || len(g.left) == 0 {
		e.wait(g)
		return
	}
	// The leader's own request is answered, or in line, where the lead may come to it.
	g.left[0].group = g
	g.left[0].turn <- toWait
}

// wait waits for the disk and answers the rest of the group.
func (e *Pebble) wait(g *group) {
	start := time.Now()
	for _, b := range g.batches {
		if !b.sync {
			continue
		}
		if err := b.pebble.SyncWait(); err != nil {
			e.fail(err)
		} else if e.failure.Load() == nil { // logFS hides a failed sync from Pebble
			raise(&e.durable, b.number)
		}
		expected := len(g.left)
		if g.small {
			expected += e.line.length()
		}
		for len(g.left) > 0 && g.left[0].batch == b {
			e.finish(g.left[0])
			g.left = g.left[1:]
		}
		if g.small {
			e.line.synced(expected, time.Since(start))
		}
	}
	if e.failure.Load() == nil {
		for _, b := range g.batches {
			// The commit stands; a batch that cannot be recycled is only garbage.
			_ = b.pebble.Close()
		}
	}
	clear(g.requests[:cap(g.requests)])
	clear(g.writers[:cap(g.writers)])
	clear(g.batches)
	*g = group{requests: g.requests[:0], writers: g.writers[:0], batches: g.batches[:0]}
	groups.Put(g)
}

// finish answers one request.
func (e *Pebble) finish(r *request) {
	if r.err == nil && r.panicked == nil && !r.settle {
		failure := e.failure.Load()
		switch {
		case failure != nil:
			r.err = fmt.Errorf("%w: %w", ErrUnknownOutcome, *failure)
		case r.batch == nil: // commit has not come to its end
			r.err = ErrUnknownOutcome
		default:
			e.commits.Add(1)
		}
	}
	r.turn <- answered
}

// settled returns when all that a transaction without writes may have seen is
// on disk: its answer, too, must not be undone by a crash.
func (e *Pebble) settled(sync bool) error {
	pending := e.pending.Load()
	if !sync || pending <= e.durable.Load() {
		return nil
	}
	if err := e.protect(func() error { return e.db.LogData(nil, pebble.Sync) }); err != nil {
		e.fail(err)
	}
	if failure := e.failure.Load(); failure != nil {
		return fmt.Errorf("%w: %w", ErrUnknownOutcome, *failure)
	}
	raise(&e.durable, pending)
	return nil
}

// raise makes a at least n.
func raise(a *atomic.Uint64, n uint64) {
	for {
		old := a.Load()
		if old >= n || a.CompareAndSwap(old, n) {
			return
		}
	}
}

// pebbleTx is a Tx on Pebble. It reads committed state through the engine, and
// what the transactions before it in the group have staged: nothing else commits
// while it runs.
type pebbleTx struct {
	*staging
	db       *pebble.DB
	watches  *watches
	lookups  *lookups
	sequence uint64
	sync     bool
	first    bool // nobody in the group has staged anything before
	again    bool // it must run again, as the first
}

// Get implements Tx.
func (t *pebbleTx) Get(key []byte) ([]byte, io.Closer, error) {
	if i := t.find(key); i >= 0 {
		if t.entries[i].deleted {
			return nil, nil, ErrNotFound
		}
		return t.staging.value(i), noCloser, nil
	}
	return t.lookups.get(t.db, key)
}

// Iterate implements Tx. An iterator sees only what Pebble has got.
func (t *pebbleTx) Iterate(lo, hi []byte) (Iterator, error) {
	if !t.first {
		t.again = true
		return nil, errFirst
	}
	return iterate(t.db, lo, hi)
}

// Unchanged implements Tx.
func (t *pebbleTx) Unchanged(w Watch, key []byte) bool {
	return *t.watches.stripe(key) <= w.(*pebbleWatch).since && t.find(key) < 0
}

// Set implements Tx.
func (t *pebbleTx) Set(key, head, tail []byte) { t.add(key, head, tail, false) }

// Delete implements Tx.
func (t *pebbleTx) Delete(key []byte) { t.add(key, nil, nil, true) }

// Sequence implements Tx.
func (t *pebbleTx) Sequence() (uint64, error) {
	if t.sequence >= math.MaxInt64 {
		return 0, ErrSequenceExhausted
	}
	t.sequence++
	return t.sequence, nil
}

// RequireSync implements Tx.
func (t *pebbleTx) RequireSync() { t.sync = true }
