package indexer

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
)

// Ensure that between finds a text that divides a range, and none where there is none.
func TestBetween(t *testing.T) {
	for _, test := range []struct {
		low, high string
		ok        bool
	}{
		{"", "\x01", false}, {"a", "a\x01", false}, {"a", "b", true}, {"", "b", true}, {"orders/1-a", "orders/99-a\x01", true},
		{"orders/1", "orders/1\x01", false}, {"orders/1", "orders/10", true}, {"b", "a", false}, {"a", "a", false}, {"a\x00", "a\x02", true},
		{"users/" + string([]byte{0xff}), "users/" + string([]byte{0xff, 0xff}), true}, {"aaaaaaaaa", "aaaaaaaab", true},
	} {
		middle, ok := between(test.low, test.high)
		if ok != test.ok || ok && (middle <= test.low || middle >= test.high || slices.Contains([]byte(middle), 0)) {
			t.Errorf("between %q and %q: got %q, %v, want %v", test.low, test.high, middle, ok, test.ok)
		}
	}
}

// Ensure that goroutines that divide a range among them walk over each ID once, and that ranges
// are handed over.
func TestRanges_Walk(t *testing.T) {
	var ids []string
	for i := range 3000 {
		ids = append(ids, fmt.Sprintf("orders/%d-a", i*7))
	}
	slices.Sort(ids)
	r := newRanges(idRange{high: ids[len(ids)-1] + "\x01"})
	var mu sync.Mutex
	var got []string
	taken := 0
	walk := func(over idRange) error {
		mu.Lock()
		taken++
		isFirst := taken == 1
		mu.Unlock()
		i, _ := slices.BinarySearch(ids, over.low)
		for ; i < len(ids) && ids[i] < over.high; i++ {
			mu.Lock()
			got = append(got, ids[i])
			mu.Unlock()
			if i%5 != 0 {
				continue
			}
			high := r.divide([]byte(ids[i]), over.high)
			for isFirst && high == over.high { // until another goroutine waits
				runtime.Gosched()
				high = r.divide([]byte(ids[i]), over.high)
			}
			isFirst = false
			over.high = high
		}
		return nil
	}
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			if err := r.walk(context.Background(), walk); err != nil {
				t.Errorf("walk: %v", err)
			}
		})
	}
	group.Wait()
	slices.Sort(got)
	if !slices.Equal(got, ids) {
		t.Errorf("%d IDs, want each of %d once", len(got), len(ids))
	}
	if taken < 2 {
		t.Error("no range was handed over: the test does not test it")
	}
}

// Ensure that a goroutine that fails, panics or is cancelled does not keep others waiting.
func TestRanges_Walk_Fails(t *testing.T) {
	r := newRanges(idRange{high: "z"})
	failure := errors.New("failure")
	if err := r.walk(context.Background(), func(idRange) error { return failure }); err != failure {
		t.Errorf("got %v, want %v", err, failure)
	}
	if err := r.walk(context.Background(), nil); err != nil { // there is nothing left
		t.Errorf("the next one: %v", err)
	}

	r = newRanges(idRange{high: "z"})
	func() {
		defer func() { _ = recover() }()
		_ = r.walk(context.Background(), func(idRange) error { panic("a bug") })
	}()
	if err := r.walk(context.Background(), nil); err != nil {
		t.Errorf("after a panic: %v", err)
	}

	r = newRanges(idRange{high: "z"})
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	inside := false
	err := r.walk(context.Background(), func(idRange) error {
		inside = true
		if err := r.walk(ctx, nil); !errors.Is(err, context.Canceled) { // waits for the one that is inside
			t.Errorf("got %v, want %v", err, context.Canceled)
		}
		return nil
	})
	if err != nil || !inside {
		t.Errorf("%v, inside: %v", err, inside)
	}
}
