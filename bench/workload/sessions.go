package workload

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/bench/engine"
	"github.com/jaydb/jay/bench/fixture"
)

// The names of the rows that compare ways of writing to Jay.
const (
	RowBulkWriter = "bulk writer"
	RowSession    = "session, 100 new documents"
	RowPatch      = "patch increment"
)

// sessionDocs is the number of new documents that a session saves.
const sessionDocs = 100

// ExtraSave is what a session's SaveChanges takes of the whole.
const ExtraSave = "the save alone, per document"

// RowName names one of these rows, as in "patch increment, 32 goroutines, synced".
func RowName(row string, goroutines int, synced bool) string {
	if row != RowSession {
		row += ", " + plural(goroutines, "goroutine")
	}
	if synced {
		return row + ", synced"
	}
	return row + ", unsynced"
}

// addSessions lists the ways of writing to Jay other than single inserts and
// batches.
func (l *list) addSessions() {
	for _, synced := range []bool{false, true} {
		for _, goroutines := range []int{1, 2} {
			l.add(Workload{
				Name: RowName(RowBulkWriter, goroutines, synced), Group: "sessions", Writes: true, fresh: true, anyIDs: true,
				Subject: engine.JayBulk, Baseline: engine.Jay, engines: []string{engine.Raw, engine.Jay, engine.JayBulk},
				LatencyOf: "batch", Settings: engine.Settings{Synced: synced, Writers: goroutines}, round: bulkStream,
			})
		}
		l.add(Workload{
			Name: RowName(RowSession, 1, synced), Group: "sessions", Writes: true, fresh: true,
			Subject: engine.JaySession, Baseline: engine.Jay, engines: []string{engine.Raw, engine.Jay, engine.JayEncode, engine.JaySession},
			LatencyOf: "session", Settings: engine.Settings{Synced: synced}, round: saveSessions,
		})
		for _, goroutines := range []int{1, 32} {
			ops := max(256, l.p.Docs/4)
			if synced {
				ops = l.few()
			}
			l.add(Workload{
				Name: RowName(RowPatch, goroutines, synced), Group: "sessions", Writes: true, loaded: true, inPlace: true, Ops: ops,
				Subject: engine.JayPatch, Baseline: engine.JayPut, engines: []string{engine.Raw, engine.JayPut, engine.JayPatch},
				Settings: engine.Settings{Synced: synced, Writers: goroutines}, round: updateSingly,
			})
		}
	}
}

// bulkStream inserts Docs new documents in batches, by as many goroutines as
// there are writers, until all is on disk. All of it is on the clock: the
// making of the documents, because there is an engine that writes meanwhile,
// and a sync at the end, because it goes on writing until then.
func bulkStream(r *Run) error {
	var group sync.WaitGroup
	var next atomic.Int64
	size := r.batchSize()
	streams := make([]Run, r.w.Settings.Writers) // each with documents of its own
	errs := make([]error, len(streams))
	start := time.Now()
	for g := range streams {
		s := &streams[g]
		s.w, s.p, s.source, s.engine = r.w, r.p, r.source, r.engine
		group.Go(func() {
			for {
				first := int(next.Add(int64(size))) - size
				if first >= r.w.Docs {
					return
				}
				if errs[g] = s.bulk(first, min(size, r.w.Docs-first)); errs[g] != nil {
					return
				}
			}
		})
	}
	group.Wait()
	errs = append(errs, r.sync())
	r.result.Nanos, r.result.Ops = time.Since(start), r.w.Docs
	for g := range streams {
		r.latency.Merge(&streams[g].latency)
		r.logical.Add(streams[g].logical.Load())
	}
	r.expected.set(0, r.w.Docs, fixture.FirstRevision)
	return errors.Join(errs...)
}

// sync waits until all is on disk.
func (r *Run) sync() error {
	if s, ok := r.engine.(engine.Syncer); ok {
		return s.Sync()
	}
	return r.close()
}

// saveSessions inserts new documents, a hundred in each batch or session: as
// values by an engine that takes them, else as bytes.
func saveSessions(r *Run) error {
	saver, values := r.engine.(engine.Saver)
	var saving time.Duration
	for r.result.Ops < r.w.Docs && !r.over() {
		first, n := r.result.Ops, min(sessionDocs, r.w.Docs-r.result.Ops)
		docs, err := r.fill(n, func(i int) (engine.Key, int, int, error) {
			return newKey(first + i), first + i, fixture.FirstRevision, nil
		})
		if err != nil {
			return err
		}
		if !values {
			err = r.batch(func() error { return r.engine.Insert(docs) })
		} else {
			err = r.saveValues(saver, docs, &saving)
		}
		if err != nil {
			return err
		}
		r.expected.set(first, n, fixture.FirstRevision)
		r.result.Ops += n
	}
	if values {
		r.extra(ExtraSave, micros(saving)/float64(r.result.Ops))
	}
	return nil
}

// saveValues writes documents as values. Decoding them is off the clock.
func (r *Run) saveValues(saver engine.Saver, docs []engine.Doc, saving *time.Duration) error {
	orders := make([]*fixture.Order, len(docs))
	for i := range docs {
		orders[i] = &fixture.Order{}
		if err := json.Unmarshal(docs[i].Body, orders[i]); err != nil {
			return fmt.Errorf("%s: %w", docs[i].Text, err)
		}
	}
	return r.batch(func() error {
		save, err := saver.Begin(orders)
		if err != nil {
			return err
		}
		start := time.Now()
		err = save()
		*saving += time.Since(start)
		return err
	})
}
