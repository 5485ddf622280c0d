//go:build unix

package worker

import (
	"os"
	"syscall"
)

// pause stops a process, resume lets it go on.
func pause(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

// FlushDisk has the operating system write what it still has to write, so that
// the writes of one engine never wait for those of another.
func FlushDisk() { syscall.Sync() }
