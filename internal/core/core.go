// Package core has the parts of an open database, opens and closes them, and carries out
// the calls that several packages make of them: a write, a query, a walk.
//
// Package jay has one Database in each DB. Packages that carry out whole calls, such as txn
// and session, take a *Database. Their functions enter the gate, and so do the methods of
// Database: a part of a database below, which works for a call that is inside, does not.
package core

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"weak"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/ask"
	"github.com/jaydb/jay/internal/attachments"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/counters"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/expiry"
	"github.com/jaydb/jay/internal/feed"
	"github.com/jaydb/jay/internal/follow"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/hilo"
	"github.com/jaydb/jay/internal/horizon"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/leases"
	"github.com/jaydb/jay/internal/live"
	"github.com/jaydb/jay/internal/look"
	"github.com/jaydb/jay/internal/observe"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/internal/schemas"
	"github.com/jaydb/jay/internal/shared"
	"github.com/jaydb/jay/internal/subs"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// Database is an open database. The exported fields are set by Open and do not change
// afterwards. All methods are safe for concurrent use.
type Database struct {
	Env      *env.Env
	Docs     *docs.Reader
	Resolver *ids.Resolver
	Watch    *observe.Watch // gets the operations; nil for none

	PrefixCollections bool // prefixes of IDs suggest collections
	InMemory          bool
	readOnly          bool

	shared  *shared.Engine // that of Env, on a shared store; nil on a store of one's own
	leases  *leases.Holder // of this process, on a shared store that it writes to; else nil
	looked  *look.Listener // nil if no other process can look into the database
	answers *look.Answerer // to those who come another way than through a socket
	Owner   *ask.Owner     // the program that has the database open, if this one looks into it; else nil
	alone   bool           // no other process can have a shared store open: Restore has not made it whole yet

	Reserved *counters.Reserved
	Indexes  *catalog.Current
	Writer   *write.Writer
	Client   *ids.Client // of the writer
	clients  clients
	HiLo     hilo.Options
	Ranges   *hilo.Granter
	Indexer  *indexer.Indexer
	Horizon  *horizon.Horizon
	Expiry   *expiry.Sweeper
	Feeds    *feed.Source
	Subs     *subs.Store
	Live     *live.Queries
	Standbys *follow.Source // what standbys follow; nil if the engine does not show its commits
	Contents *attachments.Store

	Schemas  schemas.Current // the rules about the shape of documents
	Validate *schemas.Pass   // validates what was there when a rule was set

	Revisions revisions.Current    // the rules
	Retention *revisions.Retention // what they keep no longer
	Counts    *counts.Counts

	Entities sync.Map // *codec.Mapping by reflect.Type, of the entities of all sessions

	Renaming sync.Mutex // held while a collection is renamed; never waited for

	closing sync.Once
	down    chan struct{} // closed when Close has finished
	downMu  sync.Mutex
	downErr error // of Close. Valid once down is closed, until a caller takes it. Guarded by downMu.
}

// NewClient returns another HiLo client of this process.
func (db *Database) NewClient() *ids.Client {
	c := db.Ranges.NewClient(db.Env)
	db.clients.add(c)
	return c
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

// EachClient calls fn with the HiLo clients of this process.
func (db *Database) EachClient(fn func(*ids.Client)) {
	fn(db.Client)
	db.clients.mu.Lock()
	list := slices.Clone(db.clients.list)
	db.clients.mu.Unlock()
	for _, p := range list {
		if c := p.Value(); c != nil {
			fn(c)
		}
	}
}

// Inside calls fn inside the gate.
func (db *Database) Inside(fn func() error) error {
	if err := db.Env.Enter(); err != nil {
		return err
	}
	defer db.Env.Exit()
	return fn()
}

// Scan opens a Cursor over documents of the snapshot that take returns. It is for
// callers that are not inside the gate.
func (db *Database) Scan(over docs.Range, take func() storage.Snapshot) (*docs.Cursor, error) {
	if err := db.Env.Enter(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	return db.Docs.Scan(over, take)
}

// Flush waits until all that is committed is on disk.
func (db *Database) Flush(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.Env.Enter(); err != nil {
		return err
	}
	defer db.Env.Exit()
	if err := db.Env.Engine.Sync(ctx); err != nil {
		return fmt.Errorf("flush: %w", err)
	}
	return nil
}

// ConfigureDue switches a kind of what is due on or off.
func (db *Database) ConfigureDue(ctx context.Context, what string, kind byte, disabled bool) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if kind != format.DueExpiry && kind != format.DueRefresh {
		return fmt.Errorf("configure %s: %w: there is no kind %d of what is due", errs.Shorten(what), ids.ErrUsage, kind)
	}
	if db.Owner != nil {
		return Ask[any, any](ctx, db, ask.ConfigureDue, ask.DueArguments{What: what, Kind: kind, Disabled: disabled}, new(any), nil)
	}
	if err := db.Env.Enter(); err != nil {
		return err
	}
	defer db.Env.Exit()
	if err := db.Expiry.Configure(ctx, kind, disabled); err != nil {
		return fmt.Errorf("configure %s: %w", what, err)
	}
	return nil
}
