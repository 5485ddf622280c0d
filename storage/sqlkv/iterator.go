package sqlkv

import (
	"bytes"
	"slices"
	"sort"

	"github.com/jaydb/jay/storage"
)

// pager reads pages, all of one moment.
type pager interface {
	page(p pageOf) (pairs []pair, all bool, err error)
	value(key []byte) ([]byte, error)
}

// The first page after a seek has few rows, as many iterators are asked for one, and each page that
// follows in turn has more.
const (
	firstPageRows = 16
	maxPageRows   = 2048
)

// iterator walks over a range by pages. It knows all keys of one part of the range, and its page holds them.
type iterator struct {
	pager  pager
	lo, hi []byte // its bounds; hi is nil for none

	pairs  []pair // all keys in [from, to), ascending
	from   []byte
	to     []byte // nil: the end of the range
	filled bool   // there is a page
	rows   int    // of the next page

	place place
	i     int // into pairs, if place is on
	err   error
	done  func() error // called by Close; may be nil
}

// place is where an iterator stands: before the first key, on one, or behind the last.
type place uint8

const (
	before place = iota
	on
	behind
)

func newIterator(p pager, lo, hi []byte, done func() error) *iterator {
	return &iterator{pager: p, lo: append([]byte{}, lo...), hi: bytes.Clone(hi), rows: firstPageRows, done: done}
}

// First implements storage.Iterator.
func (it *iterator) First() bool { return it.SeekGE(it.lo) }

// Last implements storage.Iterator.
func (it *iterator) Last() bool { return it.below(it.hi) }

// SeekGE implements storage.Iterator.
func (it *iterator) SeekGE(key []byte) bool {
	if bytes.Compare(key, it.lo) < 0 {
		key = it.lo
	}
	if it.err != nil {
		return it.leave(behind)
	}
	if it.hi != nil && bytes.Compare(key, it.hi) >= 0 {
		return it.leave(behind)
	}
	if it.covers(key) {
		if i := it.find(key); i < len(it.pairs) {
			return it.stand(i)
		}
		if it.to == nil {
			return it.leave(behind)
		}
		key = it.to
	}
	it.rows = firstPageRows
	return it.readUp(key)
}

// SeekLT implements storage.Iterator.
func (it *iterator) SeekLT(key []byte) bool {
	if it.hi != nil && bytes.Compare(key, it.hi) > 0 {
		key = it.hi
	}
	return it.below(key)
}

// below moves to the last key below an end that is not above the bound; nil is the end of all keys.
func (it *iterator) below(end []byte) bool {
	if it.err != nil {
		return it.leave(behind)
	}
	if end != nil && bytes.Compare(end, it.lo) <= 0 {
		return it.leave(before)
	}
	if it.reaches(end) {
		i := len(it.pairs)
		if end != nil {
			i = it.find(end)
		}
		if i > 0 {
			return it.stand(i - 1)
		}
		if bytes.Compare(it.from, it.lo) <= 0 {
			return it.leave(before)
		}
		end = it.from
	}
	it.rows = firstPageRows
	return it.readDown(end)
}

// covers reports whether the page has all keys from key on, up to its end, so that key lies in it.
func (it *iterator) covers(key []byte) bool {
	return it.filled && bytes.Compare(it.from, key) <= 0 && (it.to == nil || bytes.Compare(key, it.to) < 0)
}

// reaches reports whether the page has the keys just below end.
func (it *iterator) reaches(end []byte) bool {
	switch {
	case !it.filled:
		return false
	case it.to == nil:
		return end == nil || bytes.Compare(it.from, end) < 0
	}
	return end != nil && bytes.Compare(it.from, end) < 0 && bytes.Compare(end, it.to) <= 0
}

// find returns the index of the first key of the page that is not below key.
func (it *iterator) find(key []byte) int {
	return sort.Search(len(it.pairs), func(i int) bool { return bytes.Compare(it.pairs[i].key, key) >= 0 })
}

// readUp reads the page that begins at a key, and moves to its first one.
func (it *iterator) readUp(from []byte) bool {
	pairs, all, ok := it.read(pageOf{lo: from, hi: it.hi, rows: it.rows})
	if !ok {
		return false
	}
	it.from, it.to = bytes.Clone(from), nil
	if !all {
		it.to = after(pairs[len(pairs)-1].key)
	}
	if it.pairs = pairs; len(pairs) == 0 {
		return it.leave(behind)
	}
	return it.stand(0)
}

// readDown reads the page that ends below a key, or at the end, and moves to its last one.
func (it *iterator) readDown(end []byte) bool {
	pairs, all, ok := it.read(pageOf{lo: it.lo, hi: end, down: true, rows: it.rows})
	if !ok {
		return false
	}
	slices.Reverse(pairs)
	it.from, it.to = it.lo, bytes.Clone(end)
	if it.hi != nil && bytes.Equal(end, it.hi) {
		it.to = nil
	}
	if !all {
		it.from = pairs[0].key
	}
	if it.pairs = pairs; len(pairs) == 0 {
		return it.leave(before)
	}
	return it.stand(len(pairs) - 1)
}

func (it *iterator) read(p pageOf) (pairs []pair, all, ok bool) {
	if pairs, all, it.err = it.pager.page(p); it.err != nil {
		return nil, false, it.leave(behind)
	}
	it.filled = true
	it.rows = min(4*it.rows, maxPageRows)
	return pairs, all, true
}

// after returns the next key in byte order.
func after(key []byte) []byte { return append(key[:len(key):len(key)], 0) }

func (it *iterator) stand(i int) bool {
	it.place, it.i = on, i
	return true
}

func (it *iterator) leave(p place) bool {
	it.place = p
	return false
}

// Next implements storage.Iterator.
func (it *iterator) Next() bool {
	switch {
	case it.place == before:
		return it.First()
	case it.place == behind:
		return false
	case it.i+1 < len(it.pairs):
		return it.stand(it.i + 1)
	case it.to == nil:
		return it.leave(behind)
	}
	return it.readUp(it.to)
}

// Prev implements storage.Iterator.
func (it *iterator) Prev() bool {
	switch {
	case it.place == behind:
		return it.Last()
	case it.place == before:
		return false
	case it.i > 0:
		return it.stand(it.i - 1)
	case bytes.Compare(it.from, it.lo) <= 0:
		return it.leave(before)
	}
	return it.readDown(it.from)
}

// Skip implements storage.Skipper.
func (it *iterator) Skip(n int) (called int, more bool) {
	for called < n {
		if rest := len(it.pairs) - 1 - it.i; it.place == on && rest > 0 {
			step := min(n-called, rest)
			it.i += step
			called, more = called+step, true
			continue
		}
		called++
		if more = it.Next(); !more {
			break
		}
	}
	return called, more
}

// SeekExact implements storage.Finder: it reads no other key.
func (it *iterator) SeekExact(key []byte) bool {
	if it.err != nil {
		return it.leave(behind)
	}
	if it.covers(key) {
		i := it.find(key)
		if i < len(it.pairs) && bytes.Equal(it.pairs[i].key, key) {
			return it.stand(i)
		}
		return it.leave(behind)
	}
	value, err := it.pager.value(key)
	it.pairs, it.from, it.to, it.filled = nil, bytes.Clone(key), after(key), true
	switch {
	case err == storage.ErrNotFound:
		return it.leave(behind)
	case err != nil:
		it.err = err
		return it.leave(behind)
	}
	it.pairs = []pair{{it.from, value}}
	return it.stand(0)
}

// Valid implements storage.Iterator.
func (it *iterator) Valid() bool { return it.place == on }

// Key implements storage.Iterator.
func (it *iterator) Key() []byte { return it.pairs[it.i].key }

// Value implements storage.Iterator.
func (it *iterator) Value() []byte { return it.pairs[it.i].value }

// Error implements storage.Iterator.
func (it *iterator) Error() error { return it.err }

// Close implements storage.Iterator.
func (it *iterator) Close() error {
	if it.done == nil {
		return nil
	}
	done := it.done
	it.done = nil
	return done()
}
