package docs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unsafe"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/pieces"
	"github.com/jaydb/jay/metadata"
)

// Document is a document as it was when it was read. It is what jay.Document is made
// of, which has the documentation for users.
//
// Its header is kept in two thirds of the memory of a metadata.Header: every document that
// is read or cached has one.
type Document struct {
	origins  env.Origins // for the change vector; not the database, which a kept document would keep alive
	foldedID string      // may lie in the document's own memory
	body     []byte

	node, etag, modified, revision uint64
	texts                          unsafe.Pointer // to the bytes in which the parts lie; nil for none
	collection, id                 part
	custom, attachments            part
	timed                          bool
}

// part is where a part of a header lies in Document.texts. One without bytes is a nil
// slice in the header.
type part struct{ at, n uint32 }

// Make returns a document that owns its arguments, but for the header's slices, which it copies.
func Make(origins env.Origins, foldedID string, header metadata.Header, body []byte) Document {
	d := Document{origins: origins, foldedID: foldedID, body: body}
	h := &header
	if n := len(h.Collection) + len(h.ID) + len(h.Custom) + len(h.Attachments); n > 0 {
		texts := make([]byte, 0, n)
		for _, text := range []*[]byte{&h.Collection, &h.ID, &h.Custom, &h.Attachments} {
			start := len(texts)
			texts = append(texts, *text...)
			*text = texts[start:]
		}
		d.texts = unsafe.Pointer(unsafe.SliceData(texts))
	}
	d.setHeader(h)
	return d
}

// decode decodes a record, whose memory the document has from then on.
func (d *Document) decode(record []byte) (err error) {
	var h metadata.Header
	if d.body, err = h.Decode(record); err != nil {
		return fmt.Errorf("document %q: %w", d.foldedID, err)
	}
	d.texts = unsafe.Pointer(unsafe.SliceData(record))
	d.setHeader(&h)
	return nil
}

// setHeader sets the header, whose slices lie in d.texts.
func (d *Document) setHeader(h *metadata.Header) {
	d.node, d.etag, d.modified, d.revision, d.timed = h.Node, h.Etag, h.Modified, h.Revision, h.Timed
	d.collection, d.id, d.custom, d.attachments = d.partOf(h.Collection), d.partOf(h.ID), d.partOf(h.Custom), d.partOf(h.Attachments)
}

// partOf returns where b, which lies in d.texts, begins and how long it is.
func (d *Document) partOf(b []byte) part {
	if len(b) == 0 {
		return part{}
	}
	return part{uint32(uintptr(unsafe.Pointer(unsafe.SliceData(b))) - uintptr(d.texts)), uint32(len(b))}
}

// bytes returns a part.
func (d *Document) bytes(p part) []byte {
	if p.n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(d.texts, p.at)), p.n)
}

// Pinned returns the document at a key, in the memory of key and record: nothing is
// copied.
func (r *Reader) Pinned(key, record []byte) (d Document, err error) {
	d.origins, d.foldedID = r.env.Origins, textOf(format.DocumentID(key))
	return d, d.decode(record)
}

// newDocument decodes record, which the document owns from then on.
func (r *Reader) newDocument(foldedID string, record []byte) (*Document, error) {
	d := &Document{origins: r.env.Origins, foldedID: foldedID}
	if err := d.decode(record); err != nil {
		return nil, err
	}
	return d, nil
}

// CopyDocument decodes a copy of the ID and the record. The document keeps nothing
// of the caller's memory.
func (r *Reader) CopyDocument(foldedID, record []byte) (*Document, error) {
	if err := r.pay(record); err != nil {
		return nil, err
	}
	if len(foldedID)+len(record) > maxDocAlloc {
		return r.newDocument(string(foldedID), pieces.Clone(record))
	}
	d, room := allocDocument(len(foldedID) + len(record))
	n := copy(room, foldedID)
	copy(room[n:], record)
	d.origins, d.foldedID = r.env.Origins, textOf(room[:n])
	if err := d.decode(room[n:]); err != nil {
		return nil, err
	}
	return d, nil
}

// FoldedID returns the document's ID, folded, in the document's memory.
func (d *Document) FoldedID() string { return d.foldedID }

// Header returns the header. What its slices hold must not be changed.
func (d *Document) Header() metadata.Header {
	return metadata.Header{
		Node: d.node, Etag: d.etag, Modified: d.modified, Revision: d.revision, Timed: d.timed,
		Collection: d.bytes(d.collection), ID: d.bytes(d.id), Custom: d.bytes(d.custom), Attachments: d.bytes(d.attachments),
	}
}

// Version returns the node that wrote the document and its etag there.
func (d *Document) Version() (node, etag uint64) { return d.node, d.etag }

// Modified returns Header.Modified.
func (d *Document) Modified() uint64 { return d.modified }

// SetRevision sets Header.Revision.
func (d *Document) SetRevision(number uint64) { d.revision = number }

// SetModified sets Header.Modified.
func (d *Document) SetModified(ticks uint64) { d.modified = ticks }

// IsIn is SameCollection for the document's collection.
func (d *Document) IsIn(folded string) bool { return SameCollection(d.bytes(d.collection), folded) }

// IsGone is IsGone for the document.
func (d *Document) IsGone(moment time.Time) bool {
	if !d.timed || moment.IsZero() {
		return false
	}
	h := d.Header()
	return IsGone(&h, moment)
}

// JSON returns the body, which must not be changed.
func (d *Document) JSON() []byte { return d.body }

// Origins returns the databases behind node numbers, from which the change vector
// is made.
func (d *Document) Origins() env.Origins { return d.origins }

// CloneBody gives the document a body of its own.
func (d *Document) CloneBody() { d.body = bytes.Clone(d.body) }

// Reattach makes the document belong to another handle of the same database.
func (d *Document) Reattach(origins env.Origins) { d.origins = origins }

// ID returns the document's ID in the casing of the newest write.
func (d *Document) ID() string {
	if d.id.n > 0 {
		return string(d.bytes(d.id))
	}
	return strings.Clone(d.foldedID) // an ID that is kept must not keep the document
}

// WrittenID returns the ID of a stored document as it was written.
func WrittenID(h *metadata.Header, folded string) string {
	if h.ID == nil {
		return folded
	}
	return string(h.ID)
}

// Collection returns the name of the collection that the document was saved
// with, or "@empty".
func (d *Document) Collection() string {
	if d.collection.n == 0 {
		return metadata.Empty
	}
	return string(d.bytes(d.collection))
}

// ChangeVector names this version of the document, for IfMatch. A document that a
// transaction has written has no version of its own before the commit: it carries
// the version that it replaces, or "" if there was none.
func (d *Document) ChangeVector() string {
	if d.etag == 0 {
		return ""
	}
	return d.origins.ChangeVector(d.node, d.etag)
}

// Metadata returns all that is known about the document.
func (d *Document) Metadata() metadata.Metadata {
	h := d.Header()
	return metadata.Metadata{
		ID:           d.ID(),
		Collection:   d.Collection(),
		ChangeVector: d.ChangeVector(),
		Etag:         h.Etag,
		LastModified: metadata.Time(h.Modified),
		Custom:       bytes.Clone(h.Custom),
		Attachments:  format.DescribeAttachments(h.Attachments),
		Flags:        h.Flags(),
	}
}

// MarshalJSON returns the body with its @metadata, as RavenDB returns a document:
// the custom keys, @collection, @change-vector, @id, @last-modified.
func (d *Document) MarshalJSON() ([]byte, error) {
	return d.AppendJSON(nil), nil
}

// AppendJSON appends what MarshalJSON returns.
func (d *Document) AppendJSON(dst []byte) []byte {
	m := d.Metadata()
	return metadata.AppendDocument(slices.Grow(dst, len(d.body)+256), d.body, &m)
}

// Decode stores the body in the value that v points to, as json.Unmarshal
// does, but keeps every digit of a number that goes into an interface: it
// becomes a json.Number. IDs are not part of the body: see Collection for
// structs that hold theirs.
func (d *Document) Decode(v any) error {
	decoder := json.NewDecoder(bytes.NewReader(d.body))
	decoder.UseNumber()
	if err := decoder.Decode(v); err != nil {
		return fmt.Errorf("decode %q: %w", d.ID(), err)
	}
	return nil
}

// Path returns the value at a path, such as "Address.City" or "Lines[0].Qty", as it
// is stored, without decoding it; found is false if there is none. A path with []
// in it returns an array of all the values that it reaches, if any. The caller must
// not change raw. A path that does not parse is ErrUsage.
func (d *Document) Path(path string) (raw json.RawMessage, found bool, err error) {
	p, err := jsonpath.Parse(path)
	if err != nil {
		return nil, false, fmt.Errorf("%w: %w", ids.ErrUsage, err)
	}
	if !p.FansOut() {
		raw, found = jsonpath.Get(d.body, p)
		return raw, found, nil
	}
	all := []byte{'['}
	jsonpath.Each(d.body, p, func(value []byte) bool {
		all = append(append(all, value...), ',')
		return true
	})
	if len(all) == 1 {
		return nil, false, nil
	}
	all[len(all)-1] = ']'
	return all, true, nil
}

// docAlloc is a size-class allocation: a Document and, behind it, room for its ID
// and its record, in one piece of memory. The sizes are those in which Go's
// allocator hands out memory, so that a document takes no more of it than separate
// allocations would.
//
// Nothing is shared between allocations: a caller that keeps a document, or only
// its body, keeps the memory of that document and of no other.
type docAlloc[R any] struct {
	document
	room R // an array of bytes
}

// document makes the field in which docAlloc embeds a Document unexported.
type document = Document

const (
	documentBytes = int(unsafe.Sizeof(Document{}))
	typeBytes     = 8 // the allocator's own, in front of what is larger than 512 bytes and holds pointers

	// maxDocAlloc is the most room that an allocation has beside the Document.
	// Larger documents get their own memory for ID and record: clearing the room
	// first would cost more than the one allocation saves.
	maxDocAlloc = 2048 - typeBytes - documentBytes
)

// allocDocument returns a zero Document and n bytes of room, at most maxDocAlloc.
func allocDocument(n int) (*Document, []byte) {
	switch {
	case n <= 256-documentBytes:
		return allocOf[[256 - documentBytes]byte](n)
	case n <= 320-documentBytes:
		return allocOf[[320 - documentBytes]byte](n)
	case n <= 416-documentBytes:
		return allocOf[[416 - documentBytes]byte](n)
	case n <= 512-documentBytes:
		return allocOf[[512 - documentBytes]byte](n)
	case n <= 640-typeBytes-documentBytes:
		return allocOf[[640 - typeBytes - documentBytes]byte](n)
	case n <= 768-typeBytes-documentBytes:
		return allocOf[[768 - typeBytes - documentBytes]byte](n)
	case n <= 896-typeBytes-documentBytes:
		return allocOf[[896 - typeBytes - documentBytes]byte](n)
	case n <= 1024-typeBytes-documentBytes:
		return allocOf[[1024 - typeBytes - documentBytes]byte](n)
	case n <= 1280-typeBytes-documentBytes:
		return allocOf[[1280 - typeBytes - documentBytes]byte](n)
	case n <= 1536-typeBytes-documentBytes:
		return allocOf[[1536 - typeBytes - documentBytes]byte](n)
	default:
		return allocOf[[maxDocAlloc]byte](n)
	}
}

func allocOf[R any](n int) (*Document, []byte) {
	p := new(docAlloc[R])
	return &p.document, unsafe.Slice((*byte)(unsafe.Pointer(&p.room)), n)
}

// textOf returns b as a string without a copy. b must not be changed from then on.
func textOf(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// OrObject returns custom metadata as the object that it is when empty.
func OrObject(custom []byte) []byte {
	if custom == nil {
		return []byte("{}")
	}
	return custom
}
