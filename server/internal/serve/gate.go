package serve

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Gate bounds the requests, streams or sockets that run at a time and that wait: all
// together, and those of one sender. So a sender that fills its share leaves room for
// others. Places go to the senders in turns, and within one sender to the one that has
// waited longest.
type Gate struct {
	places int // the most that run at a time
	share  int // the most of one sender
	Most   int // the most that wait; of one sender, half of it
	wait   time.Duration

	mu      sync.Mutex
	running int               // Guarded by mu.
	waiting int               // Guarded by mu.
	senders map[string]*queue // those with a name that run or wait. Guarded by mu.
	all     *queue            // requests without a sender, for which there is no share. Guarded by mu.
	turns   []*queue          // those with waiters; the first is next. Guarded by mu.
}

// queue has the requests of one sender.
type queue struct {
	sender  string
	running int
	waiters []chan struct{} // oldest first; closed when the place is given
}

// newGate returns a gate with so many places. A sender may have half of them, and at least
// one.
func newGate(places int, wait time.Duration) *Gate {
	return &Gate{places: places, share: half(places), Most: 4 * places, wait: wait, senders: make(map[string]*queue), all: &queue{}}
}

// half is the share of one sender in n places: see docs/limits.md.
func half(n int) int { return (n + 1) / 2 }

// Enter takes a place for a request of the sender, or refuses it. After success the caller
// must call leave with the same sender. The sender "" has no bound of its own.
func (g *Gate) Enter(ctx context.Context, sender string) error {
	g.mu.Lock()
	q := g.queue(sender)
	if g.free(q) {
		g.admit(q)
		g.mu.Unlock()
		return nil
	}
	if g.waiting >= g.Most || sender != "" && len(q.waiters) >= half(g.Most) {
		err := overload("%d requests of this kind run and %d wait, %d and %d of them of this sender, which is the most", g.running, g.waiting, q.running, len(q.waiters))
		g.forget(q)
		g.mu.Unlock()
		return err
	}
	place := make(chan struct{})
	if q.waiters = append(q.waiters, place); len(q.waiters) == 1 {
		g.turns = append(g.turns, q)
	}
	g.waiting++
	g.mu.Unlock()

	timer := time.NewTimer(g.wait)
	defer timer.Stop()
	select {
	case <-place:
		return nil
	case <-ctx.Done():
		return g.giveUp(q, place, ctx.Err())
	case <-timer.C:
		return g.giveUp(q, place, overload("the request has waited %s for one of the %d that may run at a time, %d of one sender", g.wait, g.places, g.share))
	}
}

// Leave gives the place of a sender back.
func (g *Gate) Leave(sender string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	q := g.queue(sender)
	g.running--
	q.running--
	g.forget(q)
	g.pass()
}

// Load returns how many requests run.
func (g *Gate) Load() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.running
}

// Queued returns how many requests wait.
func (g *Gate) Queued() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.waiting
}

// queue returns the queue of a sender. g.mu is held.
func (g *Gate) queue(sender string) *queue {
	if sender == "" {
		return g.all
	}
	q := g.senders[sender]
	if q == nil {
		q = &queue{sender: sender}
		g.senders[sender] = q
	}
	return q
}

// free reports whether there is a place for a request of the queue. g.mu is held.
func (g *Gate) free(q *queue) bool {
	return g.running < g.places && (q == g.all || q.running < g.share)
}

// admit takes a place. g.mu is held.
func (g *Gate) admit(q *queue) {
	g.running++
	q.running++
}

// pass gives free places to those that wait. g.mu is held.
func (g *Gate) pass() {
	for i := 0; i < len(g.turns) && g.running < g.places; {
		q := g.turns[i]
		if !g.free(q) {
			i++
			continue
		}
		g.admit(q)
		close(q.waiters[0])
		q.waiters = q.waiters[1:]
		g.waiting--
		g.turns = slices.Delete(g.turns, i, i+1)
		if len(q.waiters) > 0 {
			g.turns = append(g.turns, q)
		}
	}
}

// giveUp ends the wait for a place, and returns err, unless the place was given meanwhile.
func (g *Gate) giveUp(q *queue, place chan struct{}, err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	i := slices.Index(q.waiters, place)
	if i < 0 {
		return nil
	}
	q.waiters = slices.Delete(q.waiters, i, i+1)
	g.waiting--
	if len(q.waiters) == 0 {
		g.turns = slices.DeleteFunc(g.turns, func(other *queue) bool { return other == q })
		g.forget(q)
	}
	return err
}

// keptQueues bounds the senders whose empty queues are kept for their next request.
const keptQueues = 1024

// forget drops the queue of a sender that has nothing left. g.mu is held.
func (g *Gate) forget(q *queue) {
	if q != g.all && q.running == 0 && len(q.waiters) == 0 && len(g.senders) > keptQueues {
		delete(g.senders, q.sender)
	}
}
