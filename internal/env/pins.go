package env

import "sync"

// Pins counts the pinned reads in progress: calls of Read, whose functions look at the
// memory of the engine. Close waits for them before it closes the gate, so that the
// functions can go on using the database.
type Pins struct {
	mu     sync.Mutex
	n      int           // Guarded by mu.
	closed bool          // no more reads are pinned. Guarded by mu.
	back   chan struct{} // closed when closed and n is 0. Guarded by mu, made by stop.
}

// Begin begins a pinned read. It reports false if no more are allowed.
func (p *Pins) Begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.n++
	return true
}

// End ends a pinned read.
func (p *Pins) End() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n--; p.n == 0 && p.closed {
		close(p.back)
	}
}

// Stop allows no more pinned reads, and returns when all have ended.
func (p *Pins) Stop() {
	p.mu.Lock()
	if !p.closed {
		p.closed, p.back = true, make(chan struct{})
		if p.n == 0 {
			close(p.back)
		}
	}
	back := p.back
	p.mu.Unlock()
	<-back
}
