package odd_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// host is a server in the program, behind a listener.
type host struct {
	dir    string
	server *server.Server
	http   *httptest.Server
	log    *watch
	serial atomic.Int64 // of the newest request
}

// start serves a data directory.
func start(t *testing.T, dir string) *host {
	t.Helper()
	h := &host{dir: dir, log: newWatch()}
	o := server.Options{Data: dir, Logger: slog.New(h.log), MaxDatabases: 8, QueryTimeout: time.Minute}
	o.Database.Durability, o.Database.MemTableBytes, o.Database.CacheBytes = jay.Relaxed, 1<<20, 4<<20
	var err error
	if h.server, err = server.Open(o); err != nil {
		t.Fatal(err)
	}
	h.http = httptest.NewUnstartedServer(h.server)
	h.http.Config.ErrorLog = log.New(h.log, "", 0)
	h.http.Start()
	return h
}

// stop ends the server.
func (h *host) stop(t *testing.T) {
	t.Helper()
	h.http.CloseClientConnections()
	h.http.Close()
	if err := h.server.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	if fault := h.log.take(); fault != "" {
		t.Errorf("the log says at the end: %s", fault)
	}
}

// verify examines the files of a database of a server that has ended.
func (h *host) verify(t *testing.T, name string) {
	t.Helper()
	report, err := jay.VerifyDir(t.Context(), filepath.Join(h.dir, "databases", name), nil, nil)
	if err != nil || report.Found > 0 {
		t.Errorf("verify %s: %v %v", name, err, report.Damages)
	}
}

// request is what a client sends.
type request struct {
	method, path, body string
	headers            []string // names and values in turn
}

// String prints a request in a form that can be repeated.
func (r request) String() string {
	text := fmt.Sprintf("%s %s", r.method, r.path)
	for i := 0; i+1 < len(r.headers); i += 2 {
		text += fmt.Sprintf(" -H %q", r.headers[i]+": "+r.headers[i+1])
	}
	if r.body != "" {
		text += fmt.Sprintf(" -d %q", clip(r.body, 4000))
	}
	return text
}

// reply is what the server answers.
type reply struct {
	status int
	header http.Header
	body   string
	cut    error // the connection has ended in the middle of the body
}

// send sends a request and returns the reply, and what the server must never do if it does it. It waits for the end of
// a reply for so long; patience 0 means that each reply has to end.
func (h *host) send(r request, patience time.Duration) (reply, string) {
	id := fmt.Sprintf("odd-%d", h.serial.Add(1))
	waits := patience
	if patience == 0 {
		waits = 90 * time.Second
	}
	ctx, cancel := context.WithTimeout(context.Background(), waits)
	defer cancel()
	var body io.Reader
	if r.body != "" {
		body = strings.NewReader(r.body)
	}
	q, err := http.NewRequestWithContext(ctx, r.method, h.http.URL, body)
	if err != nil {
		return reply{}, ""
	}
	q.URL.Opaque = r.path
	q.Header.Set("X-Request-Id", id)
	for i := 0; i+1 < len(r.headers); i += 2 {
		q.Header[r.headers[i]] = append(q.Header[r.headers[i]], r.headers[i+1])
	}
	got, err := h.http.Client().Do(q)
	if err != nil {
		if patience != 0 && ctx.Err() != nil {
			return reply{}, h.log.take()
		}
		if fault := h.log.take(); fault != "" {
			return reply{}, fault
		}
		return reply{}, fmt.Sprintf("no reply: %v", err)
	}
	defer got.Body.Close()
	if patience != 0 { // a connection that goes on with another protocol has no context
		defer time.AfterFunc(patience, func() { got.Body.Close() }).Stop()
	}
	text, err := io.ReadAll(got.Body)
	if patience != 0 && (ctx.Err() != nil || got.StatusCode == http.StatusSwitchingProtocols) {
		err = nil
	}
	a := reply{got.StatusCode, got.Header, string(text), err}
	if fault := h.log.take(); fault != "" {
		return a, fault
	}
	if err != nil && !h.log.saidCut(id) {
		return a, fmt.Sprintf("the connection ends after %d bytes, and the log does not say why: %v", len(text), err)
	}
	return a, a.fault(r)
}

// watch is the log of a server. It keeps what no request may cause.
type watch struct {
	mu     sync.Mutex
	faults []string
	cut    map[string]string // why a stream has ended, by the request
}

func newWatch() *watch { return &watch{cut: make(map[string]string)} }

// Enabled implements slog.Handler.
func (w *watch) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle implements slog.Handler.
func (w *watch) Handle(_ context.Context, r slog.Record) error {
	text, id := r.Message, ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "request" {
			id = a.Value.String()
		}
		if a.Key != "url" && a.Key != "path" { // a client may write what it likes there
			text += fmt.Sprintf(" %s=%v", a.Key, a.Value)
		}
		return true
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if strings.HasPrefix(r.Message, "server: a stream is cut short") {
		w.cut[id] = text
	}
	if r.Level >= slog.LevelError || isPanic(text) {
		w.faults = append(w.faults, text)
	}
	return nil
}

// WithAttrs and WithGroup implement slog.Handler.
func (w *watch) WithAttrs([]slog.Attr) slog.Handler { return w }
func (w *watch) WithGroup(string) slog.Handler      { return w }

// Write implements io.Writer, for what net/http logs.
func (w *watch) Write(line []byte) (int, error) {
	if isPanic(string(line)) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.faults = append(w.faults, string(line))
	}
	return len(line), nil
}

// isPanic reports whether text is about a panic.
func isPanic(text string) bool {
	return strings.Contains(text, "panic: ") || strings.Contains(text, "http: panic") || strings.Contains(text, "runtime error") || strings.Contains(text, "goroutine ")
}

// take returns the faults since the last call.
func (w *watch) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := strings.Join(w.faults, "\n")
	w.faults = nil
	return text
}

// saidCut reports whether the log says why the reply to a request has ended too early. The record may come after the
// end of the reply.
func (w *watch) saidCut(id string) bool {
	for range 200 {
		w.mu.Lock()
		_, said := w.cut[id]
		w.mu.Unlock()
		if said {
			return true
		}
		time.Sleep(5 * time.Millisecond)
	}
	return false
}

// clip shortens a text.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + fmt.Sprintf("… (%d bytes)", len(text))
}
