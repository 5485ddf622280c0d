package plan

import (
	"fmt"
	"math"
	"strconv"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
)

// Changes is a range of changes, one of each document, in the order of etags.
type Changes struct {
	First, Last uint64 // etags, both included

	// Ranges are the keys: one range for each node that has written, in rising order.
	// A node that begins to write, in a copy, does so above all etags there are.
	Ranges []KeyRange
}

// changes plans a query that is ordered by etag, or bounds it, or returns nil. The
// changes of a database are in the order of etags, and name the document and its
// collection. Those of all collections are in one order, so that the documents of
// a small collection are read and sorted instead.
func (p *planner) changes() (*Plan, error) {
	c := Changes{Last: math.MaxUint64}
	for _, e := range p.conjuncts {
		switch e := e.(type) {
		case query.Compare:
			c.bound(e.Field, e.Op, e.Value)
		case query.Between:
			c.bound(e.Field, query.GreaterOrEqual, e.Lo)
			c.bound(e.Field, query.LessOrEqual, e.Hi)
		}
	}
	ordered, bounded := p.etagOrder(), c.First > 0 || c.Last < math.MaxUint64
	if !ordered && !bounded {
		return nil, nil
	}
	if err := p.findChanges(&c); err != nil {
		return nil, err
	}
	pl := &Plan{Changes: &c, Residual: p.q.Where, Ordered: ordered}
	pl.Reverse = ordered && p.q.OrderBy[0].Descending
	if bounded {
		if few, err := p.areFew(c.Ranges); few || err != nil {
			return pl, err
		}
	}
	if p.q.From != "" {
		collection := format.CollectionKey(p.q.From)
		clustered := format.DocumentKey(nil, collection+p.separator)
		clustered = clustered[:len(clustered)-1]
		members := format.AppendKey(nil, format.SpaceMembers, collection)
		few, err := p.areFew([]KeyRange{{Lo: clustered, Hi: format.PrefixEnd(clustered)}, {Lo: members, Hi: format.PrefixEnd(members)}})
		if err != nil {
			return nil, err
		}
		if few {
			scan := p.scan()
			scan.Few = true
			return scan, nil
		}
	}
	if !ordered {
		return nil, nil
	}
	return pl, nil
}

// findChanges sets the ranges of c.
func (p *planner) findChanges(c *Changes) (err error) {
	if c.First > c.Last {
		return nil
	}
	it, err := p.snapshot.Iterate([]byte{format.SpaceChanges}, []byte{format.SpaceChanges + 1})
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; {
		p.keys++
		node, err := format.NodeOf(it.Key())
		if err != nil {
			return err
		}
		lo, last := format.ChangeKey(nil, node, c.First), format.ChangeKey(nil, node, c.Last)
		c.Ranges = append(c.Ranges, KeyRange{Lo: lo, Hi: append(last, 0)})
		ok = it.SeekGE(format.ChangeKey(nil, node+1, 0))
	}
	return it.Error()
}

// bound narrows the range to the etags of which a comparison can be true.
func (c *Changes) bound(f query.Field, op query.Op, v query.Value) {
	if f.Meta != query.MetaEtag || v.Kind() != query.KindNumber {
		return
	}
	n, err := strconv.ParseUint(string(v.Raw()), 10, 64)
	if err != nil {
		return // another notation of a number: tested on the documents
	}
	switch {
	case op == query.Greater && n < math.MaxUint64:
		c.First = max(c.First, n+1)
	case op == query.GreaterOrEqual:
		c.First = max(c.First, n)
	case op == query.Less && n > 0:
		c.Last = min(c.Last, n-1)
	case op == query.LessOrEqual:
		c.Last = min(c.Last, n)
	case op == query.Equal:
		c.First, c.Last = max(c.First, n), min(c.Last, n)
	}
}

// String describes the walk, for Explain.
func (c *Changes) String() string {
	switch {
	case c.First > 0 && c.Last < math.MaxUint64:
		return fmt.Sprintf("changes with etags from %d to %d", c.First, c.Last)
	case c.First > 0:
		return fmt.Sprintf("changes with etags from %d", c.First)
	case c.Last < math.MaxUint64:
		return fmt.Sprintf("changes with etags to %d", c.Last)
	}
	return "changes"
}
