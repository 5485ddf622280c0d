package plan

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Path is an access path: key ranges of one ordered index, or what an index of another kind
// answers.
type Path struct {
	Index     *catalog.Index
	Answer    *catalog.Answer // nil for an ordered index. Of the fields below only used, exact, estimate and more are set beside it.
	flags     byte
	Ranges    []KeyRange // of whole keys, in rising order
	Equal     int        // leading fields that are bound to single values
	bounded   bool       // a further field is bound to a range
	used      []int      // the conjuncts that the ranges implement
	exact     []int      // those of them that the ranges decide exactly, without a check on the document
	estimate  int        // entries in the ranges, up to a bound
	more      bool       // there are more than estimate
	uncovered int        // of estimate, entries that are not covering, if covers
	uncounted []byte     // if there are more, the first entry that was not counted; nil if none was
	within    int        // the position in Ranges of the one that has uncounted
	near      float64    // the share of its documents that lie near one another, if sampled: see shareNear
	sampled   bool
	guessed   bool   // estimate is by the engine's figures
	covers    bool   // the entries have all that the query looks at, apart from what the ranges decide
	lost      string // why the ranges do not have the order of the query, though the fields of the index do; "" if they have it
}

// addPath adds the path of an index, if the conjuncts bind its fields or the order
// uses it.
func (p *planner) addPath(ix *catalog.Index) error {
	if !ix.Ordered {
		p.addAnswer(ix)
		return nil
	}
	if !p.appliesTo(ix.Fields[0]) && !p.covers(&Path{Index: ix}) && !(parts{p}).mayGroup(ix) {
		return nil // saves reading its flags
	}
	moment, err := ix.At(p.snapshot)
	if err != nil {
		return err
	}
	flags := moment.Flags

	// Bind the fields of the index from the first on. A field can follow only fields
	// that are bound to single values: behind a range the keys are not in its order.
	a := &Path{Index: ix, flags: flags}
	prefixes := []KeyRange{{Lo: format.AppendIndexPrefix(nil, ix.Number)}}
	for i, f := range ix.Fields {
		bound := p.bind(f, flags)
		if bound == nil || len(prefixes)*len(bound.ranges) > MaxRanges {
			break
		}
		extended := extend(prefixes, bound.ranges)
		point := bound.point
		// Texts that are equal but for case are neighbours, and not one value. The lookup of
		// the variants that exist is worth its keys if fields follow, or the order of IDs.
		if bound.equal && !point && (i+1 < len(ix.Fields) || p.idOrder()) {
			variants, err := p.caseVariants(moment, extended)
			if err != nil {
				return err
			}
			if variants != nil {
				extended, point = variants, true
			}
		}
		prefixes = extended
		a.used = join(a.used, bound.used)
		if !bound.recheck {
			a.exact = join(a.exact, bound.used)
		}
		if !point {
			a.bounded = true
			break
		}
		a.Equal++
	}

	a.Ranges = prefixes
	a.close()
	if len(a.Ranges) > 1 { // ranges that several values of a list share must not be walked twice
		slices.SortFunc(a.Ranges, func(x, y KeyRange) int { return bytes.Compare(x.Lo, y.Lo) })
		a.Ranges = slices.CompactFunc(a.Ranges, func(x, y KeyRange) bool { return bytes.Equal(x.Lo, y.Lo) && bytes.Equal(x.Hi, y.Hi) })
	}
	a.covers = p.covers(a)
	if err := p.findLost(a); err != nil {
		return err
	}
	switch {
	case len(a.used) > 0 || p.orderBy(a) != orderNone || a.replacesScan():
		p.paths = append(p.paths, a)
		return nil
	case (parts{p}).mayGroup(ix):
		p.grouping = append(p.grouping, a)
	}
	if p.lost == "" {
		p.lost = a.lost
	}
	return nil
}

// close sets the upper bounds of the ranges that were open for a further field.
func (a *Path) close() {
	for i := range a.Ranges {
		if r := &a.Ranges[i]; r.Hi == nil {
			r.Hi = format.EntriesEnd(r.Lo)
		}
	}
}

// addAnswer adds the path of an index that is not ordered, if it answers the query.
func (p *planner) addAnswer(ix *catalog.Index) {
	k, ok := ix.Keeper.(catalog.Answerer)
	if !ok {
		return
	}
	q := &catalog.Question{Conditions: p.conjuncts, Scores: p.options.Scores}
	if len(p.q.GroupBy) == 0 {
		q.Orders = p.q.OrderBy
	}
	if p.mayEndEarly() && p.q.Each.IsZero() {
		q.Need = p.q.Offset + p.q.Limit
	}
	if answer := k.Answer(q); answer != nil {
		p.paths = append(p.paths, &Path{Index: ix, Answer: answer, used: slices.Clip(answer.Used), exact: answer.Exact})
	}
}

// ranked returns the path that has the answers in the order of their scores, or nil. No other one is compared with it: scores need
// the words of all candidates.
func (p *planner) ranked() *Path {
	if p.options.Scores != nil {
		for _, a := range p.paths {
			if a.Answer != nil && a.Answer.Ordered {
				return a
			}
		}
	}
	return nil
}

// join returns the elements of both. It may share memory with one of them.
func join(a, b []int) []int {
	if len(a) == 0 {
		return slices.Clip(b)
	}
	return append(a, b...)
}

// isEmpty reports whether no value satisfies the conditions of the path.
func (a *Path) isEmpty() bool { return a.Answer == nil && len(a.Ranges) == 0 }

// readsAll reports whether the path reads the keys of its index to find candidates, which are not counted: a scan reads documents instead.
func (a *Path) readsAll() bool { return a.Answer != nil && a.Answer.Reads }

// isLikely reports whether the candidates of the path are likely to be first in the order of the query.
func (a *Path) isLikely() bool { return a.Answer != nil && a.Answer.Likely }

// replacesScan reports whether walking over the whole index gives what a scan
// gives, each document once.
func (a *Path) replacesScan() bool { return a.covers && a.flags&catalog.FlagMultiple == 0 }

// Binds reports whether the path binds a field to one value.
func (a *Path) Binds(field query.Field) bool {
	for i, f := range a.Index.Fields {
		if i < a.Equal && f.Is(field) {
			return true
		}
	}
	return false
}

// IsMinMax reports whether the query asks only for the minimum and the maximum of
// the field by which the entries of the path are ordered.
func (a *Path) IsMinMax(q *query.Query) bool {
	if a.Answer != nil || len(q.GroupBy) > 0 || q.Having != nil || a.flags&(catalog.FlagMultiple|catalog.FlagCut) != 0 || a.Equal >= len(a.Index.Fields) {
		return false
	}
	return !slices.ContainsFunc(q.Select, func(c query.Column) bool {
		return c.Func != query.FuncMin && c.Func != query.FuncMax || !a.Index.Fields[a.Equal].Is(c.Field)
	})
}

// MayRepeat reports whether the ranges may lead to one document twice.
func (a *Path) MayRepeat() bool {
	return a.flags&catalog.FlagMultiple != 0 && (len(a.Ranges) > 1 || len(a.Index.Fields) > 1 || !a.isPoints())
}

// isPoints reports whether each range holds the entries of one value, so that no
// document is in it twice.
func (a *Path) isPoints() bool { return a.Equal == len(a.Index.Fields) && !a.bounded }

// String describes a path, for Explain.
func (a *Path) String() string {
	text := fmt.Sprintf("index %q", a.Index.Info.Name)
	if a.Answer != nil {
		kind := a.Index.Info.Kind
		if options := a.Index.Info.OptionTexts(); len(options) > 0 {
			kind += " (" + strings.Join(options, ", ") + ")"
		}
		return fmt.Sprintf("%s index %q, %s", kind, a.Index.Info.Name, a.Answer.Text)
	}
	if len(a.used) == 0 {
		return text + ", all of it"
	}
	if len(a.Ranges) == 1 {
		return text + ", one range"
	}
	return fmt.Sprintf("%s, %d ranges", text, len(a.Ranges))
}

// maxCaseVariants is how many case variants of equal texts a path distinguishes.
const maxCaseVariants = 16

// caseVariants replaces ranges of texts that are equal but for case by one range for
// each variant that the index has, usually one. Then the fields after it can be
// bound, and the order of the index used. It returns nil if there are many
// variants.
func (p *planner) caseVariants(moment *catalog.Moment, ranges []KeyRange) ([]KeyRange, error) {
	if !slices.ContainsFunc(ranges, func(r KeyRange) bool { return r.Hi != nil }) {
		return ranges, nil // the values have no case variants
	}
	var few [128]byte // on the stack
	keys := appendKeys(few[:0], ranges)
	prefixes, known := moment.Variants(keys)
	if !known {
		var err error
		if prefixes, err = p.readVariants(ranges); err != nil {
			return nil, err
		}
		moment.SetVariants(keys, prefixes)
	}
	if prefixes == nil {
		return nil, nil
	}
	out := make([]KeyRange, len(prefixes))
	for i, prefix := range prefixes {
		out[i].Lo = prefix
	}
	return out, nil
}

// readVariants returns the prefixes of the keys in ranges, one for each case variant, or nil if these are many.
func (p *planner) readVariants(ranges []KeyRange) ([][]byte, error) {
	out := [][]byte{}
	for _, r := range ranges {
		if r.Hi == nil {
			out = append(out, r.Lo)
			continue
		}
		it, err := p.snapshot.Iterate(r.Lo, r.Hi)
		if err != nil {
			return nil, err
		}
		few := true
		for ok := it.First(); ok && few; ok = it.SeekGE(format.PrefixEnd(out[len(out)-1])) {
			p.keys++
			rest, found := query.SkipKey(it.Key()[r.at:])
			if !found {
				return nil, errors.Join(fmt.Errorf("index entry %x: %w", it.Key(), storage.ErrCorrupt), it.Close())
			}
			out = append(out, bytes.Clone(it.Key()[:len(it.Key())-len(rest)]))
			few = len(out) <= maxCaseVariants
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
			k := KeyRange{Lo: slices.Concat(prefix.Lo, r.Lo), at: len(prefix.Lo)}
			if !isPoint(r) { // a point is everything after Lo: kept open for the next field
				k.Hi = slices.Concat(prefix.Lo, r.Hi)
			}
			out = append(out, k)
		}
	}
	return out
}

// orderMatch is how the order of an index serves the order of the query.
type orderMatch int

const (
	orderNone orderMatch = iota
	orderForward
	orderReverse
)

// appliesTo reports whether a condition or the order of the query may use an index
// that begins with f.
func (p *planner) appliesTo(f catalog.Field) bool {
	binds := func(e query.Expr) bool {
		field, ok := bindableField(e)
		return ok && f.Is(field)
	}
	return slices.ContainsFunc(p.conjuncts, binds) ||
		slices.ContainsFunc(p.q.OrderBy, func(o query.Order) bool { return f.Is(o.Field) })
}

// orderBy returns how the order of a path serves the query.
func (p *planner) orderBy(a *Path) orderMatch {
	if a.lost != "" {
		return orderNone
	}
	return p.matchOrder(a)
}

// matchOrder returns how the fields of a path serve the order of the query, if no document has several
// entries in its range: see findLost.
func (p *planner) matchOrder(a *Path) orderMatch {
	if len(p.q.OrderBy) == 0 || len(p.q.GroupBy) > 0 || len(a.Ranges) > 1 {
		return orderNone
	}
	if a.Answer != nil {
		if a.Answer.Ordered || a.Answer.Likely {
			return orderForward
		}
		return orderNone
	}
	if p.idOrder() && a.isPoints() { // entries of one value are in the order of IDs
		if a.Index.LastDescending() != p.q.OrderBy[0].Descending {
			return orderReverse
		}
		return orderForward
	}

	// Follow the fields of the order through those of the index. Fields bound to single
	// values may stand anywhere, in either: they decide nothing.
	i, match := 0, orderNone
	for _, o := range p.fieldOrders() {
		if o.As != query.CastNone || o.Column != "" || o.Field.Meta != query.MetaNone && o.Field.Meta != query.MetaExpression {
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

// findLost finds out whether entries of the path are not in the order that its fields promise.
//
// A document has an entry for each combination of its values, and the order counts the first of
// its values in the direction of the walk. So the first entry of a document in a range has its place, if
// the range has all its combinations of the fields after the equal ones, and the walk leaves
// out the others: see MayRepeat. A range that begins after some of them may lack the first one.
func (p *planner) findLost(a *Path) error {
	match := p.matchOrder(a)
	switch {
	case match == orderNone:
	case a.flags&catalog.FlagCut != 0:
		a.lost = fmt.Sprintf("index %q has had a value too long for its key, and so is not in this order", a.Index.Info.Name)
	case a.flags&catalog.FlagMultiple == 0 || p.idOrder():
	case slices.ContainsFunc(p.fieldOrders(), func(o query.Order) bool { return a.Binds(o.Field) }):
		// The condition says one of the values, the order may count another.
		a.lost = fmt.Sprintf("index %q has had several values of one document, and the order counts another one than the condition", a.Index.Info.Name)
	case a.bounded && len(a.Ranges) == 1:
		misses, err := p.mayMissFirst(a.Ranges[0], match == orderReverse)
		if misses {
			a.lost = fmt.Sprintf("index %q has had several values of one document, of which the range may miss the first", a.Index.Info.Name)
		}
		return err
	}
	return nil
}

// mayMissFirst reports whether documents with entries in a range may have others before it, with
// the same values of the fields that are bound to single ones. A document with a covering entry
// has no other.
func (p *planner) mayMissFirst(r KeyRange, reverse bool) (bool, error) {
	front, keys := KeyRange{Lo: r.Lo[:r.at], Hi: r.Lo}, 0
	if reverse {
		front = KeyRange{Lo: r.Hi, Hi: format.EntriesEnd(r.Lo[:r.at])}
	}
	if bytes.Compare(front.Lo, front.Hi) >= 0 {
		return false, nil
	}
	it, err := p.snapshot.Iterate(front.Lo, front.Hi)
	if err != nil {
		return false, err
	}
	misses := false
	for ok := it.First(); ok && !misses; ok = it.Next() {
		p.keys++
		keys++
		misses = keys > sampledEntries || NotCovering(it.Value())
	}
	return misses, errs.First(it.Error(), it.Close())
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

// idOrder reports whether the query is ordered only by ID, in the order of keys. With
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

// scan is the plan that looks at every document, or at those with the prefix and in
// the range that the query gives for IDs.
func (p *planner) scan() *Plan {
	pl := &Plan{Residual: p.q.Where, from: p.q.From}
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

// indexScan returns the narrowest path whose index scan gives what a scan over
// the documents gives, or nil.
func (p *planner) indexScan() (*Path, error) {
	var paths []*Path
	for _, a := range p.paths {
		if a.replacesScan() && len(a.used) == 0 {
			paths = append(paths, a)
		}
	}
	slices.SortStableFunc(paths, func(a, b *Path) int {
		return cmp.Or(compareBool(b.IsMinMax(p.q), a.IsMinMax(p.q)), len(a.Index.Fields)-len(b.Index.Fields))
	})
	for _, a := range paths {
		if covering, err := p.isMostlyCovering(a); covering || err != nil {
			return a, err
		}
	}
	return nil, nil
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
