package transfer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
)

// Sections of RavenDB's dumps that have a meaning for Jay. A DumpReader returns the items of other
// sections, too, and the caller decides about them.
const (
	DumpBuildVersion    = "BuildVersion"
	DumpDatabaseRecord  = "DatabaseRecord"
	DumpDocuments       = "Docs"
	DumpRevisions       = "RevisionDocuments"
	DumpIdentities      = "Identities"
	DumpCompareExchange = "CompareExchange"
)

// dumpTimeSeries is the section whose items are followed by bytes: RavenDB writes no such items
// elsewhere.
const dumpTimeSeries = "TimeSeries"

// Limits of a dump beside those of DumpOptions.
const (
	maxDumpName       = 1 << 10 // bytes of the name of a section
	maxAttachmentSize = 1 << 50
)

// DumpOptions are options of a DumpReader.
type DumpOptions struct {
	// MaxBytes is the size of the largest value, such as a document, without
	// attachments. The default is 32 MiB.
	MaxBytes int
	// MaxDepth is the greatest depth of nesting of a value. The default is 256.
	MaxDepth int
}

// DumpItem is an item of a dump: an element of a section that is an array, or the value of a
// section that is not an array.
type DumpItem struct {
	Record
	// Section is where the item is, such as "Docs".
	Section string
	// Attachment is the content of an attachment, for later documents that name its hash. It is nil
	// for other items.
	Attachment *DumpAttachment
}

// DumpAttachment is the content of an attachment in a dump. It can be read until the next call of
// Next, which skips the rest of the content.
type DumpAttachment struct {
	Hash string // base64 of its SHA-256
	Size int64

	s    *scanner
	left int64
}

// Read implements io.Reader. It returns io.ErrUnexpectedEOF if the dump ends within the
// content.
func (a *DumpAttachment) Read(p []byte) (int, error) {
	if a.left == 0 {
		return 0, io.EOF
	}
	n, err := a.s.read(p[:min(int64(len(p)), a.left)])
	a.left -= int64(n)
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// DumpReader reads a decompressed dump of RavenDB (.ravendbdump): one JSON object, whose members
// are the sections:
//
//	{"BuildVersion":54000,"DatabaseRecord":{…},
//	 "Docs":[{"@metadata":{"@export-type":"Attachment"},"Hash":"…","Size":5,"Tag":"…"}hello,
//	         {"Name":"Ann","@metadata":{"@collection":"Users","@id":"users/1-A","@attachments":[…],…}}],
//	 "RevisionDocuments":[…],"Identities":[{"Key":"users|","Value":"3"}],…}
//
// The content of an attachment follows its description, byte for byte, so a dump with attachments
// is not valid JSON. Documents name an attachment by its hash. A description has no ID: what has an
// @id in its @metadata is a document or a revision, whatever else its @metadata has.
type DumpReader struct {
	s       *scanner
	state   dumpState
	begun   bool   // the first section is known
	first   bool   // no comma is due
	section string // whose elements are read
	item    DumpItem
	failed  error
	skip    [32 << 10]byte
}

type dumpState uint8

const (
	dumpBegins dumpState = iota
	dumpMembers
	dumpElements
	dumpEnded
)

// NewDumpReader returns a reader of src.
func NewDumpReader(src io.Reader, options DumpOptions) *DumpReader {
	if options.MaxBytes <= 0 {
		options.MaxBytes = 32 << 20
	}
	if options.MaxDepth <= 0 {
		options.MaxDepth = 256
	}
	return &DumpReader{s: newScanner(src, options.MaxBytes, options.MaxDepth)}
}

// Next returns the next item, or io.EOF after the end of a complete dump. Any error is final. Next
// does not validate the text of an item, except that its brackets match.
func (d *DumpReader) Next() (DumpItem, error) {
	if d.failed != nil {
		return d.item, d.failed
	}
	item, err := d.next()
	if err == io.EOF && d.state != dumpEnded {
		err = invalid("a dump ends with the brace that closes it", "it ends before, %s", d.where())
	}
	if bad, is := err.(*Error); is {
		bad.Record, bad.Offset = d.item.Number, d.s.offset()
	}
	d.failed = err
	return item, err
}

// where says what is being read.
func (d *DumpReader) where() string {
	switch {
	case d.state == dumpBegins:
		return "where it should begin"
	case d.section != "":
		return "in " + d.section
	}
	return "between its sections"
}

func (d *DumpReader) next() (DumpItem, error) {
	if a := d.item.Attachment; a != nil {
		for a.left > 0 {
			if _, err := a.Read(d.skip[:]); errors.Is(err, io.ErrUnexpectedEOF) {
				return d.item, io.EOF
			} else if err != nil {
				return d.item, err
			}
		}
		d.item.Attachment = nil
	}
	for {
		c, err := d.s.space()
		if err != nil {
			return d.item, err
		}
		switch d.state {
		case dumpBegins:
			if c == 0xef && d.s.offset() == 0 { // a byte order mark
				d.s.i++
				for _, want := range []byte("\xbb\xbf") {
					if c, err = d.s.space(); err != nil || c != want {
						return d.item, invalid("a dump begins with a brace", "it begins with other bytes")
					}
					d.s.i++
				}
				continue
			}
			if c != '{' {
				return d.item, invalid("a dump begins with a brace", "%q", c)
			}
			d.s.i++
			d.state, d.first = dumpMembers, true
			continue
		case dumpEnded:
			return d.item, invalid("a dump ends with the brace that closes it", "more follows")
		}
		closing := byte('}')
		if d.state == dumpElements {
			closing = ']'
		}
		if c == closing {
			d.s.i++
			if d.first = false; d.state == dumpElements {
				d.state, d.section = dumpMembers, ""
				continue
			}
			d.state = dumpEnded
			if _, err := d.s.space(); err != nil {
				return d.item, err
			}
			continue
		}
		if !d.first {
			if c != ',' {
				return d.item, invalid("a comma or a closing bracket follows an item", "%q", c)
			}
			d.s.i++
			if _, err = d.s.space(); err != nil {
				return d.item, err
			}
		}
		d.first = false
		if d.state == dumpElements {
			return d.element()
		}
		if found, err := d.member(); found || err != nil {
			return d.item, err
		}
	}
}

// member reads the name of a section, and its value if that is no array.
func (d *DumpReader) member() (found bool, err error) {
	limit := d.s.maxBytes
	d.s.maxBytes = min(limit, maxDumpName)
	raw, err := d.s.capture()
	d.s.maxBytes = limit
	if err != nil {
		return false, err
	}
	name, isText := unquote(raw)
	if !isText {
		return false, invalid("a section has a name", "%q", cutText(raw))
	}
	if !d.begun {
		switch d.begun = true; name {
		case DumpBuildVersion, DumpDatabaseRecord, DumpDocuments, DumpRevisions, DumpIdentities, DumpCompareExchange:
		default:
			return false, invalid("a dump begins with a section of RavenDB's, as a rule BuildVersion", "this one with %q", cutText(name))
		}
	}
	c, err := d.s.space()
	if err == nil && c != ':' {
		err = invalid("a colon follows the name of a section", "%q", c)
	}
	if err != nil {
		return false, err
	}
	d.s.i++
	if c, err = d.s.space(); err != nil {
		return false, err
	}
	if c == '[' {
		d.s.i++
		d.state, d.section, d.first = dumpElements, name, true
		return false, nil
	}
	d.item.Number++
	d.item.Offset, d.item.Section = d.s.offset(), name
	d.item.Text, err = d.s.capture()
	return true, err
}

// element reads an element of a section.
func (d *DumpReader) element() (DumpItem, error) {
	d.item.Number++
	d.item.Offset, d.item.Section = d.s.offset(), d.section
	text, err := d.s.capture()
	if err != nil {
		return d.item, err
	}
	d.item.Text = text
	size := []byte(nil)
	switch {
	case describesAttachment(text):
		hash := memberText(text, "Hash")
		if size = member(text, "Size"); size == nil || hash == "" {
			return d.item, invalid("an attachment has a Hash and a Size", "%q", cutText(text))
		}
		d.item.Attachment = &DumpAttachment{Hash: hash, s: d.s}
	case d.section == dumpTimeSeries && bytes.Contains(text, []byte(`"@raven-blob-size"`)):
		if size = member(text, "@raven-blob-size"); size == nil {
			return d.item, nil
		}
		d.item.Attachment = &DumpAttachment{s: d.s} // of a time series
	default:
		return d.item, nil
	}
	n, err := strconv.ParseInt(string(size), 10, 64)
	if err != nil || n < 0 || n > maxAttachmentSize {
		d.item.Attachment = nil
		return d.item, invalid(fmt.Sprintf("the size of an attachment is from 0 to %d", int64(maxAttachmentSize)), "%q", cutText(size))
	}
	d.item.Attachment.Size, d.item.Attachment.left = n, n
	return d.item, nil
}

// describesAttachment reports whether the content of an attachment follows an element. A document
// may have the same mark in its custom metadata, and an @id.
func describesAttachment(text []byte) bool {
	if !bytes.Contains(text, []byte(`"@export-type"`)) {
		return false
	}
	m := member(text, "@metadata")
	return memberText(m, "@export-type") == "Attachment" && member(m, "@id") == nil
}
