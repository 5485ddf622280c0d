package txn

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/jaydb/jay/internal/turns"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// commit checks the read set and writes what was staged. It reports whether
// anything was to be written. A turn of the caller ends before the wait for the disk.
func (t *Tx) commit(ctx context.Context, caller *turns.Caller) (wrote bool, err error) {
	if err := t.enter(ctx); err != nil {
		return false, err
	}
	defer t.exit()
	if len(t.ops) == 0 {
		return false, nil
	}
	if err := t.reads.prepare(ctx, t.db.Env, t.snapshot); err != nil {
		return true, err
	}
	inTurn := caller.Held()
	commit := func() error {
		return t.db.Writer.Transact(ctx, t.db.Env.Synced && !inTurn && !t.lazy, func(in *write.Txn) error {
			if err := t.reads.check(in); err != nil {
				return err
			}
			if err := t.exchanges.check(in); err != nil {
				return err
			}
			return in.Run(t.ops)
		})
	}
	if t.db.Writer.Cluster != nil {
		err = t.commitInCluster(ctx, commit)
	} else {
		err = commit()
	}
	if err == nil && inTurn {
		err = t.db.Writer.PassTurn(ctx, caller)
	}
	if err != nil {
		return true, err
	}
	t.committed = true
	for prefix, list := range t.issued.all {
		t.issued.all[prefix] = slices.DeleteFunc(list, func(id string) bool { return t.wrote(t.db.Env.Rules.Fold(id)) })
	}
	t.db.Writer.Publish(t.ops)
	return true, nil
}

// writes returns keys of documents that the transaction would have written. Its next
// run is likely to write them again, and stands in line for them, too.
func (t *Tx) writes() []turns.Key {
	t.mu.Lock()
	defer t.mu.Unlock()
	var keys []turns.Key
	for d := range write.DocsOf(t.ops) {
		if len(keys) == turns.MaxKeys {
			break
		}
		keys = append(keys, turns.Document(d.ID))
	}
	return keys
}

// giveWay returns a LostError if the transaction may run again and would interfere
// with others in line. If it may not, it only waits for exclusive turns.
func (t *Tx) giveWay(ctx context.Context, caller *turns.Caller, mayRunAgain bool) error {
	t.mu.Lock()
	ops := t.ops
	t.mu.Unlock()
	if !mayRunAgain {
		return t.db.Writer.Yield(ctx, ops)
	}
	for d := range write.DocsOf(ops) {
		if key, met := caller.Meets(d); met {
			return write.LostError{Cause: errGaveWay, Over: key, Writes: t.writes()}
		}
	}
	return nil
}

// commitInTurn commits what was staged. If caller has a turn, the commit ends it. If
// not, the transaction gives way to those in line. wrote reports whether anything was
// to be written.
func (t *Tx) commitInTurn(ctx context.Context, caller *turns.Caller, mayRunAgain bool) (wrote bool, err error) {
	if !caller.Held() && t.db.Writer.Lines.Len() > 0 {
		if err := t.giveWay(ctx, caller, mayRunAgain); err != nil {
			return true, err
		}
	}
	wrote, err = t.commit(ctx, caller)
	if lost, ok := err.(write.LostError); ok && mayRunAgain {
		lost.Writes = t.writes()
		err = lost
	}
	return wrote, err
}

// errGaveWay is the cause of a LostError of a transaction that would have interfered
// with others in line, and so did not commit. Update never returns it.
var errGaveWay = errors.New("the transaction gave way to others in line")

// commitInCluster draws the numbers of the transaction's identities and commits. A run
// that loses leaves its numbers to the next run.
func (t *Tx) commitInCluster(ctx context.Context, commit func() error) error {
	w := t.db.Writer
	if w.IsClusterWide(t.ops) || len(t.exchanges.read) > 0 {
		reads := write.Reads{Indexes: t.exchanges.read, Documents: slices.Sorted(maps.Keys(t.reads.versions)), Check: t.reads.check}
		commit = func() error { return w.CommitClusterWide(ctx, t.ops, reads) }
	}
	err := w.DrawIdentities(ctx, t.ops, t.issued.identities)
	if err == nil {
		err = w.Redrawing(ctx, t.ops, commit)
	}
	if err != nil && !errors.Is(err, storage.ErrUnknownOutcome) {
		w.HoldIdentities(t.ops, t.issued.identities)
		return err
	}
	w.SettleIdentities(t.ops, err)
	return err
}
