package feed

import (
	"bytes"
	"slices"

	"github.com/jaydb/jay/internal/docs"
)

// Filter selects changes. Of several values in one field any may match; all fields that
// are set must match. The zero value selects all changes.
type Filter struct {
	Collections []string // folded
	Prefixes    []string // of folded IDs
	IDs         []string // folded
	Documents   bool     // read the documents of the changes
	NoDeletions bool     // leave out deletions; their records need not be kept

	// States asks for what documents are, in place of what was done to them: a document that counts as deleted, since it has expired,
	// comes with Change.Expired; and the deletion of a document that is there again is left out, as its newest write comes later.
	States bool

	// Choose decides about the changes that the other fields select, by the collection as
	// written and the folded ID; nil takes all. What it is given is valid until it returns.
	Choose func(collection, folded []byte) bool
}

// wants reports whether the filter selects changes of a document.
func (f *Filter) wants(collection, folded []byte) bool {
	return (f.Collections == nil || slices.ContainsFunc(f.Collections, func(c string) bool { return docs.SameCollection(collection, c) })) &&
		(f.Prefixes == nil || slices.ContainsFunc(f.Prefixes, func(p string) bool { return bytes.HasPrefix(folded, []byte(p)) })) &&
		(f.IDs == nil || slices.ContainsFunc(f.IDs, func(id string) bool { return string(folded) == id })) &&
		(f.Choose == nil || f.Choose(collection, folded))
}

// All reports whether the filter selects all changes.
func (f *Filter) All() bool {
	return f.Collections == nil && f.Prefixes == nil && f.IDs == nil && f.Choose == nil
}
