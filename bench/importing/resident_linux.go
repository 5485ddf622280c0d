package importing

import (
	"os"
	"syscall"
)

// mostResident returns the most memory that a process had resident, in bytes.
func mostResident(s *os.ProcessState) int64 {
	if usage, ok := s.SysUsage().(*syscall.Rusage); ok {
		return usage.Maxrss << 10
	}
	return 0
}
