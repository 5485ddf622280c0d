package shared_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
)

// These tests are about two processes that declare, replace and drop indexes of one name at once: docs/decisions/0223 says what comes of it.

// onlyIndex returns the one index of a name that a database lists, which must be ready.
func onlyIndex(t *testing.T, db *jay.DB, name string) jay.IndexInfo {
	t.Helper()
	all, err := db.Indexes(ctx, "Users")
	must(t, err)
	var found []jay.IndexInfo
	for _, ix := range all {
		if strings.EqualFold(ix.Name, name) {
			found = append(found, ix)
		}
	}
	if len(found) != 1 || found[0].State != jay.IndexReady {
		t.Fatalf("indexes named %q: %+v, want one that is ready", name, found)
	}
	return found[0]
}

// Ensure that of two databases that declare an index of one name otherwise at once, alone or beside others, one gets it and the other ErrIndexExists; and
// that both see the one that won.
func TestIndexes_DeclaredOtherwise(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	dbs := []*jay.DB{a, b}
	for i := range 10 {
		put(t, a, fmt.Sprint("users/", i), fmt.Sprintf(`{"x":%d,"y":%d}`, i, -i), jay.InCollection("Users"))
	}
	wins := make(map[int]int)
	for i := range 24 {
		name := fmt.Sprint("n", i)
		fields := []string{"x", "y"}
		failed := atTheSameTime(dbs, func(j int, db *jay.DB) error {
			indexes := []jay.Index{{Name: name, Fields: []string{fields[j]}}}
			if i%2 == 1 { // built together
				indexes = append(indexes, jay.Index{Name: fmt.Sprint(name, "own", j), Fields: []string{"own"}})
			}
			return db.EnsureIndexes(ctx, "Users", indexes)
		})
		for _, db := range dbs {
			checks.WaitIndexTasks(db)
		}
		winner := 0
		if failed[0] != nil {
			winner = 1
		}
		if failed[winner] != nil || !errors.Is(failed[1-winner], jay.ErrIndexExists) {
			t.Fatalf("round %d: %v and %v, want nil and ErrIndexExists", i, failed[0], failed[1])
		}
		wins[winner]++
		for _, db := range dbs {
			want(t, fmt.Sprintf("round %d: the field of the index", i), onlyIndex(t, db, name).Fields[0], fields[winner])
			must(t, db.EnsureIndex(ctx, "Users", jay.Index{Name: name, Fields: []string{fields[winner]}})) // it stays
		}
		for _, db := range dbs { // so that there is room for those of the next round
			for _, name := range []string{name, name + "own0", name + "own1"} {
				if err := db.DropIndex(ctx, "Users", name); err != nil && !errors.Is(err, jay.ErrIndex) {
					t.Fatal(err)
				}
			}
		}
	}
	t.Logf("the first database won %d times, the other one %d times", wins[0], wins[1])
}

// atTheSameTime calls fn for each database at once, and returns the errors.
func atTheSameTime(dbs []*jay.DB, fn func(i int, db *jay.DB) error) []error {
	failed := make([]error, len(dbs))
	var wg sync.WaitGroup
	for i, db := range dbs {
		wg.Go(func() { failed[i] = fn(i, db) })
	}
	wg.Wait()
	return failed
}

// Ensure that of two databases that replace an index at once, or declare one that is not there, with ReplaceIndex, one declaration is in force at the
// end; that the call of that one returns nil, and the other one nil or ErrIndex, if its index was dropped while it was being built.
func TestIndexes_ReplacedByBoth(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	dbs := []*jay.DB{a, b}
	for i := range 10 {
		put(t, a, fmt.Sprint("users/", i), fmt.Sprintf(`{"x":%d,"y":%d}`, i, -i), jay.InCollection("Users"))
	}
	for i := range 24 {
		if i%3 == 0 {
			if err := a.DropIndex(ctx, "Users", "n"); err != nil && !errors.Is(err, jay.ErrIndex) {
				t.Fatal(err)
			}
		}
		fields := []string{fmt.Sprint("x", i), fmt.Sprint("y", i)}
		failed := atTheSameTime(dbs, func(j int, db *jay.DB) error {
			return db.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{fields[j]}}, jay.ReplaceIndex())
		})
		for _, db := range dbs {
			checks.WaitIndexTasks(db)
		}
		for _, db := range dbs {
			in := onlyIndex(t, db, "n").Fields[0]
			for j := range dbs {
				switch err := failed[j]; {
				case in == fields[j] && err != nil:
					t.Errorf("round %d: the index has the field %s, and its declaration returned %v", i, in, err)
				case err != nil && !errors.Is(err, jay.ErrIndex):
					t.Errorf("round %d: %v, want nil or ErrIndex", i, err)
				}
			}
			if in != fields[0] && in != fields[1] {
				t.Fatalf("round %d: the index has the field %s, want one of %v", i, in, fields)
			}
		}
	}
}

// holdTwo holds the first two commits of builds, or of drops. It returns channels that are closed when they are reached, and functions that let them go on.
func holdTwo(t *testing.T, state jay.IndexState) (reached [2]chan struct{}, release [2]func()) {
	t.Helper()
	var goOn [2]chan struct{}
	for i := range goOn {
		reached[i], goOn[i] = make(chan struct{}), make(chan struct{})
		release[i] = sync.OnceFunc(func() { close(goOn[i]) })
	}
	var n atomic.Int64
	restore := checks.OnBuildChunk(func(_ context.Context, now jay.IndexState) {
		if now != state {
			return
		}
		if i := n.Add(1) - 1; i < 2 {
			close(reached[i])
			<-goOn[i]
		}
	})
	t.Cleanup(func() {
		release[0]()
		release[1]()
		restore()
	})
	return reached, release
}

// Ensure that an index which is to replace another one has the name when that one is gone, as documents have refused it: a further declaration does not
// make a second index of the name.
func TestIndexes_ReplacedIsRefused(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	put(t, a, "users/1", `{"x":1,"y":2}`, jay.InCollection("Users"))
	put(t, a, "users/2", `{"x":1,"y":3}`, jay.InCollection("Users"))
	reached, release := holdTwo(t, jay.IndexBuilding)
	refused, replaced := make(chan error, 1), make(chan error, 1)
	go func() {
		refused <- a.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"x"}, Unique: true})
	}()
	<-reached[0]
	go func() {
		replaced <- b.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"y"}}, jay.ReplaceIndex())
	}()
	<-reached[1]
	release[0]()
	if err := <-refused; !errors.Is(err, jay.ErrUnique) {
		t.Errorf("an index that documents refuse: %v, want ErrUnique", err)
	}
	if err := a.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"z"}}); !errors.Is(err, jay.ErrIndexExists) {
		t.Errorf("a third declaration: %v, want ErrIndexExists", err)
	}
	release[1]()
	must(t, <-replaced)
	for _, db := range []*jay.DB{a, b} {
		want(t, "the field of the index", onlyIndex(t, db, "n").Fields[0], "y")
	}
}

// Ensure that a call of EnsureIndex that waits until an index is dropped does not drop the one that another database has declared under that name since.
func TestIndexes_DeclaredAfterDrop(t *testing.T) {
	a, b := openTwo(t, jay.Options{})
	put(t, a, "users/1", `{"x":1,"y":2}`, jay.InCollection("Users"))
	must(t, a.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"old"}}))

	reached, release := holdTwo(t, jay.IndexDropping)
	dropped, ensured := make(chan error, 1), make(chan error, 1)
	go func() { dropped <- b.DropIndex(ctx, "Users", "n") }()
	<-reached[0]
	// It finds the index being dropped, and helps to remove it.
	go func() { ensured <- a.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"x"}}) }()
	<-reached[1]
	release[0]()
	must(t, <-dropped)
	must(t, b.EnsureIndex(ctx, "Users", jay.Index{Name: "n", Fields: []string{"y"}}))
	release[1]()
	if err := <-ensured; !errors.Is(err, jay.ErrIndexExists) {
		t.Errorf("the other declaration: %v, want ErrIndexExists", err)
	}
	for _, db := range []*jay.DB{a, b} {
		want(t, "the field of the index", onlyIndex(t, db, "n").Fields[0], "y")
	}
}

// Ensure that whatever two databases declare, replace and drop under one name at once, while both write, each call ends with nil or a typed error, no index is left
// unfinished, both see the same, and its entries are those of a rebuild; for indexes of each kind.
func TestIndexes_Meetings(t *testing.T) {
	defer checks.SetBuildChunks(3, 4)()
	kinds := map[string][2]jay.Index{
		"ordered":  {{Fields: []string{"n"}}, {Fields: []string{"-s", "n"}}},
		"unique":   {{Fields: []string{"u"}, Unique: true}, {Fields: []string{"n"}}},
		"words":    {{Kind: "text", Fields: []string{"s"}}, {Fields: []string{"s"}}},
		"groups":   {{Kind: "groups", Fields: []string{"s"}, Options: map[string]string{"sums": "n"}}, {Fields: []string{"s"}}},
		"replaced": {{Fields: []string{"n"}}, {Fields: []string{"s"}}},
	}
	for kind, two := range kinds {
		t.Run(kind, func(t *testing.T) {
			seed := rand.Uint64()
			t.Logf("seed %d", seed)
			a, b := openTwo(t, jay.Options{})
			dbs := []*jay.DB{a, b}
			in := jay.InCollection("Users")
			for i := range 20 {
				put(t, a, fmt.Sprint("users/", i), fmt.Sprintf(`{"n":%d,"u":%d,"s":"word%d and"}`, i%4, i, i%3), in)
			}
			stop := make(chan struct{})
			var writers sync.WaitGroup
			for d, db := range dbs {
				writers.Go(func() {
					random := rand.New(rand.NewPCG(seed, uint64(10+d)))
					for {
						select {
						case <-stop:
							return
						case <-time.After(time.Millisecond):
						}
						i := random.IntN(30)
						_, err := db.Put(ctx, fmt.Sprint("users/", i), fmt.Appendf(nil, `{"n":%d,"u":%d,"s":"word%d or"}`, random.IntN(5), i, random.IntN(4)), in)
						if err != nil {
							t.Errorf("put: %v", err)
							return
						}
					}
				})
			}
			var done [3]atomic.Int64 // declared, dropped, refused
			failed := atTheSameTime(dbs, func(d int, db *jay.DB) error {
				random := rand.New(rand.NewPCG(seed, uint64(d)))
				for range 25 {
					var err error
					drops := random.IntN(3) == 0
					if drops {
						err = db.DropIndex(ctx, "Users", "n")
					} else {
						ix := two[random.IntN(2)]
						ix.Name = "n"
						var opts []jay.IndexOption
						if kind == "replaced" || random.IntN(2) == 0 {
							opts = append(opts, jay.ReplaceIndex())
						}
						err = db.EnsureIndex(ctx, "Users", ix, opts...)
					}
					switch {
					case errors.Is(err, jay.ErrIndex), errors.Is(err, jay.ErrIndexExists):
						done[2].Add(1)
					case err != nil:
						return err
					case drops:
						done[1].Add(1)
					default:
						done[0].Add(1)
					}
				}
				return nil
			})
			must(t, errors.Join(failed...))
			close(stop)
			writers.Wait()
			for _, db := range dbs {
				checks.WaitIndexTasks(db)
			}
			for _, db := range dbs {
				all, err := db.Indexes(ctx, "Users")
				must(t, err)
				if len(all) > 1 || len(all) == 1 && all[0].State != jay.IndexReady {
					t.Errorf("indexes at the end: %+v", all)
				}
				must(t, checks.Indexes(db))
			}
			t.Logf("%d were declared, %d dropped, %d refused", done[0].Load(), done[1].Load(), done[2].Load())
			if done[0].Load() == 0 || done[1].Load() == 0 || done[2].Load() == 0 {
				t.Error("they never met: the test does not test it")
			}
			if err := a.DropIndex(ctx, "Users", "n"); err != nil && !errors.Is(err, jay.ErrIndex) {
				t.Fatal(err)
			}
			keys, err := checks.IndexKeys(b)
			must(t, err)
			want(t, "keys of indexes", keys, 0)
		})
	}
}

// Ensure that an attachment that is put while another process builds an index enters the body that it is put to: its transaction ran again, as another write
// had changed the body, and entered the one that the first run had found.
func TestIndexes_AttachedWhileBuilt(t *testing.T) {
	for name, ix := range map[string]jay.Index{
		"ordered": {Name: "n", Fields: []string{"n"}},
		"unique":  {Name: "n", Fields: []string{"n"}, Unique: true},
		"groups":  {Name: "n", Kind: "groups", Fields: []string{"n"}},
		"text":    {Name: "n", Kind: "text", Fields: []string{"w"}},
	} {
		t.Run(name, func(t *testing.T) {
			between := func() {}
			driver := &hooked{Driver: jaytest.SharedDriver(t), between: func() { between() }}
			a := jaytest.Open(t, "db", &jay.Options{Engine: driver})
			b := jaytest.Open(t, "db", &jay.Options{Engine: driver.Driver})
			put(t, a, "docs/1", `{"n":1,"w":"old"}`, jay.InCollection("Docs"))
			building, release, restore := checks.HoldBuild()
			defer restore()
			defer release()
			built := make(chan error, 1)
			go func() { built <- b.EnsureIndex(ctx, "Docs", ix) }()
			<-building
			again := false
			between = func() {
				again = true
				put(t, b, "docs/1", `{"n":2,"w":"new"}`, jay.InCollection("Docs"))
			}
			_, err := a.Attachments("docs/1").Put(byCaller(ctx), "f", strings.NewReader("x"))
			must(t, err)
			want(t, "it ran again", again, true)
			release()
			must(t, <-built)
			want(t, "document", get(t, a, "docs/1"), `{"n":2,"w":"new"}`)
			agree(t, a, b)
			must(t, errors.Join(a.Close(), b.Close()))
		})
	}
}
