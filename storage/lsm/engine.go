package lsm

import (
	"cmp"
	"errors"
	"fmt"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	dto "github.com/prometheus/client_model/go"

	"github.com/jaydb/jay/storage"
)

// Engine is the storage.Engine on one directory, by way of cockroachdb/pebble.
//
// Transactions run one after another under mu, and their batches enter
// Pebble's log in that order; the wait for the disk happens after mu is
// released, so that concurrent transactions share a sync: commit.go.
type Engine struct {
	db       *pebble.DB
	lock     *dirLock
	fs       vfs.FS
	dir      string // as Open was given it
	path     string // of the files: absolute, without symbolic links
	control  *controlFS
	freezeFS *freezeFS

	reservation *cacheReservation
	log         *slog.Logger

	queue   commitQueue   // of transactions
	wake    chan struct{} // to a leader that waits
	quit    chan struct{} // closed when there is nothing to lead any more
	idle    atomic.Int32  // leaders that wait
	leaders sync.WaitGroup

	mu       sync.Mutex
	sequence uint64        // last number committed. Guarded by mu.
	applied  uint64        // commits handed to Pebble. Guarded by mu.
	staged   *staging      // reused by each transaction. Guarded by mu.
	absent   absentRanges  // where nothing is committed. Guarded by mu.
	memTable memTableSpace // in Pebble's table in memory. Guarded by mu, but for its counter.
	writes   writeTracker

	minSequence     atomic.Uint64 // the sequence goes on above it
	commits         atomic.Uint64
	visible         atomic.Uint64 // the last commit that readers see, counted as applied is
	durability      durability
	progress        *progress
	closeTimeout    time.Duration
	lastSyncRequest atomic.Int64 // when a read last asked for a sync, in Unix nanoseconds

	failure   atomic.Pointer[error] // set once, by fail
	failed    chan struct{}         // closed once failure is set
	abandoned chan struct{}         // closed abandonDelay later
	closing   sync.Once
	closed    chan struct{} // closed at the end of close
	closeErr  error         // what it came to. Valid once closed is closed.
}

var _ storage.Engine = (*Engine)(nil)

// Open opens the database in dir, creating dir and the database if they are
// not there. The errors are those listed in errors.go under opening, or the
// file system's; all name dir.
func Open(dir string, opts Options) (*Engine, error) {
	e, err := open(dir, opts)
	if err != nil {
		if damage, is := errors.AsType[*storage.DamageError](err); is {
			damage.Dir = dir
		}
		return nil, dirError(dir, err)
	}
	return e, nil
}

func open(dir string, opts Options) (*Engine, error) {
	e := &Engine{
		dir: dir, fs: opts.FS, log: opts.Logger, staged: newStaging(), progress: new(progress),
		wake: make(chan struct{}), quit: make(chan struct{}),
		failed: make(chan struct{}), abandoned: make(chan struct{}), closed: make(chan struct{}),
	}
	e.durability.keepViews = opts.DurableReads
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

	e.control = newControlFS(progressFS{e.fs, e.progress}, e.fail)
	e.fs = &logFS{FS: e.control, fail: e.fail, failed: func() bool { return e.failure.Load() != nil }}

	format, err := checkFormatFile(e.control.FS, dir)
	if err = acceptDamage(err, opts.AcceptLoss); err != nil {
		return nil, openError(err)
	}
	found := format != 0
	if !found && opts.MustExist {
		return nil, storage.ErrNoDatabase
	}
	if !found {
		if err := e.fs.MkdirAll(dir, 0o755); err != nil {
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
		if format, err = checkFormatFile(e.control.FS, e.path); err != nil {
			return nil, e.unlock(openError(err))
		}
		found = format != 0
	}
	if err := e.control.prepare(e.path, format, found, opts.AcceptLoss); err != nil {
		return nil, e.unlock(openError(err))
	}

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

// openPebble opens the store and gives the lock back if it cannot. On a full
// disk Pebble tries to write its tables again for ever: the disk is frozen for
// it then, so that it comes to its end. On a disk that does not answer,
// openPebble returns an error after a few seconds, and keeps the lock until
// Pebble has come to its end.
func (e *Engine) openPebble(options *pebble.Options, isNew bool) error {
	done := make(chan error, 1)
	e.freezeFS = newFreezeFS(options.FS)
	options.FS = e.freezeFS
	go func() {
		err := e.protect(func() (err error) {
			defer e.reservation.cache.Unref()
			if e.db, err = pebble.Open(e.path, options); err != nil || !isNew {
				return err
			}
			// Pebble writes the first log of a new store in an older format,
			// which cannot tell a damaged record from the end of the log.
			// Opening it once more starts one that can, before anything is in it.
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
		return nil // the caller looks at the failure
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

// unlock gives the directory back, and returns err. Pebble must be done with it.
func (e *Engine) unlock(err error) error {
	e.control.control.release()
	if closeErr := e.lock.Close(); closeErr != nil {
		return errors.Join(err, closeErr)
	}
	return err
}

// StartSequence implements storage.Engine. It takes no lock: a transaction under way may
// be stuck behind the disk.
func (e *Engine) StartSequence(n uint64) {
	for {
		old := e.minSequence.Load()
		if old >= n || e.minSequence.CompareAndSwap(old, n) {
			return
		}
	}
}

// Stats implements storage.Engine.
func (e *Engine) Stats() storage.Stats {
	e.reservation.adjust()
	m := e.db.Metrics()
	var syncs dto.Metric
	if err := m.LogWriter.FsyncLatency.Write(&syncs); err != nil {
		e.log.Debug("jay: reading the log's sync histogram", "err", err)
	}
	return storage.Stats{
		DiskBytes:     m.DiskSpaceUsage(),
		CacheBytes:    m.BlockCache.Size,
		MemTableBytes: m.MemTable.Size,
		LogSyncs:      syncs.GetHistogram().GetSampleCount(),
		Commits:       e.commits.Load(),
	}
}
