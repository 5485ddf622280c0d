package jay_test

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

var (
	ctx = context.Background()

	newClock     = jaytest.NewClock
	memory       = jaytest.Memory
	open         = jaytest.Open
	onDisk       = jaytest.OnDisk
	closeDB      = jaytest.Close
	put          = jaytest.Put
	store        = jaytest.Store
	body         = jaytest.Body
	must         = jaytest.Must
	patchIn      = jaytest.PatchIn
	within       = jaytest.Within
	concurrently = jaytest.Concurrently
	afterPrefix  = jaytest.NumberAfter
	attach       = jaytest.Attach
	attached     = jaytest.Attached
	randomBytes  = jaytest.RandomBytes
	dump         = jaytest.Dump
	documentsOf  = jaytest.Documents
	changed      = jaytest.Changes
	backUp       = jaytest.BackUp
	bulk         = jaytest.BulkInsert
)

// TestMain collects garbage less often: the tests allocate much and keep little,
// so that the collector took a third of their time.
//
// Four parallel tests for each processor run at once: many wait for what must not happen.
func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(600)
	}
	flag.Parse()
	set := false
	flag.Visit(func(f *flag.Flag) { set = set || f.Name == "test.parallel" })
	if !set {
		_ = flag.Set("test.parallel", strconv.Itoa(4*runtime.GOMAXPROCS(0)))
	}
	os.Exit(m.Run())
}

func equal[T comparable](t testing.TB, got, want T) {
	t.Helper()
	jaytest.Equal(t, got, want)
}

func collectionOf[T any](t testing.TB, db *jay.DB, opts ...jay.CollectionOption) *jay.Collection[T] {
	t.Helper()
	return jaytest.CollectionOf[T](t, db, opts...)
}

// Ensure that a database is there again after a reopen, and that what is
// fixed at creation stays.
func TestOpen_Reopen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "new", "acorns.jay")
	db := open(t, dir, &jay.Options{Separator: "-", NodeTag: "NUT"})
	equal(t, db.Dir(), dir)
	equal(t, put(t, db, "users-", `{}`).ID, "users-0000000000000000001-NUT")
	closeDB(t, db)

	db = open(t, dir, nil)
	equal(t, put(t, db, "users-", `{}`).ID, "users-0000000000000000002-NUT")
	equal(t, put(t, db, "users/", `{"kept":"literally"}`).ID, "users/")
	equal(t, store(t, db, "Users"), "users-1-NUT")
	closeDB(t, db)

	for _, opts := range []jay.Options{{Separator: "/"}, {NodeTag: "A"}, {CaseSensitive: true}} {
		if db, err := jay.Open(dir, &opts); !errors.Is(err, jay.ErrFixed) {
			t.Errorf("open with %+v: %v, want ErrFixed", opts, err)
			if err == nil {
				closeDB(t, db)
			}
		}
	}
	closeDB(t, open(t, dir, &jay.Options{Separator: "-", NodeTag: "NUT"}))
}

// Ensure that impossible options are refused by name, and create nothing.
func TestOpen_WrongOptions(t *testing.T) {
	for name, opts := range map[string]jay.Options{
		"separator pipe":  {Separator: "|"},
		"separator long":  {Separator: "//"},
		"node tag":        {NodeTag: "a"},
		"node tag RAFT":   {NodeTag: "RAFT"},
		"id bytes":        {MaxIDBytes: 2026},
		"few id bytes":    {MaxIDBytes: 10},
		"document bytes":  {MaxDocumentBytes: 1 << 40},
		"negative bytes":  {MaxDocumentBytes: -1},
		"depth":           {MaxDepth: 10_001},
		"durability":      {Durability: 7},
		"negative cache":  {CacheBytes: -1},
		"huge mem tables": {MemTableBytes: 1 << 40},
	} {
		if db, err := jay.OpenMemory(&opts); !errors.Is(err, jay.ErrOption) {
			t.Errorf("%s: got %v, want ErrOption", name, err)
			if err == nil {
				closeDB(t, db)
			}
		}
	}
}

// Ensure that a second Open of a directory fails at once and names it.
func TestOpen_Locked(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir, nil)
	if _, err := jay.Open(dir, nil); !errors.Is(err, jay.ErrLocked) || !strings.Contains(err.Error(), dir) {
		t.Errorf("second open: %v, want ErrLocked with the directory", err)
	}
	closeDB(t, db)
	closeDB(t, open(t, dir, &jay.Options{MustExist: true}))
}

// Ensure that other people's directories and missing ones are left alone.
func TestOpen_NotDatabase(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "notes.txt"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := jay.Open(dir, nil); !errors.Is(err, jay.ErrNotDatabase) {
		t.Errorf("got %v, want ErrNotDatabase", err)
	}
	missing := filepath.Join(dir, "missing")
	if _, err := jay.Open(missing, &jay.Options{MustExist: true}); !errors.Is(err, jay.ErrNoDatabase) {
		t.Errorf("got %v, want ErrNoDatabase", err)
	}
	if _, err := os.Stat(missing); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("MustExist created the directory: %v", err)
	}
}

// Ensure that Close ends everything once: later calls get ErrClosed, a loop
// that is still running too, and a second Close does nothing.
func TestDB_Close(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	users, err := jay.CollectionOf[User](db)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		store(t, db, "Users")
	}
	var inLoop error
	seen := 0
	for _, err := range db.Documents(ctx, jay.Scan{}) {
		if err != nil {
			inLoop = err
			break
		}
		if seen++; seen == 1 {
			closeDB(t, db)
		}
	}
	if seen != 1 || !errors.Is(inLoop, jay.ErrClosed) {
		t.Errorf("a loop over a closed database saw %d documents and %v, want 1 and ErrClosed", seen, inLoop)
	}
	closeDB(t, db)

	calls := map[string]func() error{
		"Put":          func() error { _, err := db.Put(ctx, "a", []byte(`{}`)); return err },
		"Store":        func() error { _, err := db.Store(ctx, "Users", []byte(`{}`)); return err },
		"Get":          func() error { _, err := db.Get(ctx, "a"); return err },
		"GetMany":      func() error { _, err := db.GetMany(ctx, "a"); return err },
		"Exists":       func() error { _, err := db.Exists(ctx, "a"); return err },
		"Delete":       func() error { return db.Delete(ctx, "a") },
		"NextRange":    func() error { _, err := db.NextRange(ctx, jay.RangeRequest{Tag: "users"}); return err },
		"ReturnRange":  func() error { _, err := db.ReturnRange(ctx, "users", 1, 32); return err },
		"Counters":     func() error { _, err := db.Counters(ctx); return err },
		"Raise":        func() error { return db.RaiseCounters(ctx, jay.Counters{}) },
		"Stats":        func() error { _, err := db.Stats(ctx); return err },
		"Insert typed": func() error { _, err := users.Insert(ctx, &User{}); return err },
		"Documents": func() error {
			for _, err := range db.Documents(ctx, jay.Scan{}) {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		if err := call(); !errors.Is(err, jay.ErrClosed) {
			t.Errorf("%s after Close: %v, want ErrClosed", name, err)
		}
	}
}

// Ensure that a context that is done stops a call before it does anything.
func TestDB_Cancelled(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "a", `{}`)
	before := dump(t, db)
	done, cancel := context.WithCancel(ctx)
	cancel()
	_, putErr := db.Put(done, "users|", []byte(`{}`))
	_, storeErr := db.Store(done, "Users", []byte(`{}`))
	_, getErr := db.Get(done, "a")
	var loopErr error
	for _, err := range db.Documents(done, jay.Scan{}) {
		loopErr = err
	}
	for _, err := range []error{putErr, storeErr, getErr, loopErr} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v, want Canceled", err)
		}
	}
	equal(t, dump(t, db), before)
}

// Ensure that many goroutines can write, read and walk at once, and that
// nothing is lost or made twice.
func TestDB_Concurrent(t *testing.T) {
	db := memory(t, nil)
	const goroutines, rounds = 16, 30
	var mu sync.Mutex
	seen := make(map[string]bool)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			requests := []string{"users|", "users/", ""}
			for i := range rounds {
				var m jay.Metadata
				var err error
				if i%4 == 3 {
					m, err = db.Store(ctx, "Users", []byte(`{}`))
				} else {
					m, err = db.Put(ctx, requests[i%4], []byte(`{}`), jay.InCollection("Users"))
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				if seen[m.ID] {
					t.Errorf("%s was made twice", m.ID)
				}
				seen[m.ID] = true
				mu.Unlock()
				if _, err := db.Get(ctx, m.ID); err != nil {
					t.Errorf("%s cannot be read: %v", m.ID, err)
				}
				if g == 0 && i%10 == 0 {
					for _, err := range db.Documents(ctx, jay.Scan{Collection: "Users", Limit: 20}) {
						if err != nil {
							t.Error(err)
						}
					}
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; !seen[doc.ID()] {
			t.Errorf("%s was never acknowledged", doc.ID())
		}
	}
	equal(t, n, goroutines*rounds)
	counters, err := db.Counters(ctx)
	if err != nil {
		t.Fatal(err)
	}
	inserts := int64(0)
	for id := range seen {
		if rest, found := strings.CutPrefix(id, "users/"); found && !strings.Contains(rest, "-") {
			inserts++
		}
	}
	equal(t, counters.Identities["users|"], inserts)
}
