package plan

import (
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/query"
)

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
		s.texts = append(s.texts, text)
		if s.has[text] {
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
