package text

import (
	"slices"
	"unicode/utf8"
)

// Wildcards in a parsed pattern, beside characters.
const (
	manyRunes rune = -1 - iota // any characters, or none
	oneRune                    // any single character
)

func isWild(r rune) bool { return r < 0 }

// Matcher says which terms of documents are meant. It is compared by Matches.
type Matcher struct {
	kind     matchKind
	text     string // of a term, or the beginning of one
	pattern  []rune // of a wildcard, or of a fuzzy word
	distance int

	similarity float64 // of a fuzzy word: what that of a term must be above; below 0 for any
}

type matchKind uint8

const (
	matchTerm matchKind = iota
	matchPrefix
	matchWildcard
	matchFuzzy
)

func newWildcard(pattern []rune) Matcher {
	return Matcher{kind: matchWildcard, text: string(pattern[:slices.IndexFunc(pattern, isWild)]), pattern: pattern}
}

func newFuzzy(word string, distance int, similarity float64) Matcher {
	return Matcher{kind: matchFuzzy, text: "", pattern: []rune(word), distance: distance, similarity: similarity}
}

// Term returns the only term that is meant; single is false if there may be others.
func (m *Matcher) Term() (term string, single bool) { return m.text, m.kind == matchTerm }

// Prefix returns what all terms begin with that are meant; it may be empty.
func (m *Matcher) Prefix() string { return m.text }

// Matches reports whether a term is meant. It is safe for concurrent use.
func (m *Matcher) Matches(term []byte) bool {
	switch m.kind {
	case matchTerm:
		return string(term) == m.text
	case matchPrefix:
		return len(term) >= len(m.text) && string(term[:len(m.text)]) == m.text
	case matchWildcard:
		return len(term) >= len(m.text) && string(term[:len(m.text)]) == m.text && matchWild(m.pattern, term)
	default:
		return m.differs(term)
	}
}

// differs reports whether a term is a fuzzy word.
func (m *Matcher) differs(term []byte) bool {
	distance := within(m.pattern, term, m.distance)
	return distance <= m.distance && (m.similarity < 0 || similar(distance, len(m.pattern), utf8.RuneCount(term)) > m.similarity)
}

// similar returns the similarity of two texts of so many characters, which are so many changes apart: one less the share of the shorter one that has changed. It is that
// of Lucene's fuzzy queries.
func similar(changes, a, b int) float64 {
	shorter := min(a, b)
	if shorter == 0 {
		return 0
	}
	return 1 - float64(changes)/float64(shorter)
}

// matchWild reports whether a whole term matches a pattern. After a mismatch only the last manyRunes can take more, so the work is at
// most the product of the lengths.
func matchWild(pattern []rune, term []byte) bool {
	p, t := 0, 0
	lastAny, from := -1, 0
	for t < len(term) {
		r, size := utf8.DecodeRune(term[t:])
		switch {
		case p < len(pattern) && pattern[p] == manyRunes:
			lastAny, from = p, t
			p++
		case p < len(pattern) && (pattern[p] == oneRune || pattern[p] == r):
			p++
			t += size
		case lastAny >= 0:
			_, skip := utf8.DecodeRune(term[from:])
			from += skip
			p, t = lastAny+1, from
		default:
			return false
		}
	}
	for p < len(pattern) && pattern[p] == manyRunes {
		p++
	}
	return p == len(pattern)
}
