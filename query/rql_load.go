package query

import (
	"fmt"

	"github.com/jaydb/jay/internal/jsonpath"
)

// Fields of documents that are loaded
//
// load(CustomerId).Name is the member Name of the document whose ID is at CustomerId. A path leads
// there: see jsonpath.Load. Who evaluates a query with one gives it bodies that are expanded
// (package loads), by LoadedPaths.

// loading parses fields of loaded documents.
type loading struct{ p *parser }

// load = "load" "(" field ")" "." path .
func (l loading) field() (Field, error) { return l.parse(false) }

// parse parses a load, and without a member one of the document itself, if whole says so.
func (l loading) parse(whole bool) (Field, error) {
	p := l.p
	start := p.tok
	if p.inElement {
		return Field{}, p.fail(start.offset, "load() is not in the condition on the elements of an array").hinting("ask with each, which makes elements of the array")
	}
	if err := p.enter(); err != nil {
		return Field{}, err
	}
	defer p.leave()
	p.advance()
	p.advance()
	at := p.tok
	ref, err := p.field("the field with the ID of a document")
	if err != nil {
		return Field{}, err
	}
	if ref.Meta != MetaNone || ref.Date != DateNone || ref.Path.IsZero() {
		return Field{}, p.fail(at.offset, "%s is no field of the body, and load() takes one with the ID of a document", ref)
	}
	if p.tok.isSymbol(",") {
		return Field{}, p.fail(p.tok.offset, "load() takes the field with the ID alone: an ID is one document, whatever its collection")
	}
	if err := p.expectSymbol(")", "behind the field with the ID"); err != nil {
		return Field{}, err
	}
	var rest jsonpath.Path
	if !whole || p.tok.isSymbol(".") {
		if rest, err = l.member(start); err != nil {
			return Field{}, err
		}
	}
	path, err := jsonpath.Load(ref.Path, rest)
	if err != nil {
		return Field{}, p.fail(start.offset, "%v", err).because(err)
	}
	return Field{Path: path}, nil
}

// member parses the path of a member of the document, behind the parenthesis.
func (l loading) member(start token) (jsonpath.Path, error) {
	p := l.p
	if !p.acceptSymbol(".") {
		return jsonpath.Path{}, p.unexpected(`"." and a member of the document behind load()`)
	}
	steps, err := p.steps("a member of the document that is loaded", true)
	if err != nil {
		return jsonpath.Path{}, err
	}
	if steps[0].Name == metadataMember {
		return jsonpath.Path{}, p.fail(start.offset, "load() has the members of a document, and not its metadata")
	}
	return p.pathOf(start, steps)
}

// loadString returns a path that loads as a query writes it.
func loadString(path jsonpath.Path) string {
	text := ""
	for i := 0; i < path.Len(); i++ {
		s := path.At(i)
		switch name := s.Reference(); {
		case s.Kind == jsonpath.Every:
			text += "[]"
		case s.Kind == jsonpath.Index:
			text += fmt.Sprintf("[%d]", s.Index)
		case i == 0:
			text = printName(name)
		case isWord(name):
			text += "." + name
		default:
			text += "." + quote(name)
		}
		if !s.IsLoad() {
			continue
		}
		for i+1 < path.Len() && path.At(i+1).Kind != jsonpath.Member {
			i++
			text += memberString(path.Suffix(i).Prefix(1))
		}
		text = "load(" + text + ")"
	}
	return text
}
