// Command layout measures ways to lay documents out in Pebble's key space:
// the figures behind docs/decisions/0001-document-layout.md.
//
//	go run ./layout [-docs N] [-rounds R]
//
// Every layout gets the same documents, the same Pebble options and batches
// of 1,000 without syncs, in turns. All but raw check that a new ID is free
// (unless they say otherwise) and can list the changes in their order.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"runtime/debug"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/bench/fixture"
	"github.com/jaydb/jay/bench/stats"
)

const (
	batchSize  = 1000
	cacheBytes = 1 << 30
)

func main() {
	n := flag.Int("docs", 1_000_000, "documents")
	rounds := flag.Int("rounds", 3, "rounds, each over all layouts in turn")
	flag.Parse()
	if err := run(os.Stdout, *n, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "layout:", err)
		os.Exit(1)
	}
}

// figures of one layout, in microseconds per document, by round.
type figures struct{ inOrder, atRandom, get, scan []float64 }

func run(out io.Writer, n, rounds int) error {
	docs := fixture.NewDocuments(n)
	ids := newIDs(n)
	all := make([]figures, len(layouts))
	for round := range rounds {
		for i, l := range layouts {
			fmt.Fprintf(os.Stderr, "\rround %d: %-60s", round+1, l.name)
			if err := all[i].measure(l, docs, ids); err != nil {
				return fmt.Errorf("%s: %w", l.name, err)
			}
		}
	}
	fmt.Fprintf(os.Stderr, "\r%70s\r", "")
	return print(out, all)
}

// measure loads the documents in the order of their IDs, then at random, and
// reads what the first load left, after compaction.
func (f *figures) measure(l layout, docs *fixture.Documents, ids *ids) error {
	inOrder := make([]int, docs.Len())
	for i := range inOrder {
		inOrder[i] = i
	}
	err := withStore(l, docs, ids, func(s *store) error {
		took, err := timed(func() error { return s.load(inOrder) })
		if err != nil {
			return err
		}
		f.inOrder = append(f.inOrder, took/float64(docs.Len()))
		return f.read(s)
	})
	if err != nil {
		return err
	}
	return withStore(l, docs, ids, func(s *store) error {
		took, err := timed(func() error { return s.load(shuffled(docs.Len())) })
		f.atRandom = append(f.atRandom, took/float64(docs.Len()))
		return err
	})
}

func (f *figures) read(s *store) error {
	if err := fixture.CompactOpen(s.db); err != nil {
		return err
	}
	if err := s.scanAll(); err != nil { // fills the cache
		return err
	}
	took, err := timed(s.scanAll)
	if err != nil {
		return err
	}
	f.scan = append(f.scan, took/float64(s.docs.Len()))

	order := shuffled(s.docs.Len())[:min(s.docs.Len(), 200_000)]
	if err := s.getAll(order); err != nil {
		return err
	}
	took, err = timed(func() error { return s.getAll(order) })
	f.get = append(f.get, took/float64(len(order)))
	return err
}

// timed returns how many microseconds fn took.
func timed(fn func() error) (float64, error) {
	debug.FreeOSMemory()
	start := time.Now()
	err := fn()
	return float64(time.Since(start)) / float64(time.Microsecond), err
}

// withStore calls fn with an empty store.
func withStore(l layout, docs *fixture.Documents, ids *ids, fn func(*store) error) (err error) {
	dir, err := os.MkdirTemp("", "jay-layout-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := fixture.Open(dir, cacheBytes)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return fn(&store{layout: l, db: db, docs: docs, ids: ids})
}

// store is a layout at work.
type store struct {
	layout
	db   *fixture.DB
	docs *fixture.Documents
	ids  *ids
	etag uint64
}

// load inserts the documents in this order, in batches.
func (s *store) load(order []int) error {
	for first := 0; first < len(order); first += batchSize {
		batch := s.db.NewBatch()
		for _, i := range order[first:min(first+batchSize, len(order))] {
			s.etag++
			if err := s.insert(s, batch, i); err != nil {
				return err
			}
		}
		if err := errors.Join(batch.Commit(pebble.NoSync), batch.Close()); err != nil {
			return err
		}
	}
	return nil
}

// getAll reads documents by their IDs and compares some.
func (s *store) getAll(order []int) error {
	for n, i := range order {
		value, err := s.get(s, i)
		if err != nil {
			return err
		}
		if n%1000 == 0 && string(value[len(value)-fixture.BodyBytes:]) != string(s.docs.Body(i)) {
			return fmt.Errorf("document %d: got %.60q", i, value)
		}
	}
	return nil
}

// scanAll reads the collection and counts it.
func (s *store) scanAll() error {
	found, bytes := 0, 0
	err := s.scan(s, func(value []byte) {
		found++
		bytes += len(value)
	})
	if err != nil {
		return err
	}
	if found != s.docs.Len() || bytes < found*fixture.BodyBytes {
		return fmt.Errorf("scan found %d documents of %d bytes, want %d", found, bytes, s.docs.Len())
	}
	return nil
}

func shuffled(n int) []int { return rand.New(rand.NewPCG(5, 6)).Perm(n) }

func print(out io.Writer, all []figures) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "layout\tinsert, ids in order\tinsert at random\tget by id\tcollection scan\t")
	for i, l := range layouts {
		f, r := all[i], all[0]
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t\n", l.name,
			cell(f.inOrder, r.inOrder), cell(f.atRandom, r.atRandom), cell(f.get, r.get), cell(f.scan, r.scan))
	}
	return table.Flush()
}

// cell is the median with least and most, and the median ratio to raw.
func cell(values, raw []float64) string {
	ratios := stats.Ratios(values, raw)
	return fmt.Sprintf("%.2f (%.2f–%.2f) ×%.2f", stats.Median(values), slices.Min(values), slices.Max(values), stats.Median(ratios))
}
