package jay

import (
	"time"

	"github.com/jaydb/jay/storage/lsm"
)

// SetFS puts a database on another file system: crash and fault tests need
// one that loses what was not synced.
func SetFS(o *Options, fs lsm.FS) { o.fs = fs }

// SetCloseTimeout changes how long a disk may be silent before Close gives up.
func SetCloseTimeout(o *Options, d time.Duration) { o.closeTimeout = d }

// StartEtag makes the next etag n+1, to reach the end of the numbers.
func StartEtag(db *DB, n uint64) { db.engine.StartSequence(n) }

// CachedBytes returns how much the cache of documents holds.
func CachedBytes(db *DB) (n int) {
	for i := range db.cache.shards {
		s := &db.cache.shards[i]
		s.mu.Lock()
		for _, e := range s.entries {
			n += e.doc.cacheBytes()
		}
		s.mu.Unlock()
	}
	return n
}
