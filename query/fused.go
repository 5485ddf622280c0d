package query

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
)

// FusedText returns the RQL of an order by the reciprocal ranks in orders. The orders have the form
// that builders take: "-Total" is descending. ParseFused refuses invalid orders.
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

// AppendNumbers appends the number that each field of the order compares, as float64; NaN where
// there is none, and for a score of 0.
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

// FuseRanks returns the sums that order the answers: see MaxFused. numbers has the numbers that
// AppendNumbers appends, for each answer in turn.
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
