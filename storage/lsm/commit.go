package lsm

import (
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/internal/pieces"
	"github.com/jaydb/jay/storage"
)

// How Updates commit (group commit, as in LevelDB and RocksDB)
//
// Each call of Update enqueues a request. One leader at a time, a goroutine of
// the engine, takes a write group off the queue, runs the transactions of the
// group one after another, each on top of what those before it staged, and hands
// all of it to Pebble as one batch. Then it lets the next leader begin, waits for
// the sync and answers its group. So many small transactions share one record of
// the log, one pass through Pebble's commit pipeline and one sync.
//
// Engine.mu is held from the first transaction of a group until Pebble has its
// batches: transactions are serial, and nothing else writes to Pebble.

// batch is a part of a group that Pebble gets as one batch.
type batch struct {
	pebble   *pebble.Batch
	requests []*request // with writes in the batch, or waiting for its sync, in order
	lo, hi   int        // entries [lo, hi) of the staging
	sequence uint64     // last number drawn by the requests; 0 for none
	number   uint64     // of the commit, as Engine.applied counts them; 0 if Pebble did not get it
	sync     bool       // a request waits for the disk
}

// commit hands to Pebble what the group has staged, in order, without waiting
// for the sync. Pebble may block, in a write stall. e.mu is held.
func (e *Engine) commit(g *group) {
	defer e.staged.reset()
	g.reader.close()
	e.numbers.trim()
	err := e.makeBatches(g)

	// The batches are made: from here on no memory of the callers is used, and
	// their calls may return early. A Sync after that waits for their commits.
	if err == nil {
		e.durability.promised.Store(e.applied + g.writes())
	}
	for _, r := range g.requests {
		if r.state.CompareAndSwap(running, released) {
			continue
		}
		r.state.Store(released)
		if r.err != errAbandoned { // answer reports that
			r.messages <- mayLeave
		}
	}

	if e.onRelease != nil {
		e.onRelease()
	}

	// The format file comes before the first key that needs it. It may block as Pebble may.
	if err == nil {
		err = e.uses.raise(g.needs, e.controlFS.FS, e.path, e.log)
	}

	// After the first batch that fails, no other may commit.
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
		e.numbers.forget()
		g.batches = slices.DeleteFunc(g.batches, func(b *batch) bool { return b.number == 0 })
	}
	g.small = len(g.batches) == 1 && g.batches[0].sync && e.staged.size <= maxGroupBytes
	if cap(e.staged.arena) > 4<<20 || cap(e.staged.entries) > 1<<16 {
		e.staged = newStaging() // do not keep the memory of one huge transaction
	}
}

// makeBatches distributes the requests over batches and fills these. Consecutive
// small requests share a batch; a large one has its own.
func (e *Engine) makeBatches(g *group) error {
	inDoubt := !e.durability.allDurable() // a request may have read a commit that is not on disk
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
				inDoubt = true
			case inDoubt && e.dependsOnDisk(r):
				// r staged nothing, and is answered when what it may have read is on disk.
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
		if writers == 0 {
			b.lo = b.hi // else it would be taken for a commit, behind a batch with writes
		}
		g.batches = append(g.batches, b)
		if err := e.fillBatch(b, size, writers); err != nil {
			return err
		}
	}
	return nil
}

// dependsOnDisk reports whether r, which staged nothing, must wait until what was
// committed before it is on disk.
func (e *Engine) dependsOnDisk(r *request) bool {
	if r.fn == nil {
		return r.commit > e.durability.durable.Load()
	}
	return r.sync && r.err == nil && r.panicked == nil
}

// fillBatch makes Pebble's batch for b.
func (e *Engine) fillBatch(b *batch, size, writers int) (err error) {
	if writers == 0 {
		// Only a sync is wanted: an empty record of the log carries it.
		b.pebble = e.db.NewBatchWithSize(0)
		return b.pebble.LogData(nil, nil)
	}

	b.pebble, err = e.fill(e.staged, e.staged.sorted(b.lo, b.hi), size)
	return err
}

// write hands b to Pebble and counts the commit.
func (e *Engine) write(b *batch) error {
	b.number = e.applied
	if b.lo < b.hi {
		b.number++
	}

	// Before Pebble has the commit: readers must know that it may be there.
	e.durability.begin(e.db, b.number)
	e.keyCounts.record(e.staged, b.lo, b.hi, b.number)
	e.memTable.use(b.pebble.Len(), b.hi-b.lo)
	repr := b.pebble.Repr() // Pebble takes it out of a large batch
	if err := e.apply(b.pebble, b.sync); err != nil {
		e.fail(err)
		b.number = 0 // there is no sync to wait for
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
	e.watcher.showWrites(repr, e.applied)
	e.visible.Store(e.applied) // after record: see TrackWrites
	return nil
}

// fill makes a batch of the entries in order, whose keys and values have size
// bytes. The order is that of the keys, as an insert into Pebble's skip list is
// cheap beside the insert before it; writes of one key keep their order.
func (e *Engine) fill(s *staging, order []int32, size int) (*pebble.Batch, error) {
	batch := e.db.NewBatchWithSize(size + 16*len(order))
	for at := 0; at < len(order); {
		n, err := e.numbers.put(e.db, batch, s, order[at:])
		if n == 0 && err == nil {
			n, err = 1, put(batch, s, int(order[at]))
		}
		if err != nil {
			return nil, errors.Join(err, batch.Close())
		}
		at += n
	}
	return batch, nil
}

// put adds entry i of s to batch, without a copy in between.
func put(batch *pebble.Batch, s *staging, i int) error {
	key := s.key(i)
	if s.entries[i].deleted {
		return batch.Delete(key, nil)
	}
	head, tail := s.head(i), s.entries[i].tail
	op := batch.SetDeferred(len(key), len(head)+len(tail))
	copy(op.Key, key)
	pieces.Copy(op.Value[copy(op.Value, head):], tail)
	return op.Finish()
}

// apply is the only place that writes to Pebble. With sync, batch.SyncWait must
// follow.
func (e *Engine) apply(batch *pebble.Batch, sync bool) error {
	return e.protect(func() error {
		if sync {
			return e.db.ApplyNoSyncWait(batch, pebble.Sync)
		}
		return e.db.Apply(batch, pebble.NoSync)
	})
}

// answer answers the requests of the group, those that wait for the disk after
// the sync of their batch. An answered request belongs to its caller again. answer
// returns true if the calling goroutine must lead.
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
	for i, b := range g.batches {
		if !b.sync {
			continue
		}
		if err := b.pebble.SyncWait(); err != nil {
			e.fail(err)
		} else if e.failure.Load() == nil { // logFS hides a failed sync from Pebble
			e.durability.reached(b.number)
		}

		// The callers answered now may come back at once: the next leader waits for
		// as many requests (commitQueue.awaitFollowers).
		expected := len(g.waiting)
		if g.small {
			expected += e.queue.length()
		}
		for len(g.waiting) > 0 && g.waiting[0].batch == b {
			e.finish(g.waiting[0])
			g.waiting = g.waiting[1:]
		}
		if i+1 < len(g.batches) {
			// Small requests before a large one. Without this, their callers would run
			// after that of the large one, which is woken by the same goroutine.
			runtime.Gosched()
		}
		if g.small {
			lead = e.queue.syncEnded(expected, time.Since(start))
		}
		e.notice.send()
	}
	if !e.durability.keepViews && len(g.batches) > 0 {
		e.notice.send()
	}

	e.durability.closeUnused(maxUnused)
	e.states.sweep()
	if e.failure.Load() == nil { // else Pebble may still use a batch
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

// finish answers one request: its call returns, unless it has returned early.
func (e *Engine) finish(r *request) {
	failure := e.failure.Load()
	switch {
	case r.err != nil || r.panicked != nil || r.batch == nil && !r.staged(): // nothing to wait for
	case failure != nil:
		r.err = fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, *failure)
	case r.batch == nil: // the batch of a request before it could not be made
		r.err = storage.ErrUnknownOutcome
	case r.staged():
		e.commits.Add(1)
	}
	e.decide(r)
	r.messages <- answered
}

// decide has the decider of r called when the commit of r is durable, or now if
// r has none. A commit that is in doubt because the engine failed is never decided.
func (e *Engine) decide(r *request) {
	switch {
	case r.decider == nil || errors.Is(r.err, storage.ErrUnknownOutcome):
	case r.err == nil && r.staged() && e.durability.keepViews:
		e.durability.onDurable(r.batch.number, r.decider)
	default:
		r.decider.Decided()
	}
}
