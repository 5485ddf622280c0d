package sqlkv

import (
	"context"
	"sync"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jaydb/jay/storage"
)

// tracker knows which keys were written since it began, as far as it was asked.
type tracker struct {
	engine *Engine
	err    error // it does not know when it began

	mu      sync.Mutex
	upto    uint64              // the newest commit that it has learned of. Guarded by mu.
	written map[string]struct{} // by commits since it began. Guarded by mu.
	all     bool                // there were too many. Guarded by mu.
}

// maxWritten is how many keys a tracker knows.
const maxWritten = 200_000

// TrackWrites implements storage.Engine.
func (e *Engine) TrackWrites() storage.WriteTracker {
	w := &tracker{engine: e, written: make(map[string]struct{})}
	w.upto, w.err = e.latest()
	w.all = w.err != nil
	return w
}

// learn reads what commits up to a number have written.
func (w *tracker) learn(ctx context.Context, c *pgx.Conn, number uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all || number <= w.upto {
		return nil
	}
	rows, err := c.Query(ctx, w.engine.sql.since, w.upto, maxForeign+2)
	if err != nil {
		return err
	}
	all, err := eachSince(rows, w.upto, func(_ uint64, keys [][]byte) {
		w.all = w.all || keys == nil || len(w.written)+len(keys) > maxWritten
		for _, key := range keys {
			w.written[string(key)] = struct{}{}
		}
	})
	w.upto = number
	if w.all = w.all || !all; w.all {
		w.written = nil
	}
	return err
}

// wrote reports whether a key was written, as far as is known.
func (w *tracker) wrote(key []byte) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, written := w.written[string(key)]
	return w.all || written
}

// NewReader implements storage.WriteTracker.
func (w *tracker) NewReader() (storage.BatchReader, error) {
	if w.err != nil {
		return nil, w.err
	}
	return &batchReader{w.engine}, nil
}

// GetMany implements storage.ManyGetter, without a snapshot. It holds one value at a time.
func (w *tracker) GetMany(keys [][]byte, found func(i int, value []byte) error) error {
	if w.err != nil {
		return w.err
	}
	e := w.engine
	m := newMany(keys, found)
	ctx, cancel := e.bounded()
	defer cancel()
	if err := e.retried(ctx, func(c *pgxpool.Conn) error { return m.read(ctx, c, &e.sql) }); err != nil {
		return e.address.explain(err)
	}
	return m.stopped
}

// Close implements storage.WriteTracker.
func (w *tracker) Close() {}

// batchReader reads many keys, each call at its own moment, as Tx.Unchanged compares what was read. It needs no snapshot: the callers that hold
// them may wait for its caller.
type batchReader struct{ engine *Engine }

// Get implements storage.BatchReader.
func (r *batchReader) Get(key []byte) (value []byte, err error) {
	err = r.ask(func(ctx context.Context, c rower) error {
		value, err = r.engine.sql.value(ctx, c, key)
		return err
	})
	return value, err
}

// Missing implements storage.BatchReader.
func (r *batchReader) Missing(keys [][]byte) (missing bool, err error) {
	if len(keys) == 0 {
		return true, nil
	}
	err = r.ask(func(ctx context.Context, c rower) error {
		found, err := r.engine.sql.anyOf(ctx, c, keys)
		missing = !found
		return err
	})
	return missing && err == nil, err
}

func (r *batchReader) ask(fn func(ctx context.Context, c rower) error) error {
	ctx, cancel := r.engine.bounded()
	defer cancel()
	err := r.engine.retried(ctx, func(c *pgxpool.Conn) error { return fn(ctx, c) })
	if err == nil || err == storage.ErrNotFound {
		return err
	}
	return r.engine.address.explain(err)
}

// Close implements storage.BatchReader.
func (r *batchReader) Close() error { return nil }
