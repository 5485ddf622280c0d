package jay

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"weak"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/expiry"
	"github.com/jaydb/jay/internal/feed"
	"github.com/jaydb/jay/internal/hilo"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/internal/subs"
	"github.com/jaydb/jay/internal/write"
)

// DB is an open database. All methods are safe for concurrent use.
type DB struct {
	env      *env.Env
	docs     *docs.Reader
	opts     Options
	resolver *ids.Resolver

	watch *observe.Watch // gets the operations; nil for none

	prefixCollections bool // prefixes of IDs suggest collections

	reserved *counters.Reserved
	indexes  *catalog.Current
	writer   *write.Writer
	client   *ids.Client // of the writer
	clients  clients
	ranges   *hilo.Granter
	indexer  *indexer.Indexer
	horizon  *horizon.Horizon
	expiry   *expiry.Sweeper
	feeds    *feed.Source
	subs     *subs.Store
	contents *attachments.Store

	revisions revisions.Current    // the rules
	retention *revisions.Retention // what they keep no longer

	closing sync.Once
	down    chan struct{} // closed when Close has finished
	downMu  sync.Mutex
	downErr error // of Close. Valid once down is closed, until a caller takes it. Guarded by downMu.

	counts *counts.Counts

	inMemory bool

	renaming sync.Mutex // held by RenameCollection; never waited for
}

// Dir returns the directory that Open was given.
func (db *DB) Dir() string { return db.env.Dir }

// Flush returns when every write acknowledged before it is on disk. Under Synced
// durability that is always so, except for the batches of a BulkWriter. A write that has
// returned ErrUnknownOutcome because its context ended is decided then: a Get shows whether
// it has happened. Concurrent calls and writes share the sync.
//
// If ctx ends first, or the disk fails, Flush returns an ErrUnknownOutcome: the
// writes are visible, but a crash may undo them.
func (db *DB) Flush(ctx context.Context) error {
	if db.watch == nil {
		return flush(ctx, db)
	}
	return db.watch.Do(ctx, observe.Operation{Verb: "flush"}, func(ctx context.Context, _ *observe.Operation) error { return flush(ctx, db) })
}

func flush(ctx context.Context, db *DB) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	if err := db.env.Engine.Sync(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// clients are the clients of this process that are still in use, without the
// database's own.
type clients struct {
	mu   sync.Mutex
	list []weak.Pointer[ids.Client] // Guarded by mu.
}

func (c *clients) add(client *ids.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.list) == cap(c.list) {
		c.list = slices.DeleteFunc(c.list, func(p weak.Pointer[ids.Client]) bool { return p.Value() == nil })
	}
	c.list = append(c.list, weak.Make(client))
}
