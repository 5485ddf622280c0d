// Package builder makes queries as the methods of jay.Query do, a step at a time, and runs them.
//
// Package query decides what a query means, and package exec carries one out. Between the two, a
// Definition keeps what was asked for and the first mistake in it, which running the query returns;
// it checks names against the Go type of a collection, reads its times as dates, gives groups their
// columns, and changes what a query finds in batches. The types of package jay are thin covers
// that add the type of the answers.
//
// A Definition is a value: its methods change a copy, and what it holds is not changed.
package builder

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// Source is what a query is asked of: a database, a transaction or a session.
type Source interface {
	Database() *core.Database
	StartRun(ctx context.Context, q *query.Query, o exec.Options) (*exec.Run, error)
}

// Definition is a query but for the type of its answers. All that does not need the type
// is a method of it: those of jay.Query are compiled anew for each type.
type Definition struct {
	Via     Source // nil for a query that was not made by a method, or has Err
	Query   query.Query
	Mapping *codec.Mapping         // of the collection's Go type; nil for documents
	Arrive  func([]*docs.Document) // takes what is included; nil if there is no place for it
	Shows   bool                   // there is a place for highlights and explanations

	Answers reflect.Type // that of the answers, for errors
	Tracked bool         // it is a session's
	Err     error        // the first mistake

	Progress func(Changed) // of changes; nil for none

	size      query.Size // of Query.Where
	having    Condition
	text      bool // it began as RQL, in which a name in where says what it means
	run       exec.Options
	pageBytes int    // see BoundPages
	cursor    string // see After; read when the query runs, as conditions and order may still come
}

// Text returns the query of a text that was parsed.
func Text(via Source, q *query.Query) (Definition, error) {
	size, err := query.Measure(q.Where)
	if err == nil && q.Having != nil {
		_, err = query.Measure(q.Having)
	}
	if err != nil {
		err = fmt.Errorf("%w: %w", errs.ErrQuery, err)
		return Definition{Err: err}, err
	}
	return Definition{Via: via, Query: *q, size: size, text: true}, nil
}

// Collection returns the query for the documents of a collection; "" is all documents.
func Collection(via Source, collection string) Definition {
	return Definition{Via: via, Query: query.Query{From: collection}}
}

// Rows returns the query with rows for its answers, of the type t, which bring what is included.
func (q Definition) Rows(t reflect.Type) Definition {
	q.Answers, q.Arrive, q.Shows, q.Tracked, q.Progress = t, func([]*docs.Document) {}, true, false, nil
	return q
}

// fail keeps err, unless the query has an error already.
func (q *Definition) fail(err error) {
	if q.Err == nil {
		q.Err = err
	}
}

// Where adds conditions, all of which a document must satisfy. inner returns one of them as
// this package has it.
func Where[C any](q *Definition, conditions []C, inner func(C) Condition) {
	if len(conditions) == 0 {
		return
	}
	var all Condition
	switch {
	case q.Query.Where != nil:
		all = And(after(Condition{expr: q.Query.Where, size: q.size}, conditions, inner), itself)
	case len(conditions) == 1:
		all = inner(conditions[0])
	default:
		all = And(conditions, inner)
	}
	if all.err != nil {
		q.fail(all.err)
		return
	}
	q.Query.Where, q.size = all.Expr(), all.Size()
}

// Having adds conditions, all of which a group must satisfy.
func Having[C any](q *Definition, conditions []C, inner func(C) Condition) {
	if len(conditions) == 0 {
		return
	}
	if q.having.expr != nil {
		q.having = And(after(q.having, conditions, inner), itself)
	} else {
		q.having = And(conditions, inner)
	}
	if q.having.err != nil {
		q.fail(q.having.err)
	}
}

func itself(c Condition) Condition { return c }

// after returns a list of first and the conditions.
func after[C any](first Condition, conditions []C, inner func(C) Condition) []Condition {
	all := append(make([]Condition, 0, len(conditions)+1), first)
	for _, c := range conditions {
		all = append(all, inner(c))
	}
	return all
}

// OrderBy orders the answers by fields, in place of an order given before.
func (q *Definition) OrderBy(fields []string) {
	q.Query.OrderBy, q.Query.Fused = nil, false
	if err := checkList(len(fields)); err != nil {
		q.fail(err)
		return
	}
	for _, text := range fields {
		text, descending := strings.CutPrefix(text, "-")
		if fused, is, err := query.ParseFused(text); is {
			if err == nil && (descending || len(fields) > 1) {
				err = errors.New("rank.fuse() is the whole order of a query, and has no direction: the best answers come first")
			}
			if err != nil {
				q.fail(fmt.Errorf("%w: %w", errs.ErrQuery, err))
				return
			}
			q.Query.OrderBy, q.Query.Fused = fused, true
			return
		}
		f := query.Field{Path: jsonpath.MustParse(keyText)}
		if !strings.EqualFold(text, keyText) {
			var err error
			if f, err = parseField(text); err != nil {
				q.fail(orderError(text, err))
				return
			}
		}
		q.Query.OrderBy = append(q.Query.OrderBy, query.Order{Field: f, Descending: descending != (f.Meta == query.MetaScore)})
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

// Skip leaves out the first n answers.
func (q *Definition) Skip(n int) {
	if n < 0 {
		q.fail(fmt.Errorf("%w: Skip(%d)", errs.ErrQuery, n))
		return
	}
	q.Query.Offset = n
}

// Limit ends the answers after n.
func (q *Definition) Limit(n int) {
	if n < 0 {
		q.fail(fmt.Errorf("%w: Limit(%d)", errs.ErrQuery, n))
		return
	}
	q.Query.Limit, q.Query.HasLimit = n, true
}

// After makes the answers begin after that of a cursor.
func (q *Definition) After(cursor string) { q.cursor = cursor }

// NoScan makes the query fail if it would look at every document for want of an index.
func (q *Definition) NoScan() {
	q.run.NoScan = true
	q.checkNoIndex()
}

// NoIndex makes the query be answered without an index.
func (q *Definition) NoIndex() {
	q.Query.NoIndex = true
	q.checkNoIndex()
}

// checkNoIndex refuses what contradicts NoIndex.
func (q *Definition) checkNoIndex() {
	switch {
	case !q.Query.NoIndex:
	case q.Query.UseIndex != "":
		q.fail(fmt.Errorf("%w: NoIndex contradicts UseIndex(%q)", errs.ErrQuery, errs.Shorten(q.Query.UseIndex)))
	case q.run.NoScan:
		q.fail(fmt.Errorf("%w: NoIndex contradicts NoScan: without an index every document is looked at", errs.ErrQuery))
	}
}

// BoundPages ends a page when the JSON of its answers has n bytes; 0 is no such bound.
func (q *Definition) BoundPages(n int) {
	if n < 0 {
		q.fail(fmt.Errorf("%w: PageBytes(%d)", errs.ErrQuery, n))
		return
	}
	q.pageBytes = n
}

// UseIndex makes the index of this name answer the query.
func (q *Definition) UseIndex(name string) {
	switch {
	case name != "" && q.Query.From == "":
		q.fail(fmt.Errorf("%w: UseIndex(%q): an index is of one collection, and the query asks all documents", errs.ErrQuery, errs.Shorten(name)))
		return
	case len(name) > query.MaxName:
		q.fail(fmt.Errorf("%w: UseIndex: a name of %d bytes, of %d at most", errs.ErrQuery, len(name), query.MaxName))
		return
	}
	q.Query.UseIndex = name
	q.checkNoIndex()
}

// GroupBy makes one answer of all documents with the same values at fields.
func (q *Definition) GroupBy(fields []string) {
	q.Query.GroupBy = nil
	if err := checkList(len(fields)); err != nil {
		q.fail(err)
		return
	}
	for _, text := range fields {
		f, err := parseField(text)
		if err == nil && f.Func != query.FuncNone {
			err = fmt.Errorf("%w: groups by %s, which is of groups", errs.ErrQuery, f)
		}
		if err != nil {
			q.fail(err)
			return
		}
		q.Query.GroupBy = append(q.Query.GroupBy, f)
	}
}

// Include also reads the documents whose IDs are at paths in the answers.
func (q *Definition) Include(paths []string) {
	if err := checkList(len(q.Query.Include) + len(paths)); err != nil {
		q.fail(err)
		return
	}
	for _, text := range paths {
		p, err := jsonpath.Parse(text)
		if err != nil {
			q.fail(fmt.Errorf("%w: include: %w", errs.ErrQuery, err))
			return
		}
		q.Query.Include = append(slices.Clip(q.Query.Include), p)
	}
}

// checkList refuses a list of n fields if a query may not have so many.
func checkList(n int) error {
	if n > query.MaxColumns {
		return fmt.Errorf("%w: %w", errs.ErrQuery, &query.LimitError{What: "fields in one list", Limit: query.MaxColumns, Actual: n})
	}
	return nil
}

// RQL returns the query as text, or why it cannot run.
func (q Definition) RQL() string {
	err := q.Check()
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
	return q.Query.String()
}
