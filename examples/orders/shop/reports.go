package shop

import (
	"context"
	"encoding/json"

	"github.com/jaydb/jay"
)

// Details are an order and all it refers to, as they were at one moment.
type Details struct {
	Order    *Order
	Customer *Customer
	Products []*Product // of the lines, in their order
}

// Show returns an order with its customer and products: one read. The loads
// after the first are answered by the session.
func (s *Shop) Show(ctx context.Context, id string) (*Details, error) {
	session := s.db.OpenSession()
	order, err := jay.Load[Order](ctx, session, id, jay.Include("Customer", "Lines[].Product"))
	if err != nil {
		return nil, err
	}
	customer, err := jay.Load[Customer](ctx, session, order.Customer)
	if err != nil {
		return nil, err
	}
	ids := make([]string, len(order.Lines))
	for i, line := range order.Lines {
		ids[i] = line.Product
	}
	products, err := jay.LoadMany[Product](ctx, session, ids)
	if err != nil {
		return nil, err
	}
	return &Details{order, customer, products}, nil
}

// OpenOrders returns the orders that a customer has not paid, oldest first.
func (s *Shop) OpenOrders(ctx context.Context, customer string) ([]*Order, error) {
	return s.openOrders(customer).All(ctx)
}

func (s *Shop) openOrders(customer string) jay.Query[Order] {
	return s.orders.Query().
		Where(jay.Eq("Customer", customer), jay.Eq("Status", Open)).
		OrderBy("PlacedAt")
}

// Revenue is what a product has earned in a month.
type Revenue struct {
	Month    string
	Product  string // ID
	Quantity int
	Revenue  Cents
}

// revenue is what Revenue asks, in RavenDB's query language.
const revenue = `
	from Sales
	group by Month, Product
	where Month >= $since
	order by Month, Product
	select Month, Product, sum(Quantity) as Quantity, sum(Revenue) as Revenue`

// Revenue returns the revenue of every product in every month from since on,
// which is written like 2026-11.
func (s *Shop) Revenue(ctx context.Context, since string) ([]*Revenue, error) {
	query, err := s.db.RQL(revenue, map[string]any{"since": since})
	if err != nil {
		return nil, err
	}
	var all []*Revenue
	for row, err := range query.Iter(ctx) {
		if err != nil {
			return nil, err
		}
		var r Revenue
		if err := json.Unmarshal(row.JSON, &r); err != nil {
			return nil, err
		}
		all = append(all, &r)
	}
	return all, nil
}

// Invoice returns the invoice of an order, or jay.ErrNotFound.
func (s *Shop) Invoice(ctx context.Context, order string) (*Invoice, error) {
	return s.invoices.Query().Where(jay.Eq("Order", order)).First(ctx)
}

// Invoices returns all invoices, by their number.
func (s *Shop) Invoices(ctx context.Context) ([]*Invoice, error) {
	var invoices []*Invoice
	for i, err := range s.invoices.All(ctx) {
		if err != nil {
			return nil, err
		}
		invoices = append(invoices, i)
	}
	return byNumber(invoices)
}
