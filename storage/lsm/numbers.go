package lsm

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/storage"
)

// maxKnown is how many keys of numbers an engine remembers.
const maxKnown = 4096

// tuple is the numbers at one key.
type tuple struct {
	n  int // how many
	at [storage.MaxNumbers]int64
}

// areNumbers reports whether a value of this size can be the numbers at a key.
func areNumbers(size int) bool { return size > 0 && size%8 == 0 && size <= 8*storage.MaxNumbers }

// decodeTuple decodes the numbers at key.
func decodeTuple(key, value []byte) (t tuple, err error) {
	if !areNumbers(len(value)) {
		return t, fmt.Errorf("the numbers at key %q have %d bytes: %w", key, len(value), storage.ErrCorrupt)
	}
	t.add(value)
	return t, nil
}

// add adds the numbers in value, one by one. It makes t as long as value.
func (t *tuple) add(value []byte) {
	n := len(value) / 8
	for i := range n {
		t.at[i] += int64(binary.BigEndian.Uint64(value[8*i:]))
	}
	t.n = max(t.n, n)
}

// isZero reports whether all numbers are 0: then there is no key.
func (t *tuple) isZero() bool { return t.at == [storage.MaxNumbers]int64{} }

// append appends the value of a key with these numbers.
func (t *tuple) append(dst []byte) []byte {
	for _, n := range t.at[:t.n] {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	return dst
}

// numbers are the numbers that transactions add to (storage.Tx.Add), as the batches
// made so far leave them. As one process writes, a group can replace the additions to
// a key by one Set of the sums, and reads the numbers from Pebble once. Guarded by
// Engine.mu.
type numbers struct {
	known  map[string]*tuple // pointers: an assignment would allocate its key
	spaces [256]bool         // first bytes of keys that were added to
}

// committed returns the numbers at key, before the group that is being made.
func (n *numbers) committed(db *pebble.DB, key []byte) (tuple, error) {
	if known, found := n.known[string(key)]; found {
		return *known, nil
	}
	value, closer, err := get(db, key)
	if err == storage.ErrNotFound {
		return tuple{}, nil
	}
	if err != nil {
		return tuple{}, err
	}
	sum, err := decodeTuple(key, value)
	return sum, errors.Join(err, closer.Close())
}

// keep remembers the numbers at key.
func (n *numbers) keep(key []byte, sum *tuple) {
	if known, found := n.known[string(key)]; found {
		*known = *sum
		return
	}
	if n.known == nil {
		n.known = make(map[string]*tuple)
	}
	first := *sum // escapes, unlike sum
	n.known[string(key)] = &first
}

// trim bounds the memory, between groups.
func (n *numbers) trim() {
	if len(n.known) > maxKnown {
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
		// the numbers from Pebble, which does not have the batch yet.
		last := &s.entries[order[entries-1]]
		if last.deleted || areNumbers(last.headEnd-last.keyEnd+len(last.tail)) {
			var sum tuple
			if err := s.apply(int(order[entries-1]), &sum); err != nil {
				return 0, err
			}
			n.keep(key, &sum)
		} else {
			delete(n.known, string(key)) // it is no number, or no longer
		}
		return 0, nil
	}

	sum, err := n.committed(db, key)
	for _, i := range order[:entries] {
		if err == nil {
			err = s.apply(int(i), &sum)
		}
	}
	if err != nil {
		return 0, err
	}
	n.keep(key, &sum)
	if sum.isZero() {
		return entries, batch.Delete(key, nil)
	}
	var scratch [8 * storage.MaxNumbers]byte
	return entries, batch.Set(key, sum.append(scratch[:0]), nil)
}
