package standby_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/standby"
)

// shop opens a database with one order, and a directory for its copies.
func shop() (db *jay.DB, dir string) {
	dir, err := os.MkdirTemp("", "jay")
	if err != nil {
		log.Fatal(err)
	}
	if db, err = jay.OpenMemory(nil); err != nil {
		log.Fatal(err)
	}
	if _, err := db.Put(context.Background(), "orders/1", json.RawMessage(`{"total":10}`)); err != nil {
		log.Fatal(err)
	}
	return db, dir
}

// A standby is read while it follows its source.
func Example() {
	ctx := context.Background()
	db, dir := shop()
	defer os.RemoveAll(dir)
	defer db.Close()

	s, err := standby.Open(filepath.Join(dir, "copy.db"), standby.From(db), standby.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	reader, err := s.DB(ctx) // waits for the first copy
	if err != nil {
		log.Fatal(err)
	}
	order, err := reader.Get(ctx, "orders/1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.ID(), s.Status().Connected)
	// Output:
	// orders/1 true
}

// A standby says how far behind its source it is.
func ExampleStandby_Status() {
	db, dir := shop()
	defer os.RemoveAll(dir)
	defer db.Close()
	s, err := standby.Open(filepath.Join(dir, "copy.db"), standby.From(db), standby.Options{Retry: time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	if _, err := s.DB(context.Background()); err != nil {
		log.Fatal(err)
	}
	status := s.Status()
	fmt.Println(status.Readable, status.Lag < time.Minute, status.Err)
	// Output:
	// true true <nil>
}

// A source in another process is asked over HTTP.
func ExampleURL() {
	ctx := context.Background()
	db, dir := shop()
	defer os.RemoveAll(dir)
	defer db.Close()
	// Behind the program's own sign-in: who can follow a database reads all of it.
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = standby.Serve(r.Context(), db, flushing{w}, r.Body) // the standby has left
	}))
	defer server.Close()

	s, err := standby.Open(filepath.Join(dir, "copy.db"), standby.URL(nil, server.URL), standby.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	reader, err := s.DB(ctx)
	if err != nil {
		log.Fatal(err)
	}
	found, err := reader.Exists(ctx, "orders/1")
	fmt.Println(found, err)
	// Output:
	// true <nil>
}

// flushing sends each write at once.
type flushing struct{ http.ResponseWriter }

func (f flushing) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
	}
	return n, err
}
