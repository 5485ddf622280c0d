package jay_test

import (
	"context"
	"encoding/json"
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
