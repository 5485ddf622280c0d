package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jaydb/jay/cluster"
)

// Nodes is the list of the servers of a cluster, of which this is one. Servers keep their
// tags and addresses as databases do, in records of package cluster, with the coordinator
// of the key "". Only lists depend on whether they answer.
type Nodes struct {
	opts *Options
	ID   string              // of this data directory
	Own  cluster.Coordinator // nil without a cluster

	mu    sync.Mutex
	known []cluster.Member // the members that were read last. Guarded by mu.
	again time.Time        // when to read them again. Guarded by mu.
}

// Times of the list of servers.
const (
	nodesMaxAge  = 5 * time.Second        // how long a list is used
	nodesTimeout = 500 * time.Millisecond // time limit for reading a list
	joinTimeout  = 5 * time.Second        // time limit of an attempt to join
	joinPauseMax = 30 * time.Second
)

// Tag returns the node tag of the server's databases.
func (o *Options) Tag() string {
	return cmp.Or(o.Database.CopyTag, o.Database.NodeTag, "A")
}

func openNodes(o *Options, id string) (*Nodes, error) {
	n := &Nodes{opts: o, ID: id}
	if o.Cluster == nil {
		return n, nil
	}
	var err error
	if n.Own, err = o.Cluster(""); err != nil {
		return nil, fmt.Errorf("server: the coordinator of the servers: %w", err)
	}
	return n, nil
}

func (n *Nodes) close() error {
	if n.Own == nil {
		return nil
	}
	return n.Own.Close()
}

// join adds the server to the list. It tries again until it succeeds or ctx ends.
func (n *Nodes) join(ctx context.Context) {
	for pause := time.Second; ; pause = min(2*pause, joinPauseMax) {
		err := n.enter(ctx)
		switch {
		case err == nil, ctx.Err() != nil:
			return
		case errors.Is(err, cluster.ErrTag):
			n.opts.Logger.Error("server: this server is not in the list of the cluster's servers, and databases with its tag will be refused", "err", err)
			return
		}
		n.opts.Logger.Warn("server: this server is not yet in the list of the cluster's servers", "err", err, "again", pause)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// enter adds the server to the list, or updates its address.
func (n *Nodes) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	tag := n.opts.Tag()
	key := cluster.MemberPrefix + tag
	found, err := n.Own.Read(ctx, key)
	if err != nil {
		return err
	}
	joined, err := n.opts.date()
	if err != nil {
		return err
	}
	m := cluster.Member{Tag: tag, Database: n.ID, Joined: joined}
	if found[0].Index > 0 {
		if err := json.Unmarshal(found[0].Value, &m); err != nil {
			return fmt.Errorf("server: record %s of the coordinator: %w", key, err)
		}
		switch {
		case m.Database != n.ID:
			return &cluster.TagError{Tag: tag, Reason: cluster.TagTaken, Member: m}
		case !m.Left.IsZero():
			return &cluster.TagError{Tag: tag, Reason: cluster.TagRetired, Member: m}
		case m.Address == n.opts.Address:
			return nil
		}
	}
	m.Address = n.opts.Address
	result, err := n.Own.Commit(ctx, []cluster.Condition{{Key: key, Index: found[0].Index}}, []cluster.Change{{Key: key, Value: MustJSON(m)}})
	if err == nil && !result.Committed() {
		err = errors.New("server: the list of the cluster's servers has changed meanwhile")
	}
	return err
}

// List returns the servers, including those that have left. The list is a few seconds old,
// or older if there is no majority.
func (n *Nodes) List(ctx context.Context) []cluster.Member {
	if n.Own == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); now.After(n.again) {
		ctx, cancel := context.WithTimeout(ctx, nodesTimeout)
		defer cancel()
		if members, err := cluster.Members(ctx, n.Own); err == nil {
			n.known = members
		}
		n.again = now.Add(nodesMaxAge)
	}
	return n.known
}
