//go:build !windows && !plan9 && !js && !wasip1

package storage

import (
	"errors"
	"syscall"
)

// isReadOnlyFS tells whether err says that the file system is mounted
// read-only.
func isReadOnlyFS(err error) bool { return errors.Is(err, syscall.EROFS) }
