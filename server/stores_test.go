package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/server"
	"github.com/jaydb/jay/storage"
)

// onStores returns servers that all have the store a open.
func onStores(t *testing.T, n int) (all []*host) {
	t.Helper()
	driver := jaytest.SharedDriver(t)
	for range n {
		all = append(all, onStore(t, driver))
	}
	return all
}

func onStore(t *testing.T, driver storage.Driver, change ...func(o *server.Options)) *host {
	t.Helper()
	return start(t, append([]func(o *server.Options){func(o *server.Options) {
		o.Database = jay.Options{Engine: driver, ClusterPeriod: time.Second}
		o.Stores = map[string]string{"a": "store"}
	}}, change...)...)
}

// Ensure that whatever one server of a store has written another one reads at once, and that both say of the database what clients compare.
func TestStores_SameDatabase(t *testing.T) {
	t.Parallel()
	all := onStores(t, 2)
	one, two := all[0], all[1]
	one.want(201, "PUT", "/databases/a/docs?id=users/1", `{"Name":"Ann","@metadata":{"@collection":"Users"}}`)
	equal(t, "the name", two.want(200, "GET", "/databases/a/docs?id=users/1", "").text(t, "Results", 0, "Name"), "Ann")
	two.want(201, "PUT", "/databases/a/docs?id=users/1", `{"Name":"Bob","@metadata":{"@collection":"Users"}}`)
	equal(t, "the name", one.want(200, "GET", "/databases/a/docs?id=users/1", "").text(t, "Results", 0, "Name"), "Bob")
	one.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[{"Id":"users/2","ChangeVector":null,"Type":"PUT","Document":{"Name":"Cyd","@metadata":{"@collection":"Users"}}}]}`)
	found := two.want(200, "POST", "/databases/a/queries", `{"Query":"from Users where Name = 'Cyd'"}`)
	equal(t, "the ID", found.text(t, "Results", 0, "@metadata", "@id"), "users/2")
	ids := make(map[string]bool)
	for _, h := range all {
		ids[h.want(200, "GET", "/databases/a/stats", "").text(t, "DatabaseId")] = true
	}
	equal(t, "IDs of the database", len(ids), 1)
	tags := make(map[string]bool)
	for _, h := range all {
		tag := h.want(200, "GET", "/topology?name=a", "").text(t, "Nodes", 0, "ClusterTag")
		equal(t, "the tag of operations", h.want(200, "GET", "/databases/a/operations/next-operation-id", "").text(t, "NodeTag"), tag)
		h.want(200, "GET", "/databases/a/operations/next-operation-id?nodeTag="+tag, "")
		tags[tag] = true
	}
	equal(t, "node tags", len(tags), 2)
}

// Ensure that optimistic concurrency, compare exchange, identities and ranges of HiLo hold across the servers of a store: of several writers that have
// read the same version one goes through, and no number comes twice.
func TestStores_Numbers(t *testing.T) {
	t.Parallel()
	all := onStores(t, 2)
	var mu sync.Mutex
	seen := make(map[string]bool)
	once := func(what string) {
		mu.Lock()
		defer mu.Unlock()
		if seen[what] {
			t.Errorf("%s came twice", what)
		}
		seen[what] = true
	}
	first := all[0].want(201, "PUT", "/databases/a/docs?id=users/1", `{"N":0}`).text(t, "ChangeVector")
	for i, h := range all {
		status := h.do("PUT", "/databases/a/docs?id=users/1", fmt.Sprintf(`{"N":%d}`, i+1), "If-Match", `"`+first+`"`).status
		equal(t, "status", status, []int{201, 409}[i])
	}
	var gone atomic.Int64
	var writers sync.WaitGroup
	for w := range 4 {
		h := all[w%2]
		draw := &generator{fetch: func(query string) (answer, error) { return h.try("GET", "/databases/a/hilo/next?"+query, "") }}
		writers.Go(func() {
			for range 40 {
				id, err := draw.draw()
				if err != nil {
					t.Error(err)
					return
				}
				number, _, _ := strings.Cut(id, "-") // two servers with different tags must not have the same number, either
				once("HiLo " + number)
			}
			for range 10 {
				a, err := h.try("POST", "/databases/a/identity/next?name=invoices|", "")
				if err != nil || a.status != 200 {
					t.Error(a, err)
					return
				}
				once("identity " + a.text(t, "NewIdentityValue"))
			}
			for range 10 {
				a, err := h.try("PUT", "/databases/a/cmpxchg?key=lock&index=0", `{"Object":1}`)
				if err != nil {
					t.Error(err)
					return
				}
				if a.text(t, "Successful") == "true" {
					gone.Add(1)
				}
			}
		})
	}
	writers.Wait()
	equal(t, "numbers", len(seen), 4*50)
	equal(t, "who has taken the lock", gone.Load(), 1)
	for n := range 40 {
		if want := fmt.Sprintf("identity %d", n+1); !seen[want] {
			t.Errorf("%s is missing", want)
		}
	}
}

// Ensure that a request that a client repeats at another server, as the first one did not answer, is carried out once.
func TestStores_RequestIDs(t *testing.T) {
	t.Parallel()
	all := onStores(t, 2)
	for name, row := range map[string]struct{ method, path, body, member string }{
		"identity":         {"POST", "/databases/a/identity/next?name=invoices|&raft-request-id=r1", "", "NewIdentityValue"},
		"compare exchange": {"PUT", "/databases/a/cmpxchg?key=k&index=0&raft-request-id=r2", `{"Object":1}`, "Index"},
		"batch":            {"POST", "/databases/a/bulk_docs?raft-request-id=r3", `{"Commands":[{"Id":"orders|","ChangeVector":null,"Type":"PUT","Document":{}}]}`, "Results"},
	} {
		first := all[0].do(row.method, row.path, row.body)
		again := all[1].do(row.method, row.path, row.body)
		if first.status >= 300 || again.status != first.status || again.text(t, row.member) != first.text(t, row.member) {
			t.Errorf("%s: %d %s, then %d %s", name, first.status, first.body, again.status, again.body)
		}
	}
	equal(t, "documents", all[0].want(200, "GET", "/databases/a/stats", "").text(t, "CountOfDocuments"), 1)
}

// Ensure that sockets and feeds of one server show what another one has written.
func TestStores_Changes(t *testing.T) {
	t.Parallel()
	all := onStores(t, 2)
	l := all[1].listen()
	l.command("watch-docs", "null")
	all[0].want(201, "PUT", "/databases/a/docs?id=users/1", `{}`)
	equal(t, "the change", l.want("DocumentChange")["Id"], "users/1")
	feed := all[1].want(200, "GET", "/jay/v1/databases/a/changes?since=&untilCaughtUp=true", "").body
	if !strings.Contains(feed, "users/1") {
		t.Errorf("the feed has %s", feed)
	}
}

// Ensure that several servers that define the same indexes at once, as clients do at their start, all succeed, and that definitions,
// configurations and locks of one are those of the others.
func TestStores_Definitions(t *testing.T) {
	t.Parallel()
	all := onStores(t, 3)
	for n := range 12 {
		all[n%3].want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=orders/%d", n), fmt.Sprintf(`{"Total":%d,"@metadata":{"@collection":"Orders"}}`, n))
	}
	for version, text := range []string{
		`{"Indexes":[{"Name":"Orders/ByTotal","Maps":["from o in docs.Orders select new { o.Total }"]}]}`,
		`{"Indexes":[{"Name":"Orders/ByTotal","Maps":["from o in docs.Orders select new { o.Total, o.Day }"]}]}`,
		`{"Indexes":[{"Name":"Orders/ByTotal","Maps":["from o in docs.Orders select new { Twice = o.Total * 2 }"]}]}`,
	} {
		var puts sync.WaitGroup
		for _, h := range all {
			puts.Go(func() {
				if a, err := h.try("PUT", "/databases/a/admin/indexes", text); err != nil || a.status != 201 {
					t.Errorf("version %d: %v %v", version, a, err)
				}
			})
		}
		puts.Wait()
		field := []string{"Total", "Day", "Twice"}[version]
		for _, h := range all {
			if body := h.want(200, "GET", "/databases/a/indexes?name=Orders/ByTotal", "").body; !strings.Contains(body, field) {
				t.Errorf("version %d: %s", version, body)
			}
		}
	}
	found := all[1].want(200, "POST", "/databases/a/queries", `{"Query":"from index 'Orders/ByTotal' where Twice = 6"}`)
	equal(t, "the order", found.text(t, "Results", 0, "@metadata", "@id"), "orders/3")
	all[0].want(204, "POST", "/databases/a/indexes/set-lock", `{"IndexNames":["Orders/ByTotal"],"Mode":"LockedError"}`)
	all[2].want(400, "PUT", "/databases/a/admin/indexes", `{"Indexes":[{"Name":"Orders/ByTotal","Maps":["from o in docs.Orders select new { o.Day }"]}]}`)

	all[0].want(201, "PUT", "/databases/a/admin/configuration/client", `{"MaxNumberOfRequestsPerSession":7}`)
	equal(t, "the configuration", all[1].want(200, "GET", "/databases/a/configuration/client", "").text(t, "Configuration", "MaxNumberOfRequestsPerSession"), 7)
	for until := time.Now().Add(time.Minute); all[2].do("GET", "/databases/a/stats", "", "Client-Configuration-Etag", `"0"`).header.Get("Refresh-Client-Configuration") == ""; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("another server does not see the configuration")
		}
	}
	for _, h := range all {
		if names := strings.Count(h.want(200, "GET", "/databases/a/indexes", "").body, `"Name":"Orders/ByTotal"`); names != 1 {
			t.Errorf("the index is listed %d times", names)
		}
	}
}

// Ensure that a server of stores refuses what it could only do for itself, and says why.
func TestStores_Refused(t *testing.T) {
	t.Parallel()
	driver := jaytest.SharedDriver(t)
	h := onStore(t, driver)
	for _, row := range []struct {
		status             int
		method, path, body string
		says               string
	}{
		{501, "PUT", "/admin/databases?name=b", `{"DatabaseName":"b"}`, "creates no others"},
		{501, "DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`, "drop its schema"},
		{501, "POST", "/admin/compact", `{"DatabaseName":"a"}`, "frees the space"},
		{501, "GET", "/databases/a/operations/state?id=1&nodeTag=ZZZZ", "", "this is the node"},
		{400, "POST", "/jay/v1/databases/a/follow", "{}", "cannot be followed"},
	} {
		if a := h.do(row.method, row.path, row.body); a.status != row.status || !strings.Contains(a.body, row.says) {
			t.Errorf("%s %s: status %d, want %d: %s", row.method, row.path, a.status, row.status, a.body)
		}
	}
	for name, change := range map[string]func(o *server.Options){
		"Data":        func(o *server.Options) { o.Data = "" },
		"Engine":      func(o *server.Options) { o.Database.Engine = nil },
		"Directories": func(o *server.Options) { o.Directories = map[string]string{"b": t.TempDir()} },
		"MinFree":     func(o *server.Options) { o.Database.MinFreeBytes = 1 },
		"MaxOpen":     func(o *server.Options) { o.Stores, o.MaxOpenDatabases = map[string]string{"a": "x", "b": "y"}, 1 },
		"same name":   func(o *server.Options) { o.Stores = map[string]string{"a": "x", "A": "y"} },
		"bad name":    func(o *server.Options) { o.Stores = map[string]string{"a/b": "x"} },
	} {
		o := server.Options{Data: t.TempDir(), Stores: map[string]string{"a": "store"}, Database: jay.Options{Engine: driver}}
		change(&o)
		s, err := server.Open(o)
		if !errors.Is(err, jay.ErrOption) {
			t.Errorf("%s: %v, want ErrOption", name, err)
		}
		if err == nil {
			jaytest.Must(t, s.Close())
		}
	}
}

// Ensure that a data directory with databases of its own is not served as a server of stores: its databases would be missing.
func TestStores_OtherData(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("own")
	h.stop()
	_, err := server.Open(server.Options{Data: h.dir, Stores: map[string]string{"a": "store"}, Database: jay.Options{Engine: jaytest.SharedDriver(t)}})
	if !errors.Is(err, jay.ErrOption) {
		t.Errorf("%v, want ErrOption", err)
	}
}

// Ensure that a store is not closed when it is idle: its server would give back its node tag, and its clients' operations would be those of another
// node.
func TestStores_Idle(t *testing.T) {
	t.Parallel()
	driver := jaytest.SharedDriver(t)
	clock := new(atomic.Int64)
	h := onStore(t, driver, func(o *server.Options) {
		o.IdleAfter = 4 * time.Second
		o.Now = func() time.Time { return time.Unix(clock.Load(), 0) }
	})
	tag := h.want(200, "GET", "/topology?name=a", "").text(t, "Nodes", 0, "ClusterTag")
	clock.Add(1000)
	time.Sleep(1500 * time.Millisecond) // longer than a look at what is idle
	other, err := jay.Open("store", &jay.Options{Engine: driver, ClusterPeriod: time.Second})
	jaytest.Must(t, err)
	defer other.Close()
	stats, err := other.Stats(context.Background())
	jaytest.Must(t, err)
	if stats.NodeTag == tag {
		t.Errorf("another process has the node tag %s of a server that is idle", tag)
	}
}

// cut is a driver whose engines can be cut off from their store.
type cut struct {
	storage.Driver
	off atomic.Bool
}

// Open implements storage.Driver.
func (c *cut) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	e, err := c.Driver.Open(name, o)
	if err != nil {
		return nil, err
	}
	return &cutEngine{e, c}, nil
}

type cutEngine struct {
	storage.Engine
	cut *cut
}

// Update implements storage.Engine.
func (e *cutEngine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	if e.cut.off.Load() {
		return storage.ErrUnavailable
	}
	return e.Engine.Update(ctx, sync, fn)
}

// Ensure that a server that stood still until another process took its node tag writes again by itself, under another tag, and that meanwhile its
// clients are told that nothing was changed.
func TestStores_TagTaken(t *testing.T) {
	t.Parallel()
	driver := jaytest.SharedDriver(t)
	late := &cut{Driver: driver}
	h := onStore(t, late)
	h.want(201, "PUT", "/databases/a/docs?id=users/1", `{}`)
	tag := h.want(200, "GET", "/topology?name=a", "").text(t, "Nodes", 0, "ClusterTag")
	late.off.Store(true)
	other, err := jay.Open("store", &jay.Options{Engine: driver, NodeTag: tag, ClusterPeriod: time.Second})
	jaytest.Must(t, err)
	defer other.Close()
	late.off.Store(false)
	a := h.do("PUT", "/databases/a/docs?id=users/2", `{}`)
	if a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, "nothing was changed") {
		t.Errorf("status %d: %s", a.status, a.body)
	}
	for until := time.Now().Add(time.Minute); h.do("PUT", "/databases/a/docs?id=users/2", `{}`).status != 201; time.Sleep(100 * time.Millisecond) {
		if time.Now().After(until) {
			t.Fatal("the server does not write again")
		}
	}
	now := h.want(200, "GET", "/topology?name=a", "").text(t, "Nodes", 0, "ClusterTag")
	if now == tag {
		t.Errorf("the server has the tag %s of another process", now)
	}
	equal(t, "documents", h.want(200, "GET", "/databases/a/stats", "").text(t, "CountOfDocuments"), 2)
}

// Ensure that no answer of a server has the address of a store, which may have a password.
func TestStores_Address(t *testing.T) {
	t.Parallel()
	const address = "s3cret-address"
	h := onStore(t, jaytest.SharedDriver(t), func(o *server.Options) { o.Stores = map[string]string{"a": address} })
	var paths []string
	for _, r := range server.Routes() {
		if r.Method == "GET" && r.Refused == "" && !strings.Contains(r.Path, "changes") {
			paths = append(paths, routeURL(r))
		}
	}
	slices.Sort(paths)
	for _, path := range paths {
		if a, err := h.try("GET", path, ""); err == nil && strings.Contains(a.body+fmt.Sprint(a.header), address) {
			t.Errorf("GET %s: %s", path, a.body)
		}
	}
}
