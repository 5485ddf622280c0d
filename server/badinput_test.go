package server_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/server"
)

// routeURL returns a path of a route, with values for those of its parameters that most
// routes need.
func routeURL(r server.Route) string {
	parameters := "?"
	for _, p := range []string{"id=x", "name=b", "key=x", "index=0"} {
		if name, _, _ := strings.Cut(p, "="); slices.Contains(r.Takes, name) {
			parameters += p + "&"
		}
	}
	return strings.NewReplacer("{D}", "/databases/a", "{J}", "/jay/v1/databases/a").Replace(r.Path) + strings.TrimRight(parameters, "?&")
}

// state is what the requests of a test must not change.
func (h *host) state() string {
	h.t.Helper()
	var all []string
	for _, path := range []string{"/databases", "/databases/a/streams/docs", "/databases/a/cmpxchg", "/databases/a/debug/identities", "/databases/a/indexes",
		"/databases/a/configuration/client", "/databases/a/revisions/config", "/databases/a/expiration/config", "/databases/a/attachments?id=kept/1&name=f"} {
		a := h.do("GET", path, "")
		all = append(all, fmt.Sprint(path, " ", a.status, " ", a.body))
	}
	return strings.Join(all, "\n")
}

// seed makes a database in which each kind of thing is there once. One that is mounted is there.
func (h *host) seed() {
	h.t.Helper()
	if h.base == "" {
		h.create("a")
	}
	h.want(201, "PUT", "/databases/a/docs?id=kept/1", `{"n":1,"@metadata":{"@collection":"Kept"}}`)
	h.want(200, "PUT", "/databases/a/cmpxchg?key=kept&index=0", `{"Object":1}`)
	h.want(200, "POST", "/databases/a/identity/next?name=kept|", "")
	h.want(201, "PUT", "/databases/a/attachments?id=kept/1&name=f", "kept")
}

// Ensure that each route that reads a body refuses one that is not JSON, has another
// content type, is too large as it is or unpacked, or is cut off, and changes nothing.
func TestBadInput_EveryRoute(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	small := func(o *server.Options) { o.MaxBodyBytes = 1 << 16 }
	t.Run("of its own", func(t *testing.T) {
		t.Parallel()
		start(t, small).refusesBadBodies()
	})
	t.Run("mounted", func(t *testing.T) {
		t.Parallel()
		mountAt(t, "/admin/db", anAdmin, small).refusesBadBodies()
	})
}

// refusesBadBodies sends bad bodies to each route that reads one.
func (h *host) refusesBadBodies() {
	t := h.t
	h.seed()
	before := h.state()
	malformed := []string{
		`{`, `{"a":`, `{"a":1`, `{"a":1}}`, `{"a" 1}`, `{'a':1}`, `{a:1}`, `{"a":nul}`, `{"a":01}`, `[1,`, `{"a":1}{}`, "\x00", "{\"a\":\"\xff\"}", "{\"\xc0\xaf\":1}",
		`{"a":"` + "\n" + `"}`, "\xef\xbb\xbf{}", "\xff\xfe{\x00}\x00", strings.Repeat("[", 30_000), strings.Repeat(`{"a":`, 10_000), "x" + strings.Repeat(" ", 30_000),
	}
	large := `{"a":"` + strings.Repeat("x", 1<<16) + `"}`
	bomb, zstdBomb := pack(t, strings.Repeat(" ", 16<<20)), packed(t, "zstd", strings.Repeat(" ", 16<<20))
	routes := 0
	for _, r := range server.Routes() {
		if !r.Body || r.Refused != "" {
			continue
		}
		routes++
		url, what := routeURL(r), r.Method+" "+r.Path
		check := func(name string, a answer, status int, kind string) {
			t.Helper()
			if a.status != status {
				t.Errorf("%s, %.40q: status %d, want %d: %.200s", what, name, a.status, status, a.body)
				return
			}
			h.checkProblem(a, status, kind)
		}
		for _, body := range malformed {
			check(body, h.do(r.Method, url, body), 400, "BadRequestException")
		}
		for _, kind := range []string{"text/xml", "application/x-msgpack", "application/json; charset=utf-16", ";"} {
			check(kind, h.do(r.Method, url, `{}`, "Content-Type", kind), 415, "UnsupportedContentTypeException")
		}
		for _, encoding := range []string{"br", "gzip, gzip", "zstd, gzip", "deflate"} {
			check(encoding, h.do(r.Method, url, `{}`, "Content-Encoding", encoding), 415, "UnsupportedContentTypeException")
		}
		check("large", h.do(r.Method, url, large), 413, "RequestTooLargeException")
		check("bomb", h.do(r.Method, url, bomb, "Content-Encoding", "gzip"), 413, "RequestTooLargeException")
		check("bomb of zstd", h.do(r.Method, url, zstdBomb, "Content-Encoding", "zstd"), 413, "RequestTooLargeException")
		check("no zstd", h.do(r.Method, url, `{}`, "Content-Encoding", "zstd"), 400, "BadRequestException")
		reply := h.raw(fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n", r.Method, h.base+url), true)
		if !strings.HasPrefix(reply, "HTTP/1.1 400 ") || !strings.Contains(reply, "BadRequestException") {
			t.Errorf("%s, cut off: %q", what, reply)
		}
	}
	if routes < 20 {
		t.Errorf("%d routes read a body", routes)
	}
	if after := h.state(); after != before {
		t.Errorf("was\n%s\nis\n%s", before, after)
	}
	h.idle()
}

// Ensure that an ID with any byte, and with bytes that are no UTF-8, comes back as it was
// sent, or is refused and stores nothing.
func TestBadInput_IDs(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.create("a")
	try := func(escaped, id string, valid bool) {
		t.Helper()
		url := "/databases/a/docs?id=" + escaped
		if !valid {
			h.checkProblem(h.do("PUT", url, `{}`), 400, "BadRequestException")
			h.checkProblem(h.do("PATCH", url, `{"Patch":{"Script":"this.a = 1"},"PatchIfMissing":{"Script":"this.a = 1"}}`), 400, "BadRequestException")
			h.want(400, "PUT", "/databases/a/attachments?name=x&id="+escaped, `x`)
			if a := h.do("GET", url, ""); a.status != 400 && a.status != 404 {
				t.Errorf("GET %s: %d %s", escaped, a.status, a.body)
			}
			if a := h.do("DELETE", url, ""); a.status != 400 && a.status != 204 {
				t.Errorf("DELETE %s: %d %s", escaped, a.status, a.body)
			}
			return
		}
		equal(t, escaped, h.want(201, "PUT", url, `{}`).text(t, "Id"), id)
		equal(t, escaped, h.want(200, "GET", url, "").text(t, "Results", 0, "@metadata", "@id"), id)
		h.want(204, "DELETE", url, "")
		h.want(404, "GET", url, "")
	}
	for c := range 256 {
		valid := c >= ' ' && c < 0x7f && c != '\\'
		try(fmt.Sprintf("a%%%02Xb", c), fmt.Sprintf("a%cb", c), valid)
	}
	try("a%2Bb", "a+b", true)
	try("a%2Fb", "a/b", true)
	try("a%252Fb", "a%2Fb", true)
	try("%F0%9F%98%80", "😀", true)
	try("a%C2%80b", "a\u0080b", true) // what is no ASCII may be anything in UTF-8
	for _, escaped := range []string{"%C3", "%C3%28", "%C0%AF", "%E0%80%AF", "%ED%A0%80", "%F4%90%80%80", "%F0%9F%98", "%u0041", "a%0", "a%"} {
		try(escaped, "", false)
	}
	equal(t, "documents", h.want(200, "GET", "/databases/a/collections/stats", "").text(t, "CountOfDocuments"), 0)
}

// Ensure that packed streams are bounded as they come, whichever route takes them.
func TestBadInput_PackedStreams(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxBodyBytes = 1 << 16 })
	h.seed()
	before := h.state()
	for _, body := range []string{
		`[{"Type":"PUT","Id":"x","Document":{"a":"` + strings.Repeat("x", 16<<20),
		`[{"Type":"PUT","Id":"` + strings.Repeat("x", 16<<20),
		`[` + strings.Repeat("[", 16<<20),
		`[{` + strings.Repeat(`"a":1,`, 4<<20),
	} {
		a := h.do("POST", "/databases/a/bulk_insert?id="+h.operationID(), pack(t, body), "Content-Encoding", "gzip")
		if a.status != 413 && a.status != 400 {
			t.Errorf("%.40s: %d %.200s", body, a.status, a.body)
			continue
		}
		h.checkProblem(a, a.status, a.text(t, "Type")[strings.LastIndex(a.text(t, "Type"), ".")+1:])
		if _, taken := h.s.CheckLoad(); taken != 0 {
			t.Errorf("%.40s: %d bytes are left", body, taken)
		}
	}
	equal(t, "state", h.state(), before)
	h.idle()
}

// Ensure that headers, trailers and chunks that are built to take memory, and heads that
// say two things, are refused and store nothing.
func TestServe_HeadsAndChunks(t *testing.T) {
	t.Parallel()
	h, end := serve(t, func(*server.Options) {})
	h.create("a")
	var all sync.WaitGroup
	const put = "PUT /databases/a/docs?id=x HTTP/1.1\r\nHost: localhost\r\n"
	for name, text := range map[string]string{
		"many headers":      put + strings.Repeat("X-A: b\r\n", 100_000) + "\r\n",
		"one header":        put + "X-A: " + strings.Repeat("b", 1<<20) + "\r\n\r\n",
		"a name":            put + strings.Repeat("X", 1<<20) + ": a\r\n\r\n",
		"a line":            "PUT /" + strings.Repeat("a", 1<<20) + " HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"a method":          strings.Repeat("P", 1<<20) + " / HTTP/1.1\r\nHost: localhost\r\n\r\n",
		"trailers":          put + "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n" + strings.Repeat("X-A: b\r\n", 100_000) + "\r\n",
		"chunk extensions":  put + "Transfer-Encoding: chunked\r\n\r\n2;" + strings.Repeat("a=b;", 100_000) + "\r\n{}\r\n0\r\n\r\n",
		"tiny chunks":       put + "Transfer-Encoding: chunked\r\n\r\n" + strings.Repeat("1;"+strings.Repeat("a", 200)+"\r\n \r\n", 2000) + "0\r\n\r\n",
		"a length of chunk": put + "Transfer-Encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n",
		"two lengths":       put + "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}\n",
		"a negative length": put + "Content-Length: -2\r\n\r\n{}",
		"a huge length":     put + "Content-Length: 9223372036854775807\r\n\r\n{}",
		"two encodings":     put + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
		"two hosts":         put + "Host: evil.example\r\nContent-Length: 2\r\n\r\n{}",
		"no host":           "PUT /databases/a/docs?id=x HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}",
		"a folded header":   put + " X: y\r\nContent-Length: 2\r\n\r\n{}",
		"a naked newline":   put + "X: a\rb\r\nContent-Length: 2\r\n\r\n{}",
	} {
		all.Go(func() {
			// It is empty if the server has cut the connection before it was read. net/http
			// refuses some of them before the server sees them, and one with 501.
			if reply := h.rawCut(text); reply != "" && !strings.HasPrefix(reply, "HTTP/1.1 4") && !strings.HasPrefix(reply, "HTTP/1.1 501 ") {
				t.Errorf("%s: %.200q", name, reply)
			}
		})
	}
	all.Wait()
	h.want(404, "GET", "/databases/a/docs?id=x", "")
	h.want(201, "PUT", "/databases/a/docs?id=y", "{}")
	h.idle()
	if err := end(); err != nil {
		t.Errorf("got %v", err)
	}
}

// rawCut is raw for a text of which the server may not take all.
func (h *host) rawCut(text string) string {
	h.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.http.URL, "http://"))
	if err != nil {
		h.t.Error(err)
		return ""
	}
	defer conn.Close()
	go func() {
		_, _ = io.WriteString(conn, text)
		_ = conn.(*net.TCPConn).CloseWrite()
	}()
	reply, _ := io.ReadAll(conn)
	return string(reply)
}

// Ensure that a script that loops, or takes memory, ends wherever a client can send one,
// and changes nothing.
func TestBadInput_Scripts(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.seed()
	before := h.state()
	for _, script := range []string{
		`while (true) {}`, `function f() { f() } f()`, `var s = 'x'; while (true) s += s`, `var a = [1]; for (;;) a = a.concat(a)`, `for (;;) put('x/' + this.n++, {})`,
		`this.n = JSON.parse('['.repeat(3000) + ']'.repeat(3000))`,
	} {
		patch := fmt.Sprintf(`{"Script":%q,"Values":{}}`, script)
		h.checkProblem(h.do("PATCH", "/databases/a/docs?id=kept/1", `{"Patch":`+patch+`}`), 400, "JavaScriptException")
		h.checkProblem(h.do("PATCH", "/databases/a/docs?id=none", `{"Patch":{"Script":"this.a = 1"},"PatchIfMissing":`+patch+`}`), 400, "JavaScriptException")
		h.checkProblem(h.do("POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"x","Document":{}},{"Type":"PATCH","Id":"kept/1","ChangeVector":null,"Patch":`+patch+`}]}`), 400, "JavaScriptException")
		a := h.want(200, "PATCH", "/databases/a/queries", fmt.Sprintf(`{"Query":{"Query":%q}}`, "from Kept as k update { "+script+" }"))
		state := h.ended("/databases/a/operations/state?id=" + a.text(t, "OperationId"))
		equal(t, "status of "+script, state.text(t, "Status"), "Faulted")
	}
	equal(t, "state", h.state(), before)
	h.idle()
}

// Ensure that of a thousand streams that no client reads as many run as may, that the others
// are refused, that neither takes much memory, and that the server answers meanwhile. It
// measures the memory of the process: no other test may run beside it.
func TestServe_ThousandStreams(t *testing.T) {
	const streams, most = 1000, 16
	h, end := serve(t, func(o *server.Options) {
		o.MaxStreams, o.QueueTimeout = most, time.Nanosecond
		o.GraceTimeout = time.Hour // so that none is cut short, however slow the machine is
		o.Database.MemTableBytes, o.Database.CacheBytes = 1<<20, 4<<20
	})
	h.create("a")
	for i := range 32 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=%d", i), `{"a":"`+strings.Repeat("x", 512<<10)+`"}`)
	}
	memory := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := memory()
	var statuses [600]int
	conns := make([]net.Conn, streams)
	for i := range conns {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.http.URL, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		conns[i] = conn
		defer conn.Close()
		_ = conn.(*net.TCPConn).SetReadBuffer(4 << 10) // what the kernel holds must not end a stream
		if _, err := io.WriteString(conn, "GET /databases/a/streams/docs HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	for _, conn := range conns {
		reply, err := http.ReadResponse(bufio.NewReaderSize(conn, 512), nil) // the head only
		if err != nil {
			t.Fatal(err)
		}
		statuses[reply.StatusCode]++
	}
	if statuses[200] != most || statuses[429] != streams-most {
		t.Errorf("%d streams run, %d were refused", statuses[200], statuses[429])
	}
	equal(t, "requests", func() int { n, _ := h.s.CheckLoad(); return n }(), most)
	if took := int64(memory()) - int64(before); took > 192<<20 && !jaytest.Allocates {
		t.Errorf("%d streams take %d bytes", streams, took)
	} else {
		t.Logf("%d streams, of which %d run, take %d KiB", streams, most, took>>10)
	}
	h.want(204, "GET", "/databases/a/healthcheck", "")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`)
	for _, conn := range conns {
		conn.Close()
	}
	h.idle()
	if err := end(); err != nil {
		t.Errorf("got %v", err)
	}
}

// Ensure that the log has no error of the server for a body that a client has damaged, but says what is wrong with it.
func TestBadInput_DamagedInLog(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	var mu sync.Mutex
	h := start(t, func(o *server.Options) {
		o.Logger = slog.New(slog.NewTextHandler(writerFunc(func(b []byte) (int, error) {
			mu.Lock()
			defer mu.Unlock()
			return text.Write(b)
		}), &slog.HandlerOptions{Level: slog.LevelWarn}))
	})
	h.create("a")
	for _, body := range []string{"{}", pack(t, `{"Ids":["x"]}`)[:20]} {
		h.checkProblem(h.do("POST", "/databases/a/docs", body, "Content-Encoding", "gzip"), 400, "BadRequestException")
	}
	mu.Lock()
	defer mu.Unlock()
	if got := text.String(); strings.Contains(got, "level=ERROR") || strings.Count(got, "level=WARN msg=\"server: a request has failed\"") != 2 {
		t.Errorf("got %s", got)
	}
}
