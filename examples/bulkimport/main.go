// Command bulkimport streams documents into a database from several
// goroutines, and shows how far it is. The stream is NDJSON that the program
// makes up; one from a file or a network is read in the same way.
//
//	go run ./examples/bulkimport
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay"
)

// Sensor may stand in the place of another one.
type Sensor struct {
	ID       string
	Place    string
	Replaces string `json:",omitempty"` // ID
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "bulkimport-*.jay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	if err := stream(ctx, db); err != nil {
		return err
	}
	return values(ctx, db)
}

// stream imports NDJSON: four goroutines take its lines, in no order, and the
// writer gathers and commits them in batches.
func stream(ctx context.Context, db *jay.DB) (err error) {
	fmt.Println("Stream")
	w, err := db.BulkInsert(&jay.BulkOptions{
		BatchDocuments: 5_000,
		MaxDelay:       time.Minute, // so that every batch is full, and this output always the same
		Progress:       func(p jay.BulkProgress) { fmt.Printf("  %6d documents in %d batches\n", p.Documents, p.Batches) },
	})
	if err != nil {
		return err
	}
	// Close is what makes it durable: its error is one of the import.
	defer func() { err = errors.Join(err, w.Close()) }()

	source, sink := io.Pipe()
	defer source.Close() // ends the generator, if the import ends before it
	go func() { sink.CloseWithError(generate(sink, documents)) }()
	lines := make(chan []byte)
	var refused atomic.Int64
	errs := make([]error, 4)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() {
			for line := range lines {
				_, err := w.Store(ctx, "Readings", line)
				if errors.Is(err, jay.ErrInvalidDocument) {
					refused.Add(1) // the writer goes on
				} else {
					errs[i] = errors.Join(errs[i], err)
				}
			}
		})
	}
	scanner := bufio.NewScanner(source)
	for scanner.Scan() {
		lines <- append([]byte(nil), scanner.Bytes()...)
	}
	close(lines)
	wg.Wait()
	if err := errors.Join(append(errs, scanner.Err())...); err != nil {
		return err
	}

	if err := w.Flush(ctx); err != nil {
		return err
	}
	p := w.Progress()
	fmt.Printf("  %d documents are on disk, in %v; %d lines were refused\n", p.Documents, p.Elapsed.Round(time.Millisecond), refused.Load())
	return nil
}

// documents is how many lines of the stream are documents.
const documents = 20_000

// generate writes n documents, and something else now and then.
func generate(w io.Writer, n int) error {
	out := bufio.NewWriter(w)
	for i := range n {
		if i%9_000 == 100 {
			fmt.Fprintln(out, "{\"Sensor\": broken")
		}
		fmt.Fprintf(out, "{\"Sensor\":\"s%02d\",\"Value\":%d.%d}\n", i%50, i%40, i%10)
	}
	return out.Flush()
}

// values imports Go values. Their IDs are known at once, so that one document
// can refer to another before either is written.
func values(ctx context.Context, db *jay.DB) error {
	fmt.Println("Values")
	sensors, err := jay.CollectionOf[Sensor](db)
	if err != nil {
		return err
	}
	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	first := &Sensor{Place: "roof"}
	second := &Sensor{Place: "cellar"}
	err = sensors.BulkStore(ctx, w, first)
	if err == nil {
		second.Replaces = first.ID
		err = sensors.BulkStore(ctx, w, second)
	}
	var numbered jay.Metadata
	if err == nil {
		_, err = w.Put(ctx, "imports|", json.RawMessage(`{"Source":"example"}`), jay.Returning(&numbered))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	fmt.Printf("  %s replaces %s\n", second.ID, second.Replaces)
	fmt.Println("  the commit has numbered", numbered.ID)

	stats, err := db.Stats(ctx)
	if err != nil {
		return err
	}
	for _, c := range stats.Collections {
		fmt.Printf("  %-9s %6d documents\n", c.Name, c.Documents)
	}
	return nil
}
