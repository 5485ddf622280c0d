package fulltext

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
)

// MaxTerms is how many terms of an index the patterns of one search may mean.
const MaxTerms = 1024

// finder finds what blocks have of one search.
type finder struct {
	*lookup
	terms int // that patterns have meant so far

	heads  []occurrence // scratch
	places []int        // scratch
}

// clause returns where a clause occurs.
func (f *finder) clause(field int, c *text.Clause) (found []occurrence, err error) {
	for j := range c.Slots {
		var all []occurrence
		err := f.slot(field, &c.Slots[j], func(first uint64, value []byte) (err error) {
			before := len(all)
			if all, _, err = decodeHeads(all, first, value); err != nil {
				return err
			}
			return f.hold((len(all) - before) * listed)
		})
		if err != nil {
			return nil, err
		}
		before := len(all)
		if _, single := c.Slots[j].Term(); !single {
			all = summed(all)
		}
		if j == 0 {
			found = all
		} else {
			before += len(found)
			found = shared(found, all)
		}
		f.release((before - len(found)) * listed)
	}
	if len(c.Slots) == 1 || len(found) == 0 {
		return found, nil
	}
	return f.phrase(field, c, found)
}

// summed sorts the occurrences of several terms, and makes one of those in one document.
func summed(all []occurrence) []occurrence {
	slices.SortFunc(all, func(a, b occurrence) int { return cmp.Compare(a.ordinal, b.ordinal) })
	kept := all[:0]
	for _, o := range all {
		if n := len(kept); n > 0 && kept[n-1].ordinal == o.ordinal {
			kept[n-1].count += o.count
			continue
		}
		kept = append(kept, o)
	}
	return kept
}

// How many bytes a list of positions takes, and a position.
const (
	listOfPositions = 48
	position        = 8
)

// phrase returns where a phrase occurs, of the documents that have all of its terms.
func (f *finder) phrase(field int, c *text.Clause, all []occurrence) (found []occurrence, err error) {
	defer func(terms int) { f.terms = terms }(f.terms)
	f.terms = 0 // they have been counted
	held := len(all) * len(c.Slots) * listOfPositions
	defer func() { f.release(held + (len(all)-len(found))*listed) }()
	if err := f.hold(held); err != nil {
		return nil, err
	}
	positions := make([][][]int, len(all)) // by document and slot
	slots := make([][]int, len(all)*len(c.Slots))
	for i := range positions {
		positions[i], slots = slots[:len(c.Slots)], slots[len(c.Slots):]
	}
	for j := range c.Slots {
		err := f.slot(field, &c.Slots[j], func(first uint64, value []byte) error {
			more := 0
			err := f.positions(first, value, all, func(i int, some []int) {
				positions[i][j] = append(positions[i][j], some...)
				more += len(some) * position
			})
			held += more
			return errs.First(err, f.hold(more))
		})
		if err != nil {
			return nil, err
		}
	}
	counter := text.NewCounter(c)
	found = all[:0]
	for i, o := range all {
		for j := range positions[i] {
			if _, single := c.Slots[j].Term(); !single {
				slices.Sort(positions[i][j])
			}
		}
		if o.count = uint32(counter.Count(positions[i])); o.count > 0 {
			found = append(found, o)
		}
	}
	return found, nil
}

// positions calls fn with the positions that a block has for some documents, and their places in all.
func (f *finder) positions(first uint64, value []byte, all []occurrence, fn func(i int, positions []int)) error {
	i, _ := slices.BinarySearchFunc(all, first, func(o occurrence, first uint64) int { return cmp.Compare(o.ordinal, first) })
	if i == len(all) {
		return nil
	}
	heads, rest, err := decodeHeads(f.heads[:0], first, value)
	f.heads = heads
	for _, o := range heads {
		for i < len(all) && all[i].ordinal < o.ordinal {
			i++
		}
		if err != nil || i == len(all) {
			break
		}
		if all[i].ordinal > o.ordinal {
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
	for ok := f.blocks.SeekGE(prefix); ok && bytes.Compare(f.blocks.Key(), end) < 0; {
		_, term, _, valid := cutBlockKey(f.blocks.Key())
		if !valid {
			return errs.ErrCorrupt
		}
		own := bytes.Clone(f.blocks.Key()[:len(f.blocks.Key())-8])
		if !s.Matches(term) {
			ok = f.blocks.SeekGE(format.PrefixEnd(own))
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
	return f.blocks.Error()
}

// term calls fn with the blocks of a term, and reports whether the iterator stands behind them.
func (f *finder) term(prefix []byte, fn func(first uint64, block []byte) error) (more bool, err error) {
	ok := f.blocks.SeekGE(prefix)
	for ; ok && bytes.HasPrefix(f.blocks.Key(), prefix); ok = f.blocks.Next() {
		if len(f.blocks.Key()) != len(prefix)+8 {
			return false, fmt.Errorf("key %x of words: %w", f.blocks.Key(), errs.ErrCorrupt)
		}
		if err := fn(binary.BigEndian.Uint64(f.blocks.Key()[len(prefix):]), f.blocks.Value()); err != nil {
			return false, err
		}
	}
	return ok, f.blocks.Error()
}
