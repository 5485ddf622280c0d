package sqlkv

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/jaydb/jay/storage"
)

const (
	maxForeign     = 1000    // commits of others that a group is compared with
	maxKeysBytes   = 1 << 20 // keys that the row of a commit holds; if they are larger, it holds none, and every group that has read anything runs again
	statementBytes = 4 << 20 // of keys and values in one statement
)

// connection returns the leader's connection, which is in no transaction.
func (e *Engine) connection(ctx context.Context) (*pgx.Conn, error) {
	e.finish()
	if e.conn != nil && !e.conn.IsClosed() {
		return e.conn, nil
	}
	w := new(watch)
	c, err := e.connect(ctx, w.on(e.config), e.timeout)
	if err != nil {
		return nil, err
	}
	if err := e.same(ctx, c); err != nil {
		c.Close(ctx)
		return nil, err
	}
	e.conn, e.watch = c, w
	if at := c.PgConn().Conn().RemoteAddr().String(); at != e.server {
		if e.server != "" {
			e.pool.Reset() // the server that it is connected to is not the primary one any more
		}
		e.server = at
	}
	return c, nil
}

// finish ends the transaction of the leader's connection, if there is one.
func (e *Engine) finish() {
	if e.conn == nil || e.conn.IsClosed() || e.conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := e.bounded()
	defer cancel()
	if _, err := e.conn.Exec(ctx, "rollback"); err != nil {
		e.drop()
	}
}

// drop closes the leader's connection.
func (e *Engine) drop() {
	if e.conn == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	e.conn.Close(ctx) // of a connection that is lost, the error says nothing new
	e.conn = nil
}

// openGroup begins a group, on a connection that works. One that is locked holds the lock of the store.
func (e *Engine) openGroup(locked bool) (*group, error) {
	if e.doubt != nil {
		if _, err := e.settle(e.doubt); err != nil && e.doubt != nil {
			return nil, err
		}
	}
	ctx, cancel := e.bounded()
	defer cancel()
	c, err := e.connection(ctx)
	if err != nil {
		return nil, e.address.explain(err)
	}
	g := e.newGroup(c)
	if !locked {
		return g, nil
	}
	return g, g.begin(ctx, nil, true)
}

// commit commits what the group has staged. An error is errAgain, or an ErrUnknownOutcome, or one
// of the server, after which nothing is committed.
func (g *group) commit() error {
	e, sync := g.engine, g.sync()
	if len(g.staged) == 0 && g.needs == 0 && (!sync || !e.relaxed || g.begun && g.number <= e.durable.Load()) {
		return nil
	}
	for _, m := range g.members {
		if !m.moves(committing, nil) {
			return errAgain // without that one
		}
	}
	ctx, cancel := e.bounded()
	defer cancel()
	current, err := g.lock(ctx)
	if err != nil {
		return err
	}
	used, err := e.parseFeatures(g.features)
	if err != nil {
		return err
	}

	relaxed := e.relaxed && !sync
	var b pgx.Batch
	if relaxed {
		b.Queue("select set_config('synchronous_commit', 'off', true)")
	}
	if used|g.needs != used {
		g.features = formatFeatures(e.known.Format(used | g.needs).Features)
		b.Queue(e.sql.feature, g.features)
	}
	token := make([]byte, 16)
	rand.Read(token)
	number := g.number + 1
	keys := g.queueWrites(&b, current)
	b.Queue(e.sql.commit, number, token, keys)
	b.Queue("commit")
	if err := e.send(ctx, &b); err != nil {
		if !undecided(err) {
			return err
		}
		e.sequence.Store(max(e.sequence.Load(), g.sequence))
		return e.resolve(&doubt{after: g.number, token: token, group: g, relaxed: relaxed}, err)
	}
	e.committed(g, number, relaxed)
	return nil
}

// committed notes that a group was committed.
func (e *Engine) committed(g *group, number uint64, relaxed bool) {
	if !relaxed {
		raise(&e.durable, number)
	}
	for _, m := range g.members {
		if m.result == (answer{}) && len(m.tx.staged) > 0 {
			e.commits.Add(1)
		}
	}
	if features := g.features; features != *e.features.Load() {
		e.features.Store(&features)
	}
	e.saw(number)
}

// lock takes the lock of the store, compares what the group has read with what others have
// committed since, and returns what is at the keys to whose numbers the group adds. From then on
// the number of the group is that of the newest commit.
func (g *group) lock(ctx context.Context) (map[string][]byte, error) {
	e := g.engine
	var adds [][]byte
	for key, c := range g.staged {
		if c.add != nil {
			adds = append(adds, []byte(key))
		}
	}
	if g.locked {
		return g.current(ctx, adds)
	}

	var b pgx.Batch
	if g.begun {
		b.Queue("rollback")
	}
	b.Queue(e.traits.commits)
	b.Queue(e.sql.lock)
	if g.begun {
		b.Queue(e.sql.since, g.number, maxForeign+2)
	} else {
		b.Queue(e.sql.newest)
	}
	if len(adds) > 0 {
		b.Queue(e.sql.getMany, adds)
	}
	answers := g.conn.SendBatch(ctx, &b)
	defer answers.Close()
	if g.begun {
		if _, err := answers.Exec(); err != nil {
			return nil, err
		}
	}
	if _, err := answers.Exec(); err != nil {
		return nil, err
	}
	if err := answers.QueryRow().Scan(&g.features); err != nil {
		return nil, err
	}
	unchanged := true
	if g.begun {
		rows, err := answers.Query()
		if err != nil {
			return nil, err
		}
		if unchanged, err = g.compare(rows); err != nil {
			return nil, err
		}
	} else if err := answers.QueryRow().Scan(&g.number); err != nil {
		return nil, err
	}
	current := make(map[string][]byte)
	if len(adds) > 0 {
		rows, err := answers.Query()
		if err != nil {
			return nil, err
		}
		if err := eachPair(rows, func(p pair) { current[string(p.key)] = p.value }); err != nil {
			return nil, err
		}
	}
	if err := answers.Close(); err != nil {
		return nil, err
	}
	if !unchanged {
		return nil, errAgain
	}
	return current, nil
}

// current returns what is at keys, while the lock is held.
func (g *group) current(ctx context.Context, keys [][]byte) (values map[string][]byte, err error) {
	unknown := slices.DeleteFunc(slices.Clone(keys), func(key []byte) bool {
		_, known := g.cache[string(key)]
		return known
	})
	if values = make(map[string][]byte); len(unknown) > 0 {
		if values, err = g.engine.sql.values(ctx, g.conn, unknown); err != nil {
			return nil, err
		}
	}
	for _, key := range keys {
		if value := g.cache[string(key)]; value != nil {
			values[string(key)] = value
		}
	}
	return values, nil
}

// compare reads the commits from that of the group on, and reports whether they wrote nothing that
// the group has read. It leaves the number of the newest one in the group.
func (g *group) compare(rows pgx.Rows) (unchanged bool, err error) {
	unchanged = true
	all, err := eachSince(rows, g.number, func(number uint64, keys [][]byte) {
		if keys == nil {
			unchanged = unchanged && len(g.reads)+len(g.ranges) == 0 && !g.everything
		} else {
			unchanged = unchanged && !slices.ContainsFunc(keys, g.hasRead)
		}
		g.number = number
	})
	return unchanged && all, err
}

// eachSince calls see with each commit behind the one with a number, in their order; keys is nil if
// the row does not hold them. The rows are those that statements.since returns for that number. It
// reports false if some commits may be missing: the row of that number, or one after it, is too old to be there, or
// there are more than maxForeign. Rows go by the times when their transactions began, which are not in the order of the numbers.
func eachSince(rows pgx.Rows, number uint64, see func(number uint64, keys [][]byte)) (all bool, err error) {
	defer rows.Close()
	whole := true
	count := 0
	for ; rows.Next(); count++ {
		var n uint64
		var keys [][]byte
		if err := rows.Scan(&n, &keys); err != nil {
			return false, err
		}
		if whole = whole && n == number+uint64(count); count > 0 {
			see(n, keys)
		}
	}
	err = rows.Err()
	return err == nil && whole && count > 0 && count < maxForeign+2, err
}

// queueWrites queues the statements that write what the group has staged. It returns the keys, or
// nil if there are too many.
func (g *group) queueWrites(b *pgx.Batch, current map[string][]byte) (keys [][]byte) {
	var set, remove writes
	keys = [][]byte{}
	keysBytes := 0
	for _, name := range slices.Sorted(maps.Keys(g.staged)) { // neighbours lie in the same pages
		key, c := []byte(name), g.staged[name]
		keys = append(keys, key)
		keysBytes += len(key)
		if c.add != nil {
			c = c.addedTo(current[name])
		}
		if c.gone {
			remove.add(key, nil)
		} else {
			set.add(key, c.value)
		}
	}
	for w := range set.parts() {
		b.Queue(g.engine.sql.set, w.keys, w.values)
	}
	for w := range remove.parts() {
		b.Queue(g.engine.sql.remove, w.keys)
	}
	if keysBytes > maxKeysBytes {
		return nil
	}
	return keys
}

// writes are keys with their values, in parts of which each is one statement.
type writes struct {
	keys, values [][]byte
}

func (w *writes) add(key, value []byte) {
	w.keys = append(w.keys, key)
	w.values = append(w.values, value)
}

// parts yields them in parts of up to statementBytes.
func (w *writes) parts() func(yield func(writes) bool) {
	return func(yield func(writes) bool) {
		begin, bytes := 0, 0
		for i := range w.keys {
			size := len(w.keys[i]) + len(w.values[i])
			if i > begin && bytes+size > statementBytes {
				if !yield(writes{w.keys[begin:i], w.values[begin:i]}) {
					return
				}
				begin, bytes = i, 0
			}
			bytes += size
		}
		if begin < len(w.keys) {
			yield(writes{w.keys[begin:], w.values[begin:]})
		}
	}
}

// send runs the statements of a batch, of which the last is the commit.
func (e *Engine) send(ctx context.Context, b *pgx.Batch) (err error) {
	e.watch.begin()
	defer func() { err = e.watch.end(err) }()
	answers := e.conn.SendBatch(ctx, b)
	n := b.Len()
	for i := range n {
		tag, err := answers.Exec()
		if err != nil {
			return errors.Join(err, answers.Close())
		}
		if i == n-1 && tag.String() != "COMMIT" {
			return errors.Join(fmt.Errorf("the server has answered the commit with %q", tag), answers.Close())
		}
	}
	return answers.Close()
}

// undecided reports whether a commit that ended with an error may have been made. A server that ends, such as one that cannot sync its log, may
// have written the commit before, and finds it when it recovers.
func undecided(err error) bool { return lost(err) || state(err) == "40003" || ended(err) }

// doubt is a commit whose answer was lost. It held the lock of the store, so that it is decided as
// soon as another transaction holds the lock.
type doubt struct {
	after   uint64 // the number of the commit before it
	token   []byte
	group   *group
	relaxed bool
}

// resolve finds out what became of a commit: for Driver.Timeout at most, while the calls wait. It
// returns nil if it was committed, and errAgain if not.
func (e *Engine) resolve(d *doubt, cause error) error {
	e.log.Warn("jay: the answer to a commit was lost; asking for its outcome", "store", e.address.String(), "error", cause)
	e.doubt = d
	e.drop() // it may be in the way
	for until := time.Now().Add(e.timeout); ; {
		committed, err := e.settle(d)
		switch {
		case err == nil && committed:
			return nil
		case err == nil:
			return errAgain
		case time.Now().After(until) || !errors.Is(err, storage.ErrUnavailable):
			return &Error{Address: e.address.String(), Kind: storage.ErrUnknownOutcome, Cause: errors.Join(cause, err), Do: "read what was to be written, to see whether it is there"}
		}
		e.pause()
	}
}

// settle asks the server what became of a commit. The transaction that takes the lock commits, too:
// when that is on the synchronous standby, all before it is, so that a commit that is found will
// not be lost.
func (e *Engine) settle(d *doubt) (committed bool, err error) {
	ctx, cancel := e.bounded()
	defer cancel()
	c, err := e.connection(ctx)
	if err != nil {
		return false, e.address.explain(err)
	}
	var known bool
	var b pgx.Batch
	b.Queue(e.traits.commits)
	b.Queue(e.sql.lock)
	b.Queue("commit")
	before := b.Len()
	b.Queue(e.sql.oldest, d.after) // after the lock, in a transaction of its own: it sees all that is decided
	b.Queue(e.sql.sinceToken, d.after, d.token)
	e.watch.begin()
	answers := c.SendBatch(ctx, &b)
	for range before {
		if err == nil {
			_, err = answers.Exec()
		}
	}
	if err == nil {
		err = errors.Join(answers.QueryRow().Scan(&known), answers.QueryRow().Scan(&committed))
	}
	if err = e.watch.end(errors.Join(err, answers.Close())); err != nil {
		if lost(err) {
			e.drop()
		}
		return false, e.address.explain(err)
	}
	e.doubt = nil
	for _, m := range d.group.members {
		m.tx.decided()
	}
	if !known && !committed {
		return false, &Error{Address: e.address.String(), Kind: storage.ErrUnknownOutcome, Do: "read what was to be written, to see whether it is there"}
	}
	if committed {
		e.committed(d.group, d.after+1, d.relaxed)
	}
	return committed, nil
}
