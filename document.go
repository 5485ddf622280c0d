package jay

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/patch"
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
	doc, err := db.core.Get(ctx, id)
	return (*Document)(doc), err
}

// GetMany returns the documents with these IDs, in their order, read at one moment.
// A missing document is nil.
func (db *DB) GetMany(ctx context.Context, ids ...string) (all []*Document, err error) {
	if db.core.Watch == nil {
		return getMany(ctx, db, ids)
	}
	err = db.core.Watch.Do(ctx, observe.Operation{Verb: "get many"}, func(ctx context.Context, o *observe.Operation) (err error) {
		all, err = getMany(ctx, db, ids)
		o.Documents = int64(len(all))
		return err
	})
	return all, err
}

func getMany(ctx context.Context, db *DB, ids []string) (_ []*Document, err error) {
	if err := db.core.Env.Enter(); err != nil {
		return nil, err
	}
	defer db.core.Env.Exit()
	moment := db.core.Docs.Moment()
	reader := db.core.Docs.For(ctx)
	snapshot := db.core.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()

	out := make([]*Document, len(ids))
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		doc, err := reader.Read(snapshot, id)
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
	return db.core.Exists(ctx, id)
}

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
	if db.core.Watch == nil {
		return readRaw(ctx, db, id, fn)
	}
	return db.core.Watch.Do(ctx, observe.Operation{Verb: "read", ID: id}, func(ctx context.Context, o *observe.Operation) error {
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
	if !db.core.Env.Pins.Begin() {
		return ErrClosed
	}
	defer db.core.Env.Pins.End()
	folded := db.core.Env.Rules.Fold(id)
	value, closer, err := db.pin(folded)
	if err != nil {
		return fmt.Errorf("read %q: %w", errs.Shorten(id), err)
	}
	defer func() { err = errs.First(err, closer.Close()) }()

	h, body, err := metadata.Decode(value)
	if err != nil {
		return fmt.Errorf("read %q: %w", errs.Shorten(id), err)
	}
	if h.Timed && docs.IsGone(&h, db.core.Docs.Moment()) {
		return fmt.Errorf("read %q: %w", errs.Shorten(id), ErrNotFound)
	}
	doc := &RawDocument{docs.Make(db.core.Env.Origins, folded, h, body)}
	defer func() { doc.d = docs.Document{} }()
	return fn(doc)
}

// pin returns a document's record in the engine's memory, valid until closer is
// closed. It leaves the gate before it returns: user code comes next.
func (db *DB) pin(folded string) (record []byte, closer io.Closer, err error) {
	if err := db.core.Env.Enter(); err != nil {
		return nil, nil, err
	}
	defer db.core.Env.Exit()
	return docs.ReadRecord(db.core.Env.Engine, format.NewDocumentKey(folded))
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

// Scan selects the documents of DB.Documents. The zero value selects all of them.
type Scan struct {
	// Collection limits the walk to one collection; "@empty" is one too.
	Collection string
	// Prefix limits the walk to IDs that begin with it, compared as IDs are.
	Prefix string
	// Matches limits the walk to IDs whose part behind Prefix is like this
	// pattern, and Exclude leaves out those that are like this one. * stands for
	// any characters, ? for one, and | separates alternatives, as in RavenDB's
	// LoadStartingWith: "*-A|*-B". Patterns are compared as IDs are. Every ID
	// behind Prefix is looked at. At most 1,024 bytes each, else ErrUsage.
	Matches string
	Exclude string
	// After begins behind this ID, whether or not it is there: for paging. With Reverse
	// the IDs below it are behind it.
	After string
	// Reverse walks from the greatest ID to the least: with server-side IDs, whose
	// numbers rise, from the newest document to the oldest.
	Reverse bool
	// Limit is the most documents to walk over; 0 means no limit.
	Limit int
}

// documents returns the range of documents that s selects.
func (s Scan) documents() docs.Range {
	return docs.Range{Collection: s.Collection, Prefix: s.Prefix, Matches: s.Matches, Exclude: s.Exclude, After: s.After, Reverse: s.Reverse}
}

// Documents iterates over documents in the byte order of their folded IDs, so that
// users/10-A comes before users/2-A, or in the opposite order. All are as they were when the iteration began.
// Each document belongs to the caller. Leaving the loop early releases everything;
// if the iteration fails, its last pair is a nil document and the error.
//
// A collection is read as one range of documents where its IDs begin with its name,
// as Orders' orders/33-A does; every other document costs a look-up.
func (db *DB) Documents(ctx context.Context, s Scan) iter.Seq2[*Document, error] {
	return func(yield func(*Document, error) bool) {
		var span *observe.Span
		if db.core.Watch != nil {
			span = db.core.Watch.Start(ctx, observe.Operation{Verb: "scan", Collection: s.Collection})
			ctx = span.Context()
			defer span.Finish()
		}
		over := s.documents()
		over.Moment = db.core.Docs.Moment()
		w, err := db.core.Scan(over, db.core.Env.Engine.Snapshot)
		if err != nil {
			yield(nil, span.Fail(fmt.Errorf("documents: %w", err)))
			return
		}
		defer w.Close()
		w.PayWith(ctx)
		for n := 0; s.Limit <= 0 || n < s.Limit; n++ {
			span.Resume()
			doc, err := w.Next(ctx)
			span.Pause()
			if err != nil {
				yield(nil, span.Fail(fmt.Errorf("documents: %w", err)))
				return
			}
			if doc == nil {
				return
			}
			span.Found()
			if !yield((*Document)(doc), nil) {
				return
			}
		}
	}
}

// ID is the ID of a document that holds a T, so that an order's ID cannot be
// passed where a user's is wanted:
//
//	type Order struct {
//		ID       jay.ID[Order]
//		Customer jay.ID[User]
//	}
//
// It is a string in JSON and in databases, can be the ID field of a type, and
// converts to and from string. Which collection an ID belongs to is not
// checked until a document is loaded.
type ID[T any] string

// String returns the ID as it is.
func (id ID[T]) String() string { return string(id) }

const hexDigits = "0123456789ABCDEF"

// EscapeID returns a form of id that goes through one segment of a URL's path
// unharmed, past proxies that resolve dots or decode %2F too: users/1-A becomes
// users~1-A. Letters, digits, '-', '_' and '.' stay, '/' becomes '~', every
// other byte '!' and two hex digits. UnescapeID is its inverse.
func EscapeID(id string) string {
	if id == "." || id == ".." {
		return strings.ReplaceAll(id, ".", "!2E")
	}
	var b strings.Builder
	for i := 0; i < len(id); i++ {
		switch c := id[i]; {
		case isPlain(c):
			b.WriteByte(c)
		case c == '/':
			b.WriteByte('~')
		default:
			b.Write([]byte{'!', hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

// isPlain reports whether a byte stays as it is in an escaped ID.
func isPlain(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_' || c == '.'
}

// UnescapeID returns the ID that EscapeID escaped, or ErrInvalidID for a text that
// EscapeID does not make: every ID has one escaped form.
func UnescapeID(escaped string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		switch c := escaped[i]; {
		case c == '~':
			b.WriteByte('/')
		case c == '!' && i+2 < len(escaped):
			b.WriteByte(unhex(escaped[i+1])<<4 | unhex(escaped[i+2]))
			i += 2
		default:
			b.WriteByte(c)
		}
	}
	id := b.String()
	if EscapeID(id) != escaped {
		return "", fmt.Errorf("unescape id %q: %w: not an escaped id", errs.Shorten(escaped), ErrInvalidID)
	}
	return id, nil
}

// unhex returns the value of a hex digit, or 0 for any other byte.
func unhex(c byte) byte {
	return byte(max(strings.IndexByte(hexDigits, c), 0))
}

// FieldChange is one difference between two bodies. Its fields (see package patch):
//
//	Path      string           of the member or element, as in a patch
//	Kind      patch.ChangeKind added, removed or changed
//	Old, New  json.RawMessage  the values; nil if it was added or removed
type FieldChange = patch.Change
