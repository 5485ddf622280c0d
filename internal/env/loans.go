package env

import "sync"

// Loans counts the calls of Read in progress. Close waits for them before it closes
// the gate, so that their functions can go on using the database.
type Loans struct {
	mu     sync.Mutex
	n      int           // Guarded by mu.
	closed bool          // no more loans are granted. Guarded by mu.
	back   chan struct{} // closed when closed and n is 0. Guarded by mu, made by stop.
}

// Begin begins a loan. It reports false if no more are granted.
func (l *Loans) Begin() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.n++
	return true
}

// End ends a loan.
func (l *Loans) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.n--; l.n == 0 && l.closed {
		close(l.back)
	}
}

// Stop grants no more loans, and returns when all have ended.
func (l *Loans) Stop() {
	l.mu.Lock()
	if !l.closed {
		l.closed, l.back = true, make(chan struct{})
		if l.n == 0 {
			close(l.back)
		}
	}
	back := l.back
	l.mu.Unlock()
	<-back
}
