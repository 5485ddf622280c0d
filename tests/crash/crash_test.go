package crash_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/storage/storagetest"
)

// writerVariable is set to the directory to write into in the process that
// TestKill kills.
const writerVariable = "JAY_CRASH_WRITER"

// TestKill_Process is that process.
func TestKill_Process(t *testing.T) {
	dir := os.Getenv(writerVariable)
	if dir == "" {
		t.Skip("only in a process of TestKill")
	}
	must(t, crashWriter(dir, os.Stdout))
}

// crashRequests are the ways to ask for an ID that the writer goes through. An
// empty string stands for Store.
var crashRequests = []string{"", "users|", "users/", " ", "orders|"}

// crashWriter inserts with 8 goroutines until it is killed. It prints each
// acknowledged ID on a line of its own, with the number it was made for, and
// begins with "ready".
func crashWriter(dir string, out io.Writer) error {
	durability := jay.Synced
	if os.Getenv("JAY_CRASH_RELAXED") != "" {
		durability = jay.Relaxed
	}
	db, err := jay.Open(dir, &jay.Options{Durability: durability})
	if err != nil {
		return err
	}
	var mu sync.Mutex
	fmt.Fprintln(out, "ready")
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := g; ; i++ {
				// Two writes at a time, so that a torn batch would show.
				var b jay.Batch
				request := crashRequests[i%len(crashRequests)]
				text := fmt.Appendf(nil, `{"n":%d}`, i)
				for range 2 {
					if request == "" {
						b.Store("Users", text)
					} else {
						b.Insert(request, text, jay.InCollection("Users"))
					}
				}
				metas, err := db.Apply(ctx, &b)
				if err != nil {
					fmt.Fprintln(os.Stderr, "apply:", err)
					os.Exit(1)
				}
				mu.Lock()
				fmt.Fprintf(out, "%s\t%s\t%d\n", metas[0].ID, metas[1].ID, i)
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return nil
}

// killRounds is how often the writer is killed.
func killRounds(t *testing.T) int {
	if text := os.Getenv("JAY_CRASH_ROUNDS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if testing.Short() {
		return 5
	}
	return 50
}

// Ensure that kill -9 loses no acknowledged write and makes no ID twice: 8
// goroutines insert under every strategy, the process is killed after some of
// their acknowledgements, again and again on one directory.
func TestKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "db")
	random := rand.New(rand.NewPCG(uint64(os.Getpid()), 1))
	acknowledged := make(map[string]string) // folded by nature: all IDs are made by Jay
	for round := range killRounds(t) {
		for _, line := range runAndKill(t, dir, 1+random.IntN(200)) {
			first, rest, _ := strings.Cut(line, "\t")
			second, n, found := strings.Cut(rest, "\t")
			if !found {
				continue // cut by the kill: not acknowledged
			}
			for _, id := range []string{first, second} {
				if before, twice := acknowledged[id]; twice {
					t.Fatalf("round %d: %s was acknowledged twice, for %s and %s", round, id, before, n)
				}
				acknowledged[id] = n
			}
		}
		if round%10 == 9 || testing.Short() {
			checkAcknowledged(t, dir, acknowledged)
		}
	}
	checkAcknowledged(t, dir, acknowledged)
	t.Logf("%d documents acknowledged", len(acknowledged))
}

// runAndKill starts the writer, kills it after this many acknowledgements, and
// returns all the complete lines it printed.
func runAndKill(t *testing.T, dir string, after int) []string {
	t.Helper()
	var got []string
	child.Start(t, "TestKill_Process", writerVariable+"="+dir).KillAt(func(line string) bool {
		if line != "ready" {
			got = append(got, line)
		}
		return len(got) >= after
	})
	return got
}

// checkAcknowledged opens the directory and looks for every document, for the
// partner of every document that was not acknowledged, and at the numbers that
// are given out next.
func checkAcknowledged(t *testing.T, dir string, acknowledged map[string]string) {
	t.Helper()
	db := open(t, dir, &jay.Options{MustExist: true})
	defer closeDB(t, db)
	there := make(map[string]string)
	etags := make(map[uint64]string)
	for doc, err := range db.Documents(ctx, jay.Scan{Collection: "Users"}) {
		if err != nil {
			t.Fatal(err)
		}
		m := doc.Metadata()
		if other, twice := etags[m.Etag]; twice {
			t.Errorf("%s and %s have etag %d", m.ID, other, m.Etag)
		}
		etags[m.Etag] = m.ID
		there[m.ID] = string(doc.Body())
	}
	for id, n := range acknowledged {
		if got, want := there[id], `{"n":`+n+`}`; got != want {
			t.Errorf("%s was acknowledged with %s and is %q", id, want, got)
		}
	}
	// Each batch wrote two: an odd number would be half a batch.
	if len(there)%2 != 0 {
		t.Errorf("%d documents were written in pairs", len(there))
	}
	for _, request := range []string{"users|", "users/", "orders|"} {
		id := put(t, db, request, `{}`, jay.InCollection("Check")).ID
		if _, used := there[id]; used {
			t.Errorf("%s was handed out again", id)
		}
	}
	if id := store(t, db, "Users"); there[id] != "" {
		t.Errorf("%s was handed out again", id)
	} else if err := db.Delete(ctx, id); err != nil {
		t.Fatal(err)
	}
}

// ledger remembers every ID ever acknowledged, over crashes.
type ledger struct {
	t  *testing.T
	mu sync.Mutex

	seen    map[string]bool // acknowledged; true if the document must be there. Guarded by mu.
	deletes int
	inDoubt bool // the disk has failed: the newest version of a document may be in doubt
}

func newLedger(t *testing.T) *ledger { return &ledger{t: t, seen: make(map[string]bool)} }

// acknowledge notes an ID, which must be new.
func (l *ledger) acknowledge(id string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if _, twice := l.seen[id]; twice {
		l.t.Errorf("%s came twice", id)
	}
	l.seen[id] = true
}

func (l *ledger) clone() map[string]bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.seen)
}

// write makes one ID of each kind, checks that none came before, and now and
// then deletes its document: its number must not come again either.
func (l *ledger) write(db *jay.DB) error {
	for _, request := range crashRequests {
		var m jay.Metadata
		var err error
		if request == "" {
			m, err = db.Store(ctx, "Users", []byte(`{}`))
		} else {
			m, err = db.Put(ctx, request, []byte(`{}`), jay.InCollection("Users"))
		}
		if err != nil {
			return err
		}
		l.acknowledge(m.ID)
		if l.deletes++; l.deletes%7 == 0 {
			l.mu.Lock()
			l.seen[m.ID] = false // from here on it may be there or not
			l.mu.Unlock()
			if err := db.Delete(ctx, m.ID); err != nil {
				return err
			}
		}
	}
	return nil
}

// check looks for every document that must be there.
func (l *ledger) check(db *jay.DB, when string) {
	l.t.Helper()
	for id, must := range l.clone() {
		found, err := db.Exists(ctx, id)
		if errors.Is(err, jay.ErrUnknownOutcome) && l.inDoubt {
			continue // of a newer version
		}
		if err != nil || must && !found {
			l.t.Fatalf("%s: %s was acknowledged and is lost (%v)", when, id, err)
		}
	}
}

// Ensure that a loss of power at any sync of the log loses nothing that was
// acknowledged and repeats no ID, whatever part of the unsynced data survives.
func TestCrash_AtEverySync(t *testing.T) {
	sample.OneGoroutine(t)
	for _, percent := range []int{0, 50, 100} {
		t.Run(fmt.Sprintf("%d%% of the unsynced data kept", percent), func(t *testing.T) {
			disk := storagetest.NewDisk()
			l := newLedger(t)
			today := sample.Of(t, 4)
			for cut := range 60 {
				if !today.Has(cut) {
					continue
				}
				db := onDisk(t, disk, jay.Options{})
				l.check(db, fmt.Sprintf("before cut %d", cut))

				// The power goes while the log is synced for the nth time. What
				// happens after that, happens in a world that is gone.
				var mu sync.Mutex
				var crashed *storagetest.Disk
				var acknowledged map[string]bool
				left := cut % 29
				random := rand.New(rand.NewPCG(uint64(cut), uint64(percent)))
				disk.OnSync(func() {
					mu.Lock()
					defer mu.Unlock()
					if left--; left == -1 {
						acknowledged = l.clone()
						crashed = disk.Crash(percent, random)
					}
				})
				gone := func() bool { mu.Lock(); defer mu.Unlock(); return crashed != nil }
				for !gone() {
					if err := l.write(db); err != nil {
						t.Fatal(err)
					}
				}
				disk.OnSync(func() {})
				closeDB(t, db)
				disk = crashed
				l.seen = acknowledged
			}
		})
	}
}

// Ensure that relaxed durability leaves no hole among numbers when the database is closed properly. That it repeats
// none after a crash, tests/simulation shows.
func TestRelaxed_Close(t *testing.T) {
	dir := t.TempDir()
	for n := range 3 {
		db := open(t, dir, &jay.Options{Durability: jay.Relaxed})
		jaytest.Equal(t, put(t, db, "users|", `{}`).ID, fmt.Sprintf("users/%d", n+1))
		jaytest.Equal(t, put(t, db, "users/", `{}`).ID, fmt.Sprintf("users/%019d-A", 2*n+2))
		closeDB(t, db)
	}
}

// Ensure that a disk that fails makes an error of unknown outcome, that
// nothing later is acknowledged, that reads go on, and that a reopen neither
// misses what was acknowledged nor repeats a number.
func TestCrash_DiskFails(t *testing.T) {
	for after := range 25 {
		disk := storagetest.NewDisk()
		l := newLedger(t)
		db := onDisk(t, disk, jay.Options{})
		if err := l.write(db); err != nil {
			t.Fatal(err)
		}
		disk.FailAfter(after)
		var err error
		for err == nil {
			err = l.write(db)
		}
		if !errors.Is(err, jay.ErrUnknownOutcome) && !errors.Is(err, jay.ErrFailed) {
			t.Errorf("write on a failing disk: %v, want ErrUnknownOutcome", err)
		}
		if _, err := db.Put(ctx, "later", []byte(`{}`)); !errors.Is(err, jay.ErrFailed) {
			t.Errorf("a later write: %v, want ErrFailed", err)
		}
		l.inDoubt = true
		l.check(db, "on the failed disk")
		l.inDoubt = false
		_ = db.Close() // it cannot close cleanly; it must return

		again := onDisk(t, disk.Crash(0, rand.New(rand.NewPCG(1, 2))), jay.Options{})
		l.check(again, "after the reopen")
		if found, err := again.Exists(ctx, "later"); found || err != nil {
			t.Errorf("a refused write is there (%v)", err)
		}
		if err := l.write(again); err != nil {
			t.Error(err)
		}
		closeDB(t, again)
	}
}
