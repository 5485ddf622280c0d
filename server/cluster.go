package server

import "net/http"

// nodeTag names the one node that clients see.
const nodeTag = "A"

// topologyEtag never changes: clients then never ask for the topology again.
const topologyEtag = 1

// healthz answers as long as the server answers at all.
func (c *call) healthz() error { return c.json(http.StatusOK, map[string]string{"Status": "ok"}) }

// readyz answers whether the server takes requests.
func (c *call) readyz() error {
	if err := c.s.begin(); err != nil {
		return err
	}
	defer c.s.under.Done()
	return c.json(http.StatusOK, map[string]string{"Status": "ready"})
}

// url returns the server's URL as the client spells it, since clients compare it.
func (c *call) url() string {
	if c.r.TLS != nil {
		return "https://" + c.r.Host
	}
	return "http://" + c.r.Host
}

// topology names the nodes of a database.
func (c *call) topology() error {
	r, _, err := c.s.databases.recordOf(c.params.get("name"))
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, map[string]any{
		"Etag":  topologyEtag,
		"Nodes": []any{map[string]any{"Url": c.url(), "ClusterTag": nodeTag, "ServerRole": "Member", "Database": r.Name}},
	})
}

// clusterTopology names the nodes of the cluster.
func (c *call) clusterTopology() error {
	nodes := map[string]string{nodeTag: c.url()}
	return c.json(http.StatusOK, map[string]any{
		"Topology": map[string]any{
			"TopologyId": c.s.databases.serverID, "AllNodes": nodes, "Members": nodes, "Promotables": map[string]string{}, "Watchers": map[string]string{},
			"Witnesses": map[string]string{}, "LastNodeId": nodeTag, "Etag": topologyEtag,
		},
		"Etag": topologyEtag, "Leader": nodeTag, "LeaderShipDuration": 0, "NodeTag": nodeTag, "CurrentState": "Leader", "CurrentTerm": 1,
		"ServerRole": "Member", "Status": map[string]any{},
	})
}

// nodeInfo describes the node.
func (c *call) nodeInfo() error {
	return c.json(http.StatusOK, map[string]any{
		"NodeTag": nodeTag, "TopologyId": c.s.databases.serverID, "ClusterStatus": "", "ServerId": c.s.databases.serverID, "ServerRole": "Member",
		"CurrentState": "Leader", "HasFixedPort": true, "Certificate": nil, "NumberOfCores": 1, "InstalledMemoryInGb": 1.0, "UsableMemoryInGb": 1.0,
	})
}

// buildVersion names the version of RavenDB whose protocol is spoken.
func (c *call) buildVersion() error {
	return c.json(http.StatusOK, map[string]any{"BuildVersion": 54200, "ProductVersion": "5.4", "CommitHash": "0000000", "FullVersion": "5.4.200"})
}

// tcpInfo names the port of RavenDB's protocol over TCP, at which this server does not
// listen. Clients ask when they open a subscription, and are refused here.
func (c *call) tcpInfo() error {
	if c.params.get("tag") == "Subscription" || c.params.get("tcp") == "Subscription" {
		return notSupported("GET %s: %s", c.route.path, subscriptions)
	}
	return c.json(http.StatusOK, map[string]any{"Url": "tcp://" + hostName(c.r.Host) + ":38888", "Certificate": nil})
}
