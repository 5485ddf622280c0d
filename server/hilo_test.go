package server_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/server"
)

// generator draws IDs as RavenDB's clients do: it asks for a range, and counts in it.
type generator struct {
	fetch func(query string) (answer, error)

	mu                   sync.Mutex
	prefix, tag, at      string
	next, high, lastSize int64
}

// draw returns the next ID.
func (g *generator) draw() (string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next > g.high || g.high == 0 {
		a, err := g.fetch(fmt.Sprintf("tag=users&lastBatchSize=%d&lastRangeAt=%s&identityPartsSeparator=/&lastMax=%d", g.lastSize, g.at, g.high))
		if err != nil {
			return "", err
		}
		var r struct {
			Prefix, ServerTag, LastRangeAt string
			Low, High, LastSize            int64
		}
		if err := json.Unmarshal([]byte(a.body), &r); err != nil || a.status != 201 {
			return "", fmt.Errorf("status %d: %s", a.status, a.body)
		}
		g.prefix, g.tag, g.at, g.next, g.high, g.lastSize = r.Prefix, r.ServerTag, r.LastRangeAt, r.Low, r.High, r.LastSize
	}
	g.next++
	return fmt.Sprintf("%s%d-%s", g.prefix, g.next-1, g.tag), nil
}

// seen are IDs that were drawn.
type seen struct {
	mu  sync.Mutex
	ids map[string]bool
}

// add adds an ID, and reports whether it is new.
func (s *seen) add(id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ids == nil {
		s.ids = make(map[string]bool)
	}
	old := s.ids[id]
	s.ids[id] = true
	return !old
}

// Ensure that two clients with 50 goroutines draw no ID twice, through restarts of the
// server, whether or not the documents are stored, and that none overwrites another.
func TestHiLo_Restarts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var drawn seen
	for round := range 3 {
		h := startIn(t, dir)
		if round == 0 {
			h.create("a")
		}
		fetch := func(query string) (answer, error) { return h.try("GET", "/databases/a/hilo/next?"+query, "") }
		generators := [2]*generator{{fetch: fetch}, {fetch: fetch}}
		var all sync.WaitGroup
		for worker := range 50 {
			all.Go(func() {
				for i := range 4 {
					id, err := generators[worker%2].draw()
					if err != nil || !drawn.add(id) {
						t.Errorf("drew %s a second time, %v", id, err)
					}
					if i%2 == 0 {
						if a, err := h.try("POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"`+id+`","ChangeVector":"","Document":{}}]}`); err != nil || a.status != 201 {
							t.Errorf("%s: %d %s %v", id, a.status, a.body, err)
						}
					}
				}
			})
		}
		all.Wait()
		h.stop()
	}
	equal(t, "IDs", len(drawn.ids), 600)
}

// TestMain serves in place of the tests, in the processes of serveChild.
func TestMain(m *testing.M) {
	if dir := os.Getenv("JAY_TEST_SERVE"); dir != "" {
		if err := serveForKills(dir); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	jaytest.CollectSeldom()
	m.Run()
}

func serveForKills(dir string) error {
	s, err := server.Open(server.Options{Data: dir})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	return s.Serve(context.Background(), l)
}

// serveChild serves a data directory in a process of its own, and returns what sends a
// request to it.
func serveChild(t *testing.T, dir string) (child *exec.Cmd, send func(method, path, body string) (answer, error)) {
	t.Helper()
	child = exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "JAY_TEST_SERVE="+dir, "GORACE=atexit_sleep_ms=10")
	var log bytes.Buffer
	child.Stderr = &log
	out, err := child.StdoutPipe()
	if err == nil {
		err = child.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, &log)
	}
	client := &http.Client{Timeout: time.Minute}
	return child, func(method, path, body string) (answer, error) {
		r, err := http.NewRequest(method, "http://"+strings.TrimSpace(address)+path, strings.NewReader(body))
		if err != nil {
			return answer{}, err
		}
		reply, err := client.Do(r)
		if err != nil {
			return answer{}, err
		}
		defer reply.Body.Close()
		text, err := io.ReadAll(reply.Body)
		return answer{reply.StatusCode, reply.Header, string(text)}, err
	}
}

// Ensure that no ID is drawn twice, that identities do not repeat, and that every
// acknowledged document is there, when the server is killed while it works.
func TestHiLo_Kills(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var drawn, identities, stored seen
	const rounds = 3
	for round := range rounds {
		child, send := serveChild(t, dir)
		if round == 0 {
			if a, err := send("PUT", "/admin/databases?name=a", "{}"); err != nil || a.status != 201 {
				t.Fatalf("%v %v", a, err)
			}
		}
		for id := range stored.ids { // by the processes before
			if a, err := send("GET", "/databases/a/docs?id="+id, ""); err != nil || a.status != 200 {
				t.Fatalf("%s was stored, and is not there: %v %v", id, a, err)
			}
		}

		fetch := func(query string) (answer, error) { return send("GET", "/databases/a/hilo/next?"+query, "") }
		generators := [2]*generator{{fetch: fetch}, {fetch: fetch}}
		enough := make(chan struct{})
		var once sync.Once
		var all sync.WaitGroup
		for worker := range 50 {
			all.Go(func() {
				for i := 0; ; i++ { // until the server is gone
					id, err := generators[worker%2].draw()
					if err != nil {
						return
					}
					if !drawn.add(id) {
						t.Errorf("drew %s a second time", id)
					}
					a, err := send("POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"`+id+`","ChangeVector":"","Document":{}},{"Type":"PUT","Id":"people|","Document":{}}]}`)
					if err != nil {
						return
					}
					if a.status != 201 {
						t.Errorf("%s: %d %s", id, a.status, a.body)
						return
					}
					if person := a.text(t, "Results", 1, "@id"); !identities.add(person) {
						t.Errorf("identity %s a second time", person)
					}
					stored.add(id)
					if i == 3 {
						once.Do(func() { close(enough) })
					}
				}
			})
		}
		go func() { // also if all workers have failed
			all.Wait()
			once.Do(func() { close(enough) })
		}()
		<-enough
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		all.Wait()
		_ = child.Wait() // it was killed
	}
	if len(drawn.ids) < 50*rounds {
		t.Errorf("only %d IDs were drawn", len(drawn.ids))
	}
}
