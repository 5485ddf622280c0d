// Command standbys measures how far standbys are behind a source that inserts at a steady rate, and what they cost a
// source that inserts as fast as it can.
//
//	go run ./standbys [-rate N] [-steady D] [-rounds R] [-slice D] [-writers N] [-dir DIR] [-smoke]
//
// Steady: for no standby, for one and for ten, a new source takes -rate inserts a second for -steady. Each standby is asked a hundred times
// a second how far behind it is. The latency of an insert counts from the instant at which it was due.
//
// Full speed: four sources take inserts in turns, a slice each, in one process. "none" and "none'" have no standby: their ratio is noise. The commits of
// "sent" are read and dropped, which is all that a source pays for a standby on another machine. Those of "standby" are applied by a standby on the same
// processors and disk. The processor time is that of the process until the reader has all. After its slice each source waits until its reader has all. The ratios to none are those of the rounds, with their interval.
//
// The program exits with status 1 if a standby has not all documents at the end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/standby"

	"github.com/jaydb/jay/bench/stats"
)

type options struct {
	rate, rounds, writers int
	steady, slice         time.Duration
	dir                   string
}

var ctx = context.Background()

// body is a document of 300 bytes.
var body = []byte(fmt.Sprintf(`{"name":"Ann","text":%q}`, strings.Repeat("x", 274)))

func main() {
	var o options
	flag.IntVar(&o.rate, "rate", 10_000, "inserts a second of a steady source")
	flag.DurationVar(&o.steady, "steady", 25*time.Second, "how long a steady source inserts, for each number of standbys")
	flag.IntVar(&o.rounds, "rounds", 24, "rounds at full speed, each with every source in turn")
	flag.DurationVar(&o.slice, "slice", time.Second, "how long a source inserts in a round")
	flag.IntVar(&o.writers, "writers", 64, "goroutines that insert")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "where the databases are put, and removed: on the disk that is to be measured")
	smoke := flag.Bool("smoke", false, "a short run, to see that it works")
	flag.Parse()
	if *smoke {
		o.rate, o.steady, o.rounds, o.slice = 500, 200*time.Millisecond, 1, 50*time.Millisecond
	}
	for _, n := range []int{0, 1, 10} {
		exitOn(o.measureSteady(n))
	}
	exitOn(o.measureFull())
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "standbys:", err)
		os.Exit(1)
	}
}

// inTemporary runs fn with a directory that is removed.
func (o *options) inTemporary(fn func(dir string) error) error {
	dir, err := os.MkdirTemp(o.dir, "standbys")
	if err != nil {
		return err
	}
	return errors.Join(fn(dir), os.RemoveAll(dir))
}

// measureSteady measures the lag of n standbys of a source that inserts at a steady rate.
func (o *options) measureSteady(n int) error {
	return o.inTemporary(func(dir string) error {
		db, err := jay.Open(filepath.Join(dir, "source"), &jay.Options{NoLook: true})
		if err != nil {
			return err
		}
		defer db.Close()
		var all []*standby.Standby
		for i := range n {
			s, err := openStandby(filepath.Join(dir, fmt.Sprint("standby", i)), db)
			if err != nil {
				return err
			}
			defer s.Close()
			all = append(all, s)
		}
		done := make(chan struct{})
		lags := make(chan []time.Duration)
		go func() { lags <- watch(all, done) }()
		begun := time.Now()
		latency, err := o.pace(db)
		took := time.Since(begun)
		close(done)
		seen := <-lags
		if err != nil {
			return err
		}
		total, err := written(db)
		if err != nil {
			return err
		}
		p := latency.Percentiles()
		fmt.Printf("steady, %2d standbys: %6.0f inserts/s of %d, latency p50 %.1f ms p99 %.1f ms", n, float64(total)/took.Seconds(), o.rate, p.P50/1000, p.P99/1000)
		if len(seen) > 0 {
			slices.Sort(seen)
			at := func(percent int) time.Duration {
				return seen[min(len(seen)*percent/100, len(seen)-1)].Round(100 * time.Microsecond)
			}
			fmt.Printf("; %d looks at the lag: p50 %v p99 %v longest %v", len(seen), at(50), at(99), at(100))
		}
		fmt.Println()
		return haveAll(all, total)
	})
}

// openStandby opens a standby of db, which has the first copy.
func openStandby(dir string, db *jay.DB) (*standby.Standby, error) {
	s, err := standby.Open(dir, standby.From(db), standby.Options{Database: &jay.Options{NoLook: true}})
	if err != nil {
		return nil, err
	}
	if _, err := s.DB(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// watch asks standbys again and again how far behind they are, until done.
func watch(all []*standby.Standby, done <-chan struct{}) (lags []time.Duration) {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for _, s := range all {
				lags = append(lags, s.Status().Lag)
			}
		case <-done:
			return lags
		}
	}
}

// pace inserts at the rate of the options. A writer that is late does not wait for its next one, and makes all of them.
func (o *options) pace(db *jay.DB) (*stats.Latency, error) {
	pause := time.Duration(o.writers) * time.Second / time.Duration(o.rate)
	begun := time.Now()
	latencies, errs := make([]stats.Latency, o.writers), make([]error, o.writers)
	var all sync.WaitGroup
	for w := range o.writers {
		all.Go(func() {
			first := begun.Add(pause * time.Duration(w) / time.Duration(o.writers))
			for due := first; due.Sub(begun) < o.steady && errs[w] == nil; due = due.Add(pause) {
				time.Sleep(time.Until(due))
				_, errs[w] = db.Store(ctx, "Orders", body)
				latencies[w].Record(time.Since(due))
			}
		})
	}
	all.Wait()
	sum := new(stats.Latency)
	for w := range latencies {
		sum.Merge(&latencies[w])
	}
	return sum, errors.Join(errs...)
}

// written returns how many documents were inserted.
func written(db *jay.DB) (int64, error) {
	all, err := db.Collections(ctx)
	for _, c := range all {
		if c.Name == "Orders" {
			return c.Documents, err
		}
	}
	return 0, err
}

// haveAll waits until each standby has so many documents.
func haveAll(all []*standby.Standby, want int64) error {
	for i, s := range all {
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			db, err := s.DB(ctx)
			if err != nil {
				return err
			}
			have, err := written(db)
			if err != nil {
				return err
			}
			if have == want {
				break
			}
			if time.Now().After(end) {
				return fmt.Errorf("after a minute standby %d has %d documents of %d: %+v", i, have, want, s.Status())
			}
		}
	}
	return nil
}

// side is a source at full speed, and what reads its commits.
type side struct {
	name    string
	db      *jay.DB
	standby *standby.Standby // or nil
	sent    *sent            // or nil
	rates   []float64        // inserts per second, of each round
	costs   []float64        // microseconds of processor time per insert, of each round, what reads the commits included
}

// measureFull measures what a standby costs a source at full speed.
func (o *options) measureFull() error {
	return o.inTemporary(func(dir string) (err error) {
		var sides []*side
		for _, name := range []string{"none", "none'", "sent", "standby"} {
			db, err := jay.Open(filepath.Join(dir, name), &jay.Options{NoLook: true})
			if err != nil {
				return err
			}
			defer db.Close()
			s := &side{name: name, db: db}
			switch name {
			case "standby":
				if s.standby, err = openStandby(filepath.Join(dir, "copy"), db); err == nil {
					defer s.standby.Close()
				}
			case "sent":
				if s.sent, err = openSent(filepath.Join(dir, "asks"), db); err == nil {
					defer s.sent.close()
				}
			}
			if err != nil {
				return err
			}
			sides = append(sides, s)
		}
		for round := range o.rounds {
			for i := range sides {
				if err := o.insert(sides[(round+i)%len(sides)]); err != nil {
					return err
				}
			}
		}
		for _, s := range sides {
			rate, cost := ratioOf(s.rates, sides[0].rates), ratioOf(s.costs, sides[0].costs)
			fmt.Printf("full speed, %-8s %8.0f inserts/s, ratio to none %.3f [%.3f, %.3f]; %4.1f us of processor time each, ratio %.3f [%.3f, %.3f]\n", s.name+":",
				stats.Median(s.rates), rate.Median, rate.Low, rate.High, stats.Median(s.costs), cost.Median, cost.Low, cost.High)
		}
		return nil
	})
}

// ratioOf returns the ratios of each round.
func ratioOf(a, b []float64) stats.Interval {
	return stats.IntervalOf(stats.Ratios(a, b), 0.95)
}

// insert inserts for a slice of time, and waits until all was read.
func (o *options) insert(s *side) (err error) {
	begun := time.Now()
	used, _ := stats.CPUTime() // nothing where it is not measured
	counts, errs := make([]int64, o.writers), make([]error, o.writers)
	var all sync.WaitGroup
	for w := range o.writers {
		all.Go(func() {
			for time.Since(begun) < o.slice && errs[w] == nil {
				_, errs[w] = s.db.Store(ctx, "Orders", body)
				counts[w]++
			}
		})
	}
	all.Wait()
	took := time.Since(begun)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var total int64
	for _, n := range counts {
		total += n
	}
	s.rates = append(s.rates, float64(total)/took.Seconds())
	defer func() {
		now, _ := stats.CPUTime()
		s.costs = append(s.costs, float64((now-used).Nanoseconds())/1000/float64(total))
	}()
	switch {
	case s.standby != nil:
		want, err := written(s.db)
		if err != nil {
			return err
		}
		return haveAll([]*standby.Standby{s.standby}, want)
	case s.sent != nil:
		return s.sent.quiet()
	}
	return nil
}

// sent reads the commits of a source and drops them.
type sent struct {
	in    io.Closer
	bytes atomic.Int64
	ended chan error
}

// asking is a source that notes what it is asked with.
type asking struct{ request chan []byte }

// Stream implements standby.Source.
func (a asking) Stream(ctx context.Context, request []byte) (io.ReadCloser, error) {
	select {
	case a.request <- request:
	case <-ctx.Done():
	}
	return nil, errors.New("it only notes what it is asked with")
}

// openSent asks as a new standby does, which it makes in dir.
func openSent(dir string, db *jay.DB) (*sent, error) {
	a := asking{make(chan []byte, 1)}
	asks, err := standby.Open(dir, a, standby.Options{Database: &jay.Options{NoLook: true}})
	if err != nil {
		return nil, err
	}
	request := <-a.request
	if err := asks.Close(); err != nil {
		return nil, err
	}
	in, err := standby.From(db).Stream(ctx, request)
	if err != nil {
		return nil, err
	}
	s := &sent{in: in, ended: make(chan error, 1)}
	go func() {
		_, err := io.Copy(s, in)
		s.ended <- err
	}()
	return s, nil
}

// Write implements io.Writer.
func (s *sent) Write(p []byte) (int, error) {
	s.bytes.Add(int64(len(p)))
	return len(p), nil
}

// quiet waits until nothing was sent for some time: a heartbeat is little.
func (s *sent) quiet() error {
	for end := time.Now().Add(time.Minute); time.Now().Before(end); {
		before := s.bytes.Load()
		select {
		case err := <-s.ended:
			return fmt.Errorf("the stream has ended: %w", err)
		case <-time.After(50 * time.Millisecond):
		}
		if s.bytes.Load()-before < 1000 {
			return nil
		}
	}
	return errors.New("after a minute the source has not sent all")
}

func (s *sent) close() {
	_ = s.in.Close() // it is no more read
	<-s.ended
}
