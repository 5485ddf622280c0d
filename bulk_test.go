package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a bulk writer stores what many goroutines give it, each document
// under the ID that it returned, and that a refused document is the caller's
// own affair.
func TestBulkWriter(t *testing.T) {
	db := memory(t, nil)
	batches := 0
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 64, MaxDelay: time.Hour, Progress: func(p jay.BulkProgress) { batches++ }})
	must(t, err)
	var mu sync.Mutex
	bodies := make(map[string]string)
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			scratch := make([]byte, 0, 100)
			for i := range 200 {
				scratch = fmt.Appendf(scratch[:0], `{"g":%d,"i":%d}`, g, i)
				id, err := w.Store(ctx, "Orders", scratch)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				bodies[id] = string(scratch)
				mu.Unlock()
				if _, err := w.Store(ctx, "Orders", json.RawMessage(`{"bad":`)); !errors.Is(err, jay.ErrInvalidDocument) {
					t.Errorf("malformed document: %v", err)
				}
			}
		})
	}
	wg.Wait()
	var invoice jay.Metadata
	if id, err := w.Put(ctx, "invoices|", json.RawMessage(`{}`), jay.Returning(&invoice)); err != nil || id != "invoices|" {
		t.Errorf("identity: %q, %v", id, err)
	}
	must(t, w.Flush(ctx))
	if invoice.ID != "invoices/1" {
		t.Errorf("identity after Flush: %q", invoice.ID)
	}
	must(t, w.Close())
	must(t, w.Close())
	if p := w.Progress(); p.Documents != 1601 || p.Batches != int64(batches) || batches < 25 {
		t.Errorf("progress: %+v, %d calls", p, batches)
	}
	if len(bodies) != 1600 {
		t.Fatalf("%d ids for 1600 documents", len(bodies))
	}
	for id, body := range bodies {
		if doc, err := db.Get(ctx, id); err != nil || string(doc.Body()) != body {
			t.Fatalf("%s: got %v, %v, want %s", id, doc, err, body)
		}
	}
	if _, err := w.Store(ctx, "Orders", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Ensure that a batch that cannot be committed ends the writer and says so to
// every later call.
func TestBulkWriter_Failure(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "orders/1", `{"@metadata":{"@collection":"Orders"}}`)
	w, err := db.BulkInsert(nil)
	must(t, err)
	_, err = w.Put(ctx, "orders/1", json.RawMessage(`{}`), jay.InCollection("Users"))
	must(t, err)
	if err := w.Flush(ctx); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("flush: %v", err)
	}
	if _, err := w.Store(ctx, "Orders", json.RawMessage(`{}`)); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("later call: %v", err)
	}
	if err := w.Close(); !errors.Is(err, jay.ErrCollection) {
		t.Errorf("close: %v", err)
	}
}

// Ensure that what was flushed survives a power loss that keeps nothing else,
// though its batches did not wait for the disk.
func TestBulkWriter_Flush_PowerLoss(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 10})
	must(t, err)
	for i := range 30 {
		_, err := w.Put(ctx, fmt.Sprintf("a/%d", i), json.RawMessage(`{}`))
		must(t, err)
	}
	must(t, w.Flush(ctx)) // the last batch is empty
	after := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
	for i := range 30 {
		if found, err := after.Exists(ctx, fmt.Sprintf("a/%d", i)); !found || err != nil {
			t.Fatalf("a/%d: %v, %v", i, found, err)
		}
	}
	must(t, w.Close())
}
