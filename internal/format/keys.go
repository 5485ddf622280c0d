// Package format defines the bytes in the storage engine: the keys, and the records
// whose form no other package owns. docs/format.md describes them, and the golden
// tests of the root pin them.
package format

import (
	"bytes"
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/metadata"
)

// FoldName folds the name of a collection.
func FoldName(name string) string { return ids.Fold(name) }

// NewDocumentKey returns a document's key in memory of its own. Appending to a
// buffer on the stack would not help: a key that is passed to a storage engine
// escapes, and a buffer for the longest key would be larger than most need.
func NewDocumentKey[ID string | []byte](folded ID) []byte {
	key := make([]byte, 0, len(folded)+2)
	return append(append(append(key, SpaceDocument), folded...), 0)
}

// DocumentID returns the ID in a document's key, in the key's memory.
func DocumentID(key []byte) []byte { return key[1 : len(key)-1] }

// AppendIndexPrefix appends the prefix of all keys of an index.
func AppendIndexPrefix(dst []byte, number uint32) []byte {
	return binary.BigEndian.AppendUint32(append(dst, SpaceIndex), number)
}

// SpaceErrors is the first byte, behind the number of an index, of the keys that note the documents for which an expression of
// the index fails. No part of a key begins with it, ascending or descending, so that they lie behind all entries.
//
// Part of the on-disk format. Must not change.
const SpaceErrors = 0xff

// EntriesEnd returns the first key after all entries of an index that begin with prefix, which begins as the keys of the
// index do. The notes of errors are not among them.
func EntriesEnd(prefix []byte) []byte {
	if len(prefix) == IndexPrefix {
		return append(append([]byte(nil), prefix...), SpaceErrors)
	}
	return PrefixEnd(prefix)
}

// ErrorsOf returns the range of the keys that note errors of documents in an index. Behind 00 are references, and not the IDs of notes.
func ErrorsOf(number uint32) (lo, hi []byte) {
	prefix := AppendIndexPrefix(nil, number)
	return append(EntriesEnd(prefix), 1), PrefixEnd(prefix)
}

// IndexOf returns the number of the index of whose entries, or of whose state, a key is one.
func IndexOf(key []byte) (number uint32, is bool) {
	if len(key) < IndexPrefix || key[0] != SpaceIndex && key[0] != SpaceIndexState {
		return 0, false
	}
	return binary.BigEndian.Uint32(key[1:]), true
}

// IndexPrefix is how many bytes the prefix of an index has.
const IndexPrefix = 5

// AppendEntryID appends the end of an index key: the folded ID and 00, with
// inverted bits if the last field is descending.
func AppendEntryID[ID string | []byte](dst []byte, folded ID, descending bool) []byte {
	start := len(dst)
	dst = append(append(dst, folded...), 0)
	if descending {
		for i := start; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

// IndexFlagsKey is the key of an index's flags.
func IndexFlagsKey(number uint32) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{SpaceIndexState}, number), 'f')
}

// IndexIngestKey is the key that is there while an index that is built may have entries
// that its documents do not give: see docs/format.md.
func IndexIngestKey(number uint32) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{SpaceIndexState}, number), 'i')
}

// IndexCursorKey is the key of the position that the build of an index has reached.
func IndexCursorKey(number uint32) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{SpaceIndexState}, number), 'b')
}

// The key spaces. Each key begins with one of these bytes. IDs, tags,
// counters and collection names are folded and hold no byte below 0x20, so
// that 0x00 ends them; numbers are big-endian, so that they sort.
//
//	'a', 'b'                  →               attachments; see SpaceAttachments
//	'c' collection 00 id 00   → ""            membership of a document that is not clustered
//	'd' id 00                 → record        document, metadata.Header and body
//	'e' node(4) etag(8)       → change        what that write did
//	'h' tag 00                → marks         numbers granted to HiLo
//	'i' request 00            → last, reserved-to identity counter
//	'k' collection 00         → numbers       how many documents and bytes it has; see Tally
//	'k' 02, 'k' 03            → numbers       of attachments; of what is due; see counts.go
//	'm' name 00               → JSON          the database itself
//	'n' node(4)               → tag, id       which database a node number means
//	'r' …                     → …             revisions; see SpaceRevisions
//	't' kind instant(9) id 00 → collection    what is due for a document; see TimeKey
//	's' name 00 …             → JSON          a subscription: see subscriptions.go
//	'x' number(4) values id 00 → ""           entry of an index; see AppendEntryID
//	'x' number(4) values      → id            entry of a unique index
//	'y' number(4) 'f'         → flags(1)      properties of the entries of an index
//	'y' number(4) 'b'         → id            position that the build of an index has reached
//	'z' …                     → …             leases on a store that several processes have open; see SpaceLeases
//
// Example: document users/1 is at 64 75 73 65 72 73 2f 31 00.
//
// A document is clustered if its ID begins with the name of its collection and the
// separator, all folded: orders/33-A is clustered in Orders. A collection is then
// read as one range of documents; only the others need an entry of their own under
// 'c'. docs/decisions/0001-document-layout.md has the measurements.
//
// Part of the on-disk format. Must not change.
const (
	SpaceMembers  = 'c'
	SpaceDocument = 'd'
	SpaceChanges  = 'e'
	SpaceHiLo     = 'h'
	SpaceIdentity = 'i'
	SpaceCounts   = 'k'
	SpaceMeta     = 'm'
	SpaceNode     = 'n'
	SpaceTimes    = 't'

	SpaceSubscription = 's' // see subscriptions.go

	SpaceIndex      = 'x'
	SpaceIndexState = 'y'
)

// TableBounds separate the keys that grow in order (documents with new HiLo IDs,
// changes) from those that are overwritten again and again (HiLo documents and
// other records): tables of ordered documents are then never merged with each
// other. docs/decisions/0010-write-path.md has the measurement.
var TableBounds = [][]byte{
	{SpaceChunks},
	{SpaceChunks + 1},
	{SpaceDocument},
	[]byte(string(SpaceDocument) + HiLoPrefix), // of databases with case-sensitive IDs
	PrefixEnd([]byte(string(SpaceDocument) + HiLoPrefix)),
	[]byte(string(SpaceDocument) + FoldName(HiLoPrefix)),
	PrefixEnd([]byte(string(SpaceDocument) + FoldName(HiLoPrefix))),
	{SpaceChanges},
	{SpaceChanges + 1},
	{SpaceTimes},
	{SpaceIndex},
}

// Kinds of a change. Part of the on-disk format. Must not change.
const (
	ChangePut    = 1
	ChangeDelete = 2
)

// AppendKey appends a key space, one part of a key and 00.
func AppendKey(dst []byte, space byte, part string) []byte {
	dst = append(dst, space)
	dst = append(dst, part...)
	return append(dst, 0)
}

// DocumentKey appends the key of a document.
func DocumentKey(dst []byte, foldedID string) []byte { return AppendKey(dst, SpaceDocument, foldedID) }

// AppendDocumentKey is DocumentKey for an ID in bytes.
func AppendDocumentKey(dst, foldedID []byte) []byte {
	dst = append(dst, SpaceDocument)
	dst = append(dst, foldedID...)
	return append(dst, 0)
}

// MemberKey appends the key of a membership entry.
func MemberKey(dst []byte, foldedCollection, foldedID string) []byte {
	dst = AppendKey(dst, SpaceMembers, foldedCollection)
	dst = append(dst, foldedID...)
	return append(dst, 0)
}

// ChangeKey appends the key of a change entry.
func ChangeKey(dst []byte, node, etag uint64) []byte {
	dst = append(dst, SpaceChanges)
	dst = binary.BigEndian.AppendUint32(dst, uint32(node))
	return binary.BigEndian.AppendUint64(dst, etag)
}

// NodeKey returns the key of a node's Origin.
func NodeKey(node uint64) []byte {
	return binary.BigEndian.AppendUint32([]byte{SpaceNode}, uint32(node))
}

// AppendChange appends the value of a change entry: its kind, the collection
// as written (uvarint length and bytes), and the folded ID. See AppendDeletion.
func AppendChange(dst []byte, kind byte, collection, foldedID string) []byte {
	dst = append(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(len(collection)))
	dst = append(dst, collection...)
	return append(dst, foldedID...)
}

// AppendDeletion appends the value of the change entry of a deletion. If the document's ID,
// as it was written, is not the folded one, 00 and the ID follow the folded one: no ID has that
// byte. Such a value needs storage.FeatureDeletedIDs.
func AppendDeletion(dst []byte, collection, foldedID, id string) []byte {
	dst = AppendChange(dst, ChangeDelete, collection, foldedID)
	if id == foldedID {
		return dst
	}
	return append(append(dst, 0), id...)
}

// Change is what a change entry says.
type Change struct {
	Kind       byte
	Collection string // as written
	FoldedID   string // the document's ID
	ID         string // of a deletion: as the document's ID was written, if that differs from FoldedID; else empty
}

// DecodeChange is the inverse of AppendChange and AppendDeletion.
func DecodeChange(value []byte) (Change, error) {
	s, err := SplitChange(value)
	if err != nil {
		return Change{}, err
	}
	return Change{s.Kind, string(s.Collection), string(s.FoldedID), string(s.ID)}, nil
}

// ChangeParts is a Change in the memory of its value.
type ChangeParts struct {
	Kind                     byte
	Collection, FoldedID, ID []byte
}

// WrittenID returns the ID of a deletion as it was written, as far as its record says.
func (p *ChangeParts) WrittenID() string {
	if len(p.ID) > 0 {
		return string(p.ID)
	}
	return string(p.FoldedID)
}

// SplitChange is DecodeChange in the memory of value. Only the entry of a deletion has an
// ID after the folded one: in one of a put a 00 is left in the folded ID, where no document
// is found.
func SplitChange(value []byte) (p ChangeParts, err error) {
	if len(value) < 2 {
		return p, fmt.Errorf("change entry %x: %w", value, errs.ErrCorrupt)
	}
	n, size := binary.Uvarint(value[1:])
	if size <= 0 || n > uint64(len(value)-1-size) {
		return p, fmt.Errorf("change entry %x: %w", value, errs.ErrCorrupt)
	}
	name := 1 + size
	id := name + int(n)
	p = ChangeParts{Kind: value[0], Collection: value[name:id], FoldedID: value[id:]}
	if p.Kind == ChangeDelete {
		if folded, written, found := bytes.Cut(p.FoldedID, []byte{0}); found {
			if p.FoldedID, p.ID = folded, written; len(written) == 0 {
				return p, fmt.Errorf("change entry %x: %w", value, errs.ErrCorrupt)
			}
		}
	}
	return p, nil
}

// EtagOf returns the etag of a change key.
func EtagOf(key []byte) (uint64, error) {
	if len(key) != 13 || key[0] != SpaceChanges {
		return 0, fmt.Errorf("change key %x: %w", key, errs.ErrCorrupt)
	}
	return binary.BigEndian.Uint64(key[5:]), nil
}

// NodeOf returns the node of a change key.
func NodeOf(key []byte) (uint64, error) {
	if len(key) != 13 || key[0] != SpaceChanges {
		return 0, fmt.Errorf("change key %x: %w", key, errs.ErrCorrupt)
	}
	return uint64(binary.BigEndian.Uint32(key[1:])), nil
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

// IsPrefixEnd reports whether end is PrefixEnd(prefix), and allocates nothing.
func IsPrefixEnd(end, prefix []byte) bool {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] != 0xff {
			return len(end) == i+1 && end[i] == prefix[i]+1 && bytes.Equal(end[:i], prefix[:i])
		}
	}
	return len(end) == 0
}

// IsClustered reports whether a document needs no membership entry. Both names are
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
