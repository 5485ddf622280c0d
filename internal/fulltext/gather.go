package fulltext

import (
	"encoding/binary"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/text"
)

// gather collects the postings of many documents, and makes blocks of them. Postings and positions of all terms lie one behind the other, so that
// memory is allocated for terms, and not for postings. Documents are added in the order of their ordinals. It is not safe for concurrent use.
type gather struct {
	fields    []gatheredField
	terms     []gatheredTerm
	postings  []gatheredPosting
	positions []int // of one posting after the other
}

// gatheredField is a field, and what is found in the texts that the document under way has in it.
type gatheredField struct {
	numbers map[string]int32 // of terms, by name
	found   []found
	base    int // of the positions of the next text
}

// gatheredTerm is a term of a field.
type gatheredTerm struct {
	field    int
	name     string
	ordinal  uint64 // of the last document that has it
	posting  int    // of that document
	postings int    // how many it has
}

// gatheredPosting is a posting of a term. Its positions begin at start.
type gatheredPosting struct {
	term, count int32
	length      text.LengthClass
	ordinal     uint64
	start       int
}

// gatheredSizes is how much a gather has.
type gatheredSizes struct{ terms, postings, positions int }

// newGather returns a gather without documents. It has room for about as much as another one had.
func newGather(fields int, had gatheredSizes) *gather {
	g := &gather{
		fields:    make([]gatheredField, fields),
		terms:     make([]gatheredTerm, 0, had.terms),
		postings:  make([]gatheredPosting, 0, had.postings),
		positions: make([]int, 0, had.positions),
	}
	for i := range g.fields {
		g.fields[i].numbers = make(map[string]int32, had.terms/fields)
	}
	return g
}

// sizes returns how much there is.
func (g *gather) sizes() gatheredSizes {
	return gatheredSizes{len(g.terms), len(g.postings), len(g.positions)}
}

// number returns the number of a term.
func (g *gather) number(field int, name []byte) int32 {
	numbers := g.fields[field].numbers
	n, known := numbers[string(name)]
	if !known {
		n = int32(len(g.terms))
		g.terms = append(g.terms, gatheredTerm{field: field, name: string(name)})
		numbers[g.terms[n].name] = n
	}
	return n
}

// addText finds the words of a text of the document under way.
func (g *gather) addText(a *text.Analyzer, field int, of string) {
	f := &g.fields[field]
	n := a.Each(of, func(t text.Token) bool {
		f.found = append(f.found, found{int(g.number(field, t.Term)), f.base + t.Position})
		return true
	})
	f.base += n + text.ValueGap
}

// endDocument adds the document under way. It returns the sum of its postings, and how many terms it has in each field.
func (g *gather) endDocument(ordinal uint64) (sum int64, lengths []int) {
	lengths = make([]int, len(g.fields))
	for i := range g.fields {
		f := &g.fields[i]
		lengths[i] = len(f.found)
		sum += g.addFound(ordinal, text.ClassOf(len(f.found)), f.found)
		f.found, f.base = f.found[:0], 0
	}
	return sum, lengths
}

// addFound adds the postings of a field of a document.
func (g *gather) addFound(ordinal uint64, length text.LengthClass, all []found) (sum int64) {
	first := len(g.postings)
	for _, f := range all {
		t := &g.terms[f.number]
		if t.ordinal != ordinal {
			t.ordinal, t.posting = ordinal, len(g.postings)
			t.postings++
			g.postings = append(g.postings, gatheredPosting{term: int32(f.number), ordinal: ordinal, length: length})
		}
		g.postings[t.posting].count++
	}
	start := len(g.positions)
	for i := first; i < len(g.postings); i++ {
		p := &g.postings[i]
		p.start = start
		start += int(p.count)
		p.count = 0 // and as many again after the next loop
	}
	g.positions = slices.Grow(g.positions, len(all))[:start]
	for _, f := range all {
		p := &g.postings[g.terms[f.number].posting]
		g.positions[p.start+int(p.count)] = f.position
		p.count++
	}
	for i := first; i < len(g.postings); i++ {
		p, t := g.posting(i), &g.terms[g.postings[i].term]
		sum += weigh(&p, t.field, t.name)
	}
	return sum
}

// addWords adds a document whose words are known, as endDocument does.
func (g *gather) addWords(ordinal uint64, words *analyzed) (sum int64, lengths []int) {
	for field := range words.fields {
		lengths = append(lengths, words.fields[field].length)
	}
	words.each(ordinal, func(field int, term []byte, p posting) {
		n := g.number(field, term)
		g.terms[n].postings++
		g.postings = append(g.postings, gatheredPosting{n, int32(len(p.positions)), p.length, ordinal, len(g.positions)})
		g.positions = append(g.positions, p.positions...)
		sum += weigh(&p, field, term)
	})
	return sum, lengths
}

// posting returns a posting.
func (g *gather) posting(i int) posting {
	p := &g.postings[i]
	return posting{p.ordinal, p.length, g.positions[p.start : p.start+int(p.count)]}
}

// keyed is a key with its value.
type keyed struct{ key, value []byte }

// blocks returns the blocks of all terms, in the order of their keys.
func (g *gather) blocks(k *keeper) (all []keyed) {
	order := make([]int32, len(g.terms))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &g.terms[a], &g.terms[b]
		if x.field != y.field {
			return x.field - y.field
		}
		return strings.Compare(x.name, y.name)
	})

	// The postings by term, those of one term ascending.
	starts := make([]int32, len(g.terms))
	next := int32(0)
	for _, t := range order {
		starts[t] = next
		next += int32(g.terms[t].postings)
	}
	sorted := make([]int32, len(g.postings))
	for i := range g.postings {
		at := &starts[g.postings[i].term]
		sorted[*at] = int32(i)
		*at++
	}

	all = make([]keyed, 0, len(order))
	var memory []byte // of keys and values; what has been appended stays where it is
	var of []posting
	for _, t := range order {
		term := &g.terms[t]
		of = of[:0]
		for _, i := range sorted[:term.postings] {
			of = append(of, g.posting(int(i)))
		}
		sorted = sorted[term.postings:]
		var prefix []byte
		for _, block := range blocks(of) {
			if cap(memory)-len(memory) < 1<<10 {
				memory = make([]byte, 0, 64<<10)
			}
			if prefix == nil {
				start := len(memory)
				memory = k.appendTermKey(memory, term.field, term.name)
				prefix = memory[start:len(memory):len(memory)]
			}
			start := len(memory)
			memory = append(memory, prefix...)
			memory = binary.BigEndian.AppendUint64(memory, block[0].ordinal)
			cut := len(memory)
			memory = appendBlock(memory, block)
			all = append(all, keyed{memory[start:cut:cut], memory[cut:len(memory):len(memory)]})
		}
	}
	return all
}
