package shared_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/memory"
)

// Ensure that a process whose snapshots are all open, and whose readers wait for a write, follows the definitions that another process has changed: the
// write, and a patch, need no snapshot. With JAY_ENGINE=postgres there is a most of snapshots.
func TestSnapshots_AllOpen(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	put(t, a, "users/1", `{}`, jay.InCollection("Users"))
	written := make(chan struct{})
	var readers, reading sync.WaitGroup
	failed := make(chan error, 14)
	for range 14 {
		reading.Add(1)
		readers.Go(func() {
			failed <- a.View(ctx, func(tx *jay.Tx) error {
				_, err := tx.Get(ctx, "users/1")
				reading.Done()
				<-written
				return err
			})
		})
	}
	jaytest.Await(t, "14 readers", jaytest.Finished(&reading))
	must(t, b.EnsureIndex(ctx, "Users", jay.Index{Name: "names", Fields: []string{"Name"}}))
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := a.Put(within, "users/2", []byte(`{"Name":"Ann"}`), jay.InCollection("Users"))
	if err == nil {
		_, err = a.Patch(within, "users/2", jay.Set("/Age", 7))
	}
	close(written)
	readers.Wait()
	close(failed)
	for one := range failed {
		err = errors.Join(err, one)
	}
	must(t, err)
}

// Ensure that transactions that have read ranges commit although their snapshots are all there are: a
// commit does not need another one. With JAY_ENGINE=postgres there is a most of snapshots.
func TestSnapshots_AllCommit(t *testing.T) {
	a, _ := openTwo(t, jay.Options{})
	put(t, a, "users/1", `{}`, jay.InCollection("Users"))
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	var writers, walking sync.WaitGroup
	failed := make(chan error, 14)
	walking.Add(14)
	for i := range 14 {
		writers.Go(func() {
			first := true
			failed <- a.Update(within, func(tx *jay.Tx) error {
				for _, err := range tx.Documents(within, jay.Scan{Collection: "Users"}) {
					if err != nil {
						return err
					}
				}
				if first {
					first = false
					walking.Done()
				}
				walking.Wait()
				_, err := tx.Put(within, fmt.Sprintf("notes/%d", i), []byte(`{}`), jay.InCollection("Notes"))
				return err
			})
		})
	}
	writers.Wait()
	close(failed)
	for one := range failed {
		must(t, one)
	}
}

// Ensure that a process whose snapshots are all open for longer than a lease keeps its node tag: who renews it needs no
// snapshot to look at the leases of others. With JAY_ENGINE=postgres there is a most of snapshots.
func TestSnapshots_KeepLease(t *testing.T) {
	const period = time.Second
	a, b := openTwo(t, jay.Options{ClusterPeriod: period})
	put(t, a, "users/1", `{}`, jay.InCollection("Users"))
	before := tagOf(t, a)
	release := make(chan struct{})
	var readers, reading sync.WaitGroup
	failed := make(chan error, 14)
	for range 14 {
		reading.Add(1)
		readers.Go(func() {
			failed <- a.View(ctx, func(tx *jay.Tx) error {
				_, err := tx.Get(ctx, "users/1")
				reading.Done()
				<-release
				return err
			})
		})
	}
	jaytest.Await(t, "14 readers", jaytest.Finished(&reading))
	time.Sleep(4 * period)
	put(t, b, "users/2", `{}`, jay.InCollection("Users"))
	within, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	_, err := a.Put(within, "users/3", []byte(`{}`), jay.InCollection("Users"))
	close(release)
	readers.Wait()
	close(failed)
	for one := range failed {
		err = errors.Join(err, one)
	}
	must(t, err)
	want(t, "node tag", tagOf(t, a), before)
}

// expiring returns a driver whose snapshots expire at the k-th look at its clock after it is armed, and whether they have. Iterators fail one by one, each
// as it moves.
func expiring(k int) (driver *memory.Driver, arm func(bool), expired func() bool) {
	var mu sync.Mutex
	now, looks, armed := time.Unix(0, 0), 0, false
	driver = &memory.Driver{Shared: true, Limits: storage.Limits{SnapshotAge: time.Minute}, Now: func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		if armed {
			if looks++; looks == k {
				now = now.Add(time.Hour)
			}
		}
		return now
	}}
	arm = func(on bool) {
		mu.Lock()
		defer mu.Unlock()
		armed = on
	}
	expired = func() bool {
		mu.Lock()
		defer mu.Unlock()
		return looks >= k
	}
	return driver, arm, expired
}

// putScattered puts documents of the collection Docs, of which some have IDs that do not begin with its name: they are read by another iterator.
func putScattered(t *testing.T, db *jay.DB, n int) {
	t.Helper()
	for i := range n {
		for _, prefix := range []string{"a", "docs", "z"} {
			put(t, db, fmt.Sprintf("%s/%02d", prefix, i), `{"n":1}`, jay.InCollection("Docs"))
		}
	}
}

// Ensure that an index has all documents if the snapshot of its build expires, wherever it does: the build went on with the documents of one iterator after
// the other one had failed, and the next snapshot began behind those that were missing.
func TestSnapshots_ExpireInBuild(t *testing.T) {
	defer checks.SetBuildChunks(3, 100)()
	for k := 1; ; k++ {
		driver, arm, expired := expiring(k)
		db := jaytest.Open(t, "db", &jay.Options{Engine: driver})
		putScattered(t, db, 5)
		arm(true)
		err := db.EnsureIndex(ctx, "Docs", jay.Index{Name: "n", Fields: []string{"n"}})
		arm(false)
		if !errors.Is(err, jay.ErrSnapshotExpired) {
			must(t, err)
			n, err := db.Query("Docs").Where(jay.Eq("n", 1)).Count(ctx)
			must(t, err)
			want(t, fmt.Sprintf("documents in the index, if a snapshot expires at look %d", k), n, 15)
		}
		must(t, db.Close())
		if !expired() {
			return
		}
	}
}

// Ensure that a scan whose snapshot expires returns no document behind one that it has not returned, in either direction.
func TestSnapshots_ExpireInScan(t *testing.T) {
	for _, scan := range []jay.Scan{{Collection: "Docs"}, {Collection: "Docs", Reverse: true}} {
		all := make(map[int][]string) // by the look at which the snapshot expires
		last := 0
		for k := 1; ; k++ {
			driver, arm, expired := expiring(k)
			db := jaytest.Open(t, "db", &jay.Options{Engine: driver})
			putScattered(t, db, 5)
			arm(true)
			var failed error
			for doc, err := range db.Documents(ctx, scan) {
				if failed = err; err != nil {
					break
				}
				all[k] = append(all[k], doc.ID())
			}
			arm(false)
			if failed != nil && !errors.Is(failed, jay.ErrSnapshotExpired) {
				t.Fatal(failed)
			}
			must(t, db.Close())
			if last = k; !expired() {
				want(t, "documents", len(all[k]), 15)
				break
			}
		}
		for k, ids := range all {
			if !slices.Equal(ids, all[last][:len(ids)]) {
				t.Errorf("%+v, expired at look %d: %q", scan, k, ids)
			}
		}
	}
}

// Ensure that a query by an index that finds its answers itself returns them all or an error if its snapshot expires, wherever it does, also before the index
// has read what it begins with: a query for the nearest vectors panicked.
func TestSnapshots_ExpireInKinds(t *testing.T) {
	indexes := []jay.Index{
		{Name: "Places", Kind: "places", Fields: []string{"spatial.point(Lat, Lng)"}},
		{Name: "Text", Kind: "text", Fields: []string{"Text"}},
		{Name: "Vectors", Kind: "vectors", Fields: []string{"V"}, Options: map[string]string{"dimensions": "3"}},
	}
	for _, q := range []string{
		"from Docs order by vector.distance(V, [1, 2, 1]) limit 3",
		"from Docs where vector.search(V, [1, 2, 1], 0.5)",
		"from Docs order by spatial.distance(spatial.point(Lat, Lng), spatial.point(3, 3)) limit 3",
		"from Docs where spatial.within(spatial.point(Lat, Lng), spatial.circle(600, 3, 3))",
		"from Docs where search(Text, 'alpha')",
		"from Docs where search(Text, 'alpha') order by score()",
	} {
		all := make(map[int]int) // answers, by the look at which the snapshot expires
		last := 0
		for k := 1; ; k++ {
			driver, arm, expired := expiring(k)
			db := jaytest.Open(t, "db", &jay.Options{Engine: driver})
			must(t, db.EnsureIndexes(ctx, "Docs", indexes))
			for i := range 5 {
				put(t, db, fmt.Sprint("docs/", i), fmt.Sprintf(`{"V":[%d,1,1],"Lat":%d,"Lng":3,"Text":"alpha beta"}`, i, i), jay.InCollection("Docs"))
			}
			checks.WaitSettled(db)
			arm(true)
			rows, err := db.RQL(q, nil)
			must(t, err)
			found, err := rows.All(ctx)
			arm(false)
			must(t, db.Close())
			if err == nil {
				all[k] = len(found)
			} else if !errors.Is(err, jay.ErrSnapshotExpired) {
				t.Fatal(err)
			}
			if last = k; !expired() {
				break
			}
		}
		for k, n := range all {
			want(t, fmt.Sprintf("answers of %q, expired at look %d of %d", q, k, last), n, all[last])
		}
		if all[last] == 0 {
			t.Errorf("%q finds nothing", q)
		}
	}
}
