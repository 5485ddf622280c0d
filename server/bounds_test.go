package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/server"
)

func pack(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Ensure that a body is bounded however it comes, and that a refused one stores nothing
// and takes no memory afterwards.
func TestBounds_Bodies(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxBodyBytes = 1 << 20 })
	h.create("a")
	large := `{"a":"` + strings.Repeat("x", 1<<20) + `"}`
	put := "/databases/a/docs?id=x"
	h.checkProblem(h.do("PUT", put, large), 413, "RequestTooLargeException")
	h.checkProblem(h.do("PUT", put, pack(t, large), "Content-Encoding", "gzip"), 413, "RequestTooLargeException")
	h.checkProblem(h.do("PUT", put, pack(t, strings.Repeat(" ", 1<<30>>4)), "Content-Encoding", "gzip"), 413, "RequestTooLargeException")
	h.checkProblem(h.do("PUT", put, `{}`, "Content-Encoding", "gzip"), 400, "BadRequestException")
	packed := pack(t, `{"a":1}`)
	h.checkProblem(h.do("PUT", put, packed[:len(packed)-3], "Content-Encoding", "gzip"), 400, "BadRequestException")
	h.checkProblem(h.do("PUT", put, `{}`, "Content-Encoding", "br"), 415, "UnsupportedContentTypeException")
	h.checkProblem(h.do("POST", "/databases/a/bulk_docs", `--x`, "Content-Encoding", "br", "Content-Type", "multipart/mixed; boundary=x"), 415, "UnsupportedContentTypeException")
	for _, kind := range []string{"text/xml", "multipart/form-data; boundary=x", "application/json; charset=latin1", "/", "application/octet-stream"} {
		h.checkProblem(h.do("PUT", put, `{}`, "Content-Type", kind), 415, "UnsupportedContentTypeException")
	}
	for _, body := range []string{``, ` `, `{`, `7`, `[]`, `null`, `{"a":1}{}`, `{"a":1,"a":2}`, "{\"a\":\"\xff\"}", `{"a":01}`, `{"@metadata":7}`, `{"@metadata":{"@expires":7}}`, `{"@metadata":{"@expires":"soon"}}`, `{"@metadata":{"@collection":7}}`} {
		h.checkProblem(h.do("PUT", put, body), 400, "BadRequestException")
	}
	h.want(404, "GET", put, "")
	h.want(201, "PUT", put, packed, "Content-Encoding", "gzip", "Content-Type", "application/json; charset=UTF-8")
	equal(t, "body", h.want(200, "GET", put, "").text(t, "Results", 0, "a"), 1)
	if requests, taken := h.s.CheckLoad(); requests != 0 || taken != 0 {
		t.Errorf("%d requests, %d bytes are left", requests, taken)
	}
}

// raw sends bytes to the server, and nothing more if cut is set, and returns what comes
// back until the connection ends.
func (h *host) raw(text string, cut bool) string {
	h.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.http.URL, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, text); err != nil {
		h.t.Fatal(err)
	}
	if cut {
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			h.t.Fatal(err)
		}
	}
	reply, _ := io.ReadAll(conn) // the server may cut the connection
	return string(reply)
}

// Ensure that a body that is cut off stores nothing.
func TestBounds_Truncated(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	const head = "PUT /databases/a/docs?id=x HTTP/1.1\r\nHost: localhost\r\n"
	for _, rest := range []string{
		"Content-Length: 20\r\n\r\n{\"a\":1}",
		"Transfer-Encoding: chunked\r\n\r\n7\r\n{\"a\":1}\r\n",
		"Transfer-Encoding: chunked\r\n\r\n20\r\n{\"a\":1}",
		"Transfer-Encoding: chunked\r\n\r\nzz\r\n{\"a\":1}\r\n0\r\n\r\n",
	} {
		if reply := h.raw(head+rest, true); !strings.HasPrefix(reply, "HTTP/1.1 400 ") || !strings.Contains(reply, "BadRequestException") {
			t.Errorf("%q: %q", rest, reply)
		}
	}
	h.want(404, "GET", "/databases/a/docs?id=x", "")
	if reply := h.raw(head+"Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n7\r\n{\"a\":1}\r\n0\r\n\r\n", false); !strings.HasPrefix(reply, "HTTP/1.1 201 ") {
		t.Errorf("got %q", reply)
	}
}

// Ensure that a body that comes too slowly is refused.
func TestBounds_SlowBody(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.stop()
	h = startIn(t, dir, func(o *server.Options) { o.GraceTimeout = 400 * time.Millisecond })
	conn := h.ask("PUT /databases/a/docs?id=x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n\r\n{")
	reply, err := io.ReadAll(conn) // a busy machine may be too slow for the reply, too
	if err != nil || len(reply) > 0 && (!strings.HasPrefix(string(reply), "HTTP/1.1 400 ") || !strings.Contains(string(reply), "too slowly")) {
		t.Errorf("got %q, %v", reply, err)
	}
	h.stop()
	h = startIn(t, dir)
	h.want(404, "GET", "/databases/a/docs?id=x", "")
}

// Ensure that a reply is bounded, that a stream is not, and that large replies are
// compressed for those who take it.
func TestBounds_Replies(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxReplyBytes = 64 << 10 })
	h.create("a")
	for i := range 8 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=x/%d", i), `{"a":"`+strings.Repeat("y", 10<<10)+`"}`)
	}
	h.checkProblem(h.do("GET", "/databases/a/docs?startsWith=x/", ""), 413, "RequestTooLargeException")
	h.checkProblem(h.do("GET", "/databases/a/docs", ""), 413, "RequestTooLargeException")
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from @all_docs"}`), 413, "RequestTooLargeException")
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from @all_docs select a"}`), 413, "RequestTooLargeException")
	equal(t, "page", len(h.want(200, "GET", "/databases/a/docs?startsWith=x/&pageSize=4", "").json(t, "Results").([]any)), 4)
	equal(t, "stream", len(h.want(200, "GET", "/databases/a/streams/docs", "").json(t, "Results").([]any)), 8)

	whole := h.want(200, "GET", "/databases/a/docs?id=x/1", "", "Accept-Encoding", "identity")
	equal(t, "vary", whole.header.Get("Vary"), "Accept-Encoding")
	for _, path := range []string{"/databases/a/docs?id=x/1", "/databases/a/streams/docs?startsWith=x/1"} {
		whole := h.want(200, "GET", path, "", "Accept-Encoding", "identity")
		for _, accept := range []string{"gzip", "gzip, deflate", "br;q=1.0, GZIP;q=0.5"} {
			a := h.want(200, "GET", path, "", "Accept-Encoding", accept)
			equal(t, "encoding", a.header.Get("Content-Encoding"), "gzip")
			r, err := gzip.NewReader(strings.NewReader(a.body))
			if err != nil {
				t.Fatal(err)
			}
			text, err := io.ReadAll(r)
			if err != nil || string(text) != whole.body {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		}
		for _, accept := range []string{"gzip;q=0", "deflate", "x-gzipped"} {
			equal(t, accept, h.want(200, "GET", path, "", "Accept-Encoding", accept).body, whole.body)
		}
	}
}

// Ensure that the memory of bodies is bounded over all requests.
func TestBounds_Memory(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.s.BoundRequests(256<<10, 1<<20)
	h.create("a")
	a := h.do("PUT", "/databases/a/docs?id=x", `{"a":"`+strings.Repeat("x", 300<<10)+`"}`)
	h.checkProblem(a, 429, "TooManyRequestsException")
	equal(t, "retry", a.header.Get("Retry-After"), "1")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{"a":"`+strings.Repeat("x", 50<<10)+`"}`)
	h.want(201, "PUT", "/databases/a/docs?id=y", `{}`)
	if _, taken := h.s.CheckLoad(); taken != 0 {
		t.Errorf("%d bytes are left", taken)
	}
}

// Ensure that a sender whose bodies do not end cannot hold the memory of all: the requests
// of others go on, and its own are refused.
func TestBounds_Memory_OneSender(t *testing.T) {
	t.Parallel()
	h, tokens, _ := guarded(t)
	h.s.BoundRequests(1<<20, 0)
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`, "Authorization", "Bearer "+tokens["writer"])
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, `{"Query":"`+strings.Repeat(" ", 100<<10)); err != nil {
		t.Fatal(err)
	}
	if err := w.Flush(); err != nil { // without the end
		t.Fatal(err)
	}
	for range 16 {
		conn := h.ask(fmt.Sprintf("POST /databases/a/queries HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", tokens["reader"], b.Len()+100, b.String()))
		defer conn.Close()
	}
	await(t, "the sender's share", func() bool { _, taken := h.s.CheckLoad(); return taken >= 384<<10 })
	h.want(200, "GET", "/databases/a/docs?id=x", "", "Authorization", "Bearer "+tokens["writer"])
	h.want(201, "PUT", "/databases/a/docs?id=x", `{"a":1}`, "Authorization", "Bearer "+tokens["writer"])
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"`+strings.Repeat(" ", 200<<10)+`"}`, "Authorization", "Bearer "+tokens["reader"]), 429, "TooManyRequestsException")
}

// Ensure that a request that alone needs more than a sender may have is refused as too
// large, as trying again is of no use.
func TestBounds_Memory_NeverFits(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.s.BoundRequests(256<<10, 0)
	h.create("a")
	a := h.do("PUT", "/databases/a/docs?id=x", `{"a":"`+strings.Repeat("x", 300<<10)+`"}`)
	h.checkProblem(a, 413, "RequestTooLargeException")
	equal(t, "retry", a.header.Get("Retry-After"), "")
}

// Ensure that a body without documents is bounded more tightly, and that wrong or too many
// elements of a list are refused before any is decoded.
func TestBounds_OtherBodies(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.create("a")
	h.checkProblem(h.do("POST", "/databases/a/queries", pack(t, `{"Query":"from X`+strings.Repeat(" ", 17<<20)+`"}`), "Content-Encoding", "gzip"), 413, "RequestTooLargeException")
	many := func(unit string, n int) string { return strings.TrimSuffix(strings.Repeat(unit+",", n), ",") }
	for _, test := range []struct {
		path, body string
		status     int
		message    string
	}{
		{"bulk_docs", `{"Commands":[{},0]}`, 400, "element 1 of Commands is no object"},
		{"bulk_docs", `{"COMMANDS":[null]}`, 400, "element 0 of Commands is no object"},
		{"bulk_docs", `{"Commands":[` + many("{}", 100_001) + `]}`, 413, "Commands has more than 100000 elements"},
		{"multi_get", `{"Request\u0073":[` + many("{}", 1025) + `]}`, 413, "Requests has more than 1024 elements"},
		{"multi_get", `{"Requests":[[]]}`, 400, "element 0 of Requests is no object"},
		{"docs", `{"Ids":[0]}`, 400, "element 0 of Ids is no text"},
		{"attachments/bulk", `{"Attachments":[` + many("{}", 1025) + `]}`, 400, "Attachments has more than 1024 elements"},
		{"admin/revisions/delete", `{"DocumentIds":[` + many(`"x"`, 1025) + `]}`, 400, "DocumentIds has more than 1024 elements"},
		{"multi_get", `{"Requests":[{]}`, 400, "invalid character"},
		{"multi_get", `{"Requests":[{}}`, 400, "invalid character"},
	} {
		a := h.do("POST", "/databases/a/"+test.path, test.body)
		if a.status != test.status || !strings.Contains(a.body, test.message) {
			t.Errorf("%s %.40s: %d %.200s, want %d %s", test.path, test.body, a.status, a.body, test.status, test.message)
		}
	}
}

// await waits until a condition holds.
func await(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: it did not happen", what)
		}
	}
}

// hang sends a request whose body waits for finish, which returns the reply.
func (h *host) hang(path string) (finish func() answer) {
	h.t.Helper()
	body, more := io.Pipe()
	r, err := http.NewRequest("PUT", h.http.URL+path, body)
	if err != nil {
		h.t.Fatal(err)
	}
	replies := make(chan answer, 1)
	go func() {
		reply, err := h.http.Client().Do(r)
		if err != nil {
			replies <- answer{body: err.Error()}
			return
		}
		defer reply.Body.Close()
		text, _ := io.ReadAll(reply.Body)
		replies <- answer{reply.StatusCode, reply.Header, string(text)}
	}()
	return func() answer {
		_, _ = io.WriteString(more, `{}`)
		_ = more.Close()
		return <-replies
	}
}

// Ensure that requests beyond the bound wait, and are refused with 429 after a time, but
// that the server's health can be asked.
func TestBounds_Requests(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxRequests, o.QueueTimeout = 1, time.Nanosecond })
	h.create("a")
	leave := h.s.HoldPlace("")
	a := h.do("GET", "/databases/a/docs?id=x", "")
	h.checkProblem(a, 429, "TooManyRequestsException")
	equal(t, "retry", a.header.Get("Retry-After"), "1")
	h.want(200, "GET", "/healthz", "")
	h.want(200, "GET", "/readyz", "")
	leave()
	h.want(404, "GET", "/databases/a/docs?id=x", "")
}

// Ensure that a client whose body is long in coming holds no place of others.
func TestBounds_PlaceBeforeBody(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxRequests, o.QueueTimeout = 1, time.Nanosecond })
	h.create("a")
	finish := h.hang("/databases/a/docs?id=slow")
	await(t, "the request", func() bool { _, bytes := h.s.CheckLoad(); return bytes > 0 })
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`)
	equal(t, "the slow one", finish().status, 201)
}

// Ensure that URLs and their parameters are bounded.
func TestBounds_URL(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.checkProblem(h.do("GET", "/databases/a/docs?"+strings.Repeat("id=x&", 4097), ""), 400, "BadRequestException")
	h.checkProblem(h.do("GET", "/databases/a/docs?id=x"+strings.Repeat("&include=x", 257), ""), 400, "BadRequestException")
	equal(t, "results", len(h.want(200, "GET", "/databases/a/docs?"+strings.Repeat("id=x&", 4096), "").json(t, "Results").([]any)), 4096)
}

// Ensure that pages of other sites are refused, by whatever the browser says of them.
func TestGuard(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.Hosts = []string{"jay.example"} })
	h.create("a")
	_, port, _ := net.SplitHostPort(strings.TrimPrefix(h.http.URL, "http://"))
	for _, allowed := range []string{"localhost", "LOCALHOST:1", "127.0.0.1", "127.9.9.9:80", "[::1]", "[::1]:80", "jay.example", "Jay.Example:8080", "[::ffff:127.0.0.1]:1"} {
		h.want(204, "GET", "/databases/a/healthcheck", "", "Host", allowed)
	}
	for _, refused := range []string{"evil.example", "localhost.evil.example", "127.0.0.1.evil.example", "10.0.0.1", "0.0.0.0", "[fe80::1]:80", "x.jay.example", "127.1", "localhost."} {
		h.checkProblem(h.do("GET", "/databases/a/healthcheck", "", "Host", refused), 403, "AuthorizationException")
		h.checkProblem(h.do("GET", "/nothing", "", "Host", refused), 403, "AuthorizationException")
	}
	for _, headers := range [][]string{
		{"Origin", "http://evil.example"}, {"Origin", "null"}, {"Origin", "https://127.0.0.1"}, {"Origin", "http://127.0.0.1:1"}, {"Origin", "file://127.0.0.1:" + port},
		{"Origin", "://"}, {"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
	} {
		h.checkProblem(h.do("PUT", "/databases/a/docs?id=x", `{}`, headers...), 403, "AuthorizationException")
		h.checkProblem(h.do("GET", "/databases/a/hilo/next?tag=x", "", headers...), 403, "AuthorizationException")
	}
	h.want(404, "GET", "/databases/a/docs?id=x", "")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`, "Origin", h.http.URL)
	for _, site := range []string{"same-origin", "none"} {
		h.want(200, "GET", "/databases/a/docs?id=x", "", "Sec-Fetch-Site", site)
	}
}

// Ensure that an address that others can reach is refused, unless the option says so.
func TestServe_Addresses(t *testing.T) {
	t.Parallel()
	for _, anyone := range []bool{false, true} {
		s, err := server.Open(server.Options{Data: t.TempDir(), AnyoneMayReadAndWrite: anyone})
		if err != nil {
			t.Fatal(err)
		}
		l, err := net.Listen("tcp", ":0")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Serve(ctx, l); errors.Is(err, jay.ErrOption) == anyone {
			t.Errorf("anyone %v: got %v", anyone, err)
		}
	}
	for _, o := range []server.Options{{}, {Data: "x", MaxRequests: -1}, {Data: "x", GraceTimeout: -1}} {
		if _, err := server.Open(o); !errors.Is(err, jay.ErrOption) {
			t.Errorf("got %v, want ErrOption", err)
		}
	}
}

// serve runs Serve on a new data directory. The result of end is that of Serve.
func serve(t *testing.T, change func(o *server.Options)) (h *host, end func() error) {
	t.Helper()
	o := server.Options{Data: t.TempDir()}
	change(&o)
	s, err := server.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx, l) }()
	t.Cleanup(cancel)
	// The test server only lends its client and its URL.
	lender := httptest.NewUnstartedServer(nil)
	lender.Start()
	t.Cleanup(lender.Close)
	lender.URL = "http://" + l.Addr().String()
	return &host{t: t, dir: o.Data, s: s, http: lender}, func() error {
		cancel()
		return <-ended
	}
}

// Ensure that the end of Serve lets requests finish, and accepts no more.
func TestServe_Shutdown(t *testing.T) {
	t.Parallel()
	h, end := serve(t, func(o *server.Options) {})
	h.create("a")
	finish := h.hang("/databases/a/docs?id=slow")
	await(t, "the request", func() bool { _, bytes := h.s.CheckLoad(); return bytes > 0 })
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	await(t, "the refusal", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.http.URL, "http://"))
		if err == nil {
			conn.Close() // Shutdown waits for connections that have sent nothing
		}
		return err != nil
	})
	if a := finish(); a.status != 201 {
		t.Errorf("the request under way: %d %s", a.status, a.body)
	}
	if err := <-ended; err != nil {
		t.Errorf("got %v", err)
	}
	w := httptest.NewRecorder()
	h.s.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/databases/a/docs?id=slow", nil))
	h.checkProblem(answer{w.Code, w.Header(), w.Body.String()}, 503, "ServerShuttingDownException")
	w = httptest.NewRecorder()
	h.s.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/readyz", nil))
	equal(t, "readyz", w.Code, 503)
}

// Ensure that requests that do not finish in time are cut short.
func TestServe_Shutdown_Hangs(t *testing.T) {
	t.Parallel()
	h, end := serve(t, func(o *server.Options) { o.ShutdownTimeout = 10 * time.Millisecond })
	h.create("a")
	h.hang("/databases/a/docs?id=slow")
	await(t, "the request", func() bool { _, bytes := h.s.CheckLoad(); return bytes > 0 })
	if err := end(); err != nil {
		t.Errorf("got %v", err)
	}
}

// Ensure that headers are bounded, and a client that sends none is cut off.
func TestServe_Headers(t *testing.T) {
	t.Parallel()
	h, end := serve(t, func(o *server.Options) {
		o.MaxHeaderBytes, o.HeaderTimeout, o.MaxConnections = 8<<10, 100*time.Millisecond, 4
	})
	// On a busy machine the test's own requests may be too late, too.
	await(t, "the creation", func() bool {
		a, err := h.try("PUT", "/admin/databases?name=a", "{}")
		return err == nil && (a.status == 201 || a.status == 409)
	})
	for _, bomb := range [][]string{{"/databases/a/docs?id=x", strings.Repeat("x", 64<<10)}, {"/databases/a/docs?id=" + strings.Repeat("x", 64<<10), "x"}} {
		// The server may have cut the connection before its reply was read.
		if a, err := h.try("GET", bomb[0], "", "X-Bomb", bomb[1]); err == nil && a.status != 431 {
			t.Errorf("status %d, want 431", a.status)
		}
	}
	var idle []net.Conn
	for range 8 { // more than the connections that there may be
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.http.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, conn)
		if _, err := io.WriteString(conn, "GET / HT"); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "a reply", func() bool {
		a, err := h.try("GET", "/databases/a/healthcheck", "")
		return err == nil && a.status == 204
	})
	for _, conn := range idle {
		conn.Close()
	}
	if err := end(); err != nil {
		t.Errorf("got %v", err)
	}
}

// largeDocuments stores 32 MiB, more than a connection takes without a reader.
func (h *host) largeDocuments() {
	h.t.Helper()
	h.create("a")
	large := `{"a":"` + strings.Repeat("x", 4<<20) + `"}`
	for i := range 8 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=%d", i), large)
	}
}

// watcher signals when the log has a message.
type watcher struct {
	slog.Handler
	message string
	seen    chan<- struct{}
}

// Enabled implements slog.Handler.
func (w watcher) Enabled(context.Context, slog.Level) bool { return true }

// Handle implements slog.Handler.
func (w watcher) Handle(_ context.Context, r slog.Record) error {
	if strings.Contains(r.Message, w.message) {
		select {
		case w.seen <- struct{}{}:
		default:
		}
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (w watcher) WithAttrs([]slog.Attr) slog.Handler { return w }

// WithGroup implements slog.Handler.
func (w watcher) WithGroup(string) slog.Handler { return w }

// openStream asks for a stream that is not read but for its first bytes: it runs.
func (h *host) openStream() net.Conn {
	h.t.Helper()
	conn := h.ask("GET /databases/a/streams/docs HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
	status := make([]byte, len("HTTP/1.1 200"))
	if _, err := io.ReadFull(conn, status); err != nil || string(status) != "HTTP/1.1 200" {
		h.t.Fatalf("the stream: %s, %v", status, err)
	}
	return conn
}

// ask sends a request on a connection of its own, which the end of the test closes.
func (h *host) ask(text string) net.Conn {
	h.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.http.URL, "http://"))
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		h.t.Fatal(err)
	}
	return conn
}

// Ensure that streams are bounded beside requests.
func TestServe_Streams(t *testing.T) {
	t.Parallel()
	h, end := serve(t, func(o *server.Options) { o.MaxStreams, o.MaxRequests, o.QueueTimeout = 1, 1, time.Nanosecond })
	h.largeDocuments()
	conn := h.openStream()
	h.checkProblem(h.do("GET", "/databases/a/streams/docs?pageSize=0", ""), 429, "TooManyRequestsException")
	h.want(204, "GET", "/databases/a/healthcheck", "")
	conn.Close()
	await(t, "its end", func() bool { requests, _ := h.s.CheckLoad(); return requests == 0 })
	if err := end(); err != nil {
		t.Errorf("got %v", err)
	}
}

// Ensure that a stream that its client does not read is cut off, and holds nothing.
func TestServe_SlowReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h, end := serve(t, func(o *server.Options) { o.Data = dir })
	h.largeDocuments()
	if err := end(); err != nil {
		t.Fatal(err)
	}
	cut := make(chan struct{}, 1)
	h, end = serve(t, func(o *server.Options) {
		o.Data, o.GraceTimeout, o.MinBytesPerSecond = dir, 200*time.Millisecond, 1<<30
		o.Logger = slog.New(watcher{slog.DiscardHandler, "a stream is cut short", cut})
	})
	conn := h.ask("GET /databases/a/streams/docs HTTP/1.1\r\nHost: localhost\r\n\r\n")
	<-cut
	reply, _ := io.ReadAll(conn)
	if strings.HasSuffix(string(reply), "0\r\n\r\n") {
		t.Error("the stream looks whole")
	}
	if err := end(); err != nil {
		t.Errorf("got %v", err)
	}
}

// Ensure that a deletion ends the streams of its database.
func TestServe_StreamOfDeleted(t *testing.T) {
	t.Parallel()
	h, end := serve(t, func(o *server.Options) {})
	h.largeDocuments()
	conn := h.openStream()
	defer conn.Close()
	deleted := make(chan answer, 1)
	go func() { deleted <- h.do("DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`) }()
	await(t, "the deletion", func() bool { return h.do("GET", "/databases/a/healthcheck", "").status == 503 })
	if reply, _ := io.ReadAll(conn); strings.HasSuffix(string(reply), "0\r\n\r\n") {
		t.Error("the stream goes on to its end")
	}
	if a := <-deleted; a.status != 200 {
		t.Errorf("%d %s", a.status, a.body)
	}
	if err := end(); err != nil {
		t.Errorf("got %v", err)
	}
}
