package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jaydb/jay"
)

// checkStores checks that what the options say of stores can be done.
func (o *Options) checkStores() error {
	if len(o.Stores) == 0 {
		return nil
	}
	refused := func(rule string) error {
		return fmt.Errorf("server: %w: Options.Stores %s", jay.ErrOption, rule)
	}
	switch {
	case o.Data == "":
		return refused("needs Data, a directory for what this server alone records")
	case o.Database.Engine == nil:
		return refused("needs Database.Engine, the engine of the stores")
	case len(o.Directories) > 0 || len(o.Mounted) > 0 || len(o.Follow) > 0:
		return refused("goes without Directories, Mounted and Follow: the server has the databases of its stores, and no others")
	case o.Cluster != nil:
		return refused("goes without Cluster: the servers of a store agree through the store")
	case o.Database.MinFreeBytes > 0:
		return refused("goes without Database.MinFreeBytes: the space is that of another machine")
	}
	return nil
}

// openStores opens the databases of Options.Stores, which stay open: closing one would give back its node tag, and the work of this server.
func (ds *Databases) openStores(ctx context.Context) error {
	if len(ds.opts.Stores) == 0 {
		return nil
	}
	if len(ds.byKey) > 0 {
		return fmt.Errorf("%w: Options.Stores: the data directory %q has databases of its own, which a server of stores does not serve: name another one", jay.ErrOption, ds.opts.Data)
	}
	if n := len(ds.opts.Stores); n > min(ds.opts.MaxDatabases, ds.opts.MaxOpenDatabases) {
		return fmt.Errorf("%w: Options.Stores has %d databases, and all are open at once: raise MaxDatabases (%d) and MaxOpenDatabases (%d)", jay.ErrOption, n, ds.opts.MaxDatabases, ds.opts.MaxOpenDatabases)
	}
	for _, name := range slices.Sorted(maps.Keys(ds.opts.Stores)) {
		key, err := CheckName(name)
		if err != nil {
			return fmt.Errorf("%w: Options.Stores: %w", jay.ErrOption, err)
		}
		if ds.byKey[key] != nil {
			return fmt.Errorf("%w: Options.Stores has the name %q, which another database has", jay.ErrOption, name)
		}
		d := newDatabase(key)
		d.address, d.Record = ds.opts.Stores[name], Record{Name: name, State: stateReady}
		if d.DB, err = ds.openOne(d, false); err != nil {
			return fmt.Errorf("database %s: %w", name, err)
		}
		ds.open++
		ds.byKey[key] = d // from here on close closes it
	}
	return nil
}

// storedIdentity is what all servers of a store tell clients about it.
type storedIdentity struct {
	ID      string
	Created time.Time
}

// identityName is the name of the definition with a storedIdentity.
const identityName = "identity"

// join reads what this server and the others have to tell alike about the store of d, which the first server of a store makes, and returns that with
// the node tag that is leased there.
func (d *Database) join(ctx context.Context, db *jay.DB, o *Options) (own storedIdentity, tag string, err error) {
	created, err := o.date()
	if err != nil {
		return own, "", err
	}
	made := jay.DefinitionChange{Kind: DatabaseKind, Name: identityName, Value: MustJSON(storedIdentity{NewID(), created}), IfMissing: true}
	stored, err := db.Definitions().Get(ctx, DatabaseKind, identityName)
	if IsMissing(err) {
		if err = db.Definitions().Change(ctx, made); err == nil {
			stored, err = db.Definitions().Get(ctx, DatabaseKind, identityName)
		}
	}
	if err != nil {
		return own, "", err
	}
	if err := stored.Decode(&own); err != nil {
		return own, "", err
	}
	stats, err := db.Stats(ctx)
	return own, stats.NodeTag, err
}

// isTagGone reports whether a request has found that the node tag of the server in a store is that of another process, and it is still so: patience
// times in a row. It is called by one goroutine.
func (d *Database) isTagGone(ctx context.Context) bool {
	if !d.lost.Load() {
		return false
	}
	// A process whose lease was taken away leases its tag again, if nobody else has it. Raising nothing changes nothing, and asks whether it could.
	switch err := d.DB.RaiseCounters(ctx, jay.Counters{}); {
	case err == nil:
		d.lost.Store(false)
		d.taken = 0
	case errors.Is(err, jay.ErrLeaseLost):
		d.taken++
	}
	return d.taken >= patience
}

// patience is how often in a row a tag must be found to be gone. One that nobody else has is leased again by then.
const patience = 2

// tags are the node tags that the server leases in stores, by the keys of the databases. They are safe for concurrent use.
type tags struct {
	server string // the tag of a server without stores

	mu    sync.Mutex
	byKey map[string]string // Guarded by mu.
}

func (t *tags) set(key, tag string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.byKey == nil {
		t.byKey = make(map[string]string)
	}
	t.byKey[key] = tag
}

// Of returns the node tag of the server in a database. Without a name, or for a database that is not there, it is that of the server, which has the
// tag of its first store.
func (t *tags) Of(name string) string {
	key, _ := CheckName(name)
	t.mu.Lock()
	defer t.mu.Unlock()
	if tag, found := t.byKey[key]; found {
		return tag
	}
	if len(t.byKey) == 0 {
		return t.server
	}
	return t.byKey[slices.Min(slices.Collect(maps.Keys(t.byKey)))]
}

// InStore reports whether the database is one of Options.Stores, which other servers may have open.
func (d *Database) InStore() bool { return d.address != "" }
