package jay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
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
	db *DB
	tx *Tx // nil outside of a transaction
	id string
}

// Attachments returns the attachments of the document with this ID.
func (db *DB) Attachments(id string) Attachments { return Attachments{db: db, id: id} }

// ContentType says what an attachment is, such as "image/png", in up to 256 bytes.
// It is an option of Attachments.Put.
func ContentType(contentType string) WriteOption {
	return func(o *op) { o.Attached().ContentType = &contentType }
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
		return Attachment{}, attachmentError(name, err)
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
	content, err := upload(ctx, a.db, r)
	if err != nil {
		return Attachment{}, nameAttachment(err, a.id, name)
	}
	entry := format.Attachment{Name: name, ContentType: contentType, Size: content.Size(), Hash: content.Hash()}
	o.Attaching.Changes = []write.AttachmentChange{{Entry: entry, Upload: content}}
	if a.tx != nil {
		return entry.Describe(), a.tx.attachUpload(ctx, o, content)
	}
	referred := false
	defer func() { content.Close(referred) }() // a clock may panic
	err = a.db.write(ctx, []*op{o})
	referred = err == nil
	return entry.Describe(), err
}

// Get opens the attachment with this name for reading, or returns ErrNoAttachment, or
// ErrNotFound if there is no document. The caller must close it.
func (a Attachments) Get(ctx context.Context, name string) (*AttachmentReader, error) {
	r, err := a.get(ctx, name)
	if err != nil {
		return nil, attachmentError(name, err)
	}
	return r, nil
}

func (a Attachments) get(ctx context.Context, name string) (*AttachmentReader, error) {
	if a.tx != nil {
		return a.tx.openAttachment(ctx, a, name)
	}
	for {
		r, err := openAttachment(ctx, a.db, a.id, name)
		if !errors.Is(err, attachments.ErrGone) { // it was replaced meanwhile
			return r, err
		}
	}
}

// Stat describes the attachment with this name, or returns ErrNoAttachment.
func (a Attachments) Stat(ctx context.Context, name string) (Attachment, error) {
	entry, err := a.find(ctx, name)
	if err != nil {
		return Attachment{}, attachmentError(name, err)
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
		return attachmentError(name, err)
	}
	o.Attaching.Changes = []write.AttachmentChange{{Remove: name}}
	return attachmentError(name, a.write(ctx, o))
}

// Rename gives an attachment another name, in the place of one that has it.
func (a Attachments) Rename(ctx context.Context, name, newName string) error {
	return attachmentError(name, a.transact(ctx, func(in Attachments) error {
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
	return attachmentError(name, a.transact(ctx, func(in Attachments) error {
		return in.copyTo(ctx, name, toID, toName)
	}))
}

// Move is Copy, and removes the attachment here. Both happen or none.
func (a Attachments) Move(ctx context.Context, name, toID, toName string) error {
	if a.db.env.Rules.Fold(a.id) == a.db.env.Rules.Fold(toID) {
		return a.Rename(ctx, name, cmp.Or(toName, name))
	}
	return attachmentError(name, a.transact(ctx, func(in Attachments) error {
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
		return a.tx.attach(ctx, o)
	}
	return a.db.write(ctx, []*op{o})
}

// transact calls fn with the attachments in a transaction.
func (a Attachments) transact(ctx context.Context, fn func(in Attachments) error) error {
	if a.tx != nil {
		return fn(a)
	}
	return a.db.Update(ctx, func(tx *Tx) error { return fn(tx.Attachments(a.id)) }, Retry())
}

// document returns the document, or ErrNotFound.
func (a Attachments) document(ctx context.Context) (*Document, error) {
	if a.tx != nil {
		return a.tx.Get(ctx, a.id)
	}
	return a.db.Get(ctx, a.id)
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
	return entryOf(a.db, doc.inner().Header().Attachments, a.id, name)
}

// entryOf returns an entry of a document's list, or ErrNoAttachment.
func entryOf(db *DB, list []byte, id, name string) (format.Attachment, error) {
	all, err := format.DecodeAttachments(list)
	if err != nil {
		return format.Attachment{}, err
	}
	if at, found := write.FindAttachment(db.writer, all, name); found {
		return all[at], nil
	}
	return format.Attachment{}, fmt.Errorf("%w: %q has none of this name", ErrNoAttachment, errs.Shorten(id))
}

// attachmentError adds the name of the attachment to an error.
func attachmentError(name string, err error) error {
	var named *AttachmentError
	if err == nil || errors.As(err, &named) && named.Name == name {
		return err
	}
	return fmt.Errorf("attachment %q: %w", errs.Shorten(name), err)
}

// nameAttachment puts the names into an *AttachmentError of an upload.
func nameAttachment(err error, id, name string) error {
	var nameless *AttachmentError
	if errors.As(err, &nameless) && nameless.Name == "" {
		named := *nameless
		named.ID, named.Name = id, name
		return &named
	}
	return err
}

// openContents opens the contents of attachments.
func openContents(db *DB) (err error) {
	if db.contents, err = attachments.Open(db.env); err != nil {
		return err
	}
	db.contents.MaxBytes, db.contents.MaxPerDocument = db.opts.MaxAttachmentBytes, db.opts.MaxAttachments
	db.contents.ChunkBytes = cmp.Or(knobs.AttachmentChunkBytes, attachments.DefaultChunkBytes)
	if knobs.KeepChunks {
		db.contents.Stop()
	}
	return nil
}

// upload writes what r returns, without a reference. Close of the upload must follow if
// it succeeds.
func upload(ctx context.Context, db *DB, r io.Reader) (_ *attachments.Upload, err error) {
	u := db.contents.NewUpload()
	whole := false
	defer func() {
		if !whole { // r may panic
			u.Close(false)
		}
	}()
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		full, err := u.Fill(r) // outside of the gate: it is user code
		if err != nil {
			return nil, err
		}
		if !full {
			whole = true
			return u, nil
		}
		if err := writeChunk(ctx, db, u); err != nil {
			return nil, err
		}
	}
}

func writeChunk(ctx context.Context, db *DB, u *attachments.Upload) error {
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	return u.Write(ctx)
}

// openAttachment opens an attachment for reading. attachments.ErrGone means that it was
// removed meanwhile, or replaced.
func openAttachment(ctx context.Context, db *DB, id, name string) (_ *AttachmentReader, err error) {
	if err := metadata.CheckAttachment(id, name, ""); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	moment := db.docs.Moment()
	snapshot := db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	doc, err := db.docs.Read(snapshot, id)
	doc, err = docs.AliveAt(moment, doc, err)
	if err != nil {
		return nil, getError(id, err)
	}
	entry, err := entryOf(db, doc.Header().Attachments, id, name)
	if err != nil {
		return nil, err
	}
	content, err := db.contents.OpenContent(snapshot, &entry.Hash)
	if err != nil {
		return nil, err
	}
	return newAttachmentReader(entry, attachments.NewStream(content, db.env.Enter, db.env.Exit)), nil
}

// checkContents compares the contents of attachments with the documents that have them,
// in one snapshot.
func checkContents(ctx context.Context, db *DB) error {
	w, err := db.startScan(docs.Range{}, db.env.Engine.Snapshot)
	if err != nil {
		return err
	}
	defer w.Close()
	references := make(map[format.Hash]uint64)
	for more := true; more; {
		var damaged error
		more, err = w.Headers(ctx, 8192, func(_ []byte, h *metadata.Header, _ int) {
			all, err := format.DecodeAttachments(h.Attachments)
			damaged = errs.First(damaged, err)
			for i := range all {
				references[all[i].Hash]++
			}
		})
		if err = errs.First(damaged, err); err != nil {
			return err
		}
	}
	return w.Use(func(r storage.Reader) error { return attachments.Check(ctx, r, references) })
}
