// Command house measures how the code is divided into rooms: packages, files, types and
// the arrows between them.
//
//	go run ./internal/lint/house          # a table for people
//	go run ./internal/lint/house -json    # the same for programs
//	go run ./internal/lint/house -draw    # draws the layers of docs/architecture.md anew
//
// It reads the code of all modules of the repository but the benchmarks, the examples and the
// long test suites, without their tests. Its own tests hold the limits that the rooms keep.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "house:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout, stderr io.Writer) error {
	flags := flag.NewFlagSet("house", flag.ContinueOnError)
	flags.SetOutput(stderr)
	asJSON := flags.Bool("json", false, "print JSON")
	draw := flags.Bool("draw", false, "draw the layers of docs/architecture.md anew")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 {
		return fmt.Errorf("%q is no argument: see -h", flags.Arg(0))
	}

	top, err := findTop()
	if err != nil {
		return err
	}
	h, err := load(top)
	if err != nil {
		return err
	}
	if *draw {
		return h.draw()
	}
	report, err := h.measure()
	if err != nil {
		return err
	}
	if *asJSON {
		e := json.NewEncoder(stdout)
		e.SetIndent("", "  ")
		return e.Encode(report)
	}
	return report.print(stdout)
}
