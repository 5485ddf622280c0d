package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/accord"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/exchange"
	"github.com/jaydb/jay/internal/knobs"
)

// joinCluster joins the cluster of the options, or notes that a cluster would be
// needed.
func (db *Database) joinCluster(o accord.Options) error {
	belongs, err := accord.Belongs(db.Env)
	if err != nil {
		return err
	}
	if o.Coordinator == nil {
		if belongs {
			db.Writer.NoCluster = errs.ErrNeedsCluster
		}
		return nil
	}
	o.Patience, o.Limit = clusterPatience(), 6*clusterPatience()
	o.Still, o.Refused = knobs.ClusterStill, db.dropRanges
	db.Writer.Cluster, err = accord.Open(context.Background(), db.Env, o)
	return err
}

// leaveCluster ends the background work with the coordinator and the calls that wait for
// it. The database stays a member.
func (db *Database) leaveCluster() {
	if db.Writer.Cluster != nil {
		db.Writer.Cluster.Stop()
	}
}

// dropRanges makes the HiLo clients of this process discard the ranges that they hold.
func (db *Database) dropRanges() {
	db.EachClient(func(c *ids.Client) {
		held := make(map[string]int64)
		c.Held(func(tag string, _, high int64) { held[tag] = max(held[tag], high) })
		c.Raise(func(tag string) int64 { return held[tag] })
	})
}

// takeIntents resolves the intents of earlier runs: commits of documents together with
// compare-exchange values that were in doubt when the run ended.
func (db *Database) takeIntents() error {
	if db.readOnly {
		return nil
	}
	found, err := db.Writer.LockIntents()
	if err != nil || len(found) == 0 {
		return err
	}
	if db.Writer.Cluster != nil {
		db.Writer.FinishIntents(found, clusterPatience())
		return nil
	}
	m, err := accord.Read(db.Env)
	if err != nil {
		return err
	}
	if m.Database == db.Env.Origins[db.Env.Node].ID {
		return fmt.Errorf("%w: %d commits are not decided: %s", errs.ErrNeedsCluster, len(found), found)
	}
	// A copy outside the cluster. It drops the writes in doubt, as they were not
	// acknowledged when it was made.
	return db.Writer.DropIntents(context.Background(), found)
}

// clusterPatience is how long Open and Close wait for a majority; a call waits six times
// as long.
func clusterPatience() time.Duration {
	if knobs.ClusterPatience > 0 {
		return knobs.ClusterPatience
	}
	return 5 * time.Second
}

// InCluster reports whether the compare-exchange values are kept by a cluster's
// coordinator.
func (db *Database) InCluster() bool { return db.Writer.Cluster != nil || db.Writer.NoCluster != nil }

// ClusterValues returns the values of folded keys; nil for a key without one. When it
// returns, the documents that this database has written with them can be read.
func (db *Database) ClusterValues(ctx context.Context, folded ...string) ([]*exchange.Value, error) {
	if err := db.Writer.NoCluster; err != nil {
		return nil, err
	}
	if len(folded) == 0 {
		return nil, nil
	}
	found, err := db.Writer.Cluster.Get(ctx, folded...)
	if err == nil {
		err = db.Writer.AwaitValues(ctx, func(key string) bool { return slices.Contains(folded, key) })
	}
	if err != nil {
		return nil, fmt.Errorf("compare-exchange key %q: %w", errs.Shorten(folded[0]), err)
	}
	return found, nil
}

// ClusterPage returns a page of values as the coordinator of the cluster has them. prefix and after are folded.
func (db *Database) ClusterPage(ctx context.Context, prefix, after string, limit int) ([]*exchange.Value, error) {
	if err := db.Writer.NoCluster; err != nil {
		return nil, err
	}
	found, err := db.Writer.Cluster.Page(ctx, prefix, after, limit)
	if err == nil {
		err = db.Writer.AwaitValues(ctx, func(key string) bool { return strings.HasPrefix(key, prefix) && key > after })
	}
	if err != nil {
		return nil, fmt.Errorf("list compare-exchange values: %w", err)
	}
	return found, nil
}

// ExchangeValues returns the compare-exchange values of keys as of one moment, in their order;
// nil for a key without a value.
func (db *Database) ExchangeValues(ctx context.Context, keys ...string) ([]*exchange.Value, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	folded := make([]string, len(keys))
	if err := db.Env.Enter(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	for i, key := range keys {
		var err error
		if folded[i], err = exchange.CheckKey(db.Env.Rules, key); err != nil {
			return nil, err
		}
	}
	if db.InCluster() {
		return db.ClusterValues(ctx, folded...)
	}
	out := make([]*exchange.Value, len(keys))
	snapshot := db.Env.Engine.Snapshot()
	for i := range folded {
		var err error
		if out[i], err = exchange.Get(snapshot, folded[i]); err != nil {
			return nil, errs.First(err, snapshot.Close())
		}
	}
	return out, snapshot.Close()
}

// ClusterIdentities returns the identities as the coordinator of the cluster has them.
func (db *Database) ClusterIdentities(ctx context.Context) (map[string]int64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.Env.Enter(); err != nil {
		return nil, err
	}
	defer db.Env.Exit()
	list, err := db.Writer.Cluster.Identities(ctx)
	if err != nil {
		return nil, fmt.Errorf("identities: %w", err)
	}
	return list, nil
}
