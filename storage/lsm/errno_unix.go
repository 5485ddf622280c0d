//go:build !windows && !plan9 && !js && !wasip1

package lsm

import (
	"errors"
	"strings"
	"syscall"
)

// isReadOnlyFS reports whether err says that the file system is mounted
// read-only.
func isReadOnlyFS(err error) bool { return errors.Is(err, syscall.EROFS) }

// isLockHeld reports whether err says that another owner has the lock. If that
// is this process, Pebble and its file systems return an error without a type.
func isLockHeld(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || strings.Contains(err.Error(), "lock")
}

// isDiskFull reports whether err says that the disk is full.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
