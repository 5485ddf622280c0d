package members_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that identities, compare exchange and cluster-wide writes go on in a database whose
// calls a copy of its directory has taken over while it was stopped, however often the copy
// was opened, and that no number comes twice.
func TestCluster_Copies_GoOn(t *testing.T) {
	t.Parallel()
	for _, runs := range []int{1, 2} { // the second run of the copy removes what the first has marked
		m := clustertest.NewMemory()
		disk := storagetest.NewDisk()
		db := onTag(t, disk, m.Connect(), "A")
		ids := make(map[string]bool)
		number := func(node *jay.DB, request string) {
			t.Helper()
			id := put(t, node, request, `{}`).ID
			if ids[id] {
				t.Errorf("%s comes twice", id)
			}
			ids[id] = true
		}
		both := func(node *jay.DB, id string) error {
			return node.Update(ctx, func(tx *jay.Tx) error {
				if _, err := tx.CompareExchange().Put(ctx, "names/"+id, 1, 0); err != nil {
					return err
				}
				return second(tx.Put(ctx, id, []byte(`{}`)))
			})
		}
		number(db, "invoices|")
		must(t, both(db, "users/1"))

		copied := disk.Crash(100, rand.New(rand.NewPCG(1, 1)))
		for range runs {
			twin := onTag(t, copied, m.Connect(), "A") // the original does not beat
			must(t, checks.BeatCluster(twin))
			number(twin, "invoices|")
			must(t, second(twin.CompareExchange().Put(ctx, fmt.Sprint("twin/", len(ids)), 1, 0)))
			crashed := copied.Crash(100, rand.New(rand.NewPCG(1, 1)))
			closeDB(t, twin)
			copied = crashed
		}

		number(db, "invoices|")
		number(db, "invoices|")
		number(db, "orders|")
		must(t, second(db.CompareExchange().Put(ctx, "k", 1, 0)))
		must(t, both(db, "users/2"))
		_, err := db.Put(ctx, "logs/", []byte(`{}`))
		tagError(t, err, cluster.TagCopied)

		must(t, second(cluster.Resolve(ctx, m.Connect(), "A")))
		must(t, checks.BeatCluster(db))
		put(t, db, "logs/", `{}`)
		number(db, "invoices|")
		must(t, both(db, "users/3"))
		for i := range 3 {
			equal(t, valueIn(t, db, fmt.Sprint("names/users/", i+1)), "1")
			equal(t, body(t, db, fmt.Sprint("users/", i+1)), "{}")
		}
		closeDB(t, db)
	}
}

// doubtful makes a commit of the value both and the document users/1 whose answer is lost, and
// cuts the node off before it can ask again.
func doubtful(t *testing.T, db *jay.DB, c *clustertest.Client, fault clustertest.Fault) {
	t.Helper()
	must(t, second(db.CompareExchange().Put(ctx, "warm", 1, 0))) // makes the slot
	c.Fail(fault)
	var commits atomic.Int32
	limited, leave := context.WithCancel(ctx)
	defer leave()
	c.Before(func(call clustertest.Call) {
		if call.Method == "Commit" && commits.Add(1) == 2 {
			c.Cut()
			leave()
		}
	})
	err := db.Update(limited, func(tx *jay.Tx) error {
		if _, err := tx.CompareExchange().Put(ctx, "both", 1, 0); err != nil {
			return err
		}
		return second(tx.Put(ctx, "users/1", []byte(`{}`)))
	})
	if !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Fatalf("got %v, want ErrUnknownOutcome", err)
	}
	equal(t, checks.Undecided(db), 1)
}

// whole checks that a value and its document are both there, or both not.
func whole(t *testing.T, db *jay.DB, there bool) {
	t.Helper()
	if got := valueIn(t, db, "both") != ""; got != there {
		t.Errorf("the value is there: %t, want %t", got, there)
	}
	got, err := db.Exists(ctx, "users/1")
	must(t, err)
	if got != there {
		t.Errorf("the document is there: %t, want %t", got, there)
	}
}

// Ensure that a cluster-wide write whose answer was lost is whole in the database that made it,
// whatever a copy of its directory decides about it meanwhile: a copy with a tag of its own, or
// one with the same tag that runs while the original is stopped.
func TestCluster_Copies_InDoubt(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(t *testing.T, fault clustertest.Fault){
		"another tag": func(t *testing.T, fault clustertest.Fault) {
			m := clustertest.NewMemory()
			disk := storagetest.NewDisk()
			c := m.Connect()
			db := onTag(t, disk, c, "A")
			doubtful(t, db, c, fault)
			random := rand.New(rand.NewPCG(1, 1))
			original, copied := disk.Crash(100, random), disk.Crash(100, random)
			must(t, c.Close())
			_ = db.Close()
			twin := onDisk(t, copied, jay.Options{Cluster: m.Connect(), ClusterPeriod: 100 * time.Millisecond, CopyTag: "D"})
			must(t, checks.BeatCluster(twin))
			whole(t, twin, fault == clustertest.Happens)
			closeDB(t, twin)
			c.Deliver()

			db = onTag(t, original, m.Connect(), "A")
			must(t, checks.BeatCluster(db))
			equal(t, checks.Undecided(db), 0)
			whole(t, db, fault != clustertest.Never)
			closeDB(t, db)
		},
		"the same tag": func(t *testing.T, fault clustertest.Fault) {
			m := clustertest.NewMemory()
			disk := storagetest.NewDisk()
			c := m.Connect()
			db := onTag(t, disk, c, "A")
			doubtful(t, db, c, fault)
			copied := disk.Crash(100, rand.New(rand.NewPCG(1, 1)))
			twin := onTag(t, copied, m.Connect(), "A")
			must(t, checks.BeatCluster(twin))
			whole(t, twin, fault == clustertest.Happens)
			closeDB(t, twin)

			c.Mend()
			c.Deliver()
			for end := time.Now().Add(time.Minute); checks.Undecided(db) > 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("the commit is not decided")
				}
			}
			whole(t, db, fault == clustertest.Happens)
			put(t, db, "users/1", `{}`)
			closeDB(t, db)
		},
	} {
		for _, fault := range []clustertest.Fault{clustertest.Happens, clustertest.Never, clustertest.Withhold} {
			t.Run(fmt.Sprint(name, "/", fault), func(t *testing.T) {
				t.Parallel()
				run(t, fault)
			})
		}
	}
}

// Ensure that a write of a document is refused at once, with the reason, when copies have left
// no trace of the cluster-wide write that it would have to wait for.
func TestCluster_Copies_Undecidable(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	c := m.Connect()
	db := onTag(t, disk, c, "A")
	doubtful(t, db, c, clustertest.Happens)
	var slots []cluster.Change
	for _, r := range m.Records(cluster.CallPrefix) {
		slots = append(slots, cluster.Change{Key: r.Key, Delete: true})
	}
	must(t, second(m.Connect().Commit(ctx, nil, slots)))

	waiting := make(chan error, 1)
	go func() { waiting <- second(db.Put(ctx, "users/1", []byte(`{"n":2}`))) }()
	c.Mend()
	refused := func(what string, err error) {
		t.Helper()
		if !errors.Is(err, jay.ErrTag) || errors.Is(err, jay.ErrUnknownOutcome) || errors.Is(err, jay.ErrNoMajority) || !strings.Contains(err.Error(), "next Open") {
			t.Errorf("%s: got %v, want an ErrTag that names the next Open", what, err)
		}
	}
	refused("Put", <-waiting)
	refused("Delete", db.Delete(ctx, "users/1"))
	_, err := db.CompareExchange().Get(ctx, "both")
	refused("Get of the value", err)
	put(t, db, "users/2", `{}`)
	put(t, db, "orders|", `{}`)
	closeDB(t, db)
}

// Ensure that a database which is opened without its coordinator lists the commits that are not
// decided; and that, opened with it, it shows no value before its document, as long as they
// are not.
func TestCluster_Open_Undecided(t *testing.T) {
	t.Parallel()
	m := clustertest.NewMemory()
	disk := storagetest.NewDisk()
	c := m.Connect()
	db := onTag(t, disk, c, "A")
	doubtful(t, db, c, clustertest.Happens)
	disk = disk.Crash(100, rand.New(rand.NewPCG(1, 1)))
	must(t, c.Close())
	_ = db.Close()

	_, err := jay.Open("db", &jay.Options{FS: disk})
	if !errors.Is(err, jay.ErrNeedsCluster) || !strings.Contains(err.Error(), `1 commits are not decided: "users/1" with the values "both"`) {
		t.Errorf("got %v, want the commits that are not decided", err)
	}

	next := m.Connect()
	release := make(chan struct{})
	next.Before(func(call clustertest.Call) {
		if call.Method == "Read" && strings.HasPrefix(call.Keys[0], cluster.CallPrefix) {
			<-release
		}
	})
	db = onTag(t, disk, next, "A")
	equal(t, checks.Undecided(db), 1)
	cutOff(t, "a read of the value", func(ctx context.Context) error { return second(db.CompareExchange().Get(ctx, "both")) })
	close(release)
	whole(t, db, true)
	closeDB(t, db)
}
