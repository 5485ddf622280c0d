// Package expiry deletes documents that have expired, and gives a new version to those
// that are due for a refresh. The key space 't' has an entry for each, in the order of
// time; the write path keeps it up to date (internal/write, stage_expiry.go).
//
// A worker sleeps until the next instant in the agenda. It works in small transactions,
// each of which checks again that its entries are still due. After each it rests as long
// as the transaction took: so it uses at most half of the disk's throughput, and a writer
// that has waited for one transaction does not wait for the next. The worker ends when no
// entries are left, and the first commit of an entry starts it again.
//
// The documents of a database from an older Jay are visited once, in the background and
// in the order of IDs: see Build.
package expiry

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/internal/agenda"
	"github.com/jaydb/jay/internal/background"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// Bounds of the work. docs/limits.md has them. Variables for tests.
var (
	BatchDeletions = 128     // documents that a batch deletes
	BatchRefreshes = 32      // documents that a batch refreshes
	BatchBytes     = 1 << 20 // bytes of documents that a batch refreshes, about
	RoundBatches   = 16      // batches that share a scan and a sync
)

// LookInterval is the longest sleep of the worker while there are entries, as the clock
// may be set meanwhile. Pause is its shortest rest. Variables for tests.
var (
	LookInterval = 5 * time.Second
	Pause        = 20 * time.Millisecond
)

// retryAfter is the time until the worker retries a document with which it has failed,
// and maxFailed the number of such documents that it remembers.
const (
	retryAfter = time.Minute
	maxFailed  = 1024
)

// OnBatch, if it is set, is called before each transaction of a sweep. A variable for
// tests.
var OnBatch func(ctx context.Context)

// Sweeper does what is due in an open database. It is safe for concurrent use.
type Sweeper struct {
	env    *env.Env
	docs   *docs.Reader
	writer *write.Writer
	agenda *agenda.Agenda
	built  bool // Build had finished before Open

	workers *background.Group

	toggle sync.Mutex           // held while expiration or refresh is switched on or off
	one    sync.Mutex           // held during a round
	failed map[string]time.Time // when to retry, by key of the entry. Guarded by one.

	deleted   atomic.Int64
	refreshed atomic.Int64
}

// Open returns the Sweeper of a database. With again, Build visits all documents once
// more, as entries may have been lost.
func Open(e *env.Env, r *docs.Reader, w *write.Writer, again bool) (*Sweeper, error) {
	built, err := load(e, again)
	if err != nil {
		return nil, err
	}
	s := &Sweeper{env: e, docs: r, writer: w, agenda: w.Agenda, built: built, workers: background.NewGroup(), failed: make(map[string]time.Time)}
	if !knobs.NoSweeper {
		w.Agenda.Serve(func() { s.workers.Go(s.work) })
	}
	return s, nil
}

// Resume starts the background work, if there is any. The caller must call Stop.
func (s *Sweeper) Resume() error {
	it, err := s.env.Engine.Iterate([]byte{format.SpaceTimes}, []byte{format.SpaceTimes + 1})
	if err != nil {
		return err
	}
	any := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil {
		return err
	}
	if any || s.agenda.Shared {
		s.agenda.Wake()
	}
	s.resumeBuild()
	return nil
}

// Stop ends the workers and waits for them. None are started afterwards.
func (s *Sweeper) Stop() { s.workers.Stop() }

// Done returns the numbers of documents that were deleted and refreshed since Open.
func (s *Sweeper) Done() (deleted, refreshed int64) { return s.deleted.Load(), s.refreshed.Load() }

// work is the worker: it does what is due until no entries are left.
func (s *Sweeper) work() {
	ctx, ended := s.workers.Context(), false
	defer func() {
		if !ended { // the user's clock has called runtime.Goexit
			s.agenda.Leave()
		}
	}()
	var next time.Time // when the next entry is due, as far as is known; zero for now
	for ctx.Err() == nil {
		wait := LookInterval
		now, err := s.env.Clock()
		mine := true
		if err == nil && !next.After(now) {
			mine, err = s.env.Does(ctx, "expiry")
		}
		if err == nil && !mine { // another process does it
			s.sleep(ctx, LookInterval, Pause)
			continue
		}
		if err == nil && !next.After(now) {
			var more bool
			more, next, err = s.round(ctx, now, true)
			switch {
			case err != nil:
			case more:
				wait = 0
			case s.agenda.Shared: // others may add an entry at any time, and the worker does not hear of it
				if !next.IsZero() {
					wait = min(wait, next.Sub(now))
				}
				s.sleep(ctx, max(wait, Pause), Pause)
				next = time.Time{}
				continue
			case next.IsZero():
				if s.agenda.Leave() {
					ended = true
					return
				}
				wait = 0
			}
		}
		if errors.Is(err, storage.ErrFailed) {
			s.warn(ctx, "nothing is done that is due for documents, until the database is opened again", err)
			return
		}
		if err != nil {
			next = time.Time{}
			s.warn(ctx, "doing what is due for documents", err)
		} else if wait > 0 {
			wait = min(wait, next.Sub(now))
		}
		if !s.sleep(ctx, max(wait, Pause), Pause) {
			next = time.Time{} // woken: an earlier entry may have been committed
		}
	}
}

// sleep sleeps for d, or until the worker is woken, but at least for least. whole reports
// that it was not woken.
func (s *Sweeper) sleep(ctx context.Context, d, least time.Duration) (whole bool) {
	rest := time.NewTimer(least)
	defer rest.Stop()
	select {
	case <-rest.C:
	case <-ctx.Done():
		return true
	}
	whole = true
	if d -= least; d > 0 {
		wait := time.NewTimer(d)
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
			return true
		case <-s.agenda.Awaken():
			return false
		}
	}
	select {
	case <-s.agenda.Awaken():
		whole = false
	default:
	}
	return whole
}

func (s *Sweeper) warn(ctx context.Context, what string, err error) {
	if ctx.Err() == nil {
		s.env.Warn("jay: "+what, err)
	}
}

// round does what is due at now, at most RoundBatches batches, and syncs. With rests it
// rests after each transaction as long as that took. It returns whether more is due, and
// when the next entry is due; zero for never.
func (s *Sweeper) round(ctx context.Context, now time.Time, rests bool) (more bool, next time.Time, err error) {
	s.one.Lock()
	defer s.one.Unlock()
	from := s.agenda.Looks()
	found, err := s.look(from, now)
	if err != nil {
		return false, time.Time{}, err
	}
	if len(found.due) > 0 {
		for batch := range slices.Chunk(found.due, BatchDeletions) {
			if err := s.batch(ctx, batch, now, rests); err != nil {
				return false, time.Time{}, err
			}
		}
		from = s.agenda.Looks()
		if found, err = s.look(from, now); err != nil {
			return false, time.Time{}, err
		}
	}
	if s.env.Synced {
		// What was due, and was deleted or put off, is seen by those who read what is on disk until the commit is there. They begin to look for it at
		// the moment of Swept.
		if err := s.env.Engine.Sync(ctx); err != nil {
			return false, time.Time{}, err
		}
	}
	swept := now
	if !found.first.IsZero() && found.first.Before(now) {
		swept = found.first
	}
	s.agenda.Swept(swept)
	s.agenda.Waits(found.next)
	return len(found.due) > 0, found.next, nil
}

// Sweep does all that is due now, and returns when that is on disk. It returns how many
// documents it has deleted and refreshed itself; the worker runs beside it and may have
// done a part. Stop ends it with ErrClosed.
func (s *Sweeper) Sweep(ctx context.Context, now time.Time) (deleted, refreshed int64, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.workers.Context(), func() { cancel(errs.ErrClosed) })()
	wasDeleted, wasRefreshed := s.Done()
	for more := true; more && err == nil; {
		if err = context.Cause(ctx); err == nil {
			more, _, err = s.round(ctx, now, false)
		}
	}
	if cause := context.Cause(ctx); err != nil && cause != nil { // ErrClosed, if Close has ended the context
		if errors.Is(err, storage.ErrUnknownOutcome) {
			err = fmt.Errorf("%w: %w", cause, err)
		} else {
			err = cause
		}
	}
	s.agenda.Wake() // Sweep's own scan has set the agenda, and the worker must scan itself
	deleted, refreshed = s.Done()
	return deleted - wasDeleted, refreshed - wasRefreshed, err
}

// agendaItems is the result of a scan.
type agendaItems struct {
	due   []format.Due
	first time.Time // instant of the first entry, due or not; zero for none
	next  time.Time // the earliest instant that is not due, or at which to retry; zero for none
}

// look scans for the first entries that are due at now. No entry is before from.
func (s *Sweeper) look(from, now time.Time) (found agendaItems, err error) {
	latest := s.env.Engine.Latest()
	defer func() { err = errs.First(err, latest.Close()) }()
	if err := s.lookAt(latest, format.DueExpiry, BatchDeletions*RoundBatches, from, now, &found); err != nil {
		return found, err
	}
	return found, s.lookAt(latest, format.DueRefresh, BatchRefreshes, from, now, &found)
}

// lookAt scans the entries of one kind, for at most n.
func (s *Sweeper) lookAt(r storage.Reader, kind byte, n int, from, now time.Time, found *agendaItems) (err error) {
	it, err := r.Iterate(format.TimesFrom(nil, kind, from), []byte{format.SpaceTimes, kind + 1})
	if err != nil {
		return err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	for ok := it.First(); ok; ok = it.Next() {
		d, err := format.DecodeDue(it.Key(), it.Value())
		if err != nil {
			return err
		}
		if found.first.IsZero() || d.At.Before(found.first) {
			found.first = d.At
		}
		if write.IsDisabled(s.env, kind) {
			break // its entries stay, and nothing is done at their instants
		}
		if d.At.After(now) {
			found.wait(d.At)
			break
		}
		if again, failed := s.failed[string(it.Key())]; failed && now.Before(again) && again.Sub(now) <= retryAfter {
			found.wait(again)
			continue
		}
		if n--; n < 0 {
			break
		}
		found.due = append(found.due, d)
	}
	return it.Error()
}

// wait adds an instant at which there will be something to do.
func (f *agendaItems) wait(at time.Time) {
	if f.next.IsZero() || at.Before(f.next) {
		f.next = at
	}
}

// batch does what is due. If that fails for a reason that is not the engine's, it handles
// each document in a transaction of its own, and leaves those that fail for later.
func (s *Sweeper) batch(ctx context.Context, due []format.Due, now time.Time, rests bool) error {
	err := s.try(ctx, due, now, rests)
	if err == nil || s.isFatal(ctx, err) {
		return err
	}
	for _, d := range due {
		err := s.try(ctx, []format.Due{d}, now, rests)
		if err == nil {
			continue
		}
		if s.isFatal(ctx, err) {
			return err
		}
		s.warn(ctx, fmt.Sprintf("what is due for %q is tried again in %v", errs.Shorten(d.FoldedID), retryAfter), err)
		for key, again := range s.failed {
			if !again.After(now) || again.Sub(now) > retryAfter {
				delete(s.failed, key)
			}
		}
		if len(s.failed) >= maxFailed {
			return fmt.Errorf("more than %d documents fail: %w", maxFailed, err)
		}
		s.failed[string(format.TimeKey(nil, d.At, d.Kind, d.FoldedID))] = now.Add(retryAfter)
	}
	return nil
}

// isFatal reports whether an error concerns the engine or the context, and not a
// document.
func (s *Sweeper) isFatal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || env.IsOfEngine(err)
}

// try does what is due, in transactions of some documents each.
func (s *Sweeper) try(ctx context.Context, due []format.Due, now time.Time, rests bool) error {
	begun := time.Now()
	ops, err := s.opsOf(due)
	if err != nil || len(ops) == 0 {
		return err
	}
	if OnBatch != nil {
		OnBatch(ctx)
	}
	rest := func() {}
	if rests {
		rest = func() {
			s.workers.Rest(begun)
			begun = time.Now()
		}
	}
	committed, err := s.writer.Sweep(ctx, ops, now, rest)
	for _, o := range ops[:committed] {
		switch {
		case !o.IsDone():
		case o.Verb.Deletes():
			s.deleted.Add(1)
		default:
			s.refreshed.Add(1)
		}
	}
	return err
}

// opsOf returns the writes for the entries. It leaves out large documents that would make
// the transaction too large.
func (s *Sweeper) opsOf(due []format.Due) (ops []*write.Op, err error) {
	latest := s.env.Engine.Latest()
	defer func() { err = errs.First(err, latest.Close()) }()
	size := 0
	for _, d := range due {
		if d.Kind == format.DueExpiry {
			ops = append(ops, write.DueDeletion(d))
			continue
		}
		if size > BatchBytes {
			continue // for the next scan
		}
		doc, err := s.docs.ReadFolded(latest, d.FoldedID)
		if err == errs.ErrNotFound {
			ops = append(ops, write.DueDeletion(d)) // deletes the document and its entry
			continue
		}
		if err != nil {
			return nil, err
		}
		o, err := write.DueRefresh(d, doc)
		if err != nil {
			return nil, err
		}
		size += len(doc.JSON())
		ops = append(ops, o)
	}
	return ops, nil
}
