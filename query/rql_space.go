package query

import (
	"strconv"
	"strings"
)

// spaces parses what the functions of a space have together, such as those of spatial.within(...)
// and vector.search(...).
type spaces struct{ *parser }

// at returns the name of the function of a space that tok begins, in lower case: "within" of
// spatial.within(. It is "" for none.
func (p spaces) at(space string) string {
	if p.tok.kind != tokenWord || !p.tok.is(space) {
		return ""
	}
	ahead := p.lex
	if !ahead.next().isSymbol(".") {
		return ""
	}
	name := ahead.next()
	if name.kind != tokenWord || !ahead.next().isSymbol("(") {
		return ""
	}
	return strings.ToLower(name.text)
}

// begin skips the space, the name of the function, and the parenthesis.
func (p spaces) begin() {
	for range 4 {
		p.advance()
	}
}

// path parses the field of the body that what is, such as "place", is in.
func (p spaces) path(what, expected string) (Field, error) {
	at := p.tok
	f, err := p.field(expected)
	if err == nil && (f.Meta != MetaNone && f.Meta != MetaElement && f.Meta != MetaCustom || f.Date != DateNone) {
		err = p.fail(at.offset, "%s is no %s", f, what).expecting("a field of the document")
	}
	return f, err
}

// number parses a number.
func (p spaces) number(expected string) (float64, error) {
	at := p.tok
	v, err := p.value(expected)
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseFloat(string(v.raw), 64)
	if v.kind != KindNumber || err != nil {
		return 0, p.fail(at.offset, "unexpected %s", at).expecting(expected)
	}
	return n, nil
}
