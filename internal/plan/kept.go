package plan

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/query"
)

// Kept is how an index that keeps counts and sums answers a query of groups.
type Kept struct {
	Index *catalog.Index
	*catalog.GroupAnswer
	Beside []*Beside // what ordered indexes have of each group, and the index does not keep
}

// String describes the index, for Explain.
func (k *Kept) String() string {
	kind := k.Index.Info.Kind
	if options := k.Index.Info.OptionTexts(); len(options) > 0 {
		kind += " (" + strings.Join(options, ", ") + ")"
	}
	return fmt.Sprintf("%s index %q, %s", kind, k.Index.Info.Name, k.Text)
}

// kept returns the plan of the index that keeps what a query of groups asks for, or nil. Of several the one with the
// fewest members answers, as it has the fewest groups. What it does not keep ordered indexes may have beside it.
func (p *planner) kept() (*Plan, error) {
	if !p.isGrouped() || len(p.q.Facets) > 0 || !(parts{p}).keepsGroups() {
		return nil, nil
	}
	columns, _, err := p.q.GroupColumns()
	if err != nil {
		return nil, nil // the executor says why
	}
	if len(p.q.GroupBy) == 0 && p.q.Where == nil && !slices.ContainsFunc(columns, func(c query.Column) bool { return c.Func != query.FuncCount }) {
		return nil, nil // the number of documents is kept beside
	}
	best, err := parts{p}.keeps(columns, false)
	if best != nil || err != nil {
		return planOf(best), err
	}
	asked, rest := splitColumns(columns)
	if len(rest) == 0 {
		return nil, nil
	}
	if best, err = (parts{p}).keeps(asked, false); best == nil || err != nil {
		return nil, err
	}
	if best.Beside, err = (parts{p}).beside(columns, rest); best.Beside == nil || err != nil {
		return nil, err
	}
	return &Plan{Kept: best}, nil
}

// planOf returns the plan of an index that keeps all that a query of groups asks for; nil for nil.
func planOf(k *Kept) *Plan {
	if k == nil {
		return nil
	}
	return &Plan{Kept: k}
}

// keepsGroups reports whether an index keeps something of groups.
func (p parts) keepsGroups() bool {
	return slices.ContainsFunc(p.indexes, func(ix *catalog.Index) bool { _, ok := ix.Keeper.(catalog.GroupAnswerer); return ok })
}

// keeps returns the index that has these columns of the groups of the query, or nil. With present, documents without a value of a field
// of the group by are left out.
func (p parts) keeps(columns []query.Column, present bool) (best *Kept, err error) {
	for _, ix := range p.indexes {
		k, ok := ix.Keeper.(catalog.GroupAnswerer)
		if !ok || best != nil && len(best.Index.Fields) <= len(ix.Fields) {
			continue
		}
		moment, err := ix.At(p.snapshot)
		if err != nil {
			return nil, err
		}
		flags := moment.Flags
		q := &catalog.GroupQuestion{
			Each:       p.q.Each,
			GroupBy:    p.q.GroupBy,
			Columns:    columns,
			Present:    present,
			Conditions: conjunctsOf(p.residual(&Path{Index: ix})),
			Several:    flags&catalog.FlagMultiple != 0,
			Cut:        flags&catalog.FlagCut != 0,
			Ranges:     p.groupRanges(ix, flags),
			OfGroups:   len(p.options.Groups) > 0,
		}
		a := k.AnswerGroups(q)
		if a != nil && !q.Several && p.options.OwnSeveral != nil && p.options.OwnSeveral(ix) {
			q.Several = true
			a = k.AnswerGroups(q)
		}
		if a != nil {
			best = &Kept{Index: ix, GroupAnswer: a}
		}
	}
	return best, nil
}

// groupRanges returns the ranges of the groups of an index that the conditions leave, ascending, or nil for all.
func (p *planner) groupRanges(ix *catalog.Index, flags byte) []catalog.GroupRange {
	if len(p.options.Groups) > 0 { // they are on the one value that a group has of each member
		of := &planner{rules: p.rules, separator: p.separator, q: p.q, snapshot: p.snapshot, options: Options{Means: p.options.Means}}
		of.conjuncts = ofFields(p.options.Groups)
		of.own, p, flags = len(of.conjuncts), of, 0
	}
	bounded, ranges := false, []KeyRange{{}}
	for _, f := range ix.Fields {
		bound := p.bind(f, flags)
		if bound == nil || len(ranges)*len(bound.ranges) > MaxRanges {
			break
		}
		bounded, ranges = true, extend(ranges, bound.ranges)
		if !bound.point {
			break
		}
	}
	if !bounded {
		return nil
	}
	slices.SortFunc(ranges, func(x, y KeyRange) int { return bytes.Compare(x.Lo, y.Lo) })
	out := make([]catalog.GroupRange, len(ranges))
	for i, r := range ranges {
		out[i] = catalog.GroupRange{Lo: r.Lo, Hi: r.Hi}
	}
	return out
}

// ofFields returns conditions on elements of a fan-out as conditions on the fields of an index of them, which are written alike.
func ofFields(conditions []query.Expr) []query.Expr {
	all := make([]query.Expr, len(conditions))
	for i, e := range conditions {
		var err error
		all[i], err = query.MapFields(e, func(f query.Field) (query.Field, error) {
			if f.Meta == query.MetaElement {
				f.Meta = query.MetaNone
			}
			return f, nil
		})
		if err != nil {
			all[i] = e
		}
	}
	return all
}
