package core

import (
	"cmp"
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/leases"
	"github.com/jaydb/jay/internal/revisions"
	"github.com/jaydb/jay/internal/schemas"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/internal/shared"
	"github.com/jaydb/jay/storage"
)

// forShared returns the options for a store that others may write to: nothing is remembered of
// documents. It refuses what cannot be done there.
func (o *Options) forShared() (*Options, error) {
	switch {
	case o.Cluster.Coordinator != nil:
		return nil, fmt.Errorf("%w: Cluster: nodes of a cluster have a store each", shared.ErrRefused)
	case o.Engine.AcceptLoss != nil:
		return nil, fmt.Errorf("%w: AcceptLoss: others rely on what it would write anew", shared.ErrRefused)
	case o.CacheAsked:
		return nil, fmt.Errorf("%w: DocumentCacheBytes (%d): a document may change at any time", shared.ErrRefused, o.Shares.Documents)
	}
	own := *o
	own.Shares.Documents, own.Shares.Heads = -1, 0
	own.leased = !o.Restoring && !o.Engine.ReadOnly
	return &own, nil
}

// lease leases a node tag: that of the options, or else one that is free. The rules of IDs have it from then on.
func (db *Database) lease(o *Options) (err error) {
	if !o.leased {
		return nil
	}
	e := db.Env
	db.leases, err = leases.Take(context.Background(), db.shared.Engine, leases.Options{
		Tag: o.Settings.NodeTag, First: e.Rules.NodeTag, Period: cmp.Or(o.Cluster.Period, leases.DefaultPeriod), Refuse: o.checkRestored, Warn: e.Warn,
	})
	if err != nil {
		return err
	}
	e.Rules.NodeTag, e.Works, db.shared.Guard = db.leases.Tag(), db.leases, db.leases.Check
	return nil
}

// leave gives back what this process has leased.
func (db *Database) leave() error {
	if db.leases == nil {
		return nil
	}
	return db.leases.Close(context.Background())
}

// definitions are what a database remembers of a shared store: see package shared.
type definitions struct {
	db       *Database
	catalog  *catalog.Catalog
	rules    *revisions.Rules
	schemas  *schemas.Rules
	settings format.Settings
}

// follow has the definitions follow a shared store from now on.
func (db *Database) follow() error {
	if db.shared == nil {
		return nil
	}
	err := db.shared.Start(func(r storage.Reader) (shared.Definitions, error) {
		d := &definitions{db: db}
		var err error
		if d.catalog, err = indexer.Read(r); err != nil {
			return nil, err
		}
		if d.rules, err = revisions.Read(r); err != nil {
			return nil, err
		}
		if d.schemas, err = db.Schemas.Read(r); err != nil {
			return nil, err
		}
		d.settings, err = settings.Load(r)
		return d, err
	})
	db.Env.Fresh = db.shared.Refresh
	return err
}

// Publish implements shared.Definitions.
func (d *definitions) Publish() {
	db := d.db
	db.Indexes.Replace(d.catalog)
	db.Revisions.Replace(d.rules)
	db.Schemas.Replace(d.schemas)
	db.Env.ExpirationDisabled.Store(d.settings.ExpirationDisabled)
	db.Env.RefreshDisabled.Store(d.settings.RefreshDisabled)
	if !db.readOnly && !db.alone { // background work may be done
		db.Retention.Resume() // a rule may be the first with KeepFor
	}
}

// OnDisk returns the engine to be asked about the disk: package shared, which decides about keys, does not offer what
// an engine knows of that.
func (db *Database) OnDisk() storage.Engine {
	if db.shared != nil {
		return db.shared.Engine
	}
	return db.Env.Engine
}

// View returns the catalog and a snapshot from take that agree: the indexes are in the
// snapshot as the catalog has them.
func (db *Database) View(take func() storage.Snapshot) (*catalog.Catalog, storage.Snapshot, error) {
	if db.shared == nil {
		c, snapshot := db.Indexes.View(take)
		return c, snapshot, nil
	}
	snapshot := take()
	found, err := db.shared.At(snapshot)
	if err != nil {
		return nil, nil, errs.First(err, snapshot.Close())
	}
	return found.(*definitions).catalog, snapshot, nil
}

// Refresh makes sure that what is remembered of a shared store is not older than the call, for a
// call without an error. If the store cannot be read, it stays as it was last seen.
func (db *Database) Refresh() {
	_ = db.Env.Renew()
}
