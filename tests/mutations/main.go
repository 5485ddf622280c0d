// Mutations changes the code, one change at a time, and runs the tests that should notice. A
// test that no change can make fail is worthless.
//
//	go run ./tests/mutations                 # every change, tests in full
//	go run ./tests/mutations -short          # every change, short tests
//	go run ./tests/mutations -both -run HiLo # what concerns HiLo, both ways
//	go run ./tests/mutations -by 'tests/simulation:TestSimulation$' # does this test see them, too?
//	go run ./tests/mutations -once -both     # the tests of a package are built once, with all changes in them
//
// It runs in the root of the repository, and writes nothing there: the go command gets changed
// files by -overlay. The changes are in the files rows_*.go; each names the tests that should
// catch it. Before the first change that a package's tests should catch, these tests must pass
// on the code as it is.
//
// It exits with 1 if a change is not caught, or could not be judged: it does not compile, its
// tests do not exist, fail without it or do not end. With -both, nine of ten are enough for short tests.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"
)

func main() {
	short := flag.Bool("short", false, "run short tests")
	both := flag.Bool("both", false, "run tests in full and, after that, short ones")
	run := flag.String("run", "", "make the changes whose names match this regular expression")
	asJSON := flag.Bool("json", false, "write the outcomes to standard output as JSON")
	by := flag.String("by", "", "run this test of a package instead, as DIRECTORY:REGEXP; a change that it does not catch is no failure of its tests")
	once := flag.Bool("once", false, "build the tests of a package once, with all changes in functions, each of which a variable of the environment makes")
	limit := flag.Duration("timeout", 10*time.Minute, "after which the tests of a change do not end")
	flag.Parse()

	forms := []form{full}
	switch {
	case *both:
		forms = []form{full, shortened}
	case *short:
		forms = []form{shortened}
	}
	wanted, err := regexp.Compile(*run)
	if err != nil || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "mutations: -run takes a regular expression, and there are no arguments:", err, flag.Args())
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	all := selected(mutations(), wanted)
	if *by != "" {
		dir, run, found := strings.Cut(*by, ":")
		if !found {
			fmt.Fprintf(os.Stderr, "mutations: -by %q is not a directory, a colon and a regular expression\n", *by)
			os.Exit(2)
		}
		for i := range all {
			all[i].tests, all[i].hangs = []tests{{dir, run}}, 0
		}
	}
	ok, err := campaign(ctx, all, forms, *limit, *asJSON, *once)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutations:", err)
	}
	if err != nil || !ok {
		stop()
		os.Exit(1)
	}
}

// selected returns the mutations whose names match, those with the same tests one after another.
func selected(all []mutation, wanted *regexp.Regexp) []mutation {
	all = slices.DeleteFunc(slices.Clone(all), func(m mutation) bool { return !wanted.MatchString(m.name) })
	order := make(map[string]int) // of packages
	for _, m := range all {
		if _, found := order[m.tests[0].dir]; !found {
			order[m.tests[0].dir] = len(order)
		}
	}
	slices.SortStableFunc(all, func(a, b mutation) int { return order[a.tests[0].dir] - order[b.tests[0].dir] })
	return all
}

// campaign makes mutations and prints what came of them. It reports whether all were caught.
func campaign(ctx context.Context, all []mutation, forms []form, limit time.Duration, asJSON, once bool) (ok bool, err error) {
	if len(all) == 0 {
		return false, fmt.Errorf("no change has such a name")
	}
	progress := io.Writer(os.Stdout)
	if asJSON {
		progress = os.Stderr
	}
	b, err := newBench(".", limit)
	if err != nil {
		return false, err
	}
	defer func() { err = firstError(err, b.close()) }()

	if once {
		if b.wovenOverlay, b.woven, err = b.weave(all); err != nil {
			return false, err
		}
	}
	var outcomes []outcome
	caught := make(map[form]int)
	for i, m := range all {
		for _, o := range b.try(ctx, m, forms, all) {
			if err := ctx.Err(); err != nil {
				return false, err
			}
			fmt.Fprintf(progress, "%3d of %d, %s, %s\n", i+1, len(all), o.Form, o)
			outcomes = append(outcomes, o)
			if o.Caught {
				caught[o.Form]++
			}
		}
	}
	ok = true
	for _, f := range forms {
		fmt.Fprintf(progress, "%s: %d of %d caught\n", f, caught[f], len(all))
		enough := len(all)
		if f == shortened && len(forms) > 1 {
			enough = (9*len(all) + 9) / 10 // they are samples of the others
		}
		ok = ok && caught[f] >= enough
	}
	if asJSON {
		e := json.NewEncoder(os.Stdout)
		e.SetIndent("", "\t")
		err = e.Encode(outcomes)
	}
	return ok, err
}

// firstError returns the first that is not nil.
func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}
