package server_test

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/server"
)

// operationID asks for the number of an operation.
func (h *host) operationID() string {
	h.t.Helper()
	return h.want(200, "GET", "/databases/a/operations/next-operation-id", "").text(h.t, "Id")
}

// ended returns the state of an operation that has ended.
func (h *host) ended(path string) answer {
	h.t.Helper()
	for {
		a := h.want(200, "GET", path, "")
		if a.text(h.t, "Status") != "InProgress" {
			return a
		}
		time.Sleep(time.Millisecond)
	}
}

// idle checks that no request runs and no memory is taken, which may take a moment after
// a client has gone.
func (h *host) idle() {
	h.t.Helper()
	requests, taken := h.s.CheckLoad()
	for more := jaytest.Patience(); more(requests == 0 && taken == 0); requests, taken = h.s.CheckLoad() {
		time.Sleep(time.Millisecond)
	}
	if requests != 0 || taken != 0 {
		h.t.Errorf("%d requests and %d bytes are left", requests, taken)
	}
}

func put(id string, n int) string {
	return fmt.Sprintf(`{"Id":%q,"Type":"PUT","Document":{"n":%d,"@metadata":{"@collection":"Ns"}}}`, id, n)
}

// Ensure that a bulk insert stores what the elements of its stream say, whatever stands
// between them.
func TestBulkInsert(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, test := range []struct {
		name, body string
		want       int // documents
	}{
		{"none", ` [ ] `, 0},
		{"one", `[` + put("n/1", 1) + `]`, 1},
		{"white space", "\n[ " + put("n/1", 1) + "\n,\t" + put("n/2", 2) + " ]\n", 2},
		{"heartbeats", `[{"Type":"HeartBeat"},` + put("n/1", 1) + `,{"Type":"HeartBeat"}]`, 1},
		{"brackets and quotes in text", `[{"Id":"n/\"1]}","Type":"PUT","Document":{"a":"]},{\"\\","b":["}"]}}]`, 1},
		{"members in another order", `[{"Document":{},"Type":"PUT","Id":"n/3"}]`, 1},
		{"server-side IDs", `[` + put("n/", 1) + `,` + put("", 2) + `]`, 2},
		{"an attachment", `[` + put("n/4", 1) + `,{"Id":"n/4","Type":"AttachmentPUT","Name":"x","ContentType":"text/plain","ContentLength":5}],[",,` + put("n/5", 1) + `]`, 2},
		{"an empty attachment", `[` + put("n/4", 1) + `,{"Id":"n/4","Type":"AttachmentPUT","Name":"y","ContentLength":0},` + put("n/5", 1) + `]`, 2},
	} {
		id := h.operationID()
		a := h.want(200, "POST", "/databases/a/bulk_insert?id="+id, test.body)
		equal(t, test.name+": reply", a.body, "")
		equal(t, test.name+": length", a.header.Get("Content-Length"), "0")
		state := h.want(200, "GET", "/databases/a/operations/state?id="+id, "")
		equal(t, test.name+": status", state.text(t, "Status"), "Completed")
		equal(t, test.name+": documents", state.text(t, "Result", "DocumentsProcessed"), test.want)
	}
	equal(t, "attachment", h.want(200, "GET", "/databases/a/attachments?id=n/4&name=x", "").body, `],[",`)
	equal(t, "collection", h.want(200, "GET", "/databases/a/docs?id=n/2", "").text(t, "Results", 0, "@metadata", "@collection"), "Ns")
	h.idle()
}

// Ensure that a stream which is packed is unpacked as it comes.
func TestBulkInsert_Gzip(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	fmt.Fprintf(w, "[%s]", put("n/1", 1))
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	h.want(200, "POST", "/databases/a/bulk_insert?id="+h.operationID(), packed.String(), "Content-Encoding", "gzip")
	h.want(200, "GET", "/databases/a/docs?id=n/1", "")
	id := h.operationID()
	a := h.do("POST", "/databases/a/bulk_insert?id="+id, packed.String()[:packed.Len()/2], "Content-Encoding", "gzip")
	h.checkProblem(a, 400, "BulkInsertProtocolViolationException")
	h.checkProblem(h.do("POST", "/databases/a/bulk_insert?id="+h.operationID(), "[]", "Content-Encoding", "gzip"), 400, "BulkInsertProtocolViolationException")
	h.checkProblem(h.do("POST", "/databases/a/bulk_insert?id="+h.operationID(), "[]", "Content-Encoding", "br"), 415, "UnsupportedContentTypeException")
}

// Ensure that a stream which is wrong ends with an error, in the reply and in the state of
// the operation, and that what came before it is stored.
func TestBulkInsert_Wrong(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxBodyBytes = 1 << 16 })
	h.create("a")
	first := `[` + put("n/first", 1)
	for _, test := range []struct{ name, body, kind string }{
		{"nothing", ``, "BulkInsertProtocolViolationException"},
		{"no array", `{}`, "BulkInsertProtocolViolationException"},
		{"no end", first, "BulkInsertProtocolViolationException"},
		{"no element", first + `,]`, "BulkInsertProtocolViolationException"},
		{"no comma", first + put("n/2", 2) + `]`, "BulkInsertProtocolViolationException"},
		{"half an element", first + `,{"Id":"n/2","Type":"PUT","Docu`, "BulkInsertProtocolViolationException"},
		{"an element that is none", first + `,1]`, "BulkInsertProtocolViolationException"},
		{"members that are none", first + `,{"Id" "n/2"}]`, "BulkInsertProtocolViolationException"},
		{"a name that is none", first + `,{Id:"n/2"}]`, "BulkInsertProtocolViolationException"},
		{"an ID that is no text", first + `,{"Id":2,"Type":"PUT","Document":{}}]`, "BulkInsertProtocolViolationException"},
		{"no type", first + `,{"Id":"n/2"}]`, "BadRequestException"},
		{"another type", first + `,{"Id":"n/2","Type":"DELETE"}]`, "BadRequestException"},
		{"no document", first + `,{"Id":"n/2","Type":"PUT"}]`, "BadRequestException"},
		{"a document that is none", first + `,{"Id":"n/2","Type":"PUT","Document":[]}]`, "BadRequestException"},
		{"a document with a wrong member", first + `,{"Id":"n/2","Type":"PUT","Document":{"a":tru}}]`, "BadRequestException"},
		{"a wrong instant", first + `,{"Id":"n/2","Type":"PUT","Document":{"@metadata":{"@expires":"never"}}}]`, "BadRequestException"},
		{"a wrong ID", first + `,{"Id":"n\u0000","Type":"PUT","Document":{}}]`, "BadRequestException"},
		{"counters", first + `,{"Id":"n/2","Type":"Counters","Counters":{}}]`, "NotSupportedException"},
		{"time series", first + `,{"Id":"n/2","Type":"TimeSeriesBulkInsert"}]`, "NotSupportedException"},
		{"an element too large", first + `,{"Id":"n/2","Type":"PUT","Document":{"a":"` + strings.Repeat("a", 1<<16) + `"}}]`, "RequestTooLargeException"},
		{"an attachment without a length", first + `,{"Id":"n/first","Type":"AttachmentPUT","Name":"x"}]`, "BadRequestException"},
		{"an attachment with a wrong length", first + `,{"Id":"n/first","Type":"AttachmentPUT","Name":"x","ContentLength":-1}]`, "BadRequestException"},
		{"an attachment cut short", first + `,{"Id":"n/first","Type":"AttachmentPUT","Name":"x","ContentLength":100}]`, "BulkInsertProtocolViolationException"},
		{"an attachment of no document", first + `,{"Id":"none","Type":"AttachmentPUT","Name":"x","ContentLength":1}x]`, "DocumentDoesNotExistException"},
	} {
		id := h.operationID()
		a := h.do("POST", "/databases/a/bulk_insert?id="+id, test.body)
		status := 400
		if test.kind == "NotSupportedException" {
			status = 501
		} else if test.kind == "RequestTooLargeException" {
			status = 413
		}
		t.Run(test.name, func(t *testing.T) {
			(&host{t: t}).checkProblem(a, status, test.kind)
			state := h.want(200, "GET", "/databases/a/operations/state?id="+id, "")
			equal(t, "status", state.text(t, "Status"), "Faulted")
			equal(t, "result", strings.HasSuffix(state.text(t, "Result", "Type"), test.kind), true)
			equal(t, "$type", strings.HasPrefix(state.text(t, "Result", "$type"), "Raven.Client.Documents.Operations.OperationExceptionResult"), true)
			equal(t, "error", state.text(t, "Result", "Error") != "", true)
			if strings.HasPrefix(test.body, first) {
				h.want(200, "GET", "/databases/a/docs?id=n/first", "")
			}
			h.want(404, "GET", "/databases/a/docs?id=n/2", "")
			h.want(404, "GET", "/databases/a/attachments?id=n/first&name=x", "")
			h.want(204, "DELETE", "/databases/a/docs?id=n/first", "")
		})
	}
	for _, id := range []string{"", "0", "-1", "x", "99999999999999"} {
		h.checkProblem(h.do("POST", "/databases/a/bulk_insert?id="+id, "[]"), 400, "BadRequestException")
	}
	id := h.operationID()
	h.want(200, "POST", "/databases/a/bulk_insert?id="+id, "[]")
	h.checkProblem(h.do("POST", "/databases/a/bulk_insert?id="+id, "[]"), 400, "BadRequestException")
	h.want(404, "GET", "/databases/a/operations/state?id=99", "")
	h.want(404, "POST", "/databases/a/operations/kill?id=99", "")
	h.idle()
}

// openBulkInsert begins a bulk insert, whose stream the caller writes. The channel has the
// reply, or an empty one if the connection ends without it. Go's client would not do: when
// a connection breaks, it may wait for the end of the body.
func (h *host) openBulkInsert(id string) (*io.PipeWriter, <-chan answer) {
	h.t.Helper()
	conn := h.ask("POST /databases/a/bulk_insert?id=" + id + " HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n")
	r, w := io.Pipe()
	go func() {
		chunks := httputil.NewChunkedWriter(conn)
		if _, err := io.Copy(chunks, r); err != nil {
			conn.Close()
			r.CloseWithError(err)
			return
		}
		_ = chunks.Close()
		_, _ = io.WriteString(conn, "\r\n") // the server may have gone
	}()
	replies := make(chan answer, 1)
	go func() {
		reply, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			replies <- answer{}
			return
		}
		defer reply.Body.Close()
		text, _ := io.ReadAll(reply.Body)
		replies <- answer{reply.StatusCode, reply.Header, string(text)}
	}()
	return w, replies
}

// under waits until a bulk insert has begun.
func (h *host) under(id string) {
	h.t.Helper()
	for h.do("GET", "/databases/a/operations/state?id="+id, "").status != 200 {
		time.Sleep(time.Millisecond)
	}
}

// Ensure that the reply comes at the end of the array: Node's client ends its stream
// behind the reply.
func TestBulkInsert_ReplyBeforeTheEnd(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	id := h.operationID()
	w, replies := h.openBulkInsert(id)
	defer w.Close()
	fmt.Fprintf(w, "[%s]", put("n/1", 1))
	a := <-replies
	equal(t, "status", a.status, 200)
	h.want(200, "GET", "/databases/a/docs?id=n/1", "")
}

// Ensure that a request ends a bulk insert that waits for its client, that what was
// stored stays, and that a bulk insert which was killed before it began does not begin.
func TestBulkInsert_Kill(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	id := h.operationID()
	w, replies := h.openBulkInsert(id)
	defer w.Close()
	fmt.Fprintf(w, "[%s", put("n/1", 1))
	for h.do("GET", "/databases/a/docs?id=n/1", "").status != 200 { // a batch is committed after a second
		time.Sleep(10 * time.Millisecond)
	}
	h.want(204, "POST", "/databases/a/operations/kill?id="+id, "")
	if a := <-replies; a.status != 0 { // the client may see the end of the connection first
		h.checkProblem(a, 400, "BulkInsertAbortedException")
	}
	state := h.ended("/databases/a/operations/state?id=" + id)
	equal(t, "status", state.text(t, "Status"), "Faulted")
	equal(t, "error", strings.Contains(state.text(t, "Result", "Error"), "killed"), true)
	h.want(204, "POST", "/databases/a/operations/kill?id="+id, "")
	h.want(200, "GET", "/databases/a/docs?id=n/1", "")

	id = h.operationID()
	h.want(204, "POST", "/databases/a/operations/kill?id="+id, "")
	equal(t, "status", h.want(200, "GET", "/databases/a/operations/state?id="+id, "").text(t, "Status"), "Faulted")
	h.checkProblem(h.do("POST", "/databases/a/bulk_insert?id="+id, "["+put("n/2", 1)+"]"), 400, "BadRequestException")
	h.want(404, "GET", "/databases/a/docs?id=n/2", "")
	h.idle()
}

// Ensure that a client which is silent is disconnected, and that the deletion of the
// database and the end of the server end a bulk insert.
func TestBulkInsert_Ends(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.SilenceTimeout = 50 * time.Millisecond })
	h.create("a")
	id := h.operationID()
	w, _ := h.openBulkInsert(id)
	defer w.Close()
	fmt.Fprintf(w, "[%s", put("n/1", 1))
	h.under(id)
	state := h.ended("/databases/a/operations/state?id=" + id)
	equal(t, "status", state.text(t, "Status"), "Faulted")
	equal(t, "error", strings.Contains(state.text(t, "Result", "Error"), "has sent nothing"), true)

	h = start(t)
	h.create("a")
	id = h.operationID()
	w, _ = h.openBulkInsert(id)
	defer w.Close()
	fmt.Fprintf(w, "[%s", put("n/1", 1))
	h.under(id)
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`)
	h.create("a")
	h.want(404, "GET", "/databases/a/operations/state?id="+id, "")
	id = h.operationID()
	w, _ = h.openBulkInsert(id)
	defer w.Close()
	fmt.Fprintf(w, "[%s", put("n/1", 1))
	h.under(id)
	if err := h.s.Close(); err != nil { // it waits for the request
		t.Error(err)
	}
}

// Ensure that heartbeats alone do not keep a bulk insert, and its place, for ever.
func TestBulkInsert_OnlyHeartbeats(t *testing.T) {
	t.Parallel()
	now := newClock()
	h := start(t, func(o *server.Options) { o.Now = now.Now })
	h.create("a")
	id := h.operationID()
	w, _ := h.openBulkInsert(id)
	defer w.Close()
	fmt.Fprintf(w, "[%s", put("n/1", 1))
	h.under(id)
	await(t, "the end", func() bool {
		now.advance(31 * time.Minute)
		fmt.Fprint(w, `,{"Type":"HeartBeat"}`)
		return h.want(200, "GET", "/databases/a/operations/state?id="+id, "").text(t, "Status") != "InProgress"
	})
	state := h.ended("/databases/a/operations/state?id=" + id)
	equal(t, "status", state.text(t, "Status"), "Faulted")
	equal(t, "error", strings.Contains(state.text(t, "Result", "Error"), "only heartbeats for 30m"), true)
}

// Ensure that bulk inserts which send nothing are bounded, and that the other requests go
// on.
func TestBulkInsert_ManyOpen(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxStreams, o.QueueTimeout = 8, time.Millisecond })
	h.create("a")
	address := strings.TrimPrefix(h.http.URL, "http://")
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	refused := make(chan bool, 100)
	for range 100 {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		fmt.Fprintf(conn, "POST /databases/a/bulk_insert?id=%s HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n1\r\n[\r\n", h.operationID())
		go func() {
			if reply, err := http.ReadResponse(bufio.NewReader(conn), nil); err == nil {
				refused <- reply.StatusCode == 429
			}
		}()
	}
	for range 100 - 8 {
		if !<-refused {
			t.Error("a stream was answered, and not with 429")
		}
	}
	h.want(201, "PUT", "/databases/a/docs?id=x", "{}")
	for _, c := range conns {
		c.Close()
	}
	conns = nil
	h.idle()
}

// Ensure that a bulk insert which skips unchanged documents pays for the IDs that it remembers, and remembers no more
// bytes of them than that: it stores what it has got before it forgets them.
func TestBulkInsert_SkipUnchanged_LongIDs(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	insert := func(parameters string) (paid int64, batches string) {
		id := h.operationID()
		w, ended := h.openBulkInsert(id + parameters)
		for i := range 520 { // 2,000 bytes and 64 of each are 1.02 MiB; a batch has 2 MiB
			_, _ = fmt.Fprintf(w, "%s%s", "[,"[min(i, 1):min(i, 1)+1], put(fmt.Sprintf("%s%s%04d", strings.Repeat("x", 1966), parameters, i), i))
		}
		_, paid = h.s.CheckLoad()
		_, _ = io.WriteString(w, "]")
		_ = w.Close()
		equal(t, "status", (<-ended).status, 200)
		return paid, h.ended("/databases/a/operations/state?id="+id).text(t, "Result", "BatchCount")
	}
	paid, _ := insert("")
	more, batches := insert("&skipOverwriteIfUnchanged=true")
	equal(t, "paid for IDs", more-paid, 1<<20)
	equal(t, "one batch", batches == "1", false) // there are more if the machine is slow: a batch waits for a second
}

// Ensure that a document which is stored as it is sent keeps its version, if the client
// asks for that, also when it was changed earlier in the stream.
func TestBulkInsert_SkipUnchanged(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	insert := func(elements ...string) {
		t.Helper()
		h.want(200, "POST", "/databases/a/bulk_insert?skipOverwriteIfUnchanged=true&id="+h.operationID(), "["+strings.Join(elements, ",")+"]")
	}
	version := func(id string) string {
		t.Helper()
		return h.want(200, "GET", "/databases/a/docs?id="+id, "").header.Get("ETag")
	}
	insert(put("n/1", 1), put("n/2", 2))
	one, two := version("n/1"), version("n/2")
	insert(put("n/1", 1), put("n/2", 3))
	equal(t, "unchanged", version("n/1"), one)
	equal(t, "changed", version("n/2") != two, true)
	insert(put("n/1", 5), put("N/1", 1))
	equal(t, "changed and back", h.want(200, "GET", "/databases/a/docs?id=n/1", "").text(t, "Results", 0, "n"), 1)
	insert(`{"Id":"n/1","Type":"PUT","Document":{"n":1,"@metadata":{"@collection":"Ns","Note":"x"}}}`)
	equal(t, "metadata", h.want(200, "GET", "/databases/a/docs?id=n/1", "").text(t, "Results", 0, "@metadata", "Note"), "x")
}
