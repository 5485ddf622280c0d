package lsm

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// writeTracker remembers which keys were written, so that a transaction can
// validate reads that were made before it. Keys are tracked by stripes of their
// hashes: a key may count as written though another one was, never the other way
// round.
type writeTracker struct {
	active     atomic.Int32 // open watches; without any, nothing is recorded
	seed       maphash.Seed
	lastWrites [trackerStripes]uint64 // number of the last commit to a key of the stripe. Guarded by Engine.mu.
}

const trackerStripes = 1 << 14

func (w *writeTracker) stripe(key []byte) *uint64 {
	return &w.lastWrites[maphash.Bytes(w.seed, key)%trackerStripes]
}

// record notes the keys of a commit: the entries [lo, hi) of s. Engine.mu is
// held.
func (w *writeTracker) record(s *staging, lo, hi int, commit uint64) {
	if w.active.Load() == 0 {
		return
	}
	for i := lo; i < hi; i++ {
		*w.stripe(s.key(i)) = commit
	}
}

// watch is a storage.Watch.
type watch struct {
	engine *Engine
	since  uint64 // commits up to this one were visible when the watch began
}

// Watch implements storage.Engine. It takes no lock, as a transaction that holds
// Engine.mu may be blocked by a full disk. The leader does things in this order:
// the commit becomes visible, record asks whether a watch is open, e.visible is
// set. So every Look of the watch sees a commit that was not recorded for it, and
// one up to since.
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

// look is a storage.Look.
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
