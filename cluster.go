package jay

import (
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/errs"
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

	// ErrNeedsCluster is returned by operations on identities and compare-exchange values when a database that
	// belongs to a cluster was opened without Options.Cluster. Open returns it if the database has documents
	// whose commit only the cluster can decide.
	ErrNeedsCluster = errs.ErrNeedsCluster

	// ErrOtherCluster is returned by Open when the database belongs to another cluster than the one of
	// Options.Cluster.
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
	// Refusal is the reason why the database makes no IDs with the node tag, or no identities; "" if it makes
	// both.
	Refusal string `json:"refusal,omitempty"`
}

// clusterStats returns the cluster's part of Stats; nil without a cluster.
func clusterStats(db *DB) *ClusterStats {
	n := db.core.Writer.Cluster
	if n == nil {
		return nil
	}
	status := n.Status()
	out := &ClusterStats{Cluster: status.Cluster, NodeTag: db.core.Env.Rules.NodeTag, Joined: status.Joined}
	if status.Refusal != nil {
		out.Refusal = status.Refusal.Error()
	}
	return out
}
