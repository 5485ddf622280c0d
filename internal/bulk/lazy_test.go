package bulk_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/bulk"
	"github.com/jaydb/jay/internal/parts"
)

// syncCounter counts the syncs that a call asks for.
type syncCounter struct {
	*engineWithWaiters
	syncs int
}

func (e *syncCounter) Sync(ctx context.Context) error {
	e.syncs++
	return e.engineWithWaiters.Sync(ctx)
}

// Ensure that the batches of a drop and of its like wait for the disk one by one while other
// callers do, and share syncs while none does, or only other bulk work. The names are
// internal: the engine must be replaced, and the clock.
func TestLazyBatch_GivesWay(t *testing.T) {
	ctx := context.Background()
	db, err := jay.Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	inside := parts.Of(db)
	engine := &syncCounter{engineWithWaiters: &engineWithWaiters{Engine: inside.Env.Engine, own: &inside.Env.OwnSyncs}}
	inside.Env.Engine = engine
	defer func() { inside.Env.Engine = engine.Engine }()
	var now atomic.Int64
	now.Store(1)
	l := bulk.NewLazy(inside)
	bulk.SetLazyClock(l, now.Load)
	for _, step := range []struct {
		name        string
		others, own int64
		syncs       int // of 32 batches that take half of leastWait each
	}{
		{name: "nobody waits", syncs: 2},
		{name: "bulk work waits", own: 1, syncs: 2},
		{name: "others wait", others: 1, own: 1, syncs: 30},
	} {
		engine.others.Store(step.others)
		inside.Env.OwnSyncs.Add(step.own)
		engine.syncs = 0
		for range 32 {
			if err := l.Committed(ctx, 1); err != nil {
				t.Fatal(err)
			}
			now.Add(bulk.LeastWait / 2)
		}
		if err := l.Finish(ctx, nil); err != nil {
			t.Fatal(err)
		}
		inside.Env.OwnSyncs.Add(-step.own)
		if engine.syncs != step.syncs {
			t.Errorf("%s: %d syncs of 32 batches, want %d", step.name, engine.syncs, step.syncs)
		}
	}
}
