package metadata

import (
	"encoding/binary"
	"time"

	"github.com/jaydb/jay/internal/errs"
)

// recordVersion is the first byte of every stored document.
// Part of the on-disk format. Must not change.
const recordVersion = 1

// Flags of a stored document: which optional parts follow.
// Part of the on-disk format. Must not change.
const (
	flagID     = 1 << 0 // the ID, where it is not its own folded form
	flagCustom = 1 << 1 // custom metadata
	knownFlags = flagID | flagCustom
)

// ErrCorrupt is returned when stored bytes are not what this package wrote. The
// value is the one of package storage.
var ErrCorrupt = errs.ErrCorrupt

// Header is what is stored in front of a document's body.
//
//	offset  size  what
//	0       1     version, 1
//	1       1     flags: 1 ID follows, 2 custom metadata follows
//	2       n     node number, uvarint
//	        n     etag, uvarint
//	        n     last modified, uvarint: 100 ns ticks since 1970-01-01 UTC
//	        n+len collection, uvarint length and bytes; length 0 is @empty
//	        n+len ID as written, if flag 1
//	        n+len custom metadata, a JSON object, if flag 2
//	        rest  body, a JSON object
//
// A decoded Header shares memory with the bytes it was decoded from.
type Header struct {
	Node       uint64
	Etag       uint64
	Modified   uint64 // ticks, see Ticks
	Collection []byte
	ID         []byte // nil if the ID is its own folded form
	Custom     []byte // nil if there is none
}

// AppendTail appends the part of the header that is known before the etag is
// drawn. AppendHead writes what goes in front of it.
func (h *Header) AppendTail(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, h.Modified)
	dst = appendBytes(dst, h.Collection)
	if h.ID != nil {
		dst = appendBytes(dst, h.ID)
	}
	if h.Custom != nil {
		dst = appendBytes(dst, h.Custom)
	}
	return dst
}

// AppendHead appends the part of the header that precedes the tail.
func (h *Header) AppendHead(dst []byte) []byte {
	flags := byte(0)
	if h.ID != nil {
		flags |= flagID
	}
	if h.Custom != nil {
		flags |= flagCustom
	}
	dst = append(dst, recordVersion, flags)
	dst = binary.AppendUvarint(dst, h.Node)
	return binary.AppendUvarint(dst, h.Etag)
}

func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// Decode takes a stored document apart. Header and body share memory with
// record. It returns ErrCorrupt for anything that AppendHead, AppendTail and
// a body cannot have made.
func Decode(record []byte) (h Header, body []byte, err error) {
	body, err = h.Decode(record)
	return h, body, err
}

// Decode is the function Decode with the header stored in h, which stays as it
// is if there is an error. Nothing can be appended to the body in place.
func (h *Header) Decode(record []byte) (body []byte, err error) {
	if len(record) < 2 || record[0] != recordVersion || record[1]&^knownFlags != 0 {
		return nil, ErrCorrupt
	}
	flags := record[1]
	node, i := uvarint(record, 2)
	etag, i := uvarint(record, i)
	modified, i := uvarint(record, i)
	collection, i := text(record, i)
	var id, custom []byte
	if flags&flagID != 0 {
		id, i = text(record, i)
	}
	if flags&flagCustom != 0 {
		custom, i = text(record, i)
	}
	if len(record)-i < 2 || record[i] != '{' {
		return nil, ErrCorrupt
	}

	// All at once: h is often on the heap, where each pointer that is stored by
	// itself asks whether garbage is being collected.
	h.Node, h.Etag, h.Modified = node, etag, modified
	h.Collection, h.ID, h.Custom = collection, id, custom
	return record[i:len(record):len(record)], nil
}

// uvarint returns the number at offset i of record and the offset behind it,
// which is that behind the end of record if there is no number. Nothing
// can be read from there on.
func uvarint(record []byte, i int) (n uint64, next int) {
	if i < len(record) && record[i] < 0x80 {
		return uint64(record[i]), i + 1
	}
	return longUvarint(record, i)
}

func longUvarint(record []byte, i int) (n uint64, next int) {
	if i < len(record) {
		if n, size := binary.Uvarint(record[i:]); size > 0 {
			return n, i + size
		}
	}
	return 0, len(record) + 1
}

// text is uvarint for bytes with their length in front.
func text(record []byte, i int) (b []byte, next int) {
	n, i := uvarint(record, i)
	if i > len(record) || n > uint64(len(record)-i) {
		return nil, len(record) + 1
	}
	next = i + int(n)
	return record[i:next:next], next
}

// ticksPerSecond is RavenDB's (and .NET's) resolution of a time.
const ticksPerSecond = 10_000_000

// Ticks returns t in 100 ns ticks since 1970; a time before that is 0.
func Ticks(t time.Time) uint64 {
	if t.Unix() < 0 {
		return 0
	}
	return uint64(t.Unix())*ticksPerSecond + uint64(t.Nanosecond())/100
}

// Time is the inverse of Ticks, in UTC.
func Time(ticks uint64) time.Time {
	return time.Unix(int64(ticks/ticksPerSecond), int64(ticks%ticksPerSecond)*100).UTC()
}
