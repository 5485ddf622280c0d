package jay

import (
	"context"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/parts"
	"github.com/jaydb/jay/internal/sealed"
)

// DB is an open database. All methods are safe for concurrent use.
type DB struct {
	core core.Database
	opts Options

	memory *budget.Claim // until Close
}

// Tests of the packages below, and package standby, look into a database by this.
func init() {
	parts.Of = func(db any) *core.Database { return &db.(*DB).core }
	parts.Keys = func(db any) sealed.Keys { return sealed.From(db.(*DB).opts.EncryptionKeys) }
}

// Dir returns the directory that Open was given, or the name of the store as messages have it: without a password.
func (db *DB) Dir() string { return db.core.Env.Dir }

// Close waits for the calls in progress and the functions of Read, returns unused
// HiLo numbers, makes every write durable and releases the directory. Iterations
// over documents that are still running end with ErrClosed. Close is idempotent:
// later calls return nil when the database is closed. If Options.Now panics during
// Close, the database is closed before the panic reaches the caller.
//
// If the disk does not answer for 10 seconds, writes that wait for it return
// ErrUnknownOutcome, and Close returns an ErrFailed. The directory stays locked
// until the disk answers or the process ends: goroutines of the engine may
// still write to it.
func (db *DB) Close() error {
	defer db.memory.End()
	return db.core.Close()
}

// Flush returns when every write acknowledged before it is on disk. Under Synced
// durability that is always so, except for the batches of a BulkWriter. A write that has
// returned ErrUnknownOutcome because its context ended is decided then: a Get shows whether
// it has happened. Concurrent calls and writes share the sync.
//
// If ctx ends first, or the disk fails, Flush returns an ErrUnknownOutcome: the
// writes are visible, but a crash may undo them.
func (db *DB) Flush(ctx context.Context) error {
	if db.core.Watch == nil {
		return db.core.Flush(ctx)
	}
	return db.core.Watch.Do(ctx, observe.Operation{Verb: "flush"}, func(ctx context.Context, _ *observe.Operation) error { return db.core.Flush(ctx) })
}
