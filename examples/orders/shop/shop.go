// Package shop keeps the books of a small shop: customers, products with
// stock, orders, invoices and payments.
//
// Every method of a [Shop] is one atomic write or one look at one moment, so
// that the books balance at every moment, whatever other goroutines do and
// wherever the process dies: see [Shop.Audit]. Each shows another way to work
// with Jay:
//
//	Place     a session with optimistic concurrency
//	AddLine   a transaction of patches: take first, look afterwards
//	Pay       a transaction of typed reads and writes, and an identity
//	Cancel    both of them
//	Restock   one patch, no transaction
//	Show      includes: an order and all it refers to, in one read
//	Revenue   a query with groups
//
// A Shop is safe for concurrent use.
package shop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jaydb/jay"
)

// retries is how often a piece of work begins again when it lost against
// another one. Each time another transaction has won, so that this is seldom
// needed more than once or twice.
const retries = 100

// Shop is a shop in a database.
type Shop struct {
	db  *jay.DB
	now func() time.Time

	customers *jay.Collection[Customer]
	products  *jay.Collection[Product]
	orders    *jay.Collection[Order]
	invoices  *jay.Collection[Invoice]
	payments  *jay.Collection[Payment]
	sales     *jay.Collection[Sale]
}

// New returns the shop in db, which may be empty. now is the clock of orders
// and invoices. The database stays the caller's to close.
func New(ctx context.Context, db *jay.DB, now func() time.Time) (*Shop, error) {
	s := &Shop{db: db, now: now}
	if err := s.mapTypes(); err != nil {
		return nil, fmt.Errorf("shop: %w", err)
	}
	for _, want := range []struct {
		collection string
		index      jay.Index
	}{
		{s.orders.Name(), jay.Index{Fields: []string{"Customer", "Status", "PlacedAt"}}},
		{s.invoices.Name(), jay.Index{Fields: []string{"Order"}, Unique: true}}, // an order is paid once
		{s.sales.Name(), jay.Index{Fields: []string{"Month", "Product"}}},
	} {
		if err := db.EnsureIndex(ctx, want.collection, want.index); err != nil {
			return nil, fmt.Errorf("shop: %w", err)
		}
	}
	return s, nil
}

// mapTypes says how types become collections and IDs.
func (s *Shop) mapTypes() (err error) {
	if s.customers, err = jay.CollectionOf[Customer](s.db); err != nil {
		return err
	}
	if s.products, err = jay.CollectionOf[Product](s.db); err != nil {
		return err
	}
	if s.orders, err = jay.CollectionOf[Order](s.db); err != nil {
		return err
	}
	if s.invoices, err = jay.CollectionOf[Invoice](s.db, jay.WithIDRequest("invoices|")); err != nil {
		return err
	}
	if s.payments, err = jay.CollectionOf[Payment](s.db, jay.WithIDRequest("payments/")); err != nil {
		return err
	}
	s.sales, err = jay.CollectionOf[Sale](s.db, jay.WithIDRequest("sales/"))
	return err
}

// AddCustomer makes a customer, who owes nothing.
func (s *Shop) AddCustomer(ctx context.Context, name string) (*Customer, error) {
	c := &Customer{Name: name}
	_, err := s.customers.Insert(ctx, c)
	return c, err
}

// AddProduct puts stock pieces of a new product on the shelf. It returns
// jay.ErrExists if there is one with this ID.
func (s *Shop) AddProduct(ctx context.Context, id, name string, price Cents, stock int) error {
	_, err := s.products.Insert(ctx, &Product{ID: id, Name: name, Price: price, Stock: stock, Delivered: stock})
	return err
}

// Place takes the items off the shelf and makes an order of them, which the
// customer owes. It returns ErrOutOfStock if there are too few of one.
func (s *Shop) Place(ctx context.Context, customer string, items ...Item) (*Order, error) {
	for attempt := 0; ; attempt++ {
		order, err := s.place(ctx, customer, items)
		if !errors.Is(err, jay.ErrConflict) || attempt == retries {
			return order, err
		}
	}
}

// place is one attempt: a session of its own, since what a session holds gets
// old. Whatever it saves must still be as it was loaded, or nothing is saved.
func (s *Shop) place(ctx context.Context, customerID string, items []Item) (*Order, error) {
	session := s.db.OpenSession(jay.OptimisticConcurrency())
	customer, err := jay.Load[Customer](ctx, session, customerID)
	if err != nil {
		return nil, err
	}
	order := &Order{Customer: customer.ID, Status: Open, PlacedAt: s.now()}
	for _, item := range items {
		if item.Quantity < 1 {
			return nil, fmt.Errorf("%w: %d of %s", ErrQuantity, item.Quantity, item.Product)
		}
		// The same product twice is the same pointer twice: its stock adds up.
		product, err := jay.Load[Product](ctx, session, item.Product)
		if err != nil {
			return nil, err
		}
		if product.Stock < item.Quantity {
			return nil, fmt.Errorf("%w: %d of %s, %d wanted", ErrOutOfStock, product.Stock, product.ID, item.Quantity)
		}
		product.Stock -= item.Quantity
		order.add(Line{Product: product.ID, Quantity: item.Quantity, Price: product.Price})
	}
	customer.Owes += order.Total

	if err := session.Store(ctx, order); err != nil {
		return nil, err
	}
	if err := session.SaveChanges(ctx); err != nil {
		return nil, err
	}
	return order, nil
}

func (o *Order) add(l Line) {
	o.Lines = append(o.Lines, l)
	o.Total += l.Amount()
}

// AddLine adds one item to an open order.
func (s *Shop) AddLine(ctx context.Context, order string, item Item) error {
	if item.Quantity < 1 {
		return fmt.Errorf("%w: %d of %s", ErrQuantity, item.Quantity, item.Product)
	}
	return s.db.Update(ctx, func(tx *jay.Tx) error {
		o, err := s.open(ctx, tx, order)
		if err != nil {
			return err
		}

		// Change first, then check: an error undoes all of it.
		product, err := s.move(ctx, tx, item.Product, -item.Quantity)
		if err != nil {
			return err
		}
		if product.Stock < 0 {
			return fmt.Errorf("%w: %d of %s too few", ErrOutOfStock, -product.Stock, item.Product)
		}

		line := Line{Product: item.Product, Quantity: item.Quantity, Price: product.Price}
		if err := s.owe(ctx, tx, o.Customer, line.Amount()); err != nil {
			return err
		}
		result, err := s.orders.In(tx).Patch(ctx, o.ID, jay.Append("Lines", line), jay.Increment("Total", line.Amount()))
		return patched(result, err)
	}, jay.Retry(retries))
}

// Pay takes the money for an open order: the order is paid, the customer owes
// less, and there are an invoice, a payment and sales. It returns the invoice,
// or ErrNotOpen.
func (s *Shop) Pay(ctx context.Context, order string) (*Invoice, error) {
	var invoice *Invoice
	err := s.db.Update(ctx, func(tx *jay.Tx) error {
		o, err := s.open(ctx, tx, order)
		if err != nil {
			return err
		}
		o.Status = Paid
		if _, err := s.orders.In(tx).Replace(ctx, o); err != nil {
			return err
		}
		result, err := s.customers.In(tx).Patch(ctx, o.Customer, jay.Increment("Owes", -o.Total), jay.Increment("Paid", o.Total))
		if err := patched(result, err); err != nil {
			return err
		}

		// What the function hands out is made anew by each run. The number of
		// the invoice is made by the commit, so that no number is lost to a run
		// that did not commit, and is in invoice.ID when Update returns.
		invoice = &Invoice{Order: o.ID, Customer: o.Customer, Total: o.Total, Date: s.now()}
		if _, err := s.invoices.In(tx).Insert(ctx, invoice); err != nil {
			return err
		}
		if _, err := s.payments.In(tx).Insert(ctx, &Payment{Order: o.ID, Amount: o.Total}); err != nil {
			return err
		}
		_, err = s.sales.In(tx).InsertMany(ctx, o.sales(s.now()))
		return err
	}, jay.Retry(retries))
	if err != nil {
		return nil, err
	}
	return invoice, nil
}

func (o *Order) sales(now time.Time) []*Sale {
	sales := make([]*Sale, len(o.Lines))
	for i, l := range o.Lines {
		sales[i] = &Sale{Order: o.ID, Product: l.Product, Month: now.Format("2006-01"), Quantity: l.Quantity, Revenue: l.Amount()}
	}
	return sales
}

// Cancel gives up an open order: its goods go back to the shelf, and the
// customer owes nothing for it. It returns ErrNotOpen for one that was paid.
func (s *Shop) Cancel(ctx context.Context, order string) error {
	return s.db.Update(ctx, func(tx *jay.Tx) error {
		o, err := s.open(ctx, tx, order)
		if err != nil {
			return err
		}
		for _, line := range o.Lines {
			if _, err := s.move(ctx, tx, line.Product, line.Quantity); err != nil {
				return err
			}
		}
		if err := s.owe(ctx, tx, o.Customer, -o.Total); err != nil {
			return err
		}
		result, err := s.orders.In(tx).Patch(ctx, o.ID, jay.Set("Status", Cancelled))
		return patched(result, err)
	}, jay.Retry(retries))
}

// Restock puts pieces of a product on the shelf. It needs no transaction: a
// patch is one write, and no change in between is lost.
func (s *Shop) Restock(ctx context.Context, product string, pieces int) error {
	if pieces < 1 {
		return fmt.Errorf("%w: %d of %s", ErrQuantity, pieces, product)
	}
	result, err := s.products.Patch(ctx, product, jay.Increment("Stock", pieces), jay.Increment("Delivered", pieces))
	return patched(result, err)
}

// open reads an order that must be open. The transaction then depends on it:
// of two that pay one order, the second finds it paid.
func (s *Shop) open(ctx context.Context, tx *jay.Tx, id string) (*Order, error) {
	o, err := s.orders.In(tx).Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if o.Status != Open {
		return nil, fmt.Errorf("%w: %s is %s", ErrNotOpen, o.ID, o.Status)
	}
	return o, nil
}

// move changes the stock of a product by pieces and returns the product as it
// is then.
func (s *Shop) move(ctx context.Context, tx *jay.Tx, id string, pieces int) (*Product, error) {
	result, err := s.products.In(tx).Patch(ctx, id, jay.Increment("Stock", pieces))
	if err := patched(result, err); err != nil {
		return nil, err
	}
	product := &Product{ID: result.Metadata.ID}
	return product, json.Unmarshal(result.Body, product)
}

// owe changes what a customer owes.
func (s *Shop) owe(ctx context.Context, tx *jay.Tx, customer string, by Cents) error {
	result, err := s.customers.In(tx).Patch(ctx, customer, jay.Increment("Owes", by))
	return patched(result, err)
}

// patched makes an error of a patch that found no document.
func patched(r jay.PatchResult, err error) error {
	if err == nil && r.Status == jay.PatchNotFound {
		return fmt.Errorf("%w: %s", jay.ErrNotFound, r.Metadata.ID)
	}
	return err
}
