// Command newest measures pages of the newest documents beside pages of the oldest.
//
//	go run ./newest [-documents N] [-pairs P] [-smoke]
//
// A page is the first 100 answers of a query without an index: by ID, and by etag. A
// sample is 50 pages. The samples of a pair follow each other, in an order drawn anew.
// Printed are the medians, and of the ratios newest ÷ oldest the median with an interval
// that holds the true one with 95 % probability; and the same of oldest against oldest.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/stats"
)

func main() {
	n := flag.Int("documents", 1_000_000, "documents of 550 bytes")
	pairs := flag.Int("pairs", 30, "pairs of samples")
	smoke := flag.Bool("smoke", false, "few documents and pairs, to see that it works")
	flag.Parse()
	if *smoke {
		*n, *pairs = 2000, 6
	}
	if err := run(*n, *pairs); err != nil {
		fmt.Fprintln(os.Stderr, "newest:", err)
		os.Exit(1)
	}
}

const (
	page  = 100
	pages = 50 // of a sample
)

func run(n, pairs int) (err error) {
	dir, err := os.MkdirTemp("", "newest")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, &jay.Options{Durability: jay.Relaxed})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := load(db, n); err != nil {
		return err
	}

	fmt.Printf("%d documents, pages of %d, %d pairs\n\n| order | oldest first, µs | newest first, µs | newest ÷ oldest | oldest ÷ oldest |\n|---|---|---|---|---|\n", n, page, pairs)
	for _, field := range []string{"id()", "@metadata.@etag"} {
		var oldest, newest, ratios, same []float64
		for range pairs + 1 { // the first fills the caches
			var took [3]float64
			for _, i := range rand.Perm(3) {
				order := field
				if i == 1 {
					order = "-" + field
				}
				if took[i], err = sample(db, order); err != nil {
					return err
				}
			}
			oldest, newest = append(oldest, took[0]), append(newest, took[1])
			ratios, same = append(ratios, took[1]/took[0]), append(same, took[2]/took[0])
		}
		fmt.Printf("| %s | %.1f | %.1f | %s | %s |\n", field, stats.IntervalOf(oldest[1:], .95).Median, stats.IntervalOf(newest[1:], .95).Median, interval(ratios[1:]), interval(same[1:]))
	}
	return nil
}

func interval(ratios []float64) string {
	i := stats.IntervalOf(ratios, .95)
	return fmt.Sprintf("%.2f (%.2f–%.2f)", i.Median, i.Low, i.High)
}

// load puts n documents with rising IDs.
func load(db *jay.DB, n int) error {
	ctx := context.Background()
	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	text := strings.Repeat("x", 500)
	for i := range n {
		body, err := json.Marshal(map[string]any{"Number": i, "Text": text})
		if err != nil {
			return errors.Join(err, w.Close())
		}
		if _, err := w.Put(ctx, fmt.Sprintf("logs/%09d", i), body, jay.InCollection("Logs")); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// sample returns the microseconds of a page.
func sample(db *jay.DB, order string) (float64, error) {
	ctx := context.Background()
	q := db.Query("Logs").OrderBy(order).Limit(page)
	began := time.Now()
	for range pages {
		found, err := q.All(ctx)
		if err != nil {
			return 0, err
		}
		if len(found) != page {
			return 0, fmt.Errorf("%s: %d answers, not %d", q, len(found), page)
		}
	}
	return time.Since(began).Seconds() * 1e6 / pages, nil
}
