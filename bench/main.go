// Command bench measures Jay beside raw Pebble with the same options, in one
// run and in turns: the figures to read are the ratios, as the machine's own
// speed and noise touch both sides alike.
//
//	go run . [-docs N] [-rounds R] [-only TEXT] [-smoke] [-json FILE]
//
// It reads back what each workload wrote and exits with status 1 if anything
// is missing or changed. A target that is missed does not fail the run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"time"

	"github.com/jaydb/jay/bench/fixture"
)

func main() {
	docs := flag.Int("docs", 200_000, "documents per workload")
	rounds := flag.Int("rounds", 5, "rounds per workload, each on both sides in turn")
	only := flag.String("only", "", "run only the workloads whose name contains this")
	smoke := flag.Bool("smoke", false, "few documents and rounds, to see that it all works")
	jsonFile := flag.String("json", "", "write the figures to this file too")
	flag.Parse()
	if *smoke {
		*docs, *rounds = 4_000, 2
	}

	failed, err := run(os.Stdout, *docs, *rounds, *only, *jsonFile)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// run measures the workloads, prints the table and returns the number of
// failed checks.
func run(out *os.File, n, rounds int, only, jsonFile string) (failed int, err error) {
	if n < batchSize || rounds < 1 {
		return 0, fmt.Errorf("at least %d documents and 1 round", batchSize)
	}
	documents := fixture.NewDocuments(n)
	r := newReport(n, rounds)
	for _, w := range workloads(n) {
		if !strings.Contains(w.name, only) {
			continue
		}
		fmt.Fprintf(os.Stderr, "\r%-60s", w.name)
		line, err := measure(w, documents, rounds)
		if err != nil {
			return 0, fmt.Errorf("%s: %w", w.name, err)
		}
		r.Lines = append(r.Lines, line)
	}
	fmt.Fprintf(os.Stderr, "\r%60s\r", "")
	failed = r.print(out)
	if jsonFile != "" {
		return failed, r.save(jsonFile)
	}
	return failed, nil
}

// side is one of the two that are compared.
type side struct {
	name string
	open func(dir string, s settings) (engine, error)
}

var sides = []side{{"raw", openRaw}, {"jay", openJay}}

// measure runs the rounds of one workload: raw, jay, raw, jay, …
func measure(w workload, docs *fixture.Documents, rounds int) (line, error) {
	l := line{Name: w.name, Docs: w.docs, Target: w.target, Later: w.later}
	var err error
	if w.readOnly {
		err = measurePrepared(&w, docs, rounds, &l)
	} else {
		err = measureFresh(&w, docs, rounds, &l)
	}
	return l, err
}

// measureFresh gives each side of each round a new directory.
func measureFresh(w *workload, docs *fixture.Documents, rounds int, l *line) error {
	for range rounds {
		for _, s := range sides {
			err := withEngine(s, w, docs, func(e engine) error { return l.round(s, w, e, docs) })
			if err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
		}
	}
	return nil
}

// measurePrepared reads the same two databases in all rounds.
func measurePrepared(w *workload, docs *fixture.Documents, rounds int, l *line) error {
	return withEngine(sides[0], w, docs, func(first engine) error {
		return withEngine(sides[1], w, docs, func(second engine) error {
			for range rounds {
				for i, e := range []engine{first, second} {
					if err := l.round(sides[i], w, e, docs); err != nil {
						return fmt.Errorf("%s: %w", sides[i].name, err)
					}
				}
			}
			return nil
		})
	})
}

// withEngine calls fn with an engine prepared in a directory of its own.
func withEngine(s side, w *workload, docs *fixture.Documents, fn func(engine) error) (err error) {
	dir, err := os.MkdirTemp("", "jay-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	e, err := s.open(dir, w.settings)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if w.prepare != nil {
		if err := w.prepare(e, docs); err != nil {
			return err
		}
	}
	return fn(e)
}

// round times one side once and notes the figure.
func (l *line) round(s side, w *workload, e engine, docs *fixture.Documents) error {
	took, failure, err := w.timed(e, docs)
	if err != nil {
		return err
	}
	if failure != nil {
		l.Failures = append(l.Failures, fmt.Sprintf("%s: %v", s.name, failure))
	}
	micros := float64(took) / float64(time.Microsecond) / float64(w.docs)
	if s.name == "raw" {
		l.Raw = append(l.Raw, micros)
	} else {
		l.Jay = append(l.Jay, micros)
	}
	return nil
}

// collectGarbage keeps one round from paying for another's memory.
func collectGarbage() { debug.FreeOSMemory() }
