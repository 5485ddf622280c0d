package subs

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/shared"
)

// InUse is what Acquire does if the subscription has a worker already.
type InUse uint8

const (
	Wait    InUse = iota // wait until the worker ends
	Replace              // end the worker and take its place
	Fail                 // return ErrInUse
)

// slot holds the worker of a subscription. It exists while there is a worker or a caller
// that waits to become one.
type slot struct {
	worker *Worker       // nil for none. Guarded by Store.mu.
	freed  chan struct{} // closed when worker ends. Guarded by Store.mu.
	users  int           // the worker, and the callers in Acquire. Guarded by Store.mu.

	// leaving says that worker has ended, and gives the subscription back to other processes: whoever comes next waits, as it would be taken from him. Guarded by Store.mu.
	leaving bool
}

// Acquire makes the caller the worker of a subscription in this process. The caller must
// call Release. Acquire must be called outside the gate: it may wait, until ctx ends or
// the database is closed. On a shared store, the caller becomes the worker among all processes.
func (s *Store) Acquire(ctx context.Context, name string, mode InUse) (*Worker, error) {
	if s.env.Engine.Shared() && s.env.Works == nil {
		return nil, fmt.Errorf("%w: the work on a subscription, by a process that only reads", shared.ErrRefused)
	}
	if err := CheckName(name); err != nil {
		return nil, err
	}
	w, err := s.acquire(ctx, name, mode)
	if err != nil || s.env.Works == nil {
		return w, err
	}
	if err := w.claim(ctx, mode); err != nil {
		w.Release()
		return nil, err
	}
	return w, nil
}

// acquire is Acquire in this process.
func (s *Store) acquire(ctx context.Context, name string, mode InUse) (*Worker, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.slots[name]
	if at == nil {
		at = new(slot)
		s.slots[name] = at
	}
	at.users++
	defer func() { s.leave(name, at) }()
	for at.worker != nil {
		switch {
		case at.leaving:
		case mode == Fail:
			return nil, fmt.Errorf("%w: %q", errs.ErrInUse, name)
		case mode == Replace:
			at.worker.end(fmt.Errorf("%w: another worker has replaced it", errs.ErrEnded))
			at.remove()
			continue
		}
		freed := at.freed
		s.mu.Unlock()
		var err error
		select {
		case <-freed:
		case <-ctx.Done():
			err = ctx.Err()
		case <-s.closing.Done():
			err = errs.ErrClosed
		}
		s.mu.Lock()
		if err != nil {
			return nil, err
		}
	}
	if err := context.Cause(s.closing); err != nil {
		return nil, err
	}
	w := newWorker(ctx, s, name)
	at.worker, at.freed = w, make(chan struct{})
	at.users++
	return w, nil
}

// remove takes the worker out of the slot and wakes the waiting callers. Store.mu is held.
func (at *slot) remove() {
	at.worker = nil
	at.users--
	close(at.freed)
}

// leave is called when a caller leaves Acquire. It drops a slot without users. s.mu is
// held.
func (s *Store) leave(name string, at *slot) {
	if at.users--; at.users == 0 {
		delete(s.slots, name)
	}
}

// Release ends a worker. It may be called more than once.
func (w *Worker) Release() {
	w.end(context.Canceled)
	if w.feed != nil {
		w.feed.Close()
	}
	w.claimed = false
	s := w.store
	s.mu.Lock()
	defer s.mu.Unlock()
	at := s.slots[w.name]
	if at == nil || at.worker != w || at.leaving {
		return // another worker of this process has replaced it, and keeps the subscription
	}
	if s.env.Works != nil {
		at.leaving = true
		s.mu.Unlock()
		w.unclaim()
		s.mu.Lock()
		at.leaving = false
	}
	at.remove()
	if at.users == 0 {
		delete(s.slots, w.name)
	}
}

// end ends the worker of a subscription, if there is one, with an ErrEnded that has the
// reason.
func (s *Store) end(name, reason string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := s.slots[name]; at != nil && at.worker != nil {
		at.worker.end(fmt.Errorf("%w: %s", errs.ErrEnded, reason))
	}
}
