package shop_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/examples/orders/shop"
)

func noon() time.Time { return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC) }

// Ensure that the shop does what its customers ask, and that what it refuses
// changes nothing.
func TestShop(t *testing.T) {
	ctx := t.Context()
	s := newShop(t, openMemory(t))
	ann := addCustomer(t, s, "Ann")
	if err := s.AddProduct(ctx, "products/pear", "Pear", 120, 5); err != nil {
		t.Fatal(err)
	}
	if err := s.AddProduct(ctx, "products/pear", "Pear", 1, 1); !errors.Is(err, jay.ErrExists) {
		t.Errorf("got %v, want %v", err, jay.ErrExists)
	}

	paid, err := s.Place(ctx, ann, shop.Item{Product: "products/pear", Quantity: 1}, shop.Item{Product: "products/pear", Quantity: 1})
	if err != nil {
		t.Fatal(err)
	}
	open, err := s.Place(ctx, ann, shop.Item{Product: "products/pear", Quantity: 1})
	if err != nil {
		t.Fatal(err)
	}
	cancelled, err := s.Place(ctx, ann, shop.Item{Product: "products/pear", Quantity: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.AddLine(ctx, paid.ID, shop.Item{Product: "products/pear", Quantity: 1}); err != nil {
		t.Fatal(err)
	}
	invoice, err := s.Pay(ctx, paid.ID)
	if err != nil {
		t.Fatal(err)
	}
	if invoice.ID != "invoices/1" || invoice.Total != 360 {
		t.Errorf("got %+v", invoice)
	}
	if err := s.Cancel(ctx, cancelled.ID); err != nil {
		t.Fatal(err)
	}

	before := audit(t, s)
	pay := func(order string) error { _, err := s.Pay(ctx, order); return err }
	place := func(customer, product string, quantity int) error {
		_, err := s.Place(ctx, customer, shop.Item{Product: product, Quantity: quantity})
		return err
	}
	for name, row := range map[string]struct{ got, want error }{
		"pay twice":                {pay(paid.ID), shop.ErrNotOpen},
		"pay what is cancelled":    {pay(cancelled.ID), shop.ErrNotOpen},
		"pay what is not there":    {pay("orders/99-A"), jay.ErrNotFound},
		"cancel what is paid":      {s.Cancel(ctx, paid.ID), shop.ErrNotOpen},
		"cancel twice":             {s.Cancel(ctx, cancelled.ID), shop.ErrNotOpen},
		"add to what is paid":      {s.AddLine(ctx, paid.ID, shop.Item{Product: "products/pear", Quantity: 1}), shop.ErrNotOpen},
		"add more than there is":   {s.AddLine(ctx, open.ID, shop.Item{Product: "products/pear", Quantity: 3}), shop.ErrOutOfStock},
		"add less than nothing":    {s.AddLine(ctx, open.ID, shop.Item{Product: "products/pear", Quantity: -1}), shop.ErrQuantity},
		"add an unknown product":   {s.AddLine(ctx, open.ID, shop.Item{Product: "products/fig", Quantity: 1}), jay.ErrNotFound},
		"place more than there is": {place(ann, "products/pear", 3), shop.ErrOutOfStock},
		"place nothing":            {place(ann, "products/pear", 0), shop.ErrQuantity},
		"place for nobody":         {place("customers/99-A", "products/pear", 1), jay.ErrNotFound},
		"place for a product":      {place("products/pear", "products/pear", 1), jay.ErrCollection},
		"restock nothing":          {s.Restock(ctx, "products/pear", 0), shop.ErrQuantity},
		"restock what is unknown":  {s.Restock(ctx, "products/fig", 1), jay.ErrNotFound},
	} {
		if !errors.Is(row.got, row.want) {
			t.Errorf("%s: got %v, want %v", name, row.got, row.want)
		}
	}
	if after := audit(t, s); fmt.Sprint(after) != fmt.Sprint(before) {
		t.Errorf("got %+v, want %+v", after, before)
	}

	orders, err := s.OpenOrders(ctx, ann)
	if err != nil || len(orders) != 1 || orders[0].ID != open.ID {
		t.Errorf("got %v %v, want %s", orders, err, open.ID)
	}
	revenue, err := s.Revenue(ctx, "2026-11")
	if err != nil || len(revenue) != 1 || *revenue[0] != (shop.Revenue{Month: "2026-11", Product: "products/pear", Quantity: 3, Revenue: 360}) {
		t.Errorf("got %v %v", revenue, err)
	}
	details, err := s.Show(ctx, paid.ID)
	if err != nil || details.Customer.Name != "Ann" || len(details.Products) != 3 || details.Products[0].Name != "Pear" {
		t.Errorf("got %+v %v", details, err)
	}
}

// Ensure that the books balance at every moment while 8 goroutines place, pay,
// cancel and restock, at the end, and after the database is opened again.
func TestShop_Concurrent(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	s := newShop(t, db)
	l := newLoad(t, s, true)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	audits := make(chan int)
	go func() {
		n := 0
		for ; ctx.Err() == nil; n++ {
			if _, err := s.Audit(t.Context()); err != nil {
				t.Errorf("audit %d, meanwhile: %v", n, err)
				break
			}
		}
		audits <- n
	}()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	l.run(t.Context(), seed, 250)
	stop()
	t.Logf("%d audits meanwhile; %v", <-audits, l)
	l.compare(t, audit(t, s))
	if l.paid == 0 || l.cancelled == 0 || l.short == 0 || l.late == 0 {
		t.Errorf("the load is too light to show anything: %v", l)
	}

	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	again := newShop(t, open(t, dir))
	l.compare(t, audit(t, again))
}

// load is what a crowd does to a shop, and what was acknowledged to it.
type load struct {
	shop      *shop.Shop
	logf      func(format string, args ...any) // of what was acknowledged
	customers []string
	products  []string

	mu        sync.Mutex
	failed    error
	orders    []string
	invoices  map[string]bool
	earned    shop.Cents
	delivered int
	placed    int
	paid      int
	cancelled int
	short     int // orders refused as out of stock
	late      int // orders that another goroutine paid or cancelled
}

// newLoad returns a load on s, with customers and products if s is new.
func newLoad(t testing.TB, s *shop.Shop, fresh bool) *load {
	l := &load{shop: s, logf: func(string, ...any) {}, invoices: map[string]bool{}}
	for i := range 4 {
		l.products = append(l.products, fmt.Sprint("products/p", i))
		l.customers = append(l.customers, fmt.Sprintf("customers/%d-A", i+1))
	}
	for i := 0; fresh && i < 4; i++ {
		if got := addCustomer(t, s, fmt.Sprint("Customer ", i)); got != l.customers[i] {
			t.Fatalf("got %s, want %s", got, l.customers[i])
		}
		if err := s.AddProduct(t.Context(), l.products[i], fmt.Sprint("Product ", i), shop.Cents(100+i), 50); err != nil {
			t.Fatal(err)
		}
		l.delivered += 50
	}
	return l
}

// run lets 8 goroutines do n steps each.
func (l *load) run(ctx context.Context, seed uint64, n int) {
	var wg sync.WaitGroup
	for g := range uint64(8) {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(seed, g))
			for range n {
				if err := l.step(ctx, random); err != nil {
					l.mu.Lock()
					l.failed = errors.Join(l.failed, err)
					l.mu.Unlock()
					return
				}
			}
		})
	}
	wg.Wait()
}

func (l *load) step(ctx context.Context, random *rand.Rand) error {
	item := func() shop.Item {
		return shop.Item{Product: l.products[random.IntN(len(l.products))], Quantity: 1 + random.IntN(5)}
	}
	switch order := l.pick(random); {
	case order == "" || random.IntN(10) < 4:
		order, err := l.shop.Place(ctx, l.customers[random.IntN(len(l.customers))], item(), item())
		return l.note(err, func() {
			l.placed++
			l.orders = append(l.orders, order.ID)
			l.logf("placed %s", order.ID)
		})
	case random.IntN(10) < 2:
		return l.note(l.shop.AddLine(ctx, order, item()), func() {})
	case random.IntN(10) < 4:
		return l.note(l.shop.Cancel(ctx, order), func() {
			l.cancelled++
			l.logf("cancelled %s", order)
		})
	case random.IntN(10) < 2:
		pieces := 1 + random.IntN(20)
		return l.note(l.shop.Restock(ctx, item().Product, pieces), func() {
			l.delivered += pieces
			l.logf("delivered %d", pieces)
		})
	default:
		invoice, err := l.shop.Pay(ctx, order)
		return l.note(err, func() {
			if l.invoices[invoice.ID] {
				l.failed = fmt.Errorf("%s came twice", invoice.ID)
			}
			l.invoices[invoice.ID] = true
			l.paid++
			l.earned += invoice.Total
			l.logf("paid %s %s", order, invoice.ID)
		})
	}
}

// pick returns one of the newest orders, so that many reach for the same one.
func (l *load) pick(random *rand.Rand) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.orders) == 0 {
		return ""
	}
	newest := l.orders[max(0, len(l.orders)-20):]
	return newest[random.IntN(len(newest))]
}

// note counts what came of a step.
func (l *load) note(err error, done func()) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case err == nil:
		done()
	case errors.Is(err, shop.ErrOutOfStock):
		l.short++
	case errors.Is(err, shop.ErrNotOpen):
		l.late++
	default:
		return err
	}
	return nil
}

// compare compares the books with what was acknowledged to the crowd.
func (l *load) compare(t *testing.T, books shop.Books) {
	t.Helper()
	if l.failed != nil {
		t.Fatal(l.failed)
	}
	want := shop.Books{
		Orders:    map[shop.Status]int{shop.Open: l.placed - l.paid - l.cancelled, shop.Paid: l.paid, shop.Cancelled: l.cancelled},
		Stock:     l.delivered - books.Sold,
		Sold:      books.Sold,
		Delivered: l.delivered,
		Owed:      books.Owed,
		Earned:    l.earned,
		Invoices:  l.paid,
	}
	if fmt.Sprint(books) != fmt.Sprint(want) {
		t.Errorf("got %+v, want %+v", books, want)
	}
}

func (l *load) String() string {
	return fmt.Sprintf("%d placed, %d paid, %d cancelled, %d short, %d late", l.placed, l.paid, l.cancelled, l.short, l.late)
}

// Ensure that an audit finds whatever does not balance: each row is a mistake
// that a shop could make.
func TestShop_Audit_Finds(t *testing.T) {
	for _, row := range []struct {
		name    string
		mistake func(ctx context.Context, db *jay.DB) error
		want    string
	}{
		{"nothing", func(context.Context, *jay.DB) error { return nil }, ""},
		{"stock taken outside of the transaction", patch("products/pear", jay.Increment("Stock", -1)), "products/pear on the shelf and sold: 9, must be 10"},
		{"stock below zero", patch("products/pear", jay.Set("Stock", -1)), "products/pear is below zero"},
		{"stock brought back twice", patch("products/pear", jay.Increment("Stock", 2)), "products/pear on the shelf and sold: 12, must be 10"},
		{"paid without papers", patch("orders/2-A", jay.Set("Status", shop.Paid)), "orders/2-A is paid, papers"},
		{"paid and cancelled", patch("orders/1-A", jay.Set("Status", shop.Cancelled)), "orders/1-A is cancelled, papers"},
		{"a status that there is not", patch("orders/2-A", jay.Set("Status", "lost")), `orders/2-A has status "lost"`},
		{"a total that is not that of the lines", patch("orders/2-A", jay.Increment("Total", 1)), "orders/2-A total: 121, must be 120"},
		{"a balance that was forgotten", patch("customers/1-A", jay.Increment("Owes", 7)), "customers/1-A owes: 127, must be 120"},
		{"money that was not counted", patch("customers/1-A", jay.Increment("Paid", -1)), "customers/1-A has paid: 239, must be 240"},
		{"an invoice over too little", patch("invoices/1", jay.Increment("Total", -40)), "orders/1-A is paid, papers"},
		{"an invoice that is missing", remove("invoices/1"), "orders/1-A is paid, papers"},
		{"an invoice about nothing", insert("invoices|", "Invoices", `{"Order":"orders/9-A"}`), "orders/9-A, which is no order"},
		{"a gap in the invoices", insert("invoices/3", "Invoices", `{"Order":"orders/9-A"}`), "invoice: invoices/3, must be invoices/2"},
		{"an order that is lost", remove("orders/1-A"), "products/pear on the shelf and sold: 8, must be 10"},
	} {
		t.Run(row.name, func(t *testing.T) {
			ctx := t.Context()
			db := openMemory(t)
			s := newShop(t, db)
			ann := addCustomer(t, s, "Ann")
			if err := s.AddProduct(ctx, "products/pear", "Pear", 120, 10); err != nil {
				t.Fatal(err)
			}
			for i := range 2 {
				order, err := s.Place(ctx, ann, shop.Item{Product: "products/pear", Quantity: 2 - i})
				if err != nil {
					t.Fatal(err)
				}
				if i == 0 {
					if _, err := s.Pay(ctx, order.ID); err != nil {
						t.Fatal(err)
					}
				}
			}
			if err := row.mistake(ctx, db); err != nil {
				t.Fatal(err)
			}
			_, err := s.Audit(ctx)
			if got := fmt.Sprint(err); row.want == "" && err != nil || row.want != "" && !strings.Contains(got, row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
}

func patch(id string, edits ...jay.PatchOption) func(context.Context, *jay.DB) error {
	return func(ctx context.Context, db *jay.DB) error {
		_, err := db.Patch(ctx, id, edits...)
		return err
	}
}

func remove(id string) func(context.Context, *jay.DB) error {
	return func(ctx context.Context, db *jay.DB) error { return db.Delete(ctx, id) }
}

func insert(id, collection, body string) func(context.Context, *jay.DB) error {
	return func(ctx context.Context, db *jay.DB) error {
		_, err := db.Insert(ctx, id, []byte(body), jay.InCollection(collection))
		return err
	}
}

func openMemory(t *testing.T) *jay.DB {
	t.Helper()
	db, err := jay.OpenMemory(nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeDB(t, db) })
	return db
}

func open(t *testing.T, dir string) *jay.DB {
	t.Helper()
	db, err := jay.Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeDB(t, db) })
	return db
}

func closeDB(t *testing.T, db *jay.DB) {
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

func newShop(t *testing.T, db *jay.DB) *shop.Shop {
	t.Helper()
	s, err := shop.New(t.Context(), db, noon)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func addCustomer(t testing.TB, s *shop.Shop, name string) string {
	t.Helper()
	c, err := s.AddCustomer(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	return c.ID
}

func audit(t *testing.T, s *shop.Shop) shop.Books {
	t.Helper()
	books, err := s.Audit(t.Context())
	if err != nil {
		t.Fatalf("the books do not balance: %v", err)
	}
	return books
}
