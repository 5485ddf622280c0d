// Package storagetest has disks for tests of programs that use Jay: a Disk is a
// file system in memory that loses its power, fails and hangs on request. It goes
// into jay.Options.FS and is one of Pebble's; what an engine of package storage
// must pass is package enginetest.
package storagetest

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// ErrInjected is the error of a disk that is made to fail. Like those of real
// disks it comes from the system.
var ErrInjected = fmt.Errorf("injected disk failure: %w", syscall.EIO)

// Disk is a file system in memory that remembers what was synced, and fails
// on request.
type Disk struct {
	vfs.FS
	mem     *vfs.MemFS
	failing atomic.Bool
	tables  atomic.Bool  // whether writes of tables fail
	full    atomic.Bool  // whether no file can be made
	blind   atomic.Int64 // which reads of tables fail: each nth; 0 for none
	reads   atomic.Int64 // of tables
	after   atomic.Int64 // syncs until the disk fails; negative means never
	onSync  atomic.Value // func()
	room    atomic.Pointer[room]
	syncs   atomic.Uint64 // syncs of the log seen
	links   sync.RWMutex  // see linkFS

	holds       atomic.Pointer[[]*Hold]
	directories sync.Map // paths of those that were opened

	faults faults

	repeatable bool // see Repeatable
}

// linkFS keeps Link and CrashClone of a vfs.MemFS apart: Link takes a lock twice for reading, and with one who waits to
// clone in between, both would wait for ever.
type linkFS struct {
	vfs.FS
	links *sync.RWMutex
}

// Link implements vfs.FS.
func (f *linkFS) Link(oldname, newname string) error {
	f.links.RLock()
	defer f.links.RUnlock()
	return f.FS.Link(oldname, newname)
}

// clone is CrashClone while nothing is linked.
func (d *Disk) clone(cfg vfs.CrashCloneCfg) *vfs.MemFS {
	d.links.Lock()
	defer d.links.Unlock()
	return d.mem.CrashClone(cfg)
}

// NewDisk returns an empty disk.
func NewDisk() *Disk { return newDisk(vfs.NewCrashableMem()) }

func newDisk(mem *vfs.MemFS) *Disk {
	d := &Disk{mem: mem}
	d.after.Store(-1)
	d.FS = errorfs.Wrap(&linkFS{mem, &d.links}, errorfs.InjectorFunc(func(op errorfs.Op) error {
		err := d.inject(op)
		if err != nil {
			d.faults.refused.Add(1)
		}
		return err
	}))
	return d
}

// inject fails writes and syncs as requested, and reports syncs of the log.
func (d *Disk) inject(op errorfs.Op) error {
	if err := d.hold(op); err != nil {
		return err
	}
	if err := d.faults.inject(op); err != nil {
		return err
	}
	if op.Kind.ReadOrWrite() == errorfs.OpIsRead {
		if every := d.blind.Load(); every > 0 && strings.HasSuffix(op.Path, ".sst") && d.reads.Add(1)%every == 0 {
			return &fs.PathError{Op: "read", Path: op.Path, Err: ErrInjected} // as the system's errors are
		}
		return nil
	}
	if d.repeatable {
		runtime.Gosched()
	}
	if isSync(op.Kind) && strings.HasSuffix(op.Path, ".log") {
		d.syncs.Add(1)
		if hook, ok := d.onSync.Load().(func()); ok && hook != nil {
			hook()
		}
		if d.after.Load() >= 0 && d.after.Add(-1) < 0 {
			d.failing.Store(true)
		}
	}
	if r := d.room.Load(); r != nil && operationOf(op.Kind) == Creations && strings.HasPrefix(op.Path, r.prefix) && r.left.Add(-1) < 0 {
		return ErrInjected
	}
	if d.full.Load() && (op.Kind == errorfs.OpCreate || op.Kind == errorfs.OpReuseForWrite) {
		return ErrInjected
	}
	if d.failing.Load() || d.tables.Load() && strings.HasSuffix(op.Path, ".sst") && op.Kind != errorfs.OpRemove {
		return ErrInjected
	}
	return nil
}

// ReuseForWrite implements vfs.FS. That of the package errorfs returns a file on which no
// fault is injected and whose syncs are not seen.
func (d *Disk) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if err := d.FS.Rename(oldname, newname); err != nil {
		return nil, err
	}
	return d.FS.Create(newname, category)
}

func isSync(kind errorfs.OpKind) bool {
	return kind == errorfs.OpFileSync || kind == errorfs.OpFileSyncData || kind == errorfs.OpFileSyncTo
}

// Fail makes every write fail from now on.
func (d *Disk) Fail() { d.failing.Store(true) }

// FailTables makes every write of a table fail from now on. The log goes on.
func (d *Disk) FailTables() { d.tables.Store(true) }

// room is for how many files there is room.
type room struct {
	prefix string
	left   atomic.Int64
}

// FailCreationsIn lets n more creations, links and renames of files and directories succeed
// whose paths begin with prefix; later ones fail.
func (d *Disk) FailCreationsIn(prefix string, n int) {
	r := &room{prefix: prefix}
	r.left.Store(int64(n))
	d.room.Store(r)
}

// Heal ends what Fail, FailTables, FailCreations, FailCreationsIn, Fill and FailAfter began.
func (d *Disk) Heal() {
	d.room.Store(nil)
	d.faults.filled.Store(false)
	d.after.Store(-1)
	d.failing.Store(false)
	d.tables.Store(false)
	d.full.Store(false)
}

// FailReads makes each nth read of a table fail from now on; none if n is 0.
func (d *Disk) FailReads(n int) { d.blind.Store(int64(n)) }

// FailCreations makes it impossible to make a new file from now on.
func (d *Disk) FailCreations() { d.full.Store(true) }

// FailAfter lets n more syncs of the log succeed, then every write fails.
func (d *Disk) FailAfter(n int) { d.after.Store(int64(n)) }

// SetFreeBytes makes the disk say that so many bytes are free. It does not fail writes
// that need more. A new Disk does not know what is free.
func (d *Disk) SetFreeBytes(n uint64) {
	d.mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: n, TotalBytes: 1 << 62})
}

// Syncs returns how many times the log was synced.
func (d *Disk) Syncs() uint64 { return d.syncs.Load() }

// OnSync calls fn at every sync of the log, before it takes effect.
func (d *Disk) OnSync(fn func()) { d.onSync.Store(fn) }

// Crash returns the disk as a machine that lost its power now would find it:
// all that was synced, and each piece of the rest with this probability, in
// percent. The disk itself goes on.
func (d *Disk) Crash(percent int, random *rand.Rand) *Disk {
	if d.repeatable {
		if 0 < percent && percent < 100 {
			return newDisk(d.pieces(percent, random)).Repeatable()
		}
		return newDisk(d.clone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: random})).Repeatable()
	}
	return newDisk(d.clone(vfs.CrashCloneCfg{UnsyncedDataPercent: percent, RNG: random}))
}
