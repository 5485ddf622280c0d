// Command search measures an index of words: what it costs writers and how large it is, and how fast words are found, beside SQLite's FTS5.
//
//	go run -tags sqlite_fts5 ./search [-n DOCUMENTS] [-pairs P] [-inserts I] [-dir DIR] [-corpus DIR] [-smoke]
//
// The documents are paragraphs of the Markdown files and of the comments of Go files below a directory, by default the cache of Go's modules; if they are
// too few, halves of them are mixed. Queries are run on both engines in
// turns, in another order in each pair; the figures are medians, and medians of the ratios. Both must find the same number of documents.
//
// Without the tag, or without cgo, there is no FTS5 to compare with, and Jay is measured alone.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/report"
	"github.com/jaydb/jay/bench/stats"
)

func main() {
	o := options{}
	flag.IntVar(&o.n, "n", 50_000, "documents")
	flag.IntVar(&o.pairs, "pairs", 21, "pairs of each query")
	flag.IntVar(&o.inserts, "inserts", 3000, "durable inserts of a round")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "where the databases are put, and removed: on the disk that is to be measured")
	flag.StringVar(&o.corpus, "corpus", "", "where the files are; by default the cache of Go's modules")
	smoke := flag.Bool("smoke", false, "few documents and pairs, to see that it works")
	flag.Parse()
	if *smoke {
		o.n, o.pairs, o.inserts = 1000, 2, 100
	}
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "search:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	n, pairs, inserts int
	dir, corpus       string
}

// engine is what is measured: Jay, or FTS5.
type engine interface {
	load(texts []string) error
	size() (int64, error)
	top(q asked) (n int, err error) // of the ten best
	count(q asked) (n int, err error)
	close() error
}

// asked is a query as both engines have it.
type asked struct {
	name      string
	jay, fts5 string
	all       bool
}

func (o *options) run(ctx context.Context) (err error) {
	texts, err := corpus(o.corpus, o.n)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(o.dir, "jay-search-")
	if err != nil {
		return err
	}
	o.dir = dir
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	machine, err := report.ThisMachine(dir)
	if err != nil {
		return err
	}
	bytes := 0
	for _, text := range texts {
		bytes += len(text)
	}
	fmt.Printf("%s\n\n%d paragraphs, %.1f MB\n\n", machine.String(), len(texts), float64(bytes)/1e6)
	engines, err := o.load(ctx, texts)
	defer func() {
		for _, e := range engines {
			err = errors.Join(err, e.close())
		}
	}()
	if err != nil {
		return err
	}
	if err := o.queries(engines, texts); err != nil {
		return err
	}
	return o.writers(ctx, texts)
}

// load loads all documents into both engines, and into a database without an index of words.
func (o *options) load(ctx context.Context, texts []string) (engines []engine, err error) {
	fmt.Printf("| | bulk load | … until no tail is left | bytes on disk |\n|---|---:|---:|---:|\n")
	for _, name := range []string{"Jay without an index", "Jay", "FTS5"} {
		var e engine
		switch name {
		case "FTS5":
			if e, err = openFTS5(filepath.Join(o.dir, "fts5.db")); e == nil && err == nil {
				continue
			}
		default:
			e, err = openJay(ctx, filepath.Join(o.dir, strings.ReplaceAll(name, " ", "-")), name == "Jay")
		}
		if err != nil {
			return engines, err
		}
		begun := time.Now()
		if err := e.load(texts); err != nil {
			return append(engines, e), err
		}
		loaded, settled := time.Since(begun), time.Duration(0)
		if j, is := e.(*jayEngine); is {
			if err := j.settled(); err != nil {
				return append(engines, e), err
			}
			settled = time.Since(begun)
		}
		size, err := steadySize(e)
		if err != nil {
			return append(engines, e), err
		}
		fmt.Printf("| %s | %v | %v | %.1f MB |\n", name, loaded.Round(time.Millisecond), settled.Round(time.Millisecond), float64(size)/1e6)
		if name == "Jay without an index" {
			if err := e.close(); err != nil {
				return engines, err
			}
			continue
		}
		engines = append(engines, e)
	}
	fmt.Println()
	return engines, nil
}

// queries measures all queries in pairs.
func (o *options) queries(engines []engine, texts []string) error {
	fmt.Printf("| query | found | Jay | FTS5 | Jay ÷ FTS5 (least–most) |\n|---|---:|---:|---:|---:|\n")
	for _, q := range queries(texts) {
		for _, kind := range []string{"top 10", "count"} {
			run := func(e engine) (int, error) {
				if kind == "count" {
					return e.count(q)
				}
				return e.top(q)
			}
			found, err := engines[0].count(q)
			if err != nil {
				return fmt.Errorf("%s: %w", q.name, err)
			}
			times := make([][]float64, len(engines))
			for range o.pairs + 1 { // the first is to warm up
				counts := make([]int, len(engines))
				for _, i := range rand.Perm(len(engines)) {
					begun := time.Now()
					if counts[i], err = run(engines[i]); err != nil {
						return fmt.Errorf("%s: %w", q.name, err)
					}
					times[i] = append(times[i], time.Since(begun).Seconds())
				}
				if len(counts) > 1 && counts[0] != counts[1] {
					return fmt.Errorf("%s, %s: %d and %d are found", q.name, kind, counts[0], counts[1])
				}
			}
			for i := range times {
				times[i] = times[i][1:]
			}
			row(q.name+", "+kind, found, times)
		}
	}
	fmt.Println()
	return nil
}

// row prints the medians of a query, and of its ratios.
func row(name string, found int, times [][]float64) {
	if len(times) == 1 {
		fmt.Printf("| %s | %d | %v | – | – |\n", name, found, duration(stats.Median(times[0])))
		return
	}
	ratios := stats.Ratios(times[0], times[1])
	fmt.Printf("| %s | %d | %v | %v | %.2f (%.2f–%.2f) |\n", name, found, duration(stats.Median(times[0])), duration(stats.Median(times[1])), stats.Median(ratios), slices.Min(ratios), slices.Max(ratios))
}

// writers measures durable inserts by eight goroutines with an index of words and without, and queries meanwhile.
func (o *options) writers(ctx context.Context, texts []string) error {
	var sides []*jayEngine
	for _, name := range []string{"writers-without", "writers-with"} {
		e, err := openJay(ctx, filepath.Join(o.dir, name), name == "writers-with")
		if err != nil {
			return err
		}
		defer e.close()
		if err := errors.Join(e.load(texts[:len(texts)/2]), e.settled()); err != nil {
			return err
		}
		sides = append(sides, e)
	}
	const rounds = 7
	times := make([][]float64, 2)
	for round := range rounds {
		for _, i := range rand.Perm(2) {
			begun := time.Now()
			if err := sides[i].insert(ctx, texts[len(texts)/2:], o.inserts, fmt.Sprintf("w%d", round)); err != nil {
				return err
			}
			times[i] = append(times[i], time.Since(begun).Seconds()/float64(o.inserts))
		}
	}
	fmt.Printf("| durable inserts, 8 at a time | without | with an index of words | with ÷ without (least–most) |\n|---|---:|---:|---:|\n")
	ratios := stats.Ratios(times[1], times[0])
	fmt.Printf("| per document | %v | %v | %.3f (%.3f–%.3f) |\n\n", duration(stats.Median(times[0])), duration(stats.Median(times[1])), stats.Median(ratios), slices.Min(ratios), slices.Max(ratios))
	return o.meanwhile(ctx, sides[1], texts)
}

// meanwhile measures queries while eight goroutines insert.
func (o *options) meanwhile(ctx context.Context, e *jayEngine, texts []string) error {
	done := make(chan error, 1)
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		for round := 0; stop.Err() == nil; round++ {
			if err := e.insert(stop, texts[len(texts)/2:], o.inserts, fmt.Sprintf("m%d", round)); err != nil && stop.Err() == nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	q := queries(texts)[1]
	var took []float64
	for begun := time.Now(); time.Since(begun) < 10*time.Second; {
		at := time.Now()
		if _, err := e.top(q); err != nil {
			return err
		}
		took = append(took, time.Since(at).Seconds())
	}
	cancel()
	slices.Sort(took)
	fmt.Printf("%s, top 10, while eight goroutines insert: %d queries, median %v, 99 of 100 within %v\n", q.name, len(took), duration(stats.Median(took)), duration(took[len(took)*99/100]))
	return <-done
}

// jayEngine is Jay.
type jayEngine struct {
	ctx context.Context
	db  *jay.DB
	dir string

	words bool // it has an index of them
}

func openJay(ctx context.Context, dir string, words bool) (*jayEngine, error) {
	db, err := jay.Open(dir, nil)
	if err != nil {
		return nil, err
	}
	e := &jayEngine{ctx, db, dir, words}
	if words {
		err = db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}})
	}
	return e, err
}

type note struct{ Text string }

func (e *jayEngine) load(texts []string) error {
	w, err := e.db.BulkInsert(nil)
	if err != nil {
		return err
	}
	for i, text := range texts {
		if _, err := w.Put(e.ctx, fmt.Sprintf("notes/%08d", i), body(text), jay.InCollection("Notes")); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// steadySize returns how many bytes an engine has on the disk when that has not changed for a second: it merges blocks and deletes files in the
// background.
func steadySize(e engine) (size int64, err error) {
	last := int64(-1)
	for end := time.Now().Add(settlePatience); size != last && time.Now().Before(end); time.Sleep(time.Second) {
		last = size
		if size, err = e.size(); err != nil {
			return 0, err
		}
	}
	return size, nil
}

// shortTail is more than what the few documents take in a query that are left in the tail for the next ones.
const shortTail = 2 * time.Millisecond

// settlePatience is how long settled waits.
const settlePatience = 20 * time.Minute

// settled waits until the tail is short, which shows in the time of a search for what is nowhere, compacts, and returns when all is on
// disk.
func (e *jayEngine) settled() error {
	end := time.Now().Add(settlePatience)
	for quick := 0; quick < 5; {
		begun := time.Now()
		if begun.After(end) {
			return fmt.Errorf("searches still take more than %v, %v after the load: the machine is too busy to see when the tail is short", shortTail, settlePatience)
		}
		if _, err := e.db.Query("Notes").Where(jay.Search("Text", "qqqq")).Count(e.ctx); err != nil {
			return err
		}
		if quick++; e.words && time.Since(begun) > shortTail {
			quick = 0
			time.Sleep(20 * time.Millisecond)
		}
	}
	return errors.Join(e.db.Flush(e.ctx), e.db.Compact(e.ctx))
}

func (e *jayEngine) size() (n int64, err error) {
	err = filepath.WalkDir(e.dir, func(path string, d os.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || d.IsDir() || strings.HasSuffix(path, ".log") {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) { // a file that the engine has removed since
			return nil
		}
		if err == nil {
			n += info.Size()
		}
		return err
	})
	return n, err
}

func (e *jayEngine) query(q asked) jay.Query[jay.Document] {
	var opts []jay.SearchOption
	if q.all {
		opts = append(opts, jay.AllWords())
	}
	return e.db.Query("Notes").Where(jay.Search("Text", q.jay, opts...)).NoScan()
}

func (e *jayEngine) top(q asked) (int, error) {
	list, err := e.query(q).OrderBy(jay.Score).Limit(10).All(e.ctx)
	return len(list), err
}

func (e *jayEngine) count(q asked) (int, error) {
	n, err := e.query(q).Count(e.ctx)
	return int(n), err
}

func (e *jayEngine) insert(ctx context.Context, texts []string, n int, prefix string) error {
	const goroutines = 8
	failures := make([]error, goroutines)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := g; i < n && failures[g] == nil; i += goroutines {
				_, failures[g] = e.db.Insert(ctx, fmt.Sprintf("notes/%s-%d", prefix, i), body(texts[i%len(texts)]), jay.InCollection("Notes"))
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

func (e *jayEngine) close() error { return e.db.Close() }

func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(100 * time.Nanosecond)
}
