package server_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay/server"
	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/memory"
)

// opened is a driver that remembers the engines that it has opened.
type opened struct {
	*memory.Driver
	mu      sync.Mutex
	engines []*memory.Engine // Guarded by mu.
}

// Open implements storage.Driver.
func (o *opened) Open(name string, options storage.OpenOptions) (storage.Engine, error) {
	e, err := o.Driver.Open(name, options)
	if err == nil {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.engines = append(o.engines, e.(*memory.Engine))
	}
	return e, err
}

// onEngine has a server keep its databases in the stores of a driver.
func onEngine(d storage.Driver) func(o *server.Options) {
	return func(o *server.Options) {
		o.Database.Engine, o.Database.MemTableBytes, o.Database.CacheBytes = d, 0, 0
	}
}

// away makes all stores unavailable, or available again.
func (o *opened) away(cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.engines {
		e.SetUnavailable(cause)
	}
}

// Ensure that a store that cannot be reached at the moment is 503 with Retry-After in both dialects, without the text of
// the cause, that reads go on, and that the same requests succeed when it is back.
func TestUnavailable(t *testing.T) {
	t.Parallel()
	stores := &opened{Driver: new(memory.Driver)}
	h := start(t, onEngine(stores))
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=users/1", `{"n":1}`)
	writes := [][]string{
		{"201", "PUT", "/databases/a/docs?id=users/2", `{"n":2}`},
		{"201", "POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"users/3","Document":{}}]}`},
		{"201", "PUT", "/databases/a/admin/indexes", `{"Indexes":[{"Name":"Users/ByN","Maps":["from u in docs.Users select new { u.n }"]}]}`},
		{"201", "PUT", "/jay/v1/databases/a/indexes", `{"collection":"Users","index":{"fields":["n"]}}`},
		{"200", "POST", "/jay/v1/databases/a/import", `{"@metadata":{"@id":"users/4"}}` + "\n"},
		{"204", "DELETE", "/databases/a/docs?id=users/1", ""},
	}
	stores.away(errors.New("secret.example:5432 refuses connections"))
	for _, w := range writes {
		a := h.do(w[1], w[2], w[3])
		h.checkProblem(a, 503, "DatabaseLoadFailureException")
		equal(t, w[2], a.header.Get("Retry-After"), "1")
		if strings.Contains(a.body, "secret") || !strings.Contains(a.body, "nothing was changed") {
			t.Error(a.body)
		}
	}
	h.want(200, "GET", "/databases/a/docs?id=users/1", "")
	stores.away(nil)
	for _, w := range writes {
		if a := h.do(w[1], w[2], w[3]); fmt.Sprint(a.status) != w[0] {
			t.Errorf("%v: %d %s", w, a.status, a.body)
		}
	}
}

// Ensure that what a database on a shared store does not do is 400 with the reason, in both dialects, and that the rest works.
func TestShared(t *testing.T) {
	t.Parallel()
	h := start(t, onEngine(&memory.Driver{Shared: true}))
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=users/1", `{"@metadata":{"@collection":"Users"}}`)
	const reason = "not on a store that others may write to"
	for _, r := range [][]string{
		{"POST", "/jay/v1/databases/a/counters", `{"hilo":{"users":64}}`},
		{"POST", "/jay/v1/databases/a/import", `{"@metadata":{"@jay":"counters"},"hilo":{"users":64}}` + "\n"},
	} {
		a := h.do(r[0], r[1], r[2])
		h.checkProblem(a, 400, "BadRequestException")
		if !strings.Contains(a.body, reason) {
			t.Errorf("%v: %s", r, a.body)
		}
	}
	a := h.want(200, "POST", "/jay/v1/databases/a/collections/rename", `{"from":"Users","to":"People"}`)
	state := h.await("a", a.text(t, "OperationId")) // as the endpoint of RavenDB's dialect shows it
	equal(t, "status", state.text(t, "Status"), "Faulted")
	equal(t, "status", state.json(t, "Result", "StatusCode"), any(float64(400)))
	if text := state.text(t, "Result", "Message"); !strings.Contains(text, reason) {
		t.Error(text)
	}
	h.want(200, "GET", "/databases/a/docs?id=users/1", "")
}

// Ensure that a query that reads for longer than the store shows one moment is 408 in both dialects, and that a short one is
// answered.
func TestShortSnapshots(t *testing.T) {
	t.Parallel()
	var now, step atomic.Int64
	h := start(t, onEngine(&memory.Driver{
		Limits: storage.Limits{SnapshotAge: 1_000_000},
		Now:    func() time.Time { return time.Unix(0, now.Add(step.Load())) },
	}))
	h.create("a")
	for i := range 60 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=users/%d", i), `{"n":1,"@metadata":{"@collection":"Users"}}`)
	}
	queries := []string{"/databases/a/queries?query=from+Users+order+by+n", "/jay/v1/databases/a/rows?collection=Users&pageSize=60"}
	for _, q := range queries {
		h.want(200, "GET", q, "")
	}
	step.Store(1_000_000/30 + 1) // for 30 reads
	for _, q := range queries {
		h.checkProblem(h.do("GET", q, ""), 408, "RavenTimeoutException")
	}
	h.want(200, "GET", "/databases/a/docs?id=users/1", "")
	step.Store(0)
	for _, q := range queries {
		h.want(200, "GET", q, "")
	}
}
