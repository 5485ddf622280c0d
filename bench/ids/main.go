// Command ids measures what an ID costs: Jay's HiLo beside the least that such
// an ID can cost (an atomic addition and the text) and beside other makers of
// IDs, and identities beside documents that bring their own IDs.
//
//	go run ./ids [-ids N] [-docs N] [-rounds R] [-smoke] [-json FILE]
//
// All are measured in turns, in one process. It exits with status 1 if an ID
// came twice or a document is missing. A target that is missed does not fail
// the run.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
)

func main() {
	n := flag.Int("ids", 2_000_000, "ids per maker, round and number of goroutines")
	docs := flag.Int("docs", 20_000, "documents per side and round, for identities")
	rounds := flag.Int("rounds", 7, "rounds, each with everything in turn")
	smoke := flag.Bool("smoke", false, "few IDs and rounds, to see that it all works")
	jsonFile := flag.String("json", "", "write the figures to this file too")
	flag.Parse()
	if *smoke {
		*n, *docs, *rounds = 20_000, 640, 2
	}

	failed, err := run(*n, *docs, *rounds, *jsonFile)
	if err != nil {
		fmt.Fprintln(os.Stderr, "ids:", err)
		os.Exit(1)
	}
	if failed > 0 {
		os.Exit(1)
	}
}

// run measures everything, prints it and returns the number of failed checks.
func run(n, docs, rounds int, jsonFile string) (failed int, err error) {
	if n < 1000 || docs < writers || rounds < 1 {
		return 0, fmt.Errorf("at least 1000 ids, %d documents and 1 round", writers)
	}
	r := newReport(n, docs, rounds)
	if r.Makers, err = measureMakers(n, rounds); err != nil {
		return 0, err
	}
	if r.Identities, err = measureIdentities(docs, rounds); err != nil {
		return 0, fmt.Errorf("identities: %w", err)
	}
	r.judge()
	failed = r.print(os.Stdout)
	if jsonFile != "" {
		return failed, r.save(jsonFile)
	}
	return failed, nil
}

// withDir calls fn with a new directory on disk and removes it.
func withDir(fn func(dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "jay-ids-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return fn(dir)
}
