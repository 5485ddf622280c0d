package jay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// Query is a question to one collection, or to all documents, whose answers
// are values of T: *Document for DB.Query, the struct type for
// Collection.Query, what Select says, or Row for the text of DB.RQL.
//
// A Query is immutable: each method returns a new one, so that one can be kept
// and refined. It does nothing until Iter, All, First, Count, Exists, Page or
// Explain runs it, each time on the database as it is at that moment. It is
// safe for concurrent use.
//
// Without an order the answers come in the order of the plan. Ties in the last
// field of an order come in the order of IDs, in the direction of that field.
type Query[T any] struct {
	via    access
	q      query.Query
	size   query.Size // of q.Where
	err    error
	run    exec.Options
	cursor string         // of After; read when the query runs, as conditions and order may still come
	m      *codec.Mapping // of the collection's Go type; nil for documents
	decode func(r *exec.Row) (*T, error)

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
	return Query[Document]{via: via, q: query.Query{From: collection}, decode: func(r *exec.Row) (*Document, error) { return (*Document)(r.Document), nil }}
}

// Query asks for values of the collection. Fields of type time.Time, of pointers to it
// and of slices of it are compared, ordered and grouped by time, whatever the zone and
// the digits of their spelling in a document: as "At as date" is for documents. Text of
// RFC 3339 counts as a time there, and other text is ErrQuery; StartsWith and its like
// look at the spelling.
func (c *Collection[T]) Query() Query[T] {
	q := Query[T]{via: c.via, m: c.m, q: query.Query{From: c.m.Collection}}
	q.decode = func(r *exec.Row) (*T, error) { return c.decode((*Document)(r.Document)) }
	return q
}

// RQL returns the query of a text in RavenDB's query language, such as
//
//	from Orders as o where o.Total > $least order by o.Total desc limit 10
//
// docs/queries.md has the grammar. params are the values of its parameters,
// without the dollar. Text compares without regard to case, unless exact() is
// around the comparison. A text that is no query is a *SyntaxError, and one with
// more conditions or values than docs/limits.md allows ErrQuery.
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
		return Query[Row]{}, err
	}
	size, err := query.Measure(q.Where)
	if err != nil {
		return Query[Row]{}, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	return Query[Row]{via: via, q: *q, size: size, decode: newRow}, nil
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

// checkList refuses a list of n fields if a query may not have so many.
func checkList(n int) error {
	if n > query.MaxColumns {
		return fmt.Errorf("%w: %w", ErrQuery, &query.LimitError{What: "fields in one list", Limit: query.MaxColumns, Actual: n})
	}
	return nil
}

// fail returns q with err, unless it has an error already.
func (q Query[T]) fail(err error) Query[T] {
	if q.err == nil {
		q.err = err
	}
	return q
}

// Where adds conditions: a document must satisfy all of them, and those that the
// query has.
func (q Query[T]) Where(conditions ...Condition) Query[T] {
	if q.q.Where != nil {
		conditions = append([]Condition{{expr: q.q.Where, size: q.size}}, conditions...)
	}
	all := And(conditions...)
	if len(conditions) == 1 {
		all = conditions[0]
	}
	switch {
	case all.err != nil:
		return q.fail(all.err)
	case len(conditions) > 0:
		q.q.Where, q.size = all.orTrue(), all.sizeOrTrue()
	}
	return q
}

// OrderBy orders the answers by fields, the first one first; "-Total" is
// descending, and "At as date" orders text by the time that it spells. It replaces an
// order given before.
func (q Query[T]) OrderBy(fields ...string) Query[T] {
	q.q.OrderBy = nil
	if err := checkList(len(fields)); err != nil {
		return q.fail(err)
	}
	for _, text := range fields {
		text, descending := strings.CutPrefix(text, "-")
		if isCall(text) { // of groups: complete finds the column
			q.q.OrderBy = append(q.q.OrderBy, query.Order{Column: text, Descending: descending})
			continue
		}
		f, err := parseField(text)
		if err != nil {
			return q.fail(err)
		}
		q.q.OrderBy = append(q.q.OrderBy, query.Order{Field: f, Descending: descending})
	}
	return q
}

// Skip leaves out the first n answers. After is the better way to page: Skip
// reads what it leaves out.
func (q Query[T]) Skip(n int) Query[T] {
	if n < 0 {
		return q.fail(fmt.Errorf("%w: Skip(%d)", ErrQuery, n))
	}
	q.q.Offset = n
	return q
}

// Limit ends the answers after n.
func (q Query[T]) Limit(n int) Query[T] {
	if n < 0 {
		return q.fail(fmt.Errorf("%w: Limit(%d)", ErrQuery, n))
	}
	q.q.Limit, q.q.HasLimit = n, true
	return q
}

// After begins after the answer of a cursor from Page. The cursor must come from
// the same query, on this database or on a later handle of it; documents written
// meanwhile appear in their place.
//
// Skip counts from the beginning, and not from a cursor.
func (q Query[T]) After(cursor string) Query[T] {
	q.cursor = cursor
	return q
}

// complete returns the query in the form in which it is run.
func (q Query[T]) complete() (Query[T], error) {
	if q.err != nil {
		return q, q.err
	}
	if exec.IsGrouped(&q.q) {
		q.q.OrderBy = groupOrders(&q.q)
	} else {
		for _, o := range q.q.OrderBy {
			if o.Column != "" {
				return q, fmt.Errorf("%w: an order by %.100s, which is of groups, and there are none: a GroupBy, or a function in Select, makes them", ErrQuery, o.Column)
			}
		}
	}
	q, err := q.dated()
	if err != nil || q.cursor == "" {
		return q, err
	}
	if err := q.checkPaging(); err != nil {
		return q, err
	}
	if len(q.q.OrderBy) == 0 {
		q = q.OrderBy("id()")
	}
	q.q.Offset = 0
	q.run.After, err = exec.ParseCursor(q.cursor, &q.q)
	return q, err
}

// checkIncludes refuses a query whose includes could not arrive.
func (q Query[T]) checkIncludes() error {
	if _, rows := any((*T)(nil)).(*Row); rows || len(q.q.Include) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %T has no place for what the query includes: ask for rows, with Rows", ErrQuery, *new(T))
}

// checkPaging refuses a query whose answers have no position to continue from.
func (q Query[T]) checkPaging() error {
	if exec.IsGrouped(&q.q) || q.q.Distinct {
		return fmt.Errorf("%w: groups and distinct rows have no cursor: use Skip", ErrQuery)
	}
	return nil
}

// isCall reports whether an order is written as a function of groups, such as
// count() or sum(Total).
func isCall(text string) bool {
	name, _, found := strings.Cut(text, "(")
	switch strings.ToLower(strings.TrimSpace(name)) {
	case "count", "sum", "avg", "min", "max", "key":
		return found && strings.HasSuffix(text, ")")
	}
	return false
}

// groupOrders returns the order of groups, which goes by columns: by their
// names, or by what they show.
func groupOrders(q *query.Query) []query.Order {
	orders := slices.Clone(q.OrderBy)
	for i, o := range orders {
		text := o.Column // as OrderBy was given it, count() and all; or as RQL resolved it
		if text == "" {
			text = o.Field.String()
		}
		want, err := parseColumn(q, text)
		for _, c := range q.Select {
			if c.Name == text || o.Column == "" && c.Name == o.Field.Path.String() ||
				err == nil && c.Func == want.Func && c.Field.String() == want.Field.String() {
				text = c.Name
				break
			}
		}
		orders[i].Field, orders[i].Column = query.Field{}, text
	}
	return orders
}

// NoScan makes the query fail with ErrNoIndex, when it runs, if it would look
// at every document of the collection for a condition, an order or a group
// that an index could have served. It is meant for tests. A query that asks
// for all documents as they come is not refused.
func (q Query[T]) NoScan() Query[T] {
	q.run.NoScan = true
	return q
}

// Distinct leaves out answers that are equal to an earlier one. It needs a Select.
func (q Query[T]) Distinct() Query[T] {
	q.q.Distinct = true
	return q
}

// GroupBy makes one answer of all documents that have the same values at fields. A
// Select must follow with the columns of a group. Besides paths there are "At as date",
// the time that a text spells, and of it year(At), month(At), day(At) and hour(At) in
// UTC: text such as 2026, 2026-01, 2026-01-31 and 2026-01-31T23. Select them as they
// are, or with a name: "month(At) as Month".
func (q Query[T]) GroupBy(fields ...string) Query[T] {
	q.q.GroupBy = nil
	if err := checkList(len(fields)); err != nil {
		return q.fail(err)
	}
	for _, text := range fields {
		f, err := parseField(text)
		if err != nil {
			return q.fail(err)
		}
		q.q.GroupBy = append(q.q.GroupBy, f)
	}
	return q
}

// Include also reads the documents whose IDs are at these paths in the answers. They
// arrive in Row.Included: make it a query for rows, with Rows, if it is not one of
// DB.RQL. The answers of any other query have no place for them, and it fails with
// ErrQuery when it runs. The includes of a session are options of its Load.
func (q Query[T]) Include(paths ...string) Query[T] {
	if err := checkList(len(q.q.Include) + len(paths)); err != nil {
		return q.fail(err)
	}
	for _, text := range paths {
		p, err := jsonpath.Parse(text)
		if err != nil {
			return q.fail(fmt.Errorf("%w: include: %w", ErrQuery, err))
		}
		q.q.Include = append(slices.Clip(q.q.Include), p)
	}
	return q
}

// Select asks for columns instead of whole documents, as values of R: a
// struct, a map, or json.RawMessage. A column is a path, "id()" or one of
// count(), sum(path), avg(path), min(path) and max(path); "Total as Sum" gives
// it another name. Functions make one answer of all documents, or one of each
// group of GroupBy.
func Select[R, T any](q Query[T], columns ...string) Query[R] {
	out := Query[R]{via: q.via, m: q.m, q: q.q, size: q.size, err: q.err, run: q.run, cursor: q.cursor}
	out.q.Select = nil
	if err := checkList(len(columns)); err != nil {
		return out.fail(err)
	}
	for _, text := range columns {
		c, err := parseColumn(&q.q, text)
		if err != nil {
			return out.fail(err)
		}
		out.q.Select = append(out.q.Select, c)
	}
	if len(columns) == 0 {
		return out.fail(fmt.Errorf("%w: Select without columns", ErrQuery))
	}
	raw := reflect.TypeFor[R]() == reflect.TypeFor[json.RawMessage]()
	out.decode = func(r *exec.Row) (*R, error) {
		v := new(R)
		if raw {
			*any(v).(*json.RawMessage) = r.JSON
			return v, nil
		}
		if err := json.Unmarshal(r.JSON, v); err != nil {
			return nil, fmt.Errorf("decode %.100s: %w", r.JSON, err)
		}
		return v, nil
	}
	return out
}

// parseColumn reads a column of a query as RQL writes it.
func parseColumn(of *query.Query, text string) (query.Column, error) {
	from := "from '@all_docs' "
	if name, _, found := strings.Cut(text, "("); found && strings.EqualFold(strings.TrimSpace(name), "key") {
		for i, f := range of.GroupBy {
			from += [...]string{"group by ", ", "}[min(i, 1)] + f.String() + " "
		}
	}
	q, err := query.Parse(from+"select "+text, nil)
	if err != nil {
		return query.Column{}, fmt.Errorf("%w: column %q: %w", ErrQuery, errs.Shorten(text), err)
	}
	if len(q.Select) != 1 || q.Distinct || q.HasLimit || q.Offset > 0 || len(q.Include) > 0 {
		return query.Column{}, fmt.Errorf("%w: %q is not one column", ErrQuery, errs.Shorten(text))
	}
	return q.Select[0], nil
}

// String returns the query as RQL, which DB.RQL reads as the same query. After,
// NoScan and the type of the answers are no part of it. The text of a query with an
// error need not be one.
func (q Query[T]) String() string {
	if exec.IsGrouped(&q.q) {
		q.q.OrderBy = groupOrders(&q.q)
	}
	if dated, err := q.dated(); err == nil {
		q = dated
	}
	return q.q.String()
}

// Rows returns the query with rows for its answers, which bring what Include has
// asked for.
func (q Query[T]) Rows() Query[Row] {
	return Query[Row]{via: q.via, q: q.q, size: q.size, err: q.err, run: q.run, cursor: q.cursor,
		decode: newRow}
}

// Iter runs the query. The loop sees the database as it was when it began, and
// may be left at any time; an error comes as the last pair, with a nil value.
// Each value belongs to the caller.
func (q Query[T]) Iter(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for row, err := range q.rows(ctx) {
			if err != nil {
				yield(nil, fmt.Errorf("query: %w", err))
				return
			}
			v, err := q.decode(row)
			if !yield(v, err) || err != nil {
				return
			}
		}
	}
}

// rows runs the query.
func (q Query[T]) rows(ctx context.Context) iter.Seq2[*exec.Row, error] {
	return func(yield func(*exec.Row, error) bool) {
		q, err := q.complete()
		if err == nil {
			err = q.checkIncludes()
		}
		if err != nil {
			yield(nil, err)
			return
		}
		r, err := q.via.startRun(ctx, &q.q, q.run)
		if err != nil {
			yield(nil, err)
			return
		}
		defer r.Close()
		for {
			row, err := r.Next(ctx)
			if err != nil {
				yield(nil, err)
				return
			}
			if row == nil || !yield(row, nil) {
				return
			}
		}
	}
}

// All returns all answers. They must fit into memory: Limit or Iter is safer
// where there may be many.
func (q Query[T]) All(ctx context.Context) ([]*T, error) {
	out := []*T{}
	for v, err := range q.Iter(ctx) {
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

// First returns the first answer, or ErrNotFound.
func (q Query[T]) First(ctx context.Context) (*T, error) {
	if !q.q.HasLimit {
		q = q.Limit(1)
	}
	for v, err := range q.Iter(ctx) {
		return v, err
	}
	return nil, fmt.Errorf("query: %w", ErrNotFound)
}

// Exists reports whether there is an answer.
func (q Query[T]) Exists(ctx context.Context) (bool, error) {
	q.q.Include = nil // they are not seen
	_, err := q.First(ctx)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Count returns how many answers there are, Skip and Limit included. It reads
// no documents where entries of an index can be counted instead.
func (q Query[T]) Count(ctx context.Context) (int64, error) {
	q, err := q.complete()
	if err != nil {
		return 0, err
	}
	if n, counted, err := q.countAll(ctx); counted || err != nil {
		return n, err
	}
	plain := q.q
	plain.OrderBy, plain.Include = nil, nil
	if len(plain.Select) > 0 || plain.Distinct || q.run.After != nil {
		plain = q.q // the rows themselves must be made
	} else {
		q.run.Counting = true
	}
	r, err := q.via.startRun(ctx, &plain, q.run)
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	defer r.Close()
	n, err := r.Count(ctx)
	if err != nil {
		return 0, fmt.Errorf("count: %w", err)
	}
	return n, nil
}

// Page is a part of the answers.
type Page[T any] struct {
	Items []*T   `json:"items"`
	Next  string `json:"next,omitempty"` // for After; "" at the end
}

// Page returns up to Limit answers (100 without one), and the cursor with
// which the next page begins. A query without an order is ordered by ID.
func (q Query[T]) Page(ctx context.Context) (Page[T], error) {
	if err := q.checkPaging(); err != nil {
		return Page[T]{}, err
	}
	q, err := q.dated() // before the cursor names the query
	if err != nil {
		return Page[T]{}, err
	}
	if len(q.q.OrderBy) == 0 {
		q = q.OrderBy("id()")
	}
	limit := 100
	if q.q.HasLimit {
		limit = q.q.Limit
	}
	if limit == 0 || limit == math.MaxInt {
		return Page[T]{}, fmt.Errorf("%w: a page of %d answers", ErrQuery, limit)
	}
	q = q.Limit(limit + 1)
	q.run.Paging = true
	p := Page[T]{Items: []*T{}}
	var last *exec.Cursor
	lastID := "" // as its document has it
	for row, err := range q.rows(ctx) {
		if err != nil {
			return Page[T]{}, fmt.Errorf("query: %w", err)
		}
		if len(p.Items) == limit {
			if last != nil && !last.Exact {
				return Page[T]{}, fmt.Errorf("%w: the page ends at %q, one of whose values is too long to go on from: order by something shorter", ErrQuery, lastID)
			}
			if last != nil {
				p.Next = last.Text(&q.q)
			}
			break
		}
		v, err := q.decode(row)
		if err != nil {
			return Page[T]{}, err
		}
		p.Items, last = append(p.Items, v), row.Cursor
		if last != nil {
			if lastID = last.ID; row.Document != nil {
				lastID = row.Document.ID()
			}
		}
	}
	return p, nil
}

// Explain runs the query to its end and reports how it was answered.
func (q Query[T]) Explain(ctx context.Context) (Explanation, error) {
	q, err := q.complete()
	if err != nil {
		return Explanation{}, err
	}
	r, err := q.via.startRun(ctx, &q.q, q.run)
	if err != nil {
		return Explanation{}, fmt.Errorf("explain: %w", err)
	}
	defer r.Close()
	for {
		row, err := r.Next(ctx)
		if err != nil {
			return Explanation{}, fmt.Errorf("explain: %w", err)
		}
		if row == nil {
			return explain(r, &q.q), nil
		}
	}
}
