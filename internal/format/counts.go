package format

import (
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
)

// CountsName is the record under 'm' of how far the documents are counted. Without
// it none is. Part of the on-disk format. Must not change.
const CountsName = "counts"

// CountState is how far the documents of a database are counted: the numbers under 'k'
// cover the documents up to an ID, or all. Its record is a byte, 1 for all of them and
// else 0, and the ID. Part of the on-disk format. Must not change.
type CountState struct {
	All  bool
	UpTo string // folded ID; "" with All, and before the first document
}

// Append appends the record to dst.
func (s CountState) Append(dst []byte) []byte {
	if s.All {
		return append(dst, 1)
	}
	return append(append(dst, 0), s.UpTo...)
}

// Covers reports whether a document is counted.
func (s CountState) Covers(foldedID string) bool { return s.All || foldedID <= s.UpTo }

// DecodeCountState is the inverse of CountState.Append.
func DecodeCountState(record []byte) (CountState, error) {
	switch {
	case len(record) == 1 && record[0] == 1:
		return CountState{All: true}, nil
	case len(record) > 0 && record[0] == 0:
		return CountState{UpTo: string(record[1:])}, nil
	}
	return CountState{}, fmt.Errorf("record of the counts %x: %w", record, errs.ErrCorrupt)
}

// DecodeCount returns the collection and the number of an entry under 'k'.
func DecodeCount(key, value []byte) (foldedCollection string, n int64, err error) {
	if len(key) < 3 || len(value) != 8 {
		return "", 0, fmt.Errorf("count %q, %x: %w", key, value, errs.ErrCorrupt)
	}
	return string(key[1 : len(key)-1]), int64(binary.BigEndian.Uint64(value)), nil
}
