package shop

import (
	"errors"
	"time"
)

// Errors of a shop. A call that returns one has changed nothing.
var (
	// ErrOutOfStock is returned when there are fewer pieces than were asked for.
	ErrOutOfStock = errors.New("shop: out of stock")

	// ErrNotOpen is returned for an order that was paid or cancelled already.
	ErrNotOpen = errors.New("shop: order is not open")

	// ErrQuantity is returned for a quantity below one.
	ErrQuantity = errors.New("shop: quantity must be at least 1")
)

// Cents is an amount of money.
type Cents int64

// Customer buys. Its ID is made by HiLo: customers/1-A.
type Customer struct {
	ID   string
	Name string
	Owes Cents // for orders that are open
	Paid Cents // for orders that are paid
}

// Product is sold. Its ID has a meaning: products/pear.
type Product struct {
	ID        string
	Name      string
	Price     Cents
	Stock     int // pieces on the shelf, never below zero
	Delivered int // pieces that ever came in
}

// Status is how far an order is.
type Status string

const (
	Open      Status = "open"
	Paid      Status = "paid"
	Cancelled Status = "cancelled"
)

// Order is what a customer asked for. Its ID is made by HiLo: orders/1-A.
type Order struct {
	ID       string
	Customer string // ID
	Status   Status
	PlacedAt time.Time
	Lines    []Line
	Total    Cents
}

// Line is a part of an order, at the price of the day.
type Line struct {
	Product  string // ID
	Quantity int
	Price    Cents // of one piece
}

// Amount is what the line costs.
func (l Line) Amount() Cents { return Cents(l.Quantity) * l.Price }

// Item is a product and how many a customer orders.
type Item struct {
	Product  string // ID
	Quantity int
}

// Invoice is made when an order is paid. Its ID is an identity, without gaps
// as the tax office wants it: invoices/1.
type Invoice struct {
	ID       string
	Order    string // ID
	Customer string // ID
	Total    Cents
	Date     time.Time
}

// Payment is money that came in. Its ID is made by the database, and always
// rises: payments/0000000000000000042-A.
type Payment struct {
	ID     string
	Order  string // ID
	Amount Cents
}

// Sale is one line of an order that was paid, for statistics: a document of
// its own, so that a query can group by it. Its ID is made by the database.
type Sale struct {
	ID       string
	Order    string // ID
	Product  string // ID
	Month    string // such as 2026-11
	Quantity int
	Revenue  Cents
}
