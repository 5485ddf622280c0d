package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
)

// turnover is the turnover of a shop per product.
var turnover = jay.Computed{
	Name: "Orders/ByProduct",
	Maps: []index.Map{{
		Collection: "Orders", Each: "Lines", As: "line",
		Select: []index.Member{
			{Name: "Product", Expression: "line.Product"},
			{Name: "Total", Expression: "line.Price * line.Quantity"},
		},
	}},
	Reduce: &index.Reduce{
		GroupBy: []string{"Product"},
		Select:  []index.Member{{Name: "Product"}, {Name: "Lines", Expression: "count()"}, {Name: "Total", Expression: "sum(Total)"}},
	},
}

// The turnover of each product is kept in the commit of each order.
func ExampleComputed() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	if err := jay.ComputedOf(db).Ensure(ctx, turnover); err != nil {
		log.Fatal(err)
	}
	order := json.RawMessage(`{"Lines":[{"Product":"Acorns","Price":0.10,"Quantity":30},{"Product":"Leaves","Price":2,"Quantity":1}]}`)
	for range 2 {
		if _, err := db.Put(ctx, "orders/", order, jay.InCollection("Orders")); err != nil {
			log.Fatal(err)
		}
	}
	type product struct {
		Product string
		Lines   int
		Total   float64
	}
	for p, err := range jay.QueryIndex[product](db, "Orders/ByProduct").Where(jay.Gt("Total", 1)).OrderBy("-Total").Iter(ctx) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(p.Product, p.Lines, p.Total)
	}
	// Output:
	// Acorns 2 6
	// Leaves 2 4
}

// The computed indexes of a database are declared, listed and dropped by their names.
func ExampleComputedIndexes() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	indexes := jay.ComputedOf(db)
	if err := indexes.Ensure(ctx, turnover); err != nil {
		log.Fatal(err)
	}
	fmt.Println(indexes.Drop(ctx, "orders/byproduct"))
	all, err := indexes.List(ctx)
	fmt.Println(len(all), err)
	// Output:
	// <nil>
	// 0 <nil>
}

// What is known of a computed index: its algebra, and the indexes that keep its answers.
func ExampleComputedInfo() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	if err := jay.ComputedOf(db).Ensure(ctx, turnover); err != nil {
		log.Fatal(err)
	}
	all, err := jay.ComputedOf(db).List(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, info := range all {
		fmt.Println(info.State, info.Parts[0].Kind, info.Parts[0].Options["sums"])
	}
	// Output: ready groups line.Price * line.Quantity
}

// What a declaration makes of a document, before it is declared.
func ExampleComputedPreview() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	order := json.RawMessage(`{"Lines":[{"Product":"Acorns","Price":0.10,"Quantity":30},{"Product":"Leaves","Price":"two","Quantity":1}]}`)
	if _, err := db.Put(ctx, "orders/1", order, jay.InCollection("Orders")); err != nil {
		log.Fatal(err)
	}
	p, err := jay.ComputedOf(db).Preview(ctx, turnover, "orders/1")
	if err != nil {
		log.Fatal(err)
	}
	for _, m := range p.Documents[0].Maps {
		fmt.Printf("%s\n", m.Entries)
		fmt.Println(m.Errors[0].Field, "fails:", m.Errors[0].Reason)
	}
	fmt.Printf("%s\n", p.Results)
	// Output:
	// [{"Product":"Acorns","Total":3} {"Product":"Leaves","Total":null}]
	// line.Price * line.Quantity fails: *: a number is wanted, not the text "two"
	// [{"Product":"Acorns","Lines":1,"Total":3} {"Product":"Leaves","Lines":1,"Total":0}]
}

// A document for which an expression of a computed index fails is stored, and noted.
func ExampleComputedFailure() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	if err := jay.ComputedOf(db).Ensure(ctx, turnover); err != nil {
		log.Fatal(err)
	}
	order := json.RawMessage(`{"Lines":[{"Product":"Leaves","Price":"two","Quantity":1}]}`)
	if _, err := db.Put(ctx, "orders/1", order, jay.InCollection("Orders")); err != nil {
		log.Fatal(err)
	}
	list, err := jay.ComputedOf(db).Errors(ctx, "Orders/ByProduct", 0)
	for _, e := range list {
		fmt.Println(e.Collection, e.ID, e.Field, e.Reason)
	}
	fmt.Println(err)
	// Output:
	// Orders orders/1 line.Price * line.Quantity *: a number is wanted, not the text "two"
	// <nil>
}

// points gives the points of each product of an order.
func points(order struct {
	Lines []struct {
		Product string
		Price   float64
	}
}) (all []map[string]any, err error) {
	for _, line := range order.Lines {
		all = append(all, map[string]any{"Product": line.Product, "Points": int(line.Price) / 10})
	}
	return all, nil
}

func init() { jay.RegisterFunction("example/points", "1", points) }

// A Go function makes the entries of an index, of which the points of each product are kept.
func ExampleRegisterFunction() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	declared := jay.Computed{
		Name: "Points",
		Maps: []index.Map{{
			Collection: "Orders", Function: "example/points", Version: "1", As: "share",
			Select: []index.Member{{Name: "Product", Expression: "share.Product"}, {Name: "Points", Expression: "share.Points"}},
		}},
		Reduce: &index.Reduce{GroupBy: []string{"Product"}, Select: []index.Member{{Name: "Product"}, {Name: "Points", Expression: "sum(Points)"}}},
	}
	if err := jay.ComputedOf(db).Ensure(ctx, declared); err != nil {
		log.Fatal(err)
	}
	if _, err := db.Put(ctx, "orders/", json.RawMessage(`{"Lines":[{"Product":"Acorns","Price":35},{"Product":"Acorns","Price":10}]}`), jay.InCollection("Orders")); err != nil {
		log.Fatal(err)
	}
	rows, err := jay.QueryIndex[map[string]any](db, "Points").All(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println((*rows[0])["Product"], (*rows[0])["Points"])
	// Output:
	// Acorns 4
}

// A program that lacks the function of an index, here in its version 2, cannot declare it, and could not write into its collection.
func ExampleFunctionError() {
	db := example()
	defer db.Close()
	err := jay.ComputedOf(db).Ensure(context.Background(), jay.Computed{
		Name: "Points",
		Maps: []index.Map{{Collection: "Orders", Function: "example/points", Version: "2", As: "share", Select: []index.Member{{Name: "Product", Expression: "share.Product"}}}},
	})
	if missing := (*jay.FunctionError)(nil); errors.As(err, &missing) {
		fmt.Println("missing:", missing.Function, missing.Version)
	}
	// Output:
	// missing: example/points 2
}

// A change of a document that more than 1,024 others load is refused if their entries would become others.
func ExampleReferrersError() {
	ctx := context.Background()
	db := example()
	defer db.Close()
	err := jay.ComputedOf(db).Ensure(ctx, jay.Computed{
		Name: "Payments/ByPayer",
		Maps: []index.Map{{Collection: "Payments", Select: []index.Member{{Name: "Payer", Expression: "load(Payer).Name"}}}},
	})
	if err != nil {
		log.Fatal(err)
	}
	var batch jay.Batch
	batch.Put("payers/1", []byte(`{"Name":"Ann"}`), jay.InCollection("Payers"))
	for i := range 1025 {
		batch.Put(fmt.Sprint("payments/", i), []byte(`{"Payer":"payers/1"}`), jay.InCollection("Payments"))
	}
	if _, err := db.Apply(ctx, &batch); err != nil {
		log.Fatal(err)
	}
	_, err = db.Put(ctx, "payers/1", []byte(`{"Name":"Anna"}`))
	if many := (*jay.ReferrersError)(nil); errors.As(err, &many) {
		fmt.Println(many.ID, many.Collection, many.Limit)
	}
	_, err = db.Put(ctx, "payers/1", []byte(`{"Name":"Ann","Phone":"7"}`)) // the index does not load it
	fmt.Println(err)
	// Output:
	// payers/1 Payments 1024
	// <nil>
}
