package query

import (
	"fmt"
	"strconv"
)

// Boost is true if its condition is true. It multiplies the contribution of the searches in the
// condition to the score by By. A condition without a search adds By to the score where it is true,
// and nothing where it is false.
//
// The score of a document is the sum of the contributions of the searches that are true of it, and
// of the boosts of other conditions that are true of it. Conditions in a Not and in an ElemMatch
// add nothing.
type Boost struct {
	Expr Expr
	By   float64 // above 0, up to MaxBoost
}

func (Boost) expr() {}

// MaxBoost is the greatest By of a Boost.
const MaxBoost = 1000

// Check returns ErrCondition for a By that is out of bounds.
func (e Boost) Check() error {
	if !(e.By > 0 && e.By <= MaxBoost) {
		return fmt.Errorf("%w: a boost is a number above 0 and up to %d, not %v", ErrCondition, MaxBoost, e.By)
	}
	return nil
}

// Boosts reports whether a condition contains a Boost. The depth of e must be within the bounds.
func Boosts(e Expr) bool {
	return walk(e, func(e Expr, _ int) error {
		if _, is := e.(Boost); is {
			return errFound
		}
		return nil
	}) != nil
}

// Unboosted returns e without its Boosts. The result is true of the same documents. The depth of e
// must be within the bounds.
func Unboosted(e Expr) Expr {
	if !Boosts(e) {
		return e
	}
	list := func(in []Expr) []Expr {
		out := make([]Expr, len(in))
		for i, kid := range in {
			out[i] = Unboosted(kid)
		}
		return out
	}
	switch e := e.(type) {
	case And:
		return And(list(e))
	case Or:
		return Or(list(e))
	case Not:
		return Not{Unboosted(e.Expr)}
	case Boost:
		return Unboosted(e.Expr)
	case ElemMatch:
		e.Where = Unboosted(e.Where)
		return e
	}
	return e
}

// IsScored reports whether the answers of q need scores: it orders by them, shows or explains them.
func (q *Query) IsScored() bool {
	if q.Explanations {
		return true
	}
	for _, o := range q.OrderBy {
		if o.Field.Meta == MetaScore && o.Column == "" {
			return true
		}
	}
	for _, c := range q.Select {
		if c.Field.Meta == MetaScore {
			return true
		}
	}
	return false
}

// scores parses what queries have for scores.
type scores struct{ *parser }

// term parses score().
func (p scores) term() (term, error) {
	at := term{field: Field{Meta: MetaScore}, offset: p.tok.offset}
	p.advance()
	p.advance()
	if err := p.expectSymbol(")", "behind score("); err != nil {
		return at, err
	}
	if operatorAt(p.tok) != nil {
		return at, p.fail(at.offset, "score() is no operand of an expression").hinting("boost(search(Text, 'oak'), 2) changes what a condition counts")
	}
	return at, nil
}

// order parses the direction of an order by score(): the best come first, with desc the worst, as in RavenDB.
func (p scores) order(o *Order, at int) error {
	if o.As != CastNone {
		return p.fail(at, "score() is a number")
	}
	o.Descending = !p.descending() // from the greatest score on
	return nil
}

// boost parses "boost" "(" condition "," number ")".
func (p scores) boost() (Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	p.advance()
	p.advance()
	e, err := p.condition()
	if err != nil {
		return nil, err
	}
	if err := p.expectSymbol(",", "and a number behind the condition"); err != nil {
		return nil, err
	}
	at := p.tok
	v, err := p.value("a number")
	if err != nil {
		return nil, err
	}
	by, err := strconv.ParseFloat(string(v.raw), 64)
	boost := Boost{Expr: e, By: by}
	if v.kind != KindNumber || err != nil {
		return nil, p.fail(at.offset, "unexpected %s", at).expecting("a number above 0 and up to " + strconv.Itoa(MaxBoost))
	}
	if err := boost.Check(); err != nil {
		return nil, p.fail(at.offset, "%v", err).because(err)
	}
	return boost, p.expectSymbol(")", "behind the number")
}
