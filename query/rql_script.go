package query

import (
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/jaydb/jay/internal/instant"
	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/script"
)

// scripts parses what a query has in JavaScript: declared functions, load, and an object or a call in select.
type scripts struct {
	p      *parser
	js     script.ProjectionParser
	made   Script
	names  []string // of functions
	loaded int      // offset of load
	at     int      // offset of the result
}

// declare = { "declare" "function" name "(" parameters ")" "{" body "}" } .
func (s *scripts) declare() error {
	p := s.p
	for p.tok.is("declare") {
		start := p.tok
		p.advance()
		if p.tok.is("timeseries") {
			return p.fail(p.tok.offset, "declare timeseries is not there: Jay keeps no time series; keep documents with a date")
		}
		if !p.tok.is("function") {
			return p.unexpected("function behind declare", "function")
		}
		if len(s.names) == MaxDeclared {
			return p.fail(start.offset, "too many functions: %d are the most", MaxDeclared)
		}
		text := p.lex.text
		at := p.tok.end + len(text[p.tok.end:]) - len(strings.TrimLeftFunc(text[p.tok.end:], unicode.IsSpace))
		s.js.Source = text
		end, err := s.js.Function(at)
		if err != nil {
			return s.failed(err)
		}
		name, _, _ := strings.Cut(text[at:end], "(")
		s.names = append(s.names, strings.TrimSpace(name))
		s.made.functions = append(s.made.functions, "function "+text[at:end])
		s.goOn(end)
	}
	return nil
}

// goOn lets the parser go on at an offset.
func (s *scripts) goOn(offset int) {
	s.p.lex.pos, s.p.lex.end = offset, offset
	s.p.advance()
}

// failed returns the error of the query for one of its JavaScript.
func (s *scripts) failed(err error) error {
	var e *script.Error
	if !errors.As(err, &e) {
		return err
	}
	return s.p.fail(e.Offset, "JavaScript: %s", e.Message)
}

// load = "load" path "as" name [ "[" "]" ] { "," path "as" name [ "[" "]" ] } .
func (s *scripts) load() error {
	p := s.p
	if s.made.loads != nil {
		return p.fail(p.tok.offset, "a second load").hinting("a comma stands between what is loaded")
	}
	s.loaded = p.tok.offset
	p.advance()
	return p.list("names in load", func() error {
		at := p.tok.offset
		if len(s.made.loads) == MaxLoads {
			return p.fail(at, "load gives too many names: %d are the most", MaxLoads)
		}
		first := p.tok
		f, err := p.field("the path of the IDs of documents to load")
		if err != nil {
			return err
		}
		if f.Meta != MetaNone || f.Path.IsZero() {
			return p.fail(at, "load follows IDs in the body of a document")
		}
		if f.Path.Loads() {
			return p.fail(at, "load() does not stand in load").hinting("give the document a name: load Customer as c, c.Country as d")
		}
		if !p.accept("as") {
			return p.unexpected("as and a name behind the path", "as")
		}
		start := p.tok.offset
		l := Load{Path: f.Path}
		if s.isLoad(first.text) && first.text == f.Path.Root() && first.text != p.alias {
			if l.From = first.text; f.Path.Len() == 1 {
				return p.fail(at, "%s is a document as a whole", first.text).expecting("the path of an ID in it, such as " + first.text + ".Company")
			}
		}
		if l.Name, err = p.name("a name for the document"); err != nil {
			return err
		}
		if p.acceptSymbol("[") {
			if l.List = true; !p.acceptSymbol("]") {
				return p.unexpected(`"]" behind "["`)
			}
		}
		if err := s.checkName(start, l.Name); err != nil {
			return err
		}
		s.made.loads = append(s.made.loads, l)
		return nil
	})
}

// named puts fields of documents that are loaded in the place of those that begin with a name of a
// load before the clause: with load o.Company as c, the field c.Name is load(Company).Name.
func (s *scripts) named(q *Query, clause clauseKind) (err error) {
	at := s.p.tok.offset
	field := func(f Field) (Field, error) {
		i := slices.IndexFunc(s.made.loads, func(l Load) bool { return f.Meta == MetaNone && f.Path.Root() == l.Name && !s.p.ofAlias[l.Name] })
		if i < 0 || f.Path.Loads() {
			return f, nil
		}
		of := s.made.loads[i]
		if f.Path.Len() == 1 {
			return f, s.p.fail(at, "%s is a document as a whole", of.Name).expecting("a member of it, such as " + of.Name + ".Name")
		}
		path, err := s.ofLoad(of)
		if err == nil {
			path, err = jsonpath.Load(path, f.Path.Suffix(1))
		}
		if err != nil {
			return f, s.p.fail(at, "%v", err).because(err)
		}
		f.Path = path
		return f, nil
	}
	switch {
	case s.made.loads == nil:
	case clause == clauseWhere:
		q.Where, err = SubstituteCondition(q.Where, field)
	case clause == clauseOrder:
		for i := range q.OrderBy {
			if q.OrderBy[i].Field, err = Substitute(q.OrderBy[i].Field, field); err != nil {
				return err
			}
		}
	}
	return err
}

// identifier is what a name in JavaScript can be.
var identifier = regexp.MustCompile(`^[\pL_][\pL\p{Nd}_$]*$`)

// isLoad reports whether load has given this name.
func (s *scripts) isLoad(name string) bool {
	return slices.ContainsFunc(s.made.loads, func(l Load) bool { return l.Name == name })
}

// ofLoad returns the path from the document to the IDs of a load, through the documents of earlier ones.
func (s *scripts) ofLoad(l Load) (jsonpath.Path, error) {
	for _, other := range s.made.loads {
		if l.From != "" && other.Name == l.From {
			path, err := s.ofLoad(other)
			if err != nil {
				return path, err
			}
			return jsonpath.Load(path, l.Path.Suffix(1))
		}
	}
	return l.Path, nil
}

// checkName refuses a name that is none in JavaScript, or is there already.
func (s *scripts) checkName(at int, name string) error {
	switch {
	case !identifier.MatchString(name):
		return s.p.fail(at, "%s is no name in JavaScript", quote(name)).hinting("letters, digits and _ make one")
	case name == s.p.alias || s.isLoad(name) || slices.Contains(s.names, name):
		return s.p.fail(at, "a second %s", name).hinting("give it another name")
	}
	return nil
}

// begins reports whether tok begins a projection by JavaScript.
func (s *scripts) begins() bool {
	return s.p.tok.isSymbol("{") || s.p.tok.kind == tokenWord && slices.Contains(s.names, s.p.tok.text) && s.p.atCall()
}

// selects = object | call .
func (s *scripts) selects(q *Query) error {
	p := s.p
	s.at = p.tok.offset
	s.js.Source = p.lex.text
	end, err := s.js.Result(s.at)
	if err != nil {
		return s.failed(err)
	}
	s.made.result = p.lex.text[s.at:end]
	s.made.program = s.js.Projection()
	if p.alias != "" && !identifier.MatchString(p.alias) {
		return p.fail(s.at, "the alias %s is no name in JavaScript", quote(p.alias)).hinting("letters, digits and _ make one")
	}
	s.made.alias = p.alias
	s.goOn(end)
	if err := s.parameters(); err != nil {
		return err
	}
	made := s.made // apart from the parser
	q.Script = &made
	return nil
}

// parameters takes the values of the parameters in JavaScript.
func (s *scripts) parameters() error {
	size := 0
	for _, name := range s.made.program.Parameters() {
		if _, known := s.made.values[name]; known {
			continue
		}
		v, there := s.p.params[name]
		if !there {
			return s.p.fail(s.at, "the parameter $%s has no value", name)
		}
		s.p.used[name] = true
		raw, err := instant.Marshal(v)
		if value, is := v.(Value); is {
			raw, err = value.Raw(), nil
		}
		if err == nil && !json.Valid(raw) {
			err = ErrValue
		}
		if err != nil {
			return s.p.fail(s.at, "$%s is not JSON: %v", name, err).because(err)
		}
		if size += len(raw); size > MaxScriptBytes {
			return s.p.fail(s.at, "the parameters in JavaScript are too large: %d bytes of JSON are the most", MaxScriptBytes)
		}
		if s.made.values == nil {
			s.made.values = make(map[string]json.RawMessage)
		}
		s.made.values[name] = raw
	}
	return nil
}

// check refuses what a projection by JavaScript has no meaning with, at the end of the query.
func (s *scripts) check(q *Query) error {
	p := s.p
	switch {
	case q.Script == nil && s.made.loads != nil:
		return p.fail(s.loaded, "load gives names to documents in JavaScript, and select has none").expecting("select { ... }").
			hinting("a condition is load(Company).City = 'Bern', the script of update has load(this.Company), and include brings documents along")
	case q.Script == nil && s.names != nil:
		return p.fail(0, "the query does not call a function that it declares").expecting("select " + s.names[0] + "(...)")
	case q.Script == nil:
		return nil
	case len(q.GroupBy) > 0 || q.Having != nil:
		return p.fail(s.at, "JavaScript makes an object of a document, and a query with group by has groups").hinting("name the columns: select Customer, sum(Total) as Sum")
	case !q.Each.IsZero():
		return p.fail(s.at, "JavaScript makes an object of a document, and a query with each has elements").hinting("name the columns, or map the array in JavaScript")
	case p.alias == "":
		return nil
	}
	for _, root := range q.roots() {
		if root == p.alias {
			return p.fail(s.at, "a query with JavaScript names a member %s of the document, and %s is its alias", root, root).hinting("choose another alias")
		}
	}
	return nil
}

// roots returns the first names of all paths of a query but those in its JavaScript.
func (q *Query) roots() (roots []string) {
	for _, f := range Fields(q.Where) {
		roots = append(roots, f.roots()...)
	}
	for _, o := range q.OrderBy {
		roots = append(roots, o.Field.roots()...)
	}
	for _, path := range q.Include {
		roots = append(roots, path.Root())
	}
	for _, l := range q.Script.loads {
		roots = append(roots, l.Path.Root())
	}
	return roots
}

// roots returns the first names of the paths of a field.
func (f Field) roots() (roots []string) {
	for _, operand := range f.Operands() {
		roots = append(roots, operand.Path.Root())
	}
	return roots
}
