package server

import "net/http"

// topologyEtag never changes, so clients fetch the topology only once.
const topologyEtag = 1

// healthz replies that the process is alive.
func (c *call) healthz() error { return c.json(http.StatusOK, map[string]string{"Status": "ok"}) }

// readyz replies whether the server accepts requests.
func (c *call) readyz() error {
	if err := c.s.begin(); err != nil {
		return err
	}
	defer c.s.running.Done()
	return c.json(http.StatusOK, map[string]string{"Status": "ready"})
}

// url returns the server's URL as the client spells it, since clients compare it.
func (c *call) url() string {
	if c.r.TLS != nil {
		return "https://" + c.r.Host
	}
	return "http://" + c.r.Host
}

// topology replies with the node of a database, which is always the one that is asked: the
// nodes of a cluster do not have each other's documents, and a client that went to another
// node would take them for missing.
func (c *call) topology() error {
	r, _, err := c.s.databases.recordOf(c.params.get("name"))
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{
		"Etag":  topologyEtag,
		"Nodes": []any{map[string]any{"Url": c.url(), "ClusterTag": c.s.opts.tag(), "ServerRole": "Member", "Database": r.Name}},
	})
}

// clusterTopology replies with the nodes of the cluster. Members has only this one, as
// clients send commands for a server to any member.
func (c *call) clusterTopology() error {
	tag := c.s.opts.tag()
	members := map[string]string{tag: c.url()}
	all := map[string]string{tag: c.url()}
	for _, m := range c.s.nodes.list(c.ctx) {
		if m.Tag != tag && m.Left.IsZero() {
			all[m.Tag] = m.Address
		}
	}
	return c.json(http.StatusOK, map[string]any{
		"Topology": map[string]any{
			"TopologyId": c.s.databases.serverID, "AllNodes": all, "Members": members, "Promotables": map[string]string{}, "Watchers": map[string]string{},
			"Witnesses": map[string]string{}, "LastNodeId": tag, "Etag": topologyEtag,
		},
		"Etag": topologyEtag, "Leader": tag, "LeaderShipDuration": 0, "NodeTag": tag, "CurrentState": "Leader", "CurrentTerm": 1,
		"ServerRole": "Member", "Status": map[string]any{},
	})
}

// nodeInfo describes the node.
func (c *call) nodeInfo() error {
	return c.json(http.StatusOK, map[string]any{
		"NodeTag": c.s.opts.tag(), "TopologyId": c.s.databases.serverID, "ClusterStatus": "", "ServerId": c.s.databases.serverID, "ServerRole": "Member",
		"CurrentState": "Leader", "HasFixedPort": true, "Certificate": nil, "NumberOfCores": 1, "InstalledMemoryInGb": 1.0, "UsableMemoryInGb": 1.0,
	})
}

// buildVersion replies with the version of RavenDB whose protocol the server speaks.
func (c *call) buildVersion() error {
	return c.json(http.StatusOK, map[string]any{"BuildVersion": 54200, "ProductVersion": "5.4", "CommitHash": "0000000", "FullVersion": "5.4.200"})
}

// tcpInfo refuses the request for the port of RavenDB's protocol over TCP, which the
// server does not speak. Clients send it when they open a subscription.
func (c *call) tcpInfo() error {
	if c.params.get("tag") == "Subscription" || c.params.get("tcp") == "Subscription" {
		return notSupported("GET %s: %s", c.route.path, subscriptions)
	}
	return c.json(http.StatusOK, map[string]any{"Url": "tcp://" + hostName(c.r.Host) + ":38888", "Certificate": nil})
}
