//go:build unix

package look

import (
	"os"
	"syscall"
)

// isPrivate reports whether a file belongs to this user, and no other can use it.
func isPrivate(info os.FileInfo) bool {
	stat, is := info.Sys().(*syscall.Stat_t)
	return is && int(stat.Uid) == os.Geteuid() && info.Mode().Perm()&0o077 == 0
}
