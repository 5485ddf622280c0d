package query

import (
	"fmt"
	"slices"
	"strings"
)

// CompareFields is true if Field reaches a value that stands in the relation Op to a value that
// Other reaches in the same document. Both values must be scalars of one kind, as in Compare: no
// number is less than a text, and null equals null. A missing value, an array and an object are in
// no relation to anything. "Not equal" is Not of Equal, and so true where one of the fields is
// missing. With Fold, case does not matter. If one field is read as a date, so is the other.
type CompareFields struct {
	Field Field
	Op    Op
	Other Field
	Fold  bool
}

func (CompareFields) expr() {}

func (e CompareFields) on() (Field, bool) { return e.Field, true }

func (e CompareFields) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	if e.Field, err = fn(e.Field); err != nil {
		return e, err
	}
	e.Other, err = fn(e.Other)
	return e, err
}

func (CompareFields) measure(s Size) Size { return s }

func (e CompareFields) write(b *strings.Builder) {
	writeExact(b, e.Fold, e.Field.String()+" "+opNames[e.Op]+" "+otherString(e.Other))
}

func (CompareFields) looksAtValues() bool { return true }

func (e CompareFields) refold(fn func(Field, bool) bool) Expr {
	e.Fold = fn(e.Field, e.Fold)
	return e
}

// complete is nothing for a CompareFields, which has two slots: see compiler.compareFields.
func (e CompareFields) complete(_ *compiler, to condition, _ bool) (condition, error) {
	return to, fmt.Errorf("%w: %T", ErrCondition, e)
}

// DatedFields prepares the comparison of two fields: if one of them is read as a date, so is the
// other. It returns ErrValue for a field that cannot be read as a date.
func DatedFields(f, other *Field) error {
	isInstant := func(f *Field) bool { return f.Date == DateInstant && !f.isNumber() }
	if !isInstant(f) {
		f, other = other, f
	}
	if !isInstant(f) || isInstant(other) {
		return nil
	}
	if !other.mayBeDate() || other.isNumber() {
		return fmt.Errorf("%w: %s is no date, and is compared with %s", ErrValue, other, f)
	}
	other.Date, other.UTC = DateInstant, f.UTC
	return nil
}

// compareFields compiles a CompareFields.
func (c *compiler) compareFields(e CompareFields) (condition, error) {
	to := condition{op: opFields, relation: e.Op, fold: e.Fold || c.folds(e.Field) || c.folds(e.Other)}
	if e.Op > GreaterOrEqual {
		return to, fmt.Errorf("%w: no comparison %d", ErrCondition, e.Op)
	}
	for _, f := range []Field{e.Field, e.Other} {
		if !f.isValid() {
			return to, fmt.Errorf("%w: %T without a field", ErrCondition, e)
		}
		if err := checkDate(Exists{f}, f); err != nil {
			return to, err
		}
		if !c.of.IsZero() {
			if err := checkWithin(c.of, f); err != nil {
				return to, err
			}
		}
	}
	if (e.Field.Date == DateInstant) != (e.Other.Date == DateInstant) {
		return to, fmt.Errorf("%w: %s is compared with %s: instants are compared with instants", ErrCondition, e.Field, e.Other)
	}
	to.slot, to.other = c.slot(e.Field), c.slot(e.Other)
	return to, nil
}

// maxPairs is the number of pairs of values up to which each pair is compared.
const maxPairs = 64

// relates reports whether the two fields of an opFields reach values in its relation.
// Its work grows with the number of values, not with that of their pairs.
func (m *Matcher) relates(c *condition) bool {
	a, b := m.reader.reach(c.slot), m.reader.reach(c.other)
	switch {
	case a.count == 0 || b.count == 0:
		return false
	case a.many || b.many || len(a.values)*len(b.values) > maxPairs:
		if c.relation == Equal {
			return m.haveEqual(c, c.slot, c.other)
		}
		return m.haveOrdered(c)
	}
	for _, v := range a.values {
		for _, w := range b.values {
			if !m.pace.Spend(1 + len(v.raw) + len(w.raw)) {
				return false
			}
			if v.IsScalar() && class(v.kind) == class(w.kind) && c.relation.accepts(compare(v, w, c.fold)) {
				return true
			}
		}
	}
	return false
}

// accepts reports whether values that compare so stand in the relation.
func (o Op) accepts(order int) bool {
	switch o {
	case Equal:
		return order == 0
	case Less:
		return order < 0
	case LessOrEqual:
		return order <= 0
	case Greater:
		return order > 0
	}
	return order >= 0
}

// haveOrdered is relates for a range: of each kind the least value of one field and the
// greatest of the other decide.
func (m *Matcher) haveOrdered(c *condition) bool {
	var first, second [KindInstant + 1]Value // by class
	ascending := c.relation == Less || c.relation == LessOrEqual
	m.extremes(c, c.slot, ascending, &first)
	m.extremes(c, c.other, !ascending, &second)
	for k, v := range first {
		if !v.IsMissing() && !second[k].IsMissing() && c.relation.accepts(compare(v, second[k], c.fold)) {
			return true
		}
	}
	return false
}

// extremes sets best to the least or the greatest scalars that a field reaches.
func (m *Matcher) extremes(c *condition, slot int, least bool, best *[KindInstant + 1]Value) {
	m.reader.Each(slot, func(v Value) bool {
		if !m.pace.Spend(1 + len(v.raw)) {
			return false
		}
		if !v.IsScalar() {
			return true
		}
		b := &best[class(v.kind)]
		if b.IsMissing() || least == (compare(v, *b, c.fold) < 0) {
			*b = v
		}
		return true
	})
}

// haveEqual is relates for equality. It sorts the values of the field that reaches fewer,
// as many at a time as a Reader holds, and looks up those of the other.
func (m *Matcher) haveEqual(c *condition, few, many int) (found bool) {
	if m.reader.Reached(few) > m.reader.Reached(many) {
		few, many = many, few
	}
	look := func() bool {
		slices.SortFunc(m.sorted, func(v, w Value) int {
			if !m.pace.Spend(1 + min(len(v.raw), len(w.raw))) {
				return 0
			}
			return compare(v, w, c.fold)
		})
		m.reader.Each(many, func(v Value) bool {
			if !m.pace.Spend(1 + len(v.raw)) {
				return false
			}
			if v.IsScalar() {
				_, found = slices.BinarySearchFunc(m.sorted, v, func(w, v Value) int { return compare(w, v, c.fold) })
			}
			return !found
		})
		m.sorted = m.sorted[:0]
		return !found
	}
	m.reader.Each(few, func(v Value) bool {
		if v.IsScalar() {
			m.sorted = append(m.sorted, v)
		}
		return len(m.sorted) < m.reader.most || look()
	})
	if !found && len(m.sorted) > 0 {
		look()
	}
	clear(m.sorted[:cap(m.sorted)]) // the values would keep the document in memory
	if m.sorted = m.sorted[:0]; cap(m.sorted) > maxIdleValues {
		m.sorted = nil
	}
	return found
}
