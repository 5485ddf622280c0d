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
//	Name         string  as the caller wrote it
//	Hash         string  the SHA-256 of the content, in base64
//	ContentType  string  the caller's ContentType, or ""
//	Size         int64   in bytes
type Attachment = metadata.Attachment

// Attachments are the attachments of one document: named streams of bytes, such as
// images, that are too large for JSON. DB.Attachments and Tx.Attachments return them.
//
// Contents are written and read as streams, and are never completely in memory. Attachments with the same
// content, of any documents, share one stored copy. It is removed with the last of these attachments.
//
// Putting or removing an attachment is a write of its document, which must exist: the document gets a new
// change vector and time, IfMatch checks the version of the document, and Returning returns its metadata. Put,
// Replace and Patch of the document keep its attachments; Delete removes them. A write ignores the attachments
// in @metadata of the body.
//
// Names are compared like IDs, so "Photo.png" and "photo.png" are the same name. A name has up to 512 bytes of
// valid UTF-8 without control characters. A name is not a path: "../photo.png" has no special meaning. An
// invalid name or content type is an *AttachmentError.
//
// An Attachments is a small value, and holds no resources.
type Attachments struct {
	db *core.Database
	tx *Tx // nil outside of a transaction
	id string
}

// Attachments returns the attachments of the document with this ID.
func (db *DB) Attachments(id string) Attachments { return Attachments{db: &db.core, id: id} }

// ContentType sets the content type of an attachment, such as "image/png", in up to 256 bytes. It is an option
// of Attachments.Put.
func ContentType(contentType string) WriteOption {
	return writeOption(func(o *op) { o.Attached().ContentType = &contentType })
}

// Put stores the bytes of r up to io.EOF as the attachment with this name, replacing an existing attachment of
// this name. The options are ContentType, IfMatch and Returning.
//
// Put writes the content while it reads r, and holds neither a lock nor a snapshot, however long r takes. The
// attachment is committed when Put returns nil, durable as Options.Durability says. If r returns an error or
// panics, or anything else fails, nothing is changed: the written part is removed in the background, or, after
// a crash, by the next Open.
//
// Put returns ErrNotFound if no document with the ID exists. It checks this before it reads r, and again when
// the content is written.
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

// Get opens the attachment with this name for reading. It returns ErrNoAttachment if the document has no such
// attachment, and ErrNotFound if the document does not exist. The caller must close the reader.
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

// Delete removes the attachment with this name. If the document has no such attachment, Delete changes nothing,
// and the document keeps its change vector. The options are IfMatch and Returning.
func (a Attachments) Delete(ctx context.Context, name string, opts ...WriteOption) error {
	o := a.newChange(opts)
	if err := metadata.CheckAttachment(a.id, name, ""); err != nil {
		return attachments.Named(name, err)
	}
	o.Attaching.Changes = []write.AttachmentChange{{Remove: name}}
	return attachments.Named(name, a.write(ctx, o))
}

// newChange is newOp for a change that stores no content.
func (a Attachments) newChange(opts []WriteOption) *op {
	o := a.newOp(opts)
	if o.Attaching.ContentType != nil {
		o.UsageError = fmt.Errorf("%w: ContentType is an option of Put", ErrUsage)
	}
	return o
}

// Rename gives an attachment another name, replacing an existing attachment of that name. The options are IfMatch
// and Returning.
func (a Attachments) Rename(ctx context.Context, name, newName string, opts ...WriteOption) error {
	return attachments.Named(name, a.transact(ctx, func(in Attachments) error {
		entry, err := in.find(ctx, name)
		if err != nil {
			return err
		}
		entry.Name = newName
		o := in.newChange(opts)
		o.Attaching.Changes = []write.AttachmentChange{{Remove: name}, {Entry: entry}}
		return in.write(ctx, o)
	}))
}

// Copy adds the attachment to the document toID, which may be this document, under the name toName; "" means
// the same name. It replaces an existing attachment of that name. Both attachments share the content, which is
// not copied. The options are IfMatch and Returning, of the document toID.
func (a Attachments) Copy(ctx context.Context, name, toID, toName string, opts ...WriteOption) error {
	return attachments.Named(name, a.transact(ctx, func(in Attachments) error {
		return in.copyTo(ctx, name, toID, toName, opts)
	}))
}

// Move copies the attachment, as Copy does, and removes it from this document, in one atomic write. The options are
// IfMatch and Returning, of the document toID.
func (a Attachments) Move(ctx context.Context, name, toID, toName string, opts ...WriteOption) error {
	if a.db.Env.Rules.Fold(a.id) == a.db.Env.Rules.Fold(toID) {
		return a.Rename(ctx, name, cmp.Or(toName, name), opts...)
	}
	return attachments.Named(name, a.transact(ctx, func(in Attachments) error {
		if err := in.copyTo(ctx, name, toID, toName, opts); err != nil {
			return err
		}
		o := in.newOp(nil)
		o.Attaching.Changes = []write.AttachmentChange{{Remove: name}}
		return in.write(ctx, o)
	}))
}

// copyTo is Copy in a transaction.
func (a Attachments) copyTo(ctx context.Context, name, toID, toName string, opts []WriteOption) error {
	entry, err := a.find(ctx, name)
	if err != nil {
		return err
	}
	entry.Name = cmp.Or(toName, entry.Name)
	to := Attachments{db: a.db, tx: a.tx, id: toID}
	o := to.newChange(opts)
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

// AttachmentReader reads an attachment as it was when it was opened, even if the attachment changes later: it
// returns all of the old bytes or ends with an error, and never returns other bytes. A reader holds up to 256
// KiB in memory, and no snapshot: a slow reader keeps only its own content from being removed. A reader from
// Tx.Attachments ends with the transaction.
//
// A reader that reads from the beginning to the end checks the content against its hash: if the content is
// damaged, the reader returns ErrCorrupt instead of the last bytes. After DB.Close a reader returns ErrClosed.
//
// An AttachmentReader is not safe for concurrent use, except for ReadAt. The caller must close it.
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

// ReadAt implements io.ReaderAt. It does not change the offset of Read, and does not check the hash. Several
// goroutines may call ReadAt at once until Close.
func (r *AttachmentReader) ReadAt(p []byte, offset int64) (int, error) {
	return r.stream.ReadAt(p, offset)
}

// Close ends the reader. Later calls of other methods return an error. Close is idempotent.
func (r *AttachmentReader) Close() error {
	r.stream.Close()
	return nil
}

// Attachments returns the attachments of a document, as the transaction sees them. A change of an attachment
// reads the document, which joins the read set. Put reads its stream at once; if the function of the
// transaction runs again, it must pass a new stream. List shows an attachment that was put at once. It can be
// read after the commit: until then Get returns ErrUsage.
func (t *Tx) Attachments(id string) Attachments {
	return Attachments{db: t.inner().Database(), tx: t, id: id}
}
