// Package feeds measures what an insert costs beside change feeds that follow it: with
// none, with one and with a hundred, durable and relaxed.
//
//	go run ./measure feeds [-rounds R] [-slice D] [-writers N] [-dir DIR] [-smoke]
//
// Feeds are measured in turns in one process, each number in a database of its own, so that
// the machine is the same for all. In each round the numbers are compared with none; the
// ratio of inserts per second is printed with its interval. A second measurement
// without feeds, 0', shows what is noise. The program exits with status 1 if a feed has
// not seen each of the documents at the end.
package feeds

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
	writers int
}

// Measurement is this one.
var Measurement = harness.Measurement{
	Name: "feeds", About: "what an insert costs beside change feeds that follow it", Rounds: 20, Slice: 500 * time.Millisecond,
	New: func(flags *flag.FlagSet) func(*harness.Run) error {
		o := new(options)
		flags.IntVar(&o.writers, "writers", 8, "goroutines that insert")
		return func(r *harness.Run) error {
			o.Run = r
			for _, durability := range []jay.Durability{jay.Synced, jay.Relaxed} {
				if err := o.measure(durability); err != nil {
					return err
				}
			}
			return nil
		}
	},
}

// side is a database with a number of feeds.
type side struct {
	name    string
	db      *jay.DB
	feeds   []*follower
	written int
	rates   []float64 // inserts per second, of each round
}

// follower is a feed.
type follower struct {
	seen atomic.Int64
	err  atomic.Pointer[error] // with which it has ended
}

var numbers = []struct {
	name  string
	feeds int
}{{"0", 0}, {"0'", 0}, {"1", 1}, {"100", 100}}

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
	var sides []*side
	for i, n := range numbers {
		db, err := jay.Open(filepath.Join(dir, fmt.Sprint(i)), &jay.Options{Durability: durability})
		if err != nil {
			return err
		}
		defer db.Close()
		s := &side{name: n.name, db: db}
		for range n.feeds {
			f := new(follower)
			s.feeds = append(s.feeds, f)
			following.Go(func() { f.follow(ctx, db) })
		}
		sides = append(sides, s)
	}

	if err := o.Turns(len(sides), func(_, i int) error { return o.insert(sides[i]) }); err != nil {
		return err
	}
	word := "durable"
	if durability == jay.Relaxed {
		word = "relaxed"
	}
	fmt.Printf("%s inserts by %d goroutines\n", word, o.writers)
	for _, s := range sides {
		if err := s.caughtUp(); err != nil {
			return err
		}
		ratio := stats.IntervalOf(stats.Ratios(s.rates, sides[0].rates), 0.95)
		fmt.Printf("  %-4s feeds: %8.0f inserts/s, ratio to none %.3f [%.3f, %.3f]\n", s.name, stats.IntervalOf(s.rates, 0.95).Median, ratio.Median, ratio.Low, ratio.High)
	}
	return nil
}

func (f *follower) follow(ctx context.Context, db *jay.DB) {
	for c, err := range db.Changes(ctx, "", jay.OfPrefixes("docs/")) {
		if err != nil {
			if ctx.Err() == nil {
				f.err.Store(&err)
			}
			return
		}
		_ = c.ID
		f.seen.Add(1)
	}
}

// insert inserts for a slice of time, and waits until the feeds have caught up: what they
// do later must not be counted against the next side.
func (o *options) insert(s *side) error {
	ctx := context.Background()
	until := time.Now().Add(o.Slice)
	counts, errs := make([]int, o.writers), make([]error, o.writers)
	var all sync.WaitGroup
	for w := range o.writers {
		all.Go(func() {
			for n := 0; time.Now().Before(until) && errs[w] == nil; n++ {
				_, errs[w] = s.db.Put(ctx, fmt.Sprintf("docs/%d-%d", w, s.written+n), []byte(`{"name":"a document of middling size","tags":["a","b"],"n":1}`), jay.InCollection("Docs"))
				counts[w]++
			}
		})
	}
	all.Wait()
	total := 0
	for w := range counts {
		if errs[w] != nil {
			return errs[w]
		}
		total += counts[w]
	}
	s.written += total
	s.rates = append(s.rates, float64(total)/o.Slice.Seconds())
	return s.caughtUp()
}

// caughtUp waits until each feed has seen each document.
func (s *side) caughtUp() error {
	for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		behind := 0
		for _, f := range s.feeds {
			if err := f.err.Load(); err != nil {
				return *err
			}
			if seen := f.seen.Load(); seen < int64(s.written) {
				behind++
			} else if seen > int64(s.written) {
				return fmt.Errorf("a feed has seen %d documents of %d", seen, s.written)
			}
		}
		if behind == 0 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("%d feeds have not seen %d documents after a minute", behind, s.written)
		}
	}
}
