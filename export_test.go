package jay

import (
	"context"
	"errors"

	"github.com/jaydb/jay/internal/format"
)

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

// BeatCluster is one heartbeat.
func BeatCluster(db *DB) error { return db.writer.Cluster.Beat(context.Background()) }

// IdentitiesWaiting returns how many callers wait for numbers of an identity.
func IdentitiesWaiting(db *DB, name string) int { return db.writer.Cluster.Waiting(name) }

// LostNumbers returns the numbers of an identity that were reserved here and that no
// document has, as far as that is recorded.
func LostNumbers(db *DB, name string) []int64 {
	var out []int64
	value, closer, err := db.env.Engine.Get(format.LostKey(name))
	if err != nil {
		return nil
	}
	lost, err := format.DecodeLost(value)
	if err = errors.Join(err, closer.Close()); err != nil {
		panic(err)
	}
	for _, s := range lost.Spans {
		for n := s[0]; n <= s[1]; n++ {
			out = append(out, n)
		}
	}
	return out
}

// AwaitLost returns when the lost numbers of identities that are known are recorded.
func AwaitLost(db *DB) { db.writer.Cluster.AwaitLost() }

// Undecided returns how many commits the coordinator of the cluster has not decided.
func Undecided(db *DB) int { return db.writer.Undecided() }
