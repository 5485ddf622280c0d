package lsm

import (
	"bytes"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// groupReader reads committed keys for the transactions of one group.
//
// A key in an absent range costs nothing. The first look-ups of a transaction are
// plain Gets. After those the group has an iterator, which keeps tables open from
// one look-up to the next and uses the bloom filters of the last level too, as
// DB.Get does not.
//
// When a key is absent, the iterator walks over the absent ranges that begin
// beside it, if that has paid for keys of its class. That spares inserts of HiLo
// documents nearly all look-ups: nine of ten numbers lie in the absent range of
// the number before, and the next ranges follow in order. All of it is correct
// only because nothing commits while a group runs.
type groupReader struct {
	absent *absentRanges
	gets   int              // plain Gets of this transaction so far
	it     *pebble.Iterator // nil until it is worth its cost
	// walking is set while the iterator stands on the committed key at which the
	// last walk ended, so that the walk can go on from there.
	walking bool
}

// maxGets is how many look-ups of a transaction are plain Gets: an iterator costs
// about as much as some of them.
const maxGets = 4

// get is Reader.Get.
func (r *groupReader) get(db *pebble.DB, key []byte) ([]byte, io.Closer, error) {
	if r.absent.contains(key) {
		return nil, nil, storage.ErrNotFound
	}
	if r.walking && r.continueWalk(key) {
		return nil, nil, storage.ErrNotFound
	}
	value, closer, err := r.read(db, key)
	if err == storage.ErrNotFound && r.absent.shouldWalk(key) {
		r.findAbsentRange(db, key)
	}
	return value, closer, err
}

// read looks key up in Pebble.
func (r *groupReader) read(db *pebble.DB, key []byte) ([]byte, io.Closer, error) {
	if r.it == nil {
		if r.gets++; r.gets <= maxGets {
			return get(db, key)
		}
		if err := r.open(db); err != nil {
			return nil, nil, readError(err)
		}
	}
	r.walking = false
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

// open makes the iterator.
func (r *groupReader) open(db *pebble.DB) (err error) {
	r.it, err = db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	return err
}

// findAbsentRange remembers the absent range that contains key, which is absent,
// and those behind it. It is an optimisation: after an error it just ends.
func (r *groupReader) findAbsentRange(db *pebble.DB, key []byte) {
	if r.it == nil && r.open(db) != nil {
		return
	}
	r.it.ResetStats()    // the cost of this walk
	lo := []byte{key[0]} // no range begins below
	if r.it.SeekLTWithLimit(key, lo) == pebble.IterValid && r.it.Key()[0] == key[0] {
		lo = bytes.Clone(r.it.Key())
	}
	if r.it.Error() != nil {
		r.drop()
		return
	}
	r.walk(lo, key, r.it.SeekGEWithLimit(key, above(key)))
	if r.it != nil {
		r.absent.charge(key, r.steps())
		r.absent.chargeBytes(key, r.blockBytes())
	}
}

// continueWalk resumes the last walk from the key at which it ended. It reports
// whether key lies in a range that the walk has found.
func (r *groupReader) continueWalk(key []byte) bool {
	lo := r.it.Key()
	if lo[0] != key[0] || bytes.Compare(key, lo) <= 0 {
		return false
	}
	lo = bytes.Clone(lo)
	r.it.ResetStats()
	r.walk(lo, key, r.it.NextWithLimit(above(key)))
	if r.it != nil {
		r.absent.chargeBytes(key, r.blockBytes())
	}
	return r.absent.contains(key)
}

// walk remembers the absent ranges from lo on. The iterator has been moved to the
// first key above lo, with this outcome; key is the one whose look-up walks.
func (r *groupReader) walk(lo, key []byte, state pebble.IterValidityState) {
	end := above(key)
	for n := 1; ; n++ {
		if state != pebble.IterValid || r.it.Key()[0] != key[0] {
			if r.it.Error() != nil { // an unreadable table is not the end of the keys
				r.drop()
				return
			}
			r.walking = false
			r.absent.add(lo, end, key)
			return
		}
		// A range that was known has its successors in the cache too, mostly.
		isNew := r.absent.add(lo, r.it.Key(), key)
		if !isNew || n == maxWalkRanges || r.steps() > maxWalkSteps || r.blockBytes() > freeWalkBytes {
			r.walking = true
			return
		}
		lo = append(lo[:0], r.it.Key()...)
		state = r.it.NextWithLimit(end)
	}
}

// above returns the upper limit of the keys that begin as key does.
func above(key []byte) []byte { return []byte{key[0] + 1} }

// steps returns how many keys the iterator has stepped over, deleted ones
// included.
func (r *groupReader) steps() int {
	s := r.it.Stats()
	return s.ForwardStepCount[pebble.InternalIterCall] + s.ReverseStepCount[pebble.InternalIterCall]
}

// blockBytes returns how many bytes of blocks the iterator has read that were not
// in the cache.
func (r *groupReader) blockBytes() int {
	s := r.it.Stats().InternalStats
	return int(s.BlockBytes - s.BlockBytesInCache)
}

// drop closes the iterator.
func (r *groupReader) drop() {
	_ = r.it.Close() // a look-up that met an error has returned it
	r.it, r.walking = nil, false
}

// close ends the reading for the group.
func (r *groupReader) close() {
	if r.it != nil {
		r.drop()
	}
}
