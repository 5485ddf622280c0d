package serve

import (
	"context"
	"errors"
	"time"

	"github.com/jaydb/jay"
)

// defaultMinFreeBytes is the default of Options.Database.MinFreeBytes, on a disk that has
// ten times as much.
const defaultMinFreeBytes = 256 << 20

// minFreeBytes returns Options.Database.MinFreeBytes with its default, for a database in a
// directory: it may be on a disk of its own.
func (ds *Databases) minFreeBytes(dir string) int64 {
	o := &ds.opts
	switch n := o.Database.MinFreeBytes; {
	case n < 0:
		return 0
	case n > 0 || len(o.Directories) > 0 || o.Database.FS != nil || o.Database.Engine != nil:
		return n
	}
	for _, d := range []string{dir, o.Data} { // a new database's directory is not there yet
		if _, total, known := ds.space(d); known {
			return int64(min(defaultMinFreeBytes, total/10))
		}
	}
	return defaultMinFreeBytes
}

// SetSpace replaces what is asked for the space of a disk, for tests, and returns what a
// database in dir keeps free then.
func (ds *Databases) SetSpace(fn func(dir string) (free, total uint64, known bool), dir string) int64 {
	ds.space = fn
	return ds.minFreeBytes(dir)
}

// Times of the search for databases whose disk was full.
const (
	fullInterval = 5 * time.Second
	fullTimeout  = 10 * time.Second // for the users of a database to leave it
)

// reopenBytes is how much must be free before a database is opened again: room for its
// log, and for what the log holds.
const reopenBytes = 64 << 20

// trouble is why a database takes no writes.
type trouble uint8

const (
	noTrouble  trouble = iota
	LowOnSpace         // less is free than MinFreeBytes
	DiskFull           // its engine has failed, as the disk was full
	DiskFailed         // its engine has failed
)

// ReopenFull looks at all open databases, and opens those again whose disk was full and
// has room: their engine takes no writes any more, as it does not know what of its log is
// on the disk.
func (ds *Databases) ReopenFull(ctx context.Context) {
	for _, d := range ds.pinAll() {
		t, _ := ds.Look(ctx, d)
		ds.mu.Lock()
		d.trouble = t
		due := d.retry.due(ds.opts.Now())
		ds.mu.Unlock()
		reopen := t == DiskFull && due && !d.fixed() && ds.hasRoom(d.DB.Dir())
		ds.unwatch(d)
		if !reopen {
			continue
		}
		if err := ds.reopen(ctx, d); err != nil {
			ds.opts.Logger.Warn("server: a database whose disk was full cannot be opened yet, which is tried again", "database", d.Key, "err", err)
		} else {
			ds.opts.Logger.Info("server: a database whose disk was full is open again", "database", d.Key)
		}
	}
}

// pinAll makes itself a user of all open databases that are no standbys, which look after themselves.
func (ds *Databases) pinAll() (all []*Database) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, d := range ds.byKey {
		if d.DB != nil && d.standby == nil && d.busy == nil && !d.deleting {
			d.users++
			d.watchers++
			all = append(all, d)
		}
	}
	return all
}

// Look returns why a database takes no writes. An error is not of its engine: the database is
// closed, or its store cannot be reached, or ctx has ended.
func (ds *Databases) Look(ctx context.Context, d *Database) (trouble, error) {
	stats, err := d.DB.Stats(ctx)
	switch {
	case err != nil && !errors.Is(err, jay.ErrUnknownOutcome) && !errors.Is(err, jay.ErrFailed):
		return noTrouble, err
	case err == nil && !stats.Engine.Failed && stats.DiskFull:
		return LowOnSpace, nil
	case err == nil && !stats.Engine.Failed:
		return noTrouble, nil
	case err == nil:
		err = d.DB.Compact(ctx) // is refused with the cause
	}
	if errors.Is(err, jay.ErrDiskFull) {
		return DiskFull, nil
	}
	return DiskFailed, nil
}

// hasRoom reports whether the disk has the room that opening a database needs. If that is
// not known, it is tried.
func (ds *Databases) hasRoom(dir string) bool {
	need := uint64(reopenBytes)
	if n := ds.minFreeBytes(dir); n > 0 {
		need = min(need, uint64(n))
	}
	if own := ds.opts.Database.FS; own != nil {
		usage, err := own.GetDiskUsage(dir)
		return err != nil || usage.AvailBytes >= need
	}
	free, _, known := ds.space(dir)
	return !known || free >= need
}

// reopen closes a database and opens it again. Requests wait meanwhile; what watches the
// database ends.
func (ds *Databases) reopen(ctx context.Context, d *Database) error {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	if d.DB == nil || d.busy != nil || d.deleting {
		return nil
	}
	done := make(chan struct{})
	d.busy = done
	defer func() {
		close(done)
		d.busy = nil
	}()
	ctx, cancel := context.WithTimeout(ctx, fullTimeout)
	defer cancel()
	for d.users > 0 {
		if err := ds.endWatchers(ctx, d); err != nil {
			d.retry.failed(ds.opts.Now())
			return err
		}
	}
	failed := d.DB
	d.DB = nil
	ds.mu.Unlock()
	if err := ds.closeOne(d.Key, failed); err != nil {
		ds.opts.Logger.Warn("server: closing a database that is opened again", "database", d.Key, "err", err)
	}
	db, err := ds.openOne(d, true)
	ds.mu.Lock()
	if err != nil {
		ds.open--
		d.retry.failed(ds.opts.Now())
		return err
	}
	d.DB, d.idle, d.trouble, d.retry = db, ds.opts.Now(), noTrouble, backOff{}
	return nil
}

// troubled returns how many of the open databases take no writes.
func (ds *Databases) troubled() (n int) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, d := range ds.byKey {
		if d.trouble != noTrouble {
			n++
		}
	}
	return n
}
