package lsm

import (
	"runtime"
	"slices"
	"sync"
	"time"
)

// line is the queue in which requests wait for a leader: see commit.go. Its
// methods say when somebody must begin to lead: there is one leader at a time.
//
// While the disk syncs the log for a small group, requests that want a sync
// stay in line, since theirs cannot begin before that one has ended. Then the
// next leader waits a moment for those whom it has woken: goroutines that write
// one document after the other come back at once, and share the next sync with
// all others. Without that they would take turns in two halves, and each wait
// for two syncs.
type commitQueue struct {
	mu        sync.Mutex
	waiting   []*request // from first on. Guarded by mu.
	first     int        // Guarded by mu.
	unsynced  int        // of them, that want no sync. Guarded by mu.
	hasLeader bool       // there is a leader, or one was asked for. Guarded by mu.
	syncing   int        // small groups that the disk is busy with. Guarded by mu.

	expected int       // how many there will be in line if all come back. Guarded by mu.
	deadline time.Time // to wait for them. Guarded by mu.
	skips    int       // leaders that will not wait, as others did in vain. The leader's.
	backOff  int       // skip after the next time in vain. The leader's.
}

const (
	maxCommitDelay   = 500 * time.Microsecond
	maxSkippedDelays = 63
)

// join puts r in line. It returns true if a leader must begin, and whether r is
// the only one in line.
func (l *commitQueue) push(r *request) (lead, only bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first > len(l.waiting)/2 { // a line may never be empty
		n := copy(l.waiting, l.waiting[l.first:])
		clear(l.waiting[n:])
		l.waiting, l.first = l.waiting[:n], 0
	}
	l.waiting = append(l.waiting, r)
	if !r.sync {
		l.unsynced++
	}
	if l.hasLeader || l.syncing > 0 && r.sync {
		return false, false
	}
	l.hasLeader = true
	return true, l.count() == 1
}

// gather waits until those are in line who may be expected, for half as long
// as the sync took that has kept them, unless somebody is there who need not wait
// for any sync. It is for the leader.
func (l *commitQueue) awaitFollowers() {
	l.mu.Lock()
	expected, until := l.expected, l.deadline
	l.expected = 0
	ready := l.ready(expected)
	l.mu.Unlock()
	if ready {
		return
	}
	if l.skips > 0 {
		l.skips--
		return
	}
	for !ready {
		if time.Now().After(until) {
			l.backOff = min(2*l.backOff+1, maxSkippedDelays)
			l.skips = l.backOff
			return
		}
		runtime.Gosched() // they are about to run
		l.mu.Lock()
		ready = l.ready(expected)
		l.mu.Unlock()
	}
	l.backOff = 0
}

// ready tells whether there is nobody to wait for. l.mu is held.
func (l *commitQueue) ready(expected int) bool { return l.count() >= expected || l.unsynced > 0 }

func (l *commitQueue) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count()
}

// count is length for those who hold l.mu.
func (l *commitQueue) count() int { return len(l.waiting) - l.first }

// next takes the first request out of the line, nil if there is none. It is
// for the leader.
func (l *commitQueue) pop() *request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.count() == 0 {
		return nil
	}
	r := l.waiting[l.first]
	l.waiting[l.first] = nil
	if l.first++; l.count() == 0 {
		l.waiting, l.first = l.waiting[:0], 0
	}
	if !r.sync {
		l.unsynced--
	}
	return r
}

// putBack makes r the first in line again.
func (l *commitQueue) pushFront(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first > 0 {
		l.first--
		l.waiting[l.first] = r
	} else {
		l.waiting = slices.Insert(l.waiting, 0, r)
	}
	if !r.sync {
		l.unsynced++
	}
}

// remove takes r out of the line, if it is still there.
func (l *commitQueue) remove(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting[l.first:], r)
	if i < 0 {
		return
	}
	l.waiting = slices.Delete(l.waiting, l.first+i, l.first+i+1)
	if !r.sync {
		l.unsynced--
	}
}

// leave ends the lead. If syncs, a small group now waits for the disk, and
// synced follows. It returns true if the next leader must begin.
func (l *commitQueue) endLead(syncs bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.hasLeader = false
	if syncs {
		l.syncing++
	}
	return l.claimLead()
}

// synced says that the disk is done with a small group, which took so long.
// Those who are expected were in line before its requests were answered, or
// were answered. It returns true if a leader must begin.
func (l *commitQueue) syncEnded(expected int, took time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncing--
	l.expected, l.deadline = expected, time.Now().Add(min(took/2, maxCommitDelay))
	return l.claimLead()
}

// pass returns true if a leader must begin: there is something to do now, and
// there is no leader. l.mu is held.
func (l *commitQueue) claimLead() bool {
	if l.hasLeader || l.count() == 0 || l.syncing > 0 && l.unsynced == 0 {
		return false
	}
	l.hasLeader = true
	return true
}
