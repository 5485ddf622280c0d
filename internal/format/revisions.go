package format

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
)

// SpaceRevisions is the key space of revisions. An ID and the name of a collection hold
// no byte below 0x20, so that the keys with such a byte in front are others.
//
//	'k' 01 collection 00     → number(8)    how many revisions lie under 'r'; see storage.Tx.Add
//	'r' 00 id 00             → ""           a deleted document that has revisions
//	'r' id 00                → History      the numbers of a document's revisions
//	'r' id 00 number(8)      → Revision     an older version of the document, or its deletion
//
// Part of the on-disk format. Must not change.
const (
	SpaceRevisions = 'r'

	revisionBin = 0
)

// RevisionsName is the record under 'm' that says of which collections revisions are
// kept. Part of the on-disk format. Must not change.
const RevisionsName = "revisions"

// revisionNumberBytes is the size of the number at the end of a revision's key.
const revisionNumberBytes = 8

// HistoryKey appends the key of a document's History. All keys of its revisions begin
// with it.
func HistoryKey(dst []byte, foldedID string) []byte {
	return AppendKey(dst, SpaceRevisions, foldedID)
}

// RevisionKey appends the key of a revision.
func RevisionKey(dst []byte, foldedID string, number uint64) []byte {
	return binary.BigEndian.AppendUint64(HistoryKey(dst, foldedID), number)
}

// DeletedKey appends the key that says that a document with revisions was deleted.
func DeletedKey(dst []byte, foldedID string) []byte {
	dst = append(dst, SpaceRevisions, revisionBin)
	dst = append(dst, foldedID...)
	return append(dst, 0)
}

// RevisionCountKey appends the key of the number of a collection's revisions.
func RevisionCountKey(dst []byte, foldedCollection string) []byte {
	dst = append(dst, SpaceCounts, countRevisions)
	dst = append(dst, foldedCollection...)
	return append(dst, 0)
}

// Bounds of the keys of one kind.
var (
	RevisionCountBounds = [2][]byte{{SpaceCounts, countRevisions}, {SpaceCounts, countRevisions + 1}}
	DeletedBounds       = [2][]byte{{SpaceRevisions, revisionBin}, {SpaceRevisions, revisionBin + 1}}
	HistoryBounds       = [2][]byte{{SpaceRevisions, 0x20}, {SpaceRevisions + 1}}
)

// DeletedID returns the ID in a key of DeletedKey.
func DeletedID(key []byte) (foldedID string, err error) {
	if len(key) < 4 || key[0] != SpaceRevisions || key[1] != revisionBin || key[len(key)-1] != 0 {
		return "", fmt.Errorf("key of a deleted document %x: %w", key, errs.ErrCorrupt)
	}
	return string(key[2 : len(key)-1]), nil
}

// DecodeRevisionCount returns the collection and the number of an entry of
// RevisionCountKey.
func DecodeRevisionCount(key, value []byte) (folded string, n int64, err error) {
	if len(key) < 4 || key[0] != SpaceCounts || key[1] != countRevisions || key[len(key)-1] != 0 || len(value) != 8 {
		return "", 0, fmt.Errorf("number of revisions %x, %x: %w", key, value, errs.ErrCorrupt)
	}
	return string(key[2 : len(key)-1]), int64(binary.BigEndian.Uint64(value)), nil
}

// SplitRevisionKey returns the ID and the number in the key of a revision. The number
// of a History is 0. The ID is in the memory of key.
func SplitRevisionKey(key []byte) (foldedID []byte, number uint64, err error) {
	if len(key) > 1 && key[0] == SpaceRevisions && key[1] >= 0x20 {
		end := 1 + bytes.IndexByte(key[1:], 0)
		switch rest := key[end:]; len(rest) {
		case 1:
			if end > 0 {
				return key[1:end], 0, nil
			}
		case 1 + revisionNumberBytes:
			if number = binary.BigEndian.Uint64(rest[1:]); end > 0 && number > 0 {
				return key[1:end], number, nil
			}
		}
	}
	return nil, 0, fmt.Errorf("key of a revision %x: %w", key, errs.ErrCorrupt)
}

// History is the record at HistoryKey: two uvarints. Without a record First is 1 and
// Last is 0. Part of the on-disk format. Must not change.
type History struct {
	First uint64 // revisions below it were removed, and those from it on are there

	// Last is the number of the newest revision that lies under 'r'. It is right
	// unless the document is there and has a number of its own (metadata.Header.Revision),
	// which is the next one then.
	Last uint64
}

// NoHistory is the history of a document without a record.
var NoHistory = History{First: 1}

// Append appends the record.
func (h History) Append(dst []byte) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(dst, h.First), h.Last)
}

// DecodeHistory is the inverse of History.Append.
func DecodeHistory(record []byte) (h History, err error) {
	first, n := binary.Uvarint(record)
	if n > 0 {
		last, m := binary.Uvarint(record[n:])
		if m > 0 && n+m == len(record) && first > 0 {
			return History{first, last}, nil
		}
	}
	return History{}, fmt.Errorf("history record %x: %w", record, errs.ErrCorrupt)
}

// Flags of a revision's record. Part of the on-disk format. Must not change.
const (
	RevisionDeletion = 1 << 0 // the document was deleted; the body is {}
	RevisionForeign  = 1 << 1 // it was imported: its change vector follows, as a string
	revisionFlags    = RevisionDeletion | RevisionForeign
)

// RevisionHead is what the record of a revision has before the document record of its version. A member
// that comes later goes through those who copy revisions (salvage) and read them without being named there.
//
//	offset  size  what
//	0       1     flags: 1 a deletion, 2 a change vector follows
//	1       n+len change vector, a string, only with flag 2
//	        rest  a document record
//
// Part of the on-disk format. Must not change.
type RevisionHead struct {
	Deletion bool   // it is the deletion of the document
	Foreign  []byte // the change vector that an imported revision had; nil for none
}

// Append appends the head.
func (h RevisionHead) Append(dst []byte) []byte {
	flags := byte(0)
	if h.Deletion {
		flags |= RevisionDeletion
	}
	if len(h.Foreign) > 0 {
		flags |= RevisionForeign
	}
	dst = append(dst, flags)
	if len(h.Foreign) > 0 {
		dst = binary.AppendUvarint(dst, uint64(len(h.Foreign)))
		dst = append(dst, h.Foreign...)
	}
	return dst
}

// SplitRevision splits the record of a revision into its head and the document record of the version, both
// in its memory.
func SplitRevision(value []byte) (head RevisionHead, record []byte, err error) {
	if len(value) == 0 || value[0]&^revisionFlags != 0 {
		return RevisionHead{}, nil, fmt.Errorf("revision %.40x: %w", value, errs.ErrCorrupt)
	}
	head.Deletion, record = value[0]&RevisionDeletion != 0, value[1:]
	if value[0]&RevisionForeign != 0 {
		n, size := binary.Uvarint(record)
		if size <= 0 || n == 0 || n > uint64(len(record)-size) {
			return RevisionHead{}, nil, fmt.Errorf("revision %.40x: %w", value, errs.ErrCorrupt)
		}
		head.Foreign, record = record[size:size+int(n)], record[size+int(n):]
	}
	return head, record, nil
}
