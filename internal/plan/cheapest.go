package plan

import (
	"cmp"
	"math"
	"slices"
	"sort"
)

// way is a plan that can answer, and what it is expected to cost.
type way struct {
	path, with *Path   // as in planner.over; a scan without a path
	inOrder    bool    // the answers come in the order of the query
	cost       float64 // as in the constants of costs
}

// planOf returns the plan of a way.
func (p *planner) planOf(w way) *Plan {
	if w.path == nil {
		return p.scan()
	}
	return p.over(w.path, w.with)
}

// cheapest returns the plan that is expected to cost least, of all single paths, pairs of paths, covering indexes and the scan. It returns
// nil if it does not know how large the paths are: then they are counted against one another, see race. In place of
// a plan that is under way it considers no plan in order.
func (p *planner) cheapest(underWay bool) (*Plan, error) {
	if p.options.Space == nil {
		return nil, nil
	}
	c, err := p.costs()
	if c == nil || err != nil {
		return nil, err
	}
	slices.SortStableFunc(p.paths, func(a, b *Path) int { return b.Equal - a.Equal })
	var known []*Path
	p.fewest = math.MaxInt / 2
	for _, a := range p.paths {
		if a.Answer != nil {
			return nil, nil
		}
		if len(a.used) == 0 {
			a.estimate, a.more = int(c.documents), false
			continue
		}
		sized, err := p.size(c, a)
		if err != nil || !sized {
			return nil, err
		}
		if !underWay && a.Equal > 0 && a.estimate <= raceKeys {
			return p.over(a, nil), nil // little can be saved
		}
		known = append(known, a)
	}
	if len(known) == 0 && !underWay {
		return nil, nil
	}
	p.bounded = known
	ways, err := p.ways(c, known, underWay)
	if err != nil || len(ways) == 0 {
		return nil, err
	}
	slices.SortStableFunc(ways, func(a, b way) int { return cmp.Compare(a.cost, b.cost) })
	pl := p.planOf(ways[0])
	if len(ways) > 1 {
		pl.Estimates = []Estimate{p.expected(c, pl), p.expected(c, p.planOf(ways[1]))}
	}
	pl.Chosen = len(pl.Access) == 0
	if len(pl.Access) > 0 && p.mayEndEarly() && pl.Residual != nil && (len(p.q.OrderBy) == 0 || pl.Ordered) {
		pl.planner = p
	}
	return pl, nil
}

// ways returns all plans that are worth considering.
func (p *planner) ways(c *costs, known []*Path, underWay bool) (ways []way, err error) {
	share, err := p.share(c)
	if err != nil {
		return nil, err
	}
	need := -1.0 // answers, if the plan ends with them
	if p.mayEndEarly() {
		need = float64(p.q.Offset + p.q.Limit)
	}
	sorts := len(p.q.OrderBy) > 0
	ordered := false
	add := func(w way, candidates float64, of func(candidates float64) float64, before, answers float64) {
		w.inOrder = w.inOrder || !sorts
		if w.inOrder && need >= 0 && answers > 0 {
			candidates = min(candidates, candidates*need/answers+min(need, candidates)/2)
		}
		w.cost = before + of(candidates)
		if !w.inOrder && !p.isGrouped() {
			w.cost += answers * sortAnswer
		}
		ordered = ordered || w.inOrder && sorts
		ways = append(ways, w)
	}
	answers := share * float64(c.documents)
	for _, a := range p.paths {
		inOrder := p.orderBy(a) != orderNone
		if len(a.used) == 0 && !inOrder && !a.replacesScan() || underWay && inOrder {
			continue
		}
		if err := p.sampleNear(c, a); err != nil {
			return nil, err
		}
		cost := func(n float64) float64 { return c.lookUps(n, a.near) }
		decides := p.decides(a)
		switch {
		case p.readsNone(a, decides):
			cost = func(n float64) float64 { return n * cachedWalk }
		case a.covers:
			uncovered := float64(a.uncovered) / float64(max(1, a.estimate))
			cost = func(n float64) float64 { return n*cachedCover + c.lookUps(n*uncovered, a.near) }
		}
		n, found := float64(a.estimate), min(answers, float64(a.estimate))
		if decides {
			found = n
		}
		add(way{path: a, inOrder: inOrder}, n, cost, openIndex, found)
	}
	for i, a := range known {
		for _, b := range known[i+1:] {
			small, large := a, b
			if small.estimate > large.estimate {
				small, large = large, small
			}
			if isSubset(large.used, small.used) || need >= 0 && !sorts {
				continue
			}
			inOrder := p.orderBy(large) != orderNone
			if underWay && inOrder {
				continue
			}
			n, walk := float64(small.estimate)*large.share(c), float64(large.estimate)*lookFor
			if inOrder && need >= 0 {
				walk *= min(1, need/max(1, answers))
			}
			before := 2*openIndex + float64(small.estimate)*collect + walk
			add(way{path: large, with: small, inOrder: inOrder}, n, func(n float64) float64 { return c.lookUps(n, 0) - n*cachedWalk }, before, min(answers, n))
		}
	}
	// A sort may have to refuse what an index streams.
	if kept := cmp.Or(max(need, 0), answers); ordered && kept*float64(c.bytes+sortedDocument) > float64(p.options.MaxBytes)/2 {
		ways = slices.DeleteFunc(ways, func(w way) bool { return !w.inOrder && !p.isGrouped() })
	}
	if !p.options.NoScan && !(ordered && need < 0) {
		add(way{inOrder: p.idOrder()}, float64(c.documents), c.scanOf, openScan, answers)
	}
	return ways, nil
}

// expected describes a plan for Explain.
func (p *planner) expected(c *costs, pl *Plan) Estimate {
	if len(pl.Access) == 0 {
		return Estimate{Plan: pl, Documents: c.documents}
	}
	e := p.estimated(pl, int64(pl.Access[0].estimate))
	e.About = pl.Access[0].guessed || pl.Intersect != nil
	return e
}

// lookUps returns what n entries cost whose documents are looked up, of which a share lies near the one before it. The fewer there are, the
// more of what is read lies in the processor's caches.
func (c *costs) lookUps(n, near float64) float64 {
	far := min(farMost, farLeast+farRoot*math.Sqrt(n)+farEach*n)
	next := cachedNear * n
	if n > manyNear && n*float64(c.bytes) <= manyBytes {
		next = cachedNear*manyNear + readNear*(n-manyNear)
	}
	return n*(cachedWalk+float64(c.bytes*documentByte)+(1-near)*far) + near*next
}

// scanOf returns what n documents of a scan cost.
func (c *costs) scanOf(n float64) float64 { return n * float64(cachedScan+c.bytes*documentByte) }

// insteadBySize is Instead where the sizes of all paths are known: a plan gives way when it has cost as much as another one costs in all; without
// an order only to one that would cost less than all of it, as the answers come the sooner by that. From half of that on it gives way if the
// rest, at the rate at which answers have come, is expected to cost more than the other plan does.
func (p *planner) insteadBySize(c *costs, pl *Plan, looked, given int64) (instead *Plan, after int64, err error) {
	own := pl.Access[0]
	instead, least := p.scan(), openScan+c.scanOf(float64(c.documents))
	for _, a := range p.bounded {
		if a == own {
			continue
		}
		if err := p.sampleNear(c, a); err != nil {
			return nil, 0, err
		}
		if cost := openIndex + c.lookUps(float64(a.estimate), a.near); cost < least {
			instead, least = p.over(a, nil), cost
		}
	}
	spent := c.lookUps(float64(looked), own.near)
	until := least // is to be spent before the next question
	switch {
	case !pl.Ordered && c.lookUps(float64(own.estimate), own.near) <= least:
		return nil, 0, nil
	case spent >= least:
		return instead, 0, nil
	case spent < least/2:
		until = least / 2
	case c.rest(own.near, looked, given, int64(p.q.Offset)+int64(p.q.Limit)) > least:
		return instead, 0, nil
	}
	n := sort.Search(int(c.documents), func(n int) bool { return c.lookUps(float64(n), own.near) >= until })
	return nil, max(looked+1, int64(n)), nil
}

// rest returns what the answers that are left are expected to cost: documents are looked up at the rate at which they have led to answers, and
// the more, the more each costs. One answer more counts as given, as the next one may be near.
func (c *costs) rest(near float64, looked, given, wanted int64) float64 {
	all := float64(looked) * max(1, float64(wanted)/float64(given+1))
	return c.lookUps(min(all, float64(c.documents)), near) - c.lookUps(float64(looked), near)
}
