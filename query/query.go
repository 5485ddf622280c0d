// Package query defines queries and their meaning. It does not plan or answer them.
//
// A builder makes a [Query], or [Parse] makes it from text. The result is the same. The conditions
// of a Query are [Expr] values. Only [Matcher] defines the meaning of a condition: it evaluates the
// condition on one document, without indexes. [Value] defines the order of values, and [AppendKey]
// encodes values as index keys that sort in this order.
//
// # What a path reaches
//
// A field's path reaches any number of values of a document. A path goes through
// arrays: lines.product reaches the product of every line. An array at the end
// of a path stands for its elements, but an array among these elements is one
// value. A path that leads nowhere or to an empty array reaches nothing: the
// field is then missing, which is not the same as null. A comparison is true if
// any value that the path reaches satisfies it. [Reader] finds the values, for
// conditions, orders, groups and index entries alike.
//
// # How values compare
//
// The order of all values is missing, null, false, true, numbers, text, arrays, objects. Numbers
// compare by their exact values, whatever their size and notation, up to an exponent of 10^15;
// beyond it, only their digits count. Text compares by its case-folded form; texts that fold to the
// same compare by their original characters. Whether text is equal regardless of case depends on
// the condition. Text folds as IDs do, and folding never changes. Arrays compare among themselves
// by their JSON text, and so do objects. A range matches only values of the kind of its bounds,
// where true and false are of one kind: only numbers are greater than 5.
//
// Instants, which are points in time, are values of their own. A field reaches instants only if it
// is read as a date (see [Date]), and then it reaches no text. Instants compare by time, whatever
// their zone and digits.
//
// # Concurrency
//
// A [Query] and its parts, [Value] included, may be shared as long as no
// goroutine changes them. [Matcher], [Reader], [Sorter], [Projector] and
// [Groups] reuse memory from one document to the next and serve one goroutine;
// the Clone methods make copies for others.
//
// # Stability
//
// The package is public and follows the module's version: until 1.0 its API may
// change. The bytes of AppendKey do not, without a new number of the file format.
package query

import "github.com/jaydb/jay/internal/jsonpath"

// Query is a query, independent of any database. The zero value selects all
// documents. A Query is immutable once it is built.
type Query struct {
	From     string // collection; "" means every document
	Index    string // name of the computed index that is asked instead of documents; "" for none. From is "" then
	Each     Each   // the rest of the query is about its elements; the zero Each means the documents
	Where    Expr   // nil means no condition
	GroupBy  []Field
	Having   Expr      // condition on groups: all its fields have a Func
	Select   []Column  // empty means whole documents
	Distinct bool      // no row twice; whole documents are never the same
	Facets   []Facet   // instead of Select: each counts the answers
	Suggests []Suggest // instead of Select: words of the collection, and no documents
	Script   *Script   // instead of Select: what JavaScript makes of each document
	OrderBy  []Order
	Fused    bool            // the answers come by the ranks that they have in each of OrderBy: see MaxFused. It is false for less than two
	Include  []jsonpath.Path // paths of IDs, whose documents are returned as well

	Highlights   []Highlight // which fragments of texts answers bring
	Explanations bool        // answers bring what their scores are made of
	Timings      bool        // how long the parts of the answer took: for servers, which answer that; package jay refuses it

	Offset   int    // how many answers to skip
	Limit    int    // the greatest number of answers, if HasLimit
	HasLimit bool   // false means no limit
	UseIndex string // name of the index that has to answer; "" leaves the choice to the planner
	NoIndex  bool   // no index answers; UseIndex is "" then
}

// IsDistinct reports whether the query leaves out rows that are the same as an earlier row.
func (q *Query) IsDistinct() bool { return q.Distinct && q.Projects() }

// Projects reports whether the answers are projections and not whole documents. It does not
// consider facets.
func (q *Query) Projects() bool { return len(q.Select) > 0 || q.Script != nil }

// Field is the operand of a condition, an order or a column: a path into the body, or, if Meta is
// set, a part of the metadata or an expression that is computed from other fields.
type Field struct {
	Meta Meta
	Path jsonpath.Path // if Meta is MetaNone, MetaCustom or MetaElement
	Date Date          // read as instants, or as parts of them; of the metadata only MetaLastModified is
	UTC  bool          // of a field with a Date: text without an offset is read, too, as an instant in UTC (At as utc)
	Zone *Zone         // of a part of an instant: where it is that day; nil is UTC
	Func Func          // in a condition on groups: the condition is on this function of the field
	By   *Field        // with FuncFirst and FuncLast: the field whose values are the order

	Expression *Expression // if Meta is MetaExpression: what is computed from other fields

	ends bool // of a Reader: an array at the end of the path is a value, and does not stand for its elements
}

// Whole returns the field with an array at its end as one value, such as a vector; otherwise the
// elements of the array are the values.
func (f Field) Whole() Field {
	f.ends = true
	return f
}

// Date says how a field converts the values that its path reaches. A field that is read as a date
// reaches an instant for each text that is a date-time of RFC 3339, and null for null; it reaches
// nothing else. Its texts are converted to UTC first. With Field.UTC a date and a time without an
// offset is an instant as well, with a T or a blank between the two.
type Date uint8

const (
	DateNone    Date = iota // nothing: values are what they are
	DateInstant             // At as date: a value of KindInstant
	DateYear                // year(At): text such as 2026
	DateMonth               // month(At): text such as 2026-01, the month of one year
	DateDay                 // day(At): text such as 2026-01-31
	DateHour                // hour(At): text such as 2026-01-31T23
)

// Meta is a part of a document's metadata that queries can refer to.
type Meta uint8

const (
	MetaNone         Meta = iota // none: the field is in the body
	MetaID                       // id(): the document's ID; case matters only if the database's IDs are case-sensitive
	MetaCollection               // @metadata.@collection; case never matters
	MetaLastModified             // @metadata.@last-modified: text in RavenDB's format
	MetaChangeVector             // @metadata.@change-vector
	MetaEtag                     // @metadata.@etag: the number of the commit's write, which rises over the whole database
	MetaCustom                   // a path into the custom metadata, such as @metadata.Source
	MetaExpression               // no part of the metadata: Field.Expression
	MetaElement                  // a path that begins with the name of the element of a fan-out: see Each
	MetaScore                    // score(): how well the document matches the searches of the query; only in orders and columns: see Boost
)

// Order is one key of an order.
type Order struct {
	Field      Field
	Column     string // instead of Field: the name of a column of a group
	Descending bool
	As         Cast
}

// Cast converts values before an order compares them.
type Cast uint8

const (
	CastNone   Cast = iota // no conversion
	CastLong               // to an integer, truncated towards zero; numeric text counts as a number, all else is missing
	CastDouble             // to a number; numeric text counts as a number, all else is missing
	CastString             // to text; numbers and booleans become their JSON text, all else is missing
)

// Column is one column of an answer.
type Column struct {
	Name  string // in the answer
	Field Field
	Func  Func
}

// isPicked reports whether the column is first or last of its field.
func (c Column) isPicked() bool { return c.Func == FuncFirst || c.Func == FuncLast }

// Func is the aggregate function of a column. A query with functions but no
// group by makes one group of all documents.
type Func uint8

const (
	FuncNone  Func = iota // the value itself: the group's key
	FuncCount             // the number of documents
	FuncSum               // the sum of all numbers that the field reaches, exact up to 20,000 digits
	FuncAvg               // the mean of the numbers, to 17 digits; null if there are none
	FuncMin               // the least value reached, in the order of all values; null if there is none
	FuncMax               // the greatest value reached

	// FuncCountDistinct is the number of different values that the field reaches in the documents of
	// the group, as count(distinct path) of SQL: null does not count. Values are different as groups
	// are: 1 and 1.0 are one, "a" and "A" two.
	FuncCountDistinct

	// FuncFirst is the value of the field where Field.By has its least value: first(Total order by
	// At). If the field has several values there, it is the least one. Documents without a value of By
	// do not count. A missing value of the field is null. If both paths lead through the same array,
	// the values of each element belong together. In other arrays the least values count.
	FuncFirst
	FuncLast // the same with the greatest values: last(Total order by At)

	// FuncList is an array of the values that the field reaches in the documents of the group, in the
	// order of all values: list(Name). A value that is reached several times is there as often.
	// Missing values are left out, and null is a value. It is bounded: see ListError.
	FuncList
	FuncListDistinct // the same with each different value once: list(distinct Name)
)

// Expr is a condition: And, Or, Not, Compare, CompareFields, Between, In, StartsWith,
// EndsWith, Contains, Regexp, Search, MoreLike, Place, Similar, Exists, ElemMatch, HasSize, HasType or Boost.
type Expr interface{ expr() }

// And is true if all its conditions are. An empty And is true.
type And []Expr

// Or is true if one of its conditions is. An empty Or is false.
type Or []Expr

// Not is true if its condition is false.
type Not struct{ Expr Expr }

// Op is the operator of a comparison.
type Op uint8

const (
	Equal Op = iota
	Less
	LessOrEqual
	Greater
	GreaterOrEqual
)

// Compare is true if the field reaches a value that has the kind of Value, a scalar, and stands in
// the relation Op to it. "Not equal" is Not of Equal, and so true where the field is missing. With
// Fold, case does not matter.
type Compare struct {
	Field Field
	Op    Op
	Value Value
	Fold  bool
}

// Between is true if the field reaches a value of the kind of both bounds that
// lies from Lo to Hi, both included.
type Between struct {
	Field  Field
	Lo, Hi Value
	Fold   bool
}

// In is true if the field reaches a value that equals one of Values; with All,
// if it reaches each of Values.
type In struct {
	Field  Field
	Values []Value
	All    bool
	Fold   bool
}

// StartsWith is true if the field reaches a text that begins with Text.
type StartsWith struct {
	Field Field
	Text  string
	Fold  bool
}

// EndsWith is true if the field reaches a text that ends with Text.
type EndsWith struct {
	Field Field
	Text  string
	Fold  bool
}

// Contains is true if the field reaches a text that contains Text.
type Contains struct {
	Field Field
	Text  string
	Fold  bool
}

// Regexp is true if the field reaches a text that Pattern matches: RE2,
// unanchored, in time linear in the text. With Fold, case does not matter, by the
// rules of package regexp.
type Regexp struct {
	Field   Field
	Pattern string
	Fold    bool
}

// Exists is true if the path leads to a value, null and the empty array
// included.
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
