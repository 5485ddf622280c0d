package text

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a query in Lucene's syntax.
const (
	// MaxLuceneDepth is how deep its groups may be nested.
	MaxLuceneDepth = 50

	// MaxLuceneClauses is how many words, phrases and groups it has at most.
	MaxLuceneClauses = MaxClauses
)

// Lucene is a clause of a query in Lucene's syntax: a group, if Group is not nil, or else a word, a pattern or a phrase.
type Lucene struct {
	Offset int   // in the text, in bytes
	Occur  Occur // what it means in its group
	Field  string
	Words  string   // the search for it, as Parse takes it, with its boost
	Any    bool     // it stands for any text of the field: *
	All    bool     // it is true of all documents: *:*
	Group  []Lucene // in their order
	Boost  float64  // of a group, Any and All; 1 unless the text says otherwise
}

// ParseLucene parses a query in the syntax of Lucene's classic query parser, whose clauses are in the returned group:
//
//	oak "fallen leaves"~5 tre* w?nd* maple~0.7 oak^2   as in a search, but for maple~, which is maple~0.5
//	+ripe -rotten NOT rotten !rotten                   must, and must not, be there
//	oak AND ripe, oak && ripe                          both must be there
//	oak OR ripe, oak || ripe, oak ripe                 one of them
//	(oak OR ash) AND ripe, (oak ash)^2                 groups
//	Title:oak, Title:(oak ash)                         in another field
//	*, *:*                                             any text of the field, any document
//	\( \: \" …                                         the character itself
//
// AND makes what is on both sides of it necessary, and OR nothing: oak OR ash AND ripe is the same as oak +ash +ripe, in which oak only counts for the
// score. This is Lucene's way. Ranges such as [a TO b] are refused. The error is a *SyntaxError.
func ParseLucene(query string) ([]Lucene, error) {
	if len(query) > MaxSearchBytes {
		return nil, &SyntaxError{MaxSearchBytes, fmt.Sprintf("at most %d bytes", MaxSearchBytes)}
	}
	p := lucene{parser: parser{text: query}}
	list, err := p.group("", 0)
	if err == nil && p.at < len(p.text) {
		err = p.fail(p.at, `a parenthesis in a word is written \)`)
	}
	return list, err
}

// lucene parses Lucene's syntax.
type lucene struct {
	parser
	clauses int // so far
}

// luceneSigns end a word.
const luceneSigns = `!():^[]"{}~`

// group parses clauses up to the end of the text, or to the parenthesis that ends a group.
func (p *lucene) group(field string, depth int) (list []Lucene, err error) {
	if depth > MaxLuceneDepth {
		return nil, p.fail(p.at, "groups are nested too deep: %d levels are the most", MaxLuceneDepth)
	}
	list = []Lucene{}
	for {
		p.skipSpace()
		if p.at == len(p.text) || p.text[p.at] == ')' {
			return list, nil
		}
		start := p.at
		both := p.operator("AND", "&&")
		if both || p.operator("OR", "||") {
			if len(list) == 0 {
				return nil, p.fail(start, "an operator stands between two clauses")
			}
			p.skipSpace()
		}
		if both {
			if last := &list[len(list)-1]; last.Occur != MustNot {
				last.Occur = Must
			}
		}
		one := Lucene{Field: field, Boost: 1}
		switch {
		case p.next('+'):
			one.Occur = Must
		case p.next('-'), p.next('!'), p.operator("NOT", ""):
			one.Occur = MustNot
		case both:
			one.Occur = Must
		}
		p.skipSpace()
		if p.at == len(p.text) || p.text[p.at] == ')' {
			return nil, p.fail(start, "a word, a phrase or a group follows an operator")
		}
		if p.clauses++; p.clauses > MaxLuceneClauses {
			return nil, p.fail(p.at, "at most %d words, phrases and groups", MaxLuceneClauses)
		}
		if err := p.clause(&one, depth); err != nil {
			return nil, err
		}
		list = append(list, one)
	}
}

// operator steps over an operator, which is a word of its own.
func (p *lucene) operator(word, sign string) bool {
	for _, op := range []string{word, sign} {
		rest, is := strings.CutPrefix(p.text[p.at:], op)
		if !is || op == "" {
			continue
		}
		if r, _ := utf8.DecodeRuneInString(rest); rest == "" || unicode.IsSpace(r) || strings.ContainsRune(`()"+-!`, r) {
			p.at += len(op)
			return true
		}
	}
	return false
}

// clause parses what follows the operators of a clause.
func (p *lucene) clause(one *Lucene, depth int) (err error) {
	one.Offset = p.at
	if strings.HasPrefix(p.text[p.at:], "*:*") {
		p.at += 3
		one.All = true
		one.Boost, err = p.weight()
		return err
	}
	raw, err := p.word()
	if err != nil {
		return err
	}
	if len(raw) > 0 && p.next(':') {
		if one.Field, err = p.fieldOf(raw, one.Offset); err != nil {
			return err
		}
		p.skipSpace()
		one.Offset = p.at
		if raw, err = p.word(); err != nil {
			return err
		}
		if p.at < len(p.text) && p.text[p.at] == ':' {
			return p.fail(p.at, `a colon in a word is written \:`)
		}
	}
	if len(raw) > 0 {
		return p.term(one, raw)
	}
	switch {
	case p.next('('):
		if one.Group, err = p.group(one.Field, depth+1); err != nil {
			return err
		}
		if !p.next(')') {
			return p.fail(one.Offset, "a group ends with a parenthesis")
		}
		one.Boost, err = p.weight()
		return err
	case p.next('"'):
		return p.phrase(one)
	case p.at < len(p.text) && (p.text[p.at] == '[' || p.text[p.at] == '{'):
		return p.fail(p.at, `there are no ranges such as [a TO b], and a bracket in a word is written \[: a condition such as Name between 'a' and 'b' stands beside lucene()`)
	}
	return p.fail(p.at, "a word, a phrase or a group is missing")
}

// word steps over a word, and returns it with what it escapes behind a sign: escaped runes are below 0.
func (p *lucene) word() (raw []rune, err error) {
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		if unicode.IsSpace(r) || strings.ContainsRune(luceneSigns, r) {
			break
		}
		p.at += size
		if r == '\\' {
			if p.at == len(p.text) {
				return nil, p.fail(p.at-1, `a character follows \`)
			}
			r, size = utf8.DecodeRuneInString(p.text[p.at:])
			p.at += size
			r = -r
		}
		raw = append(raw, r)
	}
	return raw, nil
}

// fieldOf returns the name of a field in front of a colon.
func (p *lucene) fieldOf(raw []rune, start int) (string, error) {
	var name strings.Builder
	for _, r := range raw {
		if r == '*' || r == '?' {
			return "", p.fail(start, "a field has no wildcards")
		}
		name.WriteRune(max(r, -r))
	}
	return name.String(), nil
}

// term writes a word as a search has it, with what follows it.
func (p *lucene) term(one *Lucene, raw []rune) error {
	if len(raw) == 1 && raw[0] == '*' {
		one.Any = true
		var err error
		one.Boost, err = p.weight()
		return err
	}
	var b strings.Builder
	for i, r := range raw {
		switch {
		case r == '*' || r == '?':
		case strings.ContainsRune(`"*?~^\`, max(r, -r)), unicode.IsSpace(max(r, -r)), i == 0 && (r == -'-' || r == -'+'):
			b.WriteByte('\\')
		}
		b.WriteRune(max(r, -r))
	}
	if p.next('~') {
		b.WriteByte('~')
		if n := p.number(); n != "" {
			b.WriteString(n)
		} else {
			b.WriteString("0.5")
		}
	}
	return p.words(one, &b)
}

// phrase writes a phrase as a search has it, with what follows it.
func (p *lucene) phrase(one *Lucene) error {
	start := p.at - 1
	for {
		if p.at == len(p.text) {
			return p.fail(start, "a phrase ends with a quotation mark")
		}
		if p.next('"') {
			break
		}
		if p.next('\\') && p.at == len(p.text) {
			return p.fail(p.at-1, `a character follows \`)
		}
		_, size := utf8.DecodeRuneInString(p.text[p.at:])
		p.at += size
	}
	var b strings.Builder
	b.WriteString(p.text[start:p.at])
	if p.next('~') {
		b.WriteString("~" + p.number())
	}
	return p.words(one, &b)
}

// number steps over a number and returns it.
func (p *lucene) number() string {
	n := p.digits()
	if n != "" && p.next('.') {
		n += "." + p.digits()
	}
	return n
}

// words ends a word or a phrase with its boost.
func (p *lucene) words(one *Lucene, b *strings.Builder) error {
	if p.next('^') {
		b.WriteString("^" + p.number())
	}
	one.Words = b.String()
	if p.at < len(p.text) && strings.IndexByte(`~^:`, p.text[p.at]) >= 0 {
		return p.fail(p.at, `unexpected %q: in a word it is written \%c`, p.text[p.at], p.text[p.at])
	}
	return nil
}

// weight parses the boost of what is no word.
func (p *lucene) weight() (float64, error) {
	if !p.next('^') {
		return 1, nil
	}
	at := p.at
	boost, err := strconv.ParseFloat(p.number(), 64)
	if err != nil || boost <= 0 || boost > MaxBoost {
		return 1, p.fail(at, "a number above 0 and up to %d follows ^", MaxBoost)
	}
	return boost, nil
}
