package plan

import (
	"cmp"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/query"
)

// Along is how groups are made along the entries of one index, which have all that the query asks for. No document has several entries in
// it, and no value was cut, so an entry is what its document gives.
type Along struct {
	Keys    []int // for each field of the group by, the field of the index
	Columns []int // for each of the query's GroupColumns, the field of the index, of first and last that of the order, which the value follows; -1 for count() and for a field of the group by
	Members int   // leading fields of the index that are the same in all entries of a group, if Streams
	Streams bool  // the entries of a group follow one another
	Ordered bool  // and the groups are in the order of the query
	Alike   bool  // two fields of the group by begin alike: they are taken element by element of an array, and an entry does not say whether there was one
	Skip    int   // of entries with so many equal leading fields one is enough; -1 if each of them counts
	Ends    bool  // with that at the other end: the query asks for extremes of the field that follows
}

// alongEntry is what an entry costs that is added to its group, in nanoseconds as in the constants of costs.
const alongEntry = 150

// along returns the plan that makes the groups of a query along an index, or pl if that is none or costs more.
func (p *planner) along(pl *Plan) (*Plan, error) {
	if !p.isGrouped() || !p.q.Each.IsZero() || len(p.q.Facets) > 0 || pl.Kept != nil || pl.Facets != nil || pl.IDsOnly || pl.Changes != nil || pl.Low != "" || pl.High != "" || pl.Prefix != "" || p.looksUp(pl) {
		return pl, nil
	}
	columns, _, err := p.q.GroupColumns()
	if err != nil {
		return pl, nil // the executor says why
	}
	var best *Path
	var how *Along
	for _, a := range slices.Concat(p.paths, p.grouping) {
		along := p.alongOf(a, columns)
		if along == nil || len(pl.Access) == 1 && pl.Access[0].decidesMore(a) {
			continue
		}
		if best == nil || compareAlong(a, along, best, how) < 0 {
			best, how = a, along
		}
	}
	if best == nil {
		return pl, nil
	}
	if len(pl.Access) > 0 && len(pl.Access[0].used) > 0 && pl.Access[0] != best {
		if cheaper, err := p.isCheaperAlong(best, pl); !cheaper || err != nil {
			return pl, err
		}
	}
	along := p.over(best, nil)
	along.Along, along.Ordered, along.Lost, along.Hinted = how, how.Ordered, "", pl.Hinted
	along.Reverse = how.Ordered && p.alongOrder(best, how) == orderReverse
	return along, nil
}

// isCheaperAlong reports whether the entries of a path cost less than those of a plan by other conditions, whose documents are read.
func (p *planner) isCheaperAlong(a *Path, pl *Plan) (bool, error) {
	c, err := p.costs()
	if c == nil || err != nil {
		return false, err
	}
	entries := c.documents
	if len(a.used) > 0 {
		if err := p.estimate(a, EstimateKeys); err != nil {
			return false, err
		}
		if !a.more {
			entries = min(entries, int64(a.estimate))
		}
	}
	enough := entries * alongEntry / (farLeast + cachedWalk)
	if own := pl.Access[0]; len(pl.Access) == 1 && own.Answer == nil && p.options.Space != nil {
		if sized, err := p.size(c, own); sized || err != nil {
			return int64(own.estimate) > enough, err
		}
	}
	n, err := p.entries(pl, int(enough)+1)
	return n > enough, err
}

// looksUp reports whether a plan needs no more than a count of entries, or the ends of a range.
func (p *planner) looksUp(pl *Plan) bool {
	if len(p.q.GroupBy) > 0 || p.q.Having != nil {
		return false
	}
	if !slices.ContainsFunc(p.q.Select, func(c query.Column) bool { return c.Func != query.FuncCount }) {
		return true
	}
	return pl.CountOnly && len(pl.Access) == 1 && len(pl.Access[0].Ranges) == 1 && pl.Access[0].IsMinMax(p.q)
}

// decidesMore reports whether the ranges of a path make the groups of a from fewer entries, by a condition that does not bind the other.
func (a *Path) decidesMore(other *Path) bool {
	return a.covers && a.flags == 0 && a.Answer == nil && len(a.used) > len(other.used)
}

// compareAlong orders ways along indexes: fewer entries first, then those that end early or skip entries.
func compareAlong(a *Path, along *Along, b *Path, other *Along) int {
	return cmp.Or(len(b.used)-len(a.used),
		compareBool(other.Skip >= 0, along.Skip >= 0),
		compareBool(other.Ordered, along.Ordered),
		compareBool(other.Streams, along.Streams),
		a.estimate-b.estimate,
		len(a.Index.Fields)-len(b.Index.Fields),
		cmp.Compare(a.Index.Info.Name, b.Index.Info.Name))
}

// alongOf returns how a path makes the groups of the query, or nil.
func (p *planner) alongOf(a *Path, columns []query.Column) *Along {
	if a.Answer != nil || a.flags != 0 || !(parts{p}).decidedBy(a) {
		return nil
	}
	along := &Along{Skip: -1, Alike: query.BeginAlike(p.q.GroupBy)}
	at := func(f query.Field) int {
		for i, g := range a.Index.Fields {
			if g.Is(f) {
				return i
			}
		}
		return -1
	}
	for _, f := range p.q.GroupBy {
		i := at(f)
		if i < 0 {
			return nil
		}
		along.Keys, along.Members = append(along.Keys, i), max(along.Members, i+1)
	}
	for _, c := range columns {
		i := -1
		switch c.Func {
		case query.FuncNone, query.FuncCount:
		case query.FuncFirst, query.FuncLast:
			if i = at(*c.Field.By); i < 0 || !a.Index.HasBehind(i, c.Field) {
				return nil
			}
		default:
			if i = at(c.Field); i < 0 {
				return nil
			}
		}
		along.Columns = append(along.Columns, i)
	}
	fixed := 0 // leading fields with one value each
	if len(a.Ranges) == 1 {
		fixed = a.Equal
	}
	along.Members = max(along.Members, fixed)
	along.Streams = !along.Alike
	for i := range along.Members {
		along.Streams = along.Streams && (i < fixed || slices.Contains(along.Keys, i))
	}
	if along.Streams {
		along.setSkip(columns)
		along.Ordered = p.alongOrder(a, along) != orderNone
	}
	return along
}

// decidedBy reports whether the entries of a path have all that the rest of the condition looks at.
func (p parts) decidedBy(a *Path) bool {
	if a.covers {
		return true
	}
	rest := p.residual(a)
	return a.Index.Ordered && (rest == nil || NewCover(new(query.Query), true, a.Index, rest) != nil)
}

// mayGroup reports whether an index has all fields of the group by, which may be expressions: its entries may make the groups.
func (p parts) mayGroup(ix *catalog.Index) bool {
	return len(p.q.GroupBy) > 0 && !slices.ContainsFunc(p.q.GroupBy, func(f query.Field) bool {
		return !slices.ContainsFunc(ix.Fields, func(g catalog.Field) bool { return g.Is(f) })
	})
}

// setSkip finds out which entries can be left out.
func (along *Along) setSkip(columns []query.Column) {
	extremes, ordered, distinct := false, false, false
	for i, c := range columns {
		switch c.Func {
		case query.FuncNone:
			continue
		case query.FuncFirst, query.FuncLast:
			if along.Columns[i]+1 < along.Members {
				continue // the same in each entry
			}
			if along.Columns[i] == along.Members {
				ordered = true
				continue
			}
		case query.FuncMin, query.FuncMax:
			if along.Columns[i] < along.Members {
				continue // the same in each entry
			}
			if along.Columns[i] == along.Members {
				extremes = true
				continue
			}
		case query.FuncCountDistinct, query.FuncListDistinct:
			if along.Columns[i] < along.Members {
				continue
			}
			if along.Columns[i] == along.Members {
				distinct = true
				continue
			}
		}
		return
	}
	if ordered && distinct {
		return // of the values of the order one entry each is not enough
	}
	along.Skip, along.Ends = along.Members, extremes || ordered
	if distinct { // that of each of its values is met
		along.Skip, along.Ends = along.Members+1, false
	}
}

// alongOrder returns how the order of groups along a path serves the order of the query.
func (p *planner) alongOrder(a *Path, along *Along) orderMatch {
	if len(p.q.OrderBy) == 0 {
		return orderNone
	}
	i, match := 0, orderNone
	for _, o := range p.q.OrderBy {
		at := slices.IndexFunc(p.q.Select, func(c query.Column) bool { return c.Name == o.Column && c.Func == query.FuncNone })
		if at < 0 || o.As != query.CastNone {
			return orderNone
		}
		f := p.q.Select[at].Field
		key := slices.IndexFunc(p.q.GroupBy, func(g query.Field) bool { return g.String() == f.String() })
		if key < 0 {
			key = slices.IndexFunc(p.q.GroupBy, func(g query.Field) bool { return g.ShownAs(f) })
		}
		if key < 0 {
			return orderNone
		}
		field := along.Keys[key]
		if len(a.Ranges) == 1 && field < a.Equal || field < i {
			continue // the same in all groups, or decided before
		}
		for len(a.Ranges) == 1 && i < a.Equal {
			i++
		}
		if field != i {
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
	switch {
	case match == orderNone:
		return orderForward // one group, or groups that only differ in nothing that the order looks at
	case match == orderReverse && len(a.Ranges) > 1:
		return orderNone // ranges are walked through in rising order
	}
	return match
}
