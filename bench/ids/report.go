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

	"github.com/jaydb/jay/bench/stats"
)

// report is the outcome of a run.
type report struct {
	Go         string            `json:"go"`
	System     string            `json:"system"`
	CPUs       int               `json:"cpus"`
	Versions   map[string]string `json:"versions"`
	IDs        int               `json:"ids"`
	Docs       int               `json:"docs"`
	Rounds     int               `json:"rounds"`
	Makers     []*makerLine      `json:"makers"`
	Identities *identityLine     `json:"identities"`
	Targets    []target          `json:"targets"`
}

// target is one demand: a figure of each round, its median held against a
// limit.
type target struct {
	Name    string    `json:"name"`
	Figures []float64 `json:"figures"`
	Limit   float64   `json:"limit"`
	AtLeast bool      `json:"atLeast,omitempty"` // else at most
	Met     bool      `json:"met"`
}

func newReport(n, docs, rounds int) *report {
	r := &report{
		Go: runtime.Version(), System: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU(),
		Versions: make(map[string]string), IDs: n, Docs: docs, Rounds: rounds,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			r.Versions[m.Path] = m.Version
		}
	}
	return r
}

// judge holds the figures against the targets. Ratios are of one round.
func (r *report) judge() {
	yardstick, hilo := r.maker(yardstickName), r.maker(hiloName)
	r.demand("HiLo ÷ yardstick, 1 goroutine", ratios(hilo.One, yardstick.One), 1.5, false)
	r.demand("HiLo ÷ yardstick, 2 goroutines", ratios(hilo.Two, yardstick.Two), 1.5, false)
	r.demand("HiLo allocations per ID", []float64{hilo.Allocs}, 1, false)
	r.demand("HiLo, 2 goroutines ÷ 1", ratios(hilo.Two, hilo.One), 1, false)
	for _, name := range []string{"rs/xid", "google/uuid v4", "google/uuid v7", "oklog/ulid", "segmentio/ksuid"} {
		other := r.maker(name)
		r.demand("HiLo ÷ "+name+", 1 goroutine", ratios(hilo.One, other.One), 1, false)
		r.demand("HiLo ÷ "+name+", 2 goroutines", ratios(hilo.Two, other.Two), 1, false)
	}
	r.demand("rate of identities ÷ own IDs", ratios(r.Identities.Identity, r.Identities.Semantic), 0.7, true)
}

func (r *report) maker(name string) *makerLine {
	for _, l := range r.Makers {
		if l.Name == name {
			return l
		}
	}
	panic("no maker " + name)
}

func (r *report) demand(name string, figures []float64, limit float64, atLeast bool) {
	m := stats.Median(figures)
	met := m <= limit
	if atLeast {
		met = m >= limit
	}
	r.Targets = append(r.Targets, target{name, figures, limit, atLeast, met})
}

// print writes the tables and returns the number of failed checks.
func (r *report) print(w io.Writer) (failed int) {
	fmt.Fprintf(w, "%s, %s, %d CPUs; %d IDs per maker and round, %d rounds.\n", r.Go, r.System, r.CPUs, r.IDs, r.Rounds)
	fmt.Fprintf(w, "Nanoseconds per ID, wall ÷ IDs: median (least–most). Badger's sequence: bandwidth %d, SyncWrites off, its default.\n\n", bandwidth)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "maker\t1 goroutine\t2 goroutines\tallocations\tchecked\t")
	for _, l := range r.Makers {
		fmt.Fprintf(table, "%s\t%s\t%s\t%g\t%d distinct\t\n", l.Name, spread("%.1f", l.One), spread("%.1f", l.Two), l.Allocs, l.IDs-l.Repeat)
	}
	table.Flush()

	fmt.Fprintf(w, "\nDurable documents per second, %d goroutines, %d documents per round.\n\n", writers, r.Docs/writers*writers)
	fmt.Fprintf(table, "own IDs\t%s\t\n", spread("%.0f", r.Identities.Semantic))
	fmt.Fprintf(table, "identities of one counter\t%s\t\n\n", spread("%.0f", r.Identities.Identity))
	table.Flush()

	met := 0
	for _, t := range r.Targets {
		sign, verdict := "≤", "missed"
		if t.AtLeast {
			sign = "≥"
		}
		if t.Met {
			met++
			verdict = "met"
		}
		fmt.Fprintf(table, "%s\t%s\t%s %.1f\t%s\t\n", t.Name, spread("%.2f", t.Figures), sign, t.Limit, verdict)
	}
	table.Flush()

	fmt.Fprintln(w)
	failures := slices.Clone(r.Identities.Failures)
	for _, l := range r.Makers {
		if l.Repeat > 0 {
			failures = append(failures, fmt.Sprintf("%s: %d of %d IDs repeated", l.Name, l.Repeat, l.IDs))
		}
	}
	for _, failure := range failures {
		fmt.Fprintf(w, "FAILED %s\n", failure)
	}
	fmt.Fprintf(w, "%d makers, %d targets met, %d missed, %d failed checks\n", len(r.Makers), met, len(r.Targets)-met, len(failures))
	return len(failures)
}

// ratios divides round by round.
func ratios(a, b []float64) []float64 {
	out := make([]float64, len(a))
	for i := range out {
		out[i] = a[i] / b[i]
	}
	return out
}

func spread(format string, values []float64) string {
	return fmt.Sprintf(format+" ("+format+"–"+format+")", stats.Median(values), slices.Min(values), slices.Max(values))
}

func (r *report) save(file string) error {
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
