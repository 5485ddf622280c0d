// Package harness runs measurements, which are many to one command: it has the flags that they share, makes and removes their directory, says on
// what machine they ran, and gives their sides turns.
package harness

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/pprof"
	"strings"
	"time"

	"github.com/jaydb/jay/bench/report"
)

// Measurement is one measurement of the command.
type Measurement struct {
	Name  string
	About string // what it measures, in a line

	Rounds int           // how many there are, unless the flag says otherwise; 0 for a measurement without rounds
	Slice  time.Duration // how long one side is measured in a round, in the same way

	// New defines flags of the measurement's own. It returns what measures, and prints the results.
	New func(flags *flag.FlagSet) func(*Run) error
}

// Run is one run of a measurement.
type Run struct {
	Rounds int
	Slice  time.Duration
	Smoke  bool   // to see that it works: one round, a short slice, and little of whatever else there is
	Dir    string // an empty directory, which is removed at the end
}

// smokeSlice is how long a side is measured to see that it works.
const smokeSlice = 50 * time.Millisecond

// Turns calls measure for each side in each round. The side that begins is another one in each round.
func (r *Run) Turns(sides int, measure func(round, side int) error) error {
	for round := range r.Rounds {
		for i := range sides {
			if err := measure(round, (round+i)%sides); err != nil {
				return err
			}
		}
	}
	return nil
}

// Main runs the measurement that the first of args names, with the rest as its flags, or all of them after -smoke. It returns the status to exit
// with.
func Main(all []Measurement, args []string, errors io.Writer) int {
	if len(args) == 1 && args[0] == "-smoke" {
		for i := range all {
			fmt.Printf("\n%s\n", all[i].Name)
			if status := all[i].main(args, errors); status != 0 {
				return status
			}
		}
		return 0
	}
	for i := range all {
		if len(args) > 0 && args[0] == all[i].Name {
			return all[i].main(args[1:], errors)
		}
	}
	fmt.Fprint(errors, "usage: go run ./measure NAME [flags], or -smoke for a short run of each\n\n")
	for _, m := range all {
		fmt.Fprintf(errors, "  %-12s %s\n", m.Name, m.About)
	}
	return 2
}

func (m *Measurement) main(args []string, errors io.Writer) int {
	flags := flag.NewFlagSet(m.Name, flag.ContinueOnError)
	flags.SetOutput(errors)
	r := new(Run)
	if m.Rounds > 0 {
		flags.IntVar(&r.Rounds, "rounds", m.Rounds, "rounds, each with every side in turn")
	}
	if m.Slice > 0 {
		flags.DurationVar(&r.Slice, "slice", m.Slice, "how long a side is measured in a round")
	}
	parent := flags.String("dir", os.TempDir(), "where the files are put, and removed: on the disk that is to be measured")
	flags.BoolVar(&r.Smoke, "smoke", false, "a short run, to see that it works")
	profile := flags.String("profile", "", "file for a CPU profile of the whole run")
	measure := m.New(flags)
	switch err := flags.Parse(args); {
	case err == flag.ErrHelp:
		return 0
	case err != nil:
		return 2
	case flags.NArg() > 0:
		fmt.Fprintf(errors, "%s: it has flags only, not %q\n", m.Name, strings.Join(flags.Args(), " "))
		return 2
	case m.Rounds > 0 && r.Rounds < 1, m.Slice > 0 && r.Slice <= 0:
		fmt.Fprintf(errors, "%s: -rounds and -slice must be above 0\n", m.Name)
		return 2
	}
	if r.Smoke {
		r.Rounds, r.Slice = 1, smokeSlice
	}
	if err := r.do(*parent, *profile, measure); err != nil {
		fmt.Fprintf(errors, "%s: %v\n", m.Name, err)
		return 1
	}
	return 0
}

// do measures in a new directory.
func (r *Run) do(parent, profile string, measure func(*Run) error) (err error) {
	if r.Dir, err = os.MkdirTemp(parent, "jay-measure-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(r.Dir)) }()
	if profile != "" {
		f, err := os.Create(profile)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := pprof.StartCPUProfile(f); err != nil {
			return err
		}
		defer pprof.StopCPUProfile()
	}
	machine, err := report.ThisMachine(r.Dir)
	if err != nil {
		return err
	}
	fmt.Println(machine.String())
	fmt.Println()
	return measure(r)
}
