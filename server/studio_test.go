package server_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/jaydb/jay/server"
)

func withStudio(o *server.Options) { o.Studio = true }

// Ensure that the pages of the studio are there if the option is set, and only then, and that
// the root leads to them.
func TestStudio(t *testing.T) {
	t.Parallel()
	h := start(t, withStudio)
	for _, path := range []string{"/studio/", "/studio/db/shop/documents?collection=Orders"} {
		a := h.want(200, "GET", path, "")
		if !strings.Contains(a.body, "<!doctype html>") || !strings.Contains(a.header.Get("Content-Security-Policy"), "script-src "+strings.TrimPrefix(h.http.URL, "http://")+"/studio/assets/;") {
			t.Errorf("%s: got %v %.200s", path, a.header, a.body)
		}
	}
	for _, path := range []string{"/", "/studio"} {
		r, err := http.NewRequest("GET", h.http.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		reply, err := h.http.Client().Transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		reply.Body.Close()
		if reply.StatusCode != 307 || reply.Header.Get("Location") != "/studio/" {
			t.Errorf("%s: got %d %v", path, reply.StatusCode, reply.Header)
		}
	}
	h.checkProblem(h.do("GET", "/studios", ""), 400, "RouteNotFoundException")
	without := start(t)
	for _, path := range []string{"/", "/studio", "/studio/"} {
		without.checkProblem(without.do("GET", path, ""), 400, "RouteNotFoundException")
	}
}

// Ensure that the pages need no credentials, which what they ask for does; that a host of another
// name is refused; and that a link on a page of another site may lead to a page of the
// studio, but to nothing else.
func TestStudio_Guard(t *testing.T) {
	t.Parallel()
	h := start(t, withStudio, func(o *server.Options) { o.Authenticate = true })
	h.want(200, "GET", "/studio/databases", "")
	h.want(401, "GET", "/databases", "")
	h.want(200, "GET", "/studio/databases", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
	h.want(403, "GET", "/databases", "", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate")
	r, err := http.NewRequest("GET", h.http.URL+"/studio/", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Host = "evil.example"
	reply, err := h.http.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	reply.Body.Close()
	if reply.StatusCode != 403 {
		t.Errorf("another host: got %d", reply.StatusCode)
	}
}
