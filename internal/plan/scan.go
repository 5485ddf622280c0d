package plan

import (
	"cmp"
	"slices"

	"github.com/jaydb/jay/query"
)

// scan is the plan that looks at every document, or at those with the prefix and in
// the range that the query gives for IDs.
func (p *planner) scan() *Plan {
	pl := &Plan{Residual: p.q.Where}
	for _, e := range p.conjuncts {
		switch e := e.(type) {
		case query.StartsWith:
			if folded := p.rules.Fold(e.Text); p.namesIDs(e.Field, e.Fold) && len(folded) > len(pl.Prefix) {
				pl.Prefix = folded
			}
		case query.Compare:
			p.boundIDs(pl, e.Field, e.Op, e.Value)
		case query.Between:
			p.boundIDs(pl, e.Field, query.GreaterOrEqual, e.Lo)
			p.boundIDs(pl, e.Field, query.LessOrEqual, e.Hi)
		}
	}
	if p.idOrder() {
		pl.Ordered, pl.Reverse = true, p.q.OrderBy[0].Descending
	}
	return pl
}

// boundIDs narrows the range of IDs of a scan to those of which a comparison can be
// true. With case-sensitive IDs it does not: keys are in byte order, texts in the
// order of their folded form.
func (p *planner) boundIDs(pl *Plan, f query.Field, op query.Op, v query.Value) {
	if f.Meta != query.MetaID || v.Kind() != query.KindText || p.rules.CaseSensitive {
		return
	}
	// The key of an ID ends with 00, and no ID has a byte that low.
	id := p.rules.Fold(v.Text())
	switch op {
	case query.Greater:
		pl.Low = max(pl.Low, id+"\x00\x01")
	case query.GreaterOrEqual:
		pl.Low = max(pl.Low, id)
	case query.Less:
		pl.High = least(pl.High, id+"\x00")
	case query.LessOrEqual:
		pl.High = least(pl.High, id+"\x00\x01")
	}
}

// least returns the lesser of two upper bounds, of which "" is none.
func least(a, b string) string {
	if a == "" || b < a {
		return b
	}
	return a
}

// indexScan returns the narrowest path whose index scan gives what a scan over
// the documents gives, or nil.
func (p *planner) indexScan() (*Path, error) {
	var paths []*Path
	for _, a := range p.paths {
		if a.replacesScan() && len(a.used) == 0 {
			paths = append(paths, a)
		}
	}
	slices.SortStableFunc(paths, func(a, b *Path) int {
		return cmp.Or(compareBool(b.IsMinMax(p.q), a.IsMinMax(p.q)), len(a.Index.Fields)-len(b.Index.Fields))
	})
	for _, a := range paths {
		if covering, err := p.isMostlyCovering(a); covering || err != nil {
			return a, err
		}
	}
	return nil, nil
}

// byID plans a query that names the IDs it asks for, or returns nil.
func (p *planner) byID() *Plan {
	for _, e := range p.conjuncts {
		var values []query.Value
		switch e := e.(type) {
		case query.Compare:
			if e.Op == query.Equal && p.namesIDs(e.Field, e.Fold) {
				values = []query.Value{e.Value}
			}
		case query.In:
			if !e.All && p.namesIDs(e.Field, e.Fold) {
				values = e.Values
			}
		}
		if values == nil {
			continue
		}
		// IDs are few: the whole condition is checked again.
		pl := &Plan{IDsOnly: true, Residual: p.q.Where}
		for _, v := range values {
			if v.Kind() == query.KindText {
				pl.IDs = append(pl.IDs, p.rules.Fold(v.Text()))
			}
		}
		slices.Sort(pl.IDs)
		pl.IDs = slices.Compact(pl.IDs)
		return pl
	}
	return nil
}

// namesIDs reports whether the texts that a field is compared with name documents.
// In a database with case-sensitive IDs, a comparison that ignores case does not.
func (p *planner) namesIDs(f query.Field, fold bool) bool {
	return f.Meta == query.MetaID && !(fold && p.rules.CaseSensitive)
}
