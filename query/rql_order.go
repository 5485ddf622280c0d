package query

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxFused is how many orders the order of a query with Fused joins at most.
//
// Such an order is by reciprocal ranks (Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion",
// 2009). In each order of OrderBy, the rank of an answer is 1 more than the number of answers that
// are better there, so that equal ones share a rank. The answers come by the sum of 1 / (RankOffset
// + rank) over the orders, the greatest first, and equal ones by ascending IDs. Orders compare
// numbers, as float64. An answer that has no number in an order, or no score, has no rank there,
// and the order adds nothing to its sum.
const MaxFused = 8

// RankOffset is added to a rank before its reciprocal is taken.
const RankOffset = 60

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
		err = scores(p).order(&order, key.offset)
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

// ParseFused parses the text of an order by reciprocal ranks, such as FusedText makes. It returns
// false for another text.
func ParseFused(text string) (list []Order, is bool, err error) {
	if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(text[:min(len(text), 100)])), "rank") {
		return nil, false, nil
	}
	p, err := newParser(text, nil)
	if err != nil || !(orders{p}).isFused() {
		return nil, false, nil
	}
	q := new(Query)
	if err := (orders{p}).fused(q); err != nil {
		return nil, true, err
	}
	for _, key := range p.orders {
		if key.fn != FuncNone {
			return nil, true, p.fail(key.offset, "%s is of groups, and rank.fuse() orders documents", funcText(key.fn, key.field))
		}
	}
	if p.tok.kind != tokenEnd {
		return nil, true, p.unexpected("the end")
	}
	return q.OrderBy, true, nil
}

// CheckFused returns ErrCondition for a Fused query whose answers have no ranks.
func (q *Query) CheckFused() error {
	if !q.Fused {
		return nil
	}
	if n := len(q.OrderBy); n < 2 || n > MaxFused {
		return fmt.Errorf("%w: rank.fuse() joins from 2 to %d orders, and not %d", ErrCondition, MaxFused, n)
	}
	if len(q.GroupBy) > 0 || q.Having != nil || len(q.Facets) > 0 || !q.Each.IsZero() {
		return fmt.Errorf("%w: rank.fuse() orders documents, and the query answers with groups or elements", ErrCondition)
	}
	for _, c := range q.Select {
		if c.Func != FuncNone {
			return fmt.Errorf("%w: rank.fuse() orders documents, and the query answers with groups", ErrCondition)
		}
	}
	return nil
}
