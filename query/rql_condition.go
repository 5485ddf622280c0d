package query

import (
	"slices"
	"strconv"
	"strings"
)

// condition = and { "or" and } .
func (p *parser) condition() (Expr, error) {
	first, err := p.and()
	if err != nil || !p.tok.is("or") {
		return first, err
	}
	or := Or{first}
	for p.accept("or") {
		next, err := p.and()
		if err != nil {
			return nil, err
		}
		or = append(or, next)
	}
	return or, nil
}

// and = not { "and" not } .
func (p *parser) and() (Expr, error) {
	first, err := p.not()
	if err != nil || !p.tok.is("and") {
		return first, err
	}
	and := And{first}
	for p.accept("and") {
		next, err := p.not()
		if err != nil {
			return nil, err
		}
		and = append(and, next)
	}
	return and, nil
}

// not = { "not" } primary .
func (p *parser) not() (Expr, error) {
	if !p.tok.is("not") {
		return p.primary()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()

	p.advance()
	e, err := p.not()
	if err != nil {
		return nil, err
	}
	return Not{e}, nil
}

// primary = "(" condition ")" | "exact" "(" condition ")" | "true" | "false" |
// call | comparison .
func (p *parser) primary() (Expr, error) {
	switch {
	case p.tok.isSymbol("(") && !p.expr.atParenthesesOfOperand():
		return p.parentheses()
	case p.accept("true"):
		return And{}, nil
	case p.accept("false"):
		return Or{}, nil
	case places{p}.at() != "":
		if r, is := (places{p}).relation(); is {
			return places{p}.condition(r)
		}
		return p.comparison()
	case spaces{p}.at("vector") != "":
		if !(vectors{p}).isOperand() {
			return vectors{p}.condition()
		}
		return p.comparison()
	case !p.atCall() || isFieldCall(p.tok) || p.function() != FuncNone || functionOf(p.tok) != nil || p.tok.is("field"):
		return p.comparison()
	case p.tok.is("exact"):
		return p.exactly()
	case p.tok.is("moreLikeThis"):
		return likes{p}.condition()
	case p.tok.is("boost"):
		return scores{p}.boost()
	case p.tok.is("fuzzy"), p.tok.is("proximity"):
		return near{p}.condition()
	}
	return p.call()
}

// parentheses parses ( condition ).
func (p *parser) parentheses() (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()

	p.advance()
	e, err := p.condition()
	if err != nil {
		return nil, err
	}
	if !p.acceptSymbol(")") {
		return nil, p.hintText(p.unexpected(`"and", "or" or ")"`, "and", "or"))
	}
	return e, nil
}

// exactly parses exact( condition ), in which case matters.
func (p *parser) exactly() (Expr, error) {
	outside := p.exact
	p.exact = true
	p.advance()
	e, err := p.parentheses()
	p.exact = outside
	return e, err
}

// conditionCalls are the functions that are conditions.
var conditionCalls = []string{"exists", "startsWith", "endsWith", "contains", "regex", "search", "lucene", "elemMatch", "size", "type"}

// call = "exists" "(" field ")" | ( "startsWith" | "endsWith" | "contains" |
// "regex" ) "(" field "," value ")" | elementCall .
func (p *parser) call() (Expr, error) {
	name := ""
	for _, known := range conditionCalls {
		if p.tok.is(known) {
			name = known
		}
	}
	if name == "" {
		return nil, p.refuseCall(refusedConditions, expectedCondition)
	}
	p.advance()
	p.advance()

	start := p.tok
	var field Field
	var err error
	if name == "type" && p.atCall() && p.tok.is("load") { // whether there is such a document
		field, err = loading{p}.parse(true)
	} else {
		field, err = p.dateField("the field of " + name + "()")
	}
	if err != nil {
		return nil, err
	}
	switch name {
	case "elemMatch", "size", "type":
		if err := checkElement(field); err != nil {
			return nil, p.fail(start.offset, "%v", err).because(err)
		}
		return p.elementCall(name, field)
	}
	if name != "exists" && field.Date == DateInstant {
		return nil, p.fail(p.tok.offset, "%s is an instant, and has no text", field).hinting("leave out as date, or as utc")
	}
	if name == "exists" {
		return Exists{field}, p.expectSymbol(")", "behind the field")
	}
	if err := p.expectSymbol(",", "and a text behind the field"); err != nil {
		return nil, err
	}
	at := p.tok
	text, err := p.textValue("the text of " + name + "()")
	if err != nil {
		return nil, err
	}
	switch name {
	case "search":
		return p.searchCall(field, text, at)
	case "lucene":
		return near{p}.lucene(field, text, at)
	}
	if err := p.expectSymbol(")", "behind the text"); err != nil {
		return nil, err
	}
	return p.textCondition(name, field, text, at)
}

// elementCall parses the rest of "elemMatch" "(" path "," condition ")" |
// "size" "(" path ")" operator number | "type" "(" path ")" ( "=" | "!=" ) text .
func (p *parser) elementCall(name string, field Field) (Expr, error) {
	if name == "elemMatch" {
		return p.elemMatch(field)
	}
	if err := p.expectSymbol(")", "behind the field"); err != nil {
		return nil, err
	}
	operator := p.tok
	op, known := operators[operator.text]
	switch {
	case operator.kind != tokenSymbol || !known:
		return nil, p.unexpected("a comparison behind " + name + "()")
	case name == "type" && op != Equal:
		return nil, p.fail(operator.offset, "a type is not below or above another").expecting("= or !=")
	}
	p.advance()
	at := p.tok
	v, err := p.value("what " + name + "() is compared with")
	if err != nil {
		return nil, err
	}
	var e Expr
	if name == "type" {
		if !isText(v) {
			return nil, p.fail(at.offset, "unexpected %s, which is not text", at).expecting("the name of a type, such as 'array'")
		}
		if err := checkType(v.Text()); err != nil {
			return nil, p.fail(at.offset, "%v", err).because(err)
		}
		e = HasType{field, v.Text()}
	} else {
		n, err := strconv.Atoi(string(v.raw))
		if v.kind != KindNumber || err != nil || n < 0 {
			return nil, p.fail(at.offset, "unexpected %s", at).expecting("the number of elements, from 0")
		}
		e = HasSize{field, op, n}
	}
	if operator.text == "!=" || operator.text == "<>" {
		return Not{e}, nil
	}
	return e, nil
}

// elemMatch parses the rest of "elemMatch" "(" path "," condition ")".
func (p *parser) elemMatch(field Field) (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if !p.tok.isSymbol(",") {
		return nil, p.unexpected(`"," and a condition on one element`)
	}
	p.advance()

	// The alias means the document, of which nothing is asked here.
	at, alias, outer := p.tok, p.alias, p.outerAlias
	if alias != "" {
		p.alias, p.outerAlias = "", alias
	}
	inElement := p.inElement
	p.inElement = true
	where, err := p.condition()
	p.alias, p.outerAlias, p.inElement = alias, outer, inElement
	if err != nil {
		return nil, err
	}
	err = EachField(where, func(f Field) error {
		return checkWithin(field.Path, f)
	})
	if err != nil {
		return nil, p.fail(at.offset, "%v", err).because(err)
	}
	return ElemMatch{field, where}, p.expectSymbol(")", `, "and" or "or" behind the condition on an element`)
}

// textCondition returns the condition of a function.
func (p *parser) textCondition(name string, field Field, text string, at token) (Expr, error) {
	switch name {
	case "startsWith":
		return StartsWith{field, text, !p.exact}, nil
	case "endsWith":
		return EndsWith{field, text, !p.exact}, nil
	case "contains":
		return Contains{field, text, !p.exact}, nil
	}

	// Compile it without (?i) first, so that an error quotes the pattern as the
	// user wrote it.
	_, err := new(regexps).compile(text, false)
	if err == nil {
		_, err = p.regexps.compile(text, !p.exact)
	}
	if err != nil {
		return nil, p.fail(at.offset, "%v", err).because(err)
	}
	return Regexp{field, text, !p.exact}, nil
}

// expectedCondition is what may begin a condition.
const expectedCondition = `a field, a function, "not" or "("`

// operators are the comparison operators. "Not equal" becomes Not of Equal: see
// compare.
var operators = map[string]Op{"=": Equal, "==": Equal, "!=": Equal, "<>": Equal,
	"<": Less, "<=": LessOrEqual, ">": Greater, ">=": GreaterOrEqual}

// comparison = field ( operator ( value | other ) | "between" value "and" value |
// [ "all" ] "in" list ) .
func (p *parser) comparison() (Expr, error) {
	start := p.tok
	switch start.kind {
	case tokenNumber, tokenParameter:
		if !p.expr.atExpression() {
			return nil, p.fail(start.offset, "unexpected %s", start).expecting(expectedCondition).
				hinting("the field stands on the left of a comparison")
		}
	}
	what, err := p.term(expectedCondition, refusedConditions)
	if err == nil && what.fn == FuncNone && p.tok.is("as") {
		what.field, err = p.asDate(what.field)
	}
	if err != nil {
		return nil, err
	}
	field := what.field
	if field.Func = what.fn; field.isZero() {
		return nil, p.wholeDocument(start.offset)
	}

	operator := p.tok
	op, isOperator := operators[operator.text]
	switch {
	case operator.kind == tokenSymbol && isOperator:
		p.advance()
		return p.compare(field, operator, op)
	case p.accept("between"):
		return p.between(field)
	case p.accept("in"):
		return p.in(field, false)
	case operator.is("all") && p.peek().is("in"):
		p.advance()
		p.advance()
		return p.in(field, true)
	}
	return nil, p.unexpected("=, !=, <, <=, >, >=, between, in or all in", "between", "in", "all")
}

// compare parses the value of a comparison.
func (p *parser) compare(field Field, operator token, op Op) (Expr, error) {
	at := p.tok
	var value Value
	var err error
	if p.tok.kind == tokenWord && !reserved(p.tok.text) || p.expr.atExpression() || p.atCall() && p.tok.is("load") {
		other, err := p.other()
		if err != nil {
			return nil, err
		}
		if !other.IsConstant() {
			return p.compareFields(field, at, other, operator, op)
		}
		value = other.Expression.root.constant
	} else if value, err = p.value("a value or a field to compare with"); err != nil {
		return nil, err
	}
	values := []Value{value}
	if err := p.dates(&field, at, values); err != nil {
		return nil, err
	}
	value = values[0]
	e := Compare{Field: field, Op: op, Value: value, Fold: p.folds(value)}
	if operator.text == "!=" || operator.text == "<>" {
		return Not{e}, nil
	}
	return e, nil
}

// other = term [ "as" ( "date" | "utc" ) ] | "field" "(" field ")" [ "as" ( "date" | "utc" ) ] .
func (p *parser) other() (Field, error) {
	const expected = "a value or a field to compare with"
	start := p.tok
	what := term{offset: start.offset}
	var err error
	if p.tok.kind == tokenWord && isNoValue(p.tok.text) {
		return Field{}, p.fail(start.offset, "JSON has no %s", start.text).hinting("a missing field is not exists(); a field of this name stands in field(" + start.text + ")")
	} else if what, err = p.term(expected, refusedConditions); err == nil && what.name != "" {
		p.bare = start
	}
	if err == nil && what.fn == FuncNone && p.tok.is("as") {
		what.field, err = p.asDate(what.field)
	}
	if err != nil {
		return Field{}, err
	}
	if what.field.Func = what.fn; what.field.isZero() {
		return Field{}, p.wholeDocument(start.offset)
	}
	return what.field, nil
}

// noValues are words of JavaScript for what JSON does not have. They are no fields to compare
// with, unless in field(): who writes one means a value.
var noValues = []string{"NaN", "Infinity", "undefined"}

func isNoValue(word string) bool {
	return slices.ContainsFunc(noValues, func(w string) bool { return strings.EqualFold(w, word) })
}

// compareFields returns the comparison of two fields, of which the second one begins at a token.
func (p *parser) compareFields(field Field, at token, other Field, operator token, op Op) (Expr, error) {
	if err := DatedFields(&field, &other); err != nil {
		return nil, p.fail(at.offset, "%v", err).because(err)
	}
	e := CompareFields{Field: field, Op: op, Other: other, Fold: !p.exact}
	if operator.text == "!=" || operator.text == "<>" {
		return Not{e}, nil
	}
	return e, nil
}

// hintText adds to an error behind a name without quotes that text stands in quotes:
// where Name = Ada Lovelace.
func (p *parser) hintText(err error) error {
	syntax, ok := err.(*SyntaxError)
	if ok && syntax.Hint == "" && p.bare.end > 0 && syntax.Offset >= p.bare.end && strings.TrimSpace(p.lex.text[p.bare.end:syntax.Offset]) == "" {
		syntax.Hint = "text stands in quotes: " + p.bare.text + " is a field"
	}
	return err
}

// dates makes instants of values that are compared with a field that is read as a
// date. A time among them makes it one.
func (p *parser) dates(f *Field, at token, values []Value) error {
	err := Dated(f, values)
	if err == nil {
		return nil
	}
	return p.fail(at.offset, "%v", err).because(err)
}

// between = value "and" value .
func (p *parser) between(field Field) (Expr, error) {
	first := p.tok
	lo, err := p.value("the least value behind between")
	if err != nil {
		return nil, err
	}
	if !p.accept("and") {
		return nil, p.unexpected(`"and" and the greatest value behind between`, "and")
	}
	at := p.tok
	hi, err := p.value("the greatest value behind between")
	if err != nil {
		return nil, err
	}
	values := []Value{lo, hi}
	if err := p.dates(&field, first, values); err != nil {
		return nil, err
	}
	lo, hi = values[0], values[1]
	if class(lo.Kind()) != class(hi.Kind()) {
		return nil, p.fail(at.offset, "nothing is between %s and %s", literal(lo), literal(hi)).expecting("two values of the same kind")
	}
	return Between{Field: field, Lo: lo, Hi: hi, Fold: p.folds(lo)}, nil
}

// in = "(" [ value { "," value } ] ")" . A parameter that is a list counts as all
// its values.
func (p *parser) in(field Field, all bool) (Expr, error) {
	if err := p.expectSymbol("(", "and values behind in"); err != nil {
		return nil, err
	}
	first := p.tok
	e := In{Field: field, All: all}
	for more := !p.tok.isSymbol(")"); more; more = p.acceptSymbol(",") {
		at := p.tok
		values, err := p.values("a value behind in")
		if err != nil {
			return nil, err
		}
		if e.Values = append(e.Values, values...); len(e.Values) > MaxInValues {
			return nil, p.fail(at.offset, "too many values behind in: %d are the most", MaxInValues)
		}
	}
	if err := p.dates(&e.Field, first, e.Values); err != nil {
		return nil, err
	}
	e.Fold = p.folds(e.Values...)
	return e, p.expectSymbol(")", `or "," behind a value`)
}

// folds reports whether case does not matter in a comparison with values: it does
// in exact(), and nothing but text has case.
func (p *parser) folds(values ...Value) bool {
	if p.exact {
		return false
	}
	for _, v := range values {
		if isText(v) {
			return true
		}
	}
	return false
}
