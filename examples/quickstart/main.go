// Command quickstart opens a database in a temporary directory, stores
// documents under every kind of ID, and reads them back.
//
//	go run ./examples/quickstart
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
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
	dir, err := os.MkdirTemp("", "quickstart-*.jay")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	if err := run(context.Background(), dir, os.Stdout); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, dir string, out io.Writer) (err error) {
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() {
		if closeErr := db.Close(); err == nil {
			err = closeErr
		}
	}()

	// Go values: the ID field is empty, so the document names itself.
	squirrels, err := jay.CollectionOf[Squirrel](db)
	if err != nil {
		return err
	}
	hazel := &Squirrel{Name: "Hazel", Nuts: 33}
	if _, err := squirrels.Insert(ctx, hazel); err != nil {
		return err
	}
	fmt.Fprintln(out, "inserted", hazel.ID)

	// JSON: the ID that is asked for decides.
	for _, request := range []string{"squirrels/conker", "squirrels|", "squirrels/", ""} {
		meta, err := db.Put(ctx, request, json.RawMessage(`{"Name":"Conker","Nuts":7}`), jay.InCollection("Squirrels"))
		if err != nil {
			return err
		}
		fmt.Fprintf(out, "put %-20q became %s\n", request, meta.ID)
	}

	nuts := 0
	for s, err := range squirrels.All(ctx) {
		if err != nil {
			return err
		}
		nuts += s.Nuts
	}
	fmt.Fprintln(out, "all squirrels together have", nuts, "nuts")
	return nil
}
