package lsm

// InLine returns how many Updates wait for their turn.
func (e *Pebble) InLine() int { return e.line.length() }

// Applied returns how many batches Pebble was given.
func (e *Pebble) Applied() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.applied
}
