package jay

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/query"
)

// Condition is what a query asks of a document. The zero value matches every
// document.
//
// A field is a path such as "Address.City" or "Lines.Product", which reaches the
// products of all lines; "id()" is the document's ID. A comparison is true if any
// value that the field reaches satisfies it. Values are compared exactly, and text
// case-sensitively unless IgnoreCase says otherwise; docs/queries.md has the order
// of all values.
//
// A time.Time makes the comparison one of instants: the field is read as a date, so that
// the zone and the digits of the stored text do not matter, and what is no date-time of
// RFC 3339 is equal to no instant. "At as date" does the same for text: Ge("At as date",
// "2026-01-31T00:00:00Z"). Text without it is compared as text.
//
// A mistake, such as a path that does not parse, a value that JSON cannot
// represent, or more than the bounds of docs/limits.md, is kept in the Condition:
// the query returns it as ErrQuery.
type Condition struct {
	expr query.Expr
	size query.Size // of expr; within the bounds
	err  error      // expr is nil then
}

// newCondition returns a Condition of e, which must not be an And, Or or Not.
func newCondition(e query.Expr) Condition {
	size, err := query.Measure(e)
	if err != nil {
		return Condition{err: fmt.Errorf("%w: %w", ErrQuery, err)}
	}
	return Condition{expr: e, size: size}
}

// join combines conditions. Their sizes are known, so that a result beyond the
// bounds is refused at once, before any code walks it.
func join(conditions []Condition, combine func([]query.Expr) query.Expr) Condition {
	size, err := sizesOf(conditions)
	if err != nil {
		return Condition{err: err}
	}
	exprs := []query.Expr{}
	for _, c := range conditions {
		exprs = append(exprs, c.orTrue())
	}
	return Condition{expr: combine(exprs), size: size}
}

// sizesOf returns the size of an And of conditions.
func sizesOf(conditions []Condition) (query.Size, error) {
	var size query.Size
	if len(conditions) > query.MaxConditions {
		size.Conditions = len(conditions)
	} else {
		parts := make([]query.Size, len(conditions))
		for i, c := range conditions {
			if c.err != nil {
				return size, c.err
			}
			parts[i] = c.sizeOrTrue()
		}
		size = query.Join(parts...)
	}
	if err := size.Check(); err != nil {
		return size, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	return size, nil
}

func compare(field string, value any, op query.Op) Condition {
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	if other, ok := value.(FieldRef); ok {
		return compareFields(f, other, op)
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

// FieldRef is a field of the same document, to compare another one with. Field makes it.
type FieldRef struct{ path string }

// Field is a field to compare another field of the same document with, in place of a
// value: Gt("Paid", Field("Total")). It stands in Eq, Ne, Lt, Le, Gt and Ge.
//
// The comparison is true if a value that the one field reaches stands in the relation
// to a value that the other reaches, both scalars of one kind. It is false where one of
// them is missing, Ne is true there, and null equals null. If one of the two is read as
// a date, so is the other. In ElemMatch both are fields of the element. No index finds
// the documents: the comparison is tested on every candidate.
func Field(path string) FieldRef { return FieldRef{path} }

// MarshalJSON returns an error: a field is no value, to be stored or to be a member of
// a list.
func (f FieldRef) MarshalJSON() ([]byte, error) {
	return nil, fmt.Errorf("%w: Field(%q) is no value: it stands in Eq, Ne, Lt, Le, Gt and Ge", ErrUsage, errs.Shorten(f.path))
}

func compareFields(f query.Field, ref FieldRef, op query.Op) Condition {
	other, err := parseField(ref.path)
	if err != nil {
		return Condition{err: err}
	}
	if err := query.DatedFields(&f, &other); err != nil {
		return Condition{err: fmt.Errorf("%w: %w", ErrQuery, err)}
	}
	return newCondition(query.CompareFields{Field: f, Op: op, Other: other})
}

// datedOperand makes the field and the value of a comparison of dates.
func datedOperand(field string, f query.Field, v query.Value) (query.Field, query.Value, error) {
	values := []query.Value{v}
	if err := query.Dated(&f, values); err != nil {
		return f, v, fmt.Errorf("%w: value for %s: %w", ErrQuery, field, err)
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
		return f, nil, fmt.Errorf("%w: value for %s: %w", ErrQuery, field, err)
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
		return v, fmt.Errorf("%w: value for %s: %w", ErrQuery, field, err)
	}
	return v, nil
}

// keyText is the only field of a GroupBy.
const keyText = "key()"

// parseField parses a field as the builder takes it, or a function of groups.
func parseField(text string) (query.Field, error) {
	if path, date := catalog.CutDate(text); date {
		f, err := parseField(path)
		switch {
		case err != nil:
		case f.Meta != query.MetaNone && f.Meta != query.MetaLastModified || f.Date != query.DateNone:
			err = fmt.Errorf("%w: %s is no date", ErrQuery, errs.Shorten(path))
		}
		f.Date = query.DateInstant
		return f, err
	}
	if f, isPart, err := parsePart(text); isPart {
		return f, err
	}
	if strings.EqualFold(text, "id()") {
		return query.Field{Meta: query.MetaID}, nil
	}
	if strings.HasSuffix(text, ")") {
		c, err := parseColumn(new(query.Query), text)
		if err != nil {
			return query.Field{}, err
		}
		c.Field.Func = c.Func
		return c.Field, nil
	}
	p, err := jsonpath.Parse(text)
	if err != nil {
		return query.Field{}, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	f, err := query.NewField(p)
	if err != nil {
		return query.Field{}, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	return f, nil
}

// parsePart parses a part of a date, such as month(At). It reports whether text is
// one.
func parsePart(text string) (f query.Field, isPart bool, err error) {
	name, rest, found := strings.Cut(text, "(")
	path, closed := strings.CutSuffix(rest, ")")
	if !found || !closed {
		return f, false, nil
	}
	d := query.DateNone
	switch strings.ToLower(name) {
	case "year":
		d = query.DateYear
	case "month":
		d = query.DateMonth
	case "day":
		d = query.DateDay
	case "hour":
		d = query.DateHour
	}
	if d == query.DateNone {
		return f, false, nil
	}
	if f, err = parseField(path); err != nil {
		return f, true, err
	}
	if f.Date != query.DateNone || f.Meta != query.MetaNone && f.Meta != query.MetaLastModified {
		return f, true, fmt.Errorf("%w: %s is no date", ErrQuery, errs.Shorten(path))
	}
	f.Date = d
	return f, true, nil
}

// Eq is true if the field reaches a value equal to this one. Here and in Ne, Lt, Le, Gt
// and Ge, a Field in place of the value is another field of the same document.
func Eq(field string, value any) Condition { return compare(field, value, query.Equal) }

// Ne is the negation of Eq. It is true for a field that reaches nothing.
func Ne(field string, value any) Condition { return Not(Eq(field, value)) }

// Lt is true if the field reaches a value of the same kind below this one.
func Lt(field string, value any) Condition { return compare(field, value, query.Less) }

// Le is true if the field reaches a value of the same kind at or below this one.
func Le(field string, value any) Condition { return compare(field, value, query.LessOrEqual) }

// Gt is true if the field reaches a value of the same kind above this one.
func Gt(field string, value any) Condition { return compare(field, value, query.Greater) }

// Ge is true if the field reaches a value of the same kind at or above this one.
func Ge(field string, value any) Condition { return compare(field, value, query.GreaterOrEqual) }

// Between is true if the field reaches one value from lo to hi, both included.
func Between(field string, lo, hi any) Condition {
	f, values, err := operands(field, lo, hi)
	if err != nil {
		return Condition{err: err}
	}
	return newCondition(query.Between{Field: f, Lo: values[0], Hi: values[1]})
}

// In is true if the field reaches one of values.
func In[V any](field string, values ...V) Condition { return in(field, values, false) }

// AllIn is true if the field reaches each of values.
func AllIn[V any](field string, values ...V) Condition { return in(field, values, true) }

func in[V any](field string, values []V, all bool) Condition {
	if err := (query.Size{Values: len(values)}).Check(); err != nil {
		return Condition{err: fmt.Errorf("%w: %w", ErrQuery, err)}
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

// StartsWith is true if the field reaches text that begins with prefix.
func StartsWith(field, prefix string) Condition {
	return onText(field, prefix, func(f query.Field) query.Expr { return query.StartsWith{Field: f, Text: prefix} })
}

// EndsWith is true if the field reaches text that ends with suffix.
func EndsWith(field, suffix string) Condition {
	return onText(field, suffix, func(f query.Field) query.Expr { return query.EndsWith{Field: f, Text: suffix} })
}

// Contains is true if the field reaches text that contains part.
func Contains(field, part string) Condition {
	return onText(field, part, func(f query.Field) query.Expr { return query.Contains{Field: f, Text: part} })
}

// Matches is true if the field reaches text in which the regular expression
// matches. Its syntax is that of package regexp, whose time is linear in the
// text.
func Matches(field, pattern string) Condition {
	return onText(field, pattern, func(f query.Field) query.Expr { return query.Regexp{Field: f, Pattern: pattern} })
}

// Exists is true if the field is there, be it null or an empty array.
func Exists(field string) Condition {
	return onText(field, "", func(f query.Field) query.Expr { return query.Exists{Field: f} })
}

// ElemMatch is true if one element of an array satisfies all conditions: that the field
// reaches an object of which they are true. Their fields are those of the element, so
// that ElemMatch("Lines", Eq("Product", "products/1-A"), Gt("Quantity", 5)) asks for one
// line with this product and this quantity; And of conditions on "Lines.Product" and
// "Lines.Quantity" is satisfied by two lines. Between does the same for elements that are
// numbers, texts or dates.
func ElemMatch(field string, conditions ...Condition) Condition {
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	c := And(conditions...)
	if len(conditions) == 1 {
		c = conditions[0]
	}
	if c.err != nil {
		return c
	}
	return checked(query.ElemMatch{Field: f, Where: c.orTrue()})
}

// Size is true if the field is an array whose number of elements stands in relation op
// to n: Size("Lines", ">=", 3). The relations are "=", "!=", "<", "<=", ">" and ">=". What
// is no array has no size, and only "!=" is true of it.
func Size(field, op string, n int) Condition {
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	relations := map[string]query.Op{"=": query.Equal, "!=": query.Equal, "<": query.Less, "<=": query.LessOrEqual, ">": query.Greater, ">=": query.GreaterOrEqual}
	o, known := relations[op]
	if !known {
		return Condition{err: fmt.Errorf("%w: size of %s: %q is none of = != < <= > >=", ErrQuery, field, errs.Shorten(op))}
	}
	c := checked(query.HasSize{Field: f, Op: o, N: n})
	if op == "!=" {
		return Not(c)
	}
	return c
}

// Type is true if the field has a value of this type of JSON: "null", "boolean",
// "number", "string", "array" or "object". An array is of type "array" whatever its
// elements are; Type("Tags[]", "string") asks for one that is text.
func Type(field, jsonType string) Condition {
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	return checked(query.HasType{Field: f, Type: jsonType})
}

// checked returns a Condition of e, or the error of compiling it.
func checked(e query.Expr) Condition {
	if _, err := query.Compile(e); err != nil {
		return Condition{err: fmt.Errorf("%w: %w", ErrQuery, err)}
	}
	return newCondition(e)
}

func onText(field, text string, make func(query.Field) query.Expr) Condition {
	f, err := parseField(field)
	if err != nil {
		return Condition{err: err}
	}
	if !utf8.ValidString(text) {
		return Condition{err: fmt.Errorf("%w: text for %s: %q is not valid UTF-8", ErrQuery, field, errs.Shorten(text))}
	}
	return newCondition(make(f))
}

// And is true if all conditions are.
func And(conditions ...Condition) Condition {
	return join(conditions, func(all []query.Expr) query.Expr { return query.And(all) })
}

// Or is true if one of the conditions is.
func Or(conditions ...Condition) Condition {
	return join(conditions, func(all []query.Expr) query.Expr { return query.Or(all) })
}

// Not is true if the condition is not.
func Not(c Condition) Condition {
	return join([]Condition{c}, func(all []query.Expr) query.Expr { return query.Not{Expr: all[0]} })
}

// IgnoreCase makes every comparison of text in c disregard case.
func IgnoreCase(c Condition) Condition {
	c.expr = foldCase(c.expr)
	return c
}

func (c Condition) orTrue() query.Expr {
	if c.expr == nil {
		return query.And{}
	}
	return c.expr
}

// sizeOrTrue returns the size of orTrue.
func (c Condition) sizeOrTrue() query.Size {
	if c.expr == nil {
		return query.Join()
	}
	return c.size
}

func foldCase(e query.Expr) query.Expr {
	switch e := e.(type) {
	case query.And:
		return query.And(foldAll(e))
	case query.Or:
		return query.Or(foldAll(e))
	case query.Not:
		return query.Not{Expr: foldCase(e.Expr)}
	case query.Compare:
		e.Fold = true
		return e
	case query.CompareFields:
		e.Fold = true
		return e
	case query.Between:
		e.Fold = true
		return e
	case query.In:
		e.Fold = true
		return e
	case query.StartsWith:
		e.Fold = true
		return e
	case query.EndsWith:
		e.Fold = true
		return e
	case query.Contains:
		e.Fold = true
		return e
	case query.Regexp:
		e.Fold = true
		return e
	case query.ElemMatch:
		e.Where = foldCase(e.Where)
		return e
	}
	return e
}

func foldAll(exprs []query.Expr) []query.Expr {
	out := make([]query.Expr, len(exprs))
	for i, e := range exprs {
		out[i] = foldCase(e)
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
