package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/standby"
)

// The directories of a data directory.
const (
	systemDir    = "system"    // the server's own database
	databasesDir = "databases" // a directory per database, named by its key
	deletedDir   = "deleted"   // directories of databases that are being removed
)

// Databases manages the databases of a data directory.
//
// Each database has a record, a document of the server's own database. The record is
// written before the directory is created, and deleted after the directory is gone. So the
// next Open completes every creation or deletion that a crash has interrupted, and a
// missing directory is an error, never an empty database.
type Databases struct {
	opts     Options
	System   *jay.DB
	ServerID string // of this data directory

	mu    sync.Mutex
	Tags  tags
	byKey map[string]*Database                              // Guarded by mu.
	space func(dir string) (free, total uint64, known bool) // diskSpace, or that of a test
	open  int                                               // number of databases that are open or being opened. Guarded by mu.

	left backOff // of removing what is left in deletedDir. Used by one goroutine.

	clusterMu    sync.Mutex
	coordinators map[string]cluster.Coordinator // of the open databases, by key. Guarded by clusterMu.
}

// Database is one database. Its fields that change are guarded by Databases.mu.
type Database struct {
	Key    string
	Record Record
	etag   uint64 // of the record

	Figures *figures         // figures of its operations since the start of the server
	dir     string           // one of Options.Directories, or ""
	mounted bool             // it is one of Options.Mounted: DB is the program's, and never nil
	address string           // of one of Options.Stores, or ""
	lost    atomic.Bool      // a request has found that the lease of the tag is gone
	taken   int              // how often in a row it was found so. Used by one goroutine
	standby *standby.Standby // one of Options.Follow, whose DB is; or nil

	client   atomic.Pointer[jay.Definition] // the configuration for its clients, as it was read last, or nil
	clientMu sync.Mutex                     // held while client changes

	DB       *jay.DB       // nil while it is closed
	users    int           // number of requests that use db
	held     int           // number of handles that the program has of it: see Hold
	watchers int           // those of users that wait for changes and do nothing else
	idle     time.Time     // when the last of them ended
	busy     chan struct{} // not nil while db is being opened, closed or removed; closed afterwards
	deleting bool
	vacant   chan struct{}   // not nil while a deletion waits for the users; closed by the last
	ctx      context.Context // ends when the database is about to be deleted, or closed while it is watched
	cancel   context.CancelFunc
	broken   error   // why the record cannot be read, or nil
	trouble  trouble // as ReopenFull has found it
	retry    backOff // of reopening, or of removing the files
}

// The states of a record.
const (
	stateCreating = "creating"
	stateReady    = "ready"
	stateDeleting = "deleting"
)

// Record is what the server stores about a database.
type Record struct {
	Name    string
	State   string
	ID      string                     // made by the server
	Created time.Time                  //
	Given   map[string]json.RawMessage `json:",omitempty"` // RavenDB's database record, as it was given
}

const (
	recordPrefix = "databases/"
	serverRecord = "server"
)

func openDatabases(o Options) (*Databases, error) {
	memory, err := DatabaseMemory(o.MaxMemory)
	if err != nil {
		return nil, err
	}
	system, err := openSystem(o)
	if err != nil {
		return nil, err
	}
	o.Database.Memory = memory
	ds := &Databases{opts: o, space: diskSpace, System: system, Tags: tags{server: o.Tag()}, byKey: make(map[string]*Database), coordinators: make(map[string]cluster.Coordinator)}
	if err := ds.load(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("server: data directory %q: %w", o.Data, err), ds.close())
	}
	if err := errors.Join(ds.openDirectories(context.Background()), ds.mount(), ds.openStores(context.Background()), ds.openStandbys(context.Background())); err != nil {
		return nil, errors.Join(fmt.Errorf("server: %w", err), ds.close())
	}
	if err := ds.moveAllDefinitions(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("server: data directory %q: %w", o.Data, err), ds.close())
	}
	return ds, nil
}

// openSystem opens the server's own database. A server of mounted databases alone need not have a data directory:
// then it is in memory. All its caches are set, so that it claims nothing of what other databases share. They take 6.5 MiB with cgo, of systemMemory.
func openSystem(o Options) (*jay.DB, error) {
	own := &jay.Options{Logger: o.Logger, Now: o.Database.Now, CacheBytes: 2 << 20, DocumentCacheBytes: 1 << 20, MemTableBytes: 512 << 10}
	if o.Data == "" {
		return jay.OpenMemory(own)
	}
	for _, dir := range []string{databasesDir, deletedDir} {
		if err := makeDir(filepath.Join(o.Data, dir), o.Database.GroupReadable); err != nil {
			return nil, fmt.Errorf("server: %w: %w", jay.ErrNotWritable, err)
		}
	}
	own.GroupReadable, own.EncryptionKeys = o.Database.GroupReadable, o.Database.EncryptionKeys
	system, err := jay.Open(filepath.Join(o.Data, systemDir), own)
	if err != nil {
		return nil, fmt.Errorf("server: data directory %q: %w", o.Data, err)
	}
	return system, nil
}

// load reads the records, and completes interrupted deletions.
func (ds *Databases) load(ctx context.Context) error {
	var err error
	if ds.ServerID, err = loadID(ctx, ds.System); err != nil {
		return err
	}
	for doc, err := range ds.System.Documents(ctx, jay.Scan{Prefix: recordPrefix}) {
		if err != nil {
			return err
		}
		d := newDatabase(strings.TrimPrefix(doc.ID(), recordPrefix))
		if err := doc.Decode(&d.Record); err != nil {
			d.broken, d.Record.Name = fmt.Errorf("record %s: %w", doc.ID(), err), d.Key
			ds.opts.Logger.Error("server: a database cannot be used, as its record cannot be read", "database", d.Key, "err", err)
		}
		d.etag = doc.Metadata().Etag
		d.deleting = d.Record.State == stateDeleting
		ds.byKey[d.Key] = d
	}
	ds.FinishDeletions(ctx)
	return nil
}

// openDirectories opens each database of Options.Directories once, so that errors show at
// the start.
func (ds *Databases) openDirectories(ctx context.Context) error {
	for name, dir := range ds.opts.Directories {
		key, err := CheckName(name)
		if err != nil {
			return fmt.Errorf("%w: Options.Directories: %w", jay.ErrOption, err)
		}
		if ds.byKey[key] != nil {
			return fmt.Errorf("%w: Options.Directories has the name %q, which another database has", jay.ErrOption, name)
		}
		created, err := ds.opts.date()
		if err != nil {
			return err
		}
		d := newDatabase(key)
		d.dir, d.Record = dir, Record{Name: name, State: stateReady, ID: NewID(), Created: created}
		ds.byKey[key] = d
		if d, err = ds.Acquire(ctx, name); err != nil {
			return err
		}
		ds.Release(d)
	}
	return nil
}

// mount adds the databases of Options.Mounted, which are open and stay so.
func (ds *Databases) mount() error {
	for name, db := range ds.opts.Mounted {
		key, err := CheckName(name)
		if err != nil {
			return fmt.Errorf("%w: Options.Mounted: %w", jay.ErrOption, err)
		}
		if db == nil {
			return fmt.Errorf("%w: Options.Mounted has no database under the name %q", jay.ErrOption, name)
		}
		if ds.byKey[key] != nil {
			return fmt.Errorf("%w: Options.Mounted has the name %q, which another database has", jay.ErrOption, name)
		}
		created, err := ds.opts.date()
		if err != nil {
			return err
		}
		d := newDatabase(key)
		d.mounted, d.DB = true, db
		d.Record = Record{Name: name, State: stateReady, ID: NewID(), Created: created}
		if err := ds.adopt(d, db); err != nil {
			return fmt.Errorf("Options.Mounted, %q: %w", name, err)
		}
		ds.byKey[key] = d
	}
	return nil
}

// loadID reads the ID of the data directory from the server's own database, or creates one.
func loadID(ctx context.Context, system *jay.DB) (id string, err error) {
	doc, err := system.Get(ctx, serverRecord)
	if errors.Is(err, jay.ErrNotFound) {
		id = NewID()
		_, err = system.Put(ctx, serverRecord, MustJSON(map[string]string{"ID": id}), jay.InCollection("Servers"))
		return id, err
	}
	if err != nil {
		return "", err
	}
	id, _, err = jay.Value[string](doc, "ID")
	return id, err
}

func newDatabase(key string) *Database {
	d := &Database{Key: key, Figures: newFigures()}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

func (ds *Databases) dir(key string) string { return filepath.Join(ds.opts.Data, databasesDir, key) }

// find returns a database. ds.mu is held.
func (ds *Databases) find(key, name string) (*Database, error) {
	d := ds.byKey[key]
	if d == nil || d.deleting {
		return nil, missingDatabase(name)
	}
	if d.broken != nil {
		return nil, &Problem{Status: 500, Kind: typeDatabaseLoad, Message: "the database could not be opened; the server's log says why", Cause: d.broken}
	}
	return d, nil
}

// RecordOf returns the record of a database, and its etag.
func (ds *Databases) RecordOf(name string) (Record, uint64, error) {
	key, err := CheckName(name)
	if err != nil {
		return Record{}, 0, err
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d, err := ds.find(key, name)
	if err != nil {
		return Record{}, 0, err
	}
	return d.Record, d.etag, nil
}

// List returns the names of all databases, sorted.
func (ds *Databases) List() []string {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	names := make([]string, 0, len(ds.byKey))
	for _, d := range ds.byKey {
		if !d.deleting && d.Record.State == stateReady {
			names = append(names, d.Record.Name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return names
}

// Acquire returns a database, which it opens if necessary. The caller must call release.
func (ds *Databases) Acquire(ctx context.Context, name string) (*Database, error) {
	d, _, err := ds.take(ctx, name, false)
	return d, err
}

// take is Acquire, and returns what ContextOf is at that moment: who is counted as a user from then on, and reads it later, may get
// the context of those who come after the end that was meant for it. A caller with watches only waits for changes until that
// context ends, and must call unwatch.
func (ds *Databases) take(ctx context.Context, name string, watches bool) (*Database, context.Context, error) {
	key, err := CheckName(name)
	if err != nil {
		return nil, nil, err
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for {
		d, err := ds.find(key, name)
		if err != nil {
			return nil, nil, err
		}
		if d.busy != nil {
			if err := ds.await(ctx, d.busy); err != nil {
				return nil, nil, err
			}
			continue
		}
		if d.standby != nil {
			if d, err = ds.renew(d); err != nil {
				return nil, nil, err
			}
		}
		if d.DB == nil {
			again, err := ds.start(ctx, d, watches)
			if err != nil {
				return nil, nil, err
			}
			if again {
				continue
			}
		}
		d.users++
		if watches {
			d.watchers++
		}
		return d, d.ctx, nil
	}
}

// await waits for a channel. It releases ds.mu meanwhile.
func (ds *Databases) await(ctx context.Context, done <-chan struct{}) error {
	ds.mu.Unlock()
	defer ds.mu.Lock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start opens d. If too many databases are open, it closes another one first. again
// reports that the caller must check the state again. ds.mu is held, and released
// meanwhile.
func (ds *Databases) start(ctx context.Context, d *Database, watches bool) (again bool, err error) {
	if ds.open >= ds.opts.MaxOpenDatabases {
		return true, ds.makePlace(ctx, watches)
	}
	ds.open++
	done := make(chan struct{})
	d.busy = done
	if d.Record.State == stateCreating { // a crash has interrupted the creation
		ds.mu.Unlock()
		err = ds.firstOpen(context.WithoutCancel(ctx), d, watches)
		ds.mu.Lock()
	} else {
		ds.mu.Unlock()
		var db *jay.DB
		db, err = ds.openFitting(ctx, d, true, watches)
		ds.mu.Lock()
		d.DB, d.idle, d.trouble = db, ds.opts.Now(), noTrouble
	}
	close(done)
	d.busy = nil
	if err != nil {
		ds.open--
	}
	return false, err
}

// openFitting opens a database, which is busy, for requests. As long as too little of the shared memory is left, it closes others, as makePlace
// says.
func (ds *Databases) openFitting(ctx context.Context, d *Database, mustExist, watches bool) (*jay.DB, error) {
	for {
		db, err := ds.openOne(d, mustExist)
		if !errors.Is(err, jay.ErrMemory) {
			return db, err
		}
		ds.mu.Lock()
		full := ds.makePlace(ctx, watches)
		ds.mu.Unlock()
		if full != nil {
			return nil, full
		}
	}
}

// openOne opens a database for requests.
func (ds *Databases) openOne(d *Database, mustExist bool) (*jay.DB, error) {
	db, err := ds.openFiles(d, mustExist)
	if err != nil {
		return nil, err
	}
	if err := ds.adopt(d, db); err != nil {
		return nil, errors.Join(err, ds.closeOne(d.Key, db))
	}
	return db, nil
}

// openFiles opens the directory of a database.
func (ds *Databases) openFiles(d *Database, mustExist bool) (*jay.DB, error) {
	o := ds.opts.Database
	o.MustExist = mustExist
	o.ExpirationDisabled, o.RefreshDisabled = Expiration.isDisabledIn(d.Record.Given), Refresh.isDisabledIn(d.Record.Given) // of a new one
	o.Logger = ds.opts.Logger.With("database", d.Key)
	o.Observer = d.Figures.observer(o.Observer)
	dir := ds.dir(d.Key)
	if named := cmp.Or(d.dir, d.address); named != "" {
		dir, o.PrefixCollections = named, jay.PrefixCollectionsStored
	}
	if d.address != "" {
		return jay.Open(dir, &o)
	}
	o.MinFreeBytes = ds.minFreeBytes(dir)
	if ds.opts.Cluster == nil {
		return jay.Open(dir, &o)
	}
	own, err := ds.opts.Cluster(d.Key)
	if err != nil {
		return nil, fmt.Errorf("the coordinator of the database: %w", err)
	}
	o.Cluster, o.ClusterAddress = own, ds.opts.Address
	db, err := jay.Open(dir, &o)
	if err != nil {
		return nil, errors.Join(err, own.Close())
	}
	ds.clusterMu.Lock()
	defer ds.clusterMu.Unlock()
	ds.coordinators[d.Key] = own
	return db, nil
}

// closeOne closes a database, and then its coordinator.
func (ds *Databases) closeOne(key string, db *jay.DB) error {
	err := db.Close()
	ds.clusterMu.Lock()
	own := ds.coordinators[key]
	delete(ds.coordinators, key)
	ds.clusterMu.Unlock()
	if own != nil {
		err = errors.Join(err, own.Close())
	}
	return err
}

// CoordinatorOf returns the coordinator of an open database, or nil.
func (ds *Databases) CoordinatorOf(key string) cluster.Coordinator {
	ds.clusterMu.Lock()
	defer ds.clusterMu.Unlock()
	return ds.coordinators[key]
}

// idlest returns the least recently used of the open databases without requests. ds.mu is
// held.
func (ds *Databases) idlest() *Database {
	var found *Database
	for _, d := range ds.byKey {
		if d.DB != nil && !d.fixed() && d.users == 0 && d.held == 0 && d.busy == nil && (found == nil || d.idle.Before(found.idle)) {
			found = d
		}
	}
	return found
}

// makePlace closes the database that has been idle longest. If all have users, it takes
// one whose users only wait for changes, and ends these: a RavenDB client connects again
// on its own. A caller who only waits, too, does not push others out. ds.mu is held, and
// released meanwhile, so that the caller must check the state again.
func (ds *Databases) makePlace(ctx context.Context, watches bool) error {
	if idlest := ds.idlest(); idlest != nil {
		ds.stop(idlest)
		return nil
	}
	var found *Database
	for _, d := range ds.byKey {
		if !watches && d.DB != nil && !d.fixed() && d.held == 0 && d.busy == nil && !d.deleting && d.users == d.watchers && (found == nil || d.idle.Before(found.idle)) {
			found = d
		}
	}
	if found == nil {
		if ds.open < ds.opts.MaxOpenDatabases {
			return overload("the databases in use have the memory for caches (MaxMemory)")
		}
		return overload("%d databases are in use at a time, which is the most (MaxOpenDatabases)", ds.open)
	}
	ds.opts.Logger.Info("server: a database that is only watched makes place for another one", "database", found.Key, "watchers", found.watchers)
	return ds.endWatchers(ctx, found)
}

// endWatchers ends the context of a database, and waits until it has no users. Others may
// come meanwhile. ds.mu is held, and released meanwhile.
func (ds *Databases) endWatchers(ctx context.Context, d *Database) error {
	d.cancel()
	d.ctx, d.cancel = context.WithCancel(context.Background())
	if d.users == 0 {
		return nil
	}
	if d.vacant == nil {
		d.vacant = make(chan struct{})
	}
	return ds.await(ctx, d.vacant)
}

// stop closes d, which must have no users. ds.mu is held, and released meanwhile.
func (ds *Databases) stop(d *Database) {
	done, db := make(chan struct{}), d.DB
	d.busy, d.DB, d.trouble = done, nil, noTrouble
	ds.mu.Unlock()
	if err := ds.closeOne(d.Key, db); err != nil {
		ds.opts.Logger.Error("server: closing a database", "database", d.Key, "err", err)
	}
	ds.mu.Lock()
	ds.open--
	close(done)
	d.busy = nil
}

// Release ends a use of d.
func (ds *Databases) Release(d *Database) { ds.leave(d, false) }

// unwatch ends a use of d by a caller who only waits for changes.
func (ds *Databases) unwatch(d *Database) { ds.leave(d, true) }

func (ds *Databases) leave(d *Database, watched bool) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d.users--
	if watched {
		d.watchers--
	} else {
		d.idle = ds.opts.Now()
	}
	if d.users == 0 && d.vacant != nil {
		close(d.vacant)
		d.vacant = nil
	}
}

// CloseIdle closes the databases without a request for Options.IdleAfter.
func (ds *Databases) CloseIdle() {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for {
		d := ds.idlest()
		if d == nil || ds.opts.Now().Sub(d.idle) < ds.opts.IdleAfter {
			return
		}
		ds.stop(d)
	}
}

// Create creates a database, and returns the etag of its record. An existing directory of
// the name, which a deletion has left or a user has put there, becomes its contents.
func (ds *Databases) Create(ctx context.Context, name, id string, given map[string]json.RawMessage) (etag uint64, err error) {
	key, err := CheckName(name)
	if err != nil {
		return 0, err
	}
	if ds.opts.fixed() {
		return 0, NotSupported("this server has the databases that it was started with, and creates no others")
	}
	created, err := ds.opts.date()
	if err != nil {
		return 0, err
	}
	d := newDatabase(key)
	d.Record = Record{Name: name, State: stateCreating, ID: id, Created: created, Given: given}
	if err := ds.enter(ctx, d); err != nil {
		return 0, err
	}
	ctx = context.WithoutCancel(ctx) // what has begun is finished
	err = ds.setState(ctx, d, stateCreating)
	if err == nil {
		err = ds.firstOpen(ctx, d, false)
	}
	if err != nil {
		// Without a record the server ignores the directory. If the record cannot be
		// deleted, the next start resumes the creation.
		if undone := ds.System.Delete(ctx, recordPrefix+d.Key); undone != nil {
			ds.opts.Logger.Error("server: a database that could not be created keeps its record", "database", d.Key, "err", undone)
		}
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	close(d.busy)
	d.busy = nil
	if err != nil {
		delete(ds.byKey, key)
		ds.open--
		return 0, err
	}
	return d.etag, nil
}

// enter adds a new database, which stays busy until it is created.
func (ds *Databases) enter(ctx context.Context, d *Database) error {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for {
		switch other := ds.byKey[d.Key]; {
		case other != nil && other.deleting:
			return &Problem{Status: 409, Kind: TypeConcurrency, Message: fmt.Sprintf("Database '%s' is being deleted, and not all of its files are gone", other.Record.Name)}
		case other != nil:
			return &Problem{Status: 409, Kind: TypeConcurrency, Message: fmt.Sprintf("Database '%s' already exists", other.Record.Name)}
		case len(ds.byKey) >= ds.opts.MaxDatabases:
			return BadRequest("there are %d databases, which is the most", len(ds.byKey))
		}
		if ds.open < ds.opts.MaxOpenDatabases {
			break
		}
		if err := ds.makePlace(ctx, false); err != nil { // releases ds.mu: others may create databases meanwhile
			return err
		}
	}
	ds.open++
	d.busy = make(chan struct{})
	ds.byKey[d.Key] = d
	return nil
}

// firstOpen creates the directory of a new database, which is busy, and records that in
// its state.
func (ds *Databases) firstOpen(ctx context.Context, d *Database, watches bool) error {
	db, err := ds.openFitting(ctx, d, false, watches)
	if err != nil {
		return err
	}
	if err := ds.setState(ctx, d, stateReady); err != nil {
		return errors.Join(err, ds.closeOne(d.Key, db))
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d.DB, d.idle = db, ds.opts.Now()
	return nil
}

// setState stores the record of d, which is busy, with another state.
func (ds *Databases) setState(ctx context.Context, d *Database, state string) error {
	r := d.Record // a copy: others read d.record
	r.State = state
	meta, err := ds.System.Put(ctx, recordPrefix+d.Key, MustJSON(r), jay.InCollection("Databases"))
	if err != nil {
		return err
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d.Record, d.etag = r, meta.Etag
	return nil
}

// Drop deletes a database. It stops new requests, ends the database's streams, waits for
// running requests, and closes the database. With hard it removes the files; otherwise
// they stay, and a later database of the same name takes them over.
func (ds *Databases) Drop(ctx context.Context, name string, hard bool) error {
	key, err := CheckName(name)
	if err != nil {
		return err
	}
	if len(ds.opts.Mounted) > 0 {
		return NotSupported("this server has the databases that its program has open, and deletes none")
	}
	if len(ds.opts.Stores) > 0 {
		return NotSupported("other servers may have the store of this database open, so that this one does not delete it: when none has, drop its schema")
	}
	if ds.opts.fixed() {
		return NotSupported("this server has the databases that it was started with, and deletes none: remove the directory when no program has it open")
	}
	if ds.opts.Database.ReadOnly {
		return jay.ErrReadOnly
	}
	d, err := ds.seclude(ctx, key, name)
	if err != nil {
		return err
	}
	ctx = context.WithoutCancel(ctx) // what has begun is finished
	if hard {
		if err = ds.setState(ctx, d, stateDeleting); err == nil {
			err = ds.remove(ctx, d)
		}
	} else {
		err = ds.System.Delete(ctx, recordPrefix+key)
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	close(d.busy)
	d.busy = nil
	switch {
	case err == nil:
		delete(ds.byKey, key)
	case d.Record.State == stateDeleting:
		ds.opts.Logger.Error("server: the files of a deleted database cannot be removed yet, which is tried again", "database", key, "err", err)
		d.retry.failed(ds.opts.Now())
		return &Problem{Status: 500, Kind: TypeInternal, Message: fmt.Sprintf("Database '%s' is deleted, but not all of its files could be removed: the server tries again, and its log says why", name), Cause: err}
	default:
		d.revive()
	}
	return err
}

// revive makes the database usable again after a failed deletion. ds.mu is held.
func (d *Database) revive() {
	d.deleting = false
	d.ctx, d.cancel = context.WithCancel(context.Background())
}

// UsersOf returns how many requests use a database, for tests.
func (ds *Databases) UsersOf(key string) int {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.byKey[key].users
}

// ContextOf returns a context that ends when a database is to be deleted, or closed
// although it is watched.
func (ds *Databases) ContextOf(d *Database) context.Context {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return d.ctx
}

// seclude waits until no request uses a database, makes it busy, and closes it.
func (ds *Databases) seclude(ctx context.Context, key, name string) (*Database, error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d, err := ds.find(key, name)
	if err != nil {
		return nil, err
	}
	if d.standby != nil {
		return nil, NotSupported("the database is a standby of another one: start the server without following that, and then delete it")
	}
	d.deleting = true
	d.cancel()
	for d.busy != nil || d.users > 0 {
		wait := d.busy
		if wait == nil {
			if d.vacant == nil {
				d.vacant = make(chan struct{})
			}
			wait = d.vacant
		}
		if err := ds.await(ctx, wait); err != nil {
			d.revive()
			return nil, err
		}
	}
	if d.DB != nil {
		ds.stop(d)
	}
	d.busy = make(chan struct{})
	return d, nil
}

// forget removes the record of a database and all else that the server stores about it, in
// one commit.
func (ds *Databases) forget(ctx context.Context, key string) error {
	_, ids, err := formerDefinitions(ctx, ds.System, key) // not moved, as the database could not be opened
	if err != nil {
		return err
	}
	return deleteAll(ctx, ds.System, append(ids, recordPrefix+key))
}

// close closes all databases. No request may use one any more.
func (ds *Databases) close() error {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	var all sync.WaitGroup
	errs := make(chan error, len(ds.byKey))
	for _, d := range ds.byKey {
		if d.standby == nil && (d.DB == nil || d.mounted) {
			continue
		}
		all.Go(func() {
			err := error(nil)
			if d.standby != nil {
				err = d.standby.Close()
			} else {
				err = ds.closeOne(d.Key, d.DB)
			}
			if err != nil {
				errs <- fmt.Errorf("database %s: %w", d.Key, err)
			}
		})
	}
	all.Wait()
	close(errs)
	var err error
	for one := range errs {
		err = errors.Join(err, one)
	}
	for _, d := range ds.byKey {
		d.DB = nil
	}
	return errors.Join(err, ds.System.Close())
}

// Index returns a number that grows with every change of a record.
func (ds *Databases) Index(ctx context.Context) (uint64, error) {
	counters, err := ds.System.Counters(ctx)
	return counters.Etag, err
}

// Opened returns how many databases are open.
func (ds *Databases) Opened() int {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return ds.open
}

// Client returns the configuration of the open database for its clients, and nil if there is none. It must not be changed.
func (d *Database) Client() *jay.Definition { return d.client.Load() }

// PutClient stores the configuration of the open database db for its clients.
func (d *Database) PutClient(ctx context.Context, db *jay.DB, given json.RawMessage) error {
	d.clientMu.Lock()
	defer d.clientMu.Unlock()
	err := db.Definitions().Change(ctx, jay.DefinitionChange{Kind: ConfigurationKind, Name: ClientConfiguration, Value: given})
	if err != nil {
		return err
	}
	return d.loadClient(context.WithoutCancel(ctx), db)
}

// RefreshClient is for an open database that other servers may have open, too: it reads the configuration that one of them may have changed.
func (d *Database) RefreshClient(ctx context.Context, db *jay.DB) error {
	if !d.InStore() {
		return nil
	}
	d.clientMu.Lock()
	defer d.clientMu.Unlock()
	return d.loadClient(ctx, db)
}

// loadClient reads the configuration for clients, which each request asks for.
func (d *Database) loadClient(ctx context.Context, db *jay.DB) error {
	now, err := db.Definitions().Get(ctx, ConfigurationKind, ClientConfiguration)
	if IsMissing(err) {
		now, err = nil, nil
	}
	if err == nil {
		d.client.Store(now)
	}
	return err
}

// moveAllDefinitions opens each database of which the server still keeps definitions, which moves them. A database that
// cannot be opened keeps them here until it can.
func (ds *Databases) moveAllDefinitions(ctx context.Context) error {
	for _, d := range ds.all() {
		_, ids, err := formerDefinitions(ctx, ds.System, d.Key)
		if err != nil {
			return err
		}
		if len(ids) == 0 {
			continue
		}
		opened, err := ds.Acquire(ctx, d.Record.Name)
		if err != nil {
			ds.opts.Logger.Warn("server: definitions are not moved into their database, as it cannot be opened", "database", d.Key, "err", err)
			continue
		}
		ds.Release(opened)
	}
	return nil
}

// all returns the databases that can be opened. It is for the start, when there are no requests.
func (ds *Databases) all() (list []*Database) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for _, d := range ds.byKey {
		if !d.deleting && d.broken == nil && d.standby == nil {
			list = append(list, d)
		}
	}
	return list
}

// adopt prepares a database that was opened for requests: definitions that an older server has kept are moved into it.
func (ds *Databases) adopt(d *Database, db *jay.DB) error {
	ctx := context.Background()
	moved, err := moveDefinitions(ctx, ds.System, d.Key, db)
	if err == nil {
		err = d.loadClient(ctx, db)
	}
	if err == nil && d.InStore() {
		own, tag, failed := d.join(ctx, db, &ds.opts)
		ds.mu.Lock()
		d.Record.ID, d.Record.Created = own.ID, own.Created
		ds.mu.Unlock()
		ds.Tags.set(d.Key, tag)
		d.lost.Store(false)
		err = failed
	}
	if err != nil {
		return fmt.Errorf("its definitions: %w", err)
	}
	if moved > 0 {
		ds.opts.Logger.Info("server: definitions were moved into their database", "database", d.Key, "definitions", moved)
	}
	return nil
}

// Hold returns an open database for the program that the server is in, which must call release. It stays open until
// then, however long no request uses it; a deletion, the end of the server and the reopening after a full disk close it all the same,
// so that no handle can hold them up.
func (ds *Databases) Hold(ctx context.Context, name string) (db *jay.DB, release func(), err error) {
	d, err := ds.Acquire(ctx, name)
	if err != nil {
		return nil, nil, err
	}
	ds.mu.Lock()
	d.held++
	db = d.DB
	ds.mu.Unlock()
	ds.Release(d)
	return db, sync.OnceFunc(func() {
		ds.mu.Lock()
		defer ds.mu.Unlock()
		d.held--
		d.idle = ds.opts.Now()
	}), nil
}
