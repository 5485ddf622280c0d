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
func StartEtag(db *DB, n uint64) { db.env.Engine.StartSequence(n) }

// CachedBytes returns how much the cache of documents holds.
func CachedBytes(db *DB) int { return db.docs.Cache.Bytes() }
