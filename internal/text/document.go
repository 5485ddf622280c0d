package text

import (
	"maps"
	"math/bits"
	"slices"
	"sort"
)

// ValueGap is how many positions are left free between two texts of one field, such as the elements of an array, so that no
// phrase reaches from one into the next.
const ValueGap = 100

// maxSeen is how many terms a Document remembers the places of.
const maxSeen = 4096

// Document counts how often the clauses of a Search occur in the texts of one field of a document. It is used again for the
// next document after Reset, and is not safe for concurrent use. Its memory does not grow with the document, and its work for a term does not
// grow with how often the search has it.
type Document struct {
	a        *Analyzer
	search   *Search
	terms    map[string][]place // that are meant by slots of one term
	names    []string           // of these terms, ascending
	patterns []place            // of the other slots, with their matchers
	matchers []*Matcher
	seen     map[string][]place // all places of terms that were found, if there are patterns
	states   []state            // by clause

	// Length is how many terms the texts have.
	Length int

	// Spend is told of the work, in bytes, and returns false to end it: then the counts have no meaning. It may be nil.
	Spend func(bytes int) bool

	base int      // position of the first word of the next text
	here []placed // scratch
}

// placed is a term of a phrase at a position.
type placed struct {
	place
	position int
}

// place is where a term belongs in a clause.
type place struct {
	clause int
	slots  slots // of a phrase in order: a bit for each offset at which the term is
	group  int   // of a phrase in any order
}

// state is how far a clause is in a text.
type state struct {
	count int

	// Of a phrase in order: bit i of begun is set if its slots up to offset i are found in their places, so that the last of them is at position
	// last. Offsets without a slot, such as those of stop words, are the bits of gaps.
	begun, gaps slots
	last        int

	// Of a phrase in any order: the last positions of each of its terms, as many as the phrase has the term; last is where
	// it was counted.
	recent []ring
}

// NewDocument returns a Document for a search that was parsed with the same analyzer.
func NewDocument(a *Analyzer, s *Search) *Document {
	d := &Document{a: a, search: s, terms: make(map[string][]place), seen: make(map[string][]place), states: make([]state, len(s.Clauses))}
	for i := range s.Clauses {
		for at, m := range d.states[i].init(&s.Clauses[i], i) {
			if term, single := m.Term(); single {
				d.terms[term] = append(d.terms[term], at)
			} else {
				d.patterns = append(d.patterns, at)
				d.matchers = append(d.matchers, m)
			}
		}
	}
	d.names = slices.Sorted(maps.Keys(d.terms))
	d.Reset()
	return d
}

// init prepares the state of a clause and returns the places of its terms, one for slots that mean the same.
func (s *state) init(c *Clause, clause int) func(yield func(place, *Matcher) bool) {
	var firsts []*Matcher
	var places []place
	inOrder := c.Slop < 0
	if inOrder {
		s.begun, s.gaps = newSlots(c.Span+1), newSlots(c.Span+1)
		for i := range c.Span + 1 {
			s.gaps.set(i)
		}
	}
	for j := range c.Slots {
		m := &c.Slots[j].Matcher
		g := slices.IndexFunc(firsts, func(other *Matcher) bool { return other.same(m) })
		if g < 0 {
			g = len(firsts)
			firsts = append(firsts, m)
			places = append(places, place{clause: clause, group: g, slots: newSlots(c.Span + 1)})
			s.recent = append(s.recent, ring{})
		}
		places[g].slots.set(c.Slots[j].Offset)
		if inOrder {
			s.gaps.clear(c.Slots[j].Offset)
		} else {
			s.recent[g].positions = append(s.recent[g].positions, -1)
		}
	}
	return func(yield func(place, *Matcher) bool) {
		for i, at := range places {
			if !yield(at, firsts[i]) {
				return
			}
		}
	}
}

// same reports whether two matchers mean the same terms.
func (m *Matcher) same(o *Matcher) bool {
	return m.kind == o.kind && m.text == o.text && m.distance == o.distance && m.similarity == o.similarity && slices.Equal(m.pattern, o.pattern)
}

// Reset begins another document.
func (d *Document) Reset() {
	d.Length, d.base = 0, 0
	for i := range d.states {
		d.states[i].reset()
	}
}

func (s *state) reset() {
	s.count, s.last = 0, -1
	clear(s.begun)
	for j := range s.recent {
		for k := range s.recent[j].positions {
			s.recent[j].positions[k] = -1
		}
	}
}

// Add adds a text of the field.
func (d *Document) Add(text string) {
	n := d.a.Each(text, func(t Token) bool {
		if d.Spend != nil && !d.Spend(1+t.End-t.Start) {
			return false
		}
		d.Length++
		for _, at := range d.places(t.Term) {
			d.found(at, d.base+t.Position)
		}
		return true
	})
	d.base += n + ValueGap
}

// AddTerms adds all texts of the field at once, of which the terms and the positions of each are known: how many terms they have, each term
// once, in ascending order, and where it is, ascending. It agrees with Add.
func (d *Document) AddTerms(length, terms int, term func(i int) (name []byte, positions []int)) {
	d.Length += length
	d.here = d.here[:0]
	if len(d.patterns) == 0 && len(d.names)*bits.Len(uint(terms)) < terms {
		for _, name := range d.names {
			i := sort.Search(terms, func(i int) bool {
				at, _ := term(i)
				return string(at) >= name
			})
			if i == terms {
				break
			}
			if at, positions := term(i); string(at) == name {
				d.addTerm(d.terms[name], positions)
			}
		}
	} else {
		for i := range terms {
			name, positions := term(i)
			d.addTerm(d.places(name), positions)
		}
	}
	slices.SortStableFunc(d.here, func(a, b placed) int { return a.position - b.position })
	for _, h := range d.here {
		d.found(h.place, h.position)
	}
}

// addTerm adds the positions of a term. Those of phrases are gathered.
func (d *Document) addTerm(places []place, positions []int) {
	for _, at := range places {
		if len(d.search.Clauses[at.clause].Slots) == 1 {
			d.states[at.clause].count += len(positions)
			continue
		}
		for _, position := range positions {
			d.here = append(d.here, placed{at, position})
		}
	}
}

// places returns the places of a term in all clauses.
func (d *Document) places(term []byte) []place {
	if len(d.patterns) == 0 {
		return d.terms[string(term)]
	}
	places, known := d.seen[string(term)]
	if known {
		return places
	}
	places = slices.Clone(d.terms[string(term)])
	for i, m := range d.matchers {
		if m.Matches(term) {
			places = d.addPlace(places, d.patterns[i])
		}
	}
	if len(d.seen) == maxSeen {
		clear(d.seen)
	}
	d.seen[string(term)] = places
	return places
}

// addPlace adds a place, to that of the same phrase if there is one: each position of a phrase in order is looked at once.
func (d *Document) addPlace(places []place, at place) []place {
	for i := range places {
		if o := &places[i]; o.clause == at.clause && d.search.Clauses[at.clause].Slop < 0 {
			o.slots = slices.Clone(o.slots)
			o.slots.or(at.slots)
			return places
		}
	}
	return append(places, at)
}

// found notes that a term of a clause is found at a position.
func (d *Document) found(at place, position int) {
	c, s := &d.search.Clauses[at.clause], &d.states[at.clause]
	switch {
	case len(c.Slots) == 1:
		s.count++
	case c.Slop < 0:
		s.inOrder(c, at, position)
	default:
		s.near(c, at, position)
	}
}

// inOrder counts a phrase when its last slot is found in its place.
func (s *state) inOrder(c *Clause, at place, position int) {
	for range min(position-s.last-1, c.Span+1) { // positions without a term of the phrase
		s.begun.shift()
		s.begun.and(s.gaps)
	}
	s.begun.shift()
	s.begun.set(0)
	s.begun.andEither(at.slots, s.gaps) // a term of the phrase may stand where the phrase says nothing
	s.last = position
	if s.begun.has(c.Span) {
		s.count++
	}
}

// near counts a place where all slots lie within a stretch that ends here.
func (s *state) near(c *Clause, at place, position int) {
	s.recent[at.group].add(position)
	first := position
	for i := range s.recent {
		first = min(first, s.recent[i].oldest())
	}
	if first >= 0 && position > s.last && position-first <= len(c.Slots)-1+c.Slop {
		s.count++
		s.last = position
	}
}

// Counter counts how often one clause occurs in texts of which the positions of its slots are known. It is used again for the next document, and is
// not safe for concurrent use.
type Counter struct {
	document Document
	places   []place // by slot
	next     []int   // by slot: the position that is looked at next
	here     []place // of the slots at one position
}

// NewCounter returns the Counter of a clause.
func NewCounter(c *Clause) *Counter {
	n := &Counter{places: make([]place, len(c.Slots)), next: make([]int, len(c.Slots))}
	n.document = Document{search: &Search{Clauses: []Clause{*c}}, states: make([]state, 1)}
	for at, m := range n.document.states[0].init(c, 0) {
		for j := range c.Slots {
			if c.Slots[j].same(m) {
				n.places[j] = at
			}
		}
	}
	return n
}

// Count returns how often the clause occurs in a text of which the positions of each of its slots are given, ascending. It agrees
// with Document.
func (n *Counter) Count(positions [][]int) int {
	state := &n.document.states[0]
	state.reset()
	clear(n.next)
	for {
		least := -1
		for j, list := range positions {
			if n.next[j] < len(list) && (least < 0 || list[n.next[j]] < least) {
				least = list[n.next[j]]
			}
		}
		if least < 0 {
			return state.count
		}
		n.here = n.here[:0]
		for j, list := range positions {
			if n.next[j] < len(list) && list[n.next[j]] == least {
				n.next[j]++
				if !slices.ContainsFunc(n.here, func(p place) bool { return p.group == n.places[j].group }) {
					n.here = n.document.addPlace(n.here, n.places[j])
				}
			}
		}
		for _, at := range n.here {
			n.document.found(at, least)
		}
	}
}

// Count returns how often a clause occurs: how often its word, or how many places where its phrase ends.
func (d *Document) Count(clause int) int { return d.states[clause].count }

// slots is a set of offsets in a phrase.
type slots []uint64

func newSlots(n int) slots { return make(slots, (n+63)/64) }

func (s slots) set(i int)      { s[i/64] |= 1 << (i % 64) }
func (s slots) clear(i int)    { s[i/64] &^= 1 << (i % 64) }
func (s slots) has(i int) bool { return s[i/64]>>(i%64)&1 == 1 }

// shift adds one to each offset.
func (s slots) shift() {
	carry := uint64(0)
	for i, w := range s {
		s[i] = w<<1 | carry
		carry = w >> 63
	}
}

func (s slots) or(o slots) {
	for i := range s {
		s[i] |= o[i]
	}
}

func (s slots) and(o slots) {
	for i := range s {
		s[i] &= o[i]
	}
}

func (s slots) andEither(a, b slots) {
	for i := range s {
		s[i] &= a[i] | b[i]
	}
}

// ring has the last positions of a term.
type ring struct {
	positions []int
	next      int // the oldest
}

func (r *ring) add(position int) {
	r.positions[r.next] = position
	r.next = (r.next + 1) % len(r.positions)
}

func (r *ring) oldest() int { return r.positions[r.next] }
