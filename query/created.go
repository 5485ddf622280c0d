package query

import (
	"fmt"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Created are fields whose names are in documents. In each element of the array at Path, Name has
// the name of a field, and Value its value. A map of a computed index creates them, as CreateField
// does in definitions of RavenDB's clients. It is written fields(Attributes, Name, Value).
type Created struct {
	Path        jsonpath.Path // of the array
	Name, Value Field         // of an element
}

// createdCall is what Created is written with.
const createdCall = "fields"

// ParseCreated parses Created. Is reports whether the text is a call of fields(), and not another
// expression. Every error is a [*SyntaxError], and is [ErrSyntax].
func ParseCreated(text string) (c Created, is bool, err error) {
	p, err := newParser(text, nil)
	if err != nil || !p.tok.is(createdCall) || !p.atCall() {
		return c, false, nil
	}
	return c, true, creating{p}.parse(&c)
}

// creating parses fields whose names stand in documents.
type creating struct{ p *parser }

// created = "fields" "(" path "," operand "," operand ")" .
func (cr creating) parse(c *Created) error {
	p := cr.p
	p.advance()
	p.advance()
	start := p.tok
	of, err := p.field("the path of an array")
	if err != nil {
		return err
	}
	if of.Meta != MetaNone || of.Date != DateNone || of.Path.Loads() {
		return p.fail(start.offset, "%s is no array of the body", of)
	}
	c.Path, p.inElement = of.Path, true
	for _, part := range []struct {
		what string
		to   *Field
	}{{"name", &c.Name}, {"value", &c.Value}} {
		if err := p.expectSymbol(",", "and the "+part.what+" of a field"); err != nil {
			return err
		}
		at := p.tok
		if *part.to, err = p.expr.operand("the " + part.what + " of a field, in an element of the array"); err != nil {
			return err
		}
		if part.to.IsConstant() || part.to.isZero() {
			return p.fail(at.offset, "the %s of a field is a member of an element, or computed of some", part.what)
		}
		if err := checkWithin(c.Path, *part.to); err != nil {
			return p.fail(at.offset, "%v", err).because(err)
		}
	}
	if err := p.expectSymbol(")", "behind the value of a field"); err != nil {
		return err
	}
	if p.tok.kind != tokenEnd {
		return p.unexpected("the end")
	}
	return nil
}

// String returns c in the form that ParseCreated reads.
func (c Created) String() string {
	return fmt.Sprintf("%s(%s, %s, %s)", createdCall, Field{Path: c.Path}, operandText(c.Name), operandText(c.Value))
}

// Condition returns a condition that is true of an element with this name whose value satisfies
// value.
func (c Created) Condition(name string, value Expr) Expr {
	return ElemMatch{Field{Path: c.Path}, And{Compare{Field: c.Name, Op: Equal, Value: TextValue(name)}, value}}
}
