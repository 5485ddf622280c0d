package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// Ensure that a deletion whose files cannot be removed says so, keeps its name, is tried
// again by the next start, which it does not stop, and in the background.
func TestDatabases_DeletionThatFails(t *testing.T) {
	dir, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "elsewhere")
	h := startIn(t, dir)
	h.create("kept")
	h.create("linked")
	h.want(201, "PUT", "/databases/kept/docs?id=x", `{}`)
	h.want(201, "PUT", "/databases/linked/docs?id=x", `{}`)
	h.stop()
	link := filepath.Join(dir, "databases", "linked")
	if err := os.Rename(link, elsewhere); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(elsewhere, link); err != nil {
		t.Skip(err)
	}

	now := time.Now()
	clock := func(o *server.Options) { o.Now = func() time.Time { return now } }
	allow := server.RefuseRemovals()
	defer func() { allow() }()
	h = startIn(t, dir, clock)
	h.want(200, "GET", "/databases/linked/docs?id=x", "")
	a := h.do("DELETE", "/admin/databases", `{"DatabaseNames":["linked"],"HardDelete":true}`)
	h.checkProblem(a, 500, "InternalServerErrorException")
	if !strings.Contains(a.body, "not all of its files could be removed") {
		t.Error(a.body)
	}
	h.checkProblem(h.do("PUT", "/admin/databases?name=linked", `{}`), 409, "ConcurrencyException")
	equal(t, "names", h.want(200, "GET", "/databases?namesOnly=true", "").body, `{"Databases":["kept"]}`)
	h.stop()

	if err := os.MkdirAll(filepath.Join(dir, "deleted", "left", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	h = startIn(t, dir, clock)
	h.want(200, "GET", "/databases/kept/docs?id=x", "")
	h.checkProblem(h.do("GET", "/databases/linked/docs?id=x", ""), 503, "DatabaseDoesNotExistException")
	allow()
	h.s.FinishDeletions() // too early
	h.checkProblem(h.do("PUT", "/admin/databases?name=linked", `{}`), 409, "ConcurrencyException")
	now = now.Add(time.Minute)
	h.s.FinishDeletions()
	for _, path := range []string{elsewhere, filepath.Join(dir, "deleted")} {
		if left, err := os.ReadDir(path); err != nil || len(left) > 0 {
			t.Errorf("%s: %v, %v", path, left, err)
		}
	}
	h.create("linked")
	h.want(404, "GET", "/databases/linked/docs?id=x", "")
}

// Ensure that a hard deletion removes the files that a symbolic link leads to, and refuses
// to empty a directory that is no database.
func TestDatabases_DeletionOfLink(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	for _, name := range []string{"linked", "astray"} {
		h.create(name)
	}
	h.stop()
	targets := map[string]string{}
	for _, name := range []string{"linked", "astray"} {
		link, target := filepath.Join(dir, "databases", name), filepath.Join(t.TempDir(), name)
		if err := os.Rename(link, target); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, link); err != nil {
			t.Skip(err)
		}
		targets[name] = target
	}
	if err := os.Remove(filepath.Join(targets["astray"], "JAY")); err != nil {
		t.Fatal(err)
	}
	h = startIn(t, dir)
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["linked"],"HardDelete":true}`)
	if left, err := os.ReadDir(targets["linked"]); err != nil || len(left) > 0 {
		t.Errorf("%v, %v: the files are there", left, err)
	}
	if _, err := os.Lstat(filepath.Join(dir, "databases", "linked")); !os.IsNotExist(err) {
		t.Errorf("the link is there: %v", err)
	}
	h.checkProblem(h.do("DELETE", "/admin/databases", `{"DatabaseNames":["astray"],"HardDelete":true}`), 500, "InternalServerErrorException")
	if left, err := os.ReadDir(targets["astray"]); err != nil || len(left) < 3 {
		t.Errorf("%v, %v: files of another program are gone", left, err)
	}
}

// Ensure that a server whose databases are only read deletes none.
func TestDatabases_DeletionReadOnly(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("kept")
	h.stop()
	h = startIn(t, dir, func(o *server.Options) { o.Database.ReadOnly = true })
	for _, hard := range []string{"true", "false"} {
		h.checkProblem(h.do("DELETE", "/admin/databases", `{"DatabaseNames":["kept"],"HardDelete":`+hard+`}`), 403, "AuthorizationException")
	}
	h.want(200, "GET", "/databases/kept/stats", "")
}

// Ensure that a record that cannot be read stops its database, and not the server.
func TestDatabases_RecordThatCannotBeRead(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.create("b")
	h.stop()
	system, err := jay.Open(filepath.Join(dir, "system"), nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := system.Put(t.Context(), "databases/a", []byte(`{"Name":7}`), jay.InCollection("Databases")); err != nil {
		t.Fatal(err)
	}
	if err := system.Close(); err != nil {
		t.Fatal(err)
	}
	h = startIn(t, dir)
	h.want(201, "PUT", "/databases/b/docs?id=x", `{}`)
	h.checkProblem(h.do("GET", "/databases/a/docs?id=x", ""), 500, "DatabaseLoadFailureException")
	h.checkProblem(h.do("PUT", "/admin/databases?name=a", `{}`), 409, "ConcurrencyException")
}

// Ensure that databases that are only watched make place for one that is used, that a
// watcher pushes none out, and that the refusal names the limit.
func TestDatabases_WatchedMakePlace(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxOpenDatabases = 2 })
	for i := range 4 {
		h.create(fmt.Sprint("d", i))
	}
	watch := func(name string) (*websocket.Conn, error) {
		conn, _, err := websocket.Dial(t.Context(), h.http.URL+"/databases/"+name+"/changes", nil)
		if err == nil {
			t.Cleanup(func() { conn.CloseNow() })
		}
		return conn, err
	}
	first, err := watch("d0")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := watch("d1"); err != nil {
		t.Fatal(err)
	}
	if _, err := watch("d2"); err == nil {
		t.Error("a socket has pushed another one out")
	}
	left := make(chan error, 1)
	go func() {
		_, _, err := first.Read(t.Context())
		for err == nil { // the first message
			_, _, err = first.Read(t.Context())
		}
		left <- err
	}()
	h.want(201, "PUT", "/databases/d2/docs?id=x", `{}`)
	if err := <-left; websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("the socket of the database used least recently: %v", err)
	}
	if _, err := watch("d1"); err != nil {
		t.Errorf("the other one has no place any more: %v", err)
	}
	h.want(201, "PUT", "/databases/d1/docs?id=x", `{}`)
	finish := h.hang("/databases/d2/attachments?id=x&name=n")
	finish1 := h.hang("/databases/d1/attachments?id=x&name=n")
	await(t, "both uploads have begun", func() bool { return h.s.UsersOf("d2") == 1 && h.s.UsersOf("d1") == 3 })
	a := h.do("GET", "/databases/d3/stats", "")
	h.checkProblem(a, 429, "TooManyRequestsException")
	if !strings.Contains(a.body, "MaxOpenDatabases") {
		t.Error(a.body)
	}
	finish()
	finish1()
	h.want(200, "GET", "/databases/d3/stats", "")
}
