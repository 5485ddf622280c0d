package engine

import (
	"errors"

	"github.com/dgraph-io/badger/v4"

	"github.com/jaydb/jay/bench/fixture"
)

var badgerMaker = Maker{
	Name:     "badger",
	Module:   "github.com/dgraph-io/badger/v4",
	Synced:   "SyncWrites",
	Unsynced: "SyncWrites off, the default: in a log mapped into memory",
	Notes:    "DefaultOptions, but for the logger and BlockCacheSize, which is as large as the others' cache. Batches are transactions. Writes blindly.",
	Open:     openBadger,
}

// badgerEngine is plain Badger.
type badgerEngine struct{ db *badger.DB }

// badgerOptions are those of badger and badgerhold.
func badgerOptions(s Settings) badger.Options {
	return badger.DefaultOptions(s.Dir).WithLogger(nil).WithSyncWrites(s.Synced).WithBlockCacheSize(s.CacheBytes)
}

func openBadger(s Settings) (Engine, error) {
	db, err := badger.Open(badgerOptions(s))
	return &badgerEngine{db}, err
}

// Insert implements Engine. A transaction refers to its keys and values until it
// is committed, which is before Insert returns.
func (e *badgerEngine) Insert(docs []Doc) error {
	return e.db.Update(func(tx *badger.Txn) error {
		for i := range docs {
			if err := tx.Set(docs[i].Bytes, docs[i].Body); err != nil {
				return err
			}
		}
		return nil
	})
}

// InsertOne implements Engine.
func (e *badgerEngine) InsertOne(doc Doc) error {
	return e.db.Update(func(tx *badger.Txn) error { return tx.Set(doc.Bytes, doc.Body) })
}

// Update implements Engine.
func (e *badgerEngine) Update(docs []Doc) error { return e.Insert(docs) }

// UpdateOne implements Engine.
func (e *badgerEngine) UpdateOne(doc Doc) error { return e.InsertOne(doc) }

// Delete implements Engine.
func (e *badgerEngine) Delete(keys []Key) error {
	return e.db.Update(func(tx *badger.Txn) error {
		for i := range keys {
			if err := tx.Delete(keys[i].Bytes); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteOne implements Engine.
func (e *badgerEngine) DeleteOne(key Key) error {
	return e.db.Update(func(tx *badger.Txn) error { return tx.Delete(key.Bytes) })
}

// Get implements Engine.
func (e *badgerEngine) Get(key Key) (body []byte, err error) {
	err = e.db.View(func(tx *badger.Txn) error {
		item, err := tx.Get(key.Bytes)
		if err != nil {
			return err
		}
		body, err = item.ValueCopy(nil)
		return err
	})
	if errors.Is(err, badger.ErrKeyNotFound) {
		return nil, ErrNotFound
	}
	return body, err
}

// GetTyped implements Engine.
func (e *badgerEngine) GetTyped(key Key, into *fixture.Order) error { return decode(e, key, into) }

// Scan implements Engine.
func (e *badgerEngine) Scan(prefix string, fn Visit) error {
	return scanBadger(e.db, "", prefix, fn)
}

// scanBadger scans the keys that begin with space and prefix. The ID follows
// space.
func scanBadger(db *badger.DB, space, prefix string, fn Visit) error {
	return db.View(func(tx *badger.Txn) error {
		options := badger.DefaultIteratorOptions
		options.Prefix = []byte(space + prefix)
		it := tx.NewIterator(options)
		defer it.Close()
		id := func() string { return string(it.Item().Key()[len(space):]) }
		for it.Rewind(); it.Valid(); it.Next() {
			body, err := it.Item().ValueCopy(nil)
			if err != nil {
				return err
			}
			if err := fn(id, body); err != nil {
				return err
			}
		}
		return nil
	})
}

// Rest implements Engine.
func (e *badgerEngine) Rest() error { return e.db.Flatten(2) }

// Close implements Engine.
func (e *badgerEngine) Close() error { return e.db.Close() }
