package plan

import "github.com/jaydb/jay/query"

// Counted is how indexes count the documents of one facet.
type Counted struct {
	Kept  *Kept // the groups that an index keeps, or
	Along *Plan // groups that are made of the entries of one
	Query *query.Query
}

// String describes the index, for Explain.
func (c *Counted) String() string {
	if c.Kept != nil {
		return c.Kept.String()
	}
	return c.Along.Access[0].String() + c.Along.Along.Skipped()
}

// counted returns the plan that counts the documents of all facets of the query by indexes, or nil if that of one is to be made of
// documents: then the others are made of them, too.
func (p parts) counted() (*Plan, error) {
	if len(p.q.Facets) == 0 || !p.q.Each.IsZero() || len(p.indexes) == 0 {
		return nil, nil
	}
	pl := &Plan{}
	for i := range p.q.Facets {
		q, ok := p.q.Facets[i].Query(p.q)
		if !ok {
			return nil, nil
		}
		c, err := p.countedFacet(q)
		if c == nil || err != nil {
			return nil, err
		}
		pl.Facets = append(pl.Facets, c)
	}
	return pl, nil
}

// countedFacet returns how an index counts the documents of a facet, whose groups are those of q, or nil.
func (p parts) countedFacet(q *query.Query) (*Counted, error) {
	asked, rest := splitColumns(q.Select)
	if len(rest) == 0 && p.keepsGroups() {
		kept, err := parts{p.of(q)}.keeps(asked, true)
		if kept != nil || err != nil {
			return &Counted{Kept: kept, Query: q}, err
		}
	}
	if len(q.GroupBy) == 0 {
		return nil, nil
	}
	var best *Plan
	for _, ix := range p.indexes {
		if !ix.Ordered {
			continue
		}
		pl, err := p.alongOnly(q, ix)
		if err != nil {
			return nil, err
		}
		if pl == nil || !p.decides(pl.Access[0]) { // with other conditions, an index on these may leave fewer documents
			continue
		}
		if best == nil || compareAlong(pl.Access[0], pl.Along, best.Access[0], best.Along) < 0 {
			best = pl
		}
	}
	if best == nil {
		return nil, nil
	}
	return &Counted{Along: best, Query: q}, nil
}
