package jay

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/codec"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/spelling"
	"github.com/jaydb/jay/query"
)

// check returns the error of what the query was made of, or ErrUsage for one that was
// not made by a method.
func (q definition) check() error {
	if q.err == nil && q.via == nil {
		return fmt.Errorf("%w: this Query is a zero value: Collection.Query, DB.Query, DB.RQL and QueryOf make one", ErrUsage)
	}
	return q.err
}

// complete returns the query in the form in which it is run.
func (q definition) complete() (definition, error) {
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
		q.orderBy([]string{"id()"})
	}
	q.q.Offset = 0
	q.run.After, err = exec.ParseCursor(q.cursor, &q.q)
	return q, err
}

// checkNames refuses members that the documents of a typed collection never have.
func (q definition) checkNames() error {
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
	case u.Instead != "":
		hint = ": it holds metadata, which is " + u.Instead
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
func (q definition) checkIncludes() error {
	if q.arrive != nil || len(q.q.Include) == 0 {
		return nil
	}
	return fmt.Errorf("%w: %s has no place for what the query includes: ask for rows, with Rows, or for entities of a session, with QueryOf", ErrQuery, q.answers)
}

// checkPaging refuses a query whose answers have no position to continue from.
func (q definition) checkPaging() error {
	if exec.IsGrouped(&q.q) || q.q.IsDistinct() {
		return fmt.Errorf("%w: groups and distinct rows have no cursor: use Skip", ErrQuery)
	}
	return nil
}

// resolveGroups sets the order and the condition of groups, whose fields are columns: by
// their names, or by what they show. In a query without groups it refuses functions.
func (q *definition) resolveGroups() error {
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
func (q definition) orderColumn(f query.Field) string {
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
func (q definition) groupField(f query.Field) (query.Field, error) {
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

// dated returns the query with the fields that are time.Time in the Go type of its
// collection read as dates: in comparisons, orders, groups, min() and max(). Those that
// are read so already stay.
func (q definition) dated() (definition, error) {
	if q.m == nil || !q.m.Info.Times {
		return q, nil
	}
	var err error
	if q.q.Where != nil {
		if q.q.Where, err = q.datedCondition(q.q.Where, jsonpath.Path{}); err != nil {
			return q, err
		}
	}
	q.q.OrderBy = slices.Clone(q.q.OrderBy)
	for i, o := range q.q.OrderBy {
		if o.Column == "" && o.As == query.CastNone {
			q.q.OrderBy[i].Field = q.datedField(o.Field)
		}
	}
	q.q.GroupBy = slices.Clone(q.q.GroupBy)
	for i, f := range q.q.GroupBy {
		q.q.GroupBy[i] = q.datedField(f)
	}
	q.q.Select = slices.Clone(q.q.Select)
	for i, c := range q.q.Select {
		if c.Func == query.FuncMin || c.Func == query.FuncMax {
			q.q.Select[i].Field = q.datedField(c.Field)
		}
	}
	return q, nil
}

// datedField returns a field, read as a date if it is a time.Time.
func (q definition) datedField(f query.Field) query.Field {
	if f.Meta == query.MetaNone && f.Date == query.DateNone && q.m.IsTime(f.Path) {
		f.Date = query.DateInstant
	}
	return f
}

// datedCondition is dated for a condition, which is within the bounds of one. Its paths
// begin at the path of, in an ElemMatch that of the elements.
func (q definition) datedCondition(e query.Expr, of jsonpath.Path) (query.Expr, error) {
	switch e := e.(type) {
	case query.And:
		all, err := q.datedConditions(e, of)
		return query.And(all), err
	case query.Or:
		all, err := q.datedConditions(e, of)
		return query.Or(all), err
	case query.Not:
		inner, err := q.datedCondition(e.Expr, of)
		return query.Not{Expr: inner}, err
	case query.Compare:
		values := []query.Value{e.Value}
		err := q.datedOperands(&e.Field, of, values)
		e.Value = values[0]
		return e, err
	case query.CompareFields:
		err := q.datedFields(&e.Field, &e.Other, of)
		return e, err
	case query.Between:
		values := []query.Value{e.Lo, e.Hi}
		err := q.datedOperands(&e.Field, of, values)
		e.Lo, e.Hi = values[0], values[1]
		return e, err
	case query.In:
		e.Values = slices.Clone(e.Values)
		err := q.datedOperands(&e.Field, of, e.Values)
		return e, err
	case query.ElemMatch:
		elements, err := ofDocument(of, e.Field)
		if err != nil || e.Where == nil {
			return e, err
		}
		e.Where, err = q.datedCondition(e.Where, elements.Path)
		return e, err
	}
	return e, nil // conditions on text stay what they are
}

func (q definition) datedConditions(list []query.Expr, of jsonpath.Path) ([]query.Expr, error) {
	out := make([]query.Expr, len(list))
	for i, e := range list {
		var err error
		if out[i], err = q.datedCondition(e, of); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// datedOperands makes instants of the values that a time.Time is compared with.
func (q definition) datedOperands(f *query.Field, of jsonpath.Path, values []query.Value) error {
	whole, err := ofDocument(of, *f)
	if err != nil {
		return err
	}
	f.Date = q.datedField(whole).Date
	if f.Date != query.DateInstant {
		return nil
	}
	name := f.String()
	if err := query.Dated(f, values); err != nil {
		return fmt.Errorf("%w: value for %s: %w", ErrQuery, name, err)
	}
	return nil
}

// datedFields has two fields that are compared read as dates if one of them is a time.Time.
func (q definition) datedFields(f, other *query.Field, of jsonpath.Path) error {
	for _, f := range []*query.Field{f, other} {
		whole, err := ofDocument(of, *f)
		if err != nil {
			return err
		}
		f.Date = q.datedField(whole).Date
	}
	if err := query.DatedFields(f, other); err != nil {
		return fmt.Errorf("%w: %w", ErrQuery, err)
	}
	return nil
}

// ofDocument returns the field of documents that f is, whose path begins at of.
func ofDocument(of jsonpath.Path, f query.Field) (query.Field, error) {
	if of.Len() == 0 {
		return f, nil
	}
	whole, err := query.Within(of, f)
	if err != nil {
		return f, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	return whole, nil
}
