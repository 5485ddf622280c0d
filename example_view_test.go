package jay_test

import (
	"encoding/json"
	"fmt"

	"github.com/jaydb/jay"
)

// A function sees the document where it lies, without a copy, and takes out
// what it needs.
func ExampleDB_Read() {
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "users/1", json.RawMessage(`{"Name":"Ada","Bio":"a very long text","Tags":["x","y"]}`))
	check(err)

	var name string
	err = db.Read(ctx, "users/1", func(doc *jay.RawDocument) error {
		name, _, err = jay.Value[string](doc, "Name")
		fmt.Println(len(doc.Body()), "bytes were not copied")
		return err
	})
	check(err)
	fmt.Println(name)
	// Output:
	// 56 bytes were not copied
	// Ada
}

// A RawDocument gives its bytes only while the function of Read runs.
func ExampleRawDocument() {
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "users/1", json.RawMessage(`{"Name":"Ada"}`))
	check(err)

	check(db.Read(ctx, "users/1", func(doc *jay.RawDocument) error {
		raw, found, err := doc.Path("Name")
		fmt.Println(doc.ID(), string(raw), found)
		return err
	}))
	// Output: users/1 "Ada" true
}

// Value decodes one place of a document and nothing else of it.
func ExampleValue() {
	db := example()
	defer db.Close()
	_, err := db.Put(ctx, "orders/1", json.RawMessage(`{"Lines":[{"Product":"nut","Qty":2},{"Product":"bolt","Qty":3}]}`))
	check(err)
	doc, err := db.Get(ctx, "orders/1")
	check(err)

	qty, found, err := jay.Value[int](doc, "Lines[0].Qty")
	fmt.Println(qty, found, err)
	products, _, err := jay.Value[[]string](doc, "Lines[].Product")
	fmt.Println(products, err)
	// Output:
	// 2 true <nil>
	// [nut bolt] <nil>
}

// Patterns choose among the IDs behind a prefix.
func ExampleDB_Documents_patterns() {
	db := example()
	defer db.Close()
	for _, id := range []string{"logs/2026-01-a", "logs/2026-01-b", "logs/2026-02-a", "logs/2027-01-a"} {
		_, err := db.Put(ctx, id, json.RawMessage(`{}`))
		check(err)
	}

	scan := jay.Scan{Prefix: "logs/", Matches: "2026-??-a|2027*", Exclude: "*-02-*"}
	for doc, err := range db.Documents(ctx, scan) {
		check(err)
		fmt.Println(doc.ID())
	}
	// Output:
	// logs/2026-01-a
	// logs/2027-01-a
}
