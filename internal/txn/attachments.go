package txn

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// AttachUpload is Attach with an upload, which the transaction closes.
func (t *Tx) AttachUpload(ctx context.Context, o *write.Op, u *attachments.Upload) error {
	if err := t.enter(ctx); err != nil {
		u.Close(false)
		return err
	}
	u.Shrink() // a transaction may have many
	t.uploads = append(t.uploads, u)
	t.exit()
	return t.Attach(ctx, o)
}

// Attach stages a change of attachments.
func (t *Tx) Attach(ctx context.Context, o *write.Op) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	defer t.exit()
	if !t.writable {
		return fmt.Errorf("%w: a transaction of View only reads", ids.ErrUsage)
	}
	if err := t.attachTo(ctx, o); err != nil {
		return write.OpError([]*write.Op{o}, o, err)
	}
	return nil
}

// attachTo is Attach inside the transaction.
func (t *Tx) attachTo(ctx context.Context, o *write.Op) error {
	if err := t.prepareOne(o); err != nil {
		return err
	}
	doc, err := t.lookup(o.FoldedID)
	if err != nil && err != errs.ErrNotFound {
		return err
	}
	if unexpected := t.expectVersion(o); unexpected != nil {
		return unexpected
	}
	if err != nil {
		return err
	}
	o.ID, o.JSON, o.Header = doc.ID(), doc.JSON(), doc.Header()
	list, err := o.Attaching.List(t.db.Writer, o.ID, o.Header.Attachments)
	if err != nil {
		return err
	}
	o.FoldedCollection = format.CollectionKey(string(o.Header.Collection))
	o.Header.Attachments, o.Listed = list, true
	held := 0
	for _, c := range o.Attaching.Changes {
		if c.Upload != nil {
			held += c.Upload.HeldBytes()
		}
	}
	if err := t.checkRoom(held); err != nil {
		return err
	}
	_, err = t.add(ctx, o)
	if err == nil {
		t.bytes += held
	}
	return err
}

// closeUploads ends the uploads of a transaction. t.mu is held.
func (t *Tx) closeUploads() {
	if t.uploads == nil {
		return
	}
	referred := make(map[*attachments.Upload]bool)
	if t.committed {
		for _, o := range t.ops {
			if o.Attaching != nil {
				for _, c := range o.Attaching.Changes {
					referred[c.Upload] = true
				}
			}
		}
	}
	for _, u := range t.uploads {
		u.Close(referred[u])
	}
	t.uploads = nil
}

// list gives an op of the transaction the attachments that its document has before it,
// as far as that is known without a read. before is the previous op of the document,
// nil if there is none.
func (t *Tx) list(o, before *write.Op) {
	switch {
	case o.Listed:
	case o.Verb.MustBeNew(), before != nil && before.Verb.Deletes():
		o.Listed = true
	case before != nil:
		o.Listed, o.Header.Attachments = before.Listed, before.Header.Attachments
	}
}

// showAttachments gives a document that o will write the attachments that it keeps.
// Those of a document that o replaces without having read it are read now, and it joins the
// read set if it has any.
func (t *Tx) showAttachments(o *write.Op) error {
	if o.Listed || o.Verb.Deletes() {
		return nil
	}
	record, closer, err := docs.ReadRecord(t.snapshot, format.NewDocumentKey(o.FoldedID))
	if err == errs.ErrNotFound {
		o.Listed = true
		return nil
	}
	if err != nil {
		return err
	}
	h, _, err := metadata.Decode(record)
	if err == nil && h.Attachments != nil && !docs.IsGone(&h, t.moment.At) {
		o.Header.Attachments = append([]byte(nil), h.Attachments...)
		t.saw(o.FoldedID, write.Version{Node: h.Node, Etag: h.Etag})
	}
	o.Listed = err == nil
	return errs.First(err, closer.Close())
}

// OpenAttachment opens a content for reading until the transaction ends. The transaction
// must have found the entry of the attachment in a document.
func (t *Tx) OpenAttachment(ctx context.Context, hash *format.Hash) (*attachments.Stream, error) {
	if err := t.enter(ctx); err != nil {
		return nil, err
	}
	defer t.exit()
	content, err := t.db.Contents.OpenIn(t.snapshot, hash)
	if err != nil {
		for _, u := range t.uploads {
			if u.Hash() == *hash {
				return nil, fmt.Errorf("%w: what the transaction has put can be read when it is committed", ids.ErrUsage)
			}
		}
		return nil, err
	}
	enter := func() error { return t.enter(context.Background()) }
	return attachments.NewStream(content, enter, t.exit), nil
}
