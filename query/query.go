// Package query says what is asked of a collection, and what it means, apart
// from how it is answered.
//
// A [Query] is made by a builder or by [Parse] from text, and is the same
// either way. Its conditions are [Expr] values; what a condition means is
// decided in one place, [Matcher], which looks at one document and knows no
// index. The order of values, and its form in bytes that indexes keep, is
// [Value] and [AppendKey].
//
// # What a path reaches
//
// A field's path reaches any number of values of a document. A member of an
// array's elements is reached through the array (lines.product reaches the
// product of every line), and an array at the end of a path stands for its
// elements, though an array among these does not again. Nothing is reached if
// the path leads nowhere or to an empty array: the field is then missing,
// which is not null. A comparison is true if any value that is reached
// satisfies it. [Reader] finds what is reached, for conditions, orders, groups
// and the entries of indexes alike.
//
// # How values compare
//
// The order of all values is missing, null, false, true, numbers, text,
// arrays, objects. Numbers compare exactly, whatever their size and however
// they are written, up to an exponent of 10^15; beyond, they compare by their
// digits alone. Text compares by its folded form and then by itself,
// character by character, and is equal with or without regard to case as the
// condition says; folding is that of IDs, and never changes. Arrays, and
// objects, compare among themselves by their JSON text. A range matches only
// values of the kind that bounds it, where both booleans are one kind:
// nothing but numbers is above 5.
//
// # Concurrency
//
// A [Query] and all that it is made of, a [Value] included, may be shared as
// long as nobody changes it. What works on documents ([Matcher], [Reader],
// [Sorter], [Projector], [Groups]) keeps memory from one to the next and is
// for one goroutine; Clone makes more of them.
package query

import "github.com/jaydb/jay/internal/jsonpath"

// Query is one question. The zero value asks for all documents. It is
// immutable once it is built.
type Query struct {
	From     string // collection; "" means every document
	Where    Expr   // nil means no condition
	GroupBy  []Field
	Select   []Column // empty means whole documents
	Distinct bool
	OrderBy  []Order
	Include  []jsonpath.Path // paths of IDs whose documents come along
	Offset   int
	Limit    int  // the most answers, if HasLimit
	HasLimit bool // else there is no limit
}

// Field is what a condition, an order or a column looks at: a path into the
// body, or, if Meta is set, a part of the metadata.
type Field struct {
	Meta Meta
	Path jsonpath.Path // if Meta is MetaNone
}

// Meta is a part of a document's metadata that queries can look at.
type Meta uint8

const (
	MetaNone         Meta = iota // none: the field is in the body
	MetaID                       // id(): the document's ID, text that never regards case unless the database does
	MetaCollection               // @metadata.@collection, text that never regards case
	MetaLastModified             // @metadata.@last-modified: text in RavenDB's form
	MetaChangeVector             // @metadata.@change-vector
)

// Order is one key of an order.
type Order struct {
	Field      Field
	Column     string // instead of Field: the column of a group, by its name
	Descending bool
	As         Cast
}

// Cast changes what an order compares.
type Cast uint8

const (
	CastNone   Cast = iota // values in the order of all values
	CastLong               // whole numbers, cut towards zero; text that is a number counts as one; all else is missing
	CastDouble             // numbers; text that is a number counts as one; all else is missing
	CastString             // text; numbers and booleans count as their JSON text
)

// Column is one column of an answer.
type Column struct {
	Name  string // in the answer
	Field Field
	Func  Func
}

// Func is what a column does with the values of a group. A query with
// functions but no group by is one group, of all documents.
type Func uint8

const (
	FuncNone  Func = iota // the value itself: the group's key
	FuncCount             // how many documents
	FuncSum               // the sum of all numbers reached, exact
	FuncAvg               // their mean, to 17 digits; null if there are none
	FuncMin               // the least value reached in the order of all values; null if none
	FuncMax               // the greatest
)

// Expr is a condition: And, Or, Not, Compare, Between, In, StartsWith,
// EndsWith, Contains, Regexp or Exists.
type Expr interface{ expr() }

// And is true if all its conditions are; without any it is true.
type And []Expr

// Or is true if one of its conditions is; without any it is false.
type Or []Expr

// Not is true if its condition is not.
type Not struct{ Expr Expr }

// Op is how a comparison compares.
type Op uint8

const (
	Equal Op = iota
	Less
	LessOrEqual
	Greater
	GreaterOrEqual
)

// Compare is true if a value that is reached stands in this relation to
// Value, a scalar of the same kind. "Not equal" is Not of Equal, and so true
// where the field is missing. Fold disregards case.
type Compare struct {
	Field Field
	Op    Op
	Value Value
	Fold  bool
}

// Between is true if one value that is reached is of the kind of both bounds
// and from Lo to Hi, both included.
type Between struct {
	Field  Field
	Lo, Hi Value
	Fold   bool
}

// In is true if a value that is reached equals one of Values; with All, if
// each of Values equals one that is reached.
type In struct {
	Field  Field
	Values []Value
	All    bool
	Fold   bool
}

// StartsWith is true if a text that is reached begins with Text. EndsWith and
// Contains are its siblings.
type StartsWith struct {
	Field Field
	Text  string
	Fold  bool
}

// EndsWith is true if a text that is reached ends with Text.
type EndsWith struct {
	Field Field
	Text  string
	Fold  bool
}

// Contains is true if a text that is reached has Text in it.
type Contains struct {
	Field Field
	Text  string
	Fold  bool
}

// Regexp is true if a text that is reached matches Pattern (RE2, unanchored;
// its time is linear in the text). Fold disregards case as package regexp does.
type Regexp struct {
	Field   Field
	Pattern string
	Fold    bool
}

// Exists is true if the path leads to something, be it null or an empty
// array.
type Exists struct{ Field Field }

func (And) expr()        {}
func (Or) expr()         {}
func (Not) expr()        {}
func (Compare) expr()    {}
func (Between) expr()    {}
func (In) expr()         {}
func (StartsWith) expr() {}
func (EndsWith) expr()   {}
func (Contains) expr()   {}
func (Regexp) expr()     {}
func (Exists) expr()     {}
