// Command bench measures Jay beside raw Pebble with the same options, and
// beside its peers: bbolt, badger, badgerhold, buntdb, SQLite.
//
//	go run . [-full | -smoke | -growth] [-only REGEXP] [-engines LIST] [-targets]
//	go run . -plots ../docs/benchmarks
//
// The second form measures nothing: it draws the plots of stored results anew, and
// prints the table of docs/benchmarks.md.
//
// Every engine runs in a process of its own, all in turns, round by round: the
// figures to read are the ratios, as the machine's own speed and noise touch
// all alike. What each of them has kept is read back and compared; the program
// exits with status 1 if anything is missing or changed, or if an engine fails.
// A target that is missed does not fail the run.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"time"

	"github.com/jaydb/jay/bench/report"
	"github.com/jaydb/jay/bench/worker"
)

// Workers die with the thread that starts them (worker.DieWithParent): it must
// be the main one.
func init() { runtime.LockOSThread() }

func main() {
	if len(os.Args) > 1 && os.Args[1] == worker.Subcommand {
		exitOn(worker.Main())
		return
	}
	o := parse()
	if o.list {
		o.printList()
		return
	}
	if o.plots != "" {
		exitOn(drawStored(o.plots))
		return
	}
	failed, err := o.run()
	exitOn(err)
	if failed {
		os.Exit(1)
	}
}

func exitOn(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// drawStored draws the plots of the results that are stored in dir, and prints the
// table of docs/benchmarks.md.
func drawStored(dir string) error {
	for _, name := range []string{"results.json", "growth.json"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		var r report.Report
		if err := json.Unmarshal(text, &r); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := r.Plot(dir); err != nil {
			return err
		}
		if name == "results.json" {
			fmt.Print(r.Summary())
		}
	}
	return nil
}

// options are the command line.
type options struct {
	docs, size, rounds   int
	limit                time.Duration
	full, smoke, growth  bool
	list, targets        bool
	only, engines        string
	dir, out, profileDir string
	plots                string
}

func parse() *options {
	o := &options{}
	flag.IntVar(&o.docs, "docs", 0, "documents per workload (default 100,000; with -full 1,000,000; with -growth the most, 5,000,000)")
	flag.IntVar(&o.rounds, "rounds", 0, "rounds, each with all engines in turn (default 3; with -full 5; with -growth 1)")
	flag.IntVar(&o.size, "size", 550, "bytes of a document, where the workload doesn't say")
	flag.DurationVar(&o.limit, "limit", 0, "end a round of single operations after this time (default 5s; with -full 20s)")
	flag.BoolVar(&o.full, "full", false, "as many documents and rounds as the published figures have")
	flag.BoolVar(&o.smoke, "smoke", false, "few documents, one round, one line per workload: to see that it all works")
	flag.BoolVar(&o.growth, "growth", false, "cost and memory against the number of documents, from 10,000 on")
	flag.StringVar(&o.only, "only", "", "run only the workloads whose name matches this regular expression")
	flag.StringVar(&o.engines, "engines", "", "run only these engines, with commas between them")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "where the databases are put, and removed: on the disk that is to be measured")
	flag.StringVar(&o.out, "out", "", "directory for tables, JSON and plots, such as ../docs/benchmarks")
	flag.StringVar(&o.plots, "plots", "", "draw the plots of the results.json and growth.json in this directory, and run nothing")
	flag.StringVar(&o.profileDir, "profile", "", "directory for CPU profiles of every round")
	flag.BoolVar(&o.targets, "targets", false, "print what the targets came to instead of the tables of all rows")
	flag.BoolVar(&o.list, "list", false, "list the workloads and engines, and run nothing")
	flag.Parse()
	o.setDefaults()
	return o
}

func (o *options) setDefaults() {
	docs, rounds, limit := 100_000, 3, 5*time.Second
	switch {
	case o.smoke && o.growth:
		docs, rounds = 4_000, 1
	case o.smoke:
		docs, rounds, limit = 2_000, 1, time.Second
	case o.growth:
		docs, rounds = 5_000_000, 1
	case o.full:
		docs, rounds, limit = 1_000_000, 5, 20*time.Second
	}
	if o.docs == 0 {
		o.docs = docs
	}
	if o.rounds == 0 {
		o.rounds = rounds
	}
	if o.limit == 0 {
		o.limit = limit
	}
}

// onInterrupt removes dir when the user ends the program. The workers end with
// it.
func onInterrupt(dir string) {
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt)
	go func() {
		<-interrupt
		worker.KillAll()
		_ = os.RemoveAll(dir) // nothing more can be done about what stays
		os.Exit(130)
	}()
}
