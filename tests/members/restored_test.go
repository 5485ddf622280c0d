package members_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/storage/storagetest"
)

// reopen opens the database of a node on a disk, and returns the error.
func reopen(disk *storagetest.Disk, c cluster.Coordinator) (*jay.DB, error) {
	return jay.Open("db", &jay.Options{FS: disk, Cluster: c, ClusterPeriod: 100 * time.Millisecond})
}

// setBack returns a coordinator that was set back to before an identity that the database on
// the disk has, and the disk.
func setBack(t testing.TB) (*clustertest.Memory, *storagetest.Disk) {
	t.Helper()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	db := onTag(t, disk, m.Connect(), "A")
	restore := m.Backup()
	put(t, db, "users|", `{}`)
	closeDB(t, db)
	restore()
	return m, disk
}

func clusterStats(t testing.TB, db *jay.DB) *jay.ClusterStats {
	t.Helper()
	stats, err := db.Stats(ctx)
	must(t, err)
	return stats.Cluster
}

// restored checks that err is that of a coordinator that has gone back.
func restored(t testing.TB, what string, err error) {
	t.Helper()
	if !errors.Is(err, jay.ErrClusterRestored) || errors.Is(err, jay.ErrNoMajority) {
		t.Errorf("%s: got %v, want ErrClusterRestored", what, err)
	}
}

// accept does what an operator does to go on with a coordinator that was restored: the
// identity is raised above all numbers.
func accept(t testing.TB, m *clustertest.Memory, disk *storagetest.Disk, floor int64) *jay.DB {
	t.Helper()
	m.Accept()
	db, err := reopen(disk, m.Connect())
	must(t, err)
	must(t, second(db.SeedIdentity(ctx, "users", floor, false)))
	return db
}

// Ensure that a running node finds out that its coordinator was restored from a backup, at
// once and for good: identities are refused, and what needs no majority goes on.
func TestCluster_Restored_Running(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	c := m.Connect()
	db := onTag(t, disk, c, "A")
	equal(t, put(t, db, "users|", `{}`).ID, "users/1")
	restore := m.Backup()
	equal(t, put(t, db, "users|", `{}`).ID, "users/2")
	must(t, second(db.CompareExchange().Put(ctx, "x", 1, 0)))
	must(t, checks.BeatCluster(db))
	restore()

	for range 3 {
		restored(t, "Put", second(db.Put(ctx, "users|", []byte(`{}`))))
		restored(t, "NextIdentity", second(db.NextIdentity(ctx, "users")))
		restored(t, "Put of a value", second(db.CompareExchange().Put(ctx, "y", 1, 0)))
		restored(t, "Get", second(db.CompareExchange().Get(ctx, "x")))
		restored(t, "Beat", checks.BeatCluster(db))
	}
	equal(t, clusterStats(t, db).Refusal != "", true)
	before := m.Commits()
	restored(t, "Put", second(db.Put(ctx, "users|", []byte(`{}`))))
	equal(t, m.Commits(), before)
	for _, id := range []string{"users/ann", "", "users/"} {
		put(t, db, id, `{}`)
	}
	store(t, db, "Users")
	closeDB(t, db)

	db = accept(t, m, disk, 2)
	equal(t, put(t, db, "users|", `{}`).ID, "users/3")
	must(t, second(db.CompareExchange().Put(ctx, "x", 1, 0)))
	equal(t, clusterStats(t, db).Refusal, "")
	closeDB(t, db)
	db, err := reopen(disk, m.Connect()) // the decision holds
	must(t, err)
	equal(t, put(t, db, "users|", `{}`).ID, "users/4")
	closeDB(t, db)
}

// Ensure that a coordinator that was restored while all nodes were closed is refused when
// a database is opened, however often that is tried, whatever the database did since the
// backup was made.
func TestCluster_Restored_Closed(t *testing.T) {
	t.Parallel()
	for name, since := range map[string]func(t *testing.T, m *clustertest.Memory, db *jay.DB, disk *storagetest.Disk) (restore func(), left *storagetest.Disk){
		"a number": func(t *testing.T, m *clustertest.Memory, db *jay.DB, disk *storagetest.Disk) (func(), *storagetest.Disk) {
			restore := m.Backup()
			put(t, db, "users|", `{}`)
			closeDB(t, db)
			return restore, disk
		},
		"nothing but its close": func(t *testing.T, m *clustertest.Memory, db *jay.DB, disk *storagetest.Disk) (func(), *storagetest.Disk) {
			restore := m.Backup()
			closeDB(t, db)
			return restore, disk
		},
		"a heartbeat": func(t *testing.T, m *clustertest.Memory, db *jay.DB, disk *storagetest.Disk) (func(), *storagetest.Disk) {
			restore := m.Backup()
			must(t, checks.BeatCluster(db))
			put(t, db, "users/ann", `{}`)
			crashed := disk.Crash(0, rand.New(rand.NewPCG(1, 1)))
			closeDB(t, db)
			return restore, crashed
		},
		"other runs": func(t *testing.T, m *clustertest.Memory, db *jay.DB, disk *storagetest.Disk) (func(), *storagetest.Disk) {
			restore := m.Backup()
			closeDB(t, db)
			for range 2 {
				db, err := reopen(disk, m.Connect())
				must(t, err)
				put(t, db, "users|", `{}`)
				closeDB(t, db)
			}
			return restore, disk
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := clustertest.NewMemory()
			disk := storagetest.NewDisk()
			db := onTag(t, disk, m.Connect(), "A")
			put(t, db, "users|", `{}`)
			restore, disk := since(t, m, db, disk)
			last := m.Records(cluster.BeatPrefix)[0].Index
			restore()
			// Each refused attempt makes a commit.
			for m.Records(cluster.BeatPrefix)[0].Index <= last+1 && !t.Failed() {
				db, err := reopen(disk, m.Connect())
				if restored(t, "Open", err); err == nil {
					closeDB(t, db)
				}
			}
			db = accept(t, m, disk, 100)
			equal(t, put(t, db, "users|", `{}`).ID, "users/101")
			store(t, db, "Users") // it is taken for no copy
			closeDB(t, db)
		})
	}
}

// Ensure that a number that a document has is not given again, though the node crashed
// right behind it and the coordinator is restored to the moment before it, and that the
// same holds for a number that NextIdentity returned.
func TestCluster_Restored_Crash(t *testing.T) {
	t.Parallel()
	for _, next := range []bool{false, true} {
		m := clustertest.NewMemory()
		disk := storagetest.NewDisk()
		db := onTag(t, disk, m.Connect(), "A")
		put(t, db, "users|", `{}`)
		var restore func()
		if next {
			restore = m.Backup()
			must(t, second(db.NextIdentity(ctx, "users")))
		} else {
			restore = m.Backup()
			put(t, db, "users|", `{}`)
		}
		crashed := disk.Crash(0, rand.New(rand.NewPCG(1, 1)))
		closeDB(t, db)
		restore()
		db, err := reopen(crashed, m.Connect())
		if restored(t, "Open", err); err == nil {
			equal(t, put(t, db, "users|", `{}`).ID, "users/1")
			closeDB(t, db)
		}
	}
}

// Ensure that a node that joined after the backup was made joins again when the
// coordinator is accepted, under its tag, and not before; also if it is opened only then.
func TestCluster_Restored_JoinedSince(t *testing.T) {
	t.Parallel()
	for _, state := range []string{"running", "closed", "opened later"} {
		running := state == "running"
		m := clustertest.NewMemory()
		a, b := storagetest.NewDisk(), storagetest.NewDisk()
		db := onTag(t, a, m.Connect(), "A")
		put(t, db, "users|", `{}`)
		closeDB(t, db)
		restore := m.Backup()
		db = onTag(t, b, m.Connect(), "B")
		equal(t, put(t, db, "users|", `{}`).ID, "users/2")
		if running {
			restore()
			restored(t, "Beat", checks.BeatCluster(db)) // its record is gone
			restored(t, "Put", second(db.Put(ctx, "users|", []byte(`{}`))))
		}
		closeDB(t, db)
		if !running {
			restore()
		}
		c := m.Connect()
		for range 100 { // of nodes that have seen nothing since the backup
			must(t, second(c.Commit(ctx, nil, []cluster.Change{{Key: "other", Value: []byte("1")}})))
		}

		if state != "opened later" {
			restored(t, "Open", second(reopen(b, m.Connect())))
		}
		db = accept(t, m, a, 2)
		equal(t, put(t, db, "users|", `{}`).ID, "users/3")
		closeDB(t, db)
		db, err := reopen(b, m.Connect())
		must(t, err)
		equal(t, put(t, db, "users|", `{}`).ID, "users/4")
		equal(t, clusterStats(t, db).Joined, true)
		store(t, db, "Users")
		closeDB(t, db)
	}
}

// Ensure that what was decided to go on with, and then was not, stays refused, and can be
// accepted later.
func TestCluster_Restored_AcceptFailed(t *testing.T) {
	t.Parallel()
	m, disk := setBack(t)
	_, err := reopen(disk, m.Connect())
	restored(t, "Open", err)
	undone := m.Backup()
	closeDB(t, accept(t, m, disk, 10)) // the operator's decision is lost
	undone()
	for range 2 {
		_, err = reopen(disk, m.Connect())
		restored(t, "Open", err)
	}
	m.Accept()
	db := accept(t, m, disk, 20)
	equal(t, put(t, db, "users|", `{}`).ID, "users/21")
	closeDB(t, db)
}

// Ensure that callers learn it whose commit was under way, and not only when their time is
// over.
func TestCluster_Restored_Waiting(t *testing.T) {
	t.Parallel()
	for _, doubtful := range []bool{false, true} {
		m, nodes, clients := members(t, 1)
		c := clients[0]
		restore := m.Backup()
		put(t, nodes[0], "users|", `{}`)
		c.Cut()
		if doubtful { // the next commit has no answer, and the one behind it finds the backup
			c.Fail(clustertest.Never)
			commits := 0
			c.Before(func(call clustertest.Call) {
				if call.Method == "Commit" {
					if commits++; commits == 2 {
						restore()
					}
				}
			})
		}
		failed := make(chan error)
		const callers = 8
		long, cancel := context.WithTimeout(ctx, time.Minute)
		defer cancel()
		for range callers {
			go func() { failed <- second(nodes[0].Put(long, "users|", []byte(`{}`))) }()
		}
		for checks.IdentitiesWaiting(nodes[0], "users|") < callers {
			time.Sleep(time.Millisecond)
		}
		if !doubtful {
			restore()
		}
		c.Mend()
		for range callers {
			restored(t, "Put", <-failed)
		}
	}
}

// Ensure that a node which is opened after others have gone on with a coordinator that was
// restored finds it out, though the indexes are above all that it has seen by now: its own
// record is older than it has left it.
func TestCluster_Restored_OthersWentOn(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	a, b := storagetest.NewDisk(), storagetest.NewDisk()
	db := onTag(t, b, m.Connect(), "B")
	put(t, db, "users|", `{}`)
	closeDB(t, db)
	db = onTag(t, a, m.Connect(), "A")
	restore := m.Backup()
	equal(t, put(t, db, "users|", `{}`).ID, "users/2")
	closeDB(t, db)
	restore()

	db, err := reopen(b, m.Connect()) // it has seen nothing of what was lost
	must(t, err)
	for range 20 {
		put(t, db, "users|", `{}`)
	}
	closeDB(t, db)
	for range 2 {
		db, err = reopen(a, m.Connect())
		if restored(t, "Open", err); err == nil {
			closeDB(t, db)
		}
	}
	db = accept(t, m, a, 100)
	equal(t, put(t, db, "users|", `{}`).ID, "users/101")
	store(t, db, "Users")
	closeDB(t, db)
}

// Ensure that an Open that is refused when it has made a heartbeat ends that: the next Open
// does not wait until it counts as dead.
func TestCluster_Restored_NextOpen(t *testing.T) {
	t.Parallel()
	m, disk := setBack(t)
	for range 2 {
		_, err := jay.Open("db", &jay.Options{FS: disk, Cluster: m.Connect(), ClusterPeriod: time.Minute})
		restored(t, "Open", err)
		var last cluster.Beat
		must(t, json.Unmarshal(m.Records(cluster.BeatPrefix)[0].Value, &last))
		if !last.Closed {
			t.Fatal("a run that was refused counts as alive")
		}
	}
	closeDB(t, accept(t, m, disk, 100))
}

// Ensure that an Open which joins the cluster and then fails, as the coordinator stops
// answering, leaves no heartbeat for which the next one would wait.
func TestCluster_JoinFails(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	put(t, db, "users|", `{}`)
	closeDB(t, db)
	c := m.Connect()
	c.Fail(clustertest.Passes, clustertest.Never) // the claim, and what the database gives to the cluster
	if _, err := reopen(disk, c); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatalf("got %v, want ErrUnknownOutcome", err)
	}
	var last cluster.Beat
	must(t, json.Unmarshal(m.Records(cluster.BeatPrefix)[0].Value, &last))
	equal(t, last.Closed, true)
	db, err := reopen(disk, m.Connect())
	must(t, err)
	equal(t, put(t, db, "users|", `{}`).ID, "users/2")
	closeDB(t, db)
}

// setBackOnce is a coordinator that says of its commits, from some moment on, that they may
// have happened, and that it was set back: as etcd does when it has gone back.
type setBackOnce struct {
	cluster.Coordinator
	gone atomic.Bool
}

func (c *setBackOnce) Commit(ctx context.Context, conditions []cluster.Condition, changes []cluster.Change) (cluster.Result, error) {
	result, err := c.Coordinator.Commit(ctx, conditions, changes)
	if c.gone.Load() {
		return cluster.Result{}, fmt.Errorf("%w: %w", cluster.ErrUnknownOutcome, cluster.ErrRestored)
	}
	return result, err
}

// Ensure that a cluster-wide write that finds the coordinator set back, or is in doubt when
// another call finds it, is not tried for ever: it ends at once, so do the writes that wait for
// its documents, and calls that were not in doubt are refused without ErrUnknownOutcome.
func TestCluster_Restored_Locks(t *testing.T) {
	t.Parallel()
	refused := func(what string, err error) {
		t.Helper()
		if restored(t, what, err); errors.Is(err, jay.ErrUnknownOutcome) {
			t.Errorf("%s: got %v, but it has certainly not happened", what, err)
		}
	}
	both := func(ctx context.Context, db *jay.DB, id string) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			if _, err := tx.CompareExchange().Put(ctx, "names/"+id, 1, 0); err != nil {
				return err
			}
			return second(tx.Put(ctx, id, []byte(`{}`)))
		})
	}
	for _, inDoubt := range []bool{false, true} {
		m := clustertest.NewMemory()
		client := m.Connect()
		c := &setBackOnce{Coordinator: client}
		db := memory(t, inCluster(c, "A"))
		must(t, both(ctx, db, "users/0"))
		var waiting chan error
		if inDoubt {
			doubtful(t, db, client, clustertest.Never)
			waiting = make(chan error, 1)
			go func() { waiting <- second(db.Put(ctx, "users/1", []byte(`{}`))) }()
		}
		c.gone.Store(true)
		client.Mend()
		if inDoubt {
			refused("a write that waits", <-waiting)
		} else {
			restored(t, "the first cluster-wide write", both(ctx, db, "users/1"))
		}
		refused("a plain write of its document", second(db.Put(ctx, "users/1", []byte(`{}`))))
		refused("a read of a value", second(db.CompareExchange().Get(ctx, "names/users/0")))
		refused("an identity", second(db.Put(ctx, "users|", []byte(`{}`))))
		refused("a cluster-wide write", both(ctx, db, "users/9"))
		put(t, db, "users/9", `{}`)
		put(t, db, "users/0", `{}`)
		equal(t, checks.Undecided(db), 1) // for the next Open
		closeDB(t, db)
	}
}
