// Package revisions measures what revisions cost the writes of a database: without them,
// with all versions kept, and with five.
//
//	go run ./measure revisions [-n WRITES] [-rounds R] [-smoke]
//
// Four databases are written to in turns, in one process, and each round in another order: two without
// revisions, whose ratio shows the noise, one that keeps all and one that keeps five. Each
// line is the median of the rounds of what a write takes, and its ratio to that without revisions, with its
// interval of 95 %.
package revisions

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/jaydb/jay"

	"github.com/jaydb/jay/bench/harness"
	"github.com/jaydb/jay/bench/stats"
)

// Measurement is this one.
var Measurement = harness.Measurement{
	Name: "revisions", About: "what revisions cost the writes", Rounds: 15,
	New: func(flags *flag.FlagSet) func(*harness.Run) error {
		n := flags.Int("n", 4000, "writes of a round and a database")
		return func(r *harness.Run) error {
			if r.Smoke {
				*n = 200
			}
			return measure(r, *n)
		}
	},
}

// body is a document of about 500 bytes.
func body(n int) []byte {
	return fmt.Appendf(nil, `{"Name":"a document of no importance","N":%d,"Text":"%0440d"}`, n, n)
}

// side is a database and what its writes took.
type side struct {
	name  string
	rule  *jay.RevisionRule
	db    *jay.DB
	took  map[string][]float64 // microseconds a write, of each round
	wrote int
}

// workload is a kind of write.
type workload struct {
	name string
	run  func(ctx context.Context, s *side, n int) error
}

const (
	writers   = 8
	documents = 500 // that are overwritten
	batch     = 500
)

var workloads = []workload{
	{"durable insert, 8 writers", func(ctx context.Context, s *side, n int) error {
		return parallel(n/8, func(i int) error {
			_, err := s.db.Store(ctx, "Things", body(i))
			return err
		})
	}},
	{"insert in batches of 500", func(ctx context.Context, s *side, n int) error {
		return batches(ctx, s, n, func(b *jay.Batch, i int) { b.Store("Things", body(i)) })
	}},
	{"durable overwrite, 8 writers", func(ctx context.Context, s *side, n int) error {
		return parallel(n/8, func(i int) error {
			_, err := s.db.Put(ctx, hot(i), body(i+s.wrote), jay.InCollection("Hot"))
			return err
		})
	}},
	{"overwrite in batches of 500", func(ctx context.Context, s *side, n int) error {
		return batches(ctx, s, n, func(b *jay.Batch, i int) { b.Put(hot(i), body(i+s.wrote), jay.InCollection("Hot")) })
	}},
}

func hot(i int) string { return fmt.Sprint("hot/", i%documents) }

// parallel calls fn for n numbers, with all writers.
func parallel(n int, fn func(i int) error) error {
	var all sync.WaitGroup
	failed := make([]error, writers)
	for w := range writers {
		all.Go(func() {
			for i := w; i < n && failed[w] == nil; i += writers {
				failed[w] = fn(i)
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

func batches(ctx context.Context, s *side, n int, add func(b *jay.Batch, i int)) error {
	var b jay.Batch
	for i := 0; i < n; {
		b.Reset()
		for range min(batch, n-i) {
			add(&b, i)
			i++
		}
		if _, err := s.db.Apply(ctx, &b); err != nil {
			return err
		}
	}
	return nil
}

func measure(r *harness.Run, n int) (err error) {
	ctx := context.Background()
	sides := []*side{{name: "without"}, {name: "without, again"}, {name: "keep all", rule: &jay.RevisionRule{}}, {name: "keep 5", rule: &jay.RevisionRule{Keep: 5}}}
	for i, s := range sides {
		if s.db, err = jay.Open(filepath.Join(r.Dir, fmt.Sprint(i)), nil); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, s.db.Close()) }()
		s.took = make(map[string][]float64)
		if s.rule != nil {
			if err := s.db.Revisions().Configure(ctx, jay.RevisionsConfiguration{Default: s.rule}); err != nil {
				return err
			}
		}
	}
	random := rand.New(rand.NewPCG(1, 2))
	for round := range r.Rounds + 1 { // the first is not counted
		for _, w := range workloads {
			for _, i := range random.Perm(len(sides)) {
				s := sides[i]
				s.wrote += n
				writes := n
				if w.name[:7] == "durable" {
					writes = n / 8
				}
				began := time.Now()
				if err := w.run(ctx, s, n); err != nil {
					return fmt.Errorf("%s, %s: %w", s.name, w.name, err)
				}
				if round > 0 {
					s.took[w.name] = append(s.took[w.name], time.Since(began).Seconds()*1e6/float64(writes))
				}
			}
		}
	}
	if err := check(ctx, sides); err != nil {
		return err
	}
	print(sides)
	return nil
}

// check looks whether the databases have the revisions that were asked for.
func check(ctx context.Context, sides []*side) error {
	for _, s := range sides {
		n := 0
		for _, err := range s.db.Revisions().List(ctx, hot(0), jay.RevisionPage{}) {
			if err != nil {
				return err
			}
			n++
		}
		wrong := n > 0
		if s.rule != nil {
			wrong = n < 2 || s.rule.Keep > 0 && n > int(s.rule.Keep)
		}
		if wrong {
			return fmt.Errorf("%s: %s has %d revisions", s.name, hot(0), n)
		}
	}
	return nil
}

func print(sides []*side) {
	for _, w := range workloads {
		fmt.Println(w.name)
		base := sides[0].took[w.name]
		for _, s := range sides {
			took := s.took[w.name]
			r := stats.IntervalOf(stats.Ratios(took, base), 0.95)
			fmt.Printf("  %-15s %8.1f µs   ratio %.3f [%.3f, %.3f]\n", s.name, stats.Median(slices.Clone(took)), r.Median, r.Low, r.High)
		}
	}
}
