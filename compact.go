package jay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/observe"
)

// Compact frees the disk space of deleted and overwritten documents now, which the
// database otherwise does little by little: it removes the records of deletions that
// no transaction needs, and rewrites all tables. It takes about as long as
// copying the database, and up to as much free space. Reads and writes go on
// meanwhile.
//
// If ctx ends first, Compact returns its error; what was freed until then stays
// free. Close ends it with ErrClosed. Files of the log that are kept for
// reuse go at the next Open.
func (db *DB) Compact(ctx context.Context) error {
	run := func(ctx context.Context, _ *observe.Operation) error {
		if err := db.compact(ctx); err != nil {
			return fmt.Errorf("compact: %w", err)
		}
		return nil
	}
	if db.watch == nil {
		return run(ctx, nil)
	}
	return db.watch.Do(ctx, observe.Operation{Verb: "compact"}, run)
}

func (db *DB) compact(ctx context.Context) error {
	ctx, cancel := db.horizon.Context(ctx)
	defer cancel()
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		err := db.inside(func() (err error) {
			more, err = db.horizon.RemoveSome(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	err := db.inside(func() error { return db.env.Engine.Compact(ctx) })
	if errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}

// inside calls fn inside the gate.
func (db *DB) inside(fn func() error) error {
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	return fn()
}
