// Package format is which bytes lie where in the storage engine: the keys, and the
// records that no other package has the form of. docs/format.md describes them, and
// the golden tests of the root keep them.
package format

import (
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/metadata"
)

// FoldName folds the name of a collection.
func FoldName(name string) string { return ids.Fold(name) }

// NewDocumentKey returns a document's key in memory of its own: a key that is
// given to a storage engine leaves the stack, and room for the longest would be
// more than most need.
func NewDocumentKey[ID string | []byte](folded ID) []byte {
	key := make([]byte, 0, len(folded)+2)
	return append(append(append(key, SpaceDocument), folded...), 0)
}

// DocumentID returns the ID in a document's key, in the key's memory.
func DocumentID(key []byte) []byte { return key[1 : len(key)-1] }

// AppendIndexPrefix appends what all keys of an index begin with.
func AppendIndexPrefix(dst []byte, number uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, SpaceIndex), number)
}

func AppendEntryID(dst []byte, folded string, descending bool) []byte {
	start := len(dst)
	dst = append(append(dst, folded...), 0)
	if descending {
		for i := start; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

// IndexFlagsKey is where the flags of an index are.
func IndexFlagsKey(number uint32) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{SpaceIndexState}, number), 'f')
}

// IndexCursorKey is where the build of an index is.
func IndexCursorKey(number uint32) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{SpaceIndexState}, number), 'b')
}

// The key spaces. Each key begins with one of these bytes. IDs, tags,
// counters and collection names are folded and hold no byte below 0x20, so
// that 0x00 ends them; numbers are big-endian, so that they sort.
//
//	'c' collection 00 id 00   → ""            membership of a document away from home
//	'd' id 00                 → record        document, metadata.Header and body
//	'e' node(4) etag(8)       → change        what that write did
//	'h' tag 00                → marks         numbers granted to HiLo
//	'i' request 00            → last, ceiling identity counter
//	'm' name 00               → JSON          the database itself
//	'n' node(4)               → tag, id       which database a node number means
//	'x' number(4) values id 00 → ""           entry of an index; see index_entries.go
//	'x' number(4) values      → id            entry of a unique index
//	'y' number(4) 'f'         → flags(1)      what the entries of an index are like
//	'y' number(4) 'b'         → id            how far the build of an index is
//
// Example: document users/1 is at 64 75 73 65 72 73 2f 31 00.
//
// A document is at home if its ID begins with the name of its collection and
// the separator, all folded: orders/33-A is at home in Orders. A collection is
// then read as one range of documents; only those away from home need an
// entry of their own under 'c'. docs/decisions/0001-document-layout.md has the
// measurements.
//
// Part of the on-disk format. Must not change.
const (
	SpaceMembers  = 'c'
	SpaceDocument = 'd'
	SpaceChanges  = 'e'
	SpaceHiLo     = 'h'
	SpaceIdentity = 'i'
	SpaceMeta     = 'm'
	SpaceNode     = 'n'

	SpaceIndex      = 'x'
	SpaceIndexState = 'y'
)

// TableBounds part what grows in order (documents of new HiLo IDs, changes) from
// what is written over again and again, the records of HiLo and the others:
// tables of documents in order are then never merged with each other.
// docs/decisions/0010-write-path.md has the measurement.
var TableBounds = [][]byte{
	{SpaceDocument},
	[]byte(string(SpaceDocument) + HiLoPrefix), // of databases with case-sensitive IDs
	PrefixEnd([]byte(string(SpaceDocument) + HiLoPrefix)),
	[]byte(string(SpaceDocument) + FoldName(HiLoPrefix)),
	PrefixEnd([]byte(string(SpaceDocument) + FoldName(HiLoPrefix))),
	{SpaceChanges},
	{SpaceChanges + 1},
	{SpaceIndex},
}

// Kinds of a change. Part of the on-disk format. Must not change.
const (
	ChangePut    = 1
	ChangeDelete = 2
)

func AppendKey(dst []byte, space byte, part string) []byte {
	dst = append(dst, space)
	dst = append(dst, part...)
	return append(dst, 0)
}

func DocumentKey(dst []byte, foldedID string) []byte { return AppendKey(dst, SpaceDocument, foldedID) }

func MemberKey(dst []byte, foldedCollection, foldedID string) []byte {
	dst = AppendKey(dst, SpaceMembers, foldedCollection)
	dst = append(dst, foldedID...)
	return append(dst, 0)
}

func ChangeKey(dst []byte, node, etag uint64) []byte {
	dst = append(dst, SpaceChanges)
	dst = binary.BigEndian.AppendUint32(dst, uint32(node))
	return binary.BigEndian.AppendUint64(dst, etag)
}

func NodeKey(node uint64) []byte {
	return binary.BigEndian.AppendUint32([]byte{SpaceNode}, uint32(node))
}

// AppendChange appends the value of a change entry: its kind, the collection
// as written (uvarint length and bytes), and the folded ID.
func AppendChange(dst []byte, kind byte, collection, foldedID string) []byte {
	dst = append(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(len(collection)))
	dst = append(dst, collection...)
	return append(dst, foldedID...)
}

// Change is what a change entry says.
type Change struct {
	Kind       byte
	Collection string // as written
	FoldedID   string // the document's ID
}

func DecodeChange(value []byte) (Change, error) {
	if len(value) < 2 {
		return Change{}, fmt.Errorf("change entry %x: %w", value, errs.ErrCorrupt)
	}
	n, size := binary.Uvarint(value[1:])
	if size <= 0 || n > uint64(len(value)-1-size) {
		return Change{}, fmt.Errorf("change entry %x: %w", value, errs.ErrCorrupt)
	}
	name := 1 + size
	id := name + int(n)
	return Change{value[0], string(value[name:id]), string(value[id:])}, nil
}

// EtagOf returns the etag of a change key.
func EtagOf(key []byte) (uint64, error) {
	if len(key) != 13 || key[0] != SpaceChanges {
		return 0, fmt.Errorf("change key %x: %w", key, errs.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(key[5:]), nil
}

// PrefixEnd returns the first key after all that begin with prefix.
func PrefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// IsClustered tells whether a document needs no membership entry. Both names are
// folded; collection is never empty.
func IsClustered(foldedID, foldedCollection, foldedSeparator string) bool {
	n := len(foldedCollection)
	return len(foldedID) >= n+len(foldedSeparator) &&
		foldedID[:n] == foldedCollection &&
		foldedID[n:n+len(foldedSeparator)] == foldedSeparator
}

// CollectionKey returns the folded name under which a collection's documents
// are kept. Collections are never case-sensitive.
func CollectionKey(name string) string {
	if name == "" {
		name = metadata.Empty
	}
	return FoldName(name)
}
