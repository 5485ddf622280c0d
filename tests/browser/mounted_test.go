package browser_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// startMounted starts a program with a page and a sign-in of its own, by a cookie with the name of the user, and with the
// studio of its databases below /admin/db/. Its clients are ann, who may do everything.
func startMounted(t *testing.T, names ...string) *studio {
	t.Helper()
	o := server.Options{Studio: true, Mounted: make(map[string]*jay.DB)}
	for _, name := range names {
		db, err := jay.OpenMemory(nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		o.Mounted[name] = db
	}
	instance, err := server.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	handler, err := instance.Handler("/admin/db", func(r *http.Request) (string, server.Rights) {
		user := r.Header.Get("Test-User")
		if cookie, err := r.Cookie("user"); err == nil {
			user = cookie.Value
		}
		switch user {
		case "ann":
			return user, server.Rights{"*": server.AdminRight}
		case "bob":
			return user, server.Rights{"shop": server.ReadRight}
		}
		return user, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.Handle("/admin/db", handler)
	mux.Handle("/admin/db/", handler)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>Program</title><link rel="icon" href="data:,"><h1>The program</h1><a href="/admin/db/">The database</a>`))
	})
	mux.HandleFunc("GET /as/{user}", func(w http.ResponseWriter, r *http.Request) {
		http.SetCookie(w, &http.Cookie{Name: "user", Value: r.PathValue("user"), Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
		http.Redirect(w, r, "/", http.StatusSeeOther)
	})
	h := httptest.NewServer(mux)
	t.Cleanup(func() {
		h.CloseClientConnections() // feeds of tabs
		h.Close()
		if err := instance.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return &studio{t: t, s: instance, url: h.URL}
}

// Ensure that the studio of a program's one database works below a path of the program, from a link on its page: it
// opens without a list, shows a document and stores a change, and asks nothing of the root of the host.
func TestMounted(t *testing.T) {
	s := startMounted(t, "shop")
	s.want(201, "PUT", "/admin/db/databases/shop/docs?id=orders/1", `{"Total":5,"@metadata":{"@collection":"Orders"}}`, "Test-User", "ann")
	p := s.open("/as/ann")
	p.click("link", "The database")
	p.until(`location.pathname === '/admin/db/studio/db/shop/documents'`)
	p.see("orders/1")
	p.click("button", "Signed in as ann")
	p.lacks("menuitem", "Sign out")
	p.press("Escape")
	p.lacks("button", "shop") // there is no other to choose
	for _, path := range []string{"query", "indexes", "ids", "changes", "io", "patch", "statistics", "operations", "backup", "settings"} {
		p.visit("/admin/db/studio/db/shop/" + path)
		p.settled()
	}
	p.visit("/admin/db/studio/db/shop/doc?id=orders/1")
	p.see("Total")
	p.visit("/admin/db/studio/databases")
	p.find("link", "shop")
	p.lacks("button", "New database*")
	p.lacks("button", "More about shop")
	asked := p.requests()
	for _, path := range asked {
		if strings.HasPrefix(path, "/") && path != "/" && !strings.HasPrefix(path, "/as/") && !strings.HasPrefix(path, "/admin/db/") {
			t.Errorf("the studio asks for %s", path)
		}
	}
	if len(asked) < 40 {
		t.Errorf("%d requests were seen", len(asked))
	}
}

// Ensure that a user who may only read is offered nothing that changes, that another one is told to sign in, and that a
// page of another origin gets nothing with the cookie of the first.
func TestMounted_Users(t *testing.T) {
	s := startMounted(t, "shop", "other")
	s.want(201, "PUT", "/admin/db/databases/shop/docs?id=orders/1", `{"Total":5,"@metadata":{"@collection":"Orders"}}`, "Test-User", "ann")
	p := s.open("/as/bob")
	p.visit("/admin/db/studio/db/shop/documents")
	p.see("orders/1")
	p.lacks("button", "New document*")
	p.lacks("link", "New document*")
	var status int
	p.eval(`fetch('/admin/db/databases/shop/docs?id=x', {method: 'PUT', body: '{}'}).then((reply) => reply.status)`, &status)
	p.allow("status of 403")
	if status != 403 {
		t.Errorf("a reader's PUT: status %d", status)
	}

	stranger := s.blank()
	stranger.allow("status of 401")
	stranger.visit("/admin/db/studio/")
	stranger.see("Sign in there, then load this page again.")
	stranger.lacks("dialog", "Sign in")

	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		_, _ = w.Write([]byte(`<!doctype html><html lang="en"><title>Evil</title><link rel="icon" href="data:,"><h1>Evil</h1>`))
	}))
	defer evil.Close()
	p.visit("/as/ann")
	p.allow("CORS policy", "status of 403", "net::ERR_FAILED", "a request to another host")
	other := *s
	other.url = evil.URL
	p.s = &other // the same browser, with ann's cookie, on a page of another port
	p.visit("/")
	var outcome string
	p.eval(`fetch('`+s.url+`/admin/db/databases/shop/docs?id=evil', {method: 'POST', mode: 'no-cors', credentials: 'include', body: '{}'}).then((reply) => reply.type, () => 'failed')`, &outcome)
	p.eval(`fetch('`+s.url+`/admin/db/databases/shop/docs?id=orders/1', {credentials: 'include'}).then((reply) => 'read it', () => 'failed')`, &outcome)
	if outcome != "failed" {
		t.Errorf("a page of another origin: %s", outcome)
	}
	p.s = s
	s.want(404, "GET", "/admin/db/databases/shop/docs?id=evil", "", "Test-User", "ann")
}
