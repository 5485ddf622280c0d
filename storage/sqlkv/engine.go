package sqlkv

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/jaydb/jay/storage"
)

// Engine is a store on a server that this process has open. Other processes may have it open, too.
type Engine struct {
	options
	address address
	config  *pgx.ConnConfig // of its connections
	sql     statements
	id      []byte // of the store
	ctx     context.Context
	cancel  context.CancelFunc
	closing sync.Once
	workers sync.WaitGroup

	pool      *pgxpool.Pool // for reads
	snapshots chan struct{} // has an element for each that is open
	iterators chan struct{} // the same of iterators that have a snapshot of their own
	read      hot           // by snapshots
	suspected atomic.Int64  // when suspect made the connections anew: nanoseconds since 1970

	newest   atomic.Uint64 // the highest number of a commit that this process has seen
	durable  atomic.Uint64 // the number of a commit that is on the server's disk with all before it
	finished atomic.Bool   // the creation was seen to be finished
	features atomic.Pointer[string]

	commits  atomic.Uint64
	sequence atomic.Uint64
	news     news
	line     line

	// Of the leader alone.
	conn     *pgx.Conn // or nil
	watch    *watch    // of conn
	server   string    // that conn, or the one before, is connected to
	expected int       // members that have just been answered
	hot      hot
	asked    int    // how often the group before asked the server for a key or a page
	doubt    *doubt // a commit whose outcome is not known yet; or nil
}

// open opens the store at an address, and makes it if there is none, unless it must exist.
func open(a address, o options, mustExist bool) (_ *Engine, err error) {
	e := &Engine{options: o, address: a, sql: newStatements(a.schema, o.traits), snapshots: make(chan struct{}, o.connections-2), iterators: make(chan struct{}, 1)}
	e.config = o.overHosts(a)
	e.config.ValidateConnect = e.notBehind(e.config.ValidateConnect)
	e.ctx, e.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			e.cancel()
		}
	}()
	ctx, cancel := e.bounded()
	defer cancel()
	first, err := o.connect(ctx, e.config, o.timeout)
	if err != nil {
		return nil, a.explain(err)
	}
	defer func() { first.Close(ctx) }()
	if err := o.checkServer(ctx, a, first); err != nil {
		return nil, err
	}
	r, err := o.find(ctx, a, first, &e.sql, mustExist)
	if err != nil {
		return nil, err
	}
	e.id = r.id
	e.finished.Store(r.created)
	e.features.Store(&r.features)
	if e.pool, err = e.newPool(ctx); err != nil {
		return nil, a.explain(err)
	}
	if !o.readOnly {
		e.workers.Go(e.prune)
	}
	return e, nil
}

// newPool returns the connections for reads. They are made when they are needed.
func (e *Engine) newPool(ctx context.Context) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig("") // only its defaults are used
	if err != nil {
		return nil, err
	}
	config.ConnConfig = e.config
	config.PingTimeout = e.timeout / 4 // of a connection that was not used for a second
	config.MaxConns = int32(e.connections)
	config.MinConns = 0
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		if err := e.set(ctx, c, e.limits.SnapshotAge+e.timeout); err != nil {
			return err
		}
		return e.same(ctx, c)
	}
	return pgxpool.NewWithConfig(ctx, config)
}

// bounded returns the context of a call that has none.
func (e *Engine) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(e.ctx, e.timeout)
}

// retried calls fn with a connection of the pool, as acquire does, and gives the connection back.
func (e *Engine) retried(ctx context.Context, fn func(c *pgxpool.Conn) error) error {
	c, err := e.acquire(ctx, fn)
	if err == nil {
		c.Release()
	}
	return err
}

// acquire returns a connection of the pool for which fn has returned no error. If one turns out to
// be lost, as the server was restarted, all others of the pool may be so, too: then it calls fn
// once more with a new one.
func (e *Engine) acquire(ctx context.Context, fn func(c *pgxpool.Conn) error) (*pgxpool.Conn, error) {
	for attempt := 0; ; attempt++ {
		c, err := e.pool.Acquire(ctx)
		if err != nil {
			e.suspect(ctx)
			return nil, err
		}
		if err = fn(c); err == nil {
			return c, nil
		}
		gone := lost(err) && err != storage.ErrNotFound
		if gone || c.Conn().PgConn().TxStatus() != 'I' {
			c.Conn().Close(ctx)
		}
		c.Release()
		if !gone || attempt > 0 || ctx.Err() != nil {
			e.suspect(ctx)
			return nil, err
		}
		e.pool.Reset()
	}
}

// suspect lets the pool make its connections anew if the server has not answered within
// Driver.Timeout: it may be cut off, and then it does not answer on the others either. It does so
// once in that time, as a server that is only busy would become busier.
func (e *Engine) suspect(ctx context.Context) {
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return
	}
	now := time.Now().UnixNano()
	if before := e.suspected.Load(); now-before > int64(e.timeout) && e.suspected.CompareAndSwap(before, now) {
		e.pool.Reset()
	}
}

// saw notes that the commit with this number is there.
func (e *Engine) saw(number uint64) {
	if raise(&e.newest, number) {
		e.news.tell()
	}
}

// raise raises a number to n, and reports false if it is not lower.
func raise(number *atomic.Uint64, n uint64) bool {
	for {
		old := number.Load()
		if old >= n {
			return false
		}
		if number.CompareAndSwap(old, n) {
			return true
		}
	}
}

// Get implements storage.Reader.
func (e *Engine) Get(key []byte) ([]byte, io.Closer, error) {
	ctx, cancel := e.bounded()
	defer cancel()
	var value []byte
	err := e.retried(ctx, func(c *pgxpool.Conn) (err error) {
		value, err = e.sql.value(ctx, c, key)
		return err
	})
	if err != nil && err != storage.ErrNotFound {
		err = e.address.explain(err)
	}
	return withCloser(value, err)
}

// Iterate implements storage.Reader. One such iterator can be open at a time, on one of the two connections that snapshots leave. So a transaction that reads
// the store's definitions anew does not wait for a snapshot of a caller that waits for the transaction.
func (e *Engine) Iterate(lo, hi []byte) (storage.Iterator, error) {
	s := e.snapshot(e.iterators)
	if err := s.why(); err != nil {
		return nil, err
	}
	return newIterator(s, lo, hi, s.Close), nil
}

// Limits implements storage.Engine.
func (e *Engine) Limits() storage.Limits { return e.limits }

// Shared implements storage.Engine.
func (e *Engine) Shared() bool { return true }

// Format implements storage.Engine. It asks the server. If the server does not answer, Format
// returns the last known answer.
func (e *Engine) Format() storage.StoreFormat {
	r, err := e.record()
	if err == nil {
		e.features.Store(&r.features)
	}
	used, err := e.parseFeatures(*e.features.Load())
	if err != nil {
		return storage.StoreFormat{Number: e.known.Newest() + 1}
	}
	return e.known.Format(used)
}

// record reads the row of table store.
func (e *Engine) record() (r record, err error) {
	ctx, cancel := e.bounded()
	defer cancel()
	err = e.retried(ctx, func(c *pgxpool.Conn) (err error) {
		r, err = e.sql.record(ctx, c)
		return err
	})
	return r, e.address.explain(err)
}

// Creating implements storage.Engine. If the server does not answer, Creating returns the state at
// Open.
func (e *Engine) Creating() bool {
	if e.finished.Load() {
		return false
	}
	if r, err := e.record(); err == nil && r.created {
		e.finished.Store(true)
	}
	return !e.finished.Load()
}

// FinishCreation implements storage.Engine.
func (e *Engine) FinishCreation() error {
	if e.readOnly {
		return storage.ErrReadOnly
	}
	ctx, cancel := e.bounded()
	defer cancel()
	err := e.retried(ctx, func(c *pgxpool.Conn) error {
		_, err := c.Exec(ctx, e.sql.finish) // which may be done twice
		return err
	})
	if err != nil {
		return e.address.explain(err)
	}
	e.finished.Store(true)
	return nil
}

// Stats implements storage.Engine. It has no figures of the server's disk: use the server's own
// tools.
func (e *Engine) Stats() storage.Stats { return storage.Stats{Commits: e.commits.Load()} }

// Compact implements storage.Engine. It does nothing, because the server frees space on its own.
func (e *Engine) Compact(ctx context.Context, _, _ []byte) error { return ctx.Err() }

// Await implements storage.Engine: every call ends with its context, or after Driver.Timeout.
func (e *Engine) Await(done <-chan struct{}) error {
	<-done
	return nil
}

// Close implements storage.Engine.
func (e *Engine) Close() (err error) {
	e.closing.Do(func() {
		if e.relaxed && e.commits.Load() > 0 && e.newest.Load() > e.durable.Load() {
			ctx, cancel := e.bounded()
			err = e.Sync(ctx)
			cancel()
		}
		e.cancel()
		e.workers.Wait()
		e.drop()
		closed := make(chan struct{})
		go func() {
			e.pool.Close() // waits for connections that snapshots hold
			close(closed)
		}()
		select {
		case <-closed:
		case <-time.After(e.timeout):
		}
	})
	return err
}
