package server_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/server"
)

// Ensure that operations pay for the documents that they read and store: their context was the
// server's, so that they read documents of any size, and stored 128 of them at a time, for nothing.
func TestMemory_Background(t *testing.T) {
	t.Parallel()
	const bytes = 3 << 20
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	for i := range 6 {
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=l/%d", i), `{"s":"`+strings.Repeat("x", bytes)+`","@metadata":{"@collection":"L"}}`)
	}
	h.stop()
	requests := [][3]string{
		{"PATCH", "/databases/a/queries", `{"Query":{"Query":"from L update { this.n = 1 }"}}`},
		{"POST", "/jay/v1/databases/a/collections/rename", `{"from":"L","to":"M"}`},
		{"DELETE", "/jay/v1/databases/a/collections?name=M", ``},
		{"DELETE", "/databases/a/queries", `{"Query":"from @all_docs"}`},
	}

	h = startIn(t, dir, func(o *server.Options) { o.Database.DocumentCacheBytes = -1 })
	h.s.BoundRequests(4<<20, 0)
	for _, r := range requests {
		if strings.Contains(r[1], "name=M") {
			continue // there is no M before the renaming
		}
		a := h.want(200, r[0], r[1], r[2])
		state := h.await("a", a.text(t, "OperationId"))
		equal(t, r[0]+" "+r[1], state.text(t, "Status"), "Faulted")
		equal(t, r[0]+" "+r[1], state.json(t, "Result", "StatusCode"), any(float64(413)))
	}
	h.stop()

	h = startIn(t, dir, func(o *server.Options) { o.Database.DocumentCacheBytes = -1 })
	h.s.BoundRequests(256<<20, 0)
	for i, r := range requests[:3] { // nothing is left for the last one
		h.s.PeakMemory()
		a := h.want(200, r[0], r[1], r[2])
		equal(t, r[0]+" "+r[1], h.await("a", a.text(t, "OperationId")).text(t, "Status"), "Completed")
		paid := h.s.PeakMemory()
		// A batch is of two documents, as the second one is beyond 4 MiB.
		if least := []int64{6 * bytes, 3 * bytes, bytes}[i]; paid < least || paid > 60*bytes {
			t.Errorf("%s %s: %d bytes were paid for, want %d to %d", r[0], r[1], paid, least, 60*bytes)
		}
		await(t, "the end", func() bool { _, taken := h.s.CheckLoad(); return taken == 0 })
	}
}

// Ensure that an operation keeps paying for what its request has brought, which it holds.
func TestMemory_Background_Body(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for i := range 60 { // it takes a minute, so that it runs when it is looked at
		h.want(201, "PUT", fmt.Sprintf("/databases/a/docs?id=x/%d", i), `{"@metadata":{"@collection":"X"}}`)
	}
	const bytes = 2 << 20
	a := h.want(200, "PATCH", "/databases/a/queries?maxOpsPerSec=1", `{"Query":{"Query":"from X update { this.n = $p }","QueryParameters":{"p":"`+strings.Repeat("x", bytes)+`"}}}`)
	if _, taken := h.s.CheckLoad(); taken < bytes {
		t.Errorf("%d bytes are taken while the operation runs, want %d at least", taken, bytes)
	}
	h.want(204, "POST", "/databases/a/operations/kill?id="+a.text(t, "OperationId"), "")
	h.await("a", a.text(t, "OperationId"))
	await(t, "the end", func() bool { _, taken := h.s.CheckLoad(); return taken == 0 })
}

// Ensure that a batch of a change by query waits until there is memory, which requests hold
// for a moment, and does not end the change in the middle.
func TestMemory_Background_Waits(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) {
		o.QueueTimeout, o.Database.DocumentCacheBytes = time.Minute, -1
	})
	h.s.BoundRequests(16<<20, 0)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=l/1", `{"s":"`+strings.Repeat("x", 320<<10)+`","@metadata":{"@collection":"L"}}`)
	body, rest := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if reply, err := http.Post(h.http.URL+"/databases/a/bulk_docs", "application/json", body); err == nil {
			reply.Body.Close()
		}
	}()
	if _, err := io.WriteString(rest, strings.Repeat(" ", 3<<20)); err != nil {
		t.Fatal(err)
	}
	await(t, "the body", func() bool { _, taken := h.s.CheckLoad(); return taken >= 4<<20 })
	a := h.want(200, "PATCH", "/databases/a/queries", `{"Query":{"Query":"from L update { this.n = 1 }"}}`)
	id := a.text(t, "OperationId")
	time.Sleep(100 * time.Millisecond) // the batch is refused meanwhile
	equal(t, "beside the body", h.want(200, "GET", "/databases/a/operations/state?id="+id, "").text(t, "Status"), "InProgress")
	rest.CloseWithError(io.ErrUnexpectedEOF)
	<-ended
	state := h.await("a", id)
	if got := state.text(t, "Status"); got != "Completed" {
		t.Errorf("after it: %s", state.body)
	}
}
