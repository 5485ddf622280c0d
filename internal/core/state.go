package core

import (
	"sync"

	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/storage"
)

// State is the snapshot that Verify reads, which Close releases.
type State struct {
	db *Database

	mu       sync.Mutex
	snapshot storage.Snapshot // nil when it is released. Guarded by mu.
	ended    error            // why. Guarded by mu.
}

// OpenState takes a snapshot. Release must follow.
func (db *Database) OpenState() (*State, error) {
	s := &State{db: db}
	return s, db.Inside(func() error {
		s.snapshot = db.Env.Engine.Snapshot()
		db.Env.Register(s)
		return nil
	})
}

// Use calls fn with the snapshot, inside the gate.
func (s *State) Use(fn func(storage.Reader) error) error {
	return s.db.Inside(func() error {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.snapshot == nil {
			return errs.First(s.ended, errs.ErrClosed)
		}
		return fn(s.snapshot)
	})
}

// Release implements env.Handle.
func (s *State) Release(cause error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.snapshot == nil {
		return nil
	}
	err := s.snapshot.Close()
	s.snapshot, s.ended = nil, cause
	s.db.Env.Unregister(s)
	return err
}
