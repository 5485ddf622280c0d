package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
)

// Ensure that jay follow keeps a copy of a database of a server, with its token, that the copy is only read, and that jay promote makes a
// database of it.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	h, token := acornsServed(t, data)
	call := func(want int, says, stdin string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		getenv := func(name string) string { return map[string]string{"JAY_TOKEN": token}[name] }
		if got := run(context.Background(), args, strings.NewReader(stdin), &out, &errs, getenv); got != want || !strings.Contains(out.String()+errs.String(), says) {
			t.Fatalf("jay %s: exit %d, want %d and %q: %s%s", strings.Join(args, " "), got, want, says, &out, &errs)
		}
	}
	url, at := h.URL+"/databases/acorns", filepath.Join(dir, "copy")
	call(0, "users/ann", `{"Name":"Ann"}`, "--url", url, "put", "--id", "users/ann")
	call(0, " s behind", "", "follow", "--once", url, at)
	call(0, "users/bob", `{"Name":"Bob"}`, "--url", url, "put", "--id", "users/bob")
	call(0, `"connected":true`, "", "--json", "follow", "--once", url, at)
	call(0, "Bob", "", "--db", at, "--read-only", "get", "users/bob")
	call(1, "read it with --read-only, or make a database of it with jay promote", "{}", "--db", at, "put", "--id", "x")
	call(1, `"kind":"standby"`, "{}", "--json", "--db", at, "put", "--id", "x")
	call(1, "standby", "", "--json", "follow", url, filepath.Join(data, "system"))
	call(1, "standby", "", "follow", filepath.Join(data, "system"), filepath.Join(data, "system"))
	call(2, "--every", "", "follow", "--every", "0s", url, at)

	shop, copied := filepath.Join(dir, "shop"), filepath.Join(dir, "copied")
	db, err := jay.Open(shop, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Put(t.Context(), "users/cay", []byte(`{"Name":"Cay"}`)); err != nil {
		t.Fatal(err)
	}
	call(0, " s behind", "", "follow", "--once", shop, copied)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	call(0, "Cay", "", "--db", copied, "--read-only", "get", "users/cay")

	call(2, "--copy-tag TAG", "", "promote", at)
	call(2, "exclude", "", "promote", "--same-tag", "--copy-tag", "B", at)
	call(1, "floor", "", "promote", "--same-tag", at)
	call(0, "with node tag B, 2 documents", "", "promote", "--copy-tag", "B", at)
	call(0, "-B", `{}`, "--db", at, "put", "--collection", "Users")
	call(1, "standby", "", "promote", "--copy-tag", "C", at)
}

// Ensure that jay serve --follow serves a standby of a database of another server, and of a directory, says in /readyz that it is ready, refuses to
// write, and that jay promote makes a database of it that the server has when it does not follow.
func TestServe_Follow(t *testing.T) {
	dir := t.TempDir()
	h, token := acornsServed(t, filepath.Join(dir, "source"))
	getenv := func(name string) string { return map[string]string{"JAY_TOKEN": token}[name] }
	call := func(want int, says string, args ...string) {
		t.Helper()
		var out, errs bytes.Buffer
		if got := run(t.Context(), args, strings.NewReader(""), &out, &errs, getenv); got != want || !strings.Contains(out.String()+errs.String(), says) {
			t.Errorf("jay %s: exit %d, want %d and %q: %s%s", strings.Join(args, " "), got, want, says, &out, &errs)
		}
	}
	shop, err := jay.Open(filepath.Join(dir, "shop"), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer shop.Close()
	if _, err := shop.Put(t.Context(), "x", []byte(`{"Name":"Cay"}`)); err != nil {
		t.Fatal(err)
	}
	url, data := h.URL+"/databases/acorns", filepath.Join(dir, "data")

	// serve runs jay serve until stop is called.
	serve := func(args ...string) (ask func(want int, says, method, path string), stop func()) {
		t.Helper()
		ctx, cancel := context.WithCancel(context.Background())
		t.Cleanup(cancel) // before the source waits for its streams to end
		out, errs, ended := new(lockedBuffer), new(lockedBuffer), make(chan int)
		go func() {
			ended <- run(ctx, append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, args...), strings.NewReader(""), out, errs, getenv)
		}()
		address := ""
		for range 6000 {
			if _, after, found := strings.Cut(out.String(), "Serving "); found {
				address = strings.TrimSpace(after)
				break
			}
			time.Sleep(10 * time.Millisecond)
		}
		ask = func(want int, says, method, path string) {
			t.Helper()
			got, text := 0, ""
			for range 6000 {
				q, err := http.NewRequest(method, address+path, strings.NewReader("{}"))
				if method == "GET" {
					q, err = http.NewRequest(method, address+path, nil)
				}
				if err != nil {
					t.Fatal(err)
				}
				reply, err := http.DefaultClient.Do(q)
				if err != nil {
					t.Fatalf("%v; the log: %s", err, errs)
				}
				body, err := io.ReadAll(reply.Body)
				if err = errors.Join(err, reply.Body.Close()); err != nil {
					t.Fatal(err)
				}
				if got, text = reply.StatusCode, string(body); got != 503 { // the first copy is under way
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if got != want || !strings.Contains(text, says) {
				t.Errorf("%s %s: status %d, want %d and %q: %s", method, path, got, want, says, text)
			}
		}
		return ask, func() {
			t.Helper()
			cancel()
			if code := <-ended; code != 0 {
				t.Errorf("exit %d: %s", code, errs)
			}
		}
	}
	ask, stop := serve("--follow", url, "--follow", "cay="+filepath.Join(dir, "shop"), "--max-lag", "1m")
	ask(200, "ready", "GET", "/readyz")
	ask(200, "Cay", "GET", "/databases/cay/docs?id=x")
	ask(200, "acorns", "GET", "/databases")
	ask(403, "promote", "PUT", "/databases/acorns/docs?id=y")
	call(1, "", "promote", "--copy-tag", "B", filepath.Join(data, "databases", "cay"))
	stop()

	call(0, "with node tag B, 1 document", "promote", "--copy-tag", "B", filepath.Join(data, "databases", "cay"))
	call(1, "if it was promoted", "serve", "--data", data, "--listen", "127.0.0.1:0", "--follow", "cay="+filepath.Join(dir, "shop"))
	ask, stop = serve("--follow", url)
	ask(201, "", "PUT", "/databases/cay/docs?id=y")
	ask(403, "promote", "PUT", "/databases/acorns/docs?id=y")
	stop()

	for says, args := range map[string][]string{
		"--max-lag must be":       {"--follow", url, "--max-lag", "0s"},
		"twice":                   {"--follow", url, "--follow", "ACORNS=" + url},
		"give it a name":          {"--follow", "/"},
		"names no database":       {"--follow", h.URL},
		"goes without --cluster":  {"--follow", url, "--cluster", "http://127.0.0.1:1", "--node-tag", "B", "--cluster-database", "x"},
		"invalid database name":   {"--follow", "a b=" + url},
		"ends with /databases/NA": {"--follow", "x=http://127.0.0.1:1/"},
	} {
		call(2, says, append([]string{"serve", "--data", filepath.Join(dir, "none")}, args...)...)
	}
}
