package jay

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// Query is a question to one collection, or to all documents, whose answers
// are values of T: *Document for DB.Query, the struct type for
// Collection.Query, what Select says, or Row for the text of DB.RQL.
//
// The zero value, and a Query returned beside an error, return that error or ErrUsage
// whenever they are run.
//
// A Query is immutable: each method returns a new one, so that one can be kept
// and refined. It does nothing until Iter, All, First, Count, Exists, Page or
// Explain runs it, each time on the database as it is at that moment. It is
// safe for concurrent use.
//
// Without an order the answers come in the order of the plan. Ties in the last
// field of an order come in the order of IDs, in the direction of that field.
type Query[T any] struct {
	def    definition
	decode func(r *exec.Row) (*T, error) // nil and nil for a row to be left out
}

// definition is a query but for the type of its answers. All that does not need the type
// is a method of it: those of Query are compiled anew for each type.
type definition struct {
	via       access
	q         query.Query
	size      query.Size // of q.Where
	having    Condition
	text      bool // it began as RQL, in which a name in where says what it means
	err       error
	run       exec.Options
	pageBytes int                    // of PageBytes
	cursor    string                 // of After; read when the query runs, as conditions and order may still come
	m         *codec.Mapping         // of the collection's Go type; nil for documents
	arrive    func([]*docs.Document) // takes what is included; nil if there is no place for it

	answers reflect.Type // that of the answers, for errors
	tracked bool         // it is a session's

	progress func(Changed) // of Patch and Delete
}

// Row is one answer of a query.
type Row struct {
	// Document is the whole document, for queries that select nothing else.
	Document *Document
	// JSON is what was selected, as an object; nil for whole documents.
	JSON json.RawMessage
	// Included are the included documents that no earlier answer brought.
	Included []*Document
}

// newRow makes the public form of a row.
func newRow(r *exec.Row) (*Row, error) {
	row := &Row{Document: (*Document)(r.Document), JSON: r.JSON}
	for _, doc := range r.Included {
		row.Included = append(row.Included, (*Document)(doc))
	}
	return row, nil
}

// MarshalJSON returns what was selected, or the whole document with its
// @metadata.
func (r *Row) MarshalJSON() ([]byte, error) {
	if r.Document != nil {
		return r.Document.MarshalJSON()
	}
	return r.JSON, nil
}

// Query asks for documents of a collection; "" asks for all documents.
func (db *DB) Query(collection string) Query[Document] { return documentQuery(db, collection) }

// Query is DB.Query in a transaction. It sees what the transaction has written; the
// whole collection joins the read set.
func (t *Tx) Query(collection string) Query[Document] { return documentQuery(t, collection) }

func documentQuery(via access, collection string) Query[Document] {
	return Query[Document]{
		def:    definition{via: via, q: query.Query{From: collection}, answers: reflect.TypeFor[Document]()},
		decode: func(r *exec.Row) (*Document, error) { return (*Document)(r.Document), nil },
	}
}

// Query asks for values of the collection. Fields of type time.Time, of pointers to it
// and of slices of it are compared, ordered and grouped by time, whatever the zone and
// the digits of their text in a document, as "At as date" does for documents. Text of
// RFC 3339 counts as a time there, and other text is ErrQuery; StartsWith and its like
// look at the text.
func (c *Collection[T]) Query() Query[T] {
	return Query[T]{
		def:    definition{via: c.via, m: c.m, q: query.Query{From: c.m.Collection}, answers: reflect.TypeFor[T]()},
		decode: func(r *exec.Row) (*T, error) { return c.decode((*Document)(r.Document)) },
	}
}

// RQL returns the query of a text in RavenDB's query language, such as
//
//	from Orders as o where o.Total > $least order by o.Total desc limit 10
//
// docs/queries.md has the grammar. params are the values of its parameters,
// without the dollar. Text compares without regard to case, unless exact() is
// around the comparison. A text that is no query is a *SyntaxError, and one with
// more conditions or values than docs/limits.md allows ErrQuery. A text with update { },
// which UpdateRQL reads, is a *SyntaxError that is ErrUpdateRQL.
func (db *DB) RQL(text string, params map[string]any) (Query[Row], error) {
	return parseRQL(db, text, params)
}

// RQL is DB.RQL in a transaction.
func (t *Tx) RQL(text string, params map[string]any) (Query[Row], error) {
	return parseRQL(t, text, params)
}

func parseRQL(via access, text string, params map[string]any) (Query[Row], error) {
	q, err := query.Parse(text, params)
	if err != nil {
		return Query[Row]{def: definition{err: err}}, err
	}
	return queryOf(via, q)
}

// queryOf returns a query that was parsed.
func queryOf(via access, q *query.Query) (Query[Row], error) {
	size, err := query.Measure(q.Where)
	if err == nil && q.Having != nil {
		_, err = query.Measure(q.Having)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", ErrQuery, err)
		return Query[Row]{def: definition{err: err}}, err
	}
	return definition{via: via, q: *q, size: size, text: true}.rowQuery(), nil
}

// SyntaxError is returned for a query text that is not valid. errors.Is(err,
// ErrSyntax) is true. Its fields and methods (see package query):
//
//	Line         int     of the first wrong character, from 1
//	Column       int     of it, in characters, from 1
//	Offset       int     of it, in bytes, from 0
//	Message      string  what is wrong
//	Expected     string  what would be valid there; may be empty
//	Hint         string  what to write instead; may be empty
//	Text         string  the whole line
//	Caret()      string  the line, and below it a caret at the wrong character
//	Explanation() string the message with what was expected and the hint, without the position
type SyntaxError = query.SyntaxError

// rowQuery returns the query with rows for its answers.
func (q definition) rowQuery() Query[Row] {
	q.answers, q.arrive, q.tracked, q.progress = reflect.TypeFor[Row](), func([]*docs.Document) {}, false, nil
	return Query[Row]{def: q, decode: newRow}
}

// fail keeps err, unless the query has an error already.
func (q *definition) fail(err error) {
	if q.err == nil {
		q.err = err
	}
}

// Where adds conditions: a document must satisfy all of them, and those that the
// query has.
func (q Query[T]) Where(conditions ...Condition) Query[T] {
	q.def.where(conditions)
	return q
}

func (q *definition) where(conditions []Condition) {
	if q.q.Where != nil {
		conditions = append([]Condition{{expr: q.q.Where, size: q.size}}, conditions...)
	}
	var all Condition
	if len(conditions) == 1 {
		all = conditions[0]
	} else {
		all = And(conditions...)
	}
	switch {
	case all.err != nil:
		q.fail(all.err)
	case len(conditions) > 0:
		q.q.Where, q.size = all.orTrue(), all.sizeOrTrue()
	}
}

// Having adds conditions on groups: a group must satisfy all of them, and those that the
// query has. Their fields are functions such as "count()" and "sum(Total)", or names
// of columns of functions. Where chooses documents before they are grouped.
func (q Query[T]) Having(conditions ...Condition) Query[T] {
	q.def.filterGroups(conditions)
	return q
}

func (q *definition) filterGroups(conditions []Condition) {
	if len(conditions) == 0 {
		return
	}
	if q.having.expr != nil {
		conditions = append([]Condition{q.having}, conditions...)
	}
	if q.having = And(conditions...); q.having.err != nil {
		q.fail(q.having.err)
	}
}

// OrderBy orders the answers by fields, the first one first; "-Total" is
// descending, and "At as date" orders text by the time that it spells. It replaces an
// order given before.
func (q Query[T]) OrderBy(fields ...string) Query[T] {
	q.def.orderBy(fields)
	return q
}

func (q *definition) orderBy(fields []string) {
	q.q.OrderBy = nil
	if err := checkList(len(fields)); err != nil {
		q.fail(err)
		return
	}
	for _, text := range fields {
		text, descending := strings.CutPrefix(text, "-")
		f := query.Field{Path: jsonpath.MustParse(keyText)}
		if !strings.EqualFold(text, keyText) {
			var err error
			if f, err = parseField(text); err != nil {
				q.fail(orderError(text, err))
				return
			}
		}
		q.q.OrderBy = append(q.q.OrderBy, query.Order{Field: f, Descending: descending})
	}
}

// orderError adds to the error of a field of an order how the builder writes what RQL
// writes with a word behind the field.
func orderError(text string, err error) error {
	words := strings.Fields(text)
	if len(words) != 2 {
		return err
	}
	switch strings.ToLower(words[1]) {
	case "desc", "descending":
		return fmt.Errorf("%w: descending is %q", err, "-"+errs.Shorten(words[0]))
	case "asc", "ascending":
		return fmt.Errorf("%w: ascending is %q", err, errs.Shorten(words[0]))
	}
	return err
}

// Skip leaves out the first n answers. After is the better way to page: Skip
// reads what it leaves out.
func (q Query[T]) Skip(n int) Query[T] {
	q.def.skip(n)
	return q
}

func (q *definition) skip(n int) {
	if n < 0 {
		q.fail(fmt.Errorf("%w: Skip(%d)", ErrQuery, n))
		return
	}
	q.q.Offset = n
}

// Limit ends the answers after n.
func (q Query[T]) Limit(n int) Query[T] {
	q.def.limit(n)
	return q
}

func (q *definition) limit(n int) {
	if n < 0 {
		q.fail(fmt.Errorf("%w: Limit(%d)", ErrQuery, n))
		return
	}
	q.q.Limit, q.q.HasLimit = n, true
}

// After begins after the answer of a cursor from Page. The cursor must come from
// the same query, on this database or on a later handle of it; documents written
// meanwhile appear in their place.
//
// Skip counts from the beginning, and not from a cursor.
func (q Query[T]) After(cursor string) Query[T] {
	q.def.cursor = cursor
	return q
}

// PageBytes ends a page of Page early, when the JSON of its answers has n bytes or more:
// a page has at least one answer, and so at most n bytes and one document. 0, the default,
// is no such bound. Other methods do not look at it.
func (q Query[T]) PageBytes(n int) Query[T] {
	q.def.boundPages(n)
	return q
}

func (q *definition) boundPages(n int) {
	if n < 0 {
		q.fail(fmt.Errorf("%w: PageBytes(%d)", ErrQuery, n))
		return
	}
	q.pageBytes = n
}

// UseIndex makes the index of this name answer the query, whatever the planner would
// choose; "" leaves the choice to the planner again. Explain shows the index, and RQL
// writes it as from Orders use index 'Company'. If the query is run and the collection
// has no such index, or it is still being built, or is being dropped, or the index cannot
// answer the query, the error is ErrNoIndex and says which. An index can answer a query
// if a condition or the order uses its first field, or if it has all fields that the
// query needs; a partial one only if the query has its condition.
//
// Queries choose well without it: it is meant for the few cases in which the planner's
// estimate misleads, and for tests.
func (q Query[T]) UseIndex(name string) Query[T] {
	q.def.useIndex(name)
	return q
}

func (q *definition) useIndex(name string) {
	switch {
	case name != "" && q.q.From == "":
		q.fail(fmt.Errorf("%w: UseIndex(%q): an index is of one collection, and the query asks all documents", ErrQuery, errs.Shorten(name)))
		return
	case len(name) > query.MaxName:
		q.fail(fmt.Errorf("%w: UseIndex: a name of %d bytes, of %d at most", ErrQuery, len(name), query.MaxName))
		return
	}
	q.q.UseIndex = name
}

// NoScan makes the query fail with ErrNoIndex, when it runs, if it would look
// at every document of the collection for a condition, an order or a group
// that an index could have served. It is meant for tests. A query that asks
// for all documents as they come is not refused.
func (q Query[T]) NoScan() Query[T] {
	q.def.run.NoScan = true
	return q
}

// Distinct leaves out answers that have the same values as an earlier one. It is of
// columns, and changes nothing without a Select: no two documents are the same.
func (q Query[T]) Distinct() Query[T] {
	q.def.q.Distinct = true
	return q
}

// GroupBy makes one answer of all documents that have the same values at fields. A
// Select must follow with the columns of a group. Besides paths there are "At as date",
// the time that a text spells, and of it year(At), month(At), day(At) and hour(At) in
// UTC: text such as 2026, 2026-01, 2026-01-31 and 2026-01-31T23. Select them as they
// are, or with a name: "month(At) as Month".
func (q Query[T]) GroupBy(fields ...string) Query[T] {
	q.def.groupBy(fields)
	return q
}

func (q *definition) groupBy(fields []string) {
	q.q.GroupBy = nil
	if err := checkList(len(fields)); err != nil {
		q.fail(err)
		return
	}
	for _, text := range fields {
		f, err := parseField(text)
		if err == nil && f.Func != query.FuncNone {
			err = fmt.Errorf("%w: groups by %s, which is of groups", ErrQuery, f)
		}
		if err != nil {
			q.fail(err)
			return
		}
		q.q.GroupBy = append(q.q.GroupBy, f)
	}
}

// Include also reads the documents whose IDs are at these paths in the answers. They
// arrive in Row.Included: make it a query for rows, with Rows, if it is not one of
// DB.RQL; or in the session of QueryOf, whose Load then answers without reading. The
// answers of any other query have no place for them, and it fails with ErrQuery when it
// runs.
func (q Query[T]) Include(paths ...string) Query[T] {
	q.def.include(paths)
	return q
}

func (q *definition) include(paths []string) {
	if err := checkList(len(q.q.Include) + len(paths)); err != nil {
		q.fail(err)
		return
	}
	for _, text := range paths {
		p, err := jsonpath.Parse(text)
		if err != nil {
			q.fail(fmt.Errorf("%w: include: %w", ErrQuery, err))
			return
		}
		q.q.Include = append(slices.Clip(q.q.Include), p)
	}
}

// checkList refuses a list of n fields if a query may not have so many.
func checkList(n int) error {
	if n > query.MaxColumns {
		return fmt.Errorf("%w: %w", ErrQuery, &query.LimitError{What: "fields in one list", Limit: query.MaxColumns, Actual: n})
	}
	return nil
}

// Rows returns the query with rows for its answers, which bring what Include has
// asked for.
func (q Query[T]) Rows() Query[Row] { return q.def.rowQuery() }

// String returns the query as RQL, which DB.RQL reads as the same query. After,
// NoScan and the type of the answers are no part of it. Of a query that cannot run
// because of what it is made of, String returns "invalid query: " and the error.
func (q Query[T]) String() string { return q.def.rql() }

func (q definition) rql() string {
	err := q.check()
	if err == nil {
		err = q.resolveGroups()
	}
	if err == nil {
		q, err = q.dated()
	}
	if err != nil {
		// The text of the rest would be another query, of more documents perhaps.
		return "invalid query: " + err.Error()
	}
	return q.q.String()
}

// Changed says what Query.Patch or Query.Delete has done.
type Changed struct {
	// Documents were changed or deleted.
	Documents int64 `json:"documents"`
	// Unchanged documents are already as the edits would leave them.
	Unchanged int64 `json:"unchanged"`
	// Overtaken documents were answers of the query, but were deleted or changed by
	// other writes before their turn came, and satisfy the condition no more.
	Overtaken int64 `json:"overtaken"`
}
