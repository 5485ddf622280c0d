package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"text/tabwriter"
)

// report is the outcome of a run.
type report struct {
	Go     string `json:"go"`
	System string `json:"system"`
	CPUs   int    `json:"cpus"`
	Pebble string `json:"pebble"`
	Docs   int    `json:"docs"`
	Rounds int    `json:"rounds"`
	Lines  []line `json:"workloads"`
}

// line is the outcome of one workload: microseconds per document, by round.
type line struct {
	Name     string    `json:"name"`
	Docs     int       `json:"docs"`
	Raw      []float64 `json:"rawMicros"`
	Jay      []float64 `json:"jayMicros"`
	Target   float64   `json:"target,omitempty"`
	Later    float64   `json:"later,omitempty"`
	Failures []string  `json:"failures,omitempty"`
}

func newReport(docs, rounds int) *report {
	return &report{
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(),
		Pebble: pebbleVersion(), Docs: docs, Rounds: rounds,
	}
}

func pebbleVersion() string {
	info, _ := debug.ReadBuildInfo()
	for _, m := range info.Deps {
		if m.Path == "github.com/cockroachdb/pebble/v2" {
			return m.Version
		}
	}
	return "unknown"
}

// print writes the table and returns the number of failed checks.
func (r *report) print(w io.Writer) (failed int) {
	fmt.Fprintf(w, "%s, %s, %d CPUs, Pebble %s; %d documents of 550 bytes, %d rounds.\n", r.Go, r.System, r.CPUs, r.Pebble, r.Docs, r.Rounds)
	fmt.Fprintf(w, "Microseconds per document: median (least–most). Ratio: Jay's time to raw's in the same round.\n\n")

	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "workload\tdocs\traw µs\tjay µs\tratio\ttarget\t")
	for i := range r.Lines {
		l := &r.Lines[i]
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t\n", l.Name, l.Docs, spread(l.Raw), spread(l.Jay), spread(l.ratios()), l.verdict())
		failed += len(l.Failures)
	}
	table.Flush()

	fmt.Fprintln(w)
	for _, l := range r.Lines {
		for _, failure := range l.Failures {
			fmt.Fprintf(w, "FAILED %s: %s\n", l.Name, failure)
		}
	}
	fmt.Fprintf(w, "%d workloads, %d failed checks\n", len(r.Lines), failed)
	return failed
}

// ratios compares the two sides round by round.
func (l *line) ratios() []float64 {
	out := make([]float64, len(l.Raw))
	for i := range out {
		out[i] = l.Jay[i] / l.Raw[i]
	}
	return out
}

func (l *line) verdict() string {
	if l.Target == 0 {
		return ""
	}
	ratio, verdict := median(l.ratios()), "missed"
	switch {
	case ratio <= l.Later:
		verdict = "met, later's too"
	case ratio <= l.Target:
		verdict = "met"
	}
	return fmt.Sprintf("≤ %.1f, later %.1f: %s", l.Target, l.Later, verdict)
}

func spread(values []float64) string {
	return fmt.Sprintf("%.2f (%.2f–%.2f)", median(values), slices.Min(values), slices.Max(values))
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

func (r *report) save(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
