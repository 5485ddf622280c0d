// Package idle tests what an open database that is not used holds in memory.
package idle

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// most is the heap that an open database may hold at rest.
const most = 10_000_000

// heap returns the bytes of live objects. What the last run of the garbage collector
// leaves in pools goes with the second one.
func heap() int64 {
	var m runtime.MemStats
	for range 4 {
		runtime.GC()
	}
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// Ensure that an open database that is not used holds less than 10 MB of the heap: a
// new one, and one with 100,000 documents and three indexes, which was opened again.
// The caches take their memory when they are used. Without cgo, the write buffers lie in
// the heap, and an Open that reads a long log makes two of their full size, of which
// most is never touched.
func TestHeap(t *testing.T) {
	if jaytest.Allocates {
		t.Skip("this build allocates more")
	}
	ctx, dir := context.Background(), t.TempDir()
	open := func() *jay.DB {
		db, err := jay.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		return db
	}
	check := func(what string, before, most int64, db *jay.DB) {
		held := heap() - before
		t.Logf("%s: %d bytes", what, held)
		if held > most {
			t.Errorf("%s holds %d bytes, at most %d", what, held, most)
		}
		runtime.KeepAlive(db)
	}

	before := heap()
	db := open()
	check("a new database", before, most, db)

	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	for i, field := range []string{"Number", "Group", "Name"} {
		if err := db.EnsureIndex(ctx, "Orders", jay.Index{Name: fmt.Sprint("by", i), Fields: []string{field}}); err != nil {
			t.Fatal(err)
		}
	}
	w, err := db.BulkInsert(nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if _, err := w.Store(ctx, "Orders", fmt.Appendf(nil, `{"Number":%d,"Group":%d,"Name":"order %d"}`, i, i%100, i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	w, db = nil, nil

	before = heap()
	db = open()
	check(fmt.Sprintf("a database of %d documents and three indexes", n), before, most+buffersInHeap, db)
	if _, err := db.Put(ctx, "orders/x", json.RawMessage(`{"Number":1}`)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}
