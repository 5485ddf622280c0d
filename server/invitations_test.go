package server_test

import (
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// invited starts a server that answers those who were invited, with a database a.
func invited(t *testing.T, right server.Right) (h *host, path string, now *clock) {
	t.Helper()
	now = newClock()
	h = start(t, func(o *server.Options) { o.InvitedOnly, o.Studio, o.Now = true, true, now.Now })
	path, err := h.s.Invite(right)
	if err != nil {
		t.Fatal(err)
	}
	return h, path, now
}

// enter opens the address of an invitation, and returns the cookie as a header.
func (h *host) enter(path string) string {
	h.t.Helper()
	request, err := http.NewRequest("GET", h.http.URL+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	a, err := http.DefaultTransport.RoundTrip(request) // does not follow
	if err != nil {
		h.t.Fatal(err)
	}
	_ = a.Body.Close()
	if a.StatusCode != 303 {
		h.t.Fatalf("GET %s: got %s, want 303", path, a.Status)
	}
	to, key, _ := strings.Cut(a.Header.Get("Location"), "#key=")
	if to != "/studio/" || key == "" {
		h.t.Errorf("led to %q, want the studio, without the ticket, and with the half of the session for it", a.Header.Get("Location"))
	}
	cookie, err := http.ParseSetCookie(a.Header.Get("Set-Cookie"))
	if err != nil {
		h.t.Fatal(err)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(h.http.URL, "http://"), ":")
	if cookie.Name != "jay-session-"+port || !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || cookie.Path != "/" || cookie.MaxAge != 12*60*60 {
		h.t.Errorf("got the cookie %+v", cookie)
	}
	h.keys.Store(cookie.Name+"="+cookie.Value, key)
	return cookie.Name + "=" + cookie.Value
}

// refused says that a reply has this status and says this.
func (h *host) refused(a answer, status int, says string) {
	h.t.Helper()
	if a.status != status || !strings.Contains(a.body, says) {
		h.t.Errorf("got %d %s, want %d and %q", a.status, a.body, status, says)
	}
}

// Ensure that an invitation lets one browser in, once, and that nothing answers without its
// cookie.
func TestInvite_Once(t *testing.T) {
	t.Parallel()
	h, path, _ := invited(t, server.AdminRight)
	refused := func(because string, headers ...string) {
		t.Helper()
		for _, path := range []string{"/", "/studio/", "/studio/assets/x.js", "/databases", "/databases/a/docs?id=x", "/healthz", "/readyz", "/metrics", "/jay/v1/session", "/nothing", path} {
			a := h.do("GET", path, "", headers...)
			if a.status != 401 || !strings.Contains(a.body, "Enter") {
				t.Errorf("%s: GET %s: got %d %s, want 401 and what to do", because, path, a.status, a.body)
			}
		}
		same := append([]string{"Sec-Fetch-Site", "same-origin"}, headers...)
		h.checkProblem(h.do("PUT", "/admin/databases?name=x", `{}`, same...), 401, "AuthorizationException")
		h.checkProblem(h.do("POST", "/jay/v1/session", ``, same...), 401, "AuthorizationException")
	}
	h.refused(h.do("GET", path, "", "Sec-Purpose", "prefetch;prerender"), 400, "in advance")
	cookie := h.enter(path)
	refused("no cookie")
	refused("another cookie", "Cookie", strings.TrimRight(cookie, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567")+"AAAA")
	refused("the cookie's name without the port", "Cookie", "jay-session="+cookie[strings.Index(cookie, "=")+1:])

	own := []string{"Cookie", cookie, "Origin", h.http.URL}
	h.want(201, "PUT", "/admin/databases?name=a", `{}`, own...)
	h.want(201, "PUT", "/databases/a/docs?id=x", `{}`, own...)
	h.want(200, "GET", "/databases/a/docs?id=x", "", own...)
	h.want(200, "GET", "/healthz", "", own...)
	equal(t, "rights", h.want(200, "GET", "/jay/v1/session", "", own...).text(t, "Rights", "*"), "admin")

	// A page of another port sends the cookie along, but not this origin.
	for _, headers := range [][]string{{"Cookie", cookie, "Origin", "http://127.0.0.1:1"}, {"Cookie", cookie, "Sec-Fetch-Site", "same-site"}, {"Cookie", cookie}} {
		h.checkProblem(h.do("PUT", "/databases/a/docs?id=y", `{}`, headers...), 403, "AuthorizationException")
	}
	h.want(404, "GET", "/databases/a/docs?id=y", "", own...)

	// The session ends when the browser leaves.
	h.want(204, "DELETE", "/jay/v1/session", "", own...)
	refused("the session has ended", own...)
}

// Ensure that people read why they are refused, and programs as they are refused elsewhere.
func TestInvite_Refusal(t *testing.T) {
	t.Parallel()
	h, path, _ := invited(t, server.ReadRight)
	for _, path := range []string{"/studio/", "/jay/v1/invitation?ticket=x", "/jay/v1/invitation"} {
		a := h.want(401, "GET", path, "", "Accept", "text/html,*/*;q=0.8", "Sec-Fetch-Site", "none")
		if !strings.HasPrefix(a.body, "<!doctype html>") || !strings.Contains(a.body, "Press Enter") || a.header.Get("Content-Type") != "text/html; charset=utf-8" {
			t.Errorf("%s: got %s %s", path, a.header.Get("Content-Type"), a.body)
		}
		if policy := a.header.Get("Content-Security-Policy"); !strings.HasPrefix(policy, "default-src 'none';") || a.header.Get("Cache-Control") != "no-store" {
			t.Errorf("%s: got the headers %v", path, a.header)
		}
	}
	h.refused(h.do("GET", path, "", "Host", "evil.example"), 403, "host")

	// A file of the user's leads the browser here: the page leads it on.
	a := h.want(200, "GET", path, "", "Sec-Fetch-Site", "cross-site")
	if !strings.Contains(a.body, `http-equiv="refresh" content="0; url=/studio/#key=`) || a.header.Get("Set-Cookie") == "" || a.header.Get("Referrer-Policy") != "no-referrer" {
		t.Errorf("got %v %s", a.header, a.body)
	}
}

// Ensure that an invitation to read gives no other right, and that neither a token nor the
// right of the file of tokens counts.
func TestInvite_Rights(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	token, err := server.AccessOf(dir).CreateToken("root", server.Rights{"*": server.AdminRight}, time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	h := startIn(t, dir)
	h.create("a")
	h.stop()
	h = startIn(t, dir, func(o *server.Options) { o.InvitedOnly = true })
	h.checkProblem(h.do("GET", "/databases", "", "Authorization", "Bearer "+token), 401, "AuthorizationException")
	path, err := h.s.Invite(server.ReadRight)
	if err != nil {
		t.Fatal(err)
	}
	own := []string{"Cookie", h.enter(path), "Sec-Fetch-Site", "same-origin", "Authorization", "Bearer " + token}
	h.want(404, "GET", "/databases/a/docs?id=x", "", own...)
	h.refused(h.do("PUT", "/databases/a/docs?id=x", `{}`, own...), 403, "write")
	h.refused(h.do("DELETE", "/admin/databases", `{"DatabaseNames":["a"],"HardDelete":true}`, own...), 403, "admin")
	for _, right := range []server.Right{server.NoRight, server.AdminRight + 1} {
		if _, err := h.s.Invite(right); !errors.Is(err, jay.ErrUsage) {
			t.Errorf("Invite(%d): got %v, want ErrUsage", right, err)
		}
	}
}

// Ensure that invitations and their sessions end with time, and that the oldest of too many
// invitations goes.
func TestInvite_Expires(t *testing.T) {
	t.Parallel()
	h, path, now := invited(t, server.ReadRight)
	now.advance(15 * time.Minute)
	h.refused(h.do("GET", path, ""), 401, "each works once")
	h.refused(h.do("GET", path, ""), 401, "each works once")

	var all []string
	for range 101 {
		path, err := h.s.Invite(server.ReadRight)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, path)
	}
	h.refused(h.do("GET", all[0], ""), 401, "each works once")
	h.enter(all[100])
	now.advance(15*time.Minute - time.Nanosecond)
	cookie := h.enter(all[1])
	now.advance(12*time.Hour - time.Nanosecond)
	h.want(200, "GET", "/databases", "", "Cookie", cookie)
	now.advance(time.Nanosecond)
	h.refused(h.do("GET", "/databases", "", "Cookie", cookie), 401, "The session has ended")
}

// Ensure that a server of given directories serves these as they are, and makes and removes
// none.
func TestDirectories(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "shop.db")
	db, err := jay.Open(dir, &jay.Options{PrefixCollections: jay.PrefixCollectionsOn})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Put(t.Context(), "users/ann", json.RawMessage(`{"Name":"Ann"}`)); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	given := func(name, dir string) func(o *server.Options) {
		return func(o *server.Options) { o.Directories = map[string]string{name: dir} }
	}

	h := start(t, given("Shop", dir))
	equal(t, "names", h.want(200, "GET", "/databases?namesOnly=true", "").body, `{"Databases":["Shop"]}`)
	h.want(201, "PUT", "/databases/shop/docs?id=users/bob", `{"Name":"Bob"}`)
	equal(t, "the collection that the prefix suggests", h.want(200, "GET", "/databases/shop/docs?id=users/bob", "").text(t, "Results", 0, "@metadata", "@collection"), "Users")
	equal(t, "what the studio is told", h.want(200, "GET", "/jay/v1/session", "").text(t, "FixedDatabases"), "true")
	h.refused(h.do("PUT", "/admin/databases?name=other", `{}`), 501, "creates no others")
	for _, hard := range []string{"true", "false"} {
		h.refused(h.do("DELETE", "/admin/databases", `{"DatabaseNames":["shop"],"HardDelete":`+hard+`}`), 501, "deletes none")
	}
	h.want(200, "GET", "/databases/shop/docs?id=users/ann", "")
	if _, err := server.Open(server.Options{Data: t.TempDir(), Directories: map[string]string{"x": dir}}); !errors.Is(err, jay.ErrLocked) {
		t.Errorf("opened twice: got %v, want ErrLocked", err)
	}
	h.stop()

	h = start(t, given("shop", dir), func(o *server.Options) { o.Database.ReadOnly = true })
	h.want(200, "GET", "/databases/shop/docs?id=users/ann", "")
	if a := h.do("PUT", "/databases/shop/docs?id=users/cyd", `{}`); a.status < 400 {
		t.Errorf("a database that is read only was changed: %d %s", a.status, a.body)
	}
	h.stop()

	for _, test := range []struct {
		name, dir string
		want      error
	}{{"a/b", dir, jay.ErrOption}, {"con", dir, jay.ErrOption}, {"none", filepath.Join(t.TempDir(), "none"), jay.ErrNoDatabase}} {
		data := t.TempDir()
		if _, err := server.Open(server.Options{Data: data, Directories: map[string]string{test.name: test.dir}}); !errors.Is(err, test.want) {
			t.Errorf("%s: got %v, want %v", test.name, err, test.want)
		}
		if test.want == jay.ErrNoDatabase {
			if _, err := os.Stat(test.dir); !os.IsNotExist(err) {
				t.Errorf("a database was made: %v", err)
			}
		}
		s, err := server.Open(server.Options{Data: data}) // nothing holds it
		if err == nil {
			err = s.Close()
		}
		if err != nil {
			t.Error(err)
		}
	}
}
