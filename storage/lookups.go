package storage

import (
	"bytes"
	"io"

	"github.com/cockroachdb/pebble/v2"
)

// lookups reads the committed keys for one transaction. The first few are
// plain Gets. A transaction with more opens an iterator, which keeps tables
// open from one look-up to the next, reads the bloom filters of the last level
// too (DB.Get does not), and tells where the next key is: a transaction that
// asks in rising order for keys that are not there, as an insert of HiLo
// documents does, is spared most of its look-ups, since nine numbers of ten
// lie in the gap that the one before them found. Both are sound because
// nothing commits while a transaction runs.
type lookups struct {
	gets int              // plain ones so far
	it   *pebble.Iterator // nil until there are enough

	last  []byte // the last key that was not there; empty before the first
	next  []byte // the first committed key behind last; nil for none
	known bool   // next was looked for
	// walking says that the iterator stands on a key that it was moved to by
	// advance: it can go on to the next.
	walking bool
	// wasted counts the gaps in a row that were of no use. At maxWasted the
	// transaction's keys are random, and it stops to look for gaps.
	wasted int
}

const (
	maxGets   = 4
	maxWasted = 3
)

// get is Reader.Get.
func (l *lookups) get(db *pebble.DB, key []byte) ([]byte, io.Closer, error) {
	rising := len(l.last) > 0 && bytes.Compare(key, l.last) > 0
	if rising && l.known && (l.next == nil || bytes.Compare(key, l.next) < 0) {
		l.wasted = 0
		return nil, nil, ErrNotFound
	}
	if l.it == nil {
		if l.gets++; l.gets <= maxGets {
			value, closer, err := get(db, key)
			if err == ErrNotFound {
				l.last = append(l.last[:0], key...)
			}
			return value, closer, err
		}
		var err error
		if l.it, err = db.NewIter(&pebble.IterOptions{UseL6Filters: true}); err != nil {
			return nil, nil, err
		}
	}
	return l.seek(key, rising && l.wasted < maxWasted)
}

// seek looks key up by way of the iterator and, with gap set, notes where the
// next key is.
func (l *lookups) seek(key []byte, gap bool) ([]byte, io.Closer, error) {
	found := false
	if gap {
		found = l.advance(key)
	} else {
		found = l.it.SeekPrefixGE(key) // the prefix is the whole key
	}
	l.walking = gap && found
	if err := l.it.Error(); err != nil {
		return nil, nil, readError(err)
	}
	if found && bytes.Equal(l.it.Key(), key) {
		return bytes.Clone(l.it.Value()), noCloser, nil
	}

	l.last = append(l.last[:0], key...)
	l.next, l.known = l.next[:0], gap
	if gap {
		l.wasted++
		if found {
			l.next = append(l.next, l.it.Key()...)
		} else {
			l.next = nil
		}
	}
	return nil, nil, ErrNotFound
}

// advance moves the iterator to the first key from key on. HiLo IDs of one
// batch that lie in a row have the ID with a digit less behind each tenth of
// them: one step is all it takes from gap to gap, and costs a tenth of a seek.
func (l *lookups) advance(key []byte) bool {
	if !l.walking || bytes.Compare(l.it.Key(), key) > 0 {
		return l.it.SeekGE(key)
	}
	if bytes.Equal(l.it.Key(), key) {
		return true
	}
	if !l.it.Next() {
		return false
	}
	return bytes.Compare(l.it.Key(), key) >= 0 || l.it.SeekGE(key)
}

// close ends the look-ups of the transaction.
func (l *lookups) close() error {
	if l.it == nil {
		return nil
	}
	return readError(l.it.Close())
}
