package index

import "encoding/json"

// Computed declares an index whose entries are computed from documents. An entry has members of a
// document, or of an element of one of its arrays. With a Reduce, the index has groups of entries,
// with counts and sums. A query reads the index by name, as in "from index 'Orders/ByProduct' where
// Total > 100". Its results have the members.
//
// Jay converts declarations of RavenDB's clients, in C# and in JavaScript, to Computed.
type Computed struct {
	// Name identifies the index within its database, without regard to case, such as "Orders/ByProduct". It has 1 to 128
	// bytes.
	Name string `json:"name"`

	// Maps are the maps of the index, 1 to 16. A map makes the entries of documents. All maps have
	// members of the same names.
	Maps []Map `json:"maps"`

	// Reduce, if not nil, groups the entries of the maps.
	Reduce *Reduce `json:"reduce,omitempty"`

	// Strict refuses a write of a document for which an expression fails, such as by a division by
	// zero. If Strict is not set, the document is written, the member counts as missing, as in a
	// query, and the failure is among the errors of the index. A strict declaration is refused if it
	// has an expression that no part of the index keeps.
	Strict bool `json:"strict,omitempty"`
}

// Map makes the entries of the documents of one collection in a computed index.
type Map struct {
	// Collection is the collection of the documents. Empty means all documents.
	Collection string `json:"collection"`

	// Each is the path of an array, such as "Lines". A document has one entry for each element, and no
	// entry if there is no element. If Each is empty, a document has one entry.
	Each string `json:"each,omitempty"`

	// Function is the name of a Go function that returns the entries of a document, in place of Each.
	// Version is the version of the function: see jay.RegisterFunction. A declaration with another
	// version is another declaration, which is built while the old one still answers. Both are empty
	// if there is no function.
	Function string `json:"function,omitempty"`
	Version  string `json:"version,omitempty"`

	// As is the name of the element of Each, or of the entry of Function, in the expressions. With
	// "line", the expression "line.Price" is the price of the line, and "Customer" is the customer of
	// the document.
	As string `json:"as,omitempty"`

	// Where is a condition in RQL. Documents, or elements, that do not meet the condition have no
	// entry. Empty means no condition.
	Where string `json:"where,omitempty"`

	// Select has the members of an entry, 1 to 32. The expression fields(Attributes, Name, Value)
	// stands for fields whose names are in the document. In each element of the array Attributes, Name
	// is the name of a field, and Value is its value. The name of the member does not matter then.
	// Conditions can name such fields like members, as in "where Color = 'red'". Other parts of a
	// query cannot.
	Select []Member `json:"select"`
}

// Reduce groups entries that have equal members.
type Reduce struct {
	// GroupBy has the names of 1 to 8 members of the maps.
	GroupBy []string `json:"groupBy"`

	// Select has the members of a result. The expression of a member is a name of GroupBy, or a
	// function: count(), count(distinct Total), sum(Total), avg(Total), min(Total), max(Total),
	// first(Total order by At), last(Total order by At), list(Total) or list(distinct Total). Total
	// and At are members of the maps, or expressions of members, as in "sum(if(Total > 5, 1, 0))". The
	// expression may also compute with such functions, as in "sum(Total) / count()" and
	// "join(list(distinct Name), ', ')".
	//
	// The index keeps counts, sums and averages. A query reads the other functions from the entries of
	// an ordered index, or, for the elements of an array, of an index of the kind "ends". It reads the
	// ends of groups, and for list() all entries of a group, up to query.MaxListed in one query.
	Select []Member `json:"select"`
}

// Member is one member of an entry or of a result.
type Member struct {
	// Name is the name of the member in conditions, orders and results.
	Name string `json:"name"`

	// Expression is an RQL expression, such as "Price * Quantity". Empty means the member of the
	// document with this Name.
	Expression string `json:"expression,omitempty"`
}

// ComputedInfo is a computed index and its state.
type ComputedInfo struct {
	Computed

	// State is Building until all parts are built. Until then, answers are computed from documents.
	State State `json:"state"`

	// Next is the declaration that replaces this one when its parts are built; nil for none.
	Next *ComputedInfo `json:"next,omitempty"`

	// Algebra is the declaration in one line, as Explain shows it.
	Algebra string `json:"algebra"`

	// Parts are the indexes that keep the answers of the computed index.
	Parts []Info `json:"parts"`

	// Without says of each map and member without a part why it has none. Answers from these are
	// computed at query time.
	Without []string `json:"without,omitempty"`

	// Unknown is why this version does not understand the declaration; "" for none.
	Unknown string `json:"unknown,omitempty"`
}

// ComputedFailure says why an expression of a computed index fails for a document of a collection.
type ComputedFailure struct {
	Collection string `json:"collection"`
	Failure
}

// ComputedPreview shows the entries and results that a declaration of a computed index makes of
// some documents.
type ComputedPreview struct {
	// Algebra is the declaration in one line, as Explain shows it.
	Algebra string `json:"algebra"`

	// Parts are the indexes that would keep the answers of the computed index. They have no names.
	Parts []Part `json:"parts"`

	// Without says of each map and member that would have no part why not. Answers from these would be
	// computed at query time.
	Without []string `json:"without,omitempty"`

	// Documents are the documents of the preview, in the order in which the caller named them, or in
	// the order of collections and IDs.
	Documents []Previewed `json:"documents"`

	// Results are the results of the reduce for all of these documents together. A declaration without
	// a reduce has none.
	Results []json.RawMessage `json:"results,omitempty"`
}

// Part is an index that keeps answers of a computed index.
type Part struct {
	Of         string `json:"of"` // the map, and the member or the function, such as "map 1, max(Total)"
	Collection string `json:"collection"`
	Index      Index  `json:"index"`
}

// Previewed has the entries that the maps of a declaration make of a document.
type Previewed struct {
	ID         string   `json:"id"`
	Collection string   `json:"collection"`
	Maps       []Mapped `json:"maps"` // one for each map of the collection
}

// Mapped has the entries that one map makes of a document.
type Mapped struct {
	Map     int               `json:"map"`     // the number of the map, from 1
	Entries []json.RawMessage `json:"entries"` // one, one for each element, or none if the condition is not true
	Errors  []Failure         `json:"errors,omitempty"`
}
