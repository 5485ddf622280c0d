package lsm

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// watches remember which keys were written, for those who read keys before
// their transaction and ask in it whether they may rely on what they saw. Keys
// that share some bits of their hash are one: a watch may say that a key was
// written that was not, never the other way round.
type writeTracker struct {
	active     atomic.Int32
	seed       maphash.Seed
	lastWrites [trackerStripes]uint64 // the last commit to a key of the stripe, while a watch was open. Guarded by Engine.mu.
}

const trackerStripes = 1 << 14

func (w *writeTracker) stripe(key []byte) *uint64 {
	return &w.lastWrites[maphash.Bytes(w.seed, key)%trackerStripes]
}

// note notes the keys of a commit: of the entries from lo up to hi. Engine.mu is
// held.
func (w *writeTracker) record(s *staging, lo, hi int, commit uint64) {
	if w.active.Load() == 0 {
		return
	}
	for i := lo; i < hi; i++ {
		*w.stripe(s.key(i)) = commit
	}
}

// pebbleWatch is a Watch on Pebble.
type watch struct {
	engine *Engine
	since  uint64 // commits up to this one could be seen when the watch began
}

// Watch implements storage.Engine. It takes no lock: a transaction under way may be
// stuck behind a full disk. A commit is visible before it asks whether there
// are watches, and is pending after it was noted. So one that was not noted is
// seen by every Look of the watch, and so is one up to since.
func (e *Engine) Watch() storage.Watch {
	e.writes.active.Add(1)
	return &watch{engine: e, since: e.visible.Load()}
}

// Close implements storage.Watch.
func (w *watch) Close() { w.engine.writes.active.Add(-1) }

// Look implements storage.Watch.
func (w *watch) Look() (storage.Look, error) {
	it, err := w.engine.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return nil, readError(err)
	}
	return &look{it}, nil
}

// pebbleLook is a Look on Pebble.
type look struct{ it *pebble.Iterator }

// Get implements storage.Look.
func (l *look) Get(key []byte) ([]byte, error) {
	found := l.it.SeekPrefixGE(key) // the prefix is the whole key
	if err := l.it.Error(); err != nil {
		return nil, readError(err)
	}
	if !found || !bytes.Equal(l.it.Key(), key) {
		return nil, storage.ErrNotFound
	}
	value, err := l.it.ValueAndErr()
	return value, readError(err)
}

// Close implements storage.Look.
func (l *look) Close() error { return readError(l.it.Close()) }
