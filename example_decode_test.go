package jay_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay"
)

// A document that does not decode into the type of its collection does not end a loop.
func ExampleDecodeError() {
	ctx := context.Background()
	db, orders := exampleOrders()
	defer db.Close()
	_, err := db.Put(ctx, "orders/0", json.RawMessage(`{"Total":"a lot"}`), jay.InCollection("Orders"))
	check(err)

	n := 0
	for _, err := range orders.Query().Iter(ctx) {
		var broken *jay.DecodeError
		switch {
		case errors.As(err, &broken):
			fmt.Println("skipped", broken.ID)
		case err != nil:
			fmt.Println(err)
			return
		default:
			n++
		}
	}
	fmt.Println(n, "orders")
	// Output:
	// skipped orders/0
	// 4 orders
}

// What a query of a session returns are entities of the session: SaveChanges writes
// those that have changed, and what the query includes is there for Load.
func ExampleQueryOf() {
	ctx := context.Background()
	db, _ := exampleOrders()
	defer db.Close()
	type customer struct{ ID, Name string }
	customers, err := jay.CollectionOf[customer](db, jay.Named("Customers"))
	check(err)
	_, err = customers.Insert(ctx, &customer{ID: "customers/dan", Name: "Dan"})
	check(err)
	_, err = db.Put(ctx, "orders/9", json.RawMessage(`{"Customer":"customers/dan","Status":"open"}`), jay.InCollection("Orders"))
	check(err)

	session := db.OpenSession(jay.WithCollections(customers))
	open, err := jay.QueryOf[Order](session).Where(jay.Eq("Customer", "customers/dan")).Include("Customer").All(ctx)
	check(err)
	for _, order := range open {
		dan, err := jay.Load[customer](ctx, session, order.Customer) // reads nothing
		check(err)
		fmt.Println(order.ID, dan.Name)
		order.Status = "paid"
	}
	check(session.SaveChanges(ctx))
	n, err := db.Query("Orders").Where(jay.Eq("Status", "paid")).Count(ctx)
	check(err)
	fmt.Println(n, "paid")
	// Output:
	// orders/9 Dan
	// 2 paid
}
