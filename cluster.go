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

// Returned by what needs the majority of a cluster: see Options.Cluster.
var (
	// ErrNoMajority is returned when no majority of the cluster's coordinator has answered
	// within the context's deadline, or within 30 seconds. Nothing was written. It goes away
	// when the majority is back.
	ErrNoMajority = cluster.ErrNoMajority

	// ErrTag is what every *cluster.TagError is: the database must not make IDs with its node
	// tag, as another database has it, it has left the cluster, or a copy of it has run.
	// The message says what to do. Documents with other IDs can be written.
	ErrTag = cluster.ErrTag

	// ErrNeedsCluster is returned for an identity, and for compare-exchange values, of a
	// database that belongs to a cluster and was opened without Options.Cluster. Open returns
	// it for one with documents of which only the cluster knows whether they were committed.
	ErrNeedsCluster = errs.ErrNeedsCluster

	// ErrOtherCluster is returned by Open when the database belongs to another cluster than the
	// one of Options.Cluster.
	ErrOtherCluster = cluster.ErrOtherCluster

	// ErrClusterRestored is returned for an identity, for compare-exchange values, and by Open
	// when the cluster's coordinator has gone back: it was restored from a backup, or has lost
	// commits, and would give numbers again. Stop all nodes, and go on with it as
	// etcd.Accept and "jay cluster accept" say. Until then this database asks it nothing.
	ErrClusterRestored = cluster.ErrRestored
)

// ClusterStats is what a database knows of itself as a member of a cluster.
type ClusterStats struct {
	// Cluster is the name of the cluster, made at random. It is "" until it has joined.
	Cluster string `json:"cluster"`
	// NodeTag is the database's.
	NodeTag string `json:"nodeTag"`
	// Joined is set when the coordinator knows that this process has the database open.
	Joined bool `json:"joined"`
	// Refusal is why no IDs are made with the node tag, or no identities; "" if they are.
	Refusal string `json:"refusal,omitempty"`
}

// joinCluster joins the cluster of Options.Cluster.
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

// leaveCluster ends what needs the coordinator in the background, and calls that wait for
// it.
func leaveCluster(db *DB) {
	if db.writer.Cluster != nil {
		db.writer.Cluster.Stop()
	}
}

// dropRanges makes the HiLo clients of this process skip the numbers that they hold.
func dropRanges(db *DB) {
	eachClient(db, func(c *HiLoClient) {
		held := make(map[string]int64)
		c.Held(func(tag string, _, high int64) { held[tag] = max(held[tag], high) })
		c.Raise(func(tag string) int64 { return held[tag] })
	})
}

// clusterStats returns what Stats says of the cluster; nil without one.
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

// takeIntents looks at what earlier runs have left of commits with compare-exchange
// values, and brings it to its end.
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
	// A copy that is on its own: what was not acknowledged when it was copied is not
	// in it.
	return db.writer.DropIntents(context.Background(), found)
}

func clusterPatience() time.Duration {
	if knobs.ClusterPatience > 0 {
		return knobs.ClusterPatience
	}
	return 5 * time.Second
}
