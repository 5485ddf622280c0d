// Package index is what a secondary index is: its declaration, its state, and the error
// of one that is unique. Package jay declares, builds and drops indexes.
//
// The package follows the version of the module: nothing in it is taken away or changes
// its meaning within a major version.
package index

import (
	"fmt"
	"maps"
	"slices"

	"github.com/jaydb/jay/internal/errs"
)

// Index declares a secondary index on one collection. Queries use it
// automatically.
//
// A document has one entry in an index, or one for each value that a field
// reaches in it: Lines.Product has one for every line. A document that lacks a
// field has an entry, too, that says so. Entries are written with their
// document, in one commit.
type Index struct {
	// Name identifies the index within its collection, without regard to case. The
	// default is the fields, joined by commas.
	Name string `json:"name"`

	// Fields are the paths of the index's keys, such as "Address.City" or
	// "Lines.Product", most significant first; "-Price" is descending. One to
	// eight. "At as date" holds instants: the times that texts of RFC 3339 spell, and
	// nothing for other text; comparisons and orders of dates use it, and none of
	// text. "At as utc" takes text without an offset, too, as an instant in UTC, and serves
	// what is asked as utc. The first such index of a database raises its format: older
	// versions then refuse it.
	//
	// What is no path may be an expression of RQL, or a part of a date, such as "Price * Quantity", "-year(At)" or
	// "coalesce(Nickname, Name)": the index serves conditions and orders on it. A text with a parenthesis that reads as one is
	// an expression, too: a member that is called so stands in quotes, "'year(At)'". lower, upper, trim and parts of dates in
	// a time zone are refused, and more than 1,024 bytes. The first such index raises the format. A document for which the expression
	// fails has no value, and is noted: see Failure.
	//
	// An order by several fields is served by an index in which all of
	// them have the directions asked for, or all the opposite ones.
	Fields []string `json:"fields"`

	// Unique refuses a document whose fields have the values of another one's,
	// with a *UniqueError. Text is compared exactly. A document in which one of
	// the fields is missing or null is not compared.
	Unique bool `json:"unique,omitempty"`

	// Where is a condition in RQL, such as "Status = 'open'": the index has only
	// the documents of which it is true. A query uses the index only if it has
	// the same condition. The default is none.
	Where string `json:"where,omitempty"`

	// Kind is the kind of the index. The ordered index, whose name is "", serves comparisons,
	// ranges, prefixes and orders. "groups" keeps the number of documents of each group, and sums, for
	// queries with group by: then Fields are the members of a group, fields of the body or expressions such as
	// "year(At)", and the option "sums" has fields or expressions of numbers, such as "Total, Price * Quantity", up
	// to 8. "ends" has documents, or the elements of an array, in the order of a value, for min, max, first, last and count(distinct) of groups: its options
	// are "each", "function", "only" and "values". "text" finds documents by the words in their Fields, for conditions with search(); the option "analyzer" says what words
	// are, by default "standard", and "weights" how much a field counts for scores: each is one value for all fields, or one for each, as in "keyword, english". The first index of one of these kinds raises the format of its database: older versions then refuse
	// it. Another name is refused with a *KindError.
	Kind string `json:"kind,omitempty"`

	// Options are what the kind lets a declaration choose, by name, such as the analyzer
	// of a text; the kind says which there are, and what each may be. The ordered index of an expression, "groups" and "ends" have "strict":
	// with "yes" a document for which an expression fails is refused with a *ComputeError. An
	// option that is left out has the default of the kind, and one that is given its default is
	// left out of the declaration that Indexes returns. At most 16, of values with at most 1,000 bytes; others, and those that the kind
	// refuses, are an *OptionError. The map is copied.
	Options map[string]string `json:"options,omitempty"`
}

// OptionTexts returns the options as "name=value", by name, and nil if there are none.
func (ix Index) OptionTexts() []string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(ix.Options)) {
		texts = append(texts, name+"="+ix.Options[name])
	}
	return texts
}

// State is what an index can be used for.
type State string

const (
	// Building is an index that existing documents are being entered
	// into. New ones are entered already; queries do not use it yet.
	Building State = "building"

	// Ready is an index that queries use.
	Ready State = "ready"

	// Dropping is an index whose entries are being removed.
	Dropping State = "dropping"
)

// Info is the declaration of an index and its state.
type Info struct {
	Index
	Collection string `json:"collection"`
	State      State  `json:"state"`
	Automatic  bool   `json:"automatic,omitempty"` // made by Options.AutoIndexes
	Errors     int64  `json:"errors,omitempty"`    // documents for which an expression of the index fails: see Failure
}

// Failure says why an expression of an index fails for a document: an operand of a wrong kind, such as a text in the
// place of a number, a field with several values, a division by zero, a result beyond the bounds. The document has no value for the
// expression, as in queries. Nothing fails where an operand is missing or null.
type Failure struct {
	ID     string `json:"id"`     // of the document
	Field  string `json:"field"`  // the expression
	Reason string `json:"reason"` // such as "/: a division by zero"
}

// UniqueError is returned for a write that would give two documents the same values
// in a unique index. errors.Is(err, jay.ErrUnique) is true.
type UniqueError struct {
	Index      string
	Collection string
	Value      string // the values, as a JSON array
	ID         string // of the document that was refused
	Other      string // of the document that has the values
}

// Error names the index, the values and both documents.
func (e *UniqueError) Error() string {
	return fmt.Sprintf("jay: unique index %q of %s: %s of document %q is taken by document %q", e.Index, e.Collection, errs.Shorten(e.Value), e.ID, e.Other)
}

// Is makes errors.Is(err, ErrUnique) true.
func (e *UniqueError) Is(target error) bool { return target == errs.ErrUnique }

// ComputeError is returned for a write of a document for which a field of a strict index cannot be computed, and by the build of such
// an index, which ends at the document. errors.Is(err, jay.ErrInvalidDocument) is true.
type ComputeError struct {
	Index      string
	Collection string
	Field      string // the expression, such as "Total / Count"
	ID         string // of the document; "" if it has none yet
	Reason     string // such as "/: a division by zero"
}

// Error names the document, the field, the reason and the index.
func (e *ComputeError) Error() string {
	return fmt.Sprintf("jay: strict index %q of %s: %s of document %q cannot be computed: %s", errs.Shorten(e.Index), e.Collection, errs.Shorten(e.Field), e.ID, e.Reason)
}

// Is makes errors.Is(err, ErrInvalidDocument) true.
func (e *ComputeError) Is(target error) bool { return target == errs.ErrInvalid }

// ValueError is returned for a write of a document with a value that a strict index cannot hold, such as a vector of another number of
// dimensions, and by the build of such an index, which ends at the document. errors.Is(err, jay.ErrInvalidDocument) is true.
type ValueError struct {
	Index      string
	Collection string
	Field      string // such as "Embedding"
	ID         string // of the document; "" if it has none yet
	Rule       string // such as "a vector of this index has 768 numbers"
	Value      string // what breaks it, such as "there are 3"
}

// Error names the document, the field, the rule, the value and the index.
func (e *ValueError) Error() string {
	return fmt.Sprintf("jay: strict index %q of %s: %s of document %q: %s: %s", errs.Shorten(e.Index), e.Collection, errs.Shorten(e.Field), e.ID, e.Rule, e.Value)
}

// Is makes errors.Is(err, ErrInvalidDocument) true.
func (e *ValueError) Is(target error) bool { return target == errs.ErrInvalid }

// KindError is returned for an index of a kind that this version does not know: when it
// is declared, and when a document is written into a collection that a newer version has
// given one. Documents of such a collection can be read. errors.Is(err, jay.ErrIndex) is
// true.
type KindError struct {
	Index      string
	Collection string
	Kind       string
}

// Error names the kind and the index.
func (e *KindError) Error() string {
	return fmt.Sprintf("jay: index %q of %s is of kind %q, which this version does not know", errs.Shorten(e.Index), e.Collection, errs.Shorten(e.Kind))
}

// Is makes errors.Is(err, ErrIndex) true.
func (e *KindError) Is(target error) bool { return target == errs.ErrIndex }

// FunctionError is returned where a Go function is needed that the program has not registered: when a computed index with it is declared, and when
// a document is written into a collection that has one. Documents of such a collection can be read. errors.Is(err, jay.ErrIndex) is true.
type FunctionError struct {
	Index      string
	Collection string
	Function   string
	Version    string
}

// Error names the function, its version and the index.
func (e *FunctionError) Error() string {
	return fmt.Sprintf("jay: index %q of %s needs the Go function %q in version %q, which this program has not registered", errs.Shorten(e.Index), e.Collection, errs.Shorten(e.Function), errs.Shorten(e.Version))
}

// Is makes errors.Is(err, ErrIndex) true.
func (e *FunctionError) Is(target error) bool { return target == errs.ErrIndex }

// OptionError is returned for an option of an index that its kind does not have, or not with this
// value: when the index is declared, and when a document is written into a collection that a
// newer version has given one. Documents of such a collection can be read. errors.Is(err, jay.ErrIndex) is true.
type OptionError struct {
	Index      string
	Collection string
	Kind       string
	Option     string
	Value      string
	Rule       string // that the option breaks, such as "a number from 1 to 4096"
}

// Error names the option, its value, the rule, the kind and the index.
func (e *OptionError) Error() string {
	return fmt.Sprintf("jay: index %q of %s, of kind %q: option %q is %q, which breaks a rule: %s", errs.Shorten(e.Index), e.Collection, errs.Shorten(e.Kind), errs.Shorten(e.Option), errs.Shorten(e.Value), e.Rule)
}

// Is makes errors.Is(err, ErrIndex) true.
func (e *OptionError) Is(target error) bool { return target == errs.ErrIndex }

// ReferrersError is returned for a write of a document that too many others load in one index: their entries are made again in the commit
// that changes what they load of it. Nothing is written. errors.Is(err, jay.ErrIndex) is true.
type ReferrersError struct {
	Index      string // its name
	Collection string // of the documents that refer to it
	ID         string // of the document that was to be written
	Limit      int    // of how many documents the entries are made again
}

// Error names the document, the number and the index.
func (e *ReferrersError) Error() string {
	return fmt.Sprintf("jay: document %q: more than %d documents of %s load it for index %q, whose entries would be made again in this commit", errs.Shorten(e.ID), e.Limit, e.Collection, e.Index)
}

// Is makes errors.Is(err, ErrIndex) true.
func (e *ReferrersError) Is(target error) bool { return target == errs.ErrIndex }
