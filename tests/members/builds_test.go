package members_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that the build of a unique index goes on after an outage in which it met a document whose cluster-wide transaction is not decided: that says
// nothing about the index.
func TestBuild_BesideUndecided(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for longer than a lock is waited for")
	}
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	c := m.Connect()
	db := onTag(t, disk, c, "A")
	must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0)))
	put(t, db, "users/1", `{"Email":"ann"}`, jay.InCollection("Users"))
	held := make(chan struct{})
	var once sync.Once
	restore := checks.OnBuildChunk(func(ctx context.Context, state jay.IndexState) {
		once.Do(func() { close(held) })
		<-ctx.Done()
	})
	ensured := make(chan error, 1)
	go func() {
		ensured <- db.EnsureIndex(ctx, "Users", jay.Index{Name: "email", Fields: []string{"Email"}, Unique: true})
	}()
	<-held
	c.Fail(clustertest.Withhold)
	limited, cancel := context.WithCancel(ctx)
	tries := 0
	c.Before(func(call clustertest.Call) {
		if call.Method == "Commit" {
			if tries++; tries == 2 {
				cancel()
				c.Cut()
			}
		}
	})
	err := db.Update(limited, func(tx *jay.Tx) error {
		if _, err := tx.CompareExchange().Put(ctx, "emails/ann", "users/1", 0); err != nil {
			return err
		}
		_, err := tx.Put(ctx, "users/1", []byte(`{"Email":"ann","n":2}`))
		return err
	})
	cancel()
	if !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatalf("the commit is not in doubt: %v", err)
	}
	must(t, c.Close())
	_ = db.Close()
	<-ensured // with an error, as the database was closed
	restore()
	next := m.Connect()
	next.Cut()
	db = onTag(t, disk, next, "A")
	list := func() []jay.IndexInfo {
		all, err := db.Indexes(ctx, "Users")
		must(t, err)
		return all
	}
	for begun := time.Now(); time.Since(begun) < 8*time.Second && len(list()) > 0; { // as long as the lock is waited for, and longer
		time.Sleep(50 * time.Millisecond)
	}
	if len(list()) == 0 {
		t.Fatal("the index is gone")
	}
	next.Mend()
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "email", Fields: []string{"Email"}, Unique: true}))
	if all := list(); len(all) != 1 || all[0].State != jay.IndexReady {
		t.Errorf("when the majority is back: %+v", all)
	}
	_ = db.Close()
}
