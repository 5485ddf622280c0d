// Command dashboard is what the owner of a shop looks at: orders for each day and customer, the stock of each warehouse, ratings of products,
// and facets of the catalog. Computed indexes keep the numbers in the commit of each order, so that the dashboard reads no documents.
// docs/aggregates.md has the guide.
//
//	go run ./examples/dashboard
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
)

// Day is what one customer has ordered on one day.
type Day struct {
	Day, Customer string
	Orders        int
	Total         json.Number
	Status        string // of the last order
}

// Stock is how many pieces of a product are in a warehouse.
type Stock struct {
	Warehouse, Product string
	Pieces             int
}

// Rating is how a product is liked.
type Rating struct {
	Product string
	Mean    json.Number
	Ratings int
	Best    int
}

// indexes are what the dashboard asks for.
var indexes = []jay.Computed{
	{
		Name: "Orders/ByDay",
		Maps: []index.Map{{
			Collection: "Orders",
			Where:      "Status != 'canceled'",
			Select:     []index.Member{{Name: "Day", Expression: "day(At)"}, {Name: "Customer"}, {Name: "Total"}, {Name: "Status"}, {Name: "At", Expression: "At as date"}},
		}},
		Reduce: &index.Reduce{
			GroupBy: []string{"Day", "Customer"},
			Select: []index.Member{
				{Name: "Day"}, {Name: "Customer"},
				{Name: "Orders", Expression: "count()"},
				{Name: "Total", Expression: "sum(Total)"},
				{Name: "Status", Expression: "last(Status order by At)"},
			},
		},
	},
	{
		Name: "Stock",
		Maps: []index.Map{
			{Collection: "Deliveries", Select: []index.Member{{Name: "Warehouse"}, {Name: "Product"}, {Name: "Pieces"}}},
			{
				Collection: "Orders", Each: "Lines", As: "line", Where: "Status != 'canceled'",
				Select: []index.Member{{Name: "Warehouse", Expression: "line.From"}, {Name: "Product", Expression: "line.Product"}, {Name: "Pieces", Expression: "0 - line.Pieces"}},
			},
		},
		Reduce: &index.Reduce{
			GroupBy: []string{"Warehouse", "Product"},
			Select:  []index.Member{{Name: "Warehouse"}, {Name: "Product"}, {Name: "Pieces", Expression: "sum(Pieces)"}},
		},
	},
	{
		Name: "Ratings",
		Maps: []index.Map{{Collection: "Ratings", Select: []index.Member{{Name: "Product"}, {Name: "Stars"}}}},
		Reduce: &index.Reduce{
			GroupBy: []string{"Product"},
			Select:  []index.Member{{Name: "Product"}, {Name: "Mean", Expression: "avg(Stars)"}, {Name: "Ratings", Expression: "count()"}, {Name: "Best", Expression: "max(Stars)"}},
		},
	},
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "dashboard-*.jay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if err := declare(ctx, db); err != nil {
		return err
	}
	if err := fill(ctx, db); err != nil {
		return err
	}
	if err := show(ctx, db); err != nil {
		return err
	}
	fmt.Println("\nan order is canceled")
	if _, err := db.Patch(ctx, "orders/3", jay.Set("Status", "canceled")); err != nil {
		return err
	}
	return show(ctx, db)
}

// declare declares the indexes, and one of groups for the facets of the catalog.
func declare(ctx context.Context, db *jay.DB) error {
	for _, c := range indexes {
		if err := jay.ComputedOf(db).Ensure(ctx, c); err != nil {
			return err
		}
	}
	return db.EnsureIndex(ctx, "Products", jay.Index{Name: "ByBrand", Kind: "groups", Fields: []string{"Brand"}, Options: map[string]string{"sums": "Price"}})
}

// fill stores some products, deliveries, orders and ratings.
func fill(ctx context.Context, db *jay.DB) error {
	for _, doc := range []struct{ collection, id, body string }{
		{"Products", "products/1", `{"Name":"acorns","Brand":"Oak","Price":2.5}`},
		{"Products", "products/2", `{"Name":"nuts","Brand":"Oak","Price":4.9}`},
		{"Products", "products/3", `{"Name":"seeds","Brand":"Ash","Price":1.2}`},
		{"Deliveries", "deliveries/1", `{"Warehouse":"north","Product":"acorns","Pieces":100}`},
		{"Deliveries", "deliveries/2", `{"Warehouse":"south","Product":"acorns","Pieces":40}`},
		{"Deliveries", "deliveries/3", `{"Warehouse":"north","Product":"nuts","Pieces":30}`},
		{"Orders", "orders/1", `{"At":"2026-11-27T08:30:00Z","Customer":"ann","Status":"paid","Total":12.4,"Lines":[{"Product":"acorns","Pieces":3,"From":"north"},{"Product":"nuts","Pieces":1,"From":"north"}]}`},
		{"Orders", "orders/2", `{"At":"2026-11-27T17:05:00Z","Customer":"ann","Status":"open","Total":5.0,"Lines":[{"Product":"acorns","Pieces":2,"From":"south"}]}`},
		{"Orders", "orders/3", `{"At":"2026-11-28T09:00:00Z","Customer":"bob","Status":"open","Total":49.1,"Lines":[{"Product":"nuts","Pieces":9,"From":"north"},{"Product":"acorns","Pieces":2,"From":"north"}]}`},
		{"Ratings", "ratings/1", `{"Product":"acorns","Stars":5}`},
		{"Ratings", "ratings/2", `{"Product":"acorns","Stars":4}`},
		{"Ratings", "ratings/3", `{"Product":"nuts","Stars":3}`},
	} {
		if _, err := db.Put(ctx, doc.id, json.RawMessage(doc.body), jay.InCollection(doc.collection)); err != nil {
			return err
		}
	}
	return nil
}

// show prints the dashboard. NoScan is the promise that no page reads all documents.
func show(ctx context.Context, db *jay.DB) error {
	days, err := jay.QueryIndex[Day](db, "Orders/ByDay").OrderBy("Day", "Customer").NoScan().All(ctx)
	if err != nil {
		return err
	}
	for _, d := range days {
		fmt.Printf("%s  %s: %d orders of %s, the last is %s\n", d.Day, d.Customer, d.Orders, d.Total, d.Status)
	}
	stock, err := jay.QueryIndex[Stock](db, "Stock").Where(jay.Eq("Warehouse", "north")).OrderBy("Product").NoScan().All(ctx)
	if err != nil {
		return err
	}
	for _, s := range stock {
		fmt.Printf("%s: %d %s\n", s.Warehouse, s.Pieces, s.Product)
	}
	ratings, err := jay.QueryIndex[Rating](db, "Ratings").Where(jay.Gt("Ratings", 1)).OrderBy("-Mean").NoScan().All(ctx)
	if err != nil {
		return err
	}
	for _, r := range ratings {
		fmt.Printf("%s: %s stars of %d, %d at best\n", r.Product, r.Mean, r.Ratings, r.Best)
	}
	facets, err := db.Query("Products").NoScan().Facets(ctx, jay.Facet{Field: "Brand", Functions: []string{"avg(Price)"}})
	if err != nil {
		return err
	}
	for _, v := range facets[0].Values {
		fmt.Printf("%s: %d products, %s on average\n", v.Range, v.Count, v.Average)
	}
	return nil
}
