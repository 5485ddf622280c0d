package sqlkv

import (
	"bytes"
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/jaydb/jay/storage"
)

// group is the transactions that share a commit. Each of them reads what those before it have staged, and below it one
// moment of the store.
type group struct {
	engine  *Engine
	conn    *pgx.Conn
	members []*member // that have run, and whose callers wait

	locked bool   // it holds the lock of the store, so that nothing changes
	begun  bool   // a transaction of the server is open
	number uint64 // of the newest commit that it reads; if begun

	cache      map[string][]byte // values that were read; nil for a key that is not there
	cacheBytes int
	reads      map[string]struct{}
	ranges     []bounds
	everything bool // as if all keys had been read: there were too many

	staged   map[string]change
	bytes    int64
	sequence uint64
	needs    storage.FeatureSet
	features string // of the store, since the group has its lock
}

const (
	maxMembers    = 256     // of a group
	maxGroupBytes = 4 << 20 // that are staged, before another member joins
	maxReads      = 200_000 // keys, and ranges, that are noted one by one
	maxCached     = 64 << 10
	maxCacheBytes = 16 << 20
)

// bounds are those of a range. hi is nil for none.
type bounds struct{ lo, hi []byte }

func (b bounds) has(key []byte) bool {
	return bytes.Compare(key, b.lo) >= 0 && (b.hi == nil || bytes.Compare(key, b.hi) < 0)
}

// errFirst is returned by what only the first transaction of a group can do: it makes the function return. It then runs again.
var errFirst = errors.New("the transaction must be the first of its group")

func (e *Engine) newGroup(conn *pgx.Conn) *group {
	return &group{engine: e, conn: conn, sequence: e.sequence.Load(),
		cache: make(map[string][]byte), reads: make(map[string]struct{}), staged: make(map[string]change)}
}

// begin begins to read one moment, and gets the value of a key, if it is not nil, in the same round trip, and those of the keys that the
// groups before have read, too.
func (g *group) begin(ctx context.Context, key []byte) error {
	if g.begun {
		return nil
	}
	keys := g.engine.hot.keys()
	if key != nil {
		keys = append(keys, key)
	}
	var b pgx.Batch
	b.Queue(g.engine.reads)
	b.Queue(g.engine.sql.newest)
	if len(keys) > 0 {
		b.Queue(g.engine.sql.getMany, keys)
	}
	answers := g.conn.SendBatch(ctx, &b)
	defer answers.Close()
	if _, err := answers.Exec(); err != nil {
		return err
	}
	if err := answers.QueryRow().Scan(&g.number); err != nil {
		return err
	}
	if len(keys) > 0 {
		rows, err := answers.Query()
		if err != nil {
			return err
		}
		for _, key := range keys {
			g.cache[string(key)] = nil
		}
		if err := eachPair(rows, func(p pair) { g.keep(p.key, p.value) }); err != nil {
			return err
		}
	}
	if err := answers.Close(); err != nil {
		return err
	}
	g.begun = true
	g.engine.saw(g.number)
	return nil
}

// keep keeps a value that was read.
func (g *group) keep(key, value []byte) {
	g.cache[string(key)] = value
	g.cacheBytes += len(key) + len(value)
}

// value returns what the next transaction of the group finds at key, or storage.ErrNotFound.
func (g *group) value(ctx context.Context, key []byte) ([]byte, error) {
	c, changed := g.staged[string(key)]
	if changed && c.add == nil {
		value, _, err := c.got()
		return value, err
	}
	value, err := g.committed(ctx, key)
	if !changed || err != nil && err != storage.ErrNotFound {
		return value, err
	}
	value, _, err = c.addedTo(value).got()
	return value, err
}

// committed returns what was committed at key before the group, or storage.ErrNotFound. It counts as read.
func (g *group) committed(ctx context.Context, key []byte) (value []byte, err error) {
	if err := g.begin(ctx, key); err != nil {
		return nil, err
	}
	value, known := g.cache[string(key)]
	if !known {
		value, err = g.engine.sql.value(ctx, g.conn, key)
		if err != nil && err != storage.ErrNotFound {
			return nil, err
		}
		if len(value) <= maxCached && g.cacheBytes < maxCacheBytes {
			g.keep(key, value)
		}
	}
	g.noted(key)
	if value == nil {
		return nil, storage.ErrNotFound
	}
	return value, nil
}

// noted notes that a key was read.
func (g *group) noted(key []byte) {
	if g.everything || g.locked {
		return
	}
	g.reads[string(key)] = struct{}{}
	g.everything = len(g.reads) > maxReads
}

// walked notes that a range was read.
func (g *group) walked(lo, hi []byte) {
	if g.everything || g.locked {
		return
	}
	g.ranges = append(g.ranges, bounds{bytes.Clone(lo), bytes.Clone(hi)})
	g.everything = len(g.ranges) > maxReads
}

// page reads a part of a range.
func (g *group) page(ctx context.Context, p pageOf) ([]pair, bool, error) {
	return g.engine.sql.page(ctx, g.conn, p)
}

// unchanged reports whether a key is as a reader of the tracker found it.
func (g *group) unchanged(ctx context.Context, w *tracker, key []byte) bool {
	if _, changed := g.staged[string(key)]; changed {
		return false
	}
	if g.begin(ctx, nil) != nil || w.learn(ctx, g.conn, g.number) != nil || w.wrote(key) {
		return false // a connection that is lost shows at the next statement
	}
	g.noted(key)
	return true
}

// stagedIn reports whether a transaction of the group has staged a key in a range.
func (g *group) stagedIn(lo, hi []byte) bool {
	b := bounds{lo, hi}
	for key := range g.staged {
		if b.has([]byte(key)) {
			return true
		}
	}
	return false
}

// join adds what a transaction has staged.
func (g *group) join(tx *transaction) {
	for key, c := range tx.staged {
		before, changed := g.staged[key]
		g.staged[key] = c.over(before, changed)
	}
	g.bytes += tx.bytes
	g.sequence = tx.sequence
	g.needs |= tx.needs.Features
}

// hasRead reports whether the group has read a key.
func (g *group) hasRead(key []byte) bool {
	if _, read := g.reads[string(key)]; read || g.everything {
		return true
	}
	for _, r := range g.ranges {
		if r.has(key) {
			return true
		}
	}
	return false
}

// sync reports whether one of the members waits for the disk.
func (g *group) sync() bool {
	for _, m := range g.members {
		if m.sync || m.tx.sync {
			return true
		}
	}
	return false
}
