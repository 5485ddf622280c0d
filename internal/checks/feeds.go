package checks

import (
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parts"
)

// StartEtag makes the next etag n+1, to reach the end of the numbers.
func StartEtag(db any, n uint64) { parts.Of(db).Env.Engine.StartSequence(n) }

// CachedBytes returns how much the cache of documents holds.
func CachedBytes(db any) int { return parts.Of(db).Docs.Cache.Bytes() }

// FeedsWaiting returns how many feeds have caught up since the last change, and wait.
func FeedsWaiting(db any) int { return parts.Of(db).Feeds.Hub.Waiting() }

// FeedsOpen returns how many feeds keep records of deletions.
func FeedsOpen(db any) int { return parts.Of(db).Horizon.Followers() }

// SubscriptionKeys returns how many keys subscriptions have, their floors included.
func SubscriptionKeys(db any) (n int) {
	floors := append([]byte{format.SpaceMeta}, format.FloorPrefix...)
	for _, prefix := range [][]byte{{format.SpaceSubscription}, floors} {
		it, err := parts.Of(db).Env.Engine.Iterate(prefix, format.PrefixEnd(prefix))
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
