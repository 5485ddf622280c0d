package catalog

import (
	"encoding/binary"
	"fmt"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// Errors of documents
//
// Where an expression of an index fails for a document, it has no value there, as in a query. The index notes it by an entry of
// its own, behind all others:
//
//	'x' number(4) ff id 00 → which(2)     bit i of which is expression i of Computer.Computed, the lowest that of the first
//
// It follows from the body as other entries do, so that it is staged, built, compared and removed with them. Why the
// expression fails is not stored: it is computed again from the document. Part of the on-disk format. Must not change.

// Computer is a Keeper that computes expressions. Their positions are those of the bits in a note, and so a part of the
// on-disk format.
type Computer interface {
	Computed() []query.Field
}

// ElementComputer is a Computer of expressions that are computed for each element of an array of a document.
type ElementComputer interface {
	Computer

	// EachComputed calls fn with what the expressions are computed of: the document, or each of its elements that counts. It returns
	// why there are no elements, if a function fails that gives them.
	EachComputed(body []byte, fn func(query.Doc)) error

	// Elements names what gives the elements.
	Elements() string
}

// Failures are the expressions of an index that fail for a document.
type Failures struct {
	which uint16
	first error // why the first of them does
	field fmt.Stringer
}

// Add notes that expression i, which is f, fails with err. Where err is nil it notes nothing.
func (fs *Failures) Add(i int, f fmt.Stringer, err error) {
	if err == nil {
		return
	}
	if fs.which == 0 {
		fs.first, fs.field = err, f
	}
	fs.which |= 1 << i
}

// NoteFailures adds the note of a document for which expressions of its index fail, if there are any. It returns an error for a document that
// cannot be written because of them: of a strict index, or where an expression computes too much. Then no entry
// may have been added.
func (e *Entries) NoteFailures(d *Document, fs *Failures) error {
	ix := d.x.ci.Indexes[d.index]
	if err := fs.refusal(ix); err != nil || fs.which == 0 || !ix.Errors {
		return err
	}
	e.Add(d, []byte{format.SpaceErrors}, binary.BigEndian.AppendUint16(nil, fs.which))
	return nil
}

// refusal returns why a document cannot be written because expressions of an index fail for it, or nil.
func (fs *Failures) refusal(ix *Index) error {
	if fs.which == 0 {
		return nil
	}
	if large := query.ComputesTooMuch(fs.first); large != nil {
		return &metadata.Error{Rule: fmt.Sprintf("at most %d bytes are computed for %.100s in index %q", large.Limit, fs.field, ix.Info.Name), Limit: large.Limit, Actual: large.Actual}
	}
	if !ix.Strict {
		return nil
	}
	return &index.ComputeError{Index: ix.Info.Name, Collection: ix.Info.Collection, Field: fs.field.String(), Reason: query.Reason(fs.first)}
}

// WithID returns err, which may be nil, with the ID of the document if it is an *index.ComputeError or an *index.ValueError.
func WithID(err error, id string) error {
	if c, is := err.(*index.ComputeError); is && c.ID != id {
		of := *c
		of.ID = id
		return &of
	}
	if v, is := err.(*index.ValueError); is && v.ID != id {
		of := *v
		of.ID = id
		return &of
	}
	return err
}

// appendErrorID appends the folded ID of the document that a note is about.
func appendErrorID(dst, key []byte) ([]byte, error) {
	_, folded, err := EntryKey(key, 1)
	if err != nil || key[5] != format.SpaceErrors {
		return nil, fmt.Errorf("note of an error %x: %w", key, errs.ErrCorrupt)
	}
	return append(dst, folded...), nil
}

// DescribeError describes the key of a note of an error.
func DescribeError(key []byte) string {
	folded, err := appendErrorID(nil, key)
	if err != nil {
		return Hex(key)
	}
	return fmt.Sprintf("error of document %q", folded[:min(len(folded), maxShown)])
}

// isNote reports whether the entry is the note of an error.
func (e *Entry) isNote() bool { return e.added && e.cut == 1 && e.Values[0] == format.SpaceErrors }

// Note returns the value of an entry that is the note of an error, for a Stager.
func (e *Entry) Note() (value []byte, is bool) {
	if !e.isNote() {
		return nil, false
	}
	return e.Values[e.cut:], true
}

// AppendErrorKey appends the key of the note of an error, for a Stager.
func AppendErrorKey(dst []byte, number uint32, folded string) []byte {
	return format.AppendEntryID(append(format.AppendIndexPrefix(dst, number), format.SpaceErrors), folded, false)
}

// IsNoteValue reports whether a note of an error may have this value.
func IsNoteValue(value []byte) bool { return len(value) == 2 && value[0]|value[1] != 0 }

// IsError reports whether a key of an index is the note of an error.
func IsError(key []byte) bool {
	return len(key) > 5 && key[5] == format.SpaceErrors && !IsReference(key)
}

// FailureReader finds out why expressions of an index fail for one document after another. It is not safe for
// concurrent use.
type FailureReader struct {
	fields []query.Field
	reader *query.Reader
	each   func(body []byte, fn func(query.Doc)) error
	what   string // gives the elements
}

// NewFailureReader returns the FailureReader of an index, or nil if it computes nothing.
func (ix *Index) NewFailureReader() *FailureReader {
	c, ok := ix.Keeper.(Computer)
	if !ok {
		return nil
	}
	f := &FailureReader{fields: c.Computed(), each: func(body []byte, fn func(query.Doc)) error { fn(query.Doc{Body: body}); return nil }}
	if of, ok := c.(ElementComputer); ok {
		f.each, f.what = of.EachComputed, of.Elements()
	}
	f.reader = query.NewReader(f.fields)
	f.reader.Apart()
	return f
}

// Failures returns why expressions fail for a document, in their order, without its ID. An expression that fails for several elements
// comes once, with the reason of the first.
func (f *FailureReader) Failures(body []byte) (list []index.Failure) {
	reasons := make([]error, len(f.fields))
	failed := f.each(body, func(doc query.Doc) {
		f.reader.Reset(doc)
		f.reader.Limit(maxIndexEntries)
		for i := range f.fields {
			if reasons[i] == nil {
				reasons[i] = f.reader.Failed(i)
			}
		}
	})
	if failed != nil {
		list = append(list, index.Failure{Field: f.what, Reason: query.Reason(failed)})
	}
	for i, err := range reasons {
		if err != nil {
			list = append(list, index.Failure{Field: f.fields[i].String(), Reason: query.Reason(err)})
		}
	}
	f.reader.Reset(query.Doc{})
	return list
}

// ErrorID returns the folded ID of the document that a note of an error is about, in the memory of its key.
func ErrorID(key []byte) ([]byte, error) {
	folded, ok := CutID(key)
	if !ok || !IsError(key) {
		return nil, fmt.Errorf("note of an error %x: %w", key, errs.ErrCorrupt)
	}
	return folded, nil
}
