// Package indexbuild measures how long indexes over stored documents take to be built,
// beside SQLite in C, and what durable inserts achieve meanwhile.
//
//	go run ./measure indexbuild [-documents N] [-indexes 2,3] [-rounds R] [-smoke]
//
// Both engines hold the same documents of 550 bytes and sync their commits. In each round
// the indexes are built and dropped, in turns: by Jay, declared together; by Jay, one after another; and
// by SQLite, which builds them one after another. A build begins when Jay has no
// compaction left of what was before, and SQLite has written its log back into its file: a user who loads a
// million documents and declares indexes at once shares the machine with that. -busy does not wait. Printed are
// the medians per document, and of the ratios Jay ÷ SQLite of the rounds the median with
// an interval that holds the true one with 95 % probability. Then 8 goroutines insert
// into Jay, for as long as builds of two and of three indexes follow each other and for as long without them, in turns.
// SQLite has no ANALYZE here, which it wants before it uses the indexes.
package indexbuild

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
	"github.com/jaydb/jay/bench/harness"
	"github.com/jaydb/jay/bench/stats"
)

// Measurement is this one.
var Measurement = harness.Measurement{
	Name: "indexbuild", About: "builds of indexes beside SQLite, and inserts beside builds", Rounds: 7,
	New: func(flags *flag.FlagSet) func(*harness.Run) error {
		n := flags.Int("documents", 200_000, "documents of 550 bytes")
		indexes := flags.String("indexes", "2,3", "how many indexes")
		inserting := flags.Duration("inserting", 3*time.Second, "how long inserts are measured in each turn; 0 for not at all")
		busy := flags.Bool("busy", false, "begin builds while compactions go on")
		memory := flags.Bool("memory", false, "print what a build of Jay allocates")
		return func(r *harness.Run) error {
			if r.Smoke {
				*n, *inserting, r.Rounds = 12_000, 100*time.Millisecond, 2
			}
			return run(r, *n, *indexes, *inserting, options{*busy, *memory})
		}
	},
}

var ctx = context.Background()

const (
	collection = "Orders"
	cacheBytes = 256 << 20
	batch      = 1000
	writers    = 8
	turns      = 3
)

// builder builds indexes over the documents that it has loaded, and drops them.
type builder interface {
	load(docs *fixture.Documents) error
	build(indexes ...engine.Index) error
	drop(ix engine.Index) error
	rest() error // until what was done before is done in the background, too
	Close() error
}

// options are flags.
type options struct{ busy, memory bool }

func run(r *harness.Run, n int, indexes string, inserting time.Duration, o options) (err error) {
	j, err := openJay(filepath.Join(r.Dir, "jay"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	s, err := openSQLite(filepath.Join(r.Dir, "sqlite.db"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	docs := fixture.NewDocuments(n)
	for _, b := range []builder{j, s} {
		if err := b.load(docs); err != nil {
			return err
		}
	}

	fmt.Printf("%d documents of %d bytes, %d rounds; µs a document\n\n| indexes | Jay, together | one after another | SQLite (C) | Jay ÷ SQLite | one after another ÷ SQLite |\n|---|---|---|---|---|---|\n", n, fixture.BodyBytes, r.Rounds)
	for _, text := range strings.Split(indexes, ",") {
		k, err := strconv.Atoi(text)
		if err != nil || k < 1 || k > len(engine.Indexes) {
			return fmt.Errorf("-indexes %q: numbers from 1 to %d", indexes, len(engine.Indexes))
		}
		var times [3][]float64
		for round := range r.Rounds {
			for i := range times {
				which := (i + round) % len(times)
				b, together := []builder{j, j, s}[which], which == 0
				if !o.busy {
					if err := b.rest(); err != nil {
						return err
					}
				}
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				took, err := buildAndDrop(b, engine.Indexes[:k], together)
				if err != nil {
					return err
				}
				if runtime.ReadMemStats(&after); o.memory && together {
					fmt.Fprintf(os.Stderr, "%d indexes: %.1f MB allocated, %.0f bytes and %.2f objects a document, %d collections\n", k, float64(after.TotalAlloc-before.TotalAlloc)/1e6,
						float64(after.TotalAlloc-before.TotalAlloc)/float64(n), float64(after.Mallocs-before.Mallocs)/float64(n), after.NumGC-before.NumGC)
				}
				times[which] = append(times[which], took/float64(n))
			}
		}
		median := func(values []float64) float64 { return stats.IntervalOf(values, .95).Median }
		ratio, single := stats.IntervalOf(stats.Ratios(times[0], times[2]), .95), stats.IntervalOf(stats.Ratios(times[1], times[2]), .95)
		fmt.Printf("| %d | %.2f | %.2f | %.2f | %.2f (%.2f–%.2f) | %.2f (%.2f–%.2f) |\n", k, median(times[0]), median(times[1]), median(times[2]), ratio.Median, ratio.Low, ratio.High, single.Median, single.Low, single.High)
	}
	if inserting == 0 {
		return nil
	}

	var ratios []float64
	for range turns {
		with, builds, err := j.inserts(docs, inserting, true)
		if err != nil {
			return err
		}
		without, _, err := j.inserts(docs, inserting, false)
		if err != nil {
			return err
		}
		fmt.Printf("\n%d goroutines insert %.0f documents a second durably beside %d builds, %.0f without\n", writers, with, builds, without)
		ratios = append(ratios, with/without)
	}
	fmt.Printf("\nbeside builds ÷ without: %.2f (median of %d turns)\n", stats.IntervalOf(ratios, .95).Median, turns)
	return nil
}

// buildAndDrop returns how many microseconds the builds took.
func buildAndDrop(b builder, indexes []engine.Index, together bool) (float64, error) {
	size := 1
	if together {
		size = len(indexes)
	}
	began := time.Now()
	for some := range slices.Chunk(indexes, size) {
		if err := b.build(some...); err != nil {
			return 0, err
		}
	}
	took := time.Since(began)
	for _, ix := range indexes {
		if err := b.drop(ix); err != nil {
			return 0, err
		}
	}
	return took.Seconds() * 1e6, nil
}

// rest waits until this process, both engines included, takes hardly any processor time for 100 ms.
func rest() error {
	deadline := time.Now().Add(time.Minute)
	for time.Now().Before(deadline) {
		before, err := processorTicks()
		if err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		after, err := processorTicks()
		if err != nil || after-before <= 1 {
			return err
		}
	}
	return errors.New("the engines go on working for a minute")
}

// processorTicks returns how many hundredths of a second this process has run.
func processorTicks() (int, error) {
	text, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return 0, fmt.Errorf("%w: without it, measure with -busy", err)
	}
	_, rest, _ := strings.Cut(string(text), ") ") // behind the name of the program
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("/proc/self/stat: %q", text)
	}
	user, err := strconv.Atoi(fields[11])
	system, otherErr := strconv.Atoi(fields[12])
	return user + system, errors.Join(err, otherErr)
}

type jayBuilder struct {
	db   *jay.DB
	next atomic.Int64 // document to be inserted
}

func openJay(dir string) (*jayBuilder, error) {
	db, err := jay.Open(dir, &jay.Options{CacheBytes: cacheBytes})
	return &jayBuilder{db: db}, err
}

func (j *jayBuilder) load(docs *fixture.Documents) error {
	var b jay.Batch
	for i := range docs.Len() {
		b.Store(collection, docs.Body(i))
		if b.Len() == batch || i == docs.Len()-1 {
			if _, err := j.db.Apply(ctx, &b); err != nil {
				return err
			}
			b.Reset()
		}
	}
	return nil
}

func (j *jayBuilder) build(indexes ...engine.Index) error {
	var all []jay.Index
	for _, ix := range indexes {
		all = append(all, jay.Index{Name: ix.Name, Fields: []string{ix.Field}})
	}
	return j.db.EnsureIndexes(ctx, collection, all)
}

func (j *jayBuilder) rest() error { return rest() }

func (j *jayBuilder) drop(ix engine.Index) error { return j.db.DropIndex(ctx, collection, ix.Name) }

func (j *jayBuilder) Close() error { return j.db.Close() }

// inserts returns how many documents a second are inserted, beside builds or not.
func (j *jayBuilder) inserts(docs *fixture.Documents, during time.Duration, building bool) (rate float64, builds int, err error) {
	stop := make(chan struct{})
	var group sync.WaitGroup
	var inserted atomic.Int64
	failures := make([]error, writers)
	began := time.Now()
	for w := range writers {
		group.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				i := int(j.next.Add(1)) % docs.Len()
				if _, failures[w] = j.db.Store(ctx, collection, docs.Body(i)); failures[w] != nil {
					return
				}
				inserted.Add(1)
			}
		})
	}
	// Only the time of builds counts: a drop goes by chunks.
	var counted time.Duration
	var written int64
	for time.Since(began) < during && err == nil {
		if !building {
			time.Sleep(during - time.Since(began))
			counted, written = time.Since(began), inserted.Load()
			break
		}
		indexes := engine.Indexes[:2+builds%2]
		before, start := inserted.Load(), time.Now()
		err = j.build(indexes...)
		counted += time.Since(start)
		written += inserted.Load() - before
		for _, ix := range indexes {
			err = errors.Join(err, j.drop(ix))
		}
		builds++
	}
	close(stop)
	group.Wait()
	return float64(written) / counted.Seconds(), builds, errors.Join(err, errors.Join(failures...))
}

type sqliteBuilder struct{ db *sql.DB }

// openSQLite opens a table as that of package engine, with one connection.
func openSQLite(file string) (*sqliteBuilder, error) {
	db, err := sql.Open("sqlite3", fmt.Sprintf("file:%s?_journal_mode=wal&_synchronous=2&_cache_size=%d&_txlock=immediate", file, -cacheBytes>>10))
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	_, err = db.Exec("CREATE TABLE orders (id TEXT PRIMARY KEY, body BLOB)")
	return &sqliteBuilder{db}, err
}

func (s *sqliteBuilder) load(docs *fixture.Documents) error {
	for first := 0; first < docs.Len(); first += batch {
		tx, err := s.db.Begin()
		if err != nil {
			return err
		}
		insert, err := tx.Prepare("INSERT INTO orders (id, body) VALUES (?, jsonb(?))")
		if err != nil {
			return err
		}
		for i := first; i < min(first+batch, docs.Len()); i++ {
			if _, err := insert.Exec(fmt.Sprintf("orders/%d-A", i+1), string(docs.Body(i))); err != nil {
				return err
			}
		}
		if err := tx.Commit(); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqliteBuilder) build(indexes ...engine.Index) error {
	for _, ix := range indexes {
		if _, err := s.db.Exec(fmt.Sprintf("CREATE INDEX orders_%s ON orders(json_extract(body, '$.%s'))", ix.Name, ix.Field)); err != nil {
			return err
		}
	}
	return nil
}

func (s *sqliteBuilder) rest() error {
	_, err := s.db.Exec("PRAGMA wal_checkpoint(TRUNCATE)")
	return errors.Join(err, rest())
}

func (s *sqliteBuilder) drop(ix engine.Index) error {
	_, err := s.db.Exec("DROP INDEX orders_" + ix.Name)
	return err
}

func (s *sqliteBuilder) Close() error { return s.db.Close() }
