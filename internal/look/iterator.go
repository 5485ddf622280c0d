package look

import (
	"bytes"
	"slices"
	"sort"

	"github.com/jaydb/jay/storage"
)

// iterator walks over the keys of a snapshot, a page at a time.
type iterator struct {
	of     *snapshot
	lo, hi []byte // hi is nil for no bound
	closed func() error
	err    error

	page  []pair // ascending; no key between two of them is missing
	first bool   // none comes before the page
	last  bool   // none comes after the page
	keys  uint64 // that the next page may have

	place standing
	i     int // of the pair that it stands on. Valid if place is on.
}

// pair is a key with its value.
type pair struct{ key, value []byte }

// standing is where an iterator stands: before the first key, on one, or after the last.
type standing uint8

const (
	before standing = iota
	on
	after
)

// leastKeys is how many keys the first page has: many walks end soon.
const leastKeys = 16

// First implements storage.Iterator.
func (it *iterator) First() bool { return it.SeekGE(it.lo) }

// Last implements storage.Iterator.
func (it *iterator) Last() bool { return it.down(it.hi) }

// SeekGE implements storage.Iterator.
func (it *iterator) SeekGE(key []byte) bool {
	if bytes.Compare(key, it.lo) < 0 {
		key = it.lo
	}
	if n := len(it.page); it.err == nil && n > 0 && bytes.Compare(it.page[0].key, key) <= 0 && bytes.Compare(key, it.page[n-1].key) <= 0 {
		it.place, it.i = on, sort.Search(n, func(i int) bool { return bytes.Compare(it.page[i].key, key) >= 0 })
		return true
	}
	it.keys = leastKeys
	return it.up(key)
}

// SeekLT implements storage.Iterator.
func (it *iterator) SeekLT(key []byte) bool {
	if it.hi != nil && bytes.Compare(key, it.hi) > 0 {
		key = it.hi
	}
	it.keys = leastKeys
	return it.down(append([]byte{}, key...)) // not nil, which is no bound
}

// Next implements storage.Iterator.
func (it *iterator) Next() bool {
	switch {
	case it.err != nil || it.place == after:
		return false
	case it.place == before:
		return it.First()
	case it.i+1 < len(it.page):
		it.i++
		return true
	case it.last:
		it.place = after
		return false
	}
	return it.up(append(bytes.Clone(it.page[it.i].key), 0))
}

// Prev implements storage.Iterator.
func (it *iterator) Prev() bool {
	switch {
	case it.err != nil || it.place == before:
		return false
	case it.place == after:
		return it.Last()
	case it.i > 0:
		it.i--
		return true
	case it.first:
		it.place = before
		return false
	}
	return it.down(it.page[0].key)
}

// up gets the page that begins at or after key, and stands on its first pair.
func (it *iterator) up(key []byte) bool {
	more, found := it.load(key, it.hi, 0)
	it.first, it.last = false, !more
	it.place, it.i = after, 0
	if found {
		it.place = on
	}
	return found
}

// down gets the page that ends before key, or with the last of all for nil, and stands on its last pair.
func (it *iterator) down(key []byte) bool {
	more, found := it.load(it.lo, key, backward)
	slices.Reverse(it.page)
	it.first, it.last = !more, false
	it.place, it.i = before, len(it.page)-1
	if found {
		it.place = on
	}
	return found
}

// load gets a page of the keys in [lo, hi).
func (it *iterator) load(lo, hi []byte, flags byte) (more, found bool) {
	it.page = nil
	if it.err != nil || hi != nil && bytes.Compare(lo, hi) >= 0 {
		return false, false
	}
	if hi == nil {
		flags |= unbounded
	}
	it.keys = min(max(it.keys, leastKeys), pageKeys)
	request := pageRequest{snapshot: it.of.number, flags: flags, keys: it.keys, lo: lo, hi: hi}
	it.keys *= 4
	reply, err := it.of.engine.ask(askPage, request.append(nil))
	if err != nil {
		it.err = err
		return false, false
	}
	c := content{rest: reply}
	more = c.flag() != 0
	for len(c.rest) > 0 && !c.bad {
		it.page = append(it.page, pair{c.text(), c.text()})
	}
	if c.bad {
		it.page, it.err = nil, unanswered(errFrame)
	}
	return more, len(it.page) > 0
}

// Valid implements storage.Iterator.
func (it *iterator) Valid() bool { return it.err == nil && it.place == on }

// Key implements storage.Iterator.
func (it *iterator) Key() []byte { return it.page[it.i].key }

// Value implements storage.Iterator.
func (it *iterator) Value() []byte { return it.page[it.i].value }

// Error implements storage.Iterator.
func (it *iterator) Error() error { return it.err }

// Close implements storage.Iterator.
func (it *iterator) Close() error {
	if it.closed == nil {
		return nil
	}
	closed := it.closed
	it.closed = nil
	return closed()
}

var _ storage.Iterator = (*iterator)(nil)
