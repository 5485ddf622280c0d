package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay"
)

// subscriptionMark is the @metadata of a subscriptionLine. It is a string and not an
// object, so that a version of jay without subscriptions refuses the line. Part of the
// export format. Must not change.
const subscriptionMark = "jay subscription 1"

// subscriptionLine is a subscription in an export, after all documents. It has no
// position, as etags are valid only in their own database. The imported subscription
// begins after the import if nothing was left to be sent, and otherwise with all
// documents.
//
// Part of the export format. Must not change.
type subscriptionLine struct {
	Mark        string `json:"@metadata"`
	Name        string `json:"name"`
	Query       string `json:"query"`
	Deletions   bool   `json:"deletions,omitempty"`
	MaxFailures int    `json:"maxFailures"`
	RetryDelay  int64  `json:"retryDelayNs"`
	Disabled    bool   `json:"disabled,omitempty"`
	CaughtUp    bool   `json:"caughtUp,omitempty"`
}

// writeSubscriptions writes the lines of all subscriptions.
func writeSubscriptions(ctx context.Context, db *jay.DB, w io.Writer) error {
	all, err := db.Subscriptions().List(ctx)
	if err != nil {
		return err
	}
	for _, info := range all {
		line, err := json.Marshal(subscriptionLine{
			subscriptionMark, info.Name, info.Query, info.Deletions, info.MaxFailures, int64(info.RetryDelay), info.Disabled,
			info.Behind == 0 && info.Failing == 0,
		})
		if err != nil {
			return err
		}
		if _, err := w.Write(append(line, '\n')); err != nil {
			return err
		}
	}
	return nil
}

// addSubscription creates the subscription of a value that is a subscriptionLine: found
// reports whether it is. The documents before it are stored first.
func (l *loader) addSubscription(ctx context.Context, v value, m gjson.Result) (found bool, err error) {
	if m.Str != subscriptionMark {
		return false, nil
	}
	var line subscriptionLine
	if err := decodeLine(v.text, &line); err != nil {
		return true, fmt.Errorf("%w: subscription: %w", jay.ErrInvalidDocument, err)
	}
	if err := l.flush(ctx); err != nil {
		return true, err
	}
	sub := jay.Subscription{Name: line.Name, Query: line.Query, Deletions: line.Deletions, MaxFailures: line.MaxFailures, RetryDelay: time.Duration(line.RetryDelay)}
	if line.CaughtUp {
		sub.Since = jay.SinceNow
	}
	if err := l.db.Subscriptions().Ensure(ctx, sub); err != nil {
		return true, err
	}
	if line.Disabled {
		return true, l.db.Subscriptions().Disable(ctx, line.Name)
	}
	return true, nil
}
