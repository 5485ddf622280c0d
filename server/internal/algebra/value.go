package algebra

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/query"
)

// shape is what a value is.
type shape int

const (
	isScalar    shape = iota // text is its RQL
	isCondition              // cond is its RQL
	isReference              // a document, an element of an array, or what a path reaches in them
	isMeasure                // .Length, .Count or .length of what a path reaches
	isObject                 // names and values
	isRows                   // documents, or elements of an array, one after another
	isGroups                 // the groups of a reduce
	isGroup                  // one of them
	isKey                    // its members
	isNothing                // null in the place of an entry, or of a list of them
	isPlace                  // text is the RQL of a place, which is a member as it is
	isFields                 // members with the names that CreateField gives them
	isNamed                  // text is the fields() of RQL: members whose names are in the document
)

// kindOfValue is what is known of a value before there is a document.
type kindOfValue int

const (
	anyKind kindOfValue = iota
	numberKind
	integerKind // of C#
	decimalKind // of C#: a quotient by it has decimals
	textKind
	booleanKind
	instantKind
	nullKind
	unknownKind // of an end of a group: nothing is computed with it
)

// root is where a path begins.
type root int

const (
	ofDocument root = iota
	ofElement       // of the array over which the index fans out
	ofInner         // an element in Any and All
	ofRow           // an entry, in a reduce
)

// value is what an expression is.
type value struct {
	shape shape
	at    int

	// Of a scalar: its RQL, and how tightly its operator binds.
	text     string
	order    int
	kind     kindOfValue
	maybe    bool     // it may be missing or null
	constant bool     // text is one, and raw its value
	raw      string   //
	parts    []string // of a text that is joined

	cond condition

	root   root
	path   []step
	called bool // a measure: Count()
	keyed  bool // a member of the key, whose name is raw

	names  []string
	ats    []int
	values []value

	rows *rows
}

// add adds a member to an object, or to fields.
func (v *value) add(name string, at int, member value) {
	v.names, v.ats, v.values = append(v.names, name), append(v.ats, at), append(v.values, member)
}

// addAll adds the members of fields.
func (v *value) addAll(fields value) {
	v.names, v.ats, v.values = append(v.names, fields.names...), append(v.ats, fields.ats...), append(v.values, fields.values...)
}

// step is a step of a path: a member, or an element with a number.
type step struct {
	name  string
	index int // -1 for a member, everyElement, or toDocument
}

// Steps that are neither a member nor an element with a number.
const (
	everyElement = -2 // the elements of an array
	toDocument   = -3 // from a reference to the document whose ID it is
)

// rows are documents of a collection or elements of an array, and what is made of each.
type rows struct {
	collection string
	source     bool   // they are documents
	each       []step // of the array; nil for none
	as         string // a name of the element in the text
	at         int    // where the array stands
	where      condition
	item       value
	key        value // of isGroups: by what they are grouped
	grouped    bool
	order      string // of the entries of a group: the member by which they are ordered
	descending bool
	distinct   bool // of the values of a group: each different one once
}

// condition is a condition in RQL. The zero value is true.
type condition struct {
	text  string
	order int
	never bool
	of    *condition // that this is the negation of
}

// Orders of conditions and of operators: those of a higher one bind tighter.
const (
	orderOr = iota + 1
	orderAnd
	orderNot
	orderOne

	orderSum     = 1
	orderProduct = 2
)

func (c condition) always() bool { return c.text == "" && !c.never }

func (c condition) in(order int) string {
	switch {
	case c.never:
		return "false"
	case c.always():
		return "true"
	case c.order < order:
		return "(" + c.text + ")"
	}
	return c.text
}

func one(format string, args ...any) condition {
	return condition{text: fmt.Sprintf(format, args...), order: orderOne}
}

func and(a, b condition) condition {
	switch {
	case a.never || b.never:
		return condition{never: true}
	case a.always():
		return b
	case b.always():
		return a
	}
	return condition{text: a.in(orderAnd) + " and " + b.in(orderAnd), order: orderAnd}
}

func or(a, b condition) condition {
	switch {
	case a.always() || b.always():
		return condition{}
	case a.never:
		return b
	case b.never:
		return a
	}
	return condition{text: a.in(orderOr) + " or " + b.in(orderOr), order: orderOr}
}

func not(c condition) condition {
	switch {
	case c.never:
		return condition{}
	case c.always():
		return condition{never: true}
	}
	if c.of != nil {
		return *c.of
	}
	return condition{text: "not " + c.in(orderOne), order: orderNot, of: &c}
}

// in returns a scalar for a place in which an operator of an order stands.
func (v value) in(order int) string {
	if v.order != 0 && v.order < order {
		return "(" + v.text + ")"
	}
	return v.text
}

// call returns the call of a function of RQL.
func call(name string, kind kindOfValue, maybe bool, operands ...string) value {
	return value{text: name + "(" + strings.Join(operands, ", ") + ")", kind: kind, maybe: maybe}
}

// quote returns a text as RQL writes it.
func quote(s string) string {
	var b strings.Builder
	b.WriteByte('\'')
	for _, r := range s {
		switch {
		case r == '\'' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < ' ' || r == 0x7f:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('\'')
	return b.String()
}

func textConstant(s string, at int) value {
	return value{at: at, text: quote(s), kind: textKind, constant: true, raw: s}
}

// elementMark stands for the name of the element until the members of the document are known. No text has it: quote writes
// it as \u0000.
const elementMark = "\x00"

// isPlain reports whether RQL reads a word as the name of a member, wherever an operand may stand.
func isPlain(name string) bool {
	if name == "" || strings.HasPrefix(name, "@") || slices.Contains([]string{"nan", "infinity", "undefined"}, strings.ToLower(name)) {
		return false
	}
	f, err := query.ParseExpression(name)
	return err == nil && f.Meta == query.MetaNone && f.Path.Len() == 1 && f.Path.Root() == name
}

// isWord reports whether RQL reads a word as a member behind a point.
func isWord(name string) bool {
	f, err := query.ParseExpression("x." + name)
	return name != "" && !strings.HasPrefix(name, "@") && err == nil && f.Meta == query.MetaNone && f.Path.Len() == 2 && f.Path.At(1).Name == name
}

// pathText returns a path as RQL writes it.
func pathText(from root, path []step) string {
	if to := lastLoad(path); to >= 0 {
		return loadText(from, path[:to], path[to+1:])
	}
	var b strings.Builder
	begin := path
	switch {
	case from == ofElement:
		b.WriteString(elementMark)
	case path[0].name == "@metadata":
		b.WriteString("@metadata")
		begin = path[1:]
		for _, s := range begin {
			if strings.HasPrefix(s.name, "@") {
				b.WriteString("." + s.name)
			} else {
				writeStep(&b, s)
			}
		}
		return b.String()
	case isPlain(path[0].name):
		b.WriteString(path[0].name)
		begin = path[1:]
	default:
		b.WriteString("field(" + quote(path[0].name))
		for _, s := range path[1:] {
			writeStep(&b, s)
		}
		b.WriteByte(')')
		return b.String()
	}
	for _, s := range begin {
		writeStep(&b, s)
	}
	return b.String()
}

func writeStep(b *strings.Builder, s step) {
	switch {
	case s.index == everyElement:
		b.WriteString("[]")
	case s.index >= 0:
		fmt.Fprintf(b, "[%d]", s.index)
	case isWord(s.name):
		b.WriteString("." + s.name)
	default:
		b.WriteString("." + quote(s.name))
	}
}

// scope has the variables of a place. It is immutable.
type scope struct {
	name  string
	value value
	up    *scope
}

func (s *scope) with(name string, v value) *scope { return &scope{name, v, s} }

func (s *scope) find(name string) (value, bool) {
	for ; s != nil; s = s.up {
		if s.name == name {
			return s.value, true
		}
	}
	return value{}, false
}
