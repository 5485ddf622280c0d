// Command freshreads measures two ways to read what writers are writing, so
// that no read shows what a crash can undo: to see the state before the commits
// that are not on disk yet, as Jay does, and to wait for their sync, as a Flush
// before each read does. It prints what a read takes, and how much the writers
// get done meanwhile.
//
//	go run ./freshreads [-rounds R] [-smoke]
//
// Writers insert and overwrite a few documents without a pause, durably; two
// readers get documents that are being written, and query them by an index.
// Both ways are measured in turns, in one process.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"

	"github.com/jaydb/jay/bench/stats"
)

func main() {
	rounds := flag.Int("rounds", 20, "rounds, each with both ways in turn")
	slice := flag.Duration("slice", 500*time.Millisecond, "how long each way is measured in a round")
	smoke := flag.Bool("smoke", false, "one short round, to see that it works")
	flag.Parse()
	if *smoke {
		*rounds, *slice = 1, 50*time.Millisecond
	}
	for _, writers := range []int{1, 8, 32} {
		if err := measure(writers, *rounds, *slice); err != nil {
			fmt.Fprintln(os.Stderr, "freshreads:", err)
			os.Exit(1)
		}
	}
}

// side is what was measured of one way.
type side struct {
	get, query stats.Latency
	writes     []float64 // per second, of each round
}

func measure(writers, rounds int, slice time.Duration) error {
	dir, err := os.MkdirTemp("", "freshreads")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	if err := db.EnsureIndex(context.Background(), "Things", jay.Index{Name: "n", Fields: []string{"n"}}); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(context.Background())
	var written atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				id := "things/" + strconv.Itoa((n*writers+w)%100)
				if _, err := db.Put(ctx, id, []byte(`{"n":`+strconv.Itoa(n%10)+`}`), jay.InCollection("Things")); err == nil {
					written.Add(1)
				}
			}
		})
	}
	var sides [2]side // as Jay reads, and with a wait
	for range rounds {
		for wait := range 2 {
			before := written.Load()
			if err := read(db, &sides[wait], wait == 1, slice); err != nil {
				cancel()
				return err
			}
			sides[wait].writes = append(sides[wait].writes, float64(written.Load()-before)/slice.Seconds())
		}
	}
	cancel()
	all.Wait()
	fmt.Printf("%d writers\n", writers)
	for wait, name := range []string{"the state before", "a shared sync"} {
		s := &sides[wait]
		get, query := s.get.Percentiles(), s.query.Percentiles()
		fmt.Printf("  %-17s get µs: median %8.1f p99 %9.1f   query µs: median %8.1f p99 %9.1f   writes/s: median %8.0f\n", name,
			get.P50, get.P99, query.P50, query.P99, stats.IntervalOf(s.writes, 0.95).Median)
	}
	return nil
}

// read lets two readers read for a while.
func read(db *jay.DB, s *side, wait bool, slice time.Duration) error {
	ctx := context.Background()
	until := time.Now().Add(slice)
	var all sync.WaitGroup
	var readers [2]side
	var errs [2]error
	for i := range readers {
		all.Go(func() {
			r := &readers[i]
			for n := i; time.Now().Before(until) && errs[i] == nil; n++ {
				begin := time.Now()
				if wait {
					errs[i] = db.Flush(ctx)
				}
				if n%2 == 0 {
					if _, err := db.Get(ctx, "things/"+strconv.Itoa(n%100)); err != nil && !errors.Is(err, jay.ErrNotFound) {
						errs[i] = err
					}
					r.get.Record(time.Since(begin))
					continue
				}
				if _, err := db.Query("Things").Where(jay.Eq("n", n%10)).Limit(10).All(ctx); err != nil {
					errs[i] = err
				}
				r.query.Record(time.Since(begin))
			}
		})
	}
	all.Wait()
	for i := range readers {
		if errs[i] != nil {
			return errs[i]
		}
		s.get.Merge(&readers[i].get)
		s.query.Merge(&readers[i].query)
	}
	return nil
}
