// Command quickstart opens a database in a temporary directory, stores
// documents under every kind of ID, and reads them back.
//
//	go run ./examples/quickstart
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

// Squirrel is stored in the collection Squirrels, under squirrels/1-A.
type Squirrel struct {
	ID   string
	Name string
	Nuts int
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "quickstart-*.jay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	// Go values: the ID field is empty, so the document names itself.
	squirrels, err := jay.CollectionOf[Squirrel](db)
	if err != nil {
		return err
	}
	hazel := &Squirrel{Name: "Hazel", Nuts: 33}
	if _, err := squirrels.Insert(ctx, hazel); err != nil {
		return err
	}
	fmt.Println("inserted", hazel.ID)

	// JSON: the ID that is asked for decides.
	for _, request := range []string{"squirrels/conker", "squirrels|", "squirrels/", ""} {
		meta, err := db.Put(ctx, request, json.RawMessage(`{"Name":"Conker","Nuts":7}`), jay.InCollection("Squirrels"))
		if err != nil {
			return err
		}
		fmt.Printf("put %-20q became %s\n", request, meta.ID)
	}

	nuts := 0
	for s, err := range squirrels.All(ctx) {
		if err != nil {
			return err
		}
		nuts += s.Nuts
	}
	fmt.Println("all squirrels together have", nuts, "nuts")
	return nil
}
