package server_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// host is a server under test, and the client that talks to it.
type host struct {
	t    *testing.T
	dir  string
	s    *server.Server
	http *httptest.Server

	base string // the path below which a mounted server is, or ""

	operation string // the number of the last one, in the guide

	keys sync.Map // the second halves of sessions by their cookies, which requests get unless they have one
}

// start serves a new data directory.
func start(t *testing.T, change ...func(o *server.Options)) *host {
	t.Helper()
	return startIn(t, t.TempDir(), change...)
}

// startIn serves a data directory.
func startIn(t *testing.T, dir string, change ...func(o *server.Options)) *host {
	t.Helper()
	o := server.Options{Data: dir}
	o.Database.MemTableBytes, o.Database.CacheBytes = 1<<20, 4<<20
	for _, fn := range change {
		fn(&o)
	}
	s, err := server.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, dir: dir, s: s, http: httptest.NewServer(s)}
	t.Cleanup(h.stop)
	return h
}

// stop ends the server; a test may call it before its end.
func (h *host) stop() {
	h.http.Close()
	if err := h.s.Close(); err != nil {
		h.t.Errorf("close: %v", err)
	}
}

// answer is a reply.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request, as try does, which must be answered.
func (h *host) do(method, path, body string, headers ...string) answer {
	h.t.Helper()
	a, err := h.try(method, path, body, headers...)
	if err != nil {
		h.t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

// try sends a request. The path goes out as it is, whatever is in it. Headers are names
// and values in turn.
func (h *host) try(method, path, body string, headers ...string) (answer, error) {
	h.t.Helper()
	var reader io.Reader
	if body != "" {
		reader = strings.NewReader(body)
	}
	r, err := http.NewRequest(method, h.http.URL, reader)
	if err != nil {
		h.t.Fatal(err)
	}
	r.URL.Opaque = h.base + path
	for i := 0; i+1 < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		}
		r.Header[headers[i]] = append(r.Header[headers[i]], headers[i+1])
	}
	if key, found := h.keys.Load(r.Header.Get("Cookie")); found && r.Header["Jay-Session-Key"] == nil {
		r.Header.Set("Jay-Session-Key", key.(string))
	}
	reply, err := h.http.Client().Do(r)
	if err != nil {
		return answer{}, err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	return answer{reply.StatusCode, reply.Header, string(text)}, err
}

// want sends a request whose status must be this one.
func (h *host) want(status int, method, path, body string, headers ...string) answer {
	h.t.Helper()
	a := h.do(method, path, body, headers...)
	if a.status != status {
		h.t.Fatalf("%s %s: status %d, want %d: %s", method, path, a.status, status, a.body)
	}
	return a
}

// create makes a database.
func (h *host) create(name string) {
	h.t.Helper()
	h.want(201, "PUT", "/admin/databases?name="+name+"&replicationFactor=1", `{"DatabaseName":"`+name+`"}`)
}

// json returns the value at a path of member names and indexes in the body.
func (a answer) json(t *testing.T, path ...any) any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(a.body))
	decoder.UseNumber()
	var v any
	if err := decoder.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, a.body)
	}
	for _, step := range path {
		switch step := step.(type) {
		case string:
			object, is := v.(map[string]any)
			if !is {
				t.Fatalf("no %q in %s", step, a.body)
			}
			v = object[step]
		case int:
			array, is := v.([]any)
			if !is || step >= len(array) {
				t.Fatalf("no element %d in %s", step, a.body)
			}
			v = array[step]
		}
	}
	return v
}

// text is json for text.
func (a answer) text(t *testing.T, path ...any) string {
	t.Helper()
	return fmt.Sprint(a.json(t, path...))
}

// compact is json as JSON, members in the order of their names.
func (a answer) compact(t *testing.T, path ...any) string {
	t.Helper()
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(a.json(t, path...)); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// checkProblem says that a reply is an error of RavenDB's shape, which gives nothing away.
func (h *host) checkProblem(a answer, status int, kind string) {
	h.t.Helper()
	if a.status != status {
		h.t.Errorf("status %d, want %d: %s", a.status, status, a.body)
		return
	}
	for _, name := range []string{"Url", "Type", "Message", "Error"} {
		if text, is := a.json(h.t, name).(string); !is || text == "" {
			h.t.Errorf("the error has no %s: %s", name, a.body)
		}
	}
	if got := a.text(h.t, "Type"); !strings.HasSuffix(got, "."+kind) || !strings.HasPrefix(got, "Raven.Client.Exceptions.") {
		h.t.Errorf("type %s, want %s", got, kind)
	}
	for _, secret := range []string{".go:", "goroutine", "/tmp/", "panic"} {
		if strings.Contains(a.body, secret) {
			h.t.Errorf("the error gives %q away: %s", secret, a.body)
		}
	}
}

// Ensure that the first requests of both clients are answered as RavenDB answers them.
func TestServer_Hello(t *testing.T) {
	t.Parallel()
	h := start(t)
	a := h.want(503, "GET", "/topology?name=acorns", "")
	h.checkProblem(a, 503, "DatabaseDoesNotExistException")
	equal(t, "header", a.header.Get("Database-Missing"), "acorns")

	h.create("Acorns")
	for _, path := range []string{"/topology?name=acorns", "/topology?name=ACORNS&first-topology-update&applicationIdentifier=x"} {
		a = h.want(200, "GET", path, "")
		equal(t, "url", a.text(t, "Nodes", 0, "Url"), h.http.URL)
		equal(t, "tag", a.text(t, "Nodes", 0, "ClusterTag"), "A")
		equal(t, "role", a.text(t, "Nodes", 0, "ServerRole"), "Member")
		equal(t, "database", a.text(t, "Nodes", 0, "Database"), "Acorns")
		equal(t, "version", a.header.Get("Raven-Server-Version"), "5.4.200.0")
	}
	a = h.want(200, "GET", "/cluster/topology?first-topology-update", "")
	equal(t, "members", a.text(t, "Topology", "Members", "A"), h.http.URL)
	equal(t, "status", a.text(t, "Status"), "map[]")
	equal(t, "node", h.want(200, "GET", "/cluster/node-info", "").text(t, "NodeTag"), "A")
	equal(t, "product", h.want(200, "GET", "/build/version", "").text(t, "ProductVersion"), "5.4")
	for _, path := range []string{"/info/tcp?tcp=x", "/databases/acorns/info/tcp?tag=x"} {
		a = h.want(200, "GET", path, "")
		if !strings.Contains(a.body, `"Certificate":null`) {
			t.Errorf("%s: %s", path, a.body)
		}
	}
	h.checkProblem(h.do("GET", "/databases/acorns/info/tcp?tag=Subscription", ""), 501, "NotSupportedException")
	h.want(204, "GET", "/databases/acorns/healthcheck", "")
	h.want(200, "GET", "/healthz", "", "Host", "elsewhere")
	h.want(200, "GET", "/readyz", "")
}

// Ensure that a path or a method that is not there is 400, which does not mark the node
// as down, and that what RavenDB has and Jay has not says so.
func TestServer_UnknownRoutes(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, request := range []string{"GET /", "GET /nothing", "GET /databases/a", "GET /databases/a/nothing", "GET /databases/a/docs/x", "POST /databases/a/stats", "GET /databases//docs"} {
		method, path, _ := strings.Cut(request, " ")
		h.checkProblem(h.do(method, path, ""), 400, map[bool]string{true: "BadRequestException", false: "RouteNotFoundException"}[strings.Contains(path, "//")])
	}
	equal(t, "allow", h.do("POST", "/databases/a/stats", "").header.Get("Allow"), "GET")
	for _, request := range []string{"POST /databases/a/admin/indexes/stop?name=x", "DELETE /databases/a/indexes/errors", "POST /databases/a/indexes/replace?name=x", "GET /databases/a/indexes/progress", "GET /databases/a/subscriptions", "PUT /databases/a/subscriptions", "GET /databases/a/counters", "POST /databases/a/timeseries", "GET /info/remote-task/tcp"} {
		method, path, _ := strings.Cut(request, " ")
		h.checkProblem(h.do(method, path, ""), 501, "NotSupportedException")
	}
	h.want(204, "GET", "/DATABASES/A/HealthCheck", "")
}

// Ensure that a document comes back digit by digit, with its metadata behind it.
func TestDocuments_PutGet(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	body := `{"Price":1.50,"Big":12345678901234567890,"E":1E+2,"Text":"\u00e9\/","@metadata":{"@collection":"Users","Raven-Go-Type":"main.User","@nested-object-types":{"a":"b"}}}`
	a := h.want(201, "PUT", "/databases/a/docs?id=users%2Fann", body)
	equal(t, "id", a.text(t, "Id"), "users/ann")
	version := a.text(t, "ChangeVector")

	a = h.want(200, "GET", "/databases/a/docs?&id=users%2Fann", "")
	want := `{"Results":[{"Price":1.50,"Big":12345678901234567890,"E":1E+2,"Text":"\u00e9\/","@metadata":{"Raven-Go-Type":"main.User","@nested-object-types":{"a":"b"},"@collection":"Users","@change-vector":"` + version + `","@id":"users/ann","@last-modified":"`
	if !strings.HasPrefix(a.body, want) || !strings.HasSuffix(a.body, `Z"}}],"Includes":{}}`) {
		t.Errorf("got %s, want %s...", a.body, want)
	}
	equal(t, "etag", a.header.Get("ETag"), `"`+version+`"`)
	modified := a.text(t, "Results", 0, "@metadata", "@last-modified")
	if len(modified) != len("2018-05-08T05:20:31.5233900Z") {
		t.Errorf("a time of %q", modified)
	}

	for _, tag := range []string{`"` + version + `"`, version, `W/"` + version + `"`, `"x", "` + version + `"`, "*"} {
		a = h.want(304, "GET", "/databases/a/docs?id=users%2Fann", "", "If-None-Match", tag)
		equal(t, "body", a.body, "")
		h.want(304, "HEAD", "/databases/a/docs?id=users%2Fann", "", "If-None-Match", tag)
	}
	h.want(200, "GET", "/databases/a/docs?id=users%2Fann", "", "If-None-Match", `"x"`)
	equal(t, "etag", h.want(200, "HEAD", "/databases/a/docs?id=USERS%2Fann", "").header.Get("ETag"), `"`+version+`"`)
	h.want(404, "HEAD", "/databases/a/docs?id=users%2Fbob", "")

	a = h.want(200, "GET", "/databases/a/docs?id=users/ann&metadataOnly=true", "")
	if !strings.HasPrefix(a.body, `{"Results":[{"@metadata":{"Raven-Go-Type"`) {
		t.Errorf("got %s", a.body)
	}
	// A document without a collection has none when it is read.
	h.want(201, "PUT", "/databases/a/docs?id=plain/1", `{}`)
	a = h.want(200, "GET", "/databases/a/docs?id=plain/1&metadataOnly=true", "")
	if strings.Contains(a.body, "@collection") || !strings.HasPrefix(a.body, `{"Results":[{"@metadata":{"@change-vector"`) {
		t.Errorf("got %s", a.body)
	}
}

// Ensure that one missing document is 404 without a body, and that among several it is
// null.
func TestDocuments_Missing(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`)
	equal(t, "body", h.want(404, "GET", "/databases/a/docs?&id=y", "").body, "")
	h.want(304, "GET", "/databases/a/docs?&id=y", "", "If-None-Match", `"404 Response"`)
	h.want(404, "GET", "/databases/a/docs?&id=y", "", "If-None-Match", `"404 response"`)
	h.want(200, "GET", "/databases/a/docs?&id=x", "", "If-None-Match", `"404 Response"`)
	equal(t, "results", h.want(200, "GET", "/databases/a/docs?&id=y&id=z", "").body, `{"Results":[null,null],"Includes":{}}`)
	a := h.want(200, "POST", "/databases/a/docs?&loadHash=1", `{"Ids":["y","x",null,"x"]}`)
	equal(t, "results", len(a.json(t, "Results").([]any)), 4)
	equal(t, "null", a.text(t, "Results", 2), "<nil>")
	equal(t, "empty", h.want(200, "GET", "/databases/a/docs?id=x&id=", "").text(t, "Results", 1), "<nil>")
	equal(t, "first", a.text(t, "Results", 0), "<nil>")
	equal(t, "second", a.text(t, "Results", 1, "@metadata", "@id"), "x")
	h.checkProblem(h.do("GET", "/databases/a/docs?&id=", ""), 400, "BadRequestException")
	h.checkProblem(h.do("POST", "/databases/a/docs", `{"Ids":[]}`), 400, "BadRequestException")
	h.want(204, "DELETE", "/databases/a/docs?id=y", "")
	h.want(204, "DELETE", "/databases/a/docs?id=x", "")
	h.want(404, "GET", "/databases/a/docs?&id=x", "")
}

// Ensure that a write with a version changes nothing when the document has another one.
func TestDocuments_IfMatch(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	old := h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":1}`).text(t, "ChangeVector")
	now := h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":2}`, "If-Match", `"`+old+`"`).text(t, "ChangeVector")
	for _, tag := range []string{`"` + old + `"`, old, `""`, ``} {
		a := h.do("PUT", "/databases/a/docs?id=x", `{"n":3}`, "If-Match", tag)
		h.checkProblem(a, 409, "ConcurrencyException")
		equal(t, "actual", a.text(t, "ActualChangeVector"), now)
		h.checkProblem(h.do("DELETE", "/databases/a/docs?id=x", "", "If-Match", tag), 409, "ConcurrencyException")
	}
	h.checkProblem(h.do("PUT", "/databases/a/docs?id=y", `{}`, "If-Match", `*`), 409, "ConcurrencyException")
	h.checkProblem(h.do("PUT", "/databases/a/docs?id=x", `{}`, "If-Match", `W/"`+now+`"`), 400, "BadRequestException")
	h.checkProblem(h.do("PUT", "/databases/a/docs?id=x", `{}`, "If-Match", `"a", "b"`), 400, "BadRequestException")
	equal(t, "n", h.want(200, "GET", "/databases/a/docs?id=x", "").text(t, "Results", 0, "n"), 2)
	h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":4}`, "If-Match", "*")
	h.want(201, "PUT", "/databases/a/docs?id=new", `{}`, "If-Match", `""`)
	h.want(204, "DELETE", "/databases/a/docs?id=new", "")
}

// Ensure that IDs arrive as both clients escape them: a plus sign, an ampersand and an
// equals sign are raw in a PUT or DELETE of Go's client, and a blank is %20.
func TestDocuments_Escapes(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, test := range []struct{ id, written, read string }{
		{"users/a+b", "users%2Fa+b", "users%2Fa%2Bb"},
		{"a&b", "a&b", "a%26b"},
		{"a&b=c&d", "a&b=c&d", "a%26b%3Dc%26d"},
		{"a=b", "a=b", "a%3Db"},
		{"a b", "a%20b", "a+b"},
		{"100%", "100%25", "100%25"},
		{"é/日本", "%C3%A9%2F%E6%97%A5%E6%9C%AC", "é/日本"},
		{"q?x#", "q?x%23", "q%3Fx%23"},
		{`"quoted"`, `%22quoted%22`, `%22quoted%22`},
		{"a;b,c:d@e!$'()*~[]", "a;b,c:d@e!$'()*~[]", "a%3Bb%2Cc%3Ad%40e%21%24%27%28%29%2A~%5B%5D"},
		{"../../etc/passwd", "..%2F..%2Fetc%2Fpasswd", "../../etc/passwd"},
	} {
		equal(t, "id", h.want(201, "PUT", "/databases/a/docs?id="+test.written, `{}`).text(t, "Id"), test.id)
		equal(t, "read", h.want(200, "GET", "/databases/a/docs?&id="+test.read, "").text(t, "Results", 0, "@metadata", "@id"), test.id)
		h.want(204, "DELETE", "/databases/a/docs?id="+test.written, "")
		h.want(404, "GET", "/databases/a/docs?id="+test.read, "")
	}
	for _, id := range []string{"a%00b", "a%ff", "a%5Cb", "a%7f", "%zz", "%", "a%1", strings.Repeat("x", 2026)} {
		h.checkProblem(h.do("PUT", "/databases/a/docs?id="+id, `{}`), 400, "BadRequestException")
	}
	for _, id := range []string{"%zz", "%"} {
		h.checkProblem(h.do("GET", "/databases/a/docs?id="+id, ""), 400, "BadRequestException")
	}
	h.checkProblem(h.do("PUT", "/databases/a/docs", `{}`), 400, "BadRequestException")
	h.checkProblem(h.do("PUT", "/databases/a/docs?name=x", `{}`), 400, "BadRequestException")
	h.checkProblem(h.do("DELETE", "/databases/a/docs?id=", ""), 400, "BadRequestException")
	equal(t, "documents", h.want(200, "GET", "/databases/a/collections/stats", "").text(t, "CountOfDocuments"), 0)
}

// Ensure that the requested ID decides how the final one is made.
func TestDocuments_IDs(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	put := func(id string) string {
		return h.want(201, "PUT", "/databases/a/docs?id="+id, `{}`).text(t, "Id")
	}
	equal(t, "identity", put("users%7C"), "users/1")
	equal(t, "identity", put("users|"), "users/2")
	if id := put("users/"); len(id) != len("users/0000000000000000042-A") || !strings.HasPrefix(id, "users/00000000") || !strings.HasSuffix(id, "-A") {
		t.Errorf("server-side: %s", id)
	}
	if id := put(""); len(id) != 36 {
		t.Errorf("GUID: %s", id)
	}
	a := h.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"users|","ChangeVector":null,"Document":{}},{"Type":"PUT","Id":"users/","Document":{}},
		{"Type":"PUT","Id":null,"Document":{}},{"Type":"PUT","Document":{}},{"Type":"PUT","Id":"users|","ChangeVector":"","Document":{}}]}`)
	equal(t, "identity", a.text(t, "Results", 0, "@id"), "users/3")
	equal(t, "GUID", len(a.text(t, "Results", 2, "@id")), 36)
	equal(t, "GUID", len(a.text(t, "Results", 3, "@id")), 36)
	equal(t, "identity", a.text(t, "Results", 4, "@id"), "users/4")
}

// Ensure that a prefix selects, that patterns look behind it, and that pages follow one
// another.
func TestDocuments_Prefix(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for i := range 5 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=users/%d", i), fmt.Sprintf(`{"n":%d}`, i))
	}
	h.want(201, "PUT", "/databases/a/docs?id=orders/1", `{}`)
	ids := func(query string) string {
		a := h.want(200, "GET", "/databases/a/docs?"+query, "")
		var out []string
		for i := range a.json(t, "Results").([]any) {
			out = append(out, a.text(t, "Results", i, "@metadata", "@id"))
		}
		return strings.Join(out, " ")
	}
	equal(t, "prefix", ids("startsWith=users%2F"), "users/0 users/1 users/2 users/3 users/4")
	equal(t, "page", ids("&startsWith=users/&start=1&pageSize=2"), "users/1 users/2")
	equal(t, "past", ids("startsWith=users/&start=9&pageSize=2"), "")
	equal(t, "none", ids("startsWith=users/&pageSize=0"), "")
	equal(t, "after", ids("startsWith=users/&startAfter=users/2"), "users/3 users/4")
	equal(t, "matches", ids("startsWith=users/&matches=1|3"), "users/1 users/3")
	equal(t, "exclude", ids("startsWith=users/&exclude=%3F"), "")
	equal(t, "all", ids("startsWith="), "orders/1 users/0 users/1 users/2 users/3 users/4")
	equal(t, "newest", ids(""), "orders/1 users/4 users/3 users/2 users/1 users/0")
	equal(t, "newest", ids("start=1&pageSize=2"), "users/4 users/3")

	a := h.want(200, "GET", "/databases/a/docs?startsWith=users/", "")
	h.want(304, "GET", "/databases/a/docs?startsWith=users/", "", "If-None-Match", a.header.Get("ETag"))
	h.want(201, "PUT", "/databases/a/docs?id=users/2", `{}`)
	h.want(200, "GET", "/databases/a/docs?startsWith=users/", "", "If-None-Match", a.header.Get("ETag"))
	for _, query := range []string{"start=-1", "start=x", "pageSize=-1", "pageSize=99999999999", "metadataOnly=7", "start=9223372036854775808"} {
		h.checkProblem(h.do("GET", "/databases/a/docs?startsWith=&"+query, ""), 400, "BadRequestException")
	}
	h.checkProblem(h.do("GET", "/databases/a/docs?startsWith=&matches="+strings.Repeat("x", 1025), ""), 400, "BadRequestException")

	h.want(200, "GET", "/databases/a/streams/docs?startsWith=nobody/", "")
	equal(t, "empty", h.want(200, "GET", "/databases/a/streams/docs?startsWith=nobody/", "").body, `{"Results":[]}`)
	lines := strings.Split(h.want(200, "GET", "/databases/a/streams/docs?format=jsonl&startsWith=users/&start=1&pageSize=3", "").body, "\n")
	equal(t, "lines", len(lines), 4)
	equal(t, "stream", len(h.want(200, "GET", "/databases/a/streams/docs", "").json(t, "Results").([]any)), 6)
}

// Ensure that included documents come along once, by every kind of path.
func TestDocuments_Includes(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, id := range []string{"companies/1", "companies/2", "products/1", "products/2", "addr-x", "k1", "customers/5"} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, `{"Name":"`+id+`"}`)
	}
	h.want(201, "PUT", "/databases/a/docs?id=orders/1", `{"company":"companies/1","deep":{"company":"companies/2"},"lines":[{"product":"products/1"},{"product":"products/2"},{"product":null},7],
		"list":["products/1","products/1","missing/1",""],"nested":[["products/2"]],"customer":5,"suffix":"addr","map":{"k1":"companies/1","k0":{"id":"companies/2"}},"self":"orders/1","a.b":"companies/1"}`)
	for _, test := range []struct{ include, want string }{
		{"company", "companies/1"},
		{"deep.company", "companies/2"},
		{"lines[].product", "products/1 products/2"},
		{"lines.product", "products/1 products/2"},
		{"lines.,product", "products/1 products/2"},
		{"list", "products/1"},
		{"list[]", "products/1"},
		{"nested", "products/2"},
		{"customer(customers/)", "customers/5"},
		{"customer", ""},
		{"suffix[{0}-x]", "addr-x"},
		{"map.$Keys", "k1"},
		{"map.$Values", "companies/1"},
		{"map.$Values.id", "companies/2"},
		{"self", ""},
		{"nothing.at.all", ""},
		{"company&include=deep.company", "companies/1 companies/2"},
	} {
		a := h.want(200, "GET", "/databases/a/docs?&include="+strings.NewReplacer("[", "%5B", "]", "%5D", "{", "%7B", "}", "%7D").Replace(test.include)+"&id=orders/1", "")
		var got []string
		for id := range a.json(t, "Includes").(map[string]any) {
			got = append(got, id)
		}
		equal(t, test.include, sorted(got), test.want)
	}
	for _, include := range []string{".", "a..b", "a[", "a[0]", "a[x]", strings.Repeat("x", 1025), strings.Repeat("a.", 64) + "a"} {
		a := h.do("GET", "/databases/a/docs?id=orders/1&include="+include, "")
		if include == "a[" {
			continue // a name
		}
		h.checkProblem(a, 400, "BadRequestException")
	}
	h.checkProblem(h.do("GET", "/databases/a/docs?id=orders/1&counter=x", ""), 501, "NotSupportedException")
}

// Ensure that a document is included once if documents spell its ID in several ways: a reply has
// no member twice.
func TestDocuments_IncludesOnce(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=companies/1", `{}`)
	h.want(201, "PUT", "/databases/a/docs?id=orders/1", `{"Name":"Ann","List":["companies/1","Companies/1","COMPANIES/1","Orders/1"],"@metadata":{"@collection":"Orders"}}`)
	a := h.want(200, "GET", "/databases/a/docs?id=orders/1&include=List", "")
	equal(t, "companies", strings.Count(a.body, `"companies/1":{`), 1)
	equal(t, "orders", strings.Count(a.body, `"orders/1":{`), 0)
	a = h.want(200, "POST", "/databases/a/queries", `{"Query":"from Orders select List include List"}`)
	equal(t, "companies", strings.Count(a.body, `"companies/1":{`), 1)
}

func sorted(list []string) string {
	out := append([]string(nil), list...)
	for i := range out {
		for j := i + 1; j < len(out); j++ {
			if out[j] < out[i] {
				out[i], out[j] = out[j], out[i]
			}
		}
	}
	return strings.Join(out, " ")
}

// Ensure that a batch is carried out whole or not at all.
func TestBatch(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	old := h.want(201, "PUT", "/databases/a/docs?id=old", `{"n":1}`).text(t, "ChangeVector")
	h.want(201, "PUT", "/databases/a/docs?id=older", `{"n":1}`)
	a := h.want(201, "POST", "/databases/a/bulk_docs?", `{"Commands":[
		{"Type":"DELETE","Id":"older","ChangeVector":null},{"Type":"DELETE","Id":"none","IdPrefixed":false},
		{"Id":"users/1","ChangeVector":null,"Document":{"Name":"Ann","Price":1.50,"@metadata":{"@collection":"Users"}},"Type":"PUT"},
		{"Id":"old","ChangeVector":"`+old+`","Document":{"n":2},"Type":"PUT"}]}`)
	equal(t, "deleted", a.text(t, "Results", 0, "Deleted"), true)
	equal(t, "id", a.text(t, "Results", 0, "Id"), "older")
	equal(t, "deleted", a.text(t, "Results", 1, "Deleted"), false)
	equal(t, "id", a.text(t, "Results", 2, "@id"), "users/1")
	equal(t, "collection", a.text(t, "Results", 2, "@collection"), "Users")
	equal(t, "collection", a.text(t, "Results", 3, "@collection"), "@empty")
	read := h.want(200, "GET", "/databases/a/docs?id=users/1", "")
	equal(t, "version", a.text(t, "Results", 2, "@change-vector"), read.text(t, "Results", 0, "@metadata", "@change-vector"))
	equal(t, "time", a.text(t, "Results", 2, "@last-modified"), read.text(t, "Results", 0, "@metadata", "@last-modified"))
	if !strings.Contains(read.body, `"Price":1.50`) {
		t.Errorf("got %s", read.body)
	}

	for _, test := range []struct {
		body, kind string
		status     int
	}{
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}},{"Type":"PUT","Id":"old","ChangeVector":"` + old + `","Document":{}}]}`, "ConcurrencyException", 409},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}},{"Type":"PUT","Id":"old","ChangeVector":"","Document":{}}]}`, "ConcurrencyException", 409},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}},{"Type":"PUT","Id":"users/1","Document":{"@metadata":{"@collection":"Others"}}}]}`, "DocumentCollectionMismatchException", 400},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}},{"Type":"PUT","Id":"x","Document":{"a":1,"a":2}}]}`, "BadRequestException", 400},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}},{"Type":"PUT","Id":"x","Document":7}]}`, "BadRequestException", 400},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}},{"Type":"PUT","Id":"x"}]}`, "BadRequestException", 400},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}},{"Type":"DELETE"}]}`, "BadRequestException", 400},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}},{"Type":"TELEPORT"}]}`, "BadRequestException", 400},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}},{"Type":"PATCH","Id":"x"}]}`, "BadRequestException", 400},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}},{"Type":"Counters","Id":"x"}]}`, "NotSupportedException", 501},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}},{"Type":"DELETE","Id":"u","IdPrefixed":true}]}`, "NotSupportedException", 501},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}}],"TransactionMode":"x"}`, "BadRequestException", 400},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}}]`, "BadRequestException", 400},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":{}}]} x`, "BadRequestException", 400},
		{`{"Commands":[]}`, "BadRequestException", 400},
		{`{"Commands":{}}`, "BadRequestException", 400},
		{`[]`, "BadRequestException", 400},
		{``, "BadRequestException", 400},
		{`{"Commands":[{"Type":"PUT","Id":"new","Document":` + strings.Repeat(`{"a":`, 300) + `1` + strings.Repeat(`}`, 300) + `}]}`, "BadRequestException", 400},
		{strings.Repeat(`[`, 100_000), "BadRequestException", 400},
	} {
		h.checkProblem(h.do("POST", "/databases/a/bulk_docs", test.body), test.status, test.kind)
	}
	h.want(404, "GET", "/databases/a/docs?id=new", "")

	const one = `{"Commands":[{"Type":"PUT","Id":"one","Document":{}}]}`
	for _, query := range []string{"waitForIndexesTimeout=00:00:15&waitForIndexThrow=true&waitForSpecificIndex=a&waitForSpecificIndex=b", "numberOfReplicasToWaitFor=majority&waitForReplicasTimeout=00:00:15", "numberOfReplicasToWaitFor=2&throwOnTimeoutInWaitForReplicas=false"} {
		h.want(201, "POST", "/databases/a/bulk_docs?"+query, one)
	}
	h.checkProblem(h.do("POST", "/databases/a/bulk_docs?numberOfReplicasToWaitFor=2&throwOnTimeoutInWaitForReplicas=true", one), 501, "NotSupportedException")
}

// Ensure that a multi_get answers each request like a request of its own.
func TestMultiGet(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.create("b")
	version := h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":1.0}`).text(t, "ChangeVector")
	a := h.want(200, "POST", "/databases/a/multi_get", `{"Requests":[
		{"Url":"/databases/a/docs","Query":"?&id=x","Method":null,"Headers":{},"Content":null},
		{"Url":"/databases/A/docs","Query":"?&id=y","Method":"GET"},
		{"Url":"/databases/a/docs","Query":"?&id=x","Headers":{"If-None-Match":"\"`+version+`\""}},
		{"Url":"/databases/a/docs","Query":"?","Method":"POST","Content":{"Ids":["x","y"]}},
		{"Url":"/databases/a/queries?queryHash=1","Method":"POST","Content":{"Query":"from @all_docs where n = $p0","QueryParameters":{"p0":1}}},
		{"Url":"/databases/b/docs","Query":"?&id=x"},
		{"Url":"/databases/a/queries","Query":"?query=from+%40all_docs"},
		{"Url":"/databases/a/queries","Query":"?queryHash=1","Method":"POST","Content":"{\"Query\":\"from @all_docs\"}"},
		{"Url":"/databases/a/hilo/next","Query":"?tag=users"},
		{"Url":"/databases/a/multi_get","Method":"POST","Content":{"Requests":[]}},
		{"Url":"/nothing"}]}`)
	for i, want := range []int{200, 404, 304, 200, 200, 400, 200, 200, 400, 400, 400} {
		equal(t, fmt.Sprint("request ", i), a.text(t, "Results", i, "StatusCode"), want)
	}
	if !strings.Contains(a.body, `"n":1.0`) || !strings.Contains(a.body, `"ETag":"\"`+version+`\""`) {
		t.Errorf("got %s", a.body)
	}
	equal(t, "found", a.text(t, "Results", 4, "Result", "TotalResults"), 1)
	equal(t, "result", a.text(t, "Results", 1, "Result", "Results"), "[<nil>]")
	equal(t, "result", a.text(t, "Results", 2, "Result"), "<nil>")
	h.checkProblem(h.do("POST", "/databases/a/multi_get", `{"Requests":[`+strings.TrimSuffix(strings.Repeat(`{},`, 1025), ",")+`]}`), 413, "RequestTooLargeException")
}

// Ensure that HiLo ranges are granted and taken back as RavenDB does it.
func TestHiLo(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	a := h.want(201, "GET", "/databases/a/hilo/next?tag=users&lastBatchSize=0&lastRangeAt=&identityPartsSeparator=/&lastMax=0", "")
	equal(t, "range", a.text(t, "Prefix")+a.text(t, "Low")+"-"+a.text(t, "High")+a.text(t, "ServerTag")+a.text(t, "LastSize"), "users/1-32A32")
	at := a.text(t, "LastRangeAt")
	if len(at) != 28 || a.header.Get("ETag") != "" {
		t.Errorf("LastRangeAt %s, ETag %s", at, a.header.Get("ETag"))
	}
	a = h.want(201, "GET", "/databases/a/hilo/next?tag=users&lastBatchSize=32&lastRangeAt="+at+"&identityPartsSeparator=/&lastMax=32", "")
	equal(t, "range", a.text(t, "Low")+"-"+a.text(t, "High"), "33-96")
	h.want(204, "PUT", "/databases/a/hilo/return?tag=users&end=96&last=40", "")
	a = h.want(201, "GET", "/databases/a/hilo/next?tag=Users&lastBatchSize=0&lastRangeAt=0001-02-01T00:00:00.0000000&identityPartsSeparator=-&lastMax=0", "")
	equal(t, "range", a.text(t, "Prefix")+a.text(t, "Low"), "Users-41")
	equal(t, "document", h.want(200, "GET", "/databases/a/docs?id=Raven/Hilo/users", "").text(t, "Results", 0, "@metadata", "@collection"), "@hilo")
	for _, wish := range []string{"lastBatchSize=-5", "lastBatchSize=5", "lastBatchSize=32&lastRangeAt=yesterday"} { // too small a size, or no time, is not refused
		equal(t, wish, h.want(201, "GET", "/databases/a/hilo/next?tag=wishes&"+wish, "").text(t, "LastSize"), "32")
	}
	for _, query := range []string{"", "tag=", "tag=users&lastMax=x", "tag=users&lastMax=9223372036854775807", "tag=users&lastBatchSize=1e3", "tag=a%00b"} {
		h.checkProblem(h.do("GET", "/databases/a/hilo/next?"+query, ""), 400, "BadRequestException")
	}
	h.checkProblem(h.do("PUT", "/databases/a/hilo/return?end=1", ""), 400, "BadRequestException")
}

// Ensure that identities count, and are seeded upward unless forced.
func TestIdentities(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	equal(t, "next", h.want(200, "POST", "/databases/a/identity/next?name=users%7C", "").text(t, "NewIdentityValue"), 1)
	equal(t, "next", h.want(200, "POST", "/databases/a/identity/next?name=Users", "").text(t, "NewIdentityValue"), 2)
	equal(t, "seed", h.want(200, "POST", "/databases/a/identity/seed?name=users|&value=1990", "").text(t, "NewSeedValue"), 1990)
	equal(t, "seed", h.want(200, "POST", "/databases/a/identity/seed?name=users|&value=1975", "").text(t, "NewSeedValue"), 1990)
	equal(t, "force", h.want(200, "POST", "/databases/a/identity/seed?name=users|&value=5&force=true", "").text(t, "NewSeedValue"), 5)
	equal(t, "list", h.want(200, "GET", "/databases/a/debug/identities", "").body, `{"users|":5}`)
	for _, path := range []string{"next?name=", "next", "seed?name=users|", "seed?name=users|&value=-1", "seed?name=users|&value=x", "seed?name=&value=1"} {
		h.checkProblem(h.do("POST", "/databases/a/identity/"+path, ""), 400, "BadRequestException")
	}
}

// Ensure that a command with a raft-request-id, sent again, draws nothing, also after a
// restart.
func TestResults_Repeated(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	next := func(h *host, id string) string {
		return h.want(200, "POST", "/databases/a/identity/next?name=users|&raft-request-id="+id, "").text(t, "NewIdentityValue")
	}
	equal(t, "first", next(h, "r1"), 1)
	equal(t, "again", next(h, "r1"), 1)
	equal(t, "other", next(h, "r2"), 2)
	equal(t, "other command", h.want(200, "POST", "/databases/a/identity/next?name=orders|&raft-request-id=r1", "").text(t, "NewIdentityValue"), 1)
	h.checkProblem(h.do("POST", "/databases/a/identity/next?name=&raft-request-id=r3", ""), 400, "BadRequestException")
	h.checkProblem(h.do("POST", "/databases/a/identity/next?name=x&raft-request-id="+strings.Repeat("x", 129), ""), 400, "BadRequestException")
	h.stop()

	h = startIn(t, dir, func(o *server.Options) { o.MaxRememberedResults = 2 })
	equal(t, "after a restart", next(h, "r2"), 2)
	equal(t, "new", next(h, "r4"), 3)
	equal(t, "new", next(h, "r5"), 4)
	equal(t, "kept", next(h, "r5"), 4)
	equal(t, "kept, too", next(h, "r1"), 1) // by the database

	// The replies of administration are kept by the server, two of them here.
	create := func(status int, name string) {
		t.Helper()
		h.want(status, "PUT", "/admin/databases?name="+name+"&raft-request-id="+name, `{}`)
	}
	create(201, "b")
	create(201, "b")
	create(201, "c")
	create(201, "d")
	create(409, "b") // forgotten
	create(201, "d")
}

// Ensure that statistics count what is there.
func TestStats(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=u/1", `{"@metadata":{"@collection":"Users"}}`)
	version := h.want(201, "PUT", "/databases/a/docs?id=x", `{}`).text(t, "ChangeVector")
	a := h.want(200, "GET", "/databases/a/stats?failure=check", "")
	equal(t, "documents", a.text(t, "CountOfDocuments"), 2)
	equal(t, "etag", a.text(t, "LastDocEtag"), 2)
	equal(t, "change vector", a.text(t, "DatabaseChangeVector"), version)
	equal(t, "indexes", a.text(t, "Indexes"), "[]")
	equal(t, "collections", h.want(200, "GET", "/databases/a/collections/stats", "").text(t, "Collections"), "map[@empty:1 Users:1]")
}

// Ensure that a client configuration is stored, that clients with another one fetch it,
// and that those of a database without one do not.
func TestClientConfiguration(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	a := h.want(200, "GET", "/databases/a/configuration/client", "", "Client-Configuration-Etag", `"0"`)
	equal(t, "none", a.body, `{"Configuration":null,"Etag":-2}`)
	if _, sent := a.header["Refresh-Client-Configuration"]; sent {
		t.Error("there is nothing to fetch")
	}
	a = h.want(201, "PUT", "/databases/a/admin/configuration/client", `{"Etag":0,"Disabled":false,"MaxNumberOfRequestsPerSession":27}`)
	equal(t, "body and header", a.body+a.header.Get("Refresh-Client-Configuration"), "true")
	a = h.want(200, "GET", "/databases/a/configuration/client", "")
	etag := a.text(t, "Etag")
	if !strings.Contains(a.body, `"Etag":`+etag) || etag == "0" {
		t.Errorf("got %s", a.body)
	}
	equal(t, "stored", a.text(t, "Configuration", "MaxNumberOfRequestsPerSession"), 27)
	for _, sent := range []string{`"0"`, "0", `"` + etag + `"`, etag, ""} {
		a = h.want(204, "GET", "/databases/a/healthcheck", "", "Client-Configuration-Etag", sent)
		equal(t, sent, a.header.Get("Refresh-Client-Configuration") == "true", strings.Contains(sent, "0") && !strings.Contains(sent, etag))
	}
	h.checkProblem(h.do("PUT", "/databases/a/admin/configuration/client", `[]`), 400, "BadRequestException")
	h.stop()
	h = startIn(t, dir)
	equal(t, "etag", h.want(200, "GET", "/databases/a/configuration/client", "").text(t, "Etag"), etag)
}

// Ensure that queries find, page, count, include and select.
func TestQueries(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=companies/1", `{"Name":"Acme","@metadata":{"@collection":"Companies"}}`)
	for i := range 5 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=orders/%d", i), fmt.Sprintf(`{"Total":%d,"Company":"companies/1","@metadata":{"@collection":"Orders"}}`, i))
	}
	query := func(body string) answer { return h.want(200, "POST", "/databases/a/queries?queryHash=1", body) }
	a := query(`{"Query":"from 'Orders' where Total >= $p0 order by Total desc include Company","QueryParameters":{"p0":1,"p1":"unused"},"Start":1,"PageSize":2}`)
	equal(t, "total", a.text(t, "TotalResults"), 4)
	equal(t, "first", a.text(t, "Results", 0, "Total"), 3)
	equal(t, "count", len(a.json(t, "Results").([]any)), 2)
	equal(t, "included", a.text(t, "Includes", "companies/1", "Name"), "Acme")
	equal(t, "stale", a.text(t, "IsStale"), false)
	h.want(304, "POST", "/databases/a/queries?queryHash=1", `{"Query":"from 'Orders' where Total >= $p0 order by Total desc include Company","QueryParameters":{"p0":1},"Start":1,"PageSize":2}`, "If-None-Match", a.header.Get("ETag"))
	a = query(`{"Query":"from Orders where Total = 2 select Total, Company as c"}`)
	equal(t, "row", a.text(t, "Results", 0), "map[@metadata:map[@id:orders/2 @projection:true] Total:2 c:companies/1]")
	equal(t, "get", h.want(200, "GET", "/databases/a/queries?query=from+Orders&pageSize=0", "").text(t, "TotalResults"), 5)
	equal(t, "metadata only", len(h.want(200, "POST", "/databases/a/queries?metadataOnly=true", `{"Query":"from Orders limit 1"}`).json(t, "Results", 0).(map[string]any)), 1)
	a = h.want(200, "POST", "/databases/a/streams/queries", `{"Query":"from Orders order by Total","Start":1,"PageSize":2}`)
	if !strings.HasPrefix(a.body, `{"ResultEtag":0,"IsStale":false,"IndexName":"collection","TotalResults":5,"IndexTimestamp":"`) {
		t.Errorf("got %s", a.body)
	}
	equal(t, "streamed", a.text(t, "Results", 1, "Total"), 2)
	lines := strings.Split(h.want(200, "GET", "/databases/a/streams/queries?format=jsonl&query=from+Orders+select+Total+limit+2", "").body, "\n")
	equal(t, "lines", len(lines), 4)
	equal(t, "item", lines[1], `{"Item":{"Total":0,"@metadata":{"@projection":true,"@id":"orders/0"}}}`)
	equal(t, "nothing", h.want(200, "POST", "/databases/a/streams/queries", `{"Query":"from Nothing"}`).text(t, "Results"), "[]")
	h.checkProblem(h.do("POST", "/databases/a/streams/queries", `{"Query":"from Orders include Company"}`), 501, "NotSupportedException")
	h.checkProblem(h.do("POST", "/databases/a/streams/queries", `{"Query":"frm Orders"}`), 400, "InvalidQueryException")
	for _, body := range []string{`{"Query":"frm Orders"}`, `{"Query":"from Orders where Total = $p0"}`, `{"Query":"from Orders where search(Name, '\"x')"}`} {
		h.checkProblem(h.do("POST", "/databases/a/queries", body), 400, "InvalidQueryException")
	}
	for _, body := range []string{`{}`, `{"Query":7}`, ``, `x`} {
		h.checkProblem(h.do("POST", "/databases/a/queries", body), 400, "BadRequestException")
	}
}

// Ensure that a batch is bounded.
func TestBatch_Most(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.checkProblem(h.do("POST", "/databases/a/bulk_docs", `{"Commands":[`+strings.Repeat(`{"Type":"DELETE","Id":"x"},`, 100_000)+`{"Type":"DELETE","Id":"x"}]}`), 413, "RequestTooLargeException")
	h.checkProblem(h.do("PUT", "/databases/a/admin/configuration/client", `{"a":"`+strings.Repeat("x", 64<<10)+`"}`), 413, "RequestTooLargeException")
}

// Ensure that a document with revisions, which a program has configured, says so, and
// that statistics count them.
func TestStats_Revisions(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	db, err := jay.Open(filepath.Join(dir, "databases", "a"), nil)
	if err != nil {
		t.Fatal(err)
	}
	err = db.Revisions().Configure(t.Context(), jay.RevisionsConfiguration{Default: &jay.RevisionRule{}})
	if err := errors.Join(err, db.Close()); err != nil {
		t.Fatal(err)
	}
	h := startIn(t, dir)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":1}`)
	h.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"x","Document":{"n":2}}]}`)
	equal(t, "flags", h.want(200, "GET", "/databases/a/docs?id=x&metadataOnly=true", "").text(t, "Results", 0, "@metadata", "@flags"), "HasRevisions")
	if n := h.want(200, "GET", "/databases/a/stats", "").text(t, "CountOfRevisionDocuments"); n == "0" {
		t.Errorf("%s revisions", n)
	}
}
