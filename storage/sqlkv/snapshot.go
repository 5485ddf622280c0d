package sqlkv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jaydb/jay/storage"
)

// snapshot is a transaction of the server that reads one moment, on a connection of its own. Its callers take turns.
type snapshot struct {
	engine *Engine
	number uint64 // of the newest commit that it shows
	known  bool   // the snapshot was taken, so that it has a number

	mu    sync.Mutex
	timer *time.Timer   // ends it. Guarded by mu.
	conn  *pgxpool.Conn // nil once the snapshot shows nothing any more. Guarded by mu.
	err   error         // why; nil while conn is not nil. Guarded by mu.
}

// errClosed is the error of what is used after it was closed.
var errClosed = errors.New("sqlkv: used after Close")

// Snapshot implements storage.Engine. If it cannot be taken, its reads return why.
func (e *Engine) Snapshot() storage.Snapshot { return e.snapshot() }

// Latest implements storage.Engine. What is not on the server's disk yet is shown, too.
func (e *Engine) Latest() storage.Snapshot { return e.snapshot() }

func (e *Engine) snapshot() *snapshot {
	s := &snapshot{engine: e}
	ctx, cancel := e.bounded()
	defer cancel()
	select {
	case e.snapshots <- struct{}{}:
	case <-ctx.Done():
		s.err = &Error{Address: e.address.String(), Kind: storage.ErrUnavailable,
			Cause: fmt.Errorf("%d snapshots are open, which is the most, and none was closed for %v", cap(e.snapshots), e.timeout),
			Do:    "close snapshots and iterators sooner, or raise Driver.Connections"}
		return s
	}
	var err error
	s.conn, err = e.acquire(ctx, func(c *pgxpool.Conn) error {
		var b pgx.Batch
		b.Queue(e.reads)
		b.Queue(e.sql.newest)
		answers := c.SendBatch(ctx, &b)
		_, err := answers.Exec()
		if err == nil {
			err = answers.QueryRow().Scan(&s.number)
		}
		return errors.Join(err, answers.Close())
	})
	if err != nil {
		<-e.snapshots
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
	s.conn, s.err = nil, why
	s.timer.Stop()
	ctx, cancel := s.engine.bounded()
	defer cancel()
	if !c.Conn().IsClosed() {
		if _, err := c.Exec(ctx, "rollback"); err != nil {
			c.Conn().Close(ctx) // Release then drops it
		}
	}
	c.Release()
	<-s.engine.snapshots
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
		value, err = s.engine.sql.value(ctx, c, key)
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

// manyKeys is how many keys are got by one statement at most.
const manyKeys = 1000

// GetMany implements storage.ManyGetter.
func (s *snapshot) GetMany(keys [][]byte, found func(i int, value []byte) error) error {
	for begin := 0; begin < len(keys); begin += manyKeys {
		part := keys[begin:min(begin+manyKeys, len(keys))]
		var values map[string][]byte
		err := s.read(func(ctx context.Context, c rower) (err error) {
			values, err = s.engine.sql.values(ctx, c, part)
			return err
		})
		if err != nil {
			return err
		}
		for i, key := range part {
			if value, there := values[string(key)]; there {
				if err := found(begin+i, value); err != nil {
					return err
				}
			}
		}
	}
	return nil
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
