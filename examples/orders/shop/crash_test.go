package shop_test

import (
	"bufio"
	"context"
	"fmt"
	"log"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/examples/orders/shop"
)

// childDir names the database in the environment of a child that runs the load
// until it is killed.
const childDir = "SHOP_TEST_CHILD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		log.Fatal(child(dir))
	}
	os.Exit(m.Run())
}

// child runs the load and prints what was acknowledged, a line each.
func child(dir string) error {
	db, err := jay.Open(dir, nil)
	if err != nil {
		return err
	}
	s, err := shop.New(context.Background(), db, noon)
	if err != nil {
		return err
	}
	l := newLoad(nil, s, false)
	l.logf = func(format string, args ...any) { fmt.Printf(format+"\n", args...) } // one write each, under l.mu
	l.run(context.Background(), rand.Uint64(), math.MaxInt)
	return l.failed
}

// Ensure that the books balance after kill -9 in the middle of the load, that
// nothing is lost that was acknowledged to a customer, and that business goes on.
func TestShop_Killed(t *testing.T) {
	dir := t.TempDir()
	db := open(t, dir)
	l := newLoad(t, newShop(t, db), true)
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	acked := map[string]string{} // the last that was acknowledged of an order
	for round := range 3 {
		killAfter(t, dir, 150, acked, l)
		db := open(t, dir)
		s := newShop(t, db)
		books := audit(t, s)
		t.Logf("round %d: %+v", round, books)
		if books.Delivered < l.delivered {
			t.Errorf("got %d pieces delivered, want at least %d", books.Delivered, l.delivered)
		}
		l.delivered = books.Delivered // with what was delivered and not acknowledged
		for order, want := range acked {
			checkAcked(t, s, order, want)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// killAfter starts a child and kills it when it has printed n lines.
func killAfter(t *testing.T, dir string, n int, acked map[string]string, l *load) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	count := 0
	for ; lines.Scan(); count++ {
		if count == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Error(err)
			}
		}
		// What stands in the pipe after the kill was acknowledged, too.
		verb, rest, _ := strings.Cut(lines.Text(), " ")
		var pieces int
		if order, invoice, _ := strings.Cut(rest, " "); verb == "delivered" {
			if _, err := fmt.Sscan(rest, &pieces); err != nil {
				t.Error(err)
			}
			l.delivered += pieces
		} else {
			acked[order] = strings.TrimSpace(verb + " " + invoice)
		}
	}
	_ = cmd.Wait() // killed
	if count <= n {
		t.Fatalf("the child ended by itself after %d lines", count)
	}
}

// checkAcked ensures that an order is at least as far as was acknowledged.
func checkAcked(t *testing.T, s *shop.Shop, order, want string) {
	t.Helper()
	details, err := s.Show(t.Context(), order)
	if err != nil {
		t.Errorf("%s, %s: %v", order, want, err)
		return
	}
	verb, number, _ := strings.Cut(want, " ")
	switch got := details.Order.Status; {
	case verb == "placed":
	case got != shop.Status(verb):
		t.Errorf("%s is %s, want %s", order, got, verb)
	case verb == "paid":
		invoice, err := s.Invoice(t.Context(), order)
		if err != nil || invoice.ID != number {
			t.Errorf("%s: got invoice %v %v, want %s", order, invoice, err, number)
		}
	}
}
