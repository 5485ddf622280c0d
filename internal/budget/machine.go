package budget

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// unknownMachine is the memory of a machine that does not say how much it has: the default bound is then 512 MiB.
const unknownMachine = 2 << 30

// Machine returns how much memory the process can have: that of the machine, or less if its control group (of either version) or GOMEMLIMIT
// has a limit. Only Linux says what the machine has; elsewhere it is 2 GiB.
func Machine() int64 { return min(machineBytes(""), debug.SetMemoryLimit(-1)) }

// machineBytes is Machine without GOMEMLIMIT. root is "" but in tests.
func machineBytes(root string) int64 {
	return min(totalBytes(root), GroupLimit(root))
}

// totalBytes returns the memory of the machine.
func totalBytes(root string) int64 {
	text, err := os.ReadFile(root + "/proc/meminfo")
	if err != nil {
		return unknownMachine
	}
	for line := range strings.Lines(string(text)) {
		if rest, is := strings.CutPrefix(line, "MemTotal:"); is {
			n, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err == nil && n > 0 && n < math.MaxInt64>>10 {
				return n << 10
			}
		}
	}
	return unknownMachine
}

// GroupLimit returns the limit of memory of the process's control group, of either version,
// or math.MaxInt64. root is "" but in tests.
func GroupLimit(root string) int64 {
	text, err := os.ReadFile(root + "/proc/self/cgroup")
	if err != nil {
		return math.MaxInt64
	}
	limit := int64(math.MaxInt64)
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		dir, file := "", ""
		switch {
		case parts[1] == "": // version 2
			dir, file = root+"/sys/fs/cgroup", "memory.max"
		case strings.Contains(","+parts[1]+",", ",memory,"):
			dir, file = root+"/sys/fs/cgroup/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// Inside a container the path is often that of the host, and the group is the root.
		for path := filepath.Clean("/" + parts[2]); ; path = filepath.Dir(path) {
			if text, err := os.ReadFile(filepath.Join(dir, path, file)); err == nil {
				n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
				if err == nil && n > 0 && n < 1<<60 { // above that stands "no limit"
					limit = min(limit, n)
				}
			}
			if path == "/" {
				break
			}
		}
	}
	return limit
}
