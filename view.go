package jay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/metadata"
)

// Read calls fn with the document in the memory of the storage engine: nothing is
// copied. The bytes and paths that doc returns are valid until fn returns; fn must
// copy what it keeps, and must not change it. The methods of doc return nothing
// afterwards.
//
// Read returns the error of fn as it is, ErrNotFound if there is no document with
// this ID, and ErrClosed after Close. fn may use the database, but must not close
// it: Close waits for fn. The document does not change while fn runs, whatever is
// written meanwhile; its memory is held that long.
func (db *DB) Read(ctx context.Context, id string, fn func(doc *RawDocument) error) error {
	if db.watch == nil {
		return readRaw(ctx, db, id, fn)
	}
	return db.watch.Do(ctx, observe.Operation{Verb: "read", ID: id}, func(ctx context.Context, o *observe.Operation) error {
		return readRaw(ctx, db, id, func(doc *RawDocument) error {
			o.Documents = 1
			return fn(doc)
		})
	})
}

func readRaw(ctx context.Context, db *DB, id string, fn func(doc *RawDocument) error) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !db.env.Pins.Begin() {
		return ErrClosed
	}
	defer db.env.Pins.End()
	folded := db.env.Rules.Fold(id)
	value, closer, err := db.pin(folded)
	if err != nil {
		return fmt.Errorf("read %q: %w", errs.Shorten(id), err)
	}
	defer func() { err = errs.First(err, closer.Close()) }()

	h, body, err := metadata.Decode(value)
	if err != nil {
		return fmt.Errorf("read %q: %w", errs.Shorten(id), err)
	}
	if h.Timed && docs.IsGone(&h, db.docs.Moment()) {
		return fmt.Errorf("read %q: %w", errs.Shorten(id), ErrNotFound)
	}
	doc := &RawDocument{docs.Make(db.env.Origins, folded, h, body)}
	defer func() { doc.d = docs.Document{} }()
	return fn(doc)
}

// pin returns a document's record in the engine's memory, valid until closer is
// closed. It leaves the gate before it returns: user code comes next.
func (db *DB) pin(folded string) (record []byte, closer io.Closer, err error) {
	if err := db.env.Enter(); err != nil {
		return nil, nil, err
	}
	defer db.env.Exit()
	return docs.ReadRecord(db.env.Engine, format.NewDocumentKey(folded))
}

// RawDocument is a document in the memory of the storage engine, valid as long
// as the function that Read has called. It must not be copied.
type RawDocument struct{ d docs.Document }

// ID is Document.ID. The text may be kept.
func (r *RawDocument) ID() string { return r.d.ID() }

// Collection is Document.Collection. The text may be kept.
func (r *RawDocument) Collection() string { return r.d.Collection() }

// ChangeVector is Document.ChangeVector. The text may be kept.
func (r *RawDocument) ChangeVector() string { return r.d.ChangeVector() }

// Body returns the document's JSON, as Document.Body does, without a copy.
func (r *RawDocument) Body() json.RawMessage { return r.d.JSON() }

// Path is Document.Path, without a copy.
func (r *RawDocument) Path(path string) (raw json.RawMessage, found bool, err error) {
	return r.d.Path(path)
}

// Decode is Document.Decode. What it stores in v may be kept.
func (r *RawDocument) Decode(v any) error { return r.d.Decode(v) }

// Value decodes the one value at a path of a *Document or a *RawDocument, and
// nothing else of it; found is false if there is none. A number that is decoded
// into an interface becomes a json.Number. v may be kept.
//
//	city, found, err := jay.Value[string](doc, "Address.City")
func Value[T any](doc interface {
	Path(path string) (json.RawMessage, bool, error)
}, path string) (v T, found bool, err error) {
	raw, found, err := doc.Path(path)
	if err != nil || !found {
		return v, false, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&v); err != nil {
		return v, true, fmt.Errorf("decode %.100q: %w", path, err)
	}
	return v, true, nil
}
