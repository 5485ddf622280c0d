package workload

import (
	"errors"
	"os"
	"syscall"
)

// nextData returns the offset of the first data at or after offset; size if there
// is only a hole.
func nextData(f *os.File, offset, size int64) int64 {
	const seekData = 3
	next, err := f.Seek(offset, seekData)
	switch {
	case errors.Is(err, syscall.ENXIO):
		return size
	case err != nil:
		return offset // a file system that doesn't know
	}
	return next
}
