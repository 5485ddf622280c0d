package builder

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/query"
)

// resolveGroups sets the order and the condition of groups, whose fields are columns: by
// their names, or by what they show. In a query without groups it refuses functions.
func (q *Definition) resolveGroups() error {
	grouped := exec.IsGrouped(&q.Query)
	if f, found := query.GroupField(q.Query.Where); found {
		return fmt.Errorf("%w: Where chooses documents, and %s is of groups: use Having", errs.ErrQuery, f)
	}
	if q.Query.Where != nil && grouped && !q.text {
		for _, f := range query.Fields(q.Query.Where) {
			for _, c := range q.Query.Select {
				if c.Func != query.FuncNone && f.Meta == query.MetaNone && f.Path.String() == c.Name && c.Field.String() != f.String() {
					return fmt.Errorf("%w: Where chooses documents, and %s is a column of groups: use Having, or give the column another name", errs.ErrQuery, f)
				}
			}
		}
	}
	if q.having.expr != nil {
		e, err := query.MapFields(q.having.expr, q.groupField)
		if err != nil {
			return err
		}
		q.Query.Having, grouped = e, true
	}
	if !grouped {
		for _, o := range q.Query.OrderBy {
			if o.Field.Func != query.FuncNone || isKeyText(o.Field) {
				return fmt.Errorf("%w: order by %s, which is of groups, and there are none: GroupBy and Select make them", errs.ErrQuery, o.Field)
			}
		}
		return nil
	}
	orders := slices.Clone(q.Query.OrderBy)
	for i, o := range orders {
		if o.Column == "" {
			orders[i].Field, orders[i].Column = query.Field{}, q.orderColumn(o.Field)
		}
	}
	q.Query.OrderBy = orders
	return nil
}

// isKeyText reports whether a field of the builder is key().
func isKeyText(f query.Field) bool {
	return f.Meta == query.MetaNone && strings.EqualFold(f.Path.String(), keyText)
}

// orderColumn returns the name of the column that an order of groups goes by. If there
// is none, running the query says so.
func (q Definition) orderColumn(f query.Field) string {
	fn := f.Func
	plain := f
	plain.Func = query.FuncNone
	if isKeyText(f) && len(q.Query.GroupBy) == 1 {
		plain = q.Query.GroupBy[0]
	}
	for _, c := range q.Query.Select {
		if fn == query.FuncNone && plain.Meta == query.MetaNone && c.Name == plain.Path.String() {
			return c.Name
		}
	}
	for _, c := range q.Query.Select {
		if c.Func == fn && (fn == query.FuncCount || plain.ShownAs(c.Field)) {
			return c.Name
		}
	}
	return f.String()
}

// groupField returns the function that a field of Having means.
func (q Definition) groupField(f query.Field) (query.Field, error) {
	if f.Func != query.FuncNone {
		return f, nil
	}
	for _, c := range q.Query.Select {
		if c.Func != query.FuncNone && f.Meta == query.MetaNone && c.Name == f.Path.String() {
			c.Field.Func = c.Func
			if f.Date == query.DateInstant {
				c.Field.Date, c.Field.UTC = f.Date, f.UTC
			}
			return c.Field, nil
		}
	}
	return f, fmt.Errorf("%w: Having asks groups, and %s is neither a function nor the column of one: Where asks documents", errs.ErrQuery, f)
}
