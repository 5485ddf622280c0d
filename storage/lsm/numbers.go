package lsm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// maxNumbers is how many numbers an engine remembers.
const maxNumbers = 4096

// numbers are the numbers that transactions add to (storage.Tx.Add), as the batches
// made so far leave them. As one process writes, a group can replace the additions to
// a number by one Set of the sum, and reads the number from Pebble once. Guarded by
// Engine.mu.
type numbers struct {
	known  map[string]*int64 // pointers: an assignment would allocate its key
	spaces [256]bool         // first bytes of keys that were added to
}

// number decodes the number at key.
func number(key, value []byte) (int64, error) {
	if len(value) != 8 {
		return 0, fmt.Errorf("the number at key %q has %d bytes, not 8: %w", key, len(value), storage.ErrCorrupt)
	}
	return int64(binary.BigEndian.Uint64(value)), nil
}

// committed returns the number at key, before the group that is being made.
func (n *numbers) committed(db *pebble.DB, key []byte) (int64, error) {
	if known, found := n.known[string(key)]; found {
		return *known, nil
	}
	value, closer, err := get(db, key)
	if err == storage.ErrNotFound {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	sum, err := number(key, value)
	return sum, errors.Join(err, closer.Close())
}

// keep remembers the number at key.
func (n *numbers) keep(key []byte, sum int64) {
	if known, found := n.known[string(key)]; found {
		*known = sum
		return
	}
	if n.known == nil {
		n.known = make(map[string]*int64)
	}
	first := sum // escapes, unlike sum
	n.known[string(key)] = &first
}

// trim bounds the memory, between groups.
func (n *numbers) trim() {
	if len(n.known) > maxNumbers {
		n.forget()
	}
}

// forget drops all numbers: batches that were made are not committed.
func (n *numbers) forget() { n.known = nil }

// put adds the entries order[at:] of one key to batch, those of s that were staged
// for it, if one of them adds to a number. It returns how many they are, or 0 if
// none does.
func (n *numbers) put(db *pebble.DB, batch *pebble.Batch, s *staging, order []int32) (int, error) {
	key := s.key(int(order[0]))
	if !n.spaces[key[0]] {
		return 0, nil
	}
	entries, adds := 0, false
	for _, i := range order {
		if string(s.key(int(i))) != string(key) {
			break
		}
		adds = adds || s.entries[i].added
		entries++
	}
	if !adds {
		// A later batch of the group may add to what this one sets: it must not read
		// the number from Pebble, which does not have the batch yet.
		if last := int(order[entries-1]); s.entries[last].deleted || s.entries[last].headEnd-s.entries[last].keyEnd+len(s.entries[last].tail) == 8 {
			sum, err := s.apply(last, 0)
			if err != nil {
				return 0, err
			}
			n.keep(key, sum)
		} else {
			delete(n.known, string(key)) // it is no number, or no longer
		}
		return 0, nil
	}

	sum, err := n.committed(db, key)
	for _, i := range order[:entries] {
		if err == nil {
			sum, err = s.apply(int(i), sum)
		}
	}
	if err != nil {
		return 0, err
	}
	n.keep(key, sum)
	if sum == 0 {
		return entries, batch.Delete(key, nil)
	}
	return entries, batch.Set(key, binary.BigEndian.AppendUint64(nil, uint64(sum)), nil)
}
