package jay

import "time"

// SetCloseTimeout changes how long a disk may be silent before Close gives up.
func SetCloseTimeout(o *Options, d time.Duration) { o.closeTimeout = d }

// StartEtag makes the next etag n+1, to reach the end of the numbers.
func StartEtag(db *DB, n uint64) { db.env.Engine.StartSequence(n) }

// CachedBytes returns how much the cache of documents holds.
func CachedBytes(db *DB) int { return db.docs.Cache.Bytes() }
