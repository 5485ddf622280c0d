package raven

import (
	"net/http"

	"github.com/jaydb/jay/server/internal/serve"
)

// topologyRoutes are the endpoints by which clients find the server.
var topologyRoutes = []*serve.Route{
	{Method: "GET", Path: "/topology", Run: getTopology, Named: true, Needs: serve.ReadRight, Takes: "name"},
	{Method: "GET", Path: "/cluster/topology", Run: clusterTopology, Open: true},
	{Method: "GET", Path: "/cluster/node-info", Run: nodeInfo, Open: true},
	{Method: "GET", Path: "/build/version", Run: buildVersion, Open: true},
	{Method: "GET", Path: "/info/tcp", Run: tcpInfo, Open: true, Takes: "tag tcp"},
	{Method: "GET", Path: "{D}/info/tcp", Run: tcpInfo, Takes: "tag tcp"},
}

// subscriptions is why they are refused.
const subscriptions = "subscriptions are not there: they need a protocol of their own over TCP"

// topologyEtag never changes, so clients fetch the topology only once.
const topologyEtag = 1

// baseURL returns the server's URL as the client spells it, since clients compare it.
func baseURL(c *serve.Call) string {
	if c.Request.TLS != nil {
		return "https://" + c.Request.Host + c.Mount.Base()
	}
	return "http://" + c.Request.Host + c.Mount.Base()
}

// getTopology replies with the node of a database, which is always the one that is asked: the
// nodes of a cluster do not have each other's documents, and a client that went to another
// node would take them for missing.
func getTopology(c *serve.Call) error {
	r, _, err := c.Server.Databases.RecordOf(c.Params.Get("name"))
	if err != nil {
		return err
	}
	return c.JSON(http.StatusOK, map[string]any{
		"Etag":  topologyEtag,
		"Nodes": []any{map[string]any{"Url": baseURL(c), "ClusterTag": c.Server.Tag(r.Name), "ServerRole": "Member", "Database": r.Name}},
	})
}

// clusterTopology replies with the nodes of the cluster. Members has only this one, as
// clients send commands for a server to any member.
func clusterTopology(c *serve.Call) error {
	tag := c.Server.Tag(c.Name)
	members := map[string]string{tag: baseURL(c)}
	all := map[string]string{tag: baseURL(c)}
	for _, m := range c.Server.Nodes.List(c.Ctx) {
		if m.Tag != tag && m.Left.IsZero() {
			all[m.Tag] = m.Address
		}
	}
	return c.JSON(http.StatusOK, map[string]any{
		"Topology": map[string]any{
			"TopologyId": c.Server.Databases.ServerID, "AllNodes": all, "Members": members, "Promotables": map[string]string{}, "Watchers": map[string]string{},
			"Witnesses": map[string]string{}, "LastNodeId": tag, "Etag": topologyEtag,
		},
		"Etag": topologyEtag, "Leader": tag, "LeaderShipDuration": 0, "NodeTag": tag, "CurrentState": "Leader", "CurrentTerm": 1,
		"ServerRole": "Member", "Status": map[string]any{},
	})
}

// nodeInfo describes the node.
func nodeInfo(c *serve.Call) error {
	return c.JSON(http.StatusOK, map[string]any{
		"NodeTag": c.Server.Tag(c.Name), "TopologyId": c.Server.Databases.ServerID, "ClusterStatus": "", "ServerId": c.Server.Databases.ServerID, "ServerRole": "Member",
		"CurrentState": "Leader", "HasFixedPort": true, "Certificate": nil, "NumberOfCores": 1, "InstalledMemoryInGb": 1.0, "UsableMemoryInGb": 1.0,
	})
}

// buildVersion replies with the version of RavenDB whose protocol the server speaks.
func buildVersion(c *serve.Call) error {
	return c.JSON(http.StatusOK, map[string]any{"BuildVersion": 54200, "ProductVersion": "5.4", "CommitHash": "0000000", "FullVersion": "5.4.200"})
}

// tcpInfo refuses the request for the port of RavenDB's protocol over TCP, which the
// server does not speak. Clients send it when they open a subscription.
func tcpInfo(c *serve.Call) error {
	if c.Params.Get("tag") == "Subscription" || c.Params.Get("tcp") == "Subscription" {
		return serve.NotSupported("GET %s: %s", c.Route.Path, subscriptions)
	}
	return c.JSON(http.StatusOK, map[string]any{"Url": "tcp://" + serve.HostName(c.Request.Host) + ":38888", "Certificate": nil})
}
