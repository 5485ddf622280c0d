package lsm

import (
	"bytes"
	"io"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// lookups reads the committed keys for the transactions of one group. What the
// engine's gaps know to be absent costs nothing. Of the rest the first few of a
// transaction are plain Gets. One with more opens an iterator, which keeps
// tables open from one look-up to the next, and reads the bloom filters of the
// last level too (DB.Get does not). Beside a key that is not there it walks over
// the gaps that follow, if that has paid for such keys: inserts of HiLo documents
// are spared nearly all of their look-ups, since nine numbers of ten lie in the
// gap of the one before them, and the next gaps lie in a row. All of it is sound
// because nothing commits while a group runs.
type groupReader struct {
	absent *absentRanges
	gets   int              // plain ones of this transaction so far
	it     *pebble.Iterator // nil until there are enough, or a walk
	// walking says that the iterator stands on the committed key at which a walk
	// ended: the next one goes on from there.
	walking bool
}

const maxGets = 4

// get is Reader.Get.
func (l *groupReader) get(db *pebble.DB, key []byte) ([]byte, io.Closer, error) {
	if l.absent.contains(key) {
		return nil, nil, storage.ErrNotFound
	}
	if l.walking && l.continueWalk(key) {
		return nil, nil, storage.ErrNotFound
	}
	value, closer, err := l.read(db, key)
	if err == storage.ErrNotFound && l.absent.shouldWalk(key) {
		l.findAbsentRange(db, key)
	}
	return value, closer, err
}

// read looks key up.
func (l *groupReader) read(db *pebble.DB, key []byte) ([]byte, io.Closer, error) {
	if l.it == nil {
		if l.gets++; l.gets <= maxGets {
			return get(db, key)
		}
		if err := l.open(db); err != nil {
			return nil, nil, readError(err)
		}
	}
	l.walking = false
	found := l.it.SeekPrefixGE(key) // the prefix is the whole key
	if err := l.it.Error(); err != nil {
		return nil, nil, readError(err)
	}
	if found && bytes.Equal(l.it.Key(), key) {
		value, err := l.it.ValueAndErr()
		if err != nil {
			return nil, nil, readError(err)
		}
		return bytes.Clone(value), noCloser, nil
	}
	return nil, nil, storage.ErrNotFound
}

func (l *groupReader) open(db *pebble.DB) (err error) {
	l.it, err = db.NewIter(&pebble.IterOptions{UseL6Filters: true})
	return err
}

// explore remembers the gap that key is in, which is not there, and those
// behind it. Nobody depends on it: an error costs no more than the gaps.
func (l *groupReader) findAbsentRange(db *pebble.DB, key []byte) {
	if l.it == nil && l.open(db) != nil {
		return
	}
	l.it.ResetStats()
	lo := []byte{key[0]} // the end of what gaps may reach
	if l.it.SeekLTWithLimit(key, lo) == pebble.IterValid && l.it.Key()[0] == key[0] {
		lo = bytes.Clone(l.it.Key())
	}
	if l.it.Error() != nil {
		l.drop()
		return
	}
	l.walk(lo, key, l.it.SeekGEWithLimit(key, above(key)))
	if l.it != nil {
		l.absent.charge(key, l.steps())
	}
}

// advance goes on with the walk before this look-up, from the key at which it
// ended to the one behind. It tells whether key lies between them, and is
// absent.
func (l *groupReader) continueWalk(key []byte) bool {
	lo := l.it.Key()
	if lo[0] != key[0] || bytes.Compare(key, lo) <= 0 {
		return false
	}
	lo = bytes.Clone(lo)
	l.it.ResetStats()
	l.walk(lo, key, l.it.NextWithLimit(above(key)))
	return l.absent.contains(key)
}

// walk remembers the gaps from lo on. The iterator was moved to the first key
// behind lo, with the given outcome; key is where the walk is made for.
func (l *groupReader) walk(lo, key []byte, state pebble.IterValidityState) {
	end := above(key)
	for n := 1; ; n++ {
		if state != pebble.IterValid || l.it.Key()[0] != key[0] {
			if l.it.Error() != nil {
				l.drop()
				return
			}
			l.walking = false
			l.absent.add(lo, end, key)
			return
		}
		isNew := l.absent.add(lo, l.it.Key(), key)
		if !isNew || n == maxWalkRanges || l.steps() > maxWalkSteps {
			l.walking = true
			return
		}
		lo = append(lo[:0], l.it.Key()...)
		state = l.it.NextWithLimit(end)
	}
}

// above returns the upper end of the keys that begin as key does.
func above(key []byte) []byte { return []byte{key[0] + 1} }

// steps returns how many keys the iterator has passed, deleted ones included.
func (l *groupReader) steps() int {
	s := l.it.Stats()
	return s.ForwardStepCount[pebble.InternalIterCall] + s.ReverseStepCount[pebble.InternalIterCall]
}

// drop gives the iterator up.
func (l *groupReader) drop() {
	_ = l.it.Close() // whose look-up met an error was told of it
	l.it, l.walking = nil, false
}

// close ends the look-ups.
func (l *groupReader) close() {
	if l.it != nil {
		l.drop()
	}
}
