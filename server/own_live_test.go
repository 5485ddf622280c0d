package server_test

import (
	"bufio"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/server"
)

// liveStream opens a live query of the database a, and returns what reads its next event, as its type
// and ID, with its id and data.
func (h *host) liveStream(query, last string) (next func() (what, id, data string), reply *http.Response) {
	h.t.Helper()
	r, err := http.NewRequest("GET", h.http.URL+"/jay/v1/databases/a/live?query="+url.QueryEscape(query), nil)
	if err != nil {
		h.t.Fatal(err)
	}
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	if reply, err = h.http.Client().Do(r); err != nil {
		h.t.Fatal(err)
	}
	lines := bufio.NewScanner(reply.Body)
	return func() (what, id, data string) {
		for lines.Scan() {
			if text, found := strings.CutPrefix(lines.Text(), "id: "); found {
				id = text
			} else if data, found = strings.CutPrefix(lines.Text(), "data: "); found {
				what = gjson.Get(data, "type").Str + " " + gjson.Get(data, "id").Str
				if gjson.Get(data, "catchingUp").Bool() {
					what += " again"
				}
				return strings.TrimSpace(what), id, data
			}
		}
		return "ended", "", ""
	}, reply
}

// Ensure that a live query sends its answers and what enters, changes and leaves them, as one
// line each, that it goes on after its last group, and that a token of elsewhere is refused.
func TestOwn_Live(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=ants/1", "{\"n\":\n1,\"@metadata\":{\"@collection\":\"Ants\"}}")
	h.want(201, "PUT", "/databases/a/docs?id=ants/2", `{"n":0,"@metadata":{"@collection":"Ants"}}`)
	next, reply := h.liveStream("from Ants where n > 0", "")
	equal(t, "type", reply.Header.Get("Content-Type"), "text/event-stream")
	expect := func(wants ...string) (id, data string) {
		t.Helper()
		for _, want := range wants {
			var what string
			what, id, data = next()
			equal(t, "event", what, want)
			equal(t, "only current has an id: "+want, id != "", want == "current")
		}
		return id, data
	}
	_, data := expect("enter ants/1")
	if doc := gjson.Get(data, "document"); doc.Get("n").Int() != 1 || doc.Get("@metadata.@id").Str != "ants/1" || gjson.Get(data, "changeVector").Str == "" {
		t.Errorf("got %s", data)
	}
	expect("current")
	h.want(201, "PUT", "/databases/a/docs?id=ants/2", `{"n":2,"@metadata":{"@collection":"Ants"}}`)
	expect("enter ants/2", "current")
	h.want(201, "PUT", "/databases/a/docs?id=ants/2", `{"n":3,"@metadata":{"@collection":"Ants"}}`)
	expect("change ants/2", "current")
	h.want(204, "DELETE", "/databases/a/docs?id=ants/1", "")
	token, _ := expect("leave ants/1", "current")
	reply.Body.Close()

	h.want(201, "PUT", "/databases/a/docs?id=ants/2", `{"n":0,"@metadata":{"@collection":"Ants"}}`)
	next, reply = h.liveStream("from Ants where n > 0", token)
	defer reply.Body.Close()
	expect("leave ants/2 again", "current")

	rows := h.want(200, "GET", "/jay/v1/databases/a/live?untilCaughtUp=true&parameters="+url.QueryEscape(`{"x":0}`)+"&query="+url.QueryEscape("from Ants where n = $x select n"), "").body
	if !strings.Contains(rows, `"row":{"n":0}}`) || strings.Count(rows, "id: ") != 1 {
		t.Errorf("rows: %s", rows)
	}
	h.create("b")
	h.checkProblem(h.do("GET", "/jay/v1/databases/b/live?query="+url.QueryEscape("from Ants where n > 0")+"&since="+url.QueryEscape(token), ""), 410, "ChangesGoneException")
	h.checkProblem(h.do("GET", "/jay/v1/databases/a/live?query="+url.QueryEscape("from Ants")+"&since="+url.QueryEscape(token), ""), 400, "BadRequestException")
}

// Ensure that a live query ends with its database, whose deletion does not wait for a reader that never leaves.
func TestOwn_LiveEndsWithTheDatabase(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	next, reply := h.liveStream("from Ants", "")
	defer reply.Body.Close()
	what, _, _ := next()
	equal(t, "event", what, "current")
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`)
	_, _ = io.ReadAll(reply.Body) // it ends
}

// Ensure that a live query has a place among the streams until it has its first answers, and not after that.
func TestOwn_LiveIsAStreamAtFirst(t *testing.T) {
	t.Parallel()
	h, end := serve(t, func(o *server.Options) { o.MaxStreams, o.QueueTimeout = 1, time.Nanosecond })
	h.largeDocuments()
	for range 2 { // at the same time
		lines := bufio.NewScanner(h.ask("GET /jay/v1/databases/a/live?query=from+Few HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		for lines.Scan() && !strings.Contains(lines.Text(), `"type":"current"`) {
		}
		equal(t, "it has its answers", strings.Contains(lines.Text(), `"type":"current"`), true)
	}
	conn := h.openStream()
	h.checkProblem(h.do("GET", "/jay/v1/databases/a/live?query=from+Few", ""), 429, "TooManyRequestsException")
	conn.Close()
	if err := end(); err != nil {
		t.Errorf("got %v", err)
	}
}
