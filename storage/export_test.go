package storage

import "time"

// InLine returns how many Updates wait for their turn.
func (e *Pebble) InLine() int { return e.line.length() }

// Applied returns how many batches Pebble was given.
func (e *Pebble) Applied() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.applied
}

// SetCloseTimeout changes how long a disk may be silent before Close gives up,
// and returns what restores it.
func SetCloseTimeout(d time.Duration) (restore func()) {
	old := closeTimeout
	closeTimeout = d
	return func() { closeTimeout = old }
}
