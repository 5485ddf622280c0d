package jay

import (
	"context"
	"fmt"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/accord"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/knobs"
)

// Errors of databases with Options.Cluster.
var (
	// ErrNoMajority is returned when no majority of the cluster's coordinator has answered
	// within the context's deadline, or within 30 seconds. Nothing was written. Calls
	// succeed again when the majority is back.
	ErrNoMajority = cluster.ErrNoMajority

	// ErrTag is matched by every *cluster.TagError: the database must not make IDs with
	// its node tag, because another database has the tag, the database has left the
	// cluster, or a copy of it has run. The message says what to do. Documents with other
	// IDs can be written.
	ErrTag = cluster.ErrTag

	// ErrNeedsCluster is returned when a database that belongs to a cluster was opened
	// without Options.Cluster and an identity or a compare-exchange value is needed. Open
	// returns it if the database has documents whose commit only the cluster can decide.
	ErrNeedsCluster = errs.ErrNeedsCluster

	// ErrOtherCluster is returned by Open when the database belongs to a cluster other
	// than that of Options.Cluster.
	ErrOtherCluster = cluster.ErrOtherCluster

	// ErrClusterRestored is returned by Open, for identities and for compare-exchange
	// values when the cluster's coordinator was restored from a backup, or has lost
	// commits, so that numbers would repeat. This database then sends it no more calls.
	// Stop all nodes and accept the restored state with etcd.Accept or "jay cluster
	// accept".
	ErrClusterRestored = cluster.ErrRestored
)

// ClusterStats is the state of a database as a member of a cluster.
type ClusterStats struct {
	// Cluster is the name of the cluster, made at random; "" until the database has
	// joined.
	Cluster string `json:"cluster"`
	// NodeTag is the node tag of the database.
	NodeTag string `json:"nodeTag"`
	// Joined is true once this process has claimed the node tag at the coordinator.
	Joined bool `json:"joined"`
	// Refusal is the reason why no IDs are made with the node tag, or no identities; "" if
	// they may be.
	Refusal string `json:"refusal,omitempty"`
}

// joinCluster joins the cluster of Options.Cluster, or notes that a cluster would be
// needed.
func joinCluster(db *DB) error {
	belongs, err := accord.Belongs(db.env)
	if err != nil {
		return err
	}
	if db.opts.Cluster == nil {
		if belongs {
			db.writer.NoCluster = ErrNeedsCluster
		}
		return nil
	}
	o := accord.Options{
		Coordinator: db.opts.Cluster,
		Address:     db.opts.ClusterAddress,
		Period:      db.opts.ClusterPeriod,
		Patience:    clusterPatience(),
		Limit:       6 * clusterPatience(),
		Still:       knobs.ClusterStill,
		Refused:     func() { dropRanges(db) },
	}
	db.writer.Cluster, err = accord.Open(context.Background(), db.env, o)
	return err
}

// leaveCluster ends the background work with the coordinator and the calls that wait for
// it. The database stays a member.
func leaveCluster(db *DB) {
	if db.writer.Cluster != nil {
		db.writer.Cluster.Stop()
	}
}

// dropRanges makes the HiLo clients of this process discard the ranges that they hold.
func dropRanges(db *DB) {
	eachClient(db, func(c *HiLoClient) {
		held := make(map[string]int64)
		c.Held(func(tag string, _, high int64) { held[tag] = max(held[tag], high) })
		c.Raise(func(tag string) int64 { return held[tag] })
	})
}

// clusterStats returns the cluster's part of Stats; nil without a cluster.
func clusterStats(db *DB) *ClusterStats {
	n := db.writer.Cluster
	if n == nil {
		return nil
	}
	status := n.Status()
	out := &ClusterStats{Cluster: status.Cluster, NodeTag: db.env.Rules.NodeTag, Joined: status.Joined}
	if status.Refusal != nil {
		out.Refusal = status.Refusal.Error()
	}
	return out
}

// takeIntents resolves the intents of earlier runs: commits of documents together with
// compare-exchange values that were in doubt when the run ended.
func takeIntents(db *DB) error {
	if db.opts.ReadOnly {
		return nil
	}
	found, err := db.writer.LockIntents()
	if err != nil || len(found) == 0 {
		return err
	}
	if db.writer.Cluster != nil {
		db.writer.FinishIntents(found, clusterPatience())
		return nil
	}
	m, err := accord.Read(db.env)
	if err != nil {
		return err
	}
	if m.Database == db.env.Origins[db.env.Node].ID {
		return fmt.Errorf("%w: %d commits are not decided", ErrNeedsCluster, len(found))
	}
	// A copy outside the cluster. It drops the writes in doubt, as they were not
	// acknowledged when it was made.
	return db.writer.DropIntents(context.Background(), found)
}

// clusterPatience is how long Open and Close wait for a majority; a call waits six times
// as long.
func clusterPatience() time.Duration {
	if knobs.ClusterPatience > 0 {
		return knobs.ClusterPatience
	}
	return 5 * time.Second
}
