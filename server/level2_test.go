package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/server"
)

// Ensure that a patch answers as RavenDB does, for a document that is there, one that is
// missing, and one of another version.
func TestPatch(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=u/1", `{"n":1.50,"t":"<&>","@metadata":{"@collection":"Us","Note":"x"}}`)
	version := h.want(200, "GET", "/databases/a/docs?id=u/1", "").header.Get("ETag")
	patch := func(status int, query, body string, headers ...string) answer {
		t.Helper()
		return h.want(status, "PATCH", "/databases/a/docs?"+query, body, headers...)
	}
	a := patch(200, "id=u/1", `{"Patch":{"Script":"this.m = args.v","Values":{"v":2}}}`, "If-Match", version)
	equal(t, "status", a.text(t, "Status"), "Patched")
	equal(t, "collection", a.text(t, "Collection"), "Us")
	if !strings.Contains(a.body, `"t":"<&>"`) || !strings.Contains(a.body, `"n":1.50`) {
		t.Errorf("the document has another spelling: %s", a.body)
	}
	doc := h.want(200, "GET", "/databases/a/docs?id=u/1", "")
	equal(t, "change vector", doc.header.Get("ETag"), `"`+a.text(t, "ChangeVector")+`"`)
	equal(t, "metadata", doc.text(t, "Results", 0, "@metadata", "Note"), "x")
	h.checkProblem(h.do("PATCH", "/databases/a/docs?id=u/1", `{"Patch":{"Script":"this.m = 3"}}`, "If-Match", version), 409, "ConcurrencyException")
	patch(304, "id=u/1&skipPatchIfChangeVectorMismatch=true", `{"Patch":{"Script":"this.m = 3"}}`, "If-Match", version)
	for _, tag := range []string{"*", `W/"a"`, `"a", "b"`} {
		h.checkProblem(h.do("PATCH", "/databases/a/docs?id=u/1", `{"Patch":{"Script":"this.m = 3"}}`, "If-Match", tag), 400, "BadRequestException")
	}
	equal(t, "not modified", patch(200, "id=u/1", `{"Patch":{"Script":"this.m = 2"}}`).text(t, "Status"), "NotModified")
	equal(t, "unchanged", h.want(200, "GET", "/databases/a/docs?id=u/1", "").header.Get("ETag"), doc.header.Get("ETag"))
	a = patch(200, "id=u/1&test=true", `{"Patch":{"Script":"this.m = 9; output('seen'); put('u/9', {}); del('u/1')"}}`)
	equal(t, "test", a.text(t, "OriginalDocument", "m")+a.text(t, "ModifiedDocument", "m")+a.text(t, "Debug", "Info"), "29[seen]")
	equal(t, "unchanged", h.want(200, "GET", "/databases/a/docs?id=u/1", "").header.Get("ETag"), doc.header.Get("ETag"))
	h.want(404, "GET", "/databases/a/docs?id=u/9", "")
	equal(t, "debug", patch(200, "id=u/1&debug=true", `{"Patch":{"Script":"output(this.m)"}}`).text(t, "Debug", "Info"), "[2]")

	patch(404, "id=u/2", `{"Patch":{"Script":"this.m = 3"}}`)
	h.want(404, "GET", "/databases/a/docs?id=u/2", "")
	equal(t, "created", patch(201, "id=u/2", `{"Patch":{"Script":"throw 1"},"PatchIfMissing":{"Script":"this.m = 4"}}`).text(t, "Status"), "Created")
	equal(t, "created", h.want(200, "GET", "/databases/a/docs?id=u/2", "").text(t, "Results", 0, "m"), 4)

	for body, kind := range map[string]string{
		``: "BadRequestException", `{}`: "BadRequestException", `{"Patch":{}}`: "BadRequestException", `{"Patch":{"Script":" "}}`: "BadRequestException",
		`{"Patch":{"Script":"this."}}`:                                                "JavaScriptException",
		`{"Patch":{"Script":"this.x.y.z = 1"}}`:                                       "JavaScriptException",
		`{"Patch":{"Script":"while(1);"}}`:                                            "JavaScriptException",
		`{"Patch":{"Script":"var s = 'x'; while (true) s += s"}}`:                     "JavaScriptException",
		`{"Patch":{"Script":"put('x', {'@metadata': {'@expires': 'never'}})"}}`:       "JavaScriptException",
		`{"Patch":{"Script":"this.d = Date.now()"}}`:                                  "NotSupportedException",
		`{"Patch":{"Script":"this.x = 1"},"PatchIfMissing":{"Script":"this."}}`:       "JavaScriptException",
		`{"Patch":{"Script":"this['@metadata']['@expires'] = 'never'"}}`:              "BadRequestException",
		`{"Patch":{"Script":"put('other', {}, 'A:1-stale')"}}`:                        "ConcurrencyException",
		`{"Patch":{"Script":"` + strings.Repeat(" ", 70_000) + `this.x = 1"}}`:        "JavaScriptException",
		`{"Patch":{"Script":"for (let i = 0; i < 2000; i++) put('many/' + i, {i})"}}`: "JavaScriptException",
	} {
		status := map[string]int{"NotSupportedException": 501, "ConcurrencyException": 409}[kind]
		if status == 0 {
			status = 400
		}
		h.checkProblem(h.do("PATCH", "/databases/a/docs?id=u/1", body), status, kind)
	}
	h.want(404, "GET", "/databases/a/docs?id=many/0", "")
	equal(t, "unchanged", h.want(200, "GET", "/databases/a/docs?id=u/1", "").header.Get("ETag"), doc.header.Get("ETag"))
}

// Ensure that a batch with patches and attachments is one transaction, and has the result of each command.
func TestBatch_Transaction(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=u/1", `{"n":1}`)
	body := `{"Commands":[{"Type":"PUT","Id":"v|","Document":{"n":7}},{"Type":"PUT","Id":"u/2","Document":{"n":2}},{"Type":"PATCH","Id":"u/2","Patch":{"Script":"this.n += load('u/1').n"},"ReturnDocument":true},
		{"Type":"PATCH","Id":"u/none","Patch":{"Script":"this.n = 1"}},{"Type":"PATCH","Id":"u/3","Patch":{"Script":"this.n = 1"},"CreateIfMissing":{"n":30}},
		{"Type":"BatchPATCH","Ids":[{"Id":"u/1"},{"Id":"u/2","ChangeVector":null}],"Patch":{"Script":"this.b = args.x","Values":{"x":"<"}}},{"Type":"DELETE","Id":"u/1"},{"Type":"DELETE","Id":"u/1"}]}`
	a := h.want(201, "POST", "/databases/a/bulk_docs", body)
	equal(t, "identity", a.text(t, "Results", 0, "@id"), "v/1")
	equal(t, "patched", a.text(t, "Results", 2, "PatchStatus")+a.text(t, "Results", 2, "ModifiedDocument", "n"), "Patched3")
	equal(t, "missing", a.text(t, "Results", 3, "PatchStatus"), "DocumentDoesNotExist")
	equal(t, "created", a.text(t, "Results", 4, "PatchStatus"), "Created")
	equal(t, "many", a.text(t, "Results", 5, "Type"), "BatchPATCH")
	equal(t, "deleted", a.text(t, "Results", 6, "Deleted")+a.text(t, "Results", 7, "Deleted"), "truefalse")
	equal(t, "u/2", h.want(200, "GET", "/databases/a/docs?id=u/2", "").text(t, "Results", 0, "b"), "<")
	equal(t, "u/3", h.want(200, "GET", "/databases/a/docs?id=u/3", "").text(t, "Results", 0, "n"), 30)

	for _, command := range []string{
		`{"Type":"PATCH","Id":"u/2","Patch":{"Script":"throw 'x'"}}`, `{"Type":"PATCH","Id":"u/2","ChangeVector":"A:1-x","Patch":{"Script":"this.n = 1"}}`, `{"Type":"PATCH","Id":"u/2"}`,
		`{"Type":"PATCH","Id":"","Patch":{"Script":"1"}}`, `{"Type":"PATCH","Id":"u/2","Patch":{"Script":"this."}}`, `{"Type":"BatchPATCH","Patch":{"Script":"1"}}`,
		`{"Type":"AttachmentPUT","Id":"u/2","Name":"x"}`, `{"Type":"AttachmentDELETE","Id":"u/2"}`, `{"Type":"AttachmentCOPY","Id":"u/2","Name":"x"}`,
		`{"Type":"AttachmentCOPY","Id":"u/2","Name":"none","DestinationId":"u/3","DestinationName":"y"}`, `{"Type":"AttachmentMOVE","Id":"none","Name":"none","DestinationId":"u/3","DestinationName":"y"}`,
	} {
		a := h.do("POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"u/9","Document":{}},{"Type":"PATCH","Id":"u/2","Patch":{"Script":"this.c = 1"}},`+command+`]}`)
		if a.status < 400 || !strings.HasPrefix(a.text(t, "Type"), "Raven.Client.Exceptions.") {
			t.Errorf("%s: %d %s", command, a.status, a.body)
		}
		h.want(404, "GET", "/databases/a/docs?id=u/9", "")
		equal(t, "nothing", h.want(200, "GET", "/databases/a/docs?id=u/2", "").text(t, "Results", 0, "c"), "<nil>")
	}
}

// parts makes a multipart body.
func parts(all ...string) (body, contentType string) {
	var b strings.Builder
	for i, part := range all {
		fmt.Fprintf(&b, "--xyz\r\nContent-Disposition: form-data; name=\"%d\"\r\nCommand-Type: AttachmentStream\r\n\r\n%s\r\n", i, part)
	}
	return b.String() + "--xyz--\r\n", "multipart/form-data; boundary=xyz"
}

// Ensure that a batch takes its attachments from a multipart body, and that one which is
// wrong changes nothing.
func TestBatch_Multipart(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	commands := `{"Commands":[{"Type":"PUT","Id":"u/1","Document":{}},{"Type":"AttachmentPUT","Id":"u/1","Name":"a","ContentType":"text/plain"},{"Type":"AttachmentPUT","Id":"u/1","Name":"b"}]}`
	for _, test := range []struct {
		name string
		all  []string
		cut  int
	}{
		{"no part", nil, 0}, {"no stream", []string{commands}, 0}, {"one stream", []string{commands, "x"}, 0}, {"three streams", []string{commands, "x", "y", "z"}, 0},
		{"no JSON", []string{"x", "y"}, 0}, {"cut", []string{commands, "x", "y"}, 30}, {"streams and no command", []string{`{"Commands":[{"Type":"PUT","Id":"u/1","Document":{}}]}`, "x"}, 0},
		{"many", append([]string{commands}, make([]string, 2000)...), 0},
	} {
		body, kind := parts(test.all...)
		a := h.do("POST", "/databases/a/bulk_docs", body[:len(body)-test.cut], "Content-Type", kind)
		if a.status != 400 && a.status != 413 {
			t.Errorf("%s: %d %s", test.name, a.status, a.body)
		}
		h.want(404, "GET", "/databases/a/docs?id=u/1", "")
	}
	body, kind := parts(commands, "first\r\n", "")
	a := h.want(201, "POST", "/databases/a/bulk_docs", body, "Content-Type", kind)
	equal(t, "size", a.text(t, "Results", 1, "Size"), 7)
	equal(t, "first", h.want(200, "GET", "/databases/a/attachments?id=u/1&name=a", "").body, "first\r\n")
	equal(t, "second", h.want(200, "GET", "/databases/a/attachments?id=u/1&name=b", "").body, "")
	h.checkProblem(h.do("POST", "/databases/a/bulk_docs", body, "Content-Type", "multipart/form-data"), 400, "BadRequestException")
	h.checkProblem(h.do("POST", "/databases/a/queries", body, "Content-Type", kind), 415, "UnsupportedContentTypeException")
	h.idle()
}

// Ensure that attachments are streams, that one which is cut short is not stored, and that
// requests which are wrong have typed errors.
func TestAttachments(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=u/1", `{}`)
	path := "/databases/a/attachments?id=u/1&name="
	large := strings.Repeat("0123456789abcdef", 1<<17)
	a := h.want(201, "PUT", path+"large&contentType=text/html", large, "Content-Type", "image/png")
	version := h.want(200, "GET", "/databases/a/docs?id=u/1", "").header.Get("ETag")
	equal(t, "change vector", `"`+a.text(t, "ChangeVector")+`"`, version)
	a = h.want(200, "GET", path+"LARGE", "")
	equal(t, "content", a.body == large, true)
	equal(t, "type", a.header.Get("Content-Type"), "text/html")
	equal(t, "sandbox", a.header.Get("Content-Security-Policy")+a.header.Get("X-Content-Type-Options"), "sandboxnosniff")
	h.want(304, "GET", path+"large", "", "If-None-Match", version)
	h.want(304, "HEAD", path+"large", "", "If-None-Match", version)
	h.checkProblem(h.do("PUT", path+"x", "x", "If-Match", `"A:1-x"`), 409, "ConcurrencyException")
	h.checkProblem(h.do("DELETE", path+"large", "", "If-Match", `"A:1-x"`), 409, "ConcurrencyException")
	h.want(201, "PUT", path+"odd%20n%C3%A4me%2F..%2F%22", "x", "If-Match", version)
	h.want(200, "GET", path+"odd%20n%C3%A4me%2F..%2F%22", "")
	for _, wrong := range []string{"?id=u/1", "?name=x", "?id=u/1&name=%00", "?id=u/1&name=%ff", "?id=u/1&name=" + strings.Repeat("x", 600), "?id=u/1&name=x&contentType=" + strings.Repeat("x", 300)} {
		h.checkProblem(h.do("PUT", "/databases/a/attachments"+wrong, "x"), 400, "BadRequestException")
	}
	h.checkProblem(h.do("PUT", "/databases/a/attachments?id=none&name=x", "x"), 400, "DocumentDoesNotExistException")
	h.checkProblem(h.do("POST", path+"large", `{"Type":"Revision","ChangeVector":"A:1-x"}`), 501, "NotSupportedException")
	for _, body := range []string{`{}`, `{"Attachments":[]}`, `[]`, ``} {
		h.checkProblem(h.do("POST", "/databases/a/attachments/bulk", body), 400, "BadRequestException")
	}
	h.want(204, "DELETE", path+"none", "")
	h.want(204, "DELETE", "/databases/a/attachments?id=none&name=x", "")
	h.want(404, "HEAD", path+"none", "")

	conn, err := net.Dial("tcp", strings.TrimPrefix(h.http.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "PUT %scut HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nhalf", path)
	conn.Close()
	h.idle()
	h.want(404, "GET", path+"cut", "")
}

// Ensure that a thousand streams that no client reads hold bounded memory, and end with
// their clients.
func TestAttachments_Unread(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxStreams, o.QueueTimeout = 16, time.Millisecond })
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=u/1", `{}`)
	h.want(201, "PUT", "/databases/a/attachments?id=u/1&name=x", strings.Repeat("x", 8<<20))
	address := strings.TrimPrefix(h.http.URL, "http://")
	var conns []net.Conn
	for range 1000 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		fmt.Fprint(conn, "GET /databases/a/attachments?id=u/1&name=x HTTP/1.1\r\nHost: localhost\r\n\r\n")
	}
	for {
		if requests, _ := h.s.CheckLoad(); requests == 16 {
			break
		}
		time.Sleep(time.Millisecond)
	}
	h.want(200, "GET", "/databases/a/docs?id=u/1", "")
	for _, conn := range conns {
		conn.Close()
	}
	h.idle()
}

// slowWriter waits with its first write until it may go on, and takes a moment for the
// others.
type slowWriter struct {
	*httptest.ResponseRecorder
	begun, goOn chan struct{}
	once        sync.Once
}

// Write implements io.Writer.
func (w *slowWriter) Write(b []byte) (int, error) {
	w.once.Do(func() {
		close(w.begun)
		<-w.goOn
	})
	time.Sleep(time.Millisecond)
	return w.ResponseRecorder.Write(b)
}

// Ensure that a deletion of the database ends the downloads of its attachments.
func TestAttachments_OfDeleted(t *testing.T) {
	t.Parallel()
	h := start(t)
	for i, r := range []*http.Request{
		httptest.NewRequest("GET", "http://localhost/databases/a/attachments?id=u/1&name=x", nil),
		httptest.NewRequest("POST", "http://localhost/databases/a/attachments/bulk", strings.NewReader(`{"Attachments":[{"DocumentId":"u/1","Name":"x"}]}`)),
	} {
		h.create("a")
		h.want(201, "PUT", "/databases/a/docs?id=u/1", `{}`)
		h.want(201, "PUT", "/databases/a/attachments?id=u/1&name=x", strings.Repeat("x", 8<<20))
		w := &slowWriter{ResponseRecorder: httptest.NewRecorder(), begun: make(chan struct{}), goOn: make(chan struct{})}
		ended := make(chan any, 1)
		go func() {
			defer func() { ended <- recover() }()
			h.s.ServeHTTP(w, r)
		}()
		<-w.begun
		deleted := make(chan answer, 1)
		go func() {
			a, _ := h.try("DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`)
			deleted <- a
		}()
		await(t, "the deletion", func() bool { return h.do("GET", "/databases/a/healthcheck", "").status == 503 })
		close(w.goOn)
		if cut := <-ended; cut != http.ErrAbortHandler {
			t.Errorf("%d: the download goes on to its end: %v", i, cut)
		}
		equal(t, "deletion", (<-deleted).status, 200)
	}
}

// Ensure that a change by query reports its end, can be killed, and is refused at once if
// its query or script is wrong.
func TestByQuery(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	var elements []string
	for i := range 300 {
		elements = append(elements, put(fmt.Sprintf("n/%03d", i), i))
	}
	h.want(200, "POST", "/databases/a/bulk_insert?id="+h.operationID(), "["+strings.Join(elements, ",")+"]")
	run := func(method, body string) answer {
		t.Helper()
		id := h.want(200, method, "/databases/a/queries?details=true&allowStale=", body).text(t, "OperationId")
		return h.ended("/databases/a/operations/state?id=" + id)
	}
	a := run("PATCH", `{"Query":{"Query":"from Ns as d where d.n >= $from /* update { */ update {\n  d.m = $from + ' } ';\n}","QueryParameters":{"from":100}}}`)
	equal(t, "patched", a.text(t, "Status")+a.text(t, "Result", "Total")+a.text(t, "Progress", "Processed"), "Completed200200")
	equal(t, "details", a.text(t, "Result", "Details", 0, "Id")+a.text(t, "Result", "Details", 0, "Status"), "n/100Patched")
	equal(t, "document", h.want(200, "GET", "/databases/a/docs?id=n/299", "").text(t, "Results", 0, "m"), "100 } ")
	a = run("PATCH", `{"Query":"from Ns where n < 2 update { this.all = id(this) }"}`)
	equal(t, "text", a.text(t, "Status"), "Completed")
	a = run("PATCH", `{"Query":{"Query":"from Ns\nwhere n < 150\nupdate {\n  this.k = 1;\n  if (this.n === 149) this.x.y = 1 }"}}`)
	equal(t, "faulted", a.text(t, "Status"), "Faulted")
	equal(t, "line", strings.Contains(a.text(t, "Result", "Message"), "line 5"), true)
	equal(t, "the first batch", h.want(200, "GET", "/databases/a/docs?id=n/000", "").text(t, "Results", 0, "k"), 1)
	equal(t, "the last batch", h.want(200, "GET", "/databases/a/docs?id=n/148", "").text(t, "Results", 0, "k"), "<nil>")

	id := h.want(200, "DELETE", "/databases/a/queries?maxOpsPerSec=1", `{"Query":"from Ns"}`).text(t, "OperationId")
	h.want(204, "POST", "/databases/a/operations/kill?id="+id, "")
	equal(t, "killed", h.ended("/databases/a/operations/state?id="+id).text(t, "Status"), "Canceled")
	a = run("DELETE", `{"Query":"from Ns where n >= 10"}`)
	equal(t, "deleted", a.text(t, "Status"), "Completed")
	equal(t, "left", a.text(t, "Result", "Total") <= "290", true)
	a = run("DELETE", `{"Query":"from @all_docs"}`)
	equal(t, "all deleted", a.text(t, "Status"), "Completed")
	equal(t, "none", h.want(200, "GET", "/databases/a/collections/stats", "").text(t, "CountOfDocuments"), 0)

	for body, kind := range map[string]string{
		``: "BadRequestException", `{}`: "BadRequestException", `{"Query":null}`: "BadRequestException", `{"Query":7}`: "BadRequestException", `{"Query":{}}`: "BadRequestException",
		`{"Query":"from Ns"}`: "BadRequestException", `{"Query":"from Ns update {"}`: "BadRequestException", `{"Query":"from Ns update { this.x = 1 } where n = 1"}`: "BadRequestException",
		`{"Query":"frm Ns update { this.x = 1 }"}`: "InvalidQueryException", `{"Query":"from Ns where n = 'update { this.x = 1 }'"}`: "BadRequestException",
		`{"Query":"from Ns update { this. }"}`: "JavaScriptException", `{"Query":"from index 'None' update { this.x = 1 }"}`: "IndexDoesNotExistException",
		`{"Query":"from Ns update { var x = 1; }} "}`: "JavaScriptException",
	} {
		h.checkProblem(h.do("PATCH", "/databases/a/queries", body), 400, kind)
	}
	h.checkProblem(h.do("DELETE", "/databases/a/queries", `{"Query":"from Ns where"}`), 400, "InvalidQueryException")
	h.checkProblem(h.do("DELETE", "/databases/a/queries?maxOpsPerSec=x", `{"Query":"from Ns"}`), 400, "BadRequestException")
	h.checkProblem(h.do("POST", "/admin/compact", `{"DatabaseName":"none"}`), 400, "DatabaseDoesNotExistException")
	h.checkProblem(h.do("POST", "/admin/compact", `{}`), 400, "BadRequestException")
	h.idle()
}

// Ensure that an operation ends with its database and with the server.
func TestOperations_End(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(200, "POST", "/databases/a/bulk_insert?id="+h.operationID(), "["+put("n/1", 1)+","+put("n/2", 1)+"]")
	h.want(200, "PATCH", "/databases/a/queries?maxOpsPerSec=1", `{"Query":"from Ns update { this.x = 1 }"}`)
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`)
	h.create("a")
	h.want(200, "POST", "/databases/a/bulk_insert?id="+h.operationID(), "["+put("n/1", 1)+","+put("n/2", 1)+"]")
	h.want(200, "PATCH", "/databases/a/queries?maxOpsPerSec=1", `{"Query":"from Ns update { this.x = 1 }"}`)
	h.stop()
}

// Ensure that revisions are found by their change vectors also after the server has started
// anew, when it does not remember of which documents they are.
func TestRevisions_ByVector(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.want(200, "POST", "/databases/a/admin/revisions/config", `{"Default":{"Disabled":false}}`)
	var vectors []string
	for i := range 3 {
		vectors = append(vectors, h.want(201, "PUT", "/databases/a/docs?id=u/1", fmt.Sprintf(`{"n":%d}`, i)).text(t, "ChangeVector"))
	}
	h.stop()
	h = startIn(t, dir)
	for i, vector := range vectors {
		a := h.want(200, "GET", "/databases/a/revisions?changeVector="+url.QueryEscape(vector), "")
		equal(t, vector, a.text(t, "Results", 0, "n"), i)
	}
	a := h.want(200, "GET", "/databases/a/revisions?changeVector="+url.QueryEscape(vectors[1])+"&changeVector=none&changeVector="+url.QueryEscape(vectors[0]), "")
	equal(t, "several", a.text(t, "Results", 0, "n")+a.text(t, "Results", 1)+a.text(t, "Results", 2, "n"), "1<nil>0")
	h.want(204, "POST", "/databases/a/revisions/revert/docs", `{"IdToChangeVector":{"u/1":"`+vectors[0]+`"}}`)
	equal(t, "reverted", h.want(200, "GET", "/databases/a/docs?id=u/1", "").text(t, "Results", 0, "n"), 0)

	for _, path := range []string{"/revisions", "/revisions?id=u/1&start=-1", "/revisions?id=u/1&before=yesterday", "/revisions/count", "/revisions?changeVector=" + strings.Repeat("x&changeVector=x", 1030)} {
		h.checkProblem(h.do("GET", "/databases/a"+path, ""), 400, "BadRequestException")
	}
	for _, config := range []string{`x`, `{"Collections":{"A":null}}`, `{"Default":{"MinimumRevisionAgeToKeep":"1 day"}}`, `{"Default":{"MinimumRevisionAgeToKeep":"25:61:00"}}`, `{"Default":{"MinimumRevisionsToKeep":-1}}`} {
		h.checkProblem(h.do("POST", "/databases/a/admin/revisions/config", config), 400, "BadRequestException")
	}
	h.checkProblem(h.do("POST", "/databases/a/admin/revisions/config", `{"Default":{"PurgeOnDelete":true}}`), 501, "NotSupportedException")
	for _, config := range []string{`x`, `{"DeleteFrequencyInSec":0}`, `{"Other":1}`, ``, `{"Disabled":1}`} {
		h.checkProblem(h.do("POST", "/databases/a/admin/expiration/config", config), 400, "BadRequestException")
	}
}

// Ensure that definitions which name fields become indexes that queries use, and that
// they are gone with their database.
func TestIndexes(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.create("a")
	for i, maps := range []string{
		`from doc in docs.Users select new { doc.Name, doc.Age }`, `from doc in docs[\"Users\"]\r\n select new\r\n{\r\n Name = doc.Name,\r\n Age = doc.Age,\r\n}`,
		`docs.Users.Select(u => new { Name = u.Name, u.Age })`, `docs[\"Users\"].Select((u) => new { u.Name, u.Age });`, `map('Users', u => ({ Name: u.Name, Age: u.Age }))`,
		`map(\"Users\", (u) => { return { Name: u.Name, 'Age': u.Age }; })`, `map('Users', function (u) { return { Name: u.Name, Age: u.Age } });`,
		`map('Users', function f(u) {\n return {\n Name: u.Name,\n Age: u.Age\n };\n})`,
	} {
		name := fmt.Sprint("I/", i)
		h.want(201, "PUT", "/databases/a/admin/indexes", `{"Indexes":[{"Name":"`+name+`","Maps":["`+maps+`"],"Fields":{"Name":{"Indexing":"Default","Storage":"Yes"},"Age":{}}}]}`)
		equal(t, maps, h.want(200, "GET", "/databases/a/indexes/stats?name="+name, "").text(t, "Results", 0, "IsStale"), false)
		h.want(200, "POST", "/databases/a/queries", `{"Query":"from index '`+name+`' as u where u.Name = 'x' order by Age"}`)
		h.want(204, "DELETE", "/databases/a/indexes?name="+strings.ToLower(name), "")
	}
	for _, definition := range []string{
		`{"Name":"X","Maps":["map('Users', u => { x = 1; return { Name: u.Name } })"]}`, `{"Name":"X","Maps":["from u in docs.A select new { u.N }"],"Reduce":"from r in results select r"}`,
		`{"Name":"X","Maps":["from u in docs.A select new { u.N }"],"Fields":{"N":{"Analyzer":"Acorns.Own"}}}`,
		`{"Name":"X","Maps":["from u in docs.A select new { u.N }"],"Fields":{"N":{"Spatial":{"Type":"Cartesian"}}}}`, `{"Name":"X","Maps":["from u in docs.A select new { u.N }"],"AdditionalSources":{"a":"b"}}`,
	} {
		h.checkProblem(h.do("PUT", "/databases/a/indexes", `{"Indexes":[`+definition+`]}`), 501, "NotSupportedException")
	}
	for _, body := range []string{``, `{}`, `{"Indexes":[]}`, `{"Indexes":[1]}`, `{"Indexes":[{"Maps":["map('A', u => ({ n: u.n }))"]}]}`, `{"Indexes":[{"Name":"a:b","Maps":["map('A', u => ({ n: u.n }))"]}]}`,
		`{"Indexes":[{"Name":"X/","Maps":["map('A', u => ({ n: u.n }))"]}]}`, `{"Indexes":[{"Name":"X|","Maps":["map('A', u => ({ n: u.n }))"]}]}`,
		`{"Indexes":[{"Name":"Auto/X","Maps":["map('A', u => ({ n: u.n }))"]}]}`, `{"Indexes":[{"Name":"X","Maps":["map('A', u => ({ n: u.n, 'n': u.n }))"]}]}`} {
		h.checkProblem(h.do("PUT", "/databases/a/indexes", body), 400, "BadRequestException")
	}
	h.checkProblem(h.do("PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"X"}]}`), 400, "IndexInvalidException")
	h.checkProblem(h.do("PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"X","Maps":["`+strings.Repeat(" ", 20_000)+`"]}]}`), 413, "RequestTooLargeException")
	h.checkProblem(h.do("PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"X","Maps":["map('A', u => ({ n: u.n }))"],"Configuration":{"x":"`+strings.Repeat("x", 64<<10)+`"}}]}`), 413, "RequestTooLargeException")
	equal(t, "none", h.want(200, "GET", "/databases/a/indexes", "").text(t, "Results"), "[]")

	one := `{"Indexes":[{"Name":"X","Maps":["map('A', u => ({ n: u.n }))"]}]}`
	h.want(201, "PUT", "/databases/a/indexes", one)
	h.want(201, "PUT", "/databases/a/indexes", one)
	h.want(201, "PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"x","Maps":["map('A', u => ({ m: u.m, k: u.k }))"]}]}`)
	equal(t, "replaced", len(h.want(200, "GET", "/jay/v1/databases/a/indexes", "").json(t, "indexes").([]any)), 2)
	h.want(204, "POST", "/databases/a/indexes/set-lock", `{"IndexNames":["X"],"Mode":"LockedError"}`)
	h.checkProblem(h.do("PUT", "/databases/a/indexes", one), 400, "IndexCreationException")
	h.want(204, "POST", "/databases/a/indexes/set-lock", `{"IndexNames":["X"],"Mode":"LockedIgnore"}`)
	h.want(201, "PUT", "/databases/a/indexes", one)
	equal(t, "ignored", len(h.want(200, "GET", "/jay/v1/databases/a/indexes", "").json(t, "indexes").([]any)), 2)
	h.checkProblem(h.do("POST", "/databases/a/indexes/set-lock", `{"IndexNames":["X"],"Mode":"Open"}`), 400, "BadRequestException")
	h.checkProblem(h.do("POST", "/databases/a/indexes/set-priority", `{"IndexNames":["None"],"Priority":"Low"}`), 400, "IndexDoesNotExistException")
	h.checkProblem(h.do("RESET", "/databases/a/indexes?name=None", ""), 400, "IndexDoesNotExistException")
	h.checkProblem(h.do("POST", "/databases/a/admin/indexes/start?name=None", ""), 400, "IndexDoesNotExistException")
	h.want(404, "GET", "/databases/a/indexes?name=None", "")

	// A collection has at most 64 indexes.
	fields := func(prefix string, n int) string {
		var members []string
		for i := range n {
			members = append(members, fmt.Sprintf("%s%d: u.%s%d", prefix, i, prefix, i))
		}
		return `"Maps":["map('B', u => ({ ` + strings.Join(members, ", ") + ` }))"]`
	}
	h.want(201, "PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"B1",`+fields("a", 32)+`},{"Name":"B2",`+fields("b", 30)+`}]}`)
	h.checkProblem(h.do("PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"B3",`+fields("c", 3)+`}]}`), 400, "BadRequestException")
	h.want(201, "PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"B4",`+fields("d", 1)+`}]}`)
	h.checkProblem(h.do("PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"B2",`+fields("e", 32)+`}]}`), 400, "BadRequestException")
	equal(t, "definitions", h.want(200, "GET", "/databases/a/indexes?namesOnly=true", "").text(t, "Results"), "[B1 B2 B4 x]")
	stats := h.want(200, "GET", "/databases/a/indexes/stats", "")
	for i := range 4 {
		equal(t, "stale", stats.text(t, "Results", i, "IsStale"), false)
	}
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`)
	h.create("a")
	equal(t, "gone with the database", h.want(200, "GET", "/databases/a/indexes", "").text(t, "Results"), "[]")
}

// Ensure that a request which ends while it waits for its body is over.
func TestAttachments_ClientLeaves(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=u/1", `{}`)
	r, w := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	request, err := http.NewRequestWithContext(ctx, "PUT", h.http.URL+"/databases/a/attachments?id=u/1&name=x", r)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if reply, err := h.http.Client().Do(request); err == nil {
			reply.Body.Close()
		}
	}()
	if _, err := w.Write([]byte("half")); err != nil {
		t.Fatal(err)
	}
	cancel()
	w.CloseWithError(io.ErrUnexpectedEOF) // net/http may wait for the body's end, also of a request that is cancelled
	<-done
	h.idle()
	h.want(404, "GET", "/databases/a/attachments?id=u/1&name=x", "")
}
