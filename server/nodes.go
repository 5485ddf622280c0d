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

// nodes are the servers of a cluster, of which this is one. They keep their tags and
// addresses where databases keep theirs, in the records of package cluster, under the
// coordinator of the key "". Whether they answer does not matter to anything but lists.
type nodes struct {
	opts *Options
	id   string              // of this data directory
	own  cluster.Coordinator // nil without a cluster

	mu    sync.Mutex
	known []cluster.Member // as they were read last. Guarded by mu.
	again time.Time        // when they are read again. Guarded by mu.
}

// Times of the list of servers.
const (
	nodesFor     = 5 * time.Second        // a list that was read is used so long
	nodesWithin  = 500 * time.Millisecond // a list is read within
	joinWithin   = 5 * time.Second        // one attempt to enter the list
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

// join enters the server into the list, and tries again until it is there or ctx ends.
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

// enter enters the server into the list, or its new address.
func (n *nodes) enter(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, joinWithin)
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

// list returns the servers, those that have left included, as they were some seconds ago,
// or longer if there is no majority.
func (n *nodes) list(ctx context.Context) []cluster.Member {
	if n.own == nil {
		return nil
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if now := time.Now(); now.After(n.again) {
		ctx, cancel := context.WithTimeout(ctx, nodesWithin)
		defer cancel()
		if members, err := cluster.Members(ctx, n.own); err == nil {
			n.known = members
		}
		n.again = now.Add(nodesFor)
	}
	return n.known
}

// boundMajority gives a call that asks the cluster a deadline: without one it would wait for a
// majority as long as package jay does, and hold its place meanwhile.
func (c *call) boundMajority() {
	if c.s.nodes.own != nil && c.endMajority == nil {
		c.ctx, c.endMajority = context.WithTimeout(c.ctx, c.s.opts.ClusterTimeout)
	}
}

// nodeReply is a node of a cluster, of Jay's own interface.
type nodeReply struct {
	Tag      string     `json:"tag"`
	ID       string     `json:"id"` // of the database, or of the server's data directory
	URL      string     `json:"url,omitempty"`
	Joined   time.Time  `json:"joined"`
	Left     *time.Time `json:"left,omitempty"`
	Copied   *time.Time `json:"copied,omitempty"`
	Running  *bool      `json:"running,omitempty"` // of databases
	LastSeen *time.Time `json:"lastSeen,omitempty"`
	This     bool       `json:"this,omitempty"` // it is the one that answers
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

// ownServers answers the servers of the cluster; of a server without one, none.
func (c *call) ownServers() error {
	list := []nodeReply{}
	for _, m := range c.s.nodes.list(c.ctx) {
		r := replyOf(&m)
		r.This = m.Database == c.s.nodes.id
		list = append(list, r)
	}
	return c.json(http.StatusOK, map[string]any{"clustered": c.s.nodes.own != nil, "tag": c.s.opts.tag(), "nodes": list})
}

// ownNodes answers the nodes of the database: those that agree with it on identities and
// compare exchange. It needs a majority.
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
