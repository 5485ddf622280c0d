package jay

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exchange"
)

// inCluster reports whether the compare-exchange values are kept by a cluster's
// coordinator.
func (db *DB) inCluster() bool { return db.writer.Cluster != nil || db.writer.NoCluster != nil }

// readClusterValues returns the values of folded keys; nil for a key without one.
func readClusterValues(ctx context.Context, db *DB, folded ...string) ([]*exchange.Value, error) {
	if err := db.writer.NoCluster; err != nil {
		return nil, err
	}
	if len(folded) == 0 {
		return nil, nil
	}
	found, err := db.writer.Cluster.Get(ctx, folded...)
	if err != nil {
		return nil, fmt.Errorf("compare-exchange key %q: %w", errs.Shorten(folded[0]), err)
	}
	return found, nil
}

// clusterValues implements CompareExchange.GetMany with a cluster.
func clusterValues(ctx context.Context, db *DB, keys []string) ([]*CompareExchangeValue, error) {
	folded := make([]string, len(keys))
	for i, key := range keys {
		var err error
		if folded[i], err = exchange.CheckKey(db.env.Rules, key); err != nil {
			return nil, err
		}
	}
	found, err := readClusterValues(ctx, db, folded...)
	if err != nil {
		return nil, err
	}
	out := make([]*CompareExchangeValue, len(keys))
	for i, v := range found {
		out[i] = publicExchange(v)
	}
	return out, nil
}

// clusterPage implements CompareExchange.List with a cluster. prefix and after are folded.
func clusterPage(ctx context.Context, db *DB, prefix, after string, limit int) (out []*CompareExchangeValue, err error) {
	if err := db.writer.NoCluster; err != nil {
		return nil, err
	}
	found, err := db.writer.Cluster.Page(ctx, prefix, after, limit)
	if err != nil {
		return nil, fmt.Errorf("list compare-exchange values: %w", err)
	}
	for _, v := range found {
		out = append(out, publicExchange(v))
	}
	return out, nil
}
