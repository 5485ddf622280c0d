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

// A coordinator that goes back
//
// A coordinator that was restored from a backup has lost commits, and would give numbers of
// identities again that documents have. It cannot see that itself. But indexes grow, and
// none returns: so the database keeps the newest one that it has seen, with each number
// that a document gets, with each heartbeat, and when it is closed. A commit whose index is
// not above it shows that the coordinator has gone back. From then on nothing is asked of
// it, and the finding is kept, until its indexes have made a leap: that is how an operator's
// decision to go on shows (etcd.Accept). Without the leap, attempts to open the database
// would themselves bring the indexes up to where they were.

// leap is by how much the indexes of a coordinator grow when one that was restored is
// accepted. Commits do not add up to it. It is part of the contract of cluster.Coordinator.
const leap = 1 << 32

// watched is a coordinator whose indexes are watched.
type watched struct {
	cluster.Coordinator
	newest  atomic.Uint64         // of all indexes that were seen
	back    atomic.Uint64         // an index at which it had gone back; 0 if it has not
	refusal atomic.Pointer[error] // why nothing is asked of it any more
	found   func(err error)       // called once when it is found to have gone back
}

// see notes an index of a commit or record.
func (w *watched) see(index uint64) {
	for {
		old := w.newest.Load()
		if index <= old || w.newest.CompareAndSwap(old, index) {
			return
		}
	}
}

// suspect has the next commit show a leap: a record is not as this database has left it.
func (w *watched) suspect() {
	w.back.CompareAndSwap(0, max(1, w.newest.Load()))
}

// err returns why nothing is asked of the coordinator; nil if it is.
func (w *watched) err() error {
	if refusal := w.refusal.Load(); refusal != nil {
		return *refusal
	}
	return nil
}

// refuse has nothing be asked of the coordinator any more.
func (w *watched) refuse(at uint64, err error) error {
	if w.refusal.CompareAndSwap(nil, &err) {
		w.back.Store(max(1, at))
		w.found(err)
	}
	return w.err()
}

// goOn says what to do about a coordinator that has gone back.
const goOn = "Stop all nodes, find the highest number of each identity on every node (\"jay ids\"), and go on with it by \"jay cluster accept\" (etcd.Accept)"

// wentBack is the error of a coordinator that has given an index that it, or another one,
// had given before.
func wentBack(index, newest uint64) error {
	return fmt.Errorf("%w: a commit has the index %d, and this database has seen %d. "+goOn, cluster.ErrRestored, index, newest)
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

// read looks at what was read. Records that are old say nothing of the coordinator.
func (w *watched) read(records []cluster.Record, err error) ([]cluster.Record, error) {
	if errors.Is(err, cluster.ErrRestored) {
		return nil, w.refuse(w.newest.Load(), err)
	}
	for _, r := range records {
		if w.back.Load() == 0 {
			w.see(r.Index)
		}
	}
	return records, err
}

// Commit implements cluster.Coordinator. Of a commit that shows that the coordinator has
// gone back the outcome counts as unknown: it has happened, but may be lost again.
func (w *watched) Commit(ctx context.Context, conditions []cluster.Condition, changes []cluster.Change) (cluster.Result, error) {
	if err := w.err(); err != nil {
		return cluster.Result{}, err
	}
	newest, back := w.newest.Load(), w.back.Load() // of calls that have ended
	result, err := w.Coordinator.Commit(ctx, conditions, changes)
	switch {
	case errors.Is(err, cluster.ErrRestored):
		return result, w.unknownIf(err, w.refuse(newest, err))
	case err != nil:
		return result, err
	case !result.Committed():
		return result, w.compare(newest, conditions, result.Actual)
	case !slices.ContainsFunc(changes, func(c cluster.Change) bool { return !c.Delete }):
		return result, nil // without a new record there need be no new index
	case result.Index <= newest, back > 0 && result.Index < back+leap:
		err := w.refuse(result.Index, wentBack(result.Index, newest))
		return cluster.Result{}, w.unknownIf(cluster.ErrUnknownOutcome, err)
	}
	w.see(result.Index)
	w.back.CompareAndSwap(back, 0)
	return result, nil
}

// compare looks at what a commit has found whose conditions do not hold. A record that is
// older than this database has seen it was restored: one that is put anew has a newer index.
// The indexes of values come from callers, and need not have been seen.
func (w *watched) compare(newest uint64, conditions []cluster.Condition, actual []cluster.Record) error {
	for i, r := range actual {
		if want := conditions[i].Index; r.Index > 0 && r.Index < want && want <= newest && !strings.HasPrefix(r.Key, cluster.ValuePrefix) {
			return w.refuse(r.Index, fmt.Errorf("%w: its record %.200q has the index %d, and had %d. "+goOn, cluster.ErrRestored, r.Key, r.Index, want))
		}
	}
	return nil
}

// unknownIf returns err, with an unknown outcome if cause has one.
func (w *watched) unknownIf(cause, err error) error {
	if errors.Is(cause, cluster.ErrUnknownOutcome) && !errors.Is(err, cluster.ErrUnknownOutcome) {
		return fmt.Errorf("%w: %w", cluster.ErrUnknownOutcome, err)
	}
	return err
}

// beginWatching reads what earlier runs have seen of the coordinator. joining is held, or
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
	if seen.Cluster != n.local.Cluster { // a copy, or its former cluster
		return nil
	}
	n.watch.newest.Store(seen.Index)
	n.watch.back.Store(seen.Back)
	n.lastBeat.Store(seen.Beat)
	return nil
}

// setCluster notes the name of the cluster, for StageSeen, which is not called with joining held.
func (n *Node) setCluster(name string) { n.cluster.Store(&name) }

// StageSeen stages the newest index that was seen of the coordinator: with a number of an
// identity, so that a coordinator that forgets the number is found out.
func (n *Node) StageSeen(tx storage.Tx) error {
	name := n.cluster.Load()
	if name == nil {
		return nil
	}
	seen := format.Seen{Cluster: *name, Index: n.watch.newest.Load(), Beat: n.lastBeat.Load(), Back: n.watch.back.Load()}
	return env.SetJSON(tx, format.AppendKey(nil, format.SpaceMeta, format.SeenName), seen)
}

// keepSeen is StageSeen in a transaction of its own.
func (n *Node) keepSeen(ctx context.Context, sync bool) error {
	return n.env.Engine.Update(ctx, sync, n.StageSeen)
}

// goneBack notes on disk that the coordinator has gone back.
func (n *Node) goneBack(err error) {
	if n.env.Logger != nil {
		n.env.Logger.Error("jay: the cluster's coordinator has gone back: identities and compare-exchange values are refused", "tag", n.own.Tag, "err", err)
	}
	if err := n.keepSeen(context.Background(), true); err != nil {
		n.warn("jay: what was found of the coordinator could not be kept", err)
	}
}
