// Command watch measures what it costs to watch a database: how long DB.Stats and
// DB.DiskUsage take, with many documents and while they are written.
//
//	go run ./watch -documents 1000000
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"time"

	"github.com/jaydb/jay"
)

func main() {
	documents := flag.Int("documents", 1_000_000, "how many documents the database has")
	collections := flag.Int("collections", 3, "how many collections they are in")
	dir := flag.String("dir", "", "directory of the database; the default is a temporary one")
	flag.Parse()
	if err := run(*dir, *documents, *collections); err != nil {
		log.Fatal(err)
	}
}

func run(dir string, documents, collections int) (err error) {
	if dir == "" {
		if dir, err = os.MkdirTemp("", "watch"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	}
	ctx := context.Background()
	db, err := jay.Open(dir, &jay.Options{Durability: jay.Relaxed})
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := db.Close(); err == nil {
			err = closeErr
		}
	}()
	begun := time.Now()
	if err := load(ctx, db, documents, collections); err != nil {
		return err
	}
	fmt.Printf("loaded %d documents in %d collections in %v\n", documents, collections, time.Since(begun).Round(time.Millisecond))

	stats := func() error {
		s, err := db.Stats(ctx)
		sum := int64(0)
		for _, c := range s.Collections {
			sum += c.Documents
		}
		if err == nil && sum < int64(documents) {
			err = fmt.Errorf("stats have %d documents, not %d", sum, documents)
		}
		return err
	}
	if err := measure("Stats", 200, stats); err != nil {
		return err
	}
	stop := make(chan struct{})
	done := make(chan error)
	go func() { done <- write(ctx, db, stop) }()
	err = measure("Stats beside a writer", 200, stats)
	close(stop)
	if writeErr := <-done; err == nil {
		err = writeErr
	}
	if err != nil {
		return err
	}
	return measure("DiskUsage", 20, func() error { _, err := db.DiskUsage(ctx); return err })
}

const body = `{"Name":"Ann Smith","Street":"12 Oak Avenue","City":"Springfield","Zip":"12345","Mail":"ann@example.com","Age":42,"Tags":["a","b"],"Note":"a document of about two hundred bytes, as many are in practice"}`

func load(ctx context.Context, db *jay.DB, documents, collections int) error {
	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	for i := range documents {
		if _, err := w.Store(ctx, fmt.Sprint("Things", i%collections), json.RawMessage(body)); err != nil {
			_ = w.Close()
			return err
		}
	}
	return w.Close()
}

// write overwrites documents until stop is closed.
func write(ctx context.Context, db *jay.DB, stop <-chan struct{}) error {
	for i := 0; ; i++ {
		select {
		case <-stop:
			return nil
		default:
		}
		if _, err := db.Put(ctx, fmt.Sprintf("things0/%d-A", 1+i%1000), json.RawMessage(body)); err != nil {
			return err
		}
	}
}

// measure calls fn n times and prints how long that took.
func measure(what string, n int, fn func() error) error {
	took := make([]time.Duration, n)
	for i := range took {
		begun := time.Now()
		if err := fn(); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		took[i] = time.Since(begun)
	}
	slices.Sort(took)
	fmt.Printf("%-22s median %v, 99%% %v, most %v\n", what, took[n/2], took[n*99/100], took[n-1])
	return nil
}
