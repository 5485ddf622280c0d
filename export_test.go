package jay

import "github.com/jaydb/jay/storage"

// SetFS puts a database on another file system: crash and fault tests need
// one that loses what was not synced.
func SetFS(o *Options, fs storage.FS) { o.fs = fs }

// StartEtag makes the next etag n+1, to reach the end of the numbers.
func StartEtag(db *DB, n uint64) { db.engine.StartSequence(n) }
