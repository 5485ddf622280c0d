package workload

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
	"github.com/jaydb/jay/bench/stats"
)

// Result is what one round took.
type Result struct {
	Ops   int           `json:"ops"`
	Nanos time.Duration `json:"nanos"`
	// Extra are further figures of the round, in microseconds, by their names.
	Extra map[string]float64 `json:"extra,omitempty"`
}

// Summary is what a run came to, over all of its rounds.
type Summary struct {
	Latency stats.Percentiles `json:"latency"`
	// PeakRSS is the most memory that the process had in any round, and IdleRSS
	// what it had before it opened the engine. 0 where /proc is missing.
	PeakRSS int64 `json:"peakRSS"`
	IdleRSS int64 `json:"idleRSS"`
	// DiskBytes is what the closed store takes on disk.
	DiskBytes int64 `json:"diskBytes"`
	// LogicalBytes is the size of the documents written, IDs included, and
	// WrittenBytes what the process wrote to files for them until the store was
	// closed: pages of the operating system's cache that it made dirty.
	LogicalBytes int64 `json:"logicalBytes"`
	WrittenBytes int64 `json:"writtenBytes"`
	// Checked is the number of documents that were compared afterwards, and
	// Failures what was wrong with them.
	Checked  int      `json:"checked"`
	Failures []string `json:"failures,omitempty"`
}

// Run is one workload on one engine. Its methods are called in the order
// Start, Round any number of times, Finish, by one goroutine.
type Run struct {
	w      Workload
	p      Params
	maker  engine.Maker
	base   string // holds the store's directory, and copies of it
	source *fixture.Source
	engine engine.Engine // nil while closed
	number int           // of the round, from 0

	expected expected
	random   *rand.Rand
	order    []int // the documents in an order of their own
	docs     []engine.Doc
	arena    []byte
	asker    *asker        // of workloads that query
	building time.Duration // of the indexes, after the load

	// Of the round that runs.
	result Result
	// Of all rounds.
	latency stats.Latency
	logical atomic.Int64 // bytes of the documents written, IDs included
	summary Summary
}

// NewRun prepares to run w in the empty directory base.
func NewRun(w Workload, p Params, maker engine.Maker, base string) (*Run, error) {
	r := &Run{w: w, p: p, maker: maker, base: base, random: rand.New(rand.NewPCG(5, 6))}
	var err error
	if w.realDocs {
		r.source, err = fixture.NewRealSource(p.RealFile)
	} else {
		r.source, err = fixture.NewSource(w.Size, w.Docs)
	}
	if err == nil && w.inPlace {
		r.source = r.source.InPlace()
	}
	r.w.Settings.Dir = filepath.Join(base, "data")
	return r, err
}

// Start brings everything to where the first round begins. With reuse, the
// directory holds what an earlier process left there when it was killed.
func (r *Run) Start(reuse bool) error {
	debug.FreeOSMemory()
	r.summary.IdleRSS = residentBytes()
	if reuse {
		r.expected.set(0, r.w.Docs, fixture.FirstRevision)
		return r.keep()
	}
	if !r.w.loaded {
		return nil
	}
	if err := r.open(); err != nil {
		return err
	}
	if err := r.load(); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if r.w.Killed {
		return nil
	}
	start := time.Now()
	if err := r.createIndexes(); err != nil {
		return err
	}
	r.building = time.Since(start)
	r.logical.Store(0)
	r.latency = stats.Latency{}
	if r.w.closed {
		return errors.Join(r.close(), r.keep())
	}
	return r.settle()
}

// load loads the documents.
func (r *Run) load() error {
	if !r.w.rested || r.w.Docs <= shortLog {
		return r.bulk(0, r.w.Docs)
	}
	first := r.w.Docs - shortLog
	if err := r.bulk(0, first); err != nil {
		return err
	}
	if err := r.engine.Rest(); err != nil {
		return err
	}
	return r.bulk(first, shortLog)
}

// createIndexes makes the indexes if the workload has any.
func (r *Run) createIndexes() error {
	if !r.w.indexes {
		return nil
	}
	if err := r.engine.(engine.Querier).CreateIndexes(); err != nil {
		return fmt.Errorf("create indexes: %w", err)
	}
	return nil
}

// settle brings a loaded engine to rest, and warms its cache if the workload wants
// that.
func (r *Run) settle() error {
	if err := r.engine.Rest(); err != nil {
		return fmt.Errorf("rest: %w", err)
	}
	if r.w.warm {
		return r.engine.Scan("", func(func() string, []byte) error { return nil })
	}
	return nil
}

// keep makes what is in the data directory the template.
func (r *Run) keep() error { return os.Rename(r.w.Settings.Dir, r.template()) }

// template is where the state that each round begins with is kept.
func (r *Run) template() string { return filepath.Join(r.base, "template") }

// Round runs the next round.
func (r *Run) Round() (Result, error) {
	r.result = Result{}
	if r.w.fresh {
		if err := r.restart(); err != nil {
			return Result{}, err
		}
	}
	debug.FreeOSMemory()
	resetPeak()
	before := WrittenBytes()
	err := r.w.round(r)
	r.number++
	if err == nil && r.w.fresh {
		err = r.close()
	}
	r.summary.WrittenBytes += WrittenBytes() - before
	r.summary.PeakRSS = max(r.summary.PeakRSS, PeakBytes())
	if err != nil {
		return Result{}, err
	}
	if r.w.fresh {
		err = r.check()
	}
	return r.result, err
}

// restart gives the round an empty directory.
func (r *Run) restart() error {
	r.expected = expected{}
	if err := errors.Join(r.close(), os.RemoveAll(r.w.Settings.Dir)); err != nil {
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	return r.createIndexes()
}

func (r *Run) open() (err error) {
	if err := os.MkdirAll(r.w.Settings.Dir, 0o755); err != nil {
		return err
	}
	r.engine, err = r.maker.Open(r.w.Settings)
	if err != nil {
		r.engine = nil
		return fmt.Errorf("open: %w", err)
	}
	return nil
}

func (r *Run) close() error {
	if r.engine == nil {
		return nil
	}
	err := r.engine.Close()
	r.engine = nil
	if err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return nil
}

// Finish closes the engine, checks what it kept, and returns the summary.
func (r *Run) Finish() (Summary, error) {
	before := WrittenBytes()
	if err := r.close(); err != nil {
		return Summary{}, err
	}
	r.summary.WrittenBytes += WrittenBytes() - before
	if !r.w.fresh {
		if err := r.check(); err != nil {
			return Summary{}, err
		}
	}
	r.summary.LogicalBytes = r.logical.Load()
	r.summary.Latency = r.latency.Percentiles()
	return r.summary, nil
}

// check opens the closed store again and compares all its documents with the
// expected ones. Differences go into the summary.
func (r *Run) check() error {
	var err error
	if r.summary.DiskBytes, err = DiskBytes(r.w.Settings.Dir); err != nil {
		return err
	}
	if err := r.open(); err != nil {
		return err
	}
	checked, failure := r.expected.check(r.engine, r.source, !r.w.anyIDs)
	r.summary.Checked += checked
	if failure == nil && r.w.indexes && r.w.fresh {
		if failure = r.createIndexes(); failure == nil {
			failure = r.verifyIndexes(r.expected.totals().count)
		}
	}
	if failure != nil {
		r.summary.Failures = append(r.summary.Failures, failure.Error())
	}
	return r.close()
}

// timed adds to the round what fn takes.
func (r *Run) timed(fn func() error) error {
	start := time.Now()
	err := fn()
	r.result.Nanos += time.Since(start)
	return err
}

// over reports whether the round has taken as long as it may.
func (r *Run) over() bool { return r.result.Nanos > r.p.Limit }

// extra notes a further figure of the round, in microseconds.
func (r *Run) extra(name string, micros float64) {
	if r.result.Extra == nil {
		r.result.Extra = make(map[string]float64)
	}
	r.result.Extra[name] = micros
}
