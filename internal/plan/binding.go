package plan

import (
	"bytes"
	"cmp"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
)

// binding is how conjuncts bind one field. It is immutable, as several paths share
// it.
type binding struct {
	ranges  []query.KeyRange
	used    []int
	point   bool // each range is one value
	equal   bool // each range holds equal values, possibly in several case variants
	recheck bool
	rank    int // selectivity by kind, best first: rankEqual, rankClosed, rankOpen
}

const (
	rankEqual  = iota
	rankClosed // bounded on both sides
	rankOpen   // bounded on one side
)

// knownBinding is how a conjunct binds a field, in the list of all that it binds.
type knownBinding struct {
	binding
	text       string // of the field
	descending bool
	next       *knownBinding // nil for none
}

// bind combines the conjuncts on a field into a binding, or returns nil. The result
// does not depend on the order of the conjuncts.
func (p *planner) bind(f catalog.Field, flags byte) *binding {
	var few [4]*binding // on the stack
	all := few[:0]
	for i := range p.conjuncts {
		if b := p.binding(i, f); b != nil {
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, (*binding).compare)
	best := all[0]
	if flags&catalog.FlagMultiple != 0 {
		return best // in a document with several values, each may satisfy another condition
	}
	for _, other := range all[1:] {
		best = best.and(other)
	}
	return best
}

// compare orders bindings by how few entries they are likely to leave.
func (b *binding) compare(other *binding) int {
	if c := cmp.Or(b.rank-other.rank, len(b.ranges)-len(other.ranges), compareBool(other.point, b.point)); c != 0 || len(b.ranges) == 0 {
		return c
	}
	return cmp.Or(bytes.Compare(b.ranges[0].Lo, other.ranges[0].Lo), bytes.Compare(b.ranges[0].Hi, other.ranges[0].Hi))
}

// maxIntersected is how many pairs of ranges are intersected.
const maxIntersected = 4096

// and intersects two bindings of a field that has one value in each document.
func (b *binding) and(other *binding) *binding {
	if len(b.ranges)*len(other.ranges) > maxIntersected {
		return b
	}
	both := &binding{used: append(slices.Clip(b.used), other.used...), recheck: b.recheck || other.recheck, rank: b.rank, point: b.point, equal: b.equal}
	for _, r := range b.ranges {
		for _, s := range other.ranges {
			in := r
			if bytes.Compare(s.Lo, in.Lo) > 0 {
				in.Lo = s.Lo
			}
			if bytes.Compare(s.Hi, in.Hi) < 0 {
				in.Hi = s.Hi
			}
			if bytes.Compare(in.Lo, in.Hi) < 0 {
				both.ranges = append(both.ranges, in)
			}
		}
	}
	return both
}

// binding returns how a conjunct binds a field, or nil. The result is kept, as many
// indexes may have the field.
func (p *planner) binding(conjunct int, f catalog.Field) *binding {
	e := p.conjuncts[conjunct]
	if field, ok := bindableField(e); !ok || !f.Is(field) {
		return nil
	}
	if p.bindings == nil {
		p.bindings = make([]*knownBinding, len(p.conjuncts))
	}
	for known := p.bindings[conjunct]; known != nil; known = known.next {
		if known.text == f.Text && known.descending == f.Descending {
			return &known.binding
		}
	}
	known := &knownBinding{binding: bindOne(e, f), text: f.Text, descending: f.Descending, next: p.bindings[conjunct]}
	known.used = []int{conjunct}
	p.bindings[conjunct] = known
	return &known.binding
}

// bindableField returns the field of a condition that may bind one.
func bindableField(e query.Expr) (query.Field, bool) {
	switch e := e.(type) {
	case query.Compare:
		return e.Field, true
	case query.Between:
		return e.Field, true
	case query.StartsWith: // of an instant it is refused where conditions are compiled
		return e.Field, e.Field.Date == query.DateNone
	case query.In:
		return e.Field, len(e.Values) > 0 && len(e.Values) <= MaxRanges
	}
	return query.Field{}, false
}

// bindOne returns how one condition, which has a bindableField, binds that field, which is f.
func bindOne(e query.Expr, f catalog.Field) binding {
	var ranges []query.KeyRange
	point, rank := false, rankEqual
	switch e := e.(type) {
	case query.Compare:
		if e.Op == query.Equal {
			ranges, point = []query.KeyRange{query.EqualRange(e.Value, e.Fold, f.Descending)}, true
		} else {
			ranges, rank = []query.KeyRange{query.CompareRange(e.Op, e.Value, e.Fold, f.Descending)}, rankOpen
		}
	case query.Between:
		ranges, rank = []query.KeyRange{query.BetweenRange(e.Lo, e.Hi, e.Fold, f.Descending)}, rankClosed
	case query.StartsWith:
		ranges, rank = []query.KeyRange{query.PrefixRange(e.Text, e.Fold, f.Descending)}, rankClosed
	case query.In:
		values := e.Values
		if e.All {
			values = values[:1]
		}
		for _, v := range values {
			ranges = append(ranges, query.EqualRange(v, e.Fold, f.Descending))
		}
		point = true
	}
	b := binding{point: point, equal: point, rank: rank, ranges: ranges[:0]}
	for _, r := range ranges {
		b.recheck = b.recheck || r.Recheck
		b.point = b.point && isPoint(r)
		if !r.Empty() {
			b.ranges = append(b.ranges, r)
		}
	}
	if in, ok := e.(query.In); ok && in.All && len(in.Values) > 1 {
		b.recheck = true
	}
	return b
}

// isPoint reports whether a range holds one key part and what follows it.
func isPoint(r query.KeyRange) bool {
	rest, ok := query.SkipKey(r.Lo)
	return ok && len(rest) == 0 && format.IsPrefixEnd(r.Hi, r.Lo)
}

// conjunctsOf splits a condition into the conditions that And joins.
func conjunctsOf(e query.Expr) []query.Expr { return appendConjuncts(nil, e) }

func appendConjuncts(dst []query.Expr, e query.Expr) []query.Expr {
	and, ok := e.(query.And)
	if !ok {
		if e == nil {
			return dst
		}
		return append(dst, e)
	}
	for _, part := range and {
		dst = appendConjuncts(dst, part)
	}
	return dst
}

// withImplied appends to conjuncts what those on elements of arrays imply of the
// document, and returns how many there were. Paths may use what is implied to find
// candidates; the conjunct itself is left to check on documents.
func withImplied(conjuncts []query.Expr) (all []query.Expr, own int) {
	own, all = len(conjuncts), conjuncts
	for _, e := range conjuncts {
		if m, ok := e.(query.ElemMatch); ok {
			all = append(all, m.Implied()...)
		}
	}
	return all, own
}

// implies reports whether a partial index has every document that the query asks
// for: whether the query implies each of the index's conditions.
func (p *planner) implies(ix *catalog.Index) bool {
	if ix.Filter == nil {
		return true
	}
	for _, needed := range conjunctsOf(ix.Filter) {
		if !p.requires(needed) {
			return false
		}
	}
	return true
}

// conjunctSet indexes the conjuncts of a query by their text, so that those of a partial
// index are found without comparing each pair.
type conjunctSet struct {
	texts  []string // parallel to the conjuncts: as RQL
	has    map[string]bool
	equals map[string][]query.Compare // equalities, by field and value
}

// conjunctSet returns the lookup tables of the conjuncts, made on the first call.
func (p *planner) conjunctSet() *conjunctSet {
	s := &p.set
	if s.has != nil {
		return s
	}
	s.has, s.equals = make(map[string]bool), make(map[string][]query.Compare)
	for _, e := range p.conjuncts {
		text := query.FormatCondition(e)
		ofElement := !p.q.Each.IsZero() && query.IsOfElement(e)
		if ofElement {
			text = "\x00" + text // no condition of an index, which is on documents
		}
		s.texts = append(s.texts, text)
		if ofElement || s.has[text] {
			continue
		}
		s.has[text] = true
		if c, ok := e.(query.Compare); ok && c.Op == query.Equal {
			s.equals[equalKey(c)] = append(s.equals[equalKey(c)], c)
		}
	}
	return s
}

// requires reports whether the query has the condition needed among its conjuncts, or
// the case-sensitive form of it, which implies it.
func (p *planner) requires(needed query.Expr) bool {
	set := p.conjunctSet()
	if set.has[query.FormatCondition(needed)] {
		return true
	}
	b, ok := needed.(query.Compare)
	return ok && b.Op == query.Equal && slices.ContainsFunc(set.equals[equalKey(b)], func(a query.Compare) bool {
		return a.Value.Equal(b.Value) && (!a.Fold || b.Fold)
	})
}

// equalKey is the lookup key of an equality: its field and its value.
func equalKey(c query.Compare) string {
	key, _ := query.AppendKey([]byte(c.Field.String()+"\x00"), c.Value, false)
	return string(key)
}
