package indexer

import (
	"context"
	"sync"
	"time"
)

// throttle slows writers down to the pace of the settler while the tail of an index is too long: each document that they commit takes
// a place in a row, in which the documents are as far apart as the settler needs for one, or further: see catalog.Pressure. So the tail has a bound, however
// fast the disk is and however many writers there are. A writer waits after its commit, which nothing undoes. It is safe for concurrent use.
type throttle struct {
	now func() time.Time

	mu    sync.Mutex
	each  time.Duration // between two documents; 0 while no tail is too long. Guarded by mu.
	until time.Time     // when the throttle ends if the settler says nothing more. Guarded by mu.
	next  time.Time     // when the next document may be acknowledged. Guarded by mu.
}

// Bounds of a throttle.
const (
	// maxThrottle is how long a commit waits at most.
	maxThrottle = time.Second

	// throttleMemory is how long a throttle holds without word of the settler, which may wait for room on the disk.
	throttleMemory = 2 * time.Second
)

// set sets how far documents are apart, 0 to end the throttle.
func (t *throttle) set(each time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.each, t.until = each, t.now().Add(throttleMemory)
}

// take takes the places of some documents, and returns how long their writer must wait.
func (t *throttle) take(documents int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := t.now()
	if t.each == 0 || now.After(t.until) {
		return 0
	}
	if t.next.Before(now) {
		t.next = now
	}
	if last := now.Add(maxThrottle); last.Sub(t.next) < time.Duration(documents)*t.each {
		t.next = last
	} else {
		t.next = t.next.Add(time.Duration(documents) * t.each)
	}
	return t.next.Sub(now)
}

// wait waits until some documents may be acknowledged, or ctx or stopped is done.
func (t *throttle) wait(ctx context.Context, stopped <-chan struct{}, documents int) {
	rest := t.take(documents)
	if rest <= 0 {
		return
	}
	timer := time.NewTimer(rest)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-stopped:
	}
}
