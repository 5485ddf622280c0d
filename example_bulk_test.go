package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/jaydb/jay"
)

// A BulkWriter takes documents from any number of goroutines. What it was
// given is on disk when Close has returned nil.
func ExampleBulkWriter() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	w, err := db.BulkInsert(nil)
	check(err)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 1_000 {
				_, err := w.Store(ctx, "Acorns", json.RawMessage(`{"Weight":3}`))
				check(err)
			}
		})
	}
	wg.Wait()
	check(w.Close())
	fmt.Println(w.Progress().Documents)
	// Output: 4000
}

// IDs are returned at once, except those that only the commit can make.
func ExampleBulkWriter_Put() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	w, err := db.BulkInsert(nil)
	check(err)
	var invoice jay.Metadata
	for _, request := range []string{"users/ann", "invoices|"} {
		id, err := w.Put(ctx, request, json.RawMessage(`{}`), jay.Returning(&invoice))
		check(err)
		fmt.Println(id)
	}
	check(w.Close())
	fmt.Println(invoice.ID)
	// Output:
	// users/ann
	// invoices|
	// invoices/1
}

// A document that is refused is an error of its call. The writer goes on.
func ExampleBulkWriter_Store() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	w, err := db.BulkInsert(nil)
	check(err)
	for _, body := range []string{`{"Name":"Ann"}`, `{"Name":`, `{"Name":"Bob"}`} {
		id, err := w.Store(ctx, "Users", json.RawMessage(body))
		fmt.Printf("%q %t\n", id, errors.Is(err, jay.ErrInvalidDocument))
	}
	check(w.Close())
	// Output:
	// "users/1-A" false
	// "" true
	// "users/2-A" false
}

// Go values go in with the ID that an Insert would give them.
func ExampleCollection_BulkStore() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	squirrels, err := jay.CollectionOf[Squirrel](db)
	check(err)

	w, err := db.BulkInsert(nil)
	check(err)
	for _, name := range []string{"Hazel", "Conker"} {
		s := &Squirrel{Name: name}
		check(squirrels.BulkStore(ctx, w, s))
		fmt.Println(s.ID)
	}
	check(w.Close())
	// Output:
	// squirrels/1-A
	// squirrels/2-A
}

// Batches are committed when they are full, or after a while.
func ExampleBulkOptions() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	w, err := db.BulkInsert(&jay.BulkOptions{
		BatchDocuments: 100,
		MaxDelay:       time.Minute,
		Progress:       func(p jay.BulkProgress) { fmt.Println(p.Documents, "documents") },
	})
	check(err)
	for range 250 {
		_, err := w.Store(ctx, "Acorns", json.RawMessage(`{}`))
		check(err)
	}
	check(w.Close())
	// Output:
	// 100 documents
	// 200 documents
	// 250 documents
}

// Progress counts what is committed. Flush waits until all of it is on disk.
func ExampleBulkProgress() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	w, err := db.BulkInsert(&jay.BulkOptions{MaxDelay: time.Hour}) // no batch begins before Flush
	check(err)
	for range 10 {
		_, err := w.Store(ctx, "Acorns", json.RawMessage(`{"Weight":3}`))
		check(err)
	}
	check(w.Flush(ctx))
	p := w.Progress()
	fmt.Println(p.Documents, p.Batches, p.Bytes > 0)
	check(w.Close())
	// Output: 10 1 true
}
