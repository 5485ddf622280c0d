package lsm

import (
	"bytes"
	"encoding/binary"
	"hash/maphash"
	"io"
	"slices"

	"github.com/jaydb/jay/internal/keybytes"
	"github.com/jaydb/jay/storage"
)

// staging is the memory of the transactions of a group: their writes, in order.
// Every key and the head of every value lie in one arena, the tails where the
// caller has them. The newest entry of a key is found by a backward search while
// there are few entries, then by a map from hashes. Most keys lie above all that were
// staged before, and need no search: see highest.
type staging struct {
	arena        []byte
	entries      []entry
	newest       map[uint64]int32 // hash of key → index in entries; in use if indexed
	indexed      bool
	mostKeys     int       // most keys that newest held since it was made
	indexedBytes [256]bool // first bytes of keys that were looked up; keys of others are not in newest
	seed         maphash.Seed
	size         int       // bytes of all keys and values
	order        []int32   // result of sorted
	words        []keyWord // scratch of sort

	// For each first byte of keys 1 + the entry with the highest key, 0 for none, and
	// whether an entry was staged behind one with a higher key of the same first byte.
	// After a rollback, unknown is true, and they mean nothing.
	highest [256]int32
	mixed   bool
	unknown bool
}

// entry is one staged write. Its key and the head of its value are
// arena[key:keyEnd] and arena[keyEnd:headEnd]; the tail is the caller's.
type entry struct {
	key, keyEnd, headEnd int
	tail                 []byte
	older                int32 // entry with the same hash, or -1
	deleted              bool
	added                bool // the head is numbers to be added to those at the key
}

// size returns the bytes of the key and the value.
func (e *entry) size() int { return e.headEnd - e.key + len(e.tail) }

// smallTx is the number of entries up to which a backward search is faster than
// a map.
const smallTx = 8

// largeTx is the number of keys up to which a map is always reused.
const largeTx = 1024

func newStaging() *staging { return &staging{seed: maphash.MakeSeed()} }

// reset empties s and drops all references to the callers' memory.
func (s *staging) reset() {
	s.arena = s.arena[:0]
	clear(s.entries)
	s.entries = s.entries[:0]
	if s.indexed {
		s.mostKeys = max(s.mostKeys, len(s.newest))
		if s.mostKeys > largeTx && s.mostKeys > 16*len(s.newest) {
			s.newest, s.mostKeys = nil, 0 // clearing it would take longer than filling a new one
		}
		clear(s.newest) // keep its memory for the next group
		s.indexed = false
	}
	s.indexedBytes = [256]bool{}
	s.size = 0
	s.highest, s.mixed, s.unknown = [256]int32{}, false, false
}

func (s *staging) key(i int) []byte  { e := &s.entries[i]; return s.arena[e.key:e.keyEnd] }
func (s *staging) head(i int) []byte { e := &s.entries[i]; return s.arena[e.keyEnd:e.headEnd] }

// value returns a copy of the value of entry i.
func (s *staging) value(i int) []byte {
	head, tail := s.head(i), s.entries[i].tail
	return append(append(make([]byte, 0, len(head)+len(tail)), head...), tail...)
}

func (s *staging) add(key, head, tail []byte, deleted bool) {
	e := entry{key: len(s.arena), older: -1, tail: tail, deleted: deleted}
	s.arena = append(s.arena, key...)
	e.keyEnd = len(s.arena)
	s.arena = append(s.arena, head...)
	e.headEnd = len(s.arena)
	s.entries = append(s.entries, e)
	s.size += e.size()
	if high := &s.highest[key[0]]; *high == 0 || bytes.Compare(s.key(int(*high-1)), key) <= 0 {
		*high = int32(len(s.entries))
	} else {
		s.mixed = true
	}
	s.index(len(s.entries) - 1)
}

// addTo adds an entry that adds deltas to the numbers at key.
func (s *staging) addTo(key []byte, deltas []int64) {
	var scratch [8 * storage.MaxNumbers]byte
	head := scratch[:0]
	for _, delta := range deltas {
		head = binary.BigEndian.AppendUint64(head, uint64(delta))
	}
	s.add(key, head, nil, false)
	s.entries[len(s.entries)-1].added = true
}

// stagedWithin reports whether one of the first n entries has a key in [lo, hi). An empty hi is no bound.
func (s *staging) stagedWithin(n int, lo, hi []byte) bool {
	for i := range n {
		if key := s.key(i); bytes.Compare(key, lo) >= 0 && (len(hi) == 0 || bytes.Compare(key, hi) < 0) {
			return true
		}
	}
	return false
}

// apply makes t the numbers at the key of entry i after the entry, if they were t before.
func (s *staging) apply(i int, t *tuple) (err error) {
	e := &s.entries[i]
	switch {
	case e.added:
		t.add(s.head(i))
	case e.deleted:
		*t = tuple{}
	default:
		*t, err = decodeTuple(s.key(i), s.value(i))
	}
	if err == nil && t.isZero() {
		*t = tuple{} // the key is gone
	}
	return err
}

// mark is a state of the staging that rollback can return to.
type mark struct{ entries, arena, size int }

func (s *staging) mark() mark { return mark{len(s.entries), len(s.arena), s.size} }

// rollback removes what was staged since m.
func (s *staging) rollback(m mark) {
	s.mostKeys = max(s.mostKeys, len(s.newest))
	if m.entries < len(s.entries) {
		s.highest, s.unknown = [256]int32{}, true
	}

	// From the newest on: each hash gets back the entry that it had at m.
	for i := len(s.entries) - 1; i >= m.entries && s.indexed; i-- {
		if !s.indexedBytes[s.arena[s.entries[i].key]] {
			continue
		}
		h := maphash.Bytes(s.seed, s.key(i))
		if older := s.entries[i].older; older >= 0 {
			s.newest[h] = older
		} else {
			delete(s.newest, h)
		}
	}
	clear(s.entries[m.entries:])
	s.entries, s.arena, s.size = s.entries[:m.entries], s.arena[:m.arena], m.size
}

// sorted returns the entries [lo, hi) in the order of their keys, those of one key
// in the order in which they were staged. Keys with the same first byte are mostly
// staged in order: a counting sort brings them together, and they are compared
// only if one was not in order.
func (s *staging) sorted(lo, hi int) []int32 {
	n := hi - lo
	s.order = slices.Grow(s.order[:0], n)[:n]
	if n <= smallTx {
		for i := range s.order {
			s.order[i] = int32(lo + i)
		}
		s.sort(s.order)
		return s.order
	}

	// A counting sort by the first byte, which notes whether a key is out of order.
	var starts [257]int32
	for i := lo; i < hi; i++ {
		starts[int(s.arena[s.entries[i].key])+1]++
	}
	for space := range 256 {
		starts[space+1] += starts[space]
	}
	ends := starts
	known := !s.unknown && !s.mixed
	rising := true
	for i := lo; i < hi; i++ {
		space := s.arena[s.entries[i].key]
		at := ends[space]
		s.order[at] = int32(i)
		ends[space]++
		if !known && rising && at > starts[space] {
			rising = bytes.Compare(s.key(int(s.order[at-1])), s.key(i)) <= 0
		}
	}
	if rising {
		return s.order
	}
	for space := range 256 {
		s.sort(s.order[starts[space]:ends[space]])
	}
	return s.order
}

// keyWord is an entry with eight bytes of its key, those in which the keys of a sort begin
// to differ.
type keyWord struct {
	word  uint64
	entry int32
}

// fewKeys is the number of keys up to which they are compared whole.
const fewKeys = 12

// sort sorts entries by key, and those of one key by age. Most keys are compared by one
// word. Those with the same word are mostly in order, as the entries of one value in an
// index whose IDs rise; the others are sorted by the words that follow.
func (s *staging) sort(order []int32) {
	if len(order) <= fewKeys {
		s.sortWhole(order)
		return
	}
	start, common := len(s.words), s.commonBytes(order)
	for _, i := range order {
		s.words = append(s.words, keyWord{keybytes.NumberAt(s.key(int(i)), common), i})
	}
	words := s.words[start:]
	slices.SortFunc(words, func(a, b keyWord) int {
		switch {
		case a.word < b.word:
			return -1
		case a.word > b.word:
			return 1
		}
		return int(a.entry - b.entry)
	})
	for i := range words {
		order[i] = words[i].entry
	}
	for lo, hi := 0, 0; lo < len(words); lo = hi {
		for hi = lo + 1; hi < len(words) && words[hi].word == words[lo].word; {
			hi++
		}
		switch same := order[lo:hi]; {
		case s.rising(same):
		case len(same) == len(order): // some keys end in the word
			s.sortWhole(same)
		default:
			s.sort(same)
		}
	}
	s.words = s.words[:start]
}

// sortWhole is sort by whole keys.
func (s *staging) sortWhole(order []int32) {
	slices.SortFunc(order, func(a, b int32) int {
		if c := bytes.Compare(s.key(int(a)), s.key(int(b))); c != 0 {
			return c
		}
		return int(a - b)
	})
}

// rising reports whether the keys of entries are in order.
func (s *staging) rising(order []int32) bool {
	for i := 1; i < len(order); i++ {
		if bytes.Compare(s.key(int(order[i-1])), s.key(int(order[i]))) > 0 {
			return false
		}
	}
	return true
}

// commonBytes returns how many bytes the keys of entries have in common at their start.
func (s *staging) commonBytes(order []int32) int {
	first := s.key(int(order[0]))
	common := len(first)
	for _, i := range order[1:] {
		common = keybytes.Common(first[:common], s.key(int(i)))
	}
	return common
}

// index enters entry i into the map. It makes the map when the entries outgrow the
// backward search.
func (s *staging) index(i int) {
	if s.indexed {
		s.link(i)
		return
	}
	if len(s.entries) <= smallTx {
		return
	}
	s.indexed = true
	if s.newest == nil {
		s.newest = make(map[uint64]int32, 4*smallTx)
	}
	for j := range s.entries {
		s.link(j)
	}
}

func (s *staging) link(i int) {
	if !s.indexedBytes[s.arena[s.entries[i].key]] {
		return
	}
	h := maphash.Bytes(s.seed, s.key(i))
	if older, found := s.newest[h]; found {
		s.entries[i].older = older
	}
	s.newest[h] = int32(i)
}

// indexByte makes sure that keys with this first byte are in the map from now on.
// Many are never looked up, such as those of index entries.
func (s *staging) indexByte(space byte) {
	if s.indexedBytes[space] {
		return
	}
	s.indexedBytes[space] = true
	if !s.indexed {
		return
	}
	for i := range s.entries {
		if s.arena[s.entries[i].key] == space {
			s.link(i)
		}
	}
}

// find returns the newest entry of key, or -1. Keys are not empty.
func (s *staging) find(key []byte) int {
	if !s.unknown {
		high := int(s.highest[key[0]]) - 1
		if high < 0 || bytes.Compare(s.key(high), key) < 0 {
			return -1
		}
	}
	s.indexByte(key[0])
	if !s.indexed {
		for i := len(s.entries) - 1; i >= 0; i-- {
			if bytes.Equal(s.key(i), key) {
				return i
			}
		}
		return -1
	}

	i, found := s.newest[maphash.Bytes(s.seed, key)]
	for found && i >= 0 {
		if bytes.Equal(s.key(int(i)), key) {
			return int(i)
		}
		i = s.entries[i].older
	}
	return -1
}

// nopCloser is the closer of values that hold nothing.
type nopCloser struct{}

func (nopCloser) Close() error { return nil }

var noCloser io.Closer = nopCloser{}
