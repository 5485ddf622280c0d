//go:build !windows && !plan9 && !js && !wasip1

package lsm

import (
	"errors"
	"strings"
	"syscall"
)

// isReadOnlyFS tells whether err says that the file system is mounted
// read-only.
func isReadOnlyFS(err error) bool { return errors.Is(err, syscall.EROFS) }

// isLockHeld tells whether err says that somebody else has the lock. For this
// process itself, Pebble and its file systems say so in words only.
func isLockHeld(err error) bool {
	return errors.Is(err, syscall.EAGAIN) || errors.Is(err, syscall.EACCES) || strings.Contains(err.Error(), "lock")
}

// isDiskFull tells whether err says that there is no room.
func isDiskFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}
