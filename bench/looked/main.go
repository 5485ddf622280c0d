// Command looked measures what it costs a program that others look into its database. It prints the rates of the program's own inserts and
// gets while another process lists and queries the database through its socket without a pause, over those while none does.
//
//	go run ./looked [-rounds R] [-slice D] [-documents N] [-dir DIR] [-smoke]
//
// The other process takes a processor, too, whatever it reads. So the same process doing the same to a database of its own is
// measured as well: looks/own is what the looks cost beside that. Each round has one slice of each in an order drawn anew, and the intervals hold the true median with 95 %
// probability.
package main

import (
	"bufio"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/jaydb/jay"

	"github.com/jaydb/jay/bench/stats"
)

var ctx = context.Background()

func main() {
	var o options
	flag.IntVar(&o.rounds, "rounds", 24, "rounds, each with a slice of every kind")
	flag.DurationVar(&o.slice, "slice", time.Second, "how long each is measured in a round")
	flag.IntVar(&o.documents, "documents", 20_000, "documents of each database")
	flag.StringVar(&o.dir, "dir", "", "where the databases are put, and removed: on the disk that is to be measured")
	smoke := flag.Bool("smoke", false, "short rounds, to see that it works")
	client := flag.String("client", "", "only for the process that reads: its database")
	looks := flag.Bool("looks", false, "only for the process that reads: the database is another process's")
	flag.Parse()
	if *smoke {
		o.rounds, o.slice, o.documents = 2, 50*time.Millisecond, 500
	}
	run := o.run
	if *client != "" {
		run = func() error { return read(*client, *looks) }
	}
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "looked:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	rounds, documents int
	slice             time.Duration
	dir               string
}

// kinds are what the other process does in a slice.
var kinds = [...]string{"nothing", "looks", "own"}

// work is what the program does in a slice, again and again.
type work struct {
	name string
	opts jay.Options
	do   func(db *jay.DB, i, documents int) error
}

var works = []work{
	{"insert, synced", jay.Options{}, insert},
	{"insert, relaxed", jay.Options{Durability: jay.Relaxed}, insert},
	{"get", jay.Options{}, func(db *jay.DB, i, documents int) error {
		_, err := db.Get(ctx, "things/"+strconv.Itoa(i*7919%documents))
		return err
	}},
}

func insert(db *jay.DB, i, _ int) error {
	_, err := db.Put(ctx, "", []byte(`{"Name":"Ann","n":`+strconv.Itoa(i%100)+`}`))
	return err
}

func (o *options) run() (err error) {
	dir, err := os.MkdirTemp(o.dir, "looked-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	own := filepath.Join(dir, "own")
	if err := o.fill(own, nil); err != nil {
		return err
	}
	fmt.Printf("%-16s %12s %12s %12s   %-24s %-24s\n", "", "nothing/s", "looks/s", "own/s", "looks/nothing", "looks/own")
	for i, w := range works {
		if err := o.measure(w, filepath.Join(dir, strconv.Itoa(i)), own); err != nil {
			return fmt.Errorf("%s: %w", w.name, err)
		}
	}
	return nil
}

// fill makes a database.
func (o *options) fill(dir string, opts *jay.Options) error {
	db, err := jay.Open(dir, opts)
	if err != nil {
		return err
	}
	b := new(jay.Batch)
	for i := range o.documents {
		b.Put("things/"+strconv.Itoa(i), []byte(`{"Name":"Ann","n":`+strconv.Itoa(i%100)+`}`), jay.InCollection("Things"))
		if b.Len() == 1000 || i == o.documents-1 {
			if _, err = db.Apply(ctx, b); err != nil {
				break
			}
			b = new(jay.Batch)
		}
	}
	if err == nil {
		err = db.EnsureIndex(ctx, "Things", jay.Index{Name: "n", Fields: []string{"n"}})
	}
	return errors.Join(err, db.Close())
}

func (o *options) measure(w work, dir, own string) (err error) {
	if err := o.fill(dir, &w.opts); err != nil {
		return err
	}
	db, err := jay.Open(dir, &w.opts)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	readers := make(map[string]*reader)
	for kind, of := range map[string]string{"looks": dir, "own": own} {
		r, err := startReader(of, kind == "looks")
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.end()) }()
		readers[kind] = r
	}
	rates := make(map[string][]float64)
	for range o.rounds {
		for _, k := range rand.Perm(len(kinds)) {
			kind := kinds[k]
			rate, err := o.sample(w, db, readers[kind])
			if err != nil {
				return err
			}
			rates[kind] = append(rates[kind], rate)
		}
	}
	ratio := func(a, b string) string {
		i := stats.IntervalOf(stats.Ratios(rates[a], rates[b]), 0.95)
		return fmt.Sprintf("%.3f [%.3f, %.3f]", i.Median, i.Low, i.High)
	}
	fmt.Printf("%-16s %12.0f %12.0f %12.0f   %-24s %-24s\n", w.name, stats.Median(rates["nothing"]), stats.Median(rates["looks"]), stats.Median(rates["own"]), ratio("looks", "nothing"), ratio("looks", "own"))
	return nil
}

// sample returns how often the work is done in a second, while a reader reads, or none for nil.
func (o *options) sample(w work, db *jay.DB, r *reader) (rate float64, err error) {
	if r != nil {
		if err := r.tell("go"); err != nil {
			return 0, err
		}
	}
	n, begun := 0, time.Now()
	for ; time.Since(begun) < o.slice; n++ {
		if err := w.do(db, n, o.documents); err != nil {
			return 0, err
		}
	}
	rate = float64(n) / time.Since(begun).Seconds()
	if r != nil {
		err = r.tell("stop")
	}
	return rate, err
}

// reader is the other process.
type reader struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startReader(dir string, looks bool) (*reader, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r := &reader{cmd: exec.Command(program, "-client", dir, "-looks="+strconv.FormatBool(looks))}
	r.cmd.Stderr = os.Stderr
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r.out = bufio.NewReader(out)
	return r, r.cmd.Start()
}

// tell tells the process what to do, and waits until it says that it does.
func (r *reader) tell(what string) error {
	if _, err := io.WriteString(r.in, what+"\n"); err != nil {
		return err
	}
	_, err := r.out.ReadString('\n')
	return err
}

// end ends the process.
func (r *reader) end() error { return errors.Join(r.in.Close(), r.cmd.Wait()) }

// read is the other process: it lists and queries a database from each "go" to the next "stop".
func read(dir string, looks bool) (err error) {
	open := jay.Open
	if looks {
		open = jay.Look
	}
	db, err := open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	stop, done := make(chan struct{}), make(chan error)
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if in.Text() == "go" {
			stop = make(chan struct{})
			go func() { done <- again(db, stop) }()
		} else {
			close(stop)
			if err := <-done; err != nil {
				return err
			}
		}
		fmt.Println("ok")
	}
	return nil
}

// again lists and queries until stop is closed.
func again(db *jay.DB, stop chan struct{}) error {
	stopped := func() bool {
		select {
		case <-stop:
			return true
		default:
			return false
		}
	}
	for i := 0; !stopped(); i++ {
		for _, err := range db.Documents(ctx, jay.Scan{Collection: "Things"}) {
			if err != nil {
				return err
			}
			if stopped() {
				return nil
			}
		}
		for range 10 {
			if _, err := db.Query("Things").Where(jay.Eq("n", i%100)).Limit(100).All(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}
