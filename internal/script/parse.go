package script

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Program is a parsed script.
type Program struct {
	source     string
	statements []node
	vars       []string // declared by var outside functions
}

// node is a statement or an expression. eval of an expression returns its value, that of a
// statement a *jump or nil.
type node interface {
	eval(r *run, s *scope) (value, error)
}

type parser struct {
	tokens  []token
	i       int
	nesting int
	loops   int // enclosing loops in the function

	vars     []string // that var has declared in the function
	closures int      // functions so far
}

// Parse parses a script. Its error is an *Error.
func Parse(source string) (*Program, error) {
	p, err := parse(source)
	return p, locate(err, source)
}

func parse(source string) (*Program, error) {
	if len(source) > MaxScriptBytes {
		return nil, &Error{Message: fmt.Sprintf("a script has at most %d bytes, not %d", MaxScriptBytes, len(source))}
	}
	tokens, err := lex(source, 0)
	if err != nil {
		return nil, err
	}
	p := &parser{tokens: tokens}
	out := &Program{source: source}
	for p.tok().kind != endOfScript {
		n, err := p.statement()
		if err != nil {
			return nil, err
		}
		out.statements = append(out.statements, n)
	}
	out.vars = p.vars
	return out, nil
}

func (p *parser) tok() token { return p.tokens[p.i] }

func (p *parser) peek(n int) token { return p.tokens[min(p.i+n, len(p.tokens)-1)] }

func (p *parser) is(text string) bool {
	t := p.tok()
	return (t.kind == symbol || t.kind == word) && t.text == text
}

func (p *parser) accept(text string) bool {
	if !p.is(text) {
		return false
	}
	p.i++
	return true
}

func (p *parser) expect(text string) error {
	if p.accept(text) {
		return nil
	}
	return p.unexpected(fmt.Sprintf("expected %q", text))
}

func (p *parser) unexpected(what string) error {
	t := p.tok()
	if t.kind == endOfScript {
		return &Error{place: t.place, Message: "the script ends here: " + what}
	}
	return &Error{place: t.place, Message: fmt.Sprintf("unexpected %q: %s", t.text, what)}
}

func (p *parser) missing(what string) error {
	return &Error{place: p.tok().place, Message: what + " is not there", Missing: true}
}

func (p *parser) nest() error {
	if p.nesting++; p.nesting > maxNesting {
		return &Error{place: p.tok().place, Message: fmt.Sprintf("nested too deep: %d levels are the most", maxNesting)}
	}
	return nil
}

// endStatement reads a semicolon, or checks that the statement may end without one.
func (p *parser) endStatement() error {
	if p.accept(";") || p.is("}") || p.tok().kind == endOfScript || p.tok().newLine {
		return nil
	}
	return p.unexpected("a statement ends with a semicolon or a new line")
}

var missingWords = map[string]string{
	"class": "a class", "switch": "switch", "try": "try", "with": "with", "import": "import", "export": "export", "async": "async", "await": "await",
	"yield": "a generator", "debugger": "debugger", "super": "super", "new": "new", "void": "void", "instanceof": "instanceof",
}

var reserved = []string{"this", "null", "true", "false", "undefined", "var", "let", "const", "if", "else", "for", "while", "do", "break", "continue", "return", "function", "typeof", "delete", "in", "of", "throw"}

func (p *parser) statement() (node, error) {
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer func() { p.nesting-- }()
	t := p.tok()
	if t.kind == word {
		if what, found := missingWords[t.text]; found && t.text != "new" && t.text != "void" {
			return nil, p.missing(what)
		}
		switch t.text {
		case "var", "let", "const":
			p.i++
			n, err := p.declaration(t)
			if err != nil {
				return nil, err
			}
			return n, p.endStatement()
		case "if":
			return p.ifStatement()
		case "for":
			return p.forStatement()
		case "while":
			p.i++
			condition, err := p.parenthesized()
			if err != nil {
				return nil, err
			}
			body, err := p.loopBody()
			return &loop{place: t.place, condition: condition, body: body}, err
		case "do":
			p.i++
			body, err := p.loopBody()
			if err == nil {
				err = p.expect("while")
			}
			if err != nil {
				return nil, err
			}
			condition, err := p.parenthesized()
			p.accept(";")
			return &loop{place: t.place, condition: condition, body: body, after: true}, err
		case "break", "continue":
			p.i++
			if p.loops == 0 {
				return nil, &Error{place: t.place, Message: t.text + " stands outside a loop"}
			}
			return &jumpStatement{kind: t.text}, p.endStatement()
		case "return", "throw":
			p.i++
			j := &jumpStatement{kind: t.text, place: t.place}
			if !p.is(";") && !p.is("}") && p.tok().kind != endOfScript && !p.tok().newLine {
				var err error
				if j.value, err = p.expression(); err != nil {
					return nil, err
				}
			}
			return j, p.endStatement()
		case "function":
			if p.peek(1).kind == word {
				p.i++
				name := p.tok().text
				p.i++
				f, err := p.functionRest(t)
				return &declare{place: t.place, name: name, value: f, kind: "function"}, err
			}
		}
	}
	if p.is("{") {
		return p.block()
	}
	if p.accept(";") {
		return &block{}, nil
	}
	n, err := p.expression()
	if err != nil {
		return nil, err
	}
	return &expressionStatement{n}, p.endStatement()
}

func (p *parser) block() (*block, error) {
	if err := p.expect("{"); err != nil {
		return nil, err
	}
	b := &block{}
	for !p.is("}") {
		if p.tok().kind == endOfScript {
			return nil, p.unexpected(`expected "}"`)
		}
		n, err := p.statement()
		if err != nil {
			return nil, err
		}
		b.statements = append(b.statements, n)
	}
	p.i++
	return b, nil
}

func (p *parser) name() (string, error) {
	t := p.tok()
	if t.kind != word || slices.Contains(reserved, t.text) || missingWords[t.text] != "" {
		return "", p.unexpected("expected a name")
	}
	p.i++
	return t.text, nil
}

// declaration parses what follows var, let or const.
func (p *parser) declaration(at token) (node, error) {
	b := &declarations{}
	for {
		if p.is("{") || p.is("[") {
			return nil, p.missing("a pattern in a declaration")
		}
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		d := &declare{place: at.place, name: name, kind: at.text}
		if at.text == "var" {
			p.vars = append(p.vars, name)
		}
		if p.accept("=") {
			if d.value, err = p.assignment(); err != nil {
				return nil, err
			}
		}
		b.list = append(b.list, d)
		if !p.accept(",") {
			return b, nil
		}
	}
}

func (p *parser) parenthesized() (node, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	n, err := p.expression()
	if err != nil {
		return nil, err
	}
	return n, p.expect(")")
}

func (p *parser) ifStatement() (node, error) {
	p.i++
	condition, err := p.parenthesized()
	if err != nil {
		return nil, err
	}
	n := &ifNode{condition: condition}
	if n.yes, err = p.statement(); err != nil {
		return nil, err
	}
	if p.accept("else") {
		n.no, err = p.statement()
	}
	return n, err
}

func (p *parser) loopBody() (node, error) {
	p.loops++
	defer func() { p.loops-- }()
	return p.statement()
}

func (p *parser) forStatement() (node, error) {
	at := p.tok()
	p.i++
	if err := p.expect("("); err != nil {
		return nil, err
	}
	l := &loop{place: at.place}
	closures := p.closures
	var err error
	if t := p.tok(); t.kind == word && (t.text == "var" || t.text == "let" || t.text == "const") {
		if p.peek(2).kind == word && (p.peek(2).text == "of" || p.peek(2).text == "in") {
			p.i++
			e := &each{place: at.place, kind: t.text}
			if e.name, err = p.name(); err != nil {
				return nil, err
			}
			if e.kind == "var" {
				p.vars = append(p.vars, e.name)
			}
			e.keys = p.tok().text == "in"
			p.i++
			if e.over, err = p.expression(); err != nil {
				return nil, err
			}
			if err := p.expect(")"); err != nil {
				return nil, err
			}
			e.body, err = p.loopBody()
			return e, err
		}
		p.i++
		if l.init, err = p.declaration(t); err != nil {
			return nil, err
		}
	} else if !p.is(";") {
		n, err := p.expression()
		if err != nil {
			return nil, err
		}
		l.init = &expressionStatement{n}
	}
	if err := p.expect(";"); err != nil {
		return nil, err
	}
	if !p.is(";") {
		if l.condition, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if err := p.expect(";"); err != nil {
		return nil, err
	}
	if !p.is(")") {
		if l.step, err = p.expression(); err != nil {
			return nil, err
		}
	}
	if err := p.expect(")"); err != nil {
		return nil, err
	}
	l.body, err = p.loopBody()
	d, is := l.init.(*declarations)
	l.each = is && d.list[0].(*declare).kind == "let" && p.closures > closures
	return l, err
}

// expression parses assignments that are separated by commas.
func (p *parser) expression() (node, error) {
	n, err := p.assignment()
	if err == nil && p.is(",") {
		return nil, p.missing("the comma operator")
	}
	return n, err
}

var assignments = map[string]string{"=": "", "+=": "+", "-=": "-", "*=": "*", "/=": "/", "%=": "%", "&&=": "&&", "||=": "||", "??=": "??"}

func (p *parser) assignment() (node, error) {
	if err := p.nest(); err != nil {
		return nil, err
	}
	defer func() { p.nesting-- }()
	if f, err := p.arrow(); f != nil || err != nil {
		return f, err
	}
	at := p.tok()
	n, err := p.conditional()
	if err != nil {
		return nil, err
	}
	t := p.tok()
	operator, found := assignments[t.text]
	if t.kind != symbol || !found {
		if t.kind == symbol && slices.Contains([]string{"**=", "<<", ">>", ">>>", "&", "|", "^"}, t.text) {
			return nil, p.missing("the operator " + t.text)
		}
		return n, nil
	}
	if !assignable(n) {
		return nil, &Error{place: at.place, Message: "the left side of " + t.text + " cannot be assigned to"}
	}
	p.i++
	v, err := p.assignment()
	return &assign{place: t.place, operator: operator, target: n, value: v}, err
}

func assignable(n node) bool {
	switch n := n.(type) {
	case *variable:
		return true
	case *member:
		return !n.optional
	}
	return false
}

// arrow parses an arrow function, if there is one.
func (p *parser) arrow() (node, error) {
	at := p.tok()
	var parameters []string
	var defaults map[string]node
	if at.kind == word && p.peek(1).kind == symbol && p.peek(1).text == "=>" {
		name, err := p.name()
		if err != nil {
			return nil, err
		}
		parameters = []string{name}
	} else if p.is("(") {
		depth, i := 0, p.i
		for ; i < len(p.tokens); i++ {
			if t := p.tokens[i]; t.kind == symbol {
				switch t.text {
				case "(", "[", "{":
					depth++
				case ")", "]", "}":
					depth--
				}
				if depth == 0 {
					break
				}
			}
		}
		if i+1 >= len(p.tokens) || p.tokens[i+1].kind != symbol || p.tokens[i+1].text != "=>" {
			return nil, nil
		}
		var err error
		if parameters, defaults, err = p.parameters(); err != nil {
			return nil, err
		}
	} else {
		return nil, nil
	}
	if err := p.expect("=>"); err != nil {
		return nil, err
	}
	if p.is("{") {
		body, err := p.functionBody(at, parameters, defaults)
		if f, is := body.(*functionNode); is {
			f.arrow = true
		}
		return body, err
	}
	loops := p.loops
	p.loops = 0
	p.closures++
	defer func() { p.loops = loops }()
	body, err := p.assignment()
	return &functionNode{place: at.place, parameters: parameters, defaults: defaults, body: body, arrow: true}, err
}

func (p *parser) parameters() (names []string, defaults map[string]node, err error) {
	if err := p.expect("("); err != nil {
		return nil, nil, err
	}
	for !p.is(")") {
		if p.is("{") || p.is("[") || p.is("...") {
			return nil, nil, p.missing("a pattern in parameters")
		}
		name, err := p.name()
		if err != nil {
			return nil, nil, err
		}
		if p.accept("=") {
			v, err := p.assignment()
			if err != nil {
				return nil, nil, err
			}
			if defaults == nil {
				defaults = make(map[string]node)
			}
			defaults[name] = v
		}
		if names = append(names, name); !p.accept(",") {
			break
		}
	}
	return names, defaults, p.expect(")")
}

// functionRest parses a function after its name.
func (p *parser) functionRest(at token) (node, error) {
	parameters, defaults, err := p.parameters()
	if err != nil {
		return nil, err
	}
	return p.functionBody(at, parameters, defaults)
}

func (p *parser) functionBody(at token, parameters []string, defaults map[string]node) (node, error) {
	loops, vars := p.loops, p.vars
	p.loops, p.vars = 0, nil
	p.closures++
	defer func() { p.loops, p.vars = loops, vars }()
	body, err := p.block()
	if err != nil {
		return nil, err
	}
	return &functionNode{place: at.place, parameters: parameters, defaults: defaults, body: body, vars: p.vars}, nil
}

func (p *parser) conditional() (node, error) {
	condition, err := p.binary(0)
	if err != nil || !p.accept("?") {
		return condition, err
	}
	n := &ifNode{condition: condition, expression: true}
	if n.yes, err = p.assignment(); err != nil {
		return nil, err
	}
	if err := p.expect(":"); err != nil {
		return nil, err
	}
	n.no, err = p.assignment()
	return n, err
}

// precedence lists the operators, the weakest first.
var precedence = [][]string{{"??"}, {"||"}, {"&&"}, {"==", "!=", "===", "!=="}, {"<", ">", "<=", ">=", "in"}, {"+", "-"}, {"*", "/", "%"}}

func (p *parser) binary(level int) (node, error) {
	if level == len(precedence) {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	if err != nil {
		return nil, err
	}
	for {
		t := p.tok()
		if t.kind == word && t.text == "instanceof" {
			return nil, p.missing("instanceof")
		}
		if t.kind != symbol && !(t.kind == word && t.text == "in") || !slices.Contains(precedence[level], t.text) {
			return left, nil
		}
		if err := p.nest(); err != nil { // each operator makes the tree one level deeper
			return nil, err
		}
		defer func() { p.nesting-- }()
		p.i++
		right, err := p.binary(level + 1)
		if err != nil {
			return nil, err
		}
		left = &binary{place: t.place, operator: t.text, left: left, right: right}
	}
}

func (p *parser) unary() (node, error) {
	t := p.tok()
	if t.kind == symbol && slices.Contains([]string{"!", "-", "+", "++", "--"}, t.text) || t.kind == word && (t.text == "typeof" || t.text == "delete") {
		if err := p.nest(); err != nil {
			return nil, err
		}
		defer func() { p.nesting-- }()
		p.i++
		n, err := p.unary()
		if err != nil {
			return nil, err
		}
		switch t.text {
		case "++", "--":
			if !assignable(n) {
				return nil, &Error{place: t.place, Message: t.text + " needs a member or a variable"}
			}
			return &increment{place: t.place, by: t.text, target: n, before: true}, nil
		case "delete":
			m, is := n.(*member)
			if !is || m.optional {
				return nil, &Error{place: t.place, Message: "delete needs a member"}
			}
			return &deleteNode{m}, nil
		}
		return &unary{place: t.place, operator: t.text, operand: n}, nil
	}
	if t.kind == word && (t.text == "new" || t.text == "void") || t.kind == symbol && t.text == "~" {
		if t.text != "new" {
			return nil, p.missing("the operator " + t.text)
		}
		if p.peek(1).text != "Date" {
			return nil, p.missing("new " + p.peek(1).text)
		}
	}
	n, err := p.postfix()
	if err != nil {
		return nil, err
	}
	if t := p.tok(); t.kind == symbol && (t.text == "++" || t.text == "--") && !t.newLine {
		if !assignable(n) {
			return nil, &Error{place: t.place, Message: t.text + " needs a member or a variable"}
		}
		p.i++
		return &increment{place: t.place, by: t.text, target: n}, nil
	}
	if p.is("**") {
		return nil, p.missing("the operator **")
	}
	return n, nil
}

// postfix parses members and calls.
func (p *parser) postfix() (node, error) {
	n, err := p.primary()
	if err != nil {
		return nil, err
	}
	nested, optional := 0, false
	defer func() { p.nesting -= nested }()
	end := func() (node, error) {
		if optional {
			return &chain{n}, nil
		}
		return n, nil
	}
	for {
		t := p.tok()
		if t.kind != symbol {
			return end()
		}
		optional = optional || t.text == "?."
		if t.text == "." || t.text == "?." || t.text == "[" || t.text == "(" {
			nested++
			if err := p.nest(); err != nil {
				return nil, err
			}
		}
		switch t.text {
		case ".", "?.":
			p.i++
			if t.text == "?." && (p.is("[") || p.is("(")) {
				if n, err = p.bracket(n, true); err != nil {
					return nil, err
				}
				continue
			}
			name := p.tok()
			if name.kind != word {
				return nil, p.unexpected("expected the name of a member")
			}
			p.i++
			n = &member{place: t.place, object: n, name: &literal{name.text}, optional: t.text == "?."}
		case "[", "(":
			if n, err = p.bracket(n, false); err != nil {
				return nil, err
			}
		default:
			return end()
		}
	}
}

// bracket parses a member in brackets, or the arguments of a call.
func (p *parser) bracket(of node, optional bool) (node, error) {
	t := p.tok()
	p.i++
	if t.text == "[" {
		name, err := p.expression()
		if err != nil {
			return nil, err
		}
		return &member{place: t.place, object: of, name: name, optional: optional}, p.expect("]")
	}
	c := &call{place: t.place, function: of, optional: optional}
	var err error
	c.arguments, c.spread, err = p.arguments(")")
	return c, err
}

// arguments parses values that are separated by commas, up to the bracket that closes them.
func (p *parser) arguments(closing string) (values []node, spread []bool, err error) {
	for !p.is(closing) {
		spread = append(spread, p.accept("..."))
		v, err := p.assignment()
		if err != nil {
			return nil, nil, err
		}
		if values = append(values, v); !p.accept(",") {
			break
		}
	}
	return values, spread, p.expect(closing)
}

func (p *parser) primary() (node, error) {
	t := p.tok()
	switch t.kind {
	case numberToken:
		p.i++
		if json.Valid([]byte(t.text)) {
			return &literal{json.Number(t.text)}, nil
		}
		f, err := strconv.ParseFloat(t.text, 64)
		if err != nil || len(t.text) > 1 && t.text[0] == '0' && t.text[1] != '.' {
			return nil, &Error{place: t.place, Message: fmt.Sprintf("%s is no number", t.text)}
		}
		return &literal{f}, nil
	case textToken:
		p.i++
		return &literal{t.text}, nil
	case template:
		p.i++
		return p.template(t)
	case word:
		if t.text == "new" && p.peek(1).text == "Date" {
			return p.date()
		}
		if what, found := missingWords[t.text]; found {
			return nil, p.missing(what)
		}
		switch t.text {
		case "this":
			p.i++
			return &variable{place: t.place, name: "this"}, nil
		case "null":
			p.i++
			return &literal{nil}, nil
		case "undefined":
			p.i++
			return &literal{undefined}, nil
		case "true", "false":
			p.i++
			return &literal{t.text == "true"}, nil
		case "function":
			p.i++
			if p.tok().kind == word {
				p.i++
			}
			return p.functionRest(t)
		}
		name, err := p.name()
		return &variable{place: t.place, name: name}, err
	case symbol:
		switch t.text {
		case "(":
			p.i++
			n, err := p.expression()
			if err != nil {
				return nil, err
			}
			return n, p.expect(")")
		case "[":
			return p.arrayLiteral()
		case "{":
			return p.objectLiteral()
		case "/":
			return nil, p.missing("a regular expression")
		}
	}
	return nil, p.unexpected("expected a value")
}

func (p *parser) arrayLiteral() (node, error) {
	at := p.tok()
	p.i++
	a := &arrayNode{place: at.place}
	var err error
	a.elements, a.spread, err = p.arguments("]")
	return a, err
}

func (p *parser) objectLiteral() (node, error) {
	at := p.tok()
	p.i++
	o := &objectNode{place: at.place}
	for !p.is("}") {
		m := objectMember{}
		var err error
		t := p.tok()
		switch {
		case p.accept("..."):
			m.spread = true
			m.value, err = p.assignment()
		case p.accept("["):
			if m.name, err = p.expression(); err == nil {
				err = p.expect("]")
			}
		case t.kind == word || t.kind == textToken || t.kind == numberToken:
			p.i++
			m.name = &literal{t.text}
		default:
			return nil, p.unexpected("expected the name of a member")
		}
		if err != nil {
			return nil, err
		}
		switch {
		case m.spread:
		case p.accept(":"):
			m.value, err = p.assignment()
		case p.is("("):
			return nil, p.missing("a method in an object")
		case t.kind == word && !slices.Contains(reserved, t.text):
			m.value = &variable{place: t.place, name: t.text}
		default:
			return nil, p.unexpected(`expected ":"`)
		}
		if err != nil {
			return nil, err
		}
		if o.members = append(o.members, m); !p.accept(",") {
			break
		}
	}
	return o, p.expect("}")
}

// template parses a template literal.
func (p *parser) template(t token) (node, error) {
	var parts []node
	var text []byte
	fail := func(format string, args ...any) error {
		return &Error{place: t.place, Message: fmt.Sprintf(format, args...)}
	}
	for i := 0; i < len(t.text); {
		switch {
		case t.text[i] == '\\':
			var b strings.Builder
			n, err := escape(&b, t.text[i:], fail)
			if err != nil {
				return nil, err
			}
			text = append(text, b.String()...)
			i += n
		case t.text[i] == '$' && i+1 < len(t.text) && t.text[i+1] == '{':
			j := holeEnd(t.text, i)
			if j < 0 {
				return nil, fail("${ has no end")
			}
			if err := p.nest(); err != nil {
				return nil, err
			}
			tokens, err := lex(t.text[i+2:j], t.place+i+2)
			if err != nil {
				return nil, err
			}
			inner := &parser{tokens: tokens, nesting: p.nesting}
			n, err := inner.expression()
			if err == nil && inner.tok().kind != endOfScript {
				err = inner.unexpected("expected }")
			}
			if err != nil {
				return nil, err
			}
			p.nesting--
			parts = append(parts, &literal{string(text)}, n)
			text = nil
			i = j + 1
		default:
			text = append(text, t.text[i])
			i++
		}
	}
	return &templateNode{place: t.place, parts: append(parts, &literal{string(text)})}, nil
}
