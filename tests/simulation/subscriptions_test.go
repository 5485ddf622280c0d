package simulation_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
)

// worked is what is known of a subscription, by folded ID: change vectors of versions.
type worked struct {
	acknowledged map[string]string   // they must not be sent again
	maybe        map[string][]string // their acknowledgement is in doubt: a loss of power may bring an older version back, which was acknowledged
	deletions    map[string]bool     // versions that the worker has seen, whose deletion must be sent
}

// learn notes that versions are acknowledged.
func (s *worked) learn(sent map[string]string) {
	for key, version := range sent {
		s.acknowledged[key] = version
		delete(s.maybe, key)
	}
}

// doubt notes that versions may be acknowledged. What was deleted may have been sent, too.
func (s *worked) doubt(sent map[string]string) {
	for key, version := range sent {
		s.suspect(key, version)
		if before, known := s.acknowledged[key]; known {
			s.suspect(key, before)
		}
		delete(s.acknowledged, key)
	}
	clear(s.deletions)
}

// suspect notes that one version may be acknowledged.
func (s *worked) suspect(key, version string) {
	if !slices.Contains(s.maybe[key], version) {
		s.maybe[key] = append(s.maybe[key], version)
	}
}

// forget notes that a loss of power may have taken acknowledgements.
func (s *worked) forget() { s.doubt(maps.Clone(s.acknowledged)) }

func newWorked() worked {
	return worked{make(map[string]string), make(map[string][]string), make(map[string]bool)}
}

const subscription = "mail"

// work serves a subscription of all documents with their deletions until it has caught up, and fails one
// batch in some calls.
func work(w *world) {
	s := &w.model.worked
	batches, failing := 0, w.intn(8)
	since := ""
	if w.intn(2) == 0 {
		since = w.feed
	}
	options := &jay.WorkOptions{BatchDocuments: 1 + w.intn(20), UntilCaughtUp: true}
	var sent map[string]string // of the batch under way
	acknowledge := func() {
		if w.cut != nil || w.failed { // perhaps in a world that is gone
			s.doubt(sent)
		} else {
			s.learn(sent)
		}
		sent = nil
	}
	e := new(entry)
	done := w.call(e, nil, func() (func(), error) {
		if err := w.db.Flush(ctx); err != nil { // a feed shows what is on disk
			return nil, err
		}
		if err := w.subscribe(since); err != nil {
			return nil, err
		}
		err := w.db.Subscriptions().Work(ctx, subscription, options, func(_ context.Context, batch *jay.SubscriptionBatch) error {
			acknowledge()
			if batches++; batches == failing {
				return errChanged
			}
			sent = make(map[string]string)
			for _, item := range batch.Items {
				key := ids.Fold(item.ID)
				if s.acknowledged[key] == item.ChangeVector && (w.cut == nil || !w.cut.Happened()) {
					w.fail("%s %s is sent again, after it was acknowledged", item.ID, item.ChangeVector)
				}
				sent[key] = item.ChangeVector
				if item.Deleted {
					delete(s.deletions, key)
				} else {
					s.deletions[key] = true
				}
			}
			return nil
		})
		if batches == failing && errors.Is(err, errChanged) {
			err = nil
		}
		return func() {
			w.model.sync()
			acknowledge()
		}, err
	})
	fmt.Fprintf(w.log, "%d batches. ", batches)
	if !done {
		s.doubt(sent)
		return
	}
	if batches != failing || failing == 0 {
		w.checkWorked()
	}
}

// subscribe creates the subscription, if there is none: for all documents, or for those that have changed since the
// reader of the feed was there.
func (w *world) subscribe(since string) error {
	if _, err := w.db.Subscriptions().Get(ctx, subscription); err == nil || !errors.Is(err, jay.ErrSubscription) {
		return err
	}
	s := jay.Subscription{Name: subscription, Query: "from @all_docs", Since: since, Deletions: true}
	err := w.db.Subscriptions().Ensure(ctx, s)
	if s.Since == "" {
		return err
	}
	if errors.Is(err, jay.ErrChangesGone) || errors.Is(err, jay.ErrSubscription) {
		s.Since = ""
		return w.db.Subscriptions().Ensure(ctx, s)
	}
	for d, err := range w.db.Documents(ctx, jay.Scan{}) {
		if err != nil {
			return err
		}
		w.model.worked.suspect(ids.Fold(d.ID()), d.ChangeVector()) // it may be older than that
	}
	return err
}

// dropSubscription drops the subscription, so that the next worker creates it anew: perhaps at a position that readers have left long ago.
func dropSubscription(w *world) {
	if _, err := w.db.Subscriptions().Get(ctx, subscription); errors.Is(err, jay.ErrSubscription) {
		return
	} else if err != nil && !w.failed {
		w.must(err)
	}
	if w.call(new(entry), nil, func() (func(), error) { return nil, w.db.Subscriptions().Drop(ctx, subscription) }) && w.cut == nil && !w.settings.relaxed {
		w.model.worked = newWorked()
		if w.intn(3) > 0 && !w.failed {
			w.must(w.subscribe(w.feed))
			fmt.Fprint(w.log, "another begins where the reader is. ")
		}
		return
	}
	w.model.worked.forget()
}

// checkWorked compares what a subscription that has caught up has sent with what is there.
func (w *world) checkWorked() {
	s := &w.model.worked
	there := make(map[string]bool)
	for d, err := range w.db.Documents(ctx, jay.Scan{}) {
		w.must(err)
		key := ids.Fold(d.ID())
		there[key] = true
		if s.acknowledged[key] != d.ChangeVector() && !slices.Contains(s.maybe[key], d.ChangeVector()) {
			w.fail("the subscription has not sent %s %s, but %q", d.ID(), d.ChangeVector(), s.acknowledged[key])
		}
	}
	for _, key := range slices.Sorted(maps.Keys(s.deletions)) {
		if !there[key] && len(s.maybe[key]) == 0 {
			w.fail("the subscription has not sent the deletion of %s", key)
		}
	}
}
