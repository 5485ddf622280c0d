// Command queries asks questions to a collection of orders: with the builder
// and in RavenDB's query language, without an index and with one, page by page
// and in groups. docs/queries.md has the language.
//
//	go run ./examples/queries
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/jaydb/jay"
)

// Company is stored in the collection Companies.
type Company struct {
	ID   string
	Name string
}

// Order is stored in the collection Orders.
type Order struct {
	ID      string
	Company string // ID
	Placed  time.Time
	City    string
	Total   float64
	Lines   []Line
}

// Line is a part of an order.
type Line struct {
	Product  string
	Quantity int
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "queries-*.jay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	if err := fill(ctx, db); err != nil {
		return err
	}
	for _, step := range []func(context.Context, *jay.DB) error{builder, indexes, rql, pages, groups, included, unique} {
		if err := step(ctx, db); err != nil {
			return err
		}
	}
	return nil
}

// fill makes 3 companies and 2,000 orders.
func fill(ctx context.Context, db *jay.DB) error {
	companies, err := jay.CollectionOf[Company](db)
	if err != nil {
		return err
	}
	orders, err := jay.CollectionOf[Order](db)
	if err != nil {
		return err
	}
	all := []*Company{{Name: "Acorn & Co"}, {Name: "Beech"}, {Name: "Cedar"}}
	if _, err := companies.InsertMany(ctx, all); err != nil {
		return err
	}

	w, err := db.BulkInsert(nil)
	if err != nil {
		return err
	}
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 2_000 {
		o := &Order{
			Company: all[i%3].ID,
			Placed:  begin.Add(time.Duration(i) * 4 * time.Hour),
			City:    []string{"Oslo", "Bergen", "Tromsø", "Bodø"}[i%4],
			Total:   float64(i%997) + 0.5,
			Lines:   []Line{{"pear", i % 7}, {"acorn", i % 11}},
		}
		if err := orders.BulkStore(ctx, w, o); err != nil {
			return errors.Join(err, w.Close())
		}
	}
	return w.Close()
}

// builder asks in Go. A query is a value that can be kept and refined.
func builder(ctx context.Context, db *jay.DB) error {
	fmt.Println("Builder")
	orders, err := jay.CollectionOf[Order](db)
	if err != nil {
		return err
	}
	large := orders.Query().Where(jay.Gt("Total", 990), jay.In("City", "Oslo", "Bergen"))
	n, err := large.Count(ctx)
	if err != nil {
		return err
	}
	fmt.Println(" ", n, "orders:", large)
	for o, err := range large.Where(jay.AllIn("Lines.Product", "pear", "acorn")).OrderBy("-Total", "id()").Limit(3).Iter(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("  %-11s  %-6s  %.2f\n", o.ID, o.City, o.Total)
	}
	first, err := orders.Query().Where(jay.IgnoreCase(jay.StartsWith("City", "tro"))).OrderBy("Placed").First(ctx)
	if err != nil {
		return err
	}
	fmt.Println("  the first order from", first.City, "is", first.ID)
	return nil
}

// indexes shows what a query costs, with and without an index. Queries use a fitting
// index without being asked.
func indexes(ctx context.Context, db *jay.DB) error {
	fmt.Println("Indexes")
	query := db.Query("Orders").Where(jay.Eq("City", "Bodø"), jay.Ge("Total", 900)).OrderBy("-Total")
	if _, err := query.NoScan().Count(ctx); !errors.Is(err, jay.ErrNoIndex) {
		return fmt.Errorf("counted without an index: %w", err)
	}
	if err := explain(ctx, query); err != nil {
		return err
	}
	if err := db.EnsureIndex(ctx, "Orders", jay.Index{Fields: []string{"City", "Total"}}); err != nil {
		return err
	}
	return explain(ctx, query)
}

func explain(ctx context.Context, q jay.Query[jay.Document]) error {
	e, err := q.Explain(ctx)
	if err != nil {
		return err
	}
	for _, step := range e.Plan {
		fmt.Println("  -", step)
	}
	fmt.Printf("  %d documents read for %d answers", e.Documents, e.Returned)
	if e.Suggestion != nil {
		fmt.Printf("; an index of %q would help", e.Suggestion.Fields)
	}
	fmt.Println()
	return nil
}

// rql asks in RavenDB's query language. Values come as parameters.
func rql(ctx context.Context, db *jay.DB) error {
	fmt.Println("RQL")
	q, err := db.RQL(`from Orders as o
		where o.City = $city and o.Placed between '2026-03-01' and '2026-03-02'
		order by o.Placed
		select id(), o.Total as Sum`, map[string]any{"city": "oslo"})
	if err != nil {
		return err
	}
	for row, err := range q.Iter(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("  %s\n", row.JSON)
	}

	_, err = db.RQL("from Orders wehre Total > 5", nil)
	var wrong *jay.SyntaxError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("a misspelled query: %w", err)
	}
	fmt.Printf("  %v\n", wrong)
	return nil
}

// pages reads 5 answers at a time. A cursor can go to a client and come back
// later.
func pages(ctx context.Context, db *jay.DB) error {
	fmt.Println("Pages")
	query := db.Query("Orders").Where(jay.Eq("City", "Bergen"), jay.Ge("Total", 980)).OrderBy("Total").Limit(5)
	cursor := ""
	for n := 1; ; n++ {
		q := query
		if cursor != "" {
			q = q.After(cursor)
		}
		page, err := q.Page(ctx)
		if err != nil {
			return err
		}
		fmt.Printf("  page %d:", n)
		for _, doc := range page.Items {
			fmt.Print(" ", doc.ID())
		}
		fmt.Println()
		if cursor = page.Next; cursor == "" {
			return nil
		}
	}
}

// groups adds up.
func groups(ctx context.Context, db *jay.DB) error {
	fmt.Println("Groups")
	type city struct {
		City  string
		Count int
		Sum   float64
		Mean  float64
	}
	cities := db.Query("Orders").GroupBy("City").OrderBy("City")
	for c, err := range jay.Select[city](cities, "City", "count()", "sum(Total) as Sum", "avg(Total) as Mean").Iter(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("  %-6s  %d orders  %9.2f  %.2f each\n", c.City, c.Count, c.Sum, c.Mean)
	}

	q, err := db.RQL("from Orders group by Company order by sum(Total) desc select Company, sum(Total) as Sum", nil)
	if err != nil {
		return err
	}
	for row, err := range q.Iter(ctx) {
		if err != nil {
			return err
		}
		fmt.Printf("  %s\n", row.JSON)
	}
	return nil
}

// included reads the companies of the answers along with them.
func included(ctx context.Context, db *jay.DB) error {
	fmt.Println("Includes")
	q, err := db.RQL("from Orders order by Total desc, id() include Company limit 2", nil)
	if err != nil {
		return err
	}
	for row, err := range q.Iter(ctx) {
		if err != nil {
			return err
		}
		fmt.Print("  ", row.Document.ID())
		for _, doc := range row.Included {
			var c Company
			if err := json.Unmarshal(doc.Body(), &c); err != nil {
				return err
			}
			fmt.Printf(", for %s, which is %s", doc.ID(), c.Name)
		}
		fmt.Println()
	}
	return nil
}

// unique lets an index refuse a second company of one name.
func unique(ctx context.Context, db *jay.DB) error {
	fmt.Println("Unique")
	if err := db.EnsureIndex(ctx, "Companies", jay.Index{Fields: []string{"Name"}, Unique: true}); err != nil {
		return err
	}
	_, err := db.Store(ctx, "Companies", json.RawMessage(`{"Name":"Beech"}`))
	var taken *jay.UniqueError
	if !errors.As(err, &taken) {
		return fmt.Errorf("two companies of one name: %w", err)
	}
	fmt.Printf("  %s is the name of %s\n", taken.Value, taken.Other)

	all, err := db.Indexes(ctx, "")
	if err != nil {
		return err
	}
	for _, ix := range all {
		fmt.Printf("  index %s of %s: %s\n", ix.Name, ix.Collection, ix.State)
	}
	return nil
}
