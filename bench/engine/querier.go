package engine

// Index is a secondary index over one field of the documents.
type Index struct{ Name, Field string }

// Query asks for documents by a field that has an index. It is the extension
// point of the query benchmarks: add here what they need to say.
type Query struct {
	Field string
	// Equal, if not nil, is the value of the field; else the values in [From, To).
	Equal    any
	From, To any
	// Limit is the most documents to return; 0 means all.
	Limit int
}

// Querier is what an engine has if it answers queries by secondary indexes.
// Workloads that need it (workload/queries.go) leave the others out.
type Querier interface {
	// CreateIndexes makes the indexes, before or after documents are there.
	CreateIndexes(indexes ...Index) error
	// Query calls fn with each document of the answer, like Scan.
	Query(q Query, fn Visit) error
}
