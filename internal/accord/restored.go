package accord

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// How a restored coordinator is detected
//
// A coordinator that was restored from a backup has lost commits. It would give numbers
// of identities a second time, and cannot notice that itself.
//
// But its indexes only grow, so the database remembers the highest index that it has
// seen. It stores this high-water mark with each number that a document gets, with each
// heartbeat, and when it is closed. A commit whose index is not above the mark shows that
// the coordinator was restored.
//
// The database then sends the coordinator no more calls, and stores the finding. It
// trusts the coordinator again when the indexes have grown by at least leap at once,
// which is what an operator's decision to go on (etcd.Accept) makes them do. Without that
// condition, retries of Open would themselves raise the indexes to the mark, and the loss
// would go unnoticed.

// leap is the least distance between the indexes before and after an operator accepts a
// restored coordinator. No number of commits reaches it in practice. Part of the contract
// of cluster.Coordinator.
const leap = 1 << 32

// watched is a coordinator that checks the indexes of all answers.
type watched struct {
	cluster.Coordinator
	newest     atomic.Uint64         // high-water mark of the indexes that were seen
	restoredAt atomic.Uint64         // newest when a restore was found or suspected; 0 if neither
	refusal    atomic.Pointer[error] // why no more calls are sent; nil if they are
	onRestored func(err error)       // called once, when a restore is found
}

// raiseNewest raises the high-water mark to index.
func (w *watched) raiseNewest(index uint64) {
	for {
		old := w.newest.Load()
		if index <= old || w.newest.CompareAndSwap(old, index) {
			return
		}
	}
}

// suspect makes the next commit prove a leap above newest, because a record differs from what
// this database left there. newest is the newest index that was seen before the record was
// read: that record may be of the time after the leap.
func (w *watched) suspect(newest uint64) {
	w.restoredAt.CompareAndSwap(0, max(1, newest))
}

// err returns the reason why no more calls are sent to the coordinator, or nil.
func (w *watched) err() error {
	if refusal := w.refusal.Load(); refusal != nil {
		return *refusal
	}
	return nil
}

// refuse stops all further calls because of err, which it returns, unless they were
// stopped before: then it returns the first reason. The indexes must leap above at.
func (w *watched) refuse(at uint64, err error) error {
	if w.refusal.CompareAndSwap(nil, &err) {
		w.restoredAt.Store(max(1, at))
		w.onRestored(err)
	}
	return w.err()
}

// acceptAdvice is the advice to an operator whose coordinator was restored.
const acceptAdvice = "Stop all nodes, find the highest number of each identity on every node (\"jay ids\"), and go on with it by \"jay cluster accept\" (etcd.Accept)"

// restoredError is the error for a commit whose index is not above those seen before.
func restoredError(index, newest uint64) error {
	return fmt.Errorf("%w: a commit has the index %d, and this database has seen %d. "+acceptAdvice, cluster.ErrRestored, index, newest)
}

// Read implements cluster.Coordinator.
func (w *watched) Read(ctx context.Context, keys ...string) ([]cluster.Record, error) {
	if err := w.err(); err != nil {
		return nil, err
	}
	return w.read(w.Coordinator.Read(ctx, keys...))
}

// Page implements cluster.Coordinator.
func (w *watched) Page(ctx context.Context, prefix, after string, limit int) ([]cluster.Record, error) {
	if err := w.err(); err != nil {
		return nil, err
	}
	return w.read(w.Coordinator.Page(ctx, prefix, after, limit))
}

// read takes the indexes of records that were read. Only ErrRestored shows a restore
// here: old records may have any index.
func (w *watched) read(records []cluster.Record, err error) ([]cluster.Record, error) {
	if errors.Is(err, cluster.ErrRestored) {
		return nil, w.refuse(w.newest.Load(), err)
	}
	for _, r := range records {
		if w.restoredAt.Load() == 0 {
			w.raiseNewest(r.Index)
		}
	}
	return records, err
}

// Commit implements cluster.Coordinator. If a commit shows that the coordinator was
// restored, its outcome counts as unknown: it has happened, but may be lost again.
func (w *watched) Commit(ctx context.Context, conditions []cluster.Condition, changes []cluster.Change) (cluster.Result, error) {
	if err := w.err(); err != nil {
		return cluster.Result{}, err
	}
	// Only calls that have ended before this one began count: concurrent commits may be
	// answered in any order.
	newest, restoredAt := w.newest.Load(), w.restoredAt.Load()
	result, err := w.Coordinator.Commit(ctx, conditions, changes)
	switch {
	case errors.Is(err, cluster.ErrRestored):
		// Only this commit is in doubt, and not the calls that are refused from now on.
		return result, w.unknownIf(err, w.refuse(newest, WithoutOutcome(err)))
	case err != nil:
		return result, err
	case !result.Committed():
		return result, w.checkActual(newest, conditions, result.Actual)
	case !slices.ContainsFunc(changes, func(c cluster.Change) bool { return !c.Delete }):
		return result, nil // only deletions: these need no new index
	case result.Index <= newest, restoredAt > 0 && result.Index < restoredAt+leap:
		err := w.refuse(result.Index, restoredError(result.Index, newest))
		return cluster.Result{}, w.unknownIf(cluster.ErrUnknownOutcome, err)
	}
	w.raiseNewest(result.Index)
	w.restoredAt.CompareAndSwap(restoredAt, 0)
	return result, nil
}

// checkActual checks the records that a failed commit has found. A record whose index is
// below the one that this database has seen under that key was restored, since every
// later write has a higher index. Values are exempt: callers choose the indexes of their
// conditions, and may pass some that no node has seen.
func (w *watched) checkActual(newest uint64, conditions []cluster.Condition, actual []cluster.Record) error {
	for i, r := range actual {
		if want := conditions[i].Index; r.Index > 0 && r.Index < want && want <= newest && !strings.HasPrefix(r.Key, cluster.ValuePrefix) {
			return w.refuse(r.Index, fmt.Errorf("%w: its record %.200q has the index %d, and had %d. "+acceptAdvice, cluster.ErrRestored, r.Key, r.Index, want))
		}
	}
	return nil
}

// unknownIf returns err, marked as an unknown outcome if cause is one.
func (w *watched) unknownIf(cause, err error) error {
	if errors.Is(cause, cluster.ErrUnknownOutcome) && !errors.Is(err, cluster.ErrUnknownOutcome) {
		return fmt.Errorf("%w: %w", cluster.ErrUnknownOutcome, err)
	}
	return err
}

// beginWatching loads the high-water mark of earlier runs. The caller holds joining, or
// the node is not in use yet.
func (n *Node) beginWatching() error {
	var seen format.Seen
	value, closer, err := n.env.Engine.Get(format.AppendKey(nil, format.SpaceMeta, format.SeenName))
	if err == storage.ErrNotFound {
		return nil
	}
	if err == nil {
		if err = json.Unmarshal(value, &seen); err != nil {
			err = fmt.Errorf("record of the coordinator: %w: %w", errs.ErrCorrupt, err)
		}
		err = errs.First(err, closer.Close())
	}
	if err != nil {
		return err
	}
	if seen.Cluster != n.local.Cluster { // the mark of a former cluster
		return nil
	}
	n.watch.newest.Store(seen.Index)
	n.watch.restoredAt.Store(seen.Back)
	n.lastBeat.Store(seen.Beat)
	return nil
}

// StageSeen stages the high-water mark of the coordinator's indexes. It goes into the
// same commit as a number of an identity, so that a restored coordinator that has
// forgotten the number is detected.
func (n *Node) StageSeen(tx storage.Tx) error {
	name := n.cluster.Load()
	if name == nil {
		return nil
	}
	seen := format.Seen{Cluster: *name, Index: n.watch.newest.Load(), Beat: n.lastBeat.Load(), Back: n.watch.restoredAt.Load()}
	return env.SetJSON(tx, format.AppendKey(nil, format.SpaceMeta, format.SeenName), seen)
}

// keepSeen commits the high-water mark in a transaction of its own.
func (n *Node) keepSeen(ctx context.Context, sync bool) error {
	return n.env.Engine.Update(ctx, sync, n.StageSeen)
}

// storeRestored logs that the coordinator was restored, and stores the finding.
func (n *Node) storeRestored(err error) {
	if n.env.Logger != nil {
		n.env.Logger.Error("jay: the cluster's coordinator has gone back: identities and compare-exchange values are refused", "tag", n.own.Tag, "err", err)
	}
	if err := n.keepSeen(context.Background(), true); err != nil {
		n.warn("jay: what was found of the coordinator could not be kept", err)
	}
}
