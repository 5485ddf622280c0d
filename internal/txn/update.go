package txn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/turns"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// View calls fn with a transaction that only reads.
func View(ctx context.Context, db *core.Database, fn func(*Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := begin(db, false, nil)
	if err != nil {
		return err
	}
	defer t.end()
	return fn(t)
}

// Observed is View, which observers see.
func Observed(ctx context.Context, db *core.Database, fn func(*Tx) error) error {
	if db.Watch == nil {
		return View(ctx, db, fn)
	}
	return db.Watch.Do(ctx, observe.Operation{Verb: "view"}, func(ctx context.Context, _ *observe.Operation) error { return View(ctx, db, fn) })
}

// Options say how Update runs its function.
type Options struct {
	Retries int // how often the function may run again

	// Lazy leaves the sync of the commit to the caller, who calls Engine.Sync before it
	// says that anything is done.
	Lazy bool

	// Once makes the commit happen once, or is nil. Update returns nil, and does not call its function, if it has
	// happened before.
	Once *write.Once
}

// Update calls fn with a transaction and commits what it wrote, again and again while the
// options allow it and the run has lost against another writer.
func Update(ctx context.Context, db *core.Database, fn func(*Tx) error, o Options, issued *Issued) error {
	if o.Once == nil {
		return update(ctx, db, fn, o, issued)
	}
	err := findOnce(ctx, db, o.Once)
	if err == nil {
		err = update(ctx, db, fn, o, issued)
		if err != nil && requests.Repetition(err) == nil {
			// It may have met what a concurrent call with the ID has written.
			if again := findOnce(ctx, db, o.Once); requests.Repetition(again) != nil {
				return nil
			}
		}
	}
	if requests.Repetition(err) != nil {
		return nil
	}
	return err
}

// findOnce returns a *requests.Repeated if the commit has happened. It waits for a coordinator to decide one that is
// under way.
func findOnce(ctx context.Context, db *core.Database, once *write.Once) error {
	return db.Inside(func() error {
		if err := db.Writer.AwaitRequest(ctx, once.Request.ID); err != nil {
			return err
		}
		return once.Request.Find(db.Env.Engine)
	})
}

// update is Update, but returns a *requests.Repeated for a commit that has happened before.
func update(ctx context.Context, db *core.Database, fn func(*Tx) error, o Options, issued *Issued) error {
	defer db.Writer.Unused.CountDrawn(issued.all) // those that were not used
	if db.Writer.Cluster != nil {
		issued.identities = make(write.HeldNumbers)
		defer db.Writer.ReleaseIdentities(issued.identities)
	}
	caller := db.Writer.Lines.Caller()
	defer caller.Leave()
	for run := 0; ; run++ {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := updateOnce(ctx, db, issued, fn, &caller, run < o.Retries, o)
		lost, isLost := err.(write.LostError)
		switch {
		case err == errHeldReissued:
			run-- // that run found only that the IDs cannot be reissued
		case !isLost:
			return err
		case run >= o.Retries:
			caller.Leave() // the disk may take long
			return db.Writer.RefuseDurably(ctx, fmt.Errorf("update: %w", lost.Cause))
		default:
			if err := caller.Wait(ctx, []turns.Key{lost.Over}, lost.Writes); err != nil {
				return fmt.Errorf("update: in line after a loss: %w", err)
			}
		}
		issued.rewind()
	}
}

// ObservedUpdate is Update, which observers see.
func ObservedUpdate(ctx context.Context, db *core.Database, fn func(*Tx) error, o Options) error {
	issued := NewIssued()
	if db.Watch == nil {
		return Update(ctx, db, fn, o, issued)
	}
	return db.Watch.Do(ctx, observe.Operation{Verb: "update"}, func(ctx context.Context, seen *observe.Operation) error {
		err := Update(ctx, db, fn, o, issued)
		seen.Documents = issued.Written
		return err
	})
}

// errHeldReissued ends a run in which the function used a reissued ID that it held from
// an earlier run: see Issued.
var errHeldReissued = errors.New("a number of an earlier run is held by the function: it runs again")

// updateOnce runs fn once, and commits.
func updateOnce(ctx context.Context, db *core.Database, issued *Issued, fn func(*Tx) error, caller *turns.Caller, mayRunAgain bool, o Options) error {
	t, err := begin(db, true, issued)
	if err != nil {
		return err
	}
	t.once = o.Once
	t.lazy = o.Lazy && db.Writer.Cluster == nil // what nodes agree on may rest on this commit
	defer t.end()
	err = fn(t)
	if t.hasUsedHeld() {
		issued.held = true
		return t.leave(ctx, errHeldReissued)
	}
	if err == nil {
		wrote, err := t.commitInTurn(ctx, caller, mayRunAgain)
		if _, lost := err.(write.LostError); lost && mayRunAgain {
			return t.leave(ctx, err)
		}
		if wrote || err != nil {
			if err == nil {
				t.mu.Lock() // another goroutine may have written in the transaction
				issued.Written = int64(len(t.ops))
				t.mu.Unlock()
			}
			return err
		}
	}
	caller.Leave() // the disk may take long
	return t.leave(ctx, err)
}

// begin opens a transaction. end must follow.
func begin(db *core.Database, writable bool, issued *Issued) (*Tx, error) {
	if err := db.Env.EnterRead(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	begun := db.BeginMoment()
	take := db.Env.Engine.Snapshot
	var deletes *horizon.Hold
	if writable {
		deletes = db.Horizon.Hold() // before the snapshot
		take = db.Env.Engine.Latest // its commit follows in the log the commits that it reads
	}
	c, snapshot, err := db.View(take)
	if err != nil {
		if deletes != nil {
			deletes.Release()
		}
		return nil, err
	}
	t := &Tx{db: db, docs: db.Docs, writable: writable, snapshot: snapshot, deletes: deletes, catalog: c, issued: issued, moment: db.EndMoment(begun)}
	db.Env.Register((*txHandle)(t))
	return t, nil
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

// errGaveWay is the cause of a LostError of a transaction that would have interfered
// with others in line, and so did not commit. Update never returns it.
var errGaveWay = errors.New("the transaction gave way to others in line")

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
	prefetched, err := t.db.Writer.Prefetch(ctx, t.ops)
	if err != nil {
		return true, err
	}
	defer prefetched.Close(t.ops)
	inTurn := caller.Held()
	t.ops[0].Once = t.once
	commit := func() error {
		return t.db.Writer.Transact(write.Expecting(ctx, t.db.Env, t.ops, t.reads.order), t.db.Env.Synced && !inTurn && !t.lazy, func(in *write.Txn) error {
			if t.once != nil { // before the reads: the commit that has happened may have changed them
				if err := t.once.Request.Find(in.Tx); err != nil {
					return err
				}
			}
			if err := t.reads.check(in); err != nil {
				return err
			}
			if err := t.exchanges.check(in); err != nil {
				return err
			}
			in.Use(prefetched)
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

// leave returns err, which may be nil, when everything that the transaction could
// see is on disk: its function has seen it, and a crash must not undo it
// afterwards. That holds for a run that lost, too, before the next one begins: what the
// function has passed on to others cannot be taken back. A transaction that writes need
// not wait: its own commit comes after everything that it has read.
func (t *Tx) leave(ctx context.Context, err error) error {
	if !t.db.Env.Synced {
		return err
	}
	if closed := t.db.Env.EnterWrite(); closed != nil {
		return errs.First(err, closed) // Close makes it durable
	}
	defer t.db.Env.Exit()
	unsure := t.snapshot.WaitDurable(ctx)
	switch {
	case unsure == nil:
		return err
	case err == nil:
		return fmt.Errorf("update: what was read: %w", unsure)
	}
	return fmt.Errorf("%w: %w", unsure, err)
}

func (t *Tx) hasUsedHeld() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.usedHeld
}
