package crash_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/child"
	"github.com/jaydb/jay/internal/jaytest"
)

// seenVariable is set to the directory of the database in the process that
// TestKillReads kills.
const seenVariable = "JAY_KILL_READS_DIR"

// TestKillReads_Process is that process.
func TestKillReads_Process(t *testing.T) {
	dir := os.Getenv(seenVariable)
	if dir == "" {
		t.Skip("only in a process of TestKillReads")
	}
	t.Fatal(readUntilKilled(dir, os.Stdout))
}

const (
	seenWriters = 64
	seenBytes   = 20_000 // of a document
)

// seenReaders are the readers of the process that is killed. Each calls saw
// with documents until it fails. next is the number of its identity that the
// database has not used yet.
var seenReaders = []struct {
	name     string
	identity string // "" for the serial number of the documents
	read     func(db *jay.DB, next int64, saw func(*jay.Document)) error
}{
	{"Get", "inv", func(db *jay.DB, next int64, saw func(*jay.Document)) error {
		return follow(next, "inv", saw, func(id string) (*jay.Document, error) { return db.Get(ctx, id) })
	}},
	{"Get beside a bulk writer", "blk", func(db *jay.DB, next int64, saw func(*jay.Document)) error {
		return follow(next, "blk", saw, func(id string) (*jay.Document, error) { return db.Get(ctx, id) })
	}},
	{"View", "inv", func(db *jay.DB, next int64, saw func(*jay.Document)) error {
		return follow(next, "inv", saw, func(id string) (*jay.Document, error) {
			return nil, db.View(ctx, func(tx *jay.Tx) error {
				doc, err := tx.Get(ctx, id)
				if err == nil {
					saw(doc) // inside of the View, not behind it
				}
				return err
			})
		})
	}},
	{"an Update that only reads", "inv", func(db *jay.DB, next int64, saw func(*jay.Document)) error {
		return follow(next, "inv", saw, func(id string) (doc *jay.Document, err error) {
			err = db.Update(ctx, func(tx *jay.Tx) error {
				doc, err = tx.Get(ctx, id)
				return err
			})
			return doc, err
		})
	}},
	{"query", "", func(db *jay.DB, after int64, saw func(*jay.Document)) error {
		for {
			// The newest first: they are those that may not be on disk.
			docs, err := db.Query("Seen").Where(jay.Gt("s", after)).OrderBy("-s").Limit(4).All(ctx)
			if err != nil {
				return err
			}
			for i := len(docs) - 1; i >= 0; i-- {
				saw(docs[i])
				if after, _, err = jay.Value[int64](docs[i], "s"); err != nil {
					return err
				}
			}
			runtime.Gosched()
		}
	}},
}

// follow looks for the documents of an identity as they come.
func follow(next int64, identity string, saw func(*jay.Document), get func(id string) (*jay.Document, error)) error {
	for {
		doc, err := get(fmt.Sprintf("%s/%d", identity, next))
		switch {
		case err == nil:
			if doc != nil {
				saw(doc)
			}
			next++
		case !errors.Is(err, jay.ErrNotFound):
			return err
		default:
			runtime.Gosched()
		}
	}
}

// readUntilKilled writes with many goroutines and prints what others read: the
// reader, the ID and the change vector of each document, in a line.
func readUntilKilled(dir string, out io.Writer) error {
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	if err := db.EnsureIndex(ctx, "Seen", jay.Index{Fields: []string{"s"}}); err != nil {
		return err
	}
	last, err := db.Identities(ctx)
	if err != nil {
		return err
	}
	failed := make(chan error, seenWriters+len(seenReaders)+1)
	padding := strings.Repeat("x", seenBytes)
	var serial atomic.Int64
	first := time.Now().UnixNano() // above those of the processes before this one
	serial.Store(first)
	for range seenWriters {
		go func() {
			for {
				text := fmt.Appendf(nil, `{"s":%d,"padding":%q}`, serial.Add(1), padding)
				if _, err := db.Put(ctx, "inv|", text, jay.InCollection("Seen")); err != nil {
					failed <- fmt.Errorf("writer: %w", err)
					return
				}
			}
		}()
	}
	go func() { failed <- writeInBulk(db, &serial, padding) }()

	var mu sync.Mutex
	for _, r := range seenReaders {
		next := first
		if r.identity != "" {
			next = last[r.identity] + 1
		}
		go func() {
			err := r.read(db, next, func(doc *jay.Document) {
				mu.Lock()
				defer mu.Unlock()
				fmt.Fprintf(out, "%s\t%s\t%s\n", r.name, doc.ID(), doc.ChangeVector())
			})
			failed <- fmt.Errorf("%s: %w", r.name, err)
		}()
	}
	return <-failed
}

// writeInBulk never flushes.
func writeInBulk(db *jay.DB, serial *atomic.Int64, padding string) error {
	w, err := db.BulkInsert(&jay.BulkOptions{BatchDocuments: 10})
	if err != nil {
		return err
	}
	for {
		text := fmt.Appendf(nil, `{"s":%d,"padding":%q}`, serial.Add(1), padding)
		if _, err := w.Put(context.Background(), "blk|", text, jay.InCollection("Seen")); err != nil {
			return fmt.Errorf("bulk writer: %w", err)
		}
		time.Sleep(time.Millisecond) // to leave the disk to the others, too
	}
}

// Ensure that kill -9 takes back nothing that a reader has seen: 64 writers and
// a bulk writer make documents under identities, readers print what they see,
// and after each kill every printed document is there in the printed version.
// No ID is ever seen under two versions. JAY_KILL_READS is the number of kills.
func TestKillReads(t *testing.T) {
	kills := 6
	if testing.Short() {
		kills = 3
	}
	if text := os.Getenv("JAY_KILL_READS"); text != "" {
		var err error
		if kills, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	const perDirectory = 10 // kills, for room on the disk
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	seen, gone, twice := make(map[string]int), make(map[string]int), make(map[string]int)
	var versions map[string]string // of each ID that a reader saw in this directory
	var dir string
	everyReader := func() bool { return len(seen) == len(seenReaders) }
	more := jaytest.Patience()
	for kill := 0; kill < kills || more(kills < 6 || everyReader()); kill++ {
		if kill%perDirectory == 0 {
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			dir, versions = filepath.Join(t.TempDir(), "db"), make(map[string]string)
		}
		now := make(map[string]string) // seen before this kill: the reader
		for _, line := range seenUntilKilled(t, dir, 1+random.IntN(3000)) {
			reader, rest, _ := strings.Cut(line, "\t")
			id, version, found := strings.Cut(rest, "\t")
			if !found {
				t.Fatalf("unreadable line %q", line)
			}
			seen[reader]++
			if before, known := versions[id]; known && before != version {
				twice[reader]++
				t.Errorf("kill %d: %s was seen as %s, and by %s as %s", kill, id, before, reader, version)
			}
			versions[id], now[id] = version, reader
		}
		db := open(t, dir, &jay.Options{MustExist: true})
		for id, reader := range now {
			doc, err := db.Get(ctx, id)
			if err != nil || doc.ChangeVector() != versions[id] {
				gone[reader]++
				if gone[reader] <= 3 {
					t.Errorf("kill %d: %s, seen by %s, is gone: %v", kill, id, reader, err)
				}
			}
		}
		closeDB(t, db)
	}
	for _, r := range seenReaders {
		t.Logf("%-26s seen %6d, gone %d, seen under two versions %d", r.name, seen[r.name], gone[r.name], twice[r.name])
		if seen[r.name] == 0 && kills >= 6 {
			t.Errorf("%s saw nothing", r.name)
		}
	}
}

// seenUntilKilled starts the process, kills it when it has printed this many
// lines, and returns all its complete lines.
func seenUntilKilled(t *testing.T, dir string, after int) []string {
	t.Helper()
	var got []string
	child.Start(t, "TestKillReads_Process", seenVariable+"="+dir).KillAt(func(line string) bool {
		got = append(got, line)
		return len(got) == after
	})
	return got
}
