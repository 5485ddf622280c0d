package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/expiry"
	"github.com/jaydb/jay/internal/invariants"
	"github.com/jaydb/jay/internal/relay"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/storage"
)

// Close waits for the calls in progress and the functions of Read, returns unused
// HiLo numbers, makes every write durable and releases the directory. Iterations
// over documents that are still running end with ErrClosed. Close is idempotent:
// later calls return nil when the database is closed. If the clock panics during
// Close, the database is closed before the panic reaches the caller.
//
// If the disk does not answer for 10 seconds, writes that wait for it return
// ErrUnknownOutcome, and Close returns an ErrFailed. The directory stays locked
// until the disk answers or the process ends: goroutines of the engine may
// still write to it.
func (db *Database) Close() error {
	first := false
	var ending relay.Ending // of shutDown, for the first caller
	db.closing.Do(func() {
		first = true
		go func() {
			defer close(db.down)
			ending.Watch(func() { db.downErr = db.shutDown() })
		}()
	})
	if err := db.Env.Engine.Await(db.down); err != nil {
		return fmt.Errorf("jay: %w", err)
	}
	if first {
		ending.Repeat()
	}
	return db.takeCloseError()
}

// takeCloseError returns the error of Close, to the first caller that asks.
func (db *Database) takeCloseError() error {
	db.downMu.Lock()
	defer db.downMu.Unlock()
	err := db.downErr
	db.downErr = nil
	return err
}

// shutDown closes the database, and waits as long as that takes.
func (db *Database) shutDown() (err error) {
	begun := time.Now()
	defer func() {
		if err == nil {
			db.logTook("jay: closed", begun)
		}
	}()
	var lookErr error
	if db.looked != nil {
		lookErr = db.looked.Close()
	}
	db.answers.Close()
	db.Indexer.Stop()
	db.Expiry.Stop()
	db.Retention.Stop()
	db.Validate.Stop()
	db.Horizon.Stop()
	db.Subs.Stop()
	db.Live.Stop()
	db.Feeds.Hub.Stop() // after the horizon: see horizon.Follower.Close
	db.Contents.Stop()
	db.Counts.Stop()
	if invariants.Enabled {
		if err := db.CheckCounts(context.Background()); errors.Is(err, counts.ErrMiscounted) {
			invariants.Broken("%v", err)
		}
		if err := db.CheckContents(context.Background()); errors.Is(err, attachments.ErrInconsistent) {
			invariants.Broken("%v", err)
		}
		moment := db.Env.Engine.Latest() // writes may go on
		if err := errors.Join(expiry.Check(moment), moment.Close()); errors.Is(err, expiry.ErrEntries) {
			invariants.Broken("%v", err)
		}
		if err := db.CheckRevisions(); errors.Is(err, revisions.ErrContradiction) {
			invariants.Broken("%v", err)
		}
	}
	db.leaveCluster()
	db.Writer.Lines.Dissolve() // a call in line that is inside the gate goes on, others find it closed
	db.Env.Pins.Stop()         // before the gate: a function that Read has called may use the database
	db.Env.CloseGate()

	// Deferred, as the client calls Options.Now, which may panic.
	var clientErr error
	defer func() { err = errors.Join(db.closeEngine(clientErr), lookErr) }()
	clientErr = db.Client.Close(context.Background())
	return nil
}

// closeEngine releases everything that is open, and then closes the engine.
// clientErr is the error of returning HiLo numbers. No call is inside the gate.
func (db *Database) closeEngine(clientErr error) error {
	err := errors.Join(clientErr, db.Env.ReleaseAll(errs.ErrClosed))
	if db.Writer.Cluster != nil {
		db.Writer.Cluster.Close()
	}
	err = errors.Join(err, db.release())
	if err = errors.Join(err, db.leave()); errors.Is(err, errs.ErrLeaseLost) {
		// The write that met the loss has returned it, and no acknowledged write is lost: the rest gives back numbers that
		// were not used.
		err = nil
	}
	if errors.Is(err, storage.ErrFailed) && !errors.Is(err, storage.ErrUnknownOutcome) && db.Env.Synced {
		// The write that met the failure has returned it, and no acknowledged write
		// is lost: the rest is to release the resources.
		err = nil
	}
	return errors.Join(err, db.Env.Engine.Close())
}

// release writes the last commit: the numbers used, and the removal of records that
// no transaction needs any more.
func (db *Database) release() error {
	remove, err := db.Horizon.Finish()
	if err != nil {
		// The next Close tries again.
		if db.Env.Logger != nil {
			db.Env.Logger.Warn("jay: removing records of deletions", "err", err)
		}
		remove = func(storage.Tx) error { return nil }
	}
	return db.Reserved.Release(context.Background(), remove)
}
