package server_test

import (
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/cluster"
	"github.com/jaydb/jay/internal/standbytest"
	"github.com/jaydb/jay/server"
	"github.com/jaydb/jay/standby"
)

// awaitStatus repeats a request until it has a status.
func (h *host) awaitStatus(want int, path string) answer {
	h.t.Helper()
	a := h.do("GET", path, "")
	for end := time.Now().Add(time.Minute); a.status != want && time.Now().Before(end); a = h.do("GET", path, "") {
		time.Sleep(5 * time.Millisecond)
	}
	if a.status != want {
		h.t.Fatalf("GET %s: status %d, want %d: %s", path, a.status, want, a.body)
	}
	return a
}

func openDB(t *testing.T, dir string, o *jay.Options) *jay.DB {
	t.Helper()
	db, err := jay.Open(dir, o)
	if err != nil {
		t.Fatal(err)
	}
	return db
}

func putIn(t *testing.T, db *jay.DB, id, body string) {
	t.Helper()
	if _, err := db.Put(t.Context(), id, json.RawMessage(body)); err != nil {
		t.Fatal(err)
	}
}

// Ensure that a standby of the server is read and not written while it follows, that /readyz and the figures say how it is, that requests go on
// when its source has come back under another tag, and that it is a database of the server when it was promoted.
func TestFollow_Served(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shop := filepath.Join(dir, "shop")
	db := openDB(t, shop, &jay.Options{NoLook: true})
	putIn(t, db, "users/1", `{"Name":"Ann","@metadata":{"@collection":"Users"}}`)
	source := new(standbytest.Switch)
	following := func(lag time.Duration) func(o *server.Options) {
		return func(o *server.Options) {
			o.Follow, o.MaxLag, o.Database.NoLook = map[string]standby.Source{"Shop": source}, lag, true
		}
	}
	data := filepath.Join(dir, "data")
	h := startIn(t, data, following(time.Minute))

	// There is no copy yet.
	if a := h.want(503, "GET", "/readyz", ""); !strings.Contains(a.body, "1m0s") || !strings.Contains(a.body, `"Databases":1`) {
		t.Errorf("not ready: %s", a.body)
	}
	if a := h.want(503, "GET", "/databases/shop/docs?id=users/1", ""); !strings.Contains(a.body, "first copy") || a.header.Get("Retry-After") == "" {
		t.Errorf("without a copy: %s", a.body)
	}
	figures := func(lines ...string) {
		t.Helper()
		text := h.want(200, "GET", "/metrics", "").body
		for _, line := range lines {
			if !strings.Contains(text, "\n"+line+"\n") {
				t.Errorf("no line %q in the figures", line)
			}
		}
	}
	figures("jay_standbys 1", "jay_standbys_connected 0", "jay_standbys_unreadable 1", "jay_standbys_late 1", "jay_standby_lag_seconds 0")

	source.Set(standby.From(db))
	h.awaitStatus(200, "/readyz")
	figures("jay_standbys 1", "jay_standbys_connected 1", "jay_standbys_unreadable 0", "jay_standbys_late 0")
	if a := h.want(200, "GET", "/databases/shop/docs?id=users/1", ""); !strings.Contains(a.body, "Ann") {
		t.Errorf("got %s", a.body)
	}
	putIn(t, db, "users/2", `{"Name":"Bob","@metadata":{"@collection":"Users"}}`)
	h.awaitStatus(200, "/databases/shop/docs?id=users/2")
	if a := h.want(200, "GET", "/jay/v1/databases/shop/standby", ""); a.text(t, "readable")+a.text(t, "connected") != "truetrue" {
		t.Errorf("got %s", a.body)
	}
	for _, row := range []struct{ method, path, body string }{
		{"PUT", "/databases/shop/docs?id=users/3", "{}"},
		{"DELETE", "/databases/shop/docs?id=users/1", ""},
		{"POST", "/databases/shop/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"x","Document":{}}]}`},
		{"POST", "/databases/shop/identity/next?name=users", ""},
		{"POST", "/databases/shop/admin/revisions/config", "{}"},
	} {
		if a := h.want(403, row.method, row.path, row.body); !strings.Contains(a.body, "promote") || !strings.Contains(a.body, "AuthorizationException") {
			t.Errorf("%s %s: %s", row.method, row.path, a.body)
		}
	}
	h.want(501, "DELETE", "/admin/databases", `{"DatabaseNames":["shop"],"HardDelete":true}`)
	h.want(409, "PUT", "/admin/databases?name=shop", `{}`)

	// A standby of the standby, and a backup of it.
	chained, err := standby.Open(filepath.Join(dir, "chained"), standby.URL(h.http.Client(), h.http.URL+"/jay/v1/databases/shop/follow"), standby.Options{Database: &jay.Options{NoLook: true}})
	if err != nil {
		t.Fatal(err)
	}
	reader, err := chained.DB(t.Context())
	if err != nil {
		t.Fatalf("%v: %+v", err, chained.Status())
	}
	if found, err := reader.Exists(t.Context(), "users/1"); !found {
		t.Errorf("the standby of a standby: %v", err)
	}
	if err := chained.Close(); err != nil {
		t.Error(err)
	}
	info, err := jay.ReadBackup(strings.NewReader(h.want(200, "GET", "/jay/v1/databases/shop/backup?once=true", "").body))
	if err != nil || info.NodeTag != "A" {
		t.Errorf("a backup: %+v, %v", info, err)
	}

	// The source comes back under another tag, so that the database of the readers is another one.
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	db = openDB(t, shop, &jay.Options{CopyTag: "C", NoLook: true})
	defer db.Close()
	putIn(t, db, "users/4", `{}`)
	source.Set(standby.From(db))
	h.awaitStatus(200, "/databases/shop/docs?id=users/4")
	h.awaitStatus(200, "/readyz")

	// While it serves, there is no promotion, and none after it without the server's end.
	at := filepath.Join(data, "databases", "shop")
	if _, err := jay.Promote(t.Context(), at, jay.PromoteOptions{CopyTag: "B"}); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("a promotion while it serves: %v", err)
	}
	h.stop()
	h = startIn(t, data, following(time.Nanosecond))
	h.awaitStatus(200, "/databases/shop/docs?id=users/4")
	if a := h.want(503, "GET", "/readyz", ""); !strings.Contains(a.body, "behind") {
		t.Errorf("behind more than a nanosecond: %s", a.body)
	}
	h.stop()
	h = startIn(t, data)
	if a := h.want(400, "GET", "/databases/shop/docs?id=users/4", ""); !strings.Contains(a.body, "promote") {
		t.Errorf("a server that does not follow: %s", a.body)
	}
	h.stop()
	if _, err := jay.Promote(t.Context(), at, jay.PromoteOptions{CopyTag: "B"}); err != nil {
		t.Fatal(err)
	}
	h = startIn(t, data)
	h.want(200, "GET", "/databases/shop/docs?id=users/2", "")
	h.want(201, "PUT", "/databases/shop/docs?id=users/5", "{}")
	h.stop()
	o := server.Options{Data: data}
	following(0)(&o)
	if _, err := server.Open(o); !errors.Is(err, jay.ErrStandby) || !strings.Contains(err.Error(), `"Shop"`) {
		t.Errorf("to follow with a promoted one: %v", err)
	}
	startIn(t, data).want(200, "GET", "/databases/shop/docs?id=users/5", "") // nothing is left open
}

// Ensure that options that contradict standbys are refused.
func TestFollow_Options(t *testing.T) {
	t.Parallel()
	source := new(standbytest.Switch)
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for says, change := range map[string]func(o *server.Options){
		"Data, a directory": func(o *server.Options) { o.Data, o.Mounted = "", map[string]*jay.DB{"a": db} },
		"goes without Cluster": func(o *server.Options) {
			o.Cluster = func(string) (cluster.Coordinator, error) { return nil, errors.New("not asked") }
		},
		"invalid database name": func(o *server.Options) { o.Follow = map[string]standby.Source{"..": source} },
		"which another":         func(o *server.Options) { o.Follow["COPY"] = source },
		"MaxDatabases":          func(o *server.Options) { o.Follow["b"], o.MaxDatabases = source, 1 },
		"MaxLag":                func(o *server.Options) { o.MaxLag = -1 },
	} {
		o := server.Options{Data: t.TempDir(), Follow: map[string]standby.Source{"copy": source}}
		change(&o)
		if _, err := server.Open(o); !errors.Is(err, jay.ErrOption) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}
