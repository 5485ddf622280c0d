package query

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Bounds of an Expression.
const (
	// MaxOperands bounds the constants, fields, operators and functions of one expression. They
	// may be nested as deep as parentheses: see MaxTextDepth.
	MaxOperands = 1000

	// MaxComputedBytes bounds a text that an expression computes, in bytes.
	MaxComputedBytes = 1 << 20
)

// maxComputed bounds what all expressions of a query compute of one document, in bytes, results on the way to a result
// included: they stay in memory until the next document.
const maxComputed = 16 << 20

// errOperand is why an expression has no value for a document: a sum of a text and a number, a division by
// zero, a field that reaches several values.
var errOperand = errors.New("an expression cannot be computed")

// Expression is a value that is computed from others of the same document: Price * Quantity, lower(Name),
// coalesce(Nickname, Name), if(Total > 100, 'large', 'small'). [ParseExpression] makes it. It is immutable.
//
// An operand is the one value that its field reaches. If it is missing, so is the result; if it is
// null, the result is null; coalesce and if choose among operands, if without a second value is
// missing where its condition is not true, and concat leaves those out. The first operand of join
// is all values that its field reaches. Otherwise the operands must be of the kinds that the
// operator or function takes: for a document in which they are not, in which a field reaches
// several values, or in which a number is divided by zero, the expression has no value, as if it
// were missing.
//
// Sums, differences, products and remainders are exact, up to 1,000 digits; a remainder has the
// sign of the first operand. A quotient has 17 digits, half to even. Operators have the precedence
// of arithmetic. Two texts are joined by +. Texts are counted in characters, from 0; instants are
// in UTC.
type Expression struct {
	root       *operation
	fields     []Field // that it refers to, each once
	conditions []Expr  // of if, in the order of the text
	size       int     // number of its operations
	text       string
}

// String returns the expression as a query writes it.
func (x *Expression) String() string { return x.text }

// IsConstant reports whether f is an expression that is one value: (5).
func (f Field) IsConstant() bool {
	return f.Expression != nil && f.Expression.root.function == nil && f.Expression.root.field < 0
}

// Fields returns the fields from whose values the expression is computed, each once. The fields of
// its conditions come after the others.
func (x *Expression) Fields() []Field {
	fields := x.fields[:len(x.fields):len(x.fields)]
	for _, e := range x.conditions {
		fields = append(fields, Fields(e)...)
	}
	return fields
}

// Operands returns the fields from whose values f is computed, including the operands of the
// conditions of its expression. If f is not an expression, Operands returns f itself.
func (f Field) Operands() (all []Field) {
	if f.Expression == nil {
		return []Field{f}
	}
	for _, inner := range f.Expression.Fields() {
		all = append(all, inner.Operands()...)
	}
	return all
}

// operation is an operator or a function with its operands, a field or a constant.
type operation struct {
	function  *function // or nil
	operands  []*operation
	condition int   // of if: its index
	field     int   // without a function: its index, or -1
	constant  Value // if it is no field
	offset    int   // of a constant, in the text, while that is parsed
	rest      rest  // of a function whose other operands are no values; or nil
}

// rest is what a function has behind its operands, such as the point of spatial.distance.
type rest interface {
	opening() string // of a function around the first operand, such as "embedding.i8("; "" for none
	suffix() string  // as RQL has it, with a comma in front
}

// function is an operator or a function of expressions.
type function struct {
	name        string
	least, most int      // number of operands
	units       []string // that the first operand, a constant, is one of
	takesNull   bool     // an operand that is missing or null does not decide the result

	// apply computes the result. The operands are values, unless takesNull.
	apply func(c *computation, v []Value) (Value, error)

	// choose is there instead if not all operands are computed.
	choose func(c *computation, o *operation) (Value, error)

	// last is what an order takes for a document without a value, if that is behind all others;
	// missing for the usual order.
	last Value

	exact bool // it is written in exact()
}

// maxOperands bounds the operands of the functions that take many.
const maxOperands = 64

// The functions, and the operators by their signs. Parts of dates that fields have, such as day(At), are in dateNames.
var (
	functions   []*function
	operatorsOf map[string]*function
)

// computation computes an expression for one document after another.
type computation struct {
	expression *Expression
	slots      []int      // in the Reader, of the expression's fields
	matchers   []*Matcher // of its conditions

	reader *Reader   // values that no document has are in its memory, to which it appends instants when an operand has it read the document
	vector []float32 // scratch
}

// newComputation returns a computation whose fields have the slots of a Reader from first on.
func newComputation(x *Expression, first int) *computation {
	c := &computation{expression: x, slots: make([]int, len(x.fields))}
	for i := range x.fields {
		c.slots[i] = first + i
	}
	for _, e := range x.conditions {
		m, err := Compile(e)
		if err != nil {
			panic(fmt.Sprintf("query: %s has a condition that does not compile: %v", x, err)) // the parser has compiled it
		}
		c.matchers = append(c.matchers, m)
	}
	return c
}

// clone returns a computation for another Reader.
func (c *computation) clone() *computation {
	d := &computation{expression: c.expression, slots: c.slots}
	for _, m := range c.matchers {
		d.matchers = append(d.matchers, m.Clone())
	}
	return d
}

// compute returns the value for the document of a Reader. It is valid until the next call for another document.
func (c *computation) compute(r *Reader) (Value, error) {
	c.reader = r
	v, err := c.value(c.expression.root)
	c.reader = nil
	if err != nil {
		return Value{}, fmt.Errorf("%s: %w", c.expression, err)
	}
	return v, nil
}

// value computes an operation.
func (c *computation) value(o *operation) (Value, error) {
	if !c.reader.pace.Spend(1) {
		return Value{}, c.reader.pace.Err()
	}
	switch {
	case o.function == nil && o.field < 0:
		return o.constant, nil
	case o.function == nil:
		return c.operand(o.field)
	case o.function.choose != nil:
		return o.function.choose(c, o)
	}
	var few [3]Value
	values := few[:0]
	absent := Value{kind: KindTrue}
	for _, operand := range o.operands {
		v, err := c.value(operand)
		if err != nil {
			return Value{}, err
		}
		if v.kind <= KindNull && v.kind < absent.kind {
			absent = v
		}
		values = append(values, v)
	}
	if absent.kind <= KindNull && !o.function.takesNull {
		return absent, nil
	}
	v, err := o.function.apply(c, values)
	return c.charged(o, v, err)
}

// charged returns the result of a function, unless it is too large or an error.
func (c *computation) charged(o *operation, v Value, err error) (Value, error) {
	c.reader.pace.Spend(len(v.raw))
	switch c.reader.spent += len(v.raw); {
	case err != nil:
	case len(v.raw) > MaxComputedBytes:
		err = &LimitError{"bytes of a computed text", MaxComputedBytes, len(v.raw)}
	case c.reader.spent > maxComputed:
		err = &LimitError{"bytes that expressions compute of one document", maxComputed, c.reader.spent}
		if c.reader.pace != nil { // a query without these values would be another one
			c.reader.pace.Stop(err)
			c.reader.pace.Spend(workPerPoll)
		}
	}
	if err != nil {
		return Value{}, fmt.Errorf("%w: %s: %w", errOperand, o.function.name, err)
	}
	return v, nil
}

// operand returns the one value that a field reaches, missing for none.
func (c *computation) operand(field int) (Value, error) {
	f := c.reader.reach(c.slots[field])
	switch f.count {
	case 0:
		return Value{}, nil
	case 1:
		return f.values[0], nil
	}
	return Value{}, fmt.Errorf("%w: %s reaches %d values", errOperand, c.expression.fields[field], f.count)
}

// textFrom returns the text that has been appended to the memory behind start.
func (c *computation) textFrom(start int) Value {
	return plainText(c.reader.dates[start:len(c.reader.dates):len(c.reader.dates)])
}

// float returns a number with the shortest digits that read back as the same one.
func (c *computation) float(n float64) Value {
	start := len(c.reader.dates)
	c.reader.dates = strconv.AppendFloat(c.reader.dates, n, 'f', -1, 64)
	return ValueOf(c.reader.dates[start:len(c.reader.dates):len(c.reader.dates)])
}

// writer writes an expression as a query has it.
type writer struct {
	strings.Builder
	expression *Expression
}

// The order of operators: those of a higher number are computed first.
const (
	orderAny = iota
	orderSum
	orderProduct
	orderOne
)

func (f *function) order() int {
	switch f.name {
	case "+", "-":
		return orderSum
	case "*", "/", "%":
		return orderProduct
	}
	return orderOne
}

// write writes an operation, in parentheses if its operator is of a lower order than least.
func (w *writer) write(o *operation, least int) {
	switch {
	case o.function == nil && o.field < 0:
		w.WriteString(literal(o.constant))
		return
	case o.function == nil:
		w.WriteString(operandText(w.expression.fields[o.field]))
		return
	case o.function.order() == orderOne:
		w.call(o)
		return
	}
	order := o.function.order()
	if order < least {
		w.WriteByte('(')
		defer w.WriteByte(')')
	}
	w.write(o.operands[0], order)
	w.WriteString(" " + o.function.name + " ")
	w.write(o.operands[1], order+1)
}

func (w *writer) call(o *operation) {
	if o.function.exact {
		w.WriteString("exact(")
		defer w.WriteByte(')')
	}
	w.WriteString(o.function.name + "(")
	separator := ""
	if o.function.name == "if" {
		w.WriteString(FormatCondition(w.expression.conditions[o.condition]))
		separator = ", "
	}
	behind := ""
	if o.rest != nil {
		separator, behind = o.rest.opening(), o.rest.suffix()
	}
	if separator != "" && o.rest != nil {
		behind = ")" + behind
	}
	for _, operand := range o.operands {
		w.WriteString(separator)
		w.write(operand, orderAny)
		separator = ", "
	}
	w.WriteString(behind)
	w.WriteByte(')')
}

// operandText returns a field as an expression writes it, in which text in quotes is text.
func operandText(f Field) string {
	text := f.String()
	if !strings.HasPrefix(text, "'") {
		return text
	}
	if f.Date == DateInstant {
		as := text[strings.LastIndex(text, " as "):]
		return "field(" + strings.TrimSuffix(text, as) + ")" + as
	}
	return "field(" + text + ")"
}

// Computes reports whether a condition, or a condition in it on the elements of an array, refers to
// an expression. The depth of e must be within the bounds.
func Computes(e Expr) bool {
	err := walk(e, func(e Expr, _ int) error {
		f, _ := fieldOf(e)
		both, _ := e.(CompareFields)
		if f.Expression != nil || both.Other.Expression != nil {
			return errComputes
		}
		return nil
	})
	return err != nil
}

var errComputes = errors.New("it computes")

// eachWithin calls fn with the fields of documents that a field of the elements at a path is, or is
// computed from, until it returns an error. It returns ErrCondition for a field that no element
// has.
func eachWithin(of jsonpath.Path, f Field, fn func(Field) error) error {
	for _, f := range f.Operands() {
		f, err := Within(of, f)
		if err == nil {
			err = fn(f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// checkWithin returns ErrCondition for a field that the elements at a path do not have.
func checkWithin(of jsonpath.Path, f Field) error {
	return eachWithin(of, f, func(Field) error { return nil })
}
