// Command migrations changes the shape of stored documents, while other programs
// could go on to read and write them. Each step is a loop of conditional patches,
// in batches, and can be interrupted and run again.
//
//	go run ./examples/migrations
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"strings"

	"github.com/jaydb/jay"
)

// User is the newest shape. Schema says in which shape a document is stored; the first
// one had no such field.
type User struct {
	ID     string
	First  string
	Last   string
	Email  string
	Schema int
}

// step brings documents to the shape number to.
type step struct {
	to    int
	edits func(doc *jay.Document) ([]jay.PatchOption, error)
}

var steps = []step{
	{2, renameMail},
	{3, splitName},
}

// renameMail: Mail is now called Email.
func renameMail(*jay.Document) ([]jay.PatchOption, error) {
	return []jay.PatchOption{jay.Rename("Mail", "Email")}, nil
}

// splitName: Name becomes First and Last.
func splitName(doc *jay.Document) ([]jay.PatchOption, error) {
	name, _, err := jay.Value[string](doc, "Name")
	if err != nil {
		return nil, err
	}
	first, last, _ := strings.Cut(name, " ")
	return []jay.PatchOption{jay.Set("First", first), jay.Set("Last", last), jay.Unset("Name")}, nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "migrations-*.jay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	if err := oldData(ctx, db); err != nil {
		return err
	}
	for _, s := range steps {
		n, err := migrate(ctx, db, "Users", s)
		if err != nil {
			return fmt.Errorf("migration %d: %w", s.to, err)
		}
		fmt.Printf("migration %d: %d documents\n", s.to, n)
	}

	users, err := jay.CollectionOf[User](db)
	if err != nil {
		return err
	}
	user, err := users.Get(ctx, "users/1-A")
	if err != nil {
		return err
	}
	fmt.Printf("%+v\n", *user)
	return nil
}

// migrate makes one step for a collection. It can be interrupted at any time: a
// document that has its new number is left out when it runs again.
func migrate(ctx context.Context, db *jay.DB, collection string, s step) (total int, err error) {
	for {
		n, again, err := pass(ctx, db, collection, s)
		total += n
		if err != nil || !again {
			return total, err
		}
	}
}

// pass migrates the documents that are below the step. Another pass is needed if one of
// them was changed meanwhile.
func pass(ctx context.Context, db *jay.DB, collection string, s step) (n int, again bool, err error) {
	var batch jay.Batch
	apply := func() error {
		_, err := db.Apply(ctx, &batch)
		if errors.Is(err, jay.ErrConflict) {
			again, err = true, nil // nothing of this batch was written
		} else if err == nil {
			n += batch.Len()
		}
		batch.Reset()
		return err
	}
	old := jay.Or(jay.Not(jay.Exists("Schema")), jay.Lt("Schema", s.to))
	for doc, err := range db.Query(collection).Where(old).Iter(ctx) {
		if err != nil {
			return n, again, err
		}
		edits, err := s.edits(doc)
		if err != nil {
			return n, again, fmt.Errorf("%s: %w", doc.ID(), err)
		}
		batch.Patch(doc.ID(), append(edits, jay.Set("Schema", s.to), jay.IfMatch(doc.ChangeVector()))...)
		if batch.Len() == 100 {
			if err := apply(); err != nil {
				return n, again, err
			}
		}
	}
	return n, again, apply()
}

// oldData stores users in the first shape.
func oldData(ctx context.Context, db *jay.DB) error {
	var batch jay.Batch
	for i := range 250 {
		batch.Store("Users", json.RawMessage(fmt.Sprintf(`{"Name":"Ann Archer","Mail":"ann%d@example.com"}`, i)))
	}
	_, err := db.Apply(ctx, &batch)
	return err
}
