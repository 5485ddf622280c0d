package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/stats"
	"github.com/jaydb/jay/bench/workload"
)

// Verdict is a demand that Jay means to meet, and what it came to. All are
// figures that must not be above a limit. A missed one does not fail a run.
type Verdict struct {
	Issue int    `json:"issue"` // the one that asks for it
	Name  string `json:"name"`
	// Row is the name of the workload, "" if it isn't a single one.
	Row   string  `json:"row,omitempty"`
	Limit float64 `json:"limit"`
	// Measured reports whether the run has a figure for it, which is Value.
	Measured bool    `json:"measured"`
	Value    float64 `json:"value,omitempty"`
	Met      bool    `json:"met,omitempty"`
}

// String says how it went, in a word.
func (v *Verdict) String() string {
	switch {
	case !v.Measured:
		return "not measured"
	case v.Met:
		return "met"
	}
	return "missed"
}

// target is a demand of an issue on a row; value returns false if the run has
// no figures for it.
type target struct {
	issue int
	row   string
	what  string // is at most limit
	limit float64
	value func(r *Report, row string) (float64, bool)
}

func (t *target) name() string {
	if t.row == "" {
		return t.what
	}
	return t.row + ": " + t.what
}

var (
	peers      = []string{"bbolt", "badger", "badgerhold", "buntdb", "sqlite-modernc", "sqlite-mattn"}
	sqlites    = []string{"sqlite-modernc", "sqlite-mattn"}
	queryPeers = append([]string{"badgerhold"}, sqlites...)
)

const (
	rowBulk       = "bulk load, unsynced"
	rowBulkSynced = "bulk load, synced"
	rowDurable    = "durable insert, 32 goroutines"
	rowGet        = "random get, in cache"
	rowTyped      = "typed get"
	rowUnderLoad  = "durable insert under a bulk load"
)

// targets are those of the issues, all as times ÷ times: "ahead of X by 2×" is
// at most 0.5 × X. Those of IDs are in bench/ids.
var targets = slices.Concat(bulkWriterTargets(), sessionTargets(), patchTargets(), queryTargets(), []target{
	{6, rowBulk, "jay ÷ pebble", 1.5, jayBy(engine.Raw)},
	{6, rowBulkSynced, "jay ÷ pebble", 1.5, jayBy(engine.Raw)},
	{6, rowBulk, "jay ÷ best peer", 1, jayBy(peers...)},
	{6, rowBulkSynced, "jay ÷ best peer", 1, jayBy(peers...)},
	{6, workload.RowIndexed, "jay ÷ SQLite, badgerhold", 0.5, jayBy(queryPeers...)},
	{6, workload.RowIndexedSynced, "jay ÷ SQLite, badgerhold", 0.5, jayBy(queryPeers...)},
	{6, rowDurable, "jay ÷ pebble", 1 / 0.8, jayBy(engine.Raw)},
	{6, rowDurable, "jay ÷ bbolt, badger, SQLite", 0.2, jayBy("bbolt", "badger", "sqlite-modernc", "sqlite-mattn")},
	{6, rowDurable, "jay ÷ bbolt-tuned", 1, jayBy("bbolt-tuned")},
	{6, "durable insert, 1 goroutine", "jay ÷ pebble", 1 / 0.9, jayBy(engine.Raw)},
	{6, rowGet, "jay ÷ pebble", 1.3, jayBy(engine.Raw)},
	{6, rowGet, "jay ÷ badger, SQLite", 1, jayBy("badger", "sqlite-modernc", "sqlite-mattn")},
	{6, "hot get, zipfian 0.99", "jay ÷ bbolt", 1, jayBy("bbolt")},
	{6, "collection scan", "jay ÷ pebble", 1.5, jayBy(engine.Raw)},
	{6, rowTyped, "jay ÷ (JSON decoding + 1.2 × raw get)", 1, typedGet},
	{6, "update, batches, unsynced", "jay ÷ pebble", 2, jayBy(engine.Raw)},
	{6, "update, batches, in cache, unsynced", "jay ÷ pebble", 2, jayBy(engine.Raw)},
	{6, "update, one by one, unsynced", "jay ÷ pebble", 2, jayBy(engine.Raw)},
	{6, "open after a clean close", "jay ÷ bare Pebble on the same files", 1.5, byBare},
	{6, "open after kill -9", "jay ÷ bare Pebble on the same files", 1.5, byBare},
	{6, "", "growth, bulk load: most ÷ least documents", 1.5, growth(rowBulk)},
	{6, "", "growth, random get in cache: most ÷ least documents", 2, growth(rowGet)},
	{6, rowUnderLoad, "jay's p99 ÷ median", 10, latency(engine.Jay, func(p stats.Percentiles) float64 { return p.P99 / p.P50 })},
	{6, rowUnderLoad, "jay's longest, in seconds", 1, latency(engine.Jay, func(p stats.Percentiles) float64 { return p.Max / 1e6 })},
	{20, workload.RowBesideWriter, "jay-bulk's p99 ÷ median", 10, latency(engine.JayBulk, func(p stats.Percentiles) float64 { return p.P99 / p.P50 })},
	{20, "update, batches, in cache, unsynced", "jay ÷ pebble", 2.5, jayBy(engine.Raw)},
	{20, workload.RowEqual, "jay ÷ SQLite in C", 0.9, jayBy("sqlite-mattn")},
	{20, workload.RowTop, "jay ÷ SQLite in C", 0.9, jayBy("sqlite-mattn")},
	{20, workload.RowCount, "jay ÷ SQLite in C", 1, jayBy("sqlite-mattn")},
	{41, workload.RowAlone, "jay ÷ file", 1.05, jayBy(engine.FileLog)},
	{41, workload.RowAlone, "jay ÷ SQLite in C", 1, jayBy("sqlite-mattn")},
	{41, workload.RowFirst, "jay ÷ SQLite in C", 1, jayBy("sqlite-mattn")},
	{41, workload.RowFilter, "jay ÷ SQLite in C", 0.7, jayBy("sqlite-mattn")},
	{41, workload.RowSorted, "jay ÷ SQLite in C", 0.7, jayBy("sqlite-mattn")},
	{41, workload.RowGroups, "jay ÷ SQLite in C", 0.7, jayBy("sqlite-mattn")},
	{41, rowBulk, "jay ÷ pebble", 2, jayBy(engine.Raw)},
	{41, workload.RowIndexed, "jay ÷ SQLite in C", 0.6, jayBy("sqlite-mattn")},
	{41, "update, batches, in cache, unsynced", "jay ÷ pebble", 2.3, jayBy(engine.Raw)},
	{41, workload.RowEqual, "jay ÷ pebble", 1.15, jayBy(engine.Raw)},
	{41, workload.RowEqual, "jay ÷ SQLite in C", 0.95, jayBy("sqlite-mattn")},
	{41, workload.RowOpenShort, "jay, in milliseconds", 15, median(1e-3)},
})

// bulkWriterTargets ask that the bulk writer is as quick as the best batches.
func bulkWriterTargets() (all []target) {
	for _, synced := range []bool{false, true} {
		for _, goroutines := range []int{1, 2} {
			row := workload.RowName(workload.RowBulkWriter, goroutines, synced)
			all = append(all, target{4, row, "jay-bulk ÷ jay's batches of 1,000", 1.1, by(engine.JayBulk, engine.Jay)})
		}
	}
	return all
}

func sessionTargets() (all []target) {
	for _, synced := range []bool{false, true} {
		row := workload.RowName(workload.RowSession, 1, synced)
		all = append(all,
			target{4, row, "jay-session's SaveChanges ÷ one batch of bytes", 1.3, saveAlone},
			target{4, row, "jay-session, Store included, ÷ one batch of bytes", 1.3, by(engine.JaySession, engine.Jay)},
			target{4, row, "jay-session ÷ one batch, encoding included", 1.3, by(engine.JaySession, engine.JayEncode)})
	}
	return all
}

func patchTargets() (all []target) {
	for _, synced := range []bool{false, true} {
		for _, goroutines := range []int{1, 32} {
			row := workload.RowName(workload.RowPatch, goroutines, synced)
			all = append(all, target{4, row, "jay-patch ÷ jay-put", 2, by(engine.JayPatch, engine.JayPut)})
		}
	}
	return all
}

// queryTargets ask that Jay is ahead of every peer, and reads at most twice as
// long as bare Pebble.
func queryTargets() (all []target) {
	for _, row := range []string{workload.RowEqual, workload.RowTop, workload.RowCount, workload.RowFilter} {
		all = append(all,
			target{5, row, "jay ÷ pebble", 2, jayBy(engine.Raw)},
			target{5, row, "jay ÷ SQLite", 1, jayBy(sqlites...)},
			target{5, row, "jay ÷ badgerhold", 1, jayBy("badgerhold")})
	}
	for _, row := range []string{workload.RowIndexed, workload.RowIndexedSynced} {
		all = append(all, target{5, row, "jay ÷ SQLite, badgerhold", 1, jayBy(queryPeers...)})
	}
	return all
}

// Judge holds the figures against the targets.
func (r *Report) Judge() {
	r.Targets = nil
	for _, t := range targets {
		v := Verdict{Issue: t.issue, Name: t.name(), Row: t.row, Limit: t.limit}
		v.Value, v.Measured = t.value(r, t.row)
		v.Met = v.Measured && v.Value <= v.Limit
		r.Targets = append(r.Targets, v)
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

// jayBy is by for Jay itself.
func jayBy(others ...string) func(r *Report, row string) (float64, bool) {
	return by(engine.Jay, others...)
}

// by returns the subject's time ÷ that of the best of others, each the median
// of the rounds' ratios.
func by(subject string, others ...string) func(r *Report, row string) (float64, bool) {
	return func(r *Report, row string) (worst float64, found bool) {
		l := r.line(row, subject)
		for _, name := range others {
			if other := r.line(row, name); l != nil && other != nil {
				worst, found = max(worst, stats.Median(stats.Ratios(l.Micros, other.Micros))), true
			}
		}
		return worst, found
	}
}

// saveAlone holds what SaveChanges takes of a session against a batch of the
// same documents.
func saveAlone(r *Report, row string) (float64, bool) {
	session, batch := r.line(row, engine.JaySession), r.line(row, engine.Jay)
	if session == nil || batch == nil || len(session.Extra[workload.ExtraSave]) == 0 {
		return 0, false
	}
	return stats.Median(stats.Ratios(session.Extra[workload.ExtraSave], batch.Micros)), true
}

// typedGet holds typed reads against what they are made of.
func typedGet(r *Report, row string) (float64, bool) {
	jay, raw := r.line(row, engine.Jay), r.line(rowGet, engine.Raw)
	if jay == nil || raw == nil {
		return 0, false
	}
	return jay.Spread.Median / (stats.Median(jay.Extra[workload.ExtraDecode]) + 1.2*raw.Spread.Median), true
}

// byBare returns Jay's time ÷ bare Pebble's on Jay's own files.
func byBare(r *Report, row string) (float64, bool) {
	jay := r.line(row, engine.Jay)
	if jay == nil || len(jay.Extra[workload.ExtraBare]) == 0 {
		return 0, false
	}
	return stats.Median(stats.Ratios(jay.Micros, jay.Extra[workload.ExtraBare])), true
}

// latency returns a figure of the latencies of one of Jay's variants.
func latency(variant string, figure func(p stats.Percentiles) float64) func(r *Report, row string) (float64, bool) {
	return func(r *Report, row string) (float64, bool) {
		jay := r.line(row, variant)
		if jay == nil {
			return 0, false
		}
		return figure(jay.Summary.Latency), true
	}
}

// median returns Jay's median, each microsecond as so many units.
func median(unit float64) func(r *Report, row string) (float64, bool) {
	return func(r *Report, row string) (float64, bool) {
		jay := r.line(row, engine.Jay)
		if jay == nil {
			return 0, false
		}
		return unit * jay.Spread.Median, true
	}
}

// growth compares the workload with the most documents to the one with the
// fewest from 100,000 on.
func growth(name string) func(r *Report, row string) (float64, bool) {
	return func(r *Report, _ string) (float64, bool) {
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

// writeVerdicts writes what the targets of the row came to, below its table.
func (r *Report) writeVerdicts(w io.Writer, row *Row) {
	for _, v := range r.Targets {
		if v.Measured && v.Row == row.Workload.Name && row.Workload.Group != workload.GroupGrowth {
			fmt.Fprintf(w, "  %s: %s, at most %s\n", &v, strings.TrimPrefix(v.Name, v.Row+": ")+" = "+stats.Short(v.Value), stats.Short(v.Limit))
		}
	}
	fmt.Fprintln(w)
}

// TargetsText returns a table of all targets and what they came to.
func (r *Report) TargetsText() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n%d documents; rounds: %d\n\n", &r.Machine, r.Params.Docs, r.Params.Rounds)
	r.writeTargets(&b)
	return b.String()
}

func (r *Report) writeTargets(w io.Writer) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "issue\twork\tat most\tmeasured\t\t")
	for _, v := range r.Targets {
		value := "–"
		if v.Measured {
			value = stats.Short(v.Value)
		}
		fmt.Fprintf(t, "%d\t%s\t%s\t%s\t%s\t\n", v.Issue, v.Name, stats.Short(v.Limit), value, &v)
	}
	t.Flush()
	fmt.Fprintln(w)
}
