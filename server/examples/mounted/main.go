// Command mounted is a shop with pages and a sign-in of its own, in whose mux the studio of its database lies below
// /admin/db/: the owner of the shop looks into it and changes it, a clerk looks only, and customers do neither.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
)

func main() {
	db, err := jay.Open("shop.jay", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close() // after the server that it is mounted in
	s, err := newShop(db)
	if err != nil {
		log.Fatal(err)
	}
	defer s.studio.Close()
	fmt.Println("http://127.0.0.1:8080/")
	h := &http.Server{Addr: "127.0.0.1:8080", Handler: s.mux, ReadHeaderTimeout: 10 * time.Second}
	log.Print(h.ListenAndServe())
}

// adminPath is where the studio and the HTTP API of the database are.
const adminPath = "/admin/db"

// shop is the program: its pages, and who is signed in.
type shop struct {
	db     *jay.DB
	mux    *http.ServeMux
	studio *server.Server

	mu       sync.Mutex
	sessions map[string]string // user by cookie. Guarded by mu.
}

// passwords are of the users. A program has hashes of them in its database.
var passwords = map[string]string{"owner": "acorn", "clerk": "beech", "customer": "cedar"}

// newShop returns the program on an open database, which stays the caller's.
func newShop(db *jay.DB) (*shop, error) {
	s := &shop{db: db, mux: http.NewServeMux(), sessions: make(map[string]string)}
	var err error
	s.studio, err = server.Open(server.Options{Mounted: map[string]*jay.DB{"shop": db}, Studio: true})
	if err != nil {
		return nil, err
	}
	admin, err := s.studio.Handler(adminPath, s.rights)
	if err != nil {
		return nil, err
	}
	s.mux.Handle(adminPath, admin)
	s.mux.Handle(adminPath+"/", admin)
	s.mux.HandleFunc("GET /{$}", s.home)
	s.mux.HandleFunc("POST /sign-in", s.signIn)
	s.mux.HandleFunc("POST /sign-out", s.signOut)
	s.mux.HandleFunc("POST /orders", s.placeOrder)
	return s, nil
}

// rights says what the user of a request may do with the database. A user without rights gets none.
func (s *shop) rights(r *http.Request) (name string, rights server.Rights) {
	switch name = s.user(r); name {
	case "owner":
		return name, server.Rights{"shop": server.AdminRight}
	case "clerk":
		return name, server.Rights{"shop": server.ReadRight}
	}
	return name, nil
}

// user returns who is signed in, or "".
func (s *shop) user(r *http.Request) string {
	cookie, err := r.Cookie("shop")
	if err != nil {
		return ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions[cookie.Value]
}

func (s *shop) home(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if user := s.user(r); user != "" {
		fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Shop</title><h1>Hello %s</h1><p><a href="%s/">The database</a></p>
<form method="post" action="/orders"><button>Place an order</button></form><form method="post" action="/sign-out"><button>Sign out</button></form>`, user, adminPath)
		return
	}
	fmt.Fprint(w, `<!doctype html><html lang="en"><title>Shop</title><h1>Sign in</h1><form method="post" action="/sign-in"><label>User <input name="user"></label> <label>Password <input name="password" type="password"></label> <button>Sign in</button></form>`)
}

func (s *shop) signIn(w http.ResponseWriter, r *http.Request) {
	user := r.FormValue("user")
	if want, found := passwords[user]; !found || r.FormValue("password") != want {
		http.Error(w, "no such user, or another password", http.StatusForbidden)
		return
	}
	id := rand.Text()
	s.mu.Lock()
	s.sessions[id] = user
	s.mu.Unlock()
	http.SetCookie(w, &http.Cookie{Name: "shop", Value: id, Path: "/", HttpOnly: true, SameSite: http.SameSiteLaxMode})
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *shop) signOut(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie("shop"); err == nil {
		s.mu.Lock()
		delete(s.sessions, cookie.Value)
		s.mu.Unlock()
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// placeOrder is what the shop itself does with its database.
func (s *shop) placeOrder(w http.ResponseWriter, r *http.Request) {
	user := s.user(r)
	if user == "" {
		http.Error(w, "sign in first", http.StatusUnauthorized)
		return
	}
	if err := s.order(r.Context(), user); err != nil {
		http.Error(w, "the order is not placed", http.StatusInternalServerError)
		return
	}
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

func (s *shop) order(ctx context.Context, user string) error {
	order, err := json.Marshal(map[string]string{"By": user})
	if err == nil {
		_, err = s.db.Store(ctx, "Orders", json.RawMessage(order))
	}
	return err
}
