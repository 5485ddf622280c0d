package fulltext

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// MaxTerms is how many terms of an index the patterns of one search may mean.
const MaxTerms = 1024

// condition is a search that the index decides.
type condition struct {
	field  int
	search *text.Search
}

// Answer implements catalog.Answerer: the index answers searches by its analyzer in one of its fields. A search that only leaves out
// documents is not one, as documents without texts are not in the index.
func (k *keeper) Answer(q *catalog.Question) *catalog.Answer {
	a := &catalog.Answer{Text: "words"}
	var all []condition
	for i, e := range q.Conditions {
		c, ok := k.condition(e)
		if !ok {
			continue
		}
		all = append(all, c)
		a.Used = append(a.Used, i)
		a.Exact = append(a.Exact, i)
	}
	if len(all) == 0 {
		return nil
	}
	a.Open = func(r storage.Reader) (catalog.Candidates, error) { return k.find(r, all) }
	return a
}

// condition returns a condition as the index decides it.
func (k *keeper) condition(e query.Expr) (c condition, ok bool) {
	search, is := e.(query.Search)
	if !is {
		return c, false
	}
	c.field = slices.IndexFunc(k.ix.Fields, func(f catalog.Field) bool {
		return search.Field.Meta == query.MetaNone && search.Field.Date == query.DateNone && f.Query().Path.String() == search.Field.Path.String()
	})
	if analyzer, found := text.Find(cmp.Or(search.Analyzer, query.DefaultAnalyzer)); c.field < 0 || !found || analyzer != k.analyzer {
		return c, false
	}
	parsed, err := text.Parse(k.analyzer, search.Text, search.All)
	if err != nil || len(parsed.Clauses) > 0 && !slices.ContainsFunc(parsed.Clauses, func(c text.Clause) bool { return c.Occur != text.MustNot }) {
		return c, false
	}
	c.search = parsed
	return c, true
}

// candidates are the documents in the blocks, and then those of the tail.
type candidates struct {
	k     *keeper
	r     storage.Reader
	found []uint64 // ordinals in the blocks
	all   []condition
	tail  storage.Iterator
	begun bool // the tail
	words []*text.Document
}

// find returns the documents for which all conditions are true.
func (k *keeper) find(r storage.Reader, all []condition) (catalog.Candidates, error) {
	value, err := catalog.ValueAt(r, k.stateKey())
	if err != nil {
		return nil, err
	}
	s, err := decodeState(value)
	if err == nil {
		err = k.check(s)
	}
	if err != nil {
		return nil, err
	}
	found, err := k.inBlocks(r, all)
	if err != nil {
		return nil, err
	}
	lo := k.key(keyTail)
	tail, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return nil, err
	}
	c := &candidates{k: k, r: r, found: found, all: all, tail: tail}
	for i := range all {
		c.words = append(c.words, text.NewDocument(k.analyzer, all[i].search))
	}
	return c, nil
}

// Next implements catalog.Candidates.
func (c *candidates) Next() ([]byte, error) {
	for len(c.found) > 0 {
		ordinal := c.found[0]
		c.found = c.found[1:]
		value, err := catalog.ValueAt(c.r, c.k.ordinalKey(keySettled, ordinal))
		if err != nil {
			return nil, err
		}
		if value == nil {
			continue // the document has changed since
		}
		s, err := c.k.settledAt(value)
		return s.folded, err
	}
	for ok := c.step(); ok; ok = c.step() {
		matches, err := c.matches(c.tail.Value())
		if err != nil {
			return nil, err
		}
		if matches {
			return c.tail.Key()[6 : len(c.tail.Key())-1], nil
		}
	}
	return nil, c.tail.Error()
}

func (c *candidates) step() bool {
	if !c.begun {
		c.begun = true
		return c.tail.First()
	}
	return c.tail.Next()
}

// matches reports whether all conditions are true of texts.
func (c *candidates) matches(texts []byte) (bool, error) {
	for i := range c.words {
		c.words[i].Reset()
	}
	err := c.k.eachText(texts, func(field int, s string) {
		for i := range c.all {
			if c.all[i].field == field {
				c.words[i].Add(s)
			}
		}
	})
	for i := range c.all {
		if err != nil || !c.all[i].search.Matches(c.words[i].Count) {
			return false, err
		}
	}
	return true, nil
}

// Close implements catalog.Candidates.
func (c *candidates) Close() error { return c.tail.Close() }

// finder finds ordinals in blocks.
type finder struct {
	k     *keeper
	it    storage.Iterator
	terms int // that patterns have meant so far

	heads  []occurrence // scratch
	places []int        // scratch
}

// inBlocks returns the ordinals of the blocks for which all conditions are true, ascending.
func (k *keeper) inBlocks(r storage.Reader, all []condition) (found []uint64, err error) {
	lo := k.key(keyBlock)
	it, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return nil, err
	}
	f := finder{k: k, it: it}
	for i := range all {
		var ordinals []uint64
		if ordinals, err = f.condition(&all[i]); err != nil {
			break
		}
		if i == 0 {
			found = ordinals
		} else {
			found = intersect(found, ordinals)
		}
	}
	return found, errs.First(errs.First(err, it.Error()), it.Close())
}

// condition returns the ordinals for which a condition is true.
func (f *finder) condition(c *condition) (found []uint64, err error) {
	var should, must, not [][]uint64
	for i := range c.search.Clauses {
		clause := &c.search.Clauses[i]
		ordinals, err := f.clause(c.field, clause)
		if err != nil {
			return nil, err
		}
		switch {
		case clause.Occur == text.MustNot:
			not = append(not, ordinals)
		case clause.Occur == text.Must || c.search.All:
			must = append(must, ordinals)
		default:
			should = append(should, ordinals)
		}
	}
	if len(must) > 0 {
		found = must[0]
		for _, other := range must[1:] {
			found = intersect(found, other)
		}
	} else {
		found = union(should)
	}
	if len(not) > 0 {
		without := union(not)
		found = slices.DeleteFunc(slices.Clone(found), func(o uint64) bool {
			_, in := slices.BinarySearch(without, o)
			return in
		})
	}
	return found, nil
}

// clause returns the ordinals in which a clause occurs.
func (f *finder) clause(field int, c *text.Clause) ([]uint64, error) {
	slots := make([][]uint64, len(c.Slots))
	for j := range c.Slots {
		err := f.slot(field, &c.Slots[j], func(first uint64, value []byte) (err error) {
			if f.heads, _, err = decodeHeads(f.heads[:0], first, value); err == nil {
				for i := range f.heads {
					slots[j] = append(slots[j], f.heads[i].ordinal)
				}
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if _, single := c.Slots[j].Term(); !single {
			slices.Sort(slots[j])
			slots[j] = slices.Compact(slots[j])
		}
	}
	found := slots[0]
	for _, other := range slots[1:] {
		found = intersect(found, other)
	}
	if len(slots) == 1 || len(found) == 0 {
		return found, nil
	}
	return f.phrase(field, c, found)
}

// phrase returns the ordinals in which a phrase occurs, of those that have all of its terms.
func (f *finder) phrase(field int, c *text.Clause, all []uint64) (found []uint64, err error) {
	defer func(terms int) { f.terms = terms }(f.terms)
	f.terms = 0                            // they have been counted
	positions := make([][][]int, len(all)) // by document and slot
	for i := range positions {
		positions[i] = make([][]int, len(c.Slots))
	}
	for j := range c.Slots {
		err := f.slot(field, &c.Slots[j], func(first uint64, value []byte) error {
			return f.positions(first, value, all, func(i int, more []int) { positions[i][j] = append(positions[i][j], more...) })
		})
		if err != nil {
			return nil, err
		}
	}
	counter := text.NewCounter(c)
	for i, ordinal := range all {
		for j := range positions[i] {
			if _, single := c.Slots[j].Term(); !single {
				slices.Sort(positions[i][j])
			}
		}
		if counter.Count(positions[i]) > 0 {
			found = append(found, ordinal)
		}
	}
	return found, nil
}

// positions calls fn with the positions that a block has for some documents, and their places in all.
func (f *finder) positions(first uint64, value []byte, all []uint64, fn func(i int, positions []int)) error {
	i, _ := slices.BinarySearch(all, first)
	if i == len(all) {
		return nil
	}
	heads, rest, err := decodeHeads(f.heads[:0], first, value)
	f.heads = heads
	for _, o := range heads {
		for i < len(all) && all[i] < o.ordinal {
			i++
		}
		if err != nil || i == len(all) {
			break
		}
		if all[i] > o.ordinal {
			rest = skipPositions(o.count, rest)
			continue
		}
		ok := true
		if f.places, rest, ok = cutPositions(f.places[:0], o.count, rest); !ok {
			return fmt.Errorf("block %.60x of postings: %w", value, errs.ErrCorrupt)
		}
		fn(i, f.places)
	}
	return err
}

// slot calls fn with the blocks of all terms that a slot means: ascending for one term, and one term after another.
func (f *finder) slot(field int, s *text.Slot, fn func(first uint64, block []byte) error) error {
	if term, single := s.Term(); single {
		_, err := f.term(f.k.termKey(field, term), fn)
		return err
	}
	prefix := f.k.prefixKey(field, s.Prefix())
	end := format.PrefixEnd(prefix)
	for ok := f.it.SeekGE(prefix); ok && bytes.Compare(f.it.Key(), end) < 0; {
		_, term, _, valid := cutBlockKey(f.it.Key())
		if !valid {
			return errs.ErrCorrupt
		}
		own := bytes.Clone(f.it.Key()[:len(f.it.Key())-8])
		if !s.Matches(term) {
			ok = f.it.SeekGE(format.PrefixEnd(own))
			continue
		}
		if f.terms++; f.terms > MaxTerms {
			return fmt.Errorf("%w: %w", errs.ErrQuery, &query.LimitError{What: "words that the patterns of a search mean", Limit: MaxTerms, Actual: f.terms})
		}
		var err error
		if ok, err = f.term(own, fn); err != nil {
			return err
		}
	}
	return f.it.Error()
}

// term calls fn with the blocks of a term, and reports whether the iterator stands behind them.
func (f *finder) term(prefix []byte, fn func(first uint64, block []byte) error) (more bool, err error) {
	ok := f.it.SeekGE(prefix)
	for ; ok && bytes.HasPrefix(f.it.Key(), prefix); ok = f.it.Next() {
		if len(f.it.Key()) != len(prefix)+8 {
			return false, fmt.Errorf("key %x of words: %w", f.it.Key(), errs.ErrCorrupt)
		}
		if err := fn(binary.BigEndian.Uint64(f.it.Key()[len(prefix):]), f.it.Value()); err != nil {
			return false, err
		}
	}
	return ok, f.it.Error()
}

// intersect returns what is in both of two ascending lists.
func intersect(a, b []uint64) (both []uint64) {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0] < b[0]:
			a = a[1:]
		case a[0] > b[0]:
			b = b[1:]
		default:
			both = append(both, a[0])
			a, b = a[1:], b[1:]
		}
	}
	return both
}

// union returns what is in one of some lists, ascending.
func union(lists [][]uint64) []uint64 {
	if len(lists) == 1 {
		return lists[0]
	}
	all := slices.Concat(lists...)
	slices.Sort(all)
	return slices.Compact(all)
}
