// Command sessions shows a unit of work: entities that are tracked, one atomic
// SaveChanges, includes, and what happens when two sessions change one
// document.
//
//	go run ./examples/sessions
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/jaydb/jay"
)

// Author is stored in the collection Authors, under authors/1-A.
type Author struct {
	ID   string
	Name string
}

// Book refers to its author by ID.
type Book struct {
	ID     string
	Title  string
	Author string
	Copies int
}

// Loan is numbered: its ID is an identity.
type Loan struct {
	ID   string
	Book string
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "sessions-*.jay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	for _, step := range []func(context.Context, *jay.DB) error{store, load, change, collide, end} {
		if err := step(ctx, db); err != nil {
			return err
		}
	}
	return nil
}

// store gives new entities to a session. They have IDs at once, and are
// written together by SaveChanges.
func store(ctx context.Context, db *jay.DB) error {
	fmt.Println("Store")
	session := db.OpenSession()
	ursula := &Author{Name: "Ursula K. Le Guin"}
	if err := session.Store(ctx, ursula); err != nil {
		return err
	}
	for _, title := range []string{"The Dispossessed", "The Lathe of Heaven"} {
		if err := session.Store(ctx, &Book{Title: title, Author: ursula.ID, Copies: 2}); err != nil {
			return err
		}
	}
	loan := &Loan{ID: "loans|", Book: "books/1-A"}
	if err := session.Store(ctx, loan); err != nil {
		return err
	}
	found, err := db.Exists(ctx, ursula.ID)
	if err != nil {
		return err
	}
	fmt.Printf("  the author is %s, the loan %s; written: %t\n", ursula.ID, loan.ID, found)

	if err := session.SaveChanges(ctx); err != nil {
		return err
	}
	if found, err = db.Exists(ctx, ursula.ID); err != nil {
		return err
	}
	fmt.Printf("  the author is %s, the loan %s; written: %t\n", ursula.ID, loan.ID, found)
	return nil
}

// load reads a loan, its book and the book's author. What came along as an
// include needs no second read, and one document is one pointer.
func load(ctx context.Context, db *jay.DB) error {
	fmt.Println("Load")
	session := db.OpenSession()
	loan, err := jay.Load[Loan](ctx, session, "loans/1", jay.Include("Book"))
	if err != nil {
		return err
	}
	fmt.Printf("  %s came along: %t\n", loan.Book, session.Holds(loan.Book))

	book, err := jay.Load[Book](ctx, session, loan.Book, jay.Include("Author"))
	if err != nil {
		return err
	}
	author, err := jay.Load[Author](ctx, session, book.Author)
	if err != nil {
		return err
	}
	again, err := jay.Load[Book](ctx, session, loan.Book)
	if err != nil {
		return err
	}
	fmt.Printf("  %s is %q by %s; loaded again it is the same pointer: %t\n", loan.ID, book.Title, author.Name, book == again)

	books, err := jay.LoadMany[Book](ctx, session, []string{"books/2-A", "books/3-A"})
	if err != nil {
		return err
	}
	fmt.Printf("  many at once: %q, and what is not there is nil: %t\n", books[0].Title, books[1] == nil)
	return nil
}

// change edits structs. The session finds out what is different.
func change(ctx context.Context, db *jay.DB) error {
	fmt.Println("Change")
	session := db.OpenSession()
	books, err := jay.LoadMany[Book](ctx, session, []string{"books/1-A", "books/2-A"})
	if err != nil {
		return err
	}
	books[0].Copies--
	if err := session.Store(ctx, &Author{Name: "Stanisław Lem"}); err != nil {
		return err
	}
	if err := session.Delete(books[1]); err != nil {
		return err
	}

	changes, err := session.WhatChanged()
	if err != nil {
		return err
	}
	for _, c := range changes {
		fmt.Printf("  %-11s %s", c.ID, c.State)
		for _, f := range c.Fields {
			fmt.Printf(" %s from %s to %s", f.Path, f.Old, f.New)
		}
		fmt.Println()
	}
	if err := session.SaveChanges(ctx); err != nil {
		return err
	}
	changed, err := session.HasChanges()
	if err != nil {
		return err
	}
	fmt.Println("  saved; anything left to save:", changed)
	return nil
}

// collide lets two sessions change one book. With OptimisticConcurrency the
// second one is refused, and looks again.
func collide(ctx context.Context, db *jay.DB) error {
	fmt.Println("Collide")
	mine, theirs := db.OpenSession(jay.OptimisticConcurrency()), db.OpenSession()
	book, err := jay.Load[Book](ctx, mine, "books/1-A")
	if err != nil {
		return err
	}
	same, err := jay.Load[Book](ctx, theirs, "books/1-A")
	if err != nil {
		return err
	}
	same.Copies += 10
	if err := theirs.SaveChanges(ctx); err != nil {
		return err
	}

	book.Copies++
	err = mine.SaveChanges(ctx)
	var conflict *jay.ConflictError
	if !errors.As(err, &conflict) {
		return fmt.Errorf("two sessions have changed one book: %w", err)
	}
	fmt.Println("  refused: another writer has changed", conflict.ID)

	if err := mine.Refresh(ctx, book); err != nil {
		return err
	}
	book.Copies++
	if err := mine.SaveChanges(ctx); err != nil {
		return err
	}
	fmt.Println("  refreshed and saved: copies", book.Copies)
	return nil
}

// end shows that nothing happens without SaveChanges.
func end(ctx context.Context, db *jay.DB) error {
	fmt.Println("End")
	session := db.OpenSession()
	book, err := jay.Load[Book](ctx, session, "books/1-A")
	if err != nil {
		return err
	}
	book.Title = "misspelled"
	if err := session.Evict(book); err != nil {
		return err
	}
	if book, err = jay.Load[Book](ctx, session, "books/1-A"); err != nil {
		return err
	}
	fmt.Printf("  evicted and loaded anew: %q\n", book.Title)
	return nil
}
