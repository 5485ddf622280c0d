// Command readme is the first program of README.md: it opens a database in the
// working directory, stores a book, finds it and changes it.
//
//	go run ./examples/readme
package main

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/jaydb/jay"
)

type Book struct {
	ID     string
	Title  string
	Author string `jay:"index"`
	Copies int
}

func main() {
	ctx := context.Background()
	db, err := jay.Open("library.jay", nil) // a directory, made if it is missing
	check(err)
	defer db.Close()
	books, err := jay.CollectionOf[Book](db)
	check(err)
	check(books.EnsureIndexes(ctx)) // those of the struct tags

	// Insert: the ID field is empty, so Jay makes an ID and writes it back.
	dune := &Book{Title: "Dune", Author: "Frank Herbert", Copies: 2}
	_, err = books.Insert(ctx, dune)
	check(err)
	fmt.Println(dune.ID) // books/1-A

	// Query: the index on Author is used automatically.
	query := books.Query().Where(jay.Eq("Author", "Frank Herbert")).OrderBy("Title")
	for book, err := range query.Iter(ctx) {
		check(err)
		fmt.Println(book.Title, book.Copies) // Dune 2
	}

	// Transaction: all of it is committed, or nothing. If another write changed the
	// book meanwhile, the function runs again.
	err = db.Update(ctx, func(tx *jay.Tx) error {
		book, err := books.In(tx).Get(ctx, dune.ID)
		if err != nil {
			return err
		}
		if book.Copies == 0 {
			return errors.New("every copy is lent")
		}
		book.Copies--
		_, err = books.In(tx).Put(ctx, book)
		return err
	}, jay.Retry(10))
	check(err)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
