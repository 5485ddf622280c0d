package storagetest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/jaydb/jay/storage"
)

// Commits is a Driver whose commits can be made to fail as those of a database server do. It is safe for
// concurrent use.
type Commits struct {
	storage.Driver // that opens the stores

	mu   sync.Mutex
	next Outcome // Guarded by mu.
	left int     // commits that end so. Guarded by mu.
}

// Outcome is what becomes of a commit.
type Outcome int

// The outcomes of a commit.
const (
	Committed   Outcome = iota
	Unavailable         // storage.ErrUnavailable: nothing was done
	Conflicting         // storage.ErrConflict: nothing was done
	LostReply           // storage.ErrUnknownOutcome: it is done
	LostRequest         // storage.ErrUnknownOutcome: nothing was done
)

// Fail gives the next n commits an outcome. The ones after them succeed.
func (c *Commits) Fail(next Outcome, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next, c.left = next, n
}

// outcome returns what becomes of the next commit.
func (c *Commits) outcome() Outcome {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left == 0 {
		return Committed
	}
	c.left--
	return c.next
}

// Open implements storage.Driver.
func (c *Commits) Open(name string, o storage.OpenOptions) (storage.Engine, error) {
	e, err := c.Driver.Open(name, o)
	if err != nil {
		return nil, err
	}
	return &commitsEngine{Engine: e, commits: c}, nil
}

// commitsEngine is an engine that Commits has opened.
type commitsEngine struct {
	storage.Engine
	commits *Commits
}

var errConnection = errors.New("the connection is gone")

// Update implements storage.Engine.
func (e *commitsEngine) Update(ctx context.Context, sync bool, fn func(storage.Tx) error) error {
	switch e.commits.outcome() {
	case Unavailable:
		return storage.ErrUnavailable
	case Conflicting:
		return storage.ErrConflict
	case LostRequest:
		return fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, errConnection)
	case LostReply:
		if err := e.Engine.Update(ctx, sync, fn); err != nil {
			return err
		}
		return fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, errConnection)
	}
	return e.Engine.Update(ctx, sync, fn)
}
