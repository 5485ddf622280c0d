// Command postgres measures Jay on PostgreSQL beside what a program could do there without Jay.
//
//	go run . [-pairs N] [-for D] [-processes 1,3] [-only REGEXP] [-smoke]
//
// It starts a PostgreSQL server, or uses the one of JAY_SQL_URL, in a schema for each of three contenders:
//
//   - jay: a database of package jay, with one index;
//   - client: the client alone. An insert looks whether the ID is there, and writes the document, its change, a counter and an entry of an index
//     in one SERIALIZABLE transaction of two round trips, as Jay does; reads read the same rows, a query by one statement that joins them and, in
//     two rows of their own, by two statements in a SERIALIZABLE transaction;
//   - jsonb: a table of jsonb with an index on a field, one statement for each operation: what a program without Jay would have.
//
// Each contender has so many worker processes, which all work at once in a sample. A pair is one sample of each contender, in an order drawn anew. Printed are the
// medians of the operations of all processes a second, and of the ratios of the pairs: how many times as long Jay takes, with an interval that
// holds the true ratio with 95 % probability, whatever the distribution of the times.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/jaydb/jay/internal/pgtest"

	"github.com/jaydb/jay/bench/stats"
)

func main() {
	if name := os.Getenv(workerEnv); name != "" {
		if err := work(name, os.Getenv(urlEnv), os.Getenv(tagEnv)); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		return
	}
	var o options
	flag.IntVar(&o.pairs, "pairs", 20, "pairs of samples of each row: at least 6, for an interval of 95 %")
	flag.DurationVar(&o.during, "for", 500*time.Millisecond, "how long a sample takes")
	flag.IntVar(&o.documents, "documents", 10_000, "documents that are read")
	processes := flag.String("processes", "1,3", "numbers of processes, with commas")
	only := flag.String("only", "", "measure only the rows whose name matches this regular expression")
	smoke := flag.Bool("smoke", false, "short samples, to see that it works")
	flag.Parse()
	if *smoke {
		o.pairs, o.during, o.documents = 1, 50*time.Millisecond, 500
	}
	var err error
	if o.only, err = regexp.Compile(*only); err == nil {
		for _, text := range strings.Split(*processes, ",") {
			var n int
			if n, err = strconv.Atoi(text); err != nil || n < 1 || n > 16 {
				err = fmt.Errorf("-processes %q: want numbers from 1 to 16", *processes)
				break
			}
			o.processes = append(o.processes, n)
		}
	}
	if err == nil && o.pairs < 6 && !*smoke {
		err = errors.New("at least 6 pairs: fewer have no interval of 95 %")
	}
	if err == nil {
		err = o.run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "postgres:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	pairs     int
	during    time.Duration
	documents int
	processes []int
	only      *regexp.Regexp
}

// rows are what is measured.
var rows = []struct {
	name       string
	operation  operation
	goroutines int // of each process
}{
	{"durable insert, 1 goroutine", insert, 1},
	{"durable insert, 32 goroutines", insert, 32},
	{"durable insert, 128 goroutines", insert, 128},
	{"get, 1 goroutine", get, 1},
	{"get, 16 goroutines", get, 16},
	{"hot get, zipfian, 16 goroutines", hotGet, 16},
	{"scan, by document", scan, 1},
	{"query by an index, 10 documents", query, 1},
	{"query by an index, 16 goroutines", query, 16},
	{"the same reads in a transaction, 1 goroutine", view, 1},
	{"the same reads in a transaction, 16 goroutines", view, 16},
	{"bulk load, by document", bulk, 1},
}

func (o *options) run() (err error) {
	server, err := pgtest.Start()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.Stop()) }()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	fmt.Printf("%d pairs of %v, %d documents of about %d bytes, seed %d; ops/s of all processes\n\n", o.pairs, o.during, o.documents, len(body(0)), seed)
	fmt.Println("| row | processes | jay | client | jsonb | jay ÷ client | jay ÷ jsonb |\n|---|---:|---:|---:|---:|---|---|")
	for _, processes := range o.processes {
		if err := o.measure(server.URL(), processes, random); err != nil {
			return err
		}
	}
	return nil
}

// measure prints the rows of a number of processes, which have schemas of their own.
func (o *options) measure(url string, processes int, random *rand.Rand) (err error) {
	schema := fmt.Sprintf("bench%d_%d", os.Getpid(), processes)
	defer func() { err = errors.Join(err, dropSchemas(url, schema)) }()
	teams := make([]*team, len(contenders))
	for i, name := range contenders {
		if teams[i], err = startTeam(name, withSchema(url, schema+"_"+name), processes); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, teams[i].stop()) }()
		if _, err := teams[i].each(order{Operation: prepare, Documents: o.documents}); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, row := range rows {
		if !o.only.MatchString(row.name) {
			continue
		}
		perSecond := make([][]float64, len(contenders))
		for pair := range o.pairs + 1 { // the first fills caches
			for _, i := range random.Perm(len(contenders)) {
				ops, err := teams[i].each(order{Operation: row.operation, Goroutines: row.goroutines, During: o.during, Documents: o.documents, Seed: random.Uint64()})
				if err != nil {
					return fmt.Errorf("%s, %s: %w", row.name, contenders[i], err)
				}
				if pair > 0 {
					perSecond[i] = append(perSecond[i], ops)
				}
			}
		}
		fmt.Printf("| %s | %d | %.0f | %.0f | %.0f | %s | %s |\n", row.name, processes, stats.Median(perSecond[0]), stats.Median(perSecond[1]), stats.Median(perSecond[2]),
			ratio(perSecond[1], perSecond[0]), ratio(perSecond[2], perSecond[0]))
	}
	return nil
}

// ratio returns the median of the ratios of two contenders' samples, with its interval if there are enough of them.
func ratio(a, b []float64) string {
	i := stats.IntervalOf(stats.Ratios(a, b), 0.95)
	if i.Confidence == 0 {
		return fmt.Sprintf("%.2f", i.Median)
	}
	return fmt.Sprintf("%.2f (%.2f–%.2f)", i.Median, i.Low, i.High)
}
