package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/jaydb/jay/cluster"
)

// nodes is the list of the servers of a cluster, of which this is one. Servers keep their
// tags and addresses as databases do, in records of package cluster, with the coordinator
// of the key "". Only lists depend on whether they answer.
type nodes struct {
	opts *Options
	id   string              // of this data directory
	own  cluster.Coordinator // nil without a cluster

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

// tag returns the node tag of the server's databases.
func (o *Options) tag() string {
	return cmp.Or(o.Database.CopyTag, o.Database.NodeTag, "A")
}

func openNodes(o *Options, id string) (*nodes, error) {
	n := &nodes{opts: o, id: id}
	if o.Cluster == nil {
		return n, nil
	}
	var err error
	if n.own, err = o.Cluster(""); err != nil {
		return nil, fmt.Errorf("server: the coordinator of the servers: %w", err)
	}
	return n, nil
}

func (n *nodes) close() error {
	if n.own == nil {
		return nil
	}
	return n.own.Close()
}

// join adds the server to the list. It tries again until it succeeds or ctx ends.
func (n *nodes) join(ctx context.Context) {
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
func (n *nodes) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	tag := n.opts.tag()
	key := cluster.MemberPrefix + tag
	found, err := n.own.Read(ctx, key)
	if err != nil {
		return err
	}
	m := cluster.Member{Tag: tag, Database: n.id, Joined: n.opts.Now().UTC()}
	if found[0].Index > 0 {
		if err := json.Unmarshal(found[0].Value, &m); err != nil {
			return fmt.Errorf("server: record %s of the coordinator: %w", key, err)
		}
		switch {
		case m.Database != n.id:
			return &cluster.TagError{Tag: tag, Reason: cluster.TagTaken, Member: m}
		case !m.Left.IsZero():
			return &cluster.TagError{Tag: tag, Reason: cluster.TagRetired, Member: m}
		case m.Address == n.opts.Address:
			return nil
		}
	}
	m.Address = n.opts.Address
	result, err := n.own.Commit(ctx, []cluster.Condition{{Key: key, Index: found[0].Index}}, []cluster.Change{{Key: key, Value: mustJSON(m)}})
	if err == nil && !result.Committed() {
		err = errors.New("server: the list of the cluster's servers has changed meanwhile")
	}
	return err
}

// list returns the servers, including those that have left. The list is a few seconds old,
// or older if there is no majority.
func (n *nodes) list(ctx context.Context) []cluster.Member {
	if n.own == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); now.After(n.again) {
		ctx, cancel := context.WithTimeout(ctx, nodesTimeout)
		defer cancel()
		if members, err := cluster.Members(ctx, n.own); err == nil {
			n.known = members
		}
		n.again = now.Add(nodesMaxAge)
	}
	return n.known
}

// boundMajority gives a call that needs the cluster a deadline. Without one it would wait
// for a majority as long as package jay does, and keep its place in the gate.
func (c *call) boundMajority() {
	if c.s.nodes.own != nil && c.endMajority == nil {
		c.ctx, c.endMajority = context.WithTimeout(c.ctx, c.s.opts.ClusterTimeout)
	}
}

// nodeReply is a node of a cluster in a reply of Jay's own API.
type nodeReply struct {
	Tag      string     `json:"tag"`
	ID       string     `json:"id"` // of the database, or of the server's data directory
	URL      string     `json:"url,omitempty"`
	Joined   time.Time  `json:"joined"`
	Left     *time.Time `json:"left,omitempty"`
	Copied   *time.Time `json:"copied,omitempty"`
	Running  *bool      `json:"running,omitempty"` // set for databases only
	LastSeen *time.Time `json:"lastSeen,omitempty"`
	This     bool       `json:"this,omitempty"` // the node that sends the reply
}

func replyOf(m *cluster.Member) nodeReply {
	given := func(t time.Time) *time.Time {
		if t.IsZero() {
			return nil
		}
		return &t
	}
	return nodeReply{Tag: m.Tag, ID: m.Database, URL: m.Address, Joined: m.Joined, Left: given(m.Left), Copied: given(m.Copied), LastSeen: given(m.LastSeen)}
}

// ownServers replies with the servers of the cluster; none without a cluster.
func (c *call) ownServers() error {
	list := []nodeReply{}
	for _, m := range c.s.nodes.list(c.ctx) {
		r := replyOf(&m)
		r.This = m.Database == c.s.nodes.id
		list = append(list, r)
	}
	return c.json(http.StatusOK, map[string]any{"clustered": c.s.nodes.own != nil, "tag": c.s.opts.tag(), "nodes": list})
}

// ownNodes replies with the nodes of the database, which share its identities and
// compare-exchange values. It needs a majority.
func (c *call) ownNodes() error {
	own := c.s.databases.coordinatorOf(c.database.key)
	list := []nodeReply{}
	if own != nil {
		members, err := cluster.Members(c.ctx, own)
		if err != nil {
			return err
		}
		for _, m := range members {
			r := replyOf(&m)
			r.Running, r.This = &m.Running, m.Tag == c.s.opts.tag()
			list = append(list, r)
		}
	}
	return c.json(http.StatusOK, map[string]any{"clustered": own != nil, "tag": c.s.opts.tag(), "nodes": list})
}
