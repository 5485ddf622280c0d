package smuggler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay"
)

// add adds a copy of a record to the batch, or does what a line that is no document says.
func (im *Importer) add(ctx context.Context, v Record) error {
	if err := im.makeRoom(ctx, v); err != nil {
		return err
	}
	m := metadataOf(v.Text)
	kind := ""
	if m.IsObject() {
		kind = kindOf(m)
	}
	if im.incoming == nil && kind == "" && m.Str == "" {
		im.bytes = ofStored
		if err := im.flushRevisions(ctx); err != nil {
			return err
		}
		return im.addDocument(ctx, v, m)
	}
	if err := im.settle(ctx); err != nil {
		return err
	}
	found, err := im.addAttachment(ctx, v, kind)
	if !found && kind == countersKind {
		found, err = true, im.raiseCounters(ctx, v)
	}
	if found {
		return im.refuse(ctx, v, err)
	}
	if found, err := im.addRevision(ctx, v, m); found || err != nil {
		return err
	}
	if err := im.flushRevisions(ctx); err != nil {
		return err
	}
	switch m.Str {
	case subscriptionMark:
		return im.refuse(ctx, v, im.addSubscription(ctx, v))
	case exchangeMark:
		return im.refuse(ctx, v, im.addExchange(ctx, v))
	}
	return im.addDocument(ctx, v, m)
}

// raiseCounters raises the counters to those of a countersLine.
func (im *Importer) raiseCounters(ctx context.Context, v Record) error {
	if err := im.room(v, memberOfMap); err != nil {
		return err
	}
	var line countersLine
	if err := decodeLine(v.Text, &line); err != nil {
		return fmt.Errorf("%w: counters: %w", jay.ErrInvalidDocument, err)
	}
	return im.db.RaiseCounters(ctx, line.Counters)
}

// addSubscription creates the subscription of a subscriptionLine. The documents before it
// are stored first.
func (im *Importer) addSubscription(ctx context.Context, v Record) error {
	if im.o.NoSettings {
		im.leaveOut("subscriptions")
		return nil
	}
	var line subscriptionLine
	if err := decodeLine(v.Text, &line); err != nil {
		return fmt.Errorf("%w: subscription: %w", jay.ErrInvalidDocument, err)
	}
	if err := im.flush(ctx); err != nil {
		return err
	}
	sub := jay.Subscription{Name: line.Name, Query: line.Query, Deletions: line.Deletions, MaxFailures: line.MaxFailures, RetryDelay: time.Duration(line.RetryDelay)}
	if line.CaughtUp {
		sub.Since = jay.SinceNow
	}
	if err := im.db.Subscriptions().Ensure(ctx, sub); err != nil {
		return err
	}
	if line.Disabled {
		return im.db.Subscriptions().Disable(ctx, line.Name)
	}
	return nil
}

// addExchange stores the value of an exchangeLine as a compare-exchange value, in place of
// the present one. The documents before it are stored first, since a guard implies that its
// document exists.
func (im *Importer) addExchange(ctx context.Context, v Record) error {
	var line exchangeLine
	if err := decodeLine(v.Text, &line); err != nil {
		return fmt.Errorf("%w: compare-exchange value: %w", jay.ErrInvalidDocument, err)
	}
	if err := im.flush(ctx); err != nil {
		return err
	}
	return im.putExchange(ctx, line.Key, line.Value, line.Custom)
}

// putExchange stores a value, in place of the present one if there is one. The checkpoint is
// part of the transaction: a later run must not store the value once more, over one that a
// program has stored meanwhile.
func (im *Importer) putExchange(ctx context.Context, key string, value, custom json.RawMessage) error {
	var opts []jay.CompareExchangeOption
	if custom != nil {
		opts = append(opts, jay.CompareExchangeMetadata(custom))
	}
	if err := im.syncRejects(); err != nil {
		return err
	}
	index := uint64(0)
	for {
		var b jay.Batch
		b.PutCompareExchange(key, value, index, opts...)
		if r := im.resume; r != nil {
			if err := r.addTo(&b, r.mark(), im.done.Documents+r.found.Documents, false); err != nil {
				return err
			}
		}
		_, err := im.db.Apply(ctx, &b)
		var conflict *jay.CompareExchangeError
		if !errors.As(err, &conflict) {
			return err
		}
		index = conflict.Actual
	}
}
