package jay

import "github.com/jaydb/jay/storage"

// SubscriptionStats are totals over all subscriptions. Subscriptions.List has the figures
// of each.
type SubscriptionStats struct {
	Subscriptions int64  `json:"subscriptions"`
	Disabled      int64  `json:"disabled"`
	Working       int64  `json:"working"` // those with a worker in this process
	Behind        uint64 `json:"behind"`  // the greatest lag of those that are not disabled, in etags
}

// measureSubscriptions returns the totals in a snapshot. It reads two records of each
// subscription. The caller is inside the gate.
func measureSubscriptions(db *DB, snapshot storage.Reader) (SubscriptionStats, error) {
	f, err := db.subs.Measure(snapshot)
	return SubscriptionStats(f), err
}
