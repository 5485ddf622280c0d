//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package lsm

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"github.com/jaydb/jay/storage"
)

// lockDir locks an open directory against every other descriptor of it, of
// this process and of others, by flock. A shared lock excludes only those that are not.
// It does not wait: ErrLocked.
//
// The directory is locked, and not a file in it, because it exists before its
// first file, and because restoring a copy over the database may replace a file
// but not the directory.
func lockDir(f *os.File, shared bool) error {
	how := syscall.LOCK_EX
	if shared {
		how = syscall.LOCK_SH
	}
	for {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case errors.Is(err, syscall.EINTR):
			// Once more.
		case errors.Is(err, syscall.EWOULDBLOCK):
			return storage.ErrLocked
		case errors.Is(err, errors.ErrUnsupported), errors.Is(err, syscall.EINVAL), errors.Is(err, syscall.ENOLCK):
			return nil // a file system without flock: the other locks hold
		default:
			return fmt.Errorf("lock the directory: %w", os.NewSyscallError("flock", err))
		}
	}
}

// unlockDir releases the lock, even if a child process has a copy of the
// descriptor.
func unlockDir(f *os.File) error {
	_ = syscall.Flock(int(f.Fd()), syscall.LOCK_UN) // the descriptor is closed next
	return nil
}
