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

// Dir returns the directory that was passed to Open, or the name of the store as messages show it: without a
// password.
func (db *DB) Dir() string { return db.core.Env.Dir }

// Close waits for the calls in progress and for the functions that Read has called, returns unused HiLo
// numbers, makes every write durable and releases the directory. Iterations over documents that are still
// running end with ErrClosed. Close is idempotent: later calls return nil once the database is closed. If
// Options.Now panics during Close, the database is closed before the panic reaches the caller.
//
// Close returns an ErrFailed if the disk does not answer for 10 seconds; writes that wait for the disk then
// return ErrUnknownOutcome. The directory stays locked until the disk answers or the process ends, because
// goroutines of the engine may still write to it.
func (db *DB) Close() error {
	defer db.memory.End()
	return db.core.Close()
}

// Flush returns when every write acknowledged before it is on disk. Under Synced durability every acknowledged
// write is on disk already, except the batches of a BulkWriter. Flush also decides a write that returned
// ErrUnknownOutcome because its context ended: after Flush, a Get shows whether the write was committed.
// Concurrent calls and writes share the sync.
//
// Flush returns an ErrUnknownOutcome if ctx ends first or the disk fails: the writes are visible, but a crash
// may undo them.
func (db *DB) Flush(ctx context.Context) error {
	if db.core.Watch == nil {
		return db.core.Flush(ctx)
	}
	return db.core.Watch.Do(ctx, observe.Operation{Verb: "flush"}, func(ctx context.Context, _ *observe.Operation) error { return db.core.Flush(ctx) })
}
