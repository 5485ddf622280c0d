// Package contended measures transactions that meet: goroutines that read a document,
// count in it and write it back, durably, each in a transaction of its own.
//
//	go run ./measure contended [-rounds R] [-slice D] [-each N] [-stores LIST] [-smoke]
//
// Beside DB.Update of Jay stand bbolt, SQLite and DB.Patch of Jay. All sync each
// commit before they return from it; they are measured in turns, in one process, each
// on documents of its own on the same disk. Printed are transactions per second, how
// many were refused, and the longest that one of them took. In the end the documents
// must have counted every transaction; the program exits with status 1 if they have
// not, or if Jay refuses one.
package contended

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/bench/harness"
	"github.com/jaydb/jay/bench/stats"
)

// Measurement is this one.
var Measurement = harness.Measurement{
	Name: "contended", About: "transactions that meet on the same documents, beside bbolt and SQLite", Rounds: 6, Slice: 2 * time.Second,
	New: func(flags *flag.FlagSet) func(*harness.Run) error {
		o := new(options)
		flags.IntVar(&o.each, "each", 0, "instead of a slice of time: this many transactions for each goroutine")
		stores := flags.String("stores", "", "measure only these, with commas between them; \"jay\" comes with any")
		goroutines := flags.String("goroutines", "1,4,16,64", "how many transactions there are at a time")
		docs := flags.String("docs", "1,10,1000", "how many documents they meet on")
		return func(r *harness.Run) error {
			o.Run = r
			if err := errors.Join(parse(*goroutines, &o.goroutines), parse(*docs, &o.docs)); err != nil {
				return err
			}
			for _, s := range makers() {
				if *stores == "" || s.name == "jay" || slices.Contains(strings.Split(*stores, ","), s.name) {
					o.makers = append(o.makers, s)
				}
			}
			return o.run()
		}
	},
}

func parse(list string, into *[]int) error {
	for _, text := range strings.Split(list, ",") {
		var n int
		if _, err := fmt.Sscan(text, &n); err != nil || n < 1 {
			return fmt.Errorf("%q is not a list of numbers", list)
		}
		*into = append(*into, n)
	}
	return nil
}

// options are the command line.
type options struct {
	*harness.Run
	each             int
	goroutines, docs []int
	makers           []maker
}

// cell is what was measured of one store with so many goroutines and documents.
type cell struct {
	rates   []float64 // transactions per second, of each round
	refused int64
	longest time.Duration
}

func (o *options) run() error {
	fmt.Print("| goroutines | documents |")
	for _, m := range o.makers {
		fmt.Printf(" %s |", m.name)
	}
	fmt.Println(" jay to the best other |")
	fmt.Println(strings.Repeat("|---", len(o.makers)+3) + "|")
	var notes []string
	for _, docs := range o.docs {
		for _, goroutines := range o.goroutines {
			cells, err := o.measure(goroutines, docs)
			if err != nil {
				return fmt.Errorf("%d goroutines on %d documents: %w", goroutines, docs, err)
			}
			notes = append(notes, o.print(goroutines, docs, cells)...)
		}
	}
	fmt.Println()
	for _, m := range o.makers {
		fmt.Printf("- %s: %s\n", m.name, m.notes)
	}
	for _, n := range notes {
		fmt.Println("- " + n)
	}
	return nil
}

// measure measures all stores, round by round, each round in another order.
func (o *options) measure(goroutines, docs int) ([]cell, error) {
	cells := make([]cell, len(o.makers))
	for range o.Rounds {
		for _, i := range rand.Perm(len(o.makers)) {
			if err := o.measureOne(o.makers[i], &cells[i], goroutines, docs); err != nil {
				return nil, fmt.Errorf("%s: %w", o.makers[i].name, err)
			}
		}
	}
	return cells, nil
}

func (o *options) measureOne(m maker, c *cell, goroutines, docs int) (err error) {
	dir, err := os.MkdirTemp(o.Dir, "jay-contended-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s, err := m.open(dir, goroutines, docs)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	var all sync.WaitGroup
	var done, refused, longest atomic.Int64
	failures := make([]error, goroutines)
	start := time.Now()
	for g := range goroutines {
		all.Go(func() {
			for n := 0; o.each == 0 && time.Since(start) < o.Slice || n < o.each; n++ {
				begin := time.Now()
				err := s.count(rand.IntN(docs))
				for took, most := int64(time.Since(begin)), longest.Load(); took > most && !longest.CompareAndSwap(most, took); {
					most = longest.Load()
				}
				switch {
				case err == nil:
					done.Add(1)
				case errors.Is(err, errRefused):
					refused.Add(1)
				default:
					failures[g] = err
					return
				}
			}
		})
	}
	all.Wait()
	took := time.Since(start)
	if err := errors.Join(failures...); err != nil {
		return err
	}
	sum := int64(0)
	for doc := range docs {
		n, err := s.counted(doc)
		if err != nil {
			return err
		}
		sum += int64(n)
	}
	if n := refused.Load(); n > 0 && m.name == "jay" {
		return fmt.Errorf("%d of %d transactions were refused", n, n+done.Load())
	}
	if sum != done.Load() {
		return fmt.Errorf("%d transactions were done, the documents have counted %d", done.Load(), sum)
	}
	c.rates = append(c.rates, float64(sum)/took.Seconds())
	c.refused += refused.Load()
	c.longest = max(c.longest, time.Duration(longest.Load()))
	return nil
}

// print prints one row, and returns what is to be said of it below the table.
func (o *options) print(goroutines, docs int, cells []cell) (notes []string) {
	fmt.Printf("| %d | %d |", goroutines, docs)
	jay, best := 0.0, 0.0
	for i, c := range cells {
		rate := stats.IntervalOf(c.rates, 0.95)
		fmt.Printf(" %.0f/s, ≤ %s |", rate.Median, c.longest.Round(time.Millisecond/10))
		switch m := o.makers[i]; {
		case m.name == "jay":
			jay = rate.Median
		case m.peer:
			best = max(best, rate.Median)
		}
		if c.refused > 0 {
			notes = append(notes, fmt.Sprintf("%s refused %d transactions of %d goroutines on %d documents", o.makers[i].name, c.refused, goroutines, docs))
		}
	}
	if best > 0 {
		fmt.Printf(" %.2f |\n", jay/best)
	} else {
		fmt.Println(" |")
	}
	return notes
}
