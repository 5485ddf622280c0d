package query

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/jaydb/jay/internal/fold"
	"github.com/jaydb/jay/internal/jsonpath"
)

// Option changes the meaning of conditions.
type Option func(*compiler)

// SensitiveIDs is for databases whose IDs are case-sensitive. With it, conditions
// on MetaID treat case as conditions on other fields do; without it, they ignore
// case.
func SensitiveIDs() Option { return func(c *compiler) { c.sensitiveIDs = true } }

// Compile returns a Matcher of e; a nil e is true of all documents. The Matcher
// shares no memory with e.
//
// The errors are ErrCondition for an invalid condition, and a *LimitError, which
// is ErrLimit, for one beyond the bounds of this package.
func Compile(e Expr, options ...Option) (*Matcher, error) {
	if _, err := Measure(e); err != nil {
		return nil, err
	}
	c := compiler{slots: make(map[fieldKey]int)}
	for _, option := range options {
		option(&c)
	}
	m := &Matcher{root: condition{op: opAnd}}
	if e != nil {
		var err error
		if m.root, err = c.compile(e); err != nil {
			return nil, err
		}
	}
	m.reader = NewReader(c.fields)
	m.marks, m.elements, m.searches = make([]uint64, c.marks), c.elements, c.searches
	return m, nil
}

// Fields returns the fields that e refers to, each once, in the order of their first use. Fields in
// an ElemMatch count as fields of the document, such as Lines.Product.
func Fields(e Expr) []Field {
	c := compiler{slots: make(map[fieldKey]int)}
	c.visit(e)
	return c.fields
}

// fieldKey identifies a field: two fields are the same if their keys are equal.
type fieldKey struct {
	meta Meta
	path string
	fn   Func
	date Date
	zone string
	utc  bool
	ends bool

	by string // of Field.By

	expression string
}

func keyOf(f Field) fieldKey {
	if f.Expression != nil {
		return fieldKey{meta: f.Meta, fn: f.Func, by: f.orderText(), expression: f.Expression.text}
	}
	if f.Meta != MetaNone && f.Meta != MetaCustom && f.Meta != MetaElement {
		return fieldKey{meta: f.Meta, fn: f.Func, by: f.orderText(), date: f.Date, zone: f.Zone.String(), utc: f.UTC, ends: f.ends}
	}
	return fieldKey{meta: f.Meta, path: f.Path.String(), fn: f.Func, by: f.orderText(), date: f.Date, zone: f.Zone.String(), utc: f.UTC, ends: f.ends}
}

// compiler turns an Expr into a condition.
type compiler struct {
	sensitiveIDs bool
	fields       []Field          // by slot, for the Reader
	slots        map[fieldKey]int // of fields
	regexps      regexps          // compiled so far
	marks        int              // size of Matcher.marks
	of           jsonpath.Path    // of the elements, in an ElemMatch
	elements     []*Matcher       // of the ElemMatch conditions
	searches     []search
}

// visit assigns slots to the fields of e.
func (c *compiler) visit(e Expr) {
	switch e := e.(type) {
	case And:
		for _, kid := range e {
			c.visit(kid)
		}
	case Or:
		for _, kid := range e {
			c.visit(kid)
		}
	case Not:
		c.visit(e.Expr)
	case Boost:
		c.visit(e.Expr)
	default:
		_ = EachField(e, func(f Field) error {
			c.slot(f)
			return nil
		})
	}
}

// fieldOf returns the field of a condition that has one, and the first of two.
func fieldOf(e Expr) (Field, bool) {
	if l, is := e.(leaf); is {
		return l.on()
	}
	return Field{}, false
}

// slot returns the slot of f, which it assigns at the first use.
func (c *compiler) slot(f Field) int {
	key := keyOf(f)
	slot, found := c.slots[key]
	if !found {
		slot = len(c.fields)
		c.slots[key] = slot
		c.fields = append(c.fields, f)
	}
	return slot
}

// compile compiles e. Measure has bounded its depth, so recursion is safe.
func (c *compiler) compile(e Expr) (condition, error) {
	switch e := e.(type) {
	case And:
		return c.join(opAnd, e)
	case Or:
		return c.join(opOr, e)
	case Not:
		return c.join(opNot, []Expr{e.Expr})
	case Boost:
		if err := e.Check(); err != nil {
			return condition{}, err
		}
		return c.compile(e.Expr)
	case CompareFields:
		return c.compareFields(e)
	}
	l, is := e.(leaf)
	if !is || reflect.TypeOf(e).Kind() == reflect.Pointer { // a pointer has the methods, too
		return condition{}, fmt.Errorf("%w: %T", ErrCondition, e)
	}
	field, is := l.on()
	if !is {
		return l.complete(c, condition{}, false)
	}
	if field.Meta == MetaScore {
		return condition{}, fmt.Errorf("%w: score() is known when all answers are: it stands in orders and columns", ErrCondition)
	}
	if !field.isValid() {
		return condition{}, fmt.Errorf("%w: %T without a field", ErrCondition, e)
	}
	if err := checkDate(e, field); err != nil {
		return condition{}, err
	}
	path := field.Path
	if !c.of.IsZero() {
		if err := checkWithin(c.of, field); err != nil {
			return condition{}, err
		}
		if inner, err := Within(c.of, field); err == nil {
			path = inner.Path
		}
	}
	switch e := e.(type) {
	case ElemMatch:
		if err := checkElement(field); err != nil {
			return condition{}, err
		}
		return c.element(condition{slot: c.slot(field)}, e, path)
	case HasSize, HasType:
		if err := checkElement(field); err != nil {
			return condition{}, err
		}
		field.ends = true
	}
	return l.complete(c, condition{slot: c.slot(field)}, c.folds(field))
}

// checkDate refuses a condition that compares instants with anything else. It would
// never be true, which its author cannot mean.
func checkDate(e Expr, f Field) error {
	if f.Date > DateHour || f.Date != DateNone && f.Meta != MetaNone && f.Meta != MetaElement && f.Meta != MetaLastModified {
		return fmt.Errorf("%w: %s is no date", ErrCondition, f)
	}
	if f.Zone != nil && (f.Date <= DateInstant || f.Zone.location == nil) {
		return fmt.Errorf("%w: %s has a time zone, and only the parts of a date have one, made by LoadZone", ErrCondition, f)
	}
	if f.UTC && f.Date == DateNone {
		return fmt.Errorf("%w: %s is read as in UTC, and as no date", ErrCondition, f)
	}
	var operands []Value
	switch e := e.(type) {
	case Compare:
		operands = []Value{e.Value}
	case Between:
		operands = []Value{e.Lo, e.Hi}
	case In:
		operands = e.Values
	case Exists, ElemMatch, HasSize, HasType:
		return nil
	default:
		if f.Date == DateInstant {
			return fmt.Errorf("%w: %s is an instant, and has no text", ErrCondition, f)
		}
	}
	for _, v := range operands {
		switch {
		case v.kind == KindNull:
		case f.Date == DateNone && v.kind == KindInstant, f.Date == DateInstant && v.kind != KindInstant:
			return fmt.Errorf("%w: %s is compared with %s: instants are compared with instants", ErrCondition, f, v.kind)
		case f.Date > DateInstant && v.kind != KindText:
			return fmt.Errorf("%w: %s is text such as %q, and is compared with %s", ErrCondition, f, "2026-01-31T23"[:dateLengths[f.Date]], v)
		}
	}
	return nil
}

// folds reports whether comparisons of a field always ignore case.
func (c *compiler) folds(f Field) bool {
	return f.Meta == MetaID && !c.sensitiveIDs || f.Meta == MetaCollection
}

// join compiles an And, Or or Not of kids.
func (c *compiler) join(op op, kids []Expr) (condition, error) {
	joined := condition{op: op, kids: make([]condition, len(kids))}
	for i, kid := range kids {
		var err error
		if joined.kids[i], err = c.compile(kid); err != nil {
			return condition{}, err
		}
	}
	return joined, nil
}

// with adds operands to a condition. It refuses values that cannot be compared.
func (c *compiler) with(to condition, values ...Value) (condition, error) {
	for _, v := range values {
		if !v.IsScalar() {
			return to, fmt.Errorf("%w: comparison with an operand that is %v", ErrCondition, v.kind)
		}
		to.operands = append(to.operands, newOperand(v))
	}
	return to, nil
}

// in adds operands to a condition, sorted and without duplicates: Matcher.find
// searches them by bisection.
func (c *compiler) in(to condition, values []Value) (condition, error) {
	to, err := c.with(to, values...)
	if err != nil {
		return to, err
	}
	compare := func(a, b operand) int { return compare(a.value, b.value, to.fold) }
	slices.SortFunc(to.operands, compare)
	to.operands = slices.CompactFunc(to.operands, func(a, b operand) bool { return compare(a, b) == 0 })
	if to.op == opAll {
		to.mark = c.marks
		c.marks += len(to.operands)
	}
	return to, nil
}

// textCondition completes to as a condition that looks for text.
func textCondition(to condition, op op, text string, folds bool) condition {
	to.op, to.fold, to.text = op, folds, []byte(text)
	if folds {
		to.text = fold.Append(nil, text)
	}
	return to
}
