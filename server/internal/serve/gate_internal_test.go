package serve

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"
)

// This file is internal: a place is nothing that a client sees.

// Ensure that a sender that takes all places that it can leaves the others theirs, and
// that what waits gets its place by turns of senders.
func TestGate_Share(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	g := newGate(4, time.Nanosecond)
	for i := range 4 {
		if err := g.Enter(ctx, "greedy"); (err == nil) != (i < 2) {
			t.Fatalf("place %d of one sender: %v", i, err)
		}
	}
	for _, sender := range []string{"a", ""} {
		if err := g.Enter(ctx, sender); err != nil {
			t.Fatalf("%q beside a sender that has its share: %v", sender, err)
		}
	}
	if err := g.Enter(ctx, "b"); err == nil {
		t.Fatal("more places than there are")
	}

	g.wait = time.Minute
	var order []string
	var mu sync.Mutex
	var waiting sync.WaitGroup
	for i, sender := range []string{"greedy", "greedy", "b", "a"} {
		waiting.Go(func() {
			if err := g.Enter(ctx, sender); err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, sender)
			mu.Unlock()
			g.Leave(sender)
		})
		for g.Queued() <= i {
			time.Sleep(time.Microsecond)
		}
	}
	for _, sender := range []string{"greedy", "greedy", "a", ""} {
		g.Leave(sender)
	}
	waiting.Wait()
	if n := g.Load(); n != 0 || len(order) != 4 || g.Queued() != 0 || len(g.turns) != 0 {
		t.Errorf("%d run, %d wait, order %v, turns %d", n, g.Queued(), order, len(g.turns))
	}
}

// Ensure that what gives up waiting takes no place, and that of one sender not all that
// may wait do.
func TestGate_GivesUp(t *testing.T) {
	t.Parallel()
	g := newGate(1, time.Minute)
	if err := g.Enter(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	errs := make(chan error)
	for range 2 {
		go func() { errs <- g.Enter(ctx, "b") }()
	}
	for g.Queued() < 2 {
		time.Sleep(time.Microsecond)
	}
	if err := g.Enter(ctx, "b"); err == nil || ProblemOf(err).Status != 429 {
		t.Errorf("the third that waits: %v", err)
	}
	cancel()
	for range 2 {
		if err := <-errs; err != context.Canceled {
			t.Errorf("got %v", err)
		}
	}
	g.Leave("a")
	if g.Load() != 0 || g.Queued() != 0 || len(g.turns) != 0 {
		t.Errorf("%+v", g)
	}
	for i := range 2 * keptQueues {
		sender := fmt.Sprint(i)
		if err := g.Enter(context.Background(), sender); err != nil {
			t.Fatal(err)
		}
		g.Leave(sender)
	}
	if len(g.senders) > keptQueues {
		t.Errorf("%d senders are kept", len(g.senders))
	}
}

// Ensure that senders that are refused leave nothing, or the addresses of a network could
// fill the memory.
func TestGate_RefusedLeavesNothing(t *testing.T) {
	t.Parallel()
	g := newGate(1, time.Minute)
	if err := g.Enter(context.Background(), "a"); err != nil {
		t.Fatal(err)
	}
	g.Most = 0
	for i := range 2 * keptQueues {
		if err := g.Enter(context.Background(), fmt.Sprint(i)); err == nil {
			t.Fatal("more wait than may")
		}
	}
	if len(g.senders) > keptQueues+1 {
		t.Errorf("%d senders are kept", len(g.senders))
	}
}

// Ensure that the addresses of one IPv6 network are one sender, as for connections.
func TestSender_Network(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"[2001:db8:1:2::7]:1": "address 2001:db8:1:2::", "[2001:db8:1:2:9:9:9:9]:2": "address 2001:db8:1:2::", "[::ffff:192.0.2.1]:3": "address 192.0.2.1",
		"192.0.2.1:4": "address 192.0.2.1", "[::1]:5": "address ::1", "@": "address @",
	} {
		c := &Call{Request: &http.Request{RemoteAddr: from}}
		if got := c.Sender(); got != want {
			t.Errorf("%s: got %q, want %q", from, got, want)
		}
	}
}

// Ensure that places under load are never more than there are.
func TestGate_Race(t *testing.T) {
	t.Parallel()
	g := newGate(3, time.Minute)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 200 {
				sender := fmt.Sprint(i % 3)
				if err := g.Enter(context.Background(), sender); err != nil {
					t.Error(err)
					return
				}
				if n := g.Load(); n < 1 || n > 3 {
					t.Errorf("%d run", n)
				}
				g.Leave(sender)
			}
		})
	}
	all.Wait()
	if g.Load() != 0 || g.Queued() != 0 {
		t.Errorf("%d, %d are left", g.Load(), g.Queued())
	}
}
