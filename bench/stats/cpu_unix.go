//go:build unix

package stats

import (
	"syscall"
	"time"
)

// CPUTime returns the time that all threads of the process have computed. It is ErrUnsupported where that is not measured.
func CPUTime() (time.Duration, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}
