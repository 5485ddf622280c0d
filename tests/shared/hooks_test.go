package shared_test

import (
	"context"

	"github.com/jaydb/jay/storage"
)

// hooked is a driver whose engines call functions around transactions. Each may be nil. They must not change once an engine is open.
type hooked struct {
	storage.Driver
	before func() // before each transaction of a caller: one with a context of byCaller
	within func() // after each run of its function, before the commit
}

type callerKey struct{}

// byCaller returns a context whose transactions call the functions of a hooked driver.
func byCaller(ctx context.Context) context.Context { return context.WithValue(ctx, callerKey{}, true) }

// Open implements storage.Driver.
func (h *hooked) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	e, err := h.Driver.Open(name, o)
	if err != nil {
		return nil, err
	}
	return &hookedEngine{e, h}, nil
}

type hookedEngine struct {
	storage.Engine
	driver *hooked
}

// Update implements storage.Engine.
func (e *hookedEngine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	if ctx.Value(callerKey{}) == nil {
		return e.Engine.Update(ctx, sync, fn)
	}
	if e.driver.before != nil {
		e.driver.before()
	}
	return e.Engine.Update(ctx, sync, func(tx storage.Tx) error {
		err := fn(tx)
		if e.driver.within != nil {
			e.driver.within()
		}
		return err
	})
}
