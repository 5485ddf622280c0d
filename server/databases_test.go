package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// Ensure that no name leads out of the data directory, and that each name has one
// spelling.
func TestDatabases_Names(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	for _, name := range []string{"..%2Fx", "..", ".", "a%2Fb", "a%5Cb", ".hidden", "-flag", "a..b", "a.", "a%00b", "a%0Ab", "a%20b", "%C3%A9", "a%FF", "system", "System", "con", "NUL.txt", "com1", strings.Repeat("x", 129), ""} {
		h.checkProblem(h.do("PUT", "/admin/databases?name="+name, `{}`), 400, "BadRequestException")
		h.checkProblem(h.do("GET", "/topology?name="+name, ""), 400, "BadRequestException")
		h.checkProblem(h.do("GET", "/admin/databases?name="+name, ""), 400, "BadRequestException")
		if name != "." && name != ".." { // the client's library drops these
			a := h.do("GET", "/databases/"+name+"/stats", "")
			h.checkProblem(a, 400, "BadRequestException")
			equal(t, name, a.header.Get("Database-Missing"), "")
		}
		h.checkProblem(h.do("DELETE", "/admin/databases", `{"DatabaseNames":["x`+strings.ReplaceAll(name, "%", "")+`\u0000"],"HardDelete":true}`), 400, "BadRequestException")
	}
	for _, name := range []string{"a", "A-b_c.d", "0", "_x", strings.Repeat("x", 128)} {
		h.create(name)
		h.checkProblem(h.do("PUT", "/admin/databases?name="+strings.ToUpper(name), `{}`), 409, "ConcurrencyException")
		h.want(204, "GET", "/databases/"+strings.ToUpper(name)+"/healthcheck", "")
	}
	entries, err := os.ReadDir(filepath.Join(dir, "databases"))
	if err != nil || len(entries) != 5 {
		t.Errorf("%d directories, %v", len(entries), err)
	}
	outside, err := os.ReadDir(dir)
	if err != nil || len(outside) != 3 {
		t.Errorf("the data directory has %v", outside)
	}
}

// Ensure that databases are created, listed, described and deleted.
func TestDatabases_Administration(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.want(201, "PUT", "/admin/databases?name=Beta&replicationFactor=1&raft-request-id=1", `{"DatabaseName":"Beta","Disabled":false,"Settings":{"Indexing.Auto.SearchEngineType":"Lucene"},"ConflictSolverConfig":null,"Encrypted":false,"DatabaseTopology":null}`, "ETag", "undefined")
	equal(t, "name", a.text(t, "Name"), "Beta")
	equal(t, "nodes", a.text(t, "NodesAddedTo", 0), h.http.URL)
	if index := a.text(t, "RaftCommandIndex"); index == "0" || strings.Contains(index, ".") {
		t.Errorf("index %s", index)
	}
	h.create("alpha")
	equal(t, "names", h.want(200, "GET", "/databases?start=0&pageSize=20&namesOnly=true", "").body, `{"Databases":["alpha","Beta"]}`)
	equal(t, "page", h.want(200, "GET", "/databases?start=1&pageSize=1&namesOnly=true", "").body, `{"Databases":["Beta"]}`)
	equal(t, "one", h.want(200, "GET", "/databases?name=BETA", "").text(t, "Databases", 0, "Name"), "Beta")
	a = h.want(200, "GET", "/admin/databases?name=beta", "")
	equal(t, "record", a.text(t, "DatabaseName")+a.text(t, "DatabaseState")+a.text(t, "LockMode")+a.text(t, "Settings", "Indexing.Auto.SearchEngineType"), "BetaNormalUnlockLucene")
	a = h.do("GET", "/admin/databases?name=gamma", "")
	h.checkProblem(a, 404, "DatabaseDoesNotExistException")
	equal(t, "header", a.header.Get("Database-Missing"), "gamma")
	h.checkProblem(h.do("GET", "/databases/gamma/docs?id=x", ""), 503, "DatabaseDoesNotExistException")

	for _, record := range []string{`{"DatabaseName":"other"}`, `{"DatabaseName":7}`, `[]`, `{`} {
		h.checkProblem(h.do("PUT", "/admin/databases?name=gamma", record), 400, "BadRequestException")
	}
	for _, record := range []string{`{"Encrypted":true}`, `{"Disabled":true}`, `{"DataDirectory":"/etc"}`, `{"Sharding":{}}`} {
		h.checkProblem(h.do("PUT", "/admin/databases?name=gamma", record), 501, "NotSupportedException")
	}
	h.checkProblem(h.do("PUT", "/admin/databases?name=gamma", `{"Settings":{"a":"`+strings.Repeat("x", 1<<20)+`"}}`), 413, "RequestTooLargeException")

	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["gamma"],"HardDelete":true}`)
	h.checkProblem(h.do("DELETE", "/admin/databases", `{"DatabaseNames":["alpha",".."],"HardDelete":true}`), 400, "BadRequestException")
	h.checkProblem(h.do("DELETE", "/admin/databases", `{"DatabaseNames":["alpha"],"HardDelete":true,"FromNodes":["B"]}`), 501, "NotSupportedException")
	h.want(204, "GET", "/databases/alpha/healthcheck", "")
	h.checkProblem(h.do("DELETE", "/admin/databases", `{"DatabaseNames":[]}`), 400, "BadRequestException")
	a = h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["ALPHA","none","beta","alpha"],"HardDelete":true,"FromNodes":null,"TimeToWaitForConfirmation":null}`)
	equal(t, "pending", a.text(t, "PendingDeletes"), "[]")
	equal(t, "names", h.want(200, "GET", "/databases?namesOnly=true", "").body, `{"Databases":[]}`)
}

// Ensure that a database outlives the server, that a hard deletion leaves no file, and that
// the files of a soft one are there for the next database of the name.
func TestDatabases_Life(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("kept")
	h.create("hard")
	h.create("soft")
	for _, name := range []string{"kept", "hard", "soft"} {
		h.want(201, "PUT", "/databases/"+name+"/docs?id=x", `{"n":1}`)
	}
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["hard"],"HardDelete":true}`)
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["soft"],"HardDelete":false}`)
	for _, name := range []string{"hard", "soft"} {
		h.checkProblem(h.do("GET", "/databases/"+name+"/docs?id=x", ""), 503, "DatabaseDoesNotExistException")
	}
	if _, err := os.Stat(filepath.Join(dir, "databases", "hard")); !os.IsNotExist(err) {
		t.Errorf("the files are there: %v", err)
	}
	h.create("hard")
	h.want(404, "GET", "/databases/hard/docs?id=x", "")
	h.stop()

	h = startIn(t, dir)
	h.create("soft")
	h.want(200, "GET", "/databases/soft/docs?id=x", "")
	h.want(200, "GET", "/databases/kept/docs?id=x", "")
	h.want(404, "GET", "/databases/hard/docs?id=x", "")
	h.stop()

	// A directory that has vanished is an error, and no empty database.
	if err := os.RemoveAll(filepath.Join(dir, "databases", "kept")); err != nil {
		t.Fatal(err)
	}
	h = startIn(t, dir)
	h.checkProblem(h.do("GET", "/databases/kept/docs?id=x", ""), 500, "DatabaseLoadFailureException")
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["kept"],"HardDelete":true}`)
	h.create("kept")
}

// Ensure that creations and deletions that a crash has cut short are finished.
func TestDatabases_CutShort(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`)
	h.want(201, "PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"X","Maps":["map('A', u => ({ n: u.n }))"]}]}`)
	h.want(200, "POST", "/databases/a/admin/expiration/config", `{"DeleteFrequencyInSec":60}`)
	h.want(201, "PUT", "/databases/a/admin/configuration/client", `{"MaxNumberOfRequestsPerSession":7}`)
	h.create("b")
	h.stop()
	system, err := jay.Open(filepath.Join(dir, "system"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for id, state := range map[string]string{"databases/a": "deleting", "databases/b": "deleting", "databases/c": "creating"} {
		if _, err := system.Put(t.Context(), id, json.RawMessage(`{"Name":"`+strings.TrimPrefix(id, "databases/")+`","State":"`+state+`"}`), jay.InCollection("Databases")); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(system.Close(), os.RemoveAll(filepath.Join(dir, "databases", "b")), os.MkdirAll(filepath.Join(dir, "deleted", "old", "x"), 0o700)); err != nil {
		t.Fatal(err)
	}

	h = startIn(t, dir)
	h.checkProblem(h.do("GET", "/databases/a/docs?id=x", ""), 503, "DatabaseDoesNotExistException")
	h.checkProblem(h.do("GET", "/databases/b/docs?id=x", ""), 503, "DatabaseDoesNotExistException")
	h.want(404, "GET", "/databases/c/docs?id=x", "")
	equal(t, "names", h.want(200, "GET", "/databases?namesOnly=true", "").body, `{"Databases":["c"]}`)
	for _, sub := range []string{"databases/a", "databases/b", "deleted/old"} {
		if _, err := os.Stat(filepath.Join(dir, sub)); !os.IsNotExist(err) {
			t.Errorf("%s is there: %v", sub, err)
		}
	}
	h.create("a")
	equal(t, "definitions", h.want(200, "GET", "/databases/a/indexes", "").text(t, "Results"), "[]")
	equal(t, "client configuration", h.want(200, "GET", "/databases/a/configuration/client", "").text(t, "Configuration"), nil)
	h.want(404, "GET", "/databases/a/expiration/config", "")
}

// Ensure that a data directory belongs to one server, and a database in it to that
// server.
func TestDatabases_Locked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	if _, err := server.Open(server.Options{Data: dir}); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("got %v, want ErrLocked", err)
	}
	h.create("a")
	h.stop()
	other, err := jay.Open(filepath.Join(dir, "databases", "a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	h = startIn(t, dir)
	h.checkProblem(h.do("GET", "/databases/a/stats", ""), 500, "DatabaseLoadFailureException")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	h.want(200, "GET", "/databases/a/stats", "")
}

// Ensure that idle databases are closed and opened again, and that no more are open than
// may be.
func TestDatabases_Idle(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var mu sync.Mutex
	now := time.Now()
	pass := func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		now = now.Add(d)
	}
	h := startIn(t, dir, func(o *server.Options) {
		o.MaxOpenDatabases = 2
		o.IdleAfter = time.Hour
		o.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return now
		}
	})
	for i := range 4 {
		pass(time.Second)
		h.create(fmt.Sprint("d", i))
		h.want(201, "PUT", fmt.Sprintf("/databases/d%d/docs?id=x", i), `{}`)
	}
	equal(t, "open", h.s.OpenDatabases(), 2)
	for i := range 4 {
		pass(time.Second)
		h.want(200, "GET", fmt.Sprintf("/databases/d%d/docs?id=x", i), "")
	}
	equal(t, "open", h.s.OpenDatabases(), 2)
	pass(time.Hour - time.Second)
	h.s.CloseIdle() // d3 has been idle for less
	equal(t, "open", h.s.OpenDatabases(), 1)
	pass(time.Hour)
	h.s.CloseIdle()
	equal(t, "open", h.s.OpenDatabases(), 0)
	h.want(200, "GET", "/databases/d0/docs?id=x", "")
	equal(t, "open", h.s.OpenDatabases(), 1)
}

// Ensure that databases are bounded.
func TestDatabases_Most(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxDatabases = 1 })
	h.create("a")
	h.checkProblem(h.do("PUT", "/admin/databases?name=b", `{}`), 400, "BadRequestException")
}

// Ensure that databases can be created, used and deleted by many at a time.
func TestDatabases_Concurrent(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxOpenDatabases = 3 })
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			name := fmt.Sprint("d", g%4)
			for i := range 4 {
				for _, request := range [][3]string{
					{"PUT", "/admin/databases?name=" + name, `{}`},
					{"PUT", fmt.Sprintf("/databases/%s/docs?id=x%d", name, i), `{}`},
					{"GET", "/databases/" + name + "/stats", ""},
					{"DELETE", "/admin/databases", `{"DatabaseNames":["` + name + `"],"HardDelete":true}`},
				} {
					switch a := h.do(request[0], request[1], request[2]); a.status {
					case 200, 201, 204, 409, 503, 429:
					case 400:
						if !strings.Contains(a.body, "DatabaseDoesNotExistException") {
							t.Errorf("%v: %d %s", request, a.status, a.body)
						}
					default:
						t.Errorf("%v: %d %s", request, a.status, a.body)
					}
				}
			}
		})
	}
	all.Wait()
}
