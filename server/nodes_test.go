package server_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/server"
)

// agreement is what servers of one cluster share: a coordinator for each database.
type agreement struct {
	mu    sync.Mutex
	byKey map[string]*clustertest.Memory // Guarded by mu.
}

// connect is a server.Options.Cluster.
func (a *agreement) connect(key string) (cluster.Coordinator, error) {
	return a.of(key).Connect(), nil
}

func (a *agreement) of(key string) *clustertest.Memory {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.byKey == nil {
		a.byKey = make(map[string]*clustertest.Memory)
	}
	if a.byKey[key] == nil {
		a.byKey[key] = clustertest.NewMemory()
	}
	return a.byKey[key]
}

// join starts the server of a node.
func (a *agreement) join(t *testing.T, tag string) *host {
	t.Helper()
	h := start(t, func(o *server.Options) {
		o.Database.NodeTag, o.Cluster, o.ClusterTimeout, o.Address = tag, a.connect, 2*time.Second, "http://"+strings.ToLower(tag)+".example"
	})
	for end := time.Now().Add(time.Minute); len(a.of("").Records(cluster.MemberPrefix+tag)) == 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("server %s is not in the list", tag)
		}
	}
	return h
}

// Ensure that databases of the same name on two servers count identities together, and end
// their other IDs with their own tags; and that databases of other names have nothing to do with
// them.
func TestNodes_Agree(t *testing.T) {
	var shared agreement
	hosts := []*host{shared.join(t, "A"), shared.join(t, "B")}
	for _, h := range hosts {
		h.create("shop")
		h.create("other")
	}
	var made []string
	for i := range 4 {
		h := hosts[i%2]
		made = append(made, h.want(201, "PUT", "/databases/shop/docs?id=invoices|", `{}`).json(t, "Id").(string))
	}
	if got := fmt.Sprint(made); got != "[invoices/1 invoices/2 invoices/3 invoices/4]" {
		t.Errorf("identities of two servers: got %s", got)
	}
	if got := hosts[1].want(201, "PUT", "/databases/other/docs?id=invoices|", `{}`).json(t, "Id"); got != "invoices/1" {
		t.Errorf("an identity of another database: got %v", got)
	}
	for i, tag := range []string{"A", "B"} {
		if id := hosts[i].want(201, "PUT", "/databases/shop/docs?id=logs/", `{}`).json(t, "Id").(string); !strings.HasSuffix(id, "-"+tag) {
			t.Errorf("a server-side ID of node %s: got %s", tag, id)
		}
		if got := hosts[i].want(201, "GET", "/databases/shop/hilo/next?tag=users", "").json(t, "ServerTag"); got != tag {
			t.Errorf("HiLo range of node %s: got tag %v", tag, got)
		}
	}
}

// Ensure that lists name all servers with their addresses, and that clients, who take the
// nodes of a topology for replicas, see one: the server that they ask.
func TestNodes_Topology(t *testing.T) {
	var shared agreement
	shared.join(t, "A").create("shop")
	b := shared.join(t, "B")
	b.create("shop")
	a := b.want(200, "GET", "/cluster/topology", "")
	if a.json(t, "Topology", "AllNodes", "A") != "http://a.example" || a.json(t, "NodeTag") != "B" || len(a.json(t, "Topology", "Members").(map[string]any)) != 1 || a.json(t, "Topology", "Members", "B") != b.http.URL {
		t.Errorf("/cluster/topology of B: %s", a.body)
	}
	a = b.want(200, "GET", "/topology?name=shop", "")
	if len(a.json(t, "Nodes").([]any)) != 1 || a.json(t, "Nodes", 0, "ClusterTag") != "B" || a.json(t, "Nodes", 0, "Url") != b.http.URL {
		t.Errorf("/topology of a database of B: %s", a.body)
	}
	a = b.want(200, "GET", "/jay/v1/cluster", "")
	if a.json(t, "clustered") != true || a.json(t, "nodes", 0, "url") != "http://a.example" || a.json(t, "nodes", 1, "this") != true {
		t.Errorf("the servers: %s", a.body)
	}
	a = b.want(200, "GET", "/jay/v1/databases/shop/cluster", "")
	if len(a.json(t, "nodes").([]any)) != 2 || a.json(t, "nodes", 0, "running") != true || a.json(t, "nodes", 1, "tag") != "B" {
		t.Errorf("the nodes of a database: %s", a.body)
	}

	one := start(t)
	one.create("shop")
	if a := one.want(200, "GET", "/jay/v1/cluster", ""); a.json(t, "clustered") != false || len(a.json(t, "nodes").([]any)) != 0 {
		t.Errorf("a server without a cluster: %s", a.body)
	}
	if a := one.want(200, "GET", "/jay/v1/databases/shop/cluster", ""); a.json(t, "clustered") != false {
		t.Errorf("a database without a cluster: %s", a.body)
	}
}

// Ensure that a server that finds no majority starts, and answers all that needs none; that
// identities and compare exchange are an error that does not make clients take the node for
// down; and that they go on by themselves.
func TestNodes_NoMajority(t *testing.T) {
	t.Parallel()
	var shared agreement
	h := shared.join(t, "A")
	h.create("shop")
	h.want(201, "PUT", "/databases/shop/docs?id=invoices|", `{}`)
	h.stop()
	shared.of("").LoseMajority()
	shared.of("shop").LoseMajority()
	h = startIn(t, h.dir, func(o *server.Options) {
		o.Database.NodeTag, o.Cluster, o.ClusterTimeout = "A", shared.connect, 2*time.Second
	})
	for _, id := range []string{"users/ann", "", "logs/"} {
		h.want(201, "PUT", "/databases/shop/docs?id="+id, `{}`)
	}
	h.want(201, "GET", "/databases/shop/hilo/next?tag=users", "")
	h.want(200, "GET", "/databases/shop/docs?id=invoices/1", "")
	h.want(200, "GET", "/topology?name=shop", "")
	h.want(200, "GET", "/cluster/topology", "")
	for _, r := range [][3]string{
		{"PUT", "/databases/shop/docs?id=invoices|", `{}`},
		{"POST", "/databases/shop/identity/next?name=invoices|", ""},
		{"GET", "/jay/v1/databases/shop/cluster", ""},
	} {
		a := h.do(r[0], r[1], r[2])
		h.checkProblem(a, 500, "Cluster.NoLeaderException")
		if a.header.Get("Retry-After") == "" {
			t.Errorf("%s %s: no Retry-After", r[0], r[1])
		}
	}
	shared.of("shop").RestoreMajority()
	if got := h.want(201, "PUT", "/databases/shop/docs?id=invoices|", `{}`).json(t, "Id"); got != "invoices/2" {
		t.Errorf("the next identity when the majority is back: got %v", got)
	}
}

// Ensure that a server whose tag another one has is told so when it makes a database.
func TestNodes_TagTaken(t *testing.T) {
	var shared agreement
	shared.join(t, "A").create("shop")
	h := start(t, func(o *server.Options) { o.Database.NodeTag, o.Cluster = "A", shared.connect })
	a := h.do("PUT", "/admin/databases?name=shop", `{}`)
	h.checkProblem(a, 500, "InternalServerErrorException")
	if !strings.Contains(a.body, "belongs to another database") {
		t.Errorf("got %s", a.body)
	}
}
