package fulltext

import (
	"sort"

	"github.com/jaydb/jay/internal/text"
)

// Lists of what is found are ascending by ordinals, each of which is there once.

// hit is a document that a condition finds.
type hit struct {
	ordinal uint64
	score   float64
}

// from returns the part of a list from an ordinal on. It is fast where that is near the beginning.
func from(list []occurrence, ordinal uint64) []occurrence {
	if len(list) == 0 || list[0].ordinal >= ordinal {
		return list
	}
	step := 1
	for step < len(list) && list[step].ordinal < ordinal {
		list = list[step:]
		step *= 2
	}
	n := min(step+1, len(list))
	return list[sort.Search(n, func(i int) bool { return list[i].ordinal >= ordinal }):]
}

// shared returns what is in both lists, as the first has it, in memory of its own.
func shared(a, b []occurrence) []occurrence {
	kept := make([]occurrence, 0, min(len(a), len(b)))
	if len(a) > len(b) {
		for i := range b { // the elements of the shorter one are looked for
			if a = from(a, b[i].ordinal); len(a) == 0 {
				break
			}
			if a[0].ordinal == b[i].ordinal {
				kept = append(kept, a[0])
			}
		}
		return kept
	}
	for i := range a {
		if b = from(b, a[i].ordinal); len(b) == 0 {
			break
		}
		if b[0].ordinal == a[i].ordinal {
			kept = append(kept, a[i])
		}
	}
	return kept
}

// drop removes from found what is in a list.
func drop(found []hit, list []occurrence) []hit {
	kept := found[:0]
	for _, h := range found {
		if list = from(list, h.ordinal); len(list) == 0 || list[0].ordinal != h.ordinal {
			kept = append(kept, h)
		}
	}
	return kept
}

// scoring says what an occurrence of a clause counts.
type scoring struct {
	ranking *text.Ranking // nil for nothing
	clause  int
}

func (s scoring) of(o *occurrence) float64 {
	if s.ranking == nil {
		return 0
	}
	return s.ranking.Score(s.clause, int(o.count), o.length)
}

// hits returns a list as it counts.
func (s scoring) hits(list []occurrence) []hit {
	found := make([]hit, len(list))
	for i := range list {
		found[i] = hit{list[i].ordinal, s.of(&list[i])}
	}
	return found
}

// join returns what is in found or in a list, with the scores added.
func (s scoring) join(found []hit, list []occurrence) []hit {
	if len(list) == 0 {
		return found
	}
	out := make([]hit, 0, len(found)+len(list))
	i, j := 0, 0
	for i < len(found) && j < len(list) {
		switch h, o := &found[i], &list[j]; {
		case h.ordinal < o.ordinal:
			out = append(out, *h)
			i++
		case h.ordinal > o.ordinal:
			out = append(out, hit{o.ordinal, s.of(o)})
			j++
		default:
			out = append(out, hit{h.ordinal, h.score + s.of(o)})
			i, j = i+1, j+1
		}
	}
	out = append(out, found[i:]...)
	for ; j < len(list); j++ {
		out = append(out, hit{list[j].ordinal, s.of(&list[j])})
	}
	return out
}

// add adds what a list counts to what is found already.
func (s scoring) add(found []hit, list []occurrence) {
	if s.ranking == nil {
		return
	}
	for i := range found {
		if list = from(list, found[i].ordinal); len(list) == 0 {
			return
		}
		if list[0].ordinal == found[i].ordinal {
			found[i].score += s.of(&list[0])
		}
	}
}

// both returns what is in both lists, with the scores added.
func both(a, b []hit) []hit {
	kept := a[:0]
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].ordinal < b[0].ordinal:
			a = a[1:]
		case a[0].ordinal > b[0].ordinal:
			b = b[1:]
		default:
			kept = append(kept, hit{a[0].ordinal, a[0].score + b[0].score})
			a, b = a[1:], b[1:]
		}
	}
	return kept
}

// either returns what is in one of two lists, with the scores added.
func either(a, b []hit) []hit {
	out := make([]hit, 0, len(a)+len(b))
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].ordinal < b[0].ordinal:
			out, a = append(out, a[0]), a[1:]
		case a[0].ordinal > b[0].ordinal:
			out, b = append(out, b[0]), b[1:]
		default:
			out = append(out, hit{a[0].ordinal, a[0].score + b[0].score})
			a, b = a[1:], b[1:]
		}
	}
	return append(append(out, a...), b...)
}
