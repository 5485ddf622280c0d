package shop

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/jaydb/jay"
)

// Books are the sums over a shop at one moment.
type Books struct {
	Orders    map[Status]int
	Stock     int   // pieces on the shelf
	Sold      int   // pieces in orders that are open or paid
	Delivered int   // pieces that ever came in
	Owed      Cents // for open orders
	Earned    Cents // for paid ones
	Invoices  int   // numbered 1 to Invoices
}

// Audit checks the books: all of them as they are at one moment, so that it
// can be done while the shop is open. The error names each thing that is
// wrong; nil means that all of this is true:
//
//   - No stock is below zero, and of every product, the pieces on the shelf
//     and those in orders that are not cancelled are the pieces delivered.
//   - The total of an order is that of its lines, and its status is one of
//     three.
//   - A paid order has one invoice, one payment and one sale for each line, of
//     the same amounts; any other order has none.
//   - Every customer owes the sum of their open orders, and has paid the sum
//     of their paid ones.
//   - The invoices are numbered from 1 on, without a gap.
func (s *Shop) Audit(ctx context.Context) (Books, error) {
	var a audit
	err := s.db.View(ctx, func(tx *jay.Tx) error { return a.read(ctx, s, tx) })
	if err != nil {
		return Books{}, err
	}
	return a.check()
}

// audit is all that is in the shop, and what was found wrong with it.
type audit struct {
	customers []*Customer
	products  []*Product
	orders    []*Order
	invoices  []*Invoice
	payments  []*Payment
	sales     []*Sale
	wrong     []error
}

func (a *audit) read(ctx context.Context, s *Shop, tx *jay.Tx) error {
	return errors.Join(
		gather(&a.customers, s.customers.In(tx).All(ctx)),
		gather(&a.products, s.products.In(tx).All(ctx)),
		gather(&a.orders, s.orders.In(tx).All(ctx)),
		gather(&a.invoices, s.invoices.In(tx).All(ctx)),
		gather(&a.payments, s.payments.In(tx).All(ctx)),
		gather(&a.sales, s.sales.In(tx).All(ctx)),
	)
}

func gather[T any](to *[]*T, from iter.Seq2[*T, error]) error {
	for v, err := range from {
		if err != nil {
			return err
		}
		*to = append(*to, v)
	}
	return nil
}

func (a *audit) check() (Books, error) {
	books := Books{Orders: map[Status]int{}, Invoices: len(a.invoices)}
	a.checkGoods(&books)
	a.checkOrders(&books)
	a.checkCustomers(&books)
	a.checkNumbers()
	return books, errors.Join(a.wrong...)
}

// same notes a figure that is not what it must be.
func same[V comparable](a *audit, what string, got, want V) {
	if got != want {
		a.wrong = append(a.wrong, fmt.Errorf("%s: %v, must be %v", what, got, want))
	}
}

func (a *audit) checkGoods(books *Books) {
	sold := map[string]int{}
	for _, o := range a.orders {
		for _, l := range o.Lines {
			if o.Status != Cancelled {
				sold[l.Product] += l.Quantity
			}
		}
	}
	for _, p := range a.products {
		same(a, p.ID+" is below zero", p.Stock < 0, false)
		same(a, p.ID+" on the shelf and sold", p.Stock+sold[p.ID], p.Delivered)
		books.Stock += p.Stock
		books.Sold += sold[p.ID]
		books.Delivered += p.Delivered
		delete(sold, p.ID)
	}
	for id := range sold {
		a.wrong = append(a.wrong, fmt.Errorf("%s was sold and is no product", id))
	}
}

// papers are what is there about one order.
type papers struct {
	Invoices, Payments, Sales  int
	Invoiced, Received, Earned Cents
}

func (a *audit) checkOrders(books *Books) {
	found := map[string]papers{}
	for _, i := range a.invoices {
		p := found[i.Order]
		p.Invoices, p.Invoiced = p.Invoices+1, p.Invoiced+i.Total
		found[i.Order] = p
	}
	for _, m := range a.payments {
		p := found[m.Order]
		p.Payments, p.Received = p.Payments+1, p.Received+m.Amount
		found[m.Order] = p
	}
	for _, s := range a.sales {
		p := found[s.Order]
		p.Sales, p.Earned = p.Sales+1, p.Earned+s.Revenue
		found[s.Order] = p
	}

	for _, o := range a.orders {
		var total Cents
		for _, l := range o.Lines {
			total += l.Amount()
		}
		same(a, o.ID+" total", o.Total, total)
		books.Orders[o.Status]++

		var want papers
		switch o.Status {
		case Open:
			books.Owed += o.Total
		case Paid:
			books.Earned += o.Total
			want = papers{1, 1, len(o.Lines), o.Total, o.Total, o.Total}
		case Cancelled:
		default:
			a.wrong = append(a.wrong, fmt.Errorf("%s has status %q", o.ID, o.Status))
		}
		same(a, fmt.Sprintf("%s is %s, papers", o.ID, o.Status), found[o.ID], want)
		delete(found, o.ID)
	}
	for id := range found {
		a.wrong = append(a.wrong, fmt.Errorf("there are papers about %s, which is no order", id))
	}
}

func (a *audit) checkCustomers(books *Books) {
	owes, paid := map[string]Cents{}, map[string]Cents{}
	for _, o := range a.orders {
		switch o.Status {
		case Open:
			owes[o.Customer] += o.Total
		case Paid:
			paid[o.Customer] += o.Total
		}
	}
	var owed, earned Cents
	for _, c := range a.customers {
		same(a, c.ID+" owes", c.Owes, owes[c.ID])
		same(a, c.ID+" has paid", c.Paid, paid[c.ID])
		owed, earned = owed+c.Owes, earned+c.Paid
	}
	same(a, "owed by all customers", owed, books.Owed)
	same(a, "paid by all customers", earned, books.Earned)
}

func (a *audit) checkNumbers() {
	invoices, err := byNumber(a.invoices)
	if err != nil {
		a.wrong = append(a.wrong, err)
		return
	}
	for i, invoice := range invoices {
		same(a, "invoice", invoice.ID, fmt.Sprint("invoices/", i+1))
	}
}

// byNumber sorts invoices: as text, invoices/10 comes before invoices/2.
func byNumber(invoices []*Invoice) ([]*Invoice, error) {
	numbers := make(map[*Invoice]int, len(invoices))
	for _, i := range invoices {
		n, err := strconv.Atoi(strings.TrimPrefix(i.ID, "invoices/"))
		if err != nil {
			return nil, fmt.Errorf("%s has no number", i.ID)
		}
		numbers[i] = n
	}
	slices.SortFunc(invoices, func(x, y *Invoice) int { return numbers[x] - numbers[y] })
	return invoices, nil
}
