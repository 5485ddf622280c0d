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
//	ID            string           in the casing of the newest write
//	Collection    string           the collection's name, or "@empty"
//	ChangeVector  string           identifies this version of the document, for IfMatch; compare it only for equality
//	Etag          uint64           the number of the write; etags rise across the whole database
//	LastModified  time.Time        when the document was written, in UTC
//	Custom        json.RawMessage  custom metadata of the program, a JSON object, or nil
//	Attachments   []Attachment     the document's attachments, in the order of their names
//	Flags         metadata.Flags   whether the document has revisions: see package metadata
type Metadata = metadata.Metadata

// Document is a document as a call read it. It is immutable: later writes do not change it.
//
// A Document, or its body, retains the memory of this one document only, whether it was read by ID or in an
// iteration over many.
type Document docs.Document

func (d *Document) inner() *docs.Document { return (*docs.Document)(d) }

// ID returns the document's ID in the casing of the newest write.
func (d *Document) ID() string { return d.inner().ID() }

// Collection returns the name of the document's collection, as the newest write stored it, or "@empty".
func (d *Document) Collection() string { return d.inner().Collection() }

// ChangeVector returns the change vector of this version of the document, for IfMatch. A document that a
// transaction has written has no version of its own before the commit: ChangeVector returns the version that
// the write replaces, or "" if there was none.
func (d *Document) ChangeVector() string { return d.inner().ChangeVector() }

// Body returns the document's JSON without @metadata and without
// insignificant white space. The caller must not change it.
func (d *Document) Body() json.RawMessage { return d.inner().JSON() }

// Metadata returns the metadata of the document.
func (d *Document) Metadata() Metadata { return d.inner().Metadata() }

// MarshalJSON returns the body with its @metadata, in the form in which RavenDB returns a document: the custom
// keys, @collection, @change-vector, @flags, @id, @last-modified.
func (d *Document) MarshalJSON() ([]byte, error) { return d.inner().MarshalJSON() }

// AppendJSON appends what MarshalJSON returns to dst, and returns the extended slice.
func (d *Document) AppendJSON(dst []byte) []byte { return d.inner().AppendJSON(dst) }

// Decode stores the body in the value that v points to, as json.Unmarshal does. Unlike json.Unmarshal, it
// decodes a number into an interface as a json.Number, which keeps every digit. The ID is not part of the body:
// see Collection for structs with an ID field.
func (d *Document) Decode(v any) error { return d.inner().Decode(v) }

// Path returns the stored JSON of the value at a path, such as "Address.City" or "Lines[0].Qty", without
// decoding it. found is false if the document has no value there. A path that contains [] returns an array of
// all values that it reaches, if any. The caller must not change raw. Path returns ErrUsage for a path that
// does not parse.
func (d *Document) Path(path string) (raw json.RawMessage, found bool, err error) {
	return d.inner().Path(path)
}

// Get returns the document with this ID, or ErrNotFound. The comparison of IDs follows Options.CaseSensitive.
// Get looks up "users/" and "users|" literally, and never finds a document for them.
func (db *DB) Get(ctx context.Context, id string) (*Document, error) {
	doc, err := db.core.Get(ctx, id)
	return (*Document)(doc), err
}

// GetMany returns the documents with these IDs, in the order of ids, from one snapshot. A missing document is
// nil.
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
	if err := db.core.Env.EnterRead(); err != nil {
		return nil, err
	}
	defer db.core.Env.Exit()
	moment := db.core.Docs.Moment()
	reader := db.core.Docs.For(ctx)
	snapshot := db.core.Env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()

	folded := make([]string, len(ids))
	for i, id := range ids {
		folded[i] = db.core.Env.Rules.Fold(id)
	}
	ahead, err := reader.ReadAhead(snapshot, folded)
	if err != nil {
		return nil, err
	}
	out := make([]*Document, len(ids))
	for i, id := range ids {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		doc, err := reader.ReadFrom(ahead, snapshot, folded[i])
		doc, err = docs.AliveAt(moment, doc, err)
		if err != nil && err != ErrNotFound {
			return nil, fmt.Errorf("get %q: %w", errs.Shorten(id), err)
		}
		out[i] = (*Document)(doc)
	}
	return out, nil
}

// Exists reports whether a document with this ID exists.
func (db *DB) Exists(ctx context.Context, id string) (found bool, err error) {
	return db.core.Exists(ctx, id)
}

// Read calls fn with the document in the memory of the storage engine, without a copy. The bytes and paths that
// doc returns are valid until fn returns; fn must copy the bytes that it keeps, and must not change them. After
// fn has returned, the methods of doc return zero values.
//
// Read returns the error of fn unchanged, ErrNotFound if no document with this ID exists, and ErrClosed after
// Close. fn may use the database, but must not close it: Close waits for fn. The document does not change while
// fn runs, even if others write it; the engine keeps its memory until fn returns.
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
	if err := db.core.Env.EnterRead(); err != nil {
		return nil, nil, err
	}
	defer db.core.Env.Exit()
	return docs.ReadRecord(db.core.Env.Engine, format.NewDocumentKey(folded))
}

// RawDocument is a document in the memory of the storage engine. It is valid until the function that Read has
// called returns. A RawDocument must not be copied.
type RawDocument struct{ d docs.Document }

// ID returns the same as Document.ID. The caller may keep the string.
func (r *RawDocument) ID() string { return r.d.ID() }

// Collection returns the same as Document.Collection. The caller may keep the string.
func (r *RawDocument) Collection() string { return r.d.Collection() }

// ChangeVector returns the same as Document.ChangeVector. The caller may keep the string.
func (r *RawDocument) ChangeVector() string { return r.d.ChangeVector() }

// Body returns the document's JSON, as Document.Body does, without a copy.
func (r *RawDocument) Body() json.RawMessage { return r.d.JSON() }

// Path returns the same as Document.Path, without a copy.
func (r *RawDocument) Path(path string) (raw json.RawMessage, found bool, err error) {
	return r.d.Path(path)
}

// Decode stores the body in v, as Document.Decode does. The caller may keep v.
func (r *RawDocument) Decode(v any) error { return r.d.Decode(v) }

// Value decodes the value at a path of a *Document or a *RawDocument, and no other part of the document. found
// is false if the document has no value there. A number that is decoded into an interface becomes a
// json.Number. The caller may keep v.
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
	// Collection limits the scan to one collection. "@empty" selects the documents without a collection.
	Collection string
	// Prefix limits the scan to IDs that begin with it. The comparison follows Options.CaseSensitive.
	Prefix string
	// Matches limits the scan to IDs whose part after Prefix matches this pattern. Exclude leaves out IDs whose
	// part after Prefix matches its pattern. In a pattern, * matches any characters, ? matches one, and |
	// separates alternatives, as in RavenDB's LoadStartingWith: "*-A|*-B". The comparison follows
	// Options.CaseSensitive. The scan examines every ID with the prefix. A pattern of more than 1,024 bytes is
	// ErrUsage.
	Matches string
	Exclude string
	// After begins the scan after this ID, whether or not a document has it. Use it for paging. With Reverse,
	// the scan continues with the IDs below it.
	After string
	// Reverse scans from the greatest ID to the least. The numbers of server-side IDs rise, so their documents
	// then come from the newest to the oldest.
	Reverse bool
	// Limit is the greatest number of documents of the scan; 0 means no limit.
	Limit int
}

// documents returns the range of documents that s selects.
func (s Scan) documents() docs.Range {
	return docs.Range{Collection: s.Collection, Prefix: s.Prefix, Matches: s.Matches, Exclude: s.Exclude, After: s.After, Reverse: s.Reverse}
}

// Documents iterates over documents in the byte order of their folded IDs, so users/10-A comes before
// users/2-A, or in the reverse order. The iteration reads a snapshot that it takes when it begins. Each
// document belongs to the caller. Leaving the loop early releases all resources. If the iteration fails, its
// last pair is a nil document and the error.
//
// Documents reads a collection as one key range where the IDs begin with the name of the collection, such as
// orders/33-A in Orders. Every other document of the collection costs a point look-up.
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

// ID is the ID of a document that holds a T. The type prevents passing the ID of an order where the ID of a
// user is expected:
//
//	type Order struct {
//		ID       jay.ID[Order]
//		Customer jay.ID[User]
//	}
//
// An ID is a string in JSON and in databases, can be the ID field of a type, and converts to and from string.
// Its collection is not checked until a document is loaded.
type ID[T any] string

// String returns the ID unchanged.
func (id ID[T]) String() string { return string(id) }

const hexDigits = "0123456789ABCDEF"

// EscapeID returns a form of id that is safe as one segment of a URL's path, even behind proxies that resolve
// dots or decode %2F: users/1-A becomes users~1-A. ASCII letters, digits, '-', '_' and '.' stay, '/' becomes
// '~', and every other byte becomes '!' and two hex digits. The IDs "." and ".." become "!2E" and "!2E!2E".
// UnescapeID is the inverse.
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

// UnescapeID returns the ID that EscapeID escaped. Every ID has one escaped form: UnescapeID returns
// ErrInvalidID for a text that EscapeID does not return.
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
//	Old, New  json.RawMessage  the values; Old is nil if it was added, New if it was removed
type FieldChange = patch.Change
