package engine

import (
	"os"
	"syscall"
)

// dataSync waits until the file's content is on disk.
func dataSync(f *os.File) error { return syscall.Fdatasync(int(f.Fd())) }
