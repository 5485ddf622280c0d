package plan

import (
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/query"
)

// orderMatch is how the order of an index serves the order of the query.
type orderMatch int

const (
	orderNone orderMatch = iota
	orderForward
	orderReverse
)

// appliesTo reports whether a condition or the order of the query may use an index
// that begins with f.
func (p *planner) appliesTo(f catalog.Field) bool {
	binds := func(e query.Expr) bool {
		field, ok := bindableField(e)
		return ok && f.Is(field)
	}
	return slices.ContainsFunc(p.conjuncts, binds) ||
		slices.ContainsFunc(p.q.OrderBy, func(o query.Order) bool { return f.Is(o.Field) })
}

// orderBy returns how the order of a path serves the query.
func (p *planner) orderBy(a *Path) orderMatch {
	if len(p.q.OrderBy) == 0 || len(p.q.GroupBy) > 0 || len(a.Ranges) > 1 {
		return orderNone
	}
	if p.idOrder() && a.isPoints() && a.flags&catalog.FlagCut == 0 { // entries of one value are in the order of IDs
		if a.Index.LastDescending() != p.q.OrderBy[0].Descending {
			return orderReverse
		}
		return orderForward
	}
	if a.flags&(catalog.FlagMultiple|catalog.FlagCut) != 0 {
		return orderNone
	}

	// Follow the fields of the order through those of the index. Fields bound to single
	// values may stand anywhere, in either: they decide nothing.
	i, match := 0, orderNone
	for _, o := range p.fieldOrders() {
		if o.As != query.CastNone || o.Column != "" || o.Field.Meta != query.MetaNone {
			return orderNone
		}
		if a.Binds(o.Field) {
			continue
		}
		for i < len(a.Index.Fields) && i < a.Equal && !a.Index.Fields[i].Is(o.Field) {
			i++
		}
		if i >= len(a.Index.Fields) || !a.Index.Fields[i].Is(o.Field) {
			return orderNone
		}
		m := orderForward
		if a.Index.Fields[i].Descending != o.Descending {
			m = orderReverse
		}
		if match != orderNone && m != match {
			return orderNone
		}
		match = m
		i++
	}
	if i < len(a.Index.Fields) && i >= a.Equal {
		return orderNone // the fields that follow would decide between ties
	}
	// The IDs of equal values sort in the direction of the index's last field. The
	// query wants ties in the direction of its last order field.
	idsDescending := a.Index.LastDescending() != (match == orderReverse)
	if idsDescending != p.q.OrderBy[len(p.q.OrderBy)-1].Descending {
		return orderNone
	}
	return match
}

// fieldOrders returns the query's order without a final id(), which only gives the
// direction of ties.
func (p *planner) fieldOrders() []query.Order {
	orders := p.q.OrderBy
	last := orders[len(orders)-1]
	if len(orders) > 1 && last.Field.Meta == query.MetaID && last.As == query.CastNone && !p.rules.CaseSensitive {
		return orders[:len(orders)-1]
	}
	return orders
}

// idOrder reports whether the query is ordered only by ID, in the order of keys. With
// case-sensitive IDs it never is: see boundIDs.
func (p *planner) idOrder() bool { return !p.rules.CaseSensitive && p.isOrder(query.MetaID) }

// etagOrder reports whether the query is ordered by etag, of which no two documents
// have the same.
func (p *planner) etagOrder() bool { return p.isOrder(query.MetaEtag) }

func (p *planner) isOrder(meta query.Meta) bool {
	if len(p.q.OrderBy) == 0 || len(p.q.GroupBy) > 0 {
		return false
	}
	orders := p.fieldOrders()
	o := orders[0]
	return len(orders) == 1 && (meta == query.MetaEtag || len(p.q.OrderBy) == 1) && o.Field.Meta == meta && o.Column == "" && o.As == query.CastNone
}
