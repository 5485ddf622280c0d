package jay

import (
	"context"
	"errors"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/accord"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/requests"
	"github.com/jaydb/jay/internal/write"
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

// clusterIdentity carries out NextIdentity or SeedIdentity in a cluster. The coordinator
// keeps the counter; the database keeps the result of a call with a request ID, and the
// numbers that no document has.
func clusterIdentity(ctx context.Context, db *DB, call identityCall, request string, once *requests.Request) (n int64, err error) {
	name, node := db.core.Env.Rules.Fold(request), db.core.Writer.Cluster
	if once != nil {
		// If an earlier run has reserved a number for this call, that number is the
		// result.
		if err := node.Recovered(ctx); err != nil {
			return 0, err
		}
		if err := once.Find(db.core.Env.Engine); err != nil {
			_, err = repeated(err, &n)
			return n, err
		}
	}
	if call.seed {
		n, err = node.Seed(ctx, name, call.value, call.force, once)
	} else if err = db.core.Writer.CheckFloor(name); err == nil {
		n, err = db.core.Writer.DrawFree(ctx, name, request, 0, func(above int64) (int64, error) { return node.Next(ctx, name, above, once) })
	}
	if err != nil {
		return 0, err
	}
	// Store the result of the call. A number that NextIdentity returns has no document so
	// far, so it is recorded as lost; the database's own counter follows that of the
	// cluster.
	err = db.core.Writer.Transact(ctx, true, func(t *write.Txn) error {
		if once != nil {
			if err := once.Find(t.Tx); err != nil {
				return err
			}
			if err := once.Keep(t.Tx, n); err != nil {
				return err
			}
		}
		if !call.seed {
			if err := accord.AddLostNumber(t.Tx, name, n); err != nil {
				return err
			}
		} else if call.force {
			return t.SetIdentity(name, n)
		}
		_, err := t.RaiseIdentity(name, n)
		return err
	})
	// Report the fate of the number to the node, unless the commit is in doubt.
	again := requests.Repetition(err) != nil // a concurrent call with the same request ID has committed first
	switch {
	case err == nil || call.seed && again:
		node.SettleRequest(name, once)
		if !call.seed {
			node.Settle(name, n, n, accord.Written)
		}
	case !call.seed && !errors.Is(err, ErrUnknownOutcome):
		node.Settle(name, n, n, accord.Unwritten)
	}
	if again {
		_, err = repeated(err, &n)
	}
	return n, err
}
