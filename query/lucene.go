package query

import (
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/text"
)

// NewLucene returns the condition of a query in Lucene's syntax, such as
//
//	(oak OR ash) AND "fallen leaves"~5 -rotten Title:maple~0.7
//
// on a field, with an analyzer as in a Search. The condition consists of searches: consecutive
// terms on one field are one Search, and groups are And, Or and Not. The syntax is that of Lucene's
// classic query parser without ranges, which are refused. docs/search.md has all of it. The error
// is ErrCondition.
func NewLucene(f Field, search, analyzer string) (Expr, error) {
	l := lucene{analyzer: analyzer}
	a, _, err := Search{Field: f, Analyzer: analyzer}.parse()
	if err != nil {
		return nil, err
	}
	l.words = a
	list, err := text.ParseLucene(search)
	if err != nil {
		return nil, fmt.Errorf("%w: lucene(): %w", ErrCondition, err)
	}
	e, err := l.group(list, f)
	if err == nil && e == nil {
		e = Search{Field: f, Analyzer: analyzer} // which finds nothing
	}
	return e, err
}

// lucene makes conditions of clauses.
type lucene struct {
	analyzer string
	words    *text.Analyzer
}

// said is a clause as a condition, or as the words of a search.
type said struct {
	occur text.Occur
	field Field
	words string
	expr  Expr // nil for words
}

// group returns what the clauses of a group are together, nil if all of them are words that the analyzer leaves out.
func (l *lucene) group(list []text.Lucene, f Field) (Expr, error) {
	var all []said
	for i := range list {
		s, err := l.clause(&list[i], f)
		if err != nil {
			return nil, err
		}
		if s.words != "" || s.expr != nil {
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	if !slices.ContainsFunc(all, func(s said) bool { return s.occur != text.MustNot }) {
		return nil, fmt.Errorf("%w: lucene(): at byte %d: clauses that only leave out find nothing in Lucene: write *:* in front of them, or not search()", ErrCondition, list[0].Offset)
	}
	if !slices.ContainsFunc(all, func(s said) bool { return s.expr != nil || keyOf(s.field) != keyOf(all[0].field) }) {
		return l.search(all, ""), nil
	}
	return l.joined(all), nil
}

// clause returns what a clause of a group says, the zero said for a word that the analyzer leaves out.
func (l *lucene) clause(c *text.Lucene, f Field) (s said, err error) {
	s = said{occur: c.Occur, field: f}
	if c.Field != "" {
		if s.field, err = luceneField(c.Field); err != nil {
			return s, fmt.Errorf("%w: lucene(): at byte %d: the field %.100q: %w", ErrCondition, c.Offset, c.Field, err)
		}
	}
	switch {
	case c.All:
		s.expr = And{}
	case c.Any:
		s.expr = Exists{s.field}
	case c.Group != nil:
		if s.expr, err = l.group(c.Group, s.field); err != nil || s.expr == nil {
			return s, err
		}
	default:
		parsed, err := text.Parse(l.words, c.Words, false)
		if err != nil {
			return s, fmt.Errorf("%w: lucene(): %.100q at byte %d: %w", ErrCondition, c.Words, c.Offset, err)
		}
		if len(parsed.Clauses) > 0 {
			s.words = c.Words
		}
		return s, nil
	}
	if c.Boost != 1 {
		s.expr = Boost{Expr: s.expr, By: c.Boost}
	}
	return s, nil
}

// luceneField returns the field of a name in front of a colon.
func luceneField(name string) (Field, error) {
	if strings.EqualFold(name, "id()") {
		return Field{Meta: MetaID}, nil
	}
	path, err := jsonpath.Parse(name)
	if err != nil {
		return Field{}, err
	}
	return NewField(path)
}

// occurSigns are what is written in front of a word of a search.
var occurSigns = [...]string{text.Should: "", text.Must: "+", text.MustNot: "-"}

// search returns the search for words of one field, which are all of them with sign in front, or each with its own.
func (l *lucene) search(all []said, sign string) Expr {
	var words []string
	for _, s := range all {
		own := sign
		if own == "" {
			own = occurSigns[s.occur]
		}
		words = append(words, strings.TrimSpace(own)+s.words)
	}
	return Search{Field: all[0].field, Text: strings.Join(words, " "), Analyzer: l.analyzer}
}

// joined returns what clauses are together of which some are no words, or of several fields. Those
// that need not be there count for the score beside those that must.
func (l *lucene) joined(all []said) Expr {
	must, should, not := l.parts(all, text.Must, "+"), l.parts(all, text.Should, " "), l.parts(all, text.MustNot, " ")
	var e And
	e = append(e, must...)
	switch {
	case len(should) > 0 && len(must) > 0:
		e = append(e, append(Or{And{}}, should...))
	case len(should) == 1:
		e = append(e, should[0])
	case len(should) > 0:
		e = append(e, Or(should))
	}
	for _, one := range not {
		e = append(e, Not{one})
	}
	if len(e) == 1 {
		return e[0]
	}
	return e
}

// parts returns the conditions of the clauses of one kind: words of one field in a row are one
// search, with sign in front of each.
func (l *lucene) parts(all []said, occur text.Occur, sign string) (parts []Expr) {
	var row []said
	flush := func() {
		if len(row) > 0 {
			parts = append(parts, l.search(row, sign))
			row = nil
		}
	}
	for _, s := range all {
		switch {
		case s.occur != occur:
		case s.expr != nil:
			flush()
			parts = append(parts, s.expr)
		default:
			if len(row) > 0 && keyOf(row[0].field) != keyOf(s.field) {
				flush()
			}
			row = append(row, s)
		}
	}
	flush()
	return parts
}
