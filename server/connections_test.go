package server_test

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/server"
)

// ends waits until the server ends a connection, and returns what it has sent.
func ends(t *testing.T, conn net.Conn) string {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(jaytest.HangGuard))
	text, err := io.ReadAll(conn)
	if e, is := err.(net.Error); is && e.Timeout() {
		t.Errorf("the connection is still open after %q", text)
	}
	return string(text)
}

// askOn sends a request on a connection and returns the status of the reply.
func askOn(t *testing.T, conn net.Conn, method, path string, headers ...string) (status int) {
	t.Helper()
	r, err := http.NewRequest(method, "http://localhost"+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if err := r.Write(conn); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(jaytest.HangGuard))
	reply, err := http.ReadResponse(bufio.NewReader(conn), r)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	defer reply.Body.Close()
	_, _ = io.ReadAll(reply.Body)
	return reply.StatusCode
}

// Ensure that a request that announces a body, which its route does not read and which
// does not come, does not hold its connection.
func TestServe_BodyThatNobodyReads(t *testing.T) {
	t.Parallel()
	h, end := serve(t, func(o *server.Options) { o.Studio = true })
	h.create("a")
	var all sync.WaitGroup
	for _, head := range []string{
		"GET /healthz HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
		"GET /readyz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET /studio/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
		"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
		"GET /databases/a/stats HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
		"GET /databases/a/streams/docs HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n",
		"GET /nothing HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n",
	} {
		conn := h.ask(head)
		all.Go(func() {
			if reply := ends(t, conn); !strings.HasPrefix(reply, "HTTP/1.1 ") {
				t.Errorf("%.30q: got %q", head, reply)
			}
		})
	}
	all.Wait()
	if err := end(); err != nil {
		t.Error(err)
	}
}

// Ensure that an address without credentials has few connections, and that they keep nobody
// with credentials out.
func TestServe_ConnectionsWithoutCredentials(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token, err := server.AccessOf(dir).CreateToken("x", server.Rights{"*": server.AdminRight}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	h, end := serve(t, func(o *server.Options) { o.Data, o.Authenticate, o.MaxConnections = dir, true, 32 })
	known := h.ask("")
	equal(t, "with a token", askOn(t, known, "GET", "/databases", "Authorization", "Bearer "+token), 200)
	var strangers []net.Conn
	for range 64 {
		strangers = append(strangers, h.ask("GET / HT"))
	}
	for _, conn := range strangers[:64-8] {
		equal(t, "sent", ends(t, conn), "")
	}
	equal(t, "a connection with a token", askOn(t, known, "GET", "/databases", "Authorization", "Bearer "+token), 200)
	h.want(200, "GET", "/databases", "", "Authorization", "Bearer "+token)
	h.want(200, "GET", "/healthz", "")
	if err := end(); err != nil { // without waiting for those that have sent no request
		t.Error(err)
	}
}

// Ensure that connections on which nothing happens make room for others.
func TestServe_IdleConnections(t *testing.T) {
	t.Parallel()
	h, end := serve(t, func(o *server.Options) { o.MaxConnections = 4 })
	idle := []net.Conn{h.ask("")} // idle longest: a request ends for the server after its reply has come
	for range 3 {
		conn := h.ask("")
		equal(t, "health", askOn(t, conn, "GET", "/healthz"), 200)
		idle = append(idle, conn)
	}
	more := h.ask("")
	equal(t, "one more", askOn(t, more, "GET", "/databases"), 200)
	equal(t, "the oldest", ends(t, idle[0]), "")
	equal(t, "the newest", askOn(t, idle[3], "GET", "/databases"), 200)
	if err := end(); err != nil {
		t.Error(err)
	}
}

// Ensure that the health can be asked while all connections are in use, and that others
// are told to come again.
func TestServe_HealthUnderLoad(t *testing.T) {
	t.Parallel()
	h, end := serve(t, func(o *server.Options) { o.MaxConnections = 2 })
	h.create("a")
	h.http.Client().CloseIdleConnections()
	var feeds []net.Conn
	for range 2 {
		conn := h.ask("GET /jay/v1/databases/a/changes HTTP/1.1\r\nHost: localhost\r\n\r\n")
		status := make([]byte, len("HTTP/1.1 200"))
		if _, err := io.ReadFull(conn, status); err != nil || string(status) != "HTTP/1.1 200" {
			t.Fatalf("the feed: %q, %v", status, err)
		}
		feeds = append(feeds, conn)
	}
	for range 100 { // more than there are spare ones
		conn := h.ask("")
		equal(t, "health", askOn(t, conn, "GET", "/healthz"), 200)
	}
	equal(t, "another request", askOn(t, h.ask(""), "GET", "/databases"), 429)
	feeds[0].Close()
	await(t, "a place", func() bool { return askOn(t, h.ask(""), "GET", "/databases") == 200 })
	if err := end(); err != nil {
		t.Error(err)
	}
}

// Ensure that one sender cannot have all connections.
func TestServe_ConnectionsOfOneSender(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := make(map[string]string)
	for _, name := range []string{"greedy", "other"} {
		var err error
		if tokens[name], err = server.AccessOf(dir).CreateToken(name, server.Rights{"*": server.ReadRight}, time.Time{}); err != nil {
			t.Fatal(err)
		}
	}
	h, end := serve(t, func(o *server.Options) { o.Data, o.Authenticate, o.MaxConnections = dir, true, 8 })
	status := func(name string) int {
		return askOn(t, h.ask(""), "GET", "/databases", "Authorization", "Bearer "+tokens[name])
	}
	for i := range 6 {
		want := 200
		if i >= 4 {
			want = 429
		}
		equal(t, "a connection", status("greedy"), want)
	}
	for range 4 {
		equal(t, "of another", status("other"), 200)
	}
	if err := end(); err != nil {
		t.Error(err)
	}
}
