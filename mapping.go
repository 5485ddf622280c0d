package jay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
)

// mappingOf returns the mapping of t. It returns ErrType if t cannot be
// stored.
func (db *DB) mappingOf(t reflect.Type, opts []CollectionOption) (*codec.Mapping, error) {
	if t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("%w: %s is not a struct", ErrType, t)
	}
	m := &codec.Mapping{Type: t, Members: new(codec.KnownPaths)}
	for _, option := range opts {
		option(m)
	}
	if m.Err != nil {
		return nil, m.Err
	}
	conventions := db.opts.Conventions
	if m.Collection == "" && conventions.CollectionName != nil {
		m.Collection = conventions.CollectionName(t)
	}
	if m.Collection == "" {
		m.Collection = ids.CollectionName(t)
	}
	if m.Collection == "" {
		return nil, fmt.Errorf("%w: %s has no name: use jay.Named", ErrType, t)
	}
	if m.Prefix == "" {
		m.Prefix = conventions.Prefix(m.Collection)
	}
	if err := cmp.Or(metadata.CheckCollection(m.Collection), db.writer.CheckTag(m.Prefix)); err != nil {
		return nil, fmt.Errorf("collection %.100q: %w", m.Collection, err)
	}
	switch {
	case m.MakeID != nil:
	case conventions.ID != nil:
		m.MakeID = func(ctx context.Context, v any) (string, error) { return conventions.ID(ctx, m.Collection, v) }
	case conventions.IDRequest != nil:
		WithIDRequest(conventions.IDRequest(m.Collection))(m)
	}
	if m.MakeID != nil && !m.Requests {
		m.MakeID = semanticOnly(db.resolver, m.MakeID)
	}
	if m.IDField == "" && conventions.IDField != nil {
		m.IDField = conventions.IDField(t)
	}
	if err := m.FindID(); err != nil {
		return nil, err
	}
	if err := m.FindVersion(); err != nil {
		return nil, err
	}
	if err := m.FindMeta(); err != nil {
		return nil, err
	}
	m.Exact = codec.HoldsInterface(t, nil)
	m.Inspect()
	return m, nil
}

// semanticOnly returns a generator that refuses what makeID returns if it is a
// request for another strategy.
func semanticOnly(resolver *ids.Resolver, makeID func(context.Context, any) (string, error)) func(context.Context, any) (string, error) {
	return func(ctx context.Context, v any) (string, error) {
		id, err := makeID(ctx, v)
		if err != nil {
			return "", err
		}
		if _, strategy := resolver.Request(id); strategy != ids.Semantic {
			return "", &IDError{ID: id, Actual: max(0, len(id)-1), Rule: fmt.Sprintf("a generator returns the id itself, and this is a request for a %s id", strategy)}
		}
		return id, nil
	}
}

// decodeDocument stores a document in the struct that v points to.
func decodeDocument(m *codec.Mapping, doc *docs.Document, v any) error {
	if m.Exact {
		if err := doc.Decode(v); err != nil {
			return &DecodeError{ID: doc.ID(), Err: errors.Unwrap(err)}
		}
	} else if err := m.DecodeJSON(doc.JSON(), v); err != nil {
		return &DecodeError{ID: doc.ID(), Err: err}
	}
	version := ""
	if m.Version != nil {
		version = doc.ChangeVector()
	}
	m.SetIdentity(v, doc.ID(), version)
	if m.Meta == nil {
		return nil
	}
	h := doc.Header()
	if err := m.SetMeta(v, metadata.Time(h.Modified), doc.Collection(), h.Custom, true); err != nil {
		return &DecodeError{ID: doc.ID(), Err: err}
	}
	return nil
}

// setResult writes what a write has made into its value: the ID, the version, and what a
// field shows of the metadata. What the result lacks, as it is not committed, stays.
func setResult(m *codec.Mapping, v any, result Metadata) {
	m.SetIdentity(v, result.ID, cmp.Or(result.ChangeVector, m.GetVersion(v)))
	if m.Meta != nil && !result.LastModified.IsZero() {
		_ = m.SetMeta(v, result.LastModified, result.Collection, nil, false) // only decoding can fail
	}
}

// setCustom makes the custom metadata that the fields of a value hold that of its write,
// unless an option gives it.
func setCustom(m *codec.Mapping, o *op, v any) (err error) {
	if m.Meta.WritesCustom() && o.Custom == nil {
		o.Custom, err = m.Custom(v, nil)
	}
	return err
}

// decodeMember is decodeDocument for a document that must be in the mapping's
// collection: one of another is a *CollectionError and ErrNotFound.
func decodeMember(m *codec.Mapping, doc *docs.Document, v any) error {
	if !owns(m, doc) {
		return &elsewhereError{&CollectionError{ID: doc.ID(), Current: doc.Collection(), Given: m.Collection}}
	}
	return decodeDocument(m, doc, v)
}

// elsewhereError is the *CollectionError of a read. The collection has no such
// document, so that it is also ErrNotFound.
type elsewhereError struct{ in *CollectionError }

// Error says where the document is. It speaks of no write, unlike that of a CollectionError.
func (e *elsewhereError) Error() string {
	return fmt.Sprintf("jay: document %.100q is in collection %.100q, not in %.100q", e.in.ID, e.in.Current, e.in.Given)
}

// Is makes errors.Is(err, ErrNotFound) true.
func (e *elsewhereError) Is(target error) bool { return target == ErrNotFound }

// Unwrap returns the *CollectionError.
func (e *elsewhereError) Unwrap() error { return e.in }

// owns reports whether a document is in the mapping's collection.
func owns(m *codec.Mapping, doc *docs.Document) bool {
	h := doc.Header()
	return string(h.Collection) == m.Collection || docs.SameCollection(h.Collection, format.FoldName(m.Collection))
}

// newValueOp returns the write of a value, which is still to be encoded.
func newValueOp(ctx context.Context, m *codec.Mapping, verb write.Verb, v any, opts []WriteOption) (*op, error) {
	id := m.GetID(v)
	made := id == "" && m.MakeID != nil
	if made {
		var err error
		if id, err = m.MakeID(ctx, v); err != nil {
			return nil, fmt.Errorf("make an id for %s: %w", m.Collection, err)
		}
	}
	if id == "" && verb == write.Replace {
		return nil, fmt.Errorf("%w: Replace of a %s without an id", ErrUsage, m.Type)
	}
	o := newOp(verb, id, nil, opts)
	o.HiLo = id == "" && !made
	o.Prefix = m.Prefix
	if o.Expected == nil && !o.AnyVersion && m.Version != nil && verb != write.Insert && id != "" && !made {
		if version := m.GetVersion(v); version != "" || verb != write.Replace {
			o.Expected = &version
		}
	}
	if o.Collection != "" && format.FoldName(o.Collection) != format.FoldName(m.Collection) {
		o.UsageError = fmt.Errorf("%w: InCollection(%.100q) on the collection %.100q", ErrUsage, o.Collection, m.Collection)
	}
	o.Collection = m.Collection
	return o, nil
}

// CollectionOption changes how one collection is mapped.
type CollectionOption func(*codec.Mapping)

// WithIDRequest replaces HiLo: a value whose ID field is empty is stored under this
// request, as in DB.Put: "invoices|" makes an identity, "logs/" a server-side ID and
// "" a GUID.
func WithIDRequest(request string) CollectionOption {
	return func(m *codec.Mapping) {
		m.Requests = true
		m.MakeID = func(context.Context, any) (string, error) { return request, nil }
	}
}
