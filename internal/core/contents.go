package core

import (
	"context"
	"fmt"
	"io"

	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// Upload writes what r returns, without a reference. Close of the upload must follow if
// it succeeds.
func (db *Database) Upload(ctx context.Context, r io.Reader) (_ *attachments.Upload, err error) {
	u := db.Contents.NewUpload()
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
		if err := db.writeChunk(ctx, u); err != nil {
			return nil, err
		}
	}
}

func (db *Database) writeChunk(ctx context.Context, u *attachments.Upload) error {
	if err := db.Env.Enter(); err != nil {
		return err
	}
	defer db.Env.Exit()
	return u.Write(ctx)
}

// OpenAttachment opens an attachment for reading. attachments.ErrGone means that it was
// removed meanwhile, or replaced.
func (db *Database) OpenAttachment(ctx context.Context, id, name string) (_ format.Attachment, _ *attachments.Stream, err error) {
	if err := metadata.CheckAttachment(id, name, ""); err != nil {
		return format.Attachment{}, nil, err
	}
	if err := ctx.Err(); err != nil {
		return format.Attachment{}, nil, err
	}
	if err := db.Env.Enter(); err != nil {
		return format.Attachment{}, nil, err
	}
	defer db.Env.Exit()
	moment := db.Docs.Moment()
	snapshot := db.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	doc, err := db.Docs.For(ctx).Read(snapshot, id)
	doc, err = docs.AliveAt(moment, doc, err)
	if err != nil {
		return format.Attachment{}, nil, GetError(id, err)
	}
	entry, err := db.EntryOf(doc.Header().Attachments, id, name)
	if err != nil {
		return format.Attachment{}, nil, err
	}
	content, err := db.Contents.OpenContent(snapshot, &entry.Hash)
	if err != nil {
		return format.Attachment{}, nil, err
	}
	return entry, attachments.NewStream(content, db.Env.Enter, db.Env.Exit), nil
}

// EntryOf returns an entry of a document's list, or ErrNoAttachment.
func (db *Database) EntryOf(list []byte, id, name string) (format.Attachment, error) {
	all, err := format.DecodeAttachments(list)
	if err != nil {
		return format.Attachment{}, err
	}
	if at, found := write.FindAttachment(db.Writer, all, name); found {
		return all[at], nil
	}
	return format.Attachment{}, fmt.Errorf("%w: %q has none of this name", errs.ErrNoAttachment, errs.Shorten(id))
}
