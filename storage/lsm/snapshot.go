package lsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
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
