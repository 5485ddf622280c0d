package server_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/server"
)

// Ensure that replies which list all collections, identities or tags are paid for while they
// are made, are refused early if they do not fit, and have the bound of a reply: a writer makes as
// many collections as he likes, and these replies were paid for when they were there.
func TestMemory_Listings(t *testing.T) {
	sample.OneGoroutine(t)
	const lists, nameBytes = 6000, 480
	dir := t.TempDir()
	h := startIn(t, dir)
	h.create("a")
	name := func(i int) string { return fmt.Sprintf("%s%05d", strings.Repeat("n", nameBytes-5), i) }
	var documents, identities strings.Builder
	for i := range lists {
		fmt.Fprintf(&documents, `,{"Id":"d/%d","Type":"PUT","Document":{"@metadata":{"@collection":%q}}}`, i, name(i))
		fmt.Fprintf(&identities, `,"%s|":1`, name(i))
	}
	h.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[`+documents.String()[1:]+`]}`)
	raise := `{"Identities":{` + identities.String()[1:] + `}}`
	h.want(200, "POST", "/jay/v1/databases/a/counters", raise)
	h.stop()

	requests := []string{"/databases/a/collections/stats", "/databases/a/stats", "/databases/a/debug/identities",
		"/jay/v1/databases/a/collections", "/jay/v1/databases/a/stats", "/jay/v1/databases/a/figures", "/jay/v1/databases/a/counters", "/jay/v1/databases/a/disk"}
	h = startIn(t, dir)
	whole := make(map[string]uint64)
	for _, path := range requests {
		h.s.PeakMemory()
		before := allocated()
		reply := h.want(200, "GET", path, "")
		whole[path] = allocated() - before
		if paid, least := h.s.PeakMemory(), int64(3*len(reply.body)); paid < least || paid < 4*lists*nameBytes {
			t.Errorf("%s: %d bytes were paid for, want %d at least, and %d", path, paid, least, 4*lists*nameBytes)
		}
	}
	h.stop()

	h = startIn(t, dir)
	h.s.BoundRequests(4<<20, 0)
	for _, path := range requests {
		before := allocated()
		h.checkProblem(h.do("GET", path, ""), 413, "RequestTooLargeException")
		if n := allocated() - before; n > whole[path]/2 && !jaytest.Allocates {
			t.Errorf("%s: %d bytes were allocated for a reply that was refused, and %d for the reply", path, n, whole[path])
		}
	}
	if _, taken := h.s.CheckLoad(); taken != 0 {
		t.Errorf("%d bytes are left", taken)
	}
	h.stop()

	h = startIn(t, dir, func(o *server.Options) { o.MaxReplyBytes = 1 << 20 })
	for _, path := range requests {
		if path != "/databases/a/stats" { // its reply has sums only
			h.checkProblem(h.do("GET", path, ""), 413, "RequestTooLargeException")
		}
	}
	equal(t, "after a raise", h.want(200, "POST", "/jay/v1/databases/a/counters", `{"Identities":{"x|":7}}`).json(t, "identities", "x|"), any(float64(7)))
}

// allocated returns the bytes that the process has allocated so far.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}
