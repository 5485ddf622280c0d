package budget_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/storage"
)

// Ensure that work which finds too little memory waits for other work, in its turn.
func TestPool_Waits(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPool(100)
		first, second, third := p.NewDraw("query"), p.NewDraw("query"), p.NewDraw("query")
		if err := first.Take(t.Context(), 80); err != nil {
			t.Fatal(err)
		}
		var order []int
		var all sync.WaitGroup
		all.Go(func() {
			if err := second.Take(t.Context(), 60); err != nil {
				t.Error(err)
			}
			order = append(order, 2)
			second.End()
		})
		synctest.Wait()
		all.Go(func() {
			if err := third.Take(t.Context(), 50); err != nil { // 20 are free, but the second is before it
				t.Error(err)
			}
			order = append(order, 3)
			third.End()
		})
		synctest.Wait()
		if third.Try(1) {
			t.Error("a draw went past the line")
		}
		if len(order) != 0 {
			t.Errorf("%v did not wait", order)
		}
		time.Sleep(time.Second)
		first.End()
		all.Wait()
		if len(order) != 2 || order[0] != 2 {
			t.Errorf("the order was %v", order)
		}
		if used, peak, most := p.Load(); used != 0 || peak != 80 || most != 100 {
			t.Errorf("%d, %d, %d", used, peak, most)
		}
	})
}

// Ensure that no wait is for ever: neither of holders for one another, nor of a goroutine for its own other draw, nor for what can never fit.
func TestPool_Refuses(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPool(100)
		a, b := p.NewDraw("query"), p.NewDraw("query")
		for _, d := range []*budget.Draw{&a, &b} {
			if err := d.Take(t.Context(), 50); err != nil {
				t.Fatal(err)
			}
		}
		began := time.Now()
		refused := func(err error, held, wanted int64) {
			t.Helper()
			var e *storage.MemoryError
			if !errors.As(err, &e) || !errors.Is(err, storage.ErrMemory) || e.Held != held || e.Wanted != wanted || e.What != "query" || e.Most != 100 {
				t.Errorf("got %v", err)
			}
		}
		waited := make(chan error)
		go func() { waited <- a.Take(t.Context(), 10) }() // waits for b
		synctest.Wait()
		refused(b.Take(t.Context(), 10), 50, 10) // would wait for a, which waits
		if time.Since(began) != 0 {
			t.Error("a circle was waited for")
		}
		b.End()
		if err := <-waited; err != nil {
			t.Error(err)
		}
		refused(a.Take(t.Context(), 90), 60, 90) // never fits
		if time.Since(began) != 0 {
			t.Error("what never fits was waited for")
		}
		refused(b.Take(t.Context(), 50), 0, 50) // as a query for each row of another one
		if took := time.Since(began); took != budget.Patience {
			t.Errorf("it took %v", took)
		}
		if err := b.Take(t.Context(), 40); err != nil { // the line is empty again
			t.Error(err)
		}
	})
}

// Ensure that the end of a context ends the wait, and that those behind are served.
func TestPool_Canceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPool(100)
		a, b, c := p.NewDraw("query"), p.NewDraw("query"), p.NewDraw("query")
		if err := a.Take(t.Context(), 60); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		waited, served := make(chan error), make(chan error)
		go func() { waited <- b.Take(ctx, 90) }()
		synctest.Wait()
		go func() { served <- c.Take(t.Context(), 30) }()
		synctest.Wait()
		cancel()
		if err := <-waited; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
		if used, _, _ := p.Load(); used != 90 {
			t.Errorf("%d are used", used)
		}
	})
}

// Ensure that a pool never gives more than it has, that all ends, and that all comes back, whatever its users do.
func TestPool_Random(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		p := budget.NewPool(1000)
		var all sync.WaitGroup
		for i := range 40 {
			all.Go(func() {
				r := rand.New(rand.NewPCG(seed, uint64(i)))
				for range 50 {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(20_000))*time.Millisecond)
					outer, inner := p.NewDraw("query"), p.NewDraw("build")
					for range r.IntN(6) {
						d := &outer
						if r.IntN(3) == 0 {
							d = &inner // while outer is held
						}
						if err := d.Take(ctx, r.Int64N(400)); err != nil && ctx.Err() == nil && !errors.Is(err, storage.ErrMemory) {
							t.Errorf("seed %d: %v", seed, err)
						}
						time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
					}
					inner.End()
					outer.End()
					outer.End()
					cancel()
				}
			})
		}
		all.Wait()
		if used, peak, _ := p.Load(); used != 0 || peak > 1000 || peak < 900 {
			t.Errorf("seed %d: %d are used, at most %d", seed, used, peak)
		}
	})
}

// Ensure that a query pays on both sides, and that the error says what to do.
func TestPayer_Draws(t *testing.T) {
	t.Parallel()
	p := budget.NewPool(1 << 20)
	taken := int64(0)
	payer := budget.NewDrawing(budget.With(t.Context(), func(n int64) error { taken += n; return nil }), p)
	for range 10 {
		if err := payer.Pay(50 << 10); err != nil {
			t.Fatal(err)
		}
	}
	if used, _, _ := p.Load(); used != taken || used < 500<<10 || used > 600<<10 {
		t.Errorf("%d are drawn, %d are paid for", used, taken)
	}
	err := payer.Pay(1 << 20)
	if !errors.Is(err, storage.ErrMemory) || !strings.Contains(err.Error(), "MaxMemory") {
		t.Errorf("got %v", err)
	}
	payer.End()
	if used, _, _ := p.Load(); used != 0 {
		t.Errorf("%d are drawn after the end", used)
	}
}
