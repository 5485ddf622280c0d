// Package lsm is the storage engine on Pebble, a log-structured merge tree.
//
// [Open] makes an [Engine] on one directory. Pebble provides ordered keys, atomic batches and a
// log. The package adds the rest of storage.Engine:
//
//   - transactions that read what they write, and share batches and syncs:
//     queue.go, commit.go, in that order;
//   - reads of what is on disk: durability.go, snapshot.go;
//   - counts that are remembered: keycounts.go;
//   - a directory with one owner (lock.go) that is checked before Pebble changes
//     it (check.go, controlfile.go), and repaired on request (repair.go);
//   - failures of the disk that fail the engine and not the process: failure.go,
//     logfs.go, freezefs.go, close.go.
//
// Between Pebble and the disk are file systems that wrap one another, from the
// top: optionsFS, checkpointFS, freezeFS, logFS, controlFS, progressFS, sealFS, modeFS.
//
// docs/format.md describes the files in a directory, whose format is stable. The Go API serves
// package jay and the tests, and may change in any release.
package lsm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

// Engine is the storage.Engine on one directory, by way of cockroachdb/pebble.
//
// Transactions run one after another under mu, and their batches enter Pebble's
// log in that order. The wait for the disk comes after mu is released, so that
// concurrent transactions share a sync: see commit.go.
type Engine struct {
	db        *pebble.DB
	lock      *dirLock
	fs        vfs.FS
	dir       string // as Open was given it
	path      string // of the files: absolute, without symbolic links
	controlFS *controlFS
	logFS     *logFS // nil of a database that is only read
	freezeFS  *freezeFS
	sealFS    *sealFS

	checkpointFS *checkpointFS
	base         vfs.FS // as Open was given it
	opts         Options
	readOnly     bool
	uses
	rotation

	reservation *cacheReservation
	pebble      *pebble.Options // as Pebble uses them
	temporaries atomic.Uint64   // temporary files made so far
	log         *slog.Logger

	queue   commitQueue
	wake    chan struct{} // wakes an idle leader
	quit    chan struct{} // closed by Close: idle leaders end
	idle    atomic.Int32  // number of idle leaders
	leaders sync.WaitGroup

	mu        sync.Mutex
	sequence  uint64        // last number committed. Guarded by mu.
	applied   uint64        // number of the last commit that Pebble has got. Guarded by mu.
	onRelease func()        // for tests, or nil: called when the calls of a group may return, before its commits. Guarded by mu.
	staged    *staging      // writes of the group, reused by the next. Guarded by mu.
	memTable  memTableSpace // Guarded by mu, but for its counter.
	numbers   numbers       // Guarded by mu.
	watcher   watcher       // of WatchCommits. Guarded by mu.
	writes    writeStripes

	minSequence     atomic.Uint64 // numbers are drawn above it: StartSequence
	commits         atomic.Uint64 // for Stats
	visible         atomic.Uint64 // number of the last commit that readers of Pebble see
	durability      durability
	states          states
	keyCounts       keyCounts
	stalls          stalls
	notice          notice
	courtesy        courtesy
	compactor       compactor
	progress        *progress
	closeTimeout    time.Duration
	lastSyncRequest atomic.Int64 // by a read, in Unix nanoseconds

	failure   atomic.Pointer[error] // set once, by fail
	failed    chan struct{}         // closed once failure is set
	abandoned chan struct{}         // closed abandonDelay later: calls stop waiting
	closing   sync.Once
	closed    chan struct{} // closed at the end of close
	closeErr  error         // result of close. Valid once closed is closed.
}

var _ storage.Engine = (*Engine)(nil)

// Open opens the database in dir, and creates dir and the database if they do not exist. The errors
// are those that package storage lists under opening, or the file system's; all name dir.
func Open(dir string, opts Options) (*Engine, error) {
	e, err := open(dir, opts)
	if err != nil {
		var damage *storage.DamageError
		if errors.As(err, &damage) {
			damage.Dir = dir
		}
		return nil, dirError(dir, err)
	}
	warnOfOthers(e.log, e.fs, e.path)
	return e, nil
}

// open is Open with errors that do not name dir. It takes the lock and checks the
// directory before Pebble, which writes and deletes files as soon as it opens
// them.
func open(dir string, opts Options) (*Engine, error) {
	e := &Engine{
		dir: dir, fs: opts.FS, log: opts.Logger, staged: newStaging(), progress: new(progress),
		wake: make(chan struct{}), quit: make(chan struct{}),
		failed: make(chan struct{}), abandoned: make(chan struct{}), closed: make(chan struct{}),
	}
	e.compactor = newCompactor(func(ctx context.Context, lo, hi []byte) error { return e.db.Compact(ctx, lo, hi, false) }, func() *pebble.Metrics { return e.db.Metrics() })
	e.durability.keepViews = opts.DurableReads
	e.states.applying, e.keyCounts.applying = &e.durability.applying, &e.durability.applying
	e.closeTimeout = cmp.Or(opts.CloseTimeout, defaultCloseTimeout)
	switch {
	case e.fs != nil:
	case opts.InMemory:
		e.fs = vfs.NewMem()
	default:
		e.fs = vfs.Default
	}
	e.writes.seed = maphash.MakeSeed()
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.base, e.opts = e.fs, opts
	e.uses.known = opts.features()
	e.sealFS = &sealFS{FS: withModes(e.fs, opts.GroupReadable)}
	e.rotation.e = e
	e.fs = e.sealFS
	if opts.ReadOnly {
		return e.openReadOnly(dir, opts)
	}

	// From here on the files of this package go through e.controlFS, and e.fs
	// is what Pebble gets.
	e.controlFS = newControlFS(progressFS{e.fs, e.progress}, e.fail)
	e.logFS = &logFS{FS: courteousFS{e.controlFS, &e.courtesy}, fail: e.fail, failed: func() bool { return e.failure.Load() != nil }, syncing: &e.courtesy.syncing}
	e.fs = e.logFS

	format, err := checkFormatFile(e.controlFS.FS, dir, e.uses.known)
	if err = acceptDamage(err, opts.AcceptLoss); err != nil {
		return nil, openError(err)
	}
	found := format.number != 0
	if !found && opts.MustExist {
		return nil, storage.ErrNoDatabase
	}
	if !found {
		if err := e.fs.MkdirAll(dir, dirMode); err != nil {
			return nil, openError(err)
		}
	}
	if e.path, err = realPath(e.fs, dir); err != nil {
		return nil, openError(err)
	}
	if e.lock, err = lock(e.fs, e.path); err != nil {
		return nil, err
	}
	if !found {
		// Another process may have made the database before the lock was taken.
		if format, err = checkFormatFile(e.controlFS.FS, e.path, e.uses.known); err != nil {
			return nil, e.unlock(openError(err))
		}
		found = format.number != 0
	}
	if format, err = (unlocking{e.sealFS, e.path, opts.EncryptionKeys}).open(format, &e.uses, opts.AcceptLoss); err != nil {
		return nil, e.unlock(openError(err))
	}
	if err := e.controlFS.prepare(e.path, format.number, e.uses.ofFiles(), opts.AcceptLoss); err != nil {
		return nil, e.unlock(openError(err))
	}

	if format.number > 0 && format.number < storage.BaseFormat {
		e.log.Info("jay: the database is upgraded", "dir", dir, "from", format.number, "to", storage.BaseFormat)
	}

	e.removeTemporaries()
	options := e.pebbleOptions(opts)
	if options.FS, err = withoutDamagedOptions(e.fs, e.path, e.log); err != nil {
		e.reservation.cache.Unref()
		return nil, e.unlock(openError(err))
	}
	if err := e.openPebble(options, !found); err != nil {
		return nil, err
	}
	if failure := e.failure.Load(); failure != nil {
		return nil, errors.Join(openError(*failure), e.Close())
	}
	e.reservation.start(e.db)
	e.memTable.start(e.db)
	return e, nil
}

// openPebble opens Pebble. If that fails, it unlocks the directory.
//
// On a full disk, Pebble would retry to write its tables for ever: when the engine
// fails, the disk is frozen for Pebble, which then ends. On a disk that does not
// answer, openPebble returns an error after Options.CloseTimeout, and the lock is
// kept until Pebble has ended.
func (e *Engine) openPebble(options *pebble.Options, isNew bool) error {
	done := make(chan error, 1)
	e.freezeFS = newFreezeFS(options.FS, e.fail)
	e.freezeFS.opening.Store(!e.readOnly)
	defer e.freezeFS.opening.Store(false)
	e.checkpointFS = &checkpointFS{FS: e.freezeFS, raw: e.controlFS.FS, dir: e.path}
	options.FS = e.checkpointFS
	e.pebble = options.Clone()
	e.pebble.EnsureDefaults() // as Pebble does, for the tables of NewTable
	go func() {
		err := e.protect(func() (err error) {
			defer e.reservation.cache.Unref()
			if e.db, err = pebble.Open(e.path, options); err != nil || !isNew {
				return err
			}
			// Pebble writes the first log of a new store in an older format, in
			// which a damaged record looks like the end of the log. Opening the
			// store again begins a log in the new format, before anything is in it.
			if err := e.db.Close(); err != nil {
				return err
			}
			e.db, err = pebble.Open(e.path, options)
			return err
		})
		done <- err
	}()

	select {
	case err := <-done:
		if err != nil {
			return e.unlock(e.recoveryError(err))
		}
		return nil
	case <-e.failed:
		e.freezeFS.freeze()
	}
	select {
	case err := <-done:
		if err != nil {
			return e.unlock(e.recoveryError(err))
		}
		return nil // the caller checks e.failure
	case <-time.After(e.closeTimeout):
		go func() {
			if err := <-done; err == nil {
				_ = e.protect(e.db.Close)
			}
			_ = e.unlock(nil)
		}()
		return fmt.Errorf("%w; the storage engine has not come to its end yet, and the directory stays locked until it has: see to the disk, or restart the process", openError(*e.failure.Load()))
	}
}

// unlock unlocks the directory and returns err. Pebble must have ended.
func (e *Engine) unlock(err error) error {
	e.controlFS.control.release()
	if closeErr := e.lock.Close(); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	return err
}

// StartSequence implements storage.Engine. It does not lock e.mu, as a transaction
// that holds it may wait for the disk.
func (e *Engine) StartSequence(n uint64) {
	for {
		old := e.minSequence.Load()
		if old >= n || e.minSequence.CompareAndSwap(old, n) {
			return
		}
	}
}

// Limits implements storage.Engine. There is only a limit for a transaction.
func (e *Engine) Limits() storage.Limits { return storage.Limits{TxBytes: storage.MaxTxBytes} }

// Shared implements storage.Engine: a directory belongs to one engine.
func (e *Engine) Shared() bool { return false }
