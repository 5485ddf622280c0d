package lsm

import (
	"math"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// memTables is how many memtables Pebble may have before writers wait.
const memTables = 4

// cacheReservation keeps the block cache as large as Options.CacheBytes asks for.
// Pebble charges the memory of its memtables to the cache: two memtables of
// 32 MiB leave nothing of a cache of 64 MiB, and every look-up then reads and
// decompresses blocks again, those of indexes and filters included. The cache is
// therefore made larger by the size of all memtables that there can be, and the
// reservation holds the part of it that the present memtables do not use.
type cacheReservation struct {
	cache         *pebble.Cache
	memTableBytes int64 // of all memtables that there can be

	mu       sync.Mutex
	db       *pebble.DB // nil before Open and from Close on. Guarded by mu.
	reserved int64      // bytes. Guarded by mu.
	release  func()     // frees reserved; nil for none. Guarded by mu.
}

// newCacheReservation makes the cache, with one reference, the caller's.
func newCacheReservation(cacheBytes, memTableBytes int64) *cacheReservation {
	bytes := memTables * memTableBytes
	cacheBytes = min(cacheBytes, math.MaxInt64-bytes) // MaxInt64 means without bound
	r := &cacheReservation{cache: pebble.NewCache(cacheBytes + bytes), memTableBytes: bytes}
	r.reserve(bytes)
	return r
}

// reserve changes the reservation to n bytes. r.mu is held, or r is not shared
// yet.
func (r *cacheReservation) reserve(n int64) {
	if r.release != nil {
		r.release()
	}
	r.reserved, r.release = n, r.cache.Reserve(int(n))
}

// start makes db known, whose memtables the reservation follows until stop.
func (r *cacheReservation) start(db *pebble.DB) {
	r.mu.Lock()
	r.db = db
	r.mu.Unlock()
	r.adjust()
}

// stop ends that, before db is closed. It waits for an adjust under way.
func (r *cacheReservation) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.db = nil
}

// adjust reserves what the present memtables leave.
func (r *cacheReservation) adjust() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.db == nil {
		return
	}
	m := r.db.Metrics()
	used := int64(m.MemTable.Size + m.MemTable.ZombieSize)
	if n := max(0, r.memTableBytes-used); n != r.reserved {
		r.reserve(n)
	}
}

// listen makes l adjust the reservation when memtables come and go. Pebble calls
// l with locks held that Metrics needs, hence the goroutines.
func (r *cacheReservation) listen(l *pebble.EventListener) {
	flushEnd := l.FlushEnd
	l.WALCreated = func(pebble.WALCreateInfo) { go r.adjust() }
	l.FlushEnd = func(info pebble.FlushInfo) {
		flushEnd(info)
		go r.adjust()
	}
}
