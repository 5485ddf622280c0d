package odd_test

import (
	"net/http"
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
		r, patience := w.o.request(list)
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
	database := o.pick(wild, wild, wild, wild, wild, wild, wild, wild, wild, wild, wild, wild, "other", "WILD", "none", "%20", "a%2Fb")
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
	} else if e.method != http.MethodGet && o.chance(30) {
		r.body = o.value(2)
	}
	r.headers = o.headers()
	patience := time.Duration(0)
	if e.method == http.MethodGet && (strings.HasSuffix(e.path, "/live") || strings.HasSuffix(e.path, "/changes") || strings.HasSuffix(e.path, "/look")) || strings.HasSuffix(e.path, "/follow") {
		patience = 60 * time.Millisecond // a feed has no end
	}
	return r, patience
}

// parameters makes the parameters of a request.
func (o *odds) parameters(e endpoint) string {
	var parts []string
	for _, name := range e.parameters {
		if name == "id" || name == "query" || name == "name" || name == "key" || name == "collection" || name == "untilCaughtUp" {
			if o.chance(85) {
				parts = append(parts, name+"="+o.parameterOf(name))
			}
		} else if o.chance(22) {
			parts = append(parts, name+"="+o.parameterOf(name))
		}
		if o.chance(2) {
			parts = append(parts, name+"="+o.parameterOf(name))
		}
	}
	if o.chance(3) {
		parts = append(parts, o.pick("raft-request-id=odd1", "raft-request-id=", "nodeTag=A", "nodeTag=B", "x=1", "=", "&", "%", "start", "txMode=ClusterWide"))
	}
	if strings.HasSuffix(e.path, "/hilo/next") || strings.HasSuffix(e.path, "/hilo/return") {
		parts = append(parts, "tag="+o.pick("odd", "", "%C3%A4", "x/y"), o.pick("lastBatchSize=", "last=1&end=", "lastMax=")+o.pick("0", "32", "-1", "9223372036854775807", "x"))
	}
	o.Shuffle(len(parts), func(i, j int) { parts[i], parts[j] = parts[j], parts[i] })
	if len(parts) == 0 {
		return ""
	}
	return "?" + strings.Join(parts, "&")
}

// headers makes the headers of a request.
func (o *odds) headers() []string {
	if o.chance(80) {
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
