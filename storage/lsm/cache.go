package lsm

import (
	"math"
	"sync"

	"github.com/cockroachdb/pebble/v2"
)

// memTables is how many tables may be in memory before writers wait.
const memTables = 4

// room keeps the block cache as large as it was asked for. Pebble takes what
// its tables in memory occupy out of the cache: of 64 MiB nothing is left when
// there are two tables of 32, and every look-up then reads and unpacks blocks,
// even those of indexes and filters. The cache is therefore made larger by all
// tables that there can be, and room occupies what they do not.
type cacheReservation struct {
	cache         *pebble.Cache
	memTableBytes int64 // of all tables that there can be

	mu       sync.Mutex
	db       *pebble.DB // nil before Open and from Close on. Guarded by mu.
	reserved int64      // Guarded by mu.
	release  func()     // of held; nil for none. Guarded by mu.
}

// newRoom makes the cache. It has one reference, the caller's.
func newCacheReservation(cacheBytes, memTableBytes int64) *cacheReservation {
	bytes := memTables * memTableBytes
	cacheBytes = min(cacheBytes, math.MaxInt64-bytes) // without bound is what the greatest number means
	r := &cacheReservation{cache: pebble.NewCache(cacheBytes + bytes), memTableBytes: bytes}
	r.reserve(bytes)
	return r
}

// hold occupies n bytes. r.mu is held, unless nobody else has r yet.
func (r *cacheReservation) reserve(n int64) {
	if r.release != nil {
		r.release()
	}
	r.reserved, r.release = n, r.cache.Reserve(int(n))
}

// start and stop say from when on, and until when, db can be asked. stop waits
// for a question that is being answered.
func (r *cacheReservation) start(db *pebble.DB) {
	r.mu.Lock()
	r.db = db
	r.mu.Unlock()
	r.adjust()
}

func (r *cacheReservation) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.db = nil
}

// fit occupies what the tables in memory leave over.
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

// watch makes l tell when there may be more or fewer tables in memory. Pebble
// calls l with its own locks held: the answer is looked up elsewhere.
func (r *cacheReservation) listen(l *pebble.EventListener) {
	flushEnd := l.FlushEnd
	l.WALCreated = func(pebble.WALCreateInfo) { go r.adjust() }
	l.FlushEnd = func(info pebble.FlushInfo) {
		flushEnd(info)
		go r.adjust()
	}
}
