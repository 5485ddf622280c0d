package jay

import (
	"context"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/spelling"
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
	via    access
	q      query.Query
	size   query.Size // of q.Where
	having Condition
	text   bool // it began as RQL, in which a name in where says what it means
	err    error
	run    exec.Options
	cursor string                        // of After; read when the query runs, as conditions and order may still come
	decode func(r *exec.Row) (*T, error) // nil and nil for a row to be left out
	m      *codec.Mapping                // of the collection's Go type; nil for documents
	arrive func([]*docs.Document)        // takes what is included; nil if there is no place for it

	tracked bool // it is a session's

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
		return Query[Row]{err: err}, err
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
		return Query[Row]{err: err}, err
	}
	return Query[Row]{via: via, q: *q, size: size, text: true, decode: newRow, arrive: func([]*docs.Document) {}}, nil
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

// Having adds conditions on groups: a group must satisfy all of them, and those that the
// query has. Their fields are functions such as "count()" and "sum(Total)", or names
// of columns of functions. Where chooses documents before they are grouped.
func (q Query[T]) Having(conditions ...Condition) Query[T] {
	if len(conditions) == 0 {
		return q
	}
	if q.having.expr != nil {
		conditions = append([]Condition{q.having}, conditions...)
	}
	if q.having = And(conditions...); q.having.err != nil {
		return q.fail(q.having.err)
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
		f := query.Field{Path: jsonpath.MustParse(keyText)}
		if !strings.EqualFold(text, keyText) {
			var err error
			if f, err = parseField(text); err != nil {
				return q.fail(orderError(text, err))
			}
		}
		q.q.OrderBy = append(q.q.OrderBy, query.Order{Field: f, Descending: descending})
	}
	return q
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

// check returns the error of what the query was made of, or ErrUsage for one that was
// not made by a method.
func (q *Query[T]) check() error {
	if q.err == nil && q.via == nil {
		return fmt.Errorf("%w: this Query is a zero value: Collection.Query, DB.Query, DB.RQL and QueryOf make one", ErrUsage)
	}
	return q.err
}

// complete returns the query in the form in which it is run.
func (q Query[T]) complete() (Query[T], error) {
	if err := q.check(); err != nil {
		return q, err
	}
	if err := q.resolveGroups(); err != nil {
		return q, err
	}
	if err := q.checkNames(); err != nil {
		return q, err
	}
	if err := q.checkIncludes(); err != nil {
		return q, err
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

// checkNames refuses members that the documents of a typed collection never have.
func (q *Query[T]) checkNames() error {
	if q.m == nil || q.m.AnyField {
		return nil
	}
	check := func(f query.Field) error {
		if f.Meta != query.MetaNone || f.Path.IsZero() {
			return nil
		}
		return checkMember(q.m, f.Path)
	}
	if err := query.EachField(q.q.Where, check); err != nil {
		return err
	}
	if err := query.EachField(q.q.Having, check); err != nil {
		return err
	}
	for _, f := range q.q.GroupBy {
		if err := check(f); err != nil {
			return err
		}
	}
	for _, c := range q.q.Select {
		if err := check(c.Field); err != nil {
			return err
		}
	}
	for _, o := range q.q.OrderBy {
		if err := check(o.Field); err != nil {
			return err
		}
	}
	for _, p := range q.q.Include {
		if err := checkMember(q.m, p); err != nil {
			return err
		}
	}
	return nil
}

// checkMember returns ErrQuery for a path that leads nowhere in the JSON of a type.
func checkMember(m *codec.Mapping, p jsonpath.Path) error {
	if m.Members.Has(p.String()) {
		return nil
	}
	names := make([]string, 0, 8)
	for i := range p.Len() {
		if step := p.At(i); step.Kind == jsonpath.Member {
			names = append(names, step.Name)
		}
	}
	u := m.FindMember(names)
	if u == nil {
		m.Members.Add(p.String())
		return nil
	}
	what := fmt.Sprintf("the JSON of %s has no member %q", u.Type, errs.Shorten(u.Name))
	hint := ""
	near := u.ByField[u.Name]
	for _, name := range u.Names {
		if near == "" && strings.EqualFold(name, u.Name) {
			near = name
		}
	}
	if near == "" || !slices.Contains(u.Names, near) {
		near = spelling.Nearest(u.Name, u.Names)
	}
	switch {
	case u.Dropped || near == "" && strings.EqualFold(u.Name, "id"):
		hint = ": the ID is id(), the version @metadata.@change-vector"
	case near != "":
		hint = fmt.Sprintf(": did you mean %q?", near)
	case u.Type.Kind() != reflect.Struct:
		hint = ", and no members at all"
	}
	return fmt.Errorf("%w: %s%s (option AnyField allows it)", ErrQuery, what, hint)
}

// checkIncludes refuses a query whose includes could not arrive.
func (q Query[T]) checkIncludes() error {
	if q.arrive != nil || len(q.q.Include) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %T has no place for what the query includes: ask for rows, with Rows, or for entities of a session, with QueryOf", ErrQuery, *new(T))
}

// checkPaging refuses a query whose answers have no position to continue from.
func (q Query[T]) checkPaging() error {
	if exec.IsGrouped(&q.q) || q.q.IsDistinct() {
		return fmt.Errorf("%w: groups and distinct rows have no cursor: use Skip", ErrQuery)
	}
	return nil
}

// resolveGroups sets the order and the condition of groups, whose fields are columns: by
// their names, or by what they show. In a query without groups it refuses functions.
func (q *Query[T]) resolveGroups() error {
	grouped := exec.IsGrouped(&q.q)
	if f, found := query.GroupField(q.q.Where); found {
		return fmt.Errorf("%w: Where chooses documents, and %s is of groups: use Having", ErrQuery, f)
	}
	if q.q.Where != nil && grouped && !q.text {
		for _, f := range query.Fields(q.q.Where) {
			for _, c := range q.q.Select {
				if c.Func != query.FuncNone && f.Meta == query.MetaNone && f.Path.String() == c.Name && c.Field.String() != f.String() {
					return fmt.Errorf("%w: Where chooses documents, and %s is a column of groups: use Having, or give the column another name", ErrQuery, f)
				}
			}
		}
	}
	if q.having.expr != nil {
		e, err := query.MapFields(q.having.expr, q.groupField)
		if err != nil {
			return err
		}
		q.q.Having, grouped = e, true
	}
	if !grouped {
		for _, o := range q.q.OrderBy {
			if o.Field.Func != query.FuncNone || isKeyText(o.Field) {
				return fmt.Errorf("%w: order by %s, which is of groups, and there are none: GroupBy and Select make them", ErrQuery, o.Field)
			}
		}
		return nil
	}
	orders := slices.Clone(q.q.OrderBy)
	for i, o := range orders {
		if o.Column == "" {
			orders[i].Field, orders[i].Column = query.Field{}, q.orderColumn(o.Field)
		}
	}
	q.q.OrderBy = orders
	return nil
}

// isKeyText reports whether a field of the builder is key().
func isKeyText(f query.Field) bool {
	return f.Meta == query.MetaNone && strings.EqualFold(f.Path.String(), keyText)
}

// orderColumn returns the name of the column that an order of groups goes by. If there
// is none, running the query says so.
func (q *Query[T]) orderColumn(f query.Field) string {
	fn := f.Func
	plain := f
	plain.Func = query.FuncNone
	if isKeyText(f) && len(q.q.GroupBy) == 1 {
		plain = q.q.GroupBy[0]
	}
	for _, c := range q.q.Select {
		if fn == query.FuncNone && plain.Meta == query.MetaNone && c.Name == plain.Path.String() {
			return c.Name
		}
	}
	for _, c := range q.q.Select {
		if c.Func == fn && (fn == query.FuncCount || plain.ShownAs(c.Field)) {
			return c.Name
		}
	}
	return f.String()
}

// groupField returns the function that a field of Having means.
func (q *Query[T]) groupField(f query.Field) (query.Field, error) {
	if f.Func != query.FuncNone {
		return f, nil
	}
	for _, c := range q.q.Select {
		if c.Func != query.FuncNone && f.Meta == query.MetaNone && c.Name == f.Path.String() {
			c.Field.Func = c.Func
			if f.Date == query.DateInstant {
				c.Field.Date = f.Date
			}
			return c.Field, nil
		}
	}
	return f, fmt.Errorf("%w: Having asks groups, and %s is neither a function nor the column of one: Where asks documents", ErrQuery, f)
}

// NoScan makes the query fail with ErrNoIndex, when it runs, if it would look
// at every document of the collection for a condition, an order or a group
// that an index could have served. It is meant for tests. A query that asks
// for all documents as they come is not refused.
func (q Query[T]) NoScan() Query[T] {
	q.run.NoScan = true
	return q
}

// Distinct leaves out answers that have the same values as an earlier one. It is of
// columns, and changes nothing without a Select: no two documents are the same.
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
		if err == nil && f.Func != query.FuncNone {
			err = fmt.Errorf("%w: groups by %s, which is of groups", ErrQuery, f)
		}
		if err != nil {
			return q.fail(err)
		}
		q.q.GroupBy = append(q.q.GroupBy, f)
	}
	return q
}

// Include also reads the documents whose IDs are at these paths in the answers. They
// arrive in Row.Included: make it a query for rows, with Rows, if it is not one of
// DB.RQL; or in the session of QueryOf, whose Load then answers without reading. The
// answers of any other query have no place for them, and it fails with ErrQuery when it
// runs.
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

// Select asks for columns instead of whole documents, as values of R: a struct, a map or
// json.RawMessage, or for one column its value: a string, a number, a time, a slice.
// Without another name, id() goes into the field of a struct that takes an ID. A column is a path, "id()" or one of
// count(), sum(path), avg(path), min(path) and max(path); "Total as Sum" gives
// it another name. A name that is a keyword of RQL stands in quotes: "month('from')". A
// struct must have a field for each column. Functions make one answer of all documents, or one of each
// group of GroupBy.
func Select[R, T any](q Query[T], columns ...string) Query[R] {
	out := Query[R]{via: q.via, tracked: q.tracked, m: q.m, q: q.q, size: q.size, having: q.having, text: q.text, err: q.err, run: q.run, cursor: q.cursor}
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
	if q.tracked {
		out.arrive = q.arrive
	}
	raw := reflect.TypeFor[R]() == reflect.TypeFor[json.RawMessage]()
	single := !raw && isSingle(reflect.TypeFor[R]())
	if single && len(columns) > 1 {
		return out.fail(fmt.Errorf("%w: a %s holds one column, not %d", ErrQuery, reflect.TypeFor[R](), len(columns)))
	}
	if !raw && !single {
		nameID(out.q.Select, reflect.TypeFor[R]())
		for _, c := range out.q.Select {
			if codec.LacksMember(reflect.TypeFor[R](), c.Name) {
				return out.fail(fmt.Errorf("%w: %s has no field for the column %q: add one, or name the column like a field, with \"as\"", ErrQuery, reflect.TypeFor[R](), errs.Shorten(c.Name)))
			}
		}
	}
	out.decode = func(r *exec.Row) (*R, error) {
		v := new(R)
		if raw {
			*any(v).(*json.RawMessage) = r.JSON
			return v, nil
		}
		value := r.JSON
		if single {
			for _, member := range jsonpath.Members(r.JSON) {
				value = member
			}
		}
		if err := json.Unmarshal(value, v); err != nil {
			return nil, &DecodeError{Err: fmt.Errorf("%.100s: %w", r.JSON, err)}
		}
		return v, nil
	}
	return out
}

// isSingle reports whether a type takes the value of one column, and no object of
// columns: text, a number, a boolean, a list, time.Time.
func isSingle(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	pointer := reflect.PointerTo(t)
	switch {
	case pointer.Implements(reflect.TypeFor[encoding.TextUnmarshaler]()):
		return true
	case pointer.Implements(reflect.TypeFor[json.Unmarshaler]()):
		return false
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map, reflect.Interface:
		return false
	}
	return true
}

// nameID gives the column id() the name of the field of a struct that takes an ID,
// unless it was given another or the field has a column.
func nameID(columns []query.Column, t reflect.Type) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return
	}
	name := codec.IDName(t)
	if name == "" || slices.ContainsFunc(columns, func(c query.Column) bool { return c.Name == name }) {
		return
	}
	for i, c := range columns {
		if c.Field.Meta == query.MetaID && c.Func == query.FuncNone && c.Name == "id()" {
			columns[i].Name = name
			return
		}
	}
}

// String returns the query as RQL, which DB.RQL reads as the same query. After,
// NoScan and the type of the answers are no part of it. Of a query that cannot run
// because of what it is made of, String returns "invalid query: " and the error.
func (q Query[T]) String() string {
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

// Rows returns the query with rows for its answers, which bring what Include has
// asked for.
func (q Query[T]) Rows() Query[Row] {
	return Query[Row]{via: q.via, m: q.m, q: q.q, size: q.size, having: q.having, text: q.text, err: q.err, run: q.run, cursor: q.cursor,
		decode: newRow, arrive: func([]*docs.Document) {}}
}

// Iter runs the query. The loop sees the database as it was when it began, and
// may be left at any time. A document that does not decode comes as a nil value and a
// *DecodeError, and the loop goes on; any other error comes as the last pair. Each
// value belongs to the caller.
func (q Query[T]) Iter(ctx context.Context) iter.Seq2[*T, error] {
	return func(yield func(*T, error) bool) {
		for row, err := range q.rows(ctx) {
			if err != nil {
				yield(nil, fmt.Errorf("query: %w", err))
				return
			}
			v, err := q.take(row)
			if (v != nil || err != nil) && !yield(v, err) {
				return
			}
		}
	}
}

// take returns the value of a row, and hands on what it includes.
func (q *Query[T]) take(row *exec.Row) (*T, error) {
	if q.arrive != nil && len(row.Included) > 0 {
		q.arrive(row.Included)
	}
	return q.decode(row)
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
// where there may be many. If some do not decode, it returns the others, and an error
// that joins their *DecodeErrors.
func (q Query[T]) All(ctx context.Context) ([]*T, error) {
	out := []*T{}
	var broken brokenRows
	for v, err := range q.Iter(ctx) {
		switch {
		case err == nil:
			out = append(out, v)
		case !broken.add(err):
			return nil, err
		}
	}
	return out, broken.err()
}

// brokenRows are answers that do not decode. It keeps the first errors.
type brokenRows struct {
	first []error
	more  int
}

// maxBrokenRows is how many errors of answers All and Page return.
const maxBrokenRows = 100

// add takes an error in if it is a *DecodeError.
func (b *brokenRows) add(err error) bool {
	var decode *DecodeError
	switch {
	case !errors.As(err, &decode):
		return false
	case len(b.first) < maxBrokenRows:
		b.first = append(b.first, err)
	default:
		b.more++
	}
	return true
}

func (b *brokenRows) err() error {
	if b.more > 0 {
		return errors.Join(append(b.first, fmt.Errorf("and %d more do not decode", b.more))...)
	}
	return errors.Join(b.first...)
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
	if !q.q.HasLimit {
		q = q.Limit(1)
	}
	for _, err := range q.rows(ctx) {
		if err != nil {
			return false, fmt.Errorf("query: %w", err)
		}
		return true, nil
	}
	return false, nil
}

// Count returns how many answers there are, Skip and Limit included. It reads
// no documents where entries of an index can be counted instead.
func (q Query[T]) Count(ctx context.Context) (int64, error) {
	q.q.Include = nil // they make no difference
	q, err := q.complete()
	if err != nil {
		return 0, err
	}
	if n, counted, err := q.countAll(ctx); counted || err != nil {
		return n, err
	}
	plain := q.q
	plain.OrderBy, plain.Include = nil, nil
	if len(plain.Select) > 0 || q.run.After != nil {
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
	Items []*T   `json:"items"`          // never nil from Query.Page
	Next  string `json:"next,omitempty"` // for After; "" at the end
}

// Page returns up to Limit answers (100 without one; Limit(0) is ErrQuery), and the cursor with
// which the next page begins. A query without an order is ordered by ID. If some answers
// do not decode, it returns the page without them, and the error of All.
func (q Query[T]) Page(ctx context.Context) (Page[T], error) {
	if err := q.check(); err != nil {
		return Page[T]{Items: []*T{}}, err
	}
	if err := q.checkPaging(); err != nil {
		return Page[T]{Items: []*T{}}, err
	}
	q, err := q.dated() // before the cursor names the query
	if err != nil {
		return Page[T]{Items: []*T{}}, err
	}
	if len(q.q.OrderBy) == 0 {
		q = q.OrderBy("id()")
	}
	limit := 100
	if q.q.HasLimit {
		limit = q.q.Limit
	}
	if limit == 0 || limit == math.MaxInt {
		return Page[T]{Items: []*T{}}, fmt.Errorf("%w: a page of %d answers", ErrQuery, limit)
	}
	q = q.Limit(limit + 1)
	q.run.Paging = true
	p := Page[T]{Items: []*T{}}
	var last *exec.Cursor
	var broken brokenRows
	taken := 0
	lastID := "" // as its document has it
	for row, err := range q.rows(ctx) {
		if err != nil {
			return Page[T]{Items: []*T{}}, fmt.Errorf("query: %w", err)
		}
		if taken == limit {
			if last != nil && !last.Exact {
				return Page[T]{Items: []*T{}}, fmt.Errorf("%w: the page ends at %q, one of whose values is too long to go on from: order by something shorter", ErrQuery, lastID)
			}
			if last != nil {
				p.Next = last.Text(&q.q)
			}
			break
		}
		taken, last = taken+1, row.Cursor
		v, err := q.take(row)
		switch {
		case v != nil:
			p.Items = append(p.Items, v)
		case err != nil && !broken.add(err):
			return Page[T]{Items: []*T{}}, err
		}
		if last != nil {
			if lastID = last.ID; row.Document != nil {
				lastID = row.Document.ID()
			}
		}
	}
	return p, broken.err()
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
