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
type watches struct {
	open    atomic.Int32
	seed    maphash.Seed
	written [watchStripes]uint64 // the last commit to a key of the stripe, while a watch was open. Guarded by Pebble.mu.
}

const watchStripes = 1 << 14

func (w *watches) stripe(key []byte) *uint64 {
	return &w.written[maphash.Bytes(w.seed, key)%watchStripes]
}

// note notes the keys of a commit: of the entries from lo up to hi. Pebble.mu is
// held.
func (w *watches) note(s *staging, lo, hi int, commit uint64) {
	if w.open.Load() == 0 {
		return
	}
	for i := lo; i < hi; i++ {
		*w.stripe(s.key(i)) = commit
	}
}

// pebbleWatch is a Watch on Pebble.
type pebbleWatch struct {
	engine *Pebble
	since  uint64 // commits up to this one could be seen when the watch began
}

// Watch implements Engine. It takes no lock: a transaction under way may be
// stuck behind a full disk. A commit is visible before it asks whether there
// are watches, and is pending after it was noted. So one that was not noted is
// seen by every Look of the watch, and so is one up to since.
func (e *Pebble) Watch() storage.Watch {
	e.watches.open.Add(1)
	return &pebbleWatch{engine: e, since: e.pending.Load()}
}

// Close implements Watch.
func (w *pebbleWatch) Close() { w.engine.watches.open.Add(-1) }

// Look implements Watch.
func (w *pebbleWatch) Look() (storage.Look, error) {
	it, err := w.engine.db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	if err != nil {
		return nil, readError(err)
	}
	return &pebbleLook{it}, nil
}

// pebbleLook is a Look on Pebble.
type pebbleLook struct{ it *pebble.Iterator }

// Get implements Look.
func (l *pebbleLook) Get(key []byte) ([]byte, error) {
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

// Close implements Look.
func (l *pebbleLook) Close() error { return readError(l.it.Close()) }
