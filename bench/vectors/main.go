// Command vectors measures an index of vectors: how fast documents are written into it, how large it is, and how many of the ten nearest it finds, in
// which time.
//
//	go run ./vectors [-n DOCUMENTS] [-dimensions D] [-kind clustered|uniform] [-queries Q] [-dir DIR | -keep DATABASE] [-smoke]
//
// Clustered vectors lie around centers, one for each hundred documents, at a spread that makes those of a cluster as alike as texts of one subject are (a cosine of about 0.7);
// uniform ones lie in all directions. Both are made with a fixed seed. Vectors are stored in base64. 32 goroutines write, each one document at a time, durably. Queries are
// vectors of the same kind that are not stored, one after another, on one goroutine; the truth is what exact() answers, and a scan confirms it for some.
//
// With -keep the database stays. If it is there already, with so many documents, nothing is written, and only the queries are measured: a large one is made once, and asked when the
// machine has nothing else to do.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/stats"
	"github.com/jaydb/jay/query"
)

type settings struct {
	n, dimensions, queries int
	kind, dir, keep        string
}

func main() {
	var s settings
	flag.IntVar(&s.n, "n", 40_000, "documents")
	flag.IntVar(&s.dimensions, "dimensions", 768, "numbers of a vector")
	flag.IntVar(&s.queries, "queries", 100, "queries of each number of candidates")
	flag.StringVar(&s.kind, "kind", "clustered", "clustered or uniform")
	flag.StringVar(&s.dir, "dir", os.TempDir(), "where the database is put, and removed")
	flag.StringVar(&s.keep, "keep", "", "a database that is kept, and only asked if it is there")
	smoke := flag.Bool("smoke", false, "few documents, to see that it works")
	flag.Parse()
	if *smoke {
		s.n, s.dimensions, s.queries = 4000, 32, 10
	}
	if err := run(context.Background(), s); err != nil {
		fmt.Fprintln(os.Stderr, "vectors:", err)
		os.Exit(1)
	}
}

// maker makes vectors.
type maker struct {
	dimensions int
	centers    [][]float32
}

func newMaker(s settings) *maker {
	m := &maker{dimensions: s.dimensions}
	if s.kind == "clustered" {
		r := rand.New(rand.NewPCG(37, 0))
		for range max(1, s.n/100) {
			m.centers = append(m.centers, m.anywhere(r))
		}
	}
	return m
}

func (m *maker) anywhere(r *rand.Rand) []float32 {
	v := make([]float32, m.dimensions)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// make returns vector i, or a vector of a query if i is less than 0.
func (m *maker) make(i int) []float32 {
	r := rand.New(rand.NewPCG(38, uint64(i)))
	v := m.anywhere(r)
	if m.centers != nil {
		center := m.centers[r.IntN(len(m.centers))]
		for d := range v {
			v[d] = center[d] + 0.65*v[d]
		}
	}
	return v
}

func run(ctx context.Context, s settings) (err error) {
	path := s.keep
	if path == "" {
		dir, err := os.MkdirTemp(s.dir, "vectors")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		path = filepath.Join(dir, "jay")
	}
	db, err := jay.Open(path, &jay.Options{CacheBytes: 512 << 20})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	m := newMaker(s)
	there, err := db.Query("Notes").Count(ctx)
	if err != nil {
		return err
	}
	switch there {
	case 0:
		if err := write(ctx, db, s, m); err != nil {
			return err
		}
	case int64(s.n):
	default:
		return fmt.Errorf("%s has %d documents, and not %d: remove it, or say -n %d", path, there, s.n, there)
	}
	return ask(ctx, db, s, m)
}

// write makes what the queries are asked of, and prints what it costs.
func write(ctx context.Context, db *jay.DB, s settings, m *maker) error {
	ix := jay.Index{Name: "Alike", Kind: "vectors", Fields: []string{"Embedding"}, Options: map[string]string{"dimensions": fmt.Sprint(s.dimensions)}}
	if err := db.EnsureIndex(ctx, "Notes", ix); err != nil {
		return err
	}
	for _, collection := range []string{"Bare", "Notes"} { // without the index, and with it
		if err := load(ctx, db, s, m, collection); err != nil {
			return err
		}
	}
	if err := db.Compact(ctx); err != nil {
		return err
	}
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	fmt.Printf("memory: %d MB of Go's heap, beside the cache of blocks\n", memory.HeapAlloc>>20)
	usage, err := db.DiskUsage(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("%s, %d × %d: the index has %.2f of the bytes of int8 vectors\n", s.kind, s.n, s.dimensions, float64(usage.Indexes[0].Bytes)/float64(s.n*s.dimensions))
	return nil
}

// load writes all documents, and waits until those of Notes are in partitions.
func load(ctx context.Context, db *jay.DB, s settings, m *maker, collection string) error {
	bodies := make([][]byte, s.n)
	for i := range bodies {
		var err error
		if bodies[i], err = json.Marshal(map[string]any{"Title": fmt.Sprintf("Note %d", i), "Group": i % 100, "Embedding": query.Numbers(m.make(i))}); err != nil {
			return err
		}
	}
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var writers sync.WaitGroup
	begun := time.Now()
	for range 32 {
		writers.Go(func() {
			for i := next.Add(1) - 1; i < int64(s.n); i = next.Add(1) - 1 {
				if _, err := db.Put(ctx, fmt.Sprintf("%s/%d", collection, i), bodies[i], jay.InCollection(collection)); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	writers.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	written := time.Since(begun)
	fmt.Printf("32 writers into %s: %.0f documents a second, durable\n", collection, float64(s.n)/written.Seconds())
	for collection == "Notes" {
		x, err := db.Query("Notes").OrderBy(jay.Nearest("Embedding", m.make(-1))).Limit(1).Explain(ctx)
		if err != nil {
			return err
		}
		time.Sleep(300 * time.Millisecond)
		again, err := db.Query("Notes").OrderBy(jay.Nearest("Embedding", m.make(-1))).Limit(1).Explain(ctx)
		if err != nil {
			return err
		}
		if strings.Join(x.Plan, "") == strings.Join(again.Plan, "") && x.Keys == again.Keys {
			break
		}
	}
	fmt.Printf("settled %v after the last one\n", (time.Since(begun) - written).Round(100*time.Millisecond))
	return nil
}

// ask asks all queries for several numbers of candidates.
func ask(ctx context.Context, db *jay.DB, s settings, m *maker) error {
	find := func(by string, more ...jay.Condition) (ids []string, took time.Duration, err error) {
		begun := time.Now()
		for doc, err := range db.Query("Notes").Where(more...).OrderBy(by).Limit(10).NoScan().Iter(ctx) {
			if err != nil {
				return nil, 0, err
			}
			ids = append(ids, doc.ID())
		}
		return ids, time.Since(begun), nil
	}
	truth := make([][]string, s.queries)
	var exact []time.Duration
	for i := range truth {
		ids, took, err := find("exact(" + jay.Nearest("Embedding", m.make(-1-i)) + ")")
		if err != nil {
			return err
		}
		truth[i], exact = ids, append(exact, took)
	}
	for i := range min(3, s.queries) {
		begun, scanned := time.Now(), []string(nil)
		for doc, err := range db.Query("Notes").OrderBy(jay.Nearest("Embedding", m.make(-1-i))).Limit(10).NoIndex().Iter(ctx) {
			if err != nil {
				return err
			}
			scanned = append(scanned, doc.ID())
		}
		if !slices.Equal(scanned, truth[i]) {
			return fmt.Errorf("exact() finds %q, and a scan %q", truth[i], scanned)
		}
		if i == 0 {
			fmt.Printf("a scan takes %v\n", time.Since(begun).Round(time.Millisecond))
		}
	}
	fmt.Printf("exact(): p50 %v\n", middle(exact))
	for _, candidates := range []int{0, 250, 500, 1000, 2000, 4000, 8000, 16000, 32000} {
		var times []time.Duration
		found := 0
		for i := range truth {
			by := strings.TrimSuffix(jay.Distance("Embedding", m.make(-1-i), "cosine"), ")")
			if candidates > 0 {
				by += fmt.Sprintf(", %d", candidates)
			}
			ids, took, err := find(by + ")")
			if err != nil {
				return err
			}
			times = append(times, took)
			for _, id := range ids {
				if slices.Contains(truth[i], id) {
					found++
				}
			}
		}
		slices.Sort(times)
		fmt.Printf("candidates %5d: recall@10 %.3f, p50 %v, p95 %v\n", candidates, float64(found)/float64(10*s.queries), middle(times), times[int(math.Ceil(0.95*float64(len(times))))-1].Round(10*time.Microsecond))
	}
	var filtered []time.Duration
	for i := range min(30, s.queries) {
		ids, took, err := find(jay.Nearest("Embedding", m.make(-1-i)), jay.Eq("Group", i))
		if err != nil || len(ids) != 10 {
			return fmt.Errorf("one of a hundred: %d answers, %v", len(ids), err)
		}
		filtered = append(filtered, took)
	}
	fmt.Printf("beside a condition that one of a hundred satisfies: p50 %v\n", middle(filtered))
	return nil
}

// middle returns the median as it is printed.
func middle(times []time.Duration) time.Duration {
	return stats.Median(times).Round(10 * time.Microsecond)
}
