package jay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/subs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/query"
)

// Subscription declares a named reader of documents that the database remembers: which
// documents a worker is sent, and how far the workers have come.
type Subscription struct {
	// Name has up to 256 bytes. It is compared as it is.
	Name string

	// Query is RQL with from, where and select, such as
	//
	//	from Orders where Status = 'paid' select Customer, Total
	//
	// A document is sent when it satisfies the condition as it is then.
	Query string

	// Params are the values of the parameters of Query, without the dollar.
	Params map[string]any

	// Since is where it begins: "" with all documents, SinceNow, or the token of a
	// Change. It counts when the subscription is made.
	Since string

	// Deletions are sent, too, of all documents of the collection: a condition cannot
	// be asked of what is gone. Their records are kept for the subscription, up to
	// 10,000,000 etags back.
	Deletions bool

	// MaxFailures is how often one version of a document may fail before it is dead,
	// and not sent again. The default is 5.
	MaxFailures int

	// RetryDelay is the time after which a document that has failed is sent again. It
	// doubles with each failure, up to an hour. The default is a second.
	RetryDelay time.Duration
}

// SubscriptionInfo is a subscription as it is.
type SubscriptionInfo struct {
	Name         string        `json:"name"`
	Query        string        `json:"query"` // in canonical form
	Deletions    bool          `json:"deletions,omitempty"`
	MaxFailures  int           `json:"maxFailures"`
	RetryDelay   time.Duration `json:"retryDelayNs"`
	Created      time.Time     `json:"created"`
	Disabled     bool          `json:"disabled,omitempty"`
	Position     uint64        `json:"position"`                  // changes up to this etag are done
	Behind       uint64        `json:"behind"`                    // etags from there to the newest change: the lag
	Acknowledged int64         `json:"acknowledged"`              // documents, since it was made
	LastBatch    time.Time     `json:"lastBatch,omitzero"`        // when the newest batch was acknowledged
	Failing      int           `json:"failing,omitempty"`         // documents that are sent again
	Dead         int           `json:"dead,omitempty"`            // documents that are not
	Working      bool          `json:"working,omitempty"`         // a worker of this process
	Missed       bool          `json:"missedDeletions,omitempty"` // records of deletions that it needs are gone: reset it
}

// SubscriptionFailure is a document that a worker has reported as failed.
type SubscriptionFailure struct {
	ID       string    `json:"id"`
	Etag     uint64    `json:"etag"`              // of the version that failed
	Failures int       `json:"failures"`          // of this version
	Dead     bool      `json:"dead,omitempty"`    // it is not sent again until it changes, or Retry
	Error    string    `json:"error"`             // the last one, its first 1,000 bytes
	Due      time.Time `json:"due"`               // when it is sent again, unless it is dead
	Deleted  bool      `json:"deleted,omitempty"` // it is the deletion of the document that failed
}

// WhenInUse says what Work does if the subscription has a worker: there is one at a
// time.
type WhenInUse uint8

const (
	WaitForWorker WhenInUse = iota // wait until it ends
	ReplaceWorker                  // end it: its context ends, and it cannot acknowledge any more
	FailInUse                      // return ErrSubscriptionInUse
)

// WorkOptions configure the work on a subscription. The zero value, and nil, are good
// defaults.
type WorkOptions struct {
	// InUse says what happens if there is a worker already. The default is to wait.
	InUse WhenInUse

	// BatchDocuments and BatchBytes bound a batch: at most so many documents, and no
	// more after so many bytes of them. The defaults are 100 and 4 MiB, the limits
	// 10,000 and 256 MiB.
	BatchDocuments int
	BatchBytes     int

	// UntilCaughtUp makes the work end, with nil, when there is nothing to send: no
	// change, and no document that has failed and is due.
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
	ID           string // as it was written; of a deletion folded
	Collection   string
	Etag         uint64
	ChangeVector string
	LastModified time.Time       // a deletion has none
	Deleted      bool            // only if the subscription asks for deletions
	Failures     int             // how often this version has failed before
	Body         json.RawMessage // what the query selects, or the document's body; nil for a deletion
	Document     *Document       // the whole document; nil for a deletion
}

// SubscriptionBatch is what a worker is given at a time. It is used by one goroutine.
type SubscriptionBatch struct {
	Items []SubscriptionItem

	db    *DB
	inner *subs.Batch
}

// Fail reports that a document of the batch could not be processed. The others are
// acknowledged with the batch; this one is sent again later, until it has failed as often
// as the subscription allows. Fail returns ErrUsage if no item has the ID.
func (b *SubscriptionBatch) Fail(id string, cause error) error {
	folded := b.db.env.Rules.Fold(id)
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

// Subscriptions makes, lists and works on the subscriptions of a database:
// DB.Subscriptions returns it. It is safe for concurrent use.
type Subscriptions struct{ db *DB }

// Subscriptions returns the subscriptions of the database.
func (db *DB) Subscriptions() Subscriptions { return Subscriptions{db} }

// inside calls fn inside the gate.
func (s Subscriptions) inside(ctx context.Context, what, name string, fn func(*subs.Store) error) error {
	err := ctx.Err()
	if err == nil {
		err = s.db.env.Enter()
	}
	if err == nil {
		err = fn(s.db.subs)
		s.db.env.Exit()
	}
	if err != nil {
		return fmt.Errorf("%s subscription %q: %w", what, name, changesError(err))
	}
	return nil
}

// Ensure makes a subscription unless there is one of its name. It returns
// ErrSubscription if that has another query or other settings (Since apart), and for a
// declaration that cannot be.
func (s Subscriptions) Ensure(ctx context.Context, sub Subscription) error {
	return s.inside(ctx, "ensure", sub.Name, func(store *subs.Store) error {
		d, err := s.definition(sub)
		if err != nil {
			return err
		}
		return store.Ensure(ctx, d, sub.Since)
	})
}

// definition checks a declaration.
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
	d = subs.Definition{
		Name: sub.Name, Query: q.String(), Deletions: sub.Deletions,
		MaxFailures: sub.MaxFailures, RetryDelay: sub.RetryDelay, Created: s.db.env.Now().UTC(),
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

// Get returns a subscription, or ErrSubscription if there is none of the name.
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

// Failures returns the documents that have failed, dead ones too, in the order of their
// IDs. There are at most 1,000.
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

// Retry lets documents that have failed be sent again at once, as if they had not: those
// with these IDs, or all. It returns how many there are. A worker ends with
// ErrSubscriptionEnded.
func (s Subscriptions) Retry(ctx context.Context, name string, ids ...string) (n int, err error) {
	err = s.inside(ctx, "retry", name, func(store *subs.Store) error {
		var folded []string
		for _, id := range ids {
			folded = append(folded, s.db.env.Rules.Fold(id))
		}
		n, err = store.Retry(ctx, name, folded)
		return err
	})
	return n, err
}

// Reset lets a subscription begin again behind a token ("" for all documents), and
// forgets what has failed. A worker ends with ErrSubscriptionEnded.
func (s Subscriptions) Reset(ctx context.Context, name, since string) error {
	return s.inside(ctx, "reset", name, func(store *subs.Store) error { return store.Reset(ctx, name, since) })
}

// Disable keeps workers from a subscription until Enable. The one that it has ends with
// ErrSubscriptionEnded. Records of deletions are not kept for it meanwhile.
func (s Subscriptions) Disable(ctx context.Context, name string) error {
	return s.inside(ctx, "disable", name, func(store *subs.Store) error { return store.Disable(ctx, name, true) })
}

// Enable ends Disable. It returns ErrSubscription if deletions were missed: then Reset
// it.
func (s Subscriptions) Enable(ctx context.Context, name string) error {
	return s.inside(ctx, "enable", name, func(store *subs.Store) error { return store.Disable(ctx, name, false) })
}

// Drop removes a subscription with all that is stored of it. A worker ends with
// ErrSubscriptionEnded.
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

// publicItem makes an item of package subs one of this package.
func publicItem(db *DB, i *subs.Item) SubscriptionItem {
	out := SubscriptionItem{
		ID: i.ID, Collection: write.OrEmpty(i.Collection), Etag: i.Etag, ChangeVector: db.env.ChangeVector(i.Node, i.Etag),
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
