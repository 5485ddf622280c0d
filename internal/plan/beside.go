package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/query"
)

// Beside is how another index has columns of groups that an index of counts and sums does not keep: a query of its own, with the same
// condition and the same group by, whose groups are made along an ordered index, or are kept by one of elements.
type Beside struct {
	*Plan   // of which Kept or Along is there
	Query   *query.Query
	Columns []int // the columns of the groups that those of Query are
	Narrow  bool  // it has the groups that are wanted, and not all that are kept
}

// String describes the index and what it has, for Explain.
func (b *Beside) String() string {
	var names []string
	for _, c := range b.Query.Select {
		f := c.Field
		f.Func = c.Func
		names = append(names, f.String())
	}
	if b.Kept != nil {
		return fmt.Sprintf("%s, for %s", b.Kept, strings.Join(names, ", "))
	}
	from := b.Along.Skipped()
	if from == "" {
		from = ", from each entry of each group"
	}
	return fmt.Sprintf("%s, for %s%s", b.Access[0], strings.Join(names, ", "), from)
}

// Skipped says that not all entries are walked over, for Explain.
func (along *Along) Skipped() string {
	switch {
	case along.Ends:
		return ", from the ends of each group"
	case along.Skip >= 0:
		return ", from one value to the next"
	}
	return ""
}

// parts plans queries of groups of which several indexes have a part each.
type parts struct{ *planner }

// of returns the planner of another query with the same condition.
func (p parts) of(q *query.Query) *planner {
	sub := *p.planner
	sub.q, sub.paths, sub.grouping, sub.asked = q, nil, nil, nil
	return &sub
}

// splitColumns returns the columns that sums can keep, with the group itself in place of the others, and the positions of the others.
func splitColumns(columns []query.Column) (kept []query.Column, rest []int) {
	kept = slices.Clone(columns)
	for i, c := range columns {
		switch c.Func {
		case query.FuncMin, query.FuncMax, query.FuncCountDistinct, query.FuncFirst, query.FuncLast, query.FuncList, query.FuncListDistinct:
			kept[i].Func = query.FuncNone
			rest = append(rest, i)
		}
	}
	return kept, rest
}

// beside returns the ordered indexes that have the columns at the positions in rest of each group, or nil if one of these is in none, or if
// one has all that there is, which needs no help.
func (p parts) beside(columns []query.Column, rest []int) ([]*Beside, error) {
	if len(rest) == 0 {
		return nil, nil
	}
	if !p.q.Each.IsZero() {
		return p.besideOfElements(columns, rest)
	}
	by := make(map[*catalog.Index][]int)
	var order []*catalog.Index
	for _, at := range rest {
		ix, err := p.indexBeside(columns[at])
		if ix == nil || err != nil {
			return nil, err
		}
		if by[ix] == nil {
			order = append(order, ix)
		}
		by[ix] = append(by[ix], at)
	}
	if len(order) == 1 && !slices.ContainsFunc(columns, isAdded) {
		return nil, nil
	}
	var all []*Beside
	for _, ix := range order {
		var of []query.Column
		for _, at := range by[ix] {
			of = append(of, columns[at])
		}
		b, err := p.alongBeside(ix, of)
		if b == nil || err != nil {
			return nil, err
		}
		b.Columns = by[ix]
		all = append(all, b)
	}
	return all, nil
}

// besideOfElements is beside for the elements of a fan-out.
func (p parts) besideOfElements(columns []query.Column, rest []int) (all []*Beside, err error) {
	for _, at := range rest {
		i := slices.IndexFunc(all, func(b *Beside) bool {
			kept, _ := p.keptOf(append(slices.Clone(b.Query.Select), columns[at]))
			return kept != nil && kept.Kept.Index == b.Kept.Index
		})
		of, positions := []query.Column{columns[at]}, []int{at}
		if i >= 0 {
			of, positions = append(slices.Clone(all[i].Query.Select), of...), append(all[i].Columns, at)
		}
		b, err := p.keptOf(of)
		if b == nil || err != nil {
			return nil, err
		}
		if b.Columns = positions; i >= 0 {
			all[i] = b
		} else {
			all = append(all, b)
		}
	}
	return all, nil
}

// keptOf returns how an index keeps these columns of each group, or nil if none does.
func (p parts) keptOf(columns []query.Column) (*Beside, error) {
	q := &query.Query{From: p.q.From, Each: p.q.Each, Where: p.q.Where, GroupBy: p.q.GroupBy, Select: columns}
	kept, err := p.keeps(columns, false)
	if kept == nil || err != nil {
		return nil, err
	}
	return &Beside{Plan: planOf(kept), Query: q, Narrow: len(p.options.Groups) > 0}, nil
}

// isListed reports whether a column needs each entry of a group.
func isListed(c query.Column) bool { return c.Func == query.FuncList }

// isAdded reports whether a column is a count or a sum.
func isAdded(c query.Column) bool {
	return c.Func == query.FuncCount || c.Func == query.FuncSum || c.Func == query.FuncAvg
}

// indexBeside returns the index that has a column of each group in the fewest entries, or nil.
func (p parts) indexBeside(column query.Column) (*catalog.Index, error) {
	var best *Beside
	for _, ix := range p.indexes {
		b, err := p.alongBeside(ix, []query.Column{column})
		if err != nil {
			return nil, err
		}
		if b == nil {
			continue
		}
		if best == nil || cmp.Or(compareBool(b.Residual != nil, best.Residual != nil), compareAlong(b.Access[0], b.Along, best.Access[0], best.Along)) < 0 {
			best = b
		}
	}
	if best == nil {
		return nil, nil
	}
	return best.Access[0].Index, nil
}

// alongBeside returns how an index has these columns of each group, of whose entries it reads a few, or nil if it does not.
func (p parts) alongBeside(ix *catalog.Index, columns []query.Column) (*Beside, error) {
	if !ix.Ordered {
		return nil, nil
	}
	q := &query.Query{From: p.q.From, Where: p.q.Where, GroupBy: p.q.GroupBy, Select: columns}
	narrow := len(p.options.Groups) > 0
	if narrow { // an entry has one value of each member, as its group has
		q.Where = query.And(slices.Concat(query.Conjuncts(q.Where), p.options.Groups))
	}
	pl, err := p.alongOnly(q, ix)
	if pl == nil || err != nil || pl.Along.Skip < 0 && !slices.ContainsFunc(columns, isListed) {
		return nil, err
	}
	return &Beside{Plan: pl, Query: q, Narrow: narrow}, nil
}

// alongOnly returns the plan of another query of groups, with the same condition, along an index, or nil if it has not all that the query looks
// at.
func (p parts) alongOnly(q *query.Query, ix *catalog.Index) (*Plan, error) {
	sub := p.of(q)
	if len(p.options.Groups) > 0 {
		sub.conjuncts, sub.own = withImplied(conjunctsOf(q.Where))
		sub.set, sub.bindings = conjunctSet{}, nil
	}
	if err := sub.addPath(ix); err != nil {
		return nil, err
	}
	p.keys = sub.keys
	both := slices.Concat(sub.paths, sub.grouping)
	if len(both) == 0 {
		return nil, nil
	}
	a := both[0]
	along := sub.alongOf(a, q.Select)
	if along == nil {
		return nil, nil
	}
	pl := sub.over(a, nil)
	pl.Along, pl.Ordered, pl.Reverse, pl.Lost = along, false, false, ""
	return pl, nil
}
