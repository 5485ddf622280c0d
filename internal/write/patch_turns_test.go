package write

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

// Ensure that turns are given in the order in which they are asked for, that who
// gives up loses nothing of others, and that nothing is kept.
func TestPatchTurns(t *testing.T) {
	ctx := context.Background()
	var turns patchTurns
	if turns.awaited("a") {
		t.Error("a turn is awaited that no patch took")
	}
	leave, err := turns.take(ctx, []string{"b", "a", "b"})
	if err != nil || !turns.awaited("a") || !turns.awaited("b") || turns.awaited("c") {
		t.Fatal(err)
	}
	waiters := func(n int) {
		t.Helper()
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			turns.mu.Lock()
			users := turns.byID["a"].users
			turns.mu.Unlock()
			if users == n {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%d have the turn or wait for it, want %d", users, n)
			}
		}
	}
	var order []int
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			leave, err := turns.take(ctx, []string{"a"})
			if err != nil {
				t.Error(err)
				return
			}
			order = append(order, i) // guarded by the turn
			leave()
		})
		waiters(2 + i)
	}
	ended, cancel := context.WithCancel(ctx)
	wg.Go(func() {
		if _, err := turns.take(ended, []string{"a", "c"}); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
	waiters(7)
	cancel()
	waiters(6)
	leave()
	wg.Wait()
	if fmt.Sprint(order) != "[0 1 2 3 4]" {
		t.Errorf("the order is %v", order)
	}
	if len(turns.byID) != 0 || turns.waiting.Load() != 0 {
		t.Errorf("%d turns are left, %d users", len(turns.byID), turns.waiting.Load())
	}
}
