package engine

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/cockroachdb/pebble/v2"

	"github.com/jaydb/jay/bench/fixture"
)

var pebbleMaker = Maker{
	Name:     Raw,
	Module:   "github.com/cockroachdb/pebble/v2",
	Synced:   "pebble.Sync",
	Unsynced: "pebble.NoSync: in the log's memory",
	Notes: "The limit: one key per document, its ID, and the JSON as its value; nothing validated, nothing looked up before a write. " +
		"Jay's Pebble options (bench/fixture/pebble.go). Queries: hand-written entries of a value and an ID, then gets; a scan tests with gjson.",
	Queries:  true,
	Open:     openPebble,
	OpenBare: openBare,
}

// pebbleEngine is plain Pebble.
type pebbleEngine struct {
	settings Settings
	options  *pebble.WriteOptions
	db       *fixture.DB
	indexed  bool // entries of Indexes are kept
}

func openPebble(s Settings) (Engine, error) {
	e := &pebbleEngine{settings: s, options: pebble.NoSync}
	if s.Synced {
		e.options = pebble.Sync
	}
	var err error
	e.db, err = fixture.Open(s.Dir, s.CacheBytes)
	return e, err
}

// Insert implements Engine.
func (e *pebbleEngine) Insert(docs []Doc) error {
	batch := e.db.NewBatch()
	var scratch []byte
	for i := range docs {
		err := batch.Set(docs[i].Bytes, docs[i].Body, nil)
		if err == nil && e.indexed {
			scratch, err = stage(batch, docs[i].Bytes, docs[i].Body, scratch)
		}
		if err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	return errors.Join(batch.Commit(e.options), batch.Close())
}

// InsertOne implements Engine.
func (e *pebbleEngine) InsertOne(doc Doc) error { return e.db.Set(doc.Bytes, doc.Body, e.options) }

// Update implements Engine.
func (e *pebbleEngine) Update(docs []Doc) error { return e.Insert(docs) }

// UpdateOne implements Engine.
func (e *pebbleEngine) UpdateOne(doc Doc) error { return e.InsertOne(doc) }

// Delete implements Engine.
func (e *pebbleEngine) Delete(keys []Key) error {
	batch := e.db.NewBatch()
	for i := range keys {
		if err := batch.Delete(keys[i].Bytes, nil); err != nil {
			return errors.Join(err, batch.Close())
		}
	}
	return errors.Join(batch.Commit(e.options), batch.Close())
}

// DeleteOne implements Engine.
func (e *pebbleEngine) DeleteOne(key Key) error { return e.db.Delete(key.Bytes, e.options) }

// Get implements Engine.
func (e *pebbleEngine) Get(key Key) ([]byte, error) { return e.get(key.Bytes) }

func (e *pebbleEngine) get(key []byte) ([]byte, error) {
	value, closer, err := e.db.Get(key)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	body := bytes.Clone(value)
	return body, closer.Close()
}

// GetTyped implements Engine.
func (e *pebbleEngine) GetTyped(key Key, into *fixture.Order) error { return decode(e, key, into) }

// decode is GetTyped for engines without types.
func decode(e Engine, key Key, into *fixture.Order) error {
	body, err := e.Get(key)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, into)
}

// Scan implements Engine.
func (e *pebbleEngine) Scan(prefix string, fn Visit) error {
	return e.walk(prefix, func(id func() string, value []byte) error { return fn(id, bytes.Clone(value)) })
}

// walk is Scan with values in Pebble's memory.
func (e *pebbleEngine) walk(prefix string, fn Visit) (err error) {
	o := &pebble.IterOptions{LowerBound: []byte("0"), UpperBound: []byte("z")}
	if prefix != "" {
		o.LowerBound, o.UpperBound = []byte(prefix), successor(prefix)
	}
	it, err := e.db.NewIter(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, it.Close()) }()
	id := func() string { return string(it.Key()) }
	for ok := it.First(); ok; ok = it.Next() {
		if err := fn(id, it.Value()); err != nil {
			return err
		}
	}
	return it.Error()
}

// successor returns the least text above all that begin with prefix, whose
// last byte must not be 0xff.
func successor(prefix string) []byte {
	end := []byte(prefix)
	end[len(end)-1]++
	return end
}

// Rest implements Engine, in the way that Jay needs.
func (e *pebbleEngine) Rest() error {
	err := errors.Join(e.db.Close(), fixture.Compact(e.settings.Dir))
	if err != nil {
		return err
	}
	e.db, err = fixture.Open(e.settings.Dir, e.settings.CacheBytes)
	return err
}

// Sync implements Syncer.
func (e *pebbleEngine) Sync() error { return e.db.LogData(nil, pebble.Sync) }

// Close implements Engine.
func (e *pebbleEngine) Close() error { return e.db.Close() }

// openBare opens the files in dir, and returns a function that closes them.
func openBare(dir string, cacheBytes int64) (func() error, error) {
	db, err := fixture.Open(dir, cacheBytes)
	if err != nil {
		return nil, err
	}
	return db.Close, nil
}
