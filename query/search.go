package query

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/text"
)

// Search is true if the texts that the field reaches have a word of Text, or, with All, each word
// of Text. Text is a search as users type it, such as
//
//	oak tre* "fallen leaves" -rotten
//
// where a word may also be "oak leaves"~5, w?nd*, maple~ or +ripe, as docs/search.md says. All
// texts of an array are one, but a phrase does not reach from one element into the next.
//
// The Analyzer, such as "english", splits the texts and Text into words. Empty means "standard".
type Search struct {
	Field    Field
	Text     string
	All      bool
	Analyzer string
}

func (Search) expr() {}

func (e Search) on() (Field, bool) { return e.Field, true }

func (e Search) mapFields(fn func(Field) (Field, error)) (_ Expr, err error) {
	e.Field, err = fn(e.Field)
	return e, err
}

func (e Search) measure(s Size) Size {
	s.Searches++
	s.Bytes += len(e.Text)
	return s
}

func (Search) looksAtValues() bool { return true }

func (e Search) refold(func(Field, bool) bool) Expr { return e }

// DefaultAnalyzer is the analyzer of a Search without one.
const DefaultAnalyzer = "standard"

// Analyzers returns the names of all analyzers, sorted.
func Analyzers() []string { return text.Names() }

// parse returns the analyzer and the parsed Text.
func (e Search) parse() (*text.Analyzer, *text.Search, error) {
	name := e.Analyzer
	if name == "" {
		name = DefaultAnalyzer
	}
	a, found := text.Find(name)
	if !found {
		return nil, nil, fmt.Errorf("%w: there is no analyzer %.50q: there are %s", ErrCondition, name, strings.Join(text.Names(), ", "))
	}
	s, err := text.Parse(a, e.Text, e.All)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrCondition, err)
	}
	return a, s, nil
}

// search is a compiled Search. It belongs to one Matcher.
type search struct {
	analyzer *text.Analyzer
	parsed   *text.Search
	words    *text.Document
}

func (s search) clone() search {
	return search{s.analyzer, s.parsed, text.NewDocument(s.analyzer, s.parsed)}
}

func (e Search) complete(c *compiler, to condition, _ bool) (condition, error) {
	a, parsed, err := e.parse()
	if err != nil {
		return to, err
	}
	to.op, to.search = opSearch, len(c.searches)
	c.searches = append(c.searches, search{a, parsed, text.NewDocument(a, parsed)})
	return to, nil
}

// finds reports whether the texts of a field satisfy an opSearch.
func (m *Matcher) finds(c *condition) bool {
	s := &m.searches[c.search]
	s.words.Reset()
	m.reader.Each(c.slot, func(v Value) bool {
		if v.kind == KindText {
			s.words.Add(string(m.text(v)))
		}
		return m.pace.Spend(1)
	})
	return s.parsed.Matches(s.words.Count)
}

func (e Search) write(b *strings.Builder) {
	b.WriteString("search(" + e.Field.String() + ", " + quote(e.Text))
	if e.All {
		b.WriteString(", and")
	}
	if e.Analyzer != "" {
		b.WriteString(", " + quote(e.Analyzer))
	}
	b.WriteString(")")
}

// Searches reports whether a condition, or a condition in it on the elements of an array, searches
// for words. The depth of e must be within the bounds.
func Searches(e Expr) bool {
	err := walk(e, func(e Expr, _ int) error {
		switch e.(type) {
		case Search, MoreLike:
			return errFound
		}
		return nil
	})
	return err != nil
}

// SearchesIn returns the searches of a condition that find documents. It leaves out searches below
// not, and searches on the elements of an array. The depth of e must be within the bounds.
func SearchesIn(e Expr) (all []Search) {
	switch e := e.(type) {
	case And:
		for _, kid := range e {
			all = append(all, SearchesIn(kid)...)
		}
	case Or:
		for _, kid := range e {
			all = append(all, SearchesIn(kid)...)
		}
	case Boost:
		return SearchesIn(e.Expr)
	case Search:
		return []Search{e}
	}
	return all
}

var errFound = errors.New("found")

// searchCall parses the rest of "search" "(" field "," text [ "," ( "and" | "or" ) ] [ "," analyzer
// ] ")", behind the text.
func (p *parser) searchCall(field Field, words string, at token) (Expr, error) {
	if p.exact {
		return nil, p.fail(at.offset, "search() has no exact form").hinting("name an analyzer that knows case: search(Text, 'Oak', 'whitespace')")
	}
	e := Search{Field: field, Text: words}
	if p.tok.isSymbol(",") && (p.peek().is("and") || p.peek().is("or")) {
		p.advance()
		e.All = p.tok.is("and")
		p.advance()
	}
	var err error
	if e.Analyzer, err = (near{p}).analyzer("and, or, or the name of an analyzer"); err != nil {
		return nil, err
	}
	if _, _, err := e.parse(); err != nil {
		return nil, p.fail(at.offset, "%v", err).because(err)
	}
	return e, p.expectSymbol(")", "behind the words")
}

// analyzer parses [ "," analyzer ].
func (p near) analyzer(expected string) (string, error) {
	if !p.acceptSymbol(",") {
		return "", nil
	}
	at := p.tok
	name, err := p.textValue(expected)
	if err != nil {
		return "", err
	}
	if _, found := text.Find(name); !found {
		return "", p.fail(at.offset, "there is no analyzer %.50q", name).expecting(strings.Join(text.Names(), ", "))
	}
	return strings.ToLower(strings.TrimSpace(name)), nil
}

// lucene parses the rest of "lucene" "(" field "," text [ "," analyzer ] ")", behind the text. In
// exact() the words are whole texts.
func (p near) lucene(field Field, words string, at token) (Expr, error) {
	analyzer, err := p.analyzer("the name of an analyzer")
	if err != nil {
		return nil, err
	}
	if p.exact && analyzer == "" {
		analyzer = "keyword"
	} else if p.exact {
		return nil, p.fail(at.offset, "exact(lucene()) has the analyzer keyword").hinting("leave out exact, or the analyzer")
	}
	e, err := NewLucene(field, words, analyzer)
	if err != nil {
		return nil, p.fail(at.offset, "%v", err).because(err)
	}
	return e, p.expectSymbol(")", "behind the words")
}
