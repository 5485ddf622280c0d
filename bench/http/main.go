// Command http measures Jay's server: documents put, got, inserted in bulk and queried over
// HTTP, with some numbers of connections, beside
//
//   - bare: a handler of net/http that reads the same requests and returns the same bytes, and
//     does nothing else;
//   - pocketbase: PocketBase with one collection of one JSON field, synchronous=FULL and its
//     request log off; an index over the queried member, as Jay has one;
//   - pocketbase, its defaults: synchronous=NORMAL, and the request log;
//   - embedded: as many of Jay's bulk writers as there are streams, in a new database, without a
//     server.
//
// Each server is a process of its own, on the same machine as the client: the client's
// processor time counts against all of them. The client writes and reads raw HTTP, on
// connections that stay open, one request at a time on each. The servers take turns, and the
// figures are medians over the rounds.
//
//	go run ./http [-documents N] [-rounds R] [-slice D] [-connections 1,32,256] [-dir DIR] [-smoke]
//
// With -against PROGRAM, which is this command built from another commit, that commit's server
// takes the place of PocketBase and the bare handler, twice: "base" and "base again". Each round
// gives a pair of samples. Printed are the median of base's rate ÷ Jay's (above 1 is slower, as in
// command pair) with its interval of 95 %, and the same of base again ÷ base, which is what the
// measurement finds where there is no difference.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay/bench/report"
	"github.com/jaydb/jay/bench/stats"
)

func main() {
	var o options
	writers := flag.Int("writers", 1, "for the program's own use: bulk writers")
	serve := flag.String("serve", "", "for the program's own use: the server to be")
	flag.IntVar(&o.documents, "documents", 20_000, "documents of each bulk insert")
	flag.IntVar(&o.rounds, "rounds", 3, "rounds")
	flag.DurationVar(&o.slice, "slice", time.Second, "how long requests of one kind are measured in a round")
	connections := flag.String("connections", "1,32,256", "numbers of connections")
	flag.StringVar(&o.dir, "dir", os.TempDir(), "where the databases are put, and removed: on the disk that is to be measured")
	flag.StringVar(&o.against, "against", "", "measure against this command, built from another commit, in place of the others; at least 6 rounds")
	smoke := flag.Bool("smoke", false, "a short run, to see that it works")
	flag.Parse()
	if *serve != "" {
		exit(serveAs(*serve, o.dir, *writers, o.documents))
	}
	if *smoke {
		o.documents, o.rounds, o.slice, *connections = 300, 1, 30*time.Millisecond, "1,4"
	}
	for text := range strings.SplitSeq(*connections, ",") {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > o.documents {
			exit(fmt.Errorf("-connections: %q is not from 1 to the documents", text))
		}
		o.connections = append(o.connections, n)
	}
	if o.rounds < 1 || o.slice <= 0 {
		exit(errors.New("-rounds and -slice must be more than nothing"))
	}
	if o.against != "" && o.rounds < 6 {
		exit(errors.New("-against: at least 6 rounds: fewer have no interval of 95 %"))
	}
	exit(o.run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "http:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// options are the command line.
type options struct {
	documents, rounds int
	slice             time.Duration
	connections       []int
	dir, against      string
}

// servers are what is measured, as programs, names and kinds. The first is Jay.
func (o *options) servers() ([][3]string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	if o.against != "" {
		return [][3]string{{self, "jay", "jay"}, {o.against, "base", "jay"}, {o.against, "base again", "jay"}}, nil
	}
	all := [][3]string{{self, "jay", "jay"}}
	for _, kind := range []string{"bare", "pocketbase", "pocketbase, its defaults"} {
		all = append(all, [3]string{self, kind, kind})
	}
	return all, nil
}

// cell names what is measured.
type cell struct {
	what        string
	connections int
	server      string
}

// figures are what was measured in the rounds.
type figures struct {
	rates   []float64
	latency stats.Latency
}

func (o *options) run() (err error) {
	machine, err := report.ThisMachine(o.dir)
	if err != nil {
		return err
	}
	fmt.Println(machine.String())
	root, err := os.MkdirTemp(o.dir, "jay-http-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(root)) }()

	var targets []*target
	defer func() {
		for _, t := range targets {
			err = errors.Join(err, t.stop())
		}
	}()
	servers, err := o.servers()
	if err != nil {
		return err
	}
	for _, s := range servers {
		t, err := startTarget(s[0], s[1], s[2], filepath.Join(root, strconv.Itoa(len(targets))))
		if err != nil {
			return fmt.Errorf("%s: %w", s[1], err)
		}
		targets = append(targets, t)
		// The bare handler returns what Jay has replied.
		if err := t.prepare(targets[0]); err != nil {
			return fmt.Errorf("%s: %w", t.name, err)
		}
	}
	fmt.Printf("%d rounds of %v, %d documents of %d bytes in a bulk insert\nload average before: %s\n\n", o.rounds, o.slice, o.documents, len(document(0)), load())

	ctx := context.Background()
	all := make(map[cell]*figures)
	at := func(c cell) *figures {
		if all[c] == nil {
			all[c] = new(figures)
		}
		return all[c]
	}
	for r := range o.rounds {
		for _, n := range o.connections {
			if o.against == "" {
				rate, err := embedded(filepath.Join(root, "embedded"), min(n, maxStreams), o.documents)
				if err != nil {
					return fmt.Errorf("embedded: %w", err)
				}
				f := at(cell{"bulk insert", n, "embedded"})
				f.rates = append(f.rates, rate)
			}
			for i := range targets {
				t := targets[(i+r)%len(targets)]
				rate, err := t.bulk(ctx, n, o.documents)
				if err != nil {
					return fmt.Errorf("%s: bulk insert: %w", t.name, err)
				}
				f := at(cell{"bulk insert", n, t.name})
				f.rates = append(f.rates, rate)
			}
			for _, what := range []string{"PUT", "GET", "query"} {
				for i := range targets {
					t := targets[(i+r)%len(targets)]
					f := at(cell{what, n, t.name})
					rate, err := t.measure(ctx, what, n, o.slice, &f.latency)
					if err != nil {
						return fmt.Errorf("%s: %s: %w", t.name, what, err)
					}
					f.rates = append(f.rates, rate)
				}
			}
		}
	}
	o.print(all, targets)
	if o.against != "" {
		o.printPairs(all)
	}
	fmt.Printf("\nload average after: %s\n", load())
	return nil
}

// print prints a table for each kind of request, and the ratios that have targets.
func (o *options) print(all map[cell]*figures, targets []*target) {
	for _, what := range []string{"PUT", "GET", "query", "bulk insert"} {
		unit := "requests/s"
		if what == "bulk insert" {
			unit = "documents/s"
		}
		fmt.Printf("| %s, %s | connections | per second | p50 | p99 | Jay is |\n|---|---|---|---|---|---|\n", what, unit)
		for _, n := range o.connections {
			jay := stats.Median(all[cell{what, n, "jay"}].rates)
			for _, t := range targets {
				f := all[cell{what, n, t.name}]
				p50, p99 := "", ""
				if p := f.latency.Percentiles(); p.Count > 0 {
					p50, p99 = fmt.Sprintf("%.0f µs", p.P50), fmt.Sprintf("%.0f µs", p.P99)
				}
				fmt.Printf("| %s | %d | %.0f | %s | %s | %.2f× |\n", t.name, n, stats.Median(f.rates), p50, p99, jay/stats.Median(f.rates))
			}
			if f := all[cell{what, n, "embedded"}]; f != nil {
				fmt.Printf("| embedded, bulk writers: | %d | %.0f | | | %.2f× |\n", min(n, maxStreams), stats.Median(f.rates), jay/stats.Median(f.rates))
			}
		}
		fmt.Println()
	}
	for _, t := range targets {
		fmt.Printf("- %s: %d MiB of memory at most\n", t.name, t.peak()>>20)
	}
}

// printPairs prints the ratios of the rounds.
func (o *options) printPairs(all map[cell]*figures) {
	fmt.Printf("\n| %d pairs | connections | base's rate ÷ jay's | base again ÷ base |\n|---|---|---|---|\n", o.rounds)
	for _, what := range []string{"PUT", "GET", "query", "bulk insert"} {
		for _, n := range o.connections {
			rates := func(server string) []float64 { return all[cell{what, n, server}].rates }
			fmt.Printf("| %s | %d | %s | %s |\n", what, n, ratio(rates("base"), rates("jay")), ratio(rates("base again"), rates("base")))
		}
	}
}

// ratio prints the median of a[i] ÷ b[i] and its interval.
func ratio(a, b []float64) string {
	i := stats.IntervalOf(stats.Ratios(a, b), 0.95)
	return fmt.Sprintf("%.3f (%.3f–%.3f)", i.Median, i.Low, i.High)
}

// load returns the load average, where the system says it.
func load() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(text))
}
