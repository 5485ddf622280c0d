package builder

import (
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// dated returns the query with the fields that are time.Time in the Go type of its
// collection read as dates: in comparisons, orders, groups, min(), max(), first() and last(). Those that
// are read so already stay.
func (q Definition) dated() (Definition, error) {
	if q.Mapping == nil || !q.Mapping.Info.Times {
		return q, nil
	}
	var err error
	if q.Query.Where != nil {
		if q.Query.Where, err = q.datedCondition(q.Query.Where, jsonpath.Path{}); err != nil {
			return q, err
		}
	}
	q.Query.OrderBy = slices.Clone(q.Query.OrderBy)
	for i, o := range q.Query.OrderBy {
		if o.Column == "" && o.As == query.CastNone {
			q.Query.OrderBy[i].Field = q.datedField(o.Field)
		}
	}
	q.Query.GroupBy = slices.Clone(q.Query.GroupBy)
	for i, f := range q.Query.GroupBy {
		q.Query.GroupBy[i] = q.datedField(f)
	}
	q.Query.Select = slices.Clone(q.Query.Select)
	for i, c := range q.Query.Select {
		switch c.Func {
		case query.FuncMin, query.FuncMax, query.FuncCountDistinct, query.FuncList, query.FuncListDistinct:
			q.Query.Select[i].Field = q.datedField(c.Field)
		case query.FuncFirst, query.FuncLast:
			by := q.datedField(*c.Field.By)
			q.Query.Select[i].Field = q.datedField(c.Field)
			q.Query.Select[i].Field.By = &by
		}
	}
	return q, nil
}

// datedField returns a field, read as a date if it is a time.Time.
func (q Definition) datedField(f query.Field) query.Field {
	if f.Meta == query.MetaNone && f.Date == query.DateNone && q.Mapping.IsTime(f.Path) {
		f.Date = query.DateInstant
	}
	return f
}

// datedCondition is dated for a condition, which is within the bounds of one. Its paths
// begin at the path of, in an ElemMatch that of the elements.
func (q Definition) datedCondition(e query.Expr, of jsonpath.Path) (query.Expr, error) {
	return query.MapConditions(e, func(e query.Expr) (query.Expr, error) { return q.datedLeaf(e, of) })
}

// datedLeaf is datedCondition for one that joins no others.
func (q Definition) datedLeaf(e query.Expr, of jsonpath.Path) (query.Expr, error) {
	if e, is := e.(query.ElemMatch); is {
		elements, err := ofDocument(of, e.Field)
		if err != nil || e.Where == nil {
			return e, err
		}
		e.Where, err = q.datedCondition(e.Where, elements.Path)
		return e, err
	}
	return query.MapOperands(e, // conditions on text stay what they are
		func(f *query.Field, values []query.Value) error { return q.datedOperands(f, of, values) },
		func(f, other *query.Field) error { return q.datedFields(f, other, of) })
}

// datedOperands makes instants of the values that a time.Time is compared with.
func (q Definition) datedOperands(f *query.Field, of jsonpath.Path, values []query.Value) error {
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
		return fmt.Errorf("%w: value for %s: %w", errs.ErrQuery, name, err)
	}
	return nil
}

// datedFields has two fields that are compared read as dates if one of them is a time.Time.
func (q Definition) datedFields(f, other *query.Field, of jsonpath.Path) error {
	for _, f := range []*query.Field{f, other} {
		whole, err := ofDocument(of, *f)
		if err != nil {
			return err
		}
		f.Date = q.datedField(whole).Date
	}
	if err := query.DatedFields(f, other); err != nil {
		return fmt.Errorf("%w: %w", errs.ErrQuery, err)
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
		return f, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	return whole, nil
}
