package places

import (
	"fmt"

	"github.com/golang/geo/s2"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/geo"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// shapeCells is about how many cells cover the shape of a query.
const shapeCells = 24

// Answer implements catalog.Answerer: the index answers conditions on its places but disjoint, and has the nearest places first.
func (k keeper) Answer(q *catalog.Question) *catalog.Answer {
	var asked asked
	a := &catalog.Answer{Text: "places"}
	for i, e := range q.Conditions {
		if p, is := e.(query.Place); is && p.Relation != query.PlaceDisjoint && k.ix.Fields[0].Is(p.Field) {
			asked.conditions = append(asked.conditions, &p)
			a.Used = append(a.Used, i)
		}
	}
	a.Exact = a.Used
	if d, is := k.nearest(q.Orders); is {
		asked.distance, a.Ordered = &d, true
	}
	switch {
	case len(a.Used) == 0 && !a.Ordered:
		return nil
	case len(a.Used) > 0:
		asked.cover()
		a.Text = fmt.Sprintf("places in %d ranges of cells", len(asked.cells))
	}
	if a.Ordered {
		a.Text += ", the nearest first"
	}
	a.Open = func(m catalog.Means) (catalog.Candidates, error) {
		s := source{k: k, r: m, asked: &asked}
		if err := s.open(); err != nil {
			return nil, errs.First(err, s.Close())
		}
		if asked.distance != nil {
			n := &nearest{source: s}
			n.begin()
			return n, n.err
		}
		return &inside{source: s, left: asked.cells}, nil
	}
	return a
}

// nearest returns the distance by which answers are wanted in order, if the index has that order.
func (k keeper) nearest(orders []query.Order) (d query.Distance, is bool) {
	if len(orders) != 1 || orders[0].Column != "" || orders[0].Descending || orders[0].As != query.CastNone {
		return d, false
	}
	d, is = orders[0].Field.Distance()
	return d, is && d.Round == 0 && k.ix.Fields[0].Is(d.Place)
}

// asked is what is asked of an index. It is immutable once it is made.
type asked struct {
	conditions []*query.Place
	cells      s2.CellUnion    // that have all answers; nil without a condition
	distance   *query.Distance // by which they are ordered, or nil
}

// cover finds the cells: those of the condition that leaves the smallest part of the earth.
func (a *asked) cover() {
	for _, c := range a.conditions {
		cells := c.Shape.Geometry().Cover(shapeCells)
		if a.cells == nil || cells.ApproxArea() < a.cells.ApproxArea() {
			a.cells = cells
		}
	}
}

// mayHave reports whether a cell may have answers.
func (a *asked) mayHave(cell s2.CellID) bool {
	return a.conditions == nil || a.cells.IntersectsCellID(cell)
}

// holds reports whether all conditions are true of a document with these places.
func (a *asked) holds(r *record) (bool, error) {
	for _, c := range a.conditions {
		found := false
		err := r.each(func(v geo.Value) bool {
			found = c.Holds(v)
			return !found
		})
		if err != nil || !found {
			return false, err
		}
	}
	return true, nil
}

// holdsOf is holds for a document with one point.
func (a *asked) holdsOf(s geo.Spot) bool {
	for _, c := range a.conditions {
		if !c.Holds(geo.Value{Spot: s}) {
			return false
		}
	}
	return true
}

// distanceOf returns how far a document with these places is.
func (a *asked) distanceOf(r *record) (least float64, err error) {
	least = 1e300
	err = r.each(func(v geo.Value) bool {
		least = min(least, a.distance.Of(v))
		return true
	})
	return least, err
}

// source reads the keys of an index. It is not safe for concurrent use.
type source struct {
	k     keeper
	r     catalog.Means
	asked *asked

	points storage.Iterator
	others storage.Iterator // of cells; nil if there are none
	seen   map[string]bool  // documents with several keys that were met
	keys   int64            // examined
}

func (s *source) open() (err error) {
	lo := s.k.key(keyPoint)
	if s.points, err = s.r.Iterate(lo, format.PrefixEnd(lo)); err != nil {
		return err
	}
	lo = s.k.key(keyCell)
	if s.others, err = s.r.Iterate(lo, format.PrefixEnd(lo)); err != nil {
		return err
	}
	s.keys++
	if !s.others.First() {
		err = errs.First(s.others.Error(), s.others.Close())
		s.others = nil
	}
	s.seen = make(map[string]bool)
	return err
}

// Close implements catalog.Candidates.
func (s *source) Close() (err error) {
	for _, it := range []storage.Iterator{s.points, s.others} {
		if it != nil {
			err = errs.First(err, errs.First(it.Error(), it.Close()))
		}
	}
	return err
}

// Examined implements catalog.Examiner.
func (s *source) Examined() int64 { return s.keys }

// maxSeen is how many documents with several keys, and nodes of a search for the nearest, are in memory at most. Tests change it.
var maxSeen = 1 << 20

// meet reports whether a document with several keys was not met before.
func (s *source) meet(folded []byte) (bool, error) {
	if s.seen[string(folded)] {
		return false, nil
	}
	s.seen[string(folded)] = true
	return true, tooMany(len(s.seen))
}

func tooMany(n int) error {
	if n <= maxSeen {
		return nil
	}
	return fmt.Errorf("%w: %w: ask for a smaller part of the earth", errs.ErrQuery, &query.LimitError{What: "places in memory", Limit: maxSeen, Actual: n})
}

// record returns the record of a document with several keys.
func (s *source) record(folded []byte) (record, error) {
	s.keys++
	value, err := catalog.ValueAt(s.r, s.k.documentKey(keyOf, folded))
	if err != nil {
		return record{}, err
	}
	s.r.Spend(geo.Work * len(value))
	if value == nil {
		return record{}, fmt.Errorf("index %q has no record of %.100q: %w", s.k.ix.Info.Name, folded, errs.ErrCorrupt)
	}
	return decodeRecord(value)
}

// inside are the documents with places in some cells, in no order.
type inside struct {
	source
	left  s2.CellUnion // whose points have not been read, then those whose other cells have not
	cell  s2.CellID    // that is read; 0 for none
	other bool         // points have been read
	above []s2.CellID  // cells above one of those, that are looked up
}

// Next implements catalog.Candidates.
func (c *inside) Next() ([]byte, error) {
	for {
		it, last, ok := c.step()
		if it == nil {
			return nil, nil
		}
		if !ok {
			if err := it.Error(); err != nil {
				return nil, err
			}
			c.cell = 0
			continue
		}
		cell, folded, err := cutCell(it.Key())
		if err != nil {
			return nil, err
		}
		if cell > last {
			c.cell = 0
			continue
		}
		if c.other {
			if is, err := c.several(folded); is || err != nil {
				return folded, err
			}
			continue
		}
		spot, err := pointAt(it.Value())
		if err != nil {
			return nil, err
		}
		if c.asked.holdsOf(spot) {
			return folded, nil
		}
	}
}

// several reports whether a document with several keys is an answer that was not given before.
func (c *inside) several(folded []byte) (bool, error) {
	fresh, err := c.meet(folded)
	if !fresh || err != nil {
		return false, err
	}
	r, err := c.record(folded)
	if err != nil {
		return false, err
	}
	return c.asked.holds(&r)
}

// step moves to the next key, of a cell up to last. The iterator is nil at the end.
func (c *inside) step() (it storage.Iterator, last s2.CellID, ok bool) {
	if it = c.points; c.other {
		it = c.others
	}
	c.keys++
	if c.cell != 0 {
		return it, c.last(), it.Next()
	}
	for {
		switch {
		case len(c.above) > 0:
			c.cell, c.above = c.above[0], c.above[1:]
			return c.others, c.cell, c.others.SeekGE(c.k.cellKey(keyCell, c.cell))
		case len(c.left) > 0:
			c.cell, c.left = c.left[0], c.left[1:]
			kind := byte(keyPoint)
			if it = c.points; c.other {
				it, kind = c.others, keyCell
			}
			return it, c.last(), it.SeekGE(c.k.cellKey(kind, c.cell.RangeMin()))
		case c.other || c.others == nil:
			return nil, 0, false
		}
		c.other, c.left, c.above = true, c.asked.cells, ancestors(c.asked.cells)
	}
}

// last returns the last cell that is read together with the present one.
func (c *inside) last() s2.CellID {
	if c.other && !c.isLeft() {
		return c.cell
	}
	return c.cell.RangeMax()
}

// isLeft reports whether the present cell is one of those that are asked for, and not one above them.
func (c *inside) isLeft() bool { return len(c.above) == 0 && c.asked.cells.ContainsCellID(c.cell) }

// ancestors returns all cells above others, each once.
func ancestors(cells s2.CellUnion) (above []s2.CellID) {
	seen := make(map[s2.CellID]bool)
	for _, c := range cells {
		for level := c.Level() - 1; level >= 0; level-- {
			parent := c.Parent(level)
			if seen[parent] {
				break
			}
			seen[parent] = true
			above = append(above, parent)
		}
	}
	return above
}
