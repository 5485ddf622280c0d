package query

import "strconv"

// orders parses the order of a query.
type orders struct{ *parser }

// all = fused | order { "," order } .
func (p orders) all(q *Query) error {
	if p.isFused() {
		return p.fused(q)
	}
	return p.list("fields in order by", func() error { return p.one(q) })
}

// one = term [ "as" cast ] [ direction ] .
func (p orders) one(q *Query) error {
	key, err := p.termOrKey(q, "a field to order by", refusedOrders)
	if err != nil {
		return err
	}
	if key.field.isZero() && key.fn == FuncNone {
		return p.wholeDocument(key.offset)
	}
	if key.fn == FuncNone && p.tok.is("as") && (p.peek().is("date") || p.peek().is("utc")) {
		if key.field, err = p.asDate(key.field); err != nil {
			return err
		}
	}
	order := Order{Field: key.field}
	if order.As, err = p.cast(); err != nil {
		return err
	}
	if key.field.Meta == MetaScore {
		err = scores{p.parser}.order(&order, key.offset)
	} else {
		order.Descending = p.descending()
	}
	q.OrderBy = append(q.OrderBy, order)
	p.orders = append(p.orders, key)
	return err
}

// isFused reports whether tok begins rank.fuse(.
func (p orders) isFused() bool { return spaces(p).at("rank") == "fuse" }

// fused = "rank" "." "fuse" "(" order "," order { "," order } ")" .
func (p orders) fused(q *Query) error {
	start := p.tok.offset
	spaces(p).begin()
	if err := p.list("orders in rank.fuse()", func() error { return p.one(q) }); err != nil {
		return err
	}
	if n := len(q.OrderBy); n < 2 || n > MaxFused {
		return p.fail(start, "rank.fuse() joins %d orders", n).expecting("from 2 to " + strconv.Itoa(MaxFused) + " of them").
			hinting("rank.fuse(score(), vector.distance(Embedding, $v))")
	}
	q.Fused = true
	if err := p.expectSymbol(")", "behind the orders"); err != nil {
		return err
	}
	switch at := p.tok; {
	case at.isSymbol(","):
		return p.fail(at.offset, "rank.fuse() is the whole order of a query").hinting("write the other order between its parentheses")
	case at.is("desc"), at.is("descending"), at.is("asc"), at.is("ascending"):
		return p.fail(at.offset, "rank.fuse() has no direction: the best answers come first").hinting("each order between its parentheses has a direction")
	}
	return nil
}
