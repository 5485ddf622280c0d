// Command changes keeps a search index up to date by a feed of changes, and sends
// invoices by a subscription, which goes on after a failure and a restart.
//
//	go run ./examples/changes
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/jaydb/jay"
)

// Order is a document.
type Order struct {
	ID       string
	Customer string
	Total    int
	Paid     bool
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) (err error) {
	dir, err := os.MkdirTemp("", "changes-*.jay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	s := search{ids: make(map[string][]string)}
	for _, step := range []func(context.Context, *jay.DB) error{s.first, s.second, firstInvoices, moreInvoices} {
		if err := inDatabase(ctx, dir, step); err != nil {
			return err
		}
	}
	return nil
}

// inDatabase opens the database for one step, as a program that starts anew.
func inDatabase(ctx context.Context, dir string, step func(context.Context, *jay.DB) error) error {
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	return errors.Join(step(ctx, db), db.Close())
}

// search finds orders by customer: something that is not kept in the database, but made
// of it.
type search struct {
	token string // the changes up to here are in ids
	ids   map[string][]string
}

// update takes in what has changed. A server leaves out UntilCaughtUp, and runs it on a
// goroutine for as long as it lives.
func (s *search) update(ctx context.Context, db *jay.DB) error {
	changed := 0
	for change, err := range db.Changes(ctx, s.token, jay.OfCollections("Orders"), jay.WithDocuments(), jay.UntilCaughtUp()) {
		if errors.Is(err, jay.ErrChangesGone) {
			*s = search{ids: make(map[string][]string)} // begin again with all documents
			return s.update(ctx, db)
		}
		if err != nil {
			return err
		}
		for name, ids := range s.ids { // what was known of the document is old
			s.ids[name] = slices.DeleteFunc(ids, func(id string) bool { return strings.EqualFold(id, change.ID) })
		}
		if !change.Deleted {
			name, _, err := jay.Value[string](change.Document, "Customer")
			if err != nil {
				return err
			}
			s.ids[name] = append(s.ids[name], change.ID)
		}
		s.token = change.Token()
		changed++
	}
	fmt.Printf("  %d changes:", changed)
	for _, name := range slices.Sorted(maps.Keys(s.ids)) {
		fmt.Printf(" %s %v", name, s.ids[name])
	}
	fmt.Println()
	return nil
}

func (s *search) first(ctx context.Context, db *jay.DB) error {
	fmt.Println("A feed of changes")
	orders, err := jay.CollectionOf[Order](db)
	if err != nil {
		return err
	}
	_, err = orders.InsertMany(ctx, []*Order{{Customer: "ann", Total: 30, Paid: true}, {Customer: "bob", Total: 50, Paid: true}, {Customer: "ann", Total: 20}})
	if err != nil {
		return err
	}
	return s.update(ctx, db)
}

// second goes on behind the token: two of three orders have changed.
func (s *search) second(ctx context.Context, db *jay.DB) error {
	if _, err := db.Patch(ctx, "orders/2-A", jay.Set("Customer", "cyd")); err != nil {
		return err
	}
	if err := db.Delete(ctx, "orders/1-A"); err != nil {
		return err
	}
	return s.update(ctx, db)
}

// firstInvoices sends invoices for what is paid. One of them fails.
func firstInvoices(ctx context.Context, db *jay.DB) error {
	fmt.Println("A subscription")
	err := db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "invoices", Query: "from Orders where Paid = true", MaxFailures: 1})
	if err != nil {
		return err
	}
	orders, err := jay.CollectionOf[Order](db)
	if err != nil {
		return err
	}
	if _, err := orders.Insert(ctx, &Order{Customer: "dan", Total: 10, Paid: true}); err != nil {
		return err
	}
	return work(ctx, orders, "cyd")
}

// moreInvoices is a later run of the program: what is done is not sent again.
func moreInvoices(ctx context.Context, db *jay.DB) error {
	orders, err := jay.CollectionOf[Order](db)
	if err != nil {
		return err
	}
	if _, err := db.Patch(ctx, "orders/3-A", jay.Set("Paid", true)); err != nil {
		return err
	}
	failures, err := db.Subscriptions().Failures(ctx, "invoices")
	if err != nil {
		return err
	}
	for _, f := range failures {
		fmt.Printf("  %s has failed: %s\n", f.ID, f.Error)
	}
	if _, err := db.Subscriptions().Retry(ctx, "invoices"); err != nil {
		return err
	}
	return work(ctx, orders, "")
}

// work sends an invoice for each order but those of one customer, who has no address.
func work(ctx context.Context, orders *jay.Collection[Order], unknown string) error {
	return orders.Subscribe(ctx, "invoices", &jay.WorkOptions{UntilCaughtUp: true}, func(_ context.Context, o *Order) error {
		if o.Customer == unknown {
			return errors.New("no address of " + o.Customer)
		}
		fmt.Printf("  invoice for %s: %s, %d\n", o.ID, o.Customer, o.Total)
		return nil
	})
}
