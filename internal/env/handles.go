package env

import (
	"errors"
	"maps"
	"slices"
	"sync"
)

// Handle is an open resource of the engine that must not outlive the database, such
// as a cursor or a transaction. Release closes it and makes its later calls return
// cause; it is idempotent.
type Handle interface{ Release(cause error) error }

// handles are the open handles of a database.
type handles struct {
	mu  sync.Mutex
	set map[Handle]struct{} // Guarded by mu.
}

// Register adds an open handle, which ReleaseAll will release.
func (e *Env) Register(h Handle) {
	e.handles.mu.Lock()
	defer e.handles.mu.Unlock()
	if e.handles.set == nil {
		e.handles.set = make(map[Handle]struct{})
	}
	e.handles.set[h] = struct{}{}
}

// Unregister removes a handle that has been released.
func (e *Env) Unregister(h Handle) {
	e.handles.mu.Lock()
	defer e.handles.mu.Unlock()
	delete(e.handles.set, h)
}

// release releases all of them. No handle is registered meanwhile: the gate is
// closed.
func (h *handles) release(cause error) error {
	h.mu.Lock()
	open := slices.Collect(maps.Keys(h.set)) // Release may call Unregister
	h.mu.Unlock()
	var err error
	for _, handle := range open {
		err = errors.Join(err, handle.Release(cause))
	}
	return err
}

// ReleaseAll releases every open handle, with cause as the error of its later calls.
func (e *Env) ReleaseAll(cause error) error { return e.handles.release(cause) }
