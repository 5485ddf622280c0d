package lsm

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// batch is what a group hands to Pebble at once.
type batch struct {
	pebble   *pebble.Batch
	requests []*request // whose writes it has, or who wait for it, in order
	lo, hi   int        // the entries of the staging that it has
	sequence uint64     // the last number drawn by its requests, 0 for none
	number   uint64     // of the commit, as Engine.applied counts them
	sync     bool       // a request waits for the disk
}

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
