package serve

import (
	"fmt"

	"github.com/jaydb/jay"
)

// How Options.MaxMemory is divided.
const (
	leastMemory       = 64 << 20
	requestsPart      = 4 // requests have this part of it
	mostRequestMemory = 1 << 30
	systemMemory      = 8 << 20 // of the server's own database: see openSystem

	defaultDocumentBytes = 32 << 20 // of jay.Options
	copiesOfDocument     = 4        // that are paid for while a document is stored
)

// defaultMemory is the default of Options.MaxMemory: half of the memory of the machine, of which jay.DefaultMemory is a quarter.
func defaultMemory() int64 {
	quarter, _, _ := jay.DefaultMemory().Bytes()
	return max(leastMemory, 2*quarter)
}

// requestMemory is what requests may have of a bound.
func requestMemory(bound int64) int64 { return min(bound/requestsPart, mostRequestMemory) }

// senderMemory is what one sender may have of a bound by default, with documents of so many bytes at most; 0 for the default.
func senderMemory(bound, documentBytes int64) int64 {
	if documentBytes == 0 {
		documentBytes = defaultDocumentBytes
	}
	all := requestMemory(bound)
	return max(1, min(all, max(all/2, copiesOfDocument*documentBytes)))
}

// checkBound returns an error for a bound that is too low.
func checkBound(bound int64) error {
	if bound < leastMemory {
		return fmt.Errorf("server: %w: Options.MaxMemory must be at least %d, got %d", jay.ErrOption, leastMemory, bound)
	}
	return nil
}

// DatabaseMemory is what the databases share of a bound.
func DatabaseMemory(bound int64) (*jay.Memory, error) {
	if err := checkBound(bound); err != nil {
		return nil, err
	}
	return jay.NewMemory(bound - requestMemory(bound) - systemMemory)
}

// MemoryStats are server.MemoryStats.
type MemoryStats struct {
	BoundBytes    int64
	RequestsBytes int64
	RequestsUsed  int64
	CachesBytes   int64
	CachesClaimed int64
	HeapBytes     int64
}

// memoryStats returns how a bound is divided, and what is used of it.
func memoryStats(bound int64, requests *Budget, databases *jay.Memory) MemoryStats {
	m := MemoryStats{BoundBytes: bound}
	m.RequestsUsed, m.RequestsBytes = requests.Load()
	shared, claimed, caches := databases.Bytes()
	m.CachesBytes, m.CachesClaimed = caches, claimed
	m.HeapBytes = m.BoundBytes - (shared - databases.HeapBytes())
	return m
}
