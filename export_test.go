package jay

// StartEtag makes the next etag n+1, to reach the end of the numbers.
func StartEtag(db *DB, n uint64) { db.env.Engine.StartSequence(n) }

// CachedBytes returns how much the cache of documents holds.
func CachedBytes(db *DB) int { return db.docs.Cache.Bytes() }

// InLine returns how many transactions and patches have a turn or wait for one.
func InLine(db *DB) int { return db.writer.Lines.Len() }
