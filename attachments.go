package jay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/txn"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// Attachment describes an attachment of a document, as the member @attachments of its
// @metadata lists it. Its fields (see package metadata):
//
//	Name         string  as it was given
//	Hash         string  the SHA-256 of the content, in base64
//	ContentType  string  what the caller said, or ""
//	Size         int64   in bytes
type Attachment = metadata.Attachment

// Attachments are the attachments of one document: named streams of bytes, such as
// images, that are too large for JSON. DB.Attachments and Tx.Attachments return them.
//
// Contents are written and read as streams and never held in memory whole. A content
// that several attachments have, of whatever documents, is kept once. It goes with the
// last of them.
//
// To put or remove an attachment is a write of its document, which must exist: the
// document gets a new change vector and time, IfMatch works as everywhere, and
// Returning has the metadata of the document. A Put, Replace or Patch of the document keeps its attachments,
// a Delete removes them. What @metadata says of attachments is ignored in a write.
//
// Names are compared as IDs are, so that "Photo.png" and "photo.png" are one. They have up to 512 bytes
// of valid UTF-8 without control characters, and are nothing but names: "../photo.png"
// is one. A name or a content type that cannot be is an *AttachmentError.
//
// An Attachments is a small value; it holds nothing open.
type Attachments struct {
	db *core.Database
	tx *Tx // nil outside of a transaction
	id string
}

// Attachments returns the attachments of the document with this ID.
func (db *DB) Attachments(id string) Attachments { return Attachments{db: &db.core, id: id} }

// ContentType says what an attachment is, such as "image/png", in up to 256 bytes.
// It is an option of Attachments.Put.
func ContentType(contentType string) WriteOption {
	return writeOption(func(o *op) { o.Attached().ContentType = &contentType })
}

// Put stores what r returns up to io.EOF as the attachment with this name, in the place of one
// that the document has under it. The options are ContentType, IfMatch and Returning.
//
// The content is written while r is read, beside the database: it takes neither a lock
// nor a snapshot, however long r takes. The attachment is there when Put returns nil, durable as
// Options.Durability says. If r returns an error, or panics, or anything else fails,
// nothing is changed, and what was written is removed in the background, after a crash by the
// next Open.
//
// Put returns ErrNotFound if there is no document with the ID, before it reads and
// again when the content is there.
func (a Attachments) Put(ctx context.Context, name string, r io.Reader, opts ...WriteOption) (Attachment, error) {
	o := a.newOp(opts)
	stored, err := a.put(ctx, o, name, r)
	if err != nil {
		return Attachment{}, attachments.Named(name, err)
	}
	return stored, nil
}

func (a Attachments) put(ctx context.Context, o *op, name string, r io.Reader) (Attachment, error) {
	if r == nil {
		return Attachment{}, fmt.Errorf("%w: Put without a reader", ErrUsage)
	}
	contentType := ""
	if given := o.Attaching.ContentType; given != nil {
		contentType = *given
	}
	if err := metadata.CheckAttachment(a.id, name, contentType); err != nil {
		return Attachment{}, err
	}
	if err := a.checkDocument(ctx, o.Expected); err != nil {
		return Attachment{}, err
	}
	content, err := a.db.Upload(ctx, r)
	if err != nil {
		return Attachment{}, attachments.WithNames(err, a.id, name)
	}
	entry := format.Attachment{Name: name, ContentType: contentType, Size: content.Size(), Hash: content.Hash()}
	o.Attaching.Changes = []write.AttachmentChange{{Entry: entry, Upload: content}}
	if a.tx != nil {
		return entry.Describe(), a.tx.inner().AttachUpload(ctx, o, content)
	}
	referred := false
	defer func() { content.Close(referred) }() // a clock may panic
	err = a.db.Write(ctx, []*op{o})
	referred = err == nil
	return entry.Describe(), err
}

// Get opens the attachment with this name for reading, or returns ErrNoAttachment, or
// ErrNotFound if there is no document. The caller must close it.
func (a Attachments) Get(ctx context.Context, name string) (*AttachmentReader, error) {
	r, err := a.get(ctx, name)
	if err != nil {
		return nil, attachments.Named(name, err)
	}
	return r, nil
}

func (a Attachments) get(ctx context.Context, name string) (*AttachmentReader, error) {
	if a.tx != nil {
		entry, err := a.find(ctx, name)
		if err != nil {
			return nil, err
		}
		stream, err := a.tx.inner().OpenAttachment(ctx, &entry.Hash)
		return newAttachmentReader(entry, stream, err)
	}
	for {
		entry, stream, err := a.db.OpenAttachment(ctx, a.id, name)
		if !errors.Is(err, attachments.ErrGone) { // it was replaced meanwhile
			return newAttachmentReader(entry, stream, err)
		}
	}
}

// Stat describes the attachment with this name, or returns ErrNoAttachment.
func (a Attachments) Stat(ctx context.Context, name string) (Attachment, error) {
	entry, err := a.find(ctx, name)
	if err != nil {
		return Attachment{}, attachments.Named(name, err)
	}
	return entry.Describe(), nil
}

// List describes the attachments, in the order of their names.
func (a Attachments) List(ctx context.Context) ([]Attachment, error) {
	doc, err := a.document(ctx)
	if err != nil {
		return nil, fmt.Errorf("list attachments: %w", err)
	}
	return doc.Metadata().Attachments, nil
}

// Delete removes the attachment with this name. If the document has none, nothing is
// changed: it keeps its change vector. The options are IfMatch and Returning.
func (a Attachments) Delete(ctx context.Context, name string, opts ...WriteOption) error {
	o := a.newOp(opts)
	if o.Attaching.ContentType != nil {
		o.UsageError = fmt.Errorf("%w: ContentType is an option of Put", ErrUsage)
	}
	if err := metadata.CheckAttachment(a.id, name, ""); err != nil {
		return attachments.Named(name, err)
	}
	o.Attaching.Changes = []write.AttachmentChange{{Remove: name}}
	return attachments.Named(name, a.write(ctx, o))
}

// Rename gives an attachment another name, in the place of one that has it.
func (a Attachments) Rename(ctx context.Context, name, newName string) error {
	return attachments.Named(name, a.transact(ctx, func(in Attachments) error {
		entry, err := in.find(ctx, name)
		if err != nil {
			return err
		}
		entry.Name = newName
		o := in.newOp(nil)
		o.Attaching.Changes = []write.AttachmentChange{{Remove: name}, {Entry: entry}}
		return in.write(ctx, o)
	}))
}

// Copy gives another document, or this one, the attachment under a name, in the place
// of one that it has under it; "" stands for the same name. Both then have the
// same content, which is not copied.
func (a Attachments) Copy(ctx context.Context, name, toID, toName string) error {
	return attachments.Named(name, a.transact(ctx, func(in Attachments) error {
		return in.copyTo(ctx, name, toID, toName)
	}))
}

// Move is Copy, and removes the attachment here. Both happen or none.
func (a Attachments) Move(ctx context.Context, name, toID, toName string) error {
	if a.db.Env.Rules.Fold(a.id) == a.db.Env.Rules.Fold(toID) {
		return a.Rename(ctx, name, cmp.Or(toName, name))
	}
	return attachments.Named(name, a.transact(ctx, func(in Attachments) error {
		if err := in.copyTo(ctx, name, toID, toName); err != nil {
			return err
		}
		o := in.newOp(nil)
		o.Attaching.Changes = []write.AttachmentChange{{Remove: name}}
		return in.write(ctx, o)
	}))
}

// copyTo is Copy in a transaction.
func (a Attachments) copyTo(ctx context.Context, name, toID, toName string) error {
	entry, err := a.find(ctx, name)
	if err != nil {
		return err
	}
	entry.Name = cmp.Or(toName, entry.Name)
	to := Attachments{db: a.db, tx: a.tx, id: toID}
	o := to.newOp(nil)
	o.Attaching.Changes = []write.AttachmentChange{{Entry: entry}}
	return to.write(ctx, o)
}

// newOp returns a write of the document that changes its attachments.
func (a Attachments) newOp(opts []WriteOption) *op {
	o := newOp(write.Attach, a.id, nil, opts)
	o.Attached()
	return o
}

func (a Attachments) write(ctx context.Context, o *op) error {
	if a.tx != nil {
		return a.tx.inner().Attach(ctx, o)
	}
	return a.db.Write(ctx, []*op{o})
}

// transact calls fn with the attachments in a transaction.
func (a Attachments) transact(ctx context.Context, fn func(in Attachments) error) error {
	if a.tx != nil {
		return fn(a)
	}
	return txn.ObservedUpdate(ctx, a.db, func(tx *txn.Tx) error { return fn((*Tx)(tx).Attachments(a.id)) }, txn.Options{Retries: math.MaxInt})
}

// document returns the document, or ErrNotFound.
func (a Attachments) document(ctx context.Context) (*Document, error) {
	if a.tx != nil {
		return a.tx.Get(ctx, a.id)
	}
	doc, err := a.db.Get(ctx, a.id)
	return (*Document)(doc), err
}

// checkDocument returns the error that a write will have which expects a version of the
// document, as far as it can be known before.
func (a Attachments) checkDocument(ctx context.Context, expected *string) error {
	doc, err := a.document(ctx)
	switch {
	case err != nil && !errors.Is(err, ErrNotFound), a.tx != nil, expected == nil:
		return err
	case err != nil && *expected != "":
		return &ConflictError{ID: a.id, Expected: *expected}
	case err == nil && doc.ChangeVector() != *expected:
		return &ConflictError{ID: a.id, Expected: *expected, Actual: doc.ChangeVector()}
	}
	return err
}

// find returns the entry of the attachment with this name, or ErrNoAttachment.
func (a Attachments) find(ctx context.Context, name string) (format.Attachment, error) {
	if err := metadata.CheckAttachment(a.id, name, ""); err != nil {
		return format.Attachment{}, err
	}
	doc, err := a.document(ctx)
	if err != nil {
		return format.Attachment{}, err
	}
	return a.db.EntryOf(doc.inner().Header().Attachments, a.id, name)
}

// AttachmentReader reads an attachment as it was when it was opened, whatever happens
// to it meanwhile: it shows all of the old bytes or ends with an error, and never
// shows others. It holds up to 256 KiB in memory, and no snapshot: one that is read slowly
// keeps nothing but its own content from being removed. One of Tx.Attachments
// ends with the transaction.
//
// A reader that goes from the beginning to the end compares the content with its hash:
// instead of the last bytes it returns ErrCorrupt if the content is damaged. After
// DB.Close it returns ErrClosed.
//
// It is for one goroutine at a time, except for ReadAt. It must be closed.
type AttachmentReader struct {
	info   Attachment
	stream *attachments.Stream
}

var (
	_ io.ReadSeekCloser = (*AttachmentReader)(nil)
	_ io.ReaderAt       = (*AttachmentReader)(nil)
	_ io.WriterTo       = (*AttachmentReader)(nil)
)

func newAttachmentReader(entry format.Attachment, stream *attachments.Stream, err error) (*AttachmentReader, error) {
	if err != nil {
		return nil, err
	}
	return &AttachmentReader{entry.Describe(), stream}, nil
}

// Info describes the attachment.
func (r *AttachmentReader) Info() Attachment { return r.info }

// Read implements io.Reader.
func (r *AttachmentReader) Read(p []byte) (int, error) { return r.stream.Read(p) }

// WriteTo implements io.WriterTo.
func (r *AttachmentReader) WriteTo(w io.Writer) (int64, error) { return r.stream.WriteTo(w) }

// Seek implements io.Seeker, for reads of a range. It is cheap.
func (r *AttachmentReader) Seek(offset int64, whence int) (int64, error) {
	return r.stream.Seek(offset, whence)
}

// ReadAt implements io.ReaderAt. It does not change the offset of Read, does not look
// at the hash, and may be called by several goroutines until Close.
func (r *AttachmentReader) ReadAt(p []byte, offset int64) (int, error) {
	return r.stream.ReadAt(p, offset)
}

// Close ends the reader. Later calls return an error. It is idempotent.
func (r *AttachmentReader) Close() error {
	r.stream.Close()
	return nil
}

// Attachments returns the attachments of a document, as the transaction sees them. A
// change of them reads the document, which joins the read set. Put reads its stream at
// once; if the function runs again, it must give another stream. What it has put can
// be listed at once, and read when it is committed: until then Get returns ErrUsage.
func (t *Tx) Attachments(id string) Attachments {
	return Attachments{db: t.inner().Database(), tx: t, id: id}
}
