package query

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// MaxFused is how many orders the order of a query with Fused joins at most.
//
// Such an order is by reciprocal ranks (Cormack, Clarke and Büttcher, "Reciprocal Rank Fusion", 2009). In each order of OrderBy, the rank of an answer
// is 1 more than the number of answers that are better there, so that equal ones share a rank. The answers come by the sum of 1 / (RankOffset + rank) over
// the orders, the greatest first, and equal ones by ascending IDs. Orders compare numbers, as float64. An answer that has no number in an order, or
// no score, has no rank there, and the order adds nothing to its sum.
const MaxFused = 8

// RankOffset is what is added to a rank before its reciprocal is taken.
const RankOffset = 60

// fusedText returns the RQL of an order by reciprocal ranks.
func fusedText[T any](orders []T, text func(T) string) string {
	var b strings.Builder
	clause(&b, "rank.fuse(", orders, text)
	return b.String() + ")"
}

// FusedText returns the RQL of the order by the reciprocal ranks in some orders, which have the form that builders take: "-Total" is descending.
// ParseFused refuses what is none.
func FusedText(orders []string) string {
	if len(orders) == 0 {
		return "rank.fuse()"
	}
	return fusedText(orders, func(order string) string {
		if field, descending := strings.CutPrefix(order, "-"); descending {
			return field + " desc"
		}
		return order
	})
}

// ParseFused parses the text of an order by reciprocal ranks, such as FusedText makes. It returns false for another text.
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

// AppendNumbers appends the number that each field of the order compares, as float64; NaN where there is none, and for a score of 0.
func (s *Sorter) AppendNumbers(dst []float64, doc Doc) []float64 {
	s.sides[0].reader.Reset(doc)
	for i, o := range s.orders {
		v, n := s.sides[0].reached(o, i), math.NaN()
		if v.kind == KindNumber {
			if f, err := strconv.ParseFloat(string(v.raw), 64); (err == nil || math.IsInf(f, 0)) && !(f == 0 && o.Field.Meta == MetaScore) {
				n = f
			}
		}
		dst = append(dst, n)
	}
	return dst
}

// FuseRanks returns the sums by which answers come: see MaxFused. Numbers has what AppendNumbers appends, for one answer after the other.
func FuseRanks(orders []Order, numbers []float64) []float64 {
	count := len(numbers) / len(orders)
	ranks := make([]int, len(numbers)) // 0 for none
	ranked := make([]int, 0, count)
	for part, o := range orders {
		number := func(answer int) float64 { return numbers[answer*len(orders)+part] }
		ranked = ranked[:0]
		for i := range count {
			if !math.IsNaN(number(i)) {
				ranked = append(ranked, i)
			}
		}
		slices.SortFunc(ranked, func(a, b int) int {
			if o.Descending {
				a, b = b, a
			}
			return cmp.Compare(number(a), number(b))
		})
		rank := 0
		for at, i := range ranked {
			if at == 0 || number(i) != number(ranked[at-1]) {
				rank = at + 1
			}
			ranks[i*len(orders)+part] = rank
		}
	}
	sums := make([]float64, count)
	for i := range sums {
		own := ranks[i*len(orders):][:len(orders)]
		slices.Sort(own) // the sum must not depend on which order has which rank
		for _, rank := range own {
			if rank > 0 {
				sums[i] += 1 / float64(RankOffset+rank)
			}
		}
	}
	return sums
}
