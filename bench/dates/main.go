// Command dates measures what instants cost beside dates that are text: writing them,
// conditions and orders by them, with an index and without.
//
//	go run ./dates [-n DOCUMENTS] [-rounds R] [-smoke]
//
// The text is of one zone and one number of digits, so that both find the same
// documents. Every answer is checked. Each line is a median of the rounds, in which the
// two sides are measured in turns, and their ratio.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/stats"
)

func main() {
	n := flag.Int("n", 100_000, "documents")
	rounds := flag.Int("rounds", 9, "rounds, each with both sides in turn")
	smoke := flag.Bool("smoke", false, "few documents and one round, to see that it works")
	flag.Parse()
	if *smoke {
		*n, *rounds = 2000, 1
	}
	if err := measure(*n, *rounds); err != nil {
		fmt.Fprintln(os.Stderr, "dates:", err)
		os.Exit(1)
	}
}

// instantEvent and textEvent are the same document to JSON.
type instantEvent struct {
	ID   string
	At   time.Time `jay:"index"`
	Kind int
	Text string
}

type textEvent struct {
	ID   string
	At   string `jay:"index"`
	Kind int
	Text string
}

const (
	layout = "2006-01-02T15:04:05.0000000Z" // as Jay writes times
	step   = 37 * time.Second
	batch  = 500
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// side is one way to keep dates.
type side struct {
	db      *jay.DB
	load    func(ctx context.Context, n int) error
	declare func(ctx context.Context) error
	query   func(from, to time.Time, desc bool) jay.Query[jay.Document]
	took    map[string][]float64 // seconds for each document or query
}

func newSide(dir string, instants bool) (*side, error) {
	db, err := jay.Open(dir, &jay.Options{Durability: jay.Relaxed})
	if err != nil {
		return nil, err
	}
	s := &side{db: db, took: make(map[string][]float64)}
	if instants {
		events, err := jay.CollectionOf[instantEvent](db, jay.Named("Events"))
		if err != nil {
			return nil, err
		}
		s.load = func(ctx context.Context, n int) error {
			return load(ctx, n, events.InsertMany, func(i int) *instantEvent {
				return &instantEvent{At: start.Add(time.Duration(i) * step), Kind: i % 10, Text: "an event of no importance"}
			})
		}
		s.declare = func(ctx context.Context) error { return events.EnsureIndexes(ctx) }
		s.query = func(from, to time.Time, desc bool) jay.Query[jay.Document] {
			q := db.Query("Events").Where(jay.Ge("At", from), jay.Lt("At", to))
			if desc {
				q = q.OrderBy("-At as date")
			}
			return q
		}
		return s, nil
	}
	events, err := jay.CollectionOf[textEvent](db, jay.Named("Events"))
	if err != nil {
		return nil, err
	}
	s.load = func(ctx context.Context, n int) error {
		return load(ctx, n, events.InsertMany, func(i int) *textEvent {
			return &textEvent{At: start.Add(time.Duration(i) * step).Format(layout), Kind: i % 10, Text: "an event of no importance"}
		})
	}
	s.declare = func(ctx context.Context) error { return events.EnsureIndexes(ctx) }
	s.query = func(from, to time.Time, desc bool) jay.Query[jay.Document] {
		q := db.Query("Events").Where(jay.Ge("At", from.Format(layout)), jay.Lt("At", to.Format(layout)))
		if desc {
			q = q.OrderBy("-At")
		}
		return q
	}
	return s, nil
}

// load inserts n documents in batches.
func load[T, R any](ctx context.Context, n int, insert func(context.Context, []*T, ...jay.WriteOption) (R, error), value func(i int) *T) error {
	for done := 0; done < n; done += batch {
		values := make([]*T, min(batch, n-done))
		for i := range values {
			values[i] = value(done + i)
		}
		if _, err := insert(ctx, values); err != nil {
			return err
		}
	}
	return nil
}

// timed runs fn and keeps what each of n operations took.
func (s *side) timed(what string, n int, fn func() error) error {
	began := time.Now()
	if err := fn(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	s.took[what] = append(s.took[what], time.Since(began).Seconds()/float64(n))
	return nil
}

// The rows, in their order.
const (
	rowLoad      = "insert, per document"
	rowScan      = "no index: count of a range, per document"
	rowSort      = "no index: newest ten of a range, per document"
	rowBuild     = "build of the index, per document"
	rowLoaded    = "insert under the index, per document"
	rowCount     = "index: count of a range of 1 %"
	rowTop       = "index: newest ten of a range"
	rowRead      = "index: 100 documents of a range"
	queriesOfRow = 50
)

var rows = []string{rowLoad, rowScan, rowSort, rowBuild, rowLoaded, rowCount, rowTop, rowRead}

func measure(n, rounds int) error {
	var texts, instants []*side
	for range rounds {
		for _, isInstant := range []bool{false, true} {
			s, err := oneRound(n, isInstant)
			if err != nil {
				return err
			}
			if isInstant {
				instants = append(instants, s)
			} else {
				texts = append(texts, s)
			}
		}
	}
	fmt.Printf("%d documents, %d rounds, median µs\n\n| | text | instants | ratio |\n|---|---|---|---|\n", n, rounds)
	for _, row := range rows {
		a, b := median(texts, row), median(instants, row)
		fmt.Printf("| %s | %.3f | %.3f | %.2f |\n", row, a*1e6, b*1e6, b/a)
	}
	return nil
}

func median(sides []*side, row string) float64 {
	var all []float64
	for _, s := range sides {
		all = append(all, s.took[row]...)
	}
	return stats.Median(all)
}

// oneRound measures one side on a database of its own.
func oneRound(n int, isInstant bool) (_ *side, err error) {
	dir, err := os.MkdirTemp("", "dates")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	s, err := newSide(dir, isInstant)
	if err != nil {
		return nil, err
	}
	defer func() {
		if closing := s.db.Close(); err == nil {
			err = closing
		}
	}()
	ctx := context.Background()
	at := func(i int) time.Time { return start.Add(time.Duration(i) * step) }

	if err := s.timed(rowLoad, n, func() error { return s.load(ctx, n) }); err != nil {
		return nil, err
	}
	err = s.timed(rowScan, n, func() error { return counts(ctx, s.query(at(n/2), at(n), false), n-n/2) })
	if err != nil {
		return nil, err
	}
	err = s.timed(rowSort, n, func() error { return finds(ctx, s.query(at(n/2), at(n), true).Limit(10), 10) })
	if err != nil {
		return nil, err
	}
	if err := s.timed(rowBuild, n, func() error { return s.declare(ctx) }); err != nil {
		return nil, err
	}
	perQuery := func(row string, ask func(i int) error) error {
		return s.timed(row, queriesOfRow, func() error {
			for i := range queriesOfRow {
				if err := ask(i * (n - n/100) / queriesOfRow); err != nil {
					return err
				}
			}
			return nil
		})
	}
	if err := perQuery(rowCount, func(i int) error { return counts(ctx, s.query(at(i), at(i+n/100), false).NoScan(), n/100) }); err != nil {
		return nil, err
	}
	if err := perQuery(rowTop, func(i int) error { return finds(ctx, s.query(at(i), at(n), true).NoScan().Limit(10), 10) }); err != nil {
		return nil, err
	}
	if err := perQuery(rowRead, func(i int) error { return finds(ctx, s.query(at(i), at(n), true).NoScan().Limit(100), min(100, n-i)) }); err != nil {
		return nil, err
	}
	return s, s.timed(rowLoaded, n, func() error { return s.load(ctx, n) })
}

func counts(ctx context.Context, q jay.Query[jay.Document], want int) error {
	n, err := q.Count(ctx)
	if err == nil && n != int64(want) {
		err = fmt.Errorf("%s: %d documents, not %d", q, n, want)
	}
	return err
}

func finds(ctx context.Context, q jay.Query[jay.Document], want int) error {
	docs, err := q.All(ctx)
	if err == nil && len(docs) != want {
		err = fmt.Errorf("%s: %d documents, not %d", q, len(docs), want)
	}
	return err
}
