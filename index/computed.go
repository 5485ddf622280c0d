package index

import "encoding/json"

// Computed declares an index whose entries are computed from documents: members of each document, or of
// each element of one of its arrays, and counts and sums of groups of them. A query reads it by its name, as
// in "from index 'Orders/ByProduct' where Total > 100", and its results are the members.
//
// Declarations of RavenDB's clients, in C# and in JavaScript, become such declarations.
type Computed struct {
	// Name identifies the index within its database, without regard to case, such as "Orders/ByProduct". It has 1 to 128
	// bytes.
	Name string `json:"name"`

	// Maps say what documents have in the index, 1 to 16. All of them have members of the same names.
	Maps []Map `json:"maps"`

	// Reduce, if there is one, makes groups of what the maps give.
	Reduce *Reduce `json:"reduce,omitempty"`

	// Strict refuses a write of a document for which an expression fails, such as by a division by zero. Otherwise the document is
	// written, counts as one in which the member is missing, as in a query, and is among the errors of the index. A declaration is
	// refused if there is an expression that no part of the index keeps.
	Strict bool `json:"strict,omitempty"`
}

// Map is what documents of one collection have in a computed index.
type Map struct {
	// Collection is that of the documents. Empty is all documents.
	Collection string `json:"collection"`

	// Each is the path of an array, such as "Lines": the document has an entry for each element, and none if there is no element.
	// Empty is one entry for each document.
	Each string `json:"each,omitempty"`

	// Function is the name of a Go function that gives the entries of a document, in place of Each, and Version its version: see
	// jay.RegisterFunction. Another version is another declaration, and is built beside the old one. Both are empty for none.
	Function string `json:"function,omitempty"`
	Version  string `json:"version,omitempty"`

	// As is the name of the element of Each, or of the entry of Function, in the expressions: with "line", the text "line.Price" is the price of
	// the line, and "Customer" that of the document.
	As string `json:"as,omitempty"`

	// Where is a condition in RQL: documents, or elements, of which it is not true have no entry. Empty is none.
	Where string `json:"where,omitempty"`

	// Select has the members of an entry, 1 to 32. The expression fields(Attributes, Name, Value) stands for fields whose names are in the
	// document, whatever the name of the member: of each element of the array Attributes, Name has the name of a field, and Value its value. Conditions
	// name such fields as they name members, as in "where Color = 'red'"; nothing else does.
	Select []Member `json:"select"`
}

// Reduce makes groups of entries that have equal members.
type Reduce struct {
	// GroupBy has names of members of the maps, 1 to 8.
	GroupBy []string `json:"groupBy"`

	// Select has the members of a result: of each, the expression is a name of GroupBy, or one of count(), count(distinct Total),
	// sum(Total), avg(Total), min(Total), max(Total), first(Total order by At), last(Total order by At), list(Total) and list(distinct Total),
	// where Total and At are members of the maps or expressions of these, such as "sum(if(Total > 5, 1, 0))". Or it is an expression of such
	// functions, such as "sum(Total) / count()" and "join(list(distinct Name), ', ')".
	//
	// Counts, sums and averages are kept. The others are looked up in the entries of an ordered index, or of one of the kind "ends" for the
	// elements of an array: at the ends of groups, and for list() in all entries of a group, up to query.MaxListed of one query.
	Select []Member `json:"select"`
}

// Member is one member of an entry or of a result.
type Member struct {
	// Name is what conditions, orders and results call it.
	Name string `json:"name"`

	// Expression is an RQL expression, such as "Price * Quantity". Empty is the member of this name.
	Expression string `json:"expression,omitempty"`
}

// ComputedInfo is a computed index and its state.
type ComputedInfo struct {
	Computed

	// State is Building until all parts are built: meanwhile answers are computed from documents.
	State State `json:"state"`

	// Next is the one that takes its place when its parts are built; nil for none.
	Next *ComputedInfo `json:"next,omitempty"`

	// Algebra is the declaration in one line, as Explain shows it.
	Algebra string `json:"algebra"`

	// Parts are the indexes that keep its answers.
	Parts []Info `json:"parts"`

	// Without says of the maps and members that have no part why they have none: what they give is computed when it is asked for.
	Without []string `json:"without,omitempty"`

	// Unknown is why this version does not understand the declaration; "" for none.
	Unknown string `json:"unknown,omitempty"`
}

// ComputedFailure is an expression of a computed index that fails for a document.
type ComputedFailure struct {
	Collection string `json:"collection"`
	Failure
}

// ComputedPreview is what a declaration of a computed index makes of some documents.
type ComputedPreview struct {
	// Algebra is the declaration in one line, as Explain shows it.
	Algebra string `json:"algebra"`

	// Parts are the indexes that would keep its answers, without names.
	Parts []Part `json:"parts"`

	// Without says of the maps and members that would have no part why: what they give would be computed when it is asked for.
	Without []string `json:"without,omitempty"`

	// Documents are those that were looked at, in the order in which they were asked for, or of collections and IDs.
	Documents []Previewed `json:"documents"`

	// Results is what the reduce makes of these documents together; of a declaration without one there are none.
	Results []json.RawMessage `json:"results,omitempty"`
}

// Part is an index that keeps answers of a computed one.
type Part struct {
	Of         string `json:"of"` // the map, and the member or the function, such as "map 1, max(Total)"
	Collection string `json:"collection"`
	Index      Index  `json:"index"`
}

// Previewed is what the maps of a declaration make of a document.
type Previewed struct {
	ID         string   `json:"id"`
	Collection string   `json:"collection"`
	Maps       []Mapped `json:"maps"` // one for each map of the collection
}

// Mapped is what one map makes of a document.
type Mapped struct {
	Map     int               `json:"map"`     // its number, from 1
	Entries []json.RawMessage `json:"entries"` // one, one for each element, or none if the condition is not true
	Errors  []Failure         `json:"errors,omitempty"`
}
