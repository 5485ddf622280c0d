package text

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a search.
const (
	// MaxSearchBytes is the greatest length of the text of a search.
	MaxSearchBytes = 64 << 10

	// MaxClauses is how many words and phrases a search has at most, and MaxSlots how many terms they have together.
	MaxClauses = 1024
	MaxSlots   = 4096

	// MaxPatterns is how many of them may be wildcards or fuzzy, as each term of a document is compared with all of these.
	MaxPatterns = 64

	// MaxNear is how many words a phrase in any order has at most.
	MaxNear = 64

	// MaxSlop is the greatest number of words between those of a phrase that it may ask for.
	MaxSlop = 50

	// MaxBoost is the greatest weight of a clause; the least is above 0.
	MaxBoost = 1000
)

// SyntaxError is returned for the text of a search that breaks a rule.
type SyntaxError struct {
	Offset int    // in bytes, of what breaks it
	Rule   string // that is broken
}

// Error names the place and the rule.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("at byte %d of the search: %s", e.Offset, e.Rule)
}

// Occur is what a clause means for a document.
type Occur uint8

const (
	Should  Occur = iota // one of these must be true, or all of them if the search says so
	Must                 // +word
	MustNot              // -word
)

// Clause is one word, pattern or phrase of a search.
type Clause struct {
	Text  string // as the search has it
	Occur Occur
	Boost float64 // by which its score is multiplied, 1 unless the search says otherwise

	// Slots are the terms that must follow one another; one of them for a word. Span is how many positions the
	// first and the last of them are apart. A word that the search has twice is one clause, of twice the weight.
	Slots []Slot
	Span  int

	// Slop is how many other words may be between those of a phrase, which may come in any order then. It is -1 for a phrase
	// as it is written.
	Slop int
}

// Slot is a term of a clause.
type Slot struct {
	Offset  int // of its position from that of the first slot
	Matcher     // which terms of documents are meant
}

// Search is a parsed search for words. The zero Search finds nothing.
type Search struct {
	Clauses []Clause
	All     bool // each Should must be true
}

// Parse parses what people type:
//
//	oak                a word
//	"fallen leaves"    words that follow one another
//	"oak leaves"~5     the same in any order, with up to five other words between them
//	tre*, w?nd*r       words that begin so, or with any characters at * and any one at ?
//	maple~, maple~1    words that differ by two characters at most, or by one: put in, left out, replaced, or two changed places
//	maple~0.7          those of them with a similarity above 0.7: one less the share of the shorter word that differs, as in Lucene
//	-rotten, +ripe     must not, and must be there
//	oak^2              counts twice for the score
//	\* \" \- …         the character itself
//
// Words go through the analyzer of the field. One that becomes several terms, such as wind-fallen, means that these follow one another, and one
// that becomes none, such as a stop word, is left out. Patterns are compared with terms, so with the stems of a language. With all, every
// word must be there, otherwise one of them. Words that must not be there only leave out documents: a search of nothing else finds all
// documents without them.
//
// The error is a *SyntaxError.
func Parse(a *Analyzer, search string, all bool) (*Search, error) {
	if len(search) > MaxSearchBytes {
		return nil, &SyntaxError{MaxSearchBytes, fmt.Sprintf("at most %d bytes", MaxSearchBytes)}
	}
	p := parser{a: a, text: search, search: &Search{All: all}}
	for p.skipSpace(); p.at < len(p.text); p.skipSpace() {
		if err := p.clause(); err != nil {
			return nil, err
		}
	}
	return p.search, nil
}

type parser struct {
	a        *Analyzer
	text     string
	at       int
	search   *Search
	slots    int // of all clauses
	patterns int
}

func (p *parser) fail(offset int, rule string, args ...any) error {
	return &SyntaxError{offset, fmt.Sprintf(rule, args...)}
}

func (p *parser) skipSpace() {
	rest := strings.TrimLeftFunc(p.text[p.at:], unicode.IsSpace)
	p.at = len(p.text) - len(rest)
}

// next reports whether the text goes on with b, and steps over it.
func (p *parser) next(b byte) bool {
	if p.at < len(p.text) && p.text[p.at] == b {
		p.at++
		return true
	}
	return false
}

// clause parses a clause, and adds it unless it has no term.
func (p *parser) clause() error {
	start := p.at
	c := Clause{Boost: 1, Slop: -1}
	switch {
	case p.next('-'):
		c.Occur = MustNot
	case p.next('+'):
		c.Occur = Must
	}
	if r, _ := utf8.DecodeRuneInString(p.text[p.at:]); c.Occur != Should && (p.at == len(p.text) || unicode.IsSpace(r)) {
		return nil // a dash or a plus between words
	}
	var err error
	if p.next('"') {
		err = p.phrase(&c, start)
	} else {
		err = p.word(&c, start)
	}
	if err == nil {
		err = p.boost(&c)
	}
	if err != nil || len(c.Slots) == 0 {
		return err
	}
	c.Text, c.Span = p.text[start:p.at], c.Slots[len(c.Slots)-1].Offset
	if p.slots += len(c.Slots); p.slots > MaxSlots {
		return p.fail(start, "at most %d terms", MaxSlots)
	}
	if p.repeated(&c) {
		return nil
	}
	if len(p.search.Clauses) == MaxClauses {
		return p.fail(start, "at most %d words and phrases", MaxClauses)
	}
	p.search.Clauses = append(p.search.Clauses, c)
	return nil
}

// repeated adds the weight of a clause to that of one that is there already.
func (p *parser) repeated(c *Clause) bool {
	if len(c.Slots) > 1 {
		return false
	}
	for i := range p.search.Clauses {
		if o := &p.search.Clauses[i]; o.Occur == c.Occur && len(o.Slots) == 1 && o.Slots[0].same(&c.Slots[0].Matcher) {
			o.Boost = min(o.Boost+c.Boost, MaxBoost)
			return true
		}
	}
	return false
}

// phrase parses what follows a quotation mark.
func (p *parser) phrase(c *Clause, start int) error {
	var words strings.Builder
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
		words.WriteString(p.text[p.at : p.at+size])
		p.at += size
	}
	c.Slots = p.terms(words.String())
	if p.next('~') {
		at := p.at
		n, err := strconv.Atoi(p.digits())
		if err != nil || n > MaxSlop {
			return p.fail(at, "a number from 0 to %d follows ~", MaxSlop)
		}
		if len(c.Slots) > MaxNear {
			return p.fail(start, "a phrase with ~ has at most %d terms", MaxNear)
		}
		c.Slop = n
	}
	return nil
}

// digits steps over digits and returns them.
func (p *parser) digits() string {
	start := p.at
	for p.at < len(p.text) && '0' <= p.text[p.at] && p.text[p.at] <= '9' {
		p.at++
	}
	return p.text[start:p.at]
}

// boost parses ^ and a number, if they are there.
func (p *parser) boost(c *Clause) error {
	if p.next('^') {
		at := p.at
		whole := p.digits()
		if p.next('.') {
			whole += "." + p.digits()
		}
		boost, err := strconv.ParseFloat(whole, 64)
		if err != nil || boost <= 0 || boost > MaxBoost {
			return p.fail(at, "a number above 0 and up to %d follows ^", MaxBoost)
		}
		c.Boost = boost
	}
	if r, _ := utf8.DecodeRuneInString(p.text[p.at:]); p.at < len(p.text) && !unicode.IsSpace(r) {
		return p.fail(p.at, "a space ends a word or a phrase")
	}
	return nil
}

// word parses a word with what follows it up to the boost.
func (p *parser) word(c *Clause, start int) error {
	var pattern []rune // with wildcards
	wild := false
	for p.at < len(p.text) {
		r, size := utf8.DecodeRuneInString(p.text[p.at:])
		if unicode.IsSpace(r) || r == '^' || r == '~' {
			break
		}
		p.at += size
		switch r {
		case '*':
			r, wild = manyRunes, true
		case '?':
			r, wild = oneRune, true
		case '"':
			return p.fail(p.at-1, `a quotation mark in a word is written \"`)
		case '\\':
			if p.at == len(p.text) {
				return p.fail(p.at-1, `a character follows \`)
			}
			r, size = utf8.DecodeRuneInString(p.text[p.at:])
			p.at += size
		}
		pattern = append(pattern, r)
	}
	if len(pattern) == 0 {
		return p.fail(start, "a word is missing")
	}
	fuzzy := p.next('~')
	switch {
	case fuzzy && wild:
		return p.fail(start, "a word with a wildcard cannot be fuzzy")
	case fuzzy:
		return p.fuzzy(c, string(pattern), start)
	case wild:
		return p.pattern(c, pattern, start)
	}
	c.Slots = p.terms(string(pattern))
	return nil
}

// terms returns the terms that follow one another where words are found.
func (p *parser) terms(words string) (slots []Slot) {
	first := -1
	p.a.Each(words, func(t Token) bool {
		if t.Short && !t.First {
			return true // the terms before it say so already
		}
		if first < 0 {
			first = t.Position
		}
		m := Matcher{kind: matchTerm, text: string(t.Term)}
		if t.Short {
			m.kind = matchPrefix
		}
		slots = append(slots, Slot{t.Position - first, m})
		return len(slots) <= MaxSlots
	})
	return slots
}

// pattern makes a clause of a word with wildcards.
func (p *parser) pattern(c *Clause, pattern []rune, start int) error {
	last := len(pattern) - 1
	begins := pattern[last] == manyRunes && !slices.ContainsFunc(pattern[:last], isWild)
	if begins && p.inParts(pattern[:last]) {
		c.Slots = p.terms(string(pattern[:last])) // each part of a word is found
		return nil
	}
	if p.inParts(pattern) {
		return p.fail(start, "a wildcard in front of or within a word needs words as terms, and the analyzer %s makes parts of them", p.a.name)
	}
	if len(pattern) > MaxTermBytes {
		return p.fail(start, "a word with wildcards has at most %d characters", MaxTermBytes)
	}
	if err := p.countPattern(start); err != nil {
		return err
	}
	m := newWildcard(p.fold(pattern))
	if begins {
		m = Matcher{kind: matchPrefix, text: m.text}
	}
	c.Slots = []Slot{{0, m}}
	return nil
}

// fuzzy makes a clause of a word that may differ.
func (p *parser) fuzzy(c *Clause, word string, start int) error {
	distance, similarity, err := p.difference()
	if err != nil {
		return err
	}
	if p.inParts([]rune(word)) {
		return p.fail(start, "a fuzzy word needs words as terms, and the analyzer %s makes parts of them", p.a.name)
	}
	slots := p.terms(word)
	if len(slots) > 1 {
		return p.fail(start, "a fuzzy word must be a single one")
	}
	if len(slots) == 1 && distance > 0 {
		slots[0].Matcher = newFuzzy(slots[0].text, distance, similarity)
	}
	c.Slots = slots
	return p.countPattern(start)
}

// difference parses how much a word may differ: by how many changes at most, and above which similarity, -1 for any.
func (p *parser) difference() (distance int, similarity float64, err error) {
	at := p.at
	whole := p.digits()
	if whole == "" {
		return MaxDistance, -1, nil
	}
	if p.next('.') {
		similarity, err := strconv.ParseFloat(whole+"."+p.digits(), 64)
		if err != nil || similarity >= 1 {
			return 0, 0, p.fail(at, "a similarity from 0 up to but without 1 follows ~, such as 0.7, or how many characters may differ")
		}
		return MaxDistance, similarity, nil
	}
	distance, err = strconv.Atoi(whole)
	if err != nil || distance > MaxDistance {
		return 0, 0, p.fail(at, "a number from 0 to %d follows ~, or a similarity such as 0.7", MaxDistance)
	}
	return distance, -1, nil
}

func (p *parser) countPattern(start int) error {
	if p.patterns++; p.patterns > MaxPatterns {
		return p.fail(start, "at most %d words with wildcards or ~", MaxPatterns)
	}
	return nil
}

// inParts reports whether the analyzer makes parts of words as the terms of this one, without its wildcards.
func (p *parser) inParts(pattern []rune) bool {
	if p.a.grams > 0 {
		return true
	}
	parts := false
	p.a.split(string(slices.DeleteFunc(slices.Clone(pattern), isWild)), func(w word) bool {
		parts = w.kind == joined
		return !parts
	})
	return parts
}

// fold writes a pattern as terms are written.
func (p *parser) fold(pattern []rune) []rune {
	kind := folded
	p.a.split("a", func(w word) bool {
		kind = w.kind
		return false
	})
	if kind == exact {
		return pattern
	}
	var out []rune
	for len(pattern) > 0 {
		n := slices.IndexFunc(pattern, isWild)
		if n == 0 {
			out = append(out, pattern[0])
			pattern = pattern[1:]
			continue
		}
		if n < 0 {
			n = len(pattern)
		}
		out = append(out, []rune(string(appendFolded(nil, string(pattern[:n]))))...)
		pattern = pattern[n:]
	}
	return out
}

// Matches reports whether the search finds a document of which count says how often each clause occurs, in any of
// its fields. If a clause must be there, those that should be only count for the score, unless all are wanted.
func (s *Search) Matches(count func(clause int) int) bool {
	var must, should, found, not bool
	for i := range s.Clauses {
		switch there := count(i) > 0; s.Clauses[i].Occur {
		case MustNot:
			if there {
				return false
			}
			not = true
		case Must:
			if !there {
				return false
			}
			must = true
		case Should:
			if s.All && !there {
				return false
			}
			should, found = true, found || there
		}
	}
	if must || !should {
		return must || not
	}
	return found
}

// FoldPrefix returns the beginning of a word as the terms are written that begin so. Terms of a language are stems, which may be shorter than
// the beginning of a word.
func (a *Analyzer) FoldPrefix(prefix string) string {
	p := parser{a: a}
	return string(p.fold([]rune(prefix)))
}

// Single returns the only term of a text; n is how many it has.
func (a *Analyzer) Single(text string) (term string, n int) {
	a.Each(text, func(t Token) bool {
		if n++; n == 1 {
			term = string(t.Term)
		}
		return n < 2
	})
	return term, n
}
