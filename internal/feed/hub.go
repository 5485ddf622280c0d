package feed

import (
	"sync"
	"time"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/storage"
)

// Hub wakes the feeds that have caught up. It waits for the engine's next commit on a
// goroutine of its own, which is there only while a feed waits, and then wakes all
// of them. So a commit costs its leader the same whether one feed waits or ten
// thousand, and all commits that come meanwhile cost one wake.
//
// A wake makes each feed read, so that between two wakes the hub rests for a
// millisecond, and longer with many feeds: beside a stream of small commits a feed then
// reads many changes at a time, and all of them take a bounded part of the processors. The
// first wake after a pause comes at once.
type Hub struct {
	engine storage.Engine

	mu      sync.Mutex
	next    chan struct{} // closed by the next wake; nil if no feed waits. Guarded by mu.
	waiting int           // feeds that have asked for next. Guarded by mu.
	awoken  int           // feeds that the last wake has woken. Guarded by mu.
	woken   time.Time     // the last wake. Guarded by mu.
	rest    time.Duration // after it. Guarded by mu.
	stopped bool          // Guarded by mu.
	closed  chan struct{} // by Stop
	relays  sync.WaitGroup
}

// leastRest is how long the hub rests at least after a wake, and restPerFeed how long for
// each feed that it has woken: about what a feed takes to read one change. docs/limits.md
// has them.
const (
	leastRest   = time.Millisecond
	restPerFeed = 10 * time.Microsecond
)

// NewHub returns the hub of an engine. Stop must follow.
func NewHub(engine storage.Engine) *Hub {
	return &Hub{engine: engine, closed: make(chan struct{})}
}

// Await returns a channel that is closed when there may be more than a snapshot shows
// that was taken before, or when the hub stops: so a feed reads once more between Await
// and the wait. It also returns how many feeds the last wake has woken. It returns ErrClosed
// after Stop, and ErrFailed if the engine has failed.
func (h *Hub) Await() (next <-chan struct{}, awoken int, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.stopped {
		return nil, 0, errs.ErrClosed
	}
	if h.next == nil {
		commit, err := h.engine.NextCommit()
		if err != nil {
			return nil, 0, err
		}
		h.next, h.waiting = make(chan struct{}), 0
		h.relays.Go(func() { h.relay(commit) })
	}
	h.waiting++
	return h.next, h.awoken, nil
}

// relay waits for a commit and wakes all feeds.
func (h *Hub) relay(commit <-chan struct{}) {
	select {
	case <-commit:
	case <-h.closed:
	}
	h.mu.Lock()
	pause := time.Until(h.woken.Add(h.rest))
	h.mu.Unlock()
	if pause > 0 {
		timer := time.NewTimer(pause)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-h.closed:
		}
	}
	h.mu.Lock()
	next := h.next
	h.awoken = h.waiting
	h.next, h.woken, h.rest = nil, time.Now(), max(leastRest, time.Duration(h.waiting)*restPerFeed)
	h.mu.Unlock()
	close(next)
}

// Stop wakes all feeds for the last time, and waits for the hub's goroutine.
func (h *Hub) Stop() {
	h.mu.Lock()
	if !h.stopped {
		h.stopped = true
		close(h.closed)
	}
	h.mu.Unlock()
	h.relays.Wait()
}

// Waiting returns how many feeds have called Await since the last wake.
func (h *Hub) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next == nil {
		return 0
	}
	return h.waiting
}
