package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/stats"
	"github.com/jaydb/jay/bench/worker"
	"github.com/jaydb/jay/bench/workload"
)

// trial is a workload, at a size at which a sample takes less than a second.
type trial struct {
	Name     string `json:"name"`
	engine   string
	workload string
	docs     int
	limit    time.Duration // of a round
	warm     int           // rounds before the sample
	rounds   int           // of the sample
}

// The names of workloads are those of the oldest commit that can be measured.
var trials = []trial{
	{Name: "durable insert x1", engine: engine.Jay, workload: "durable insert, 1 goroutine", docs: 100_000, limit: 400 * time.Millisecond, rounds: 1},
	{Name: "durable insert x8", engine: engine.Jay, workload: "durable insert, 8 goroutines", docs: 100_000, limit: 400 * time.Millisecond, rounds: 1},
	{Name: "durable insert x32", engine: engine.Jay, workload: "durable insert, 32 goroutines", docs: 200_000, limit: 400 * time.Millisecond, rounds: 1},
	{Name: "get", engine: engine.Jay, workload: "random get, in cache", docs: 20_000, limit: 400 * time.Millisecond, warm: 1, rounds: 3},
	{Name: "hot get", engine: engine.Jay, workload: "hot get, zipfian 0.99", docs: 20_000, limit: 400 * time.Millisecond, warm: 1, rounds: 3},
	{Name: "typed get", engine: engine.Jay, workload: "typed get", docs: 10_000, limit: 400 * time.Millisecond, warm: 1, rounds: 1},
	{Name: "scan", engine: engine.Jay, workload: "collection scan", docs: 20_000, limit: 3 * time.Second, warm: 1, rounds: 1},
	{Name: "indexed query", engine: engine.Jay, workload: workload.RowEqual, docs: 20_000, limit: 400 * time.Millisecond, warm: 1, rounds: 3},
	{Name: "filter", engine: engine.Jay, workload: workload.RowFilter, docs: 20_000, warm: 1, rounds: 2},
	{Name: "sort", engine: engine.Jay, workload: workload.RowSorted, docs: 20_000, warm: 1, rounds: 2},
	{Name: "groups", engine: engine.Jay, workload: workload.RowGroups, docs: 20_000, warm: 1, rounds: 2},
	{Name: "first count", engine: engine.Jay, workload: workload.RowFirst, docs: 100_000, rounds: 1},
	{Name: "bulk load", engine: engine.Jay, workload: "bulk load, unsynced", docs: 40_000, rounds: 1},
	{Name: "SaveChanges", engine: engine.JaySession, workload: workload.RowName(workload.RowSession, 1, true), docs: 10_000, limit: 400 * time.Millisecond, rounds: 1},
	{Name: "update", engine: engine.Jay, workload: "update, one by one, unsynced", docs: 40_000, limit: 400 * time.Millisecond, warm: 1, rounds: 2},
	{Name: "updates in batches", engine: engine.Jay, workload: "update, batches, in cache, unsynced", docs: 100_000, rounds: 2},
	{Name: "update x32", engine: engine.Jay, workload: "update, durable, 32 goroutines", docs: 100_000, limit: 400 * time.Millisecond, rounds: 1},
	{Name: "open", engine: engine.Jay, workload: "open after a clean close", docs: 20_000, warm: 1, rounds: 5},
}

// The samples of a pair.
const (
	ofBase = iota
	ofNext
	ofBaseAgain
	samples
)

// measurement is a run of the program.
type measurement struct {
	Commits [2]string `json:"commits"`
	Seed    uint64    `json:"seed"`
	Rows    []*row    `json:"rows"`

	programs [2]string
	dir      string
	log      io.Writer
	random   *rand.Rand
}

// row is what one workload came to.
type row struct {
	trial
	// Samples are the nanoseconds of an operation, by pairs: of the base, of the
	// other commit, of the base again. None is left out. CPU are those on a
	// processor, with what the round does off its clock.
	Samples [samples][]float64 `json:"samples"`
	CPU     [samples][]float64 `json:"cpu"`
	// Ratio is the other commit's time divided by the base's, Noise that of the
	// base against itself, CPURatio that of times on a processor: the machine's
	// other work disturbs it less.
	Ratio    stats.Interval `json:"ratio"`
	Noise    stats.Interval `json:"noise"`
	CPURatio stats.Interval `json:"cpuRatio"`
}

const confidence = 0.95

// measure takes the samples of one workload.
func (m *measurement) measure(t trial, pairs int) (*row, error) {
	if m.random == nil {
		m.random = rand.New(rand.NewPCG(m.Seed, 0))
	}
	r := &row{trial: t}
	for range pairs {
		for _, which := range m.random.Perm(samples) {
			nanos, cpu, err := m.sample(t, m.programs[which%2])
			if err != nil {
				return nil, err
			}
			r.Samples[which] = append(r.Samples[which], nanos)
			if cpu > 0 {
				r.CPU[which] = append(r.CPU[which], cpu)
			}
		}
	}
	r.Ratio = stats.IntervalOf(stats.Ratios(r.Samples[ofNext], r.Samples[ofBase]), confidence)
	r.Noise = stats.IntervalOf(stats.Ratios(r.Samples[ofBaseAgain], r.Samples[ofBase]), confidence)
	r.CPURatio = stats.IntervalOf(stats.Ratios(r.CPU[ofNext], r.CPU[ofBase]), confidence)
	m.Rows = append(m.Rows, r)
	return r, nil
}

// sample returns the nanoseconds of an operation, and those on a processor, by
// a process of its own.
func (m *measurement) sample(t trial, program string) (nanos, cpu float64, err error) {
	dir := filepath.Join(m.dir, "data")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	p, err := worker.Start(worker.Spec{
		Program: program, Engine: t.engine, Workload: t.workload, Dir: dir,
		Params: workload.Params{Docs: t.docs, Size: 550, Rounds: t.warm + t.rounds, Limit: t.limit},
	}, false)
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, p.Kill()) }()
	var ops int
	var took, before time.Duration
	for round := range t.warm + t.rounds {
		if round == t.warm {
			worker.FlushDisk()
			before = p.CPU()
		}
		result, err := p.Round()
		if err != nil {
			return 0, 0, err
		}
		if round >= t.warm {
			ops, took = ops+result.Ops, took+result.Nanos
		}
	}
	if ops == 0 || took == 0 {
		return 0, 0, fmt.Errorf("%d operations in %s", ops, took)
	}
	return float64(took) / float64(ops), float64(p.CPU()-before) / float64(ops), nil
}

// verdict says what the two intervals mean.
func (r *row) verdict() string {
	switch {
	case r.Ratio.Holds(1):
		return fmt.Sprintf("not slower: %+.1f %% at most", 100*(r.Ratio.High-1))
	case r.Ratio.High < 1:
		return "faster"
	case !r.Noise.Holds(1):
		return "disturbed: repeat"
	}
	return fmt.Sprintf("SLOWER by %.1f %% or more", 100*(r.Ratio.Low-1))
}

// cells are the columns of a row in the table.
func (r *row) cells() []string {
	micros := func(which int) string { return stats.Short(stats.Median(r.Samples[which]) / 1e3) }
	ratio := func(i stats.Interval) string { return fmt.Sprintf("%.3f (%.3f–%.3f)", i.Median, i.Low, i.High) }
	return []string{r.Name, micros(ofBase), micros(ofNext), ratio(r.Ratio), ratio(r.Noise), ratio(r.CPURatio), r.verdict()}
}

// String is the row in a line.
func (r *row) String() string { return strings.Join(r.cells(), "  ") }

// table is what is printed at the end.
func (m *measurement) table() string {
	var b strings.Builder
	fmt.Fprintf(&b, "base: %s\nnext: %s\nseed: %d, %d pairs, intervals of 95 %%\n\n", m.Commits[0], m.Commits[1], m.Seed, len(m.Rows[0].Samples[ofBase]))
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "workload\tbase µs\tnext µs\tnext ÷ base\tbase ÷ base\tCPU next ÷ base\tnext is")
	for _, r := range m.Rows {
		fmt.Fprintln(w, strings.Join(r.cells(), "\t"))
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

// save writes all samples to a file.
func (m *measurement) save(file string) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(file, append(text, '\n'), 0o644)
}
