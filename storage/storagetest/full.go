package storagetest

import (
	"fmt"
	"sync/atomic"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// ErrFull is the error of a disk that Fill has filled. Like that of a real disk it comes
// from the system.
var ErrFull = fmt.Errorf("injected full disk: %w", syscall.ENOSPC)

// faults are those of a Disk that do not depend on which file is meant.
type faults struct {
	filled    atomic.Bool
	refused   atomic.Uint64
	everySync atomic.Value // func()
}

// Fill makes the disk full from now on: no file grows, and none can be made. What is there
// can be overwritten in place, synced, renamed and removed. Heal makes room.
func (d *Disk) Fill() { d.faults.filled.Store(true) }

// Refused returns how many operations have failed because a fault was asked for.
func (d *Disk) Refused() uint64 { return d.faults.refused.Load() }

// OnEverySync calls fn at every sync of any file or directory, before it takes effect.
// OnSync does so for the log only.
func (d *Disk) OnEverySync(fn func()) { d.faults.everySync.Store(fn) }

// inject returns the error of an operation.
func (f *faults) inject(op errorfs.Op) error {
	if isSync(op.Kind) {
		if hook, ok := f.everySync.Load().(func()); ok && hook != nil {
			hook()
		}
	}
	if f.filled.Load() && grows(op.Kind) {
		return ErrFull
	}
	return nil
}

// grows reports whether an operation needs room on the disk.
func grows(kind errorfs.OpKind) bool {
	switch kind {
	case errorfs.OpCreate, errorfs.OpMkdirAll, errorfs.OpFileWrite, errorfs.OpFilePreallocate:
		return true
	}
	return false
}
