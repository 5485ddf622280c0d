package text

import (
	"slices"
	"strings"
	"unicode/utf8"
)

// Bounds of what is marked in the texts of one field of a document.
const (
	// MaxMarkedBytes is how many bytes of the texts are looked at, from the first on.
	MaxMarkedBytes = 1 << 20
	// MaxMarks is how many places are found at most.
	MaxMarks = 4096
)

// Mark is a place at which a clause of a search occurs: a word, or a phrase in order from its first word to its last. A phrase in any order
// has a mark for each of its words.
type Mark struct {
	Text       int // which of the texts of the field
	Start, End int // its bytes in this text
	Clause     int
}

// Marker finds where the clauses of one search occur in the texts of a field, those that must not be there left out. It is used again for the
// next document after Reset, and is not safe for concurrent use. Its memory does not grow with the texts, but for the marks, and its work for
// a text is that of a Document.
type Marker struct {
	document *Document
	recent   []spot // by position, the last ones; as many as a phrase can reach back
	texts    int
	bytes    int // that may still be looked at
	marks    []Mark
}

// spot is where the word at a position is.
type spot struct{ position, start, end int }

// NewMarker returns the Marker of a search that was parsed with the analyzer. The clauses of its marks are counted without those that must not
// be there.
func NewMarker(a *Analyzer, s *Search) *Marker {
	wanted := &Search{Clauses: slices.DeleteFunc(slices.Clone(s.Clauses), func(c Clause) bool { return c.Occur == MustNot })}
	reach := 0
	for i := range wanted.Clauses {
		if c := &wanted.Clauses[i]; len(c.Slots) > 1 {
			reach = max(reach, c.Span, len(c.Slots)+c.Slop)
		}
	}
	m := &Marker{document: NewDocument(a, wanted), recent: make([]spot, reach+1)}
	m.Reset()
	return m
}

// Clauses is how many clauses the marks are of.
func (m *Marker) Clauses() int { return len(m.document.search.Clauses) }

// SetSpend makes spend told of the work, in bytes; it returns false to end it, and then the marks have no meaning.
func (m *Marker) SetSpend(spend func(bytes int) bool) { m.document.Spend = spend }

// Reset begins another document.
func (m *Marker) Reset() {
	m.document.Reset()
	m.texts, m.bytes, m.marks = 0, MaxMarkedBytes, m.marks[:0]
	for i := range m.recent {
		m.recent[i].position = -1
	}
}

// Add marks a text of the field.
func (m *Marker) Add(text string) {
	head := beginning(text, m.bytes)
	m.bytes -= len(head)
	d := m.document
	n := d.a.Each(head, func(t Token) bool {
		if d.Spend != nil && !d.Spend(1+t.End-t.Start) {
			return false
		}
		if t.End < len(head) || len(head) == len(text) { // else the word may go on
			m.token(&t)
		}
		return len(m.marks) < MaxMarks
	})
	d.base += n + ValueGap
	m.texts++
}

// beginning returns the first bytes of a text, at most limit, that are whole characters.
func beginning(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// token marks what ends with a token.
func (m *Marker) token(t *Token) {
	d := m.document
	position := d.base + t.Position
	m.recent[position%len(m.recent)] = spot{position, t.Start, t.End}
	for _, at := range d.places(t.Term) {
		s := &d.states[at.clause]
		before := s.count
		d.found(at, position)
		if s.count > before {
			m.mark(at.clause, s, position, t)
		}
	}
}

// mark adds the marks of a clause that was found at a position.
func (m *Marker) mark(clause int, s *state, position int, t *Token) {
	switch c := &m.document.search.Clauses[clause]; {
	case len(c.Slots) == 1:
		m.marks = append(m.marks, Mark{m.texts, t.Start, t.End, clause})
	case c.Slop < 0:
		if first, known := m.spotAt(position - c.Span); known {
			m.marks = append(m.marks, Mark{m.texts, first.start, t.End, clause})
		}
	default:
		for i := range s.recent {
			for _, p := range s.recent[i].positions {
				if spot, known := m.spotAt(p); known {
					m.marks = append(m.marks, Mark{m.texts, spot.start, spot.end, clause})
				}
			}
		}
	}
}

// spotAt returns where the word at a position of the present text is.
func (m *Marker) spotAt(position int) (at spot, known bool) {
	if position < m.document.base {
		return at, false
	}
	at = m.recent[position%len(m.recent)]
	return at, at.position == position
}

// Marks returns the marks of the texts that were added, valid until Reset, in no order.
func (m *Marker) Marks() []Mark { return m.marks }

// joinMarks sorts marks by their places, and makes one of those that overlap.
func joinMarks(marks []Mark) []Mark {
	slices.SortStableFunc(marks, func(a, b Mark) int {
		if a.Text != b.Text {
			return a.Text - b.Text
		}
		return a.Start - b.Start
	})
	kept := marks[:0]
	for _, m := range marks {
		if n := len(kept); n > 0 && kept[n-1].Text == m.Text && m.Start < kept[n-1].End {
			kept[n-1].End = max(kept[n-1].End, m.End)
			continue
		}
		kept = append(kept, m)
	}
	return kept
}

// escaper writes text so that it means itself in HTML, also in the values of attributes.
var escaper = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;")
