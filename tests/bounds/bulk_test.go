package bounds_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
)

// Ensure that a document larger than BatchBytes is a batch of its own, and that
// its memory does not stay.
func TestBulkWriter_LargeDocuments(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := memory(t, nil)
	w := bulk(t, db, &jay.BulkOptions{BatchBytes: 100})
	large := fmt.Sprintf(`{"x":"%s"}`, strings.Repeat("x", 10<<20))
	for i := range 3 {
		_, err := w.Put(ctx, fmt.Sprint(i), json.RawMessage(large))
		must(t, err)
	}
	must(t, w.Flush(ctx))
	equal(t, w.Progress().Batches, 3)
	for i := range 3 {
		equal(t, len(body(t, db, fmt.Sprint(i))), len(large))
	}
}

// Ensure that the memory of a writer does not grow with the documents that go
// through it.
func TestBulkWriter_MemoryIsFlat(t *testing.T) {
	if jaytest.Allocates {
		t.Skip("this build allocates more")
	}
	documents := 200_000
	if testing.Short() {
		documents = 40_000
	}
	db := open(t, t.TempDir(), &jay.Options{Durability: jay.Relaxed, MemTableBytes: 4 << 20, CacheBytes: 4 << 20})
	defer closeDB(t, db)
	body := fmt.Appendf(nil, `{"Text":"%s"}`, strings.Repeat("x", 1000))
	var base, most uint64
	measure := func() uint64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	w := bulk(t, db, nil)
	for i := range documents {
		if _, err := w.Store(ctx, "Orders", body); err != nil {
			t.Fatal(err)
		}
		if i == documents/20 {
			base = measure()
		} else if i%(documents/10) == documents/10-1 {
			most = max(most, measure())
		}
	}
	must(t, w.Close())
	t.Logf("%d MB went through; %d KB at first, at most %d KB", documents*len(body)>>20, base>>10, most>>10)
	if most > base+40<<20 {
		t.Errorf("memory grew from %d to %d bytes", base, most)
	}
}
