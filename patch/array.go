package patch

import (
	"slices"

	"github.com/jaydb/jay/internal/jsonpath"
	"github.com/jaydb/jay/internal/pieces"
)

// array is an open array: a sequence of spans, kept in groups of at most maxSpans.
// A span is either one element with a node of its own, or several elements of an
// array in JSON. An array may have millions of elements, so one that no edit
// touches costs at most four bytes, for its offset. Finding, inserting and
// cutting an element take time proportional to the number of groups plus the
// number of spans in one group.
type array struct {
	unread []*run // runs that follow the groups and are not parsed yet
	groups []group
	length int // number of elements in groups
	spans  int // number of spans in groups
}

// group is a part of an array.
type group struct {
	spans  []span
	length int // number of elements
}

// span is one element if it has a node, and elements lo to hi of a run otherwise.
type span struct {
	node   *node
	run    *run
	lo, hi uint32
}

// run is an array in JSON.
type run struct {
	raw    []byte
	starts []uint32 // offsets of the elements in raw, and the offset after the last; nil until it is parsed
}

// maxSpans is the greatest number of spans of a group. A larger group is split.
const maxSpans = 256

func (s *span) length() int {
	if s.node != nil {
		return 1
	}
	return int(s.hi - s.lo)
}

// bytes returns the elements of a span as JSON, without brackets.
func (s *span) bytes() []byte { return s.run.raw[s.run.starts[s.lo] : s.run.starts[s.hi]-1] }

// readRun finds the elements of a run.
func (t *tree) readRun(r *run) error {
	if r.starts != nil {
		return nil
	}
	if err := t.work.spend(workPerValue + len(r.raw)); err != nil {
		return err
	}
	starts := make([]uint32, 0, 8)
	i := 1
	for i < len(r.raw) && r.raw[i] != ']' {
		if starts = append(starts, uint32(i)); len(starts)%1024 == 0 {
			if err := t.work.spend(1024 * workPerValue); err != nil {
				return err
			}
		}
		if len(starts) == 1024 { // estimate the rest, as if all were about as long
			starts = slices.Grow(starts, 1100*((len(r.raw)-i)/i+1))
		}
		i = jsonpath.Skip(r.raw, i) + 1
	}
	r.starts = append(starts, uint32(len(r.raw)))
	return nil
}

// readArray parses the unread runs, so that length is the length of the array.
func (t *tree) readArray(a *array) error {
	for len(a.unread) > 0 {
		r := a.unread[0]
		if err := t.readRun(r); err != nil {
			return err
		}
		a.unread = a.unread[1:]
		if n := len(r.starts) - 1; n > 0 {
			a.push(span{run: r, hi: uint32(n)})
		}
	}
	return nil
}

// push adds a span at the end.
func (a *array) push(s span) {
	if len(a.groups) == 0 {
		a.groups = append(a.groups, group{})
	}
	g := len(a.groups) - 1
	a.splice(g, len(a.groups[g].spans), 0, s)
}

// splice replaces n spans of group g, from span i on, by others.
func (a *array) splice(g, i, n int, spans ...span) {
	at := &a.groups[g]
	for _, s := range at.spans[i : i+n] {
		at.length -= s.length()
		a.length -= s.length()
	}
	for _, s := range spans {
		at.length += s.length()
		a.length += s.length()
	}
	a.spans += len(spans) - n
	switch grow := len(spans) - n; {
	case grow > 0:
		at.spans = append(at.spans, spans[:grow]...) // only to make room
		copy(at.spans[i+len(spans):], at.spans[i+n:])
	case grow < 0:
		copy(at.spans[i+len(spans):], at.spans[i+n:])
		clear(at.spans[len(at.spans)+grow:]) // for the garbage collector
		at.spans = at.spans[:len(at.spans)+grow]
	}
	copy(at.spans[i:], spans)
	if len(at.spans) > maxSpans {
		a.halve(g)
	}
}

// halve splits a group in two.
func (a *array) halve(g int) {
	spans := a.groups[g].spans
	second := group{spans: append(make([]span, 0, maxSpans), spans[len(spans)/2:]...)}
	for _, s := range second.spans {
		second.length += s.length()
	}
	clear(spans[len(spans)/2:])
	a.groups[g].spans = spans[:len(spans)/2]
	a.groups[g].length -= second.length
	a.groups = append(a.groups, group{})
	copy(a.groups[g+2:], a.groups[g+1:])
	a.groups[g+1] = second
}

// locate returns the group and the span of element i, and its offset in the span.
// For i equal to the length, it returns the position after the last span.
func (t *tree) locate(a *array, i int) (g, s, offset int, err error) {
	if err := t.work.spend(workPerCall + 2*len(a.groups)); err != nil {
		return 0, 0, 0, err
	}
	if len(a.groups) == 0 {
		a.groups = append(a.groups, group{})
	}
	for g < len(a.groups)-1 && i >= a.groups[g].length {
		i -= a.groups[g].length
		g++
	}
	for s < len(a.groups[g].spans) {
		n := a.groups[g].spans[s].length()
		if i < n {
			break
		}
		i -= n
		s++
	}
	return g, s, i, nil
}

// element returns element i, which must exist, as a node, which becomes a span of
// its own. The pointer is valid until the element is cut.
func (t *tree) element(a *array, i int) (*node, error) {
	g, s, offset, err := t.locate(a, i)
	if err != nil {
		return nil, err
	}
	whole := a.groups[g].spans[s]
	if whole.node != nil {
		return whole.node, nil
	}
	if err := t.work.spend(workPerTouched); err != nil {
		return nil, err
	}
	at := whole.lo + uint32(offset)
	n := &node{raw: (&span{run: whole.run, lo: at, hi: at + 1}).bytes()}
	a.splice(g, s, 1, whole.around(at, at+1, span{node: n})...)
	return n, nil
}

// insert inserts a node in front of element i, or at the end.
func (t *tree) insert(a *array, i int, n *node) error {
	g, s, offset, err := t.locate(a, i)
	if err != nil {
		return err
	}
	if err := t.work.spend(workPerTouched); err != nil {
		return err
	}
	if offset == 0 {
		a.splice(g, s, 0, span{node: n})
		return nil
	}
	whole := a.groups[g].spans[s] // not a node: an offset above 0 needs several elements
	at := whole.lo + uint32(offset)
	a.splice(g, s, 1, whole.around(at, at, span{node: n})...)
	return nil
}

// cut removes element i, which must exist.
func (t *tree) cut(a *array, i int) error {
	g, s, offset, err := t.locate(a, i)
	if err != nil {
		return err
	}
	whole := a.groups[g].spans[s]
	if whole.node != nil {
		a.splice(g, s, 1)
		return nil
	}
	at := whole.lo + uint32(offset)
	a.splice(g, s, 1, whole.around(at, at+1)...)
	return nil
}

// around returns the spans that replace s if others take the place of its elements
// from lo to hi.
func (s *span) around(lo, hi uint32, others ...span) []span {
	out := make([]span, 0, 3)
	if s.lo < lo {
		out = append(out, span{run: s.run, lo: s.lo, hi: lo})
	}
	out = append(out, others...)
	if hi < s.hi {
		out = append(out, span{run: s.run, lo: hi, hi: s.hi})
	}
	return out
}

// appendRun adds the elements of r at the end, without parsing them.
func (t *tree) appendRun(a *array, r *run) error {
	if err := t.work.spend(workPerTouched + len(r.raw)); err != nil {
		return err
	}
	a.unread = append(a.unread, r)
	return nil
}

// measure returns the length of a as JSON, and the number of its nodes, spans
// and runs.
func (a *array) measure() (size, nodes int) {
	parts := a.spans
	for g := range a.groups {
		for i := range a.groups[g].spans {
			s := &a.groups[g].spans[i]
			if s.node == nil {
				size, nodes = size+len(s.bytes()), nodes+1
				continue
			}
			nodeSize, nodeNodes := s.node.measure()
			size, nodes = size+nodeSize, nodes+nodeNodes
		}
	}
	for _, r := range a.unread {
		if n := len(r.raw) - len("[]"); n > 0 {
			size += n
			parts++
		}
	}
	return size + len("[]") + max(0, parts-1), nodes + len(a.groups) + len(a.unread) + 1
}

// append appends a as JSON.
func (a *array) append(dst []byte) []byte {
	dst = append(dst, '[')
	start := len(dst)
	next := func() {
		if len(dst) > start {
			dst = append(dst, ',')
		}
	}
	for g := range a.groups {
		for i := range a.groups[g].spans {
			next()
			if s := &a.groups[g].spans[i]; s.node != nil {
				dst = s.node.append(dst)
			} else {
				dst = append(dst, s.bytes()...)
			}
		}
	}
	for _, r := range a.unread {
		if len(r.raw) > len("[]") {
			next()
			dst = pieces.Append(dst, r.raw[1:len(r.raw)-1])
		}
	}
	return append(dst, ']')
}
