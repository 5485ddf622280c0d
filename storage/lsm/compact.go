package lsm

import (
	"bytes"
	"context"
	"fmt"

	"github.com/jaydb/jay/storage"
)

// Compact implements storage.Engine. Pebble merges each level into the next.
func (e *Engine) Compact(ctx context.Context) error {
	if e.readOnly {
		return storage.ErrReadOnly
	}
	if failure := e.failure.Load(); failure != nil {
		return fmt.Errorf("%w: %w", storage.ErrFailed, *failure)
	}
	ctx, cancel := e.untilFailure(ctx)
	defer cancel()
	last := bytes.Repeat([]byte{0xff}, 64) // above all keys
	err := e.db.Compact(ctx, []byte{0}, last, true)
	e.states.renew() // they hold tables that are not needed any more
	if failure := e.failure.Load(); err != nil && failure != nil {
		return fmt.Errorf("%w: %w", storage.ErrFailed, *failure)
	}
	return err
}

// untilFailure returns a context that ends with ctx, or when the engine fails:
// Pebble retries for ever what fails, and Compact waits for it. The caller must
// cancel it.
func (e *Engine) untilFailure(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-e.failed:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
