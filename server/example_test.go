package server_test

import (
	"fmt"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/jaydb/jay/server"
)

func ExampleServer() {
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	s, err := server.Open(server.Options{Data: dir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close()

	// A Server is an http.Handler. Serve answers on a listener.
	for _, request := range []struct{ method, path, body string }{
		{"PUT", "/admin/databases?name=acorns", `{}`},
		{"PUT", "/databases/acorns/docs?id=users|", `{"Name":"Ann"}`},
		{"HEAD", "/databases/acorns/docs?id=users/1", ""},
		{"GET", "/databases/acorns/docs?id=users/2", ""},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(request.method, "http://localhost"+request.path, strings.NewReader(request.body)))
		fmt.Println(request.method, request.path, w.Code)
	}
	// Output:
	// PUT /admin/databases?name=acorns 201
	// PUT /databases/acorns/docs?id=users| 201
	// HEAD /databases/acorns/docs?id=users/1 200
	// GET /databases/acorns/docs?id=users/2 404
}
