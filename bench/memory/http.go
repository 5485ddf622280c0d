package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// serveAlone serves on a port, whose URL it prints, until standard input ends: what asks is another process, whose memory does not count.
func serveAlone(ctx context.Context, dir string, bound int64, _ int) error {
	s, err := server.Open(server.Options{Data: dir + "/data", MaxMemory: bound, Database: jay.Options{MaxDocumentBytes: largest, Durability: jay.Relaxed}})
	if err != nil {
		return err
	}
	limitHeap(bound, s.Memory().HeapBytes)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return errors.Join(err, s.Close())
	}
	fmt.Println("http://" + l.Addr().String())
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		cancel()
	}()
	return s.Serve(ctx, l)
}

// ways are the requests that are sent, to be counted by what became of them.
type ways struct {
	mu      sync.Mutex
	done    map[string]int // by name. Guarded by mu.
	refused map[string]int // with 429 or 413. Guarded by mu.
}

// String returns the counts.
func (w *ways) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return fmt.Sprintf("answered %v, refused for memory %v", w.done, w.refused)
}

// soak sends the requests of RavenDB's clients to three databases of a server: bulk inserts, definitions of indexes, and then for so long, eight at a time, large and small documents, queries,
// streams, attachments, patches of documents and of what queries find, batches, revisions, changes, exports and backups.
func soak(ctx context.Context, server string, docs int, lasts time.Duration, log io.Writer) error {
	w := &ways{done: make(map[string]int), refused: make(map[string]int)}
	defer func() { fmt.Fprintln(log, w) }()
	for i, name := range []string{"first", "second", "third"} {
		u := &asker{ways: w, base: server + "/databases/" + name, server: server}
		n := docs
		if i > 0 {
			n = docs / 10
		}
		if err := u.fill(ctx, name, n); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := u.ask(ctx, lasts/3); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// asker sends requests to a database.
type asker struct {
	*ways
	base, server string
}

// send sends a request, and reads its reply. One that is refused for its memory is counted and no error, as is one for a document that is not there yet.
func (u *asker) send(ctx context.Context, name, method, address string, body io.Reader) (head []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, err
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	head, err = io.ReadAll(io.LimitReader(reply.Body, 4<<10))
	if err == nil {
		_, err = io.Copy(io.Discard, reply.Body)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if errors.Is(err, io.ErrUnexpectedEOF) && strings.Contains(name, "stream") { // whose status was sent when the memory was short
		u.refused[name]++
		return head, nil
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	switch s := reply.StatusCode; {
	case s == http.StatusTooManyRequests || s == http.StatusRequestEntityTooLarge:
		u.refused[name]++
	case s < 300 || s == http.StatusNotModified || s == http.StatusNotFound:
		u.done[name]++
	default:
		return head, fmt.Errorf("%s: %s: %.300s", name, reply.Status, head)
	}
	return head, nil
}

// fill creates a database, fills it by two bulk inserts at a time, and defines indexes.
func (u *asker) fill(ctx context.Context, name string, docs int) error {
	if _, err := u.send(ctx, "create", "PUT", u.server+"/admin/databases?name="+name, strings.NewReader(`{}`)); err != nil {
		return err
	}
	if _, err := u.send(ctx, "configure", "POST", u.base+"/admin/revisions/config", strings.NewReader(`{"Collections":{"Large":{"MinimumRevisionsToKeep":2},"Notes":{"MinimumRevisionsToKeep":2}}}`)); err != nil {
		return err
	}
	var all sync.WaitGroup
	var errs [2]error
	for half := range errs {
		all.Go(func() {
			for begun := time.Now(); ; time.Sleep(100 * time.Millisecond) {
				stored, err := u.bulk(ctx, half*docs/2, (half+1)*docs/2)
				if errs[half] = err; stored || err != nil {
					return
				}
				if time.Since(begun) > 2*time.Minute {
					errs[half] = errors.New("a bulk insert is refused for its memory, for two minutes")
					return
				}
			}
		})
	}
	all.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	_, err := u.send(ctx, "indexes", "PUT", u.base+"/indexes", strings.NewReader(`{"Indexes":[{"Name":"Notes/ByName","Maps":["map('Notes', n => ({Name: n.Name, N: n.N}))"]},{"Name":"Notes/Counts","Maps":["map('Notes', n => ({Name: n.Name, Count: 1}))"],"Reduce":"groupBy(x => x.Name).aggregate(g => ({Name: g.key, Count: g.values.reduce((a, b) => a + b.Count, 0)}))"}]}`))
	return err
}

// bulk stores notes by a bulk insert, which is made as it is sent. It returns false if it was refused for its memory.
func (u *asker) bulk(ctx context.Context, from, to int) (stored bool, err error) {
	head, err := u.send(ctx, "operation", "GET", u.base+"/operations/next-operation-id", nil)
	if err != nil {
		return false, err
	}
	var operation struct{ Id json.Number }
	if err := json.Unmarshal(head, &operation); err != nil {
		return false, err
	}
	r, in := io.Pipe()
	go func() {
		var b bytes.Buffer
		b.WriteByte('[')
		for i := from; i < to; i++ {
			if i > from {
				b.WriteByte(',')
			}
			fmt.Fprintf(&b, `{"Id":"notes/%d","Type":"PUT","Document":%s}`, i, inCollection(note(i), "Notes"))
			if _, err := b.WriteTo(in); err != nil {
				return // the request has ended
			}
		}
		b.WriteByte(']')
		_, err := b.WriteTo(in)
		_ = in.CloseWithError(err)
	}()
	defer r.Close()
	head, err = u.send(ctx, "bulk insert", "POST", u.base+"/bulk_insert?id="+operation.Id.String(), r)
	return len(head) == 0, err // only a refusal has a reply
}

// inCollection returns a document with its collection.
func inCollection(body json.RawMessage, collection string) []byte {
	return append([]byte(`{"@metadata":{"@collection":"`+collection+`"},`), body[1:]...)
}

// ask sends requests for so long, eight at a time.
func (u *asker) ask(ctx context.Context, lasts time.Duration) error {
	query := func(path, rql string) func(int) (string, string, io.Reader) {
		text, err := json.Marshal(map[string]string{"Query": rql})
		if err != nil {
			panic(err)
		}
		return func(int) (string, string, io.Reader) { return "POST", path, bytes.NewReader(text) }
	}
	get := func(path string) func(int) (string, string, io.Reader) {
		return func(int) (string, string, io.Reader) { return "GET", path, nil }
	}
	patch := `{"Script":"this.Changed = (this.Changed || 0) + 1"}`
	own := strings.Replace(u.base, "/databases/", "/jay/v1/databases/", 1)
	requests := []struct {
		name string
		make func(i int) (method, path string, body io.Reader)
	}{
		{"large put", func(i int) (string, string, io.Reader) {
			return "PUT", "/docs?id=" + url.QueryEscape(fmt.Sprintf("large/%d", i%12)), bytes.NewReader(inCollection(largeBody(largest>>(i%5)), "Large"))
		}},
		{"large get", func(i int) (string, string, io.Reader) { return "GET", fmt.Sprintf("/docs?id=large/%d", i%12), nil }},
		{"put", func(i int) (string, string, io.Reader) {
			return "PUT", "/docs?id=" + url.QueryEscape(fmt.Sprintf("small/%d", i%2000)), bytes.NewReader(inCollection(note(i), "Notes"))
		}},
		{"query", query("/queries", "from Notes order by Text limit 1000")},
		{"query of words", query("/queries", "from Notes where search(Text, 'oak12') limit 500")},
		{"query of an index", query("/queries", "from index 'Notes/ByName' where N > 1000 order by Name limit 500")},
		{"query of groups", query("/queries", "from Notes group by Name select Name, count()")},
		{"query of large", query("/queries", "from Large limit 2")},
		{"stream of a query", query("/streams/queries", "from Notes where N > 1000")},
		{"stream of documents", get("/streams/docs?startsWith=notes/1")},
		{"stream of large", get("/streams/docs?startsWith=large/")},
		{"attach", func(i int) (string, string, io.Reader) {
			return "PUT", fmt.Sprintf("/attachments?id=notes/1&name=photo%d&contentType=image/png", i%4), bytes.NewReader(bytes.Repeat([]byte{byte(i), 1, 2, 3}, 5*mib/4))
		}},
		{"attachment", func(i int) (string, string, io.Reader) {
			return "GET", fmt.Sprintf("/attachments?id=notes/1&name=photo%d", i%4), nil
		}},
		{"patch", func(i int) (string, string, io.Reader) {
			return "PATCH", fmt.Sprintf("/docs?id=notes/%d", i%1000), strings.NewReader(`{"Patch":` + patch + `}`)
		}},
		{"patch of large", func(i int) (string, string, io.Reader) {
			return "PATCH", fmt.Sprintf("/docs?id=large/%d", i%12), strings.NewReader(`{"Patch":` + patch + `}`)
		}},
		{"patch by query", func(int) (string, string, io.Reader) {
			return "PATCH", "/queries", strings.NewReader(`{"Query":{"Query":"from Notes where N < 20000000 update { this.Seen = true }"}}`)
		}},
		{"batch", func(i int) (string, string, io.Reader) {
			var b bytes.Buffer
			b.WriteString(`{"Commands":[`)
			for j := range 500 {
				if j > 0 {
					b.WriteByte(',')
				}
				fmt.Fprintf(&b, `{"Id":"batch/%d-%d","Type":"PUT","Document":%s}`, i%20, j, inCollection(note(j), "Notes"))
			}
			b.WriteString(`]}`)
			return "POST", "/bulk_docs", &b
		}},
		{"revisions", get("/revisions?id=large/1&pageSize=2")},
		{"changes", get(own + "/changes?untilCaughtUp=true")},
		{"backup", get(own + "/backup")},
	}
	until := time.Now().Add(lasts)
	var next atomic.Int64
	var all sync.WaitGroup
	errs := make([]error, 8)
	for worker := range errs {
		all.Go(func() {
			for time.Now().Before(until) && errs[worker] == nil {
				i := int(next.Add(1))
				r := requests[i%len(requests)]
				method, path, body := r.make(i / len(requests))
				if !strings.HasPrefix(path, "http") {
					path = u.base + path
				}
				_, errs[worker] = u.send(ctx, r.name, method, path, body)
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
