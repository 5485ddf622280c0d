// Package live measures what an insert costs beside live queries: beside none, beside a
// thousand of which none has the document for an answer, and beside a thousand of which
// one has.
//
//	go run ./measure live [-rounds R] [-slice D] [-writers N] [-queries Q] [-dir DIR] [-smoke]
//
// The sides are measured in turns in one process, each in a database of its own, so that
// the machine is the same for all. In each round they are compared with none; the ratio of
// inserts per second is printed with its interval. A second measurement without live
// queries, 0', shows what is noise. A slice ends when all events of its inserts have come,
// but its rate is that of the inserts. The program exits with status 1 if an event is missing.
package live

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"

	"github.com/jaydb/jay/bench/harness"
	"github.com/jaydb/jay/bench/stats"
)

type options struct {
	*harness.Run
	writers, queries int
}

// Measurement is this one.
var Measurement = harness.Measurement{
	Name: "live", About: "what an insert costs beside live queries", Rounds: 20, Slice: 500 * time.Millisecond,
	New: func(flags *flag.FlagSet) func(*harness.Run) error {
		o := new(options)
		flags.IntVar(&o.writers, "writers", 8, "goroutines that insert")
		flags.IntVar(&o.queries, "queries", 1000, "live queries")
		return func(r *harness.Run) error {
			if o.Run = r; r.Smoke {
				o.queries = 20
			}
			for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
				if err := o.measure(durability); err != nil {
					return err
				}
			}
			return nil
		}
	},
}

// side is a database with live queries.
type side struct {
	name    string
	queries int
	matches bool // each insert is an answer of one of them
	db      *jay.DB
	seen    atomic.Int64 // documents that have entered
	failed  atomic.Pointer[error]
	written int       // numbers that inserts have used
	stored  int64     // documents
	rates   []float64 // inserts per second, of each round
}

func (o *options) measure(durability jay.Durability) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	defer following.Wait()
	defer cancel()
	sides := []*side{{name: "0"}, {name: "0'"}, {name: "none", queries: o.queries}, {name: "one", queries: o.queries, matches: true}}
	for _, s := range sides {
		if s.db, err = jay.Open(filepath.Join(dir, s.name), &jay.Options{Durability: durability}); err != nil {
			return err
		}
		defer s.db.Close()
		var begun sync.WaitGroup
		for i := range s.queries {
			n := i
			if !s.matches {
				n += o.queries // no document has it
			}
			begun.Add(1)
			following.Go(func() { s.follow(ctx, n, begun.Done) })
		}
		begun.Wait()
	}
	if err := o.Turns(len(sides), func(_, i int) error { return o.insert(sides[i]) }); err != nil {
		return err
	}
	word := "durable"
	if durability == jay.Relaxed {
		word = "relaxed"
	}
	fmt.Printf("%s inserts by %d goroutines, %d live queries\n", word, o.writers, o.queries)
	for _, s := range sides {
		ratio := stats.IntervalOf(stats.Ratios(s.rates, sides[0].rates), 0.95)
		fmt.Printf("  %-4s matches: %8.0f inserts/s, ratio %.3f [%.3f, %.3f]\n", s.name, stats.IntervalOf(s.rates, 0.95).Median, ratio.Median, ratio.Low, ratio.High)
	}
	return nil
}

// follow counts the documents that enter the answers of one query.
func (s *side) follow(ctx context.Context, n int, begun func()) {
	var once sync.Once
	defer once.Do(begun)
	for e, err := range s.db.Query("Docs").Where(jay.Eq("n", n)).Live(ctx, "") {
		if err != nil {
			if ctx.Err() == nil {
				s.failed.Store(&err)
			}
			return
		}
		switch e.Kind {
		case jay.LiveEnter:
			s.seen.Add(1)
		case jay.LiveCurrent:
			once.Do(begun)
		}
	}
}

// insert inserts for a slice of time, and waits until the events have come: what is done
// later must not be counted against the next side.
func (o *options) insert(s *side) error {
	ctx := context.Background()
	begun := time.Now()
	until := begun.Add(o.Slice)
	counts, errs := make([]int, o.writers), make([]error, o.writers)
	var all sync.WaitGroup
	for w := range o.writers {
		all.Go(func() {
			for n := s.written; time.Now().Before(until) && errs[w] == nil; n++ {
				body := fmt.Appendf(nil, `{"name":"a document of middling size","tags":["a","b"],"n":%d}`, (n*o.writers+w)%o.queries)
				_, errs[w] = s.db.Put(ctx, fmt.Sprintf("docs/%d-%d", w, n), body, jay.InCollection("Docs"))
				counts[w]++
			}
		})
	}
	all.Wait()
	took := time.Since(begun)
	sum := 0
	for w := range o.writers {
		if errs[w] != nil {
			return errs[w]
		}
		sum += counts[w]
		s.written = max(s.written, s.written+counts[w])
	}
	s.stored += int64(sum)
	s.rates = append(s.rates, float64(sum)/took.Seconds())
	if err := s.db.Flush(ctx); err != nil || !s.matches {
		return err
	}
	for late := time.Now().Add(time.Minute); s.seen.Load() < s.stored; time.Sleep(time.Millisecond) {
		if err := s.failed.Load(); err != nil {
			return *err
		}
		if time.Now().After(late) {
			return fmt.Errorf("%d documents have entered, of %d", s.seen.Load(), s.stored)
		}
	}
	return nil
}
