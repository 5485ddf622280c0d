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
type line struct {
	mu      sync.Mutex
	waiting []*request // from first on. Guarded by mu.
	first   int        // Guarded by mu.
	eager   int        // of them, that want no sync. Guarded by mu.
	led     bool       // there is a leader, or one was asked for. Guarded by mu.
	syncing int        // small groups that the disk is busy with. Guarded by mu.

	expected int       // how many there will be in line if all come back. Guarded by mu.
	until    time.Time // to wait for them. Guarded by mu.
	skip     int       // leaders that will not wait, as others did in vain. The leader's.
	penalty  int       // skip after the next time in vain. The leader's.
}

const (
	maxPatience = 500 * time.Microsecond
	maxPenalty  = 63
)

// join puts r in line. It returns true if a leader must begin, and whether r is
// the only one in line.
func (l *line) join(r *request) (lead, only bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first > len(l.waiting)/2 { // a line may never be empty
		n := copy(l.waiting, l.waiting[l.first:])
		clear(l.waiting[n:])
		l.waiting, l.first = l.waiting[:n], 0
	}
	l.waiting = append(l.waiting, r)
	if !r.sync {
		l.eager++
	}
	if l.led || l.syncing > 0 && r.sync {
		return false, false
	}
	l.led = true
	return true, l.count() == 1
}

// gather waits until those are in line who may be expected, for half as long
// as the sync took that has kept them, unless somebody is there who need not wait
// for any sync. It is for the leader.
func (l *line) gather() {
	l.mu.Lock()
	expected, until := l.expected, l.until
	l.expected = 0
	ready := l.ready(expected)
	l.mu.Unlock()
	if ready {
		return
	}
	if l.skip > 0 {
		l.skip--
		return
	}
	for !ready {
		if time.Now().After(until) {
			l.penalty = min(2*l.penalty+1, maxPenalty)
			l.skip = l.penalty
			return
		}
		runtime.Gosched() // they are about to run
		l.mu.Lock()
		ready = l.ready(expected)
		l.mu.Unlock()
	}
	l.penalty = 0
}

// ready tells whether there is nobody to wait for. l.mu is held.
func (l *line) ready(expected int) bool { return l.count() >= expected || l.eager > 0 }

func (l *line) length() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.count()
}

// count is length for those who hold l.mu.
func (l *line) count() int { return len(l.waiting) - l.first }

// next takes the first request out of the line, nil if there is none. It is
// for the leader.
func (l *line) next() *request {
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
		l.eager--
	}
	return r
}

// putBack makes r the first in line again.
func (l *line) putBack(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.first > 0 {
		l.first--
		l.waiting[l.first] = r
	} else {
		l.waiting = slices.Insert(l.waiting, 0, r)
	}
	if !r.sync {
		l.eager++
	}
}

// remove takes r out of the line, if it is still there.
func (l *line) remove(r *request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	i := slices.Index(l.waiting[l.first:], r)
	if i < 0 {
		return
	}
	l.waiting = slices.Delete(l.waiting, l.first+i, l.first+i+1)
	if !r.sync {
		l.eager--
	}
}

// leave ends the lead. If syncs, a small group now waits for the disk, and
// synced follows. It returns true if the next leader must begin.
func (l *line) leave(syncs bool) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.led = false
	if syncs {
		l.syncing++
	}
	return l.pass()
}

// synced says that the disk is done with a small group, which took so long.
// Those who are expected were in line before its requests were answered, or
// were answered. It returns true if a leader must begin.
func (l *line) synced(expected int, took time.Duration) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.syncing--
	l.expected, l.until = expected, time.Now().Add(min(took/2, maxPatience))
	return l.pass()
}

// pass returns true if a leader must begin: there is something to do now, and
// there is no leader. l.mu is held.
func (l *line) pass() bool {
	if l.led || l.count() == 0 || l.syncing > 0 && l.eager == 0 {
		return false
	}
	l.led = true
	return true
}
