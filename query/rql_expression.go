package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
)

// ParseExpression parses an operand of a condition: an expression such as Price * Quantity, or a field.
// Every error is a [*SyntaxError], and is [ErrSyntax].
func ParseExpression(text string) (Field, error) {
	p, err := newParser(text, nil)
	if err != nil {
		return Field{}, err
	}
	f, err := p.expr.operand("a field or an expression")
	if err != nil {
		return Field{}, err
	}
	if p.tok.kind != tokenEnd {
		return Field{}, p.unexpected("an operator or the end")
	}
	return f, nil
}

// ParseMember parses a member of a computed index: an expression such as Price * Quantity, a field,
// also as date or as utc, or a constant. Every error is a [*SyntaxError], and is [ErrSyntax].
func ParseMember(text string) (Field, error) { return parseMember(text, nil) }

// ParseReduction parses a member of a result of a computed index: an expression of members of a
// group, and of the functions count(), sum(), avg(), min(), max(), first(), last() and list(), also
// in the condition of if(). It adds a column for each function to columns, unless it is there, and
// the expression has the member of the column's name in its place. Errors are as for [ParseMember].
func ParseReduction(text string, columns *[]Column) (Field, error) { return parseMember(text, columns) }

func parseMember(text string, columns *[]Column) (Field, error) {
	p, err := newParser(text, nil)
	if err != nil {
		return Field{}, err
	}
	p.expr.columns, p.expr.reducing = columns, columns != nil
	f, err := p.expr.expression(nil)
	if err == nil && columns == nil && p.tok.is("as") {
		f, err = p.asDate(f)
	}
	if err != nil {
		return Field{}, err
	}
	if p.tok.kind != tokenEnd {
		return Field{}, p.unexpected("an operator or the end")
	}
	return f, nil
}

// aggregate is a term that is a function of groups. The result is the member of
// the column's name.
func (e *expressions) aggregate() (*operation, error) {
	columns := e.columns
	e.columns = nil // none is in another one
	defer func() { e.columns = columns }()
	at, err := e.p.term("a function of groups", nil)
	if err != nil {
		return nil, err
	}
	c := Column{Func: at.fn, Field: at.field, Name: columnName(at.field, at.fn)}
	if at.fn == FuncCount {
		c.Name = "count()"
	}
	if !slices.ContainsFunc(*columns, func(known Column) bool { return known.Name == c.Name }) {
		*columns = append(*columns, c)
	}
	path, err := jsonpath.Parse(string(jsonpath.AppendMember(nil, c.Name)))
	if err != nil {
		return nil, e.p.fail(at.offset, "%v", err).because(err)
	}
	return e.fieldOperand(Field{Path: path})
}

// orderOf parses the order of first or last, "order" "by" dated.
func (e *expressions) orderOf(name string) (*Field, error) {
	p := e.p
	at := p.tok
	if !p.accept("order") {
		return nil, p.fail(at.offset, "the documents of a group have no order, and %s() names one", name).
			expecting("order by").hinting(name + "(Total order by At)")
	}
	if !p.accept("by") {
		return nil, p.unexpected("by", "by")
	}
	start := p.tok
	by, err := p.dateField("the field of the order")
	switch {
	case err != nil:
		return nil, err
	case by.isZero() || by.Meta == MetaScore || by.IsConstant():
		return nil, p.fail(start.offset, "%s is no order of documents", start.text).expecting("a field")
	case p.tok.is("desc") || p.tok.is("asc"):
		return nil, p.fail(p.tok.offset, "first() has the least value of the order, and last() the greatest").expecting(")")
	}
	return &by, nil
}

// functionOf returns the function of expressions that a token names, or nil.
func functionOf(t token) *function {
	for _, f := range functions {
		if t.is(f.name) {
			return f
		}
	}
	return nil
}

// operatorAt returns the operator at a token, or nil. A number with a sign is one behind an operand: Total -1.
func operatorAt(t token) *function {
	switch {
	case t.kind == tokenSymbol:
		return operatorsOf[t.text]
	case t.kind == tokenNumber && strings.HasPrefix(t.text, "-"):
		return operatorsOf["-"]
	}
	return nil
}

// expressions parses expressions, with a parser.
type expressions struct {
	p *parser
	x *Expression // that is parsed, or nil

	reducing bool      // functions of groups are operands
	columns  *[]Column // that functions of groups become; nil if they are refused

	groups map[int]bool // for the parentheses from here on, by offset: whether they are operands; nil if not known
}

// atExpression reports whether tok begins an expression that does not begin with a field.
func (e *expressions) atExpression() bool {
	switch {
	case e.p.tok.isSymbol("("), e.p.tok.isSymbol("-"):
		return true
	case e.p.tok.kind == tokenWord && (e.p.tok.is("true") || e.p.tok.is("false") || e.p.tok.is("null")),
		e.p.tok.kind == tokenNumber, e.p.tok.kind == tokenText, e.p.tok.kind == tokenParameter:
		return operatorAt(e.p.peek()) != nil
	}
	return e.atAggregate() || places{e.p}.isOperand() || vectors{e.p}.isOperand() || e.p.atCall() && (functionOf(e.p.tok) != nil || e.p.tok.is("field"))
}

// atAggregate reports whether tok begins a function of groups that is an operand.
func (e *expressions) atAggregate() bool {
	return e.columns != nil && e.p.atCall() && e.p.function() != FuncNone
}

// operand = field | expression .
func (e *expressions) operand(expected string) (Field, error) {
	if e.atExpression() {
		return e.expression(nil)
	}
	f, err := e.p.field(expected)
	if err != nil || operatorAt(e.p.tok) == nil {
		return f, err
	}
	return e.expression(&f)
}

// expression parses an expression, of which the first operand may have been parsed.
func (e *expressions) expression(first *Field) (Field, error) {
	outer, x := e.x, &Expression{}
	e.x = x
	defer func() { e.x = outer }()
	start := e.p.tok
	root, err := e.sum(first)
	if err != nil {
		return Field{}, err
	}
	if root.function == nil && root.field >= 0 { // a field in parentheses
		return x.fields[root.field], nil
	}
	x.root = root
	root.forgetOffsets()
	w := writer{expression: x}
	w.write(root, orderAny)
	if x.text = w.String(); root.function == nil {
		x.text = "(" + x.text + ")" // a constant would be read as a field, or as a value
	}
	if len(x.text) > MaxText {
		return Field{}, e.p.fail(start.offset, "an expression of %d bytes is too long: %d are the most", len(x.text), MaxText)
	}
	return Field{Meta: MetaExpression, Expression: x}, nil
}

// forgetOffsets forgets where constants stand in the text: what is parsed does not depend on its spaces.
func (o *operation) forgetOffsets() {
	o.offset = 0
	for _, operand := range o.operands {
		operand.forgetOffsets()
	}
}

// sum = product { ( "+" | "-" ) product } .
func (e *expressions) sum(first *Field) (*operation, error) {
	left, err := e.product(first)
	for err == nil {
		f := operatorAt(e.p.tok)
		if f == nil || f.order() != orderSum {
			return left, nil
		}
		if e.p.tok.kind == tokenNumber { // Total -1
			e.p.tok.text, e.p.tok.offset = e.p.tok.text[1:], e.p.tok.offset+1
		} else {
			e.p.advance()
		}
		var right *operation
		if right, err = e.product(nil); err == nil {
			left, err = e.apply(f, left, right)
		}
	}
	return nil, err
}

// product = sign { ( "*" | "/" | "%" ) sign } .
func (e *expressions) product(first *Field) (*operation, error) {
	left, err := e.sign(first)
	for err == nil {
		f := operatorAt(e.p.tok)
		if f == nil || f.order() != orderProduct {
			return left, nil
		}
		e.p.advance()
		var right *operation
		if right, err = e.sign(nil); err == nil {
			left, err = e.apply(f, left, right)
		}
	}
	return nil, err
}

// sign = [ "-" ] primary .
func (e *expressions) sign(first *Field) (*operation, error) {
	if first != nil {
		return e.fieldOperand(*first)
	}
	if !e.p.tok.isSymbol("-") {
		return e.primaryOperand()
	}
	if err := e.p.enter(); err != nil {
		return nil, err
	}
	defer e.p.leave()
	e.p.advance()
	if e.p.tok.kind == tokenNumber && !strings.HasPrefix(e.p.tok.text, "-") {
		e.p.tok.text = "-" + e.p.tok.text
		return e.primaryOperand()
	}
	zero, err := e.newOperation(&operation{field: -1, constant: ValueOf([]byte("0"))})
	if err != nil {
		return nil, err
	}
	operand, err := e.sign(nil)
	if err != nil {
		return nil, err
	}
	return e.apply(operatorsOf["-"], zero, operand)
}

// newOperation counts an operation.
func (e *expressions) newOperation(o *operation) (*operation, error) {
	if e.x.size++; e.x.size > MaxOperands {
		return nil, e.p.fail(e.p.tok.offset, "an expression has too many operands: %d are the most", MaxOperands)
	}
	return o, nil
}

// apply applies an operator, which takes numbers, but + also texts.
func (e *expressions) apply(f *function, left, right *operation) (*operation, error) {
	for _, operand := range []*operation{left, right} {
		if operand.function != nil || operand.field >= 0 || operand.constant.kind == KindNumber || operand.constant.kind == KindNull || f.name == "+" && operand.constant.kind == KindText {
			continue
		}
		return nil, e.p.fail(operand.offset, "%s takes numbers, not %s", f.name, literal(operand.constant)).
			hinting("text in quotes is text in an expression; a member whose name needs quotes stands in field('First Name')")
	}
	return e.newOperation(&operation{function: f, operands: []*operation{left, right}})
}

// fieldOperand returns a field as an operand.
func (e *expressions) fieldOperand(f Field) (*operation, error) {
	x := e.x
	for i, known := range x.fields {
		if keyOf(known) == keyOf(f) {
			return e.newOperation(&operation{field: i})
		}
	}
	x.fields = append(x.fields, f)
	return e.newOperation(&operation{field: len(x.fields) - 1})
}

// primary = text | number | parameter | "true" | "false" | "null" | "(" argument ")" | call | field |
// "field" "(" field ")" .
func (e *expressions) primaryOperand() (*operation, error) {
	const expected = "a field, a value, a function or ( of an expression"
	next := e.p.peek()
	path := next.isSymbol(".") || next.isSymbol("[")
	start := e.p.tok.offset
	switch {
	case e.p.tok.isSymbol("("):
		if err := e.p.enter(); err != nil {
			return nil, err
		}
		defer e.p.leave()
		e.p.advance()
		o, err := e.argument()
		if err != nil {
			return nil, err
		}
		return o, e.p.expectSymbol(")", "or an operator behind an operand")
	case e.p.tok.kind == tokenText && !path, e.p.tok.kind == tokenNumber, e.p.tok.kind == tokenParameter,
		!path && (e.p.tok.is("true") || e.p.tok.is("false") || e.p.tok.is("null")):
		v, err := e.p.value(expected)
		if err != nil {
			return nil, err
		}
		return e.newOperation(&operation{field: -1, constant: v, offset: start})
	case places{e.p}.isOperand():
		return places{e.p}.operand()
	case vectors{e.p}.isOperand():
		return vectors{e.p}.operand()
	case e.p.atCall() && e.p.tok.is("field"):
		e.p.advance()
		e.p.advance()
		f, err := e.p.field("the path of a field")
		if err != nil {
			return nil, err
		}
		if err := e.p.expectSymbol(")", "behind the field"); err != nil {
			return nil, err
		}
		return e.fieldOperand(f)
	case e.p.atCall() && functionOf(e.p.tok) != nil:
		return e.callFunction(functionOf(e.p.tok))
	case e.atAggregate():
		return e.aggregate()
	case e.p.atCall() && e.p.function() != FuncNone:
		return nil, e.p.fail(e.p.tok.offset, "%s() is of groups, and no operand of an expression", e.p.tok.text).
			hinting(operandsOfGroups)
	}
	f, err := e.p.field(expected)
	if err != nil {
		return nil, err
	}
	return e.fieldOperand(f)
}

// argument = sum [ "as" ( "date" | "utc" ) ] .
func (e *expressions) argument() (*operation, error) {
	o, err := e.sum(nil)
	if err != nil || !e.p.tok.is("as") || o.function != nil || o.field < 0 {
		return o, err
	}
	f, err := e.p.asDate(e.x.fields[o.field])
	if err != nil {
		return nil, err
	}
	e.x.size--
	return e.fieldOperand(f)
}

// call = name "(" [ condition "," ] argument { "," argument } ")" .
func (e *expressions) callFunction(f *function) (*operation, error) {
	if err := e.p.enter(); err != nil {
		return nil, err
	}
	defer e.p.leave()
	start := e.p.tok
	e.p.advance()
	e.p.advance()
	o := &operation{function: f}
	if f.name == "if" {
		where, err := e.choice(start)
		if err != nil {
			return nil, err
		}
		o.condition = len(e.x.conditions)
		e.x.conditions = append(e.x.conditions, where)
	}
	for more := f.name == "if" || !e.p.tok.isSymbol(")"); more; more = e.p.acceptSymbol(",") {
		at := e.p.tok
		operand, err := e.argument()
		if err != nil {
			return nil, err
		}
		if f.units != nil && len(o.operands) == 0 {
			if err := e.unitOf(f, operand, at); err != nil {
				return nil, err
			}
		}
		if o.operands = append(o.operands, operand); len(o.operands) > f.most {
			return nil, e.p.fail(at.offset, "%s() takes %s", f.name, f.takes())
		}
	}
	if len(o.operands) < f.least && e.p.tok.isSymbol(")") {
		return nil, e.p.fail(e.p.tok.offset, "%s() takes %s", f.name, f.takes())
	}
	if err := e.p.expectSymbol(")", "or an operator behind an operand of "+f.name+"()"); err != nil {
		return nil, err
	}
	return e.newOperation(o)
}

// takes says how many operands a function takes.
func (f *function) takes() string {
	switch {
	case f.name == "if":
		return "a condition, a value for when it is true, and perhaps one for when it is not"
	case f.least == f.most && f.least == 1:
		return "one operand"
	case f.least == f.most:
		return fmt.Sprintf("%d operands", f.least)
	}
	return fmt.Sprintf("%d to %d operands", f.least, f.most)
}

// choice parses the condition of if.
func (e *expressions) choice(start token) (Expr, error) {
	at := e.p.tok
	where, err := e.p.condition()
	if err != nil {
		return nil, err
	}
	err = EachField(where, func(f Field) error {
		switch {
		case f.Func != FuncNone:
			return fmt.Errorf("%w: %s is of groups, and stands in a condition of if()", ErrCondition, f)
		case f.Meta == MetaID:
			return fmt.Errorf("%w: a condition of if() does not ask for id()", ErrCondition)
		}
		return nil
	})
	if err == nil {
		_, err = Compile(where)
	}
	if err != nil {
		return nil, e.p.fail(at.offset, "%v", err).because(err)
	}
	if !e.p.acceptSymbol(",") {
		return nil, e.p.unexpected(`"," behind the condition of ` + start.text + "()")
	}
	return where, nil
}

// unitOf refuses a unit that a function does not have.
func (e *expressions) unitOf(f *function, operand *operation, at token) error {
	given := ""
	if operand.function == nil && operand.field < 0 && operand.constant.kind == KindText {
		given = operand.constant.Text()
		for _, u := range f.units {
			if strings.EqualFold(u, given) {
				operand.constant = TextValue(u)
				return nil
			}
		}
	}
	return e.p.fail(at.offset, "%s() begins with a unit in quotes", f.name).expecting("one of " + strings.Join(f.units, ", ")).
		hinting(nearestWord(given, f.units))
}

// atParenthesesOfOperand reports whether the parenthesis at tok begins an operand, (A + B) * 2 > 5,
// and not a condition: an operator follows the parenthesis that closes it.
func (e *expressions) atParenthesesOfOperand() bool {
	if e.groups == nil {
		e.groups = operandGroups(e.p.lex, e.p.tok)
	}
	return e.groups[e.p.tok.offset]
}

// operandGroups finds the parentheses that are operands, by the offsets where they begin.
func operandGroups(lex lexer, tok token) map[int]bool {
	groups := make(map[int]bool)
	var open []int
	for ; tok.kind != tokenEnd && tok.kind != tokenBad; tok = lex.next() {
		switch {
		case tok.isSymbol("("):
			open = append(open, tok.offset)
		case tok.isSymbol(")") && len(open) > 0:
			ahead := lex
			next := ahead.next()
			_, compares := operators[next.text]
			groups[open[len(open)-1]] = operatorAt(next) != nil || compares && next.kind == tokenSymbol ||
				next.is("between") || next.is("in") || next.is("all")
			open = open[:len(open)-1]
		}
	}
	return groups
}
