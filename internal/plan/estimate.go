package plan

import (
	"bytes"
	"slices"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
)

// estimate counts the entries of a path, up to limit. It goes on after those that it has counted before.
func (p *planner) estimate(a *Path, limit int) error {
	if a.estimate > 0 && (!a.more || a.estimate >= limit) {
		return nil // counted to its end before, or as far as limit
	}
	if a.readsAll() {
		a.estimate, a.more = limit, true
		return nil
	}
	lo, within := a.uncounted, a.within
	if lo == nil {
		a.estimate, a.uncovered = 0, 0 // not counted, but assumed: see choose
	}
	a.more, a.uncounted, a.within = false, nil, 0
	if a.Answer != nil {
		return p.estimateAnswer(a, limit)
	}
	for i := within; i < len(a.Ranges); i++ {
		if lo == nil {
			lo = a.Ranges[i].Lo
		}
		it, err := p.snapshot.Iterate(lo, a.Ranges[i].Hi)
		if err != nil {
			return err
		}
		lo = nil
		for ok := it.First(); ok; ok = it.Next() {
			if a.estimate >= limit {
				a.more, a.uncounted, a.within = true, bytes.Clone(it.Key()), i
				break
			}
			a.estimate++
			p.keys++
			if a.covers && NotCovering(it.Value()) {
				a.uncovered++
			}
		}
		if err := errs.First(it.Error(), it.Close()); err != nil {
			return err
		}
		if a.more {
			return nil
		}
	}
	return nil
}

// race counts the entries of paths until those of one are known, or each has limit: in turns, and further in each turn, so
// that a path with many entries costs no more than one with few. Those that bind most fields come first.
func (p *planner) race(paths []*Path, limit int) error {
	if len(paths) == 0 {
		return nil
	}
	slices.SortStableFunc(paths, func(a, b *Path) int { return b.Equal - a.Equal })
	for turn := min(raceKeys, limit); ; turn = min(4*turn, limit) {
		fewest, done := turn, false
		for _, a := range paths {
			if err := p.estimate(a, fewest); err != nil {
				return err
			}
			if !a.more {
				fewest, done = min(fewest, a.estimate+1), true
			}
		}
		if done || turn >= limit {
			return nil
		}
	}
}

// estimateAnswer is estimate for an index that is not ordered.
func (p *planner) estimateAnswer(a *Path, limit int) (err error) {
	found, err := a.Answer.Open(p.options.Means)
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, found.Close()) }()
	for {
		id, err := found.Next()
		if id == nil || err != nil {
			return err
		}
		if a.estimate >= limit {
			a.more = true
			return nil
		}
		a.estimate++
		p.keys++
	}
}

// areFew reports whether ranges have at most EstimateKeys keys together.
func (p *planner) areFew(ranges []KeyRange) (bool, error) {
	counted := &Path{Ranges: ranges}
	err := p.estimate(counted, EstimateKeys)
	return !counted.more, err
}

// isMostlyCovering samples the first and the last entries of an index, and reports whether
// enough of them are covering. If many are not, reading their documents one by one
// takes longer than a scan.
func (p *planner) isMostlyCovering(a *Path) (covering bool, err error) {
	where := p.residual(a)
	if c := NewCover(p.q, p.options.Counting, a.Index, where); !c.wants && !c.ids || where == nil && a.IsMinMax(p.q) {
		return true, nil // no document would be read
	}
	prefix := format.AppendIndexPrefix(nil, a.Index.Number)
	it, err := p.snapshot.Iterate(prefix, format.EntriesEnd(prefix))
	if err != nil {
		return false, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	sampled, uncovered := 0, 0
	sample := func(ok bool, next func() bool) {
		for n := 0; ok && n < sampledEntries/2; ok = next() {
			n++
			sampled++
			if NotCovering(it.Value()) {
				uncovered++
			}
		}
	}
	sample(it.First(), it.Next)
	sample(it.Last(), it.Prev)
	p.keys += sampled
	return uncovered*sampledShare <= sampled, it.Error()
}
