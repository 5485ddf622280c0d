package jay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/budget"
)

// Ensure that a bound that is too small, or too small for other options, is refused by name, and that the default refuses none.
func TestMaxMemory_Refused(t *testing.T) {
	t.Parallel()
	for want, o := range map[string]jay.Options{
		"MaxMemory must not be negative, got -1": {MaxMemory: -1},
		"MaxMemory must be at least 33554432":    {MaxMemory: 32<<20 - 1},
		"CacheBytes (67108864)":                  {MaxMemory: 64 << 20, CacheBytes: 64 << 20},
		"MemTableBytes, four times (33554432)":   {MaxMemory: 64 << 20, MemTableBytes: 32 << 20},
		"DocumentCacheBytes (67108864)":          {MaxMemory: 64 << 20, DocumentCacheBytes: 64 << 20},
		"MaxQueryBytes (67108864)":               {MaxMemory: 64 << 20, MaxQueryBytes: 64 << 20},
	} {
		if _, err := jay.OpenMemory(&o); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	db, err := jay.OpenMemory(&jay.Options{CacheBytes: 1 << 62, MaxQueryBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// shareOf returns a share of the figures.
func shareOf(t *testing.T, db *jay.DB, name string) jay.MemoryShare {
	t.Helper()
	s, err := db.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, share := range s.Memory.Shares {
		if share.Name == name {
			return share
		}
	}
	t.Fatalf("no share %q in %+v", name, s.Memory)
	return jay.MemoryShare{}
}

// Ensure that queries and bulk writers draw on the work's share, are refused where it ends, and give it back.
func TestMaxMemory_Work(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{MaxMemory: 32 << 20, MaxDocumentBytes: 4 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for i := range 40 {
		text := fmt.Sprintf(`{"N":%d,"Text":"%s"}`, i, strings.Repeat("x", 64<<10))
		if _, err := db.Put(ctx, fmt.Sprintf("docs/%d", i), json.RawMessage(text), jay.InCollection("Docs")); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	most := shareOf(t, db, "work").Bytes
	reads := 0
	for _, err := range db.Query("Docs").OrderBy("N").Iter(ctx) {
		if err != nil {
			t.Fatal(err)
		}
		if reads++; reads == 1 {
			if used := shareOf(t, db, "work").UsedBytes; used < 40*64<<10 || used > most {
				t.Errorf("the query has %d bytes of %d", used, most)
			}
		}
	}
	if used := shareOf(t, db, "work").UsedBytes; used != 0 || reads != 40 {
		t.Errorf("%d bytes are used after %d answers", used, reads)
	}

	var writers []*jay.BulkWriter
	for {
		w, err := db.BulkInsert(nil)
		if e := (*jay.MemoryError)(nil); errors.As(err, &e) {
			if !errors.Is(err, jay.ErrMemory) || e.What != "bulk writer" || e.Most != most {
				t.Errorf("got %v", err)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if writers = append(writers, w); len(writers) > 1000 {
			t.Fatal("bulk writers have no bound")
		}
	}
	if len(writers) < 4 {
		t.Errorf("there are only %d bulk writers", len(writers))
	}
	for _, w := range writers {
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if used := shareOf(t, db, "work").UsedBytes; used != 0 {
		t.Errorf("%d bytes are used after the writers", used)
	}
}

// Ensure that the shares of the figures add up to the bound, and show what lies outside of Go's heap.
func TestMaxMemory_Stats(t *testing.T) {
	t.Parallel()
	db, err := jay.OpenMemory(&jay.Options{MaxMemory: 256 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := db.Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, share := range s.Memory.Shares {
		sum += share.Bytes
		if share.UsedBytes > share.Bytes {
			t.Errorf("%+v", share)
		}
	}
	if s.Memory.BoundBytes != 256<<20 || sum > 256<<20 || sum < 256<<20-8 {
		t.Errorf("%d of %+v", sum, s.Memory)
	}
	if (s.Memory.OutsideBytes > 0) != budget.Outside {
		t.Errorf("outside are %d", s.Memory.OutsideBytes)
	}
}

// Ensure that databases share a Memory: each claims its caches until it is closed, one that finds too little is refused by name and fits when
// another one is closed, all draw on one share of the work, and the shares add up to the bound.
func TestMemory_Shared(t *testing.T) {
	t.Parallel()
	shared, err := jay.NewMemory(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	var all []*jay.DB
	defer func() {
		for _, db := range all {
			_ = db.Close()
		}
	}()
	for {
		db, err := jay.OpenMemory(&jay.Options{Memory: shared})
		if e := (*jay.MemoryError)(nil); errors.As(err, &e) {
			if !errors.Is(err, jay.ErrMemory) || !strings.Contains(err.Error(), "Options.Memory") {
				t.Errorf("got %v", err)
			}
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, db); len(all) > 100 {
			t.Fatal("databases have no bound")
		}
	}
	if len(all) < 2 {
		t.Fatalf("only %d fit", len(all))
	}
	w, err := all[0].BulkInsert(nil)
	if err != nil {
		t.Fatal(err)
	}
	if a, b := shareOf(t, all[0], "work"), shareOf(t, all[1], "work"); a.UsedBytes == 0 || a != b {
		t.Errorf("the work is %+v and %+v", a, b)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	s, err := all[1].Stats(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	sum := int64(0)
	for _, share := range s.Memory.Shares {
		sum += share.Bytes
	}
	if s.Memory.BoundBytes != 64<<20 || sum > 64<<20 || sum < 64<<20-64 {
		t.Errorf("%d of %+v", sum, s.Memory)
	}
	bound, claimed, most := shared.Bytes()
	if bound != 64<<20 || most != 40<<20 || claimed > most || shareOf(t, all[0], "other databases").UsedBytes >= claimed || shared.HeapBytes() > bound || (shared.HeapBytes() < bound) != budget.Outside {
		t.Errorf("%d, %d and %d, and %d on the heap", bound, claimed, most, shared.HeapBytes())
	}
	for range 2 {
		if err := all[0].Close(); err != nil {
			t.Fatal(err)
		}
	}
	again, err := jay.OpenMemory(&jay.Options{Memory: shared})
	if err != nil {
		t.Fatalf("when another one was closed: %v", err)
	}
	all = append(all, again)
	for _, db := range all {
		_ = db.Close()
	}
	if _, claimed, _ := shared.Bytes(); claimed != 0 {
		t.Errorf("%d bytes are claimed in the end", claimed)
	}
}

// Ensure that calls that open no DB give the memory back, also after an error, and that a Memory and a bound exclude each other.
func TestMemory_GivenBack(t *testing.T) {
	t.Parallel()
	ctx, dir := context.Background(), t.TempDir()
	shared, err := jay.NewMemory(64 << 20)
	if err != nil {
		t.Fatal(err)
	}
	o := &jay.Options{Memory: shared}
	db, err := jay.Open(dir+"/a", o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := jay.Open(dir+"/a", o); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("got %v", err)
	}
	var backup bytes.Buffer
	if _, err := db.Backup(ctx, &backup); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := jay.Copy(ctx, dir+"/a", dir+"/b", jay.CopyOptions{From: o, To: o, CopyTag: "B"}); err != nil {
		t.Errorf("a copy, whose two stores share the memory: %v", err)
	}
	if _, err := jay.Copy(ctx, dir+"/none", dir+"/b", jay.CopyOptions{From: o, To: o, CopyTag: "B"}); err == nil {
		t.Error("nothing was copied")
	}
	if _, err := jay.Restore(ctx, dir+"/c", jay.RestoreOptions{Options: o, CopyTag: "C"}, &backup); err != nil {
		t.Error(err)
	}
	if _, err := jay.VerifyDir(ctx, dir+"/a", o, nil); err != nil {
		t.Error(err)
	}
	if _, err := jay.Repair(ctx, dir+"/a", dir+"/d", o, nil); err != nil {
		t.Error(err)
	}
	if _, claimed, _ := shared.Bytes(); claimed != 0 {
		t.Errorf("%d bytes are claimed in the end", claimed)
	}
	if _, err := jay.OpenMemory(&jay.Options{Memory: shared, MaxMemory: 64 << 20}); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), "goes without Memory") {
		t.Errorf("got %v", err)
	}
	if _, err := jay.NewMemory(32<<20 - 1); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), "33554431") {
		t.Errorf("got %v", err)
	}
}
