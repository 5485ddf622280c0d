package memory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"github.com/jaydb/jay/storage"
)

// Engine is a store that one database has open. It runs one transaction at a time. Transactions of
// several engines run concurrently.
type Engine struct {
	driver   *Driver
	store    *store
	known    storage.Features
	readOnly bool

	turn     chan struct{} // holds the turn of the next transaction
	sequence uint64        // of commits. Guarded by turn.

	unavailable atomic.Pointer[error]

	commits atomic.Uint64
	closing sync.Once
}

func newEngine(d *Driver, s *store, known storage.Features, readOnly bool) *Engine {
	e := &Engine{driver: d, store: s, known: known, readOnly: readOnly, turn: make(chan struct{}, 1)}
	e.turn <- struct{}{}
	return e
}

// SetUnavailable makes every later Update return cause as an ErrUnavailable, before Update has run
// its function. A call with nil ends that. SetUnavailable is for tests.
func (e *Engine) SetUnavailable(cause error) {
	if cause == nil {
		e.unavailable.Store(nil)
		return
	}
	err := fmt.Errorf("%w: %w", storage.ErrUnavailable, cause)
	e.unavailable.Store(&err)
}

// Get implements storage.Reader.
func (e *Engine) Get(key []byte) ([]byte, io.Closer, error) {
	now := e.store.snapshot(e.driver.newborn())
	defer now.Close()
	return now.Get(key) // a version does not change
}

// Iterate implements storage.Reader.
func (e *Engine) Iterate(lo, hi []byte) (storage.Iterator, error) {
	at := e.store.enter()
	return &iterator{store: e.store, at: at, age: e.driver.newborn(), bounds: newBounds(lo, hi), closed: func() { e.store.leave(at) }}, nil
}

// Snapshot implements storage.Engine.
func (e *Engine) Snapshot() storage.Snapshot { return e.store.snapshot(e.driver.newborn()) }

// Latest implements storage.Engine. Every commit is durable, so Latest returns a Snapshot.
func (e *Engine) Latest() storage.Snapshot { return e.store.snapshot(e.driver.newborn()) }

// Limits implements storage.Engine.
func (e *Engine) Limits() storage.Limits { return e.driver.Limits }

// Format implements storage.Engine.
func (e *Engine) Format() storage.StoreFormat {
	e.store.mu.RLock()
	defer e.store.mu.RUnlock()
	return e.store.format()
}

// Shared implements storage.Engine.
func (e *Engine) Shared() bool { return e.driver.Shared }

// Update implements storage.Engine.
func (e *Engine) Update(ctx context.Context, _ bool, fn func(storage.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	select {
	case <-e.turn:
	case <-ctx.Done():
		return ctx.Err()
	}
	defer func() { e.turn <- struct{}{} }()
	for {
		select {
		case <-ctx.Done(): // Err is the caller's code, which may write: it is not asked while the turn is taken
			return ctx.Err()
		default:
		}
		if cause := e.unavailable.Load(); cause != nil {
			return *cause
		}
		if e.readOnly {
			return storage.ErrReadOnly
		}
		err := e.run(fn)
		if !errors.Is(err, errAgain) {
			return err
		}
	}
}

// errAgain is returned for a transaction that has read what has changed.
var errAgain = errors.New("run again")

// run runs fn once, and commits what it has staged unless what it has read has changed.
func (e *Engine) run(fn func(storage.Tx) error) error {
	tx := &transaction{store: e.store, known: e.known, sequence: e.sequence, staged: make(map[string]staged), read: make(map[string]struct{})}
	tx.at = e.store.enter()
	defer e.store.leave(tx.at)
	defer func() { // also if fn panics
		tx.over = true
		for _, d := range tx.deciders {
			d.Decided()
		}
	}()
	if err := fn(tx); err != nil {
		return err
	}
	if err := e.driver.Limits.Check(tx.sizes()); err != nil {
		return err
	}
	if err := tx.needs.Err(); err != nil {
		return err
	}
	if err := e.store.commit(tx); err != nil {
		return err
	}
	e.sequence = tx.sequence
	if len(tx.staged) > 0 {
		e.commits.Add(1)
	}
	return nil
}

// Sync implements storage.Engine: every commit is durable.
func (e *Engine) Sync(context.Context) error { return nil }

// StartSequence implements storage.Engine.
func (e *Engine) StartSequence(n uint64) {
	<-e.turn
	e.sequence = max(e.sequence, n)
	e.turn <- struct{}{}
}

// NextCommit implements storage.Engine. It reports the commits of all engines of the store.
func (e *Engine) NextCommit() (<-chan struct{}, error) {
	e.store.mu.RLock()
	defer e.store.mu.RUnlock()
	return e.store.news, nil
}

// Creating implements storage.Engine.
func (e *Engine) Creating() bool {
	e.store.mu.RLock()
	defer e.store.mu.RUnlock()
	return !e.store.created
}

// FinishCreation implements storage.Engine.
func (e *Engine) FinishCreation() error {
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	e.store.created = true
	return nil
}

// Stats implements storage.Engine.
func (e *Engine) Stats() storage.Stats {
	e.store.mu.RLock()
	defer e.store.mu.RUnlock()
	s := storage.Stats{Commits: e.commits.Load()}
	for key, all := range e.store.versions {
		for _, v := range all {
			s.MemTableBytes += uint64(len(key) + len(v.value))
		}
	}
	return s
}

// Compact implements storage.Engine.
func (e *Engine) Compact(ctx context.Context, _, _ []byte) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.store.mu.Lock()
	defer e.store.mu.Unlock()
	e.store.sweep()
	return nil
}

// Await implements storage.Engine.
func (e *Engine) Await(done <-chan struct{}) error {
	<-done
	return nil
}

// Close implements storage.Engine. The store stays.
func (e *Engine) Close() error {
	e.closing.Do(func() { e.driver.closed(e.store) })
	return nil
}
