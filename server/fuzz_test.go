package server_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// FuzzServeHTTP ensures that no request fails inside the server, that each error has
// RavenDB's shape and gives nothing away, and that nothing is left of a request.
func FuzzServeHTTP(f *testing.F) {
	for _, seed := range []struct{ method, target, body string }{
		{"GET", "/topology?name=a", ""},
		{"PUT", "/admin/databases?name=b&raft-request-id=1", `{"DatabaseName":"b","Settings":{},"Encrypted":false}`},
		{"DELETE", "/admin/databases", `{"DatabaseNames":["b"],"HardDelete":true}`},
		{"GET", "/databases?start=0&pageSize=20&namesOnly=true", ""},
		{"GET", "/databases/a/docs?&id=users%2F1&include=a%5B%5D.b&include=c(x/)&include=d%5B%7B0%7D-x%5D&include=e.$Keys&metadataOnly=true", ""},
		{"POST", "/databases/a/docs?loadHash=1", `{"Ids":["users/1",null,"x"]}`},
		{"GET", "/databases/a/docs?startsWith=u&matches=*|?&exclude=x&startAfter=a&start=1&pageSize=2", ""},
		{"PUT", "/databases/a/docs?id=a+b&c=d", `{"a":1.50,"@metadata":{"@collection":"Users"}}`},
		{"DELETE", "/databases/a/docs?id=x%2F", ""},
		{"POST", "/databases/a/bulk_docs", `{"Commands":[{"Type":"PUT","Id":"users|","ChangeVector":null,"Document":{"e":{"k":"users/1"},"a":[{"b":"x"}]}},{"Type":"DELETE","Id":"x","ChangeVector":""}],"TransactionMode":"SingleNode"}`},
		{"POST", "/databases/a/multi_get", `{"Requests":[{"Url":"/databases/a/docs","Query":"?&id=x","Method":"GET","Headers":{"If-None-Match":"x"},"Content":null}]}`},
		{"POST", "/databases/a/queries", `{"Query":"from Users where a = $p0 include b","QueryParameters":{"p0":1},"Start":0,"PageSize":1}`},
		{"GET", "/databases/a/hilo/next?tag=users&lastBatchSize=32&lastRangeAt=2026-01-01T00:00:00.0000000Z&identityPartsSeparator=/&lastMax=32", ""},
		{"PUT", "/databases/a/hilo/return?tag=users&end=32&last=1", ""},
		{"POST", "/databases/a/identity/seed?name=users|&value=10&force=true", ""},
		{"PUT", "/databases/a/admin/configuration/client", `{"Etag":0,"Disabled":false}`},
		{"GET", "/databases/a/streams/docs?format=jsonl&start=1", ""},
	} {
		f.Add(seed.method, seed.target, seed.body, "")
	}
	f.Add("GET", "/databases/a/docs?id=x", "", "If-None-Match: \"404 Response\"\r\nAccept-Encoding: gzip;q=0.5\r\nClient-Configuration-Etag: 0\r\n")
	f.Add("PUT", "/databases/a/docs?id=x", "{}", "If-Match: \"A:1-x\"\r\nContent-Type: application/json; charset=utf-8\r\nOrigin: http://localhost\r\n")

	s, err := server.Open(server.Options{Data: f.TempDir(), MaxDatabases: 3, Database: jay.Options{Durability: jay.Relaxed}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.Error(err)
		}
	})
	db, err := jay.OpenMemory(&jay.Options{Durability: jay.Relaxed})
	if err != nil {
		f.Fatal(err)
	}
	mounted, err := server.Open(server.Options{Mounted: map[string]*jay.DB{"a": db}})
	if err != nil {
		f.Fatal(err)
	}
	below, err := mounted.Handler("/admin/db", anAdmin)
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := errors.Join(mounted.Close(), db.Close()); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, method, target, body, headers string) {
		s.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("PUT", "http://localhost/admin/databases?name=a", nil))
		fuzzed(t, s, s, method, target, body, headers)
		fuzzed(t, mounted, below, method, "/admin/db"+target, body, headers)
	})
}

// fuzzed sends a request to a handler of a server.
func fuzzed(t *testing.T, s *server.Server, h http.Handler, method, target, body, headers string) {
	t.Helper()
	text := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n%s\r\n%s", method, target, len(body), headers, body)
	r, err := http.ReadRequest(bufio.NewReader(strings.NewReader(text)))
	if err != nil {
		return
	}
	w := httptest.NewRecorder()
	if !serveOrAbort(h, w, r) {
		return
	}
	if w.Code < 200 || w.Code == 500 && strings.Contains(w.Body.String(), "log says why") {
		t.Fatalf("%q: %d %s", text, w.Code, w.Body)
	}
	if w.Code >= 400 && w.Code != 404 {
		var problem struct{ Url, Type, Message, Error string }
		if err := json.Unmarshal(w.Body.Bytes(), &problem); err != nil || !strings.HasPrefix(problem.Type, "Raven.Client.Exceptions.") || problem.Message == "" || problem.Error == "" {
			t.Fatalf("%q: %d %s (%v)", text, w.Code, w.Body, err)
		}
	} else if w.Body.Len() > 0 && w.Header().Get("Content-Encoding") == "" && !strings.Contains(w.Header().Get("Content-Type"), "ndjson") && !json.Valid(w.Body.Bytes()) {
		t.Fatalf("%q: %d %s", text, w.Code, w.Body)
	}
	if bytes.Contains(w.Body.Bytes(), []byte(".go:")) {
		t.Fatalf("%q: %s", text, w.Body)
	}
	if requests, taken := s.CheckLoad(); requests != 0 || taken != 0 {
		t.Fatalf("%q leaves %d requests and %d bytes", text, requests, taken)
	}
	_, _ = io.Copy(io.Discard, r.Body)
}

// serveOrAbort serves a request, and reports whether the reply is whole.
func serveOrAbort(h http.Handler, w http.ResponseWriter, r *http.Request) (whole bool) {
	defer func() {
		if p := recover(); p != nil && p != http.ErrAbortHandler {
			panic(p)
		}
	}()
	h.ServeHTTP(w, r)
	return true
}
