package sqlkv

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/jaydb/jay/storage"
)

// rower runs statements that return rows: a connection, or one of a pool.
type rower interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
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

// pageOf is a part of a range that is to be read: up to rows keys, from its lower bound on, or from its upper bound down. Without an upper
// bound, hi is nil.
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
