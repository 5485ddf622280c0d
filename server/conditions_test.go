package server_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay/server"
)

// Ensure that a PUT with If-None-Match: * stores what does not exist, and overwrites nothing.
func TestConditions_IfNoneMatchOverwrites(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	const doc, file = "/databases/a/docs?id=x", "/databases/a/attachments?id=x&name=f"
	h.want(201, "PUT", doc, `{"n":1}`, "If-None-Match", "*")
	h.checkProblem(h.do("PUT", doc, `{"n":2}`, "If-None-Match", "*"), 412, "ConcurrencyException")
	equal(t, "n", h.want(200, "GET", doc, "").text(t, "Results", 0, "n"), 1)
	for _, id := range []string{"", "x/", "x%7C"} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, `{}`, "If-None-Match", "*")
	}
	for _, tag := range []string{"If-None-Match", "If-Match"} {
		value, status := "*", 412
		if tag == "If-Match" {
			value, status = `""`, 409
		}
		name := file + tag
		h.want(201, "PUT", name, "one", tag, value)
		h.checkProblem(h.do("PUT", name, "two", tag, value), status, "ConcurrencyException")
		equal(t, tag, h.want(200, "GET", name, "").body, "one")
	}
	h.checkProblem(h.do("DELETE", file+"If-Match", "", "If-Match", `""`), 409, "ConcurrencyException")
	h.want(204, "DELETE", file+"none", "", "If-Match", `""`)
	h.checkProblem(h.do("PUT", doc, `{}`, "If-None-Match", `"A:1-x"`), 501, "NotSupportedException")
	h.checkProblem(h.do("PUT", doc, `{}`, "If-None-Match", "*", "If-Match", `""`), 400, "BadRequestException")
}

// Ensure that no route carries a request out whose condition it does not heed.
func TestConditions_EveryRoute(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.seed()
	before := h.state()
	heeds := map[string][]string{
		"GET {D}/docs": {"If-None-Match"}, "POST {D}/docs": {"If-None-Match"}, "HEAD {D}/docs": {"If-None-Match"}, "PUT {D}/docs": {"If-Match", "If-None-Match"},
		"DELETE {D}/docs": {"If-Match"}, "PATCH {D}/docs": {"If-Match"}, "GET {D}/queries": {"If-None-Match"}, "POST {D}/queries": {"If-None-Match"},
		"GET {D}/attachments": {"If-None-Match"}, "POST {D}/attachments": {"If-None-Match"}, "HEAD {D}/attachments": {"If-None-Match"},
		"PUT {D}/attachments": {"If-Match", "If-None-Match"}, "DELETE {D}/attachments": {"If-Match"},
	}
	for _, r := range server.Routes() {
		if r.Refused != "" {
			continue
		}
		reads := r.Method == "GET" || r.Method == "HEAD"
		for name, value := range map[string]string{"If-Match": `"A:1-x"`, "If-None-Match": "*", "If-Unmodified-Since": "Sat, 29 Oct 1994 19:43:31 GMT"} {
			if reads && name == "If-None-Match" || slices.Contains(heeds[r.Method+" "+r.Path], name) {
				continue
			}
			a := h.do(r.Method, routeURL(r), "", name, value)
			if a.status != 501 || r.Method != "HEAD" && !strings.Contains(a.body, name) {
				t.Errorf("%s %s with %s: %d %s", r.Method, r.Path, name, a.status, a.body)
			}
		}
	}
	// They never make a write wrong, and RFC 9110 says to ignore them.
	h.want(200, "GET", "/databases/a/docs?id=kept/1", "", "If-Modified-Since", "Sat, 29 Oct 2094 19:43:31 GMT", "If-Range", `"x"`)
	version := h.want(200, "GET", "/databases/a/docs?id=kept/1", "").header.Get("ETag")
	equal(t, "state", h.state(), before)
	h.want(201, "PUT", "/databases/a/docs?id=kept/1", `{}`, "If-Match", version, "If-Unmodified-Since", "Sat, 29 Oct 1994 19:43:31 GMT")
}

// Ensure that AttachmentCOPY and AttachmentMOVE replace no attachment, that their replies
// name the new one where clients look for it, and that AttachmentPUT and AttachmentDELETE heed an empty ChangeVector.
func TestBatch_AttachmentCopyOntoAnother(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	for _, id := range []string{"c/1", "c/2"} {
		h.want(201, "PUT", "/databases/a/docs?id="+id, `{}`)
	}
	h.want(201, "PUT", "/databases/a/attachments?id=c/1&name=f1", "aaa")
	h.want(201, "PUT", "/databases/a/attachments?id=c/2&name=f3", "bbb")
	for _, command := range []string{
		`{"Type":"AttachmentCOPY","Id":"c/1","Name":"f1","DestinationId":"c/2","DestinationName":"f3","ChangeVector":null}`,
		`{"Type":"AttachmentMOVE","Id":"c/1","Name":"f1","DestinationId":"c/2","DestinationName":"F3","ChangeVector":null}`,
		`{"Type":"AttachmentMOVE","Id":"c/1","Name":"f1","DestinationId":"c/1","DestinationName":"f1"}`,
		`{"Type":"AttachmentDELETE","Id":"c/2","Name":"f3","ChangeVector":""}`,
	} {
		h.checkProblem(h.do("POST", "/databases/a/bulk_docs", `{"Commands":[`+command+`]}`), 409, "ConcurrencyException")
	}
	body, kind := parts(`{"Commands":[{"Type":"AttachmentPUT","Id":"c/2","Name":"f3","ChangeVector":""}]}`, "ccc")
	h.checkProblem(h.do("POST", "/databases/a/bulk_docs", body, "Content-Type", kind), 409, "ConcurrencyException")
	equal(t, "c/2 f3", h.want(200, "GET", "/databases/a/attachments?id=c/2&name=f3", "").body, "bbb")
	equal(t, "c/1 f1", h.want(200, "GET", "/databases/a/attachments?id=c/1&name=f1", "").body, "aaa")

	a := h.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"AttachmentCOPY","Id":"c/1","Name":"f1","DestinationId":"c/2","DestinationName":"f9"}]}`)
	equal(t, "copy", a.text(t, "Results", 0, "Id")+" "+a.text(t, "Results", 0, "Name"), "c/2 f9")
	a = h.want(201, "POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"AttachmentMOVE","Id":"c/1","Name":"f1","DestinationId":"c/2","DestinationName":"f8"}]}`)
	equal(t, "move", a.text(t, "Results", 0, "Id")+" "+a.text(t, "Results", 0, "Name"), "c/1 f1")
	equal(t, "to", a.text(t, "Results", 0, "DestinationId")+" "+a.text(t, "Results", 0, "DestinationName"), "c/2 f8")
	for id, member := range map[string]string{"c/1": "DocumentChangeVector", "c/2": "DestinationDocumentChangeVector"} {
		version := h.want(200, "GET", "/databases/a/docs?id="+id, "").header.Get("ETag")
		equal(t, member, `"`+a.text(t, "Results", 0, member)+`"`, version)
	}
}
