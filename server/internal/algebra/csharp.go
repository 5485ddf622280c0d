package algebra

import (
	"errors"
	"slices"
	"strings"
)

// types are the names of types of C# to which a value may be cast, and what the cast does.
var types = map[string]string{
	"int": "integer", "long": "integer", "short": "integer", "byte": "integer", "uint": "integer", "ulong": "integer", "sbyte": "integer", "ushort": "integer",
	"Int16": "integer", "Int32": "integer", "Int64": "integer",
	"double": "double", "float": "double", "Double": "double", "Single": "double", "decimal": "decimal", "Decimal": "decimal",
	"string": "text", "String": "text", "bool": "boolean", "Boolean": "boolean", "DateTime": "instant", "DateTimeOffset": "instant",
	"dynamic": "any", "object": "any", "Object": "any", "var": "any",
	"IEnumerable": "any", "Func": "any", "List": "any", "IList": "any", "ICollection": "any", "IReadOnlyList": "any", "Array": "any", "Nullable": "nullable",
}

// typeAt returns the number of tokens of the type that begins n tokens ahead, 0 for none, and its name.
func (p *parser) typeAt(n int) (length int, name string, nullable bool) {
	start := n
	if p.peek(n).kind != tokenWord {
		return 0, "", false
	}
	name = p.peek(n).text
	for n++; p.peek(n).is(".") && p.peek(n+1).kind == tokenWord; n += 2 {
		name = p.peek(n + 1).text
	}
	if p.peek(n).is("<") {
		inner := ""
		for n++; ; {
			length, one, _ := p.typeAt(n)
			if length == 0 || n-start > 16 {
				return 0, "", false
			}
			inner = one
			if n += length; !p.peek(n).is(",") {
				break
			}
			n++
		}
		switch { // > of two nested types are one token
		case p.peek(n).is(">"):
			n++
		default:
			return 0, "", false
		}
		if name == "Nullable" {
			name, nullable = inner, true
		}
	}
	if p.peek(n).is("?") {
		n++
		nullable = true
	}
	for p.peek(n).is("[") && p.peek(n+1).is("]") {
		n += 2
		name = "Array"
	}
	return n - start, name, nullable
}

// cast parses a cast of C#, if there is one: (int)x.
func (p *parser) cast() (*node, error) {
	at := p.tok()
	if p.script || !at.is("(") {
		return nil, nil
	}
	length, name, nullable := p.typeAt(1)
	if length == 0 || types[name] == "" || !p.peek(length+1).is(")") {
		return nil, nil
	}
	next := p.peek(length + 2)
	begins := next.kind == tokenWord && !slices.Contains([]string{"in", "is", "as", "select", "where", "into", "by", "group", "let"}, next.text) || next.kind == tokenText || next.kind == tokenNumber || next.kind == tokenTemplate || next.is("(") || next.is("!") || next.is("-") && types[name] != ""
	if !begins {
		return nil, nil
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.i += length + 2
	to := types[name]
	if nullable {
		to += "?"
	}
	if f, err := p.lambda(); f != nil || err != nil {
		return f, err
	}
	n, err := p.unary()
	return &node{kind: nodeCast, at: at.at, text: to, kids: []*node{n}}, err
}

// typeArguments skips the types behind the name of a function: Cast<dynamic>.
func (p *parser) typeArguments() error {
	if p.script || !p.tok().is("<") {
		return nil
	}
	n := 1
	for {
		length, _, _ := p.typeAt(n)
		if length == 0 {
			return nil
		}
		if n += length; !p.peek(n).is(",") {
			break
		}
		n++
	}
	if p.peek(n).is(">") && p.peek(n+1).is("(") {
		p.i += n + 1
	}
	return nil
}

// newObject parses what follows new.
func (p *parser) newObject(at token) (*node, error) {
	if p.script {
		n := &node{kind: nodeNew, at: at.at, text: p.tok().text}
		if p.tok().kind != tokenWord {
			return nil, p.unexpected("the name of a class behind new")
		}
		p.i++
		if p.accept("(") {
			return n, p.arguments(n)
		}
		return n, nil
	}
	switch {
	case p.accept("{"):
		return p.anonymous(at)
	case p.tok().is("["):
		p.i++
		if err := p.expect("]", "and the elements of an array"); err != nil {
			return nil, err
		}
		if err := p.expect("{", "and the elements of an array"); err != nil {
			return nil, err
		}
		a := &node{kind: nodeArray, at: at.at}
		return a, p.elements(a, "}")
	}
	length, name, _ := p.typeAt(0)
	if length == 0 {
		return nil, p.unexpected("{ or a type behind new")
	}
	p.i += length
	switch {
	case p.tok().is("{") && name == "Array":
		p.i++
		a := &node{kind: nodeArray, at: at.at}
		return a, p.elements(a, "}")
	case p.tok().is("{") && name == "CreateFieldOptions":
		p.i++
		return p.anonymous(at)
	case p.tok().is("{"):
		return nil, p.fail(at.at, "an object of the type %.60s is not there: write new { ... }", name)
	}
	n := &node{kind: nodeNew, at: at.at, text: name}
	if err := p.expect("(", "behind a type"); err != nil {
		return nil, err
	}
	return n, p.arguments(n)
}

// anonymous parses the members of new { ... }.
func (p *parser) anonymous(at token) (*node, error) {
	o := &node{kind: nodeObject, at: at.at}
	for !p.tok().is("}") {
		t := p.tok()
		name := ""
		if t.kind == tokenWord && p.peek(1).is("=") {
			p.i += 2
			name = t.text
		}
		n, err := p.expression()
		if err != nil {
			return nil, err
		}
		if name == "" {
			if n.kind != nodeMember && n.kind != nodeName {
				return nil, p.wrong(t.at, "the member needs a name: Name = ...")
			}
			name = n.text
		}
		if o.names, o.kids = append(o.names, name), append(o.kids, n); !p.accept(",") {
			break
		}
	}
	return o, p.expect("}", `or "," behind a member`)
}

// refusedClauses are clauses of queries that a definition does not have.
var refusedClauses = []string{"join", "orderby", "on", "ascending", "descending"}

// query = from { clause } ( select | group ) [ into name { clause } ( select | group ) ] .
func (p *parser) query() (*node, error) {
	q := &node{kind: nodeQuery, at: p.tok().at}
	for {
		t := p.tok()
		c := &clause{kind: t.text, at: t.at}
		var err error
		switch {
		case t.is("from"):
			p.i++
			err = p.from(c)
		case t.is("where"):
			p.i++
			c.of, err = p.expression()
		case t.is("let"):
			p.i++
			if c.name, err = p.name("the name of a variable behind let"); err == nil {
				if err = p.expect("=", "behind the name of a variable"); err == nil {
					c.of, err = p.expression()
				}
			}
		case t.is("select"):
			p.i++
			if p.tok().is("{") {
				return nil, p.wrong(p.tok().at, "unexpected \"{\" behind select: an object of C# begins with new {")
			}
			c.of, err = p.expression()
		case t.is("group"):
			p.i++
			err = p.group(c)
		case t.kind == tokenWord && slices.Contains(refusedClauses, t.text):
			return nil, p.fail(t.at, "%s is not there", t.text)
		default:
			return nil, p.unexpected("where, let, from, group or select")
		}
		if err != nil {
			return nil, err
		}
		q.query = append(q.query, c)
		if c.kind == "select" && !p.accept("into") || c.kind == "group" && c.name == "" {
			return q, nil
		}
		if c.kind == "select" {
			if c.name, err = p.name("the name of a variable behind into"); err != nil {
				return nil, err
			}
		}
	}
}

// from parses a from behind its word.
func (p *parser) from(c *clause) (err error) {
	if length, _, _ := p.typeAt(0); length > 0 && p.peek(length).kind == tokenWord && !p.peek(length).is("in") {
		p.i += length // the type of the variable
	}
	if c.name, err = p.name("the name of a variable behind from"); err != nil {
		return err
	}
	if err = p.expect("in", "behind the variable of from"); err != nil {
		return err
	}
	c.of, err = p.expression()
	return err
}

// group parses a group behind its word.
func (p *parser) group(c *clause) (err error) {
	if c.of, err = p.expression(); err != nil {
		return err
	}
	if err = p.expect("by", "behind what is grouped"); err != nil {
		return err
	}
	if c.by, err = p.expression(); err != nil || !p.accept("into") {
		return err
	}
	c.name, err = p.name("the name of a variable behind into")
	return err
}

// isScript reports whether a map or reduce is JavaScript.
func isScript(text string) bool {
	begin := lexer{text: text, end: len(text), fail: func(int, string, ...any) error { return errText }}
	if _, err := begin.blank(); err != nil {
		return false
	}
	text = text[begin.i:]
	for _, word := range []string{"map", "timeSeries", "counters", "groupBy", "function", "("} {
		rest, found := strings.CutPrefix(text, word)
		if found && (rest == "" || !beginsWord([]rune(rest)[0])) {
			return true
		}
	}
	return strings.Contains(text, ".groupBy(") || strings.Contains(text, ".aggregate(")
}

var errText = errors.New("the text has no end")
