package main

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// peakMemory looks at a process until it has ended, and returns the most resident memory
// that it has had, in bytes. The usage that a wait returns counts the memory of the process
// that has started it, too.
func peakMemory(pid int, ended <-chan struct{}) (peak int64) {
	for {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have ended
		if _, rest, found := strings.Cut(string(text), "VmHWM:"); found {
			var kilobytes int64
			if _, err := fmt.Sscan(rest, &kilobytes); err == nil {
				peak = kilobytes * 1024
			}
		}
		select {
		case <-ended:
			return peak
		case <-time.After(20 * time.Millisecond):
		}
	}
}
