//go:build unix

package cluster_test

import (
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// period is that of the heartbeats of the nodes of these tests: short, so that three of them
// pass in a test.
const period = 2 * time.Second

// tags are those of the nodes.
var tags = []string{"A", "B", "C"}

// coordinators are the members of an etcd cluster that a test stops and starts.
type coordinators interface {
	urls() []string // for clients, in the order of the members
	stop(i int)     // at once
	start(i int)    // again
}

// processes are members that are processes.
type processes []*member

func (p processes) urls() []string { return clientURLs(p) }
func (p processes) stop(i int)     { p[i].kill() }
func (p processes) start(i int)    { p[i].start() }

// rig is three nodes, and three members of etcd.
type rig struct {
	t       *testing.T
	members coordinators
	client  *clientv3.Client
	nodes   []*node
	proxies [][]*proxy // of each node, to each member; nil without proxies
}

// newRig starts nodes with proxies between each of them and each member.
func newRig(t *testing.T, members coordinators) *rig {
	t.Helper()
	r := &rig{t: t, members: members, client: dial(t, members.urls())}
	leader(t, r.client, members.urls())
	dir := t.TempDir()
	for i, tag := range tags {
		var between []*proxy
		var endpoints []string
		for _, url := range members.urls() {
			p := startProxy(t, url[len("http://"):])
			between = append(between, p)
			endpoints = append(endpoints, "http://"+p.address())
		}
		r.proxies = append(r.proxies, between)
		r.nodes = append(r.nodes, mustStartNode(t, tag, nodeConfig{
			Dir: filepath.Join(dir, tag), NodeTag: tag, Address: fmt.Sprintf("http://node%d.example", i+1), Endpoints: endpoints, Prefix: "tests/", Period: period,
		}))
	}
	return r
}

// line changes what lies between a node and all members.
func (r *rig) line(node int, state proxyState) {
	for _, p := range r.proxies[node] {
		p.set(state)
	}
}

// leader returns the member that leads.
func (r *rig) leader() int { return leader(r.t, r.client, r.members.urls()) }

// others returns the indexes of the members but one.
func others(i int) []int { return []int{(i + 1) % 3, (i + 2) % 3} }

// agrees waits until each of the nodes draws numbers and exchanges values again, without
// being started anew.
func agrees(t *testing.T, nodes ...*node) {
	t.Helper()
	for _, n := range nodes {
		eventually(t, "identities of node "+n.name, func() error { return succeeds(n, request{Verb: "next", ID: "probes|"}) })
		eventually(t, "compare exchange of node "+n.name, func() error { return succeeds(n, request{Verb: "next", ID: "probe"}) })
	}
}

// cutOff checks the rows of the partition table on nodes that find no majority: semantic IDs,
// GUIDs, server-side and HiLo IDs are made as ever, and identities and compare exchange fail
// within their deadline.
func cutOff(t *testing.T, nodes ...*node) {
	t.Helper()
	var calls sync.WaitGroup
	for _, n := range nodes {
		for i := range 40 { // more than a range of HiLo has
			for _, r := range []request{
				{Verb: "put", ID: fmt.Sprintf("alone/%s-%d", n.name, i)},
				{Verb: "put"},
				{Verb: "put", ID: "alone/"},
				{Verb: "store"},
			} {
				r.Value = `{}`
				calls.Go(func() {
					out, err := n.call(r)
					if err == nil {
						err = out.err()
					}
					if err != nil {
						t.Errorf("node %s without a majority: %s %q: %v", n.name, r.Verb, r.ID, err)
					}
				})
			}
		}
		for _, r := range []request{
			{Verb: "put", ID: "probes|", Value: `{}`},
			{Verb: "next", ID: "probes|"},
			{Verb: "read", ID: "probe"},
			{Verb: "exchange", ID: "probe/" + n.name, Value: "x"},
			{Verb: "claim", ID: "probe/" + n.name, Other: "probes/" + n.name, Value: `{}`},
		}[:2] {
			r.Within = time.Second
			calls.Go(func() {
				out, err := n.call(r)
				if err != nil {
					t.Error(err)
					return
				}
				// These may be on their way when the line is cut.
				mayBeUnknown := (r.Verb == "exchange" || r.Verb == "claim") && out.Kind == kindUnknown
				if out.Kind != kindNoMajority && !mayBeUnknown {
					t.Errorf("node %s without a majority: %s %s: got %q (%s), want %q", n.name, r.Verb, r.ID, out.Kind, out.Error, kindNoMajority)
				}
				if out.Elapsed > 20*time.Second {
					t.Errorf("node %s without a majority: %s %s takes %v, the deadline is %v", n.name, r.Verb, r.ID, out.Elapsed, r.Within)
				}
			})
		}
	}
	calls.Wait()
}

// succeeds makes a call that has two seconds.
func succeeds(n *node, r request) error {
	r.Within = 2 * time.Second
	out, err := n.call(r)
	if err != nil {
		return err
	}
	return out.err()
}
