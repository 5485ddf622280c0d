package query

import (
	"cmp"
	"fmt"
)

// picker finds what a column with first or last takes of a document: of the pairs of a value of the
// order and one of the field, the least one or the greatest. So the answer is the same in whatever
// order documents come.
type picker struct {
	fn    Func
	pairs *Groups // whose group by is the order and the field

	order, value Value // of the present document; order is missing if it has no pair
}

// addPicker adds that of a column behind those of the columns before it, or nil.
func (g *Groups) addPicker(c Column) error {
	if !c.isPicked() {
		if g.pickers != nil {
			g.pickers = append(g.pickers, nil)
		}
		return nil
	}
	if c.Field.By == nil {
		return fmt.Errorf("%w: %q has no order, which first and last need", ErrColumn, c.Name)
	}
	for len(g.pickers) < len(g.keys)-1 {
		g.pickers = append(g.pickers, nil)
	}
	of := c.Field
	of.By = nil
	pairs, err := NewGroups([]Field{*c.Field.By, of}, nil, 0)
	g.pickers = append(g.pickers, &picker{fn: c.Func, pairs: pairs})
	return err
}

// pick finds what columns with first and last take of a document.
func (g *Groups) pick(doc Doc) error {
	for i, p := range g.pickers {
		if p == nil {
			continue
		}
		if err := p.pick(doc); err != nil {
			return fmt.Errorf("column %q: %w", g.columns[i].Name, err)
		}
	}
	return nil
}

func (p *picker) pick(doc Doc) error {
	p.order, p.value = Value{}, Value{}
	if len(p.pairs.axes) == 2 { // no value of the one belongs to one of the other
		p.pairs.reader.Reset(doc)
		p.order, p.value = p.extreme(0), p.extreme(1)
		if p.value.IsMissing() {
			p.value = null
		}
		return p.pairs.pace.Err()
	}
	n, err := p.pairs.begin(doc)
	for range n {
		order, value := p.pairs.reached(0), p.pairs.value(1)
		if !order.IsMissing() && (p.order.IsMissing() || p.fn.precedes(order, value, p.order, p.value)) {
			p.order, p.value = order, value
		}
		if !p.pairs.pace.Spend(1 + len(order.raw)) {
			break
		}
		p.pairs.advance()
	}
	return cmp.Or(err, p.pairs.pace.Err())
}

// extreme returns the least value of a field, or the greatest one.
func (p *picker) extreme(field int) (best Value) {
	p.pairs.reader.Each(field, func(v Value) bool {
		if best.IsMissing() || p.fn.precedes(v, null, best, null) {
			best = v
		}
		return p.pairs.pace.Spend(1 + len(v.raw))
	})
	return best
}

// precedes reports whether a pair of an order and a value is taken rather than another one: the
// lesser by first, and the greater by last.
func (fn Func) precedes(order, value, other, otherValue Value) bool {
	c := order.Compare(other)
	if c == 0 {
		c = value.Compare(otherValue)
	}
	if fn == FuncLast {
		return c > 0
	}
	return c < 0
}

// take gives a cell of first or last a value, and what the order has there, unless the one that it has is to be taken.
func (g *Groups) take(to *cell, fn Func, order, value Value) {
	g.pace.Spend(len(order.raw) + len(value.raw))
	if order.IsMissing() {
		return
	}
	if to.order == nil {
		to.order = new(Value)
		const perOrder = 32
		g.used += perOrder
	} else if !fn.precedes(order, value, *to.order, to.best) {
		return
	}
	g.used -= len(to.order.raw) + len(to.best.raw)
	*to.order, to.best = canonical(order), canonical(value)
	g.used += len(to.order.raw) + len(to.best.raw)
}
