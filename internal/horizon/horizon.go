// Package horizon removes the records of deletions that nothing needs any more.
//
// A deletion leaves a change record, so that the readers of changes learn of it. The
// horizon is the least etag after which some reader needs these records:
//
//   - A transaction, whose commit looks at the changes since it began, holds the
//     horizon in memory: see [Horizon.Hold].
//   - So does a change feed, as long as it is open and not too far behind: see
//     [Horizon.Follow].
//   - What outlives the process (a subscription, a series of incremental backups) has
//     a floor on disk: see [SetFloor] and [ForgetFloor].
//
// Those among the newest changes stay in any case, for who looks at what was deleted
// lately (DB.InspectIDs), and for readers that come back with a token. Changes
// are counted, and not etags, of which a crash skips 65,536 or more.
//
// Records of deletions up to the horizon are removed in batches. A batch is one
// transaction. It reads the floors, so that no floor can be set below what it
// removes, and raises the mark, the etag up to which records may be gone
// (counters.Mark). Thus the highest etag is on disk before its record goes, and who
// reads changes sees from the mark whether some are missing.
//
// The records are found by a walk over the change records, once over each: where it
// continues is stored, too (counters.Walked). Writers note the deletions that they stage; where there are none there is no
// walk.
package horizon

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/internal/background"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/storage"
)

// Bounds of the work. docs/limits.md has them.
const (
	wakeDeletes  = 1024 // deletions after which the worker is woken
	batchRecords = 8192 // change records of each node that a batch walks over
	batchDeletes = 1024 // about how many records a batch removes
	lastBatches  = 4    // batches that Finish may find at Close
)

// Horizon is the horizon of an open database. It is safe for concurrent use.
type Horizon struct {
	OnFound func() // for tests: called between the walk of a batch and its commit

	env  *env.Env
	kept uint64        // the deletions among so many newest changes are kept in any case
	last atomic.Uint64 // no deletion has a higher etag, not even one that is yet to be committed

	deleted atomic.Uint64 // deletions committed since Open
	woken   atomic.Uint64 // value of deleted when the worker was last woken

	mu     sync.Mutex
	holds  []*Hold // in the order of their floors. Guarded by mu.
	spare  *Hold   // a released one, reused by the next Hold to save an allocation. Guarded by mu.
	newest uint64  // etag of a change that every new snapshot sees, if it still exists. Guarded by mu.

	followers map[*Follower]struct{} // Guarded by mu.
	gone      uint64                 // records up to this etag are gone, or about to be removed. Guarded by mu.

	stopped bool // Guarded by mu.
	worker  *background.Worker

	batch sync.Mutex // held while a batch is made
	done  uint64     // up to this etag no records of deletions are left. Guarded by batch.
}

// New returns the horizon of a database in which nothing was written since reserved was
// opened. The records of deletions among the kept newest changes are never removed.
func New(e *env.Env, reserved *counters.Reserved, kept uint64) (*Horizon, error) {
	walked, err := counters.Walked(e.Engine)
	if err != nil {
		return nil, err
	}
	h := &Horizon{env: e, kept: kept}
	h.worker = background.NewWorker(h.RemoveSome, func(err error) { e.Warn("jay: removing records of deletions", err) })
	mark, newest := reserved.AtOpen()
	h.done, h.newest, h.gone = max(mark, walked), mark, mark
	h.last.Store(newest)
	return h, nil
}

// Hold keeps the records of all deletions that a snapshot taken after its beginning does
// not see, until its Release.
type Hold struct {
	h     *Horizon
	floor uint64
	users int // Guarded by h.mu.
}

// Hold begins a hold. Release must follow.
func (h *Horizon) Hold() *Hold {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.holds); n > 0 && h.holds[n-1].floor == h.newest {
		h.holds[n-1].users++
		return h.holds[n-1]
	}
	hold := h.spare
	if h.spare = nil; hold == nil {
		hold = &Hold{h: h}
	}
	hold.floor, hold.users = h.newest, 1
	h.holds = append(h.holds, hold)
	return hold
}

// Release ends a hold. It must be called once.
func (hold *Hold) Release() {
	h := hold.h
	h.mu.Lock()
	defer h.mu.Unlock()
	hold.users--
	for len(h.holds) > 0 && h.holds[0].users == 0 {
		h.spare = h.holds[0]
		h.holds = slices.Delete(h.holds, 0, 1)
	}
}

// publish makes newest the floor of new holds. It returns the etag up to which records
// may be removed: no hold, no follower and no floor needs them, and they are at most kept. All changes up to newest
// must have been committed.
func (h *Horizon) publish(newest, floor, kept uint64) (limit uint64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.newest = max(h.newest, newest)
	limit = min(h.followedLocked(newest), floor, kept)
	if len(h.holds) > 0 {
		limit = min(limit, h.holds[0].floor)
	}
	return max(h.done, limit)
}

// Staged records the etag of a deletion. It must be called before the transaction
// commits.
func (h *Horizon) Staged(etag uint64) {
	for {
		last := h.last.Load()
		if etag <= last || h.last.CompareAndSwap(last, etag) {
			return
		}
	}
}

// Committed counts n committed deletions. It wakes the worker if there were enough since
// it was last woken.
func (h *Horizon) Committed(n uint64) {
	deleted, woken := h.deleted.Add(n), h.woken.Load()
	if deleted-woken >= wakeDeletes && h.woken.CompareAndSwap(woken, deleted) {
		h.worker.Wake()
	}
}

// Context returns a context that ends with ctx or with Stop. The caller must cancel
// it.
func (h *Horizon) Context(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(h.worker.Context(), func() { cancel(errs.ErrClosed) })
	return ctx, func() { unhook(); cancel(nil) }
}

// Stop ends the worker and waits for it. None is started afterwards.
func (h *Horizon) Stop() {
	h.mu.Lock()
	h.stopped = true
	h.mu.Unlock()
	h.worker.Stop()
}

// RemoveSome removes a batch of records, and reports whether more may be removed.
// Under synced durability their removal is on disk when it returns.
//
// On a shared store it removes none: what the transactions and the readers of other processes need is not
// known.
func (h *Horizon) RemoveSome(ctx context.Context) (more bool, err error) {
	if h.env.Engine.Shared() {
		return false, nil
	}
	h.batch.Lock()
	defer h.batch.Unlock()
	found, limit, err := h.find(ctx)
	if err != nil {
		return false, err
	}
	if len(found.changes) > 0 {
		if h.OnFound != nil {
			h.OnFound()
		}
		before, ok := h.claim(found.last())
		if !ok {
			return false, nil
		}
		h.env.OwnSyncs.Add(1) // a drop, which made these records, must not give way to their removal
		err := h.env.Engine.Update(ctx, h.env.Synced, func(tx storage.Tx) error { return found.stage(tx) })
		h.env.OwnSyncs.Add(-1)
		if errors.Is(err, errFloor) {
			h.unclaim(before)
			return false, nil
		}
		if err != nil { // whatever the error is, the records may be gone: the claim stays
			return false, err
		}
	}
	h.done = found.end
	return found.end < limit, nil
}

// Finish finds the last records to remove, when there are no writers any more. The
// caller stages their removal in its last transaction with stage.
func (h *Horizon) Finish() (stage func(storage.Tx) error, err error) {
	if h.env.Engine.Shared() {
		return func(storage.Tx) error { return nil }, nil
	}
	h.batch.Lock()
	defer h.batch.Unlock()
	var all batch
	for range lastBatches {
		found, limit, err := h.find(context.Background())
		if err != nil {
			return nil, err
		}
		h.done = found.end
		all.changes, all.end, all.newest = append(all.changes, found.changes...), found.end, found.newest
		if found.end >= limit {
			break
		}
	}
	return all.stage, nil
}

// change is the key of a change record.
type change struct{ node, etag uint64 }

// batch is a set of records of deletions to remove.
type batch struct {
	changes []change
	end     uint64 // all records of deletions up to this etag are in changes, or gone already
	newest  uint64 // etag of the newest change when the batch was found
}

// find finds the next batch, and the etag up to which records may be removed now.
// h.batch is held. Under synced durability all that was committed is on disk before anybody is told the etag: who begins to follow
// then finds it in any snapshot, and does not stand before records that are about to go.
func (h *Horizon) find(ctx context.Context) (found batch, limit uint64, err error) {
	latest := h.env.Engine.Latest()
	defer func() { err = errs.First(err, latest.Close()) }()
	newest, err := counters.NewestChange(h.env, latest)
	if err != nil {
		return batch{}, 0, err
	}
	floor, err := leastFloor(latest, newest)
	if err != nil {
		return batch{}, 0, err
	}
	if h.env.Synced {
		h.env.OwnSyncs.Add(1) // as in RemoveSome
		err := h.env.Engine.Sync(ctx)
		h.env.OwnSyncs.Add(-1)
		if err != nil {
			return batch{}, 0, err
		}
	}
	kept, err := h.beforeKept(latest, newest)
	if err != nil {
		return batch{}, 0, err
	}
	limit = h.publish(newest, floor, kept)
	last := min(limit, h.last.Load()) // loaded after latest was taken, so it covers every deletion that latest shows
	if last <= h.done {
		return batch{end: limit, newest: newest}, limit, nil
	}
	found.end, found.newest = last, newest
	if err := found.walk(h.env, latest, h.done); err != nil {
		return batch{}, 0, err
	}
	if found.end == last {
		found.end = limit // no deletion is between last and limit
	}
	return found, limit, nil
}

// beforeKept returns the etag before the newest changes, whose deletions are kept; h.done if all changes after that are among them. h.batch is held.
func (h *Horizon) beforeKept(r storage.Reader, newest uint64) (_ uint64, err error) {
	if h.kept == 0 {
		return newest, nil
	}
	if newest-min(newest, h.kept) <= h.done || h.last.Load() <= h.done {
		return h.done, nil // each change has an etag, so there is nothing to remove
	}
	it, err := r.Iterate(format.ChangeKey(nil, h.env.Node, h.done+1), format.ChangeKey(nil, h.env.Node, newest+1))
	if err != nil {
		return 0, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	n := uint64(0)
	for ok := it.Last(); ok; ok = it.Prev() {
		if n++; n == h.kept {
			etag, err := format.EtagOf(it.Key())
			return etag - 1, err
		}
	}
	return h.done, it.Error()
}

// walk finds the records of deletions after an etag and up to b.end. If there are too
// many, it lowers b.end.
func (b *batch) walk(e *env.Env, r storage.Reader, after uint64) error {
	for node := range e.Origins {
		if err := b.walkNode(r, node, after); err != nil {
			return err
		}
	}
	b.changes = slices.DeleteFunc(b.changes, func(c change) bool { return c.etag > b.end })
	return nil
}

func (b *batch) walkNode(r storage.Reader, node, after uint64) (err error) {
	it, err := r.Iterate(format.ChangeKey(nil, node, after+1), format.ChangeKey(nil, node, b.end+1))
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	records, deletes := 0, 0
	for ok := it.First(); ok; ok = it.Next() {
		etag, err := format.EtagOf(it.Key())
		if err != nil {
			return err
		}
		if value := it.Value(); len(value) > 0 && value[0] == format.ChangeDelete {
			b.changes = append(b.changes, change{node, etag})
			deletes++
		}
		if records++; records == batchRecords || deletes == batchDeletes {
			b.end = etag
			break
		}
	}
	return it.Error()
}

// errFloor means that a floor was set below a record of a batch after the batch was
// found.
var errFloor = errors.New("a floor was set")

// stage stages the removal of the records and raises the mark. It may run more than
// once.
func (b *batch) stage(tx storage.Tx) error {
	floor, err := leastFloor(tx, b.newest)
	if err != nil {
		return err
	}
	// The mark is the etag of the last record that is removed, not the end of the walk:
	// a reader that has seen the changes up to that etag misses nothing. So a floor may be
	// between the two.
	last := b.last()
	if floor < last {
		return errFloor
	}
	if err := raise(tx, format.MarkName, counters.Mark, last); err != nil {
		return err
	}
	if err := raise(tx, format.WalkedName, counters.Walked, b.end); err != nil {
		return err
	}
	var key []byte
	for _, c := range b.changes {
		key = format.ChangeKey(key[:0], c.node, c.etag)
		tx.Delete(key)
	}
	return nil
}

// last returns the highest etag of a record to be removed, 0 if there is none.
func (b *batch) last() (last uint64) {
	for _, c := range b.changes {
		last = max(last, c.etag)
	}
	return last
}

// raise stages an etag under 'm', if it is above the stored one.
func raise(tx storage.Tx, name string, stored func(docs.Getter) (uint64, error), etag uint64) error {
	old, err := stored(tx)
	if err == nil && old < etag {
		tx.Set(format.AppendKey(nil, format.SpaceMeta, name), binary.BigEndian.AppendUint64(nil, etag), nil)
	}
	return err
}

// ErrPassed means that records after the wanted floor may be gone: the reader must begin
// again with all documents.
var ErrPassed = errors.New("records of deletions are gone")

// SetFloor stages the floor of name: the records of deletions after etag are kept
// until the floor is raised or forgotten. Names hold no byte below 0x20. It returns
// ErrPassed, and stages nothing, if etag is below the mark.
func SetFloor(tx storage.Tx, name string, etag uint64) error {
	mark, err := counters.Mark(tx)
	if err != nil {
		return err
	}
	if etag < mark {
		return fmt.Errorf("%w: those up to etag %d, and %s needs those after %d", ErrPassed, mark, name, etag)
	}
	tx.Set(floorKey(name), binary.BigEndian.AppendUint64(nil, etag), nil)
	return nil
}

// ForgetFloor stages the removal of the floor of name, whether or not it has one.
func ForgetFloor(tx storage.Tx, name string) { tx.Delete(floorKey(name)) }

func floorKey(name string) []byte {
	return format.AppendKey(nil, format.SpaceMeta, format.FloorPrefix+name)
}

// leastFloor returns the least floor, or the highest etag if there is none. The floors
// of subscriptions and of backups count only up to the knob FloorEtags back from the
// newest change: a forgotten one must not keep the records of all deletions for ever.
func leastFloor(r interface {
	Iterate(lo, hi []byte) (storage.Iterator, error)
}, newest uint64) (least uint64, err error) {
	least = math.MaxInt64
	prefix := append([]byte{format.SpaceMeta}, format.FloorPrefix...)
	it, err := r.Iterate(prefix, format.PrefixEnd(prefix))
	if err != nil {
		return 0, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		if len(it.Value()) != 8 {
			return 0, fmt.Errorf("floor record %x: %w", it.Key(), errs.ErrCorrupt)
		}
		floor := binary.BigEndian.Uint64(it.Value())
		name := it.Key()[len(prefix) : len(it.Key())-1]
		if bytes.HasPrefix(name, []byte(format.SubscriptionFloor)) || string(name) == format.BackupFloor {
			floor = max(floor, newest-min(newest, knobs.FloorEtags))
		}
		least = min(least, floor)
	}
	return least, it.Error()
}
