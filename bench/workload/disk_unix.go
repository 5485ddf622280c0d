//go:build unix

package workload

import (
	"io/fs"
	"syscall"
)

// allocatedBytes is the disk space that a file takes.
func allocatedBytes(info fs.FileInfo) int64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return int64(stat.Blocks) * 512 // in units of 512 bytes, whatever the block size
	}
	return info.Size()
}
