package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/jaydb/jay/bench/stats"
)

// Text returns the whole report as tables.
func (r *Report) Text() string {
	var b strings.Builder
	r.writeHead(&b)
	for _, row := range r.Rows {
		row.write(&b)
		r.writeVerdicts(&b, row)
	}
	r.writeTargets(&b)
	fmt.Fprintln(&b, r.Totals())
	return b.String()
}

func (r *Report) writeHead(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", &r.Machine)
	for _, e := range r.Engines {
		fmt.Fprintf(w, "%s (%s %s)\n    synced: %s\n    unsynced: %s\n    %s\n", e.Name, e.Module, r.Machine.Versions[e.Module], e.Synced, e.Unsynced, e.Notes)
	}
	for name, why := range r.LeftOut {
		fmt.Fprintf(w, "%s is left out: %s\n", name, why)
	}
	fmt.Fprintf(w, "\nµs per operation: wall ÷ operations, the median (least–most) of the rounds. × NAME: the same round's ratio to that engine.\n")
	fmt.Fprintf(w, "p50 to max: single operations of all rounds, in µs. RSS: the most memory of the process, the harness's own %s included.\n", r.idle())
	fmt.Fprintf(w, "Written: what the process made the operating system write ÷ the bytes of IDs and documents.\n\n")
}

// idle is the memory of a worker before it opens its engine.
func (r *Report) idle() string {
	var all []float64
	for _, row := range r.Rows {
		for _, l := range row.Lines {
			all = append(all, float64(l.Summary.IdleRSS)/(1<<20))
		}
	}
	return stats.Short(stats.Median(all)) + " MiB"
}

// write writes the row as a table of its own.
func (r *Row) write(w io.Writer) {
	fmt.Fprintf(w, "%s\n", r.title())
	latency := ""
	if r.Workload.LatencyOf != "" {
		latency = " of a " + r.Workload.LatencyOf
	}
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "  engine\tµs/%s\t× %s\tp50%s\tp99\tp99.9\tmax\tRSS MiB\tdisk MiB\twritten\t\n", r.Workload.Unit, r.Workload.Baseline, latency)
	for _, l := range r.Lines {
		if l.Error != "" {
			fmt.Fprintf(t, "  %s\tfailed\t\t\t\t\t\t\t\t\t\n", l.Engine)
			continue
		}
		p := l.Summary.Latency
		fmt.Fprintf(t, "  %s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t\n", l.Engine, l.Spread, ratio(l),
			stats.Short(p.P50), stats.Short(p.P99), stats.Short(p.P999), stats.Short(p.Max),
			mebi(l.Summary.PeakRSS), mebi(l.Summary.DiskBytes), amplification(r, l))
	}
	t.Flush()
	r.writeExtra(w)
}

func (r *Row) title() string {
	size := "real ones"
	if r.Workload.Size > 0 {
		size = fmt.Sprintf("%d B", r.Workload.Size)
	}
	turns := "in turns"
	if r.Alone {
		turns = "one engine after another"
	}
	writes := ""
	if r.Workload.Writes {
		writes = ", " + r.Workload.Durability()
	}
	return fmt.Sprintf("%s: %d documents of %s%s; rounds: %d, %s", r.Workload.Name, r.Workload.Docs, size, writes, r.Workload.Rounds, turns)
}

// writeExtra writes the further figures of the row's engines.
func (r *Row) writeExtra(w io.Writer) {
	for _, l := range r.Lines {
		var names []string
		for name := range l.Extra {
			names = append(names, name)
		}
		slices.Sort(names)
		for _, name := range names {
			fmt.Fprintf(w, "  %s: %s: %s µs\n", l.Engine, name, stats.SpreadOf(l.Extra[name]))
		}
	}
}

func ratio(l *Line) string {
	if len(l.Ratios) == 0 {
		return "–"
	}
	return stats.SpreadOf(l.Ratios).String()
}

func mebi(bytes int64) string {
	if bytes == 0 {
		return "–"
	}
	return stats.Short(float64(bytes) / (1 << 20))
}

func amplification(r *Row, l *Line) string {
	if !r.Workload.Writes || l.WriteAmplification() == 0 {
		return "–"
	}
	return stats.Short(l.WriteAmplification())
}

// Brief returns the row as one line: what its subject took, and what was
// checked.
func (r *Row) Brief() string {
	state, checked := "ok", 0
	if len(r.Failures()) > 0 {
		state = "FAILED"
	}
	for _, l := range r.Lines {
		checked += l.Summary.Checked
	}
	figures := ""
	if l := r.Line(r.Workload.Subject); l != nil {
		figures = fmt.Sprintf("%s %s µs", l.Engine, stats.Short(l.Spread.Median))
		if len(l.Ratios) > 0 {
			figures += fmt.Sprintf(", %s × %s", stats.Short(stats.Median(l.Ratios)), r.Workload.Baseline)
		}
	}
	return fmt.Sprintf("%-6s  %-42s  %d engines, %6d documents checked  %s", state, r.Workload.Name, len(r.Lines), checked, figures)
}

// String is the last line of a run.
func (t Totals) String() string {
	var b strings.Builder
	for _, failure := range t.Failures {
		fmt.Fprintf(&b, "FAILED %s\n", failure)
	}
	fmt.Fprintf(&b, "%d workloads, %d runs, %d documents checked, %d failures", t.Workloads, t.Runs, t.Checked, len(t.Failures))
	return b.String()
}
