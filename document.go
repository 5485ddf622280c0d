package jay

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/metadata"
)

// Metadata is what Jay stores about a document, in addition to its body. Its fields
// (see package metadata):
//
//	ID            string           in the case in which it was last written
//	Collection    string           the collection's name, or "@empty"
//	ChangeVector  string           this version of the document, for IfMatch; compare it only for equality
//	Etag          uint64           the number of the write; etags rise over the whole database
//	LastModified  time.Time        when it was written, in UTC
//	Custom        json.RawMessage  the program's own metadata, a JSON object, or nil
//	Attachments   []Attachment     the document's attachments, in the order of their names
//	Flags         metadata.Flags   whether the document has revisions: see package metadata
type Metadata = metadata.Metadata

// Document is a document as it was when it was read. It is immutable and does not
// change with the database.
//
// A Document, or its body, keeps in memory only this one document, whether it was
// read by its ID or while iterating over many.
type Document docs.Document

func (d *Document) inner() *docs.Document { return (*docs.Document)(d) }

func inner(all []*Document) []*docs.Document {
	out := make([]*docs.Document, len(all))
	for i, d := range all {
		out[i] = d.inner()
	}
	return out
}

// ID returns the document's ID in the casing of the newest write.
func (d *Document) ID() string { return d.inner().ID() }

// Collection returns the name of the collection that the document was saved
// with, or "@empty".
func (d *Document) Collection() string { return d.inner().Collection() }

// ChangeVector names this version of the document, for IfMatch. A document that a
// transaction has written has no version of its own before the commit: it carries
// the version that it replaces, or "" if there was none.
func (d *Document) ChangeVector() string { return d.inner().ChangeVector() }

// Body returns the document's JSON without @metadata and without
// insignificant white space. The caller must not change it.
func (d *Document) Body() json.RawMessage { return d.inner().JSON() }

// Metadata returns all that is known about the document.
func (d *Document) Metadata() Metadata { return d.inner().Metadata() }

// MarshalJSON returns the body with its @metadata, as RavenDB returns a document:
// the custom keys, @collection, @change-vector, @flags, @id, @last-modified.
func (d *Document) MarshalJSON() ([]byte, error) { return d.inner().MarshalJSON() }

// Decode stores the body in the value that v points to, as json.Unmarshal
// does, but keeps every digit of a number that goes into an interface: it
// becomes a json.Number. IDs are not part of the body: see Collection for
// structs that hold theirs.
func (d *Document) Decode(v any) error { return d.inner().Decode(v) }

// Path returns the value at a path, such as "Address.City" or "Lines[0].Qty", as it
// is stored, without decoding it; found is false if there is none. A path with []
// in it returns an array of all the values that it reaches, if any. The caller must
// not change raw. A path that does not parse is ErrUsage.
func (d *Document) Path(path string) (raw json.RawMessage, found bool, err error) {
	return d.inner().Path(path)
}

// Get returns the document with this ID, or ErrNotFound. IDs are compared as
// the database compares them; "users/" and "users|" are looked up literally
// and never found.
func (db *DB) Get(ctx context.Context, id string) (*Document, error) {
	if db.watch == nil {
		return getDocument(ctx, db, id)
	}
	var doc *Document
	err := db.watch.Do(ctx, observe.Operation{Verb: "get", ID: id}, func(ctx context.Context, o *observe.Operation) (err error) {
		if doc, err = getDocument(ctx, db, id); err == nil {
			o.Documents = 1
			if db.watch.End != nil {
				o.Collection = doc.Collection()
			}
		}
		return err
	})
	return doc, err
}

func getDocument(ctx context.Context, db *DB, id string) (*Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	var scratch [128]byte
	doc, err := db.docs.Alive(db.docs.Current(db.env.Rules.AppendFold(scratch[:0], id)))
	if err != nil {
		return nil, getError(id, err)
	}
	return (*Document)(doc), nil
}

// getError is the error of a Get. Missing documents are common, so their error is
// cheap to make.
func getError(id string, err error) error {
	if err == ErrNotFound {
		return &missingError{strings.Clone(errs.Shorten(id))}
	}
	return fmt.Errorf("get %q: %w", errs.Shorten(id), err)
}

// missingError is returned by a Get that has found no document with this ID.
type missingError struct{ id string }

func (e *missingError) Error() string { return fmt.Sprintf("get %q: %v", e.id, ErrNotFound) }

// Unwrap returns ErrNotFound.
func (e *missingError) Unwrap() error { return ErrNotFound }

// GetMany returns the documents with these IDs, in their order, read at one moment.
// A missing document is nil.
func (db *DB) GetMany(ctx context.Context, ids ...string) (all []*Document, err error) {
	if db.watch == nil {
		return getMany(ctx, db, ids)
	}
	err = db.watch.Do(ctx, observe.Operation{Verb: "get many"}, func(ctx context.Context, o *observe.Operation) (err error) {
		all, err = getMany(ctx, db, ids)
		o.Documents = int64(len(all))
		return err
	})
	return all, err
}

func getMany(ctx context.Context, db *DB, ids []string) (_ []*Document, err error) {
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	moment := db.docs.Moment()
	snapshot := db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()

	out := make([]*Document, len(ids))
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		doc, err := db.docs.Read(snapshot, id)
		doc, err = docs.AliveAt(moment, doc, err)
		if err != nil && err != ErrNotFound {
			return nil, fmt.Errorf("get %q: %w", errs.Shorten(id), err)
		}
		out[i] = (*Document)(doc)
	}
	return out, nil
}

// Exists reports whether there is a document with this ID.
func (db *DB) Exists(ctx context.Context, id string) (found bool, err error) {
	if db.watch == nil {
		return exists(ctx, db, id)
	}
	err = db.watch.Do(ctx, observe.Operation{Verb: "exists", ID: id}, func(ctx context.Context, _ *observe.Operation) (err error) {
		found, err = exists(ctx, db, id)
		return err
	})
	return found, err
}

func exists(ctx context.Context, db *DB, id string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := db.env.Enter(); err != nil {
		return false, err
	}
	defer db.env.Exit()
	found, err := db.docs.ExistsAlive(db.env.Engine, format.NewDocumentKey(db.env.Rules.Fold(id)))
	if err != nil {
		return false, fmt.Errorf("exists %q: %w", errs.Shorten(id), err)
	}
	return found, nil
}
