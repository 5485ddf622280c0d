// Package expiry measures durable inserts beside the sweeper of expired documents.
//
//	go run ./measure expiry [-documents N] [-over D] [-slice D] [-writers W] [-dir DIR] [-smoke]
//
// It loads documents that are due over a time, in slices: in every other slice documents
// are due, evenly, and in those between none is. Writers insert all the while, durably, as
// fast as they can. Printed are the inserts of both kinds of slices, how many documents
// were deleted a second, and how long after its instant the last one of a slice was gone.
// The program exits with status 1 if one is left behind.
package expiry

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/harness"
)

// Measurement is this one.
var Measurement = harness.Measurement{
	Name: "expiry", About: "durable inserts beside the deletion of what has expired", Slice: 2 * time.Second,
	New: func(flags *flag.FlagSet) func(*harness.Run) error {
		o := new(options)
		flags.IntVar(&o.documents, "documents", 1_000_000, "documents that expire")
		flags.DurationVar(&o.over, "over", time.Minute, "the time over which they are due, without the slices between")
		flags.IntVar(&o.writers, "writers", 4, "goroutines that insert")
		return func(r *harness.Run) error {
			if o.Run = r; r.Smoke {
				o.documents, o.over, r.Slice = 2000, 400*time.Millisecond, 200*time.Millisecond
			}
			return o.run()
		}
	},
}

// options are the command line.
type options struct {
	*harness.Run
	documents, writers int
	over               time.Duration
}

var ctx = context.Background()

// kind is whether documents are due in a slice.
type kind int

const (
	idle kind = iota
	sweeping
)

func (o *options) run() (err error) {
	db, err := jay.Open(o.Dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	// The load must end before the first is due.
	start := time.Now().Add(time.Duration(o.documents)*20*time.Microsecond + o.Slice)
	if err := o.load(db, start); err != nil {
		return err
	}
	if time.Now().After(start) {
		return errors.New("the load took too long: nothing was measured")
	}
	time.Sleep(time.Until(start.Add(-o.Slice))) // the first slice is idle

	ends := o.slices()
	var all sync.WaitGroup
	latencies := make([][2][]time.Duration, o.writers)
	failures := make([]error, o.writers)
	stop := start.Add(time.Duration(ends) * o.Slice)
	for w := range o.writers {
		all.Go(func() { latencies[w], failures[w] = o.insert(db, start, stop) })
	}
	late, err := o.watch(db, start, ends)
	all.Wait()
	if err = errors.Join(append(failures, err)...); err != nil {
		return err
	}
	return o.print(latencies, late)
}

// slices returns how many slices there are from start on.
func (o *options) slices() int { return 2 * max(1, int(o.over/o.Slice)) }

// kindOf returns what the slice at an instant is.
func (o *options) kindOf(start, at time.Time) kind {
	if d := at.Sub(start); d >= 0 && int(d/o.Slice)%2 == 0 {
		return sweeping
	}
	return idle
}

// dueAt returns when document i is due.
func (o *options) dueAt(start time.Time, i int) time.Time {
	busy := time.Duration(o.slices()/2) * o.Slice
	at := time.Duration(float64(busy) * float64(i) / float64(o.documents))
	return start.Add(at + at/o.Slice*o.Slice)
}

// load loads the documents that expire.
func (o *options) load(db *jay.DB, start time.Time) error {
	begun := time.Now()
	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	body := []byte(`{"Owner":"someone","Token":"0123456789abcdef0123456789abcdef","Count":17}`)
	for i := range o.documents {
		if _, err := w.Store(ctx, "Leases", body, jay.ExpiresAt(o.dueAt(start, i))); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	fmt.Printf("%d documents loaded in %v, due over %v, in slices of %v; %d writers\n\n", o.documents, time.Since(begun).Round(time.Millisecond), o.over, o.Slice, o.writers)
	return nil
}

// insert inserts until stop, and returns how long each took, by kind of slice.
func (o *options) insert(db *jay.DB, start, stop time.Time) (took [2][]time.Duration, err error) {
	body := []byte(`{"Name":"a document of the program","Total":12.5}`)
	for {
		at := time.Now()
		if at.After(stop) {
			return took, nil
		}
		if _, err := db.Store(ctx, "Orders", body); err != nil {
			return took, err
		}
		k := o.kindOf(start, at)
		took[k] = append(took[k], time.Since(at))
	}
}

// watch waits for the end of each slice in which documents are due, and returns how long
// after it the last of them was gone, at most.
func (o *options) watch(db *jay.DB, start time.Time, slices int) (late time.Duration, err error) {
	for s := 1; s < slices; s += 2 {
		end := start.Add(time.Duration(s) * o.Slice)
		time.Sleep(time.Until(end))
		left := 0
		for i := range o.documents {
			if !o.dueAt(start, i).Before(end) {
				left++
			}
		}
		for {
			n, err := db.Query("Leases").Count(ctx)
			if err != nil {
				return 0, err
			}
			if n <= int64(left) {
				break
			}
			if time.Since(end) > time.Minute {
				return 0, fmt.Errorf("%d documents are left a minute after their instant", n-int64(left))
			}
			time.Sleep(time.Millisecond)
		}
		late = max(late, time.Since(end))
	}
	return late, nil
}

func (o *options) print(latencies [][2][]time.Duration, late time.Duration) error {
	fmt.Println("| slices | inserts/s | p50 | p99 | p99.9 | most |")
	fmt.Println("|---|---|---|---|---|---|")
	var p99 [2]time.Duration
	for k, name := range []string{"nothing is due", "documents are deleted"} {
		var all []time.Duration
		for _, l := range latencies {
			all = append(all, l[k]...)
		}
		if len(all) == 0 {
			return errors.New("nothing was inserted")
		}
		slices.Sort(all)
		at := func(q float64) time.Duration { return all[min(len(all)-1, int(q*float64(len(all))))] }
		p99[k] = at(0.99)
		seconds := (time.Duration(o.slices()/2) * o.Slice).Seconds()
		fmt.Printf("| %s | %.0f | %v | %v | %v | %v |\n", name, float64(len(all))/seconds, at(0.5), at(0.99), at(0.999), all[len(all)-1])
	}
	fmt.Printf("\n- p99 beside the sweeper: %.2f times that without\n", float64(p99[sweeping])/float64(p99[idle]))
	fmt.Printf("- %.0f documents deleted a second; the last of a slice was gone %v after its instant, at most\n", float64(o.documents)/o.over.Seconds(), late.Round(time.Millisecond))
	return nil
}
