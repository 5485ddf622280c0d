//go:build unix

package main

import (
	"syscall"
	"time"
)

// cpuTime returns the time that all threads of the process have computed.
func cpuTime() (time.Duration, error) {
	var used syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &used)
	return time.Duration(used.Utime.Nano() + used.Stime.Nano()), err
}
