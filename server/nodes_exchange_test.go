package server_test

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/cluster/clustertest"
	"github.com/jaydb/jay/server"
)

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

// counted is what a cluster-wide session has read of the document counters/1: in the given place
// of the answer, or as the first of the results.
func counted(t *testing.T, a answer, at ...any) (n int, vector string) {
	t.Helper()
	if len(at) == 0 {
		at = []any{"Results", 0}
	}
	at = at[:len(at):len(at)]
	n, err := strconv.Atoi(a.text(t, append(at, "n")...))
	if err != nil {
		t.Fatal(err)
	}
	return n, a.text(t, append(at, "@metadata", "@change-vector")...)
}

// putCounter is the command that saves it.
func putCounter(n int, vector string) string {
	return fmt.Sprintf(`{"TransactionMode":"ClusterWide","Commands":[{"Type":"PUT","Id":"counters/1","OriginalChangeVector":%q,"Document":{"n":%d,"next":"counters/1"}}]}`, vector, n)
}

// hooked starts a server of a cluster, and returns the coordinator of its database shop, too.
func hooked(t *testing.T) (*host, *clustertest.Client) {
	t.Helper()
	var shared agreement
	var client *clustertest.Client
	h := start(t, func(o *server.Options) {
		o.ClusterTimeout = 10 * time.Second
		o.Cluster = func(key string) (cluster.Coordinator, error) {
			c := shared.of(key).Connect()
			if key == "shop" {
				client = c
			}
			return c, nil
		}
	})
	h.create("shop")
	return h, client
}

// Ensure that no update is lost when another session saves between the moments at which the
// document and its guard are read: by its ID, by a prefix, as one of the newest, and as an
// included document.
func TestNodes_ClusterWide_LostUpdate(t *testing.T) {
	t.Parallel()
	h, client := hooked(t)
	const batch = "/databases/shop/bulk_docs"
	h.want(201, "POST", batch, `{"TransactionMode":"ClusterWide","Commands":[{"Type":"PUT","Id":"counters/1","Document":{"n":0,"next":"counters/1"}}]}`)
	h.want(201, "PUT", "/databases/shop/docs?id=pointers/1", `{"next":"counters/1"}`)
	h.want(201, "PUT", "/databases/shop/docs?id=pointers/2", `{"further":["counters/1"]}`)
	want := 0
	for _, query := range []string{"id=counters/1", "startsWith=counters/", "pageSize=1", "id=pointers/1&include=next", "id=pointers/2&include=further[]", "startsWith=pointers/&include=next"} {
		var at []any
		if strings.Contains(query, "include") {
			at = []any{"Includes", "counters/1"}
		}
		n, vector := counted(t, h.want(200, "GET", "/databases/shop/docs?id=counters/1&txMode=ClusterWide", ""))
		var once sync.Once
		client.Before(func(call clustertest.Call) {
			if call.Method != "Read" || !slices.Contains(call.Keys, cluster.ValuePrefix+"rvn-atomic/counters/1") {
				return
			}
			once.Do(func() { h.want(201, "POST", batch, putCounter(n+1, vector)) })
		})
		n, vector = counted(t, h.want(200, "GET", "/databases/shop/docs?txMode=ClusterWide&"+query, ""), at...)
		client.Before(nil)
		want++
		switch a := h.do("POST", batch, putCounter(n+1, vector)); a.status {
		case 201:
			want++
		case 409: // it has read the older document
		default:
			t.Fatalf("%s: got %d %s", query, a.status, a.body)
		}
		if n, _ := counted(t, h.want(200, "GET", "/databases/shop/docs?id=counters/1&txMode=ClusterWide", "")); n != want {
			t.Fatalf("%s: got %d after %d saves", query, n, want)
		}
	}
}

// Ensure that the newest documents are read at last for a cluster-wide session when another one
// is inserted at each look, and that what has come meanwhile can be saved.
func TestNodes_ClusterWide_NewestWhileOthersInsert(t *testing.T) {
	t.Parallel()
	h, client := hooked(t)
	h.want(201, "PUT", "/databases/shop/docs?id=counters/0", `{"n":0}`)
	var made atomic.Int32
	client.Before(func(call clustertest.Call) {
		if call.Method == "Read" && strings.HasPrefix(call.Keys[0], cluster.ValuePrefix+"rvn-atomic/") {
			h.want(201, "PUT", fmt.Sprintf("/databases/shop/docs?id=counters/%d", made.Add(1)), `{"n":0}`)
		}
	})
	a := h.want(200, "GET", "/databases/shop/docs?txMode=ClusterWide&pageSize=1", "")
	client.Before(nil)
	_, vector := counted(t, a)
	id := a.text(t, "Results", 0, "@metadata", "@id")
	equal(t, "the newest", id, fmt.Sprint("counters/", made.Load()))
	save := fmt.Sprintf(`{"TransactionMode":"ClusterWide","Commands":[{"Type":"PUT","Id":%q,"OriginalChangeVector":%q,"Document":{"n":1}}]}`, id, vector)
	h.want(201, "POST", "/databases/shop/bulk_docs", save)
	h.checkProblem(h.do("POST", "/databases/shop/bulk_docs", save), 409, "ClusterTransactionConcurrencyException")
}

// Ensure that a session saves a second time with the guard that the reply to its first save
// names, and that the reply to a batch that is repeated by its request ID can be saved on, too.
func TestNodes_ClusterWide_SecondSave(t *testing.T) {
	t.Parallel()
	h, _ := hooked(t)
	const batch = "/databases/shop/bulk_docs"
	first := `{"TransactionMode":"ClusterWide","Commands":[{"Type":"PUT","Id":"counters/1","Document":{"n":0}}]}`
	vector := h.want(201, "POST", batch+"?raft-request-id=one", first).text(t, "Results", 0, "@change-vector")
	again := h.want(201, "POST", batch+"?raft-request-id=one", first).text(t, "Results", 0, "@change-vector")
	for n := range 3 {
		if n == 0 {
			h.want(201, "POST", batch, putCounter(1, again))
			_, vector = counted(t, h.want(200, "GET", "/databases/shop/docs?id=counters/1&txMode=ClusterWide", ""))
		}
		vector = h.want(201, "POST", batch, putCounter(n+2, vector)).text(t, "Results", 0, "@change-vector")
	}
	h.checkProblem(h.do("POST", batch, putCounter(9, again)), 409, "ClusterTransactionConcurrencyException")
}
