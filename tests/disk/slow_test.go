package disk_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/storage/storagetest"
)

// closeLimit is how long Close may take on a disk that is stuck, and a write behind
// the end of its context, on the slowest machine: less than the disk is stuck.
const closeLimit = 25 * time.Second

// slowDisk is a disk of these tests: what it is slow at, and when it refuses.
type slowDisk struct {
	name       string
	files      storagetest.Files
	operations storagetest.Operations
	patience   time.Duration // until it refuses; 0 for never
}

func slowDisks() (all []slowDisk) {
	const changes = storagetest.Creations | storagetest.Writes | storagetest.Syncs
	for _, what := range []slowDisk{
		{name: "tables", files: storagetest.Tables, operations: changes},
		{name: "syncs of logs", files: storagetest.Logs, operations: storagetest.Syncs},
		{name: "writes of logs", files: storagetest.Logs, operations: storagetest.Writes},
		{name: "new logs", files: storagetest.Logs, operations: storagetest.Creations},
		{name: "the manifest", files: storagetest.Manifests, operations: changes},
		{name: "directories", files: storagetest.Directories, operations: storagetest.Syncs},
		{name: "all", files: storagetest.AllFiles, operations: changes},
	} {
		for _, patience := range []time.Duration{300 * time.Millisecond, 30 * time.Second, 0} {
			if patience > time.Second && testing.Short() {
				continue
			}
			disk := what
			disk.patience = patience
			disk.name += ", refused after " + patience.String()
			if patience == 0 {
				disk.name = what.name + ", for ever"
			}
			all = append(all, disk)
		}
	}
	return all
}

const (
	slowWriters = 32
	slowWrites  = 4 // of each writer whose contexts end, after the disk is slow
)

// outcomes are what became of the writes of a round, by ID.
type outcomes struct {
	mu      sync.Mutex
	stored  map[string]string // acknowledged: the change vectors. Guarded by mu.
	refused map[string]error  // with no change. Guarded by mu.
	unknown map[string]error  // Guarded by mu.
	etag    uint64            // the highest that was returned. Guarded by mu.
}

func newOutcomes() *outcomes {
	return &outcomes{stored: make(map[string]string), refused: make(map[string]error), unknown: make(map[string]error)}
}

func (o *outcomes) note(id string, m jay.Metadata, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case err == nil:
		o.stored[id] = m.ChangeVector
		o.etag = max(o.etag, m.Etag)
	case errors.Is(err, jay.ErrUnknownOutcome):
		o.unknown[id] = err
	default:
		o.refused[id] = err
	}
}

// check compares a reopened database with what was acknowledged to its writers.
func (o *outcomes) check(t *testing.T, db *jay.DB) {
	t.Helper()
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, version := range o.stored {
		if doc, err := db.Get(ctx, id); err != nil || doc.ChangeVector() != version {
			t.Errorf("%s was acknowledged and is not there: %v", id, err)
		}
	}
	for id, refusal := range o.refused {
		if found, err := db.Exists(ctx, id); err != nil || found {
			t.Errorf("%s was refused with %v and is there (%v)", id, refusal, err)
		}
	}
	for id, unknown := range o.unknown {
		if doc, err := db.Get(ctx, id); err == nil {
			o.etag = max(o.etag, doc.Metadata().Etag)
		} else if !errors.Is(err, jay.ErrNotFound) {
			t.Errorf("%s, %v: %v", id, unknown, err)
		}
	}
	if m := put(t, db, "behind", `{}`); m.Etag <= o.etag {
		t.Errorf("etag %d is given behind %d", m.Etag, o.etag)
	}
}

// Ensure that on a disk that takes long to refuse, or never does, a writer is
// answered when its context ends, that Close returns within its limit and
// answers all others, that the directory stays locked as long as anything of
// the engine is stuck and no longer, and that a reopen agrees with what every
// writer got back. JAY_SLOW_ROUNDS is the number of rounds, one disk in each.
func TestSlowDisk_NoCallWaitsForEver(t *testing.T) {
	disks := slowDisks()
	rounds := len(disks)
	if text := os.Getenv("JAY_SLOW_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	defer func(old time.Duration) { knobs.CloseTimeout = old }(knobs.CloseTimeout)
	knobs.CloseTimeout = time.Second
	before := ownGoroutines()
	t.Run("rounds", func(t *testing.T) {
		for round := range rounds {
			disk := disks[round%len(disks)]
			t.Run(fmt.Sprintf("%d: %s", round, disk.name), func(t *testing.T) {
				t.Parallel()
				disk.round(t)
			})
		}
	})
	left := make(map[string]string)
	for deadline := time.Now().Add(jaytest.HangGuard); time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		left = ownGoroutines()
		for id := range before { // of databases that other tests left open
			delete(left, id)
		}
		if len(left) == 0 {
			return
		}
	}
	for _, stack := range left {
		t.Errorf("a goroutine is left:\n%s", stack)
	}
}

// ownGoroutines returns the stacks of the goroutines of databases, by the
// numbers of the goroutines. Those of a Pebble that has failed for good, and
// waits for itself, are left out: nothing can end them. So is a leader in a write
// stall of such a Pebble, which ends when a table is written: its callers were
// answered, as the test sees.
func ownGoroutines() map[string]string {
	text := make([]byte, 16<<20)
	own := make(map[string]string)
	for _, stack := range strings.Split(string(text[:runtime.Stack(text, true)]), "\n\n") {
		if strings.Contains(stack, "jaydb/jay") && !strings.Contains(stack, "jaydb/jay/tests/") && !strings.Contains(stack, "lsm.(*Engine).end(") && !strings.Contains(stack, "pebble/v2.(*DB).maybeInduceWriteStall(") {
			id, _, _ := strings.Cut(stack, " [")
			own[id] = stack
		}
	}
	return own
}

func (s slowDisk) round(t *testing.T) {
	disk := storagetest.NewDisk()
	options := jay.Options{MemTableBytes: 256 << 10, CacheBytes: 1 << 20}
	db := onDisk(t, disk, options)
	seen := newOutcomes()
	padding := strings.Repeat("x", 8<<10)
	write := func(ctx context.Context, id string) error {
		m, err := db.Put(ctx, id, fmt.Appendf(nil, `{"padding":%q}`, padding))
		seen.note(id, m, err)
		return err
	}
	for i := range 4 {
		must(t, write(ctx, fmt.Sprint("before/", i)))
	}

	held := disk.HoldFor(s.patience, s.files, s.operations)
	var over atomic.Bool
	defer func() { // also when the test has failed
		over.Store(true)
		held.Release()
		_ = db.Close()
	}()
	var patient, hasty sync.WaitGroup
	var late atomic.Int64 // nanoseconds by which a writer outlived its context, at worst
	for g := range slowWriters {
		if g%2 == 0 {
			patient.Go(func() {
				for i := 0; write(ctx, fmt.Sprintf("patient/%d/%d", g, i)) == nil && !over.Load(); i++ {
				}
			})
			continue
		}
		hasty.Go(func() {
			for i, left := 0, slowWrites; left > 0 && !over.Load(); i++ {
				limited, cancel := context.WithTimeout(ctx, time.Duration(20+g)*time.Millisecond)
				err := write(limited, fmt.Sprintf("hasty/%d/%d", g, i))
				if end, _ := limited.Deadline(); time.Since(end) > time.Duration(late.Load()) {
					late.Store(int64(time.Since(end)))
				}
				cancel()
				switch {
				case err == nil:
				case !errors.Is(err, jay.ErrUnknownOutcome) && !errors.Is(err, jay.ErrFailed) && !errors.Is(err, context.DeadlineExceeded):
					t.Errorf("a write whose context ends: %v", err)
					return
				default:
					left--
				}
			}
		})
	}
	jaytest.Await(t, "the disk's first slow operation", held.Met())
	jaytest.Await(t, "writers whose contexts end", jaytest.Finished(&hasty))
	if slack := time.Duration(late.Load()); slack > closeLimit {
		t.Errorf("a write outlived its context by %s", slack)
	}

	closed := make(chan error, 1)
	begun := time.Now()
	go func() { closed <- db.Close() }()
	select {
	case err := <-closed:
		if err != nil && !errors.Is(err, jay.ErrFailed) && !errors.Is(err, jay.ErrUnknownOutcome) {
			t.Errorf("Close: %v, want ErrFailed or ErrUnknownOutcome", err)
		}
		if took := time.Since(begun); took > closeLimit+jaytest.HangGuard {
			t.Errorf("Close took %s", took)
		}
		if err == nil && s.patience == 0 {
			t.Error("Close of a stuck disk returned nil")
		}
	case <-time.After(closeLimit + jaytest.HangGuard):
		t.Fatalf("Close did not return within %s, and it promises %s", closeLimit+jaytest.HangGuard, closeLimit)
	}
	jaytest.Await(t, "the other writers, after Close", jaytest.Finished(&patient))

	options.FS = disk
	if s.patience == 0 {
		again, err := jay.Open("db", &options)
		if !errors.Is(err, jay.ErrLocked) {
			t.Errorf("an Open beside the stuck engine: %v, want ErrLocked", err)
		}
		if err == nil {
			_ = again.Close()
		}
	}
	held.Release()
	again := openOnceFree(t, &options)
	seen.check(t, again)
	closeDB(t, again)
}

// openOnceFree opens the directory when an engine that was stuck has left it.
func openOnceFree(t *testing.T, options *jay.Options) *jay.DB {
	t.Helper()
	deadline := time.Now().Add(jaytest.HangGuard)
	for {
		db, err := jay.Open("db", options)
		if err == nil {
			return db
		}
		if !errors.Is(err, jay.ErrLocked) || time.Now().After(deadline) {
			t.Fatalf("open behind a disk that works again: %v", err)
		}
		time.Sleep(time.Millisecond) // between two tries
	}
}

// waitingWrites are writes that wait for the disk, each of the document or
// counter that it is given.
var waitingWrites = []struct {
	name  string
	write func(ctx context.Context, db *jay.DB, id string) error
}{
	{"Put", func(ctx context.Context, db *jay.DB, id string) error {
		_, err := db.Put(ctx, id, []byte(`{}`))
		return err
	}},
	{"Insert", func(ctx context.Context, db *jay.DB, id string) error {
		_, err := db.Insert(ctx, id, []byte(`{}`))
		return err
	}},
	{"a large Apply", func(ctx context.Context, db *jay.DB, id string) error {
		var b jay.Batch
		b.Put(id, []byte(`{}`))
		b.Put("padding", fmt.Appendf(nil, `{"p":%q}`, strings.Repeat("x", 300_000)))
		_, err := db.Apply(ctx, &b)
		return err
	}},
	{"Update", func(ctx context.Context, db *jay.DB, id string) error {
		return db.Update(ctx, func(tx *jay.Tx) error {
			_, err := tx.Put(ctx, id, []byte(`{}`))
			return err
		})
	}},
	{"Patch", func(ctx context.Context, db *jay.DB, id string) error {
		_, err := db.Patch(ctx, id, jay.OrInsert(map[string]int{"n": 1}), jay.Increment("n", 1))
		return err
	}},
	{"SaveChanges", func(ctx context.Context, db *jay.DB, id string) error {
		s := db.OpenSession(jay.WithCollections(things(db)))
		if err := s.Store(ctx, &thing{ID: id}); err != nil {
			return err
		}
		return s.SaveChanges(ctx)
	}},
}

// Ensure that a write whose context ends while it waits for a sync is answered
// with ErrUnknownOutcome and the context's error, one that was not applied with
// the latter and no change; that the database is usable once the disk goes on;
// and that the numbers of the first are not given again.
func TestSlowDisk_ContextEndsDuringTheSync(t *testing.T) {
	for _, w := range waitingWrites {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			disk := storagetest.NewDisk()
			db := onDisk(t, disk, jay.Options{})
			first := put(t, db, "first", `{}`)
			jaytest.Equal(t, put(t, db, "inv|", `{}`).ID, "inv/1")
			held := disk.Hold(storagetest.Logs, storagetest.Syncs)
			defer held.Release()

			limited, cancel := context.WithCancel(ctx)
			answer := make(chan error, 1)
			go func() { answer <- w.write(limited, db, "things/waits") }()
			<-held.Met()
			cancel()
			err := within(t, answer, "a write whose context ended")
			if !errors.Is(err, jay.ErrUnknownOutcome) || !errors.Is(err, context.Canceled) {
				t.Errorf("during the sync: %v, want ErrUnknownOutcome and context.Canceled", err)
			}

			seen := newOutcomes()
			limited, cancel = context.WithCancel(ctx)
			queued := make(chan error, 1)
			go func() { queued <- w.write(limited, db, "things/queued") }()
			select { // it may be in the queue by then, or behind it
			case err := <-queued:
				queued <- err
			case <-time.After(readGrace):
			}
			cancel()
			err = within(t, queued, "a write whose context ended in the queue")
			if !errors.Is(err, context.Canceled) {
				t.Errorf("in the queue: %v, want context.Canceled", err)
			}
			seen.note("things/queued", jay.Metadata{}, err)

			held.Release()
			if err := w.write(ctx, db, "things/later"); err != nil {
				t.Fatalf("once the disk goes on: %v", err)
			}
			if m := put(t, db, "last", `{}`); m.Etag <= first.Etag+3 {
				t.Errorf("the etag of a write of unknown outcome is given again: %d", m.Etag)
			}
			for _, id := range []string{"things/waits", "things/queued", "things/later"} {
				doc, err := db.Get(ctx, id)
				if err == nil {
					seen.note(id, doc.Metadata(), nil)
				}
			}
			closeDB(t, db)
			again := onDisk(t, disk, jay.Options{})
			seen.check(t, again)
			closeDB(t, again)
		})
	}
}

// Ensure that an identity's number that belongs to a write of unknown outcome
// is not given to another one.
func TestSlowDisk_NumbersStayUsed(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	jaytest.Equal(t, put(t, db, "inv|", `{}`).ID, "inv/1")
	held := disk.Hold(storagetest.Logs, storagetest.Syncs)
	defer held.Release()
	limited, cancel := context.WithCancel(ctx)
	answer := make(chan error, 1)
	go func() {
		_, err := db.Put(limited, "inv|", []byte(`{"waits":true}`))
		answer <- err
	}()
	<-held.Met()
	cancel()
	if err := within(t, answer, "the writer"); !errors.Is(err, jay.ErrUnknownOutcome) {
		t.Errorf("got %v, want ErrUnknownOutcome", err)
	}
	held.Release()
	jaytest.Equal(t, put(t, db, "inv|", `{}`).ID, "inv/3")
	jaytest.Equal(t, body(t, db, "inv/2"), `{"waits":true}`) // the disk has taken it after all
	closeDB(t, db)
}

// Ensure that a read that waits for a sync honours its context.
func TestSlowDisk_ReadsHonourTheirContext(t *testing.T) {
	disk := storagetest.NewDisk()
	db := onDisk(t, disk, jay.Options{})
	seedThings(t, db)
	held, written := hold(t, disk, db, 0)
	for name, read := range map[string]func(ctx context.Context) error{
		"Get": func(ctx context.Context) error { _, err := db.Get(ctx, "things/changed"); return err },
		"Documents": func(ctx context.Context) error {
			for _, err := range db.Documents(ctx, jay.Scan{Prefix: "things/"}) {
				if err != nil {
					return err
				}
			}
			return nil
		},
		"Query": func(ctx context.Context) error {
			_, err := db.Query("Things").Where(jay.Gt("n", 0)).All(ctx)
			return err
		},
		"View": func(ctx context.Context) error {
			return db.View(ctx, func(tx *jay.Tx) error { _, err := tx.Get(ctx, "things/changed"); return err })
		},
		"Update": func(ctx context.Context) error {
			return db.Update(ctx, func(tx *jay.Tx) error { _, err := tx.Get(ctx, "things/changed"); return err })
		},
	} {
		limited, cancel := context.WithTimeout(ctx, readGrace)
		answer := make(chan error, 1)
		go func() { answer <- read(limited) }()
		// nil is an answer from the state before.
		if err := within(t, answer, name); err != nil && !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%s: %v, want the context's error", name, err)
		}
		cancel()
	}
	held.Release()
	must(t, within(t, written, "the writer"))
	closeDB(t, db)
}
