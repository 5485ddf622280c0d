package main

import (
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"strings"
)

// maxServeMemory is the budget of jay serve where memory is plenty.
const maxServeMemory = 1 << 30

// serveMemory returns the memory budget of jay serve: a quarter of the limit of its control
// group, or of GOMEMLIMIT if that is less, and at most 1 GiB. The rest is for the caches and
// write buffers of databases and for what is garbage. If there is a control group with a
// limit and no GOMEMLIMIT, it sets that to heapTenths of the limit.
func serveMemory(root string) int64 {
	limit := groupLimit(root)
	if own := debug.SetMemoryLimit(-1); own != math.MaxInt64 {
		limit = min(limit, own)
	} else if limit != math.MaxInt64 {
		debug.SetMemoryLimit(limit / 10 * heapTenths)
	}
	return min(limit/4, maxServeMemory)
}

// serveLoads returns the bound of the blocks that databases load at a time, with which blocks of the
// largest documents, compressed and not, take a quarter of the limit of the control group;
// 0 for no bound if there is no limit.
func serveLoads(root string, documentBytes int) int64 {
	limit := groupLimit(root)
	if limit == math.MaxInt64 {
		return 0
	}
	return max(leastLoads, limit/4/(loadCopies*int64(documentBytes)))
}

// groupLimit returns the limit of memory of the process's control group, of either version,
// or math.MaxInt64. root is "" but in tests.
func groupLimit(root string) int64 {
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
