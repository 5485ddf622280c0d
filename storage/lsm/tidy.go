package lsm

import (
	"bytes"
	"context"
	"slices"

	"github.com/cockroachdb/pebble/v2"
)

// Bounds of tidy.
const (
	untidyTables = 32      // neighbouring tables that tidy merges, if they have
	tidyBytes    = 8 << 20 // at most so many bytes: a tenth of a second's work
	tidyMerges   = 3       // per Close
)

// tidy merges neighbouring tables that are tiny. Each short run leaves some, as the
// next Open writes what is in the log to tables. Pebble merges tables that overlap,
// and tiny tables with new keys at the end of the key space never do, on no
// level. It is called by Close, when there are no transactions any more.
func (e *Engine) tidy() error {
	for range tidyMerges {
		levels, err := e.db.SSTables()
		if err != nil {
			return err
		}
		lo, hi := untidyRange(slices.Concat(levels...))
		if lo == nil {
			return nil
		}
		// Pebble compacts a range by merging the tables of one level into the
		// next, so that those of the last level are merged only where a table above
		// overlaps them. The first and the last key, written again as they are,
		// make one that overlaps the range.
		b := e.db.NewBatchWithSize(1 << 10)
		for _, key := range [][]byte{lo, hi} {
			if err := setAgain(b, e.db, key); err != nil {
				return err
			}
		}
		if err := b.Commit(pebble.Sync); err != nil {
			return err
		}
		if err := e.compactPiece(context.Background(), lo, append(hi, 0)); err != nil {
			return err
		}
	}
	return nil
}

// setAgain stages what is at key, or that there is nothing.
func setAgain(b *pebble.Batch, db *pebble.DB, key []byte) error {
	value, closer, err := db.Get(key)
	if err == pebble.ErrNotFound {
		return b.Delete(key, nil)
	}
	if err != nil {
		return err
	}
	if err := b.Set(key, value, nil); err != nil {
		return err
	}
	return closer.Close()
}

// untidyRange returns the first and the last key of the range with the most tables
// that have at most tidyBytes, or nil if those are fewer than untidyTables.
func untidyRange(tables []pebble.SSTableInfo) (lo, hi []byte) {
	slices.SortFunc(tables, func(a, b pebble.SSTableInfo) int { return bytes.Compare(a.Smallest.UserKey, b.Smallest.UserKey) })
	first, size := 0, uint64(0)
	best := tables[:0]
	for i, t := range tables {
		for size += t.Size; size > tidyBytes; first++ {
			size -= tables[first].Size
		}
		if found := tables[first : i+1]; len(found) > len(best) {
			best = found
		}
	}
	if len(best) < untidyTables {
		return nil, nil
	}
	lo = best[0].Smallest.UserKey
	for _, t := range best {
		if bytes.Compare(t.Largest.UserKey, hi) > 0 {
			hi = t.Largest.UserKey
		}
	}
	return bytes.Clone(lo), bytes.Clone(hi)
}
