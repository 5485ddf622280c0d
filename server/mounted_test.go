package server_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// anAdmin is a hook that lets every request do everything.
func anAdmin(*http.Request) (string, server.Rights) {
	return "admin", server.Rights{"*": server.AdminRight}
}

// byHeader is a hook that trusts a header, as a program trusts its session.
func byHeader(r *http.Request) (string, server.Rights) {
	switch name := r.Header.Get("User"); name {
	case "reader":
		return name, server.Rights{"A": server.ReadRight} // without regard to case
	case "writer":
		return name, server.Rights{"a": server.WriteRight, "*": server.ReadRight}
	case "admin":
		return name, server.Rights{"a": server.AdminRight}
	case "root":
		return anAdmin(r)
	case "stranger":
		return name, nil
	case "typo":
		return name, server.Rights{"*": server.AdminRight + 1}
	case "panic":
		panic("the hook has failed")
	}
	return "", server.Rights{"*": server.AdminRight}
}

// mountAt mounts a server with the databases a and b, which are in memory, at a path of a mux with a page of its own.
func mountAt(t *testing.T, path string, hook func(*http.Request) (string, server.Rights), change ...func(o *server.Options)) *host {
	t.Helper()
	o := server.Options{Studio: true, Mounted: make(map[string]*jay.DB)}
	for _, name := range []string{"a", "b"} {
		db, err := jay.OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		o.Mounted[name] = db
	}
	for _, fn := range change {
		fn(&o)
	}
	s, err := server.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := s.Handler(path, hook)
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle(path+"/", handler)
	if path != "" {
		mux.Handle(path, handler)
		mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("the program's page")) })
	}
	h := &host{t: t, s: s, http: httptest.NewServer(mux), base: path}
	t.Cleanup(h.stop)
	return h
}

// Ensure that the hook of a handler decides who may do what, in which database, and that a mounted database is
// neither created nor deleted by anyone.
func TestHandler_Rights(t *testing.T) {
	t.Parallel()
	h := mountAt(t, "/admin/db", byHeader)
	for _, row := range []struct {
		user, method, path, body string
		want                     int
	}{
		{"", "GET", "/databases/a/docs?id=x", "", 401},
		{"", "GET", "/databases/none/docs?id=x", "", 401},
		{"stranger", "GET", "/databases/a/docs?id=x", "", 403},
		{"typo", "GET", "/databases/a/docs?id=x", "", 500},
		{"panic", "GET", "/databases/a/docs?id=x", "", 500},
		{"reader", "GET", "/databases/a/docs?id=x", "", 404},
		{"reader", "GET", "/databases/b/docs?id=x", "", 403},
		{"reader", "PUT", "/databases/a/docs?id=x", "{}", 403},
		{"reader", "GET", "/jay/v1/databases/a/backup?once=true", "", 200},
		{"reader", "POST", "/jay/v1/databases/a/import", "{}", 403},
		{"writer", "PUT", "/databases/a/docs?id=x", "{}", 201},
		{"writer", "PUT", "/databases/b/docs?id=x", "{}", 403},
		{"writer", "PUT", "/jay/v1/databases/a/indexes", "{}", 403},
		{"admin", "PUT", "/databases/b/docs?id=x", "{}", 403},
		{"admin", "POST", "/databases/a/admin/revisions/config", "{}", 200},
		{"root", "PUT", "/admin/databases?name=c", `{"DatabaseName":"c"}`, 501},
		{"root", "DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`, 501},
		{"root", "GET", "/databases/a/docs?id=x", "", 200},
		{"root", "GET", "/databases/a/stats", "", 200},
		{"root", "POST", "/jay/v1/session", "", 400},
		{"root", "DELETE", "/jay/v1/session", "", 400},
		{"root", "GET", "/jay/v1/invitation?ticket=x", "", 400},
		{"root", "POST", "/jay/v1/tokens", `{"name":"x","rights":{"*":"admin"}}`, 400},
		{"root", "DELETE", "/jay/v1/tokens?name=x", "", 400},
		{"root", "GET", "/jay/v1/tokens", "", 200},
	} {
		if a := h.do(row.method, row.path, row.body, "User", row.user); a.status != row.want {
			t.Errorf("%s: %s %s: status %d, want %d: %s", row.user, row.method, row.path, a.status, row.want, a.body)
		}
	}
	who := h.want(200, "GET", "/jay/v1/session", "", "User", "writer")
	equal(t, "who", who.text(t, "Name")+" "+who.text(t, "Rights", "a")+" "+who.text(t, "SignedInElsewhere")+" "+who.text(t, "FixedDatabases"), "writer write true true")
	if a := h.want(401, "GET", "/jay/v1/session", ""); a.header.Get("WWW-Authenticate") != "" {
		t.Errorf("a program with its own sign-in asks for a token: %v", a.header)
	}
}

// Ensure that nothing can be changed where no hook says who may: through a handler without one, and through the server itself.
func TestMounted_ReadOnly(t *testing.T) {
	t.Parallel()
	h := mountAt(t, "/x", nil)
	direct := &host{t: t, s: h.s, http: httptest.NewServer(h.s)}
	defer direct.http.Close()
	for _, h := range []*host{h, direct} {
		h.want(404, "GET", "/databases/a/docs?id=x", "")
		for _, r := range server.Routes() {
			if r.Refused != "" || r.Method == "GET" || r.Method == "HEAD" {
				continue
			}
			for _, read := range []string{"/queries", "/query", "/explain", "/preview", "/export", "/multi_get", "/docs", "/attachments", "/attachments/bulk", "/has-changed", "/schemas/check", "/session", "/ticket"} {
				if strings.HasSuffix(r.Path, read) && r.Method == "POST" {
					goto next
				}
			}
			if a := h.do(r.Method, routeURL(r), "{}"); a.status != 403 && a.status != 400 {
				t.Errorf("%s%s %s: status %d: %s", h.base, r.Method, r.Path, a.status, a.body)
			}
		next:
		}
	}
}

// Ensure that a handler answers below its path, however that is spelt, and nowhere else; that the addresses it
// makes are there; and that a path which a URL could spell in two ways is refused.
func TestHandler_Path(t *testing.T) {
	t.Parallel()
	h := mountAt(t, "/admin/db", anAdmin)
	h.want(201, "PUT", "/databases/a/docs?id=x", "{}")
	equal(t, "url", h.want(200, "GET", "/topology?name=a", "").text(t, "Nodes", 0, "Url"), h.http.URL+"/admin/db")
	for path, want := range map[string]string{"": "/admin/db/studio/", "/": "/admin/db/studio/", "/studio": "/admin/db/studio/"} {
		w := httptest.NewRecorder()
		h.http.Config.Handler.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost/admin/db"+path, nil))
		if got := w.Header().Get("Location"); w.Code != 307 || got != want {
			t.Errorf("%q leads to %q with status %d, want %q", path, got, w.Code, want)
		}
	}
	page := h.want(200, "GET", "/studio/db/a/documents", "")
	called := strings.TrimPrefix(h.http.URL, "http://")
	if !strings.Contains(page.body, `src="/admin/db/studio/assets/`) || strings.Contains(page.body, `"/studio/`) || !strings.Contains(page.header.Get("Content-Security-Policy"), "script-src "+called+"/admin/db/studio/assets/;") {
		t.Errorf("the page has files elsewhere: %v %s", page.header, page.body)
	}
	_, file, _ := strings.Cut(page.body, `src="/admin/db`)
	file, _, _ = strings.Cut(file, `"`)
	h.want(200, "GET", file, "")

	elsewhere := &host{t: t, s: h.s, http: h.http}
	for path, want := range map[string]string{"/admin/dbx/databases": "the program's page", "/databases/a/docs?id=x": "the program's page", "/%61dmin/db/databases/a/docs?id=x%2Fy": "404"} {
		if a := elsewhere.do("GET", path, ""); !strings.Contains(a.body, want) && a.status != 404 {
			t.Errorf("%s: %d %s", path, a.status, a.body)
		}
	}
	handler, err := h.s.Handler("/admin/db", anAdmin)
	if err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/admin/db/databases/a/docs?id=x": 200, "/admin/dbx/databases/a/docs?id=x": 404, "/admin/dbdatabases/a/docs?id=x": 404, "/databases/a/docs?id=x": 404, "/Admin/db/databases/a/docs?id=x": 404} {
		w := httptest.NewRecorder()
		if handler.ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+path, nil)); w.Code != want {
			t.Errorf("%s: status %d, want %d", path, w.Code, want)
		}
	}
	for _, path := range []string{"admin", "/", "/admin/", "//", "/a//b", "/a/../b", "/.", "/a b", "/%61", "/ä", "/a?b", "/a#b", "/{x}", "/" + strings.Repeat("x", 256)} {
		if _, err := h.s.Handler(path, nil); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("the path %.20q: %v", path, err)
		}
	}
}

// Ensure that pages of other sites are refused, also those that bring the cookie of the program's session.
func TestHandler_Guards(t *testing.T) {
	t.Parallel()
	h := mountAt(t, "/admin/db", anAdmin, func(o *server.Options) { o.Hosts = []string{"shop.example"} })
	const doc = "/databases/a/docs?id=x"
	for _, row := range []struct {
		what    string
		want    int
		headers []string
	}{
		{"a program", 201, nil},
		{"a name that leads here by DNS", 403, []string{"Host", "evil.example"}},
		{"a name of the options", 201, []string{"Host", "shop.example"}},
		{"a page of another site", 403, []string{"Origin", "https://evil.example"}},
		{"a page of another site, as its browser says", 403, []string{"Sec-Fetch-Site", "cross-site"}},
		{"a page of another host of the site", 403, []string{"Sec-Fetch-Site", "same-site"}},
		{"a page of another port", 403, []string{"Origin", "http://127.0.0.1:1"}},
		{"a cookie from nobody knows where", 403, []string{"Cookie", "session=1"}},
		{"a cookie from a page of another site", 403, []string{"Cookie", "session=1", "Origin", "null"}},
		{"a cookie from a page of the program", 201, []string{"Cookie", "session=1", "Origin", h.http.URL}},
		{"a cookie from a page of the program, as its browser says", 201, []string{"Cookie", "session=1", "Sec-Fetch-Site", "same-origin"}},
	} {
		if a := h.do("PUT", doc, "{}", row.headers...); a.status != row.want {
			t.Errorf("%s: status %d, want %d: %s", row.what, a.status, row.want, a.body)
		}
	}
	h.want(200, "GET", doc, "", "Cookie", "session=1")
}

// Ensure that what changes something by GET shows its origin if it brings the cookie of the program's session, as other
// changes do, and that what only reads need not, whatever right it needs.
func TestHandler_Guards_Get(t *testing.T) {
	t.Parallel()
	h := mountAt(t, "/admin/db", anAdmin)
	for path, changes := range map[string]bool{
		"/databases/a/hilo/next?tag=x":                   true,
		"/jay/v1/databases/a/backup":                     true,
		"/jay/v1/databases/a/backup?since=x":             true,
		"/jay/v1/databases/a/backup?once=false":          true,
		"/jay/v1/databases/a/backup?once=true":           false,
		"/jay/v1/databases/a/import/rejects?operation=1": false,
		"/jay/v1/databases/a/export":                     false,
		"/jay/v1/tokens":                                 false,
		"/jay/v1/server":                                 false,
		"/jay/v1/session":                                false,
		"/jay/v1/operations":                             false,
		"/admin/databases?name=a":                        false,
		"/operations/state?id=1":                         false,
		"/databases":                                     false,
		"/databases/a/operations/next-operation-id":      false,
		"/databases/a/queries?query=from+X":              false,
		"/metrics":                                       false,
		"/studio/db/a/documents":                         false,
	} {
		if a := h.do("GET", path, "", "Cookie", "session=1"); (a.status == 403) != changes {
			t.Errorf("%s: status %d", path, a.status)
		}
		for _, headers := range [][]string{nil, {"Cookie", "session=1", "Sec-Fetch-Site", "same-origin"}, {"Cookie", "session=1", "Origin", h.http.URL}} {
			if a := h.do("GET", path, "", headers...); a.status == 403 {
				t.Errorf("%s with %v: status %d", path, headers, a.status)
			}
		}
	}
}

// Ensure that a feed ends when the hook no longer gives the right to it.
func TestHandler_StreamEnds(t *testing.T) {
	t.Parallel()
	right := make(chan server.Right, 3)
	hook := func(*http.Request) (string, server.Rights) {
		return "ann", server.Rights{"a": <-right}
	}
	h := mountAt(t, "/x", hook)
	right <- server.ReadRight
	reply, err := http.Get(h.http.URL + "/x/jay/v1/databases/a/changes")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	if reply.StatusCode != 200 {
		t.Fatalf("status %d", reply.StatusCode)
	}
	right <- server.ReadRight
	h.s.EndStreams()
	right <- server.NoRight
	h.s.EndStreams()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		buf := make([]byte, 1024)
		for {
			if _, err := reply.Body.Read(buf); err != nil {
				return
			}
		}
	}()
	<-ended
}

// Ensure that a panic of the hook, when it is asked again for a feed, ends the feed and not the program, and is logged with its stack.
func TestHandler_StreamEnds_Panic(t *testing.T) {
	t.Parallel()
	var fails atomic.Bool
	hook := func(*http.Request) (string, server.Rights) {
		if fails.Load() {
			panic("the hook has failed")
		}
		return "ann", server.Rights{"a": server.ReadRight}
	}
	var logged strings.Builder
	h := mountAt(t, "/x", hook, func(o *server.Options) {
		o.Logger = slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelError}))
	})
	reply, err := http.Get(h.http.URL + "/x/jay/v1/databases/a/changes")
	if err != nil {
		t.Fatal(err)
	}
	defer reply.Body.Close()
	fails.Store(true)
	h.s.EndStreams()
	if _, err := io.Copy(io.Discard, reply.Body); err == nil {
		t.Error("the feed has ended as if it were whole")
	}
	h.stop()
	if text := logged.String(); !strings.Contains(text, "panic: the hook has failed") || !strings.Contains(text, "goroutine ") {
		t.Errorf("the log has %q", text)
	}
}

// Ensure that a mounted database is the program's: the end of the server leaves it open, and requests after the program has
// closed it get 503.
func TestMounted_Close(t *testing.T) {
	t.Parallel()
	var db *jay.DB
	h := mountAt(t, "/x", anAdmin, func(o *server.Options) { db = o.Mounted["a"]; o.IdleAfter = 1 })
	h.want(201, "PUT", "/databases/a/docs?id=x", "{}")
	h.s.CloseIdle()
	h.want(200, "GET", "/databases/a/docs?id=x", "")
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, r := range server.Routes() {
		if r.Refused != "" || r.Path[0] == '/' {
			continue
		}
		if a := h.do(r.Method, routeURL(r), "{}"); a.status < 400 && a.status != 200 && a.status != 204 || a.status == 500 {
			t.Errorf("%s %s of a closed database: status %d %s", r.Method, r.Path, a.status, a.body)
		}
	}
	h.want(503, "GET", "/databases/a/docs?id=x", "")
	h.want(503, "PUT", "/databases/a/docs?id=x", "{}")
	h.want(503, "GET", "/databases/a/healthcheck", "")
	h.want(404, "GET", "/databases/b/docs?id=x", "")

	b, release, err := h.s.Database(t.Context(), "B")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := h.s.Close(); err != nil {
		t.Fatal(err)
	}
	h.want(503, "GET", "/databases/b/docs?id=x", "")
	if _, err := b.Put(t.Context(), "x", []byte("{}")); err != nil {
		t.Errorf("the server has closed a mounted database: %v", err)
	}
}

// Ensure that a database that is open for reading refuses changes as such.
func TestMounted_OfReader(t *testing.T) {
	t.Parallel()
	dir := t.TempDir() + "/db"
	db, err := jay.Open(dir, nil)
	if err == nil {
		_, err = db.Put(t.Context(), "x", []byte("{}"))
	}
	if err == nil {
		err = db.Close()
	}
	if err == nil {
		db, err = jay.Open(dir, &jay.Options{ReadOnly: true})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	h := mountAt(t, "/x", anAdmin, func(o *server.Options) { o.Mounted["a"] = db })
	h.want(200, "GET", "/databases/a/docs?id=x", "")
	h.checkProblem(h.do("PUT", "/databases/a/docs?id=x", "{}"), 403, "AuthorizationException")
}

// Ensure that options which contradict each other are refused.
func TestMounted_Refused(t *testing.T) {
	t.Parallel()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for what, o := range map[string]server.Options{
		"nothing":                    {},
		"no database":                {Mounted: map[string]*jay.DB{"a": nil}},
		"a name that none can have":  {Mounted: map[string]*jay.DB{"a/b": db}},
		"two names but for the case": {Mounted: map[string]*jay.DB{"a": db, "A": db}},
		"tokens without a place":     {Mounted: map[string]*jay.DB{"a": db}, Authenticate: true},
		"an invitation":              {Mounted: map[string]*jay.DB{"a": db}, InvitedOnly: true},
	} {
		if s, err := server.Open(o); !errors.Is(err, jay.ErrOption) {
			t.Errorf("%s: %v", what, err)
			if err == nil {
				_ = s.Close()
			}
		}
	}
	s, err := server.Open(server.Options{Data: t.TempDir(), Mounted: map[string]*jay.DB{"a": db}, InvitedOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.Handler("/x", anAdmin); !errors.Is(err, jay.ErrOption) {
		t.Errorf("a second sign-in: %v", err)
	}
	if _, err := db.Put(t.Context(), "x", []byte("{}")); err != nil {
		t.Errorf("a server that could not be opened has closed the database: %v", err)
	}
}

// Ensure that a handle keeps a database open while no request uses it, and holds up neither a deletion nor the end of the server.
func TestServer_Database(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	h := start(t, func(o *server.Options) { o.IdleAfter, o.MaxOpenDatabases = 1, 2 })
	for _, name := range []string{"a", "b", "c"} {
		h.create(name)
	}
	equal(t, "databases", h.s.Databases(), "[a b c]")
	for name, want := range map[string]error{"none": jay.ErrNoDatabase, "a/b": jay.ErrUsage, "": jay.ErrUsage} {
		if _, _, err := h.s.Database(ctx, name); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", name, err, want)
		}
	}
	a, release, err := h.s.Database(ctx, "A")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Put(ctx, "x", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	h.want(200, "GET", "/databases/a/docs?id=x", "")
	h.s.CloseIdle()
	for _, name := range []string{"b", "c", "b"} { // each in the place of the other
		h.want(404, "GET", "/databases/"+name+"/docs?id=x", "")
	}
	if _, err := a.Get(ctx, "x"); err != nil {
		t.Errorf("a database of which there is a handle is closed: %v", err)
	}
	release()
	release()
	h.s.CloseIdle()
	if _, err := a.Get(ctx, "x"); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("a database without a handle stays open: %v", err)
	}

	a, release, err = h.s.Database(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	h.want(200, "DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`)
	if _, err := a.Get(ctx, "x"); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("a handle of a deleted database: %v", err)
	}
	b, release, err := h.s.Database(ctx, "b")
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	if err := h.s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Get(ctx, "x"); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("a handle after Close: %v", err)
	}
	if _, _, err := h.s.Database(ctx, "b"); !errors.Is(err, jay.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

// Ensure that each endpoint lets in those to whom the hook gives the right that it needs, and nobody else, as it does
// those with a token: see TestAuth_EveryRouteAndSender.
func TestHandler_EveryRouteAndSender(t *testing.T) {
	t.Parallel()
	h := mountAt(t, "/admin/db", byHeader)
	levels := map[string]int{"nobody": -1, "anybody": 0, "read": 1, "write": 2, "admin": 3}
	own := []string{"POST /jay/v1/session", "DELETE /jay/v1/session", "POST /jay/v1/session/ticket", "GET /jay/v1/invitation", "POST /jay/v1/tokens", "DELETE /jay/v1/tokens"}
	rows := 0
	for right, list := range needed {
		for _, name := range list {
			method, path, _ := strings.Cut(name, " ")
			path = strings.NewReplacer("{D}", "/databases/a", "{J}", "/jay/v1/databases/a").Replace(path)
			switch {
			case strings.HasSuffix(path, "/changes") && strings.HasPrefix(path, "/jay/"):
				path += "?untilCaughtUp=true"
			case strings.HasSuffix(path, "/backup"):
				path += "?once=true"
			}
			for _, sender := range []struct {
				user             string
				database, server int
			}{{"", -1, -1}, {"stranger", 0, 0}, {"reader", 1, 0}, {"writer", 2, 1}, {"admin", 3, 0}, {"root", 3, 3}} {
				rows++
				has, want := sender.database, 0
				if !strings.HasPrefix(name[len(method)+1:], "{") {
					has = sender.server
				}
				switch {
				case right == "nobody":
				case sender.user == "":
					want = 401
				case has < levels[right]:
					want = 403
				}
				a := h.do(method, path, "", "User", sender.user)
				if got := a.status; want != 0 && got != want || want == 0 && (got == 401 || got == 403) {
					t.Errorf("%s as %q: status %d, want %d (0 is neither 401 nor 403): %s", name, sender.user, got, want, a.body)
				}
				if slices.Contains(own, name) && a.status < 400 {
					t.Errorf("%s as %q: status %d, and the sign-in is the program's", name, sender.user, a.status)
				}
			}
		}
	}
	if rows < 500 {
		t.Errorf("%d rows", rows)
	}
}
