// Package index has the types of secondary indexes: their declarations, their states, and the
// errors that they cause. Package jay declares, builds and drops indexes.
//
// The package follows the version of the module: within a major version nothing is removed, and
// nothing changes its meaning.
package index

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/spelling"
)

// Index declares a secondary index on one collection. Queries use it
// automatically.
//
// A document has one entry in an index, or one entry for each value that a field reaches in the
// document: Lines.Product has one entry for every line. A document that lacks a field has an entry
// as well, which notes that the field is missing. Entries are committed together with their
// document.
type Index struct {
	// Name identifies the index within its collection, without regard to case. The
	// default is the fields, joined by commas.
	Name string `json:"name"`

	// Fields are the paths of the index's keys, such as "Address.City" or "Lines.Product", the most
	// significant first. "-Price" is descending. There are one to eight.
	//
	// "At as date" holds instants: the times of texts in the form of RFC 3339, and nothing for other
	// text. Comparisons and orders of dates use such a field, and comparisons and orders of text do
	// not. "At as utc" also takes text without an offset as an instant in UTC, and serves conditions
	// and orders "as utc". The first index of a database with "as utc" raises the format of the
	// database: older versions then refuse it.
	//
	// A field may also be an expression of RQL, or a part of a date, such as "Price * Quantity",
	// "-year(At)" or "coalesce(Nickname, Name)". The index serves conditions and orders on the
	// expression. A text with a parenthesis that parses as an expression is an expression: quote the
	// name of a member that looks like one, as in "'year(At)'". lower, upper, trim, parts of dates in
	// a time zone, and texts of more than 1,024 bytes are refused. The first such index raises the
	// format. A document for which the expression fails has no value, and the index notes it: see
	// Failure.
	//
	// An index serves an order by several fields if all of them have the directions of the order in
	// the index, or all of them the opposite directions.
	Fields []string `json:"fields"`

	// Unique refuses a document whose fields have the same values as those of another document, with a
	// *UniqueError. Text is compared exactly. A document in which one of the fields is missing or null
	// is not compared.
	Unique bool `json:"unique,omitempty"`

	// Where is a condition in RQL, such as "Status = 'open'". The index has only the documents that
	// meet the condition. A query uses the index only if the query has the same condition. The default
	// is no condition.
	Where string `json:"where,omitempty"`

	// Kind is the kind of the index. The ordered index, whose kind is "", serves comparisons, ranges,
	// prefixes and orders.
	//
	// "groups" keeps the number of documents of each group, and sums, for queries with group by. Its
	// Fields are the members of a group: fields of the body, or expressions such as "year(At)". Its
	// option "sums" has up to 8 fields or expressions of numbers, such as "Total, Price * Quantity".
	//
	// "ends" has documents, or the elements of an array, in the order of a value, for min, max, first,
	// last and count(distinct) of groups. Its options are "each", "function", "only" and "values".
	//
	// "text" finds documents by the words in their Fields, for conditions with search(). Its option
	// "analyzer" says what words are. The default is "standard". Its option "weights" says how much a
	// field counts for scores. Each of these two options has one value for all fields, or one value
	// per field, as in "keyword, english".
	//
	// "places" finds documents by the coordinates in their Fields, and "vectors" finds the documents
	// whose vectors are nearest to another vector: see docs/places.md and docs/vectors.md.
	//
	// The first index of one of these kinds raises the format of its database: older versions then
	// refuse it. A kind that this version does not know is refused with a *KindError.
	Kind string `json:"kind,omitempty"`

	// Options are the options of the kind, by name, such as the analyzer of a text. The kind defines
	// the options and their values. The ordered index of an expression, "groups" and "ends" have the
	// option "strict": with "yes", a document for which an expression fails is refused with a
	// *ComputeError. An option that is left out has the default of the kind. Indexes leaves an option
	// with its default value out of the declaration that it returns. There are at most 16 options,
	// with values of at most 1,000 bytes. More options, longer values, and options that the kind
	// refuses are an *OptionError. The map is copied.
	Options map[string]string `json:"options,omitempty"`
}

// OptionTexts returns the options as "name=value", in the order of their names. It returns nil if
// there are none.
func (ix Index) OptionTexts() []string {
	var texts []string
	for _, name := range slices.Sorted(maps.Keys(ix.Options)) {
		texts = append(texts, name+"="+ix.Options[name])
	}
	return texts
}

// State says how far an index can be used.
type State string

const (
	// Building is an index that is being filled with existing documents. New documents are entered
	// already. Queries do not use the index yet.
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

// Failure says why an expression of an index fails for a document. The causes are an operand of the
// wrong kind, such as a text in place of a number, a field with several values, a division by zero,
// and a result beyond the bounds. The document has no value for the expression, as in queries. A
// missing operand or null is not a failure.
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
	Other      string // of the other document, which has the values already
}

// Error names the index, the values and both documents.
func (e *UniqueError) Error() string {
	return fmt.Sprintf("jay: unique index %q of %s: %s of document %q is taken by document %q", e.Index, e.Collection, errs.Shorten(e.Value), e.ID, e.Other)
}

// Is makes errors.Is(err, ErrUnique) true.
func (e *UniqueError) Is(target error) bool { return target == errs.ErrUnique }

// ComputeError is returned for a write of a document for which a field of a strict index cannot be
// computed. The build of such an index returns it, too, and ends at the document. errors.Is(err,
// jay.ErrInvalidDocument) is true.
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

// ValueError is returned for a write of a document with a value that a strict index cannot hold,
// such as a vector with another number of dimensions. The build of such an index returns it, too,
// and ends at the document. errors.Is(err, jay.ErrInvalidDocument) is true.
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

// KindError is returned for an index of a kind that this version does not know: when the index is
// declared, and when a document is written into a collection for which a newer version has declared
// such an index. Documents of such a collection can be read. errors.Is(err, jay.ErrIndex) is true.
type KindError struct {
	Index      string
	Collection string
	Kind       string
	Known      string // the kinds that this version knows, such as "ends, groups", if the index was to be declared
}

// Error names the kind and the index, and for a declaration the kinds that there are.
func (e *KindError) Error() string {
	text := "jay: index"
	if e.Index != "" {
		text += fmt.Sprintf(" %q", errs.Shorten(e.Index))
	}
	text += fmt.Sprintf(" of %s is of kind %q, which this version does not know", e.Collection, errs.Shorten(e.Kind))
	if e.Known == "" {
		return text
	}
	text += `: the kinds are ` + e.Known + `, and "" for an ordered index`
	if near := spelling.Nearest(e.Kind, strings.Split(e.Known, ", ")); near != "" {
		text += fmt.Sprintf(": did you mean %q?", near)
	}
	return text
}

// Is makes errors.Is(err, ErrIndex) true.
func (e *KindError) Is(target error) bool { return target == errs.ErrIndex }

// FunctionError is returned if the program has not registered a Go function of a computed index:
// when the index is declared, and when a document is written into a collection of the index.
// Documents of such a collection can be read. errors.Is(err, jay.ErrIndex) is true.
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

// OptionError is returned for an option of an index that the kind does not have, or whose value the
// kind refuses: when the index is declared, and when a document is written into a collection for
// which a newer version has declared such an index. Documents of such a collection can be read.
// errors.Is(err, jay.ErrIndex) is true.
type OptionError struct {
	Index      string
	Collection string
	Kind       string
	Option     string
	Value      string
	Rule       string // that the option breaks, such as "a number from 1 to 4096"
	Unknown    bool   // the kind has no such option: Rule lists those that it has
}

// Error names the index, its kind, the option and the rule, and the value of an option that the kind has.
func (e *OptionError) Error() string {
	text := fmt.Sprintf("jay: index %q of %s", errs.Shorten(e.Index), e.Collection)
	if e.Kind != "" {
		text += fmt.Sprintf(", of kind %q", errs.Shorten(e.Kind))
	}
	if e.Unknown {
		return text + fmt.Sprintf(": there is no option %q: %s", errs.Shorten(e.Option), e.Rule)
	}
	return text + fmt.Sprintf(": option %q is %q, which breaks a rule: %s", errs.Shorten(e.Option), errs.Shorten(e.Value), e.Rule)
}

// Is makes errors.Is(err, ErrIndex) true.
func (e *OptionError) Is(target error) bool { return target == errs.ErrIndex }

// ReferrersError is returned for a write of a document that too many other documents load in one
// index. A commit that changes what they load of the document must make their entries again.
// Nothing is written. errors.Is(err, jay.ErrIndex) is true.
type ReferrersError struct {
	Index      string // its name
	Collection string // of the documents that refer to it
	ID         string // of the document that was to be written
	Limit      int    // the number of documents whose entries a write may make again
}

// Error names the document, the number and the index.
func (e *ReferrersError) Error() string {
	return fmt.Sprintf("jay: document %q: more than %d documents of %s load it for index %q, whose entries would be made again in this commit", errs.Shorten(e.ID), e.Limit, e.Collection, e.Index)
}

// Is makes errors.Is(err, ErrIndex) true.
func (e *ReferrersError) Is(target error) bool { return target == errs.ErrIndex }
