package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/server"
)

// listener is a changes socket, as a client has it.
type listener struct {
	t    *testing.T
	conn *websocket.Conn
	id   int
	rest []map[string]any // messages that were read and not looked at
}

// listen opens a changes socket, with a token if one is given.
func (h *host) listen(token ...string) *listener {
	h.t.Helper()
	o := &websocket.DialOptions{HTTPHeader: make(http.Header)}
	for _, one := range token {
		o.HTTPHeader.Set("Authorization", "Bearer "+one)
	}
	return h.listenWith(o)
}

// listenNarrow opens a changes socket of whose messages the system keeps some 64 KB until they are read: a system
// may otherwise give a socket many MB.
func (h *host) listenNarrow() *listener {
	h.t.Helper()
	dial := func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return conn, conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	}
	return h.listenWith(&websocket.DialOptions{HTTPClient: &http.Client{Transport: &http.Transport{DialContext: dial}}})
}

func (h *host) listenWith(o *websocket.DialOptions) *listener {
	h.t.Helper()
	conn, _, err := websocket.Dial(h.t.Context(), h.http.URL+"/databases/a/changes", o)
	if err != nil {
		h.t.Fatal(err)
	}
	conn.SetReadLimit(16 << 20)
	h.t.Cleanup(func() { conn.CloseNow() })
	l := &listener{t: h.t, conn: conn}
	if m, err := l.next(); err != nil || m["TopologyChange"] != true {
		h.t.Fatalf("the first message is %v, %v", m, err)
	}
	return l
}

// next returns the next message.
func (l *listener) next() (map[string]any, error) {
	if len(l.rest) == 0 {
		ctx, cancel := context.WithTimeout(l.t.Context(), time.Minute)
		defer cancel()
		_, text, err := l.conn.Read(ctx)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(text, &l.rest); err != nil {
			return nil, fmt.Errorf("%s: %w", text, err)
		}
	}
	m := l.rest[0]
	l.rest = l.rest[1:]
	return m, nil
}

// want waits for a message of a type, and returns its value.
func (l *listener) want(kind string) map[string]any {
	l.t.Helper()
	m, err := l.next()
	if err != nil {
		l.t.Fatalf("waiting for %s: %v", kind, err)
	}
	if m["Type"] != kind {
		l.t.Fatalf("got %v, want %s", m, kind)
	}
	value, _ := m["Value"].(map[string]any)
	return value
}

// send sends a command.
func (l *listener) send(text string) {
	l.t.Helper()
	if err := l.conn.Write(l.t.Context(), websocket.MessageText, []byte(text)); err != nil {
		l.t.Fatal(err)
	}
}

// command sends a command and waits for its confirmation.
func (l *listener) command(name, param string) {
	l.t.Helper()
	l.id++
	l.send(fmt.Sprintf(`{"CommandId":%d,"Command":%q,"Param":%s}`, l.id, name, param))
	m, err := l.next()
	if err != nil || m["Type"] != "Confirm" || fmt.Sprint(m["CommandId"]) != fmt.Sprint(l.id) {
		l.t.Fatalf("%s: got %v, %v", name, m, err)
	}
}

// Ensure that a socket gets what it watches, from the confirmation on, and nothing else.
func TestChanges(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.want(201, "PUT", "/databases/a/docs?id=users/0", `{}`)
	h.want(204, "DELETE", "/databases/a/docs?id=users/0", ``)
	all, one, prefix, collection := h.listen(), h.listen(), h.listen(), h.listen()
	all.command("watch-docs", `null`)
	one.command("watch-doc", `"Users/1"`)
	prefix.command("watch-prefix", `"USERS/"`)
	collection.command("watch-collection", `"people"`)
	h.want(201, "PUT", "/databases/a/docs?id=users/1", `{"@metadata":{"@collection":"People"}}`)
	for _, l := range []*listener{all, one, prefix, collection} {
		v := l.want("DocumentChange")
		equal(t, "change", fmt.Sprint(v["Type"], v["Id"], v["CollectionName"]), "Putusers/1People")
		equal(t, "change vector", strings.HasPrefix(fmt.Sprint(v["ChangeVector"]), "A:"), true)
	}
	h.want(201, "PUT", "/databases/a/docs?id=Users/2", `{}`)
	equal(t, "all", all.want("DocumentChange")["Id"], "Users/2")
	equal(t, "prefix", prefix.want("DocumentChange")["Id"], "Users/2")
	h.want(204, "DELETE", "/databases/a/docs?id=USERS/1", ``)
	for _, l := range []*listener{all, one, prefix, collection} {
		v := l.want("DocumentChange")
		equal(t, "deletion", fmt.Sprint(v["Type"], v["Id"]), "Deleteusers/1")
	}
	h.want(204, "DELETE", "/databases/a/docs?id=users/2", ``)
	equal(t, "deletion", all.want("DocumentChange")["Id"], "Users/2") // as it was written
	one.command("unwatch-doc", `"users/1"`)
	h.want(201, "PUT", "/databases/a/docs?id=users/1", `{}`)
	all.want("DocumentChange") // it was passed on, to those who watch
	one.command("watch-docs", `""`)
	h.want(201, "PUT", "/databases/a/docs?id=last", `{}`)
	equal(t, "behind unwatch", one.want("DocumentChange")["Id"], "last")
}

// Ensure that sockets get the changes of operations and indexes.
func TestChanges_OperationsAndIndexes(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	all, other := h.listen(), h.listen()
	all.command("watch-operations", `null`)
	all.command("watch-indexes", `null`)
	id := h.operationID()
	other.command("watch-operation", id)
	other.command("watch-index", `"users/byname"`)
	h.want(200, "POST", "/databases/a/bulk_insert?id="+id, "[]")
	for _, l := range []*listener{all, other} {
		for {
			v := l.want("OperationStatusChange")
			equal(t, "operation", fmt.Sprintf("%.0f", v["OperationId"]), id)
			if v["State"].(map[string]any)["Status"] == "Completed" {
				break
			}
		}
	}
	h.want(200, "POST", "/databases/a/bulk_insert?id="+h.operationID(), "[]") // other does not see it
	h.want(201, "PUT", "/databases/a/indexes", `{"Indexes":[{"Name":"Users/ByName","Maps":["map('Users', u => ({ name: u.name }))"]}]}`)
	equal(t, "index", other.want("IndexChange")["Type"], "IndexAdded")
	equal(t, "index", other.want("IndexChange")["Type"], "BatchCompleted")
	h.want(204, "DELETE", "/databases/a/indexes?name=Users/ByName", "")
	v := other.want("IndexChange")
	equal(t, "index", fmt.Sprint(v["Type"], v["Name"]), "IndexRemovedUsers/ByName")
}

// Ensure that commands which are wrong are answered with an error, and that the socket
// lives on if what it has sent is JSON.
func TestChanges_WrongCommands(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	l := h.listen()
	for _, command := range []string{
		`{}`, `{"CommandId":1}`, `{"CommandId":1,"Command":"watch"}`, `{"CommandId":1,"Command":"watch-everything"}`, `{"CommandId":1,"Command":"watch-counters"}`,
		`{"CommandId":1,"Command":"watch-doc"}`, `{"CommandId":1,"Command":"watch-doc","Param":null}`, `{"CommandId":1,"Command":"watch-prefix","Param":""}`,
		`{"CommandId":1,"Command":"watch-doc","Param":"` + strings.Repeat("x", 3000) + `"}`,
	} {
		l.send(command)
		m, err := l.next()
		if err != nil || m["Type"] != "Error" || m["Exception"] == nil || m["Error"] == nil {
			t.Errorf("%.100s: got %v, %v", command, m, err)
		}
	}
	for i := range 1024 {
		l.command("watch-doc", fmt.Sprintf("%q", fmt.Sprint("x", i)))
	}
	l.send(`{"CommandId":1,"Command":"watch-doc","Param":"one too many"}`)
	if m, err := l.next(); err != nil || m["Type"] != "Error" {
		t.Errorf("got %v, %v", m, err)
	}
	l.command("watch-topology-change", `null`)
	for _, text := range []string{"x", `[]`, `{"CommandId":1,"Command":"` + strings.Repeat("x", 1<<17) + `"}`} {
		l := h.listen()
		_ = l.conn.Write(t.Context(), websocket.MessageText, []byte(text)) // the server may not take all of it
		if m, err := l.next(); err == nil {
			t.Errorf("%.10s: got %v, want the end of the connection", text, m)
		}
	}
	h.checkProblem(h.do("GET", "/databases/a/changes", ""), 400, "BadRequestException")
	h.checkProblem(h.do("GET", "/databases/none/changes", ""), 503, "DatabaseDoesNotExistException")
	h.checkProblem(h.do("GET", "/databases/a/changes", "", "Upgrade", "websocket", "Origin", "http://evil.example"), 403, "AuthorizationException")
}

// Ensure that a client which reads too slowly is disconnected, that another one is not
// held up by it, and that the memory is given back.
func TestChanges_SlowReader(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	slow, quick := h.listenNarrow(), h.listen()
	slow.command("watch-docs", `null`)
	quick.command("watch-docs", `null`)
	seen := make(chan error, 1)
	go func() {
		for {
			m, err := quick.next()
			if err != nil {
				seen <- err
				return
			}
			if m["Value"].(map[string]any)["Id"] == "last" {
				seen <- nil
				return
			}
		}
	}()
	var elements []string
	for i := range 20_000 { // more than the buffers hold: of the narrow socket, and 4 MB that the server's may have
		elements = append(elements, put(fmt.Sprintf("%s%d", strings.Repeat("x", 400), i), i))
	}
	h.want(200, "POST", "/databases/a/bulk_insert?id="+h.operationID(), "["+strings.Join(elements, ",")+"]")
	// A quick reader may still be dropped on a machine that is slower than the writer: then it
	// knows.
	h.want(201, "PUT", "/databases/a/docs?id=last", `{}`)
	if err := <-seen; err != nil && websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("the quick reader: %v", err)
	}
	var err error
	n := 0
	for err == nil {
		_, err = slow.next()
		n++
	}
	t.Logf("the slow reader has read %d: %v", n, err)
	if n > 20_000 {
		t.Error("the slow reader has read everything")
	}
	quick.conn.CloseNow()
	h.idle()
}

// Ensure that a socket pays for the names that it watches, once for each, as long as it watches them, and that one for
// which there is no memory is refused and the socket lives on.
func TestChanges_NamesArePaid(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	h.s.BoundRequests(1<<20, 0) // half of it for one sender
	l := h.listen()
	name := func(i int) string { return fmt.Sprintf(`"%s%04d"`, strings.Repeat("x", 2000), i) }
	paid := func() int64 {
		l.command("watch-topology-change", `null`) // confirms all that was sent before
		_, bytes := h.s.CheckLoad()
		for more := jaytest.Patience(); more(bytes%(2004+64) == 0); _, bytes = h.s.CheckLoad() { // the confirmation is paid for until it is sent
			time.Sleep(time.Millisecond)
		}
		return bytes / (2004 + 64)
	}
	for i, kind := range []string{"doc", "prefix", "collection", "index", "operation"} {
		l.command("watch-"+kind, name(0))
		l.command("watch-"+kind, name(0))
		equal(t, kind, paid(), int64(i+1))
	}
	for _, kind := range []string{"doc", "prefix", "collection", "index", "operation"} {
		l.command("unwatch-"+kind, name(0))
		l.command("unwatch-"+kind, name(0))
	}
	equal(t, "names", paid(), 0)
	for i, kind := range []string{"doc", "prefix", "collection", "index", "operation"} {
		n := 0
		for ; n < 300; n++ {
			l.send(fmt.Sprintf(`{"CommandId":1,"Command":"watch-%s","Param":%s}`, kind, name(n)))
			m, err := l.next()
			if err != nil {
				t.Fatal(err)
			}
			if m["Type"] == "Error" {
				if !strings.Contains(fmt.Sprint(m["Exception"]), "RequestTooLargeException") {
					t.Errorf("%s: got %v", kind, m)
				}
				break
			}
		}
		if n < 240 || n == 300 {
			t.Errorf("%s: %d names of 2,000 bytes fit into 512 KiB", kind, n)
		}
		if i == 4 {
			break // the end of the socket gives the others back
		}
		for n--; n >= 0; n-- {
			l.command("unwatch-"+kind, name(n))
		}
		equal(t, "names", paid(), 0)
	}
	l.conn.CloseNow()
	h.idle()

	// Short names fill the memory to the last byte: the replies to commands still fit.
	h.s.BoundRequests(4000, 2000)
	l = h.listen()
	for i := range 50 {
		l.send(fmt.Sprintf(`{"CommandId":1,"Command":"watch-doc","Param":"%d"}`, i))
		if _, err := l.next(); err != nil {
			t.Fatal(i, err)
		}
	}
	l.command("unwatch-doc", `"0"`)
}

// Ensure that a socket without memory for its messages is closed with that reason, and not as one that reads too slowly.
func TestChanges_NoMemory(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.create("a")
	l := h.listen()
	h.s.BoundRequests(20, 10)
	l.send(`{"CommandId":1,"Command":"watch-docs"}`)
	var closed websocket.CloseError
	if _, err := l.next(); !errors.As(err, &closed) || closed.Code != websocket.StatusPolicyViolation || !strings.Contains(closed.Reason, "memory") {
		t.Errorf("got %v", err)
	}
}

// Ensure that the number of sockets is bounded, that they end with their database and
// with the server, and that one which is open keeps the database open.
func TestChanges_Bounds(t *testing.T) {
	t.Parallel()
	h := start(t, func(o *server.Options) {
		o.MaxSockets, o.QueueTimeout, o.IdleAfter = 2, time.Millisecond, time.Nanosecond
	})
	h.create("a")
	first, second := h.listen(), h.listen()
	first.command("watch-docs", `null`)
	second.command("watch-indexes", `null`)
	_, reply, err := websocket.Dial(t.Context(), h.http.URL+"/databases/a/changes", nil)
	if err == nil || reply.StatusCode != 429 {
		t.Fatalf("a third socket: %v", err)
	}
	h.s.CloseIdle()
	equal(t, "open databases", h.s.OpenDatabases(), 1)
	deleted := make(chan answer, 1)
	go func() {
		a, _ := h.try("DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`)
		deleted <- a
	}()
	ends := make(chan error, 2)
	for _, l := range []*listener{first, second} {
		go func() {
			_, err := l.next()
			ends <- err
		}()
	}
	for range 2 {
		if err := <-ends; websocket.CloseStatus(err) != websocket.StatusGoingAway {
			t.Errorf("got %v, want the status of going away", err)
		}
	}
	equal(t, "deletion", (<-deleted).status, 200)
	h.create("a")
	third := h.listen()
	third.command("watch-docs", `null`)
	done := make(chan error, 1)
	go func() { done <- h.s.Close() }()
	if _, err := third.next(); websocket.CloseStatus(err) != websocket.StatusGoingAway {
		t.Errorf("got %v, want the status of going away", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// Ensure that an idle socket takes little memory. JAY_SOCKETS is how many are opened; CI
// opens few. The client's side of a socket is counted, too: its kernel's part is not.
func TestChanges_IdleMemory(t *testing.T) {
	if jaytest.Allocates {
		t.Skip("this build allocates more")
	}
	sockets := 100
	if text := os.Getenv("JAY_SOCKETS"); text != "" {
		if _, err := fmt.Sscan(text, &sockets); err != nil {
			t.Fatal(err)
		}
	}
	h := start(t, func(o *server.Options) { o.MaxSockets = sockets })
	h.create("a")
	measure := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := measure()
	// Plain connections, so that the client's side takes next to nothing.
	address := strings.TrimPrefix(h.http.URL, "http://")
	var conns []net.Conn
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	watch := `{"CommandId":1,"Command":"watch-doc","Param":"x"}`
	frame := append([]byte{0x81, 0x80 | byte(len(watch)), 0, 0, 0, 0}, watch...)
	buffer := make([]byte, 4096)
	for range sockets {
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, conn)
		fmt.Fprintf(conn, "GET /databases/a/changes HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
		if _, err := conn.Write(frame); err != nil {
			t.Fatal(err)
		}
		text := ""
		for !strings.Contains(text, "Confirm") {
			n, err := conn.Read(buffer)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			text += string(buffer[:n])
		}
	}
	each := int64(measure()-before) / int64(sockets)
	t.Logf("%d idle sockets take %d bytes each", sockets, each)
	if each > 64<<10 {
		t.Errorf("an idle socket takes %d bytes, at most %d", each, 64<<10)
	}
}
