package plan

import (
	"slices"

	"github.com/jaydb/jay/query"
)

// intersect finds the path with the fewest candidates, when all have many. It adds
// another path as an intersection if that saves more document reads than walking
// the other path's entries costs.
func (p *planner) intersect(paths []*Path) (*Plan, error) {
	// Count further until one path is known to be small, all of them to the same limit.
	small := paths[0]
	for limit := EstimateKeys; small.more && limit < EstimateMany; {
		limit = min(4*limit, EstimateMany)
		for _, a := range paths {
			if err := p.estimate(a, limit); err != nil {
				return nil, err
			}
			if !a.more && (small.more || a.estimate < small.estimate) {
				small = a
			}
		}
	}

	// Walking the entries of another path pays if there are at most as many as are
	// walked in the time of the look-ups of the documents that small leads to.
	var large *Path
	for _, a := range paths {
		if small.more || a == small || isSubset(a.used, small.used) {
			continue
		}
		if err := p.estimate(a, scanPerLookup*small.estimate+1); err != nil {
			return nil, err
		}
		if a.estimate <= scanPerLookup*small.estimate && (large == nil || a.estimate < large.estimate) {
			large = a
		}
	}
	if large == nil {
		return p.over(small, nil), nil
	}
	return p.over(large, small), nil // small is collected first, large is walked
}

func isSubset(some, all []int) bool {
	return !slices.ContainsFunc(some, func(i int) bool { return !slices.Contains(all, i) })
}

// union plans a query whose condition is, or has among its conjuncts, an Or with a
// path for every branch.
func (p *planner) union() (*Plan, error) {
	if p.ranked() != nil {
		return nil, nil
	}
	branches := 0
	for _, e := range p.conjuncts {
		if or, ok := e.(query.Or); ok && len(or) <= maxBranches {
			branches += len(or)
		}
	}
	if branches > maxAllBranches {
		return nil, nil
	}

	// Each branch needs a path of its own with few entries: a branch without one needs
	// a scan, which would find the answers of the others as well.
	var best []*Path
	for _, e := range p.conjuncts {
		or, ok := e.(query.Or)
		if !ok || len(or) == 0 || len(or) > maxBranches {
			continue
		}
		var paths []*Path
		for _, branch := range or {
			a, err := p.bestOf(branch)
			if p.keys > maxBranchKeys {
				return nil, err // keep what is known so far
			}
			if err != nil {
				return nil, err
			}
			if a == nil || a.more && !p.hint && !a.readsAll() {
				paths = nil
				break
			}
			paths = append(paths, a)
		}
		if len(paths) > 0 && (best == nil || candidates(paths) < candidates(best)) {
			best = paths
		}
	}
	if best == nil {
		return nil, nil
	}
	// The other conjuncts of the query may have a path with fewer entries.
	if smaller, err := p.hasSmaller(best); err != nil || smaller {
		return nil, err
	}
	return &Plan{Access: best, Residual: p.q.Where}, nil
}

// candidates returns how many entries the paths have together.
func candidates(paths []*Path) int {
	total := 0
	for _, a := range paths {
		total += a.estimate
	}
	return total
}

// hasSmaller reports whether one path of the whole query has fewer candidates
// than these together.
func (p *planner) hasSmaller(union []*Path) (bool, error) {
	total := candidates(union)
	for _, a := range p.paths {
		if len(a.used) == 0 {
			continue
		}
		if err := p.estimate(a, min(total, EstimateKeys)); err != nil {
			return false, err
		}
		if !a.more && a.estimate < total {
			return true, nil
		}
	}
	return false, nil
}

// bestOf returns the path with the fewest candidates for one branch of an Or, or
// nil.
func (p *planner) bestOf(branch query.Expr) (*Path, error) {
	sub := &planner{rules: p.rules, q: &query.Query{From: p.q.From, Where: branch}, snapshot: p.snapshot, options: Options{Means: p.options.Means}}
	sub.conjuncts, sub.own = withImplied(conjunctsOf(branch))
	var best *Path
	for _, ix := range p.indexes {
		if err := sub.addPath(ix); err != nil {
			return nil, err
		}
	}
	for _, a := range sub.paths {
		if err := sub.estimate(a, EstimateKeys); err != nil {
			return nil, err
		}
		if best == nil || a.estimate < best.estimate {
			best = a
		}
	}
	p.keys += sub.keys
	return best, nil
}
