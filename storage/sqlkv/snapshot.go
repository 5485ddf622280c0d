package sqlkv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jaydb/jay/storage"
)

// snapshot is a transaction of the server that reads one moment, on a connection of its own. Its callers take turns.
type snapshot struct {
	engine *Engine
	places chan struct{}
	number uint64 // of the newest commit that it shows
	known  bool   // the snapshot was taken, so that it has a number

	mu    sync.Mutex
	timer *time.Timer   // ends it. Guarded by mu.
	conn  *pgxpool.Conn // nil once the snapshot shows nothing any more. Guarded by mu.
	err   error         // why; nil while conn is not nil. Guarded by mu.

	first map[string][]byte   // what it has read when it began; nil for a key that is not there. Guarded by mu.
	gets  map[string]struct{} // keys that it was asked for one by one, up to maxGets. Guarded by mu.
}

// A snapshot tells the next ones which keys it was asked for: up to so many, with values of up to so
// many bytes.
const (
	maxGets     = 16
	maxGetBytes = 4 << 10
)

// errClosed is the error of what is used after it was closed.
var errClosed = errors.New("sqlkv: used after Close")

// Snapshot implements storage.Engine. If the snapshot cannot be taken, its reads return the error.
func (e *Engine) Snapshot() storage.Snapshot { return e.snapshot(e.snapshots) }

// Latest implements storage.Engine. It also shows commits that are not on the server's disk yet.
func (e *Engine) Latest() storage.Snapshot { return e.snapshot(e.snapshots) }

// snapshot returns a snapshot that takes a place of those, until it ends.
func (e *Engine) snapshot(places chan struct{}) *snapshot {
	s := &snapshot{engine: e, places: places}
	ctx, cancel := e.bounded()
	defer cancel()
	select {
	case places <- struct{}{}:
	case <-ctx.Done():
		s.err = &Error{Address: e.address.String(), Kind: storage.ErrUnavailable,
			Cause: fmt.Errorf("%d snapshots are open, which is the most, and none was closed for %v", cap(places), e.timeout),
			Do:    "close snapshots and iterators sooner, or raise Driver.Connections"}
		return s
	}
	var err error
	s.conn, err = e.acquire(ctx, func(c *pgxpool.Conn) error {
		o := opening{begin: e.reads, keys: e.read.keys()}
		s.first = make(map[string][]byte, len(o.keys))
		for _, key := range o.keys {
			s.first[string(key)] = nil
		}
		err := o.send(ctx, c, &e.sql, func(p pair) { s.first[string(p.key)] = p.value })
		s.number = o.number
		return err
	})
	if err != nil {
		<-places
		s.err = e.address.explain(err)
		return s
	}
	e.saw(s.number)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.known = true
	s.timer = time.AfterFunc(e.limits.SnapshotAge, func() { s.end(storage.ErrSnapshotExpired) })
	return s
}

// end makes the snapshot show nothing from now on, and frees its connection.
func (s *snapshot) end(why error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.conn
	if c == nil {
		return
	}
	s.conn, s.err, s.first = nil, why, nil
	s.timer.Stop()
	s.engine.read.note(s.gets)
	go s.engine.giveBack(c, s.places)
}

// giveBack ends the transaction of a snapshot's connection, which nobody waits for, and then frees the
// connection and the place of the snapshot.
func (e *Engine) giveBack(c *pgxpool.Conn, places chan struct{}) {
	ctx, cancel := e.bounded()
	defer cancel()
	if !c.Conn().IsClosed() {
		if _, err := c.Exec(ctx, "rollback"); err != nil {
			c.Conn().Close(ctx) // Release then drops it
		}
	}
	c.Release()
	<-places
}

// read calls fn with the connection, and returns its error as one that names the address.
func (s *snapshot) read(fn func(ctx context.Context, c rower) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn == nil {
		return s.err
	}
	ctx, cancel := s.engine.bounded()
	defer cancel()
	err := fn(ctx, s.conn)
	if err == nil || err == storage.ErrNotFound {
		return err
	}
	if state(err) == "25P03" {
		return storage.ErrSnapshotExpired
	}
	return s.engine.address.explain(err)
}

// value returns the value of a key, or storage.ErrNotFound.
func (s *snapshot) value(key []byte) (value []byte, err error) {
	err = s.read(func(ctx context.Context, c rower) error {
		known := false
		if value, known = s.first[string(key)]; known && value == nil {
			err = storage.ErrNotFound
		} else if !known {
			value, err = s.engine.sql.value(ctx, c, key)
		}
		if len(value) <= maxGetBytes && len(s.gets) < maxGets {
			if s.gets == nil {
				s.gets = make(map[string]struct{})
			}
			s.gets[string(key)] = struct{}{}
		}
		return err
	})
	return value, err
}

// page implements pager.
func (s *snapshot) page(p pageOf) (pairs []pair, all bool, err error) {
	err = s.read(func(ctx context.Context, c rower) error {
		pairs, all, err = s.engine.sql.page(ctx, c, p)
		return err
	})
	return pairs, all, err
}

// Get implements storage.Reader.
func (s *snapshot) Get(key []byte) ([]byte, io.Closer, error) { return withCloser(s.value(key)) }

// nothing is the closer of a value that belongs to its reader.
type nothing struct{}

func (nothing) Close() error { return nil }

func withCloser(value []byte, err error) ([]byte, io.Closer, error) {
	if err != nil {
		return nil, nil, err
	}
	return value, nothing{}, nil
}

// GetMany implements storage.ManyGetter.
func (s *snapshot) GetMany(keys [][]byte, found func(i int, value []byte) error) error {
	m := newMany(keys, found)
	if err := s.read(func(ctx context.Context, c rower) error { return m.read(ctx, c, &s.engine.sql) }); err != nil {
		return err
	}
	return m.stopped
}

// Iterate implements storage.Reader.
func (s *snapshot) Iterate(lo, hi []byte) (storage.Iterator, error) {
	if err := s.why(); err != nil {
		return nil, err
	}
	return newIterator(s, lo, hi, nil), nil
}

// why returns why the snapshot shows nothing, or nil.
func (s *snapshot) why() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// WaitDurable implements storage.Snapshot.
func (s *snapshot) WaitDurable(ctx context.Context) error {
	if !s.engine.relaxed || s.known && s.number <= s.engine.durable.Load() {
		return nil
	}
	return s.engine.Sync(ctx)
}

// CommitNumber implements storage.Numbered.
func (s *snapshot) CommitNumber() (uint64, bool) {
	return s.number, s.known
}

// Close implements storage.Snapshot.
func (s *snapshot) Close() error {
	s.end(errClosed)
	return nil
}
