package report

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/stats"
	"github.com/jaydb/jay/bench/workload"
)

// Verdict is a demand that Jay means to meet, and what it came to. All are
// figures that must not be above a limit. A missed one does not fail a run.
type Verdict struct {
	Name  string  `json:"name"`
	Value float64 `json:"value"`
	Limit float64 `json:"limit"`
	Met   bool    `json:"met"`
}

// target is a demand; value returns false if the run has no figures for it.
type target struct {
	name  string
	limit float64
	value func(r *Report) (float64, bool)
}

var peers = []string{"bbolt", "badger", "badgerhold", "buntdb", "sqlite-modernc", "sqlite-mattn"}

const (
	rowBulk       = "bulk load, unsynced"
	rowBulkSynced = "bulk load, synced"
	rowGet        = "random get, in cache"
	rowHot        = "hot get, zipfian 0.99"
	rowTyped      = "typed get"
	rowUnderLoad  = "durable insert under a bulk load"
)

// targets are those of the issue that asks for this benchmark, as times ÷ times.
// Those of IDs are in bench/ids.
var targets = []target{
	{"bulk load, unsynced ÷ pebble", 1.5, timesOf(rowBulk, engine.Raw)},
	{"bulk load, synced ÷ pebble", 1.5, timesOf(rowBulkSynced, engine.Raw)},
	{"bulk load, unsynced ÷ best peer", 1, timesOf(rowBulk, peers...)},
	{"bulk load, synced ÷ best peer", 1, timesOf(rowBulkSynced, peers...)},
	{"durable insert, 1 goroutine ÷ pebble", 1 / 0.9, timesOf("durable insert, 1 goroutine", engine.Raw)},
	{"durable insert, 32 goroutines ÷ pebble", 1 / 0.8, timesOf("durable insert, 32 goroutines", engine.Raw)},
	{"durable insert, 32 goroutines ÷ bbolt, badger, SQLite", 0.2, timesOf("durable insert, 32 goroutines", "bbolt", "badger", "sqlite-modernc", "sqlite-mattn")},
	{"durable insert, 32 goroutines ÷ bbolt-tuned", 1, timesOf("durable insert, 32 goroutines", "bbolt-tuned")},
	{"random get, in cache ÷ pebble", 1.3, timesOf(rowGet, engine.Raw)},
	{"random get, in cache ÷ badger, SQLite", 1, timesOf(rowGet, "badger", "sqlite-modernc", "sqlite-mattn")},
	{"hot get ÷ bbolt", 1, timesOf(rowHot, "bbolt")},
	{"collection scan ÷ pebble", 1.5, timesOf("collection scan", engine.Raw)},
	{"typed get ÷ (JSON decoding + 1.2 × raw get)", 1, typedGet},
	{"update, batches, unsynced ÷ pebble", 2, timesOf("update, batches, unsynced", engine.Raw)},
	{"update, one by one, unsynced ÷ pebble", 2, timesOf("update, one by one, unsynced", engine.Raw)},
	{"open after a clean close ÷ bare Pebble on the same files", 1.5, timesBare("open after a clean close")},
	{"open after kill -9 ÷ bare Pebble on the same files", 1.5, timesBare("open after kill -9")},
	{"durable insert under a bulk load: p99 ÷ median", 10, underLoad(func(p stats.Percentiles) float64 { return p.P99 / p.P50 })},
	{"durable insert under a bulk load: longest, in seconds", 1, underLoad(func(p stats.Percentiles) float64 { return p.Max / 1e6 })},
	{"growth, bulk load: most ÷ least documents", 1.5, growth(rowBulk)},
	{"growth, random get in cache: most ÷ least documents", 2, growth(rowGet)},
}

// Judge holds the figures against the targets.
func (r *Report) Judge() {
	r.Targets = nil
	for _, t := range targets {
		if value, ok := t.value(r); ok {
			r.Targets = append(r.Targets, Verdict{t.name, value, t.limit, value <= t.limit})
		}
	}
}

// line returns what an engine did in a workload, nil if nothing.
func (r *Report) line(workload, engine string) *Line {
	for _, row := range r.Rows {
		if row.Workload.Name == workload {
			return row.Line(engine)
		}
	}
	return nil
}

// timesOf returns Jay's time ÷ that of the best of others, the median of the
// rounds' ratios.
func timesOf(workload string, others ...string) func(r *Report) (float64, bool) {
	return func(r *Report) (worst float64, found bool) {
		jay := r.line(workload, engine.Jay)
		for _, name := range others {
			if other := r.line(workload, name); jay != nil && other != nil {
				worst, found = max(worst, stats.Median(stats.Ratios(jay.Micros, other.Micros))), true
			}
		}
		return worst, found
	}
}

// typedGet holds typed reads against what they are made of.
func typedGet(r *Report) (float64, bool) {
	jay, raw := r.line(rowTyped, engine.Jay), r.line(rowGet, engine.Raw)
	if jay == nil || raw == nil {
		return 0, false
	}
	return jay.Spread.Median / (stats.Median(jay.Extra[workload.ExtraDecode]) + 1.2*raw.Spread.Median), true
}

// timesBare returns Jay's time ÷ bare Pebble's on Jay's own files.
func timesBare(row string) func(r *Report) (float64, bool) {
	return func(r *Report) (float64, bool) {
		jay := r.line(row, engine.Jay)
		if jay == nil || len(jay.Extra[workload.ExtraBare]) == 0 {
			return 0, false
		}
		return stats.Median(stats.Ratios(jay.Micros, jay.Extra[workload.ExtraBare])), true
	}
}

func underLoad(figure func(p stats.Percentiles) float64) func(r *Report) (float64, bool) {
	return func(r *Report) (float64, bool) {
		jay := r.line(rowUnderLoad, engine.Jay)
		if jay == nil {
			return 0, false
		}
		return figure(jay.Summary.Latency), true
	}
}

// growth compares the workload with the most documents to the one with the
// fewest from 100,000 on.
func growth(name string) func(r *Report) (float64, bool) {
	return func(r *Report) (float64, bool) {
		var least, most *Row
		for _, row := range r.Rows {
			if row.Workload.Group != workload.GroupGrowth || row.Workload.Name != name || row.Line(engine.Jay) == nil {
				continue
			}
			if docs := row.Workload.Docs; docs >= 100_000 && (least == nil || docs < least.Workload.Docs) {
				least = row
			}
			if most == nil || row.Workload.Docs > most.Workload.Docs {
				most = row
			}
		}
		if least == nil || least == most {
			return 0, false
		}
		return most.Line(engine.Jay).Spread.Median / least.Line(engine.Jay).Spread.Median, true
	}
}

func (r *Report) writeTargets(w io.Writer) {
	if len(r.Targets) == 0 {
		return
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "Jay's targets\tvalue\tat most\t\t")
	for _, v := range r.Targets {
		verdict := "missed"
		if v.Met {
			verdict = "met"
		}
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t\n", v.Name, stats.Short(v.Value), stats.Short(v.Limit), verdict)
	}
	t.Flush()
	fmt.Fprintln(w)
}
