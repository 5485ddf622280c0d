package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

// BenchmarkGet gets one document over HTTP, and BenchmarkBare the same bytes of a handler
// that does nothing else.
func BenchmarkGet(b *testing.B) {
	s, err := server.Open(server.Options{Data: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	h := httptest.NewServer(s)
	defer h.Close()
	for _, put := range []string{"/admin/databases?name=a", "/databases/a/docs?id=users/1"} {
		r, _ := http.NewRequest("PUT", h.URL+put, strings.NewReader(`{"Name":"`+strings.Repeat("x", 500)+`"}`))
		if strings.HasPrefix(put, "/admin") {
			r.Body = http.NoBody
		}
		reply, err := http.DefaultClient.Do(r)
		if err != nil || reply.StatusCode != 201 {
			b.Fatal(reply, err)
		}
		reply.Body.Close()
	}
	getMany(b, h.URL+"/databases/a/docs?id=users/1")
}

func BenchmarkBare(b *testing.B) {
	body := []byte(`{"Results":[{"Name":"` + strings.Repeat("x", 650) + `"}],"Includes":{}}`)
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.Write(body)
	}))
	defer h.Close()
	getMany(b, h.URL)
}

func getMany(b *testing.B, url string) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.SetParallelism(16)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			reply, err := client.Get(url)
			if err != nil || reply.StatusCode != 200 {
				b.Error(reply, err)
				return
			}
			io.Copy(io.Discard, reply.Body)
			reply.Body.Close()
		}
	})
}

// BenchmarkBulkInsert compares a bulk insert over HTTP with the embedded bulk writer.
func BenchmarkBulkInsert(b *testing.B) {
	body := []byte(`{"Name":"Ann Example","Company":"companies/12-A","Age":42,"Tags":["a","b"],"@metadata":{"@collection":"Users"}}`)
	b.Run("http", func(b *testing.B) {
		s, err := server.Open(server.Options{Data: b.TempDir()})
		if err != nil {
			b.Fatal(err)
		}
		h := httptest.NewServer(s)
		defer h.Close()
		defer s.Close()
		send := func(method, path string, r io.Reader) string {
			request, err := http.NewRequest(method, h.URL+path, r)
			if err != nil {
				b.Fatal(err)
			}
			reply, err := http.DefaultClient.Do(request)
			if err != nil {
				b.Fatal(err)
			}
			defer reply.Body.Close()
			text, _ := io.ReadAll(reply.Body)
			if reply.StatusCode >= 300 {
				b.Fatalf("%d %s", reply.StatusCode, text)
			}
			return string(text)
		}
		send("PUT", "/admin/databases?name=a", strings.NewReader("{}"))
		var id struct{ Id int64 }
		if err := json.Unmarshal([]byte(send("GET", "/databases/a/operations/next-operation-id", nil)), &id); err != nil {
			b.Fatal(err)
		}
		r, w := io.Pipe()
		b.ResetTimer()
		go func() {
			out := bufio.NewWriterSize(w, 1<<20)
			for i := range b.N {
				fmt.Fprintf(out, `%c{"Id":"users/%d","Type":"PUT","Document":%s}`, "[,"[min(i, 1)], i, body)
			}
			out.WriteByte(']')
			w.CloseWithError(out.Flush())
		}()
		send("POST", fmt.Sprintf("/databases/a/bulk_insert?id=%d", id.Id), r)
	})
	b.Run("embedded", func(b *testing.B) {
		db, err := jay.Open(b.TempDir(), nil)
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		w, err := db.BulkInsert(nil)
		if err != nil {
			b.Fatal(err)
		}
		b.ResetTimer()
		for i := range b.N {
			if _, err := w.Put(b.Context(), fmt.Sprintf("users/%d", i), body); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			b.Fatal(err)
		}
	})
}
