package subs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exec"
	"github.com/jaydb/jay/internal/feed"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Worker works on a subscription. Its methods must not be called at the same time. Those
// that read or write are called inside the gate of the database, Acquire, Wait and
// Release outside.
type Worker struct {
	store *Store
	name  string
	ctx   context.Context // ends with the caller's, with Close, and when the worker is ended
	end   context.CancelCauseFunc

	definition Definition
	progress   Progress // as it is stored
	filter     *exec.Filter
	feed       *feed.Feed
	failing    map[string]Failure // by folded ID; dead ones too
	found      []Item             // that the feed has found and no batch has yet
	readTo     uint64             // the feed has looked at the changes up to here; found is behind the position
	stored     uint64             // Position on disk
}

// Item is a document in a batch.
type Item struct {
	feed.Change
	Folded   string
	Row      []byte // what the query selects; nil for the whole document
	Failures int    // of this version so far
}

// bytes returns how many bytes of its document an item holds.
func (i *Item) bytes() int {
	if i.Document == nil {
		return 0
	}
	return len(i.Document.JSON())
}

// Batch is what a worker is given at a time.
type Batch struct {
	Items    []Item
	position uint64            // of the acknowledgement
	settled  []string          // documents that failed and are no more to be sent
	failed   map[string]string // errors, by folded ID
	at       map[string]int    // index in Items, by folded ID
}

// add adds an item. A document is in a batch once, in its newest version: it fails, or is
// done, as a whole.
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

// Context ends when the worker has to.
func (w *Worker) Context() context.Context { return w.ctx }

// Definition returns the definition of the subscription, after Begin.
func (w *Worker) Definition() Definition { return w.definition }

// Err returns why the worker has to end, or nil.
func (w *Worker) Err() error {
	if w.ctx.Err() == nil {
		return nil
	}
	return context.Cause(w.ctx)
}

// Begin makes the worker the newest one, durably, and opens its feed.
func (w *Worker) Begin() error {
	s := w.store
	err := s.update(w.ctx, func(tx storage.Tx) (err error) {
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

// Fill makes the next batch, of up to n documents and about size bytes. Without one it
// returns nil, and whether there is more to look at now.
func (w *Worker) Fill(n, size int) (b *Batch, more bool, err error) {
	if err := w.Err(); err != nil {
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
				break // the gate is left between two reads that find nothing
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

// read reads a batch of changes and keeps those that the query finds.
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

// item makes an item of a change, if the query finds it.
func (w *Worker) item(c feed.Change) (item Item, wanted bool, err error) {
	item = Item{Change: c, Folded: w.store.env.Rules.Fold(c.ID)}
	if !c.Deleted {
		if h := c.Document.Header(); h.Timed && docs.IsGone(h, w.store.feeds.Docs.Moment()) {
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

// fillFailing adds documents, and deletions, that have failed and are due, and returns how
// many bytes they have. A document that was written since comes by the feed.
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

// isFound reports whether the feed has found a document that no batch has yet.
func (w *Worker) isFound(folded string) bool {
	return slices.ContainsFunc(w.found, func(i Item) bool { return i.Folded == folded })
}

// storePassed stores the position if many changes were passed that the query does not
// find.
func (w *Worker) storePassed(position uint64) error {
	if position < w.stored+skippedEtags {
		return nil
	}
	return w.Acknowledge(&Batch{position: position})
}

// StorePassed stores how far the worker has come, if it has been given all that the
// query finds up to there, and has acknowledged it.
func (w *Worker) StorePassed() error {
	if w.readTo == w.stored || len(w.found) > 0 {
		return nil
	}
	return w.Acknowledge(&Batch{position: w.readTo})
}

// Fail notes that a document of the batch has failed.
func (b *Batch) Fail(folded, text string) {
	if b.failed == nil {
		b.failed = make(map[string]string)
	}
	if len(text) > maxErrorBytes {
		text = text[:maxErrorBytes] + "…"
	}
	b.failed[folded] = text
}

// Acknowledge stores that a batch is done, durably. It returns ErrEnded if the worker is not
// the newest one, or the subscription was changed: then nothing is stored.
func (w *Worker) Acknowledge(b *Batch) error {
	// Not under the worker's context: who has done the work wants it noted. Close waits.
	ctx := context.WithoutCancel(w.ctx)
	now := w.store.env.Now()
	next := w.progress
	next.Position = b.position
	if next.Base <= next.Position {
		next.Base = 0
	}
	if len(b.Items) > 0 {
		next.Acknowledged += int64(len(b.Items) - len(b.failed))
		next.Last = now.UTC()
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
			return ended // it knows why
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

// settle returns the records of the documents of a batch that have failed, and the
// folded IDs of those that have none any more.
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
		f.Due = now.Add(min(w.definition.RetryDelay<<min(f.Failures-1, 20), maxRetryDelay)).UTC()
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

// Wait returns when Fill may find something: a change, or a document that is due. It is
// called outside the gate.
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
		return nil // a document is due
	}
	return err
}

// nextDue returns when the next document is due that has failed.
func (w *Worker) nextDue() (due time.Time, found bool) {
	for _, f := range w.failing {
		if !f.Dead && (!found || f.Due.Before(due)) {
			due, found = f.Due, true
		}
	}
	return due, found
}
