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
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/term"

	"github.com/jaydb/jay"
)

// topCommand shows the operations of a running program on its databases.
type topCommand struct {
	URL      string        `arg:"" optional:"" help:"Where the program serves its metrics, such as http://127.0.0.1:8080/metrics. Without it, the database of --db or --url is looked into, which a program has open."`
	Interval time.Duration `placeholder:"D" default:"1s" help:"How often to look. The default is 1s."`
	Count    int           `placeholder:"N" help:"End after N looks. The default is to go on until Ctrl-C."`
}

// Help is shown by jay top --help.
func (*topCommand) Help() string {
	return `Shows, again and again, how many operations a second a program does on its databases and how long they take, which collections grow, what its disk and its cache do, and how much it uses of each share of its memory. Only one process has a database open, so that this asks the program: it must serve its metrics to Prometheus, with package jayprometheus (docs/watching.md). The operations are those of jayprometheus.Observer. Without an address it looks into the database of --db or --url, through the program that has it open: all of that but the operations, and whether the disk is full. When that program ends, it waits for the next one. jay serve has them at /metrics; one that asks for credentials takes --token or $JAY_TOKEN, or --url-cert with --url-key.

On a terminal q ends it.

Examples:

    jay top http://127.0.0.1:8080/metrics
    jay --db shop.jay top
    JAY_TOKEN=jay_… jay top --url https://jay.example:8443/databases/shop
    JAY_TOKEN=jay_… jay top https://jay.example:8443/metrics`
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
	if c.URL == "" {
		return c.look(ctx, a)
	}
	if a.looks != nil {
		return usageError{text: "top takes the address of metrics or --url, not both", command: a.command}
	}
	by, err := a.access.access(a.getenv)
	if err != nil {
		return err
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return usageError{text: fmt.Sprintf("the address of metrics is like http://127.0.0.1:8080/metrics, not %.200q", c.URL), command: a.command}
	}
	if err := by.check(u); err != nil {
		return err
	}
	return c.watch(ctx, a, func(ctx context.Context) (metrics, error) { return readMetrics(ctx, by, c.URL) })
}

// look watches the database through the program that has it open. When that ends, it waits for the next one.
func (c *topCommand) look(ctx context.Context, a *app) error {
	db, err := a.lookInto(nil)
	if err != nil {
		return err
	}
	err = c.watch(ctx, a, func(ctx context.Context) (metrics, error) {
		if db != nil {
			m, err := lookMetrics(ctx, db)
			if !errors.Is(err, jay.ErrUnavailable) {
				return m, err
			}
			err = db.Close()
			if db = nil; err != nil {
				return metrics{}, err
			}
		}
		again, err := a.lookInto(nil)
		if errors.Is(err, jay.ErrUnavailable) || errors.Is(err, jay.ErrNotFound) { // no program has it open, or the server has none of the name
			return noMetrics(), nil
		}
		if err != nil {
			return metrics{}, err
		}
		db = again
		return lookMetrics(ctx, db)
	})
	if db != nil {
		err = andThen(err, db.Close())
	}
	return err
}

// watch prints samples until ctx ends or q is typed.
func (c *topCommand) watch(ctx context.Context, a *app, read func(context.Context) (metrics, error)) (err error) {
	before, err := read(ctx)
	if err != nil {
		return err
	}
	ctx, restore, err := a.untilKey(ctx)
	if err != nil {
		return err
	}
	defer func() { err = andThen(err, restore()) }()
	for n := 0; c.Count == 0 || n < c.Count; n++ {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(c.Interval):
		}
		after, err := read(ctx)
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
func readMetrics(ctx context.Context, by access, address string) (metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, metricsTimeout)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return metrics{}, err
	}
	address = request.URL.Redacted() // for messages
	response, err := by.do(request)
	if err != nil {
		return metrics{}, fmt.Errorf("%s: %w", address, err)
	}
	defer response.Body.Close()
	switch {
	case response.StatusCode == http.StatusUnauthorized && by.token == "":
		return metrics{}, fmt.Errorf("%s answers %s: it asks for a token, which --token or $JAY_TOKEN gives", address, response.Status)
	case response.StatusCode != http.StatusOK:
		return metrics{}, fmt.Errorf("%s answers %s", address, response.Status)
	}
	text, err := io.ReadAll(io.LimitReader(response.Body, maxMetricsBytes+1))
	if err != nil {
		return metrics{}, err
	}
	if len(text) > maxMetricsBytes {
		return metrics{}, fmt.Errorf("%s answers with more than %d bytes", address, maxMetricsBytes)
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
		return metrics{}, errors.New("there is no jay_up among the metrics: the server has no database open, or the program registers no jayprometheus.Collector")
	}
	return metrics{at, families}, nil
}

// noMetrics returns the metrics of a database that no program has open.
func noMetrics() metrics {
	down := 0.0
	return metrics{time.Now(), map[string]*dto.MetricFamily{"jay_up": {Metric: []*dto.Metric{{Untyped: &dto.Untyped{Value: &down}}}}}}
}

// lookMetrics returns the figures of a database as the metrics of one.
func lookMetrics(ctx context.Context, db *jay.DB) (metrics, error) {
	s, err := db.Stats(ctx)
	if err != nil {
		return metrics{}, err
	}
	m := metrics{time.Now(), make(map[string]*dto.MetricFamily)}
	set := func(name string, value float64, labels ...*dto.LabelPair) {
		if m.families[name] == nil {
			m.families[name] = new(dto.MetricFamily)
		}
		m.families[name].Metric = append(m.families[name].Metric, &dto.Metric{Label: labels, Untyped: &dto.Untyped{Value: &value}})
	}
	flag := map[bool]float64{true: 1}
	e, collection, share := s.Engine, "collection", "share"
	set("jay_up", 1)
	set("jay_failed", flag[e.Failed])
	set("jay_stalled", flag[e.Stalled])
	set("jay_disk_bytes", float64(e.DiskBytes))
	set("jay_log_bytes", float64(e.LogBytes))
	set("jay_debt_bytes", float64(e.DebtBytes))
	set("jay_commits_total", float64(e.Commits))
	set("jay_log_syncs_total", float64(e.LogSyncs))
	set("jay_log_sync_seconds_total", e.LogSyncTime.Seconds())
	set("jay_written_bytes_total", float64(e.WrittenBytes))
	set("jay_stalls_total", float64(e.Stalls))
	set("jay_cache_hits_total", float64(e.CacheHits))
	set("jay_cache_misses_total", float64(e.CacheMisses))
	for _, c := range s.Collections {
		set("jay_documents", float64(c.Documents), &dto.LabelPair{Name: &collection, Value: &c.Name})
	}
	for _, one := range s.Memory.Shares {
		of := &dto.LabelPair{Name: &share, Value: &one.Name}
		set("jay_memory_share_bytes", float64(one.Bytes), of)
		set("jay_memory_share_used_bytes", float64(one.UsedBytes), of)
	}
	return m, nil
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

	Collections []topCollection `json:"collections"` // by name; the smallest ones are one, @others
	Memory      []topShare      `json:"memory"`      // the largest first; none of a program with an older Jay
}

// topShare is what top shows of a share of the memory.
type topShare struct {
	Share     string `json:"share"`
	Bytes     int64  `json:"bytes"` // that it may have
	UsedBytes int64  `json:"usedBytes"`
}

// topCollection is what top shows of one collection.
type topCollection struct {
	Collection string  `json:"collection"`
	Documents  int64   `json:"documents"`
	PerSecond  float64 `json:"documentsPerSecond"` // what it has grown by; below 0 if it has shrunk
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
			CacheHits: -1, Operations: operationsOf(before, after, db, elapsed), Collections: collectionsOf(before, after, db, elapsed), Memory: after.sharesOf(db),
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

// operationsOf returns the verbs that occurred between two samples, by name, so that a row
// keeps its place from one sample to the next.
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
	slices.SortFunc(out, func(a, b topOperation) int { return cmp.Compare(a.Verb, b.Verb) })
	return out
}

// collectionsOf returns the collections, by name.
func collectionsOf(before, after metrics, database string, elapsed float64) []topCollection {
	out := []topCollection{}
	were := before.documents(database)
	_, added := were[othersLabel]
	for name, n := range after.documents(database) {
		was, known := were[name]
		if !known && (len(were) == 0 || added || name == othersLabel) {
			was = n // it was there, in a database that was not open or among the others
		}
		out = append(out, topCollection{Collection: name, Documents: int64(n), PerSecond: (n - was) / elapsed})
	}
	slices.SortFunc(out, func(a, b topCollection) int { return cmp.Compare(a.Collection, b.Collection) })
	return out
}

// sharesOf returns the shares of the memory, the largest first.
func (s metrics) sharesOf(database string) []topShare {
	out := []topShare{}
	used := make(map[string]int64)
	for _, m := range s.families["jay_memory_share_used_bytes"].GetMetric() {
		if label(m, "database") == database {
			used[label(m, "share")] = int64(numberOf(m))
		}
	}
	for _, m := range s.families["jay_memory_share_bytes"].GetMetric() {
		if label(m, "database") == database {
			name := label(m, "share")
			out = append(out, topShare{name, int64(numberOf(m)), used[name]})
		}
	}
	slices.SortFunc(out, func(a, b topShare) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Share, b.Share)) })
	return out
}

// garbageShare is the share of the memory of which only Go's runtime knows how much is used.
const garbageShare = "garbage"

// writeMemory writes what is used of the shares of the memory, in one line.
func (r *topResult) writeMemory(b *strings.Builder) {
	var used, most int64
	var parts []string
	for _, s := range r.Memory {
		most += s.Bytes
		if s.Share == garbageShare {
			continue
		}
		used += s.UsedBytes
		parts = append(parts, fmt.Sprintf("%s %s of %s", s.Share, size(s.UsedBytes), size(s.Bytes)))
	}
	if len(parts) > 0 {
		fmt.Fprintf(b, "Memory %s of %s: %s\n", size(used), size(most), strings.Join(parts, ", "))
	}
}

// othersLabel is the collection by which jayprometheus adds up the smallest ones.
const othersLabel = "@others"

// documents returns the numbers of documents by collection.
func (s metrics) documents(database string) map[string]float64 {
	all := make(map[string]float64)
	for _, m := range s.families["jay_documents"].GetMetric() {
		if label(m, "database") == database {
			all[label(m, "collection")] = numberOf(m)
		}
	}
	return all
}

// shownCollections is how many collections people see.
const shownCollections = 8

// shown returns the collections that have changed most, and beside them the largest ones, by
// name.
func shown(all []topCollection) []topCollection {
	out := slices.Clone(all)
	slices.SortStableFunc(out, func(a, b topCollection) int {
		return cmp.Or(cmp.Compare(math.Abs(b.PerSecond), math.Abs(a.PerSecond)), cmp.Compare(b.Documents, a.Documents))
	})
	out = out[:min(len(out), shownCollections)]
	slices.SortFunc(out, func(a, b topCollection) int { return cmp.Compare(a.Collection, b.Collection) })
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

// untilKey returns a context that also ends when q is typed, if there is a terminal.
// restore gives the terminal back.
func (a *app) untilKey(ctx context.Context) (keyed context.Context, restore func() error, err error) {
	in, is := a.stdin.(*os.File)
	if !is || !a.isTerminal(in) || a.width == 0 {
		return ctx, func() error { return nil }, nil
	}
	state, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return ctx, nil, err
	}
	a.raw = true
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		defer cancel()
		awaitKey(in)
	}()
	return ctx, func() error {
		cancel()
		a.raw = false
		return term.Restore(int(in.Fd()), state)
	}, nil
}

// awaitKey reads what is typed until it is q, Ctrl-C or Ctrl-D, or the terminal is gone. A
// raw terminal makes no signal of Ctrl-C.
func awaitKey(typed io.Reader) {
	var key [16]byte
	for {
		n, err := typed.Read(key[:])
		if bytes.ContainsAny(key[:n], "qQ\x03\x04") || err != nil {
			return
		}
	}
}

// clear clears the terminal that stdout is.
func (a *app) clear() error {
	if err := a.stdout.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(a.output, "\x1b[H\x1b[2J") // past stdout, which writes escapes for people to see
	return err
}

// printTop prints a sample, in place of the one before on a terminal.
func (a *app) printTop(all []topResult) error {
	if a.json {
		if err := a.printLine(all); err != nil {
			return err
		}
		return a.stdout.Flush()
	}
	if a.width > 0 {
		if err := a.clear(); err != nil {
			return err
		}
	}
	var b strings.Builder
	for i := range all {
		if i > 0 {
			b.WriteByte('\n')
		}
		all[i].write(&b, a.width)
	}
	if a.raw {
		_, err := io.WriteString(a.output, strings.ReplaceAll(printable(b.String()), "\n", "\r\n"))
		return err
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
	r.writeMemory(b)
	if list := shown(r.Collections); len(list) > 0 {
		t := newFigures("Collection", "documents", "grows per second")
		for _, c := range list {
			sign := ""
			if c.PerSecond < 0 {
				sign = "−"
			}
			t.add(c.Collection, c.Documents, sign+rate(math.Abs(c.PerSecond)))
		}
		if more := len(r.Collections) - len(list); more > 0 {
			t.total(fmt.Sprintf("and %s more", thousands(int64(more))), "", "")
		}
		fmt.Fprintf(b, "%s\n", t.render(width))
	}
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
