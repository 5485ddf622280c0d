package jay

import (
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/metadata"
)

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
	spaceMembers  = 'c'
	spaceDocument = 'd'
	spaceChanges  = 'e'
	spaceHiLo     = 'h'
	spaceIdentity = 'i'
	spaceMeta     = 'm'
	spaceNode     = 'n'

	spaceIndex      = 'x'
	spaceIndexState = 'y'
)

// tableBounds part what grows in order (documents of new HiLo IDs, changes) from
// what is written over again and again, the records of HiLo and the others:
// tables of documents in order are then never merged with each other.
// docs/decisions/0010-write-path.md has the measurement.
var tableBounds = [][]byte{
	{spaceDocument},
	[]byte(string(spaceDocument) + hiloPrefix), // of databases with case-sensitive IDs
	prefixEnd([]byte(string(spaceDocument) + hiloPrefix)),
	[]byte(string(spaceDocument) + foldName(hiloPrefix)),
	prefixEnd([]byte(string(spaceDocument) + foldName(hiloPrefix))),
	{spaceChanges},
	{spaceChanges + 1},
	{spaceIndex},
}

// Kinds of a change. Part of the on-disk format. Must not change.
const (
	changePut    = 1
	changeDelete = 2
)

func appendKey(dst []byte, space byte, part string) []byte {
	dst = append(dst, space)
	dst = append(dst, part...)
	return append(dst, 0)
}

func documentKey(dst []byte, foldedID string) []byte { return appendKey(dst, spaceDocument, foldedID) }

func memberKey(dst []byte, foldedCollection, foldedID string) []byte {
	dst = appendKey(dst, spaceMembers, foldedCollection)
	dst = append(dst, foldedID...)
	return append(dst, 0)
}

func changeKey(dst []byte, node, etag uint64) []byte {
	dst = append(dst, spaceChanges)
	dst = binary.BigEndian.AppendUint32(dst, uint32(node))
	return binary.BigEndian.AppendUint64(dst, etag)
}

func nodeKey(node uint64) []byte {
	return binary.BigEndian.AppendUint32([]byte{spaceNode}, uint32(node))
}

// appendChange appends the value of a change entry: its kind, the collection
// as written (uvarint length and bytes), and the folded ID.
func appendChange(dst []byte, kind byte, collection, foldedID string) []byte {
	dst = append(dst, kind)
	dst = binary.AppendUvarint(dst, uint64(len(collection)))
	dst = append(dst, collection...)
	return append(dst, foldedID...)
}

// change is what a change entry tells.
type change struct {
	kind       byte
	collection string // as written
	folded     string // the document's ID
}

func decodeChange(value []byte) (change, error) {
	if len(value) < 2 {
		return change{}, fmt.Errorf("change entry %x: %w", value, ErrCorrupt)
	}
	n, size := binary.Uvarint(value[1:])
	if size <= 0 || n > uint64(len(value)-1-size) {
		return change{}, fmt.Errorf("change entry %x: %w", value, ErrCorrupt)
	}
	name := 1 + size
	id := name + int(n)
	return change{value[0], string(value[name:id]), string(value[id:])}, nil
}

// etagOf returns the etag of a change key.
func etagOf(key []byte) (uint64, error) {
	if len(key) != 13 || key[0] != spaceChanges {
		return 0, fmt.Errorf("change key %x: %w", key, ErrCorrupt)
	}
	return binary.BigEndian.Uint64(key[5:]), nil
}

// prefixEnd returns the first key after all that begin with prefix.
func prefixEnd(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i] != 0xff {
			end[i]++
			return end[:i+1]
		}
	}
	return nil
}

// isHome tells whether a document needs no membership entry. Both names are
// folded; collection is never empty.
func isHome(foldedID, foldedCollection, foldedSeparator string) bool {
	n := len(foldedCollection)
	return len(foldedID) >= n+len(foldedSeparator) &&
		foldedID[:n] == foldedCollection &&
		foldedID[n:n+len(foldedSeparator)] == foldedSeparator
}

// collectionKey returns the folded name under which a collection's documents
// are kept. Collections are never case-sensitive.
func (db *DB) collectionKey(name string) string {
	if name == "" {
		name = metadata.Empty
	}
	return foldName(name)
}
