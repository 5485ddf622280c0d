package browser_test

import (
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/jaydb/jay/server"
)

// studio is a server of one test, and another client of it.
type studio struct {
	t     *testing.T
	s     *server.Server
	url   string // without a slash at the end
	token string // that calls send
}

// startStudio starts a server with the studio and a database "shop", which ends with the test.
func startStudio(t *testing.T, change ...func(o *server.Options)) *studio {
	t.Helper()
	s := startServer(t, change...)
	s.create("shop")
	return s
}

// startServer starts a server with the studio, without databases.
func startServer(t *testing.T, change ...func(o *server.Options)) *studio {
	t.Helper()
	log := &serverLog{}
	o := server.Options{Data: t.TempDir(), Studio: true, Logger: slog.New(slog.NewTextHandler(log, nil))}
	o.Database.MemTableBytes, o.Database.CacheBytes = 1<<20, 4<<20
	for _, fn := range change {
		fn(&o)
	}
	instance, err := server.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &studio{t: t, s: instance, url: "http://" + l.Addr().String()}
	ctx, stop := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- instance.Serve(ctx, l) }()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", log.end())
		}
		stop()
		if err := <-served; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

// serverLog keeps the end of a server's log, for tests that fail.
type serverLog struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (l *serverLog) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text = append(l.text, b...)
	if len(l.text) > 64<<10 {
		l.text = append([]byte(nil), l.text[32<<10:]...)
	}
	return len(b), nil
}

func (l *serverLog) end() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(l.text)), "\n")
	return strings.Join(lines[max(0, len(lines)-40):], "\n")
}

// answer is a reply of the server.
type answer struct {
	status int
	header http.Header
	text   string
}

// call sends a request as another client. Headers are names and values in turn.
func (s *studio) call(method, path, body string, headers ...string) answer {
	s.t.Helper()
	r, err := http.NewRequest(method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	reply, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	return answer{reply.StatusCode, reply.Header, string(text)}
}

// want is call, whose status must be this one.
func (s *studio) want(status int, method, path, body string, headers ...string) answer {
	s.t.Helper()
	a := s.call(method, path, body, headers...)
	if a.status != status {
		s.t.Fatalf("%s %s: status %d, want %d: %s", method, path, a.status, status, a.text)
	}
	return a
}

// create makes a database.
func (s *studio) create(db string) {
	s.t.Helper()
	s.want(201, "PUT", "/admin/databases?name="+db, `{}`)
}

// put stores a document of shop, in a collection unless it is "", and returns its change vector.
func (s *studio) put(id, collection, body string) (version string) {
	s.t.Helper()
	if collection != "" {
		comma := ","
		if strings.TrimSpace(body) == "{}" {
			comma = ""
		}
		body = strings.TrimSuffix(strings.TrimSpace(body), "}") + comma + `"@metadata":{"@collection":` + quoted(collection) + `}}`
	}
	return gjson.Get(s.want(201, "PUT", "/databases/shop/docs?id="+escaped(id), body).text, "ChangeVector").String()
}

// putMany stores many documents of shop at once: bodies by their IDs.
func (s *studio) putMany(collection string, n int, make func(i int) (id, body string)) {
	s.t.Helper()
	const most = 1000
	for i := 0; i < n; {
		var commands []string
		for ; i < n && len(commands) < most; i++ {
			id, body := make(i)
			body = strings.TrimSuffix(body, "}") + `,"@metadata":{"@collection":` + quoted(collection) + `}}`
			commands = append(commands, `{"Type":"PUT","Id":`+quoted(id)+`,"Document":`+body+`}`)
		}
		s.want(201, "POST", "/databases/shop/bulk_docs", `{"Commands":[`+strings.Join(commands, ",")+`]}`)
	}
}

// stored returns the text of a document of shop as the server sends it, or "" if there is none.
func (s *studio) stored(id string) string {
	s.t.Helper()
	a := s.call("GET", "/databases/shop/docs?id="+escaped(id), "")
	if a.status == http.StatusNotFound {
		return ""
	}
	if a.status != http.StatusOK {
		s.t.Fatalf("%s: status %d: %s", id, a.status, a.text)
	}
	return gjson.Get(a.text, "Results.0").Raw
}

// waitStored waits until the document's text has this in it.
func (s *studio) waitStored(id, part string) {
	s.t.Helper()
	var text string
	if !eventually(func() bool { text = s.stored(id); return strings.Contains(text, part) && text != "" }) {
		s.t.Fatalf("%s is %q, want %q in it", id, text, part)
	}
}

// escaped escapes a parameter; a plus sign is one in the URL of a write.
func escaped(text string) string {
	return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
}

// quoted writes a text as JSON.
func quoted(text string) string { return string(gjson.AppendJSONString(nil, text)) }
