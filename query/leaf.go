package query

import (
	"fmt"
	"slices"
	"strings"
)

// leaf is a condition that joins no others. All that the package needs to know of one is here, so
// that another kind of condition is a type with these methods, and a part of the parser.
type leaf interface {
	Expr

	// on returns the field that the condition is on, the first of several, and whether it has one.
	on() (Field, bool)

	// mapFields returns the condition with what fn returns for each field in its place.
	mapFields(fn func(Field) (Field, error)) (Expr, error)

	// measure returns s with what is bounded of the condition added. (A pointer to s would escape.)
	measure(s Size) Size

	// write writes the condition as RQL.
	write(b *strings.Builder)

	// looksAtValues reports whether the condition looks at nothing but the values that its fields reach.
	looksAtValues() bool

	// refold returns the condition with the regard to case that fn returns, which is given the field
	// and whether case does not matter.
	refold(fn func(f Field, fold bool) bool) Expr

	// complete completes to, which has the slot of the field, as the condition. folds says that
	// comparisons of the field ignore case anyway.
	complete(c *compiler, to condition, folds bool) (condition, error)
}

// All kinds of conditions on fields are leaves.
var _ = []leaf{Compare{}, CompareFields{}, Between{}, In{}, StartsWith{}, EndsWith{}, Contains{}, Regexp{}, Fuzzy{}, Search{}, MoreLike{}, Place{}, Similar{}, Exists{}, ElemMatch{}, HasSize{}, HasType{}}

// MapConditions returns e with each condition that joins no others replaced by the result of fn, or
// the first error of fn. It does not change e, whose depth must be within the bounds. A nil e is
// nil.
func MapConditions(e Expr, fn func(Expr) (Expr, error)) (Expr, error) {
	list := func(in []Expr) ([]Expr, error) {
		out := make([]Expr, len(in))
		for i, kid := range in {
			var err error
			if out[i], err = MapConditions(kid, fn); err != nil {
				return nil, err
			}
		}
		return out, nil
	}
	var err error
	switch e := e.(type) {
	case nil:
		return nil, nil
	case And:
		kids, err := list(e)
		return And(kids), err
	case Or:
		kids, err := list(e)
		return Or(kids), err
	case Not:
		e.Expr, err = MapConditions(e.Expr, fn)
		return e, err
	case Boost:
		e.Expr, err = MapConditions(e.Expr, fn)
		return e, err
	}
	return fn(e)
}

// MapOperands returns a condition that joins no others, and compares a field with values or another field, with what
// fn or other makes of them: fn may change the field and the values, other both fields. The condition that is given
// does not change. Any other condition is returned as it is. The errors are those of fn and other.
func MapOperands(e Expr, fn func(f *Field, values []Value) error, other func(f, other *Field) error) (Expr, error) {
	switch e := e.(type) {
	case Compare:
		values := []Value{e.Value}
		err := fn(&e.Field, values)
		e.Value = values[0]
		return e, err
	case Between:
		values := []Value{e.Lo, e.Hi}
		err := fn(&e.Field, values)
		e.Lo, e.Hi = values[0], values[1]
		return e, err
	case In:
		e.Values = slices.Clone(e.Values)
		err := fn(&e.Field, e.Values)
		return e, err
	case CompareFields:
		err := other(&e.Field, &e.Other)
		return e, err
	}
	return e, nil
}

// Refold returns e with the Fold of each condition on texts replaced by the result of fn. fn gets
// the field of the condition, and its present Fold. Refold includes conditions on the elements of
// an array. It does not change e, whose depth must be within the bounds.
func Refold(e Expr, fn func(f Field, fold bool) bool) Expr {
	e, _ = MapConditions(e, func(e Expr) (Expr, error) { // fn has no error
		if l, is := e.(leaf); is {
			e = l.refold(fn)
		}
		return e, nil
	})
	return e
}

func (e Compare) on() (Field, bool) { return e.Field, true }

func (e Compare) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (e Compare) measure(s Size) Size {
	s.Bytes += len(e.Value.raw)
	return s
}

func (e Compare) write(b *strings.Builder) {
	writeExact(b, e.Fold || !isText(e.Value), e.Field.String()+" "+opNames[e.Op]+" "+literal(e.Value))
}

func (Compare) looksAtValues() bool { return true }

func (e Compare) refold(fn func(Field, bool) bool) Expr {
	e.Fold = fn(e.Field, e.Fold)
	return e
}

func (e Compare) complete(c *compiler, to condition, folds bool) (condition, error) {
	if e.Op > GreaterOrEqual {
		return to, fmt.Errorf("%w: no comparison %d", ErrCondition, e.Op)
	}
	to.op, to.fold = opEqual+op(e.Op-Equal), folds || e.Fold // both enums have the same order
	return c.with(to, e.Value)
}

func (e Between) on() (Field, bool) { return e.Field, true }

func (e Between) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (e Between) measure(s Size) Size {
	s.Bytes += len(e.Lo.raw) + len(e.Hi.raw)
	return s
}

func (e Between) write(b *strings.Builder) {
	writeExact(b, e.Fold || !isText(e.Lo), e.Field.String()+" between "+literal(e.Lo)+" and "+literal(e.Hi))
}

func (Between) looksAtValues() bool { return true }

func (e Between) refold(fn func(Field, bool) bool) Expr {
	e.Fold = fn(e.Field, e.Fold)
	return e
}

func (e Between) complete(c *compiler, to condition, folds bool) (condition, error) {
	to.op, to.fold = opBetween, folds || e.Fold
	return c.with(to, e.Lo, e.Hi)
}

func (e In) on() (Field, bool) { return e.Field, true }

func (e In) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (e In) measure(s Size) Size {
	if s.Values += len(e.Values); s.Values > MaxValues { // already refused: skip the loop
		return s
	}
	for _, v := range e.Values {
		s.Bytes += len(v.raw)
	}
	return s
}

func (e In) write(b *strings.Builder) { writeIn(b, e) }

func (In) looksAtValues() bool { return true }

func (e In) refold(fn func(Field, bool) bool) Expr {
	e.Fold = fn(e.Field, e.Fold)
	return e
}

func (e In) complete(c *compiler, to condition, folds bool) (condition, error) {
	to.op, to.fold = opIn, folds || e.Fold
	if e.All {
		to.op = opAll
	}
	return c.in(to, e.Values)
}

func (e StartsWith) on() (Field, bool) { return e.Field, true }

func (e StartsWith) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (e StartsWith) measure(s Size) Size {
	s.Bytes += len(e.Text)
	return s
}

func (e StartsWith) write(b *strings.Builder) { writeCall(b, "startsWith", e.Field, e.Text, e.Fold) }

func (StartsWith) looksAtValues() bool { return true }

func (e StartsWith) refold(fn func(Field, bool) bool) Expr {
	e.Fold = fn(e.Field, e.Fold)
	return e
}

func (e StartsWith) complete(_ *compiler, to condition, folds bool) (condition, error) {
	return textCondition(to, opStartsWith, e.Text, folds || e.Fold), nil
}

func (e EndsWith) on() (Field, bool) { return e.Field, true }

func (e EndsWith) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (e EndsWith) measure(s Size) Size {
	s.Bytes += len(e.Text)
	return s
}

func (e EndsWith) write(b *strings.Builder) { writeCall(b, "endsWith", e.Field, e.Text, e.Fold) }

func (EndsWith) looksAtValues() bool { return true }

func (e EndsWith) refold(fn func(Field, bool) bool) Expr {
	e.Fold = fn(e.Field, e.Fold)
	return e
}

func (e EndsWith) complete(_ *compiler, to condition, folds bool) (condition, error) {
	return textCondition(to, opEndsWith, e.Text, folds || e.Fold), nil
}

func (e Contains) on() (Field, bool) { return e.Field, true }

func (e Contains) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (e Contains) measure(s Size) Size {
	s.Bytes += len(e.Text)
	return s
}

func (e Contains) write(b *strings.Builder) { writeCall(b, "contains", e.Field, e.Text, e.Fold) }

func (Contains) looksAtValues() bool { return true }

func (e Contains) refold(fn func(Field, bool) bool) Expr {
	e.Fold = fn(e.Field, e.Fold)
	return e
}

func (e Contains) complete(_ *compiler, to condition, folds bool) (condition, error) {
	return textCondition(to, opContains, e.Text, folds || e.Fold), nil
}

func (e Regexp) on() (Field, bool) { return e.Field, true }

func (e Regexp) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (e Regexp) measure(s Size) Size {
	s.Regexps++
	s.Bytes += len(e.Pattern)
	return s
}

func (e Regexp) write(b *strings.Builder) { writeCall(b, "regex", e.Field, e.Pattern, e.Fold) }

func (Regexp) looksAtValues() bool { return true }

func (e Regexp) refold(fn func(Field, bool) bool) Expr {
	e.Fold = fn(e.Field, e.Fold)
	return e
}

func (e Regexp) complete(c *compiler, to condition, folds bool) (_ condition, err error) {
	to.op = opRegexp
	to.regexp, err = c.regexps.compile(e.Pattern, folds || e.Fold)
	return to, err
}

func (e Exists) on() (Field, bool) { return e.Field, true }

func (e Exists) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (Exists) measure(s Size) Size { return s }

func (e Exists) write(b *strings.Builder) { b.WriteString("exists(" + e.Field.String() + ")") }

func (Exists) looksAtValues() bool { return false }

func (e Exists) refold(func(Field, bool) bool) Expr { return e }

func (Exists) complete(_ *compiler, to condition, _ bool) (condition, error) {
	to.op = opExists
	return to, nil
}
