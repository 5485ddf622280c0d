package odd_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// requests sends random requests, most of them one after the other, and the last ones several at a time.
func (w *twins) requests(n int) {
	w.t.Helper()
	list := readEndpoints(w.t)
	for i := range n {
		if i%60 == 0 {
			frames := w.o.frames()
			if fault := w.socket(wild, frames); fault != "" {
				w.t.Errorf("a socket: %s\n%q", fault, clip(string(frames), 2000))
			}
		}
		if i%12 == 0 {
			w.try(w.o.nested(), 0)
		}
		r, patience := w.o.request(list)
		if strings.Contains(r.path, "/bulk_insert") || strings.Contains(r.path, "operation=") {
			r.path = w.begun(r.path, 0)
		} else if strings.Contains(r.path, "/operations/") {
			r.path = w.begun(r.path, 1+int64(w.o.IntN(6))) // of the last ones
		}
		w.try(r, patience)
	}

	type sent struct {
		request
		patience time.Duration
	}
	all := make(chan sent)
	var group sync.WaitGroup
	for range 4 {
		group.Go(func() {
			for s := range all {
				w.try(s.request, s.patience)
			}
		})
	}
	for range n / 4 {
		r, patience := w.o.request(list)
		all <- sent{r, patience}
	}
	close(all)
	group.Wait()
}

var operation = regexp.MustCompile(`([?&](?:id|operation)=)[^&]*`)

// begun asks for the number of an operation, and puts it into a path, or a number that was given out before.
func (w *twins) begun(path string, before int64) string {
	a, _ := w.send(request{method: http.MethodGet, path: "/databases/" + wild + "/operations/next-operation-id"}, 0)
	var next struct{ Id int64 }
	if json.Unmarshal([]byte(a.body), &next) != nil || w.o.chance(10) {
		return path
	}
	return operation.ReplaceAllString(path, fmt.Sprint("${1}", next.Id-before))
}

// try sends a request, to which any reply is right that is no failure of the server.
func (w *twins) try(r request, patience time.Duration) {
	w.t.Helper()
	if a, fault := w.send(r, patience); fault != "" {
		w.t.Errorf("%s\n%s\nreply: %d %s", fault, r, a.status, clip(a.body, 2000))
	}
}

// request makes a request to any endpoint. It says how long the client waits for the end of the reply, or 0 if it has
// to come.
func (o *odds) request(list []endpoint) (request, time.Duration) {
	e := list[o.IntN(len(list))]
	if e.refused && o.chance(90) {
		return o.request(list)
	}
	database := wild
	if o.chance(8) {
		database = o.pick("other", "other", "WILD", "none", "%20", "a%2Fb")
	}
	if e.method == http.MethodGet && !strings.HasSuffix(e.path, "/hilo/next") && o.chance(20) { // that one writes
		database = o.pick(indexed, plain)
	}
	path := strings.NewReplacer("{D}", "/databases/"+database, "{J}", "/jay/v1/databases/"+database).Replace(e.path)
	if o.chance(2) {
		path += o.pick("/", "/x", "%00", "//", "/..")
	}
	r := request{method: e.method, path: path + o.parameters(e)}
	if o.chance(2) {
		r.method = o.pick("GET", "PUT", "POST", "DELETE", "PATCH", "HEAD", "RESET", "OPTIONS")
	}
	if body, has := bodies[e.method+" "+e.path]; has {
		r.body = o.spoil(body(o))
	} else if o.chance(5) {
		r.body = o.value(2)
	}
	r.headers = o.headers()
	if e.method+" "+e.path == "POST {D}/bulk_docs" && o.chance(35) {
		body, kind := o.parts()
		r.body, r.headers = body, []string{"Content-Type", kind}
	}
	patience := time.Duration(0)
	if e.method == http.MethodGet && (strings.HasSuffix(e.path, "/live") || strings.HasSuffix(e.path, "/changes") || strings.HasSuffix(e.path, "/look")) || strings.HasSuffix(e.path, "/follow") {
		patience = 60 * time.Millisecond // a feed has no end
	}
	return r, patience
}

// needed are parameters without which most endpoints that have them refuse a request.
var needed = []string{"id", "query", "name", "key", "collection", "index", "tag", "value", "field", "untilCaughtUp"}

// either are parameters of which a request has one.
var either = map[string][]string{
	"GET {D}/docs":      {"id", "startsWith", "start"},
	"GET {D}/cmpxchg":   {"key", "startsWith"},
	"GET {J}/export":    {"collection", "startsWith", "query", "id"},
	"GET {J}/documents": {"collection", "startsWith"},
	"GET {J}/rows":      {"collection", "startsWith", "after", "from", "at"},
	"GET {D}/revisions": {"id", "changeVector"},
	"GET {J}/revisions": {"id", "changeVector"},
	"GET {D}/indexes":   {"name", "start"},
	"GET {J}/changes":   {"collection", "prefix", "id"},
}

// hidden are parameters that the guide's list does not name.
var hidden = map[string][]string{
	"POST {D}/identity/next": {"name=odd|", "name=odd%7C", "name=%C3%A4|", "name=odd", "name="},
	"POST {D}/attachments":   {"id=odd/1&name=note.txt", "id=odd/2&name=b", "id=none&name="},
	"HEAD {D}/docs":          {"id=odd/1", "id=none", "id=", "id=odd/2&metadataOnly=true"},
	"PATCH {D}/docs":         {"", "test=true", "debug=true"},
	"GET {D}/hilo/next":      {"tag=odd", "tag=x&lastBatchSize=32", "tag=odd&lastMax=5&lastRangeAt=2026-01-01T00:00:00Z", "tag=", "tag=x/y&lastBatchSize=-1", "tag=odd&lastBatchSize=9223372036854775807"},
	"PUT {D}/hilo/return":    {"tag=odd&last=1&end=32", "tag=odd&last=5&end=1", "tag=none&last=-1&end=9223372036854775807", "tag=odd"},
}

// parameters makes the parameters of a request.
func (o *odds) parameters(e endpoint) string {
	var parts []string
	add := func(name string) { parts = append(parts, name+"="+o.parameterOf(e.path, name)) }
	few, which := 100/(2*len(e.parameters)+3), o.IntN(60)
	for _, name := range e.parameters {
		need := slices.Contains(needed, name)
		if at, choice := either[e.method+" "+e.path]; choice && slices.Contains(at, name) {
			need = name == at[which%len(at)]
			if !need && o.chance(93) {
				continue
			}
		}
		switch {
		case need && o.chance(93), !need && o.chance(few):
			add(name)
		}
		if o.chance(1) {
			add(name)
		}
	}
	if list := hidden[e.method+" "+e.path]; list != nil {
		parts = append(parts, o.pick(list...))
	}
	if o.chance(3) {
		parts = append(parts, o.pick("raft-request-id=odd1", "raft-request-id=", "nodeTag=A", "nodeTag=B", "x=1", "=", "&", "%", "start", "txMode=ClusterWide"))
	}
	o.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	if len(parts) == 0 {
		return ""
	}
	return "?" + strings.Join(parts, "&")
}

// headers makes the headers of a request.
func (o *odds) headers() []string {
	if o.chance(90) {
		return nil
	}
	switch o.IntN(11) {
	case 0:
		return []string{"If-Match", o.pick(`""`, `"A:1-x"`, "*", "A:1-x", `"`, "")}
	case 1:
		return []string{"If-None-Match", o.pick(`""`, `"A:1-x"`, "*", "x")}
	case 2:
		return []string{"Content-Type", o.pick("application/json", "application/json; charset=utf-16", "text/csv", "multipart/form-data", "multipart/mixed; boundary=x", "x", "")}
	case 3:
		return []string{"Content-Encoding", o.pick("gzip", "zstd", "br", "identity", "")}
	case 4:
		return []string{"Accept-Encoding", o.pick("gzip", "gzip;q=0", "*", "br", "identity")}
	case 5:
		return []string{"Range", o.pick("bytes=0-1", "bytes=-1", "x")}
	case 6:
		return []string{"Origin", o.pick("http://localhost", "http://evil.example", "null")}
	case 7:
		return []string{"Connection", "Upgrade", "Upgrade", o.pick("websocket", "jay-look", "x"), "Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ=="}
	case 8:
		return []string{"Client-Configuration-Etag", o.pick("0", "x", "-1", `"9"`)}
	case 9:
		return []string{"Last-Event-ID", o.pick("", "1", "x~1", "A:1-x~1")}
	}
	return []string{"Authorization", o.pick("Bearer x", "Basic eDp5", "x"), "If-Modified-Since", "x"}
}
