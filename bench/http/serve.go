package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/server"
	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	_ "github.com/pocketbase/pocketbase/migrations" // those of its own tables
	"github.com/pocketbase/pocketbase/tools/dbutils"
	"github.com/pocketbase/pocketbase/tools/types"
)

// serveAs is what the processes of the servers run, until their standard input ends.
func serveAs(kind, dir string, writers, documents int) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) // it ends with the program that has started this one
		cancel()
	}()
	if kind == "embedded" {
		return bulkWriters(dir, writers, documents)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	switch kind {
	case "jay":
		s, err := server.Open(server.Options{Data: dir, MaxRequests: 512, MaxStreams: 512})
		if err != nil {
			return err
		}
		fmt.Println("listens on", l.Addr())
		return s.Serve(ctx, l)
	case "bare":
		return serveHTTP(ctx, l, bare(dir), func() error { return nil })
	case "pocketbase", "pocketbase, its defaults":
		handler, end, err := pocketBase(dir, kind == "pocketbase")
		if err != nil {
			return err
		}
		return serveHTTP(ctx, l, handler, end)
	}
	return fmt.Errorf("there is no server %q", kind)
}

// serveHTTP serves a handler until ctx ends.
func serveHTTP(ctx context.Context, l net.Listener, handler http.Handler, end func() error) error {
	s := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	fmt.Println("listens on", l.Addr())
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return errors.Join(s.Close(), end())
	}
}

// bare returns a handler that reads requests as Jay does, and returns what Jay has replied.
func bare(dir string) http.Handler {
	reply := func(what string, status int) http.HandlerFunc {
		// The file is there before the first request.
		read := sync.OnceValues(func() ([]byte, error) { return os.ReadFile(filepath.Join(dir, what)) })
		return func(w http.ResponseWriter, r *http.Request) {
			text, err := read()
			if err == nil {
				_, err = io.ReadAll(r.Body)
			}
			if err != nil {
				http.Error(w, err.Error(), http.StatusInternalServerError)
				return
			}
			w.Header().Set("Content-Type", "application/json; charset=utf-8")
			w.WriteHeader(status)
			_, _ = w.Write(text) // the client sees it
		}
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /databases/bench/docs", reply("GET", http.StatusOK))
	mux.HandleFunc("PUT /databases/bench/docs", reply("PUT", http.StatusCreated))
	mux.HandleFunc("POST /databases/bench/queries", reply("query", http.StatusOK))
	mux.HandleFunc("POST /databases/bench/bulk_insert", func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
		}
	})
	return mux
}

// pocketBase returns PocketBase with a collection of one JSON field, which everyone may read
// and write. If it is durable, each transaction is synced, and the request log is off.
func pocketBase(dir string, durable bool) (handler http.Handler, end func() error, err error) {
	config := core.BaseAppConfig{DataDir: dir}
	if durable {
		// core.DefaultDBConnect, but for synchronous.
		config.DBConnect = func(file string) (*dbx.DB, error) {
			return dbx.Open("sqlite", file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_pragma=journal_size_limit(200000000)&_pragma=synchronous(FULL)&_pragma=foreign_keys(ON)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-32000)")
		}
	}
	app := core.NewBaseApp(config)
	if err := app.Bootstrap(); err != nil {
		return nil, nil, err
	}
	if err := app.RunAllMigrations(); err != nil {
		return nil, nil, err
	}
	settings := app.Settings()
	settings.Batch.Enabled, settings.Batch.MaxRequests, settings.Batch.Timeout = true, pocketBatch, 600
	if durable {
		settings.Logs.MaxDays = 0
	}
	if err := app.Save(settings); err != nil {
		return nil, nil, err
	}
	collection := core.NewBaseCollection("orders")
	for _, rule := range []**string{&collection.ListRule, &collection.ViewRule, &collection.CreateRule} {
		*rule = types.Pointer("") // everyone
	}
	collection.Fields.Add(&core.JSONField{Name: "body", MaxSize: 1 << 20})
	if err := app.Save(collection); err != nil {
		return nil, nil, err
	}
	if _, err := app.DB().NewQuery("CREATE INDEX by_bucket ON orders (" + dbutils.JSONExtract("body", "Bucket") + ")").Execute(); err != nil {
		return nil, nil, err
	}
	var mode int
	if err := app.NonconcurrentDB().NewQuery("PRAGMA synchronous").Row(&mode); err != nil {
		return nil, nil, err
	}
	if want := map[bool]int{true: 2, false: 1}[durable]; mode != want {
		return nil, nil, fmt.Errorf("synchronous is %d, not %d", mode, want)
	}
	router, err := apis.NewRouter(app)
	if err != nil {
		return nil, nil, err
	}
	if handler, err = router.BuildMux(); err != nil {
		return nil, nil, err
	}
	return handler, app.ResetBootstrapState, nil
}

// bulkWriters inserts documents without a server, and prints how many were stored in a second.
func bulkWriters(dir string, writers, documents int) (err error) {
	bodies := make([][]byte, documents)
	for i := range bodies {
		bodies[i] = document(i)
	}
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	ctx := context.Background()
	if err := db.EnsureIndex(ctx, "Orders", jay.Index{Name: "Orders/ByBucket", Fields: []string{"Bucket"}}); err != nil {
		return err
	}
	begun := time.Now()
	var all sync.WaitGroup
	failures := make([]error, writers)
	for n := range writers {
		all.Go(func() {
			failures[n] = insert(ctx, db, bodies, documents*n/writers, documents*(n+1)/writers)
		})
	}
	all.Wait()
	if err := errors.Join(failures...); err != nil {
		return err
	}
	fmt.Println(float64(documents) / time.Since(begun).Seconds())
	return nil
}

// insert stores some of the documents with a bulk writer.
func insert(ctx context.Context, db *jay.DB, bodies [][]byte, from, to int) error {
	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	for i := from; i < to; i++ {
		if _, err := w.Put(ctx, fmt.Sprintf("orders/%d", i), bodies[i], jay.InCollection("Orders")); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}
