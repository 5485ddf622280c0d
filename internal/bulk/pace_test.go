package bulk_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/bulk"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage"
)

// engineWithWaiters says how many wait for the disk, and notes which commits of at least some
// documents do.
type engineWithWaiters struct {
	storage.Engine
	own    *atomic.Int64 // reservations, some of which the test does not know of
	others atomic.Int64

	mu    sync.Mutex
	syncs []bool // Guarded by mu.
}

func (e *engineWithWaiters) SyncsAwaited() int64 { return e.own.Load() + e.others.Load() }

func (e *engineWithWaiters) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	drawn := 0
	err := e.Engine.Update(ctx, sync, func(tx storage.Tx) error {
		counted := &etagCounter{Tx: tx}
		err := fn(counted)
		drawn = counted.drawn
		return err
	})
	if drawn >= 10 { // no reservation
		e.mu.Lock()
		e.syncs = append(e.syncs, sync)
		e.mu.Unlock()
	}
	return err
}

// etagCounter counts etags.
type etagCounter struct {
	storage.Tx
	drawn int
}

func (t *etagCounter) Sequence() (uint64, error) {
	t.drawn++
	return t.Tx.Sequence()
}

// Ensure that the batches of a bulk writer are small and wait for the disk while others
// do, and for a short time after, that short waits do not count, and that commits of bulk
// writers are no others. The names are internal: the engine must be replaced, and the clock.
func TestBulkWriter_Pace(t *testing.T) {
	db, err := jay.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	inside := parts.Of(db)
	engine := &engineWithWaiters{Engine: inside.Env.Engine, own: &inside.Env.OwnSyncs}
	inside.Env.Engine = engine
	defer func() { inside.Env.Engine = engine.Engine }()

	var batches []int64
	before := int64(0)
	w, err := db.BulkInsert(&jay.BulkOptions{MaxDelay: time.Hour, Progress: func(p jay.BulkProgress) {
		batches, before = append(batches, p.Documents-before), p.Documents
	}})
	if err != nil {
		t.Fatal(err)
	}
	var now atomic.Int64
	now.Store(1)
	bulk.SetClock((*bulk.Writer)(w), now.Load)
	body := json.RawMessage(`{"text":"` + strings.Repeat("x", 540) + `"}`)
	store := func(n int) {
		for range n {
			if _, err := w.Store(t.Context(), "Orders", body); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, step := range []struct {
		name   string
		others int64
		own    int64
		passes int64 // before the documents
		small  bool
	}{
		{name: "nobody waits"},
		{name: "numbers are reserved", own: 2},
		{name: "numbers are still reserved", own: 2, passes: bulk.LeastWait},
		{name: "others have just begun to wait", others: 1},
		{name: "others wait for long", others: 1, passes: bulk.LeastWait, small: true},
		{name: "others have waited", passes: bulk.PaceMemory - 1, small: true},
		{name: "others have waited a while ago", passes: 1},
		{name: "another short wait", others: 1, passes: bulk.LeastWait},
		{name: "bulk writers wait", own: 2, passes: bulk.LeastWait},
		{name: "others wait beside bulk writers", others: 1, own: 2, passes: bulk.LeastWait, small: true},
	} {
		engine.others.Store(step.others)
		inside.Env.OwnSyncs.Add(step.own)
		now.Add(step.passes)
		batches, engine.syncs = nil, nil
		store(1000)
		if err := w.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		inside.Env.OwnSyncs.Add(-step.own)
		if isSmall := len(batches) > 5; isSmall != step.small {
			t.Errorf("%s: batches of %d documents; small: want %v", step.name, batches, step.small)
		}
		if slices.Contains(engine.syncs, !step.small) || len(engine.syncs) == 0 {
			t.Errorf("%s: commits wait for the disk: %v, want %v", step.name, engine.syncs, step.small)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// slowDisk is a disk whose syncs take long.
type slowDisk struct{ vfs.FS }

type slowFile struct{ vfs.File }

func (d slowDisk) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f, err := d.FS.Create(name, category)
	return slowFile{f}, err
}

func (f slowFile) SyncData() error {
	time.Sleep(4 * time.Millisecond)
	return f.File.SyncData()
}

// Ensure that a bulk writer that is alone does not make room for its own reservations of IDs
// and etags, however slow the disk is.
func TestBulkWriter_Pace_Alone(t *testing.T) {
	t.Parallel()
	db, err := jay.Open("db", &jay.Options{FS: slowDisk{vfs.NewMem()}})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	last := jay.BulkProgress{}
	w, err := db.BulkInsert(&jay.BulkOptions{MaxDelay: time.Hour, Progress: func(p jay.BulkProgress) {
		if n := p.Documents - last.Documents; n != 1000 {
			t.Errorf("batch %d has %d documents, want 1000", p.Batches, n)
		}
		last = p
	}})
	if err != nil {
		t.Fatal(err)
	}
	body := json.RawMessage(`{"text":"` + strings.Repeat("x", 540) + `"}`)
	for i := range 20_000 {
		if _, err := w.Store(t.Context(), fmt.Sprint("Orders", i/5000), body); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if last.Documents != 20_000 {
		t.Errorf("%d documents were stored, want 20,000", last.Documents)
	}
}
