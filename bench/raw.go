package main

import (
	"bytes"
	"errors"
	"strconv"

	"github.com/cockroachdb/pebble/v2"
	"github.com/google/uuid"

	"github.com/jaydb/jay/bench/fixture"
)

// raw is Pebble by itself: one key per document, its ID, and as its value the
// JSON as given. Nothing is validated, nothing is looked up before a write.
type raw struct {
	dir      string
	settings settings
	options  *pebble.WriteOptions
	db       *pebble.DB
	guids    []string // of each document, if its ID is a GUID
}

func openRaw(dir string, s settings) (engine, error) {
	r := &raw{dir: dir, settings: s, options: pebble.NoSync}
	if s.synced {
		r.options = pebble.Sync
	}
	if s.ids != hilo {
		r.guids = make([]string, s.capacity)
	}
	var err error
	r.db, err = fixture.Open(dir, s.cacheBytes)
	return r, err
}

// appendNewKey makes the key of a new document.
func (r *raw) appendNewKey(dst []byte, i int) ([]byte, error) {
	var id uuid.UUID
	var err error
	switch r.settings.ids {
	case guidV4:
		id, err = uuid.NewRandom()
	case guidV7:
		id, err = uuid.NewV7()
	default:
		return r.appendKey(dst, i), nil
	}
	r.guids[i] = id.String()
	return append(dst, r.guids[i]...), err
}

// appendKey returns the key of a document that was inserted.
func (r *raw) appendKey(dst []byte, i int) []byte {
	if r.settings.ids != hilo {
		return append(dst, r.guids[i]...)
	}
	dst = append(dst, "orders/"...)
	dst = strconv.AppendInt(dst, int64(i)+1, 10)
	return append(dst, "-A"...)
}

func (r *raw) insert(first int, bodies [][]byte) error {
	batch := r.db.NewBatch()
	var key []byte
	var err error
	for i, body := range bodies {
		if key, err = r.appendNewKey(key[:0], first+i); err != nil {
			return err
		}
		if err := batch.Set(key, body, nil); err != nil {
			return err
		}
	}
	return errors.Join(batch.Commit(r.options), batch.Close())
}

func (r *raw) insertOne(i int, body []byte) error {
	key, err := r.appendNewKey(make([]byte, 0, 40), i)
	if err != nil {
		return err
	}
	return r.db.Set(key, body, r.options)
}

func (r *raw) update(numbers []int, bodies [][]byte) error {
	batch := r.db.NewBatch()
	var key []byte
	for i, number := range numbers {
		key = r.appendKey(key[:0], number)
		if err := batch.Set(key, bodies[i], nil); err != nil {
			return err
		}
	}
	return errors.Join(batch.Commit(r.options), batch.Close())
}

func (r *raw) remove(numbers []int) error {
	batch := r.db.NewBatch()
	var key []byte
	for _, number := range numbers {
		key = r.appendKey(key[:0], number)
		if err := batch.Delete(key, nil); err != nil {
			return err
		}
	}
	return errors.Join(batch.Commit(r.options), batch.Close())
}

func (r *raw) get(i int) ([]byte, error) {
	var scratch [64]byte
	value, closer, err := r.db.Get(r.appendKey(scratch[:0], i))
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, errGone
	}
	if err != nil {
		return nil, err
	}
	body := bytes.Clone(value)
	return body, closer.Close()
}

func (r *raw) scan(fn func(body []byte)) (int, error) {
	it, err := r.db.NewIter(&pebble.IterOptions{LowerBound: []byte("0"), UpperBound: []byte("z")})
	if err != nil {
		return 0, err
	}
	n := 0
	for ok := it.First(); ok; ok = it.Next() {
		fn(bytes.Clone(it.Value()))
		n++
	}
	return n, errors.Join(it.Error(), it.Close())
}

func (r *raw) restCompacted() error {
	err := errors.Join(r.db.Close(), fixture.Compact(r.dir))
	if err != nil {
		return err
	}
	r.db, err = fixture.Open(r.dir, r.settings.cacheBytes)
	return err
}

func (r *raw) close() error { return r.db.Close() }
