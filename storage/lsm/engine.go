package lsm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/bloom"
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

// pebbleFormat is the version of Pebble's own files under Format. It is not
// "the newest", so that a newer Pebble does not change a database behind the
// back of its format number. Part of the on-disk format. Must not change.
const pebbleFormat = pebble.FormatValueSeparation

// pebbleOptions returns what Jay ships: memory bounded by a small cache and
// four memtables, bloom filters on every level, and tables large enough that
// a million documents are a few hundred files.
func (e *Engine) pebbleOptions(opts Options) *pebble.Options {
	cacheBytes := opts.CacheBytes
	if cacheBytes == 0 {
		cacheBytes = defaultCacheBytes
	}
	memTableBytes := opts.MemTableBytes
	if memTableBytes == 0 {
		memTableBytes = defaultMemTableBytes
	}
	e.reservation = newCacheReservation(cacheBytes, memTableBytes)
	listener := e.listener()
	e.reservation.listen(listener)
	e.memTable.listen(listener, memTableBytes)

	o := &pebble.Options{
		Cache:                       e.reservation.cache,
		FS:                          e.fs,
		Lock:                        e.lock.engine,
		FormatMajorVersion:          pebbleFormat,
		MemTableSize:                uint64(memTableBytes),
		MemTableStopWritesThreshold: memTables,
		L0CompactionThreshold:       8, // merges begin at half of it: four tables deep
		L0StopWritesThreshold:       24,
		LBaseMaxBytes:               64 << 20,
		MaxOpenFiles:                1000,
		CompactionConcurrencyRange:  func() (int, int) { return 1, 2 },
		Logger:                      pebbleLogger{e},
		EventListener:               listener,
	}
	o.Experimental.SpanPolicyFunc = func(start []byte) (pebble.SpanPolicy, []byte, error) {
		return pebble.SpanPolicy{}, nextBound(opts.TableBounds, start), nil
	}
	for i := range o.Levels {
		l := &o.Levels[i]
		l.BlockSize = 16 << 10
		l.IndexBlockSize = 64 << 10
		l.FilterPolicy = bloom.FilterPolicy(10)
		l.FilterType = pebble.TableFilter
	}
	return o
}

// nextBound returns the first of bounds after start, nil if there is none.
func nextBound(bounds [][]byte, start []byte) []byte {
	for _, bound := range bounds {
		if bytes.Compare(start, bound) < 0 {
			return bound
		}
	}
	return nil
}

// listener watches Pebble's background work. A flush or compaction that fails
// makes the engine fail: Pebble would try again for ever while writers pile
// up behind it. Other trouble, such as statistics that cannot be read, is
// only logged.
func (e *Engine) listener() *pebble.EventListener {
	// Pebble reports a flush that had nothing to write as an error to FlushEnd,
	// and only real failures to BackgroundError, among failures of other kinds.
	var flush atomic.Pointer[error]
	return &pebble.EventListener{
		// Without this, Pebble calls Fatalf for a table that cannot be read. The
		// reader gets ErrCorrupt; what is whole can still be read.
		DataCorruption: func(info pebble.DataCorruptionInfo) {
			e.log.Error("jay: corrupt table", "dir", e.dir, "file", info.Path, "err", info.Details)
		},
		FlushEnd: func(info pebble.FlushInfo) {
			if info.Err != nil {
				flush.Store(&info.Err)
			}
		},
		CompactionEnd: func(info pebble.CompactionInfo) {
			if info.Err != nil && !errors.Is(info.Err, pebble.ErrCancelledCompaction) {
				e.fail(fmt.Errorf("compact tables: %w", readError(info.Err)))
			}
		},
		BackgroundError: func(err error) {
			if flushErr := flush.Load(); flushErr != nil && errors.Is(err, *flushErr) {
				e.fail(fmt.Errorf("write a table: %w", readError(err)))
				return
			}
			e.log.Warn("jay: storage, in the background", "dir", e.dir, "err", err)
		},
	}
}

func get(r pebble.Reader, key []byte) ([]byte, io.Closer, error) {
	value, closer, err := r.Get(key)
	if err == nil {
		return value, closer, nil
	}
	if err == pebble.ErrNotFound || errors.Is(err, pebble.ErrNotFound) {
		return nil, nil, storage.ErrNotFound
	}
	return nil, nil, readError(err)
}

// iterator is an Iterator on Pebble.
type iterator struct{ *pebble.Iterator }

// Error implements storage.Iterator.
func (it iterator) Error() error { return readError(it.Iterator.Error()) }

// Close implements storage.Iterator.
func (it iterator) Close() error { return readError(it.Iterator.Close()) }

func iterate(r pebble.Reader, lo, hi []byte) (storage.Iterator, error) {
	if len(lo) == 0 {
		lo = nil // Pebble tells an empty bound from none
	}
	it, err := r.NewIter(&pebble.IterOptions{LowerBound: lo, UpperBound: hi})
	if err != nil {
		return nil, readError(err)
	}
	return iterator{it}, nil
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

// protect calls fn and turns the panic with which Pebble meets a log that
// cannot be written into an error.
func (e *Engine) protect(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	return fn()
}

// fail makes every later Update return ErrFailed. The first cause is kept.
func (e *Engine) fail(cause error) {
	if e.failure.CompareAndSwap(nil, &cause) {
		close(e.failed)
		time.AfterFunc(abandonDelay, func() { close(e.abandoned) })
		e.log.Error("jay: storage failed, writes are refused until the database is reopened", "dir", e.dir, "cause", cause)
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

// Close implements storage.Engine.
func (e *Engine) Close() error {
	e.closing.Do(func() {
		go func() {
			e.closeErr = e.close()
			close(e.closed)
		}()
	})
	if stuck := e.Await(e.closed); stuck != nil {
		return stuck
	}
	return e.closeErr
}

// close closes the engine, however long that takes, and gives the directory
// back when nothing of it can reach the disk any more.
func (e *Engine) close() error {
	close(e.quit)
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-e.failed:
			e.freezeFS.freeze() // what waits for room in Pebble gets it, and the disk nothing
		case <-stop:
		}
	}()
	ended := make(chan error, 1)
	go func() { ended <- e.end() }()
	select {
	case err := <-ended:
		return e.unlock(err)
	case <-e.quiescent(stop):
		e.log.Warn("jay: a failed storage engine does not end, and is left behind", "dir", e.dir)
		e.control.control.release()
		return e.lock.abandon()
	}
}

// end ends Pebble. That of an engine that has failed may never return: Pebble
// waits for work that it has given up.
func (e *Engine) end() error {
	e.leaders.Wait()
	var unknown error
	if e.failure.Load() == nil {
		if err := e.protect(func() error { return e.db.LogData(nil, pebble.Sync) }); err != nil {
			e.fail(err)
		}
		if failure := e.failure.Load(); failure != nil {
			unknown = fmt.Errorf("close: %w: %w", storage.ErrUnknownOutcome, *failure)
		}
	}
	e.durability.end()
	e.reservation.stop()
	err := e.protect(e.db.Close)
	switch {
	case e.failure.Load() == nil && err == nil:
		err = e.control.close(e.path)
	case e.failure.Load() != nil && err != nil:
		e.log.Warn("jay: closing a failed storage engine", "dir", e.dir, "err", err)
		err = nil // what it is about has been returned before
	}
	return errors.Join(unknown, err)
}

// pebbleLogger takes Pebble's messages. Pebble's own default ends the process
// on Fatalf; an embedded library must not.
type pebbleLogger struct{ e *Engine }

// Infof implements pebble.Logger. Pebble is talkative: debug level.
func (l pebbleLogger) Infof(format string, args ...any) {
	if l.e.log.Enabled(context.Background(), slog.LevelDebug) {
		l.e.log.Debug(fmt.Sprintf(format, args...))
	}
}

// Errorf implements pebble.Logger.
func (l pebbleLogger) Errorf(format string, args ...any) { l.e.log.Error(fmt.Sprintf(format, args...)) }

// Fatalf implements pebble.Logger. It marks the engine as failed. It must not
// return, as Pebble's state is no longer whole: under one of our own calls it
// panics, to be caught in apply; on one of Pebble's goroutines it ends that
// goroutine, with its deferred unlocks.
func (l pebbleLogger) Fatalf(format string, args ...any) {
	err := newFatal(format, args)
	l.e.fail(err)
	if calledByUs() {
		panic(err)
	}
	runtime.Goexit()
}

// calledByUs tells whether a function of this package, other than the logger,
// is on the stack.
func calledByUs() bool {
	var pcs [64]uintptr
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs[:])])
	for {
		frame, more := frames.Next()
		if strings.Contains(frame.Function, "jay/storage/lsm.(*Engine)") {
			return true
		}
		if !more {
			return false
		}
	}
}

// isPermission tells whether err says that nothing can be written here.
func isPermission(err error) bool {
	return errors.Is(err, fs.ErrPermission) || errors.Is(err, os.ErrPermission) || isReadOnlyFS(err) || isDiskFull(err)
}
