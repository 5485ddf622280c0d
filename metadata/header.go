package metadata

import (
	"encoding/binary"
	"math/bits"
	"time"

	"github.com/jaydb/jay/internal/errs"
)

// recordVersion is the first byte of every stored document.
// Part of the on-disk format. Must not change.
const recordVersion = 1

// Flags of a stored document: which optional parts follow.
// Part of the on-disk format. Must not change.
const (
	flagID          = 1 << 0 // the original ID, if it differs from the case-folded one
	flagCustom      = 1 << 1 // custom metadata
	flagTimed       = 1 << 2 // nothing follows: the custom metadata has an instant, which is in the key space 't'
	flagAttachments = 1 << 3 // attachments
	flagRevision    = 1 << 4 // the number of the revision that this version is
	knownFlags      = flagID | flagCustom | flagTimed | flagAttachments | flagRevision
)

// ErrCorrupt is returned when stored bytes are not what this package wrote. It
// is the same value as storage.ErrCorrupt.
var ErrCorrupt = errs.ErrCorrupt

// Header is the stored record's part before the document's body.
//
//	offset  size  what
//	0       1     version, 1
//	1       1     flags: 1 ID follows, 2 custom metadata follows, 4 that has @expires or
//	              @refresh, 8 attachments follow, 16 revision number follows
//	2       n     node number, uvarint
//	        n     etag, uvarint
//	        n+len list of attachments, if flag 8; package internal/format has its bytes
//	        n     revision number, uvarint, if flag 16
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
	ID         []byte // as written; nil if that is the case-folded ID
	Custom     []byte // nil if there is none
	Timed      bool   // Custom has instants that are kept in the key space 't': see Times

	// Revision is the number of this version among the revisions of its document, from 1: the write
	// that replaces this version keeps it as that revision. 0 means that the write does not keep it.
	Revision uint64

	// Attachments is the list of the document's attachments as it is stored, nil if
	// there are none.
	Attachments []byte
}

// Flags returns the @flags of a document with this header.
func (h *Header) Flags() (f Flags) {
	if h.Revision != 0 {
		f |= HasRevisions
	}
	if h.Attachments != nil {
		f |= HasAttachments
	}
	return f
}

// AppendTail appends the header suffix: the fields from Modified on, which are
// known before the etag is drawn. AppendHead appends the prefix that precedes it.
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

// AppendHead appends the header prefix: version, flags, node, etag, attachments and
// revision, which only the transaction knows. The output of AppendTail must follow it.
func (h *Header) AppendHead(dst []byte) []byte {
	flags := byte(0)
	if h.ID != nil {
		flags |= flagID
	}
	if h.Custom != nil {
		flags |= flagCustom
	}
	if h.Attachments != nil {
		flags |= flagAttachments
	}
	if h.Timed {
		flags |= flagTimed
	}
	if h.Revision != 0 {
		flags |= flagRevision
	}
	dst = append(dst, recordVersion, flags)
	dst = binary.AppendUvarint(dst, h.Node)
	dst = binary.AppendUvarint(dst, h.Etag)
	if h.Attachments != nil {
		dst = appendBytes(dst, h.Attachments)
	}
	if h.Revision != 0 {
		dst = binary.AppendUvarint(dst, h.Revision)
	}
	return dst
}

// Size returns how many bytes AppendHead and AppendTail append.
func (h *Header) Size() int {
	size := 2 + uvarintSize(h.Node) + uvarintSize(h.Etag) + uvarintSize(h.Modified) + sizeOf(h.Collection)
	if h.ID != nil {
		size += sizeOf(h.ID)
	}
	if h.Custom != nil {
		size += sizeOf(h.Custom)
	}
	if h.Attachments != nil {
		size += sizeOf(h.Attachments)
	}
	if h.Revision != 0 {
		size += uvarintSize(h.Revision)
	}
	return size
}

// sizeOf returns how many bytes appendBytes appends.
func sizeOf(b []byte) int { return uvarintSize(uint64(len(b))) + len(b) }

// uvarintSize returns the size of n as a uvarint.
func uvarintSize(n uint64) int { return (bits.Len64(n|1) + 6) / 7 }

// appendBytes appends the length of b as a uvarint, and b.
func appendBytes(dst, b []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(b)))
	return append(dst, b...)
}

// Decode splits a stored document into header and body, which share memory with
// record. It returns ErrCorrupt for bytes that AppendHead, AppendTail and a body
// cannot have made.
func Decode(record []byte) (h Header, body []byte, err error) {
	body, err = h.Decode(record)
	return h, body, err
}

// Decode is like the function Decode, but stores the header in h. It leaves h unchanged if it
// returns an error. The capacity of the body is its length, so that appending to it copies it.
func (h *Header) Decode(record []byte) (body []byte, err error) {
	if len(record) < 2 || record[0] != recordVersion || record[1]&^knownFlags != 0 {
		return nil, ErrCorrupt
	}
	// A field that is cut off moves i behind the end, where all later fields and
	// the check of the body fail: one check serves all of them.
	flags := record[1]
	node, i := uvarint(record, 2)
	etag, i := uvarint(record, i)
	var attachments []byte
	if flags&flagAttachments != 0 {
		attachments, i = text(record, i)
	}
	revision := uint64(0)
	if flags&flagRevision != 0 {
		if revision, i = uvarint(record, i); revision == 0 {
			return nil, ErrCorrupt
		}
	}
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

	// Assigned together: h is often on the heap, where the compiler can then
	// share one write barrier check among the slices.
	h.Node, h.Etag, h.Modified, h.Revision = node, etag, modified, revision
	h.Collection, h.ID, h.Custom, h.Attachments = collection, id, custom, attachments
	h.Timed = flags&flagTimed != 0
	return record[i:len(record):len(record)], nil
}

// uvarint returns the number at offset i of record and the offset after it. If
// there is no number there, next is len(record) + 1, from where all reads fail.
func uvarint(record []byte, i int) (n uint64, next int) {
	if i < len(record) && record[i] < 0x80 {
		return uint64(record[i]), i + 1
	}
	return longUvarint(record, i)
}

// longUvarint is uvarint for numbers of several bytes, kept apart so that
// uvarint is inlined.
func longUvarint(record []byte, i int) (n uint64, next int) {
	if i < len(record) {
		if n, size := binary.Uvarint(record[i:]); size > 0 {
			return n, i + size
		}
	}
	return 0, len(record) + 1
}

// text is uvarint for bytes that a uvarint length precedes.
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

// maxTicks is the last tick of the year 9999, the last one that a date of RFC 3339 has.
const maxTicks = 253_402_300_800*ticksPerSecond - 1

// Ticks returns t in ticks of 100 ns since 1970, and 0 for earlier times. For all times after the
// year 9999 it returns the first tick of the year 10000.
func Ticks(t time.Time) uint64 {
	if t.Unix() > maxTicks/ticksPerSecond {
		return maxTicks + 1
	}
	if t.Unix() < 0 {
		return 0
	}
	return uint64(t.Unix())*ticksPerSecond + uint64(t.Nanosecond())/100
}

// Time is the inverse of Ticks, in UTC.
func Time(ticks uint64) time.Time {
	return time.Unix(int64(ticks/ticksPerSecond), int64(ticks%ticksPerSecond)*100).UTC()
}
