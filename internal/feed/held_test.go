package feed_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that feeds and live queries that begin now, and a backup, go on when more deletions than are kept come to the disk at once after they have
// begun: records that they need are not removed.
func TestChanges_BesideHeldDeletions(t *testing.T) {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	db := jaytest.OnDisk(t, disk, jay.Options{})
	jaytest.Put(t, db, "others/1", `{"a":1}`, jay.InCollection("Others"))
	var puts, deletions jay.Batch
	for i := range 3000 {
		puts.Put(fmt.Sprintf("things/%05d", i), []byte(`{"a":1}`), jay.InCollection("Things"))
		deletions.Delete(fmt.Sprintf("things/%05d", i))
	}
	_, err := db.Apply(ctx, &puts)
	jaytest.Must(t, err)
	hold := disk.Hold(storagetest.Logs, storagetest.Syncs)
	w := parts.Of(db).Writer
	for part := range slices.Chunk(parts.Ops(&deletions)[:1536], 128) {
		jaytest.Must(t, w.PrepareAll(part))
		jaytest.Must(t, w.Transact(ctx, false, func(tx *write.Txn) error { return tx.Run(part) })) // as the batches of Query.Delete
	}
	<-hold.Met() // the worker that removes records waits for the disk, after it has found them

	limited, cancel := context.WithCancel(ctx)
	var group sync.WaitGroup
	began := make(chan struct{}, 3)
	once := func() func() {
		var o sync.Once
		return func() { o.Do(func() { began <- struct{}{} }) }
	}
	group.Go(func() {
		ready := once()
		time.AfterFunc(200*time.Millisecond, ready) // it has no event to begin with
		for _, err := range db.Changes(limited, jay.SinceNow) {
			if err != nil && limited.Err() == nil {
				t.Errorf("a feed from now on: %v", err)
			}
		}
	})
	group.Go(func() {
		ready := once()
		for _, err := range db.Query("Others").Where(jay.Eq("a", 1)).Live(limited, "") {
			if err != nil && limited.Err() == nil {
				t.Errorf("a live query: %v", err)
			}
			ready()
		}
		ready()
	})
	slow := &slowWriter{at: make(chan struct{}), goOn: make(chan struct{})}
	group.Go(func() {
		if _, err := db.Backup(ctx, slow); err != nil {
			t.Errorf("a backup: %v", err)
		}
	})
	<-began
	<-began
	<-slow.at
	hold.Release()
	jaytest.Must(t, db.Flush(ctx))
	for more := true; more; {
		if more, err = parts.Of(db).Horizon.RemoveSome(ctx); err != nil {
			t.Fatal(err)
		}
	}
	close(slow.goOn)
	time.Sleep(50 * time.Millisecond)
	cancel()
	group.Wait()
	jaytest.Must(t, db.Close())
}

// slowWriter waits before it takes the first bytes.
type slowWriter struct {
	once     sync.Once
	at, goOn chan struct{}
}

func (w *slowWriter) Write(p []byte) (int, error) {
	w.once.Do(func() { close(w.at); <-w.goOn })
	return len(p), nil
}
