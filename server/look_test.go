package server_test

import (
	"bufio"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// lookConn is a connection that goes on after a reply, with what was read of it already.
type lookConn struct {
	net.Conn
	in *bufio.Reader
}

func (c lookConn) Read(p []byte) (int, error) { return c.in.Read(p) }

// upgrade asks a server to let it look into a database, and returns the status, the reply's headers, and the connection, which the caller
// closes. base is the path of the API.
func upgrade(address, base, database string, headers ...string) (int, http.Header, net.Conn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return 0, nil, nil, err
	}
	r, err := http.NewRequest("GET", "http://"+address+base+"/jay/v1/databases/"+database+"/look", nil)
	if err == nil {
		for i := 0; i+1 < len(headers); i += 2 {
			r.Header.Set(headers[i], headers[i+1])
		}
		err = r.Write(conn)
	}
	in := bufio.NewReader(conn)
	var reply *http.Response
	if err == nil {
		reply, err = http.ReadResponse(in, r)
	}
	if err != nil {
		return 0, nil, nil, errors.Join(err, conn.Close())
	}
	return reply.StatusCode, reply.Header, lookConn{conn, in}, nil
}

// upgrade asks to look into a database. The connection is closed at the end of the test.
func (h *host) upgrade(database string, headers ...string) (int, http.Header, net.Conn) {
	h.t.Helper()
	status, header, conn, err := upgrade(h.http.Listener.Addr().String(), h.base, database, headers...)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = conn.Close() })
	return status, header, conn
}

// asksForLook are the headers of a request to look into a database.
var asksForLook = []string{"Connection", "keep-alive, Upgrade", "Upgrade", "jay-look"}

// look looks into a database.
func (h *host) look(database string, headers ...string) *jay.DB {
	h.t.Helper()
	status, _, conn := h.upgrade(database, append(headers, asksForLook...)...)
	if status != 101 {
		h.t.Fatalf("look into %s: status %d", database, status)
	}
	db, err := jay.LookThrough(conn, database, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { _ = db.Close() })
	return db
}

// leftAlone waits until a database that was looked into is not answered any more.
func leftAlone(t *testing.T, what string, db *jay.DB) {
	t.Helper()
	await(t, what, func() bool {
		_, err := db.Get(t.Context(), "users/1")
		return errors.Is(err, jay.ErrUnavailable)
	})
}

// Ensure that those with the right to read look into a database as the server has it, and change nothing; that others, pages of other sites and
// requests of another kind are refused; and that a look ends with the right, with the database and with the server.
func TestLook(t *testing.T) {
	t.Parallel()
	h, tokens, now := guarded(t)
	as := func(name string) []string { return []string{"Authorization", "Bearer " + tokens[name]} }
	h.want(201, "PUT", "/databases/a/docs?id=users/1", `{"Name":"Ann"}`, as("root")...)
	h.want(201, "PUT", "/databases/b/docs?id=users/1", `{"Name":"Bob"}`, as("root")...)
	for _, row := range []struct {
		what, database string
		headers        []string
		want           int
	}{
		{"no token", "a", asksForLook, 401},
		{"another database", "b", append(as("reader"), asksForLook...), 403},
		{"no database", "none", append(as("root"), asksForLook...), 503},
		{"another site", "a", append(append(as("reader"), asksForLook...), "Origin", "http://evil.example"), 403},
		{"no other protocol", "a", as("reader"), 426},
		{"another protocol", "a", append(as("reader"), "Connection", "Upgrade", "Upgrade", "websocket"), 426},
		{"no Connection", "a", append(as("reader"), "Upgrade", "jay-look"), 426},
	} {
		status, header, _ := h.upgrade(row.database, row.headers...)
		if status != row.want || status == 426 && header.Get("Upgrade") != "jay-look" {
			t.Errorf("%s: status %d, %v, want %d", row.what, status, header, row.want)
		}
	}

	db, of := h.look("a", as("reader")...), h.look("b", as("root")...)
	doc, err := db.Get(t.Context(), "users/1")
	if err != nil || !strings.Contains(string(doc.Body()), "Ann") {
		t.Fatalf("got %v, %v", doc, err)
	}
	h.want(201, "PUT", "/databases/a/docs?id=users/2", `{}`, as("root")...)
	if found, err := db.Exists(t.Context(), "users/2"); !found || err != nil {
		t.Errorf("a new document: %v, %v", found, err)
	}
	if _, err := db.Put(t.Context(), "users/3", []byte(`{}`)); !errors.Is(err, jay.ErrReadOnly) {
		t.Errorf("a write: %v", err)
	}
	for range 3 {
		if report, err := db.Verify(t.Context(), nil); err != nil || report.Found > 0 || report.Documents != 2 || report.Files == 0 {
			t.Errorf("a check: %+v, %v", report, err)
		}
	}

	if err := server.AccessOf(h.dir).Withdraw("reader"); err != nil {
		t.Fatal(err)
	}
	now.advance(2 * time.Second)
	h.s.EndStreams()
	leftAlone(t, "the right has ended", db)
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["b"],"HardDelete":true}`, as("root")...)
	leftAlone(t, "the database was deleted", of)
	last := h.look("a", as("root")...)
	if err := h.s.Close(); err != nil {
		t.Error(err)
	}
	leftAlone(t, "the server is closed", last)
}

// Ensure that a program's mounted databases are looked into below its path, by those whom its hook lets read.
func TestLook_Mounted(t *testing.T) {
	t.Parallel()
	h := mountAt(t, "/admin/db", byHeader)
	h.want(201, "PUT", "/databases/a/docs?id=users/1", `{}`, "User", "root")
	if found, err := h.look("a", "User", "reader").Exists(t.Context(), "users/1"); !found || err != nil {
		t.Errorf("got %v, %v", found, err)
	}
	if status, _, _ := h.upgrade("b", append(asksForLook, "User", "reader")...); status != 403 {
		t.Errorf("another database: status %d", status)
	}
}

// Ensure that large values that are sent to those who look count as memory of the server.
func TestLook_Memory(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.s.BoundRequests(32<<20, 0)
	h.create("db")
	h.want(201, "PUT", "/databases/db/docs?id=large", `{"t":"`+strings.Repeat("x", 2<<20)+`"}`)
	h.want(201, "PUT", "/databases/db/docs?id=small", `{}`)
	var all []*jay.DB
	refused := 0
	for range 6 {
		status, _, conn := h.upgrade("db", asksForLook...)
		if status == 429 {
			refused++
			continue
		}
		db, err := jay.LookThrough(conn, "db", nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, db)
	}
	for _, db := range all {
		if _, err := db.Get(t.Context(), "large"); err != nil {
			refused++
		}
		if _, err := db.Get(t.Context(), "small"); err != nil {
			t.Errorf("a small document: %v", err)
		}
	}
	if refused == 0 || refused == 6 {
		t.Errorf("%d of 6 were refused", refused)
	}
	for _, db := range all {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	}
	await(t, "the memory", func() bool {
		status, _, conn := h.upgrade("db", asksForLook...)
		_ = conn.Close()
		return status == 101
	})
}
