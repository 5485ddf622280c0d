package lsm

import (
	"fmt"

	"github.com/jaydb/jay/storage"
)

var (
	_ storage.FreeSpacer    = (*Engine)(nil)
	_ storage.SpaceMeasurer = (*Engine)(nil)
)

// FreeBytes implements storage.FreeSpacer.
func (e *Engine) FreeBytes() (uint64, error) {
	usage, err := e.fs.GetDiskUsage(e.path)
	if err != nil {
		return 0, fmt.Errorf("free space of %q: %w", e.path, err)
	}
	return usage.AvailBytes, nil
}

// DiskBytes implements storage.SpaceMeasurer. Pebble adds up the sizes of the tables in
// the range, and reads the index blocks of those that reach beyond it. It takes the upper
// bound as included, which adds nothing to an estimate.
func (e *Engine) DiskBytes(lo, hi []byte) (uint64, error) { return e.db.EstimateDiskUsage(lo, hi) }
