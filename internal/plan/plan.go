// Package plan chooses how a query is answered: which indexes it uses, which key
// ranges of them, and which part of the condition is left to check on documents
// (the residual). It samples a bounded number of keys to choose, and reads no
// document.
package plan

import (
	"cmp"
	"slices"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Plan is how a query is answered.
type Plan struct {
	Access    []*Path    // the access paths of candidates: several are a union, none means a scan
	IDs       []string   // instead of paths: the folded IDs that can match, if IDsOnly
	IDsOnly   bool       // IDs has all candidates
	Prefix    string     // folded prefix of the IDs that a scan must look at
	Low       string     // bounds of their keys: see docs.Range
	High      string     //
	Changes   *Changes   // instead of paths: the changes are walked, in the order of commits
	Few       bool       // the documents that a scan looks at were counted, and are few
	Intersect *Path      // candidates must be in this path, too; nil for none
	Residual  query.Expr // the part of the condition left to check on documents; nil for nothing
	Ordered   bool       // candidates come in the query's order
	Reverse   bool       // by walking backwards
	CountOnly bool       // entries can be counted instead of documents

	Conjuncts []query.Expr  // of the query's condition, and what they imply
	Orders    []query.Order // the part of the order that an index must provide: see fieldOrders
	Keys      int           // examined while planning
	Lost      string        // why an index does not give the order of the query, though its fields do; "" if none could
	Hinted    bool          // the query names the index, or asks for none
}

// KeyRange is a range of keys, from Lo up to but not including Hi.
type KeyRange struct {
	Lo, Hi []byte
	at     int // where the last part that lo and hi bind begins, while planning
}

// Bounds of planning.
const (
	MaxRanges      = 500     // that one path has
	maxBranches    = 50      // of an Or that may become a union
	maxAllBranches = 500     // of all such Ors: with more, no union is considered
	maxBranchKeys  = 500_000 // examined in search of a union

	scanPerLookup = 8 // documents that a scan reads in the time of one look-up

	sampledEntries = 200 // from both ends of an index, before an index scan replaces a scan
	sampledShare   = 20  // one in so many entries may be not covering
)

// How many keys planning examines. Variables for tests, which want every plan with
// few documents.
var (
	EstimateKeys = 2000   // examined for a first estimate of a path
	EstimateMany = 20_000 // examined to decide on an intersection
)

// planner makes a plan for one query on one snapshot.
type planner struct {
	rules     ids.Rules
	separator string // of IDs, folded
	q         *query.Query
	snapshot  storage.Reader
	indexes   []*catalog.Index // that are ready, of the collection
	counting  bool             // only the number of answers is wanted
	hint      bool             // indexes has the one that the query names

	conjuncts []query.Expr    // of the condition, and behind those what they imply
	own       int             // how many of them are the condition's own
	set       conjunctSet     // of conjuncts; made when it is needed
	bindings  []*knownBinding // by conjunct: those made so far
	paths     []*Path
	lost      string // of a path that is of no use without its order
	keys      int    // examined while planning
}

// New plans a query with the indexes of a catalog. With counting, only the number
// of answers is wanted, and entries may be counted instead of documents.
func New(q *query.Query, c *catalog.Catalog, snapshot storage.Reader, rules ids.Rules, counting bool) (*Plan, error) {
	p := &planner{rules: rules, separator: rules.Fold(rules.Separator), q: q, snapshot: snapshot, counting: counting}
	p.conjuncts, p.own = withImplied(conjunctsOf(q.Where))
	if q.From != "" && !q.NoIndex {
		collection := format.FoldName(q.From)
		p.indexes = make([]*catalog.Index, 0, min(len(c.All), 8))
		for _, ix := range c.All {
			if ix.Collection == collection && ix.Info.State == index.Ready && ix.Unknown == nil && p.implies(ix) {
				p.indexes = append(p.indexes, ix)
			}
		}
	}
	var pl *Plan
	var err error
	if q.UseIndex != "" {
		pl, err = p.hinted(c)
	} else {
		pl, err = p.plan()
	}
	if err != nil {
		return nil, err
	}
	pl.Conjuncts, pl.Keys, pl.Hinted = p.conjuncts, p.keys, pl.Hinted || q.NoIndex
	if len(q.OrderBy) > 0 {
		pl.Orders = p.fieldOrders()
	}
	if pl.Lost == "" && !pl.Ordered {
		pl.Lost = p.lost
	}
	return pl, nil
}

// plan looks for IDs in the condition first, then for indexes.
func (p *planner) plan() (*Plan, error) {
	if pl := p.byID(); pl != nil {
		return pl, nil
	}
	for _, ix := range p.indexes {
		if err := p.addPath(ix); err != nil {
			return nil, err
		}
	}
	return p.choose()
}

// choose picks the cheapest plan.
func (p *planner) choose() (*Plan, error) {
	if pl, err := p.union(); pl != nil || err != nil {
		return pl, err
	}
	byEtag := p.etagOrder() && p.q.HasLimit
	if len(p.paths) == 1 && len(p.paths[0].used) > 0 && !byEtag {
		return p.over(p.paths[0], nil), nil // nothing to compare it with
	}

	// Estimate the paths that bind most fields first: they are likely to have the
	// fewest entries, and so limit how far the others are counted.
	var bounded, ordered []*Path
	fewest := EstimateKeys
	slices.SortStableFunc(p.paths, func(a, b *Path) int { return b.Equal - a.Equal })
	for _, a := range p.paths {
		if len(a.used) == 0 && p.orderBy(a) == orderNone {
			continue
		}
		// A path that has more entries than another need not be counted to its end.
		if err := p.estimate(a, fewest); err != nil {
			return nil, err
		}
		if len(a.used) > 0 && !a.more {
			fewest = min(fewest, a.estimate+1)
		}
		if len(a.used) > 0 {
			bounded = append(bounded, a)
		}
		if p.orderBy(a) != orderNone {
			ordered = append(ordered, a)
		}
	}
	// Among paths with as many entries: one that needs no documents, then one that needs
	// no sort, then the simplest. The name of the index makes the choice repeatable.
	byEstimate := func(a, b *Path) int {
		return cmp.Or(a.estimate-b.estimate, compareBool(b.covers, a.covers), compareBool(p.orderBy(b) != orderNone, p.orderBy(a) != orderNone), len(a.Ranges)-len(b.Ranges), b.Equal-a.Equal, compareBool(b.bounded, a.bounded), len(a.Index.Fields)-len(b.Index.Fields), strings.Compare(a.Index.Info.Name, b.Index.Info.Name))
	}
	slices.SortStableFunc(bounded, byEstimate)
	slices.SortStableFunc(ordered, byEstimate)

	switch {
	case len(bounded) > 0 && !bounded[0].more:
		return p.over(bounded[0], nil), nil // few: sorting them costs nothing
	case len(ordered) > 0 && (p.q.HasLimit || len(bounded) == 0 || ordered[0] == bounded[0]):
		return p.over(ordered[0], nil), nil
	case byEtag:
		return p.changes() // bounded paths have many entries, all of which would be sorted
	case len(bounded) > 1:
		return p.intersect(bounded)
	case len(bounded) > 0:
		return p.over(bounded[0], nil), nil
	}

	// No condition or order has an index: walk the changes, the documents, or the whole
	// of an index that covers.
	if pl, err := p.changes(); pl != nil || err != nil {
		return pl, err
	}
	scan := p.scan()
	if !scan.IsScan() || scan.Ordered || scan.Low != "" || scan.High != "" {
		return scan, nil
	}
	a, err := p.indexScan()
	if a == nil || err != nil {
		return scan, err
	}
	return p.over(a, nil), nil
}

func compareBool(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return 1
	}
	return -1
}

// over is the plan that takes candidates from path a, intersected with another path if
// that is not nil.
func (p *planner) over(a, with *Path) *Plan {
	pl := &Plan{Access: []*Path{a}, Intersect: with, Residual: p.residual(a, with)}
	switch p.orderBy(a) {
	case orderForward:
		pl.Ordered = true
	case orderReverse:
		pl.Ordered, pl.Reverse = true, true
	default:
		pl.Lost = a.lost
	}
	pl.CountOnly = pl.Residual == nil && with == nil
	return pl
}

// residual returns the conjuncts that the paths do not decide exactly.
func (p *planner) residual(paths ...*Path) query.Expr {
	var few [32]bool // on the stack
	answered := few[:]
	if len(p.conjuncts) > len(few) {
		answered = make([]bool, len(p.conjuncts))
	}
	var filters map[string]bool // as RQL
	for _, a := range paths {
		if a == nil {
			continue
		}
		for _, i := range a.exact {
			answered[i] = true
		}
		// A conjunct that a partial index has in its own condition is true of every entry.
		for _, f := range conjunctsOf(a.Index.Filter) {
			if filters == nil {
				filters = make(map[string]bool)
			}
			filters[query.FormatCondition(f)] = true
		}
	}
	var left query.And
	for i, e := range p.conjuncts[:p.own] {
		if !answered[i] && (filters == nil || !filters[p.conjunctSet().texts[i]]) {
			left = append(left, e)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return left
}

// IsScan reports whether the plan looks at every document, or at those in a range of
// IDs that may have all of them.
func (pl *Plan) IsScan() bool {
	return !pl.IDsOnly && len(pl.Access) == 0 && pl.Prefix == "" && pl.Changes == nil && !pl.Few
}
