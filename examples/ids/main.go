// Command ids makes documents under every kind of ID, and shows where the
// numbers come from. docs/ids.md has the whole story.
//
//	go run ./examples/ids
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/jaydb/jay"
)

// User is stored in the collection Users, under users/1-A.
type User struct {
	ID   string
	Name string
}

// Country has an ID that follows from its code.
type Country struct {
	ID   string
	Code string
	Name string
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "ids-*.jay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	for _, step := range []func(context.Context, *jay.DB) error{strategies, semantic, identities, hilo, client, custom} {
		if err := step(ctx, db); err != nil {
			return err
		}
	}
	return nil
}

// empty is a document for which only the ID matters.
var empty = json.RawMessage(`{}`)

// strategies asks for one ID of each kind. The request decides.
func strategies(ctx context.Context, db *jay.DB) error {
	fmt.Println("Five strategies")
	for _, row := range []struct{ strategy, request string }{
		{"semantic", "users/ann"},
		{"identity", "users|"},
		{"server-side", "users/"},
		{"GUID", ""},
	} {
		meta, err := db.Put(ctx, row.request, empty, jay.InCollection("Users"))
		if err != nil {
			return err
		}
		fmt.Printf("  %-11s  %-11q  %s\n", row.strategy, row.request, meta.ID)
	}
	meta, err := db.Store(ctx, "Users", empty) // asks for nothing
	if err != nil {
		return err
	}
	fmt.Printf("  %-11s  %-11s  %s\n", "HiLo", "", meta.ID)
	return nil
}

// semantic IDs are taken as they are, and found in any casing.
func semantic(ctx context.Context, db *jay.DB) error {
	fmt.Println("Semantic")
	doc, err := db.Get(ctx, "USERS/Ann")
	if err != nil {
		return err
	}
	fmt.Println("  USERS/Ann is found as", doc.ID())
	if _, err = db.Insert(ctx, "users/ann", empty); !errors.Is(err, jay.ErrExists) {
		return fmt.Errorf("inserted twice: %w", err)
	}
	fmt.Println("  inserted again:", err)

	_, err = db.Put(ctx, `users\ann`, empty)
	var invalid *jay.IDError
	if !errors.As(err, &invalid) {
		return fmt.Errorf("a backslash in an ID: %w", err)
	}
	fmt.Println("  an ID", invalid.Rule)
	return nil
}

// identities are consecutive: a number commits with its document.
func identities(ctx context.Context, db *jay.DB) error {
	fmt.Println("Identities")
	if _, err := db.SeedIdentity(ctx, "invoices", 1000, false); err != nil {
		return err
	}
	for _, body := range []string{`{"Total":12.50}`, `{"Total":`, `{"Total":7}`} {
		meta, err := db.Put(ctx, "invoices|", json.RawMessage(body))
		if errors.Is(err, jay.ErrInvalidDocument) {
			fmt.Println("  refused, which uses up no number")
			continue
		}
		if err != nil {
			return err
		}
		fmt.Println(" ", meta.ID)
	}
	n, err := db.NextIdentity(ctx, "invoices")
	if err != nil {
		return err
	}
	all, err := db.Identities(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("  %d was taken without a document; last used: invoices %d, users %d\n", n, all["invoices|"], all["users|"])
	return nil
}

// hilo shows where the numbers of the default come from: a document says how
// many are reserved, and an insert needs nothing but the next of them.
func hilo(ctx context.Context, db *jay.DB) error {
	fmt.Println("HiLo")
	users, err := jay.CollectionOf[User](db)
	if err != nil {
		return err
	}
	for _, name := range []string{"Bob", "Cyd"} {
		u := &User{Name: name}
		if _, err := users.Insert(ctx, u); err != nil {
			return err
		}
		fmt.Println("  inserted", u.ID)
	}
	doc, err := db.Get(ctx, "Raven/HiLo/users")
	if err != nil {
		return err
	}
	fmt.Printf("  %s says that these numbers are reserved: %s\n", doc.ID(), doc.Body())
	return nil
}

// client makes IDs as a program on another machine would, out of ranges that
// the database grants.
func client(ctx context.Context, db *jay.DB) error {
	fmt.Println("A client with ranges of its own")
	r, err := db.NextRange(ctx, jay.RangeRequest{Tag: "users"})
	if err != nil {
		return err
	}
	fmt.Printf("  granted: numbers %d to %d\n", r.Low, r.High)

	last := r.Low + 1 // it uses two of them
	for n := r.Low; n <= last; n++ {
		meta, err := db.Insert(ctx, fmt.Sprintf("%s%d-%s", r.Prefix, n, r.NodeTag), empty, jay.InCollection("Users"))
		if err != nil {
			return err
		}
		fmt.Println("  inserted", meta.ID)
	}
	accepted, err := db.ReturnRange(ctx, "users", last, r.High)
	if err != nil {
		return err
	}
	fmt.Println("  the rest was given back:", accepted)

	// In Go a HiLoClient does all of that.
	c := db.NewHiLoClient()
	id, err := c.Next(ctx, "users")
	if err != nil {
		return err
	}
	fmt.Println("  the next client begins with", id)
	return c.Close(ctx)
}

// custom replaces HiLo for one collection.
func custom(ctx context.Context, db *jay.DB) error {
	fmt.Println("Conventions")
	countries, err := jay.CollectionOf[Country](db, jay.WithIDs(func(_ context.Context, c *Country) (string, error) {
		return "countries/" + c.Code, nil
	}))
	if err != nil {
		return err
	}
	c := &Country{Code: "NO", Name: "Norway"}
	if _, err := countries.Insert(ctx, c); err != nil {
		return err
	}
	fmt.Println("  a country names itself:", c.ID)
	return nil
}
