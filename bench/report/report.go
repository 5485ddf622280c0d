// Package report keeps the outcome of a run and shows it: as tables, as JSON
// and as plots.
package report

import (
	"encoding/json"
	"os"
	"path/filepath"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/stats"
	"github.com/jaydb/jay/bench/workload"
)

// Report is the outcome of a run.
type Report struct {
	Machine Machine         `json:"machine"`
	Params  workload.Params `json:"params"`
	Engines []engine.Maker  `json:"engines"`
	// LeftOut says which engines did not take part, and why.
	LeftOut map[string]string `json:"leftOut,omitempty"`
	Rows    []*Row            `json:"rows"`
	Targets []Verdict         `json:"targets,omitempty"`
}

// Row is the outcome of one workload.
type Row struct {
	Workload workload.Workload `json:"workload"`
	// Alone says that the engines ran one after another, because all of their
	// data at once is too much for the memory, and not in turns.
	Alone bool    `json:"alone,omitempty"`
	Lines []*Line `json:"lines"`
}

// Line is the outcome of one workload on one engine.
type Line struct {
	Engine string `json:"engine"`
	// Micros are microseconds per operation, wall ÷ operations, by round.
	Micros []float64    `json:"micros"`
	Spread stats.Spread `json:"spread"`
	// Ratios are to the Micros of the row's baseline, round by round.
	Ratios []float64 `json:"ratios,omitempty"`
	// Extra are further figures, in microseconds, by round.
	Extra   map[string][]float64 `json:"extra,omitempty"`
	Ops     int                  `json:"ops"` // in all rounds
	Summary workload.Summary     `json:"summary"`
	// Error is why the engine didn't finish.
	Error string `json:"error,omitempty"`
}

// Add notes one round of the line.
func (l *Line) Add(r workload.Result) {
	l.Ops += r.Ops
	l.Micros = append(l.Micros, float64(r.Nanos)/1e3/float64(max(1, r.Ops)))
	for name, micros := range r.Extra {
		if l.Extra == nil {
			l.Extra = make(map[string][]float64)
		}
		l.Extra[name] = append(l.Extra[name], micros)
	}
}

// Fail notes why the engine didn't finish. Only the first reason counts; nil is
// none.
func (l *Line) Fail(err error) {
	if err != nil && l.Error == "" {
		l.Error = err.Error()
	}
}

// WriteAmplification is what was written ÷ what was to be written, 0 if unknown.
func (l *Line) WriteAmplification() float64 {
	if l.Summary.LogicalBytes == 0 {
		return 0
	}
	return float64(l.Summary.WrittenBytes) / float64(l.Summary.LogicalBytes)
}

// Finish computes what follows from the rounds.
func (r *Row) Finish() {
	baseline := r.Line(r.Workload.Baseline)
	for _, l := range r.Lines {
		l.Spread = stats.SpreadOf(l.Micros)
		if baseline != nil {
			l.Ratios = stats.Ratios(l.Micros, baseline.Micros)
		}
	}
}

// Line returns the line of an engine, nil if it has none that is complete.
func (r *Row) Line(engine string) *Line {
	for _, l := range r.Lines {
		if l.Engine == engine && l.Error == "" {
			return l
		}
	}
	return nil
}

// Failures lists all failed checks and errors of the row.
func (r *Row) Failures() (all []string) {
	for _, l := range r.Lines {
		if l.Error != "" {
			all = append(all, r.Workload.Name+": "+l.Engine+": "+l.Error)
		}
		for _, failure := range l.Summary.Failures {
			all = append(all, r.Workload.Name+": "+l.Engine+": check: "+failure)
		}
	}
	return all
}

// Totals are what a run came to.
type Totals struct {
	Workloads, Runs, Checked int
	Failures                 []string
}

// Totals adds everything up.
func (r *Report) Totals() (t Totals) {
	t.Workloads = len(r.Rows)
	for _, row := range r.Rows {
		t.Runs += len(row.Lines)
		t.Failures = append(t.Failures, row.Failures()...)
		for _, l := range row.Lines {
			t.Checked += l.Summary.Checked
		}
	}
	return t
}

// Save writes the report to dir: NAME.json, NAME.txt, and plots.
func (r *Report) Save(dir, name string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	text, err := json.MarshalIndent(r, "", "\t")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".json"), append(text, '\n'), 0o644); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, name+".txt"), []byte(r.Text()), 0o644); err != nil {
		return err
	}
	return r.Plot(dir)
}
