package simulation_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/server"
	"github.com/jaydb/jay/storage/storagetest"
)

// front is a server in the program, with the database mounted, and what its client knows.
type front struct {
	server  *server.Server
	handler http.Handler

	lost    bool // the client does not get the answer of this step
	cut     bool // the connection breaks while the client sends a body
	request int  // serial of the newest raft-request-id

	low, high int64 // what is left of a range of HiLo
}

// serve mounts the database.
func (w *world) serve() {
	var err error
	w.front.server, err = server.Open(server.Options{Mounted: map[string]*jay.DB{"db": w.db}, Now: w.now})
	w.must(err)
	w.front.handler, err = w.front.server.Handler("", func(*http.Request) (string, server.Rights) {
		return "client", server.Rights{"*": server.AdminRight}
	})
	w.must(err)
	w.front.low, w.front.high = 0, 0
}

// refused is an answer that is no success.
type refused struct {
	status int
	text   string
}

func (r *refused) Error() string { return fmt.Sprintf("status %d: %.300s", r.status, r.text) }

// Is compares an answer with the errors of package jay that it may stand for.
func (r *refused) Is(target error) bool {
	switch r.status {
	case http.StatusConflict:
		return target == jay.ErrConflict || target == jay.ErrUnique || target == jay.ErrExists
	case http.StatusInsufficientStorage, http.StatusServiceUnavailable:
		return target == jay.ErrFailed || target == jay.ErrDiskFull
	case http.StatusInternalServerError:
		return strings.Contains(r.text, "UnknownOutcome") && target == jay.ErrUnknownOutcome || strings.Contains(r.text, storagetest.ErrInjected.Error()) && target == storagetest.ErrInjected
	}
	return false
}

// broken is a body in which the connection breaks: what is sent after the first bytes does not arrive.
type broken struct {
	io.Reader
	leave context.CancelFunc
}

func (b *broken) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if err == io.EOF {
		b.leave()
		err = io.ErrUnexpectedEOF
	}
	return n, err
}

// ask sends a request to the database and decodes its answer into reply, which may be nil.
func (w *world) ask(method, path, body string, reply any) error {
	ctx, leave := context.WithCancel(ctx)
	defer leave()
	var reader io.Reader = strings.NewReader(body)
	if w.front.cut && body != "" {
		reader = &broken{strings.NewReader(body[:w.intn(len(body))]), leave}
	}
	r := httptest.NewRequestWithContext(ctx, method, "http://localhost/databases/db"+path, reader)
	answer := httptest.NewRecorder()
	w.front.handler.ServeHTTP(answer, r)
	w.rest()
	if answer.Code >= 300 {
		return &refused{answer.Code, answer.Body.String()}
	}
	if reply == nil || answer.Body.Len() == 0 {
		return nil
	}
	return json.Unmarshal(answer.Body.Bytes(), reply)
}

// withID returns the parameter of a new raft-request-id, with which a request is made at most once.
func (w *world) withID() string {
	w.front.request++
	return fmt.Sprintf("raft-request-id=request-%d", w.front.request)
}

// repeatable reports whether a request of the step is the same one after its fault: with Relaxed a loss of power may
// have taken what was there before it.
func (w *world) repeatable() bool { return !w.settings.relaxed || w.front.lost }

// The names of requests that are under way together. Only those that end in turn have one history.
const (
	inTurnName = "requests in turn"
	atOnceName = "requests at once"
)

// served are the verbs of a client of the server.
var served = []verb{
	{name: "PUT", weight: 40, do: putServed},
	{name: "DELETE", weight: 16, do: deleteServed},
	{name: "bulk_docs", weight: 40, do: bulkDocs},
	{name: "hilo/next", weight: 20, do: nextServed},
	{name: "hilo/return", weight: 8, do: returnServed},
	{name: "identity/next", weight: 20, do: identityServed},
	{name: "queries", weight: 20, do: queryServed},
	{name: "cmpxchg", weight: 20, do: exchangeServed},
	{name: "bulk_insert", weight: 12, do: bulkInsertServed},
	{name: "PATCH queries", weight: 8, do: patchServed},
	{name: inTurnName, weight: 30, do: inTurn},
	{name: atOnceName, weight: 20, do: atOnce},
}

// clientFaults are what a client of the server meets.
var clientFaults = []fault{
	{"answer is lost", 40, func(w *world) { w.front.lost = true }, afterLost},
	{"connection breaks", 40, func(w *world) { w.front.lost, w.front.cut = true, true }, afterLost},
}

// afterLost finds out what has become of a request whose answer is lost.
func afterLost(w *world) {
	w.front.lost, w.front.cut = false, false
	w.must(w.db.Flush(ctx)) // what is read counts as safe
	w.examine()
}

// document is the JSON of a document with its collection.
func (d *doc) document() string {
	body := string(d.body())
	return fmt.Sprintf(`%s,"@metadata":{"@collection":%q}}`, body[:len(body)-1], d.collection)
}

func putServed(w *world) {
	id, key, old, collection := w.target()
	made := w.intn(4) == 0
	if made {
		id, collection, old = w.request([]string{"users/", "users|"}), "Users", nil
	}
	to := w.fresh(id, collection, old)
	var want error
	if made {
		key = madeKey(to.n)
		to.id, to.u, to.request = "", -1, id
	} else if w.model.taken(collection, to.u, key) {
		want = jay.ErrUnique
	}
	fmt.Fprintf(w.log, "%q: %v. ", id, to)
	w.write(key, to, want, func() (jay.Metadata, error) {
		var reply struct{ ID, ChangeVector string }
		err := w.ask("PUT", "/docs?id="+url.QueryEscape(id), to.document(), &reply)
		return jay.Metadata{ID: reply.ID, ChangeVector: reply.ChangeVector}, err
	})
}

func deleteServed(w *world) {
	id, key, old, _ := w.target()
	if w.there(key) == nil {
		old = nil
	}
	fmt.Fprintf(w.log, "%s. ", id)
	e := new(entry)
	if old != nil {
		e.changes = []change{{key, w.deletion(old)}}
	}
	w.call(e, nil, func() (func(), error) {
		return nil, w.ask("DELETE", "/docs?id="+url.QueryEscape(id), "", nil)
	})
}

// bulkDocs writes some documents in one request, and makes the request again with the same ID if its outcome is not
// known: it is carried out once.
func bulkDocs(w *world) {
	e := new(entry)
	var commands []string
	seen := make(map[string]bool)
	for range 1 + w.intn(6) {
		id, key, old, collection := w.target()
		if seen[key] {
			continue
		}
		seen[key] = true
		if w.there(key) != nil && w.intn(3) == 0 {
			e.changes = append(e.changes, change{key, w.deletion(old)})
			commands = append(commands, fmt.Sprintf(`{"Type":"DELETE","Id":%q,"ChangeVector":null}`, id))
			continue
		}
		to := w.fresh(id, collection, old)
		to.u = -1
		e.changes = append(e.changes, change{key, to})
		commands = append(commands, fmt.Sprintf(`{"Type":"PUT","Id":%q,"ChangeVector":null,"Document":%s}`, id, to.document()))
	}
	for _, c := range e.changes {
		fmt.Fprintf(w.log, "%s: %v. ", c.key, c.to)
	}
	path, body := "/bulk_docs?"+w.withID(), `{"Commands":[`+strings.Join(commands, ",")+`]}`
	send := func() bool {
		return w.call(e, nil, func() (func(), error) { return nil, w.ask("POST", path, body, nil) })
	}
	if (!send() || w.intn(8) == 0) && w.repeatable() {
		w.retry = func() { send() }
	}
}

// nextServed draws the next number of a range of HiLo, and stores a document under it.
func nextServed(w *world) {
	f := w.front
	if f.low > f.high || f.high == 0 {
		var reply struct{ Low, High int64 }
		if !w.call(new(entry), nil, func() (func(), error) {
			err := w.ask("GET", fmt.Sprintf("/hilo/next?tag=users&lastBatchSize=0&lastRangeAt=&identityPartsSeparator=/&lastMax=%d", f.high), "", &reply)
			return nil, err
		}) {
			f.high = 0
			return
		}
		f.low, f.high = reply.Low, reply.High
		fmt.Fprintf(w.log, "%d to %d. ", f.low, f.high)
		for n := f.low; n <= f.high; n++ {
			key := w.rangeKey(n)
			if w.model.ever[key] {
				w.fail("the number %d of a range was given before", n)
			}
			w.model.ever[key] = true
		}
	}
	id := fmt.Sprintf("users/%d-A", f.low)
	f.low++
	key := ids.Fold(id)
	if there := w.there(key); there != nil && w.settings.mode == jay.HiLo4 {
		w.fail("the number of %v was given again", there)
	}
	to := w.fresh(id, "Users", w.model.state[key])
	to.u = -1
	fmt.Fprintf(w.log, "%v. ", to)
	w.write(key, to, nil, func() (jay.Metadata, error) {
		return jay.Metadata{ID: id}, w.ask("PUT", "/docs?id="+url.QueryEscape(id), to.document(), nil)
	})
}

// rangeKey is the ID that a number of HiLo makes, among those that Jay has made.
func (w *world) rangeKey(n int64) string {
	if w.settings.mode == jay.HiLo2 {
		return fmt.Sprintf("range %d", n)
	}
	return fmt.Sprintf("users/%d-a", n)
}

// returnServed gives the rest of a range back. Its numbers may be given again.
func returnServed(w *world) {
	f := w.front
	if f.low > f.high || f.low <= 1 {
		return
	}
	path := fmt.Sprintf("/hilo/return?tag=users&end=%d&last=%d", f.high, f.low-1)
	fmt.Fprintf(w.log, "after %d. ", f.low-1)
	for n := f.low; n <= f.high; n++ {
		delete(w.model.ever, w.rangeKey(n))
	}
	f.low, f.high = 0, 0
	w.call(new(entry), nil, func() (func(), error) { return nil, w.ask("PUT", path, "", nil) })
}

// identityServed uses a number, and asks again with the same ID if it does not get the answer, or if it does.
func identityServed(w *world) {
	name := w.request([]string{"users|", "orders|"})
	if !strings.HasSuffix(name, "|") {
		return
	}
	path := "/identity/next?name=" + url.QueryEscape(name) + "&" + w.withID()
	var first int64
	send := func() {
		w.call(new(entry), nil, func() (func(), error) {
			var reply struct{ NewIdentityValue int64 }
			err := w.ask("POST", path, "", &reply)
			return func() {
				n := reply.NewIdentityValue
				fmt.Fprintf(w.log, "%s%d. ", name, n)
				if first != 0 && n != first {
					w.fail("a request that is made again has %d of identity %s, and had %d", n, name, first)
				}
				if first == 0 {
					w.identity(name, n)
				}
				first = n
			}, err
		})
	}
	send()
	w.retry = send
}

func queryServed(w *world) {
	collection, a := w.pick(collections), w.intn(7)
	var want []string
	for _, key := range w.model.documents(collection) {
		if w.model.state[key].a == a {
			want = append(want, key)
		}
	}
	var reply struct {
		TotalResults int
		Results      []struct {
			Metadata struct {
				ID string `json:"@id"`
			} `json:"@metadata"`
		}
	}
	done := w.call(new(entry), nil, func() (func(), error) {
		return nil, w.ask("POST", "/queries", fmt.Sprintf(`{"Query":"from %s where a = $a","QueryParameters":{"a":%d}}`, collection, a), &reply)
	})
	if !done {
		return
	}
	var got []string
	for _, r := range reply.Results {
		got = append(got, ids.Fold(r.Metadata.ID))
	}
	slices.Sort(got)
	fmt.Fprintf(w.log, "%d documents. ", len(want))
	if !slices.Equal(got, want) || reply.TotalResults != len(want) {
		w.fail("the query of a = %d in %s has %d results, %v, want %v", a, collection, reply.TotalResults, got, want)
	}
}

// exchangeServed puts a compare-exchange value under the index that it has, or another one.
func exchangeServed(w *world) {
	name := fmt.Sprintf("lock/%d", w.intn(6))
	key := exchange + name
	old := w.model.state[key]
	var index uint64
	if old != nil {
		if index = old.index; index == 0 {
			return // it is not known since a fault
		}
	}
	right := w.intn(4) > 0
	if !right {
		index++
	}
	w.model.serial++
	to := &doc{id: name, n: w.model.serial}
	e := &entry{changes: []change{{key, to}}}
	if !right {
		e.changes = nil
	}
	path := fmt.Sprintf("/cmpxchg?key=%s&index=%d&%s", url.QueryEscape(name), index, w.withID())
	fmt.Fprintf(w.log, "%s = %d. ", name, to.n)
	send := func() {
		var reply struct {
			Index      uint64
			Successful bool
		}
		w.call(e, nil, func() (func(), error) {
			err := w.ask("PUT", path, fmt.Sprintf(`{"Object":%d}`, to.n), &reply)
			return func() {
				if reply.Successful != right {
					w.fail("%s: successful %v, want %v", name, reply.Successful, right)
				}
				if right {
					to.index = reply.Index
				}
			}, err
		})
	}
	send()
	if w.begun == e && right && w.repeatable() {
		w.retry = send
	}
}

func bulkInsertServed(w *world) {
	e := manyPuts(w)
	puts := make([]string, 0, len(e.changes))
	for _, c := range e.changes {
		puts = append(puts, fmt.Sprintf(`{"Id":%q,"Type":"PUT","Document":%s}`, c.to.id, c.to.document()))
	}
	w.call(e, nil, func() (func(), error) {
		var next struct {
			ID int64 `json:"Id"`
		}
		if err := w.ask("GET", "/operations/next-operation-id", "", &next); err != nil {
			return nil, err
		}
		return nil, w.ask("POST", fmt.Sprintf("/bulk_insert?id=%d", next.ID), "["+strings.Join(puts, ",")+"]", nil)
	})
}

// patchServed runs a script on what a query finds, as an operation of the server.
func patchServed(w *world) {
	patchMatching(w, func(collection string, a int, text string) error {
		var begun struct {
			OperationID int64 `json:"OperationId"`
		}
		body := fmt.Sprintf(`{"Query":{"Query":"from %s where a = %d update { this.t = '%s' }"}}`, collection, a, text)
		if err := w.ask("PATCH", "/queries", body, &begun); err != nil {
			return err
		}
		var state struct {
			Status string
			Result json.RawMessage
		}
		if err := w.ask("GET", fmt.Sprintf("/operations/state?id=%d", begun.OperationID), "", &state); err != nil {
			return err
		}
		if state.Status == "Faulted" {
			return &refused{http.StatusInternalServerError, string(state.Result)}
		}
		if state.Status != "Completed" {
			return errors.New("the operation is " + state.Status)
		}
		return nil
	})
}

// identity notes a number of an identity that a call has given.
func (w *world) identity(name string, n int64) {
	if w.model.used[name] == nil {
		w.model.used[name] = make(map[int64]bool)
	}
	id := strings.Replace(name, "|", "/", 1) + fmt.Sprint(n)
	if w.model.used[name][n] || w.model.ever[id] {
		w.fail("identity %s gave %d twice", name, n)
	}
	w.above(name, id)
	w.model.used[name][n], w.model.ever[id] = true, true
}
