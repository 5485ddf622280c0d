//go:build plan9 || js || wasip1

package lsm

// isReadOnlyFS tells whether err says that the file system is mounted
// read-only. Elsewhere that is a permission error.
func isReadOnlyFS(error) bool { return false }

// isLockHeld tells whether err says that another owner has the lock. Nothing
// else is known to go wrong with it here.
func isLockHeld(error) bool { return true }

// isDiskFull tells whether err says that there is no room. It is not told
// apart here.
func isDiskFull(error) bool { return false }
