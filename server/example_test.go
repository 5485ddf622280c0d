package server_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"

	"github.com/jaydb/jay"
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

// A program shows its open database below a path of its own, to those whom it lets in.
func ExampleServer_Handler() {
	db, err := jay.OpenMemory(nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()
	s, err := server.Open(server.Options{Mounted: map[string]*jay.DB{"shop": db}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer s.Close() // leaves the database open
	handler, err := s.Handler("/admin/db", func(r *http.Request) (string, server.Rights) {
		if user, password, _ := r.BasicAuth(); user == "ann" && password == "acorn" {
			return user, server.Rights{"shop": server.ReadRight}
		}
		return "", nil
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	mux := http.NewServeMux()
	mux.Handle("/admin/db/", handler)
	for _, request := range []struct{ method, user string }{{"GET", ""}, {"GET", "ann"}, {"DELETE", "ann"}} {
		r := httptest.NewRequest(request.method, "http://localhost/admin/db/databases/shop/docs?id=users/1", nil)
		if request.user != "" {
			r.SetBasicAuth(request.user, "acorn")
		}
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Printf("%s by %q: %d\n", request.method, request.user, w.Code)
	}
	// Output:
	// GET by "": 401
	// GET by "ann": 404
	// DELETE by "ann": 403
}
