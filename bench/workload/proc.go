package workload

import (
	"bytes"
	"os"
	"strconv"
)

// The figures of /proc are 0 where there is none.

// WrittenBytes is the number of bytes of the pages that the process has made
// dirty, by system calls or mapped memory. (rchar and wchar would miss the engines
// that map their logs.)
func WrittenBytes() int64 { return procField("/proc/self/io", "write_bytes:", 1) }

// residentBytes is the memory that the process has now, PeakBytes the most
// since it began, or since resetPeak.
func residentBytes() int64 { return procField("/proc/self/status", "VmRSS:", 1<<10) }
func PeakBytes() int64     { return procField("/proc/self/status", "VmHWM:", 1<<10) }

// resetPeak makes the peak what the memory is now. Where that isn't allowed, the
// peak is that of the whole process.
func resetPeak() { _ = os.WriteFile("/proc/self/clear_refs", []byte("5"), 0) }

// procField returns a number from a file of "name value" lines.
func procField(file, name string, unit int64) int64 {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(text) {
		fields := bytes.Fields(line)
		if len(fields) > 1 && string(fields[0]) == name {
			n, _ := strconv.ParseInt(string(fields[1]), 10, 64)
			return n * unit
		}
	}
	return 0
}
