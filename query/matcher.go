package query

import (
	"bytes"

	"github.com/jaydb/jay/internal/fold"
)

// Matcher evaluates a condition on one document after another. Make one with
// Compile.
//
// A Matcher is not safe for concurrent use, since it reuses memory from one
// document to the next; Clone makes another one cheaply.
type Matcher struct {
	root   condition
	reader *Reader

	unquoted    []byte    // scratch: a text without its escapes
	folded      []byte    // scratch: a case-folded text
	marks       []uint64  // for each operand of an opAll, the evaluation in which a value equalled it last
	evaluations uint64    // of opAll so far, so that marks need no clearing
	sorted      []Value   // scratch: values of one field of an opFields
	variants    variants  // scratch: of the texts of an opFuzzy
	vector      []float32 // scratch
	pace        *Pace

	elements []*Matcher // of the ElemMatch conditions
	searches []search   // of the Search conditions
	reached  int        // the most values that a field of their elements has reached
}

// condition is a compiled Expr. It is immutable, so that clones share it.
type condition struct {
	op       op
	fold     bool // case does not matter
	slot     int  // of its field in the reader
	kids     []condition
	operands []operand  // sorted for opIn and opAll
	mark     int        // for opAll: offset of its marks
	text     []byte     // case-folded if fold
	regexp   *pattern   // for opRegexp
	search   int        // for opSearch: index of what it looks for
	fuzzy    *fuzzyWord // for opFuzzy
	element  int        // for opElement: index of its Matcher
	relation Op         // for opSize and opFields
	other    int        // for opFields: slot of the second field
	size     int        // for opSize
	kind     string     // for opType: a type of JSON
	place    *Place     // for opPlace
	similar  *Similar   // for opSimilar
}

// op is the kind of a condition.
type op uint8

const (
	opAnd op = iota
	opOr
	opNot
	opEqual // this and the next four are in the order of Op
	opLess
	opLessOrEqual
	opGreater
	opGreaterOrEqual
	opBetween
	opIn
	opAll
	opStartsWith
	opEndsWith
	opContains
	opRegexp
	opFuzzy
	opSearch
	opExists
	opElement
	opSize
	opType
	opFields
	opPlace
	opSimilar
)

// Clone returns a Matcher of the same condition, for another goroutine.
func (m *Matcher) Clone() *Matcher {
	c := &Matcher{root: m.root, reader: m.reader.Clone(), marks: make([]uint64, len(m.marks))}
	for _, inner := range m.elements {
		c.elements = append(c.elements, inner.Clone())
	}
	for _, s := range m.searches {
		c.searches = append(c.searches, s.clone())
	}
	return c
}

// SetPace makes Match stop when p stops, also in the middle of a document. The
// result of Match then has no meaning: see Pace.Err.
func (m *Matcher) SetPace(p *Pace) {
	m.pace = p
	m.reader.SetPace(p)
	for _, s := range m.searches {
		s.words.Spend = p.Spend
	}
	for _, inner := range m.elements {
		inner.SetPace(p)
	}
}

// Match reports whether the condition is true of doc. It reads no more of the
// document than it needs, and allocates nothing once its buffers have grown to
// the size that documents need. The body must be valid compact JSON, as that of
// a stored document is; for any other body the result has no meaning.
func (m *Matcher) Match(doc Doc) bool {
	m.reader.Reset(doc)
	m.reached = 0
	return m.holds(&m.root)
}

// Limit makes Match examine at most n values of each field: see Reader.Limit.
func (m *Matcher) Limit(n int) {
	m.reader.Limit(n)
	for _, inner := range m.elements {
		inner.Limit(n)
	}
}

// Reached returns the number of values that the field with the most values has
// reached in the last document. It counts only fields that Match has examined. If
// it is above the limit, the result of Match has no meaning.
func (m *Matcher) Reached() int {
	most := m.reached
	for i := range m.reader.fields {
		most = max(most, m.reader.fields[i].count)
	}
	return most
}

// holds reports whether c is true of the document. Its recursion is bounded by
// MaxConditionDepth.
func (m *Matcher) holds(c *condition) bool {
	switch c.op {
	case opAnd:
		for i := range c.kids {
			if !m.holds(&c.kids[i]) {
				return false
			}
		}
		return true
	case opOr:
		for i := range c.kids {
			if m.holds(&c.kids[i]) {
				return true
			}
		}
		return false
	case opNot:
		return !m.holds(&c.kids[0])
	case opExists:
		return m.reader.Found(c.slot)
	case opAll:
		return m.reachesAll(c)
	case opSearch:
		return m.finds(c)
	case opFields:
		return m.relates(c)
	}
	field := m.reader.reach(c.slot)
	if field.many {
		return m.acceptsOneOfMany(c)
	}
	for _, v := range field.values {
		if m.pace.Spend(1+len(v.raw)) && m.accepts(c, v) {
			return true
		}
	}
	return false
}

// acceptsOneOfMany is holds for a condition on a field that reaches too many
// values to be held in memory.
func (m *Matcher) acceptsOneOfMany(c *condition) (found bool) {
	m.reader.Each(c.slot, func(v Value) bool {
		found = m.pace.Spend(1+len(v.raw)) && m.accepts(c, v)
		return !found
	})
	return found
}

// accepts reports whether one value satisfies a condition on a field.
func (m *Matcher) accepts(c *condition, v Value) bool {
	switch c.op {
	case opIn:
		_, found := m.find(c, v)
		return found
	case opElement:
		return m.acceptsElement(c, v)
	case opSize:
		return m.acceptsSize(c, v)
	case opPlace:
		return m.lies(c, v)
	case opSimilar:
		return m.isSimilar(c, v)
	case opType:
		return jsonTypes[v.kind] == c.kind
	case opStartsWith, opEndsWith, opContains, opRegexp, opFuzzy:
		return v.kind == KindText && m.acceptsText(c, m.text(v))
	}

	// A comparison is false for values of another kind than its operands, both of
	// them for Between.
	for i := range c.operands {
		if c.operands[i].class != class(v.kind) {
			return false
		}
	}
	var text []byte
	if v.kind == KindText {
		text = m.text(v)
	}
	first := &c.operands[0]
	switch c.op {
	case opEqual:
		return first.equals(v, text, c.fold)
	case opLess:
		return first.compare(v, text, c.fold) < 0
	case opLessOrEqual:
		return first.compare(v, text, c.fold) <= 0
	case opGreater:
		return first.compare(v, text, c.fold) > 0
	case opGreaterOrEqual:
		return first.compare(v, text, c.fold) >= 0
	}
	return first.compare(v, text, c.fold) >= 0 && c.operands[1].compare(v, text, c.fold) <= 0
}

// acceptsText reports whether a text satisfies a condition on texts.
func (m *Matcher) acceptsText(c *condition, text []byte) bool {
	switch {
	case c.op == opRegexp:
		return c.regexp.match(text, m.pace)
	case c.op == opFuzzy:
		return m.isFuzzy(c, text)
	case c.op == opStartsWith && c.fold:
		return hasFoldedPrefix(text, c.text)
	case c.fold:
		m.folded = fold.Append(m.folded[:0], text)
		text = m.folded
	}
	switch c.op {
	case opStartsWith:
		return bytes.HasPrefix(text, c.text)
	case opEndsWith:
		return bytes.HasSuffix(text, c.text)
	}
	return bytes.Contains(text, c.text)
}

// find searches the sorted operands for v. It compares v with the operand, so
// that order < 0 means that v is in the lower half.
func (m *Matcher) find(c *condition, v Value) (i int, found bool) {
	var text []byte
	if v.kind == KindText {
		text = m.text(v)
	}
	lo, hi := 0, len(c.operands)
	for lo < hi {
		middle := int(uint(lo+hi) / 2)
		switch order := c.operands[middle].compare(v, text, c.fold); {
		case order == 0:
			return middle, true
		case order < 0:
			hi = middle
		default:
			lo = middle + 1
		}
	}
	return 0, false
}

// reachesAll reports whether the field reaches each of the operands.
func (m *Matcher) reachesAll(c *condition) bool {
	m.evaluations++
	left := len(c.operands)
	m.reader.Each(c.slot, func(v Value) bool {
		if !m.pace.Spend(1 + len(v.raw)) {
			return false
		}
		if i, found := m.find(c, v); found && m.marks[c.mark+i] != m.evaluations {
			m.marks[c.mark+i] = m.evaluations
			left--
		}
		return left > 0
	})
	return left == 0
}

// text returns the text of a value of KindText, valid until the next call.
func (m *Matcher) text(v Value) []byte {
	if v.plain || bytes.IndexByte(v.raw, '\\') < 0 {
		return v.text(nil)
	}
	m.unquoted = v.text(m.unquoted)
	return m.unquoted
}
