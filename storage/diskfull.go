package storage

import "fmt"

// DiskFullError is returned by writes that are refused because the disk is almost full. It
// is an ErrDiskFull.
type DiskFullError struct {
	Dir          string // of the database
	FreeBytes    uint64 // about how much is free on its disk
	MinFreeBytes uint64 // how much must stay free
}

// Error names the directory, and both numbers.
func (e *DiskFullError) Error() string {
	return fmt.Sprintf("%v: %d bytes are free on the disk of %q, and %d must stay free: deletions go on, and other writes when there is room again", ErrDiskFull, e.FreeBytes, e.Dir, e.MinFreeBytes)
}

// Unwrap returns ErrDiskFull.
func (e *DiskFullError) Unwrap() error { return ErrDiskFull }
