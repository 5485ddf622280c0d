package serve

import (
	"cmp"
	"fmt"

	"github.com/jaydb/jay"
)

// How Options.MaxMemory is divided.
const (
	leastMemory       = 64 << 20
	requestsPart      = 4 // requests have this part of it
	mostRequestMemory = 1 << 30
	systemMemory      = 8 << 20 // of the server's own database: see systemOptions

	defaultDocumentBytes = 32 << 20 // of jay.Options
	copiesOfDocument     = 4        // that are paid for while a document is stored
)

// defaultMemory is the default of Options.MaxMemory: half of the memory of the machine, of which jay.DefaultMemory is a quarter.
func defaultMemory() int64 {
	quarter, _, _ := jay.DefaultMemory().Bytes()
	return max(leastMemory, 2*quarter)
}

// requestMemory is what requests may have.
func (o *Options) requestMemory() int64 { return min(o.MaxMemory/requestsPart, mostRequestMemory) }

// senderMemory is the default of Options.MaxSenderMemoryBytes.
func (o *Options) senderMemory() int64 {
	document := copiesOfDocument * int64(cmp.Or(o.Database.MaxDocumentBytes, defaultDocumentBytes))
	return max(1, min(o.requestMemory(), max(o.requestMemory()/2, document)))
}

// checkMemory checks the options about memory, after their defaults.
func (o *Options) checkMemory() error {
	switch {
	case o.MaxMemory < leastMemory:
		return fmt.Errorf("server: %w: Options.MaxMemory must be at least %d, got %d", jay.ErrOption, leastMemory, o.MaxMemory)
	case o.Database.MaxMemory != 0 || o.Database.Memory != nil:
		return fmt.Errorf("server: %w: Options.Database goes without MaxMemory (%d) and Memory: the databases share Options.MaxMemory", jay.ErrOption, o.Database.MaxMemory)
	}
	return nil
}

// databaseMemory is what the databases share.
func (o *Options) databaseMemory() (*jay.Memory, error) {
	return jay.NewMemory(o.MaxMemory - o.requestMemory() - systemMemory)
}

// systemOptions are those of the server's own database. All its caches are set, so that it claims nothing of what other databases share. They take
// 6.5 MiB with cgo, of systemMemory.
func (o *Options) systemOptions() *jay.Options {
	return &jay.Options{Logger: o.Logger, Now: o.Database.Now, CacheBytes: 2 << 20, DocumentCacheBytes: 1 << 20, MemTableBytes: 512 << 10}
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

// MemoryStats returns how the memory is divided, and what is used of it.
func (s *Server) MemoryStats() MemoryStats {
	m := MemoryStats{BoundBytes: s.Options.MaxMemory}
	m.RequestsUsed, m.RequestsBytes = s.Memory.Load()
	databases := s.Databases.opts.Database.Memory
	bound, claimed, caches := databases.Bytes()
	m.CachesBytes, m.CachesClaimed = caches, claimed
	m.HeapBytes = m.BoundBytes - (bound - databases.HeapBytes())
	return m
}
