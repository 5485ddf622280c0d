package jsonschema_test

import (
	"context"
	"fmt"
	"os"
	"runtime/metrics"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/schema"
	"github.com/jaydb/jay/schema/jsonschema"
)

// memoryOf returns the bytes that the Go runtime has from the system and has not given back.
func memoryOf() uint64 {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(samples)
	return samples[0].Value.Uint64() - samples[1].Value.Uint64()
}

// TestPass_BesideWriters: the documents of a collection are validated in the background while others are written, and the report has each
// document once, and those that violate the schema. The log says how long it took, in how much memory, and how many writes per second there were
// without and beside it. JAY_SCHEMA_DOCUMENTS is the number of documents.
func TestPass_BesideWriters(t *testing.T) {
	n, alone := 3000, 50*time.Millisecond
	if text := os.Getenv("JAY_SCHEMA_DOCUMENTS"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil || n < 1000 {
			t.Fatalf("JAY_SCHEMA_DOCUMENTS is %q, and not a number from 1000 on", text)
		}
		alone = 15 * time.Second
	}
	ctx := context.Background()
	db, err := jay.Open(t.TempDir(), &jay.Options{Schemas: jsonschema.New()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}()

	// Writers replace documents of the first tenth, none of which violates the schema. Of the others, each hundredth does.
	body := func(i int) []byte {
		total := "12.50"
		if i >= n/10 && i%100 == 0 {
			total = `"12.50"`
		}
		return fmt.Appendf(nil, `{"customer":"customers/%d","total":%s,"placed":"2026-03-01T12:00:00Z","lines":[{"sku":"a-%d","count":%d},{"sku":"b","count":1}],"note":"a document of middling size"}`, i%1000, total, i, i%7)
	}
	id := func(i int) string { return fmt.Sprintf("orders/%07d", i) }
	bulk, err := db.BulkInsert(nil)
	if err != nil {
		t.Fatal(err)
	}
	want := int64(0)
	for i := range n {
		if i >= n/10 && i%100 == 0 {
			want++
		}
		if _, err := bulk.Put(ctx, id(i), body(i), jay.InCollection("Orders")); err != nil {
			t.Fatal(err)
		}
	}
	if err := bulk.Close(); err != nil {
		t.Fatal(err)
	}

	var writes atomic.Int64
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := w; ; i += 4 {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := db.Put(ctx, id(i%(n/10)), body(i%(n/10)), jay.InCollection("Orders")); err != nil {
					t.Error(err)
					return
				}
				writes.Add(1)
			}
		})
	}
	var peak atomic.Uint64
	writers.Go(func() {
		for {
			peak.Store(max(peak.Load(), memoryOf()))
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	rate := func(since time.Time, before int64) float64 {
		return float64(writes.Load()-before) / time.Since(since).Seconds()
	}
	begun := time.Now()
	time.Sleep(alone)
	without, memory := rate(begun, 0), peak.Swap(0)

	begun = time.Now()
	before := writes.Load()
	rule := schema.Rule{Collection: "Orders", Mode: schema.Refuse, Schema: []byte(`{
		"type": "object",
		"required": ["customer", "total", "lines"],
		"properties": {
			"customer": {"type": "string", "pattern": "^customers/[0-9]+$"},
			"total":    {"type": "number", "minimum": 0},
			"placed":   {"type": "string", "format": "date-time"},
			"lines":    {"type": "array", "items": {"required": ["sku"], "properties": {"sku": {"type": "string"}, "count": {"type": "integer"}}}}
		}
	}`)}
	if err := db.Definitions().Schemas().Set(ctx, rule); err != nil {
		t.Fatal(err)
	}
	report, err := db.Definitions().Schemas().Wait(ctx, "Orders")
	if err != nil {
		t.Fatal(err)
	}
	took, beside := time.Since(begun), rate(begun, before)
	close(stop)
	writers.Wait()
	if report.Documents != int64(n) || report.Violating != want || len(report.First) != min(int(want), schema.MaxReported) {
		t.Errorf("the report has %d documents, of which %d violate the schema and %d are listed; want %d and %d", report.Documents, report.Violating, len(report.First), n, want)
	}
	t.Logf("%d documents validated in %v, %.0f per second; %.0f writes per second without it, and %.0f beside it; at most %d MiB of memory without it, and %d beside it",
		n, took.Round(time.Millisecond), float64(n)/took.Seconds(), without, beside, memory>>20, peak.Load()>>20)
}
