package lsm

import (
	"bytes"
	"context"
	"fmt"
	"testing"

	"github.com/jaydb/jay/storage"
)

// No table may hold keys of both sides of a bound, neither one that a flush
// writes nor one that a compaction does.
func TestEngine_TableBounds(t *testing.T) {
	bounds := [][]byte{[]byte("d"), []byte("m")}
	e, err := Open("db", Options{InMemory: true, TableBounds: bounds})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	for range 2 {
		err := e.Update(context.Background(), true, func(tx storage.Tx) error {
			for _, space := range "acdlmz" {
				for i := range 10 {
					tx.Set(fmt.Appendf(nil, "%c%d", space, i), []byte("value"), nil)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := e.db.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if got := checkBounds(t, e, bounds); got != 6 {
		t.Errorf("two flushes made %d tables, want one for each part and flush: 6", got)
	}
	if err := e.db.Compact(context.Background(), []byte("a"), []byte("zz"), false); err != nil {
		t.Fatal(err)
	}
	if got := checkBounds(t, e, bounds); got != 3 {
		t.Errorf("after a compaction there are %d tables, want one for each part: 3", got)
	}
}

// checkBounds returns the number of tables.
func checkBounds(t *testing.T, e *Engine, bounds [][]byte) int {
	t.Helper()
	levels, err := e.db.SSTables()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, tables := range levels {
		n += len(tables)
		for _, table := range tables {
			lo, hi := table.Smallest.UserKey, table.Largest.UserKey
			if next := nextBound(bounds, lo); next != nil && bytes.Compare(hi, next) >= 0 {
				t.Errorf("a table holds %q to %q, across the bound %q", lo, hi, next)
			}
		}
	}
	return n
}
