package lsm

import (
	"bytes"
	"errors"
	"hash/maphash"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// writeStripes remembers which keys were written, so that a transaction can
// validate reads that were made before it. Keys are tracked by stripes of their
// hashes: a key may count as written though another one was, never the other way
// round.
type writeStripes struct {
	active     atomic.Int32 // open trackers; without any, nothing is recorded
	seed       maphash.Seed
	lastWrites [trackerStripes]uint64 // number of the last commit to a key of the stripe. Guarded by Engine.mu.
}

const trackerStripes = 1 << 14

func (w *writeStripes) stripe(key []byte) *uint64 {
	return &w.lastWrites[maphash.Bytes(w.seed, key)%trackerStripes]
}

// record notes the keys of a commit: the entries [lo, hi) of s. Engine.mu is
// held.
func (w *writeStripes) record(s *staging, lo, hi int, commit uint64) {
	if w.active.Load() == 0 {
		return
	}
	for i := lo; i < hi; i++ {
		*w.stripe(s.key(i)) = commit
	}
}

// recordAll notes that any key may have been written by a commit. Engine.mu is held.
func (w *writeStripes) recordAll(commit uint64) {
	if w.active.Load() == 0 {
		return
	}
	for i := range w.lastWrites {
		w.lastWrites[i] = commit
	}
}

// writeTracker is a storage.WriteTracker.
type writeTracker struct {
	engine *Engine
	since  uint64 // commits up to this one were visible when the tracker began
}

// TrackWrites implements storage.Engine. It takes no lock, as a transaction that
// holds Engine.mu may be blocked by a full disk. The leader does things in this
// order: the commit becomes visible, record asks whether a tracker is active,
// e.visible is set. So every reader of the tracker sees a commit that was not
// recorded for it, and one up to since.
func (e *Engine) TrackWrites() storage.WriteTracker {
	e.writes.active.Add(1)
	return &writeTracker{engine: e, since: e.visible.Load()}
}

// Close implements storage.WriteTracker.
func (w *writeTracker) Close() { w.engine.writes.active.Add(-1) }

// NewReader implements storage.WriteTracker.
func (w *writeTracker) NewReader() (storage.BatchReader, error) {
	it, err := w.engine.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return nil, readError(err)
	}
	return &batchReader{w.engine.db, it}, nil
}

// batchReader is a storage.BatchReader.
type batchReader struct {
	db *pebble.DB
	it *pebble.Iterator
}

// Get implements storage.BatchReader.
func (r *batchReader) Get(key []byte) ([]byte, error) {
	found := r.it.SeekPrefixGE(key) // the prefix is the whole key
	if err := r.it.Error(); err != nil {
		return nil, readError(err)
	}
	if !found || !bytes.Equal(r.it.Key(), key) {
		return nil, storage.ErrNotFound
	}
	value, err := r.it.ValueAndErr()
	return value, readError(err)
}

// Missing implements storage.BatchReader. It walks over what lies between the first and
// the last of keys, which takes a fraction of one seek for each if that is little. The
// bounds spare it what lies beyond, such as large documents and the traces of deleted
// ones.
func (r *batchReader) Missing(keys [][]byte) (missing bool, err error) {
	if len(keys) == 0 {
		return true, nil
	}
	it, err := r.db.NewIter(&pebble.IterOptions{LowerBound: keys[0], UpperBound: append(bytes.Clone(keys[len(keys)-1]), 0)})
	if err != nil {
		return false, readError(err)
	}
	defer func() { err = errors.Join(err, readError(it.Close())) }()
	steps, i := 0, 0
	for ok := it.First(); ok; ok = it.Next() {
		if steps++; steps > len(keys) {
			return false, nil
		}
		for ; i < len(keys); i++ {
			order := bytes.Compare(keys[i], it.Key())
			if order == 0 {
				return false, nil
			}
			if order > 0 {
				break
			}
		}
	}
	return it.Error() == nil, nil // Close returns it
}

// Close implements storage.BatchReader.
func (r *batchReader) Close() error { return readError(r.it.Close()) }
