package query

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/native"
)

// Each is the fan-out of a query: each element of an array of a document counts as a document of its own. In the
// expressions of the query the element has a name, and other paths lead into the document: of
//
//	from Orders each Lines as line group by line.Product select line.Product, sum(line.Price * line.Quantity)
//
// the groups are groups of lines. The zero value is no fan-out.
//
// The elements are the elements of the array at the end of the path. Any other value there is one
// element, except null, which is none. A path that goes through an array leads to the elements of
// all arrays that it reaches. The name of the element hides a member of the document with the same
// name.
//
// A Go function that the program has registered may give the elements in place of an array, by its name and version:
//
//	from Orders each function('orders/lines', '2') as line group by line.Product
//
// A document for which the function fails has no elements.
type Each struct {
	Path     jsonpath.Path // in the body
	As       string        // the name of the element
	Function string        // of a function, in place of Path; "" for none
	Version  string        // of the function
}

// functionWord begins a function in the place of a path. Part of the on-disk format of indexes. Must not change.
const functionWord = "function"

// IsFunction reports whether a Go function gives the elements.
func (e Each) IsFunction() bool { return e.Function != "" }

// Check returns an error that names the function of the fan-out if the program has not registered it, or nil.
func (e Each) Check() error {
	if id := e.function(); e.IsFunction() && native.Find(id) == nil {
		return &native.Unknown{ID: id}
	}
	return nil
}

func (e Each) function() native.ID { return native.ID{Name: e.Function, Version: e.Version} }

// IsZero reports whether e is the zero value, which is no fan-out.
func (e Each) IsZero() bool { return e.Path.IsZero() && !e.IsFunction() }

// String returns the fan-out as a query writes it, such as "Lines as line".
func (e Each) String() string {
	if e.IsZero() {
		return ""
	}
	if e.IsFunction() {
		return functionWord + "(" + quote(e.Function) + ", " + quote(e.Version) + ") as " + printName(e.As)
	}
	return pathString(e.Path) + " as " + printName(e.As)
}

// ParseEach parses a fan-out such as "Lines as line". Every error is a [*SyntaxError], and is [ErrSyntax].
func ParseEach(text string) (Each, error) {
	p, err := newParser(text, nil)
	if err != nil {
		return Each{}, err
	}
	e, err := eachParser{p}.parse()
	if err == nil && p.tok.kind != tokenEnd {
		err = p.unexpected("the end")
	}
	return e, err
}

// eachParser parses a fan-out.
type eachParser struct{ p *parser }

// each = ( path | function ) "as" name .
func (ep eachParser) parse() (e Each, err error) {
	p := ep.p
	if ep.atFunction() {
		e, err = ep.function()
	} else {
		e.Path, err = ep.path()
	}
	if err != nil {
		return e, err
	}
	if !p.accept("as") {
		return e, p.unexpected(`"as" and a name for the element`, "as")
	}
	name := p.tok
	if e.As, err = p.name("a name for the element"); err != nil {
		return e, err
	}
	switch {
	case e.As == "", e.As == metadataMember:
		return e, p.fail(name.offset, "%s is no name for an element", quote(e.As))
	case e.As == p.alias:
		return e, p.fail(name.offset, "%s is the alias of the documents", e.As).expecting("another name for the element")
	}
	return e, nil
}

// path parses the path of an array.
func (ep eachParser) path() (jsonpath.Path, error) {
	start := ep.p.tok
	f, err := ep.p.field("the path of an array")
	if err == nil && (f.Meta != MetaNone || f.Date != DateNone) {
		err = ep.p.fail(start.offset, "%s is no array of the body", f).expecting("the path of an array")
	}
	return f.Path, err
}

// atFunction reports whether a function follows. A path has no parenthesis.
func (ep eachParser) atFunction() bool {
	return ep.p.tok.kind == tokenWord && ep.p.tok.is(functionWord) && ep.p.peek().isSymbol("(")
}

// function = "function" "(" text "," text ")" .
func (ep eachParser) function() (e Each, err error) {
	p := ep.p
	start := p.tok
	p.advance()
	if err := p.expectSymbol("(", "behind function"); err != nil {
		return e, err
	}
	for i, part := range []*string{&e.Function, &e.Version} {
		if p.tok.kind != tokenText {
			return e, p.unexpected([]string{"the name of a Go function in quotes", "its version in quotes"}[i])
		}
		*part = p.tok.text
		p.advance()
		if err := p.expectSymbol([]string{",", ")"}[i], []string{"and the version of the function", "behind its version"}[i]); err != nil {
			return e, err
		}
	}
	if err := e.function().Check(); err != nil {
		return e, p.fail(start.offset, "%v", err)
	}
	return e, nil
}

// Field returns the field that a field in the text of a query means in the fan-out: a path that
// begins with the name of the element leads into the element. It returns ErrCondition for an
// expression that becomes too large.
func (e Each) Field(f Field) (Field, error) {
	if e.IsZero() {
		return f, nil
	}
	return Substitute(f, func(f Field) (Field, error) {
		if f.Meta == MetaNone && (f.Path.Root() == e.As || e.isLoaded(f)) {
			f.Meta = MetaElement
		}
		return f, nil
	})
}

// isLoaded reports whether a field is of what the element refers to, which is an ID itself:
// load(product).Name of each Products as product.
func (e Each) isLoaded(f Field) bool {
	return !f.Path.IsZero() && f.Path.At(0).IsLoad() && f.Path.At(0).Reference() == e.As
}

// pathOf returns the path of a field of the element in the body of the document, expanded.
func (e Each) pathOf(f Field) (jsonpath.Path, error) {
	if e.isLoaded(f) {
		return jsonpath.Load(e.Path, f.Path.Suffix(1))
	}
	return e.Path.Within(f.Path.Suffix(1))
}

// Condition returns the condition that a condition in the text of a query means in the fan-out: see
// Field.
func (e Each) Condition(on Expr) (Expr, error) {
	if e.IsZero() || on == nil {
		return on, nil
	}
	return MapFields(on, e.Field)
}

// ResolveEach converts the fields of a query to fields of its fan-out: see Each.Field. [Parse] does
// so as well. Call ResolveEach after adding fields to a parsed query. It leaves converted fields as
// they are.
func (q *Query) ResolveEach() (err error) {
	if q.Each.IsZero() {
		return nil
	}
	q.GroupBy, q.Select, q.OrderBy = slices.Clone(q.GroupBy), slices.Clone(q.Select), slices.Clone(q.OrderBy)
	change := func(f *Field) {
		if err == nil && !f.isZero() {
			*f, err = q.Each.Field(*f)
		}
	}
	for i := range q.GroupBy {
		change(&q.GroupBy[i])
	}
	for i := range q.Select {
		change(&q.Select[i].Field)
	}
	for i := range q.OrderBy {
		if q.OrderBy[i].Column == "" {
			change(&q.OrderBy[i].Field)
		}
	}
	for _, e := range []*Expr{&q.Where, &q.Having} {
		if *e != nil && err == nil {
			*e, err = q.Each.Condition(*e)
		}
	}
	return err
}

// IsOfElement reports whether a condition refers to the element of a fan-out.
func IsOfElement(e Expr) bool {
	err := EachField(e, func(f Field) error {
		if f.IsOfElement() {
			return errOfElement
		}
		return nil
	})
	return err != nil
}

// IsOfElement reports whether the field leads into the element of a fan-out, or is computed from one that does.
func (f Field) IsOfElement() bool {
	if f.By != nil && f.By.IsOfElement() {
		return true
	}
	if f.Expression == nil {
		return f.Meta == MetaElement
	}
	return slices.ContainsFunc(f.Expression.Fields(), Field.IsOfElement)
}

var errOfElement = errors.New("it is of the element of a fan-out")

// checkEach refuses a fan-out of a query that answers with documents, or includes others.
func (q *Query) checkEach() error {
	switch {
	case q.Each.IsZero():
		return nil
	case len(q.Facets) > 0:
		return fmt.Errorf("%w: facets count documents, and a query with each has elements: use group by and count()", ErrCondition)
	case len(q.Select) == 0:
		return fmt.Errorf("%w: a query with each answers with elements, and says what it selects of them", ErrCondition)
	case q.IncludesMore():
		return fmt.Errorf("%w: include is of documents, and a query with each answers with elements", ErrCondition)
	}
	return nil
}

// Elements makes the documents of a fan-out: one for each element of a document. It is not safe for
// concurrent use.
type Elements struct {
	each   Each
	head   []byte        // of the object with the element
	loaded []byte        // what stands in it before the document to which an element refers
	refers jsonpath.Path // to what the array refers, if it has references; the zero value for a function
	json   []byte        // this object

	function native.Function // that gives the elements; nil for a path, and for one that is not registered
	failed   error           // why it has failed for the last document
}

// NewElements returns the Elements of a fan-out.
func NewElements(e Each) *Elements {
	elements := &Elements{each: e, head: append(jsonpath.AppendQuoted([]byte{'{'}, e.As), ':')}
	if e.IsFunction() {
		elements.function = native.Find(e.function())
		return elements
	}
	elements.loaded = append(jsonpath.AppendQuoted([]byte{','}, jsonpath.LoadedName(e.As)), ':')
	elements.refers, _ = jsonpath.Load(e.Path, jsonpath.Path{}) // of a path that is loaded there is none
	return elements
}

// Failed returns why the function has failed for the last document, or nil. Such a document has no elements.
func (e *Elements) Failed() error { return e.failed }

// run returns what the function gives for a body. Its error is that the function is not registered.
func (e *Elements) run(body []byte) (entries [][]byte, err error) {
	if e.function == nil {
		return nil, e.each.Check()
	}
	entries, e.failed = e.function.Run(body)
	return entries, nil
}

// version is that of the last document of which Elements have been read.
var version atomic.Uint64

// Each calls fn with the document of each element of doc, in order, until fn returns an error. The
// document is valid until fn returns.
func (e *Elements) Each(doc Doc, fn func(Doc) error) (err error) {
	doc.version = version.Add(1)
	e.failed = nil
	one := func(raw, refers []byte) bool {
		e.json = append(append(e.json[:0], e.head...), raw...)
		if refers != nil {
			e.json = append(append(e.json, e.loaded...), refers...)
		}
		e.json = append(e.json, '}')
		doc.Element = e.json
		err = fn(doc)
		return err == nil
	}
	if e.each.IsFunction() {
		entries, unknown := e.run(doc.Body)
		for _, raw := range entries {
			if len(raw) > 0 && !bytes.Equal(raw, null.raw) && !one(raw, nil) {
				break
			}
		}
		if unknown != nil {
			return unknown
		}
		return err
	}
	references := e.references(doc.Body)
	jsonpath.EachLoose(doc.Body, e.each.Path, func(raw []byte) bool {
		refers := references.next()
		switch {
		case len(raw) == 0 || bytes.Equal(raw, null.raw):
			return true
		case raw[0] != '[':
			return one(raw, refers)
		}
		loaded := elementsOf(refers)
		for _, element := range jsonpath.Elements(raw) {
			if !one(element, loaded.next()) {
				return false
			}
		}
		return true
	})
	if cap(e.json) > maxIdleColumn {
		e.json = nil
	}
	return err
}

// documents are what values refer to, in the order of the values.
type documents [][]byte

// next returns what the next value refers to, and nil if it is none that was loaded.
func (d *documents) next() (refers []byte) {
	if len(*d) > 0 {
		refers, *d = (*d)[0], (*d)[1:]
	}
	return refers
}

// references returns what the values of the array refer to. Each object of an expanded body that
// has references has beside them what they refer to, so both are in the same order.
func (e *Elements) references(body []byte) (all documents) {
	if e.refers.IsZero() || bytes.IndexByte(body, jsonpath.LoadedName("")[0]) < 0 { // nothing is loaded
		return nil
	}
	jsonpath.EachLoose(body, e.refers, func(raw []byte) bool {
		all = append(all, raw)
		return true
	})
	return all
}

// elementsOf returns the elements of an array.
func elementsOf(array []byte) (all documents) {
	if len(array) == 0 || array[0] != '[' {
		return nil
	}
	for _, element := range jsonpath.Elements(array) {
		all = append(all, element)
	}
	return all
}

// Count returns how many elements the document with this body has.
func (e *Elements) Count(body []byte) (n int) {
	if e.each.IsFunction() {
		_ = e.Each(Doc{Body: body}, func(Doc) error { n++; return nil })
		return n
	}
	jsonpath.EachLoose(body, e.each.Path, func(raw []byte) bool {
		switch {
		case len(raw) == 0 || bytes.Equal(raw, null.raw):
		case raw[0] != '[':
			n++
		default:
			for range jsonpath.Elements(raw) {
				n++
			}
		}
		return true
	})
	return n
}

// Substitute returns f with each of its paths, including those of its expression, replaced by the
// result of fn: another path, or an expression. It returns the first error of fn, and ErrCondition
// for an expression that becomes too large, and for an expression where only a path is valid.
func Substitute(f Field, fn func(Field) (Field, error)) (Field, error) {
	if by := f.By; by != nil {
		order, err := Substitute(*by, fn)
		if err != nil {
			return f, err
		}
		f.By = nil
		f, err = Substitute(f, fn)
		f.By = &order
		return f, err
	}
	if f.Expression == nil {
		return fn(f)
	}
	if f.IsConstant() {
		return f, nil
	}
	s := substitution{fn: fn, x: &Expression{}}
	root, err := s.operation(f.Expression, f.Expression.root)
	if err != nil {
		return f, err
	}
	s.x.root = root
	w := writer{expression: s.x}
	w.write(root, orderAny)
	if s.x.text = w.String(); len(s.x.text) > MaxText {
		return f, fmt.Errorf("%w: an expression of %d bytes is too long: %d are the most", ErrCondition, len(s.x.text), MaxText)
	}
	return Field{Meta: MetaExpression, Expression: s.x, Func: f.Func}, nil
}

// SubstituteCondition returns a condition with the paths of its fields replaced: see Substitute.
// Conditions on the elements of an array, on its size and on types take paths only.
func SubstituteCondition(e Expr, fn func(Field) (Field, error)) (Expr, error) {
	return MapFields(e, func(f Field) (Field, error) { return Substitute(f, fn) })
}

// substitution makes one expression of another.
type substitution struct {
	fn func(Field) (Field, error)
	x  *Expression // that is made
}

// operation returns an operation of an expression in the one that is made.
func (s *substitution) operation(of *Expression, o *operation) (*operation, error) {
	if s.x.size++; s.x.size > MaxOperands {
		return nil, fmt.Errorf("%w: an expression has too many operands: %d are the most", ErrCondition, MaxOperands)
	}
	switch {
	case o.function == nil && o.field < 0:
		return o, nil
	case o.function == nil:
		f, err := s.fn(of.fields[o.field])
		if err != nil {
			return nil, err
		}
		if f.Expression != nil { // its fields are replaced already
			return (&substitution{fn: itself, x: s.x}).operation(f.Expression, f.Expression.root)
		}
		return &operation{field: s.field(f)}, nil
	}
	made := *o
	made.operands = make([]*operation, len(o.operands))
	if o.function.name == "if" {
		where, err := SubstituteCondition(of.conditions[o.condition], s.fn)
		if err != nil {
			return nil, err
		}
		if _, err := Compile(where); err != nil {
			return nil, err
		}
		made.condition = len(s.x.conditions)
		s.x.conditions = append(s.x.conditions, where)
	}
	for i, operand := range o.operands {
		var err error
		if made.operands[i], err = s.operation(of, operand); err != nil {
			return nil, err
		}
	}
	return &made, nil
}

func itself(f Field) (Field, error) { return f, nil }

// field returns the position of a field among those of the expression that is made.
func (s *substitution) field(f Field) int {
	for i, known := range s.x.fields {
		if keyOf(known) == keyOf(f) {
			return i
		}
	}
	s.x.fields = append(s.x.fields, f)
	return len(s.x.fields) - 1
}
