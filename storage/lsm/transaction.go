package lsm

import (
	"bytes"
	"fmt"
	"io"
	"math"

	"github.com/cockroachdb/pebble/v2"

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
	needs    storage.Needs
	sync     bool
	before   int  // how many entries those before it in the group have staged
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

// maxPassed is how many entries, staged before a transaction of its group, are compared with the range of an iterator.
const maxPassed = 4096

// Iterate implements storage.Tx. An iterator of Pebble does not see what the
// transactions before this one have staged, so that only the first of a group can
// have one over a range in which they have staged something.
func (t *transaction) Iterate(lo, hi []byte) (storage.Iterator, error) {
	if t.before > maxPassed || t.stagedWithin(t.before, lo, hi) {
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

// RequireFeature implements storage.Tx.
func (t *transaction) RequireFeature(f storage.Feature) { t.needs.Add(t.engine.uses.known, f) }

// RequireSync implements storage.Tx.
func (t *transaction) RequireSync() { t.sync = true }

// OnDecided implements storage.Tx.
func (t *transaction) OnDecided(d storage.Decider) { t.decider = d }

// groupReader reads committed keys for the transactions of one group. The first
// look-ups of a transaction are plain Gets. After those the group has an iterator,
// which keeps tables open from one look-up to the next and uses the bloom filters of
// the last level too, as DB.Get does not. That is correct only because nothing
// commits while a group runs.
type groupReader struct {
	gets int              // plain Gets of this transaction so far
	it   *pebble.Iterator // nil until it is worth its cost
}

// maxGets is how many look-ups of a transaction are plain Gets: an iterator costs
// about as much as some of them.
const maxGets = 4

// get is Reader.Get.
func (r *groupReader) get(db *pebble.DB, key []byte) ([]byte, io.Closer, error) {
	if r.it == nil {
		if r.gets++; r.gets <= maxGets {
			return get(db, key)
		}
		var err error
		if r.it, err = db.NewIter(&pebble.IterOptions{UseL6Filters: true}); err != nil {
			return nil, nil, readError(err)
		}
	}
	found := r.it.SeekPrefixGE(key) // the prefix is the whole key
	if err := r.it.Error(); err != nil {
		return nil, nil, readError(err)
	}
	if found && bytes.Equal(r.it.Key(), key) {
		value, err := r.it.ValueAndErr()
		if err != nil {
			return nil, nil, readError(err)
		}
		return bytes.Clone(value), noCloser, nil // the next look-up moves the iterator
	}
	return nil, nil, storage.ErrNotFound
}

// close ends the reading for the group.
func (r *groupReader) close() {
	if r.it != nil {
		_ = r.it.Close() // a look-up that met an error has returned it
		r.it = nil
	}
}
