package main

import (
	"os"
	"syscall"
)

// peakMemory returns the most resident memory that a process has had, in bytes.
func peakMemory(state *os.ProcessState) int64 {
	return int64(state.SysUsage().(*syscall.Rusage).Maxrss) * 1024
}
