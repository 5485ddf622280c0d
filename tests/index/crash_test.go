package index_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/querytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// Ensure that a loss of power, at any sync of the log and whatever part of the
// unsynced data survives, leaves indexes that hold what the documents give:
// builds and drops that it cut go on.
func TestIndex_Crash_AtAnySync(t *testing.T) {
	sample.OneGoroutine(t)
	defer checks.SetBuildChunks(15, 40)()
	crashAtAnySync(t, 1)
}

// crashAtAnySync builds up to so many indexes at once.
func crashAtAnySync(t *testing.T, together int) {
	seed := querytest.Seed(t)
	today := sample.Of(t, 3)
	cut := make(map[jay.IndexState]int)
	more := jaytest.Patience()
	for _, percent := range []int{0, 50, 100} {
		disk := storagetest.NewDisk()
		met := func() bool { return percent < 100 || cut[jay.IndexBuilding] > 0 && cut[jay.IndexDropping] > 0 }
		for round := 0; round < today.Rounds(12*querytest.Rounds(t, 1)) || more(met()); round++ {
			name := fmt.Sprintf("JAY_QUERY_SEED=%d, %d%% kept, round %d", seed, percent, round)
			durability := jay.Synced
			if round%3 == 2 {
				durability = jay.Relaxed
			}
			db := onDisk(t, disk, jay.Options{Durability: durability})
			infos, err := db.Indexes(ctx, "")
			must(t, err)
			for _, info := range infos {
				cut[info.State]++
			}
			finishTasks(t, db)
			if err := checks.Indexes(db); err != nil {
				t.Fatalf("%s, after the crash: %v", name, err)
			}
			must(t, checks.Counts(db))
			disk = indexesUntilCrash(t, db, disk, seed+uint64(round), percent, together)
			if t.Failed() {
				t.Fatal(name)
			}
		}
	}
	t.Logf("indexes found after crashes: %v", cut)
	if cut[jay.IndexBuilding] == 0 || cut[jay.IndexDropping] == 0 {
		t.Error("no build, or no drop, was ever cut: the test does not test it")
	}
}

// indexesUntilCrash writes, builds and drops until the power goes, and returns
// the disk as it is found then. What happens after that, happens in a world
// that is gone.
func indexesUntilCrash(t *testing.T, db *jay.DB, disk *storagetest.Disk, seed uint64, percent, together int) *storagetest.Disk {
	random := rand.New(rand.NewPCG(seed, uint64(percent)))
	cut := disk.CutPower(random.IntN(40), percent, random)
	var writers sync.WaitGroup
	writers.Go(func() {
		g := querytest.New(seed)
		for !cut.Happened() && !t.Failed() {
			changeAtRandom(t, g, db, 150)
		}
	})
	g := querytest.New(seed + 1)
	for !cut.Happened() && !t.Failed() {
		infos, err := db.Indexes(ctx, "")
		must(t, err)
		if len(infos) > 5 || len(infos) > 0 && g.Chance(40) {
			must(t, db.DropIndex(ctx, "Orders", querytest.Pick(g, infos...).Name))
			continue
		}
		var indexes []jay.Index
		for range 1 + g.IntN(together) {
			ix := g.Index()
			ix.Name = fmt.Sprint("ix", g.IntN(1_000_000))
			indexes = append(indexes, ix)
		}
		if err := db.EnsureIndexes(ctx, "Orders", indexes); err != nil && !errors.Is(err, jay.ErrUnique) {
			t.Errorf("indexes %+v: %v", indexes, err)
		}
	}
	writers.Wait()
	disk.OnSync(func() {})
	closeDB(t, db)
	return cut.Disk()
}

// Ensure that a build and a drop that Close cuts go on at the next Open.
func TestIndex_Close_InTheMiddle(t *testing.T) {
	defer checks.SetBuildChunks(5, 5)()
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	g := querytest.New(querytest.Seed(t))
	for range 400 {
		changeAtRandom(t, g, db, 300)
	}
	cut := make(map[jay.IndexState]int)

	// Two of three rounds let Close come between two commits of the build or the
	// drop, the third at any moment.
	var chunks atomic.Int64 // until one waits for Close
	var waits chan struct{} // closed when it does
	defer checks.OnBuildChunk(func(closing context.Context, _ jay.IndexState) {
		if chunks.Add(-1) == 0 {
			close(waits)
			<-closing.Done()
		}
	})()
	for i := range 30 {
		ix := jay.Index{Name: "ix", Fields: []string{"a", "-l"}}
		done := make(chan error, 1)
		dropping := i%2 == 1
		begun := make(chan struct{})
		if i%3 > 0 {
			waits = begun
			chunks.Store(int64(1 + g.IntN(8)))
		}
		go func() {
			if i%3 == 0 {
				close(begun)
			}
			if dropping {
				done <- db.DropIndex(ctx, "Orders", "ix")
			} else {
				done <- db.EnsureIndex(ctx, "Orders", ix)
			}
		}()
		<-begun
		for range g.IntN(3) {
			changeAtRandom(t, g, db, 300)
		}
		closeDB(t, db)
		chunks.Store(0)
		if err := <-done; err != nil && !errors.Is(err, jay.ErrClosed) {
			t.Fatalf("cut by Close: %v, want ErrClosed", err)
		}
		db = onDisk(t, disk, jay.Options{})
		infos, err := db.Indexes(ctx, "Orders")
		must(t, err)
		for _, info := range infos {
			cut[info.State]++
		}
		changeAtRandom(t, g, db, 300)
		finishTasks(t, db)
		if err := checks.Indexes(db); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		if dropping {
			if err := db.DropIndex(ctx, "Orders", "ix"); err != nil && !errors.Is(err, jay.ErrIndex) {
				t.Fatal(err)
			}
		} else {
			must(t, db.EnsureIndex(ctx, "Orders", ix))
		}
		if err := checks.Indexes(db); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
	}
	closeDB(t, db)
	t.Logf("states found at Open: %v", cut)
	if cut[jay.IndexBuilding] == 0 || cut[jay.IndexDropping] == 0 {
		t.Error("no build, or no drop, was ever cut: the test does not test it")
	}
}

// Ensure that EnsureIndex asked twice makes one index, that another declaration
// of the name is refused, and that a caller who gives up leaves the build to
// itself.
func TestIndex_Ensure_Again(t *testing.T) {
	defer checks.SetBuildChunks(3, 100)()
	db := memory(t, nil)
	g := querytest.New(1)
	for range 300 {
		changeAtRandom(t, g, db, 300)
	}
	cancelled, cancel := context.WithCancel(ctx)
	ix := jay.Index{Fields: []string{" a ", "-b"}}
	cancel()
	if err := db.EnsureIndex(cancelled, "Orders", ix); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
	if infos, _ := db.Indexes(ctx, ""); len(infos) != 0 {
		t.Errorf("a call that was cancelled before made %v", infos)
	}
	cancelled, cancel = context.WithCancel(ctx)
	go cancel()
	if err := db.EnsureIndex(cancelled, "Orders", ix); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled in the middle: %v", err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := db.EnsureIndex(ctx, "orders", jay.Index{Fields: []string{"a", "-b"}}); err != nil {
				t.Errorf("again: %v", err)
			}
		})
	}
	wg.Wait()
	infos, err := db.Indexes(ctx, "ORDERS")
	if err != nil || len(infos) != 1 || infos[0].State != jay.IndexReady || infos[0].Name != "a,-b" {
		t.Errorf("indexes: %+v, %v", infos, err)
	}
	for _, other := range []jay.Index{{Name: "A,-B", Fields: []string{"c"}}, {Name: "a,-b", Fields: []string{"a", "-b"}, Unique: true}, {Name: "a,-b", Fields: []string{"a", "-b"}, Where: "a = 1"}, {Name: "a,-b", Fields: []string{"a", "b"}}} {
		if err := db.EnsureIndex(ctx, "Orders", other); !errors.Is(err, jay.ErrIndexExists) {
			t.Errorf("%+v: %v, want ErrIndexExists", other, err)
		}
	}
	if err := checks.Indexes(db); err != nil {
		t.Error(err)
	}
	if err := db.DropIndex(ctx, "Orders", "none"); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("drop of an unknown index: %v", err)
	}
}

// Ensure that of 16 goroutines that insert the same values a unique index lets
// exactly one through, while it is ready and while it is built.
func TestIndex_Unique_Concurrent(t *testing.T) {
	defer checks.SetBuildChunks(3, 100)()
	for round := range 10 {
		db := memory(t, &jay.Options{Durability: jay.Relaxed})
		for i := range 50 {
			put(t, db, fmt.Sprint("users/old", i), fmt.Sprintf(`{"mail":"old%d","tags":["t%d"]}`, i, i), jay.InCollection("Users"))
		}
		ix := jay.Index{Name: "u", Fields: []string{"mail", "-tags"}, Unique: true}
		var wg sync.WaitGroup
		if round%2 == 0 {
			must(t, db.EnsureIndex(ctx, "Users", ix))
		} else {
			wg.Go(func() {
				if err := db.EnsureIndex(ctx, "Users", ix); err != nil && !errors.Is(err, jay.ErrUnique) {
					t.Errorf("build: %v", err)
				}
			})
		}
		var mu sync.Mutex
		through := make(map[int]int)
		for n := range 16 {
			wg.Go(func() {
				for i := range 20 {
					_, err := db.Put(ctx, fmt.Sprintf("users/%d-%d", n, i), []byte(fmt.Sprintf(`{"mail":"m%d","tags":["x%d","y","n%d"]}`, i, i, n)), jay.InCollection("Users"))
					if err == nil {
						mu.Lock()
						through[i]++
						mu.Unlock()
					} else if !errors.Is(err, jay.ErrUnique) {
						t.Errorf("put: %v", err)
					}
				}
			})
		}
		wg.Wait()
		infos, err := db.Indexes(ctx, "Users")
		must(t, err)
		if len(infos) == 1 {
			for i := range 20 {
				if round%2 == 0 && through[i] != 1 {
					t.Errorf("%d documents with the values %d", through[i], i)
				}
				if n, err := db.Query("Users").Where(jay.Eq("mail", fmt.Sprint("m", i))).Count(ctx); err != nil || n != 1 {
					t.Errorf("%d documents with the values %d, %v", n, i, err)
				}
			}
		}
		if err := checks.Indexes(db); err != nil {
			t.Error(err)
		}
	}
}

// Ensure that a build that meets values that are not unique, or a document with
// too many entries, says so and leaves nothing.
func TestIndex_Build_Refused(t *testing.T) {
	defer checks.SetBuildChunks(7, 5)()
	db := memory(t, nil)
	for i := range 100 {
		put(t, db, fmt.Sprint("users/", i), fmt.Sprintf(`{"n":%d,"same":%d}`, i, i%99), jay.InCollection("Users"))
	}
	err := db.EnsureIndex(ctx, "Users", jay.Index{Name: "bad", Fields: []string{"-same"}, Unique: true})
	var unique *jay.UniqueError
	if !errors.As(err, &unique) || unique.Value != "[0]" || unique.ID == unique.Other || !strings.HasPrefix(unique.ID, "users/") || !strings.HasPrefix(unique.Other, "users/") {
		t.Errorf("got %v", err)
	}
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "good", Fields: []string{"n"}, Unique: true}))
	many := `{"big":[` + strings.TrimSuffix(strings.Repeat(`"x",`, 10_001), ",") + `]}`
	put(t, db, "users/big", many, jay.InCollection("Users"))
	if err := db.EnsureIndex(ctx, "Users", jay.Index{Name: "bad", Fields: []string{"big"}}); !errors.Is(err, jay.ErrInvalidDocument) {
		t.Errorf("a document with too many entries: %v", err)
	}
	must(t, db.Delete(ctx, "users/big"))
	must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: "bad", Fields: []string{"big"}}))
	if _, err := db.Put(ctx, "users/big", []byte(many), jay.InCollection("Users")); !errors.Is(err, jay.ErrInvalidDocument) {
		t.Errorf("a document with too many entries: %v", err)
	}
	infos, err := db.Indexes(ctx, "")
	if err != nil || len(infos) != 2 {
		t.Errorf("indexes: %v, %v", infos, err)
	}
	if err := checks.Indexes(db); err != nil {
		t.Error(err)
	}
}

// Ensure that a document that an index under construction cannot hold is
// changed and deleted as usual.
func TestIndex_Build_TooManyEntries(t *testing.T) {
	defer checks.SetBuildChunks(1, 100)()
	many := `{"big":[` + strings.TrimSuffix(strings.Repeat(`"x",`, 10_001), ",") + `]}`
	for round := range 4 {
		db := memory(t, nil)
		for i := range 10 {
			put(t, db, fmt.Sprint("users/", i), `{"big":1}`, jay.InCollection("Users"))
		}
		put(t, db, "users/zz", many, jay.InCollection("Users"))
		building, release, restore := checks.HoldBuild()
		done := make(chan error, 1)
		go func() { done <- db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"big"}}) }()
		jaytest.Await(t, "the build", building)
		if round < 2 { // the document may be changed while the build goes on
			release()
		}
		if round%2 == 0 {
			put(t, db, "users/zz", `{"big":2}`, jay.InCollection("Users"))
		} else {
			must(t, db.Delete(ctx, "users/zz"))
		}
		release()
		if err := <-done; err != nil && !errors.Is(err, jay.ErrInvalidDocument) {
			t.Error(err)
		}
		restore()
		if err := checks.Indexes(db); err != nil {
			t.Error(err)
		}
	}
}

// Ensure that a unique index under construction keeps the entry of a document
// that took the values of one that is gone before the build came to it.
func TestIndex_Build_UniqueTaken(t *testing.T) {
	defer checks.SetBuildChunks(1, 100)()
	for round := range 2 {
		db := memory(t, nil)
		var b jay.Batch
		for i := range 30 {
			b.Put(fmt.Sprint("users/", i), fmt.Appendf(nil, `{"m":%d}`, i), jay.InCollection("Users"))
		}
		b.Put("users/zz", []byte(`{"m":"x"}`), jay.InCollection("Users"))
		_, err := db.Apply(ctx, &b)
		must(t, err)
		building, release, restore := checks.HoldBuild()
		done := make(chan error, 1)
		go func() {
			done <- db.EnsureIndex(ctx, "Users", jay.Index{Fields: []string{"m"}, Unique: true})
		}()
		jaytest.Await(t, "the build", building)
		_, err = db.Put(ctx, "users/new", []byte(`{"m":"x"}`), jay.InCollection("Users"))
		must(t, err)
		if round%2 == 0 {
			must(t, db.Delete(ctx, "users/zz"))
		} else {
			put(t, db, "users/zz", `{"m":"y"}`, jay.InCollection("Users"))
		}
		release()
		must(t, <-done)
		restore()
		if err := checks.Indexes(db); err != nil {
			t.Fatal(err)
		}
		if n, err := db.Query("Users").Where(jay.Eq("m", "x")).NoScan().Count(ctx); n != 1 || err != nil {
			t.Fatalf("%d documents, %v", n, err)
		}
		if _, err := db.Put(ctx, "users/third", []byte(`{"m":"x"}`), jay.InCollection("Users")); !errors.Is(err, jay.ErrUnique) {
			t.Fatalf("a second document with the values: %v", err)
		}
	}
}
