package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// studioRun is a jay studio under way.
type studioRun struct {
	t     *testing.T
	lines *bufio.Scanner // of its standard output
	typed io.Writer      // its standard input, a terminal
	stop  context.CancelFunc
	ended chan error
	temp  string
}

// startStudio runs jay studio on a terminal.
func startStudio(t *testing.T, c *studioCommand, dir string, options jay.Options) *studioRun {
	t.Helper()
	options.MaxDocumentBytes, options.MaxDepth = defaultMaxDocumentBytes, defaultMaxDepth
	stdin, typed := io.Pipe()
	output, stdout := io.Pipe()
	ctx, stop := context.WithCancel(context.Background())
	r := &studioRun{t: t, lines: bufio.NewScanner(output), typed: typed, stop: stop, ended: make(chan error, 1), temp: t.TempDir()}
	t.Setenv("TMPDIR", r.temp)
	a := &app{stdin: stdin, stdout: bufio.NewWriter(stdout), stderr: io.Discard, dir: dir, options: options, command: "jay studio", isTerminal: func(any) bool { return true }, getenv: func(string) string { return "" }}
	go func() {
		r.ended <- c.Run(ctx, a)
		_ = stdout.Close()
	}()
	t.Cleanup(func() {
		stop()
		_ = stdin.Close()
		go func() { _, _ = io.Copy(io.Discard, output) }()
		if err := <-r.ended; err != nil {
			t.Errorf("jay studio ended with %v", err)
		}
		if left, err := os.ReadDir(r.temp); err != nil || len(left) > 0 {
			t.Errorf("left in the directory for temporary files: %v, %v", left, err)
		}
	})
	return r
}

// address returns the next address that is printed.
func (r *studioRun) address() *url.URL {
	r.t.Helper()
	if !r.lines.Scan() {
		r.t.Fatalf("nothing more is printed: %v", <-r.ended)
	}
	text, found := strings.CutPrefix(r.lines.Text(), "Open ")
	u, err := url.Parse(text)
	if !found || err != nil || u.Query().Get("ticket") == "" {
		r.t.Fatalf("got %q, want an address with a ticket", r.lines.Text())
	}
	ip := net.ParseIP(u.Hostname())
	if ip == nil || !ip.IsLoopback() {
		r.t.Errorf("it listens on %s", u.Host)
	}
	return u
}

// browser is a browser in which the studio runs: it keeps cookies, follows addresses, and sends
// the other half of its session, which an invitation leads it to in a fragment.
func browser(t *testing.T) *http.Client {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	half := &sessionHalf{}
	return &http.Client{Jar: jar, Transport: half, CheckRedirect: func(to *http.Request, _ []*http.Request) error {
		if key, found := strings.CutPrefix(to.URL.Fragment, "key="); found {
			half.key = key
		}
		return nil
	}}
}

// sessionHalf sends the half of a session that is no cookie, once there is one.
type sessionHalf struct{ key string }

func (s *sessionHalf) RoundTrip(r *http.Request) (*http.Response, error) {
	if s.key != "" {
		r = r.Clone(r.Context())
		r.Header.Set("Jay-Session-Key", s.key)
	}
	return http.DefaultTransport.RoundTrip(r)
}

// visit asks for an address as a page of the studio does, and returns status and text.
func visit(t *testing.T, client *http.Client, method string, u *url.URL, path, body string) (status int, text string) {
	t.Helper()
	to := *u
	if path != "" {
		to.Path, to.RawQuery, _ = strings.Cut(path, "?")
	}
	request, err := http.NewRequest(method, to.String(), strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Sec-Fetch-Site", "same-origin")
	reply, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	read, err := io.ReadAll(reply.Body)
	if err != nil {
		t.Fatal(err)
	}
	return reply.StatusCode, string(read)
}

// shop makes a database with a document.
func shop(t *testing.T, dir string) {
	t.Helper()
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Put(t.Context(), "orders/1", json.RawMessage(`{"Total":1.10}`)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
}

// Ensure that the address of jay studio opens the database in one browser, once, and that
// another user of the machine gets nothing, whatever is asked for.
func TestStudio(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my shop")
	shop(t, dir)
	r := startStudio(t, &studioCommand{}, dir, jay.Options{})
	u := r.address()
	paths := []string{"/", "/studio/", "/studio/databases", "/studio/assets/x", "/healthz", "/readyz", "/metrics", "/databases", "/databases/my-shop/docs?id=orders/1", "/databases/my-shop/streams/docs", "/jay/v1/session"}
	nothing := func(who string, client *http.Client) {
		t.Helper()
		for _, path := range paths {
			for _, method := range []string{"GET", "HEAD", "PUT", "POST", "DELETE", "OPTIONS"} {
				if status, text := visit(t, client, method, u, path, ""); status != 401 || strings.Contains(text, "Total") {
					t.Errorf("%s: %s %s: got %d %s", who, method, path, status, text)
				}
			}
		}
	}
	other := browser(t)
	nothing("before it was opened", other)

	own := browser(t)
	if status, text := visit(t, own, "GET", u, "", ""); status != 200 || !strings.Contains(text, "<!doctype html>") {
		t.Fatalf("got %d %s, want the studio", status, text)
	}
	for range 2 {
		if status, text := visit(t, other, "GET", u, "", ""); status != 401 || !strings.Contains(text, "works once") || !strings.Contains(text, "Press Enter") {
			t.Errorf("a second use: got %d %s, want a refusal that says what to do", status, text)
		}
	}
	nothing("after it was opened", other)
	if status, text := visit(t, own, "GET", u, "/databases/my-shop/docs?id=orders/1", ""); status != 200 || !strings.Contains(text, `"Total":1.10`) {
		t.Errorf("got %d %s", status, text)
	}
	if status, text := visit(t, own, "PUT", u, "/databases/my-shop/docs?id=orders/2", `{}`); status != 201 {
		t.Errorf("got %d %s", status, text)
	}
	if status, text := visit(t, own, "PUT", u, "/admin/databases?name=x", `{}`); status != 501 || !strings.Contains(text, "creates no others") {
		t.Errorf("got %d %s", status, text)
	}
	if _, err := jay.Open(dir, nil); err == nil {
		t.Error("another process could open the database")
	}

	// Enter prints another address, which works once as well.
	if _, err := io.WriteString(r.typed, "\n"); err != nil {
		t.Fatal(err)
	}
	again := r.address()
	if again.Host != u.Host || again.RawQuery == u.RawQuery {
		t.Errorf("got %s after %s", again, u)
	}
	if status, _ := visit(t, other, "GET", again, "", ""); status != 200 {
		t.Errorf("the second address: got %d", status)
	}

	r.stop()
	if err := <-r.ended; err != nil {
		t.Errorf("ended with %v", err)
	}
	r.ended <- nil
	db, err := jay.Open(dir, &jay.Options{MustExist: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Get(t.Context(), "orders/2"); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// Ensure that --read-only changes no file, refuses writes, and shares the directory.
func TestStudio_ReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "shop.db")
	shop(t, dir)
	before := filesOf(t, dir)
	reader, err := jay.Open(dir, &jay.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	r := startStudio(t, &studioCommand{}, dir, jay.Options{ReadOnly: true})
	u, own := r.address(), browser(t)
	visit(t, own, "GET", u, "", "")
	if status, text := visit(t, own, "GET", u, "/databases/shop.db/docs?id=orders/1", ""); status != 200 {
		t.Errorf("got %d %s", status, text)
	}
	for method, path := range map[string]string{"PUT": "/databases/shop.db/docs?id=x", "DELETE": "/databases/shop.db/docs?id=orders/1", "POST": "/databases/shop.db/bulk_docs"} {
		if status, text := visit(t, own, method, u, path, `{}`); status != 403 || !strings.Contains(text, "right") {
			t.Errorf("%s %s: got %d %s", method, path, status, text)
		}
	}
	r.stop()
	r.ended <- <-r.ended
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
	for name, text := range filesOf(t, dir) {
		if before[name] != text {
			t.Errorf("the file %s has changed", name)
		}
	}
}

func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[entry.Name()] = string(text)
	}
	return all
}

// Ensure that a data directory of jay serve is opened with all its databases: to change
// them, and to read them without a change, or while its server runs.
func TestStudio_DataDirectory(t *testing.T) {
	data := t.TempDir()
	s, err := server.Open(server.Options{Data: data})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	served := make(chan error, 1)
	go func() { served <- s.Serve(ctx, l) }()
	u := &url.URL{Scheme: "http", Host: l.Addr().String()}
	for _, name := range []string{"Shop", "other"} {
		if status, text := visit(t, http.DefaultClient, "PUT", u, "/admin/databases?name="+name, `{}`); status != 201 {
			t.Fatalf("got %d %s", status, text)
		}
		visit(t, http.DefaultClient, "PUT", u, "/databases/"+name+"/docs?id=x", `{"In":"`+name+`"}`)
	}
	t.Run("while it is served", func(t *testing.T) {
		r := startStudio(t, &studioCommand{Dir: data}, "", jay.Options{})
		at, own := r.address(), browser(t)
		visit(t, own, "GET", at, "", "")
		if _, text := visit(t, own, "GET", at, "/databases?namesOnly=true", ""); text != `{"Databases":["other","Shop"]}` {
			t.Errorf("got %s", text)
		}
		visit(t, http.DefaultClient, "PUT", u, "/databases/shop/docs?id=new", `{"In":"use"}`)
		if _, text := visit(t, own, "GET", at, "/databases/shop/docs?id=new", ""); !strings.Contains(text, `"In":"use"`) {
			t.Errorf("a new document: got %s", text)
		}
		if status, text := visit(t, own, "PUT", at, "/databases/shop/docs?id=x", `{}`); status != 403 {
			t.Errorf("a write: got %d %s", status, text)
		}
	})
	stop()
	if err := <-served; err != nil {
		t.Fatal(err)
	}
	for _, readOnly := range []bool{true, false} {
		t.Run(map[bool]string{true: "read only", false: "to change"}[readOnly], func(t *testing.T) {
			r := startStudio(t, &studioCommand{Dir: data}, "", jay.Options{ReadOnly: readOnly})
			u, own := r.address(), browser(t)
			visit(t, own, "GET", u, "", "")
			if _, text := visit(t, own, "GET", u, "/databases?namesOnly=true", ""); text != `{"Databases":["other","Shop"]}` {
				t.Errorf("got %s", text)
			}
			if _, text := visit(t, own, "GET", u, "/databases/shop/docs?id=x", ""); !strings.Contains(text, `"In":"Shop"`) {
				t.Errorf("got %s", text)
			}
			want := 201
			if readOnly {
				want = 403
			}
			if status, text := visit(t, own, "PUT", u, "/admin/databases?name=new", `{}`); status != want {
				t.Errorf("got %d %s, want %d", status, text, want)
			}
		})
	}
}

// Ensure that the browser is not handed the address where other users read it, and that
// the studio's names of databases are names.
func TestStudio_Open(t *testing.T) {
	dir := t.TempDir()
	a := &app{stdout: bufio.NewWriter(io.Discard), stderr: io.Discard, getenv: func(string) string { return "/bin/true" }}
	(&studioCommand{}).open(a, dir, "http://127.0.0.1:1/x?ticket=a&b=\"")
	text, err := os.ReadFile(filepath.Join(dir, "studio.html"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), `content="0; url=http://127.0.0.1:1/x?ticket=a&amp;b=&#34;"`) {
		t.Errorf("got %s", text)
	}
	if info, err := os.Stat(filepath.Join(dir, "studio.html")); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v, %v", info, err)
	}

	for dir, want := range map[string]string{
		"shop": "shop", "a/jay.db": "jay.db", "/x/My Shöp": "My-Sh-p", "con": "database-con", "/x/system": "database-system", "/x/.hidden": "hidden", "/x/--": "database",
		"/x/a..b": "a.b", "/x/ends.": "ends", "/x/" + strings.Repeat("n", 300): strings.Repeat("n", 100), "/": "database", "/x/com1.db": "database-com1-db",
	} {
		if got := databaseName(dir); got != want {
			t.Errorf("databaseName(%q) = %q, want %q", dir, got, want)
		}
	}
}
