package server_test

import (
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/server"
)

// Ensure that a short reply, which is not compressed either, is not paid for, and that a longer one is, from its first byte.
func TestMemory_ShortReply(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, test := range []struct{ bytes, paid int }{{1 << 10, 0}, {20 << 10, 40 << 10}} {
		h.want(201, "PUT", "/databases/a/docs?id=x", `{"s":"`+strings.Repeat("x", test.bytes)+`"}`)
		await(t, "the end of the write", func() bool { _, taken := h.s.CheckLoad(); return taken == 0 })
		h.s.PeakMemory()
		h.want(200, "GET", "/databases/a/docs?id=x", "")
		if paid := h.s.PeakMemory(); paid < int64(test.paid) || test.paid == 0 && paid > 0 {
			t.Errorf("a document of %d bytes: %d were paid for, want %d", test.bytes, paid, test.paid)
		}
	}
}

// Ensure that what a query sorts, and the documents of a page, are paid for, and that a
// stream which nobody reads keeps paying for what it has sorted.
func TestMemory_Queries(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.s.BoundRequests(64<<20, 0)
	h.create("a")
	for i := range 40 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=s/%d", i), fmt.Sprintf(`{"s":"%d%s","@metadata":{"@collection":"S"}}`, i, strings.Repeat("x", 100<<10)))
	}
	for _, test := range []struct {
		method, path, body string
		least              int64
	}{
		{"POST", "/databases/a/streams/queries", `{"Query":"from S order by s limit 20"}`, 2 << 20},
		{"POST", "/jay/v1/databases/a/query", `{"query":"from S","pageSize":10}`, 3 << 20},
		{"POST", "/jay/v1/databases/a/query", `{"query":"from S group by s select s, count()"}`, 4 << 20},
		{"GET", "/jay/v1/databases/a/documents?pageSize=10", ``, 2 << 20},
		{"GET", "/jay/v1/databases/a/rows?pageSize=10&order=newest", ``, 2 << 20},
		{"GET", "/databases/a/docs?id=s/1&id=s/2&id=s/3&id=s/4", ``, 800 << 10},
	} {
		h.s.PeakMemory()
		h.want(200, test.method, test.path, test.body)
		if paid := h.s.PeakMemory(); paid < test.least {
			t.Errorf("%s %s: %d bytes were paid for, want %d at least", test.method, test.path, paid, test.least)
		}
	}
	await(t, "the end", func() bool { _, taken := h.s.CheckLoad(); return taken == 0 })
}

// Ensure that a large document is paid for before it is copied, by each route that reads it:
// 64 requests at a time for one of 30 MB took 2 GB.
func TestMemory_LargeDocument(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.want(200, "POST", "/databases/a/admin/revisions/config", `{"Default":{"Disabled":false,"MinimumRevisionsToKeep":5}}`)
	for _, text := range []string{"x", "y"} {
		h.want(201, "PUT", "/databases/a/docs?id=s/1", `{"s":"`+strings.Repeat(text, 6<<20)+`","@metadata":{"@collection":"S"}}`)
	}
	h.stop()
	h = startIn(t, dir, func(o *server.Options) { o.Database.DocumentCacheBytes = -1 })
	h.s.BoundRequests(8<<20, 0)
	for _, request := range [][2]string{
		{"GET", "/databases/a/docs?id=s/1"}, {"GET", "/databases/a/docs?id=s/1&metadataOnly=true"}, {"HEAD", "/databases/a/docs?id=s/1"},
		{"HEAD", "/databases/a/attachments?id=s/1&name=a"}, {"GET", "/databases/a/attachments?id=s/1&name=a"},
		{"GET", "/databases/a/revisions?id=s/1&metadataOnly=true"}, {"GET", "/jay/v1/databases/a/revisions?id=s/1"},
		{"GET", "/jay/v1/databases/a/document?id=s/1"}, {"GET", "/jay/v1/databases/a/documents"}, {"GET", "/jay/v1/databases/a/rows?from=s/1"},
		{"GET", "/jay/v1/databases/a/fields?collection=S"}, {"PATCH", "/databases/a/docs?id=s/1"},
	} {
		body := ""
		if request[0] == "PATCH" {
			body = `{"Patch":{"Script":"this.a = 1"}}`
		}
		equal(t, request[0]+" "+request[1], h.do(request[0], request[1], body).status, 413)
	}
	if _, taken := h.s.CheckLoad(); taken != 0 {
		t.Errorf("%d bytes are left", taken)
	}
}

// Ensure that a page whose one document is larger than what a page takes as a rule pays for
// it, and is refused if it does not fit.
func TestMemory_PageOfOneDocument(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=s/1", `{"s":"`+strings.Repeat("x", 6<<20)+`","@metadata":{"@collection":"S"}}`)
	h.stop()
	h = startIn(t, dir)
	h.s.BoundRequests(24<<20, 0)
	for _, path := range []string{"documents", "query", "preview"} {
		method, body := "POST", `{"query":"from S"}`
		switch path {
		case "documents":
			method, body = "GET", ""
		case "preview":
			body = `{"query":"from S","delete":true}`
		}
		if a := h.do(method, "/jay/v1/databases/a/"+path, body); a.status != 413 && path != "documents" {
			t.Errorf("%s: status %d", path, a.status)
		}
	}
}

// Ensure that skipOverwriteIfUnchanged pays for the trees of both versions, and that small
// documents are compared as before.
func TestMemory_SkipUnchanged(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	h := start(t)
	h.s.BoundRequests(64<<20, 0)
	h.create("a")
	document := func(n int) string { return `{"a":[` + strings.Repeat("0,", n) + `0]}` }
	insert := func(n int) answer {
		id := h.want(200, "GET", "/databases/a/operations/next-operation-id", "").text(t, "Id")
		return h.do("POST", "/databases/a/bulk_insert?skipOverwriteIfUnchanged=true&id="+id, `[{"Id":"x","Type":"PUT","Document":`+document(n)+`}]`)
	}
	for _, n := range []int{10, 100_000} {
		h.want(201, "PUT", "/databases/a/docs?id=x", document(n))
		etag := h.want(200, "GET", "/databases/a/docs?id=x", "").header.Get("ETag")
		equal(t, "insert", insert(n).status, 200)
		equal(t, "etag", h.want(200, "GET", "/databases/a/docs?id=x", "").header.Get("ETag"), etag)
	}
	h.want(201, "PUT", "/databases/a/docs?id=x", document(1_000_000))
	h.checkProblem(insert(1_000_000), 413, "RequestTooLargeException")
}

// Ensure that a stream of many attachments holds the chunk of one at a time.
func TestMemory_BulkAttachments(t *testing.T) {
	if jaytest.Allocates {
		t.Skip("this build allocates more")
	}
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`)
	h.want(201, "PUT", "/databases/a/attachments?id=x&name=a", strings.Repeat("x", 256<<10))
	var before, now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	body := `{"Attachments":[` + strings.TrimSuffix(strings.Repeat(`{"DocumentId":"x","Name":"a"},`, 1000), ",") + `]}`
	reply, err := h.http.Client().Post(h.http.URL+"/databases/a/attachments/bulk", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	buffer, n := make([]byte, 64<<10), 0
	for n < 999*(256<<10) { // then the stream is at its end, or waits for its reader
		k, err := reply.Body.Read(buffer)
		if n += k; err != nil {
			t.Fatal(err)
		}
	}
	runtime.GC()
	runtime.ReadMemStats(&now)
	if reply.StatusCode != http.StatusOK || now.HeapAlloc > before.HeapAlloc+100<<20 {
		t.Errorf("status %d, %d bytes in use", reply.StatusCode, now.HeapInuse)
	}
}

// Ensure that a stream of attachments pays for those that are open: a small one is in memory
// from its opening on.
func TestMemory_BulkAttachments_Paid(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.s.BoundRequests(32<<20, 0)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`)
	h.want(201, "PUT", "/databases/a/attachments?id=x&name=a", strings.Repeat("x", 256<<10))
	for n, status := range map[int]int{10: 200, 1000: 413} {
		body := `{"Attachments":[` + strings.TrimSuffix(strings.Repeat(`{"DocumentId":"x","Name":"a"},`, n), ",") + `]}`
		h.want(status, "POST", "/databases/a/attachments/bulk", body)
	}
	if _, taken := h.s.CheckLoad(); taken != 0 {
		t.Errorf("%d bytes are left", taken)
	}
}

// Ensure that operations keep the beginning of a long query, and a bounded part of the
// details.
func TestMemory_Operations(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) { o.MaxReplyBytes = 200 << 10 })
	h.create("a")
	for i := range 100 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=%s%03d", strings.Repeat("x", 1000), i), `{"n":1,"@metadata":{"@collection":"X"}}`)
	}
	for range 4 {
		a := h.want(200, "PATCH", "/databases/a/queries?details=true", `{"Query":{"Query":"from X update { this.n = 1 }`+strings.Repeat(" ", 50_000)+`"}}`)
		state := h.await("a", a.text(t, "OperationId"))
		if n := len(state.body); n > 80<<10 {
			t.Errorf("the state has %d bytes", n)
		}
		if n := len(state.json(t, "Result", "Details").([]any)); n < 10 || n == 100 {
			t.Errorf("%d details", n)
		}
	}
	h.checkProblem(h.do("GET", "/databases/a/operations", ""), 413, "RequestTooLargeException")
}

// Ensure that a query ends after a time.
func TestBounds_QueryTime(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":1,"@metadata":{"@collection":"X"}}`)
	h.stop()
	h = startIn(t, dir, func(o *server.Options) { o.QueryTimeout = time.Nanosecond })
	h.checkProblem(h.do("POST", "/databases/a/queries", `{"Query":"from X"}`), 408, "RavenTimeoutException")
	h.checkProblem(h.do("POST", "/jay/v1/databases/a/query", `{"query":"from X"}`), 408, "RavenTimeoutException")
	h.want(200, "GET", "/databases/a/docs?id=x", "")
}

// Ensure that reads that may look at many documents, revisions or values without a query end after the time of a query,
// and that streams, and reads of a bounded number, do not.
func TestBounds_QueryTime_Reads(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=x", `{"n":1,"@metadata":{"@collection":"X"}}`)
	h.stop()
	h = startIn(t, dir, func(o *server.Options) { o.QueryTimeout = time.Nanosecond })
	for _, path := range []string{
		"/databases/a/docs", "/databases/a/docs?start=1000000000", "/databases/a/docs?startsWith=x&matches=*z", "/databases/a/docs?startsWith=x&start=1000000000",
		"/databases/a/docs?id=x&id=y", "/databases/a/docs?id=x&include=n", "/databases/a/revisions?id=x", "/databases/a/revisions/count?id=x", "/databases/a/cmpxchg?start=1000000000",
		"/jay/v1/databases/a/documents?startsWith=y", "/jay/v1/databases/a/revisions?id=x", "/jay/v1/databases/a/fields?collection=X", "/jay/v1/databases/a/rows", "/jay/v1/databases/a/ids",
	} {
		h.checkProblem(h.do("GET", path, ""), 408, "RavenTimeoutException")
	}
	h.checkProblem(h.do("POST", "/databases/a/docs", `{"Ids":["x","y"]}`), 408, "RavenTimeoutException")
	for _, path := range []string{
		"/databases/a/docs?id=x", "/databases/a/streams/docs?startsWith=x&matches=*z", "/jay/v1/databases/a/export", "/jay/v1/databases/a/document?id=x",
		"/databases/a/stats", "/databases/a/collections/stats", "/databases/a/indexes/errors", "/jay/v1/databases/a/stats", "/jay/v1/databases/a/disk",
	} {
		h.want(200, "GET", path, "")
	}
}
