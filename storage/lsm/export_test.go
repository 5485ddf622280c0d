package lsm

// Queued returns how many requests are in the commit queue.
func (e *Engine) Queued() int { return e.queue.length() }

// Applied returns how many batches Pebble was given.
func (e *Engine) Applied() uint64 {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.applied
}
