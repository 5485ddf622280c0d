package sqlkv

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/jaydb/jay/storage"
)

// rower runs statements that return rows: a connection, or one of a pool.
type rower interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// batcher runs several statements in one round trip: a connection, or one of a pool.
type batcher interface {
	SendBatch(ctx context.Context, b *pgx.Batch) pgx.BatchResults
}

// opening begins a transaction of the server, and reads in the same round trip what every one needs.
type opening struct {
	begin string   // the statement
	locks bool     // it takes the lock of the store
	keys  [][]byte // whose values it reads

	features string // of the store, if it is locked
	number   uint64 // of the newest commit
}

// send calls see with those of the keys that are there. What it has read, it leaves in o.
func (o *opening) send(ctx context.Context, c batcher, s *statements, see func(pair)) error {
	var b pgx.Batch
	b.Queue(o.begin)
	if o.locks {
		b.Queue(s.lock)
	}
	b.Queue(s.newest)
	if len(o.keys) > 0 {
		b.Queue(s.getMany, o.keys)
	}
	answers := c.SendBatch(ctx, &b)
	defer answers.Close()
	if _, err := answers.Exec(); err != nil {
		return err
	}
	if o.locks {
		if err := answers.QueryRow().Scan(&o.features); err != nil {
			return err
		}
	}
	if err := answers.QueryRow().Scan(&o.number); err != nil {
		return err
	}
	if len(o.keys) > 0 {
		rows, err := answers.Query()
		if err != nil {
			return err
		}
		if err := eachPair(rows, see); err != nil {
			return err
		}
	}
	return answers.Close()
}

// pair is a key with its value.
type pair struct{ key, value []byte }

// value returns the value of a key, or storage.ErrNotFound.
func (s *statements) value(ctx context.Context, c rower, key []byte) ([]byte, error) {
	value := []byte{}
	err := c.QueryRow(ctx, s.get, key).Scan(&value)
	if errors.Is(err, pgx.ErrNoRows) {
		return nil, storage.ErrNotFound
	}
	return value, err
}

// anyOf reports whether any of keys is there.
func (s *statements) anyOf(ctx context.Context, c rower, keys [][]byte) (found bool, err error) {
	err = c.QueryRow(ctx, s.any, keys).Scan(&found)
	return found, err
}

// values returns those of keys that are there.
func (s *statements) values(ctx context.Context, c rower, keys [][]byte) (map[string][]byte, error) {
	rows, err := c.Query(ctx, s.getMany, keys)
	if err != nil {
		return nil, err
	}
	found := make(map[string][]byte, len(keys))
	err = eachPair(rows, func(p pair) { found[string(p.key)] = p.value })
	return found, err
}

// many are keys of which found is called with those that are there.
type many struct {
	keys    [][]byte
	at      map[string][]int // the indexes of the keys that were not found yet
	found   func(i int, value []byte) error
	stopped error // of found
}

func newMany(keys [][]byte, found func(i int, value []byte) error) *many {
	m := &many{keys: keys, at: make(map[string][]int, len(keys)), found: found}
	for i, key := range keys {
		m.at[string(key)] = append(m.at[string(key)], i)
	}
	return m
}

// manyKeys is how many keys are got by one statement at most.
const manyKeys = 1000

// read asks for the keys, and holds one value at a time. If it fails, it may be called again: then found is not
// called twice with a key.
func (m *many) read(ctx context.Context, c rower, s *statements) error {
	for part := range slices.Chunk(m.keys, manyKeys) {
		if err := m.readPart(ctx, c, s, part); err != nil || m.stopped != nil {
			return err
		}
	}
	return nil
}

func (m *many) readPart(ctx context.Context, c rower, s *statements, part [][]byte) error {
	rows, err := c.Query(ctx, s.getMany, part)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		p := pair{value: []byte{}}
		if err := rows.Scan(&p.key, &p.value); err != nil {
			return err
		}
		for _, i := range m.at[string(p.key)] {
			if m.stopped = m.found(i, p.value); m.stopped != nil {
				return nil
			}
		}
		delete(m.at, string(p.key))
	}
	return rows.Err()
}

// eachPair calls see with each row of a key and a value. Both belong to see.
func eachPair(rows pgx.Rows, see func(pair)) error {
	defer rows.Close()
	for rows.Next() {
		p := pair{value: []byte{}}
		if err := rows.Scan(&p.key, &p.value); err != nil {
			return err
		}
		see(p)
	}
	return rows.Err()
}

// A page ends after so many bytes of values, but has one row at least.
const pageBytes = 1 << 20

// pageOf is a part of a range that is to be read: up to rows keys, from its lower bound on, or from
// its upper bound down. Without an upper bound, hi is nil.
type pageOf struct {
	lo, hi []byte
	down   bool
	rows   int
}

// page returns the keys of p in the order in which they were read, and whether they are all that there are.
func (s *statements) page(ctx context.Context, c rower, p pageOf) (pairs []pair, all bool, err error) {
	lo := p.lo
	if lo == nil {
		lo = []byte{} // nil is null
	}
	sql, args := s.forward, []any{lo, p.rows, pageBytes}
	switch {
	case p.hi != nil && p.down:
		sql, args = s.backwardTo, []any{lo, p.hi, p.rows, pageBytes}
	case p.hi != nil:
		sql, args = s.forwardTo, []any{lo, p.hi, p.rows, pageBytes}
	case p.down:
		sql = s.backward
	}
	rows, err := c.Query(ctx, sql, args...)
	if err != nil {
		return nil, false, err
	}
	bytes := 0
	err = eachPair(rows, func(p pair) {
		pairs = append(pairs, p)
		bytes += len(p.value)
	})
	return pairs, len(pairs) < p.rows && bytes < pageBytes, err
}
