package sqlkv

import (
	"bytes"
	"context"
	"errors"
	"slices"

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
	asked      int // how often the server was asked for a key or a page
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
	maxAhead      = 1000 // keys that are read ahead at a time
	maxAsked      = 8    // further questions to the server that a group may have while it holds the lock from the beginning
)

// bounds are those of a range. hi is nil for none.
type bounds struct{ lo, hi []byte }

func (b bounds) has(key []byte) bool {
	return bytes.Compare(key, b.lo) >= 0 && (b.hi == nil || bytes.Compare(key, b.hi) < 0)
}

// errFirst is returned by what only the first transaction of a group can do: it makes the function
// return. It then runs again.
var errFirst = errors.New("the transaction must be the first of its group")

func (e *Engine) newGroup(conn *pgx.Conn) *group {
	return &group{engine: e, conn: conn, sequence: e.sequence.Load(),
		cache: make(map[string][]byte), reads: make(map[string]struct{}), staged: make(map[string]change)}
}

// readAhead gets the keys that the next members will probably read, and those of the calls that wait, if
// they may join.
func (g *group) readAhead(members []*member, join bool) error {
	if !g.lacks(members[0].keys) {
		return nil
	}
	if join {
		members = append(slices.Clone(members), g.engine.line.first(maxMembers)...)
	}
	var keys [][]byte
	for _, m := range members {
		for _, key := range m.keys {
			if len(keys) < maxAhead && g.lacks([][]byte{key}) {
				keys = append(keys, key)
			}
		}
	}
	ctx, cancel := g.engine.bounded()
	defer cancel()
	if !g.begun {
		return g.begin(ctx, keys, g.engine.traits.eager && g.engine.asked <= maxAsked)
	}
	rows, err := g.conn.Query(ctx, g.engine.sql.getMany, keys)
	if err != nil {
		return err
	}
	g.absent(keys)
	return eachPair(rows, g.found)
}

// lacks reports whether the group would ask the server for one of keys.
func (g *group) lacks(keys [][]byte) bool {
	return g.cacheBytes < maxCacheBytes && slices.ContainsFunc(keys, func(key []byte) bool {
		_, known := g.cache[string(key)]
		c, changed := g.staged[string(key)]
		return !known && (!changed || c.add != nil)
	})
}

// begin begins to read one moment, and gets the values of keys in the same round trip, and those of the
// keys that the groups before have read, too. If it locks, it takes the lock of the store: nothing changes
// from then on.
func (g *group) begin(ctx context.Context, keys [][]byte, locks bool) error {
	if g.begun {
		return nil
	}
	e := g.engine
	o := opening{begin: e.reads, locks: locks, keys: append(e.hot.keys(), keys...)}
	if locks {
		o.begin = e.traits.commits
	}
	g.absent(o.keys)
	if err := o.send(ctx, g.conn, &e.sql, g.found); err != nil {
		return err
	}
	g.begun, g.locked, g.number, g.features = true, locks, o.number, o.features
	e.saw(g.number)
	return nil
}

// absent notes that keys are not there, until they are found.
func (g *group) absent(keys [][]byte) {
	for _, key := range keys {
		g.cache[string(key)] = nil
	}
}

// found keeps a value that was read ahead. A long one is read when it is needed.
func (g *group) found(p pair) {
	if delete(g.cache, string(p.key)); len(p.value) <= maxCached && g.cacheBytes < maxCacheBytes {
		g.keep(p.key, p.value)
	}
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
	if err := g.begin(ctx, [][]byte{key}, false); err != nil {
		return nil, err
	}
	value, known := g.cache[string(key)]
	if !known {
		g.asked++
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
	if g.everything {
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
	g.asked++
	return g.engine.sql.page(ctx, g.conn, p)
}

// unchanged reports whether a key is as a reader of the tracker found it.
func (g *group) unchanged(ctx context.Context, w *tracker, key []byte) bool {
	if _, changed := g.staged[string(key)]; changed {
		return false
	}
	if g.begin(ctx, nil, false) != nil || w.learn(ctx, g.conn, g.number) != nil || w.wrote(key) {
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
