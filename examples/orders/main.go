// Command orders is a day in a small shop: customers place orders, pay and
// cancel, and in the evening the books balance. What a shop does is in package
// shop, beside this file.
//
//	go run ./examples/orders
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"sync"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/examples/orders/shop"
)

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() (err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "orders-*.jay")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()

	clock := &clock{now: time.Date(2026, 10, 30, 9, 0, 0, 0, time.UTC)}
	s, err := shop.New(ctx, db, clock.Now)
	if err != nil {
		return err
	}
	d := &day{shop: s, clock: clock}
	for _, part := range []func(context.Context) error{d.stock, d.order, d.pay, d.refuse, d.rush, d.report} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return nil
}

// clock is a clock that the demo moves.
type clock struct {
	mu  sync.Mutex
	now time.Time // Guarded by mu.
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// day is a day in the shop.
type day struct {
	shop     *shop.Shop
	clock    *clock
	ann, bob *shop.Customer
	first    *shop.Order // Ann's
	second   *shop.Order // Bob's
}

func (d *day) stock(ctx context.Context) (err error) {
	fmt.Println("Opening")
	if err := d.shop.AddProduct(ctx, "products/pear", "Pear", 120, 10); err != nil {
		return err
	}
	if err := d.shop.AddProduct(ctx, "products/acorn", "Acorn", 15, 500); err != nil {
		return err
	}
	if d.ann, err = d.shop.AddCustomer(ctx, "Ann"); err != nil {
		return err
	}
	if d.bob, err = d.shop.AddCustomer(ctx, "Bob"); err != nil {
		return err
	}
	fmt.Println("  customers", d.ann.ID, "and", d.bob.ID)
	return nil
}

func (d *day) order(ctx context.Context) (err error) {
	fmt.Println("Orders")
	d.first, err = d.shop.Place(ctx, d.ann.ID, shop.Item{Product: "products/pear", Quantity: 2}, shop.Item{Product: "products/acorn", Quantity: 40})
	if err != nil {
		return err
	}
	if err := d.shop.AddLine(ctx, d.first.ID, shop.Item{Product: "products/pear", Quantity: 1}); err != nil {
		return err
	}
	if d.second, err = d.shop.Place(ctx, d.bob.ID, shop.Item{Product: "products/acorn", Quantity: 100}); err != nil {
		return err
	}

	details, err := d.shop.Show(ctx, d.first.ID)
	if err != nil {
		return err
	}
	fmt.Printf("  %s of %s, who owes %s\n", details.Order.ID, details.Customer.Name, money(details.Customer.Owes))
	for i, line := range details.Order.Lines {
		fmt.Printf("  %5d %-6s %7s  (%d left)\n", line.Quantity, details.Products[i].Name, money(line.Amount()), details.Products[i].Stock)
	}
	return nil
}

func (d *day) pay(ctx context.Context) error {
	fmt.Println("Payment")
	invoice, err := d.shop.Pay(ctx, d.first.ID)
	if err != nil {
		return err
	}
	fmt.Printf("  %s is paid: %s over %s\n", d.first.ID, invoice.ID, money(invoice.Total))
	return nil
}

// refuse shows what the shop does not do.
func (d *day) refuse(ctx context.Context) error {
	fmt.Println("Refused")
	_, err := d.shop.Pay(ctx, d.first.ID)
	if !errors.Is(err, shop.ErrNotOpen) {
		return fmt.Errorf("paid twice: %w", err)
	}
	fmt.Println(" ", err)
	_, err = d.shop.Place(ctx, d.bob.ID, shop.Item{Product: "products/acorn", Quantity: 1}, shop.Item{Product: "products/pear", Quantity: 8})
	if !errors.Is(err, shop.ErrOutOfStock) {
		return fmt.Errorf("sold what is not there: %w", err)
	}
	fmt.Println(" ", err)
	return nil
}

// rush is the evening: all customers want the same pears at once, and each gets
// theirs or none.
func (d *day) rush(ctx context.Context) error {
	d.clock.Pass(48 * time.Hour) // into the next month
	if err := d.shop.Cancel(ctx, d.second.ID); err != nil {
		return err
	}
	if err := d.shop.Restock(ctx, "products/pear", 3); err != nil {
		return err
	}

	var wg sync.WaitGroup
	errs := make([]error, 16)
	for i := range errs {
		wg.Go(func() { errs[i] = d.buyPear(ctx) })
	}
	wg.Wait()
	sold, none := 0, 0
	for _, err := range errs {
		switch {
		case err == nil:
			sold++
		case errors.Is(err, shop.ErrOutOfStock):
			none++
		default:
			return err
		}
	}
	fmt.Println("Rush")
	fmt.Printf("  16 people want one of 10 pears: %d got one, %d did not\n", sold, none)
	return nil
}

func (d *day) buyPear(ctx context.Context) error {
	order, err := d.shop.Place(ctx, d.bob.ID, shop.Item{Product: "products/pear", Quantity: 1})
	if err != nil {
		return err
	}
	_, err = d.shop.Pay(ctx, order.ID)
	return err
}

func (d *day) report(ctx context.Context) error {
	if _, err := d.shop.Place(ctx, d.ann.ID, shop.Item{Product: "products/acorn", Quantity: 7}); err != nil {
		return err
	}
	open, err := d.shop.OpenOrders(ctx, d.ann.ID)
	if err != nil {
		return err
	}
	fmt.Println("Evening")
	for _, o := range open {
		fmt.Printf("  %s has not paid an order of %s yet: %s\n", d.ann.Name, o.PlacedAt.Format(time.DateOnly), money(o.Total))
	}

	revenue, err := d.shop.Revenue(ctx, "2026-01")
	if err != nil {
		return err
	}
	for _, r := range revenue {
		fmt.Printf("  %s  %-14s %3d  %6s\n", r.Month, r.Product, r.Quantity, money(r.Revenue))
	}
	invoices, err := d.shop.Invoices(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("  invoices from %s to %s\n", invoices[0].ID, invoices[len(invoices)-1].ID)

	books, err := d.shop.Audit(ctx)
	if err != nil {
		return fmt.Errorf("the books do not balance: %w", err)
	}
	fmt.Printf("  the books balance: %d on the shelf + %d sold = %d delivered, %s earned, %s owed\n",
		books.Stock, books.Sold, books.Delivered, money(books.Earned), money(books.Owed))
	return nil
}

func money(c shop.Cents) string { return fmt.Sprintf("%d.%02d", c/100, c%100) }
