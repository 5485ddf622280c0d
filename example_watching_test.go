package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/storage/storagetest"
)

// What takes space: collections and indexes, the largest first. New documents are in the
// log and in memory; Compact brings them into tables.
func ExampleDiskUsage() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Users", jay.Index{Name: "name", Fields: []string{"Name"}}))
	for range 100 {
		_, err := db.Store(ctx, "Users", json.RawMessage(`{"Name":"Ann"}`))
		check(err)
	}
	check(db.Compact(ctx))
	usage, err := db.DiskUsage(ctx)
	check(err)
	fmt.Println(usage.Collections[0].Name, usage.Collections[0].Bytes > 0)
	fmt.Println(usage.Indexes[0].Name, usage.Indexes[0].Bytes > 0)
	fmt.Println(usage.TotalBytes >= usage.Collections[0].Bytes+usage.Indexes[0].Bytes)
	// Output:
	// Users true
	// name true
	// true
}

// The space of each collection.
func ExampleCollectionDiskUsage() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "users/1", json.RawMessage(`{}`), jay.InCollection("Users"))
	check(err)
	usage, err := db.DiskUsage(ctx)
	check(err)
	for _, c := range usage.Collections {
		fmt.Println(c.Name)
	}
	// Output: Users
}

// The space of each index.
func ExampleIndexDiskUsage() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	check(db.EnsureIndex(ctx, "Users", jay.Index{Name: "name", Fields: []string{"Name"}}))
	usage, err := db.DiskUsage(ctx)
	check(err)
	for _, i := range usage.Indexes {
		fmt.Println(i.Collection, i.Name)
	}
	// Output: Users name
}

// Writes are refused before the disk is full, and deletions are not.
func ExampleDiskFullError() {
	ctx := context.Background()
	disk := storagetest.NewDisk() // a program has a real one
	disk.SetFreeBytes(100 << 20)
	db, err := jay.Open("db", &jay.Options{FS: disk, MinFreeBytes: 1 << 30})
	check(err)
	defer db.Close()
	_, err = db.Put(ctx, "users/1", json.RawMessage(`{}`))
	var full *jay.DiskFullError
	if errors.As(err, &full) {
		fmt.Println(full.Dir, full.FreeBytes>>20, "MiB of", full.MinFreeBytes>>20)
	}
	fmt.Println(db.Delete(ctx, "users/1"))
	// Output:
	// db 100 MiB of 1024
	// <nil>
}

// operationPrinter is an Observer that prints what was done.
type operationPrinter struct{}

func (operationPrinter) Begin(ctx context.Context, o *jay.Operation) context.Context { return ctx }

func (operationPrinter) End(ctx context.Context, o *jay.Operation) {
	fmt.Println(o.Verb, o.Collection, o.Documents, o.Duration > 0, o.Err)
}

// An observer sees each operation.
func ExampleObserver() {
	ctx := context.Background()
	db, err := jay.OpenMemory(&jay.Options{Observer: operationPrinter{}})
	check(err)
	defer db.Close()
	_, err = db.Put(ctx, "users/1", json.RawMessage(`{}`), jay.InCollection("Users"))
	check(err)
	_, err = db.Query("Users").All(ctx)
	check(err)
	// Output:
	// put Users 1 true <nil>
	// query Users 1 true <nil>
}

// slowest keeps the operation that took longest. It is for one goroutine.
type slowest struct{ jay.Operation }

func (s *slowest) Begin(ctx context.Context, o *jay.Operation) context.Context { return ctx }

func (s *slowest) End(ctx context.Context, o *jay.Operation) {
	if o.Duration > s.Duration {
		s.Operation = *o
	}
}

// The operation of an observer says what was done, to what, and how long it took.
func ExampleOperation() {
	ctx := context.Background()
	var s slowest
	db, err := jay.OpenMemory(&jay.Options{Observer: &s})
	check(err)
	defer db.Close()
	check(db.View(ctx, func(*jay.Tx) error {
		time.Sleep(50 * time.Millisecond)
		return nil
	}))
	fmt.Println(s.Verb, s.Duration >= 50*time.Millisecond)
	// Output: view true
}
