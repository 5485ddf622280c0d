package algebra

// blockOf parses the statements of a block.
func (p *parser) blockOf() (list []*statement, err error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	if err := p.expect("{", "and statements"); err != nil {
		return nil, err
	}
	for !p.tok().is("}") {
		if p.tok().kind == tokenEnd {
			return nil, p.unexpected(`"}" behind the statements`)
		}
		list, err = p.statement(list)
		if err != nil {
			return nil, err
		}
	}
	p.i++
	return list, nil
}

// branch parses a statement, or those of a block.
func (p *parser) branch() ([]*statement, error) {
	if p.tok().is("{") {
		return p.blockOf()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	return p.statement(nil)
}

// endStatement reads a semicolon, or checks that the statement may end without one.
func (p *parser) endStatement() error {
	if p.accept(";") || p.tok().is("}") || p.tok().newLine || p.tok().kind == tokenEnd {
		return nil
	}
	return p.unexpected("an operator, or a semicolon")
}

// statement appends the statement at tok.
func (p *parser) statement(list []*statement) ([]*statement, error) {
	t := p.tok()
	switch {
	case p.accept(";"):
		return list, nil
	case t.is("{"):
		inner, err := p.blockOf()
		return append(list, &statement{kind: "block", at: t.at, yes: inner}), err
	case t.is("const"), t.is("let"), t.is("var"):
		return p.declaration(list)
	case t.is("return"):
		p.i++
		s := &statement{kind: "return", at: t.at}
		if next := p.tok(); !next.is(";") && !next.is("}") && !next.newLine {
			var err error
			if s.of, err = p.expression(); err != nil {
				return nil, err
			}
		}
		return append(list, s), p.endStatement()
	case t.is("continue"):
		p.i++
		return append(list, &statement{kind: "continue", at: t.at}), p.endStatement()
	case t.is("if"):
		return p.choice(list)
	case t.is("for"):
		return p.each(list)
	case t.is("while"), t.is("do"), t.is("switch"), t.is("try"), t.is("throw"), t.is("class"), t.is("function"), t.is("break"):
		return nil, p.fail(t.at, "the statement %s is no expression of RQL", t.text)
	}
	n, err := p.expression()
	if err != nil {
		return nil, err
	}
	return append(list, &statement{kind: "call", at: t.at, of: n}), p.endStatement()
}

func (p *parser) declaration(list []*statement) ([]*statement, error) {
	p.i++
	for {
		t := p.tok()
		if t.is("{") || t.is("[") {
			return nil, p.fail(t.at, "a pattern in a declaration is not there: name the variable")
		}
		name, err := p.name("the name of a variable")
		if err != nil {
			return nil, err
		}
		s := &statement{kind: "declare", at: t.at, name: name}
		if p.accept("=") {
			if s.of, err = p.expression(); err != nil {
				return nil, err
			}
		}
		if list = append(list, s); !p.accept(",") {
			return list, p.endStatement()
		}
	}
}

func (p *parser) choice(list []*statement) ([]*statement, error) {
	s := &statement{kind: "if", at: p.tok().at}
	p.i++
	err := p.expect("(", "behind if")
	if err == nil {
		s.of, err = p.expression()
	}
	if err == nil {
		err = p.expect(")", "behind the condition")
	}
	if err == nil {
		s.yes, err = p.branch()
	}
	if err == nil && p.accept("else") {
		s.no, err = p.branch()
	}
	return append(list, s), err
}

// each parses for (const x of y).
func (p *parser) each(list []*statement) ([]*statement, error) {
	s := &statement{kind: "each", at: p.tok().at}
	p.i++
	if err := p.expect("(", "behind for"); err != nil {
		return nil, err
	}
	if !p.accept("const") && !p.accept("let") && !p.accept("var") || !p.peek(1).is("of") {
		return nil, p.fail(s.at, "a loop that counts is no expression of RQL: write for (const x of ...), or forEach")
	}
	var err error
	if s.name, err = p.name("the name of a variable"); err != nil {
		return nil, err
	}
	p.i++ // of
	if s.of, err = p.expression(); err != nil {
		return nil, err
	}
	if err := p.expect(")", "behind what is gone through"); err != nil {
		return nil, err
	}
	s.yes, err = p.branch()
	return append(list, s), err
}
