//go:build plan9 || js || wasip1

package lsm

// isReadOnlyFS reports whether err says that the file system is mounted
// read-only. Elsewhere that is a permission error.
func isReadOnlyFS(error) bool { return false }

// isLockHeld reports whether err says that another owner has the lock. No
// other reason for its errors is known here.
func isLockHeld(error) bool { return true }

// isDiskFull reports whether err says that the disk is full. These systems
// have no error for that.
func isDiskFull(error) bool { return false }
