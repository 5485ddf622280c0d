package main

import (
	"math"
	"runtime/debug"

	"github.com/jaydb/jay/internal/budget"
)

// maxServeMemory is the budget of jay serve where memory is plenty.
const maxServeMemory = 1 << 30

// serveMemory returns the memory budget of jay serve: a quarter of the limit of its control
// group, or of GOMEMLIMIT if that is less, and at most 1 GiB. The rest is for the caches and
// write buffers of databases and for what is garbage. If there is a control group with a
// limit and no GOMEMLIMIT, it sets that to heapTenths of the limit.
func serveMemory(root string) int64 {
	limit := budget.GroupLimit(root)
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
	limit := budget.GroupLimit(root)
	if limit == math.MaxInt64 {
		return 0
	}
	return max(leastLoads, limit/4/(loadCopies*int64(documentBytes)))
}
