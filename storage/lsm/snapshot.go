package lsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// Get implements storage.Reader.
func (e *Engine) Get(key []byte) ([]byte, io.Closer, error) {
	d := &e.durability
	if !d.keepViews {
		return get(e.db, key)
	}
	if d.allDurable() {
		value, closer, err := get(e.db, key)
		if d.allDurable() {
			return value, closer, err
		}
		// A commit began meanwhile, and the value may be its.
		if closer != nil {
			_ = closer.Close() // nothing was returned
		}
	}
	s := e.durableState()
	defer s.Close() // the value is held by its closer
	return s.Get(key)
}

// Iterate implements storage.Reader.
func (e *Engine) Iterate(lo, hi []byte) (storage.Iterator, error) {
	s := e.Snapshot()
	defer s.Close() // the iterator keeps what it needs
	return s.Iterate(lo, hi)
}

// Snapshot implements storage.Engine.
func (e *Engine) Snapshot() storage.Snapshot {
	d := &e.durability
	if !d.keepViews || d.allDurable() {
		s := e.newest()
		if !d.keepViews || d.allDurable() {
			return s
		}
		_ = s.Close()
	}
	return e.durableState()
}

// Latest implements storage.Engine. After the engine has failed, it returns what
// Snapshot does: no decision may rest on a commit that is in doubt.
func (e *Engine) Latest() storage.Snapshot {
	if e.durability.keepViews && e.failure.Load() != nil {
		return e.durableState()
	}
	return e.newest()
}

// durableState returns a Snapshot of the newest state on disk.
func (e *Engine) durableState() storage.Snapshot {
	v := e.durability.acquire()
	if v == nil { // no commit yet
		return &latest{&state{of: &e.states, snapshot: e.db.NewSnapshot()}, e}
	}
	s := &durableSnapshot{snapshot{v.snapshot}, e, v}
	if e.failure.Load() == nil {
		e.requestSync()
		return s
	}
	return &inDoubtSnapshot{durable: s, newest: snapshot{e.db.NewSnapshot()}, cause: *e.failure.Load()}
}

// syncRequestInterval is the least time between two syncs that reads ask for, so
// that they do not slow down a bulk load.
const syncRequestInterval = 20 * time.Millisecond

// requestSync is called by a read that does not see the newest commits. If no sync
// of them is under way, as after the batches of a bulk load, it starts one without
// waiting for it, so that later reads see them.
func (e *Engine) requestSync() {
	if e.durability.syncing() {
		return
	}
	now, last := time.Now().UnixNano(), e.lastSyncRequest.Load()
	if now-last < int64(syncRequestInterval) || !e.lastSyncRequest.CompareAndSwap(last, now) {
		return
	}
	e.leaders.Go(func() {
		// An error has made the engine fail.
		_ = e.Sync(context.Background())
	})
}

// snapshot reads a snapshot of Pebble.
type snapshot struct{ s *pebble.Snapshot }

func (s snapshot) Get(key []byte) ([]byte, io.Closer, error) { return get(s.s, key) }

func (s snapshot) Iterate(lo, hi []byte) (storage.Iterator, error) { return iterate(s.s, lo, hi) }

func (s snapshot) Close() error { return s.s.Close() }

// durableSnapshot is a Snapshot of the newest durable state, which it shares with
// other readers.
type durableSnapshot struct {
	snapshot
	engine *Engine
	view   *view
}

// CommitNumber implements storage.Numbered.
func (s *durableSnapshot) CommitNumber() (uint64, bool) { return s.view.commit, true }

// WaitDurable implements storage.Snapshot.
func (s *durableSnapshot) WaitDurable(context.Context) error { return nil }

// Close implements storage.Snapshot.
func (s *durableSnapshot) Close() error {
	s.engine.durability.release(s.view)
	return nil
}

// inDoubtSnapshot is a Snapshot of an engine that has failed. It compares the
// durable state with the newest one, some commits of which may be lost, and
// refuses what is different.
type inDoubtSnapshot struct {
	durable *durableSnapshot
	newest  snapshot
	cause   error
}

func (s *inDoubtSnapshot) doubt() error {
	return fmt.Errorf("%w: a newer version may be on disk or not: %w", storage.ErrUnknownOutcome, s.cause)
}

// Get implements storage.Reader.
func (s *inDoubtSnapshot) Get(key []byte) ([]byte, io.Closer, error) {
	value, closer, err := s.durable.Get(key)
	if err != nil && err != storage.ErrNotFound {
		return nil, nil, err
	}
	newer, newerCloser, newerErr := s.newest.Get(key)
	if newerCloser != nil {
		defer newerCloser.Close()
	}
	if newerErr == err && bytes.Equal(value, newer) {
		return value, closer, err
	}
	if closer != nil {
		_ = closer.Close() // nothing was returned
	}
	if newerErr != nil && newerErr != storage.ErrNotFound {
		return nil, nil, newerErr
	}
	return nil, nil, s.doubt()
}

// Iterate implements storage.Reader.
func (s *inDoubtSnapshot) Iterate(lo, hi []byte) (storage.Iterator, error) {
	durable, err := s.durable.Iterate(lo, hi)
	if err != nil {
		return nil, err
	}
	newest, err := s.newest.Iterate(lo, hi)
	if err != nil {
		return nil, errors.Join(err, durable.Close())
	}
	return &inDoubtIterator{Iterator: durable, newest: newest, doubt: s.doubt()}, nil
}

// WaitDurable implements storage.Snapshot.
func (s *inDoubtSnapshot) WaitDurable(context.Context) error { return nil }

// Close implements storage.Snapshot.
func (s *inDoubtSnapshot) Close() error { return errors.Join(s.newest.Close(), s.durable.Close()) }

// inDoubtIterator moves over the durable and the newest state at once, and stops
// where they differ.
type inDoubtIterator struct {
	storage.Iterator // over what is on disk
	newest           storage.Iterator
	doubt            error
	differs          bool
}

// same compares the two positions after a move.
func (it *inDoubtIterator) same(durable, newest bool) bool {
	it.differs = durable != newest ||
		durable && !(bytes.Equal(it.Key(), it.newest.Key()) && bytes.Equal(it.Value(), it.newest.Value()))
	return durable && !it.differs
}

// First implements storage.Iterator, and so do those that follow.
func (it *inDoubtIterator) First() bool { return it.same(it.Iterator.First(), it.newest.First()) }

func (it *inDoubtIterator) Last() bool { return it.same(it.Iterator.Last(), it.newest.Last()) }

func (it *inDoubtIterator) SeekGE(key []byte) bool {
	return it.same(it.Iterator.SeekGE(key), it.newest.SeekGE(key))
}

func (it *inDoubtIterator) SeekLT(key []byte) bool {
	return it.same(it.Iterator.SeekLT(key), it.newest.SeekLT(key))
}

func (it *inDoubtIterator) Next() bool {
	return !it.differs && it.same(it.Iterator.Next(), it.newest.Next())
}

func (it *inDoubtIterator) Prev() bool {
	return !it.differs && it.same(it.Iterator.Prev(), it.newest.Prev())
}

func (it *inDoubtIterator) Valid() bool { return !it.differs && it.Iterator.Valid() }

// Error implements storage.Iterator.
func (it *inDoubtIterator) Error() error {
	if err := errors.Join(it.Iterator.Error(), it.newest.Error()); err != nil || !it.differs {
		return err
	}
	return it.doubt
}

// Close implements storage.Iterator.
func (it *inDoubtIterator) Close() error {
	return errors.Join(it.Iterator.Close(), it.newest.Close())
}

// get is storage.Reader.Get on r.
func get(r pebble.Reader, key []byte) ([]byte, io.Closer, error) {
	value, closer, err := r.Get(key)
	if err == nil {
		return value, closer, nil
	}
	if err == pebble.ErrNotFound || errors.Is(err, pebble.ErrNotFound) {
		return nil, nil, storage.ErrNotFound
	}
	return nil, nil, readError(err)
}

// iterator is an Iterator on Pebble.
type iterator struct{ *pebble.Iterator }

var (
	_ storage.Skipper = iterator{}
	_ storage.Finder  = iterator{}
	_ storage.Passer  = iterator{}
)

// Error implements storage.Iterator.
func (it iterator) Error() error { return readError(it.Iterator.Error()) }

// Close implements storage.Iterator.
func (it iterator) Close() error { return readError(it.Iterator.Close()) }

// iterate is storage.Reader.Iterate on r.
func iterate(r pebble.Reader, lo, hi []byte) (storage.Iterator, error) {
	it, err := newIterator(r, lo, hi)
	if err != nil {
		return nil, err
	}
	return iterator{it}, nil
}

func newIterator(r pebble.Reader, lo, hi []byte) (*pebble.Iterator, error) {
	if len(lo) == 0 {
		lo = nil // to Pebble, an empty bound is not the same as none
	}
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	return it, readError(err)
}

// SeekExact implements storage.Finder. The prefix of a key is the whole key, so that Pebble looks into
// a table only if its bloom filter has the key. It does not ask the filters of the last level, where
// what is looked for mostly is.
func (it iterator) SeekExact(key []byte) bool { return it.Iterator.SeekPrefixGE(key) }

// Skip implements storage.Skipper.
func (it iterator) Skip(n int) (called int, more bool) {
	for more = true; more && called < n; called++ {
		more = it.Iterator.Next()
	}
	return called, more
}

// Passed implements storage.Passer: Pebble counts the steps that it takes for each of its caller's.
func (it iterator) Passed() int {
	of := func(n [pebble.NumStatsKind]int) int {
		return max(0, n[pebble.InternalIterCall]-n[pebble.InterfaceCall])
	}
	stats := it.Stats()
	return of(stats.ForwardStepCount) + of(stats.ReverseStepCount)
}

// state is a snapshot of Pebble, with iterators over it that are open and not in use.
//
// To open an iterator, and to open the table that it then reads, takes as long as
// several of its seeks. A reader that ends therefore leaves the state with its iterators to
// the next one, as long as that would see the same: until a commit begins. CockroachDB
// keeps iterators in the same way for the requests of one batch (pebbleReadOnly in package storage).
//
// A state that is kept makes Pebble keep nothing that it would not keep anyway: it is
// the newest one. When Pebble has made new tables of old ones, or of what is in
// memory, the states that are kept are closed, as their iterators hold the old. One that a
// reader uses, perhaps for hours, closes the iterators that are not in use, and keeps none
// from then on.
type state struct {
	of       *states
	snapshot *pebble.Snapshot
	commit   uint64 // it shows no later commit
	exact    bool   // it shows all up to commit
	epoch    uint64 // of states, when it was made

	mu     sync.Mutex
	idle   []*iteratorOfSpace // Guarded by mu.
	listed bool               // in states.holders: it has kept an iterator. Guarded by mu.
	ended  bool               // no iterator is kept any more. Guarded by mu.

	first latest // of the first reader: one allocation for both
}

// iteratorOfSpace is an iterator that was last used in a part of the key space: there its table is open.
type iteratorOfSpace struct {
	*pebble.Iterator
	space byte
}

// maxIdleIterators is how many iterators a state keeps: a query uses one for entries of
// an index and one for documents.
const maxIdleIterators = 4

func spaceOf(lo []byte) byte {
	if len(lo) == 0 {
		return 0
	}
	return lo[0]
}

// iterate is storage.Reader.Iterate.
func (s *state) iterate(lo, hi []byte) (storage.Iterator, error) {
	space := spaceOf(lo)
	if kept := s.takeIterator(space); kept != nil {
		if len(lo) == 0 {
			lo = nil // to Pebble, an empty bound is not the same as none
		}
		kept.SetBounds(lo, hi)
		kept.ResetStats() // of the reader before: see Passed
		return &stateIterator{iterator{kept.Iterator}, kept, s}, nil
	}
	it, err := newIterator(s.snapshot, lo, hi)
	if err != nil {
		return nil, err
	}
	return &stateIterator{iterator{it}, &iteratorOfSpace{it, space}, s}, nil
}

// takeIterator returns an iterator over a part of the key space, or nil.
func (s *state) takeIterator(space byte) *iteratorOfSpace {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, it := range s.idle {
		if it.space == space {
			s.idle = slices.Delete(s.idle, i, i+1)
			return it
		}
	}
	return nil
}

// keep takes an iterator back. It returns the one to be closed instead: the one that was not
// used for longest, if there are many; it itself, if the state keeps none any more; or nil.
func (s *state) keep(it *iteratorOfSpace) (unwanted *iteratorOfSpace) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended || s.epoch != s.of.epoch.Load() {
		return it
	}
	if !s.listed {
		s.listed = true
		s.of.list(s)
		// The epoch may have ended before retireOld could find the state.
		if s.epoch != s.of.epoch.Load() {
			return it
		}
	}
	if len(s.idle) == maxIdleIterators {
		unwanted = s.idle[0]
		s.idle = slices.Delete(s.idle, 0, 1)
	}
	s.idle = append(s.idle, it)
	return unwanted
}

// retire closes the iterators that are not in use, and has no others be kept.
func (s *state) retire() {
	s.mu.Lock()
	idle, listed := s.idle, s.listed
	s.idle, s.listed, s.ended = nil, false, true
	s.mu.Unlock()
	if listed {
		s.of.unlist(s)
	}
	for _, it := range idle {
		_ = it.Close() // what it had to say, it has said to its user
	}
}

// close closes the state. Its iterators that are in use are closed by their users.
func (s *state) close() error {
	s.retire()
	return s.snapshot.Close()
}

// stateIterator is an iterator of a state, for one user.
type stateIterator struct {
	iterator
	kept  *iteratorOfSpace
	state *state
}

// Close implements storage.Iterator.
func (it *stateIterator) Close() error {
	kept, s := it.kept, it.state
	it.Iterator, it.kept, it.state = nil, nil, nil // a second Close must not give it back twice
	if kept.Error() == nil {
		kept = s.keep(kept)
	}
	if kept == nil {
		return nil
	}
	return readError(kept.Close())
}

// states keeps states that no reader uses, for the next ones. It has several slots, so that readers on
// many cores do not meet at one.
type states struct {
	slots [keptStates]struct {
		state atomic.Pointer[state]
		_     [56]byte // slots do not share a cache line
	}
	epoch    atomic.Uint64  // raised when what is kept must go
	applying *atomic.Uint64 // durability.applying

	mu     sync.Mutex // held while kept states, and iterators of old ones, are closed
	closed atomic.Bool

	holders struct {
		mu  sync.Mutex          // the last lock to be taken
		all map[*state]struct{} // states that may have iterators that are not in use. Guarded by mu.
	}
}

const keptStates = 8

// take returns a kept state that shows what a new one would, or nil.
func (k *states) take() *state {
	start := rand.Uint32()
	for i := range uint32(keptStates) {
		slot := &k.slots[(start+i)%keptStates].state
		if slot.Load() == nil {
			continue
		}
		s := slot.Swap(nil)
		if s == nil {
			continue
		}
		if k.current(s) {
			return s
		}
		_ = s.close() // nothing was read from it
	}
	return nil
}

// current reports whether a state shows what a new one would.
func (k *states) current(s *state) bool {
	return s.exact && s.commit == k.applying.Load() && s.epoch == k.epoch.Load() && !k.closed.Load()
}

// put keeps a state for the next reader, or closes it.
func (k *states) put(s *state) error {
	if !k.current(s) {
		return s.close()
	}
	start := rand.Uint32()
	for i := range uint32(keptStates) {
		slot := &k.slots[(start+i)%keptStates].state
		if slot.Load() != nil || !slot.CompareAndSwap(nil, s) {
			continue
		}
		// A commit, or renew, may have come meanwhile, and have swept before the state was there.
		if !k.current(s) && slot.CompareAndSwap(s, nil) {
			return s.close()
		}
		return nil
	}
	return s.close()
}

// isEmpty reports whether no state is kept.
func (k *states) isEmpty() bool {
	for i := range k.slots {
		if k.slots[i].state.Load() != nil {
			return false
		}
	}
	return true
}

// list notes a state that is about to keep an iterator.
func (k *states) list(s *state) {
	k.holders.mu.Lock()
	defer k.holders.mu.Unlock()
	if k.holders.all == nil {
		k.holders.all = make(map[*state]struct{})
	}
	k.holders.all[s] = struct{}{}
}

// unlist notes that a state keeps no iterators any more.
func (k *states) unlist(s *state) {
	k.holders.mu.Lock()
	defer k.holders.mu.Unlock()
	delete(k.holders.all, s)
}

// old returns the states of earlier epochs that may have iterators that are not in use.
func (k *states) old() (old []*state) {
	epoch := k.epoch.Load()
	k.holders.mu.Lock()
	defer k.holders.mu.Unlock()
	for s := range k.holders.all {
		if s.epoch != epoch {
			old = append(old, s)
		}
	}
	return old
}

// retireOld closes the iterators of earlier epochs that are not in use.
func (k *states) retireOld() {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, s := range k.old() {
		s.retire()
	}
}

// sweep closes the kept states that are not current any more.
func (k *states) sweep() {
	if k.isEmpty() {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for i := range k.slots {
		slot := &k.slots[i].state
		if s := slot.Load(); s != nil && !k.current(s) && slot.CompareAndSwap(s, nil) {
			_ = s.close() // nothing was read from it
		}
	}
}

// renew makes all states go, those in use when their readers are done, and their idle
// iterators at once.
func (k *states) renew() {
	k.epoch.Add(1)
	k.sweep()
	k.retireOld()
}

// end is renew for Close: no state is kept any more, and neither a state nor an iterator
// is being closed by a sweep when it returns.
func (k *states) end() {
	k.closed.Store(true)
	k.sweep()
	k.mu.Lock() // a sweep of another goroutine has ended
	defer k.mu.Unlock()
}

// listen has the states go when Pebble has replaced tables, or a memtable: their
// iterators hold those. Pebble calls with its own lock held.
func (k *states) listen(l *pebble.EventListener) {
	later := func() {
		k.epoch.Add(1)
		if len(k.old()) > 0 || !k.isEmpty() {
			go func() {
				k.sweep()
				k.retireOld()
			}()
		}
	}
	flushed, compacted := l.FlushEnd, l.CompactionEnd
	l.FlushEnd = func(info pebble.FlushInfo) { flushed(info); later() }
	l.CompactionEnd = func(info pebble.CompactionInfo) { compacted(info); later() }
}

// newest returns a Snapshot of Pebble's newest state.
func (e *Engine) newest() *latest {
	if s := e.states.take(); s != nil {
		return &latest{s, e}
	}
	epoch, shown := e.states.epoch.Load(), e.visible.Load()
	s := &state{of: &e.states, snapshot: e.db.NewSnapshot(), epoch: epoch}
	s.commit = e.durability.applying.Load() // after: the snapshot shows no later commit
	s.exact = s.commit == shown             // it was there before, and no commit has begun since
	s.first = latest{s, e}
	return &s.first
}

// latest is a Snapshot of Pebble's newest state.
type latest struct {
	state  *state
	engine *Engine
}

// Get implements storage.Reader, and so do those that follow.
func (s *latest) Get(key []byte) ([]byte, io.Closer, error) { return get(s.state.snapshot, key) }

func (s *latest) Iterate(lo, hi []byte) (storage.Iterator, error) { return s.state.iterate(lo, hi) }

// CommitNumber implements storage.Numbered.
func (s *latest) CommitNumber() (uint64, bool) { return s.state.commit, s.state.exact }

// WaitDurable implements storage.Snapshot.
func (s *latest) WaitDurable(ctx context.Context) error {
	return s.engine.syncUpTo(ctx, s.state.commit)
}

// Close implements storage.Snapshot.
func (s *latest) Close() error {
	of := s.state
	s.state = nil // the next reader may have it
	return s.engine.states.put(of)
}
