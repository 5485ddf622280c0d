package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
)

// The directories of a data directory.
const (
	systemDir    = "system"    // the server's own database
	databasesDir = "databases" // a directory per database, named by its key
	deletedDir   = "deleted"   // directories of databases that are being removed
)

// databases manages the databases of a data directory.
//
// Each database has a record, a document of the server's own database. The record is
// written before the directory is created, and deleted after the directory is gone. So the
// next Open completes every creation or deletion that a crash has interrupted, and a
// missing directory is an error, never an empty database.
type databases struct {
	opts     Options
	system   *jay.DB
	serverID string // of this data directory

	mu    sync.Mutex
	byKey map[string]*database // Guarded by mu.
	open  int                  // number of databases that are open or being opened. Guarded by mu.

	clusterMu    sync.Mutex
	coordinators map[string]cluster.Coordinator // of the open databases, by key. Guarded by clusterMu.
}

// database is one database. Its fields that change are guarded by databases.mu.
type database struct {
	key    string
	record record
	etag   uint64 // of the record

	figures *figures // figures of its operations since the start of the server
	dir     string   // one of Options.Directories, or ""

	db       *jay.DB       // nil while it is closed
	users    int           // number of requests that use db
	idle     time.Time     // when the last of them ended
	busy     chan struct{} // not nil while db is being opened, closed or removed; closed afterwards
	deleting bool
	vacant   chan struct{}   // not nil while a deletion waits for the users; closed by the last
	ctx      context.Context // ends when the database is about to be deleted
	cancel   context.CancelFunc
}

// The states of a record.
const (
	stateCreating = "creating"
	stateReady    = "ready"
	stateDeleting = "deleting"
)

// record is what the server stores about a database.
type record struct {
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

func openDatabases(o Options) (*databases, error) {
	for _, dir := range []string{databasesDir, deletedDir} {
		if err := os.MkdirAll(filepath.Join(o.Data, dir), 0o700); err != nil {
			return nil, fmt.Errorf("server: %w: %w", jay.ErrNotWritable, err)
		}
	}
	system, err := jay.Open(filepath.Join(o.Data, systemDir), &jay.Options{Logger: o.Logger, Now: o.Database.Now, CacheBytes: 4 << 20, DocumentCacheBytes: 4 << 20, MemTableBytes: 1 << 20})
	if err != nil {
		return nil, fmt.Errorf("server: data directory %q: %w", o.Data, err)
	}
	ds := &databases{opts: o, system: system, byKey: make(map[string]*database), coordinators: make(map[string]cluster.Coordinator)}
	if err := ds.load(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("server: data directory %q: %w", o.Data, err), ds.close())
	}
	if err := ds.openDirectories(context.Background()); err != nil {
		return nil, errors.Join(fmt.Errorf("server: %w", err), ds.close())
	}
	return ds, nil
}

// load reads the records, and completes interrupted deletions.
func (ds *databases) load(ctx context.Context) error {
	if err := ds.loadID(ctx); err != nil {
		return err
	}
	var deleting []*database
	for doc, err := range ds.system.Documents(ctx, jay.Scan{Prefix: recordPrefix}) {
		if err != nil {
			return err
		}
		d := newDatabase(strings.TrimPrefix(doc.ID(), recordPrefix))
		if err := doc.Decode(&d.record); err != nil {
			return err
		}
		d.etag = doc.Metadata().Etag
		if d.record.State == stateDeleting {
			deleting = append(deleting, d)
			continue
		}
		ds.byKey[d.key] = d
	}
	for _, d := range deleting {
		if err := ds.remove(ctx, d); err != nil {
			return err
		}
	}
	return ds.emptyDeleted()
}

// openDirectories opens each database of Options.Directories once, so that errors show at
// the start.
func (ds *databases) openDirectories(ctx context.Context) error {
	for name, dir := range ds.opts.Directories {
		key, err := checkName(name)
		if err != nil {
			return fmt.Errorf("%w: Options.Directories: %w", jay.ErrOption, err)
		}
		if ds.byKey[key] != nil {
			return fmt.Errorf("%w: Options.Directories has the name %q, which another database has", jay.ErrOption, name)
		}
		d := newDatabase(key)
		d.dir, d.record = dir, record{Name: name, State: stateReady, ID: newID(), Created: ds.opts.Now().UTC()}
		ds.byKey[key] = d
		if d, err = ds.acquire(ctx, name); err != nil {
			return err
		}
		ds.release(d)
	}
	return nil
}

// loadID reads the ID of the data directory, or creates one.
func (ds *databases) loadID(ctx context.Context) error {
	doc, err := ds.system.Get(ctx, serverRecord)
	if errors.Is(err, jay.ErrNotFound) {
		ds.serverID = newID()
		_, err = ds.system.Put(ctx, serverRecord, mustJSON(map[string]string{"ID": ds.serverID}), jay.InCollection("Servers"))
		return err
	}
	if err != nil {
		return err
	}
	ds.serverID, _, err = jay.Value[string](doc, "ID")
	return err
}

func newDatabase(key string) *database {
	d := &database{key: key, figures: newFigures()}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	return d
}

func (ds *databases) dir(key string) string { return filepath.Join(ds.opts.Data, databasesDir, key) }

// find returns a database. ds.mu is held.
func (ds *databases) find(key, name string) (*database, error) {
	d := ds.byKey[key]
	if d == nil || d.deleting {
		return nil, missingDatabase(name)
	}
	return d, nil
}

// recordOf returns the record of a database, and its etag.
func (ds *databases) recordOf(name string) (record, uint64, error) {
	key, err := checkName(name)
	if err != nil {
		return record{}, 0, err
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d, err := ds.find(key, name)
	if err != nil {
		return record{}, 0, err
	}
	return d.record, d.etag, nil
}

// list returns the names of all databases, sorted.
func (ds *databases) list() []string {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	names := make([]string, 0, len(ds.byKey))
	for _, d := range ds.byKey {
		if !d.deleting && d.record.State == stateReady {
			names = append(names, d.record.Name)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return names
}

// acquire returns a database, which it opens if necessary. The caller must call release.
func (ds *databases) acquire(ctx context.Context, name string) (*database, error) {
	key, err := checkName(name)
	if err != nil {
		return nil, err
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for {
		d, err := ds.find(key, name)
		if err != nil {
			return nil, err
		}
		if d.busy != nil {
			if err := ds.await(ctx, d.busy); err != nil {
				return nil, err
			}
			continue
		}
		if d.db == nil {
			again, err := ds.start(ctx, d)
			if err != nil {
				return nil, err
			}
			if again {
				continue
			}
		}
		d.users++
		return d, nil
	}
}

// await waits for a channel. It releases ds.mu meanwhile.
func (ds *databases) await(ctx context.Context, done <-chan struct{}) error {
	ds.mu.Unlock()
	defer ds.mu.Lock()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// start opens d. If too many databases are open, it closes an idle one first. again
// reports that the caller must check the state again. ds.mu is held, and released
// meanwhile.
func (ds *databases) start(ctx context.Context, d *database) (again bool, err error) {
	if ds.open >= ds.opts.MaxOpenDatabases {
		idlest := ds.idlest()
		if idlest == nil {
			return false, overload("%d databases are in use at a time, which is the most", ds.open)
		}
		ds.stop(idlest)
		return true, nil
	}
	ds.open++
	done := make(chan struct{})
	d.busy = done
	if d.record.State == stateCreating { // a crash has interrupted the creation
		ds.mu.Unlock()
		err = ds.firstOpen(context.WithoutCancel(ctx), d)
		ds.mu.Lock()
	} else {
		ds.mu.Unlock()
		var db *jay.DB
		db, err = ds.openOne(d, true)
		ds.mu.Lock()
		d.db, d.idle = db, ds.opts.Now()
	}
	close(done)
	d.busy = nil
	if err != nil {
		ds.open--
	}
	return false, err
}

func (ds *databases) openOne(d *database, mustExist bool) (*jay.DB, error) {
	o := ds.opts.Database
	o.MustExist = mustExist
	o.Logger = ds.opts.Logger.With("database", d.key)
	o.Observer = d.figures.observer(o.Observer)
	dir := ds.dir(d.key)
	if d.dir != "" {
		dir, o.PrefixCollections = d.dir, jay.PrefixCollectionsStored
	}
	if ds.opts.Cluster == nil {
		return jay.Open(dir, &o)
	}
	own, err := ds.opts.Cluster(d.key)
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
	ds.coordinators[d.key] = own
	return db, nil
}

// closeOne closes a database, and then its coordinator.
func (ds *databases) closeOne(key string, db *jay.DB) error {
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

// coordinatorOf returns the coordinator of an open database, or nil.
func (ds *databases) coordinatorOf(key string) cluster.Coordinator {
	ds.clusterMu.Lock()
	defer ds.clusterMu.Unlock()
	return ds.coordinators[key]
}

// idlest returns the least recently used of the open databases without requests. ds.mu is
// held.
func (ds *databases) idlest() *database {
	var found *database
	for _, d := range ds.byKey {
		if d.db != nil && d.users == 0 && d.busy == nil && (found == nil || d.idle.Before(found.idle)) {
			found = d
		}
	}
	return found
}

// stop closes d, which must have no users. ds.mu is held, and released meanwhile.
func (ds *databases) stop(d *database) {
	done, db := make(chan struct{}), d.db
	d.busy, d.db = done, nil
	ds.mu.Unlock()
	if err := ds.closeOne(d.key, db); err != nil {
		ds.opts.Logger.Error("server: closing a database", "database", d.key, "err", err)
	}
	ds.mu.Lock()
	ds.open--
	close(done)
	d.busy = nil
}

// release ends a use of d.
func (ds *databases) release(d *database) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d.users--
	d.idle = ds.opts.Now()
	if d.users == 0 && d.vacant != nil {
		close(d.vacant)
		d.vacant = nil
	}
}

// closeIdle closes the databases without a request for Options.IdleAfter.
func (ds *databases) closeIdle() {
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

// create creates a database, and returns the etag of its record. An existing directory of
// the name, which a deletion has left or a user has put there, becomes its contents.
func (ds *databases) create(ctx context.Context, name, id string, given map[string]json.RawMessage) (etag uint64, err error) {
	key, err := checkName(name)
	if err != nil {
		return 0, err
	}
	if len(ds.opts.Directories) > 0 {
		return 0, notSupported("this server has the databases that it was started with, and creates no others")
	}
	d := newDatabase(key)
	d.record = record{Name: name, State: stateCreating, ID: id, Created: ds.opts.Now().UTC(), Given: given}
	if err := ds.enter(d); err != nil {
		return 0, err
	}
	ctx = context.WithoutCancel(ctx) // what has begun is finished
	err = ds.setState(ctx, d, stateCreating)
	if err == nil {
		err = ds.firstOpen(ctx, d)
	}
	if err != nil {
		// Without a record the server ignores the directory. If the record cannot be
		// deleted, the next start resumes the creation.
		if undone := ds.system.Delete(ctx, recordPrefix+d.key); undone != nil {
			ds.opts.Logger.Error("server: a database that could not be created keeps its record", "database", d.key, "err", undone)
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
func (ds *databases) enter(d *database) error {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	for {
		switch other := ds.byKey[d.key]; {
		case other != nil:
			return &problem{status: 409, kind: typeConcurrency, message: fmt.Sprintf("Database '%s' already exists", other.record.Name)}
		case len(ds.byKey) >= ds.opts.MaxDatabases:
			return badRequest("there are %d databases, which is the most", len(ds.byKey))
		}
		if ds.open < ds.opts.MaxOpenDatabases {
			break
		}
		idlest := ds.idlest()
		if idlest == nil {
			return overload("%d databases are in use at a time, which is the most", ds.open)
		}
		ds.stop(idlest) // releases ds.mu: others may create databases meanwhile
	}
	ds.open++
	d.busy = make(chan struct{})
	ds.byKey[d.key] = d
	return nil
}

// firstOpen creates the directory of a new database, which is busy, and records that in
// its state.
func (ds *databases) firstOpen(ctx context.Context, d *database) error {
	db, err := ds.openOne(d, false)
	if err != nil {
		return err
	}
	if err := ds.setState(ctx, d, stateReady); err != nil {
		return errors.Join(err, ds.closeOne(d.key, db))
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d.db, d.idle = db, ds.opts.Now()
	return nil
}

// setState stores the record of d, which is busy, with another state.
func (ds *databases) setState(ctx context.Context, d *database, state string) error {
	r := d.record // a copy: others read d.record
	r.State = state
	meta, err := ds.system.Put(ctx, recordPrefix+d.key, mustJSON(r), jay.InCollection("Databases"))
	if err != nil {
		return err
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d.record, d.etag = r, meta.Etag
	return nil
}

// drop deletes a database. It stops new requests, ends the database's streams, waits for
// running requests, and closes the database. With hard it removes the files; otherwise
// they stay, and a later database of the same name takes them over.
func (ds *databases) drop(ctx context.Context, name string, hard bool) error {
	key, err := checkName(name)
	if err != nil {
		return err
	}
	if len(ds.opts.Directories) > 0 {
		return notSupported("this server has the databases that it was started with, and deletes none: remove the directory when no program has it open")
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
		err = ds.system.Delete(ctx, recordPrefix+key)
	}
	ds.mu.Lock()
	defer ds.mu.Unlock()
	close(d.busy)
	d.busy = nil
	if err != nil {
		if d.record.State != stateDeleting { // in that state the next Open completes the deletion
			d.revive()
		}
		return err
	}
	delete(ds.byKey, key)
	return nil
}

// revive makes the database usable again after a failed deletion. ds.mu is held.
func (d *database) revive() {
	d.deleting = false
	d.ctx, d.cancel = context.WithCancel(context.Background())
}

// contextOf returns a context that ends when a database is to be deleted.
func (ds *databases) contextOf(d *database) context.Context {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	return d.ctx
}

// seclude waits until no request uses a database, makes it busy, and closes it.
func (ds *databases) seclude(ctx context.Context, key, name string) (*database, error) {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	d, err := ds.find(key, name)
	if err != nil {
		return nil, err
	}
	d.deleting = true
	d.cancel()
	for d.busy != nil || d.users > 0 {
		wait := d.busy
		if wait == nil {
			wait = make(chan struct{})
			d.vacant = wait
		}
		if err := ds.await(ctx, wait); err != nil {
			d.revive()
			return nil, err
		}
	}
	if d.db != nil {
		ds.stop(d)
	}
	d.busy = make(chan struct{})
	return d, nil
}

// remove removes the files of a database, and then its records.
func (ds *databases) remove(ctx context.Context, d *database) error {
	away := filepath.Join(ds.opts.Data, deletedDir, fmt.Sprintf("%s-%d", d.key, d.etag))
	err := os.Rename(ds.dir(d.key), away)
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // missing, if a crash came between this step and the next
		return err
	}
	for _, dir := range []string{databasesDir, deletedDir} {
		if err := syncDir(filepath.Join(ds.opts.Data, dir)); err != nil {
			return err
		}
	}
	if err := ds.forget(ctx, d.key); err != nil {
		return err
	}
	if err := os.RemoveAll(away); err != nil {
		ds.opts.Logger.Warn("server: the files of a deleted database are removed at the next start", "database", d.key, "err", err)
	}
	return nil
}

// forget removes the record of a database and all else that the server stores about it, in
// one commit.
func (ds *databases) forget(ctx context.Context, key string) error {
	var b jay.Batch
	for _, id := range []string{recordPrefix + key, configurationPrefix + key, dueID("expiration", key), dueID("refresh", key)} {
		b.Delete(id)
	}
	for doc, err := range ds.system.Documents(ctx, jay.Scan{Prefix: definitionPrefix + key + "/"}) {
		if err != nil {
			return err
		}
		b.Delete(doc.ID())
	}
	_, err := ds.system.Apply(ctx, &b)
	return err
}

// syncDir syncs a directory, so that its names are durable. On Windows that is neither
// needed nor possible.
func syncDir(dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// emptyDeleted removes the directories whose removal earlier runs have begun.
func (ds *databases) emptyDeleted() error {
	entries, err := os.ReadDir(filepath.Join(ds.opts.Data, deletedDir))
	for _, entry := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(ds.opts.Data, deletedDir, entry.Name())))
	}
	return err
}

// close closes all databases. No request may use one any more.
func (ds *databases) close() error {
	ds.mu.Lock()
	defer ds.mu.Unlock()
	var all sync.WaitGroup
	errs := make(chan error, len(ds.byKey))
	for _, d := range ds.byKey {
		if d.db == nil {
			continue
		}
		all.Go(func() {
			if err := ds.closeOne(d.key, d.db); err != nil {
				errs <- fmt.Errorf("database %s: %w", d.key, err)
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
		d.db = nil
	}
	return errors.Join(err, ds.system.Close())
}

// index returns a number that grows with every change of a record.
func (ds *databases) index(ctx context.Context) (uint64, error) {
	counters, err := ds.system.Counters(ctx)
	return counters.Etag, err
}

// diskBytes returns the total size of a database's files. A file that vanishes meanwhile
// counts as empty.
func diskBytes(dir string) (sum int64, err error) {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if info.Mode().IsRegular() {
			sum += info.Size()
		}
	}
	return sum, err
}
