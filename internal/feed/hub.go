package feed

import (
	"sync"
	"time"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/storage"
)

// Hub wakes the feeds that have caught up. While at least one feed waits, a goroutine of
// the hub waits for the engine's next commit and then wakes all of them. So the cost of a
// commit does not depend on the number of feeds, and commits in quick succession share one
// wake.
//
// Each wake makes every feed read. Between two wakes the hub therefore rests for a
// millisecond, or longer with many feeds: in a stream of small commits a feed reads many
// changes at a time, and all feeds together use a bounded part of the processors. The
// first wake after a quiet time is not delayed.
type Hub struct {
	engine storage.Engine

	mu      sync.Mutex
	next    chan struct{} // closed by the next wake; nil if no feed waits. Guarded by mu.
	waiting int           // feeds that have got next. Guarded by mu.
	awoken  int           // number of feeds that the last wake has woken. Guarded by mu.
	woken   time.Time     // time of the last wake. Guarded by mu.
	rest    time.Duration // time to rest after the last wake. Guarded by mu.
	stopped bool          // Guarded by mu.
	closed  chan struct{} // by Stop
	relays  sync.WaitGroup
}

// leastRest is the least rest after a wake, and restPerFeed the rest for each feed that
// was woken: about the time that a feed needs to read one change. docs/limits.md has them.
const (
	leastRest   = time.Millisecond
	restPerFeed = 10 * time.Microsecond
)

// NewHub returns the hub of an engine. The caller must call Stop.
func NewHub(engine storage.Engine) *Hub {
	return &Hub{engine: engine, closed: make(chan struct{})}
}

// Await returns a channel that is closed at the next wake: after a commit that an earlier
// snapshot may not show, or when the hub stops. A feed must therefore read once more after
// Await, before it waits on the channel. awoken is the number of feeds that the last wake
// has woken. Await returns ErrClosed after Stop, and ErrFailed if the engine has failed.
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

// relay waits for a commit and for the end of the rest, and then wakes all feeds.
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

// Stop wakes all feeds a last time and waits for the hub's goroutine.
func (h *Hub) Stop() {
	h.mu.Lock()
	if !h.stopped {
		h.stopped = true
		close(h.closed)
	}
	h.mu.Unlock()
	h.relays.Wait()
}

// Waiting returns the number of feeds that have called Await since the last wake.
func (h *Hub) Waiting() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.next == nil {
		return 0
	}
	return h.waiting
}
