// Command plans compares the plan that is chosen for random queries with every other one that can answer them.
//
//	go run ./plans [-documents N] [-queries Q] [-repeats R] [-again R] [-spend D] [-allowance D] [-seed S] [-worst W] [-query TEXT] [-dir DIR] [-cpu] [-smoke]
//
// Each query is run as it is, once more as it is, without an index, and by each index that can answer it, in an order drawn anew in each round.
// Of the times of a plan the median counts: the least of several plans is the cheaper the more plans there are, and would make the chosen one look dear.
// A plan that takes more than twice as long as the chosen one is cut short. Printed is what share of the queries has which ratio of the chosen
// plan to the cheapest, the chosen one among them, and the queries with the greatest ratios.
//
// A few runs do not decide on a busy machine. A query of which either the chosen plan took more than 1.1 of the cheapest, or the two measures of the
// chosen plan differ by as much, is measured anew by -again rounds, and these count instead: those that looked well by chance as well as those
// that looked bad. Short ones are run more often, until a query has taken -spend, as a machine's other work is more of them.
//
// An interrupt ends the run after the query that is being measured, and the report is that of the queries until then.
//
// With -query only this query is measured, what stands after from Notes, and each plan is explained. With -dir the database is made in DIR, or used if it is there.
// With -cpu the time that the process has computed is compared, which other processes disturb less; but what several goroutines do at a time counts for each of them.
//
// A time below 100 µs cannot be told from another to a tenth of it: a chosen plan that takes at most the allowance longer than the cheapest counts as the cheapest. The
// second run as it is shows what is noise: the same ratio of the chosen plan to itself.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay"

	"github.com/jaydb/jay/bench/stats"
)

// config is what is measured.
type config struct {
	documents, queries, repeats, again, worst int
	seed                                      uint64
	allowance, spend                          time.Duration
	query, dir                                string
	cpu                                       bool
}

func main() {
	var c config
	flag.IntVar(&c.documents, "documents", 200_000, "documents of 400 bytes")
	flag.IntVar(&c.queries, "queries", 1000, "random queries")
	flag.IntVar(&c.repeats, "repeats", 5, "runs of each plan, of which the median counts")
	flag.IntVar(&c.again, "again", 25, "runs of each plan of a query that the first ones did not decide; 0 for none")
	flag.DurationVar(&c.spend, "spend", 400*time.Millisecond, "how long such a query is measured at least, by at most 20 times as many runs")
	flag.StringVar(&c.query, "query", "", "the only query to measure, as what stands after from Notes")
	flag.StringVar(&c.dir, "dir", "", "directory of the database, which is kept; made if it is not there (default a temporary one)")
	flag.BoolVar(&c.cpu, "cpu", false, "compare what the process has computed, not the time that has passed")
	flag.DurationVar(&c.allowance, "allowance", 10*time.Microsecond, "by how much the chosen plan may be slower and count as the cheapest")
	flag.IntVar(&c.worst, "worst", 10, "queries to show")
	flag.Uint64Var(&c.seed, "seed", 1, "of documents and queries")
	smoke := flag.Bool("smoke", false, "few documents and queries, to see that it works")
	flag.Parse()
	if *smoke {
		c.documents, c.queries, c.repeats, c.again, c.worst = 3000, 30, 1, 3, 2
	}
	if err := run(c); err != nil {
		fmt.Fprintln(os.Stderr, "plans:", err)
		os.Exit(1)
	}
}

var indexes = []jay.Index{
	{Name: "At", Fields: []string{"At"}},
	{Name: "Serial", Fields: []string{"Serial"}},
	{Name: "Status", Fields: []string{"Status", "-At"}},
	{Name: "Tags", Fields: []string{"Tags", "-At"}},
	{Name: "Company", Fields: []string{"Company", "Total"}},
	{Name: "Total", Fields: []string{"Total"}},
}

func run(c config) (err error) {
	dir := c.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "plans"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	db, err := jay.Open(dir, &jay.Options{Durability: jay.Relaxed})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	n, err := db.Query("Notes").Count(context.Background())
	if err != nil {
		return err
	}
	switch {
	case n == 0:
		if err := load(db, rand.New(rand.NewPCG(c.seed, 33)), c.documents); err != nil {
			return err
		}
	case n != int64(c.documents):
		return fmt.Errorf("%s has %d documents, and not %d", dir, n, c.documents)
	}
	m := measurer{db: db, now: func() (time.Duration, error) { return time.Since(began), nil }, patience: 1}
	if c.cpu {
		m.now, m.patience = stats.CPUTime, 10
	}
	if c.query != "" {
		return m.one(c)
	}

	stopped, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	r := rand.New(rand.NewPCG(c.seed, 34))
	var all []result
	undecided, told := 0, time.Now()
	for len(all) < c.queries && (stopped.Err() == nil || len(all) == 0) {
		res, err := m.measure(ask(r, c.documents), c.repeats, 0)
		if err == nil && c.again > 0 && max(res.ratio(c.allowance), res.noise(c.allowance)) > 1.1 {
			undecided++
			res, err = m.measure(res.text, c.again, c.spend)
		}
		if err != nil {
			return err
		}
		all = append(all, res)
		if time.Since(told) > 10*time.Second {
			told = time.Now()
			fmt.Fprintf(os.Stderr, "%d of %d queries, %d of them measured anew\n", len(all), c.queries, undecided)
		}
	}
	report(all, c, undecided)
	return nil
}

// began is a point in time.
var began = time.Now()

// measurer measures queries on a database.
type measurer struct {
	db  *jay.DB
	now func() (time.Duration, error) // of a clock

	// patience is how many times as long as by that clock a plan may take until it is cut short.
	patience time.Duration
}

// one measures one query, and explains its plans.
func (m measurer) one(c config) error {
	res, err := m.measure(c.query, max(c.repeats, c.again), c.spend)
	if err != nil {
		return err
	}
	res.print(c.allowance)
	for _, p := range append([]plan{{}}, res.others...) {
		by := ""
		if p.name != "" {
			by = "use " + p.name + " "
		}
		q, err := m.db.RQL("from Notes "+by+c.query, nil)
		if err != nil {
			return err
		}
		e, err := q.Explain(context.Background())
		if err != nil {
			return err
		}
		fmt.Printf("\n%s\n%v\n", cmp.Or(p.name, "chosen"), e)
	}
	return nil
}

// load stores documents and makes the indexes.
func load(db *jay.DB, r *rand.Rand, n int) error {
	ctx := context.Background()
	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	for i := range n {
		tags := []string{fmt.Sprintf("t%d", r.IntN(50))}
		if r.IntN(4) == 0 {
			tags = append(tags, fmt.Sprintf("t%d", r.IntN(50)))
		}
		body, err := json.Marshal(map[string]any{
			"At": r.IntN(n), "Serial": i, "Tags": tags, "Status": []string{"open", "paid", "paid", "paid", "late", "sent", "sent", "sent", "sent", "sent"}[r.IntN(10)],
			"Company": fmt.Sprintf("companies/%d", r.IntN(1000)), "Total": r.IntN(100_000), "Other": r.IntN(100),
			"Text": strings.Repeat(fmt.Sprintf("%x ", r.Int64()), 16),
		})
		if err != nil {
			return err
		}
		if _, err := w.Store(ctx, "Notes", body); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	if err := db.EnsureIndexes(ctx, "Notes", indexes); err != nil {
		return err
	}
	return db.Compact(ctx)
}

// ask makes a random query, as what stands behind from Notes.
func ask(r *rand.Rand, n int) string {
	one := func(list ...string) string { return list[r.IntN(len(list))] }
	// above is a bound that a share of the values is above: small shares come as often as large ones.
	above := func(most int) int {
		return most - int(float64(most)*[]float64{.0005, .002, .01, .03, .06, .1, .15, .25, .5, 1}[r.IntN(10)])
	}
	condition := func() string {
		switch r.IntN(9) {
		case 0:
			return fmt.Sprintf("At >= %d", above(n))
		case 1:
			lo := above(n)
			return fmt.Sprintf("At between %d and %d", lo/2, lo/2+n-lo)
		case 2:
			return fmt.Sprintf("Serial >= %d", above(n))
		case 3:
			return fmt.Sprintf("Status = '%s'", one("open", "paid", "late", "sent"))
		case 4:
			return fmt.Sprintf("Tags = 't%d'", r.IntN(50))
		case 5:
			return fmt.Sprintf("Company = 'companies/%d'", r.IntN(1000))
		case 6:
			return fmt.Sprintf("Total >= %d", above(100_000))
		case 7:
			return fmt.Sprintf("Other < %d", []int{1, 5, 50}[r.IntN(3)])
		default:
			return fmt.Sprintf("Status in ('%s', '%s')", one("open", "late"), one("paid", "sent"))
		}
	}
	var conditions []string
	for range 1 + r.IntN(3) {
		conditions = append(conditions, condition())
	}
	where := "where " + strings.Join(conditions, " and ")
	order := "order by " + one("At", "At desc", "Serial", "Serial desc", "Total", "Total desc")
	switch r.IntN(7) {
	case 0:
		return where
	case 1:
		return fmt.Sprintf("%s limit %d", where, 1+r.IntN(100))
	case 2, 3:
		return fmt.Sprintf("%s %s limit %d", where, order, 1+r.IntN(50))
	case 4:
		return fmt.Sprintf("group by %s %s select %s, count() as n, sum(Total) as total", "Status", where, "Status")
	case 5:
		return fmt.Sprintf("%s select Company, Total", where)
	}
	return fmt.Sprintf("%s select count() as n", where)
}

// result is how one query went.
type result struct {
	text   string
	chosen plan             // the median of all its runs
	halves [2]time.Duration // the medians of its runs as the chosen plan and as another
	others []plan           // those that were not cut short
}

type plan struct {
	name string
	took time.Duration
}

// ratio is that of the chosen plan to the cheapest, and 1 if it takes at most the allowance longer.
func (r result) ratio(allowance time.Duration) float64 {
	least := r.chosen.took
	for _, p := range r.others {
		least = min(least, p.took)
	}
	return ratio(r.chosen.took, least, allowance)
}

// noise is the ratio of the slower measure of the chosen plan to the faster one.
func (r result) noise(allowance time.Duration) float64 {
	return ratio(max(r.halves[0], r.halves[1]), min(r.halves[0], r.halves[1]), allowance)
}

func ratio(took, least, allowance time.Duration) float64 {
	if took <= least+allowance {
		return 1
	}
	return float64(took) / float64(least)
}

// measure runs a query by each plan, repeats times and as often as it takes to spend so long, by at most 20 times as many runs.
func (m measurer) measure(text string, repeats int, spend time.Duration) (res result, err error) {
	res = result{text: text}
	names := []string{"", again, "no index"}
	for _, ix := range indexes {
		names = append(names, "index '"+ix.Name+"'")
	}
	took := make(map[string][]time.Duration)
	var limit time.Duration // of the plans that were not chosen
	start := time.Now()
	for round := 0; round <= repeats || round <= 20*repeats && time.Since(start) < spend; round++ { // the first fills the caches, and finds out how long the chosen plan takes
		order := slices.Clone(names)
		if round > 0 {
			rand.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
		}
		for _, name := range order {
			before, err := m.now()
			if err != nil {
				return res, err
			}
			err = m.answer(name, text, limit)
			after, _ := m.now()
			now := after - before
			switch {
			case name != "" && name != again && (errors.Is(err, jay.ErrNoIndex) || errors.Is(err, context.DeadlineExceeded)):
				names = slices.DeleteFunc(names, func(n string) bool { return n == name })
				delete(took, name)
				continue
			case err != nil:
				return res, fmt.Errorf("%s by %q: %w", text, name, err)
			}
			if round == 0 {
				if name == "" {
					limit = m.patience * (2*now + 20*time.Millisecond)
				}
				continue
			}
			took[name] = append(took[name], now)
		}
	}
	for _, name := range names[2:] {
		res.others = append(res.others, plan{name, stats.Median(took[name])})
	}
	res.halves = [2]time.Duration{stats.Median(took[""]), stats.Median(took[again])}
	res.chosen = plan{"chosen", stats.Median(append(took[""], took[again]...))}
	return res, nil
}

// again is the name of the chosen plan where it is measured as another.
const again = "again"

// answer runs a query to its end, for no longer than limit if that is not 0.
func (m measurer) answer(by, text string, limit time.Duration) error {
	ctx := context.Background()
	if by == again {
		by = ""
	}
	if by != "" {
		by = "use " + by + " "
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limit)
		defer cancel()
	}
	q, err := m.db.RQL("from Notes "+by+text, nil)
	if err != nil {
		return err
	}
	for _, err := range q.Iter(ctx) {
		if err != nil {
			return err
		}
	}
	return nil
}

// print prints how a query went, in two lines.
func (r result) print(allowance time.Duration) {
	fmt.Printf("%.2f  from Notes %s\n      chosen %v (%v, %v)", r.ratio(allowance), r.text, r.chosen.took.Round(time.Microsecond), r.halves[0].Round(time.Microsecond), r.halves[1].Round(time.Microsecond))
	for _, p := range r.others {
		fmt.Printf(", %s %v", p.name, p.took.Round(time.Microsecond))
	}
	fmt.Println()
}

func report(all []result, c config, undecided int) {
	slices.SortFunc(all, func(a, b result) int { return cmp.Compare(b.ratio(c.allowance), a.ratio(c.allowance)) })
	share := func(bound float64, of func(result) float64) float64 {
		n := 0
		for _, r := range all {
			if of(r) <= bound {
				n++
			}
		}
		return 100 * float64(n) / float64(len(all))
	}
	fmt.Printf("%d queries on %d documents, seed %d, medians of %d runs, of %d queries of %d and more; up to %v longer counts as equal\n\n",
		len(all), c.documents, c.seed, c.repeats, undecided, c.again, c.allowance)
	fmt.Printf("| ratio | chosen ÷ cheapest | without the allowance | chosen ÷ itself |\n|---|---|---|---|\n")
	for _, bound := range []float64{1, 1.1, 1.25, 1.5, 2, 3, 5} {
		fmt.Printf("| at most %v | %.1f %% | %.1f %% | %.1f %% |\n", bound,
			share(bound, func(r result) float64 { return r.ratio(c.allowance) }), share(bound, func(r result) float64 { return r.ratio(0) }),
			share(bound, func(r result) float64 { return r.noise(c.allowance) }))
	}
	fmt.Printf("| greatest | %.2f | | |\n\n", all[0].ratio(c.allowance))
	for _, r := range all[:min(c.worst, len(all))] {
		r.print(c.allowance)
	}
}
