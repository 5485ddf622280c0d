package plan

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/score"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// What a plan costs, in nanoseconds of one core with all blocks in memory. Only the ratios count:
// docs/decisions/0111-the-scan-where-it-is-cheaper.md has the measurements and what the model leaves out.
const (
	scanDocument   = 500  // a document that a scan looks at,
	lookUpDocument = 5000 // one that an entry leads to,
	nearDocument   = 600  // and one that lies near the one before it, each without its bytes
	documentByte   = 1    // of any of them
	coverEntry     = 600  // an entry that answers for its document
	walkEntry      = 300  // an entry that is only walked over
)

// The same where the sizes of all paths are known, measured on another machine with more care: see cheapest and
// docs/decisions/0145-sizes-from-the-engine.md.
const (
	cachedScan  = 300 // a document that a scan looks at, without its bytes,
	cachedNear  = 400 // one that lies near the one before it,
	readNear    = 50  // or this beyond manyNear of them, if all have at most manyBytes, which the cache of blocks keeps from one query to the next
	manyNear    = 512
	manyBytes   = 48 << 20
	farLeast    = 700  // one that lies elsewhere, if there are few of them,
	farRoot     = 16   // and for each of many, times the root of their number,
	farEach     = .12  // and times their number,
	farMost     = 5500 // but no more
	cachedWalk  = 100  // an entry that is walked over
	cachedCover = 450  // one that answers for its document
	collect     = 300  // one whose ID is kept, for an intersection,
	lookFor     = 150  // and one of the other path, which is looked for among these
	sortAnswer  = 500  // an answer that is sorted
	openIndex   = 8000 // the beginning of a path
	openScan    = 5000 // and of a scan
)

// ScanFrom is how many entries a plan must have, or documents it must have looked up, before it is compared with a scan: with
// fewer, the comparison would cost more than it could save. A variable for tests.
var ScanFrom = 480

// EarlyLookUps is how many documents a plan that may end early looks up before others are sampled, to see whether one is
// cheaper. It is asked first after a quarter of them. A variable for tests.
var EarlyLookUps = 64

// countedPerLookUp is how many entries of each other path are counted for a document that a plan that may end early
// has looked up: about as many as are counted in a third of that time.
const countedPerLookUp = 8

// Bounds of what changing a plan under way keeps in memory.
const (
	sortedDocument = 300    // bytes of a document to be sorted, beside its JSON
	maxGiven       = 10_000 // answers without an order, which must not come again
)

// Options are what a plan is for.
type Options struct {
	Groups   []query.Expr // conditions on the groups that are wanted, which decide nothing
	Counting bool         // only the number of answers is wanted, and entries may be counted instead of documents
	NoScan   bool         // a scan would be refused
	MaxBytes int          // that the query may sort

	Scores *score.Scores // of the query; nil for none

	// Means are what candidates are found with that are counted.
	Means catalog.Means

	// OwnSeveral reports whether a document that the transaction has written is in several groups of an index, which its flags do not say
	// before the commit; nil for no such documents.
	OwnSeveral func(ix *catalog.Index) bool

	// Size returns how many documents a collection has, and their bytes; 0 if that is not known.
	Size func(foldedCollection string) (format.Tally, error)

	// Space knows how many bytes ranges of keys take in the tables of the engine, in whole blocks, and says so within microseconds; nil if
	// nothing does.
	Space storage.SpaceMeasurer
}

// Estimate is what a plan was expected to take.
type Estimate struct {
	Plan      *Plan
	Keys      int64 // of entries
	Documents int64
	More      bool // at least as many: they were not counted further
	About     bool // by figures, not counted
}

// String describes an estimate, for Explain.
func (e Estimate) String() string {
	least := ""
	switch {
	case e.About:
		least = "about "
	case e.More:
		least = "at least "
	}
	text := "scan " + e.Plan.from
	switch access := e.Plan.Access; {
	case len(access) > 1:
		text = "union"
	case e.Plan.Intersect != nil:
		text = access[0].String() + ", and " + e.Plan.Intersect.String()
	case len(access) == 1:
		text = access[0].String()
	}
	if e.Keys == 0 {
		return fmt.Sprintf("%s%d documents by %s", least, e.Documents, text)
	}
	return fmt.Sprintf("%s%d keys and %d documents by %s", least, e.Keys, e.Documents, text)
}

// costs are those of one collection.
type costs struct {
	documents int64
	scan      int64 // of all documents
	lookUp    int64 // of one
	bytes     int64 // of one
}

// costs returns those of the query's collection, or nil if its size is not known.
func (p *planner) costs() (*costs, error) {
	if p.options.Size == nil {
		return nil, nil
	}
	t, err := p.tally()
	if err != nil || t.Documents <= 0 {
		return nil, err
	}
	c := &costs{documents: t.Documents, bytes: t.Bytes / t.Documents}
	c.scan = t.Documents*scanDocument + t.Bytes*documentByte
	c.lookUp = lookUpDocument + c.bytes*documentByte
	return c, nil
}

// tally returns how many documents the collection has, and their bytes.
func (p *planner) tally() (format.Tally, error) {
	if len(p.indexes) == 0 {
		return p.options.Size(format.CollectionKey(p.q.From))
	}
	moment, err := p.indexes[0].At(p.snapshot)
	if err != nil {
		return format.Tally{}, err
	}
	if t := moment.Tally.Load(); t != nil {
		return *t, nil
	}
	t, err := p.options.Size(format.CollectionKey(p.q.From))
	if err == nil {
		moment.Tally.Store(&t)
	}
	return t, err
}

// isGrouped reports whether an answer is made of several documents.
func (p *planner) isGrouped() bool {
	if len(p.q.GroupBy) > 0 || p.q.Having != nil || len(p.q.Facets) > 0 {
		return true
	}
	for _, c := range p.q.Select {
		if c.Func != 0 {
			return true
		}
	}
	return false
}

// weigh returns pl, which takes its candidates from paths, or the scan if that costs less. A plan that may
// end early is not compared, as the candidates that it needs are not known: see Plan.Instead.
func (p *planner) weigh(pl *Plan) (*Plan, error) {
	a := pl.Access[0]
	inOrder := len(p.q.OrderBy) == 0 || pl.Ordered
	switch {
	case p.options.NoScan || a.Answer != nil || slices.ContainsFunc(pl.Access, (*Path).readsAll) || len(pl.Access) == 1 && pl.Intersect == nil && p.readsNone(a, pl.CountOnly):
		return pl, nil
	case inOrder && pl.Residual == nil && p.mayEndEarly() && p.q.Offset+p.q.Limit <= EstimateKeys:
		return pl, nil // the first entries are the answers
	case inOrder && p.mayEndEarly() && (a.more || a.estimate == 0):
		pl.planner = p
		return pl, nil
	case inOrder && p.mayEndEarly():
		return pl, nil // few, and known
	case pl.Ordered && !p.isGrouped():
		return pl, nil // no memory grows with the answers; a sort might have to refuse them
	case len(pl.Access) == 1 && pl.Intersect == nil && a.estimate == 0:
		pl.planner, pl.unweighed = p, true // nothing was counted: it may have few entries
		return pl, nil
	}
	return p.compare(pl)
}

// Weigh compares a plan of one path, of which ScanFrom documents were looked up by now, with the others. It returns the one that
// costs less, and nil if there is none. Before that many it is not worth the asking.
func (pl *Plan) Weigh() (better *Plan, err error) {
	p := pl.planner
	keys := p.keys
	defer func() { pl.Keys += p.keys - keys }()
	better, err = p.cheapest(true)
	if better == nil && err == nil {
		better, err = p.compare(pl)
	}
	if err != nil || better == pl || len(better.Access) == 1 && better.Access[0] == pl.Access[0] && better.Intersect == nil {
		return nil, err
	}
	better.planner, better.Lost = nil, pl.Lost
	better.replaces(pl)
	return better, nil
}

// replaces makes pl answer in place of another plan of the query, whose answers are collected or come sorted.
func (pl *Plan) replaces(other *Plan) {
	pl.Conjuncts, pl.Orders, pl.Keys = other.Conjuncts, other.Orders, other.Keys
	pl.Ordered, pl.Reverse = false, false
}

// IsUnweighed reports whether the plan is to be compared with the scan under way: see Weigh.
func (pl *Plan) IsUnweighed() bool { return pl.unweighed }

// compare returns pl or the scan, whichever costs less.
func (p *planner) compare(pl *Plan) (*Plan, error) {
	a := pl.Access[0]
	// A few candidates are cheap, be there a scan that is cheaper.
	n, err := p.entries(pl, ScanFrom)
	if err != nil || n <= int64(ScanFrom) {
		return pl, err
	}
	c, err := p.costs()
	if c == nil || err != nil {
		return pl, err
	}
	if n, err = p.entries(pl, min(EstimateKeys, int(c.scan/c.lookUp)+1)); err != nil {
		return nil, err
	}
	each := c.lookUp + walkEntry
	if n > int64(EstimateKeys) { // enough for a look at where the documents lie
		if each, err = p.costEach(c, a); err != nil {
			return nil, err
		}
	}
	if a.covers && len(pl.Access) == 1 {
		uncovered := int64(a.uncovered) * each / int64(max(1, a.estimate))
		each = coverEntry + uncovered
	}
	cost := func(n int64) int64 { return n * each }
	if pl.Intersect != nil {
		// As many documents as there are if one condition says nothing about the other.
		small, large := int64(pl.Intersect.estimate), int64(a.estimate)
		cost = func(int64) int64 { return (small+large)*walkEntry + small*large/c.documents*each }
	} else if each*c.documents <= c.scan && a.flags == 0 {
		return pl, nil // however many they are
	} else if n, err = p.entries(pl, int(c.scan/each)+1); err != nil {
		return nil, err
	}
	scan := p.scan()
	pl.Estimates = []Estimate{p.estimated(pl, n), {Plan: scan, Documents: c.documents}}
	if better, err := p.nearer(pl, c, min(cost(n), c.scan)); better != nil || err != nil {
		return better, err
	}
	if cost(n) <= c.scan {
		return pl, nil
	}
	scan.Chosen = true
	scan.Estimates = []Estimate{pl.Estimates[1], pl.Estimates[0]}
	return scan, nil
}

// nearer returns a plan over another path whose documents lie near one another, if that costs less than least, or nil: it may
// have many more entries.
func (p *planner) nearer(pl *Plan, c *costs, least int64) (better *Plan, err error) {
	for _, a := range p.bounded {
		if a == pl.Access[0] && pl.Intersect == nil || a.Answer != nil || len(pl.Access) > 1 {
			continue
		}
		each, err := p.costEach(c, a)
		if err != nil {
			return nil, err
		}
		if a.near < 0.5 {
			continue
		}
		if err := p.estimate(a, int(least/each)+1); err != nil {
			return nil, err
		}
		if n := int64(a.estimate); !a.more && n*each < least {
			better, least = p.over(a, nil), n*each
			better.Estimates = []Estimate{p.estimated(better, n), pl.Estimates[0]}
		}
	}
	return better, nil
}

// readsNone reports whether a plan of one path reads no document. decides is whether the path decides the whole condition.
func (p *planner) readsNone(a *Path, decides bool) bool {
	if decides && (p.options.Counting || a.covers && a.IsMinMax(p.q)) {
		return true
	}
	if !a.covers {
		return false
	}
	c := NewCover(p.q, p.options.Counting, a.Index, p.residual(a))
	return c != nil && !c.wants && !c.ids
}

// costEach returns what one entry of a path costs, with its document.
func (p *planner) costEach(c *costs, a *Path) (_ int64, err error) {
	if err := p.sampleNear(c, a); err != nil {
		return 0, err
	}
	return c.lookUp + walkEntry - int64(a.near*(lookUpDocument-nearDocument)), nil
}

// sampleNear sets which share of the documents of a path lie near one another.
func (p *planner) sampleNear(c *costs, a *Path) error {
	if a.sampled {
		return nil
	}
	f, err := p.figures(c, a.Index)
	if err != nil {
		return err
	}
	if a.near, a.sampled = f.Near, true; a.near < 0 {
		if a.near, err = p.shareNear(a); err != nil {
			return err
		}
		a.Index.Figures.Store(f.WithNear(a.near))
	}
	return nil
}

// Of what shareNear reads.
const (
	nearEntries = 48 // from the beginning of a path
	nearSteps   = 3  // from a document to the next one
)

// shareNear returns which share of the documents of a path lie near one another, as they are looked up in the order of
// IDs, many at a time: an index on a field that grows with the IDs leads to neighbours, which cost little more than in
// a scan. It reads a few documents at the beginning of the path.
func (p *planner) shareNear(a *Path) (share float64, err error) {
	if len(a.Ranges) == 0 {
		return 0, nil
	}
	entries, err := p.snapshot.Iterate(a.Ranges[0].Lo, a.Ranges[0].Hi)
	if err != nil {
		return 0, err
	}
	defer func() { err = errs.First(err, entries.Close()) }()
	var keys [][]byte
	for ok := entries.First(); ok && len(keys) < nearEntries; ok = entries.Next() {
		folded, err := a.Index.AppendDecodedID(nil, entries.Key(), entries.Value())
		if err != nil {
			return 0, err
		}
		keys = append(keys, format.AppendDocumentKey(nil, folded))
	}
	if err := entries.Error(); err != nil || len(keys) < 2 {
		return 0, err
	}
	slices.SortFunc(keys, bytes.Compare)
	documents, err := p.snapshot.Iterate(keys[0], append(keys[len(keys)-1], 0))
	if err != nil {
		return 0, err
	}
	defer func() { err = errs.First(err, documents.Close()) }()
	near := 0
	ok := documents.First()
	for _, key := range keys[1:] {
		for step := 0; ok && step < nearSteps && bytes.Compare(documents.Key(), key) < 0; step++ {
			ok = documents.Next()
		}
		if ok && bytes.Equal(documents.Key(), key) {
			near++
		} else if ok {
			ok = documents.SeekGE(key)
		}
	}
	p.keys += len(keys)
	return float64(near) / float64(len(keys)-1), documents.Error()
}

// entries returns how many entries the paths of a plan have, counted until there are more than limit.
func (p *planner) entries(pl *Plan, limit int) (n int64, err error) {
	for _, a := range pl.Access {
		if err := p.estimate(a, limit+1); err != nil {
			return 0, err
		}
		if n += int64(a.estimate); n > int64(limit) {
			break
		}
	}
	return n, nil
}

// estimated describes what a plan was expected to take.
func (p *planner) estimated(pl *Plan, n int64) Estimate {
	e := Estimate{Plan: pl, Keys: n, Documents: n}
	for _, a := range pl.Access {
		e.More = e.More || a.more
	}
	switch {
	case len(pl.Access) > 1:
	case pl.Intersect != nil:
		e.Keys += int64(pl.Intersect.estimate)
		e.Documents = int64(pl.Intersect.estimate)
	case pl.Access[0].covers:
		e.Documents = int64(pl.Access[0].uncovered)
	}
	return e
}

// MayEndEarly reports whether another plan may answer the rest: see Instead.
func (pl *Plan) MayEndEarly() bool { return pl.planner != nil && !pl.unweighed }

// HasSizes reports whether the sizes of all paths are known without counting, so that Instead costs little.
func (pl *Plan) HasSizes() bool {
	own := pl.Access[0]
	return own.guessed || len(own.used) == 0 && !own.more
}

// Instead is asked once pl, a plan that may end early, has looked up some documents without an end, and met given answers, those that are
// skipped included. It returns the plan that
// answers from now on; or nil, and after how many look-ups it is to be asked again, 0 for never. The answers
// that pl has given are not to come again.
//
// So a plan that may end early costs at most about twice what the cheapest other one does: it gives way when it has
// cost as much, or before if the conditions, were they independent of the order, or the answers so far let it expect more.
func (pl *Plan) Instead(looked, given int64) (instead *Plan, after int64, err error) {
	p := pl.planner
	keys := p.keys
	defer func() {
		pl.Keys += p.keys - keys
	}()
	c, err := p.costs()
	if c == nil || err != nil {
		return nil, 0, err
	}
	// Both keep in memory what pl would not.
	need := int64(p.q.Offset) + int64(p.q.Limit)
	if need < 0 || pl.Ordered && need*(c.bytes+sortedDocument) > int64(p.options.MaxBytes)/2 || !pl.Ordered && need > maxGiven {
		return nil, 0, nil
	}
	if instead = p.scan(); instead.Ordered {
		return nil, 0, nil // by ID: neither is sorted
	}

	if pl.HasSizes() {
		if instead, after, err = p.insteadBySize(c, pl, looked, given); instead != nil {
			instead.Chosen = true
			instead.replaces(pl)
		}
		return instead, after, err
	}

	// Counting further must stay cheap beside the look-ups that there were.
	after = c.scan / c.lookUp
	most := min(after, max(earlyKeys, countedPerLookUp*looked))
	own, slower := pl.Access[0], false
	if !pl.Ordered && own.Answer == nil && most == after {
		// The answers may come in any order: they come sooner by the way that costs less for all of them.
		each, err := p.costEach(c, own)
		if err != nil {
			return nil, 0, err
		}
		if err := p.estimate(own, int(c.scan/each)+1); err != nil {
			return nil, 0, err
		}
		slower = own.more
	}
	fewest := (*Path)(nil)
	for _, a := range p.bounded {
		if a == pl.Access[0] || a.Answer != nil {
			continue
		}
		each := c.lookUp
		if looked > int64(EarlyLookUps) {
			if each, err = p.costEach(c, a); err != nil {
				return nil, 0, err
			}
		}
		if err := p.estimate(a, int(min(after*c.lookUp/each, most))+1); err != nil {
			return nil, 0, err
		}
		if n := int64(a.estimate) * each / c.lookUp; !a.more && n < after {
			fewest, after = a, n
		}
	}
	switch {
	case slower:
		after = 0
	case fewest == nil:
	case pl.Ordered && after*int64(fewest.estimate) <= need*c.documents:
		after = 0 // of so many documents in order, this part would be answers
	case !pl.Ordered && (own.more || own.estimate == 0 || own.estimate > fewest.estimate):
		after = 0
	}
	if looked < after {
		if most < c.scan/c.lookUp {
			after = min(after, 4*looked) // others may have fewer entries than were counted
		}
		return nil, after, nil
	}
	if fewest != nil {
		instead = p.over(fewest, nil)
	}
	instead.Chosen = true
	instead.replaces(pl)
	return instead, 0, nil
}
