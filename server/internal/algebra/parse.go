package algebra

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// kindOfNode is the kind of a node.
type kindOfNode int

const (
	nodeNumber   kindOfNode = iota // text has it, kind of C# in suffix
	nodeText                       // text has its value
	nodeName                       // text
	nodeMember                     // text of kids[0]
	nodeIndex                      // kids[0] [ kids[1] ]
	nodeCall                       // kids[0] of the others
	nodeUnary                      // text is the operator
	nodeBinary                     // text is the operator
	nodeChoice                     // kids[0] ? kids[1] : kids[2]
	nodeLambda                     // of names; the body is kids[0], or statements
	nodeObject                     // names and kids
	nodeArray                      // kids
	nodeCast                       // to the type text
	nodeTemplate                   // kids are joined
	nodeNew                        // new text(kids)
	nodeQuery                      // clauses
	nodeSpread                     // ... kids[0]
)

// node is a part of an expression.
type node struct {
	kind   kindOfNode
	at     int
	text   string
	suffix string
	kids   []*node
	names  []string
	body   []*statement // of a lambda with a block; nil for one with an expression
	block  bool
	query  []*clause
}

// statement is a statement of JavaScript.
type statement struct {
	kind string // "declare", "return", "if", "each", "call", "block", "continue"
	at   int
	name string // of a variable
	of   *node  // what is declared, returned, asked, gone through, or called; nil for none
	yes  []*statement
	no   []*statement
}

// clause is a clause of a query in C#.
type clause struct {
	kind string // "from", "where", "let", "select", "group"
	at   int
	name string // of the variable of from and let, and behind into
	of   *node
	by   *node // of group
}

// parser parses a text in one of the languages.
type parser struct {
	text    string
	script  bool
	part    string
	tokens  []token
	i       int
	nesting int
}

// fail returns the error at an offset.
func (p *parser) fail(at int, format string, args ...any) error {
	at = min(at, len(p.text))
	before := p.text[:at]
	line := 1 + strings.Count(before, "\n")
	column := 1 + utf8.RuneCountInString(before[strings.LastIndexByte(before, '\n')+1:])
	return &Error{Part: p.part, Line: line, Column: column, Reason: fmt.Sprintf(format, args...), Text: p.text}
}

// wrong returns the error for a text that is not of its language.
func (p *parser) wrong(at int, format string, args ...any) error {
	err := p.fail(at, format, args...).(*Error)
	err.Syntax = true
	return err
}

// newParser returns a parser of a text.
func newParser(part, text string, script bool) (*parser, error) {
	p := &parser{text: text, script: script, part: part}
	if len(text) > MaxTextBytes {
		return nil, p.fail(0, "a text of %d bytes is too long: %d are the most", len(text), MaxTextBytes)
	}
	l := lexer{text: text, end: len(text), script: script, fail: p.wrong}
	var err error
	p.tokens, err = l.tokens()
	return p, err
}

func (p *parser) tok() token { return p.tokens[p.i] }

func (p *parser) peek(n int) token { return p.tokens[min(p.i+n, len(p.tokens)-1)] }

func (p *parser) accept(text string) bool {
	if !p.tok().is(text) {
		return false
	}
	p.i++
	return true
}

func (p *parser) expect(text, where string) error {
	if p.accept(text) {
		return nil
	}
	return p.unexpected(fmt.Sprintf("%q %s", text, where))
}

func (p *parser) unexpected(expected string) error {
	t := p.tok()
	what := fmt.Sprintf("%.60q", t.text)
	switch t.kind {
	case tokenEnd:
		what = "the end"
	case tokenTemplate:
		what = "a template"
	}
	return p.wrong(t.at, "unexpected %s, expected %s", what, expected)
}

// enter counts a level of nesting. Each enter has its leave.
func (p *parser) enter() error {
	if p.nesting++; p.nesting > maxNesting {
		return p.fail(p.tok().at, "nested too deep: %d levels are the most", maxNesting)
	}
	return nil
}

func (p *parser) leave() { p.nesting-- }

// all parses a whole text: an expression, behind which may be semicolons.
func (p *parser) all() (*node, error) {
	n, err := p.expression()
	if err != nil {
		return nil, err
	}
	for p.accept(";") {
	}
	if p.tok().kind != tokenEnd {
		return nil, p.unexpected("an operator or the end")
	}
	return n, nil
}

// name parses a name that is no keyword.
func (p *parser) name(of string) (string, error) {
	t := p.tok()
	if t.kind != tokenWord || slices.Contains(keywords, t.text) {
		return "", p.unexpected(of)
	}
	p.i++
	return t.text, nil
}

// keywords are no names.
var keywords = []string{"null", "true", "false", "undefined", "this", "new", "function", "return", "if", "else", "for", "while", "do", "switch", "case", "var", "let", "const", "in", "typeof", "void", "delete", "class", "try", "throw", "select", "where", "from", "by", "into", "await", "async", "yield"}

// expression = lambda | choice .
func (p *parser) expression() (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if n, err := p.lambda(); n != nil || err != nil {
		return n, err
	}
	if !p.script && p.tok().is("from") && p.peek(1).kind == tokenWord {
		return p.query()
	}
	n, err := p.binary(0)
	if err != nil {
		return nil, err
	}
	at := p.tok()
	if !p.accept("?") {
		return n, p.noAssignment()
	}
	yes, err := p.expression()
	if err != nil {
		return nil, err
	}
	if err := p.expect(":", "of a choice"); err != nil {
		return nil, err
	}
	no, err := p.expression()
	return &node{kind: nodeChoice, at: at.at, kids: []*node{n, yes, no}}, err
}

// refusedOperators are operators that RQL does not have.
var refusedOperators = []string{"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "&&=", "||=", "??=", "<<=", ">>=", ">>>=", "**=", "**", "&", "|", "^", "<<", ">>", ">>>", "++", "--"}

// noAssignment refuses an operator behind an expression.
func (p *parser) noAssignment() error {
	switch t := p.tok(); {
	case t.kind == tokenSymbol && t.text == "=":
		return p.fail(t.at, "a value is assigned, and a definition only computes")
	case t.kind == tokenSymbol && slices.Contains(refusedOperators, t.text):
		return p.fail(t.at, "the operator %s is not there", t.text)
	case t.is("is") || t.is("as") || t.is("instanceof") || t.is("in"):
		if !p.script && t.is("in") {
			return nil
		}
		return p.fail(t.at, "the operator %s is not there", t.text)
	}
	return nil
}

// lambda parses a function, if there is one: x => ..., (x, y) => ..., function (x) { ... }.
func (p *parser) lambda() (*node, error) {
	at := p.tok()
	switch {
	case p.script && at.is("async"):
		return nil, p.fail(at.at, "async is not there")
	case p.script && at.is("function"):
		p.i++
		if p.tok().kind == tokenWord {
			p.i++
		}
		names, err := p.parameters()
		if err != nil {
			return nil, err
		}
		return p.body(&node{kind: nodeLambda, at: at.at, names: names})
	case at.kind == tokenWord && p.peek(1).is("=>"):
		p.i += 2
		return p.body(&node{kind: nodeLambda, at: at.at, names: []string{at.text}})
	case at.is("("):
		n := 1
		for p.peek(n).kind == tokenWord && p.peek(n+1).is(",") {
			n += 2
		}
		if p.peek(n).kind == tokenWord {
			n++
		}
		if n == 1 && !p.peek(1).is(")") {
			return nil, nil
		}
		if !p.peek(n).is(")") || !p.peek(n+1).is("=>") {
			return nil, nil
		}
		names, err := p.parameters()
		if err != nil {
			return nil, err
		}
		p.i++
		return p.body(&node{kind: nodeLambda, at: at.at, names: names})
	}
	return nil, nil
}

func (p *parser) parameters() (names []string, err error) {
	if err := p.expect("(", "and the parameters of a function"); err != nil {
		return nil, err
	}
	for !p.tok().is(")") {
		if p.tok().is("{") || p.tok().is("[") || p.tok().is("...") {
			return nil, p.fail(p.tok().at, "a pattern in parameters is not there: name the parameter")
		}
		name, err := p.name("the name of a parameter")
		if err != nil {
			return nil, err
		}
		if p.tok().is("=") {
			return nil, p.fail(p.tok().at, "a default of a parameter is not there")
		}
		if names = append(names, name); !p.accept(",") {
			break
		}
	}
	return names, p.expect(")", "behind the parameters")
}

// body parses the body of a function.
func (p *parser) body(f *node) (*node, error) {
	if !p.tok().is("{") {
		n, err := p.expression()
		f.kids = []*node{n}
		return f, err
	}
	if !p.script {
		return nil, p.fail(p.tok().at, "a function of statements is not there: write an expression")
	}
	var err error
	f.block = true
	f.body, err = p.blockOf()
	return f, err
}

// levels are the operators, the weakest first.
var levels = [][]string{{"??"}, {"||"}, {"&&"}, {"==", "!=", "===", "!=="}, {"<", ">", "<=", ">="}, {"+", "-"}, {"*", "/", "%"}}

func (p *parser) binary(level int) (*node, error) {
	if level == len(levels) {
		return p.unary()
	}
	left, err := p.binary(level + 1)
	if err != nil {
		return nil, err
	}
	chain := 0
	defer func() { p.nesting -= chain }()
	for {
		t := p.tok()
		if t.kind != tokenSymbol || !slices.Contains(levels[level], t.text) {
			return left, nil
		}
		if !p.script && len(t.text) == 3 {
			return nil, p.wrong(t.at, "C# has no operator %s", t.text)
		}
		if level != 5 { // a chain of + becomes one concat(), or a flat sum
			chain++
			if err := p.enter(); err != nil {
				return nil, err
			}
		}
		p.i++
		right, err := p.binary(level + 1)
		if err != nil {
			return nil, err
		}
		left = &node{kind: nodeBinary, at: t.at, text: t.text, kids: []*node{left, right}}
	}
}

func (p *parser) unary() (*node, error) {
	t := p.tok()
	switch {
	case t.is("!"), t.is("-"), t.is("+"):
		if err := p.enter(); err != nil {
			return nil, err
		}
		defer p.leave()
		p.i++
		n, err := p.unary()
		return &node{kind: nodeUnary, at: t.at, text: t.text, kids: []*node{n}}, err
	case t.is("~"), t.is("++"), t.is("--"), p.script && (t.is("typeof") || t.is("void") || t.is("delete") || t.is("await")):
		return nil, p.fail(t.at, "the operator %s is not there", t.text)
	}
	if n, err := p.cast(); n != nil || err != nil {
		return n, err
	}
	return p.postfix()
}

// postfix parses members, elements and calls.
func (p *parser) postfix() (*node, error) {
	n, err := p.primary()
	if err != nil {
		return nil, err
	}
	chain := 0
	defer func() { p.nesting -= chain }()
	for {
		t := p.tok()
		if t.kind != tokenSymbol || !slices.Contains([]string{".", "?.", "[", "(", "!"}, t.text) {
			return n, nil
		}
		if t.text == "!" && (p.script || !(p.peek(1).is(".") || p.peek(1).is(")") || p.peek(1).is(","))) {
			return n, nil
		}
		chain++
		if err := p.enter(); err != nil {
			return nil, err
		}
		p.i++
		switch t.text {
		case ".", "?.":
			if t.text == "?." && p.tok().is("[") {
				continue
			}
			name := p.tok()
			if name.kind != tokenWord {
				return nil, p.unexpected("the name of a member behind the point")
			}
			p.i++
			n = &node{kind: nodeMember, at: name.at, text: name.text, kids: []*node{n}}
			if err := p.typeArguments(); err != nil {
				return nil, err
			}
		case "[":
			index, err := p.expression()
			if err != nil {
				return nil, err
			}
			if err := p.expect("]", "behind an index"); err != nil {
				return nil, err
			}
			n = &node{kind: nodeIndex, at: t.at, kids: []*node{n, index}}
		case "(":
			n = &node{kind: nodeCall, at: n.at, kids: []*node{n}}
			if err := p.arguments(n); err != nil {
				return nil, err
			}
		}
	}
}

// arguments parses the arguments of a call behind its parenthesis.
func (p *parser) arguments(call *node) error {
	for !p.tok().is(")") {
		n, err := p.element()
		if err != nil {
			return err
		}
		if call.kids = append(call.kids, n); !p.accept(",") {
			break
		}
	}
	return p.expect(")", "behind the arguments of a call")
}

// element parses an argument of a call, or an element of an array: an expression, or several values by ....
func (p *parser) element() (*node, error) {
	at := p.tok()
	spread := p.accept("...")
	n, err := p.expression()
	if spread && err == nil {
		n = &node{kind: nodeSpread, at: at.at, kids: []*node{n}}
	}
	return n, err
}

func (p *parser) primary() (*node, error) {
	t := p.tok()
	switch t.kind {
	case tokenNumber:
		p.i++
		return &node{kind: nodeNumber, at: t.at, text: t.text, suffix: t.suffix}, nil
	case tokenText:
		p.i++
		return &node{kind: nodeText, at: t.at, text: t.text}, nil
	case tokenTemplate:
		p.i++
		return p.template(t)
	case tokenWord:
		if t.text == "new" {
			p.i++
			return p.newObject(t)
		}
		if !p.script && slices.Contains([]string{"switch", "default", "typeof", "await", "stackalloc"}, t.text) {
			return nil, p.fail(t.at, "%s is not there", t.text)
		}
		if slices.Contains(keywords, t.text) && !slices.Contains([]string{"null", "true", "false", "undefined", "this"}, t.text) {
			return nil, p.unexpected("a value")
		}
		p.i++
		n := &node{kind: nodeName, at: t.at, text: t.text}
		return n, p.typeArguments()
	case tokenSymbol:
		switch t.text {
		case "(":
			p.i++
			n, err := p.expression()
			if err != nil {
				return nil, err
			}
			return n, p.expect(")", "or an operator")
		case "[":
			if !p.script {
				break
			}
			p.i++
			a := &node{kind: nodeArray, at: t.at}
			return a, p.elements(a, "]")
		case "{":
			if p.script {
				p.i++
				return p.object(t)
			}
			return nil, p.wrong(t.at, "unexpected \"{\": an object of C# begins with new {")
		case "/":
			return nil, p.fail(t.at, "a regular expression is not there")
		}
	}
	return nil, p.unexpected("a value")
}

// elements parses expressions up to a symbol.
func (p *parser) elements(a *node, closing string) error {
	for !p.tok().is(closing) {
		n, err := p.element()
		if err != nil {
			return err
		}
		if a.kids = append(a.kids, n); !p.accept(",") {
			break
		}
	}
	return p.expect(closing, "behind the elements")
}

// object parses an object of JavaScript behind its brace.
func (p *parser) object(at token) (*node, error) {
	o := &node{kind: nodeObject, at: at.at}
	for !p.tok().is("}") {
		t := p.tok()
		switch {
		case t.is("..."):
			return nil, p.fail(t.at, "... is not there: name the members")
		case t.is("["):
			return nil, p.fail(t.at, "a member with a computed name is not there")
		case t.kind != tokenWord && t.kind != tokenText && t.kind != tokenNumber:
			return nil, p.unexpected("the name of a member")
		}
		p.i++
		var n *node
		var err error
		switch {
		case p.accept(":"):
			n, err = p.expression()
		case p.tok().is("("):
			err = p.fail(p.tok().at, "a method in an object is not there")
		case t.kind == tokenWord:
			n = &node{kind: nodeName, at: t.at, text: t.text}
		default:
			err = p.unexpected(`":" behind the name of a member`)
		}
		if err != nil {
			return nil, err
		}
		if o.names, o.kids = append(o.names, t.text), append(o.kids, n); !p.accept(",") {
			break
		}
	}
	return o, p.expect("}", `or "," behind a member`)
}

// template parses the expressions of a template.
func (p *parser) template(t token) (*node, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	n := &node{kind: nodeTemplate, at: t.at}
	for _, part := range t.pieces {
		if part.to == 0 {
			n.kids = append(n.kids, &node{kind: nodeText, at: t.at, text: part.text})
			continue
		}
		l := lexer{text: p.text, i: part.from, end: part.to, script: p.script, fail: p.wrong}
		tokens, err := l.tokens()
		if err != nil {
			return nil, err
		}
		inner := &parser{text: p.text, script: p.script, part: p.part, tokens: tokens, nesting: p.nesting}
		kid, err := inner.expression()
		if err == nil && inner.tok().kind != tokenEnd {
			if inner.tok().is(":") || inner.tok().is(",") {
				err = p.fail(inner.tok().at, "a format in a text is not there")
			} else {
				err = inner.unexpected("}")
			}
		}
		if err != nil {
			return nil, err
		}
		n.kids = append(n.kids, kid)
	}
	return n, nil
}
