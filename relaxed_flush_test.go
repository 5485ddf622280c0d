package jay_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that Flush makes every write durable that was acknowledged before it,
// under Relaxed durability, of single writes, batches and a bulk writer's
// committed batches, and none of the later ones by itself.
func TestFlush_MakesDurableWhatWasAcknowledged(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
	defer closeDB(t, db)
	put(t, db, "first", `{}`) // reserves numbers, which is synced
	put(t, db, "before", `{"n":1}`)
	var b jay.Batch
	b.Put("batch/1", []byte(`{}`))
	b.Put("batch/2", []byte(`{}`))
	_, err := db.Apply(ctx, &b)
	must(t, err)
	must(t, db.Delete(ctx, "first"))
	committed := make(chan struct{}, 1)
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 1, Progress: func(jay.BulkProgress) { committed <- struct{}{} }})
	must(t, err)
	_, err = w.Put(ctx, "bulk", []byte(`{}`))
	must(t, err)
	<-committed

	lost := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
	if got := body(t, lost, "before"); got != "absent" {
		t.Fatalf("without a Flush a crash leaves %s: the test does not test Flush", got)
	}
	closeDB(t, lost)

	must(t, db.Flush(ctx))
	put(t, db, "after", `{}`)
	left := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
	defer closeDB(t, left)
	for id, want := range map[string]string{
		"before": `{"n":1}`, "batch/1": `{}`, "batch/2": `{}`, "bulk": `{}`, "first": "absent",
	} {
		if got := body(t, left, id); got != want {
			t.Errorf("after Flush and a crash %s is %s, want %s", id, got, want)
		}
	}
	must(t, w.Close())
}

// Ensure that Flush honours its context while the disk is held up, that a
// later Flush then does the work, and that it costs nothing where nothing is
// fresh.
func TestFlush_Context(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
	put(t, db, "doc", `{}`)
	held := disk.Hold(storagetest.Logs, storagetest.Syncs)
	defer held.Release()
	put(t, db, "doc", `{"n":2}`)
	ended, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- db.Flush(ended) }()
	<-held.Met()
	cancel()
	if err := within(t, done, "Flush"); !errors.Is(err, context.Canceled) {
		t.Errorf("a Flush whose context ends: %v, want context.Canceled", err)
	}
	held.Release()
	must(t, db.Flush(ctx))
	left := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
	if got := body(t, left, "doc"); got != `{"n":2}` {
		t.Errorf("after Flush and a crash: %s", got)
	}
	closeDB(t, left)
	syncs := disk.Syncs()
	for range 10 {
		must(t, db.Flush(ctx))
	}
	if got := disk.Syncs(); got != syncs {
		t.Errorf("10 Flushes of nothing took %d syncs", got-syncs)
	}
	closeDB(t, db)
	if err := db.Flush(ctx); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("after Close: %v, want ErrClosed", err)
	}
}

// Ensure that a Flush whose sync fails says that the outcome is unknown.
func TestFlush_DiskFails(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{Durability: jay.Relaxed})
	put(t, db, "doc", `{}`)
	put(t, db, "doc", `{"n":2}`)
	disk.Fail()
	if err := db.Flush(ctx); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Errorf("got %v, want ErrUnknownOutcome", err)
	}
	_ = db.Close() // it cannot close cleanly; it must return
}
