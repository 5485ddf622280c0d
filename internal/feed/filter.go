package feed

import (
	"bytes"
	"slices"

	"github.com/jaydb/jay/internal/docs"
)

// Filter selects changes. Conditions of one kind are alternatives; those of several
// kinds must all hold. The zero value selects all.
type Filter struct {
	Collections []string // folded
	Prefixes    []string // of folded IDs
	IDs         []string // folded
	Documents   bool     // changes have their documents
	NoDeletions bool     // deletions are left out, and their records not needed
}

// wants reports whether the filter selects the change of a document.
func (f *Filter) wants(collection, folded []byte) bool {
	return (f.Collections == nil || slices.ContainsFunc(f.Collections, func(c string) bool { return docs.SameCollection(collection, c) })) &&
		(f.Prefixes == nil || slices.ContainsFunc(f.Prefixes, func(p string) bool { return bytes.HasPrefix(folded, []byte(p)) })) &&
		(f.IDs == nil || slices.ContainsFunc(f.IDs, func(id string) bool { return string(folded) == id }))
}

// All reports whether the filter selects all changes.
func (f *Filter) All() bool { return f.Collections == nil && f.Prefixes == nil && f.IDs == nil }
