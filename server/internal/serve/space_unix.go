//go:build linux || darwin

package serve

import "syscall"

// diskSpace returns how many bytes are free on the disk that a directory is on, and how many
// it has, if they are known.
func diskSpace(dir string) (free, total uint64, known bool) {
	var s syscall.Statfs_t
	if syscall.Statfs(dir, &s) != nil {
		return 0, 0, false
	}
	return s.Bavail * uint64(s.Bsize), s.Blocks * uint64(s.Bsize), true
}
