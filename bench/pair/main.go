// Command pair measures two commits of Jay against each other, on this machine
// and at the same time:
//
//	go run ./pair [-pairs N] [-only REGEXP] BASE [NEXT]
//
// BASE and NEXT are commits; without NEXT, the working tree is measured as it
// is. The worker of each is built from the bench directory of its own commit.
// A pair is one sample of each in turns, in an order drawn anew, and every
// sample has a process, and a directory, of its own. A third sample, of BASE
// again, shows what the same measurement finds where there is no difference.
//
// Printed for each workload is the median of the ratios, with an interval that
// holds the true one with 95 % probability, whatever the distribution of times
// (stats.IntervalOf). NEXT is not slower beyond noise if the interval reaches
// 1. One row in 40 will be found slower by chance: repeat it with -only and
// more pairs. A row whose interval of BASE against itself misses 1 is one that
// the machine disturbed.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"time"

	"github.com/jaydb/jay/bench/worker"
)

// Workers die with the thread that starts them (worker.DieWithParent): it must
// be the main one.
func init() { runtime.LockOSThread() }

func main() {
	var o options
	flag.IntVar(&o.pairs, "pairs", 20, "pairs of samples of each workload: at least 6, for an interval of 95 %")
	flag.StringVar(&o.only, "only", "", "measure only the workloads whose short name matches this regular expression")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "where the databases are put, and removed: on the disk that is to be measured")
	flag.StringVar(&o.out, "out", "", "file for all samples, as JSON")
	flag.Uint64Var(&o.seed, "seed", uint64(time.Now().UnixNano()), "of the order of the samples")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: pair [flags] BASE [NEXT]\nBASE and NEXT are commits; without NEXT, the working tree is measured.")
		flag.PrintDefaults()
		for _, t := range trials {
			fmt.Fprintf(flag.CommandLine.Output(), "workload %-20s %s: %s, %d documents\n", t.Name, t.engine, t.workload, t.docs)
		}
	}
	flag.Parse()
	o.base, o.next = flag.Arg(0), flag.Arg(1)
	if o.base == "" || flag.NArg() > 2 {
		flag.Usage()
		os.Exit(2)
	}
	if err := o.run(os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "pair:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	base, next     string // commits; next is "" for the working tree
	pairs          int
	only, dir, out string
	seed           uint64
}

// run builds the workers, measures, and prints the table to out and its
// progress to log.
func (o *options) run(out, log io.Writer) (err error) {
	only, err := regexp.Compile(o.only)
	if err != nil {
		return err
	}
	if o.pairs < 6 {
		return errors.New("at least 6 pairs: fewer have no interval of 95 %")
	}
	dir, err := os.MkdirTemp(o.dir, "jay-pair-")
	if err != nil {
		return err
	}
	removeOnInterrupt(dir)
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	m := &measurement{Seed: o.seed, dir: dir, log: log}
	for i, commit := range []string{o.base, o.next} {
		fmt.Fprintln(log, "build", orWorkingTree(commit))
		if m.programs[i], m.Commits[i], err = build(dir, fmt.Sprint("side", i), commit); err != nil {
			return err
		}
	}
	started := time.Now()
	for _, t := range trials {
		if only.MatchString(t.Name) {
			row, err := m.measure(t, o.pairs)
			if err != nil {
				return fmt.Errorf("%s: %w", t.Name, err)
			}
			fmt.Fprintln(log, row)
		}
	}
	if len(m.Rows) == 0 {
		return errors.New("no such workload: see -help")
	}
	fmt.Fprintf(log, "in %s\n", time.Since(started).Round(time.Second))
	fmt.Fprint(out, m.table())
	if o.out != "" {
		return m.save(o.out)
	}
	return nil
}

// removeOnInterrupt removes dir when the user ends the program. The workers
// end with it.
func removeOnInterrupt(dir string) {
	interrupt := make(chan os.Signal, 1)
	signal.Notify(interrupt, os.Interrupt)
	go func() {
		<-interrupt
		worker.KillAll()
		_ = os.RemoveAll(dir) // nothing more can be done about what stays
		os.Exit(130)
	}()
}
