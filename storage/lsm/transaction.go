package lsm

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/jaydb/jay/storage"
)

// transaction is a Tx of a group. It sees what it and the transactions before it
// in the group have staged, and below that Pebble's newest state, which does not
// change while it runs.
type transaction struct {
	*staging
	engine   *Engine
	reader   *groupReader
	sequence uint64
	decider  storage.Decider
	sync     bool
	isFirst  bool // no transaction of the group has staged anything before
	rerun    bool // it must run again, as the first of a group
}

// Get implements storage.Tx.
func (t *transaction) Get(key []byte) ([]byte, io.Closer, error) {
	if i := t.find(key); i >= 0 {
		if t.entries[i].added {
			return t.sum(key)
		}
		if t.entries[i].deleted {
			return nil, nil, storage.ErrNotFound
		}
		return t.staging.value(i), noCloser, nil
	}
	return t.reader.get(t.engine.db, key)
}

// sum is Get of numbers that the group has added to.
func (t *transaction) sum(key []byte) ([]byte, io.Closer, error) {
	sum, err := t.engine.numbers.committed(t.engine.db, key)
	if err != nil {
		return nil, nil, err
	}
	for i := range t.entries {
		if !bytes.Equal(t.key(i), key) {
			continue
		}
		if err := t.apply(i, &sum); err != nil {
			return nil, nil, err
		}
	}
	if sum.isZero() {
		return nil, nil, storage.ErrNotFound
	}
	return sum.append(nil), noCloser, nil
}

// Iterate implements storage.Tx. An iterator of Pebble does not see what the
// transactions before this one have staged, so that only the first of a group can
// have one.
func (t *transaction) Iterate(lo, hi []byte) (storage.Iterator, error) {
	if !t.isFirst {
		t.rerun = true
		return nil, errFirst
	}
	return iterate(t.engine.db, lo, hi)
}

// Unchanged implements storage.Tx.
func (t *transaction) Unchanged(w storage.WriteTracker, key []byte) bool {
	return *t.engine.writes.stripe(key) <= w.(*writeTracker).since && t.find(key) < 0
}

// Set implements storage.Tx.
func (t *transaction) Set(key, head, tail []byte) { t.add(key, head, tail, false) }

// Delete implements storage.Tx.
func (t *transaction) Delete(key []byte) { t.add(key, nil, nil, true) }

// Add implements storage.Tx.
func (t *transaction) Add(key []byte, deltas ...int64) {
	if len(deltas) > storage.MaxNumbers {
		panic(fmt.Sprintf("lsm: %d numbers at one key, and %d are the most", len(deltas), storage.MaxNumbers))
	}
	t.engine.numbers.spaces[key[0]] = true
	t.addTo(key, deltas)
}

// Sequence implements storage.Tx.
func (t *transaction) Sequence() (uint64, error) {
	last := max(t.sequence, t.engine.minSequence.Load())
	if last >= math.MaxInt64 {
		return 0, storage.ErrSequenceExhausted
	}
	t.sequence = last + 1
	return t.sequence, nil
}

// RequireSync implements storage.Tx.
func (t *transaction) RequireSync() { t.sync = true }

// OnDecided implements storage.Tx.
func (t *transaction) OnDecided(d storage.Decider) { t.decider = d }
