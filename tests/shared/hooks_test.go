package shared_test

import (
	"context"
	"errors"

	"github.com/jaydb/jay/storage"
)

// hooked is a driver whose engines call functions around transactions. Each may be nil. They must not change once an engine is open.
type hooked struct {
	storage.Driver
	before  func() // before each transaction of a caller: one with a context of byCaller
	between func() // after a run of its function whose transaction is given up, before the run that is committed
}

// errAgain gives up a transaction that runs once more.
var errAgain = errors.New("runs again")

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
	if e.driver.between != nil {
		err := e.Engine.Update(ctx, sync, func(tx storage.Tx) error {
			if err := fn(tx); err != nil {
				return err
			}
			return errAgain
		})
		if !errors.Is(err, errAgain) {
			return err
		}
		e.driver.between()
	}
	return e.Engine.Update(ctx, sync, fn)
}
