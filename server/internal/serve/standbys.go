package serve

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/standby"
)

// openStandbys opens the standbys of Options.Follow. A new one gets a record, so that the server has the database when it is promoted, too.
func (ds *Databases) openStandbys(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(ds.opts.Follow)) {
		key, err := CheckName(name)
		if err != nil {
			return fmt.Errorf("%w: Options.Follow: %w", jay.ErrOption, err)
		}
		d := ds.byKey[key]
		switch {
		case d != nil && (d.fixed() || d.dir != ""):
			return fmt.Errorf("%w: Options.Follow has the name %q, which another database has", jay.ErrOption, name)
		case d != nil && (d.deleting || d.broken != nil):
			return fmt.Errorf("%w: Options.Follow has the name %q of a database that is being deleted or has a damaged record", jay.ErrOption, name)
		case d == nil && len(ds.byKey) >= ds.opts.MaxDatabases:
			return fmt.Errorf("%w: with Options.Follow there are more databases than Options.MaxDatabases, %d", jay.ErrOption, ds.opts.MaxDatabases)
		}
		known := d != nil
		if !known {
			created, err := ds.opts.date()
			if err != nil {
				return err
			}
			d = newDatabase(key)
			d.Record = Record{Name: name, ID: NewID(), Created: created}
		}
		if d.standby, err = follow(ds.opts, ds.dir(key), d, ds.opts.Follow[name]); err != nil {
			return fmt.Errorf("Options.Follow, %q: %w", name, err)
		}
		ds.byKey[key] = d // from here on close closes the standby
		if d.Record.State == stateReady {
			continue
		}
		if err := ds.setState(ctx, d, stateReady); err != nil {
			return err
		}
	}
	return nil
}

// follow opens the standby of a database in its directory. How its IDs are made is decided by its source, and it needs no reserve of its disk.
func follow(all Options, dir string, d *Database, source standby.Source) (*standby.Standby, error) {
	o := all.Database
	o.NodeTag, o.CopyTag, o.Separator, o.CaseSensitive, o.PrefixCollections = "", "", "", false, jay.PrefixCollectionsStored
	o.MinFreeBytes, o.MustExist = 0, false
	o.Logger = all.Logger.With("database", d.Key)
	o.Observer = d.Figures.observer(o.Observer)
	return standby.Open(dir, source, standby.Options{Database: &o})
}

// fixed reports whether the server neither opens nor closes the database as requests come and go.
func (d *Database) fixed() bool { return d.mounted || d.standby != nil || d.address != "" }

// Standby returns the standby that the database is, or nil.
func (d *Database) Standby() *standby.Standby { return d.standby }

// noWait is a context that has ended.
var noWait = func() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}()

// renew returns the Database of what the readers of a standby have now: d, or another one that takes its place, as the database
// for readers has changed. ds.mu is held.
func (ds *Databases) renew(d *Database) (*Database, error) {
	db, err := d.standby.DB(noWait)
	switch {
	case errors.Is(err, context.Canceled):
		return nil, &Problem{Status: http.StatusServiceUnavailable, Kind: typeDatabaseLoad, Message: "the database is a standby that cannot be read yet: its first copy is under way, or it is being opened again", Headers: map[string]string{"Retry-After": "1"}}
	case err != nil:
		return nil, &Problem{Status: http.StatusServiceUnavailable, Kind: typeDatabaseLoad, Message: "the database is a standby without a copy, and follows no more; the server's log says why", Cause: err}
	case db == d.DB:
		return d, nil
	}
	fresh := newDatabase(d.Key)
	fresh.Record, fresh.etag, fresh.Figures, fresh.standby, fresh.DB, fresh.idle = d.Record, d.etag, d.Figures, d.standby, db, ds.opts.Now()
	fresh.client.Store(d.client.Load())
	d.cancel() // what watches the database that was closed
	ds.byKey[d.Key] = fresh
	return fresh, nil
}

// standbys returns the databases that are standbys.
func (ds *Databases) standbys() (all []*Database) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, d := range ds.byKey {
		if d.standby != nil {
			all = append(all, d)
		}
	}
	return all
}

// refreshStandbys reads the configurations for clients again: their sources change them.
func (ds *Databases) refreshStandbys(ctx context.Context) {
	for _, d := range ds.standbys() {
		opened, err := ds.Acquire(ctx, d.Record.Name)
		if err != nil {
			continue // without a copy
		}
		if err := opened.loadClient(ctx, opened.DB); err != nil && !errors.Is(err, jay.ErrClosed) {
			ds.opts.Logger.Warn("server: the configuration for the clients of a standby cannot be read", "database", d.Key, "err", err)
		}
		ds.Release(opened)
	}
}

// following sums up how the standbys of a server are.
type following struct {
	all, connected int
	unreadable     int           // have no copy yet
	late           int           // are unreadable, or behind more than Options.MaxLag
	lag            time.Duration // the longest of those that have a copy
}

// following returns how the standbys are.
func (ds *Databases) following() (f following) {
	for _, d := range ds.standbys() {
		status := d.standby.Status()
		f.all++
		if status.Connected {
			f.connected++
		}
		if !status.Readable {
			f.unreadable++
		}
		if !status.Readable || status.Lag > ds.opts.MaxLag {
			f.late++
		}
		f.lag = max(f.lag, status.Lag)
	}
	return f
}

// reopening returns the error of a call on a database that was closed under it, as a standby that is opened again.
func (d *Database) reopening(err error) error {
	if d.standby == nil || !errors.Is(err, jay.ErrClosed) {
		return err
	}
	return &Problem{Status: http.StatusServiceUnavailable, Kind: typeDatabaseLoad, Message: "the database is a standby that is being opened again: repeat the request", Headers: map[string]string{"Retry-After": "1"}, Cause: err}
}
