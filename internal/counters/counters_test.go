package counters_test

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/storage/storagetest"
)

// openOn opens a database on a disk until the test ends.
func openOn(t *testing.T, disk *storagetest.Disk, durability jay.Durability) *jay.DB {
	t.Helper()
	db, err := jay.Open("db", &jay.Options{FS: disk, Durability: durability})
	jaytest.Must(t, err)
	t.Cleanup(func() { jaytest.Must(t, db.Close()) })
	return db
}

// crashed returns what a loss of power now leaves on a disk: what was synced.
func crashed(disk *storagetest.Disk) *storagetest.Disk {
	return disk.Crash(0, rand.New(rand.NewPCG(1, 2)))
}

// Ensure that a raised etag is on disk when the call returns, though nothing was written since.
func TestRaiseEtag_Crash(t *testing.T) {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	db := openOn(t, disk, jay.Synced)
	jaytest.Must(t, db.RaiseCounters(ctx, jay.Counters{Etag: 1 << 40}))
	counters, err := openOn(t, crashed(disk), jay.Synced).Counters(ctx)
	if err != nil || counters.Etag < 1<<40 {
		t.Errorf("after a crash the newest etag is %d (%v), want at least %d", counters.Etag, err, 1<<40)
	}
}

// Ensure that under Relaxed durability a crash repeats no number that was handed out after a
// forced seed: the numbers that were reserved before stay reserved on disk.
func TestSeedIdentity_ForcedCrash(t *testing.T) {
	ctx := context.Background()
	disk := storagetest.NewDisk()
	db := openOn(t, disk, jay.Relaxed)
	_, err := db.SeedIdentity(ctx, "a|", 100, false)
	jaytest.Must(t, err)
	_, err = db.SeedIdentity(ctx, "a|", 50, true)
	jaytest.Must(t, err)
	jaytest.Must(t, db.Flush(ctx))
	given, err := db.Put(ctx, "a|", []byte(`{}`))
	if err != nil || given.ID != "a/51" {
		t.Fatalf("after the seed: %q (%v), want a/51", given.ID, err)
	}
	again, err := openOn(t, crashed(disk), jay.Relaxed).Put(ctx, "a|", []byte(`{}`))
	if err != nil || again.ID == given.ID {
		t.Errorf("after a crash: %q again (%v)", again.ID, err)
	}
}

// Ensure that blocks of etags grow with their use, so that loads reserve few,
// and stay within what the documentation says a crash can cost.
func TestReserveEtags_Grows(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, step := range []struct{ used, ceiling uint64 }{
		{1, 1 + 65_536},
		{1 + 65_536, 1 + 65_536}, // reserved already
		{65_538, 65_538 + 65_538},
		{200_000, 400_000},
		{400_001, 400_001 + 262_144},
		{9_000_000, 9_000_000 + 262_144},
	} {
		if err := parts.Of(db).Reserved.ReserveEtags(context.Background(), step.used); err != nil {
			t.Fatal(err)
		}
		if got := parts.Of(db).Reserved.Etags(); got != step.ceiling {
			t.Errorf("etag %d reserves up to %d, want %d", step.used, got, step.ceiling)
		}
	}
}
