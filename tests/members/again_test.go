package members_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/storage/storagetest"
)

// refusedWrite makes a write of n documents of an identity that the transaction refuses, when
// their numbers have been drawn.
func refusedWrite(t testing.TB, db *jay.DB, request string, n int) {
	t.Helper()
	var b jay.Batch
	for range n {
		b.Put(request, []byte(`{}`))
	}
	b.Insert("taken", []byte(`{}`))
	if _, err := db.Apply(ctx, &b); !errors.Is(err, jay.ErrExists) {
		t.Fatalf("got %v, want ErrExists", err)
	}
}

// Ensure that the numbers of a write that has failed go to the next writes of the same node, so
// that they leave no gap.
func TestCluster_Identities_FailedWriteLeavesNoGap(t *testing.T) {
	t.Parallel()
	_, nodes, _ := members(t, 2)
	a, b := nodes[0], nodes[1]
	put(t, a, "taken", `{}`)
	equal(t, put(t, a, "invoices|", `{}`).ID, "invoices/1")
	refusedWrite(t, a, "invoices|", 3) // 2, 3, 4
	equal(t, checks.FreeNumbers(a, "invoices|"), 3)
	report, err := a.InspectIDs(ctx, nil)
	must(t, err)
	equal(t, report.Identities[0].Lost, 3)
	equal(t, put(t, b, "invoices|", `{}`).ID, "invoices/5")
	equal(t, put(t, a, "invoices|", `{}`).ID, "invoices/2")
	var two jay.Batch
	two.Put("invoices|", []byte(`{}`))
	two.Put("invoices|", []byte(`{}`))
	results, err := a.Apply(ctx, &two)
	must(t, err)
	equal(t, results[0].ID+" "+results[1].ID, "invoices/3 invoices/4")
	equal(t, put(t, a, "invoices|", `{}`).ID, "invoices/6")

	// A transaction that is given up.
	failed := errors.New("given up")
	if err := a.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Put(ctx, "invoices|", []byte(`{}`)); err != nil {
			return err
		}
		return second(tx.Insert(ctx, "users/1", []byte(`{}`)))
	}); err != nil {
		t.Fatal(err)
	}
	if err := a.Update(ctx, func(tx *jay.Tx) error {
		return errors.Join(second(tx.Put(ctx, "invoices|", []byte(`{}`))), failed)
	}); !errors.Is(err, failed) {
		t.Fatal(err)
	}
	equal(t, put(t, a, "invoices|", `{}`).ID, "invoices/8")
	equal(t, len(checks.LostNumbers(a, "invoices|")), 0)
	allExplained(t, "invoices|", a, b)
}

// Ensure that the number of a caller who has left before its reservation was answered goes to
// the next write.
func TestCluster_Identities_LateReservationLeavesNoGap(t *testing.T) {
	t.Parallel()
	_, nodes, clients := members(t, 1)
	db, c := nodes[0], clients[0]
	put(t, db, "invoices|", `{}`)
	limited, cancel := context.WithCancel(ctx)
	arrived, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	c.Before(func(call clustertest.Call) {
		if call.Method == "Commit" {
			once.Do(func() {
				close(arrived)
				<-release
			})
		}
	})
	left := make(chan error, 1)
	go func() { left <- second(db.Put(limited, "invoices|", []byte(`{}`))) }()
	<-arrived
	cancel()
	if err := <-left; !errors.Is(err, jay.ErrNoMajority) {
		t.Fatalf("got %v, want ErrNoMajority", err)
	}
	close(release)
	for checks.FreeNumbers(db, "invoices|") == 0 && checks.IdentitiesWaiting(db, "invoices|") > 0 {
		time.Sleep(time.Millisecond)
	}
	equal(t, put(t, db, "invoices|", `{}`).ID, "invoices/2")
	equal(t, put(t, db, "invoices|", `{}`).ID, "invoices/3")
	allExplained(t, "invoices|", db)
}

// Ensure that a number that a failed write had is not given again once the counter was set, on
// whichever node: not below a floor, and not if another node may have given it meanwhile.
func TestCluster_Identities_NotAgainAfterSeed(t *testing.T) {
	t.Parallel()
	for name, seed := range map[string]struct {
		value int64
		force bool
		other bool // at the other node
		want  [2]string
	}{
		"raised here":         {100, false, false, [2]string{"invoices/101", "invoices/102"}},
		"raised there":        {100, false, true, [2]string{"invoices/101", "invoices/102"}},
		"lowered there":       {1, true, true, [2]string{"invoices/2", "invoices/3"}},
		"lowered, and beyond": {0, true, true, [2]string{"invoices/1", "invoices/2"}},
		"as it was, here":     {2, false, false, [2]string{"invoices/3", "invoices/4"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, nodes, _ := members(t, 2)
			a, b := nodes[0], nodes[1]
			put(t, a, "taken", `{}`)
			equal(t, must2(a.NextIdentity(ctx, "invoices"))(t), 1)
			refusedWrite(t, a, "invoices|", 1)
			at := a
			if seed.other {
				at = b
			}
			must(t, second(at.SeedIdentity(ctx, "invoices", seed.value, seed.force)))
			equal(t, put(t, b, "invoices|", `{}`).ID, seed.want[0])
			equal(t, put(t, a, "invoices|", `{}`).ID, seed.want[1])
			equal(t, checks.FreeNumbers(a, "invoices|"), 0)
		})
	}
}

// must2 returns a function that fails the test for an error, and returns the value.
func must2[T any](v T, err error) func(t testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		must(t, err)
		return v
	}
}

// Ensure that a number which a failed write had is given to no write of a later run, and is
// recorded: after a crash and after Close.
func TestCluster_Identities_NotAgainAfterCrash(t *testing.T) {
	t.Parallel()
	for _, crash := range []bool{false, true} {
		m := clustertest.NewMemory()
		disk := storagetest.NewDisk()
		c := m.Connect()
		db := onTag(t, disk, c, "A")
		put(t, db, "taken", `{}`)
		put(t, db, "invoices|", `{}`)
		refusedWrite(t, db, "invoices|", 2)
		if crash {
			disk = disk.Crash(50, rand.New(rand.NewPCG(1, 1)))
			must(t, c.Close())
			_ = db.Close()
		} else {
			closeDB(t, db)
		}
		db = onTag(t, disk, m.Connect(), "A")
		must(t, checks.BeatCluster(db))
		equal(t, fmt.Sprint(checks.LostNumbers(db, "invoices|")), "[2 3]")
		equal(t, put(t, db, "invoices|", `{}`).ID, "invoices/4")
		allExplained(t, "invoices|", db)
		closeDB(t, db)
	}
}

// Ensure that no number comes twice, and that none is lost, when writers of two nodes are
// refused, leave, and meet lost answers.
func TestCluster_Identities_NoGapsUnderFaults(t *testing.T) {
	t.Parallel()
	_, nodes, clients := members(t, 2)
	for _, db := range nodes {
		put(t, db, "taken", `{}`)
	}
	var seen sync.Map
	var failures, doubts atomic.Int64
	var writers sync.WaitGroup
	for w := range 12 {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(uint64(w), 1))
			db, c := nodes[w%2], clients[w%2]
			for range 25 {
				limited, cancel := context.WithCancel(ctx)
				var b jay.Batch
				for range 1 + random.IntN(2) {
					b.Put("invoices|", []byte(`{}`))
				}
				switch random.IntN(4) {
				case 0:
					b.Insert("taken", []byte(`{}`))
				case 1:
					c.Fail([]clustertest.Fault{clustertest.Happens, clustertest.Never}[random.IntN(2)])
					cancelled := make(chan struct{})
					go func() {
						cancel()
						close(cancelled)
					}()
					defer func() { <-cancelled }()
				case 2:
					c.Fail(clustertest.Happens)
				}
				results, err := db.Apply(limited, &b)
				cancel()
				switch {
				case errors.Is(err, jay.ErrUnknownOutcome):
					doubts.Add(1)
				case err != nil:
					failures.Add(1)
				default:
					for _, r := range results {
						if _, twice := seen.LoadOrStore(r.ID, true); twice {
							t.Errorf("%s comes twice", r.ID)
						}
					}
				}
			}
		})
	}
	writers.Wait()
	for _, db := range nodes {
		must(t, db.Flush(ctx))
		put(t, db, "invoices|", `{}`) // ends what is in doubt
		for checks.FreeNumbers(db, "invoices|") > 0 {
			put(t, db, "invoices|", `{}`)
		}
	}
	for _, db := range nodes {
		equal(t, len(checks.LostNumbers(db, "invoices|")), 0)
	}
	allExplained(t, "invoices|", nodes...)
	if failures.Load() < 50 {
		t.Errorf("%d writes have failed, %d are in doubt", failures.Load(), doubts.Load())
	}
}
