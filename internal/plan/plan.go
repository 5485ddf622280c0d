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
	Kept      *Kept      // instead of documents: the groups that an index keeps
	Facets    []*Counted // instead of documents: how indexes count those of each facet
	Along     *Along     // instead of documents: groups are made of the entries of the path
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
	Chosen    bool          // though an index could answer: a scan that costs less, or a plan instead of another one
	Estimates []Estimate    // of this plan and the other one that it was compared with; nil if it was not
	Hinted    bool          // the query names the index, or asks for none

	from      string   // the collection of a scan
	planner   *planner // that knows what may answer instead; nil for nothing: see Instead
	unweighed bool     // see Weigh
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

	raceKeys       = 32  // of each path that are counted first: see race
	earlyKeys      = 256 // that are counted of a path before a plan is begun that may end early
	leastEarlyKeys = 64  // and as few, if it is in order and has few answers to find: see earlyLimit
	keysPerAnswer  = 4   // of each of these

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
	options   Options
	hint      bool // indexes has the one that the query names

	conjuncts []query.Expr    // of the condition, and behind those what they imply
	own       int             // how many of them are the condition's own
	set       conjunctSet     // of conjuncts; made when it is needed
	bindings  []*knownBinding // by conjunct: those made so far
	paths     []*Path
	grouping  []*Path       // that have no use but that groups may be made of their entries
	bounded   []*Path       // those of paths with a condition, if there are several
	asked     []query.Field // that are looked at whatever the plan is; made when it is needed
	lost      string        // of a path that is of no use without its order
	keys      int           // examined while planning
	fewest    int           // entries of a path whose size is known by now: see size
}

// New plans a query with the indexes of a catalog.
func New(q *query.Query, c *catalog.Catalog, snapshot storage.Reader, rules ids.Rules, o Options) (*Plan, error) {
	p := &planner{rules: rules, separator: rules.Fold(rules.Separator), q: q, snapshot: snapshot, options: o}
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
	if pl, err = p.along(pl); err != nil {
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
	if pl, err := p.kept(); pl != nil || err != nil {
		return pl, err
	}
	if pl, err := (parts{p}).counted(); pl != nil || err != nil {
		return pl, err
	}
	for _, ix := range p.indexes {
		if err := p.addPath(ix); err != nil {
			return nil, err
		}
		if n := len(p.paths); n > 0 && p.paths[n-1].isEmpty() {
			return p.over(p.paths[n-1], nil), nil // the conditions contradict each other
		}
	}
	return p.choose()
}

// choose picks the cheapest plan.
func (p *planner) choose() (*Plan, error) {
	if a := p.ranked(); a != nil {
		return p.over(a, nil), nil
	}
	if pl, err := p.union(); err != nil {
		return nil, err
	} else if pl != nil {
		return p.weigh(pl)
	}
	byEtag := p.etagOrder() && p.q.HasLimit
	if a := p.exactPath(); a != nil {
		return p.weigh(p.over(a, nil))
	}
	if !byEtag {
		if pl, err := p.cheapest(false); pl != nil || err != nil {
			return pl, err
		}
	}
	var bounded, ordered []*Path
	for _, a := range p.paths {
		inOrder := p.orderBy(a) != orderNone
		if inOrder {
			ordered = append(ordered, a)
		}
		if len(a.used) > 0 {
			bounded = append(bounded, a)
		} else if inOrder {
			a.estimate, a.more = EstimateKeys, true // all of its index: not worth counting
		}
	}
	if len(bounded) == 1 && !byEtag && (len(ordered) == 0 || len(ordered) == 1 && ordered[0] == bounded[0]) {
		return p.weigh(p.over(bounded[0], nil)) // nothing to compare it with
	}
	limit, early := EstimateKeys, p.mayEndEarly() && (len(ordered) > 0 || len(p.q.OrderBy) == 0)
	if early && !slices.ContainsFunc(ordered, (*Path).isLikely) { // one that is has its answers by reading many keys
		limit = min(limit, p.earlyLimit()) // they are counted further when the answers turn out to be rare: see Instead
	}
	if err := p.race(bounded, limit); err != nil {
		return nil, err
	}
	slices.SortStableFunc(bounded, p.byEstimate)
	slices.SortStableFunc(ordered, p.byEstimate)
	p.bounded = bounded

	switch {
	case len(bounded) > 0 && !bounded[0].more:
		return p.weigh(p.over(bounded[0], nil)) // few: sorting them costs nothing
	case len(ordered) > 0 && (p.q.HasLimit || len(bounded) == 0 || ordered[0] == bounded[0]):
		return p.weigh(p.over(ordered[0], nil))
	case byEtag:
		return p.changes() // bounded paths have many entries, all of which would be sorted
	case len(bounded) > 1 && !early:
		pl, err := p.intersect(bounded)
		if err != nil {
			return nil, err
		}
		return p.weigh(pl)
	case len(bounded) > 0:
		return p.weigh(p.over(bounded[0], nil))
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

// byEstimate orders paths by how many entries they have. Among those with as many: one that needs no documents,
// then one that needs no sort, then the simplest. The name of the index makes the choice repeatable.
func (p *planner) byEstimate(a, b *Path) int {
	return cmp.Or(a.estimate-b.estimate, compareBool(a.more, b.more), compareBool(b.covers, a.covers), compareBool(p.orderBy(b) != orderNone, p.orderBy(a) != orderNone), len(a.Ranges)-len(b.Ranges), b.Equal-a.Equal, compareBool(b.bounded, a.bounded), len(a.Index.Fields)-len(b.Index.Fields), strings.Compare(a.Index.Info.Name, b.Index.Info.Name))
}

// exactPath returns a path that decides the whole condition: no path has fewer entries, so that none need be counted. With a
// limit it must have the order, too, as another one may then end early. It is nil if there is none.
func (p *planner) exactPath() (best *Path) {
	if p.etagOrder() {
		return nil
	}
	for _, a := range p.paths {
		inOrder := len(p.q.OrderBy) == 0 || p.orderBy(a) != orderNone || !p.q.HasLimit || p.isGrouped()
		if a.Equal == 0 && len(p.q.OrderBy) == 0 && p.mayEndEarly() && p.q.Offset+p.q.Limit > raceKeys {
			continue // if most documents satisfy the condition, a scan comes to the answers sooner
		}
		if a.Answer == nil && len(a.used) > 0 && inOrder && p.decides(a) && (best == nil || p.byEstimate(a, best) < 0) {
			best = a
		}
	}
	return best
}

// mayEndEarly reports whether the query needs no more candidates than its limit, if they are answers and come in order.
func (p *planner) mayEndEarly() bool {
	return p.q.HasLimit && !p.options.Counting && !p.isGrouped() && !p.q.IsDistinct()
}

// earlyLimit is how many entries of a path are counted before a plan is begun that may end early. A few answers along an order
// cost less than the counting of many entries.
func (p *planner) earlyLimit() int {
	need := p.q.Offset + p.q.Limit
	if len(p.q.OrderBy) == 0 || need < 0 || need > earlyKeys {
		return earlyKeys
	}
	return min(max(leastEarlyKeys, keysPerAnswer*need), earlyKeys)
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
		pl.Ordered = a.Answer == nil || a.Answer.Ordered // what is Likely is sorted
	case orderReverse:
		pl.Ordered, pl.Reverse = true, true
	default:
		pl.Lost = a.lost
	}
	pl.CountOnly = pl.Residual == nil && with == nil
	return pl
}

// decides reports whether a path decides the whole condition: it is residual without the rest.
func (p *planner) decides(a *Path) bool {
	if a.Index.Filter != nil {
		return p.residual(a) == nil
	}
	for i := range p.own {
		if !slices.Contains(a.exact, i) {
			return false
		}
	}
	return true
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
	return pl.Kept == nil && pl.Facets == nil && !pl.IDsOnly && len(pl.Access) == 0 && pl.Prefix == "" && pl.Changes == nil && !pl.Few
}
