package core

import (
	"context"
	"errors"

	"github.com/jaydb/jay/internal/ask"
)

// Compact frees the space of deleted documents now: see DB.Compact of package jay.
func (db *Database) Compact(ctx context.Context) error {
	if db.Owner != nil {
		return Ask[any, any](ctx, db, ask.Compact, ask.None{}, new(any), nil)
	}
	ctx, cancel := db.Horizon.Context(ctx)
	defer cancel()
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		err := db.Inside(func() (err error) {
			more, err = db.Horizon.RemoveSome(ctx)
			return err
		})
		if err != nil {
			return err
		}
	}
	err := db.Inside(func() error { return db.Env.Engine.Compact(ctx, nil, nil) })
	if errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}
