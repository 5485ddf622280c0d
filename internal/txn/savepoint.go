package txn

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/ids"
)

// Savepoint calls fn, and undoes what the transaction has written since if fn returns
// an error, which Savepoint returns as it is, or panics.
func (t *Tx) Savepoint(ctx context.Context, fn func() error) error {
	if err := t.enter(ctx); err != nil {
		return err
	}
	writable, count, bytes := t.writable, len(t.ops), t.bytes
	t.exit()
	if !writable {
		return fmt.Errorf("%w: a transaction of View only reads", ids.ErrUsage)
	}
	whole := false
	defer func() {
		if !whole {
			t.rollBack(count, bytes)
		}
	}()
	err := fn()
	whole = err == nil
	return err
}

// rollBack removes the writes from count on. bytes is what the others count.
func (t *Tx) rollBack(count, bytes int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.ops) <= count {
		return // also after an inner savepoint
	}
	clear(t.ops[count:])
	t.ops, t.bytes = t.ops[:count], bytes
	clear(t.staged)
	for i, o := range t.ops {
		if o.FoldedID != "" {
			t.staged[o.FoldedID] = i
		}
	}
	t.undoExchanges()
}
