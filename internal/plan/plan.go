// Package plan chooses how a query is answered: which indexes it uses, which key
// ranges of them, and which part of the condition is left to check on documents
// (the residual). It samples a bounded number of keys to choose, and reads no
// document.
package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Plan is how a query is answered.
type Plan struct {
	Access   []*Path    // the access paths of candidates: several are a union, none means a scan
	IDs      []string   // instead of paths: the folded IDs that can match, if IDsOnly
	IDsOnly  bool       // IDs has all candidates
	Prefix   string     // folded prefix of the IDs that a scan must look at
	Low      string     // bounds of their keys: see docs.Range
	High     string     //
	Changes  *Changes   // instead of paths: the changes are walked, in the order of commits
	Few      bool       // the documents that a scan looks at were counted, and are few
	Also     *Path      // an intersection: candidates must be in this path, too
	Residual query.Expr // the part of the condition left to check on documents; nil for nothing
	Ordered  bool       // candidates come in the query's order
	Reverse  bool       // by walking backwards
	Counted  bool       // count-only: entries can be counted instead of documents

	Conjuncts []query.Expr  // of the query's condition, and what they imply
	Orders    []query.Order // the part of the order that an index must provide: see fieldOrders
	Keys      int           // examined while planning
	Hinted    bool          // the query names the index
}

// Path is an access path: key ranges of one index.
type Path struct {
	Index    *catalog.Index
	flags    byte
	Ranges   []KeyRange // of whole keys, in rising order
	Equal    int        // leading fields that are bound to single values
	bounded  bool       // a further field is bound to a range
	used     []int      // the conjuncts that the ranges implement
	exact    []int      // those of them that the ranges decide exactly, without a check on the document
	estimate int        // entries in the ranges, up to a bound
	more     bool       // there are more than estimate
	covers   bool       // the entries have all that the query looks at, apart from what the ranges decide
}

// KeyRange is a range of keys, from Lo up to but not including Hi.
type KeyRange struct {
	Lo, Hi []byte
	at     int // where the last part that lo and hi bind begins, while planning
}

// Changes is a range of changes, one of each document, in the order of etags.
type Changes struct {
	First, Last uint64 // etags, both included

	// Ranges are the keys: one range for each node that has written, in rising order.
	// A node that begins to write, in a copy, does so above all etags there are.
	Ranges []KeyRange
}

// Bounds of planning.
const (
	MaxRanges      = 500     // that one path has
	maxBranches    = 50      // of an Or that may become a union
	maxAllBranches = 500     // of all such Ors: with more, no union is considered
	maxBranchKeys  = 500_000 // examined in search of a union

	scanPerLook = 8 // documents that a scan reads in the time of one look-up

	sampledEntries = 200 // from both ends of an index, before an index scan replaces a scan
	sampledShare   = 20  // one in so many entries may be not covering
)

// How many keys planning examines. Variables for tests, which want every plan with
// few documents.
var (
	ProbeKeys = 2000   // examined for a first estimate of a path
	ProbeMany = 20_000 // examined to decide on an intersection
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

	conjuncts []query.Expr // of the condition, and behind those what they imply
	own       int          // how many of them are the condition's own
	said      said         // made when it is needed
	bindings  map[boundField]*binding
	paths     []*Path
	keys      int // examined while planning
}

// boundField is a conjunct and the field of an index that it may bind.
type boundField struct {
	conjunct   int
	text       string
	descending bool
}

// New plans a query with the indexes of a catalog. With counting, only the number
// of answers is wanted, and entries may be counted instead of documents.
func New(q *query.Query, c *catalog.Catalog, snapshot storage.Reader, rules ids.Rules, counting bool) (*Plan, error) {
	p := &planner{rules: rules, separator: rules.Fold(rules.Separator), q: q, snapshot: snapshot, counting: counting}
	p.conjuncts, p.own = withImplied(conjunctsOf(q.Where))
	if q.From != "" {
		for _, ix := range c.All {
			if ix.Collection == format.FoldName(q.From) && ix.Info.State == index.Ready && p.implies(ix) {
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
	pl.Conjuncts, pl.Keys = p.conjuncts, p.keys
	if len(q.OrderBy) > 0 {
		pl.Orders = p.fieldOrders()
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

// conjunctsOf splits a condition into the conditions that And joins.
func conjunctsOf(e query.Expr) []query.Expr { return appendConjuncts(nil, e) }

func appendConjuncts(dst []query.Expr, e query.Expr) []query.Expr {
	and, ok := e.(query.And)
	if !ok {
		if e == nil {
			return dst
		}
		return append(dst, e)
	}
	for _, part := range and {
		dst = appendConjuncts(dst, part)
	}
	return dst
}

// withImplied appends to conjuncts what those on elements of arrays imply of the
// document, and returns how many there were. Paths may use what is implied to find
// candidates; the conjunct itself is left to check on documents.
func withImplied(conjuncts []query.Expr) (all []query.Expr, own int) {
	own, all = len(conjuncts), conjuncts
	for _, e := range conjuncts {
		if m, ok := e.(query.ElemMatch); ok {
			all = append(all, m.Implied()...)
		}
	}
	return all, own
}

// implies reports whether a partial index has every document that the query asks
// for: whether the query implies each of the index's conditions.
func (p *planner) implies(ix *catalog.Index) bool {
	if ix.Filter == nil {
		return true
	}
	for _, needed := range conjunctsOf(ix.Filter) {
		if !p.saysStricter(needed) {
			return false
		}
	}
	return true
}

// said indexes the conjuncts of a query by their text, so that those of a partial
// index are found without comparing each pair.
type said struct {
	texts  []string // parallel to the conjuncts: as RQL
	has    map[string]bool
	equals map[string][]query.Compare // equalities, by field and value
}

// conjunctsSaid returns the lookup tables of the conjuncts, made on the first call.
func (p *planner) conjunctsSaid() *said {
	s := &p.said
	if s.has != nil {
		return s
	}
	s.has, s.equals = make(map[string]bool), make(map[string][]query.Compare)
	for _, e := range p.conjuncts {
		text := query.FormatCondition(e)
		s.texts = append(s.texts, text)
		if s.has[text] {
			continue
		}
		s.has[text] = true
		if c, ok := e.(query.Compare); ok && c.Op == query.Equal {
			s.equals[equalKey(c)] = append(s.equals[equalKey(c)], c)
		}
	}
	return s
}

// saysStricter reports whether the query has the condition needed, or its
// case-sensitive form, which implies it.
func (p *planner) saysStricter(needed query.Expr) bool {
	said := p.conjunctsSaid()
	if said.has[query.FormatCondition(needed)] {
		return true
	}
	b, ok := needed.(query.Compare)
	return ok && b.Op == query.Equal && slices.ContainsFunc(said.equals[equalKey(b)], func(a query.Compare) bool {
		return a.Value.Equal(b.Value) && (!a.Fold || b.Fold)
	})
}

// equalKey is the lookup key of an equality: its field and its value.
func equalKey(c query.Compare) string {
	key, _ := query.AppendKey([]byte(c.Field.String()+"\x00"), c.Value, false)
	return string(key)
}

// byID plans a query that names the IDs it asks for, or returns nil.
func (p *planner) byID() *Plan {
	for _, e := range p.conjuncts {
		var values []query.Value
		switch e := e.(type) {
		case query.Compare:
			if e.Op == query.Equal && p.namesIDs(e.Field, e.Fold) {
				values = []query.Value{e.Value}
			}
		case query.In:
			if !e.All && p.namesIDs(e.Field, e.Fold) {
				values = e.Values
			}
		}
		if values == nil {
			continue
		}
		// IDs are few: the whole condition is checked again.
		pl := &Plan{IDsOnly: true, Residual: p.q.Where}
		for _, v := range values {
			if v.Kind() == query.KindText {
				pl.IDs = append(pl.IDs, p.rules.Fold(v.Text()))
			}
		}
		slices.Sort(pl.IDs)
		pl.IDs = slices.Compact(pl.IDs)
		return pl
	}
	return nil
}

// namesIDs reports whether the texts that a field is compared with name documents.
// In a database with case-sensitive IDs, a comparison that ignores case does not.
func (p *planner) namesIDs(f query.Field, fold bool) bool {
	return f.Meta == query.MetaID && !(fold && p.rules.CaseSensitive)
}

// addPath adds the path of an index, if the conjuncts bind its fields or the order
// uses it.
func (p *planner) addPath(ix *catalog.Index) error {
	if !p.concerns(ix.Fields[0]) && !p.covers(ix, p.residual(&Path{Index: ix})) {
		return nil // saves reading its flags
	}
	flags, err := catalog.ReadFlags(p.snapshot, ix.Number)
	if err != nil {
		return err
	}
	a := &Path{Index: ix, flags: flags}
	prefixes := []KeyRange{{Lo: format.AppendIndexPrefix(nil, ix.Number)}}
	for i, f := range ix.Fields {
		bound := p.bind(f, flags)
		if bound == nil || len(prefixes)*len(bound.ranges) > MaxRanges {
			break
		}
		extended := extend(prefixes, bound.ranges)
		point := bound.point
		if bound.equal && !point && (i+1 < len(ix.Fields) || p.idOrder()) {
			spelt, err := p.spellings(extended)
			if err != nil {
				return err
			}
			if spelt != nil {
				extended, point = spelt, true
			}
		}
		prefixes = extended
		a.used = append(a.used, bound.used...)
		if !bound.recheck {
			a.exact = append(a.exact, bound.used...)
		}
		if !point {
			a.bounded = true
			break
		}
		a.Equal++
	}
	for _, r := range prefixes {
		if r.Hi == nil {
			r.Hi = format.PrefixEnd(r.Lo)
		}
		a.Ranges = append(a.Ranges, r)
	}
	slices.SortFunc(a.Ranges, func(x, y KeyRange) int { return bytes.Compare(x.Lo, y.Lo) })
	a.Ranges = slices.CompactFunc(a.Ranges, func(x, y KeyRange) bool { return bytes.Equal(x.Lo, y.Lo) && bytes.Equal(x.Hi, y.Hi) })
	a.covers = p.covers(ix, p.residual(a))
	if len(a.used) > 0 || p.orderBy(a) != orderNone || a.replacesScan() {
		p.paths = append(p.paths, a)
	}
	return nil
}

// replacesScan reports whether walking over the whole index gives what a scan
// gives, each document once.
func (a *Path) replacesScan() bool { return a.covers && a.flags&catalog.FlagMultiple == 0 }

// maxSpellings is how many case variants of equal texts a path distinguishes.
const maxSpellings = 16

// spellings replaces ranges of texts that are equal but for case by one range for
// each variant that the index has, usually one. Then the fields after it can be
// bound, and the order of the index used. It returns nil if there are many
// variants.
func (p *planner) spellings(ranges []KeyRange) ([]KeyRange, error) {
	out := []KeyRange{}
	for _, r := range ranges {
		if r.Hi == nil {
			out = append(out, r) // the value has only one spelling
			continue
		}
		it, err := p.snapshot.Iterate(r.Lo, r.Hi)
		if err != nil {
			return nil, err
		}
		few := true
		for ok := it.First(); ok && few; ok = it.SeekGE(format.PrefixEnd(out[len(out)-1].Lo)) {
			p.keys++
			rest, found := query.SkipKey(it.Key()[r.at:])
			if !found {
				return nil, errors.Join(fmt.Errorf("index entry %x: %w", it.Key(), storage.ErrCorrupt), it.Close())
			}
			out = append(out, KeyRange{Lo: bytes.Clone(it.Key()[:len(it.Key())-len(rest)])})
			few = len(out) <= maxSpellings
		}
		if err := errs.First(it.Error(), it.Close()); err != nil || !few {
			return nil, err
		}
	}
	return out, nil
}

// extend appends ranges of one field to those of the fields before it.
func extend(prefixes []KeyRange, ranges []query.KeyRange) []KeyRange {
	out := make([]KeyRange, 0, len(prefixes)*len(ranges))
	for _, prefix := range prefixes {
		for _, r := range ranges {
			lo := append(bytes.Clone(prefix.Lo), r.Lo...)
			hi := append(bytes.Clone(prefix.Lo), r.Hi...)
			if isPoint(r) {
				hi = nil // everything after Lo: kept open for the next field
			}
			out = append(out, KeyRange{Lo: lo, Hi: hi, at: len(prefix.Lo)})
		}
	}
	return out
}

// binding is how conjuncts bind one field. It is immutable, as several paths share
// it.
type binding struct {
	ranges  []query.KeyRange
	used    []int
	point   bool // each range is one value
	equal   bool // each range holds equal values, possibly in several case variants
	recheck bool
	rank    int // selectivity by kind, best first: rankEqual, rankClosed, rankOpen
}

const (
	rankEqual  = iota
	rankClosed // bounded on both sides
	rankOpen   // bounded on one side
)

// bind combines the conjuncts on a field into a binding, or returns nil. The result
// does not depend on the order of the conjuncts.
func (p *planner) bind(f catalog.Field, flags byte) *binding {
	var all []*binding
	for i := range p.conjuncts {
		if b := p.binding(i, f); b != nil {
			all = append(all, b)
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.SortStableFunc(all, (*binding).compare)
	best := all[0]
	if best.equal || flags&catalog.FlagMultiple != 0 {
		return best // in a document with several values, each may satisfy another condition
	}
	for _, other := range all[1:] {
		best = best.and(other)
	}
	return best
}

// compare orders bindings by how few entries they are likely to leave.
func (b *binding) compare(other *binding) int {
	if c := cmp.Or(b.rank-other.rank, len(b.ranges)-len(other.ranges), compareBool(other.point, b.point)); c != 0 || len(b.ranges) == 0 {
		return c
	}
	return cmp.Or(bytes.Compare(b.ranges[0].Lo, other.ranges[0].Lo), bytes.Compare(b.ranges[0].Hi, other.ranges[0].Hi))
}

// and intersects two bindings of one range each.
func (b *binding) and(other *binding) *binding {
	if len(b.ranges) != 1 || len(other.ranges) != 1 {
		return b
	}
	r, s := b.ranges[0], other.ranges[0]
	if bytes.Compare(s.Lo, r.Lo) > 0 {
		r.Lo = s.Lo
	}
	if bytes.Compare(s.Hi, r.Hi) < 0 {
		r.Hi = s.Hi
	}
	return &binding{ranges: []query.KeyRange{r}, used: append(b.used, other.used...), recheck: b.recheck || other.recheck, rank: b.rank}
}

// binding returns how a conjunct binds a field, or nil. The result is kept, as many
// indexes may have the field.
func (p *planner) binding(conjunct int, f catalog.Field) *binding {
	e := p.conjuncts[conjunct]
	if field, ok := bindableField(e); !ok || !f.Is(field) {
		return nil
	}
	key := boundField{conjunct, f.Text, f.Descending}
	b, found := p.bindings[key]
	if !found {
		if b = bindOne(e, f); b != nil {
			b.used = []int{conjunct}
		}
		if p.bindings == nil {
			p.bindings = make(map[boundField]*binding)
		}
		p.bindings[key] = b
	}
	return b
}

// bindableField returns the field of a condition that may bind one.
func bindableField(e query.Expr) (query.Field, bool) {
	switch e := e.(type) {
	case query.Compare:
		return e.Field, true
	case query.Between:
		return e.Field, true
	case query.StartsWith:
		return e.Field, true
	case query.In:
		return e.Field, len(e.Values) > 0 && len(e.Values) <= MaxRanges
	}
	return query.Field{}, false
}

// bindOne returns how one condition binds its field, which is f, or nil.
func bindOne(e query.Expr, f catalog.Field) *binding {
	var ranges []query.KeyRange
	point, rank := false, rankEqual
	switch e := e.(type) {
	case query.Compare:
		if e.Op == query.Equal {
			ranges, point = []query.KeyRange{query.EqualRange(e.Value, e.Fold, f.Descending)}, true
		} else {
			ranges, rank = []query.KeyRange{query.CompareRange(e.Op, e.Value, e.Fold, f.Descending)}, rankOpen
		}
	case query.Between:
		ranges, rank = []query.KeyRange{query.BetweenRange(e.Lo, e.Hi, e.Fold, f.Descending)}, rankClosed
	case query.StartsWith:
		ranges, rank = []query.KeyRange{query.PrefixRange(e.Text, e.Fold, f.Descending)}, rankClosed
	case query.In:
		values := e.Values
		if e.All {
			values = values[:1]
		}
		for _, v := range values {
			ranges = append(ranges, query.EqualRange(v, e.Fold, f.Descending))
		}
		point = true
	default:
		return nil
	}
	b := &binding{point: point, equal: point, rank: rank}
	for _, r := range ranges {
		b.recheck = b.recheck || r.Recheck
		b.point = b.point && isPoint(r)
		if !r.Empty() {
			b.ranges = append(b.ranges, r)
		}
	}
	if in, ok := e.(query.In); ok && in.All && len(in.Values) > 1 {
		b.recheck = true
	}
	return b
}

// isPoint reports whether a range holds one key part and what follows it.
func isPoint(r query.KeyRange) bool {
	rest, ok := query.SkipKey(r.Lo)
	return ok && len(rest) == 0 && bytes.Equal(r.Hi, format.PrefixEnd(r.Lo))
}

// orderMatch is how the order of an index serves the order of the query.
type orderMatch int

const (
	orderNone orderMatch = iota
	orderForward
	orderReverse
)

// concerns reports whether a condition or the order of the query may use an index
// that begins with f.
func (p *planner) concerns(f catalog.Field) bool {
	binds := func(e query.Expr) bool {
		field, ok := bindableField(e)
		return ok && f.Is(field)
	}
	return slices.ContainsFunc(p.conjuncts, binds) ||
		slices.ContainsFunc(p.q.OrderBy, func(o query.Order) bool { return f.Is(o.Field) })
}

// orderBy returns how the order of a path serves the query.
func (p *planner) orderBy(a *Path) orderMatch {
	if len(p.q.OrderBy) == 0 || len(p.q.GroupBy) > 0 || len(a.Ranges) > 1 {
		return orderNone
	}
	if p.idOrder() && a.isPoints() && a.flags&catalog.FlagCut == 0 { // entries of one value are in the order of IDs
		if a.Index.LastDescending() != p.q.OrderBy[0].Descending {
			return orderReverse
		}
		return orderForward
	}
	if a.flags&(catalog.FlagMultiple|catalog.FlagCut) != 0 {
		return orderNone
	}
	i, match := 0, orderNone
	for _, o := range p.fieldOrders() {
		if o.As != query.CastNone || o.Column != "" || o.Field.Meta != query.MetaNone {
			return orderNone
		}
		if a.Binds(o.Field) {
			continue
		}
		for i < len(a.Index.Fields) && i < a.Equal && !a.Index.Fields[i].Is(o.Field) {
			i++
		}
		if i >= len(a.Index.Fields) || !a.Index.Fields[i].Is(o.Field) {
			return orderNone
		}
		m := orderForward
		if a.Index.Fields[i].Descending != o.Descending {
			m = orderReverse
		}
		if match != orderNone && m != match {
			return orderNone
		}
		match = m
		i++
	}
	if i < len(a.Index.Fields) && i >= a.Equal {
		return orderNone // the fields that follow would decide between ties
	}
	// The IDs of equal values sort in the direction of the index's last field. The
	// query wants ties in the direction of its last order field.
	idsDescending := a.Index.LastDescending() != (match == orderReverse)
	if idsDescending != p.q.OrderBy[len(p.q.OrderBy)-1].Descending {
		return orderNone
	}
	return match
}

// fieldOrders returns the query's order without a final id(), which only gives the
// direction of ties.
func (p *planner) fieldOrders() []query.Order {
	orders := p.q.OrderBy
	last := orders[len(orders)-1]
	if len(orders) > 1 && last.Field.Meta == query.MetaID && last.As == query.CastNone && !p.rules.CaseSensitive {
		return orders[:len(orders)-1]
	}
	return orders
}

// Binds reports whether the path binds a field to one value.
func (a *Path) Binds(field query.Field) bool {
	for i, f := range a.Index.Fields {
		if i < a.Equal && f.Is(field) {
			return true
		}
	}
	return false
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
	var bounded, ordered []*Path
	fewest := ProbeKeys
	slices.SortStableFunc(p.paths, func(a, b *Path) int { return b.Equal - a.Equal })
	for _, a := range p.paths {
		if len(a.used) == 0 && p.orderBy(a) == orderNone {
			continue
		}
		// A path that has more entries than another need not be counted to its end.
		if err := p.probe(a, fewest); err != nil {
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
		return p.changes()
	case len(bounded) > 1:
		return p.intersect(bounded)
	case len(bounded) > 0:
		return p.over(bounded[0], nil), nil
	}
	if pl, err := p.changes(); pl != nil || err != nil {
		return pl, err
	}
	scan := p.scan()
	if !scan.IsScan() || scan.Ordered || scan.Low != "" || scan.High != "" {
		return scan, nil
	}
	a, err := p.insteadOfScan()
	if a == nil || err != nil {
		return scan, err
	}
	return p.over(a, nil), nil
}

// insteadOfScan returns the narrowest path whose index scan gives what a scan over
// the documents gives, or nil.
func (p *planner) insteadOfScan() (*Path, error) {
	var paths []*Path
	for _, a := range p.paths {
		if a.replacesScan() && len(a.used) == 0 {
			paths = append(paths, a)
		}
	}
	slices.SortStableFunc(paths, func(a, b *Path) int {
		return cmp.Or(compareBool(b.HasEnds(p.q), a.HasEnds(p.q)), len(a.Index.Fields)-len(b.Index.Fields))
	})
	for _, a := range paths {
		if told, err := p.isTold(a); told || err != nil {
			return a, err
		}
	}
	return nil, nil
}

// isTold samples the first and the last entries of an index, and reports whether
// enough of them are covering. If many are not, reading their documents one by one
// takes longer than a scan.
func (p *planner) isTold(a *Path) (told bool, err error) {
	where := p.residual(a)
	if c := NewCover(p.q, p.counting, a.Index, where); !c.wants && !c.ids || where == nil && a.HasEnds(p.q) {
		return true, nil // no document would be read
	}
	prefix := format.AppendIndexPrefix(nil, a.Index.Number)
	it, err := p.snapshot.Iterate(prefix, format.PrefixEnd(prefix))
	if err != nil {
		return false, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	looked, not := 0, 0
	look := func(ok bool, next func() bool) {
		for n := 0; ok && n < sampledEntries/2; ok = next() {
			n++
			looked++
			if tellsNot(it.Value()) {
				not++
			}
		}
	}
	look(it.First(), it.Next)
	look(it.Last(), it.Prev)
	p.keys += looked
	return not*sampledShare <= looked, it.Error()
}

// HasEnds reports whether the query asks only for the minimum and the maximum of
// the field by which the entries of the path are ordered.
func (a *Path) HasEnds(q *query.Query) bool {
	if len(q.GroupBy) > 0 || q.Having != nil || a.flags&(catalog.FlagMultiple|catalog.FlagCut) != 0 || a.Equal >= len(a.Index.Fields) {
		return false
	}
	return !slices.ContainsFunc(q.Select, func(c query.Column) bool {
		return c.Func != query.FuncMin && c.Func != query.FuncMax || !a.Index.Fields[a.Equal].Is(c.Field)
	})
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

// over is the plan that takes candidates from path a, intersected with also if that
// is not nil.
func (p *planner) over(a, also *Path) *Plan {
	pl := &Plan{Access: []*Path{a}, Also: also, Residual: p.residual(a, also)}
	switch p.orderBy(a) {
	case orderForward:
		pl.Ordered = true
	case orderReverse:
		pl.Ordered, pl.Reverse = true, true
	}
	pl.Counted = pl.Residual == nil && also == nil
	return pl
}

// residual returns the conjuncts that the paths do not decide exactly.
func (p *planner) residual(paths ...*Path) query.Expr {
	answered := make(map[int]bool)
	var filters map[string]bool // as RQL
	for _, a := range paths {
		if a == nil {
			continue
		}
		for _, i := range a.exact {
			answered[i] = true
		}
		for _, f := range conjunctsOf(a.Index.Filter) {
			if filters == nil {
				filters = make(map[string]bool)
			}
			filters[query.FormatCondition(f)] = true
		}
	}
	var left query.And
	for i, e := range p.conjuncts[:p.own] {
		if !answered[i] && (filters == nil || !filters[p.conjunctsSaid().texts[i]]) {
			left = append(left, e)
		}
	}
	if len(left) == 0 {
		return nil
	}
	return left
}

// intersect finds the path with the fewest candidates, when all have many. It adds
// another path as an intersection if that saves more document reads than walking
// the other path's entries costs.
func (p *planner) intersect(paths []*Path) (*Plan, error) {
	small := paths[0]
	for limit := ProbeKeys; small.more && limit < ProbeMany; {
		limit = min(4*limit, ProbeMany)
		for _, a := range paths {
			if err := p.probe(a, limit); err != nil {
				return nil, err
			}
			if !a.more && (small.more || a.estimate < small.estimate) {
				small = a
			}
		}
	}
	var large *Path
	for _, a := range paths {
		if small.more || a == small || isSubset(a.used, small.used) {
			continue
		}
		if err := p.probe(a, scanPerLook*small.estimate+1); err != nil {
			return nil, err
		}
		if a.estimate <= scanPerLook*small.estimate && (large == nil || a.estimate < large.estimate) {
			large = a
		}
	}
	if large == nil {
		return p.over(small, nil), nil
	}
	return p.over(large, small), nil
}

func isSubset(some, all []int) bool {
	set := make(map[int]bool, len(all))
	for _, i := range all {
		set[i] = true
	}
	return !slices.ContainsFunc(some, func(i int) bool { return !set[i] })
}

// union plans a query whose condition is, or has among its conjuncts, an Or with a
// path for every branch.
func (p *planner) union() (*Plan, error) {
	branches := 0
	for _, e := range p.conjuncts {
		if or, ok := e.(query.Or); ok && len(or) <= maxBranches {
			branches += len(or)
		}
	}
	if branches > maxAllBranches {
		return nil, nil
	}
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
			if a == nil || a.more && !p.hint {
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
		if err := p.probe(a, ProbeKeys); err != nil {
			return false, err
		}
		if len(a.used) > 0 && !a.more && a.estimate < total {
			return true, nil
		}
	}
	return false, nil
}

// bestOf returns the path with the fewest candidates for one branch of an Or, or
// nil.
func (p *planner) bestOf(branch query.Expr) (*Path, error) {
	sub := &planner{rules: p.rules, q: &query.Query{From: p.q.From, Where: branch}, snapshot: p.snapshot}
	sub.conjuncts, sub.own = withImplied(conjunctsOf(branch))
	var best *Path
	for _, ix := range p.indexes {
		if err := sub.addPath(ix); err != nil {
			return nil, err
		}
	}
	for _, a := range sub.paths {
		if err := sub.probe(a, ProbeKeys); err != nil {
			return nil, err
		}
		if best == nil || a.estimate < best.estimate {
			best = a
		}
	}
	p.keys += sub.keys
	return best, nil
}

// probe counts the entries of a path, up to limit.
func (p *planner) probe(a *Path, limit int) error {
	if a.estimate > 0 && (!a.more || a.estimate >= limit) {
		return nil
	}
	a.estimate, a.more = 0, false
	for _, r := range a.Ranges {
		it, err := p.snapshot.Iterate(r.Lo, r.Hi)
		if err != nil {
			return err
		}
		for ok := it.First(); ok; ok = it.Next() {
			if a.estimate >= limit {
				a.more = true
				break
			}
			a.estimate++
			p.keys++
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

// scan is the plan that looks at every document, or at those with the prefix and in
// the range that the query gives for IDs.
func (p *planner) scan() *Plan {
	pl := &Plan{Residual: p.q.Where}
	for _, e := range p.conjuncts {
		switch e := e.(type) {
		case query.StartsWith:
			if folded := p.rules.Fold(e.Text); p.namesIDs(e.Field, e.Fold) && len(folded) > len(pl.Prefix) {
				pl.Prefix = folded
			}
		case query.Compare:
			p.boundIDs(pl, e.Field, e.Op, e.Value)
		case query.Between:
			p.boundIDs(pl, e.Field, query.GreaterOrEqual, e.Lo)
			p.boundIDs(pl, e.Field, query.LessOrEqual, e.Hi)
		}
	}
	if p.idOrder() {
		pl.Ordered, pl.Reverse = true, p.q.OrderBy[0].Descending
	}
	return pl
}

// boundIDs narrows the range of IDs of a scan to those of which a comparison can be
// true. With case-sensitive IDs it does not: keys are in byte order, texts in the
// order of their folded form.
func (p *planner) boundIDs(pl *Plan, f query.Field, op query.Op, v query.Value) {
	if f.Meta != query.MetaID || v.Kind() != query.KindText || p.rules.CaseSensitive {
		return
	}
	// The key of an ID ends with 00, and no ID has a byte that low.
	id := p.rules.Fold(v.Text())
	switch op {
	case query.Greater:
		pl.Low = max(pl.Low, id+"\x00\x01")
	case query.GreaterOrEqual:
		pl.Low = max(pl.Low, id)
	case query.Less:
		pl.High = least(pl.High, id+"\x00")
	case query.LessOrEqual:
		pl.High = least(pl.High, id+"\x00\x01")
	}
}

// least returns the lesser of two upper bounds, of which "" is none.
func least(a, b string) string {
	if a == "" || b < a {
		return b
	}
	return a
}

// idOrder reports whether the query is ordered by ID alone, in the order of keys. With
// case-sensitive IDs it never is: see boundIDs.
func (p *planner) idOrder() bool { return !p.rules.CaseSensitive && p.isOrder(query.MetaID) }

// etagOrder reports whether the query is ordered by etag, of which no two documents
// have the same.
func (p *planner) etagOrder() bool { return p.isOrder(query.MetaEtag) }

func (p *planner) isOrder(meta query.Meta) bool {
	if len(p.q.OrderBy) == 0 || len(p.q.GroupBy) > 0 {
		return false
	}
	orders := p.fieldOrders()
	o := orders[0]
	return len(orders) == 1 && (meta == query.MetaEtag || len(p.q.OrderBy) == 1) && o.Field.Meta == meta && o.Column == "" && o.As == query.CastNone
}

// changes plans a query that is ordered by etag, or bounds it, or returns nil. The
// changes of a database are in the order of etags, and name the document and its
// collection. Those of all collections are in one order, so that the documents of
// a small collection are read and sorted instead.
func (p *planner) changes() (*Plan, error) {
	c := Changes{Last: math.MaxUint64}
	for _, e := range p.conjuncts {
		switch e := e.(type) {
		case query.Compare:
			c.bound(e.Field, e.Op, e.Value)
		case query.Between:
			c.bound(e.Field, query.GreaterOrEqual, e.Lo)
			c.bound(e.Field, query.LessOrEqual, e.Hi)
		}
	}
	ordered, bounded := p.etagOrder(), c.First > 0 || c.Last < math.MaxUint64
	if !ordered && !bounded {
		return nil, nil
	}
	if err := p.findChanges(&c); err != nil {
		return nil, err
	}
	pl := &Plan{Changes: &c, Residual: p.q.Where, Ordered: ordered}
	pl.Reverse = ordered && p.q.OrderBy[0].Descending
	if bounded {
		if few, err := p.areFew(c.Ranges); few || err != nil {
			return pl, err
		}
	}
	if p.q.From != "" {
		collection := format.CollectionKey(p.q.From)
		home := format.DocumentKey(nil, collection+p.separator)
		home = home[:len(home)-1]
		away := format.AppendKey(nil, format.SpaceMembers, collection)
		few, err := p.areFew([]KeyRange{{Lo: home, Hi: format.PrefixEnd(home)}, {Lo: away, Hi: format.PrefixEnd(away)}})
		if err != nil {
			return nil, err
		}
		if few {
			scan := p.scan()
			scan.Few = true
			return scan, nil
		}
	}
	if !ordered {
		return nil, nil
	}
	return pl, nil
}

// areFew reports whether ranges have at most ProbeKeys keys together.
func (p *planner) areFew(ranges []KeyRange) (bool, error) {
	counted := &Path{Ranges: ranges}
	err := p.probe(counted, ProbeKeys)
	return !counted.more, err
}

// findChanges sets the ranges of c.
func (p *planner) findChanges(c *Changes) (err error) {
	if c.First > c.Last {
		return nil
	}
	it, err := p.snapshot.Iterate([]byte{format.SpaceChanges}, []byte{format.SpaceChanges + 1})
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; {
		p.keys++
		node, err := format.NodeOf(it.Key())
		if err != nil {
			return err
		}
		lo, last := format.ChangeKey(nil, node, c.First), format.ChangeKey(nil, node, c.Last)
		c.Ranges = append(c.Ranges, KeyRange{Lo: lo, Hi: append(last, 0)})
		ok = it.SeekGE(format.ChangeKey(nil, node+1, 0))
	}
	return it.Error()
}

// bound narrows the range to the etags of which a comparison can be true.
func (c *Changes) bound(f query.Field, op query.Op, v query.Value) {
	if f.Meta != query.MetaEtag || v.Kind() != query.KindNumber {
		return
	}
	n, err := strconv.ParseUint(string(v.Raw()), 10, 64)
	if err != nil {
		return // another notation of a number: tested on the documents
	}
	switch {
	case op == query.Greater && n < math.MaxUint64:
		c.First = max(c.First, n+1)
	case op == query.GreaterOrEqual:
		c.First = max(c.First, n)
	case op == query.Less && n > 0:
		c.Last = min(c.Last, n-1)
	case op == query.LessOrEqual:
		c.Last = min(c.Last, n)
	case op == query.Equal:
		c.First, c.Last = max(c.First, n), min(c.Last, n)
	}
}

// String describes the walk, for Explain.
func (c *Changes) String() string {
	switch {
	case c.First > 0 && c.Last < math.MaxUint64:
		return fmt.Sprintf("changes with etags from %d to %d", c.First, c.Last)
	case c.First > 0:
		return fmt.Sprintf("changes with etags from %d", c.First)
	case c.Last < math.MaxUint64:
		return fmt.Sprintf("changes with etags to %d", c.Last)
	}
	return "changes"
}

// String describes a path, for Explain.
func (a *Path) String() string {
	text := fmt.Sprintf("index %q", a.Index.Info.Name)
	if len(a.used) == 0 {
		return text + ", all of it"
	}
	if len(a.Ranges) == 1 {
		return text + ", one range"
	}
	return fmt.Sprintf("%s, %d ranges", text, len(a.Ranges))
}

// IsScan reports whether the plan looks at every document, or at those in a range of
// IDs that may have all of them.
func (pl *Plan) IsScan() bool {
	return !pl.IDsOnly && len(pl.Access) == 0 && pl.Prefix == "" && pl.Changes == nil && !pl.Few
}

// MayRepeat reports whether the ranges may lead to one document twice.
func (a *Path) MayRepeat() bool {
	return a.flags&catalog.FlagMultiple != 0 && (len(a.Ranges) > 1 || len(a.Index.Fields) > 1 || !a.isPoints())
}

// isPoints reports whether each range holds the entries of one value, so that no
// document is in it twice.
func (a *Path) isPoints() bool { return a.Equal == len(a.Index.Fields) && !a.bounded }
