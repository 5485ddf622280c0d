package jay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/subs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage"
)

// Subscription declares a named reader of documents whose position the database stores: it determines which
// documents the workers get, and from which position on.
type Subscription struct {
	// Name has 1 to 256 bytes. It is case-sensitive.
	Name string

	// Query is RQL with from, where and select, such as
	//
	//	from Orders where Status = 'paid' select Customer, Total
	//
	// A document is sent if its version at the time of sending matches the condition.
	Query string

	// Params are the values of the parameters of Query. Their names are without the dollar sign.
	Params map[string]any

	// Since is where the subscription begins: "" for all documents, SinceNow, or the token
	// of a Change. It matters only when the subscription is created.
	Since string

	// Deletions makes the subscription send deletions, too. It sends the deletions of all documents of the
	// collection, because the condition cannot be applied to a deleted document. The database keeps the records
	// of deletions for the subscription, up to 10,000,000 etags back.
	Deletions bool

	// MaxFailures is the number of failures after which a version of a document is dead: it is not sent again.
	// The default is 5.
	MaxFailures int

	// RetryDelay is the time after which a failed document is sent again. It doubles with
	// each failure, up to an hour. The default is a second.
	RetryDelay time.Duration
}

// SubscriptionInfo is the present state of a subscription.
type SubscriptionInfo struct {
	Name         string        `json:"name"`
	Query        string        `json:"query"` // in canonical form
	Deletions    bool          `json:"deletions,omitempty"`
	MaxFailures  int           `json:"maxFailures"`
	RetryDelay   time.Duration `json:"retryDelayNs"`
	Created      time.Time     `json:"created"`
	Disabled     bool          `json:"disabled,omitempty"`
	Position     uint64        `json:"position"`                  // changes up to this etag are acknowledged
	Behind       uint64        `json:"behind"`                    // etags from there to the newest change: the lag
	Acknowledged int64         `json:"acknowledged"`              // documents, since the subscription was created
	LastBatch    time.Time     `json:"lastBatch,omitzero"`        // when the newest batch was acknowledged
	Failing      int           `json:"failing,omitempty"`         // failed documents that will be sent again
	Dead         int           `json:"dead,omitempty"`            // failed documents that will not
	Working      bool          `json:"working,omitempty"`         // a worker of this process serves it
	Missed       bool          `json:"missedDeletions,omitempty"` // it has missed deletions: reset it
}

// SubscriptionFailure is a document that a worker has reported as failed.
type SubscriptionFailure struct {
	ID       string    `json:"id"`
	Etag     uint64    `json:"etag"`              // of the version that failed
	Failures int       `json:"failures"`          // of this version
	Dead     bool      `json:"dead,omitempty"`    // not sent again until it changes, or until Retry
	Error    string    `json:"error"`             // of the last failure, its first 1,000 bytes
	Due      time.Time `json:"due"`               // when it is sent again, unless it is dead
	Deleted  bool      `json:"deleted,omitempty"` // the deletion of the document has failed
}

// WhenInUse is what Work does if the subscription has a worker already. A subscription has at most one worker
// at a time.
type WhenInUse uint8

const (
	WaitForWorker WhenInUse = iota // wait until the other worker ends
	ReplaceWorker                  // end the other worker: its context ends, and it can no longer acknowledge
	FailInUse                      // return ErrSubscriptionInUse
)

// WorkOptions are the options of Subscriptions.Work. The zero value and nil are good
// defaults.
type WorkOptions struct {
	// InUse is what happens if there is a worker already. The default is to wait.
	InUse WhenInUse

	// BatchDocuments and BatchBytes bound a batch: it has at most BatchDocuments documents, and gets no further
	// document once it has BatchBytes bytes. The defaults are 100 and 4 MiB, the limits 10,000 and 256 MiB.
	BatchDocuments int
	BatchBytes     int

	// UntilCaughtUp makes Work return nil when there is nothing to send: no new change,
	// and no failed document that is due.
	UntilCaughtUp bool
}

const (
	defaultWorkDocuments = 100
	defaultWorkBytes     = 4 << 20
	maxWorkDocuments     = 10_000
	maxWorkBytes         = 256 << 20
	defaultMaxFailures   = 5
	defaultRetryDelay    = time.Second
)

// SubscriptionItem is a document in a batch, as it was when the batch was made.
type SubscriptionItem struct {
	ID           string // as it was written; for a deletion as in Change.ID
	Collection   string
	Etag         uint64
	ChangeVector string
	LastModified time.Time       // a deletion has none
	Deleted      bool            // only if the subscription asks for deletions
	Failures     int             // earlier failures of this version
	Body         json.RawMessage // what the query selects, or the document's body; nil for a deletion
	Document     *Document       // the whole document; nil for a deletion
}

// SubscriptionBatch is a batch of documents for a worker. It is not safe for concurrent use.
type SubscriptionBatch struct {
	Items []SubscriptionItem

	db    *core.Database
	inner *subs.Batch
}

// Fail reports that a document of the batch could not be processed. The document is sent again later, until it
// has failed MaxFailures times. The other documents are acknowledged with the batch. Fail returns ErrUsage if
// no item has the ID.
func (b *SubscriptionBatch) Fail(id string, cause error) error {
	folded := b.db.Env.Rules.Fold(id)
	for i := range b.inner.Items {
		if b.inner.Items[i].Folded == folded {
			text := "no cause was given"
			if cause != nil {
				text = cause.Error()
			}
			b.inner.Fail(folded, text)
			return nil
		}
	}
	return fmt.Errorf("%w: no document of the batch has the id %q", ErrUsage, id)
}

// Subscriptions creates, lists, changes and serves the subscriptions of a database.
// DB.Subscriptions returns it. It is safe for concurrent use.
type Subscriptions struct{ db *core.Database }

// Subscriptions returns the subscriptions of the database.
func (db *DB) Subscriptions() Subscriptions { return Subscriptions{&db.core} }

// inside calls fn inside the gate, and wraps its error with the name of the subscription.
func (s Subscriptions) inside(ctx context.Context, what, name string, fn func(*subs.Store) error) error {
	err := ctx.Err()
	if err == nil {
		err = s.db.Env.Enter()
	}
	if err == nil {
		err = fn(s.db.Subs)
		s.db.Env.Exit()
	}
	if err != nil {
		return fmt.Errorf("%s subscription %q: %w", what, name, changesError(err))
	}
	return nil
}

// Ensure creates a subscription, unless one with the name exists. It returns ErrSubscription for an invalid
// declaration, and if the existing subscription has another query or other settings. Ensure does not compare
// Since.
func (s Subscriptions) Ensure(ctx context.Context, sub Subscription) error {
	return s.inside(ctx, "ensure", sub.Name, func(store *subs.Store) error {
		d, err := s.definition(sub)
		if err != nil {
			return err
		}
		return store.Ensure(ctx, d, sub.Since)
	})
}

// definition checks a declaration and fills in the defaults.
func (s Subscriptions) definition(sub Subscription) (d subs.Definition, err error) {
	q, err := query.Parse(sub.Query, sub.Params)
	if err != nil {
		return d, err
	}
	if _, err := query.Measure(q.Where); err != nil {
		return d, fmt.Errorf("%w: %w", ErrQuery, err)
	}
	if err := errors.Join(subs.CheckQuery(q), metadata.CheckCollection(q.From)); err != nil {
		return d, err
	}
	created, err := s.db.Env.Date()
	if err != nil {
		return d, err
	}
	d = subs.Definition{
		Name: sub.Name, Query: q.String(), Deletions: sub.Deletions,
		MaxFailures: sub.MaxFailures, RetryDelay: sub.RetryDelay, Created: created,
	}
	if d.MaxFailures == 0 {
		d.MaxFailures = defaultMaxFailures
	}
	if d.RetryDelay == 0 {
		d.RetryDelay = defaultRetryDelay
	}
	if d.MaxFailures < 1 || d.RetryDelay < 0 {
		return d, fmt.Errorf("%w: MaxFailures %d and RetryDelay %s must not be negative", ErrSubscription, sub.MaxFailures, sub.RetryDelay)
	}
	return d, nil
}

// Get returns a subscription, or ErrSubscription if none has the name.
func (s Subscriptions) Get(ctx context.Context, name string) (info SubscriptionInfo, err error) {
	err = s.inside(ctx, "get", name, func(store *subs.Store) error {
		i, err := store.Get(name)
		info = subscriptionInfo(i)
		return err
	})
	return info, err
}

// List returns all subscriptions, in the order of their names.
func (s Subscriptions) List(ctx context.Context) (all []SubscriptionInfo, err error) {
	err = s.inside(ctx, "list", "", func(store *subs.Store) error {
		found, err := store.List()
		for _, i := range found {
			all = append(all, subscriptionInfo(i))
		}
		return err
	})
	return all, err
}

func subscriptionInfo(i subs.Info) SubscriptionInfo {
	return SubscriptionInfo{
		Name: i.Name, Query: i.Query, Deletions: i.Deletions, MaxFailures: i.MaxFailures, RetryDelay: i.RetryDelay, Created: i.Created,
		Disabled: i.Disabled, Position: i.Position, Behind: i.Newest - min(i.Newest, i.Position), Acknowledged: i.Acknowledged, LastBatch: i.Last,
		Failing: i.Failing, Dead: i.Dead, Working: i.Working, Missed: i.Gone,
	}
}

// Failures returns the failed documents, dead ones included, in the order of their IDs.
// There are at most 1,000.
func (s Subscriptions) Failures(ctx context.Context, name string) (all []SubscriptionFailure, err error) {
	err = s.inside(ctx, "failures of", name, func(store *subs.Store) error {
		found, err := store.Failures(name)
		for _, f := range found {
			all = append(all, SubscriptionFailure{f.ID, f.Etag, f.Failures, f.Dead, f.Error, f.Due, f.Deletion != nil})
		}
		return err
	})
	return all, err
}

// Retry makes the subscription send failed documents again at once, and resets their counts of failures. It
// selects the documents with these IDs, or all failed documents without IDs, and returns their number. A
// present worker ends with ErrSubscriptionEnded.
func (s Subscriptions) Retry(ctx context.Context, name string, ids ...string) (n int, err error) {
	err = s.inside(ctx, "retry", name, func(store *subs.Store) error {
		var folded []string
		for _, id := range ids {
			folded = append(folded, s.db.Env.Rules.Fold(id))
		}
		n, err = store.Retry(ctx, name, folded)
		return err
	})
	return n, err
}

// Reset sets a subscription back to a token ("" for all documents) and forgets its failures. A present worker
// ends with ErrSubscriptionEnded.
func (s Subscriptions) Reset(ctx context.Context, name, since string) error {
	return s.inside(ctx, "reset", name, func(store *subs.Store) error { return store.Reset(ctx, name, since) })
}

// Disable stops a subscription until Enable: it has no worker, and the database keeps no deletions for it. A
// present worker ends with ErrSubscriptionEnded.
func (s Subscriptions) Disable(ctx context.Context, name string) error {
	return s.inside(ctx, "disable", name, func(store *subs.Store) error { return store.Disable(ctx, name, true) })
}

// Enable undoes Disable. It returns ErrSubscription if the subscription has missed
// deletions; then call Reset first.
func (s Subscriptions) Enable(ctx context.Context, name string) error {
	return s.inside(ctx, "enable", name, func(store *subs.Store) error { return store.Disable(ctx, name, false) })
}

// Drop deletes a subscription with all of its records. A present worker ends with ErrSubscriptionEnded.
func (s Subscriptions) Drop(ctx context.Context, name string) error {
	return s.inside(ctx, "drop", name, func(store *subs.Store) error { return store.Drop(ctx, name) })
}

func (o *WorkOptions) withDefaults() (WorkOptions, error) {
	var out WorkOptions
	if o != nil {
		out = *o
	}
	if out.BatchDocuments == 0 {
		out.BatchDocuments = defaultWorkDocuments
	}
	if out.BatchBytes == 0 {
		out.BatchBytes = defaultWorkBytes
	}
	switch {
	case out.InUse > FailInUse:
		return out, fmt.Errorf("%w: WorkOptions.InUse %d", ErrUsage, out.InUse)
	case out.BatchDocuments < 1 || out.BatchDocuments > maxWorkDocuments:
		return out, fmt.Errorf("%w: WorkOptions.BatchDocuments must be between 1 and %d, got %d", ErrUsage, maxWorkDocuments, out.BatchDocuments)
	case out.BatchBytes < 1 || out.BatchBytes > maxWorkBytes:
		return out, fmt.Errorf("%w: WorkOptions.BatchBytes must be between 1 and %d, got %d", ErrUsage, maxWorkBytes, out.BatchBytes)
	}
	return out, nil
}

// publicItem converts an item of package subs to one of this package.
func publicItem(db *core.Database, i *subs.Item) SubscriptionItem {
	out := SubscriptionItem{
		ID: i.ID, Collection: write.OrEmpty(i.Collection), Etag: i.Etag, ChangeVector: db.Env.ChangeVector(i.Node, i.Etag),
		Deleted: i.Deleted, Failures: i.Failures, Body: i.Row, Document: (*Document)(i.Document),
	}
	if !i.Deleted {
		out.LastModified = metadata.Time(i.Modified)
		if out.Body == nil {
			out.Body = i.Document.JSON()
		}
	}
	return out
}

// Work makes the caller the worker of a subscription. It calls fn with batch after batch
// until ctx ends, the database is closed, fn returns an error, or the worker is ended.
//
//	err := subs.Work(ctx, "invoices", nil, func(ctx context.Context, batch *jay.SubscriptionBatch) error {
//		for _, item := range batch.Items {
//			if err := send(ctx, item.Body); err != nil {
//				batch.Fail(item.ID, err) // it comes again later
//			}
//		}
//		return nil // the batch is done
//	})
//
// If fn returns nil, the batch is acknowledged before fn is called again, durably with
// Synced durability. An acknowledged batch is never sent again. If fn returns an error or
// panics, nothing is acknowledged and Work returns the error; the next worker gets the
// batch.
//
// So the latest version of each document that matches the query is sent at least once. A version is sent again
// if the program ends between the work and the acknowledgement, so fn should be idempotent. Versions that are
// overwritten before they are sent are skipped.
//
// The context of fn ends when the worker must end: with ctx, at Close, and when the
// subscription gets another worker or is disabled, reset or dropped. Work then returns
// ErrSubscriptionEnded, and a batch whose acknowledgement comes too late is not
// acknowledged. fn may use the database, and may close it.
func (s Subscriptions) Work(ctx context.Context, name string, o *WorkOptions, fn func(ctx context.Context, batch *SubscriptionBatch) error) error {
	return s.work(ctx, name, o, nil, fn)
}

// work implements Work. check may refuse the definition; nil accepts all.
func (s Subscriptions) work(ctx context.Context, name string, o *WorkOptions, check func(subs.Definition) error, fn func(context.Context, *SubscriptionBatch) error) error {
	opts, err := o.withDefaults()
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = s.run(ctx, name, opts, check, fn)
	}
	if err != nil {
		return fmt.Errorf("work on subscription %q: %w", name, changesError(err))
	}
	return nil
}

func (s Subscriptions) run(ctx context.Context, name string, o WorkOptions, check func(subs.Definition) error, fn func(context.Context, *SubscriptionBatch) error) error {
	w, err := s.db.Subs.Acquire(ctx, name, subs.InUse(o.InUse))
	if err != nil {
		return err
	}
	defer w.Release()
	if err := s.gated(w.Begin); err != nil {
		return endedOr(w, err)
	}
	if check != nil {
		if err := check(w.Definition()); err != nil {
			return err
		}
	}
	for {
		var batch *subs.Batch
		more := false
		err := s.gated(func() (err error) {
			batch, more, err = w.Fill(o.BatchDocuments, o.BatchBytes)
			return err
		})
		switch {
		case err != nil:
			return endedOr(w, err)
		case batch == nil && more:
			continue
		case batch == nil && o.UntilCaughtUp:
			return s.gated(w.StorePassed)
		case batch == nil:
			if err := w.Wait(); err != nil {
				return err
			}
			continue
		}
		if len(batch.Items) > 0 { // without items the batch only deletes records of failures
			if err := fn(w.Context(), s.batch(batch)); err != nil {
				return endedOr(w, err)
			}
		}
		if err := s.gated(func() error { return w.Acknowledge(batch) }); err != nil {
			return err
		}
	}
}

// gated calls fn inside the gate.
func (s Subscriptions) gated(fn func() error) error {
	if err := s.db.Env.Enter(); err != nil {
		return err
	}
	defer s.db.Env.Exit()
	return fn()
}

// endedOr returns err, wrapped with the reason why the worker had to end if it had to.
func endedOr(w *subs.Worker, err error) error {
	if ended := w.Err(); ended != nil && !errors.Is(err, ended) {
		return fmt.Errorf("%w: %w", ended, err)
	}
	return err
}

func (s Subscriptions) batch(inner *subs.Batch) *SubscriptionBatch {
	b := &SubscriptionBatch{Items: make([]SubscriptionItem, len(inner.Items)), db: s.db, inner: inner}
	for i := range inner.Items {
		b.Items[i] = publicItem(s.db, &inner.Items[i])
	}
	return b
}

// Subscribe serves a subscription to documents of the collection, and calls fn with each document as a value of
// T. If fn returns an error, the document has failed: it is sent again later, as often as the subscription
// allows. If fn returns nil, the document is done. Documents are acknowledged in batches, as Subscriptions.Work
// describes. Use Work to process whole batches, deletions, or projections.
//
//	err := orders.Subscribe(ctx, "invoices", nil, func(ctx context.Context, order *Order) error {
//		return sendInvoice(ctx, order)
//	})
//
// A document that does not decode into T fails with a *DecodeError. When ctx ends, the
// present document and those after it in the batch are sent again.
func (c *Collection[T]) Subscribe(ctx context.Context, name string, o *WorkOptions, fn func(ctx context.Context, v *T) error) error {
	check := func(d subs.Definition) error {
		q, err := query.Parse(d.Query, nil)
		if err != nil {
			return err
		}
		if q.Projects() || d.Deletions || !strings.EqualFold(q.From, c.Name()) {
			return fmt.Errorf("%w: values of %q are whole documents of the collection, without deletions, and it has %s", ErrUsage, c.Name(), d.Query)
		}
		return nil
	}
	return Subscriptions{c.via.source().Database()}.work(ctx, name, o, check, func(ctx context.Context, batch *SubscriptionBatch) error {
		for _, item := range batch.Items {
			v, err := c.decode(item.Document)
			if err == nil {
				err = fn(ctx, v)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx) // nothing is acknowledged
			}
			if err != nil {
				if err := batch.Fail(item.ID, err); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// SubscriptionStats are totals over all subscriptions. Subscriptions.List has the figures
// of each.
type SubscriptionStats struct {
	Subscriptions int64  `json:"subscriptions"`
	Disabled      int64  `json:"disabled"`
	Working       int64  `json:"working"` // subscriptions with a worker in this process
	Behind        uint64 `json:"behind"`  // the greatest lag of the subscriptions that are not disabled, in etags
}

// measureSubscriptions returns the totals in a snapshot. It reads two records of each
// subscription. The caller is inside the gate.
func measureSubscriptions(db *DB, snapshot storage.Reader) (SubscriptionStats, error) {
	f, err := db.core.Subs.Measure(snapshot)
	return SubscriptionStats(f), err
}
