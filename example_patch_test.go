package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/jaydb/jay"
)

// patching prints what a patch makes of a document.
func patching(document string, edits ...jay.PatchOption) {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "squirrels/hazel", json.RawMessage(document))
	check(err)
	result, err := db.Patch(ctx, "squirrels/hazel", edits...)
	check(err)
	fmt.Printf("%s\n", result.Body)
}

// No change in between is lost, though the document is not read.
func ExampleDB_Patch() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "squirrels/hazel", json.RawMessage(`{"Nuts":0}`))
	check(err)

	var wg sync.WaitGroup
	for range 16 {
		wg.Go(func() {
			_, err := db.Patch(ctx, "squirrels/hazel", jay.Increment("Nuts", 1))
			check(err)
		})
	}
	wg.Wait()
	doc, err := db.Get(ctx, "squirrels/hazel")
	check(err)
	fmt.Printf("%s\n", doc.Body())
	// Output: {"Nuts":16}
}

func ExampleCollection_Patch() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	squirrels, err := jay.CollectionOf[Squirrel](db)
	check(err)
	_, err = squirrels.Patch(ctx, "trees/1-A", jay.Increment("Nuts", 1))
	fmt.Println(errors.Is(err, jay.ErrCollection)) // a tree is no squirrel
	// Output: true
}

// Edits and conditions make a patch together. Edits are applied in their
// order, all or none.
func ExamplePatchOption() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	meta, err := db.Put(ctx, "squirrels/hazel", json.RawMessage(`{"Nuts":10}`))
	check(err)
	for range 2 {
		result, err := db.Patch(ctx, "squirrels/hazel",
			jay.Increment("Nuts", -3),
			jay.Append("Log", "ate 3"),
			jay.IfMatch(meta.ChangeVector), // only in the version that was read
		)
		fmt.Printf("%s %t\n", result.Body, errors.Is(err, jay.ErrConflict))
	}
	// Output:
	// {"Nuts":7,"Log":["ate 3"]} false
	//  true
}

func ExampleSet() {
	patching(`{"Home":{"Tree":"oak"}}`, jay.Set("Home.Branch", 7), jay.Set("Likes", []string{"pears"}))
	// Output: {"Home":{"Tree":"oak","Branch":7},"Likes":["pears"]}
}

// Two brackets mean every element, one with a number means that one.
func ExampleSet_paths() {
	patching(`{"Kits":[{"Age":1},{"Age":2}],"Rates":{"a.b":1}}`,
		jay.Set("Kits[].Fed", true),
		jay.Set("Kits[0].Name", "Acorn"),
		jay.Set("Rates.'a.b'", 2),
	)
	// Output: {"Kits":[{"Age":1,"Fed":true,"Name":"Acorn"},{"Age":2,"Fed":true}],"Rates":{"a.b":2}}
}

func ExampleUnset() {
	patching(`{"Name":"Hazel","Nuts":10}`, jay.Unset("Nuts"), jay.Unset("Tail"))
	// Output: {"Name":"Hazel"}
}

// Decimals are added as decimals, and what is missing counts as 0.
func ExampleIncrement() {
	patching(`{"Nuts":10,"Weight":1.1}`, jay.Increment("Nuts", -3), jay.Increment("Weight", 0.1), jay.Increment("Visits", 1))
	// Output: {"Nuts":7,"Weight":1.2,"Visits":1}
}

func ExampleAppend() {
	patching(`{"Likes":["pears"]}`, jay.Append("Likes", "figs", "plums"))
	// Output: {"Likes":["pears","figs","plums"]}
}

func ExampleRemove() {
	patching(`{"Likes":["pears","figs","pears"]}`, jay.Remove("Likes", "pears"))
	// Output: {"Likes":["figs"]}
}

// A condition is about one element. "@value" is an element that is no object.
func ExampleRemoveWhere() {
	patching(`{"Lines":[{"Product":"pear","Qty":0},{"Product":"fig","Qty":2}],"Tags":["old-a","b"]}`,
		jay.RemoveWhere("Lines", jay.Lt("Qty", 1)),
		jay.RemoveWhere("Tags", jay.StartsWith("@value", "old-")),
	)
	// Output: {"Lines":[{"Product":"fig","Qty":2}],"Tags":["b"]}
}

func ExampleAddToSet() {
	patching(`{"Likes":["pears"]}`, jay.AddToSet("Likes", "figs", "pears"))
	// Output: {"Likes":["pears","figs"]}
}

func ExamplePopFirst() {
	patching(`{"Queue":["ann","bob","cyd"]}`, jay.PopFirst("Queue"))
	// Output: {"Queue":["bob","cyd"]}
}

func ExamplePopLast() {
	patching(`{"Undo":["typed","pasted"]}`, jay.PopLast("Undo"))
	// Output: {"Undo":["typed"]}
}

func ExampleRename() {
	patching(`{"Home":{"Tree":"oak"},"Nuts":10}`, jay.Rename("Home.Tree", "Kind"))
	// Output: {"Home":{"Kind":"oak"},"Nuts":10}
}

// What is counted may not be there yet.
func ExampleOrInsert() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for range 2 {
		result, err := db.Patch(ctx, "pages/home", jay.Increment("Visits", 1),
			jay.OrInsert(map[string]int{"Visits": 1}), jay.InCollection("Pages"))
		check(err)
		fmt.Printf("%s %s\n", result.Status, result.Body)
	}
	// Output:
	// Created {"Visits":1}
	// Patched {"Visits":2}
}

// The edits are made of the inserted document, too: nothing is said twice.
func ExampleOrInsertPatched() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	for _, who := range []string{"ann", "bob"} {
		result, err := db.Patch(ctx, "pages/home",
			jay.Increment("Visits", 1), jay.AddToSet("Visitors", who),
			jay.OrInsertPatched(map[string]string{"Title": "Home"}), jay.InCollection("Pages"))
		check(err)
		fmt.Printf("%s %s\n", result.Status, result.Body)
	}
	// Output:
	// Created {"Title":"Home","Visits":1,"Visitors":["ann"]}
	// Patched {"Title":"Home","Visits":2,"Visitors":["ann","bob"]}
}

// The results of a batch are metadata. That of a patch says more.
func ExampleReturningPatch() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	var batch jay.Batch
	var results [2]jay.PatchResult
	for i, id := range []string{"squirrels/1-A", "squirrels/99-A"} {
		batch.Patch(id, jay.Increment("Nuts", 1), jay.ReturningPatch(&results[i]))
	}
	_, err := db.Apply(ctx, &batch)
	check(err)
	for _, r := range results {
		fmt.Printf("%s %s\n", r.Status, r.Body)
	}
	// Output:
	// Patched {"Name":"Hazel","Nuts":11}
	// DocumentDoesNotExist
}

func ExampleMergePatch() {
	patching(`{"Name":"Hazel","Nuts":10,"Home":{"Tree":"oak"}}`,
		jay.MergePatch(json.RawMessage(`{"Nuts":null,"Home":{"Branch":7}}`)))
	// Output: {"Name":"Hazel","Home":{"Tree":"oak","Branch":7}}
}

func ExampleJSONPatch() {
	patching(`{"Name":"Hazel","Likes":["pears"]}`, jay.JSONPatch(json.RawMessage(`[
		{"op":"test","path":"/Name","value":"Hazel"},
		{"op":"add","path":"/Likes/-","value":"figs"},
		{"op":"move","from":"/Name","path":"/Title"}
	]`)))
	// Output: {"Likes":["pears","figs"],"Title":"Hazel"}
}

// A test that fails changes nothing.
func ExampleJSONPatch_test() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "squirrels/hazel", json.RawMessage(`{"Nuts":10}`))
	check(err)
	_, err = db.Patch(ctx, "squirrels/hazel", jay.JSONPatch(json.RawMessage(`[
		{"op":"replace","path":"/Nuts","value":9},
		{"op":"test","path":"/Nuts","value":10}
	]`)))
	fmt.Println(errors.Is(err, jay.ErrPatchTest))
	// Output: true
}

// The result has the document as it is now, and its new version.
func ExamplePatchResult() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	result, err := db.Patch(ctx, "squirrels/1-A", jay.Increment("Nuts", 1))
	check(err)
	fmt.Println(result.Status, result.Metadata.ID, result.Metadata.Collection)
	fmt.Printf("%s\n", result.Body)
	// Output:
	// Patched squirrels/1-A Squirrels
	// {"Name":"Hazel","Nuts":11}
}

// That a document is not there, or is already so, is no error.
func ExamplePatchStatus() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	for _, id := range []string{"squirrels/1-A", "squirrels/99-A"} {
		for range 2 {
			result, err := db.Patch(ctx, id, jay.Set("Nuts", 11))
			check(err)
			fmt.Println(id, result.Status, result.Status == jay.PatchNotFound)
		}
	}
	// Output:
	// squirrels/1-A Patched false
	// squirrels/1-A NotModified false
	// squirrels/99-A DocumentDoesNotExist true
	// squirrels/99-A DocumentDoesNotExist true
}

// A patch with a mistake changes nothing, and says which edit it is.
func ExamplePatchError() {
	ctx := context.Background()
	db := forest()
	defer db.Close()
	_, err := db.Patch(ctx, "squirrels/1-A", jay.Set("Nuts", 11), jay.Increment("Name", 1))
	var mistake *jay.PatchError
	fmt.Println(errors.As(err, &mistake), mistake.Edit, mistake.Path, mistake.Rule)
	// Output: true 1 Name only a number can be incremented
}
