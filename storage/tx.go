package storage

import (
	"bytes"
	"hash/maphash"
	"io"
)

// staging holds what a transaction has staged: every key and value in one
// arena, and the newest entry of each key by hash. It knows no engine, so
// that each engine can replay it into its own kind of batch.
type staging struct {
	arena   []byte
	entries []entry
	newest  map[uint64]int32 // hash of key → index in entries; in use if indexed
	indexed bool
	asked   [256]bool // first bytes of keys that were looked for; the others need no index
	seed    maphash.Seed
	size    int
}

// entry is one staged write. Offsets are into the arena.
type entry struct {
	key, keyEnd     int
	value, valueEnd int
	older           int32 // entry with the same hash, or -1
	deleted         bool
}

// smallTx is the number of entries up to which a backward search beats a map.
const smallTx = 8

func newStaging() *staging { return &staging{seed: maphash.MakeSeed()} }

func (s *staging) reset() {
	s.arena = s.arena[:0]
	s.entries = s.entries[:0]
	if s.indexed {
		clear(s.newest) // its room is kept for the next transaction
		s.indexed = false
	}
	s.asked = [256]bool{}
	s.size = 0
}

func (s *staging) key(i int) []byte   { e := &s.entries[i]; return s.arena[e.key:e.keyEnd] }
func (s *staging) value(i int) []byte { e := &s.entries[i]; return s.arena[e.value:e.valueEnd] }

func (s *staging) add(key, head, tail []byte, deleted bool) {
	e := entry{key: len(s.arena), older: -1, deleted: deleted}
	s.arena = append(s.arena, key...)
	e.keyEnd = len(s.arena)
	e.value = e.keyEnd
	s.arena = append(s.arena, head...)
	s.arena = append(s.arena, tail...)
	e.valueEnd = len(s.arena)
	s.entries = append(s.entries, e)
	s.size = len(s.arena)
	s.index(len(s.entries) - 1)
}

// index enters entry i into the map, building the map when the transaction
// outgrows the linear search.
func (s *staging) index(i int) {
	if len(s.entries) <= smallTx {
		return
	}
	if !s.indexed {
		s.indexed = true
		if s.newest == nil {
			s.newest = make(map[uint64]int32, 4*smallTx)
		}
		for j := range s.entries {
			s.link(j)
		}
		return
	}
	s.link(i)
}

func (s *staging) link(i int) {
	if !s.asked[s.arena[s.entries[i].key]] {
		return
	}
	h := maphash.Bytes(s.seed, s.key(i))
	if older, found := s.newest[h]; found {
		s.entries[i].older = older
	}
	s.newest[h] = int32(i)
}

// ask makes sure that keys with this first byte are in the map from now on.
func (s *staging) ask(space byte) {
	if s.asked[space] {
		return
	}
	s.asked[space] = true
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
	s.ask(key[0])
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

// nopCloser is the closer of values that nobody needs to give back.
type nopCloser struct{}

func (nopCloser) Close() error { return nil }

var noCloser io.Closer = nopCloser{}
