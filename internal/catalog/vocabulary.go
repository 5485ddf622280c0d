package catalog

import (
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/storage"
)

// Vocabulary is a Keeper of an index that has the words of documents.
type Vocabulary interface {
	// Analyzer returns what makes the terms of a field.
	Analyzer(field int) *text.Analyzer

	// Terms returns the terms of a field in the documents that r shows, with the changes of the options.
	Terms(r storage.Reader, o *TermOptions) (Terms, error)
}

// TermOptions say which terms are asked for.
type TermOptions struct {
	Field   int          // its place in the index
	Changes GroupChanges // what is seen otherwise than the index has it

	// Wants reports whether a term may be asked for: others may be left out. Terms must not be kept by it.
	Wants func(term []byte) bool

	// First is how many terms are asked for at most, in their order, 0 for no bound. Others may be left out.
	First int

	// Spend is told of the work, in bytes, and returns false to end it; Err says why then.
	Spend func(bytes int) bool
	Err   func() error
}

// Terms are the terms of a field. They are not safe for concurrent use.
type Terms interface {
	// Seek goes to the first term that is not before another text, and returns it; nil at the end. It is valid until the next call.
	Seek(from []byte) (term []byte, err error)

	// Documents returns how many documents have the term, once behind a Seek; it may be 0.
	Documents() (int64, error)

	// Keys returns how many keys have been examined.
	Keys() int64

	Close() error
}
