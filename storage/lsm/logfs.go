package lsm

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// logFS is a file system on which writing a log never fails, as far as Pebble can
// see. Pebble panics when its log fails, sometimes on a goroutine of its own, which
// would end the process. Here the engine fails instead: it does before Pebble goes
// on, and commits check that after their sync, so that nothing is acknowledged
// from then on.
type logFS struct {
	vfs.FS
	fail   func(error)
	failed func() bool

	syncing *atomic.Int64 // counts syncs that are under way
	largest atomic.Int64  // bytes of the largest log so far
	current atomic.Pointer[logFile]
}

// grown returns the bytes of the log that is being written which Pebble's metrics leave
// out: all of a new file, and of one that is used again those beyond its old size.
func (l *logFS) grown() uint64 {
	if f := l.current.Load(); f != nil {
		return uint64(max(0, f.size.Load()-f.reused))
	}
	return 0
}

// Unwrap returns the file system underneath.
func (l *logFS) Unwrap() vfs.FS { return l.FS }

// retryDelay keeps Pebble from spinning when it cannot create a file.
const retryDelay = 50 * time.Millisecond

func isLog(name string) bool { return strings.HasSuffix(name, ".log") }

// Create implements vfs.FS.
func (l *logFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if f := l.nothing(name); f != nil {
		return f, nil
	}
	f, err := l.FS.Create(name, category)
	return l.file(name, f, err)
}

// ReuseForWrite implements vfs.FS.
func (l *logFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if f := l.nothing(newname); f != nil {
		return f, nil
	}
	f, err := l.FS.ReuseForWrite(oldname, newname, category)
	return l.file(newname, f, err)
}

// nothing returns a log that takes nothing, in the place of one that follows a broken log; nil for
// other files. With a later log on the disk the part of a record at which the broken one ends would
// be damage to the next Open, and not the end.
func (l *logFS) nothing(name string) vfs.File {
	before := l.current.Load()
	if !isLog(name) || before == nil || !before.broken.Load() {
		return nil
	}
	f, err := vfs.NewMem().Create(l.FS.PathBase(name), vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil
	}
	log := &logFile{File: f, fail: l.fail, name: name}
	log.broken.Store(true)
	l.current.Store(log)
	return log
}

// OpenDir implements vfs.FS. A directory is synced when a log is created.
func (l *logFS) OpenDir(name string) (vfs.File, error) {
	f, err := l.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &logFile{File: f, fail: l.fail, name: name}, nil
}

// file wraps a log, and replaces one that could not be created by a file in
// memory.
func (l *logFS) file(name string, f vfs.File, err error) (vfs.File, error) {
	if !isLog(name) {
		if err != nil && l.failed() {
			// Pebble retries at once, for ever.
			time.Sleep(retryDelay)
		}
		return f, err
	}
	if err != nil {
		l.fail(fmt.Errorf("create the log %s: %w", name, err))
		f, err = vfs.NewMem().Create(l.FS.PathBase(name), vfs.WriteCategoryUnspecified)
		if err != nil {
			return nil, err
		}
	}
	log := &logFile{File: f, fail: l.fail, name: name, largest: &l.largest, syncing: l.syncing}
	if info, err := f.Stat(); err == nil { // else its old size is not known, and counted twice
		log.reused = info.Size()
	}
	l.current.Store(log)
	return log, nil
}

// logFile is a log whose writes never fail. Its methods but Sync are called one at
// a time.
//
// After the first failure nothing more is written or synced: a full disk may have taken a part
// of a record, and a later sync, which Pebble makes as it knows of no failure, would enter that part
// into the control file as synced. The log would be damaged to the next Open.
type logFile struct {
	vfs.File
	fail func(error)
	name string

	broken atomic.Bool  // a write or a sync has failed, and the engine with it
	reused int64        // bytes of the file when it was opened to be used again
	size   atomic.Int64 // written, for Stats

	written   int64
	allocated int64 // bytes that were allocated in advance
	wanted    int64 // bytes that Pebble wants to be allocated
	largest   *atomic.Int64
	syncing   *atomic.Int64 // syncs that are under way, of all files; nil of a directory
}

// note makes the engine fail if err is not nil. The engine fails first: a sync that does nothing, as the
// log is broken, looks like success, and nobody may take it for one.
func (f *logFile) note(verb string, err error) {
	if err != nil {
		f.fail(fmt.Errorf("%s %s: %w", verb, f.name, err))
		f.broken.Store(true)
	}
}

// Write implements vfs.File.
func (f *logFile) Write(p []byte) (int, error) {
	if f.broken.Load() {
		return len(p), nil
	}
	f.allocate(int64(len(p)))
	_, err := f.File.Write(p)
	f.note("write", err)
	return len(p), nil
}

// WriteAt implements vfs.File.
func (f *logFile) WriteAt(p []byte, offset int64) (int, error) {
	if f.broken.Load() {
		return len(p), nil
	}
	_, err := f.File.WriteAt(p, offset)
	f.note("write", err)
	return len(p), nil
}

// Preallocate implements vfs.File. Pebble asks at the second write for more than a
// memtable can fill, 36 MB, which a database that is opened for a few writes would
// never use: see allocate. Memtables, and so the logs, grow to twice their size from one
// to the next, and a sync takes less time if the space was allocated before the first
// one; so a log gets at once what the largest one before it makes likely.
func (f *logFile) Preallocate(offset, length int64) error {
	f.wanted = max(f.wanted, offset+length)
	if f.largest != nil && f.largest.Load() >= leastAllocation {
		f.extend(min(2*f.largest.Load(), f.wanted))
	}
	return nil
}

// extend allocates space up to an offset. Allocation is a hint, and its errors are not
// failures of the log.
func (f *logFile) extend(end int64) {
	if end > f.allocated {
		_ = f.File.Preallocate(f.allocated, end-f.allocated)
		f.allocated = end
	}
}

// leastAllocation is how large a log is before space is allocated in advance.
const leastAllocation = 64 << 10

// allocate allocates space ahead of a write of n bytes, up to what Pebble wants:
// with each step as much as the log has, so that a log of 36 MB takes ten steps,
// and none takes more than twice its bytes, or those of the largest one before it.
func (f *logFile) allocate(n int64) {
	f.written += n
	f.size.Store(f.written)
	if f.written <= f.allocated || f.written < leastAllocation {
		return
	}
	f.extend(min(2*f.written, f.wanted))
}

// Sync implements vfs.File.
func (f *logFile) Sync() error {
	if f.broken.Load() {
		return nil
	}
	f.note("sync", f.File.Sync())
	return nil
}

// SyncData implements vfs.File.
func (f *logFile) SyncData() error {
	if f.broken.Load() {
		return nil
	}
	if f.syncing != nil {
		f.syncing.Add(1)
		defer f.syncing.Add(-1)
	}
	f.note("sync", f.File.SyncData())
	return nil
}

// SyncTo implements vfs.File.
func (f *logFile) SyncTo(length int64) (bool, error) {
	if f.broken.Load() {
		return true, nil
	}
	full, err := f.File.SyncTo(length)
	f.note("sync", err)
	return full || err != nil, nil
}

// Close implements vfs.File.
func (f *logFile) Close() error {
	if f.largest != nil && f.written > f.largest.Load() { // one log is closed at a time
		f.largest.Store(f.written)
	}
	f.note("close", f.File.Close())
	return nil
}
