package server_test

import "testing"

// Ensure that databases of the same name on two servers have the same compare-exchange
// values, alone and in cluster-wide sessions, and that these fail without a majority.
func TestNodes_CompareExchange(t *testing.T) {
	t.Parallel()
	var shared agreement
	hosts := []*host{shared.join(t, "A"), shared.join(t, "B")}
	for _, h := range hosts {
		h.create("shop")
	}
	hosts[0].want(200, "PUT", "/databases/shop/cmpxchg?key=leader&index=0", `{"Object":"A"}`)
	if a := hosts[1].want(200, "PUT", "/databases/shop/cmpxchg?key=leader&index=0", `{"Object":"B"}`); a.json(t, "Successful") != false || a.json(t, "Value", "Object") != "A" {
		t.Errorf("a value that the other server has made: got %s", a.body)
	}
	hosts[1].want(201, "POST", "/databases/shop/bulk_docs", `{"TransactionMode":"ClusterWide","Commands":[{"Type":"PUT","Id":"users/dan","Document":{"Name":"Dan"}},{"Type":"CompareExchangePUT","Id":"names/dan","Index":0,"Document":{"Object":"users/dan"}}]}`)
	hosts[0].checkProblem(hosts[0].do("POST", "/databases/shop/bulk_docs", `{"TransactionMode":"ClusterWide","Commands":[{"Type":"PUT","Id":"users/dan2","Document":{}},{"Type":"CompareExchangePUT","Id":"names/dan","Index":0,"Document":{"Object":"users/dan2"}}]}`), 409, "ClusterTransactionConcurrencyException")
	hosts[0].want(404, "GET", "/databases/shop/docs?id=users/dan2", "")

	shared.of("shop").LoseMajority()
	for _, r := range [][3]string{
		{"PUT", "/databases/shop/cmpxchg?key=other&index=0", `{"Object":"A"}`},
		{"GET", "/databases/shop/cmpxchg?key=leader", ""},
		{"GET", "/databases/shop/docs?id=users/dan&txMode=ClusterWide", ""},
		{"POST", "/databases/shop/bulk_docs", `{"TransactionMode":"ClusterWide","Commands":[{"Type":"PUT","Id":"users/eve","Document":{}}]}`},
	} {
		hosts[1].checkProblem(hosts[1].do(r[0], r[1], r[2]), 500, "Cluster.NoLeaderException")
	}
}
