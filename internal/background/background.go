// Package background runs what an open database does beside the calls of its user: the
// goroutines of a part of it, which Close ends, and workers that are woken when there is
// something to do.
//
// A [Group] is the goroutines of one part. A [Worker] is a group of at most one, which
// works in steps and rests between them as long as it works: so it takes no more than half
// of what the disk can do.
package background

import (
	"context"
	"sync"
	"time"
)

// Group is the goroutines of a part of an open database. It is safe for concurrent use.
type Group struct {
	mu      sync.Mutex
	stopped bool // Guarded by mu.
	ctx     context.Context
	end     context.CancelFunc
	running sync.WaitGroup
}

// NewGroup returns a group without goroutines. Stop must follow.
func NewGroup() *Group {
	g := new(Group)
	g.ctx, g.end = context.WithCancel(context.Background())
	return g
}

// Context returns a context that ends with Stop.
func (g *Group) Context() context.Context { return g.ctx }

// Go runs fn on a goroutine of its own. After Stop it does nothing.
func (g *Group) Go(fn func()) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.stopped {
		g.running.Go(fn)
	}
}

// Every calls fn at each interval, on a goroutine of its own, until Stop.
func (g *Group) Every(interval time.Duration, fn func()) {
	g.Go(func() {
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				fn()
			case <-g.ctx.Done():
				return
			}
		}
	})
}

// Stop ends the context of the group and waits for its goroutines. There are no others
// afterwards.
func (g *Group) Stop() {
	g.mu.Lock()
	g.stopped = true
	g.mu.Unlock()
	g.end()
	g.running.Wait()
}

// Wait waits for the goroutines that run.
func (g *Group) Wait() { g.running.Wait() }

// Rest waits as long as has passed since begun. It returns false, at once, if the group
// was stopped.
func (g *Group) Rest(begun time.Time) bool {
	timer := time.NewTimer(time.Since(begun))
	defer timer.Stop()
	select {
	case <-timer.C:
		return g.ctx.Err() == nil
	case <-g.ctx.Done():
		return false
	}
}

// Worker works in the background whenever it is woken, until there is nothing left to do.
// It is safe for concurrent use.
type Worker struct {
	*Group

	step   func(context.Context) (more bool, err error)
	failed func(error)

	mu      sync.Mutex
	woken   bool // there may be something to do that the step under way does not see. Guarded by mu.
	running bool // Guarded by mu.

	hurried bool // by the step under way. Of its goroutine.
}

// NewWorker returns a worker that sleeps. step does a part of the work, and reports whether
// more of it may be there. An error of step is given to failed, and ends the work until
// the next Wake. Stop must follow.
func NewWorker(step func(context.Context) (more bool, err error), failed func(error)) *Worker {
	return &Worker{Group: NewGroup(), step: step, failed: failed}
}

// Wake has the worker look for something to do. If it is working, it looks once more
// afterwards.
func (w *Worker) Wake() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.woken = true; !w.running {
		w.running = true
		w.Go(w.work)
	}
}

// Hurry has the worker go on without a rest after the step that calls it.
func (w *Worker) Hurry() { w.hurried = true }

// isWoken reports whether the worker has to look, which it does next, or else ends.
func (w *Worker) isWoken() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = w.woken && w.ctx.Err() == nil
	w.woken = false
	return w.running
}

func (w *Worker) work() {
	for w.isWoken() {
		for more := true; more; {
			begun := time.Now()
			var err error
			if more, err = w.step(w.ctx); err != nil {
				more = false
				if w.ctx.Err() == nil {
					w.failed(err)
				}
			}
			hurried := w.hurried
			if w.hurried = false; hurried && w.ctx.Err() == nil {
				continue
			}
			if !w.Rest(begun) {
				more = false
			}
		}
	}
}
