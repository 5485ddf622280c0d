package lsm

import (
	"context"
	"fmt"
	"iter"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/batchrepr"

	"github.com/jaydb/jay/storage"
)

var _ storage.CommitWatcher = (*Engine)(nil)

// WatchCommits implements storage.CommitWatcher. It runs as the first transaction of a group, so that all commits
// before are in Pebble, and none after.
func (e *Engine) WatchCommits(ctx context.Context, see func(storage.Commit)) (storage.Snapshot, uint64, error) {
	var before *latest
	err := e.Update(ctx, true, func(tx storage.Tx) error {
		t := tx.(*transaction)
		if t.before > 0 {
			t.rerun = true
			return errFirst
		}
		e.watcher = see
		before = &latest{&state{of: &e.states, snapshot: e.db.NewSnapshot(), commit: e.applied}, e}
		return nil
	})
	if err != nil {
		if before != nil {
			_ = before.Close() // it never fails
		}
		return nil, 0, err
	}
	return before, before.state.commit, nil
}

// DurableCommit implements storage.CommitWatcher.
func (e *Engine) DurableCommit() uint64 { return e.durability.durable.Load() }

// watcher is who sees the commits; nil is nobody.
type watcher func(storage.Commit)

// showWrites shows what a commit has written: its batch, as Pebble has it.
func (w watcher) showWrites(repr []byte, number uint64) {
	if w != nil {
		w(storage.Commit{Number: number, Writes: writesOf(repr)})
	}
}

// showTables shows that a commit has taken in tables.
func (w watcher) showTables(number uint64) {
	if w != nil {
		w(storage.Commit{Number: number, Writes: func(func(storage.Write) bool) {}, Ingested: true})
	}
}

// writesOf returns what is in a batch of this package.
func writesOf(repr []byte) iter.Seq[storage.Write] {
	return func(yield func(storage.Write) bool) {
		r := batchrepr.Read(repr)
		for {
			kind, key, value, ok, err := r.Next()
			if err != nil {
				panic(fmt.Sprintf("lsm: a batch of this process cannot be read: %v", err))
			}
			if !ok || !yield(storage.Write{Key: key, Value: value, Deleted: kind == pebble.InternalKeyKindDelete}) {
				return
			}
		}
	}
}
