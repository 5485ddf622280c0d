package builder

import (
	"fmt"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/query"
)

// Condition is what a query asks of a document, or the mistake in it: see Condition of package jay.
// The zero value matches every document.
type Condition struct {
	expr query.Expr
	size query.Size // of expr; within the bounds
	err  error      // expr is nil then
}

// Err returns the mistake; nil for none.
func (c Condition) Err() error { return c.err }

// Expr returns the condition; And{}, which is always true, for the zero value.
func (c Condition) Expr() query.Expr {
	if c.expr == nil {
		return query.And{}
	}
	return c.expr
}

// Size returns the size of Expr.
func (c Condition) Size() query.Size {
	if c.expr == nil {
		return query.Join()
	}
	return c.size
}

// And is true if all conditions are. inner returns one of them as this package has it.
func And[C any](conditions []C, inner func(C) Condition) Condition {
	return join(conditions, inner, func(all []query.Expr) query.Expr { return query.And(all) })
}

// Or is true if one of the conditions is.
func Or[C any](conditions []C, inner func(C) Condition) Condition {
	return join(conditions, inner, func(all []query.Expr) query.Expr { return query.Or(all) })
}

// Not is true if the condition is not.
func Not(c Condition) Condition {
	return join([]Condition{c}, itself, func(all []query.Expr) query.Expr { return query.Not{Expr: all[0]} })
}

// Boost multiplies what c counts for scores.
func Boost(c Condition, by float64) Condition {
	if err := (query.Boost{By: by}).Check(); err != nil {
		return refused(err)
	}
	return join([]Condition{c}, itself, func(all []query.Expr) query.Expr { return query.Boost{Expr: all[0], By: by} })
}

// MoreLike is a condition that a document is like another one.
func MoreLike(e query.MoreLike) Condition {
	if err := e.Check(); err != nil {
		return refused(err)
	}
	return newCondition(e)
}

// IgnoreCase makes every comparison of text in c disregard case.
func IgnoreCase(c Condition) Condition {
	c.expr = query.Refold(c.expr, func(query.Field, bool) bool { return true })
	return c
}

// newCondition returns a Condition of e, which must not be an And, Or or Not.
func newCondition(e query.Expr) Condition {
	size, err := query.Measure(e)
	if err != nil {
		return refused(err)
	}
	return Condition{expr: e, size: size}
}

// refused is a condition that is none, as err says.
func refused(err error) Condition { return Condition{err: fmt.Errorf("%w: %w", errs.ErrQuery, err)} }

// join combines conditions. Their sizes are known, so that a result beyond the
// bounds is refused at once, before any code walks it.
func join[C any](conditions []C, inner func(C) Condition, combine func([]query.Expr) query.Expr) Condition {
	size, err := sizesOf(conditions, inner)
	if err != nil {
		return Condition{err: err}
	}
	exprs := []query.Expr{}
	for _, c := range conditions {
		exprs = append(exprs, inner(c).Expr())
	}
	return Condition{expr: combine(exprs), size: size}
}

// sizesOf returns the size of an And of conditions.
func sizesOf[C any](conditions []C, inner func(C) Condition) (query.Size, error) {
	var size query.Size
	if len(conditions) > query.MaxConditions {
		size.Conditions = len(conditions)
	} else {
		parts := make([]query.Size, len(conditions))
		for i, one := range conditions {
			c := inner(one)
			if c.err != nil {
				return size, c.err
			}
			parts[i] = c.Size()
		}
		size = query.Join(parts...)
	}
	if err := size.Check(); err != nil {
		return size, fmt.Errorf("%w: %w", errs.ErrQuery, err)
	}
	return size, nil
}

// Compare compares what a field reaches with a value.
func Compare(field string, value any, op query.Op) Condition {
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	v, err := operand(field, value)
	if err != nil {
		return Condition{err: err}
	}
	if f.Date != query.DateNone || v.Kind() == query.KindInstant {
		if f, v, err = datedOperand(field, f, v); err != nil {
			return Condition{err: err}
		}
	}
	return newCondition(query.Compare{Field: f, Op: op, Value: v})
}

// CompareFields compares what a field reaches with what the field at path reaches.
func CompareFields(field, path string, op query.Op) Condition {
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	other, err := parseField(path)
	if err != nil {
		return Condition{err: err}
	}
	if err := query.DatedFields(&f, &other); err != nil {
		return refused(err)
	}
	return newCondition(query.CompareFields{Field: f, Op: op, Other: other})
}

// datedOperand makes the field and the value of a comparison of dates.
func datedOperand(field string, f query.Field, v query.Value) (query.Field, query.Value, error) {
	values := []query.Value{v}
	if err := query.Dated(&f, values); err != nil {
		return f, v, fmt.Errorf("%w: value for %s: %w", errs.ErrQuery, field, err)
	}
	return f, values[0], nil
}

// operands parses a field and returns the values to compare it with. A time.Time among
// them makes the field a date.
func operands(field string, values ...any) (query.Field, []query.Value, error) {
	f, err := parseField(field)
	if err != nil {
		return f, nil, err
	}
	out := make([]query.Value, len(values))
	for i, value := range values {
		if out[i], err = operand(field, value); err != nil {
			return f, nil, err
		}
	}
	if err := query.Dated(&f, out); err != nil {
		return f, nil, fmt.Errorf("%w: value for %s: %w", errs.ErrQuery, field, err)
	}
	return f, out, nil
}

// operand returns a value to compare with.
func operand(field string, value any) (query.Value, error) {
	v, err := query.NewValue(value)
	if err == nil && !v.IsScalar() {
		err = fmt.Errorf("nothing is compared with one that is %v", v.Kind())
	}
	if err != nil {
		return v, fmt.Errorf("%w: value for %s: %w", errs.ErrQuery, field, err)
	}
	return v, nil
}

// Between is true if the field reaches one value from lo to hi.
func Between(field string, lo, hi any) Condition {
	f, values, err := operands(field, lo, hi)
	if err != nil {
		return Condition{err: err}
	}
	return newCondition(query.Between{Field: f, Lo: values[0], Hi: values[1]})
}

// In is true if the field reaches one of values, or all of them.
func In[V any](field string, values []V, all bool) Condition {
	if err := (query.Size{Values: len(values)}).Check(); err != nil {
		return refused(err)
	}
	list := make([]any, len(values))
	for i, value := range values {
		list[i] = value
	}
	f, compared, err := operands(field, list...)
	if err != nil {
		return Condition{err: err}
	}
	return newCondition(query.In{Field: f, Values: compared, All: all})
}

// checked returns a Condition of e, or the error of compiling it.
func checked(e query.Expr) Condition {
	if _, err := query.Compile(e); err != nil {
		return refused(err)
	}
	return newCondition(e)
}

// ElemMatch is true if an element that the field reaches satisfies c.
func ElemMatch(field string, c Condition) Condition {
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	if c.err != nil {
		return c
	}
	return checked(query.ElemMatch{Field: f, Where: c.Expr()})
}

// Size is true if the field is an array whose number of elements stands in relation op to n.
func Size(field, op string, n int) Condition {
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	relations := map[string]query.Op{"=": query.Equal, "!=": query.Equal, "<": query.Less, "<=": query.LessOrEqual, ">": query.Greater, ">=": query.GreaterOrEqual}
	o, known := relations[op]
	if !known {
		return Condition{err: fmt.Errorf("%w: size of %s: %q is none of = != < <= > >=", errs.ErrQuery, field, errs.Shorten(op))}
	}
	c := checked(query.HasSize{Field: f, Op: o, N: n})
	if op == "!=" {
		return Not(c)
	}
	return c
}

// Type is true if the field has a value of this type of JSON.
func Type(field, jsonType string) Condition {
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	return checked(query.HasType{Field: f, Type: jsonType})
}

// OnText is a condition on the text that a field reaches.
func OnText(field, text string, make func(query.Field) query.Expr) Condition {
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	if !utf8.ValidString(text) {
		return Condition{err: fmt.Errorf("%w: text for %s: %q is not valid UTF-8", errs.ErrQuery, field, errs.Shorten(text))}
	}
	return newCondition(make(f))
}
