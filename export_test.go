package jay

import "github.com/jaydb/jay/internal/format"

// StartEtag makes the next etag n+1, to reach the end of the numbers.
func StartEtag(db *DB, n uint64) { db.env.Engine.StartSequence(n) }

// CachedBytes returns how much the cache of documents holds.
func CachedBytes(db *DB) int { return db.docs.Cache.Bytes() }

// InLine returns how many transactions and patches have a turn or wait for one.
func InLine(db *DB) int { return db.writer.Lines.Len() }

// FeedsWaiting returns how many feeds have caught up since the last change, and wait.
func FeedsWaiting(db *DB) int { return db.feeds.Hub.Waiting() }

// FeedsOpen returns how many feeds keep records of deletions.
func FeedsOpen(db *DB) int { return db.horizon.Followers() }

// SubscriptionKeys returns how many keys subscriptions have, their floors included.
func SubscriptionKeys(db *DB) (n int) {
	floors := append([]byte{format.SpaceMeta}, format.FloorPrefix...)
	for _, prefix := range [][]byte{{format.SpaceSubscription}, floors} {
		it, err := db.env.Engine.Iterate(prefix, format.PrefixEnd(prefix))
		if err != nil {
			panic(err)
		}
		for ok := it.First(); ok; ok = it.Next() {
			n++
		}
		_ = it.Close()
	}
	return n
}
