package format

import (
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
)

// CountsName is the record under 'm' of how far the documents are counted, SizesName
// that of how far their bytes are. Without it none is. Part of the on-disk format. Must
// not change.
const (
	CountsName = "counts"
	SizesName  = "sizes"
)

// CountState is how far the documents of a database are counted, or their bytes: the
// numbers under 'k' cover the documents up to an ID, or all. Its record is a byte, 1 for
// all of them and else 0, and the ID. Part of the on-disk format. Must not change.
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

// Kinds of numbers under 'k' that are not those of a collection's documents. Names of
// collections hold no byte below 0x20. Part of the on-disk format. Must not change.
const (
	countRevisions = 1 // see RevisionCountKey
	countContents  = 2
	countTimes     = 3
)

// Tally is the numbers under 'k' of a collection's documents. Part of the on-disk format:
// the order of the fields must not change.
type Tally struct {
	Documents int64
	Bytes     int64 // of folded IDs and document records; missing in a database of format 3
}

// CountKey appends the key of a collection's Tally.
func CountKey(dst []byte, foldedCollection string) []byte {
	return AppendKey(dst, SpaceCounts, foldedCollection)
}

// DecodeTally returns the collection and the numbers of an entry under 'k'.
func DecodeTally(key, value []byte) (foldedCollection string, t Tally, err error) {
	if len(key) < 3 || key[len(key)-1] != 0 || len(value) != 8 && len(value) != 16 {
		return "", t, fmt.Errorf("count %q, %x: %w", key, value, errs.ErrCorrupt)
	}
	t.Documents = int64(binary.BigEndian.Uint64(value))
	if len(value) == 16 {
		t.Bytes = int64(binary.BigEndian.Uint64(value[8:]))
	}
	return string(key[1 : len(key)-1]), t, nil
}

// ContentTally is the numbers of the contents of attachments. Part of the on-disk format:
// the order of the fields must not change.
type ContentTally struct {
	References  int64 // of documents to contents
	Bytes       int64 // of the contents, each as often as it is referred to
	Contents    int64
	StoredBytes int64 // of the contents, each once
}

// ContentTallyKey returns the key of the ContentTally.
func ContentTallyKey() []byte { return []byte{SpaceCounts, countContents} }

// Numbers returns t as numbers of storage.Tx.Add.
func (t ContentTally) Numbers() []int64 {
	return []int64{t.References, t.Bytes, t.Contents, t.StoredBytes}
}

// DecodeContentTally is the inverse of ContentTally.Numbers for the value of the key, nil
// for none.
func DecodeContentTally(value []byte) (t ContentTally, err error) {
	n, err := decodeNumbers(value, 4)
	return ContentTally{n[0], n[1], n[2], n[3]}, err
}

// TimesTally is how many entries there are of what is due for documents. Part of the
// on-disk format: the order of the fields must not change.
type TimesTally struct{ Expiring, Refreshing int64 }

// AppendTimesTallyKey appends the key of the TimesTally.
func AppendTimesTallyKey(dst []byte) []byte { return append(dst, SpaceCounts, countTimes) }

// DecodeTimesTally decodes the value of the key, nil for none.
func DecodeTimesTally(value []byte) (t TimesTally, err error) {
	n, err := decodeNumbers(value, 2)
	return TimesTally{n[0], n[1]}, err
}

// decodeNumbers decodes up to most numbers of storage.Tx.Add.
func decodeNumbers(value []byte, most int) (n [4]int64, err error) {
	if len(value)%8 != 0 || len(value) > 8*most {
		return n, fmt.Errorf("numbers %x: %w", value, errs.ErrCorrupt)
	}
	for i := range len(value) / 8 {
		n[i] = int64(binary.BigEndian.Uint64(value[8*i:]))
	}
	return n, nil
}

// Bounds of the keys of Tallies, and of all keys under 'k'.
var (
	CountBounds    = [2][]byte{{SpaceCounts, 0x20}, {SpaceCounts + 1}}
	AllCountBounds = [2][]byte{{SpaceCounts}, {SpaceCounts + 1}}
)
