package main

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that the studio is open to those whom the shop lets in, with the right that it gives them, until they sign out.
func TestShop(t *testing.T) {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s, err := newShop(db)
	if err != nil {
		t.Fatal(err)
	}
	defer s.studio.Close()
	h := httptest.NewServer(s.mux)
	defer h.Close()

	for user, want := range map[string]struct{ get, put int }{"owner": {200, 201}, "clerk": {200, 403}, "customer": {403, 403}, "": {401, 401}} {
		jar, err := cookiejar.New(nil)
		if err != nil {
			t.Fatal(err)
		}
		client := &http.Client{Jar: jar}
		ask := func(method, path, body string) (status int, text string) {
			t.Helper()
			r, err := http.NewRequest(method, h.URL+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Origin", h.URL)
			reply, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer reply.Body.Close()
			all, err := io.ReadAll(reply.Body)
			if err != nil {
				t.Fatal(err)
			}
			return reply.StatusCode, string(all)
		}
		if user != "" {
			reply, err := client.PostForm(h.URL+"/sign-in", url.Values{"user": {user}, "password": {passwords[user]}})
			if err != nil || reply.StatusCode != 200 {
				t.Fatalf("%s: %v, %v", user, reply, err)
			}
			_ = reply.Body.Close()
			if status, text := ask("POST", "/orders", ""); status != 200 || !strings.Contains(text, "Hello "+user) {
				t.Errorf("%s: an order: %d %s", user, status, text)
			}
		}
		if status, text := ask("GET", "/admin/db", ""); status != 200 || !strings.Contains(text, "/admin/db/studio/assets/") {
			t.Errorf("%s: the studio: %d %.300s", user, status, text)
		}
		if status, text := ask("GET", "/admin/db/databases/shop/stats", ""); status != want.get {
			t.Errorf("%s: status %d, want %d: %s", user, status, want.get, text)
		}
		if status, text := ask("PUT", "/admin/db/databases/shop/docs?id=x", "{}"); status != want.put {
			t.Errorf("%s: status %d, want %d: %s", user, status, want.put, text)
		}
		ask("POST", "/sign-out", "")
		if status, text := ask("GET", "/admin/db/databases/shop/stats", ""); status != 401 {
			t.Errorf("%s has signed out: status %d: %s", user, status, text)
		}
	}
}
