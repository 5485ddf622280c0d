// Package bombs measures how much one caller can slow down the others. One
// goroutine makes durable inserts while another sends patches, documents and
// queries that are built to use as many resources as possible. It prints the
// outcome and the duration of each, and the median and 99th percentile of the
// inserts with it and without it, in turns.
//
// For comparison it also runs harmless loads: a busy processor, garbage, and a
// write of the same size.
//
//	go run ./measure bombs [-rounds R] [-only REGEXP] [-smoke]
package bombs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"time"

	"github.com/jaydb/jay"

	"github.com/jaydb/jay/bench/harness"
	"github.com/jaydb/jay/bench/stats"
)

// Measurement is this one.
var Measurement = harness.Measurement{
	Name: "bombs", About: "how much one caller can slow down the others", Rounds: 20, Slice: 300 * time.Millisecond,
	New: func(flags *flag.FlagSet) func(*harness.Run) error {
		only := flags.String("only", "", "only the bombs whose name matches this regular expression")
		return func(r *harness.Run) error { return run(r, *only) }
	},
}

// bomb is one call that uses as many resources as possible.
type bomb struct {
	name  string
	set   func(ctx context.Context, db *jay.DB) error // once
	throw func(ctx context.Context, db *jay.DB) error
}

// between is the interval of the bombs, unless they take longer. A caller that is
// refused twenty times a second is a bomb; ten thousand calls a second are load.
const between = 50 * time.Millisecond

func run(r *harness.Run, only string) error {
	match, err := regexp.Compile(only)
	if err != nil {
		return err
	}
	fmt.Printf("%-44s %-10s %9s %9s  %s\n", "bomb", "came to", "ms", "MB", "inserts µs: p50, p99 without; p50, p99 beside it; ratio of p99, median of rounds")
	for _, b := range bombs() {
		if !match.MatchString(b.name) {
			continue
		}
		if err := measure(b, r.Rounds, r.Slice); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	return nil
}

func measure(b bomb, rounds int, slice time.Duration) error {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "bombs")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	if b.set != nil {
		if err := b.set(ctx, db); err != nil {
			return err
		}
	}

	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begin := time.Now()
	came := "done"
	if err := b.throw(ctx, db); err != nil {
		if came = "refused"; errors.Is(err, jay.ErrFailed) || errors.Is(err, jay.ErrUnknownOutcome) {
			return err
		}
	}
	took := time.Since(begin)
	runtime.ReadMemStats(&after)

	var quiet, loud stats.Latency
	var ratios []float64
	for range rounds {
		var q, l stats.Latency
		if err := inserts(ctx, db, &q, time.After(slice)); err != nil {
			return err
		}
		thrown := make(chan time.Time)
		go func() {
			for until := time.Now().Add(slice); time.Now().Before(until); {
				next := time.After(between)
				_ = b.throw(ctx, db) // as it came out above
				<-next
			}
			close(thrown)
		}()
		if err := inserts(ctx, db, &l, thrown); err != nil {
			return err
		}
		ratios = append(ratios, l.Percentiles().P99/q.Percentiles().P99)
		quiet.Merge(&q)
		loud.Merge(&l)
	}
	q, l, r := quiet.Percentiles(), loud.Percentiles(), stats.IntervalOf(ratios, 0.95)
	fmt.Printf("%-44s %-10s %9.1f %9.1f  %8.0f %8.0f  %8.0f %8.0f  %.2f (%.2f–%.2f)\n", b.name, came, float64(took.Microseconds())/1e3,
		float64(after.TotalAlloc-before.TotalAlloc)/1e6, q.P50, q.P99, l.P50, l.P99, r.Median, r.Low, r.High)
	return nil
}

// inserts inserts documents until end.
func inserts(ctx context.Context, db *jay.DB, l *stats.Latency, end <-chan time.Time) error {
	for {
		select {
		case <-end:
			return nil
		default:
		}
		begin := time.Now()
		if _, err := db.Store(ctx, "Small", json.RawMessage(`{"n":1}`)); err != nil {
			return err
		}
		l.Record(time.Since(begin))
	}
}

func bombs() []bomb {
	million := numbers(1_000_000)
	member := `{"a":"` + strings.Repeat("x", 31<<20) + `"}`
	many := `{"a":[` + strings.Repeat("1,", 15_000_000) + `1]}`
	objects := `{"a":[` + strings.TrimSuffix(strings.Repeat(`{"b":{"c":1}},`, 1_000_000), ",") + `]}`
	var removed []any
	for i := range 5000 {
		removed = append(removed, i*200)
	}
	patches := func(body string, edits func() []jay.PatchOption) (set, throw func(context.Context, *jay.DB) error) {
		set = func(ctx context.Context, db *jay.DB) error {
			_, err := db.Put(ctx, "big", json.RawMessage(body))
			return err
		}
		return set, func(ctx context.Context, db *jay.DB) error {
			_, err := db.Patch(ctx, "big", edits()...)
			return err
		}
	}
	jsonPatch := func(n int, operation func(i int) string) func() []jay.PatchOption {
		var b bytes.Buffer
		b.WriteByte('[')
		for i := range n {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(operation(i))
		}
		b.WriteByte(']')
		return func() []jay.PatchOption { return []jay.PatchOption{jay.JSONPatch(b.Bytes())} }
	}
	all := make([]bomb, 0, 14)
	add := func(name string, set, throw func(context.Context, *jay.DB) error) {
		all = append(all, bomb{name, set, throw})
	}
	// What any busy neighbour does to the inserts, without a call that is made for it.
	add("none: a processor that is busy", nil, func(context.Context, *jay.DB) error {
		for until := time.Now().Add(2 * between); time.Now().Before(until); {
		}
		return nil
	})
	add("none: garbage of encoding/json", nil, func(context.Context, *jay.DB) error {
		for until := time.Now().Add(2 * between); time.Now().Before(until); {
			var v any
			if err := json.Unmarshal([]byte(`{"a":[1,2,3,4,5,6,7,8,9,{"b":"c"}]}`), &v); err != nil {
				return err
			}
		}
		return nil
	})
	add("none: a Put of a million numbers", nil, func(ctx context.Context, db *jay.DB) error {
		_, err := db.Put(ctx, "large", json.RawMessage(`{"a":`+million+`}`))
		return err
	})
	add("none: a Put of 31 MB", nil, func(ctx context.Context, db *jay.DB) error {
		_, err := db.Put(ctx, "large", json.RawMessage(member))
		return err
	})

	set, throw := patches(`{"a":`+million+`}`, func() []jay.PatchOption { return []jay.PatchOption{jay.Remove("a", removed...)} })
	add("Remove of 5,000 values of a million", set, throw)
	set, throw = patches(member, jsonPatch(200, func(i int) string {
		return fmt.Sprintf(`{"op":"move","from":"/%s","path":"/%s"}`, []string{"a", "b"}[i%2], []string{"b", "a"}[i%2])
	}))
	add("200 moves of a member of 31 MB", set, throw)
	set, throw = patches(many, jsonPatch(200, func(int) string { return `{"op":"add","path":"/a/0","value":1}` }))
	add("200 elements in front of 15 million", set, throw)
	set, throw = patches(objects, func() []jay.PatchOption { return []jay.PatchOption{jay.Increment("a[].b.c", 1)} })
	add("Increment of a[].b.c in a million", set, throw)

	fields := make([]string, 8)
	for i := range fields {
		fields[i] = fmt.Sprintf("f%d[]", i)
	}
	product := make(map[string][]string)
	for i := range 8 {
		for j := range 3 {
			product[fmt.Sprintf("f%d", i)] = append(product[fmt.Sprintf("f%d", i)], strings.Repeat(fmt.Sprint(j), 500))
		}
	}
	productBody, _ := json.Marshal(product) // of texts
	add("14 KB under 17 indexes of 8 array fields", func(ctx context.Context, db *jay.DB) error {
		for i := range 17 {
			turned := append(append([]string(nil), fields[i%8:]...), fields[:i%8]...)
			if i >= 8 {
				turned[0] = "-" + turned[0]
			}
			if i == 16 {
				turned[1] = "-" + turned[1]
			}
			if err := db.EnsureIndex(ctx, "Wide", jay.Index{Name: fmt.Sprint("i", i), Fields: turned}); err != nil {
				return err
			}
		}
		return nil
	}, func(ctx context.Context, db *jay.DB) error {
		_, err := db.Put(ctx, "wide/1", productBody, jay.InCollection("Wide"))
		return err
	})
	add("an array of 15 million under an index", func(ctx context.Context, db *jay.DB) error {
		return db.EnsureIndex(ctx, "Long", jay.Index{Name: "a", Fields: []string{"a[]"}})
	}, func(ctx context.Context, db *jay.DB) error {
		_, err := db.Put(ctx, "long/1", json.RawMessage(many), jay.InCollection("Long"))
		return err
	})

	add("conditions 50,000 deep", nil, func(ctx context.Context, db *jay.DB) error {
		c := jay.Eq("a", 1)
		for range 50_000 {
			c = jay.And(c, jay.Eq("b", 2))
		}
		_, err := db.Query("Small").Where(c).Count(ctx)
		return err
	})
	pattern := strings.Repeat("(a|b)?", 150)
	add("1,000 regular expressions of 900 states", nil, func(ctx context.Context, db *jay.DB) error {
		all := make([]jay.Condition, 1000)
		for i := range all {
			all[i] = jay.Matches("n", pattern+fmt.Sprint(i))
		}
		_, err := db.Query("Small").Where(jay.Or(all...)).Count(ctx)
		return err
	})
	return all
}

func numbers(n int) string {
	var b strings.Builder
	b.WriteByte('[')
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprint(&b, i)
	}
	b.WriteByte(']')
	return b.String()
}
