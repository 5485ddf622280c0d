package lsm

// InLine returns how many Updates wait for their turn.
func (e *Engine) InLine() int { return e.queue.length() }

// Applied returns how many batches Pebble was given.
func (e *Engine) Applied() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.applied
}
