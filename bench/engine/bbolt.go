package engine

import (
	"bytes"
	"errors"
	"path/filepath"

	"go.etcd.io/bbolt"

	"github.com/jaydb/jay/bench/fixture"
)

var bboltMaker = Maker{
	Name:     "bbolt",
	Module:   "go.etcd.io/bbolt",
	Synced:   "NoSync off, the default; several writers: DB.Batch with its defaults, MaxBatchSize 1,000 and MaxBatchDelay 10 ms; one writer: DB.Update",
	Unsynced: "NoSync: in the operating system's cache; DB.Update",
	Notes:    "Options otherwise at their defaults; mmap, so it has no cache of its own to bound. Writes blindly.",
	Open:     func(s Settings) (Engine, error) { return openBbolt(s, 0) },
}

// A batch that never waits for its 10 ms is the best case of DB.Batch, which
// takes an application that knows its number of writers.
var bboltTunedMaker = Maker{
	Name:         "bbolt-tuned",
	Module:       "go.etcd.io/bbolt",
	Synced:       "DB.Batch with MaxBatchSize = the number of writers, so that it doesn't wait once they all do",
	Unsynced:     "not run",
	Notes:        "bbolt, where several goroutines write durably.",
	OnlyTogether: true,
	Open:         func(s Settings) (Engine, error) { return openBbolt(s, s.Writers) },
}

var bucketName = []byte("orders")

// bboltEngine is bbolt with one bucket.
type bboltEngine struct {
	db      *bbolt.DB
	batched bool
}

// openBbolt opens bbolt; a batch of batchSize begins at once. 0 stands for the
// default.
func openBbolt(s Settings, batchSize int) (Engine, error) {
	db, err := bbolt.Open(filepath.Join(s.Dir, "bolt.db"), 0o644, &bbolt.Options{NoSync: !s.Synced})
	if err != nil {
		return nil, err
	}
	if batchSize > 0 {
		db.MaxBatchSize = batchSize
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		_, err := tx.CreateBucketIfNotExists(bucketName)
		return err
	})
	return &bboltEngine{db: db, batched: s.Synced && s.Writers > 1}, err
}

// one runs a small transaction, together with others if there are any.
func (e *bboltEngine) one(fn func(*bbolt.Tx) error) error {
	if e.batched {
		return e.db.Batch(fn)
	}
	return e.db.Update(fn)
}

// Insert implements Engine.
func (e *bboltEngine) Insert(docs []Doc) error {
	return e.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(bucketName)
		for i := range docs {
			if err := bucket.Put(docs[i].Bytes, docs[i].Body); err != nil {
				return err
			}
		}
		return nil
	})
}

// InsertOne implements Engine.
func (e *bboltEngine) InsertOne(doc Doc) error {
	return e.one(func(tx *bbolt.Tx) error { return tx.Bucket(bucketName).Put(doc.Bytes, doc.Body) })
}

// Update implements Engine.
func (e *bboltEngine) Update(docs []Doc) error { return e.Insert(docs) }

// UpdateOne implements Engine.
func (e *bboltEngine) UpdateOne(doc Doc) error { return e.InsertOne(doc) }

// Delete implements Engine.
func (e *bboltEngine) Delete(keys []Key) error {
	return e.db.Update(func(tx *bbolt.Tx) error {
		bucket := tx.Bucket(bucketName)
		for i := range keys {
			if err := bucket.Delete(keys[i].Bytes); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteOne implements Engine.
func (e *bboltEngine) DeleteOne(key Key) error {
	return e.one(func(tx *bbolt.Tx) error { return tx.Bucket(bucketName).Delete(key.Bytes) })
}

// Get implements Engine.
func (e *bboltEngine) Get(key Key) (body []byte, err error) {
	err = e.db.View(func(tx *bbolt.Tx) error {
		body = bytes.Clone(tx.Bucket(bucketName).Get(key.Bytes))
		return nil
	})
	if err == nil && body == nil {
		return nil, ErrNotFound
	}
	return body, err
}

// GetTyped implements Engine.
func (e *bboltEngine) GetTyped(key Key, into *fixture.Order) error { return decode(e, key, into) }

// Scan implements Engine.
func (e *bboltEngine) Scan(prefix string, fn Visit) error {
	return e.db.View(func(tx *bbolt.Tx) error {
		cursor := tx.Bucket(bucketName).Cursor()
		k, v := cursor.Seek([]byte(prefix))
		id := func() string { return string(k) }
		for ; k != nil && bytes.HasPrefix(k, []byte(prefix)); k, v = cursor.Next() {
			if err := fn(id, bytes.Clone(v)); err != nil {
				return err
			}
		}
		return nil
	})
}

// Rest implements Engine: there is nothing to wait for.
func (e *bboltEngine) Rest() error { return nil }

// Close implements Engine.
func (e *bboltEngine) Close() error { return errors.Join(e.db.Sync(), e.db.Close()) }
