package lsm

import (
	"errors"
	"syscall"
)

// Error codes of Windows that package syscall does not name.
const (
	errorWriteProtect     = syscall.Errno(19)
	errorSharingViolation = syscall.Errno(32)
	errorHandleDiskFull   = syscall.Errno(39)
	errorDiskFull         = syscall.Errno(112)
)

// isReadOnlyFS reports whether err says that the volume is write-protected.
func isReadOnlyFS(err error) bool { return errors.Is(err, errorWriteProtect) }

// isLockHeld reports whether err says that another handle of the lock file is
// open. File systems in memory say EAGAIN, as on Unix.
func isLockHeld(err error) bool {
	return errors.Is(err, errorSharingViolation) || errors.Is(err, syscall.EAGAIN)
}

// isDiskFull reports whether err says that the disk is full.
func isDiskFull(err error) bool {
	return errors.Is(err, errorDiskFull) || errors.Is(err, errorHandleDiskFull)
}
