package lsm

import (
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

func newRequest(sync bool) *request { return &request{sync: sync} }

// joins pushes r and reports whether a leader must begin.
func joins(l *commitQueue, r *request) bool {
	lead, _ := l.push(r)
	return lead
}

// Ensure that there is one leader at a time, and who it is.
func TestQueue_Leader(t *testing.T) {
	var l commitQueue
	a, b, c := newRequest(true), newRequest(true), newRequest(true)
	if !joins(&l, a) {
		t.Fatal("the first does not lead")
	}
	if joins(&l, b) || joins(&l, c) {
		t.Fatal("two lead")
	}
	if l.pop() != a || l.pop() != b {
		t.Fatal("the order is wrong")
	}
	l.pushFront(b)
	if !l.endLead(false) {
		t.Fatal("no leader, and there is work")
	}
	if l.pop() != b || l.pop() != c || l.pop() != nil {
		t.Fatal("the order is wrong")
	}
	if l.endLead(false) {
		t.Fatal("one leads, and there is no work")
	}
	if !joins(&l, a) {
		t.Fatal("no leader can begin after the queue was empty")
	}
}

// Ensure that a sync for a small group keeps requests that want one in
// the queue, and no others.
func TestQueue_Syncing(t *testing.T) {
	var l commitQueue
	a, b, c := newRequest(true), newRequest(true), newRequest(true)
	l.push(a)
	l.pop()
	l.endLead(true)
	if joins(&l, b) || joins(&l, c) {
		t.Fatal("one leads that must wait for the disk")
	}
	eager := newRequest(false)
	if !joins(&l, eager) {
		t.Fatal("one waits for the disk that has no need to")
	}
	late := newRequest(false)
	if joins(&l, late) {
		t.Fatal("two lead")
	}
	for _, want := range []*request{b, c, eager} {
		if l.pop() != want {
			t.Fatal("the order is wrong")
		}
	}
	if !l.endLead(true) { // two groups wait for the disk
		t.Fatal("one waits for the disk that has no need to")
	}
	l.pop()
	l.endLead(false)
	l.push(a)
	if l.syncEnded(0, 0) {
		t.Fatal("one leads that must wait for the disk")
	}
	if !l.syncEnded(0, 0) {
		t.Fatal("no leader begins when the disk is done")
	}
}

// Ensure that a request that is taken out of the queue leaves the order of the
// others, and the count of those that want no sync, as they should be.
func TestQueue_Remove(t *testing.T) {
	var l commitQueue
	a, b, c := newRequest(true), newRequest(false), newRequest(true)
	for _, r := range []*request{a, b, c} {
		l.push(r)
	}
	if l.pop() != a {
		t.Fatal("the order is wrong")
	}
	l.remove(a) // it is not there any more
	l.remove(b)
	if l.length() != 1 || l.unsynced != 0 {
		t.Fatalf("%d in the queue, %d want no sync; want 1, 0", l.length(), l.unsynced)
	}
	if l.pop() != c || l.pop() != nil {
		t.Fatal("the order is wrong")
	}
}

// Ensure that a leader waits for those who may be expected, but not for ever,
// and ever more rarely if they do not come.
func TestQueue_CommitDelay(t *testing.T) {
	var l commitQueue
	first := newRequest(true)
	l.push(first)
	sync := func(expected int) {
		l.endLead(true)
		if !l.syncEnded(expected, time.Hour) {
			t.Fatal("no leader begins when the disk is done")
		}
	}
	sync(3)
	go func() {
		l.push(newRequest(true))
		l.push(newRequest(true))
	}()
	l.mu.Lock()
	l.deadline = l.deadline.Add(time.Hour)
	l.mu.Unlock()
	l.awaitFollowers()
	if n := l.length(); n != 3 {
		t.Fatalf("%d in the queue, want 3", n)
	}

	waits := 0
	for range 200 {
		sync(4)
		l.awaitFollowers()
		if l.skips == l.backOff {
			waits++
		}
	}
	if waits < 3 || waits > 10 {
		t.Errorf("200 leaders waited %d times for nothing", waits)
	}
	l.skips = 0
	sync(3)
	l.awaitFollowers()
	sync(4)
	go func() {
		for waits := false; !waits; runtime.Gosched() {
			l.mu.Lock()
			waits = l.expected == 0 // the leader has asked for it
			l.mu.Unlock()
		}
		l.push(newRequest(true))
	}()
	l.mu.Lock()
	l.deadline = l.deadline.Add(time.Hour)
	l.mu.Unlock()
	l.awaitFollowers()
	if l.length() != 4 || l.backOff != 0 {
		t.Errorf("%d in the queue, want 4; back-off %d, want 0", l.length(), l.backOff)
	}
}

// Ensure that a queue that is never empty does not grow.
func TestQueue_Memory(t *testing.T) {
	var l commitQueue
	l.push(newRequest(true))
	for range 1_000_000 {
		l.push(newRequest(true))
		l.pop()
	}
	if n := cap(l.waiting); n > 1000 {
		t.Errorf("%d requests in the queue, capacity %d", l.length(), n)
	}
}

// Ensure that one that wants no sync does not wait for those who do.
func TestQueue_UnsyncedEndsDelay(t *testing.T) {
	var l commitQueue
	a := newRequest(true)
	l.push(a)
	l.pop()
	l.endLead(true)
	l.syncEnded(8, time.Hour)
	l.mu.Lock()
	l.deadline = time.Now().Add(time.Hour) // maxCommitDelay, made visible
	l.mu.Unlock()
	if !joins(&l, newRequest(false)) {
		t.Fatal("does not lead")
	}
	ended := make(chan struct{})
	go func() { l.awaitFollowers(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("one that wants no sync waits for goroutines that came from a sync")
	}
}

// Ensure that a leader whose followers do not come goes on where the clock stands still, as in a bubble of synctest.
func TestQueue_ClockStandsStill(t *testing.T) {
	synctest.Test(t, func(*testing.T) {
		q := &commitQueue{expected: 2, deadline: time.Now().Add(maxCommitDelay)}
		q.awaitFollowers()
		if q.skips == 0 {
			t.Error("the delay was not given up")
		}
	})
}
