package jay

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jaydb/jay/internal/subs"
	"github.com/jaydb/jay/query"
)

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
// So the latest version of each document that matches the query is sent at least once. It
// is sent again if the program ends between the work and the acknowledgement, so fn should
// be idempotent. Versions that are overwritten before they are sent are skipped.
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
	w, err := s.db.subs.Acquire(ctx, name, subs.InUse(o.InUse))
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
	if err := s.db.env.Enter(); err != nil {
		return err
	}
	defer s.db.env.Exit()
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

// Subscribe serves a subscription to documents of the collection, and calls fn with each
// document as a value of T. If fn returns an error, the document has failed: it is sent
// again later, as often as the subscription allows. Otherwise it is done. Documents are
// acknowledged in batches, as Subscriptions.Work describes. Use Work to process whole
// batches, deletions, or projections.
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
		if len(q.Select) > 0 || d.Deletions || !strings.EqualFold(q.From, c.Name()) {
			return fmt.Errorf("%w: values of %q are whole documents of the collection, without deletions, and it has %s", ErrUsage, c.Name(), d.Query)
		}
		return nil
	}
	return c.via.database().Subscriptions().work(ctx, name, o, check, func(ctx context.Context, batch *SubscriptionBatch) error {
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
