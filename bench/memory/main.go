// Command memory compares the memory that a process takes with Options.MaxMemory.
//
//	go run ./memory [-docs N]
//
// For each bound it runs itself as a child, which uses every feature that holds memory, several at a time: inserts, documents of 4 MiB,
// bulk writers, builds of indexes of each kind, searches, vectors, places, sorts, groups, a change feed, backups. The child's peak (VmHWM on
// Linux, which also counts the pages of the program) must stay within the bound, 48 MiB for the program, and three times the largest document. The child has the limit of Go's heap, and glibc the
// settings, that docs/operations.md recommends.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"github.com/jaydb/jay"
)

const (
	mib      = 1 << 20
	largest  = 4 * mib // a document
	overhead = 48 * mib
)

func main() {
	docs := flag.Int("docs", 100_000, "documents")
	bound := flag.Int64("child", 0, "work under this bound, and print the peak")
	flag.Parse()
	err := error(nil)
	if *bound > 0 {
		err = child(*bound, *docs)
	} else {
		err = compare(*docs)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "memory:", err)
		os.Exit(1)
	}
}

// compare runs a child for each bound.
func compare(docs int) error {
	over := false
	fmt.Println("| MaxMemory | peak | may be |\n|---|---|---|")
	for _, bound := range []int64{64 * mib, 256 * mib, 1024 * mib} {
		self := exec.Command(os.Args[0], "-child", fmt.Sprint(bound), "-docs", fmt.Sprint(docs))
		self.Stderr = os.Stderr
		self.Env = append(os.Environ(), "MALLOC_MMAP_THRESHOLD_=1048576", "MALLOC_ARENA_MAX=2")
		out, err := self.Output()
		if err != nil {
			return fmt.Errorf("child with %d: %w", bound, err)
		}
		peak, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
		if err != nil {
			return err
		}
		most := bound + overhead + 3*largest
		over = over || peak > most
		fmt.Printf("| %d MiB | %d MiB | %d MiB |\n", bound/mib, peak/mib, most/mib)
	}
	if over {
		return errors.New("a peak is above what it may be")
	}
	return nil
}

// child uses every feature, and prints the peak of its memory.
func child(bound int64, docs int) (err error) {
	dir, err := os.MkdirTemp("", "jay-memory")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir+"/db", &jay.Options{MaxMemory: bound, MaxDocumentBytes: largest, Durability: jay.Relaxed})
	if err != nil {
		return err
	}
	s, err := db.Stats(context.Background())
	if err != nil {
		return errors.Join(err, db.Close())
	}
	debug.SetMemoryLimit(s.Memory.HeapBytes + 3*largest) // as docs/operations.md says
	if err := errors.Join(use(context.Background(), db, docs), db.Close()); err != nil {
		return err
	}
	peak, err := peakBytes()
	fmt.Println(peak)
	return err
}

// use does one thing after the other, and some at a time.
func use(ctx context.Context, db *jay.DB, docs int) error {
	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	for i := range docs {
		if _, err := w.Store(ctx, "Notes", note(i)); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	steps := [][]func() error{
		{
			index(ctx, db, jay.Index{Name: "Names", Fields: []string{"Name"}}),
			index(ctx, db, jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}}),
			index(ctx, db, jay.Index{Name: "Alike", Kind: "vectors", Fields: []string{"V"}, Options: map[string]string{"dimensions": "16"}}),
			index(ctx, db, jay.Index{Name: "Spots", Kind: "places", Fields: []string{"spatial.point(Lat, Lng)"}}),
		},
		{func() error { return large(ctx, db) }, func() error { return large(ctx, db) }},
		{
			ask(ctx, db, "from Notes order by Text"), ask(ctx, db, "from Notes order by Text desc"), ask(ctx, db, "from Notes group by Name select Name, count()"),
			ask(ctx, db, "from Notes where search(Text, 'oak') order by score()"), ask(ctx, db, "from Notes where spatial.within(spatial.point(Lat, Lng), spatial.circle(5000, 50, 10)) order by N"),
			ask(ctx, db, "from Notes order by N select distinct Text"),
		},
		{
			func() error { _, err := db.Backup(ctx, io.Discard); return err },
			func() error {
				for _, err := range db.Changes(ctx, "", jay.UntilCaughtUp()) {
					if err != nil {
						return err
					}
				}
				return nil
			},
			func() error {
				for _, err := range db.Documents(ctx, jay.Scan{}) {
					if err != nil {
						return err
					}
				}
				return nil
			},
		},
	}
	for _, step := range steps {
		var all sync.WaitGroup
		errs := make([]error, len(step))
		for i, do := range step {
			all.Go(func() { errs[i] = do() })
		}
		all.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
	}
	return nil
}

// note makes a document of some 400 bytes.
func note(i int) json.RawMessage {
	r := rand.New(rand.NewPCG(1, uint64(i)))
	words := []string{"oak", "elm", "ash", "fir", "yew", "box", "bay", "fig"}
	var text strings.Builder
	for range 30 {
		fmt.Fprintf(&text, "%s%d ", words[r.IntN(len(words))], r.IntN(50))
	}
	v := make([]float32, 16)
	for i := range v {
		v[i] = r.Float32()
	}
	out, err := json.Marshal(map[string]any{"N": r.IntN(1 << 30), "Name": fmt.Sprint("n", r.IntN(5000)), "Text": text.String(), "V": v, "Lat": r.Float64()*170 - 85, "Lng": r.Float64()*360 - 180})
	if err != nil {
		panic(err)
	}
	return out
}

// large writes and reads documents of 4 MiB.
func large(ctx context.Context, db *jay.DB) error {
	body := json.RawMessage(`{"Text":"` + strings.Repeat("acorns and oaks ", (largest-100)/16) + `"}`)
	for range 10 {
		meta, err := db.Insert(ctx, "large/", body)
		if err == nil {
			_, err = db.Get(ctx, meta.ID)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func index(ctx context.Context, db *jay.DB, ix jay.Index) func() error {
	return func() error { return db.EnsureIndex(ctx, "Notes", ix) }
}

// ask reads all answers of a query. One that needs more than its share is refused, as is right.
func ask(ctx context.Context, db *jay.DB, rql string) func() error {
	return func() error {
		q, err := db.RQL(rql, nil)
		if err != nil {
			return fmt.Errorf("%s: %w", rql, err)
		}
		for _, err := range q.Iter(ctx) {
			if errors.Is(err, jay.ErrMemory) || errors.Is(err, jay.ErrQuery) && strings.Contains(err.Error(), "MaxQueryBytes") {
				return nil
			}
			if err != nil {
				return fmt.Errorf("%s: %w", rql, err)
			}
		}
		return nil
	}
}

// peakBytes returns the most memory that the process had.
func peakBytes() (int64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, fmt.Errorf("the peak is known on Linux only: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "VmHWM:"); is {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("/proc/self/status has no VmHWM")
}
