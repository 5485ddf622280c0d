package lsm

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// commitQueue is the queue in which requests wait for a leader: see commit.go.
// There is one leader at a time; push, endLead and syncEnded say when the next
// must begin.
//
// While the log is synced for a small group, requests that want a sync stay in
// the queue, as their own sync cannot begin before that one has ended. The next
// leader then waits for a commit delay: goroutines that write one document after
// another come back as soon as they are answered, and share the next sync with
// all others. Without the delay they would fall into two halves that take turns,
// and each would wait for two syncs.
type commitQueue struct {
	mu        sync.Mutex
	waiting   []*request // the queue is waiting[first:]. Guarded by mu.
	first     int        // Guarded by mu.
	unsynced  int        // requests in the queue that want no sync. Guarded by mu.
	hasLeader bool       // a leader works, or is about to begin. Guarded by mu.
	syncing   int        // small groups whose sync is under way. Guarded by mu.

	expected int       // length of the queue once all answered callers are back. Guarded by mu.
	deadline time.Time // end of the commit delay. Guarded by mu.

	// A delay that ends before all are back costs latency for nothing. The next
	// skips leaders then do not delay, about twice as many each time. Only the
	// leader uses these fields.
	skips   int
	backOff int // skips after the next delay that was too short
}

const (
	maxCommitDelay   = 500 * time.Microsecond
	maxSkippedDelays = 63
)

// push appends r. It returns true if a leader must begin, and whether r is the
// only request in the queue.
func (q *commitQueue) push(r *request) (lead, only bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first > len(q.waiting)/2 { // a busy queue is never empty: reclaim its front
		n := copy(q.waiting, q.waiting[q.first:])
		clear(q.waiting[n:])
		q.waiting, q.first = q.waiting[:n], 0
	}
	q.waiting = append(q.waiting, r)
	if !r.sync {
		q.unsynced++
	}
	if q.hasLeader || q.syncing > 0 && r.sync {
		return false, false
	}
	q.hasLeader = true
	return true, q.count() == 1
}

// awaitFollowers waits out the commit delay: until the expected requests are in
// the queue or the deadline has passed. It returns at once if a request wants no
// sync, and so need not wait for one. Only the leader calls it.
func (q *commitQueue) awaitFollowers() {
	q.mu.Lock()
	expected, until := q.expected, q.deadline
	q.expected = 0
	ready := q.ready(expected)
	q.mu.Unlock()
	if ready {
		return
	}
	if q.skips > 0 {
		q.skips--
		return
	}
	for !ready {
		if time.Now().After(until) {
			q.backOff = min(2*q.backOff+1, maxSkippedDelays)
			q.skips = q.backOff
			return
		}
		runtime.Gosched() // the answered goroutines are about to run
		q.mu.Lock()
		ready = q.ready(expected)
		q.mu.Unlock()
	}
	q.backOff = 0
}

// ready reports whether there is no reason to delay. q.mu is held.
func (q *commitQueue) ready(expected int) bool { return q.count() >= expected || q.unsynced > 0 }

// length returns how many requests are in the queue.
func (q *commitQueue) length() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.count()
}

// count is length with q.mu held.
func (q *commitQueue) count() int { return len(q.waiting) - q.first }

// pop takes the first request out of the queue; nil if there is none. Only the
// leader calls it.
func (q *commitQueue) pop() *request {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.count() == 0 {
		return nil
	}
	r := q.waiting[q.first]
	q.waiting[q.first] = nil
	if q.first++; q.count() == 0 {
		q.waiting, q.first = q.waiting[:0], 0
	}
	if !r.sync {
		q.unsynced--
	}
	return r
}

// pushFront puts r back, before all others.
func (q *commitQueue) pushFront(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first > 0 {
		q.first--
		q.waiting[q.first] = r
	} else {
		q.waiting = slices.Insert(q.waiting, 0, r)
	}
	if !r.sync {
		q.unsynced++
	}
}

// remove takes r out of the queue, if it is still in it.
func (q *commitQueue) remove(r *request) {
	q.mu.Lock()
	defer q.mu.Unlock()
	i := slices.Index(q.waiting[q.first:], r)
	if i < 0 {
		return
	}
	q.waiting = slices.Delete(q.waiting, q.first+i, q.first+i+1)
	if !r.sync {
		q.unsynced--
	}
}

// endLead ends the work of the leader. With syncs, a small group now waits for
// the disk, and syncEnded follows. It returns true if the next leader must begin.
func (q *commitQueue) endLead(syncs bool) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.hasLeader = false
	if syncs {
		q.syncing++
	}
	return q.claimLead()
}

// syncEnded notes that the sync of a small group has ended, after it took so
// long. expected is how many requests were in the queue before the group was
// answered, and how many were answered. It returns true if a leader must begin.
func (q *commitQueue) syncEnded(expected int, took time.Duration) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.syncing--
	q.expected, q.deadline = expected, time.Now().Add(min(took/2, maxCommitDelay))
	return q.claimLead()
}

// claimLead returns true if a leader must begin: there is none, and a request can
// make progress now. q.mu is held.
func (q *commitQueue) claimLead() bool {
	if q.hasLeader || q.count() == 0 || q.syncing > 0 && q.unsynced == 0 {
		return false
	}
	q.hasLeader = true
	return true
}
