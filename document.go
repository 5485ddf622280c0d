package jay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/jaydb/jay/internal/codec"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"

	"github.com/jaydb/jay/internal/format"

	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Metadata is what Jay knows about a stored document, beside its body.
type Metadata = metadata.Metadata

// Document is a document as it was when it was read. It is immutable and does
// not change with the database.
//
// A Document, and a body alone, keeps the memory of this one document and of no
// other, whether it was read by itself or in a walk over many.
type Document struct {
	nodes    env.Origins // for the change vector; not the database, which a body that is kept would keep
	foldedID string      // the ID, folded; it may lie in the document's own memory
	header   metadata.Header
	body     []byte
}

// newDocument decodes record, which the document then owns.
func (db *DB) newDocument(foldedID string, record []byte) (*Document, error) {
	h, body, err := metadata.Decode(record)
	if err != nil {
		return nil, fmt.Errorf("document %q: %w", foldedID, err)
	}
	return &Document{nodes: db.env.Origins, foldedID: foldedID, header: h, body: body}, nil
}

// copyDocument decodes a record in somebody else's memory, of which the document
// keeps nothing.
func (db *DB) copyDocument(foldedID, record []byte) (*Document, error) {
	if len(foldedID)+len(record) > maxDocAlloc {
		return db.newDocument(string(foldedID), bytes.Clone(record))
	}
	d, room := allocDocument(len(foldedID) + len(record))
	n := copy(room, foldedID)
	copy(room[n:], record)
	d.nodes, d.foldedID = db.env.Origins, textOf(room[:n])
	var err error
	if d.body, err = d.header.Decode(room[n:]); err != nil {
		return nil, fmt.Errorf("document %q: %w", foldedID, err)
	}
	return d, nil
}

// ID returns the document's ID in the casing of the newest write.
func (d *Document) ID() string {
	if d.header.ID != nil {
		return string(d.header.ID)
	}
	return strings.Clone(d.foldedID) // an ID that is kept must not keep the document
}

// writtenID returns the ID of a stored document as it was written.
func writtenID(h *metadata.Header, folded string) string {
	if h.ID == nil {
		return folded
	}
	return string(h.ID)
}

// Collection returns the name of the collection that the document was saved
// with, or "@empty".
func (d *Document) Collection() string {
	if len(d.header.Collection) == 0 {
		return metadata.Empty
	}
	return string(d.header.Collection)
}

// ChangeVector names this version of the document, for IfMatch. What a
// transaction has written has no version of its own before the commit: it goes
// by the one that it replaces, or by "" if there was none.
func (d *Document) ChangeVector() string {
	if d.header.Etag == 0 {
		return ""
	}
	return d.nodes.ChangeVector(d.header.Node, d.header.Etag)
}

// Body returns the document's JSON without @metadata and without
// insignificant white space. The caller must not change it.
func (d *Document) Body() json.RawMessage { return d.body }

// Metadata returns all that is known about the document.
func (d *Document) Metadata() Metadata {
	return Metadata{
		ID:           d.ID(),
		Collection:   d.Collection(),
		ChangeVector: d.ChangeVector(),
		Etag:         d.header.Etag,
		LastModified: metadata.Time(d.header.Modified),
		Custom:       bytes.Clone(d.header.Custom),
	}
}

// MarshalJSON returns the body with its @metadata, as RavenDB gives a document
// back: the custom keys, @collection, @change-vector, @id, @last-modified.
func (d *Document) MarshalJSON() ([]byte, error) {
	m := d.Metadata()
	return metadata.AppendDocument(make([]byte, 0, len(d.body)+256), d.body, &m), nil
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

// Get returns the document with this ID, or ErrNotFound. IDs are compared as
// the database compares them; "users/" and "users|" are looked up literally
// and never found.
func (db *DB) Get(ctx context.Context, id string) (*Document, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	var scratch [128]byte
	doc, err := db.readCurrent(db.env.Rules.AppendFold(scratch[:0], id))
	if err != nil {
		return nil, getError(id, err)
	}
	return doc, nil
}

// readCurrent returns a document as it is now, or ErrNotFound itself. It does
// not keep folded.
func (db *DB) readCurrent(folded []byte) (*Document, error) {
	doc, ticket := db.cache.get(folded)
	if doc != nil {
		return doc, nil
	}
	doc, err := db.readKey(db.env.Engine, format.NewDocumentKey(folded))
	if err == nil {
		db.cache.enter(ticket, doc)
	}
	return doc, err
}

// readOwn is readCurrent for what goes into a write: the memory of the document
// is no other reader's, who might have changed it.
func (db *DB) readOwn(folded string) (*Document, error) {
	return db.readFolded(db.env.Engine, folded)
}

// getError is the error of a Get. A missing document is often no surprise, and
// its error is made at little cost.
func getError(id string, err error) error {
	if err == ErrNotFound {
		return &missingError{strings.Clone(id)}
	}
	return fmt.Errorf("get %q: %w", id, err)
}

// missingError says that a Get has found no document with this ID.
type missingError struct{ id string }

func (e *missingError) Error() string { return fmt.Sprintf("get %q: %v", e.id, ErrNotFound) }

// Unwrap returns ErrNotFound.
func (e *missingError) Unwrap() error { return ErrNotFound }

// getInto decodes the document with this ID into v, from the memory of the
// storage engine if it is not in the cache and not to be. No code of the user's
// must run meanwhile: the gate is held.
func (db *DB) getInto(ctx context.Context, m *codec.Mapping, id string, v any) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	var scratch [128]byte
	folded := db.env.Rules.AppendFold(scratch[:0], id)
	doc, ticket := db.cache.get(folded)
	if doc != nil {
		return decodeMember(m, doc, v)
	}
	key := format.NewDocumentKey(folded)
	if ticket.valid {
		doc, err := db.readKey(db.env.Engine, key)
		if err != nil {
			return getError(id, err)
		}
		db.cache.enter(ticket, doc)
		return decodeMember(m, doc, v)
	}

	record, closer, err := readRecord(db.env.Engine, key)
	if err != nil {
		return getError(id, err)
	}
	lent := Document{nodes: db.env.Origins, foldedID: textOf(format.DocumentID(key))}
	if lent.body, err = lent.header.Decode(record); err != nil {
		err = fmt.Errorf("get %q: document %q: %w", id, lent.foldedID, err)
	} else {
		err = decodeMember(m, &lent, v)
	}
	return errs.First(err, closer.Close())
}

// GetMany returns the documents with these IDs, in their order, all as they
// were at one moment. A missing one is nil.
func (db *DB) GetMany(ctx context.Context, ids ...string) (_ []*Document, err error) {
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	snapshot := db.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()

	docs := make([]*Document, len(ids))
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		doc, err := db.read(snapshot, id)
		if err != nil && err != ErrNotFound {
			return nil, fmt.Errorf("get %q: %w", id, err)
		}
		docs[i] = doc
	}
	return docs, nil
}

// Exists tells whether there is a document with this ID.
func (db *DB) Exists(ctx context.Context, id string) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}
	if err := db.env.Enter(); err != nil {
		return false, err
	}
	defer db.env.Exit()
	found, err := exists(db.env.Engine, format.NewDocumentKey(db.env.Rules.Fold(id)))
	if err != nil {
		return false, fmt.Errorf("exists %q: %w", id, err)
	}
	return found, nil
}

// read returns a document by its ID, or ErrNotFound itself.
func (db *DB) read(r getter, id string) (*Document, error) {
	return db.readFolded(r, db.env.Rules.Fold(id))
}

func (db *DB) readFolded(r getter, folded string) (*Document, error) {
	return db.readKey(r, format.NewDocumentKey(folded))
}

// readKey returns the document at a key, or ErrNotFound itself.
func (db *DB) readKey(r getter, key []byte) (*Document, error) {
	record, closer, err := readRecord(r, key)
	if err != nil {
		return nil, err
	}
	doc, err := db.copyDocument(format.DocumentID(key), record)
	return doc, errs.First(err, closer.Close())
}

// readRecord returns the document at a key as it is stored, in the reader's
// memory, to be given back by closer, or ErrNotFound itself.
func readRecord(r getter, key []byte) (record []byte, closer io.Closer, err error) {
	record, closer, err = r.Get(key)
	if err == storage.ErrNotFound {
		err = ErrNotFound
	}
	return record, closer, err
}
