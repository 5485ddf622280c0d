package write

import (
	"slices"
	"strings"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
)

// New HiLo IDs are neighbours, and no document has one of them, unless it was put there
// by hand. So one walk over what lies between the first and the last of them answers for
// all, where a look-up of each takes longer than anything else in the transaction.

// leastDrawn is how many new IDs a walk is worth its cost for.
const leastDrawn = 32

// drawnOps returns the ops of new HiLo IDs, sorted by tag, number of digits, and ID.
func drawnOps(ops []*Op) []*Op {
	if len(ops) < ManyOps {
		return nil
	}
	var drawn []*Op
	for _, o := range ops {
		if o.Strategy == ids.HiLo && o.FoldedID != "" {
			if drawn == nil {
				drawn = make([]*Op, 0, len(ops))
			}
			drawn = append(drawn, o)
		}
	}
	order := func(a, b *Op) int {
		if a.Tag != b.Tag {
			return strings.Compare(a.Tag, b.Tag)
		}
		if len(a.FoldedID) != len(b.FoldedID) {
			return len(a.FoldedID) - len(b.FoldedID)
		}
		return strings.Compare(a.FoldedID, b.FoldedID)
	}
	if !slices.IsSortedFunc(drawn, order) { // as of several tags
		slices.SortFunc(drawn, order)
	}
	return drawn
}

// readDrawn notes of ops, those of new IDs, that their documents are missing, as far as
// a few walks can say so.
func (a *Prefetched) readDrawn(ops []*Op) (err error) {
	if len(ops) < leastDrawn {
		return nil
	}
	look, err := a.watch.NewReader()
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, look.Close()) }()
	arena := make([]byte, 0, len(ops)*(len(ops[0].FoldedID)+4))
	keys := make([][]byte, 0, len(ops))
	for len(ops) > 0 {
		n := neighbours(ops)
		if n >= leastDrawn {
			arena, keys = arena[:0], keys[:0]
			for _, o := range ops[:n] {
				start := len(arena)
				arena = format.DocumentKey(arena, o.FoldedID)
				keys = append(keys, arena[start:len(arena):len(arena)])
			}
			missing, err := look.Missing(keys)
			if err != nil {
				return err
			}
			for _, o := range ops[:n] {
				o.prefetched, o.Before = missing, nil
			}
		}
		ops = ops[n:]
	}
	return nil
}

// neighbours returns how many of ops, from the first on, have IDs of one tag with equally
// many digits. Between those of different lengths lie many others.
func neighbours(ops []*Op) int {
	n := 1
	for n < len(ops) && ops[n].Tag == ops[0].Tag && len(ops[n].FoldedID) == len(ops[0].FoldedID) {
		n++
	}
	return n
}
