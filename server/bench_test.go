package server_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
