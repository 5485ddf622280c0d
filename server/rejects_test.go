package server_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay/server"
)

// Ensure that an import that was refused keeps no rejects under its number, which would hide those of the import that runs under it.
func TestImport_RejectsOfRefused(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	n, err := strconv.ParseInt(h.next("a"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	id := strconv.FormatInt(n+1, 10)
	if a := h.do("POST", "/jay/v1/databases/a/import?rejects=3&operation="+id, `{}`); a.status < 400 { // its number was not given yet
		t.Fatalf("status %d", a.status)
	}
	equal(t, "number", h.next("a"), id)
	h.want(200, "POST", "/jay/v1/databases/a/import?rejects=3&operation="+id, `{"@metadata":{"@id":"b"}} {} {"@metadata":{"@id":"c"}} {}`)
	equal(t, "rejects", h.want(200, "GET", "/jay/v1/databases/a/import/rejects?operation="+id, "").body, "{}\n{}\n")
}

// Ensure that rejects are kept for 15 minutes after the end of their import, however long that takes, and that their
// memory is given back then.
func TestImport_RejectsExpire(t *testing.T) {
	t.Parallel()
	now := newClock()
	h := start(t, func(o *server.Options) { o.Now = now.Now })
	h.create("a")
	id := h.next("a")
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		reply, err := http.Post(h.http.URL+"/jay/v1/databases/a/import?rejects=3&operation="+id, "application/json", r)
		if err == nil {
			err = reply.Body.Close()
		}
		ended <- err
	}()
	_, _ = io.WriteString(w, "{} ")
	kept := func(status int) {
		t.Helper()
		h.s.ExpireRejects()
		h.want(status, "GET", "/jay/v1/databases/a/import/rejects?operation="+id, "")
	}
	await(t, "the import", func() bool {
		return h.do("GET", "/jay/v1/databases/a/import/rejects?operation="+id, "").status == 200
	})
	now.advance(time.Hour)
	kept(200)
	_ = w.Close()
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	kept(200)
	now.advance(15*time.Minute - time.Second)
	kept(200)
	now.advance(time.Second)
	kept(404)
	h.idle()
}

// Ensure that a reader of rejects pays for them, as they may be dropped while he reads.
func TestImport_RejectsArePaidByReaders(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	id := h.next("a")
	h.want(200, "POST", "/jay/v1/databases/a/import?format=extjson&collection=X&rejects=3&operation="+id, `{"_id":["`+strings.Repeat("x", 1<<20)+`"]}`)
	_, held := h.s.CheckLoad()
	h.s.PeakMemory()
	text := h.want(200, "GET", "/jay/v1/databases/a/import/rejects?operation="+id, "", "Accept-Encoding", "identity").body
	if peak := h.s.PeakMemory(); len(text) < 1<<20 || peak < held+int64(len(text)) {
		t.Errorf("%d bytes of rejects, of which the import holds %d, are read with %d bytes", len(text), held, peak)
	}
}
