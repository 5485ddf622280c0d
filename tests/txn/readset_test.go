package txn_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// Ensure that a View keeps nothing of the documents that it looks up, as nothing
// is checked at its end.
func TestView_KeepsNoReadSet(t *testing.T) {
	if jaytest.Allocates {
		t.Skip("this build allocates more")
	}
	db := memory(t, nil)
	put(t, db, "v/1", `{}`)
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	must(t, db.View(ctx, func(tx *jay.Tx) error {
		before := heap()
		for i := range 300_000 {
			if _, err := tx.Exists(ctx, fmt.Sprint("nothing/", i)); err != nil {
				return err
			}
		}
		if grown := heap() - before; grown > 8<<20 {
			t.Errorf("300,000 look-ups left %d MB", grown>>20)
		}
		return nil
	}))
}
