package subs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/feed"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Worker reads batches for a subscription. It is used by one goroutine at a time. Acquire,
// Wait and Release must be called outside the gate of the database, all other methods
// inside.
type Worker struct {
	store *Store
	name  string
	ctx   context.Context // ends with the caller's context, at Close, and when the worker is ended
	end   context.CancelCauseFunc

	claimed bool // it is the worker of all processes on the store

	definition Definition
	progress   Progress // as stored on disk
	filter     *exec.Filter
	feed       *feed.Feed
	failing    map[string]Failure // failed documents by folded ID, dead ones included
	found      []Item             // matches that were read and are in no batch yet
	readTo     uint64             // etag up to which the feed was read; all of found is above progress.Position
	stored     uint64             // the Position that is on disk
}

// Item is a document in a batch.
type Item struct {
	feed.Change
	Folded   string
	Row      []byte // the selected fields, as JSON; nil if the query selects the whole document
	Failures int    // earlier failures of this version
}

// bytes returns the size of the item's document.
func (i *Item) bytes() int {
	if i.Document == nil {
		return 0
	}
	return len(i.Document.JSON())
}

// Batch is a batch of documents for the caller of Fill.
type Batch struct {
	Items    []Item
	position uint64            // the Position after the acknowledgement
	settled  []string          // folded IDs of failed documents that need not be sent again
	failed   map[string]string // errors, by folded ID
	at       map[string]int    // index in Items, by folded ID
}

// add adds an item. It replaces an earlier version of the same document, as a document
// succeeds or fails once per batch.
func (b *Batch) add(item Item) {
	if at, found := b.at[item.Folded]; found {
		b.Items = slices.Delete(b.Items, at, at+1)
		for i := at; i < len(b.Items); i++ {
			b.at[b.Items[i].Folded] = i
		}
	}
	if b.at == nil {
		b.at = make(map[string]int)
	}
	b.at[item.Folded] = len(b.Items)
	b.Items = append(b.Items, item)
}

func newWorker(ctx context.Context, s *Store, name string) *Worker {
	w := &Worker{store: s, name: name}
	w.ctx, w.end = context.WithCancelCause(ctx)
	return w
}

// Context returns a context that ends when the worker must end.
func (w *Worker) Context() context.Context { return w.ctx }

// Definition returns the definition of the subscription, after Begin.
func (w *Worker) Definition() Definition { return w.definition }

// Err returns the reason why the worker must end, or nil.
func (w *Worker) Err() error {
	if w.ctx.Err() == nil {
		return nil
	}
	return context.Cause(w.ctx)
}

// Begin stores that this worker is the newest one, and opens its feed. It returns ErrEnded if another worker has replaced it.
func (w *Worker) Begin() error {
	s := w.store
	err := s.update(w.ctx, func(tx storage.Tx) (err error) {
		if err := w.checkNewest(tx); err != nil { // or the one that has replaced it would end
			return err
		}
		if w.definition, w.progress, err = load(tx, w.name); err != nil {
			return err
		}
		if w.progress.Disabled {
			return fmt.Errorf("%w: %q is disabled", errs.ErrSubscription, w.name)
		}
		w.progress.Worker++
		if err := setProgress(tx, &w.definition, &w.progress); err != nil {
			return err
		}
		all, err := failures(tx, w.name)
		w.failing = make(map[string]Failure, len(all))
		for _, f := range all {
			w.failing[s.env.Rules.Fold(f.ID)] = f
		}
		return err
	})
	if err != nil {
		return err
	}
	q, err := query.Parse(w.definition.Query, nil)
	if err != nil {
		return fmt.Errorf("query of subscription %q: %w", w.name, err)
	}
	if w.filter, err = exec.NewFilter(s.env, q); err != nil {
		return err
	}
	over := feed.Filter{Documents: true, NoDeletions: !w.definition.Deletions}
	if q.From != "" {
		over.Collections = []string{format.CollectionKey(q.From)}
	}
	w.readTo, w.stored = w.progress.Position, w.progress.Position
	w.feed, err = s.feeds.OpenAt(w.progress.Position, w.progress.Base, over)
	return err
}

// Fill returns the next batch, of up to n documents and about size bytes. Failed documents
// that are due come first. If there is nothing to send, b is nil, and more reports whether
// Fill should be called again at once.
func (w *Worker) Fill(n, size int) (b *Batch, more bool, err error) {
	if err := w.Err(); err != nil {
		return nil, false, err
	}
	if err := w.keeps(); err != nil {
		return nil, false, err
	}
	b = &Batch{position: w.progress.Position}
	bytes, err := w.fillFailing(b, n, size)
	if err != nil {
		return nil, false, err
	}
	more = true
	for len(b.Items) < n && bytes < size {
		if len(w.found) == 0 {
			if !more {
				break
			}
			if more, err = w.read(); err != nil {
				return nil, false, err
			}
			if len(w.found) == 0 {
				break // return, so that the caller leaves the gate between reads without a match
			}
		}
		item := w.found[0]
		w.found[0] = Item{}
		w.found = w.found[1:]
		bytes += item.bytes()
		b.position = item.Etag
		b.add(item)
	}
	if len(w.found) == 0 {
		b.position = w.readTo
	}
	if len(b.Items) == 0 && len(b.settled) == 0 {
		return nil, more, w.storePassed(b.position)
	}
	return b, more, nil
}

// read reads a batch of changes from the feed and appends the matches to w.found.
func (w *Worker) read() (more bool, err error) {
	changes, more, err := w.feed.Read()
	if err != nil {
		return false, err
	}
	for _, c := range changes {
		item, wanted, err := w.item(c)
		if err != nil {
			return false, err
		}
		if wanted {
			w.found = append(w.found, item)
		}
	}
	w.readTo = w.feed.Position()
	return more, nil
}

// item converts a change to an item. wanted reports whether the query matches it.
func (w *Worker) item(c feed.Change) (item Item, wanted bool, err error) {
	item = Item{Change: c, Folded: w.store.env.Rules.Fold(c.ID)}
	if !c.Deleted {
		if c.Document.Header().Timed && c.Document.IsGone(w.store.feeds.Docs.Moment()) {
			return item, false, nil
		}
		if wanted, err = w.filter.Match(w.ctx, c.Document); err != nil || !wanted {
			return item, false, err
		}
		if item.Row, err = w.filter.Project(w.ctx, c.Document); err != nil {
			return item, false, err
		}
	}
	if f, found := w.failing[item.Folded]; found && f.Etag == c.Etag {
		item.Failures = f.Failures
	}
	return item, true, nil
}

// fillFailing adds to b the failed documents and deletions that are due, and returns their
// size. It leaves out a document with a newer version, since the feed brings that.
func (w *Worker) fillFailing(b *Batch, n, size int) (bytes int, err error) {
	if len(w.failing) == 0 {
		return 0, nil
	}
	now := w.store.env.Now()
	snapshot := w.store.env.Engine.Snapshot()
	defer func() { err = errs.First(err, snapshot.Close()) }()
	var due []string
	for folded, f := range w.failing {
		if !f.Dead && !f.Due.After(now) {
			due = append(due, folded)
		}
	}
	slices.SortFunc(due, func(a, b string) int { return cmp.Compare(w.failing[a].Etag, w.failing[b].Etag) })
	for _, folded := range due {
		if len(b.Items) == n || bytes >= size {
			break
		}
		doc, err := w.store.feeds.Docs.ReadFolded(snapshot, folded)
		if err != nil && err != errs.ErrNotFound {
			return 0, err
		}
		// A newer version comes with the feed.
		if err == nil && (doc.Header().Etag > w.readTo || w.isFound(folded)) {
			continue
		}
		wanted := false
		var item Item
		if f := w.failing[folded]; err != nil && f.Deletion != nil && !w.isFound(folded) {
			item, wanted, err = w.item(feed.Change{Node: f.Deletion.Node, Etag: f.Etag, Deleted: true, Collection: f.Deletion.Collection, ID: f.ID})
			if err != nil {
				return 0, err
			}
		} else if err == nil {
			h := doc.Header()
			item, wanted, err = w.item(feed.Change{Node: h.Node, Etag: h.Etag, Collection: string(h.Collection), ID: doc.ID(), Modified: h.Modified, Document: doc})
			if err != nil {
				return 0, err
			}
		}
		if !wanted {
			b.settled = append(b.settled, folded)
			continue
		}
		bytes += item.bytes()
		b.add(item)
	}
	return bytes, nil
}

// isFound reports whether w.found has a document.
func (w *Worker) isFound(folded string) bool {
	return slices.ContainsFunc(w.found, func(i Item) bool { return i.Folded == folded })
}

// storePassed stores the position once skippedEtags changes were passed without a match.
func (w *Worker) storePassed(position uint64) error {
	if position < w.stored+skippedEtags {
		return nil
	}
	return w.Acknowledge(&Batch{position: position})
}

// StorePassed stores the position up to which the feed was read. It does nothing if a
// match was not sent yet.
func (w *Worker) StorePassed() error {
	if w.readTo == w.stored || len(w.found) > 0 {
		return nil
	}
	return w.Acknowledge(&Batch{position: w.readTo})
}

// Fail records that a document of the batch has failed. text is the error, which Fail cuts
// to maxErrorBytes.
func (b *Batch) Fail(folded, text string) {
	if b.failed == nil {
		b.failed = make(map[string]string)
	}
	if len(text) > maxErrorBytes {
		text = text[:maxErrorBytes] + "…"
	}
	b.failed[folded] = text
}

// Acknowledge stores that a batch is done, with the durability of the database. It returns
// ErrEnded and stores nothing if the worker was replaced or the subscription was changed.
func (w *Worker) Acknowledge(b *Batch) error {
	// The end of the worker's context must not prevent this: the work is done and should
	// not be repeated. Close waits for it.
	ctx := context.WithoutCancel(w.ctx)
	now, err := w.store.env.Date()
	if err != nil {
		return err
	}
	next := w.progress
	next.Position = b.position
	if next.Base <= next.Position {
		next.Base = 0
	}
	if len(b.Items) > 0 {
		next.Acknowledged += int64(len(b.Items) - len(b.failed))
		next.Last = now
	}
	failing, gone, err := w.settle(b, now)
	if err != nil {
		return err
	}
	err = w.store.update(ctx, func(tx storage.Tx) error {
		_, p, err := load(tx, w.name)
		if err != nil && !errors.Is(err, errs.ErrSubscription) {
			return err
		}
		if err != nil || p.Worker != w.progress.Worker {
			return fmt.Errorf("%w: it is no longer the worker of %q", errs.ErrEnded, w.name)
		}
		for _, folded := range gone {
			tx.Delete(format.SubscriptionFailureKey(w.name, folded))
		}
		for folded, f := range failing {
			if err := env.SetJSON(tx, format.SubscriptionFailureKey(w.name, folded), &f); err != nil {
				return err
			}
		}
		return setProgress(tx, &w.definition, &next)
	})
	if err != nil {
		if ended := w.Err(); ended != nil && errors.Is(err, errs.ErrEnded) {
			return ended // its cause is more specific
		}
		return err
	}
	w.progress, w.stored = next, next.Position
	for _, folded := range gone {
		delete(w.failing, folded)
	}
	for folded, f := range failing {
		w.failing[folded] = f
	}
	return nil
}

// settle computes the changes to the failure records that a batch causes: the records to
// store, by folded ID, and the folded IDs of those to delete.
func (w *Worker) settle(b *Batch, now time.Time) (failing map[string]Failure, gone []string, err error) {
	gone = slices.Clone(b.settled)
	count := len(w.failing)
	for _, item := range b.Items {
		text, failed := b.failed[item.Folded]
		_, before := w.failing[item.Folded]
		if !failed {
			if before {
				gone = append(gone, item.Folded)
			}
			continue
		}
		if !before {
			count++
		}
		f := Failure{ID: item.ID, Etag: item.Etag, Failures: item.Failures + 1, Error: text}
		if item.Deleted {
			f.Deletion = &Deletion{item.Node, item.Collection}
		}
		f.Dead = f.Failures >= w.definition.MaxFailures
		f.Due = now.Add(min(min(w.definition.RetryDelay, maxRetryDelay)<<min(f.Failures-1, 20), maxRetryDelay)).UTC()
		if failing == nil {
			failing = make(map[string]Failure)
		}
		failing[item.Folded] = f
	}
	if count-len(gone) > maxFailing {
		return nil, nil, fmt.Errorf("%w: %d documents of %q have failed, the most that it keeps: see to them, then Retry or Reset it", errs.ErrSubscription, maxFailing, w.name)
	}
	return failing, gone, nil
}

// Wait returns when Fill may have something to send: a new change, or a failed document
// that has become due. It must be called outside the gate.
func (w *Worker) Wait() error {
	ctx, cancel := w.ctx, func() {}
	if due, found := w.nextDue(); found {
		ctx, cancel = context.WithTimeout(w.ctx, max(0, due.Sub(w.store.env.Now())))
	}
	defer cancel()
	err := w.feed.Wait(ctx)
	if ended := w.Err(); ended != nil {
		return ended
	}
	if err != nil && ctx.Err() != nil {
		return nil // a failed document has become due
	}
	return err
}

// nextDue returns the time at which the next failed document becomes due.
func (w *Worker) nextDue() (due time.Time, found bool) {
	for _, f := range w.failing {
		if !f.Dead && (!found || f.Due.Before(due)) {
			due, found = f.Due, true
		}
	}
	return due, found
}
