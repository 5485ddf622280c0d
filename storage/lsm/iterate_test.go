package lsm_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
	"github.com/jaydb/jay/storage/storagetest"
)

// numbered makes a transaction count the keys under a prefix, and set one of them that is named by the count and one under another prefix.
func numbered(e *lsm.Engine, prefix, other string, runs *atomic.Int64) error {
	return e.Update(ctx, true, func(tx storage.Tx) error {
		runs.Add(1)
		it, err := tx.Iterate([]byte(prefix), []byte(prefix+"~"))
		if err != nil {
			return err
		}
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			n++
		}
		if err := it.Close(); err != nil {
			return err
		}
		tx.Set(fmt.Appendf(nil, "%s%04d", prefix, n), nil, nil)
		tx.Set(fmt.Appendf(nil, "%s%04d", other, n), nil, nil)
		return nil
	})
}

// Ensure that transactions of one group have iterators, as long as none before them has staged a key within the range, and that one that has such a
// range before it runs again: each counts all keys of those before it.
func TestEngine_Update_IterateInGroups(t *testing.T) {
	for _, c := range []struct {
		name string
		// prefix and other are the prefixes of transaction i.
		prefix, other func(i int) string
		apart         bool // no transaction runs again
	}{
		{"apart", func(i int) string { return fmt.Sprintf("x%02d-", i) }, func(i int) string { return fmt.Sprintf("y%02d-", i) }, true},
		{"one range", func(int) string { return "x" }, func(int) string { return "y" }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := lsm.Open("db", lsm.Options{FS: storagetest.NewDisk(), CacheBytes: 1 << 20})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			const writers, each = 32, 20
			var runs atomic.Int64
			var all sync.WaitGroup
			for w := range writers {
				all.Go(func() {
					for range each {
						if err := numbered(e, c.prefix(w), c.other(w), &runs); err != nil {
							t.Error(err)
						}
					}
				})
			}
			all.Wait()
			if c.apart && runs.Load() != writers*each {
				t.Errorf("%d transactions ran %d times", writers*each, runs.Load())
			}
			if c.apart {
				return
			}
			it, err := e.Iterate([]byte("x"), []byte("y"))
			if err != nil {
				t.Fatal(err)
			}
			defer it.Close()
			n := 0
			for ok := it.First(); ok; ok = it.Next() {
				n++
			}
			if n != writers*each {
				t.Errorf("%d transactions have left %d keys: some have not seen others", writers*each, n)
			}
		})
	}
}
