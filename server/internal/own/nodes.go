package own

import (
	"net/http"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/server/internal/serve"
)

// nodeRoutes are the endpoints of the members of a cluster.
var nodeRoutes = []*serve.Route{
	{Method: "GET", Path: "/jay/v1/cluster", Run: getServers, Open: true},
	{Method: "GET", Path: "{J}/cluster", Run: getNodes, Agreed: true},
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

// getServers replies with the servers of the cluster; none without a cluster.
func getServers(c *serve.Call) error {
	list := []nodeReply{}
	for _, m := range c.Server.Nodes.List(c.Ctx) {
		r := replyOf(&m)
		r.This = m.Database == c.Server.Nodes.ID
		list = append(list, r)
	}
	return c.JSON(http.StatusOK, map[string]any{"clustered": c.Server.Nodes.Own != nil, "tag": c.Server.Tag(c.Name), "nodes": list})
}

// getNodes replies with the nodes of the database, which share its identities and
// compare-exchange values. It needs a majority.
func getNodes(c *serve.Call) error {
	own := c.Server.Databases.CoordinatorOf(c.Database.Key)
	list := []nodeReply{}
	if own != nil {
		members, err := cluster.Members(c.Ctx, own)
		if err != nil {
			return err
		}
		for _, m := range members {
			r := replyOf(&m)
			r.Running, r.This = &m.Running, m.Tag == c.Server.Tag(c.Name)
			list = append(list, r)
		}
	}
	return c.JSON(http.StatusOK, map[string]any{"clustered": own != nil, "tag": c.Server.Tag(c.Name), "nodes": list})
}
