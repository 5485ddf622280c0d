package index_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// indexRounds is how many drops the storm makes: JAY_INDEX_ROUNDS=3000 takes
// a minute or more.
func indexRounds(t *testing.T) int {
	if text := os.Getenv("JAY_INDEX_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if testing.Short() {
		return 20
	}
	return 40
}

// numbered writes documents things/0 … with n = 1, and v from 0.
func numbered(t testing.TB, db *jay.DB, count int) {
	t.Helper()
	var b jay.Batch
	for i := range count {
		b.Put(fmt.Sprint("things/", i), fmt.Appendf(nil, `{"n":1,"v":%d}`, i), jay.InCollection("Things"))
	}
	_, err := db.Apply(ctx, &b)
	must(t, err)
}

// noEntries makes sure that no index has left anything.
func noEntries(t testing.TB, db *jay.DB) {
	t.Helper()
	if infos, err := db.Indexes(ctx, ""); err != nil || len(infos) != 0 {
		t.Errorf("indexes: %+v, %v", infos, err)
	}
	if n, err := checks.IndexKeys(db); err != nil || n != 0 {
		t.Errorf("%d keys of indexes are left, %v", n, err)
	}
}

// Ensure that two droppers and one ensurer of the same index, beside queries and
// a writer, never make a query count wrong, and leave no entry. A build or a drop
// now and then waits for two looks of droppers, so that they meet it on any machine.
func TestIndex_Storm(t *testing.T) {
	defer checks.SetBuildChunks(100, 100)()
	const documents = 500
	db := memory(t, &jay.Options{Durability: jay.Relaxed})
	numbered(t, db, documents)
	ix := jay.Index{Name: "n", Fields: []string{"n", "-v"}}
	stop := make(chan struct{})
	var others sync.WaitGroup
	loop := func(fn func(random *rand.Rand)) {
		seed := rand.Uint64()
		others.Go(func() {
			random := rand.New(rand.NewPCG(seed, 1))
			for !t.Failed() {
				select {
				case <-stop:
					return
				default:
					fn(random)
				}
			}
		})
	}
	var looks, drops, counts, compared atomic.Int64
	defer checks.OnBuildChunk(func(closing context.Context, _ jay.IndexState) {
		if rand.IntN(8) > 0 {
			return
		}
		for until := looks.Load() + 2; looks.Load() < until; runtime.Gosched() {
			select {
			case <-stop:
				return
			default:
			}
		}
	})()
	// dropper drops as soon as there is an index, or first lets it become ready.
	dropper := func(drop func() error) {
		patient := false
		loop(func(random *rand.Rand) {
			looks.Add(1)
			infos, err := db.Indexes(ctx, "Things")
			if err != nil || len(infos) == 0 || patient && infos[0].State == jay.IndexBuilding {
				runtime.Gosched()
				return
			}
			patient = random.IntN(3) > 0
			switch err := drop(); {
			case err == nil:
				drops.Add(1)
			case !errors.Is(err, jay.ErrIndex) && !errors.Is(err, context.Canceled):
				t.Errorf("drop: %v", err)
			}
		})
	}
	for range 2 {
		dropper(func() error { return db.DropIndex(ctx, "Things", "n") })
	}
	dropper(func() error { // a caller in a hurry
		hurried, cancel := context.WithCancel(ctx)
		go cancel()
		return db.DropIndex(hurried, "Things", "n")
	})
	for range 2 {
		loop(func(*rand.Rand) {
			if n, err := db.Query("Things").Where(jay.Eq("n", 1)).Count(ctx); err != nil || n != documents {
				t.Errorf("count is %d, want %d, %v", n, documents, err)
			}
			counts.Add(1)
		})
	}
	loop(func(random *rand.Rand) {
		put(t, db, fmt.Sprint("things/", random.IntN(documents)), fmt.Sprintf(`{"n":1,"v":%d}`, random.IntN(1000)), jay.InCollection("Things"))
	})
	loop(func(*rand.Rand) {
		if err := checks.Indexes(db); err != nil {
			t.Error(err)
		}
		compared.Add(1)
	})
	ready, gone, rounds := 0, 0, indexRounds(t)
	met := func() bool { return ready > 0 && gone > 0 && counts.Load() > 0 && compared.Load() > 0 }
	for more := jaytest.Patience(); (drops.Load() < int64(rounds) || more(met())) && !t.Failed(); {
		switch err := db.EnsureIndex(ctx, "Things", ix); {
		case err == nil:
			ready++
			runtime.Gosched() // the droppers' turn
		case errors.Is(err, jay.ErrIndex):
			gone++
		default:
			t.Errorf("ensure: %v", err)
		}
	}
	close(stop)
	others.Wait()
	if err := db.DropIndex(ctx, "Things", "n"); err != nil && !errors.Is(err, jay.ErrIndex) {
		t.Error(err)
	}
	checks.WaitIndexTasks(db)
	noEntries(t, db)
	t.Logf("EnsureIndex found %d ready and %d dropped; %d drops, %d counts, %d checks of every entry", ready, gone, drops.Load(), counts.Load(), compared.Load())
	if !met() {
		t.Error("the droppers, the ensurer and the queries never met: the test does not test it")
	}
}

// Ensure that EnsureIndex returns the error of a disk that fails in the middle
// of a build, and returns an error again when it is asked again, while the index
// is not ready; and that the next Open builds it.
func TestEnsureIndex_DiskFails(t *testing.T) {
	for after := range 2 { // no sync, or that of the declaration
		disk := storagetest.NewDisk()
		db := onDisk(t, disk, jay.Options{})
		numbered(t, db, 50)
		disk.FailAfter(after)
		ix := jay.Index{Fields: []string{"v"}}
		err := db.EnsureIndex(ctx, "Things", ix)
		if !errors.Is(err, jay.ErrUnknownOutcome) {
			t.Errorf("after %d syncs: %v", after, err)
		}
		for range 3 {
			again := db.EnsureIndex(ctx, "Things", ix)
			infos, listed := db.Indexes(ctx, "")
			must(t, listed)
			ready := len(infos) == 1 && infos[0].State == jay.IndexReady
			if (again == nil) != ready {
				t.Errorf("after %d syncs: EnsureIndex returns %v, indexes %+v", after, again, infos)
			}
			if again != nil && !errors.Is(again, jay.ErrFailed) && !errors.Is(again, jay.ErrUnknownOutcome) {
				t.Errorf("after %d syncs: %v", after, again)
			}
		}
		if err := db.DropIndex(ctx, "Things", "v"); err == nil {
			t.Errorf("after %d syncs: a drop that a failed disk cannot hold returns nil", after)
		}
		found := disk.Crash(0, rand.New(rand.NewPCG(1, 1)))
		_ = db.Close() // the disk has failed
		db = onDisk(t, found, jay.Options{})
		must(t, db.EnsureIndex(ctx, "Things", ix))
		if err := checks.Indexes(db); err != nil {
			t.Errorf("after %d syncs: %v", after, err)
		}
		must(t, db.DropIndex(ctx, "Things", "v"))
		noEntries(t, db)
		closeDB(t, db)
	}
}

// Ensure that EnsureIndex at the start of a program whose machine lost its power
// in the middle of a drop waits for the rest of the drop and builds the index
// anew, under the old declaration and under another one.
func TestEnsureIndex_AfterCutDrop(t *testing.T) {
	sample.OneGoroutine(t)
	for _, percent := range []int{0, 100} {
		for _, fields := range [][]string{{"v"}, {"-v", "n"}} {
			restore := checks.SetBuildChunks(500, 1)
			disk := storagetest.NewDisk()
			db := onDisk(t, disk, jay.Options{})
			numbered(t, db, 1500)
			must(t, db.EnsureIndex(ctx, "Things", jay.Index{Name: "v", Fields: []string{"v"}}))
			var crashed *storagetest.Disk
			syncs := 0
			disk.OnSync(func() { // of the state dropping, then of the end
				if syncs++; syncs == 2 {
					crashed = disk.Crash(percent, rand.New(rand.NewPCG(1, 1)))
				}
			})
			must(t, db.DropIndex(ctx, "Things", "v"))
			disk.OnSync(func() {})
			closeDB(t, db)

			db = onDisk(t, crashed, jay.Options{})
			if err := db.EnsureIndex(ctx, "Things", jay.Index{Name: "v", Fields: fields}); err != nil {
				t.Errorf("%d%% kept, fields %v: %v", percent, fields, err)
			}
			infos, err := db.Indexes(ctx, "")
			if err != nil || len(infos) != 1 || infos[0].State != jay.IndexReady || fmt.Sprint(infos[0].Fields) != fmt.Sprint(fields) {
				t.Errorf("%d%% kept: %+v, %v", percent, infos, err)
			}
			if err := checks.Indexes(db); err != nil {
				t.Errorf("%d%% kept: %v", percent, err)
			}
			closeDB(t, db)
			restore()
		}
	}
}

// dropVariable is set to a directory in the process that TestEnsureIndex_AfterKilledDrop
// kills.
const dropVariable = "JAY_CRASH_DROP"

// TestEnsureIndex_AfterKilledDrop_Process is that process: it drops an index, and
// prints when it is in the middle, where it stays.
func TestEnsureIndex_AfterKilledDrop_Process(t *testing.T) {
	dir := os.Getenv(dropVariable)
	if dir == "" {
		t.Skip("only in a process of TestEnsureIndex_AfterKilledDrop")
	}
	checks.SetBuildChunks(500, 100)
	db := open(t, dir, nil)
	must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"v"}}))
	chunks := 0
	checks.OnBuildChunk(func(context.Context, jay.IndexState) {
		if chunks++; chunks == 5 {
			fmt.Println("dropping")
			select {} // until it is killed
		}
	})
	must(t, db.DropIndex(ctx, "Things", "v"))
	t.Error("the drop has not been held up")
}

// Ensure that EnsureIndex repairs what a process has left that was killed in the
// middle of a drop.
func TestEnsureIndex_AfterKilledDrop(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, nil)
	numbered(t, db, 2000)
	closeDB(t, db)
	for range 2 {
		child.Start(t, "TestEnsureIndex_AfterKilledDrop_Process", dropVariable+"="+dir).KillAt(func(line string) bool {
			return line == "dropping"
		})

		db := open(t, dir, nil)
		infos, err := db.Indexes(ctx, "")
		must(t, err)
		if len(infos) > 1 || len(infos) == 1 && infos[0].State != jay.IndexDropping { // Open goes on with it
			t.Errorf("after a drop that was cut: %+v", infos)
		}
		must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"v"}}))
		if err := checks.Indexes(db); err != nil {
			t.Error(err)
		}
		closeDB(t, db)
	}
}

// Ensure that callers of EnsureIndex and DropIndex whose context ends return,
// though the disk holds up the catalog, that Indexes answers, and that what they
// began goes on.
func TestIndex_DiskHangs(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	numbered(t, db, 20)
	must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"n"}}))
	hung, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	disk.OnSync(func() {
		once.Do(func() { close(hung) })
		<-release
	})
	calls := []func(context.Context) error{
		func(ctx context.Context) error { return db.DropIndex(ctx, "Things", "n") },
		func(ctx context.Context) error {
			return db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"v"}})
		},
		func(ctx context.Context) error {
			return db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"v"}})
		},
		func(ctx context.Context) error { return db.DropIndex(ctx, "Things", "n") },
	}
	ending, cancel := context.WithCancel(ctx)
	results := make(chan error, len(calls))
	for _, call := range calls {
		go func() { results <- call(ending) }()
	}
	<-hung
	if infos, err := db.Indexes(ctx, ""); err != nil || len(infos) != 1 {
		t.Errorf("indexes: %+v, %v", infos, err)
	}
	cancel()
	for range calls {
		if err := <-results; !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
	disk.OnSync(func() {})
	close(release)
	checks.WaitIndexTasks(db)
	if err := db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"v"}}); err != nil {
		t.Error(err)
	}
	infos, err := db.Indexes(ctx, "")
	must(t, err)
	for _, info := range infos {
		if info.Name == "n" && info.State != jay.IndexReady { // that call may never have come to start a drop
			t.Errorf("left: %+v", info)
		}
	}
	if err := checks.Indexes(db); err != nil {
		t.Error(err)
	}
	closeDB(t, db)
}
