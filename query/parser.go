package query

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of a query's text. A text beyond them is refused with a *SyntaxError,
// before it can cost time or memory.
const (
	// MaxText is the greatest length of a query, in bytes.
	MaxText = 64 << 10
	// MaxTextDepth is the greatest nesting of parentheses, not and exact(). A
	// builder may nest deeper: see MaxConditionDepth.
	MaxTextDepth = 250
	// MaxName is the greatest length of a name in bytes: that of a collection, a
	// member, a column, an alias or a parameter.
	MaxName = 1024
	// MaxInValues is the greatest number of values of one in, counting those of
	// lists that are passed as parameters.
	MaxInValues = 10_000
	// MaxColumns is the greatest number of columns of one select, and of fields
	// of one group by, order by or include.
	MaxColumns = 256
)

// Parse parses a query in RQL, RavenDB's query language:
//
//	from Orders as o
//	where o.Lines[].Product = $product and o.Total between 10 and 20.5
//	order by o.OrderedAt desc
//	select o.Company, o.Total as Sum
//	limit 10 offset 20
//
// A parameter stands for a value, which params holds under the name without the
// $: a string, a bool, a number, nil or anything else that [NewValue] takes, and
// for in also a slice of these. A parameter without a value is an error. So is a
// value without a parameter, since it is usually a misspelling.
//
// Case does not matter in text, except in exact(). docs/queries/rql.md has the
// grammar and lists what Jay leaves out of RavenDB's.
//
// Parse is safe for concurrent use and shares no memory with params. Every error
// is a [*SyntaxError], and is [ErrSyntax].
func Parse(text string, params map[string]any) (*Query, error) {
	p, err := newParser(text, params)
	if err != nil {
		return nil, err
	}
	q, err := p.query()
	if err != nil {
		return nil, err
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	return q, nil
}

// ParseCondition parses a condition, the part of a query after where. It is for filters outside of
// queries, such as the conditions of partial indexes. Parameters and errors are as for [Parse].
func ParseCondition(text string, params map[string]any) (Expr, error) {
	p, err := newParser(text, params)
	if err != nil {
		return nil, err
	}
	e, err := p.condition()
	if err != nil {
		return nil, err
	}
	if p.tok.kind != tokenEnd {
		return nil, p.unexpected(`"and", "or" or the end`, "and", "or")
	}
	if err := p.finish(); err != nil {
		return nil, err
	}
	if f, found := GroupField(e); found {
		return nil, p.fail(0, "%s is of groups, and there are none", f)
	}
	return e, nil
}

// parser is a recursive-descent parser. Each method named for a production of the
// grammar parses it: tok is the first token of the production on entry, and the
// first token after it on return.
type parser struct {
	lex lexer
	tok token // the lookahead token

	params map[string]any
	used   map[string]bool // parameters that the query refers to
	alias  string          // of the documents; "" if there is none
	quoted bool            // the alias stands in quotes, as one that is a keyword does: it may stand so in front of a path, too
	exact  bool            // inside exact()

	outerAlias string // inside elemMatch(): the alias, which is not valid there
	inElement  bool   // inside elemMatch()
	depth      int    // of parentheses, not and exact()

	bare token // the last name without quotes that something is compared with

	regexps regexps // bounds the total cost of regular expressions

	ofAlias map[string]bool // members that are named with the alias in front
	where   int             // offset of the condition

	selecting bool // in the columns of select, where a keyword may be a name

	expr    expressions
	scripts scripts

	columns []term // of select, parallel to Query.Select
	orders  []term // of order by, parallel to Query.OrderBy
}

// term is a field or a function of one, with its offset for errors.
type term struct {
	field  Field
	fn     Func
	name   string // of the field, if it is a single member
	offset int
}

// newParser returns a parser at the first token of text.
func newParser(text string, params map[string]any) (*parser, error) {
	if len(text) > MaxText {
		return nil, newSyntaxError(text, MaxText, "the query has %d bytes: %d are the most", len(text), MaxText).
			hinting("long lists of values can come as a parameter")
	}
	if i := invalidUTF8(text); i >= 0 {
		return nil, newSyntaxError(text, i, "the query is not UTF-8 from here")
	}

	p := &parser{lex: lexer{text: text}, params: params, used: map[string]bool{}, ofAlias: map[string]bool{}}
	p.expr.p, p.scripts.p = p, p
	p.advance()
	return p, nil
}

// invalidUTF8 returns the offset of the first byte that is not UTF-8, or -1.
func invalidUTF8(text string) int {
	if utf8.ValidString(text) {
		return -1
	}
	for i, r := range text {
		if r != utf8.RuneError {
			continue
		}
		if _, size := utf8.DecodeRuneInString(text[i:]); size == 1 {
			return i
		}
	}
	return -1
}

// finish returns an error if params has values that the query does not refer to.
func (p *parser) finish() error {
	var unused []string
	for name := range p.params {
		if !p.used[name] {
			unused = append(unused, "$"+name)
		}
	}
	if unused == nil {
		return nil
	}
	slices.Sort(unused)
	return p.fail(p.tok.offset, "the query has no parameter %s, for which there is a value", strings.Join(unused, ", "))
}

// advance reads the next token.
func (p *parser) advance() { p.tok = p.lex.next() }

// peek returns the token after tok without consuming it.
func (p *parser) peek() token {
	ahead := p.lex // a copy, so that the lexer does not move
	return ahead.next()
}

// accept consumes tok if it is this keyword.
func (p *parser) accept(keyword string) bool {
	if !p.tok.is(keyword) {
		return false
	}
	p.advance()
	return true
}

// acceptSymbol consumes tok if it is this symbol.
func (p *parser) acceptSymbol(symbol string) bool {
	if !p.tok.isSymbol(symbol) {
		return false
	}
	p.advance()
	return true
}

// expectSymbol consumes tok if it is this symbol, and otherwise returns an error
// that says where the symbol is expected.
func (p *parser) expectSymbol(symbol, where string) error {
	if p.acceptSymbol(symbol) {
		return nil
	}
	return p.unexpected(strconv.Quote(symbol) + " " + where)
}

// atCall reports whether tok is a function's name, followed by a parenthesis.
func (p *parser) atCall() bool {
	return p.tok.kind == tokenWord && p.peek().isSymbol("(")
}

// fail returns an error at an offset.
func (p *parser) fail(offset int, format string, args ...any) *SyntaxError {
	return newSyntaxError(p.lex.text, offset, format, args...)
}

// unexpected returns the error for tok: the lexer's if tok is a tokenBad, and
// otherwise one that says what was expected and which of words was perhaps meant.
func (p *parser) unexpected(expected string, words ...string) error {
	if p.tok.kind == tokenBad {
		return p.lex.err
	}
	err := p.fail(p.tok.offset, "unexpected %s", p.tok).expecting(expected)
	if p.tok.kind == tokenEnd {
		err.Message = "the query ends here"
	}
	return err.hinting(hintFor(p.tok, words))
}

// String describes t in error messages.
func (t token) String() string {
	const shownBytes = 40
	text := t.text
	if len(text) > shownBytes {
		text = strings.ToValidUTF8(text[:shownBytes], "") + "..."
	}
	switch t.kind {
	case tokenEnd, tokenBad:
		return "end"
	case tokenText:
		return "text " + quote(text)
	case tokenNumber:
		return "number " + text
	case tokenParameter:
		return "parameter $" + text
	}
	return fmt.Sprintf("%q", text)
}

// enter begins a level of nesting, or refuses it if it is too deep.
func (p *parser) enter() error {
	if p.depth++; p.depth > MaxTextDepth {
		return p.fail(p.tok.offset, "conditions are nested too deep: %d levels are the most", MaxTextDepth)
	}
	return nil
}

// leave ends a level of nesting.
func (p *parser) leave() { p.depth-- }

// list parses items separated by commas. What names them in the error for too
// many.
func (p *parser) list(what string, item func() error) error {
	for n := 1; ; n++ {
		if n > MaxColumns {
			return p.fail(p.tok.offset, "too many %s: %d are the most", what, MaxColumns)
		}
		if err := item(); err != nil {
			return err
		}
		if !p.acceptSymbol(",") {
			return nil
		}
	}
}

// query = from { clause } .
func (p *parser) query() (*Query, error) {
	q := &Query{}
	if err := p.scripts.declare(); err != nil {
		return nil, err
	}
	if err := p.from(q); err != nil {
		return nil, err
	}

	// Each clause must come after the last one in the order of clauseKind.
	last := clauseFrom
	for p.tok.kind != tokenEnd {
		if p.tok.is("load") && last < clauseSelect {
			if err := p.scripts.load(); err != nil {
				return nil, err
			}
			continue
		}
		next, err := p.clause(last)
		if err != nil {
			return nil, err
		}
		if err := p.rest(q, next); err != nil {
			return nil, err
		}
		if err := p.scripts.named(q, next); err != nil {
			return nil, err
		}
		last = next
	}
	if err := q.ResolveEach(); err != nil {
		return nil, p.fail(0, "%v", err).because(err)
	}
	if err := p.resolve(q); err != nil {
		return nil, err
	}
	if err := p.scripts.check(q); err != nil {
		return nil, err
	}
	if err := q.CheckFused(); err != nil {
		return nil, p.fail(0, "%v", err).because(err)
	}
	if err := q.checkEach(); err != nil {
		return nil, p.fail(0, "%v", err).because(err)
	}
	return q, nil
}

// clauseKind is the kind of a clause. The constants are in the order of clauses
// in a query.
type clauseKind uint8

const (
	clauseFrom clauseKind = iota
	clauseGroup
	clauseWhere
	clauseOrder
	clauseSelect
	clauseInclude
	clauseLimit
	clauseOffset
	clauseNone
)

// clauseNames are the keywords that clauses begin with.
var clauseNames = [...]string{"from", "group by", "where", "order by", "select", "include", "limit", "offset"}

// keyword returns the first keyword of a clause.
func (c clauseKind) keyword() string {
	word, _, _ := strings.Cut(clauseNames[c], " ")
	return word
}

// clause parses the keywords of a clause. It refuses a clause that must not follow
// last.
func (p *parser) clause(last clauseKind) (clauseKind, error) {
	for next := clauseFrom; next < clauseNone; next++ {
		if !p.tok.is(next.keyword()) {
			continue
		}
		switch {
		case next == last && next != clauseFrom:
			return 0, p.fail(p.tok.offset, "a second %s", clauseNames[next]).expecting(after(last))
		case next <= last:
			return 0, p.fail(p.tok.offset, "%s comes too late", clauseNames[next]).
				expecting(after(last)).hinting(place(next, last))
		}
		p.advance()
		if strings.HasSuffix(clauseNames[next], " by") && !p.accept("by") {
			return 0, p.unexpected(`"by" behind `+next.keyword(), "by")
		}
		return next, nil
	}

	// Not a clause of Jay's: perhaps one of RavenDB's, or a misspelling.
	if p.tok.kind == tokenWord {
		if message, ok := refusedClauses[strings.ToLower(p.tok.text)]; ok {
			refused := p.fail(p.tok.offset, "%s", message)
			if p.tok.is("update") {
				refused = refused.because(ErrUpdate)
			}
			return 0, refused
		}
	}
	if last == clauseFrom && p.tok.isSymbol("(") {
		return 0, p.fail(p.tok.offset, "a collection takes no options in parentheses: revisions are not there yet").hinting("a condition stands in where")
	}
	expected, words := more(last)
	for c := last + 1; c < clauseNone; c++ {
		words = append(words, c.keyword())
	}
	err := p.unexpected(expected+after(last), words...)
	if last == clauseWhere {
		err = p.hintText(err)
	}
	if syntax, ok := err.(*SyntaxError); ok && last == clauseFrom && p.tok.kind == tokenWord && syntax.Hint == "" {
		syntax.Hint = "an alias stands behind as"
	}
	return 0, err
}

// place returns a hint where clause c belongs, which was found after last.
func place(c, last clauseKind) string {
	if c == clauseFrom {
		return "a query has one from, at its beginning"
	}
	return clauseNames[c] + " stands before " + clauseNames[last]
}

// after lists the clauses that may follow last.
func after(last clauseKind) string {
	names := clauseNames[last+1:]
	if len(names) == 0 {
		return "the end"
	}
	return `"` + strings.Join(names, `", "`) + `" or the end`
}

// more lists the tokens that may continue a clause, and the keywords among them.
func more(last clauseKind) (expected string, words []string) {
	switch last {
	case clauseFrom:
		return `"as", `, nil
	case clauseWhere:
		return `"and", "or", `, []string{"and", "or"}
	case clauseOrder:
		return `",", "asc", "desc", `, []string{"desc", "asc", "descending", "ascending"}
	case clauseLimit, clauseOffset:
		return "", nil
	}
	return `",", `, nil
}

// rest parses the rest of a clause, after its keywords.
func (p *parser) rest(q *Query, c clauseKind) (err error) {
	switch c {
	case clauseGroup:
		return p.groupBy(q)
	case clauseWhere:
		p.where = p.tok.offset
		q.Where, err = p.condition()
		return err
	case clauseOrder:
		return orders{p}.all(q)
	case clauseSelect:
		return p.selects(q)
	case clauseInclude:
		return p.include(q)
	case clauseLimit:
		return p.limit(q)
	}
	q.Offset, _, err = p.count("offset")
	return err
}
