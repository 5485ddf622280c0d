package indexer

import (
	"bytes"
	"context"
	"encoding/binary"

	"github.com/jaydb/jay/internal/sorter"
	"github.com/jaydb/jay/storage"
)

// How sums become tables
//
// What a Tabler stages for documents goes into a sorter, in place of a transaction. Additions at one key are
// added up: by each goroutine in a map of bounded size, as long as they come, and where the sorted entries are merged, for good. A value in the
// sorter begins with a byte that says whether it is set or added.

// Bounds of the map of a goroutine. docs/limits.md has them.
const (
	maxSums     = 8192
	maxSumBytes = 1 << 20 // of their keys
)

// The first byte of a value in the sorter.
const (
	tagSet = iota
	tagAdd
)

// sum is numbers that are added at one key, as Tx.Add has them.
type sum struct {
	n  int // how many
	at [storage.MaxNumbers]int64
}

// add adds numbers that appendTo has written.
func (s *sum) add(value []byte) {
	s.n = max(s.n, len(value)/8)
	for i := range len(value) / 8 {
		s.at[i] += int64(binary.BigEndian.Uint64(value[8*i:]))
	}
}

// appendTo appends the value of a key with these numbers.
func (s *sum) appendTo(dst []byte) []byte {
	for _, n := range s.at[:s.n] {
		dst = binary.BigEndian.AppendUint64(dst, uint64(n))
	}
	return dst
}

// isZero reports whether all numbers are 0: then there is no key.
func (s *sum) isZero() bool { return s.at == [storage.MaxNumbers]int64{} }

// sums is the catalog.Staging of one goroutine. It is not safe for concurrent use.
type sums struct {
	buffer *sorter.Buffer
	byKey  map[string]*sum // without the prefix of the index
	bytes  int             // of their keys
	value  []byte          // scratch
	err    error           // the first one of the buffer
}

func newSums(buffer *sorter.Buffer) *sums {
	return &sums{buffer: buffer, byKey: make(map[string]*sum)}
}

// Set implements catalog.Staging.
func (s *sums) Set(key, head, tail []byte) {
	s.value = append(append(append(s.value[:0], tagSet), head...), tail...)
	s.put(key[prefixBytes:])
}

// Delete implements catalog.Staging: there is nothing to delete.
func (s *sums) Delete([]byte) {}

// Add implements catalog.Staging.
func (s *sums) Add(key []byte, deltas ...int64) {
	key = key[prefixBytes:]
	at := s.byKey[string(key)]
	if at == nil {
		if len(s.byKey) >= maxSums || s.bytes >= maxSumBytes {
			s.err = s.flush()
		}
		at = new(sum)
		s.byKey[string(key)] = at
		s.bytes += len(key)
	}
	at.n = max(at.n, len(deltas))
	for i, n := range deltas {
		at.at[i] += n
	}
}

// put adds an entry of s.value to the buffer.
func (s *sums) put(key []byte) {
	if err := s.buffer.Add(key, s.value); s.err == nil {
		s.err = err
	}
}

// flush adds all sums to the buffer, and returns the first error that there was.
func (s *sums) flush() error {
	for key, at := range s.byKey {
		s.value = at.appendTo(append(s.value[:0], tagAdd))
		s.put([]byte(key))
	}
	clear(s.byKey)
	s.bytes = 0
	return s.err
}

// addTagged is tableWriter.add for an index of a Tabler: it adds up what is added at one key.
func (w *tableWriter) addTagged(ctx context.Context, key, value []byte) error {
	if w.sum != nil && !bytes.Equal(w.lastKey, key) {
		if err := w.endSum(ctx); err != nil {
			return err
		}
	}
	if value[0] == tagSet {
		return w.add(ctx, key, value[1:])
	}
	if w.sum == nil {
		w.sum, w.lastKey = new(sum), append(w.lastKey[:0], key...)
	}
	w.sum.add(value[1:])
	return nil
}

// endSum adds the sum that is complete, if there is one.
func (w *tableWriter) endSum(ctx context.Context) error {
	if w.sum == nil {
		return nil
	}
	complete := w.sum
	if w.sum = nil; complete.isZero() {
		return nil
	}
	w.last = complete.appendTo(w.last[:0])
	return w.add(ctx, w.lastKey, w.last)
}
