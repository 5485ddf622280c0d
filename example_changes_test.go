package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay"
)

// A feed shows the newest change of each document, the past first. Without
// UntilCaughtUp it then waits for more.
func ExampleDB_Changes() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for _, id := range []string{"squirrels/hazel", "squirrels/conker", "squirrels/hazel"} {
		_, err := db.Put(ctx, id, json.RawMessage(`{"Nuts":1}`), jay.InCollection("Squirrels"))
		check(err)
	}
	check(db.Delete(ctx, "squirrels/conker"))

	for change, err := range db.Changes(ctx, "", jay.OfCollections("Squirrels"), jay.UntilCaughtUp()) {
		check(err)
		fmt.Println(change.Etag, change.ID, change.Deleted)
	}
	// Output:
	// 3 squirrels/hazel false
	// 4 squirrels/conker true
}

// The token of a change leads to those behind it, in a later process, too.
func ExampleChange() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	put := func(id string) {
		_, err := db.Put(ctx, id, json.RawMessage(`{"Kind":"oak"}`), jay.InCollection("Trees"))
		check(err)
	}
	token := ""
	show := func() {
		for change, err := range db.Changes(ctx, token, jay.WithDocuments(), jay.UntilCaughtUp()) {
			check(err)
			fmt.Printf("%s %s\n", change.ID, change.Document.Body())
			token = change.Token()
		}
	}

	put("trees/1")
	put("trees/2")
	show()
	put("trees/3")
	show()
	// Output:
	// trees/1 {"Kind":"oak"}
	// trees/2 {"Kind":"oak"}
	// trees/3 {"Kind":"oak"}
}

// Filters of one kind are alternatives, those of different kinds must all hold.
func ExampleChangesOption() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for _, id := range []string{"trees/1", "trees/2", "nests/1"} {
		_, err := db.Put(ctx, id, json.RawMessage(`{}`))
		check(err)
	}

	options := []jay.ChangesOption{jay.OfPrefixes("trees/", "nests/"), jay.OfIDs("trees/2", "nests/1"), jay.UntilCaughtUp()}
	for change, err := range db.Changes(ctx, "", options...) {
		check(err)
		fmt.Println(change.ID)
	}
	// Output:
	// trees/2
	// nests/1
}

// A token that changes may be missing behind is an error, never a gap: begin again with
// all documents.
func ExampleChangesGoneError() {
	ctx := context.Background()
	db := example()
	defer db.Close()

	for _, err := range db.Changes(ctx, "B:7-AAECAwQFBgcICQoLDA0ODw") { // of another database
		var gone *jay.ChangesGoneError
		if errors.As(err, &gone) {
			fmt.Println(gone.Since, gone.Oldest)
		}
	}
	// Output: B:7-AAECAwQFBgcICQoLDA0ODw 0
}
