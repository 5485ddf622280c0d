package simulation_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/jaydb/jay"
)

// request is one of several requests that are under way at the same time.
type request struct {
	text         string // in words
	method, path string
	body         string
	version      string  // that the document must have, or ""
	change       *change // what it makes of a document, or nil
	answered     func(answer []byte)

	sending *io.PipeWriter
	leave   context.CancelFunc
	done    chan struct{}
	answer  *httptest.ResponseRecorder
}

// over reports whether the answer is there.
func (q *request) over() bool {
	select {
	case <-q.done:
		return true
	default:
		return false
	}
}

// etag returns the etag of the version that a PUT has made, or 0.
func (q *request) etag() uint64 {
	var reply struct{ ChangeVector string }
	if json.Unmarshal(q.answer.Body.Bytes(), &reply) != nil {
		return 0
	}
	_, number, _ := strings.Cut(reply.ChangeVector, ":")
	number, _, _ = strings.Cut(number, "-")
	n, _ := strconv.ParseUint(number, 10, 64)
	return n
}

// begin sends the head of a request and half of its body.
func (w *world) begin(q *request) {
	ctx, leave := context.WithCancel(ctx)
	body, sending := io.Pipe()
	r := httptest.NewRequestWithContext(ctx, q.method, "http://localhost/databases/db"+q.path, body)
	if q.version != "" {
		r.Header.Set("If-Match", strconv.Quote(q.version))
	}
	q.sending, q.leave, q.done, q.answer = sending, leave, make(chan struct{}), httptest.NewRecorder()
	handler := w.front.handler
	go func() {
		defer close(q.done)
		defer func() { _ = body.Close() }() // what it has not read is not sent
		handler.ServeHTTP(q.answer, r)
	}()
	go func() { _, _ = sending.Write([]byte(q.body[:len(q.body)/2])) }()
	w.rest()
}

// send sends the rest of the body, unless the connection breaks.
func (q *request) send(breaks bool) {
	if breaks {
		q.leave()
		_ = q.sending.CloseWithError(io.ErrUnexpectedEOF) // it never fails
		return
	}
	_, _ = q.sending.Write([]byte(q.body[len(q.body)/2:])) // of an error there is an answer
	_ = q.sending.Close()
}

// inTurn has some requests that are all begun come to their ends one after another, in an order of the step's.
func inTurn(w *world) { w.meet(false) }

// atOnce has some requests come to their ends at once, on all processors. Which comes first is told by their answers.
func atOnce(w *world) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(runtime.NumCPU()))
	w.meet(true)
}

func (w *world) meet(atOnce bool) {
	faulty := w.cut != nil || w.failed || w.front.lost
	all := w.meeting(faulty, !atOnce)
	for _, q := range all {
		fmt.Fprintf(w.log, "%s. ", q.text)
		w.begin(q)
	}
	breaks := -1
	if w.front.cut {
		breaks = w.intn(len(all))
	}
	var ended []*request // in the order of their effects
	if atOnce {
		for i, q := range all {
			go q.send(i == breaks)
		}
		w.awaitAll(all)
		ended = slices.Clone(all)
		slices.SortStableFunc(ended, func(x, y *request) int { return int(x.etag()) - int(y.etag()) })
		w.settleMeeting(ended, faulty)
	} else {
		order := w.rand.Perm(len(all))
		var doubtful []*request
		for _, i := range order {
			q := all[i]
			if over := q.over(); over && q.answer.Code < 300 {
				w.fail("%s is answered before it was sent: %d %s", q.text, q.answer.Code, q.answer.Body)
			}
			go q.send(i == breaks)
			w.awaitAll([]*request{q})
			if w.cut != nil && w.cut.Happened() || w.front.lost || q.answer.Code >= 300 && faulty {
				doubtful = append(doubtful, q)
				continue
			}
			w.settleMeeting([]*request{q}, false)
		}
		if len(doubtful) > 0 {
			w.settleMeeting(doubtful, true)
		}
	}
	for _, q := range all {
		q.leave()
	}
}

// awaitAll returns when requests have their answers.
func (w *world) awaitAll(all []*request) {
	for _, q := range all {
		<-q.done
	}
	w.rest()
}

// settleMeeting notes what requests have done, in the order of their effects. With faulty, those that were not answered well, or not at all, are
// in doubt.
func (w *world) settleMeeting(all []*request, faulty bool) {
	lost := w.cut != nil && w.cut.Happened() || w.front.lost
	doubt := &entry{each: true}
	if w.begun != nil {
		doubt = w.begun
	}
	for _, q := range all {
		code := q.answer.Code
		switch {
		case lost || code >= 300 && faulty:
			if !lost {
				err := &refused{code, q.answer.Body.String()}
				if w.failed && !err.Is(jay.ErrUnknownOutcome) && !err.Is(jay.ErrFailed) && code < 500 {
					w.fail("%s on a disk that fails: %v", q.text, err)
				}
				w.unknown = w.unknown || w.failed && err.Is(jay.ErrUnknownOutcome)
			}
			if q.change != nil {
				doubt.changes = append(doubt.changes, *q.change)
				w.begun = doubt
			}
		case code == http.StatusConflict && q.version != "" && w.changed(q, all):
			fmt.Fprint(w.log, "refused. ")
		case code >= 300:
			w.fail("%s: %d %s", q.text, code, q.answer.Body)
		default:
			if q.answered != nil {
				q.answered(q.answer.Body.Bytes())
			}
			if q.change != nil {
				w.settle(q)
			}
		}
	}
}

// changed reports whether another request that has gone well can be why a version was not there.
func (w *world) changed(q *request, all []*request) bool {
	if d := w.model.state[q.change.key]; d == nil || d.version != q.version {
		return true
	}
	return slices.ContainsFunc(all, func(other *request) bool {
		return other != q && other.change != nil && other.change.key == q.change.key && other.answer.Code < 300
	})
}

// settle notes the change of a request. It follows what the ones before it have made.
func (w *world) settle(q *request) {
	c := *q.change
	old := w.model.state[c.key]
	if q.version != "" && (old == nil || old.version != q.version) {
		w.fail("%s was carried out, and the version before it is %v", q.text, old)
	}
	if c.to == nil || c.to.gone {
		c.to = w.deletion(w.there(c.key))
	} else {
		to := *c.to
		to.files, to.revisions, to.version = nil, nil, ""
		var reply struct{ ChangeVector string }
		w.must(json.Unmarshal(q.answer.Body.Bytes(), &reply))
		c.to = w.after(old, &to)
		c.to.version = reply.ChangeVector
	}
	w.model.acknowledge(entry{changes: []change{c}}, !w.settings.relaxed)
	w.noteKnown() // another request of the step may change it again
}

// meeting draws some requests. With apart, no two of them change one document. Deletions have no etag that would say in which order they
// were made.
func (w *world) meeting(apart, deletions bool) []*request {
	var all []*request
	used := make(map[string]bool)     // keys that only one request may change
	places := make(map[string]string) // collections of keys
	id, key, old, collection := w.target()
	for range 2 + w.intn(4) {
		if apart || w.intn(3) == 0 {
			id, key, old, collection = w.target()
		}
		if in, drawn := places[key]; drawn { // a document does not move
			collection = in
		}
		places[key] = collection
		switch n := w.intn(9); {
		case n < 5:
			if used[key] {
				continue
			}
			used[key] = apart
			to := w.fresh(id, collection, old)
			to.u = -1
			q := &request{text: fmt.Sprintf("PUT %v", to), method: "PUT", path: "/docs?id=" + url.QueryEscape(id), body: to.document(), change: &change{key, to}}
			if there := w.there(key); there != nil && there.version != "" && w.intn(2) == 0 {
				q.version = there.version
				q.text += " after " + q.version
			}
			all = append(all, q)
		case n == 5:
			if !deletions || used[key] || slices.ContainsFunc(all, func(q *request) bool { return q.change != nil && q.change.key == key }) || w.there(key) == nil {
				continue
			}
			used[key] = true
			all = append(all, &request{text: "DELETE " + id, method: "DELETE", path: "/docs?id=" + url.QueryEscape(id), change: &change{key, w.deletion(old)}})
		case n < 8 && !apart:
			name := w.request([]string{"users|", "orders|"})
			if !strings.HasSuffix(name, "|") {
				continue
			}
			all = append(all, &request{text: "identity " + name, method: "POST", path: "/identity/next?name=" + url.QueryEscape(name), answered: func(answer []byte) {
				var reply struct{ NewIdentityValue int64 }
				w.must(json.Unmarshal(answer, &reply))
				w.identity(name, reply.NewIdentityValue)
			}})
		default:
			all = append(all, w.slowQuery())
		}
	}
	if len(all) == 0 {
		all = append(all, w.slowQuery())
	}
	return all
}

// slowQuery is a query that shows one state of each document, whatever comes in between.
func (w *world) slowQuery() *request {
	a := w.intn(7)
	return &request{
		text: fmt.Sprintf("a = %d", a), method: "POST", path: "/queries", body: fmt.Sprintf(`{"Query":"from Users where a = $a","QueryParameters":{"a":%d}}`, a),
		answered: func(answer []byte) {
			var reply struct {
				TotalResults int
				Results      []struct{ A int }
			}
			w.must(json.Unmarshal(answer, &reply))
			if reply.TotalResults != len(reply.Results) {
				w.fail("of %d documents the answer has %d", reply.TotalResults, len(reply.Results))
			}
			for _, r := range reply.Results {
				if r.A != a {
					w.fail("the query of a = %d shows a = %d", a, r.A)
				}
			}
		},
	}
}
