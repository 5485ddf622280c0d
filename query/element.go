package query

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
)

// ElemMatch is true if the field reaches an object of which Where is true. The paths in
// Where begin in this object, so that all its conditions are about one element of an
// array. It has no fields of metadata and no functions. A nil Where is true of every
// object.
type ElemMatch struct {
	Field Field
	Where Expr
}

// HasSize is true if the field's path leads to an array whose number of elements stands
// in this relation to N.
type HasSize struct {
	Field Field
	Op    Op
	N     int
}

// HasType is true if the field's path leads to a value of this type of JSON: null, boolean, number,
// string, array or object. An array has the type array. The types of its elements do not matter.
type HasType struct {
	Field Field
	Type  string
}

func (ElemMatch) expr() {}
func (HasSize) expr()   {}
func (HasType) expr()   {}

func (e ElemMatch) on() (Field, bool) { return e.Field, true }

func (e ElemMatch) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (ElemMatch) measure(s Size) Size {
	s.Elements++
	return s
}

func (e ElemMatch) write(b *strings.Builder) {
	b.WriteString("elemMatch(" + e.Field.String() + ", ")
	if e.Where == nil {
		e.Where = And{}
	}
	writeExpr(b, e.Where, bindsOr)
	b.WriteString(")")
}

func (ElemMatch) looksAtValues() bool { return false }

func (e ElemMatch) refold(fn func(Field, bool) bool) Expr {
	e.Where = Refold(e.Where, fn)
	return e
}

// complete is nothing for an ElemMatch, which has a compiler of its own: see compiler.element.
func (e ElemMatch) complete(_ *compiler, to condition, _ bool) (condition, error) {
	return to, fmt.Errorf("%w: %T", ErrCondition, e)
}

func (e HasSize) on() (Field, bool) { return e.Field, true }

func (e HasSize) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (HasSize) measure(s Size) Size { return s }

func (e HasSize) write(b *strings.Builder) {
	b.WriteString("size(" + e.Field.String() + ") " + opNames[e.Op] + " " + strconv.Itoa(e.N))
}

func (HasSize) looksAtValues() bool { return false }

func (e HasSize) refold(func(Field, bool) bool) Expr { return e }

func (e HasSize) complete(_ *compiler, to condition, _ bool) (condition, error) {
	if e.Op > GreaterOrEqual || e.N < 0 {
		return to, fmt.Errorf("%w: no size %d", ErrCondition, e.N)
	}
	to.op, to.relation, to.size = opSize, e.Op, e.N
	return to, nil
}

func (e HasType) on() (Field, bool) { return e.Field, true }

func (e HasType) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (HasType) measure(s Size) Size { return s }

func (e HasType) write(b *strings.Builder) {
	b.WriteString("type(" + e.Field.String() + ") = " + quote(e.Type))
}

func (HasType) looksAtValues() bool { return false }

func (e HasType) refold(func(Field, bool) bool) Expr { return e }

func (e HasType) complete(_ *compiler, to condition, _ bool) (condition, error) {
	if err := checkType(e.Type); err != nil {
		return to, err
	}
	to.op, to.kind = opType, e.Type
	return to, nil
}

// jsonTypes are the types of HasType, by kind. Missing is none, and no kind of a value at
// a path is an instant.
var jsonTypes = [...]string{KindNull: "null", KindFalse: "boolean", KindTrue: "boolean", KindNumber: "number", KindText: "string", KindArray: "array", KindObject: "object"}

// checkType refuses a type that JSON does not have.
func checkType(name string) error {
	for _, known := range jsonTypes {
		if known == name && name != "" {
			return nil
		}
	}
	return fmt.Errorf("%w: %q is no type of JSON: those are null, boolean, number, string, array and object", ErrCondition, name)
}

// checkElement refuses a field that an ElemMatch does not look at.
func checkElement(f Field) error {
	if f.Meta != MetaNone && f.Meta != MetaElement || f.Func != FuncNone || f.Date != DateNone {
		return fmt.Errorf("%w: %s has no elements", ErrCondition, f)
	}
	return nil
}

// Within converts a field of elements to a field of documents. of is the path of the elements.
// Within returns ErrCondition for a field that is not a path, and for a path that becomes too long.
func Within(of jsonpath.Path, f Field) (Field, error) {
	if f.Meta != MetaNone || f.Func != FuncNone {
		return f, fmt.Errorf("%w: %s is of the document, and stands in a condition on its elements", ErrCondition, f)
	}
	path, err := jsonpath.Parse(of.String() + "." + f.Path.String())
	if err != nil {
		return f, fmt.Errorf("%w: %w", ErrCondition, err)
	}
	f.Path = path
	return f, nil
}

// Implied returns conditions on the document that are true wherever e is true: the conditions on
// one field that the elements have to satisfy. Indexes use them to find candidates.
func (e ElemMatch) Implied() []Expr {
	if e.Field.Meta != MetaNone {
		return nil
	}
	return e.implied(nil, e.Where)
}

func (e ElemMatch) implied(dst []Expr, where Expr) []Expr {
	switch w := where.(type) {
	case nil, Or, Not:
		return dst
	case And:
		for _, kid := range w {
			dst = e.implied(dst, kid)
		}
		return dst
	}
	if inner, ok := where.(ElemMatch); ok {
		f, err := Within(e.Field.Path, inner.Field)
		if err != nil {
			return dst
		}
		inner.Field = f
		return inner.implied(dst, inner.Where)
	}
	on, err := MapFields(where, func(f Field) (Field, error) { return Within(e.Field.Path, f) })
	if err != nil {
		return dst
	}
	return append(dst, on)
}

// element compiles an ElemMatch. Its own Matcher reads one element after another.
func (c *compiler) element(to condition, e ElemMatch, of jsonpath.Path) (condition, error) {
	inner := compiler{sensitiveIDs: c.sensitiveIDs, slots: make(map[fieldKey]int), regexps: c.regexps, of: of}
	where := e.Where
	if where == nil {
		where = And{}
	}
	root, err := inner.compile(where)
	if err != nil {
		return to, err
	}
	c.regexps = inner.regexps
	m := &Matcher{root: root, reader: NewReader(inner.fields), marks: make([]uint64, inner.marks), elements: inner.elements, searches: inner.searches}
	m.reader.most = maxHeldOfElement
	to.op, to.element = opElement, len(c.elements)
	c.elements = append(c.elements, m)
	return to, nil
}

// acceptsElement reports whether an element satisfies an opElement.
func (m *Matcher) acceptsElement(c *condition, v Value) bool {
	if v.kind != KindObject {
		return false
	}
	inner := m.elements[c.element]
	inner.reader.inherited = m.reader.spent
	matches := inner.Match(Doc{Body: v.raw})
	m.reached = max(m.reached, inner.Reached())
	inner.reader.Reset(Doc{}) // holds nothing of a large element
	return matches
}

// acceptsSize reports whether v is an array of a size that c asks for.
func (m *Matcher) acceptsSize(c *condition, v Value) bool {
	if v.kind != KindArray {
		return false
	}
	n := 0
	for _, element := range jsonpath.Elements(v.raw) {
		// No more need be counted than decide.
		if n++; n > c.size || !m.pace.Spend(len(element)) {
			break
		}
	}
	switch c.relation {
	case Equal:
		return n == c.size
	case Less:
		return n < c.size
	case LessOrEqual:
		return n <= c.size
	case Greater:
		return n > c.size
	}
	return n >= c.size
}
