package engine

import (
	"fmt"

	"github.com/tidwall/gjson"
)

// Index is a secondary index over one field of the documents.
type Index struct{ Name, Field string }

// Indexes are the indexes of the rows with indexes: an integer that ten documents
// share, a number that is different in every document, a text of eight values.
var Indexes = []Index{{"Bucket", "Bucket"}, {"Total", "Total"}, {"State", "State"}}

// Query asks for documents by a field, with or without an index on it.
type Query struct {
	Field string
	// Equal, if not nil, is the value of the field, an int64 or a string; else
	// it lies from From to To, both included.
	Equal    any
	From, To float64
	// Descending asks for an order by the field, greatest first. Without it
	// there is no order.
	Descending bool
	// Limit is the most documents to return; 0 means all.
	Limit int
}

// Querier is what an engine has if it answers queries by secondary indexes.
// Workloads that need it leave the others out.
type Querier interface {
	// CreateIndexes makes Indexes, before or after documents are there, or
	// finds that they exist.
	CreateIndexes() error
	// Query calls fn with each document of the answer, like Scan.
	Query(q Query, fn Visit) error
	// Count counts the documents that satisfy q.
	Count(q Query) (int, error)
}

// Group is a group of documents.
type Group struct {
	Documents int
	Sum       float64
}

// Grouper is what an engine has if it makes groups without an index.
type Grouper interface {
	// Groups returns the groups of all documents by the text in a field, with the sums of the numbers in another one.
	Groups(by, sum string) (map[string]Group, error)
}

// Pager is what an engine has if it reads the documents at either end of the order of
// IDs.
type Pager interface {
	// Edge calls fn with the first documents in the order of IDs, or with the last ones,
	// the last first.
	Edge(newest bool, limit int, fn Visit) error
}

// satisfies reports whether a document satisfies q. It reads fields with gjson,
// for engines that cannot read JSON.
func satisfies(body []byte, q *Query) bool {
	value := gjson.GetBytes(body, q.Field)
	switch want := q.Equal.(type) {
	case nil:
		n := value.Num
		return value.Type == gjson.Number && q.From <= n && n <= q.To
	case int64:
		return value.Type == gjson.Number && value.Int() == want
	case string:
		return value.Type == gjson.String && value.Str == want
	}
	panic(fmt.Sprintf("a query for a %T", q.Equal))
}
