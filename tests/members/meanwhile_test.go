package members_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage/storagetest"
)

// both is a batch that puts users/1 and the value "both".
func both(opts ...jay.WriteOption) *jay.Batch {
	var b jay.Batch
	b.Put("users/1", []byte(`{"n":2}`), opts...)
	b.PutCompareExchange("both", 1, 0)
	return &b
}

// Ensure that a document which expires while the coordinator decides about a commit that overwrites it is overwritten.
func TestCluster_CompareExchange_ExpiresMeanwhile(t *testing.T) {
	t.Parallel()
	m, clock := clustertest.NewMemory(), jaytest.NewClock()
	c := m.Connect()
	o := inCluster(c, "A")
	o.ExactExpiry, o.Now = true, clock.Now
	db := memory(t, o)
	must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0)))
	put(t, db, "users/1", `{"n":1}`, jay.WithTTL(time.Hour))
	c.Before(func(call clustertest.Call) {
		if call.Method == "Commit" && len(call.Changes) > 1 {
			clock.Advance(2 * time.Hour)
		}
	})
	must(t, second(db.Apply(ctx, both())))
	c.Before(nil)
	equal(t, checks.Undecided(db), 0)
	equal(t, body(t, db, "users/1"), `{"n":2}`)
	equal(t, valueIn(t, db, "both"), "1")
}

// Ensure that a value and its document stay together when a power cut follows under Relaxed durability, whatever was committed after them.
func TestCluster_CompareExchange_Relaxed(t *testing.T) {
	t.Parallel()
	for _, more := range []bool{false, true} {
		m, disk := clustertest.NewMemory(), storagetest.NewDisk()
		c := m.Connect()
		o := inCluster(c, "A")
		o.Durability = jay.Relaxed
		db := onDisk(t, disk, *o)
		must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0)))
		must(t, second(db.Apply(ctx, both())))
		if more {
			must(t, second(db.CompareExchange().Put(ctx, "other", 1, 0))) // through the same slot
		}
		crashed := disk.Crash(0, rand.New(rand.NewPCG(1, 1)))
		must(t, c.Close())
		_ = db.Close()
		o = inCluster(m.Connect(), "A")
		o.Durability = jay.Relaxed
		db = onDisk(t, crashed, *o)
		equal(t, valueIn(t, db, "both"), "1")
		equal(t, body(t, db, "users/1"), `{"n":2}`)
		closeDB(t, db)
	}
}

// Ensure that a seed which would leave the counter as this node remembers it asks the coordinator, as another node may have changed it.
func TestCluster_SeedIdentity_OfAnotherNode(t *testing.T) {
	t.Parallel()
	_, nodes, clients := members(t, 2)
	a, b := nodes[0], nodes[1]
	seed := func(db *jay.DB, name string, value int64, force bool, want int64) {
		t.Helper()
		n, err := db.SeedIdentity(ctx, name, value, force)
		must(t, err)
		equal(t, n, want)
	}
	next := func(db *jay.DB, name string, want int64) {
		t.Helper()
		n, err := db.NextIdentity(ctx, name)
		must(t, err)
		equal(t, n, want)
	}
	seed(a, "invoices", 100, false, 100)
	seed(b, "invoices", 5000, false, 5000)
	seed(a, "invoices", 100, true, 100)
	next(b, "invoices", 101)

	seed(a, "orders", 1000, false, 1000)
	next(b, "orders", 1001)
	seed(b, "orders", 3, true, 3)
	seed(a, "orders", 500, false, 500)
	next(a, "orders", 501)

	clients[0].Cut()
	cutOff(t, "a seed below the counter", func(limited context.Context) error {
		return second(a.SeedIdentity(limited, "invoices", 50, false))
	})
	clients[0].Mend()
	seed(a, "invoices", 50, false, 101)
}

// Ensure that a transaction which walks through a collection waits for an undecided deletion in it, as for an undecided put: with the values that both
// change, there is else no order of the two.
func TestCluster_CompareExchange_UndecidedDeletion(t *testing.T) {
	t.Parallel()
	for _, reopened := range []bool{false, true} {
		m, disk := clustertest.NewMemory(), storagetest.NewDisk()
		c := m.Connect()
		db := onDisk(t, disk, *inCluster(c, "A"))
		must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0)))
		put(t, db, "users/1", "{}", jay.InCollection("Users"))
		put(t, db, "orders/1", "{}", jay.InCollection("Orders"))
		c.Fail(clustertest.Happens)
		release, stopped := make(chan struct{}), make(chan struct{})
		tries := 0
		c.Before(func(call clustertest.Call) {
			if call.Method == "Commit" {
				if tries++; tries == 2 {
					close(stopped)
					<-release
				}
			}
		})
		answer := make(chan error, 1)
		go func() {
			var b jay.Batch
			b.Delete("users/1")
			b.PutCompareExchange("both", 1, 0)
			answer <- second(db.Apply(ctx, &b))
		}()
		<-stopped
		at := db
		if reopened { // the intent is found, and cannot be decided
			cut := m.Connect()
			cut.Cut()
			at = onDisk(t, disk.Crash(100, rand.New(rand.NewPCG(1, 1))), *inCluster(cut, "A"))
			equal(t, checks.Undecided(at), 1)
		}
		count := func(limited context.Context, collection string) error {
			return at.Update(limited, func(tx *jay.Tx) error {
				for _, err := range tx.Documents(limited, jay.Scan{Collection: collection}) {
					if err != nil {
						return err
					}
				}
				return second(tx.Put(limited, "counted/"+collection, []byte(`{}`)))
			})
		}
		cutOff(t, "a walk through its collection", func(limited context.Context) error { return count(limited, "Users") })
		must(t, count(ctx, "Orders"))
		close(release)
		must(t, within(t, answer, "the deletion"))
		if reopened {
			_ = at.Close()
		} else {
			must(t, count(ctx, "Users"))
		}
		closeDB(t, db)
	}
}

// Ensure that a write which keeps revisions keeps them when its commit is brought to its end without the caller, and by the next Open.
func TestCluster_CompareExchange_KeepRevision(t *testing.T) {
	t.Parallel()
	for _, reopened := range []bool{false, true} {
		m, disk := clustertest.NewMemory(), storagetest.NewDisk()
		c := m.Connect()
		db := onDisk(t, disk, *inCluster(c, "A"))
		must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0)))
		put(t, db, "users/1", `{"n":1}`)
		limited, leave := context.WithCancel(ctx)
		defer leave()
		c.Fail(clustertest.Happens)
		var commits atomic.Int32
		c.Before(func(call clustertest.Call) {
			if call.Method == "Commit" && commits.Add(1) == 2 {
				c.Cut()
				leave()
			}
		})
		if err := second(db.Apply(limited, both(jay.KeepRevision()))); !errors.Is(err, jay.ErrUnknownOutcome) {
			t.Fatal(err)
		}
		if reopened {
			_ = db.Close()
			db = onDisk(t, disk, *inCluster(m.Connect(), "A"))
		}
		c.Before(nil)
		c.Mend()
		for more := jaytest.Patience(); more(checks.Undecided(db) == 0); {
		}
		equal(t, body(t, db, "users/1"), `{"n":2}`)
		n := 0
		for _, err := range db.Revisions().List(ctx, "users/1", jay.RevisionPage{}) {
			must(t, err)
			n++
		}
		equal(t, n, 2)
		closeDB(t, db)
	}
}

// Ensure that a deletion by ID accepts its guard with any index, also one that another node gives it between the read and the commit.
func TestSession_ClusterWide_DeleteID_GuardMoves(t *testing.T) {
	t.Parallel()
	_, nodes, clients := members(t, 2)
	s := nodes[0].OpenSession(jay.ClusterWide())
	must(t, s.Store(ctx, &customer{ID: "users/1", Name: "a"}))
	must(t, s.SaveChanges(ctx))
	s = nodes[0].OpenSession(jay.ClusterWide())
	must(t, s.DeleteID("users/1"))
	moves := 0
	clients[0].Before(func(call clustertest.Call) {
		if call.Method == "Commit" && len(call.Changes) > 1 && moves < 3 {
			moves++
			guard := nodes[1].CompareExchange()
			_, index := valueOf(t, guard, jay.GuardKey("users/1"))
			exchanged(t, guard, jay.GuardKey("users/1"), 2, index)
		}
	})
	must(t, s.SaveChanges(ctx))
	equal(t, moves, 3)
	if _, err := nodes[0].Get(ctx, "users/1"); !errors.Is(err, jay.ErrNotFound) {
		t.Errorf("got %v", err)
	}
	equal(t, guardOf(t, nodes[1], "users/1"), 0)
}

// refusing refuses commits.
type refusing struct {
	cluster.Coordinator
	on    atomic.Bool
	calls atomic.Int64
}

func (r *refusing) Commit(ctx context.Context, conditions []cluster.Condition, changes []cluster.Change) (cluster.Result, error) {
	if r.on.Load() {
		if r.calls.Add(1) == 1 { // the draw is in doubt from here on
			return cluster.Result{}, cluster.ErrUnknownOutcome
		}
		return cluster.Result{}, cluster.ErrRefused
	}
	return r.Coordinator.Commit(ctx, conditions, changes)
}

// Ensure that a node pauses between the tries of a draw in doubt that its coordinator refuses.
func TestCluster_Identities_Refused(t *testing.T) {
	t.Parallel()
	r := &refusing{Coordinator: clustertest.NewMemory().Connect()}
	db := memory(t, inCluster(r, "A"))
	must(t, second(db.NextIdentity(ctx, "invoices")))
	r.on.Store(true)
	limited, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
	defer cancel()
	if _, err := db.NextIdentity(limited, "invoices"); err == nil {
		t.Error("it was refused, and is drawn")
	}
	if n := r.calls.Load(); n < 2 || n > 2000 {
		t.Errorf("%d commits were sent in 200 ms", n)
	}
	r.on.Store(false)
	must(t, second(db.NextIdentity(ctx, "invoices")))
}
