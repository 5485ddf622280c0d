package computed

import (
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// Resolved is a query of a computed index as queries of documents.
type Resolved struct {
	// Plain is one query that has the same answers; nil if there is none.
	Plain *query.Query

	// Parts are those of the maps, otherwise: of documents or elements, in the order of the query, or of groups, which are to be
	// merged.
	Parts []Part

	// Reduce has the rest of a query of groups; nil for one of entries.
	Reduce *Reduced
}

// Part is the query of one map.
type Part struct {
	Query *query.Query

	// Wanted are conditions on members that all groups which are wanted satisfy, and all documents which give something to these. They decide
	// nothing: the rest need not be looked at.
	Wanted []query.Expr
}

// Reduced is what follows when groups are merged: each is a row of Columns, of which Results make a result, on which the
// condition, the orders and the columns of the query are.
type Reduced struct {
	By      int // the first so many of Columns are the members of the group
	Columns []query.Column
	Results []query.Column // those that the query looks at
}

// Resolve returns a query of the index as queries of documents. The error is ErrQuery.
func (d *Definition) Resolve(q *query.Query) (*Resolved, error) {
	r, err := d.resolve(q)
	if err != nil {
		return nil, fmt.Errorf("%w: index %q: %w", errs.ErrQuery, d.Declared.Name, err)
	}
	return r, nil
}

func (d *Definition) resolve(q *query.Query) (*Resolved, error) {
	if err := check(q); err != nil {
		return nil, err
	}
	if d.reduce != nil {
		return d.resolveReduce(q)
	}
	r := &Resolved{}
	for i := range d.maps {
		part, err := d.entriesOf(i, q)
		if err != nil {
			return nil, err
		}
		r.Parts = append(r.Parts, Part{Query: part})
	}
	if len(d.maps) == 1 {
		r.Plain = r.Parts[0].Query
		r.Plain.Limit, r.Plain.HasLimit, r.Plain.Offset, r.Plain.Distinct = q.Limit, q.HasLimit, q.Offset, q.Distinct
	}
	return r, nil
}

// check refuses what a query of a computed index does not have.
func check(q *query.Query) error {
	switch {
	case len(q.GroupBy) > 0 || q.Having != nil || slices.ContainsFunc(q.Select, func(c query.Column) bool { return c.Func != query.FuncNone }):
		return fmt.Errorf("a query of a computed index has no groups of its own: they are declared with the index")
	case len(q.Facets) > 0:
		return fmt.Errorf("facets count documents, and a query of a computed index has no documents")
	case len(q.Suggests) > 0:
		return fmt.Errorf("suggestions are of the words of a collection, and a query of a computed index has none")
	case len(q.Include) > 0:
		return fmt.Errorf("a query of a computed index answers with members, and includes no documents")
	case q.IncludesMore():
		return fmt.Errorf("highlights and explanations are of documents, and a query of a computed index answers with members")
	case q.UseIndex != "":
		return fmt.Errorf("it is answered by the indexes that are its parts, and by no index that the query names")
	case !q.Each.IsZero():
		return fmt.Errorf("a query of a computed index has no each: it is declared with the index")
	}
	return nil
}

// entriesOf returns the query of one map of an index without groups.
func (d *Definition) entriesOf(i int, q *query.Query) (*query.Query, error) {
	p := &d.maps[i]
	out := &query.Query{From: p.collection, Each: p.each, NoIndex: q.NoIndex, Fused: q.Fused}
	ofDocument := func(f query.Field) (query.Field, error) { return d.member(i, f) }
	where := query.Conjuncts(p.where)
	if q.Where != nil {
		e, err := d.conditionOf(i, q.Where)
		if err != nil {
			return nil, err
		}
		where = append(where, query.Conjuncts(e)...)
		if len(query.Conjuncts(e)) == 0 {
			where = append(where, e)
		}
	}
	if len(where) > 0 {
		out.Where = query.And(where)
	}
	for _, o := range q.OrderBy {
		var err error
		if o.Field, err = query.Substitute(o.Field, ofDocument); err != nil {
			return nil, err
		}
		out.OrderBy = append(out.OrderBy, o)
	}
	for _, c := range q.Select {
		var err error
		if c.Field, err = query.Substitute(c.Field, ofDocument); err != nil {
			return nil, err
		}
		out.Select = append(out.Select, c)
	}
	if len(q.Select) == 0 {
		for n, name := range d.members {
			out.Select = append(out.Select, query.Column{Name: name, Field: p.fields[n]})
		}
		if len(d.members) == 0 { // it creates all
			out.Select = []query.Column{{Name: "id()", Field: query.Field{Meta: query.MetaID}}}
		}
	}
	return out, nil
}

// member returns what a field of an entry is in the documents of a map.
func (d *Definition) member(of int, f query.Field) (query.Field, error) {
	if f.Meta != query.MetaNone {
		if d.reduce != nil || f.Meta == query.MetaElement {
			return f, fmt.Errorf("%s is of documents", f)
		}
		return f, nil
	}
	if f.Path.Loads() {
		return f, fmt.Errorf("%s is of documents: the index has what its maps load, and no references", f)
	}
	at := slices.Index(d.members, f.Path.Root())
	if at < 0 && d.creates() {
		return f, fmt.Errorf("%s is a field that the map creates by a name in the document, and is for conditions alone: for orders, columns, facets and terms a map creates it with a constant name", f)
	}
	if at < 0 {
		return f, d.unknown(f.Path.Root(), d.members)
	}
	return into(d.maps[of].fields[at], f)
}

// into returns the field that f, which begins with a member, is if the member is another field.
func into(member, f query.Field) (query.Field, error) {
	if f.Path.Len() > 1 {
		if member.Expression != nil || member.Date != query.DateNone || member.Meta != query.MetaNone && member.Meta != query.MetaElement && member.Meta != query.MetaCustom {
			return f, fmt.Errorf("%s is one value, and %s leads into it", member, f)
		}
		path, err := member.Path.Within(f.Path.Suffix(1))
		if err != nil {
			return f, err
		}
		member.Path = path
	}
	if f.Date != query.DateNone && !(f.Date == query.DateInstant && member.Date == query.DateInstant) {
		if member.Expression != nil || member.Date != query.DateNone {
			return f, fmt.Errorf("%s is a member that is computed, and is read as a date", f)
		}
		member.Date, member.UTC, member.Zone = f.Date, f.UTC, f.Zone
	}
	return member, nil
}

// resolveReduce is resolve of an index with groups.
func (d *Definition) resolveReduce(q *query.Query) (*Resolved, error) {
	red := d.reduce
	names := d.Results()
	known := func(f query.Field) (query.Field, error) {
		if f.Meta != query.MetaNone {
			return f, fmt.Errorf("%s is of documents, and the results are groups of them", f)
		}
		if !slices.Contains(names, f.Path.Root()) {
			return f, d.unknown(f.Path.Root(), names)
		}
		return f, nil
	}
	if _, err := query.SubstituteCondition(q.Where, known); q.Where != nil && err != nil {
		return nil, err
	}
	for _, o := range q.OrderBy {
		if _, err := query.Substitute(o.Field, known); err != nil {
			return nil, err
		}
	}
	for _, c := range q.Select {
		if _, err := query.Substitute(c.Field, known); err != nil {
			return nil, err
		}
	}
	results := d.asked(q)
	columns := d.columnsOf(results)
	r := &Resolved{Reduce: &Reduced{By: len(red.by), Results: results}}
	for i := range d.maps {
		p := &d.maps[i]
		part := Part{Query: &query.Query{From: p.collection, Each: p.each, Where: p.where, NoIndex: q.NoIndex}}
		for n, at := range red.by {
			part.Query.GroupBy = append(part.Query.GroupBy, p.fields[at])
			part.Query.Select = append(part.Query.Select, query.Column{Name: d.Declared.Reduce.GroupBy[n], Field: p.fields[at]})
		}
		for _, c := range columns {
			if c.Func != query.FuncCount {
				var err error
				if c.Field, err = query.Substitute(c.Field, func(f query.Field) (query.Field, error) { return d.member(i, f) }); err != nil {
					return nil, err
				}
			}
			part.Query.Select = append(part.Query.Select, c)
		}
		if r.Reduce.Columns == nil {
			r.Reduce.Columns = part.Query.Select
		}
		part.Wanted = d.pushed(i, query.Conjuncts(q.Where))
		r.Parts = append(r.Parts, part)
	}
	return r, nil
}

// Counted returns a query of groups that has as many answers, and makes none of the results that decide nothing.
func (d *Definition) Counted(q *query.Query) *query.Query {
	if d.reduce == nil || q.Distinct {
		return q
	}
	counted := *q
	counted.OrderBy, counted.Select = nil, []query.Column{{Name: "1", Field: one}}
	return &counted
}

// one is a constant.
var one = func() query.Field {
	f, err := query.ParseExpression("(1)")
	if err != nil {
		panic(err) // it is one
	}
	return f
}()

// asked returns the results that a query looks at: all of them, if it selects none.
func (d *Definition) asked(q *query.Query) (results []query.Column) {
	if len(q.Select) == 0 {
		return d.reduce.results
	}
	fields := query.Fields(q.Where)
	for _, o := range q.OrderBy {
		fields = append(fields, o.Field)
	}
	for _, c := range q.Select {
		if c.Field.Expression == nil && c.Field.Path.IsZero() {
			return d.reduce.results // the result as a whole
		}
		fields = append(fields, c.Field)
	}
	names := rootsOf(fields)
	for _, c := range d.reduce.results {
		if names[c.Name] {
			results = append(results, c)
		}
	}
	return results
}

// columnsOf returns the functions of groups of which results are made.
func (d *Definition) columnsOf(results []query.Column) (columns []query.Column) {
	for _, c := range d.reduce.columns {
		if slices.ContainsFunc(results, func(of query.Column) bool { return rootsOf([]query.Field{of.Field})[c.Name] }) {
			columns = append(columns, c)
		}
	}
	return columns
}

// rootsOf returns the first members of the paths of fields, or of those that they are computed of.
func rootsOf(fields []query.Field) map[string]bool {
	names := make(map[string]bool)
	for _, f := range fields {
		for _, of := range f.Operands() {
			names[of.Path.Root()] = true
		}
	}
	return names
}

// Listed returns the names of the results that are made of the entries of a group when they are asked for, by list().
func (r *Reduced) Listed() (names []string) {
	for _, c := range r.Results {
		roots := rootsOf([]query.Field{c.Field})
		if slices.ContainsFunc(r.Columns, func(of query.Column) bool {
			return (of.Func == query.FuncList || of.Func == query.FuncListDistinct) && roots[of.Name]
		}) {
			names = append(names, c.Name)
		}
	}
	return names
}

// pushed returns the conditions on results that are on members of groups, as conditions on the fields of a map: see Part.Wanted. A group has one value of each member, and a document
// perhaps several, so that a condition must be true of a document if it is of one of its values. A missing member is null in a
// group, so none of them may accept null.
func (d *Definition) pushed(of int, conjuncts []query.Expr) (wanted []query.Expr) {
	for _, e := range conjuncts {
		if !isOfOneValue(e) {
			continue
		}
		mapped, err := query.MapFields(e, func(f query.Field) (query.Field, error) {
			if f.Path.Len() != 1 || f.Meta != query.MetaNone || f.Date != query.DateNone {
				return f, errNotPushed
			}
			for _, c := range d.reduce.results {
				if c.Name != f.Path.Root() {
					continue
				}
				n := slices.IndexFunc(d.Declared.Reduce.GroupBy, func(name string) bool {
					by, err := memberField(name)
					return err == nil && c.Field.Meta == query.MetaNone && c.Field.Date == query.DateNone && by.Path.String() == c.Field.Path.String()
				})
				if n < 0 {
					return f, errNotPushed
				}
				return d.maps[of].fields[d.reduce.by[n]], nil
			}
			return f, errNotPushed
		})
		if err != nil {
			continue
		}
		if _, err := query.Compile(mapped); err != nil {
			continue
		}
		wanted = append(wanted, mapped)
	}
	return wanted
}

var errNotPushed = fmt.Errorf("it is no condition on a member of groups")

// isOfOneValue reports whether a condition is true if one value of its field satisfies it, and never of null.
func isOfOneValue(e query.Expr) bool {
	switch e := e.(type) {
	case query.Compare:
		return e.Value.Kind() > query.KindNull
	case query.Between:
		return e.Lo.Kind() > query.KindNull && e.Hi.Kind() > query.KindNull
	case query.In:
		return !e.All && !slices.ContainsFunc(e.Values, func(v query.Value) bool { return v.Kind() <= query.KindNull })
	case query.StartsWith:
		return true
	}
	return false
}
