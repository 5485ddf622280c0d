package follow

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"github.com/jaydb/jay/storage"
)

// span is a range of keys: from the end of the one before it, or the first key, to end. A nil end is no bound.
type span struct {
	end []byte
	sum [sha256.Size]byte
}

// summer adds up the checksum of a range.
type summer struct {
	hash  hash.Hash
	frame []byte
	bytes int
}

func newSummer() *summer { return &summer{hash: sha256.New()} }

// add adds a key, unless it is one that a standby has for itself.
func (s *summer) add(key, value []byte) {
	if isLocal(key) {
		return
	}
	s.frame = binary.AppendUvarint(s.frame[:0], uint64(len(key)))
	s.frame = append(s.frame, key...)
	s.frame = binary.AppendUvarint(s.frame, uint64(len(value)))
	s.hash.Write(s.frame)
	s.hash.Write(value)
	s.bytes += len(key) + len(value)
}

// sum returns the checksum, and begins the next range.
func (s *summer) sum() (sum [sha256.Size]byte) {
	s.hash.Sum(sum[:0])
	s.hash.Reset()
	s.bytes = 0
	return sum
}

// appendSums appends frames with the checksums of all that r has, in ranges of this size.
func appendSums(ctx context.Context, dst []byte, r storage.Reader, rangeBytes int) ([]byte, error) {
	it, err := r.Iterate(nil, nil)
	if err != nil {
		return nil, err
	}
	defer it.Close()
	s := newSummer()
	var block []byte
	for ok := it.First(); ok; ok = it.Next() {
		if s.bytes >= rangeBytes {
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			sum := s.sum()
			block = appendString(append(block, sum[:]...), it.Key())
		}
		s.add(it.Key(), it.Value())
		if len(block) >= blockBytes {
			dst, block = appendFrame(dst, kindSums, block), block[:0]
		}
	}
	sum := s.sum()
	block = appendString(append(block, sum[:]...), nil)
	return appendFrame(dst, kindSums, block), it.Error()
}

// cutSpans returns the ranges in the payload of a frame of checksums.
func cutSpans(spans []span, b []byte) ([]span, error) {
	for len(b) > 0 {
		var s span
		if len(b) < len(s.sum) {
			return nil, ErrFrame
		}
		copy(s.sum[:], b)
		end, rest, err := cutString(b[len(s.sum):])
		if err != nil {
			return nil, err
		}
		if n := len(spans); n > 0 && (spans[n-1].end == nil || len(end) > 0 && bytes.Compare(end, spans[n-1].end) <= 0) {
			return nil, ErrFrame // they must ascend
		}
		if len(end) > 0 {
			s.end = bytes.Clone(end)
		}
		spans, b = append(spans, s), rest
	}
	return spans, nil
}

// seek moves it to the first key from lo on. An empty lo is no bound.
func seek(it storage.Iterator, lo []byte) bool {
	if len(lo) == 0 {
		return it.First()
	}
	return it.SeekGE(lo)
}
