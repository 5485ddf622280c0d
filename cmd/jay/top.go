package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// topCommand shows the operations of a running program on its databases.
type topCommand struct {
	URL      string        `arg:"" help:"Where the program serves its metrics, such as http://127.0.0.1:8080/metrics."`
	Interval time.Duration `placeholder:"D" default:"1s" help:"How often to look. The default is 1s."`
	Count    int           `placeholder:"N" help:"End after N looks. The default is to go on until Ctrl-C."`
}

// Help is shown by jay top --help.
func (*topCommand) Help() string {
	return `Shows, again and again, how many operations a second a program does on its databases and how long they take, and what its disk and its cache do. Only one process has a database open, so that this asks the program: it must serve its metrics to Prometheus, with package jayprometheus (docs/watching.md). The operations are those of jayprometheus.Observer.

Example:

    jay top http://127.0.0.1:8080/metrics`
}

// Bounds of a sample.
const (
	maxMetricsBytes = 16 << 20
	metricsTimeout  = 10 * time.Second
)

// Run prints samples until ctx ends.
func (c *topCommand) Run(ctx context.Context, a *app) error {
	if c.Interval < 10*time.Millisecond || c.Count < 0 {
		return usageError{text: "--interval must be 10ms or more, and --count not below 0", command: a.command}
	}
	before, err := readMetrics(ctx, c.URL)
	if err != nil {
		return err
	}
	for n := 0; c.Count == 0 || n < c.Count; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.Interval):
		}
		after, err := readMetrics(ctx, c.URL)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if err := a.printTop(ratesOf(before, after)); err != nil {
			return err
		}
		before = after
	}
	return nil
}

// metrics has the metrics of one sample.
type metrics struct {
	at       time.Time
	families map[string]*dto.MetricFamily
}

// readMetrics asks a program for its metrics.
func readMetrics(ctx context.Context, url string) (metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return metrics{}, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return metrics{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return metrics{}, fmt.Errorf("%s answers %s", url, response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxMetricsBytes+1))
	if err != nil {
		return metrics{}, err
	}
	if len(text) > maxMetricsBytes {
		return metrics{}, fmt.Errorf("%s answers with more than %d bytes", url, maxMetricsBytes)
	}
	return parseMetrics(text, time.Now())
}

func parseMetrics(text []byte, at time.Time) (metrics, error) {
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return metrics{}, fmt.Errorf("these are no metrics of Prometheus: %w", err)
	}
	if families["jay_up"] == nil {
		return metrics{}, errors.New("there is no jay_up among the metrics: does the program register a jayprometheus.Collector?")
	}
	return metrics{at, families}, nil
}

// label returns the value of a label, or "".
func label(m *dto.Metric, name string) string {
	for _, l := range m.GetLabel() {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}

// numberOf returns the value of a gauge or a counter.
func numberOf(m *dto.Metric) float64 {
	return m.GetGauge().GetValue() + m.GetCounter().GetValue() + m.GetUntyped().GetValue()
}

// sum adds up the values of a metric of a database.
func (s metrics) sum(name, database string) (sum float64) {
	for _, m := range s.families[name].GetMetric() {
		if label(m, "database") == database {
			sum += numberOf(m)
		}
	}
	return sum
}

// topResult is what top shows of one database.
type topResult struct {
	Database    string         `json:"database"` // the label; "" without one
	Up          bool           `json:"up"`
	Failed      bool           `json:"failed"`
	DiskFull    bool           `json:"diskFull"`
	Stalled     bool           `json:"stalled"`
	Documents   int64          `json:"documents"`
	DiskBytes   int64          `json:"diskBytes"`
	LogBytes    int64          `json:"logBytes"`
	DebtBytes   int64          `json:"debtBytes"`
	Commits     float64        `json:"commitsPerSecond"`
	Syncs       float64        `json:"syncsPerSecond"`
	SyncSeconds float64        `json:"secondsPerSync"` // 0 without a sync
	Written     float64        `json:"writtenBytesPerSecond"`
	CacheHits   float64        `json:"cacheHits"` // share of the look-ups; -1 without one
	Stalls      float64        `json:"stalls"`    // since the last sample
	Operations  []topOperation `json:"operations"`
}

// topOperation is what top shows of one verb.
type topOperation struct {
	Verb      string  `json:"verb"`
	PerSecond float64 `json:"perSecond"`
	Errors    float64 `json:"errorsPerSecond"`
	Median    float64 `json:"p50Seconds"` // upper bound of its bucket
	P99       float64 `json:"p99Seconds"`
}

// ratesOf computes the rates between two samples.
func ratesOf(before, after metrics) []topResult {
	elapsed := after.at.Sub(before.at).Seconds()
	var all []topResult
	for _, m := range after.families["jay_up"].GetMetric() {
		db := label(m, "database")
		gauge := func(name string) float64 { return after.sum(name, db) }
		// A counter that has fallen belongs to a new process, which began at 0.
		grown := func(name string) float64 {
			was, is := before.sum(name, db), after.sum(name, db)
			if is < was {
				was = 0
			}
			return is - was
		}
		r := topResult{
			Database: db, Up: numberOf(m) == 1, Failed: gauge("jay_failed") == 1, DiskFull: gauge("jay_disk_full") == 1, Stalled: gauge("jay_stalled") == 1,
			Documents: int64(gauge("jay_documents")), DiskBytes: int64(gauge("jay_disk_bytes")), LogBytes: int64(gauge("jay_log_bytes")), DebtBytes: int64(gauge("jay_debt_bytes")),
			Commits: grown("jay_commits_total") / elapsed, Syncs: grown("jay_log_syncs_total") / elapsed, Written: grown("jay_written_bytes_total") / elapsed, Stalls: grown("jay_stalls_total"),
			CacheHits: -1, Operations: operationsOf(before, after, db, elapsed),
		}
		if n := grown("jay_log_syncs_total"); n > 0 {
			r.SyncSeconds = grown("jay_log_sync_seconds_total") / n
		}
		if hits, misses := grown("jay_cache_hits_total"), grown("jay_cache_misses_total"); hits+misses > 0 {
			r.CacheHits = hits / (hits + misses)
		}
		all = append(all, r)
	}
	slices.SortFunc(all, func(a, b topResult) int { return cmp.Compare(a.Database, b.Database) })
	return all
}

// histogram is the durations of a verb.
type histogram struct {
	count, errors float64
	buckets       map[float64]float64 // cumulative, by upper bound
}

// histogramsOf returns the durations by verb.
func (s metrics) histogramsOf(database string) map[string]*histogram {
	all := make(map[string]*histogram)
	for _, m := range s.families["jay_operation_duration_seconds"].GetMetric() {
		if label(m, "database") != database {
			continue
		}
		verb := label(m, "verb")
		h := all[verb]
		if h == nil {
			h = &histogram{buckets: make(map[float64]float64)}
			all[verb] = h
		}
		n := float64(m.GetHistogram().GetSampleCount())
		h.count += n
		if outcome := label(m, "outcome"); outcome != "ok" && outcome != "not_found" {
			h.errors += n
		}
		for _, b := range m.GetHistogram().GetBucket() {
			h.buckets[b.GetUpperBound()] += float64(b.GetCumulativeCount())
		}
	}
	return all
}

// operationsOf returns the verbs that occurred between two samples, the most frequent
// first.
func operationsOf(before, after metrics, database string, elapsed float64) []topOperation {
	out := []topOperation{}
	were := before.histogramsOf(database)
	for verb, is := range after.histogramsOf(database) {
		if was := were[verb]; was != nil && was.count <= is.count {
			is.count -= was.count
			is.errors -= was.errors
			for bound, n := range was.buckets {
				is.buckets[bound] -= n
			}
		}
		if is.count > 0 {
			out = append(out, topOperation{Verb: verb, PerSecond: is.count / elapsed, Errors: is.errors / elapsed, Median: is.quantile(.5), P99: is.quantile(.99)})
		}
	}
	slices.SortFunc(out, func(a, b topOperation) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(a.Verb, b.Verb))
	})
	return out
}

// quantile returns the upper bound of the bucket with the quantile q. If q is beyond
// the last bucket, it returns the bound of the last one.
func (h *histogram) quantile(q float64) float64 {
	last := 0.0
	for _, bound := range slices.Sorted(maps.Keys(h.buckets)) {
		if math.IsInf(bound, 1) {
			break
		}
		if last = bound; h.buckets[bound] >= q*h.count {
			break
		}
	}
	return last
}

// clearScreen clears the terminal.
const clearScreen = "\x1b[H\x1b[2J"

// printTop prints a sample, in place of the one before on a terminal.
func (a *app) printTop(all []topResult) error {
	if a.json {
		if err := a.printLine(all); err != nil {
			return err
		}
		return a.stdout.Flush()
	}
	var b strings.Builder
	if a.width > 0 {
		b.WriteString(clearScreen)
	}
	for i := range all {
		if i > 0 {
			b.WriteByte('\n')
		}
		all[i].write(&b, a.width)
	}
	if err := a.print(b.String()); err != nil {
		return err
	}
	return a.stdout.Flush()
}

func (r *topResult) write(b *strings.Builder, width int) {
	name := "The database"
	if r.Database != "" {
		name = r.Database
	}
	if !r.Up {
		fmt.Fprintf(b, "%s: closed, or does not answer\n", name)
		return
	}
	fmt.Fprintf(b, "%s: %s, %s on disk, log %s\n", name, count(r.Documents, "document"), size(r.DiskBytes), size(r.LogBytes))
	for _, warning := range []struct {
		on   bool
		text string
	}{
		{r.Failed, "The storage engine has failed: writes are refused until the database is opened again."},
		{r.DiskFull, "The disk is almost full: writes are refused."},
		{r.Stalled, "Writes wait for the disk."},
	} {
		if warning.on {
			fmt.Fprintf(b, "%s\n", warning.text)
		}
	}
	fmt.Fprintf(b, "Commits %s/s, syncs %s/s", rate(r.Commits), rate(r.Syncs))
	if r.SyncSeconds > 0 {
		fmt.Fprintf(b, " of %s", shortDuration(r.SyncSeconds))
	}
	fmt.Fprintf(b, ", written %s/s", size(int64(r.Written)))
	if r.CacheHits >= 0 {
		fmt.Fprintf(b, ", cache hits %.1f %%", 100*r.CacheHits)
	}
	if r.Stalls > 0 {
		fmt.Fprintf(b, ", stalls %.0f", r.Stalls)
	}
	if r.DebtBytes > 0 {
		fmt.Fprintf(b, ", to be merged %s", size(r.DebtBytes))
	}
	b.WriteByte('\n')
	if len(r.Operations) == 0 {
		b.WriteString("No operations.\n")
		return
	}
	t := newFigures("Operation", "per second", "errors/s", "median", "99 %")
	for _, o := range r.Operations {
		t.add(o.Verb, rate(o.PerSecond), rate(o.Errors), "≤ "+shortDuration(o.Median), "≤ "+shortDuration(o.P99))
	}
	fmt.Fprintf(b, "%s\n", t.render(width))
}

// shortDuration writes a time with two significant digits.
func shortDuration(seconds float64) string {
	for _, unit := range []struct {
		least float64
		name  string
	}{{1, "s"}, {1e-3, "ms"}, {1e-6, "µs"}} {
		if seconds >= unit.least {
			n := seconds / unit.least
			if n < 10 {
				return fmt.Sprintf("%.2g %s", n, unit.name)
			}
			return fmt.Sprintf("%.0f %s", n, unit.name)
		}
	}
	return fmt.Sprintf("%.0f ns", seconds*1e9)
}
