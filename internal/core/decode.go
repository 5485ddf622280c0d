package core

import (
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
)

// DecodeDocument stores a document in the struct that v points to.
func DecodeDocument(m *codec.Mapping, doc *docs.Document, v any) error {
	if m.Exact {
		if err := doc.Decode(v); err != nil {
			return &metadata.DecodeError{ID: doc.ID(), Err: errors.Unwrap(err)}
		}
	} else if err := m.DecodeJSON(doc.JSON(), v); err != nil {
		return &metadata.DecodeError{ID: doc.ID(), Err: err}
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
		return &metadata.DecodeError{ID: doc.ID(), Err: err}
	}
	return nil
}

// DecodeMember is DecodeDocument for a document that must be in the mapping's
// collection: one of another is a *CollectionError and ErrNotFound.
func DecodeMember(m *codec.Mapping, doc *docs.Document, v any) error {
	if !Owns(m, doc) {
		return &elsewhereError{&metadata.CollectionError{ID: doc.ID(), Current: doc.Collection(), Given: m.Collection}}
	}
	return DecodeDocument(m, doc, v)
}

// elsewhereError is the *CollectionError of a read. The collection has no such
// document, so that it is also ErrNotFound.
type elsewhereError struct{ in *metadata.CollectionError }

// Error says where the document is. It speaks of no write, unlike that of a CollectionError.
func (e *elsewhereError) Error() string {
	return fmt.Sprintf("jay: document %.100q is in collection %.100q, not in %.100q", e.in.ID, e.in.Current, e.in.Given)
}

// Is makes errors.Is(err, ErrNotFound) true.
func (e *elsewhereError) Is(target error) bool { return target == errs.ErrNotFound }

// Unwrap returns the *CollectionError.
func (e *elsewhereError) Unwrap() error { return e.in }

// Owns reports whether a document is in the mapping's collection.
func Owns(m *codec.Mapping, doc *docs.Document) bool {
	h := doc.Header()
	return string(h.Collection) == m.Collection || docs.SameCollection(h.Collection, format.FoldName(m.Collection))
}
