// Command sums measures what kept counts and sums cost the writers, and what they save a query.
//
//	go run ./sums [-n DOCUMENTS] [-groups G] [-rounds R] [-inserts I] [-dir DIR] [-smoke]
//
// Two databases have the same documents: in one an index of groups keeps the number of orders and their total for each
// customer. Both are measured in turns, in another order in each round; the figures are medians of the rounds, and of their
// ratios. At the end both must answer the query alike, to the last byte.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/report"
	"github.com/jaydb/jay/bench/stats"
)

func main() {
	o := options{}
	flag.IntVar(&o.n, "n", 100_000, "documents")
	flag.IntVar(&o.groups, "groups", 1000, "groups")
	flag.IntVar(&o.rounds, "rounds", 9, "rounds, each with both databases in turn")
	flag.IntVar(&o.inserts, "inserts", 4000, "inserts of a row in a round")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "where the databases are put, and removed: on the disk that is to be measured")
	smoke := flag.Bool("smoke", false, "few documents and one round, to see that it works")
	flag.Parse()
	if *smoke {
		o.n, o.groups, o.rounds, o.inserts = 2000, 50, 1, 200
	}
	if err := o.run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "sums:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	n, groups, rounds, inserts int
	dir                        string
}

// side is one of the two databases.
type side struct {
	db   *jay.DB
	took map[string][]float64 // by row: seconds for each operation, of each round
	used map[string][]float64 // the same of the time that the process has computed
}

// dashboard is the query.
const dashboard = "from Orders group by Customer order by Customer select Customer, count() as Orders, sum(Total) as Total, avg(Total) as Average"

// order returns a document of some 200 bytes.
func order(i, group int) json.RawMessage {
	return json.RawMessage(fmt.Sprintf(`{"Customer":"customer-%d","Total":%d.%02d,"At":"2026-01-%02dT12:00:00Z","Note":"%0120d"}`, group, i%1000, i%100, 1+i%28, i))
}

func (o *options) open(ctx context.Context, name string, kept bool) (*side, error) {
	db, err := jay.Open(filepath.Join(o.dir, name), nil)
	if err != nil {
		return nil, err
	}
	s := &side{db: db, took: make(map[string][]float64), used: make(map[string][]float64)}
	if kept {
		if err := db.EnsureIndex(ctx, "Orders", jay.Index{Name: "ByCustomer", Kind: "groups", Fields: []string{"Customer"}, Options: map[string]string{"sums": "Total"}}); err != nil {
			return s, err
		}
	}
	return s, errors.Join(s.load(ctx, o.n, "", o.groups), db.Compact(ctx))
}

// load stores n documents in bulk.
func (s *side) load(ctx context.Context, n int, prefix string, groups int) error {
	w, err := s.db.BulkInsert(nil)
	if err != nil {
		return err
	}
	for i := range n {
		if _, err := w.Put(ctx, fmt.Sprintf("orders/%s%08d", prefix, i), order(i, i%groups), jay.InCollection("Orders")); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// The rows, in their order.
var rows = []string{"durable insert, 32 at a time", "… 64 at a time, all of one group", "bulk load, per document", "read all groups"}

func (o *options) run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp(o.dir, "jay-sums-")
	if err != nil {
		return err
	}
	o.dir = dir
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var sides []*side
	for i, name := range []string{"without", "with"} {
		s, err := o.open(ctx, name, i == 1)
		if s != nil {
			defer s.db.Close()
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		sides = append(sides, s)
	}
	for round := range o.rounds {
		for _, row := range rows {
			for _, i := range rand.Perm(2) {
				if err := o.measure(ctx, sides[i], row, round); err != nil {
					return fmt.Errorf("%s: %w", row, err)
				}
			}
		}
	}
	if err := o.compare(ctx, sides); err != nil {
		return err
	}
	machine, err := report.ThisMachine(o.dir)
	if err != nil {
		return err
	}
	fmt.Printf("%s\n\n%d documents, %d groups, %d rounds of %d inserts\n\n| | without | with kept sums | with ÷ without (least–most) |\n|---|---:|---:|---:|\n", machine.String(), o.n, o.groups, o.rounds, o.inserts)
	for _, row := range rows {
		line(row, sides[0].took[row], sides[1].took[row])
		line("… CPU time", sides[0].used[row], sides[1].used[row])
	}
	return nil
}

// line prints the medians of a row, and of its ratios.
func line(row string, without, with []float64) {
	ratios := stats.Ratios(with, without)
	fmt.Printf("| %s | %v | %v | %.3f (%.3f–%.3f) |\n", row, duration(stats.Median(without)), duration(stats.Median(with)), stats.Median(ratios), slices.Min(ratios), slices.Max(ratios))
}

// measure measures a row of a side once.
func (o *options) measure(ctx context.Context, s *side, row string, round int) error {
	computed, err := stats.CPUTime()
	if err != nil {
		return err
	}
	begun, operations := time.Now(), o.inserts
	switch row {
	case rows[0]:
		err = s.insert(ctx, 32, o.inserts, fmt.Sprintf("d%d", round), func(i int) int { return i % o.groups })
	case rows[1]:
		err = s.insert(ctx, 64, o.inserts, fmt.Sprintf("h%d", round), func(int) int { return 0 })
	case rows[2]:
		err = s.load(ctx, o.inserts, fmt.Sprintf("b%d-", round), o.groups)
	default:
		operations = 1
		_, err = s.read(ctx)
	}
	s.took[row] = append(s.took[row], time.Since(begun).Seconds()/float64(operations))
	now, failed := stats.CPUTime()
	s.used[row] = append(s.used[row], (now-computed).Seconds()/float64(operations))
	return errors.Join(err, failed)
}

// insert inserts documents by several goroutines.
func (s *side) insert(ctx context.Context, goroutines, n int, prefix string, group func(i int) int) error {
	failures := make([]error, goroutines)
	var all sync.WaitGroup
	for g := range goroutines {
		all.Go(func() {
			for i := g; i < n && failures[g] == nil; i += goroutines {
				_, failures[g] = s.db.Insert(ctx, fmt.Sprintf("orders/%s-%d", prefix, i), order(i, group(i)), jay.InCollection("Orders"))
			}
		})
	}
	all.Wait()
	return errors.Join(failures...)
}

// read returns the answer of the query.
func (s *side) read(ctx context.Context) (rows []string, err error) {
	q, err := s.db.RQL(dashboard, nil)
	if err != nil {
		return nil, err
	}
	for row, err := range q.Iter(ctx) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, string(row.JSON))
	}
	return rows, nil
}

// compare fails if the two databases answer differently.
func (o *options) compare(ctx context.Context, sides []*side) error {
	a, err := sides[0].read(ctx)
	if err != nil {
		return err
	}
	b, err := sides[1].read(ctx)
	if err != nil {
		return err
	}
	if len(a) != o.groups || !slices.Equal(a, b) {
		return fmt.Errorf("the groups differ: %d and %d", len(a), len(b))
	}
	return nil
}

func duration(seconds float64) time.Duration {
	return time.Duration(seconds * float64(time.Second)).Round(10 * time.Nanosecond)
}
