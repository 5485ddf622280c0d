package engine

import (
	"errors"
	"path/filepath"
	"strings"

	"github.com/tidwall/buntdb"

	"github.com/jaydb/jay/bench/fixture"
)

var buntdbMaker = Maker{
	Name:     "buntdb",
	Module:   "github.com/tidwall/buntdb",
	Synced:   "SyncPolicy Always",
	Unsynced: "SyncPolicy Never: in the operating system's cache",
	Notes:    "In memory: all documents are in RAM, and the file is a log that is read whole when it is opened. So its reads never touch a disk, whatever the row says of a cache.",
	Open:     openBuntdb,
}

// buntdbEngine is buntdb with the ID as the key.
type buntdbEngine struct{ db *buntdb.DB }

func openBuntdb(s Settings) (Engine, error) {
	db, err := buntdb.Open(filepath.Join(s.Dir, "bunt.db"))
	if err != nil {
		return nil, err
	}
	var config buntdb.Config
	if err := db.ReadConfig(&config); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	config.SyncPolicy = buntdb.Never
	if s.Synced {
		config.SyncPolicy = buntdb.Always
	}
	return &buntdbEngine{db}, db.SetConfig(config)
}

// Insert implements Engine.
func (e *buntdbEngine) Insert(docs []Doc) error {
	return e.db.Update(func(tx *buntdb.Tx) error {
		for i := range docs {
			// A key is kept for good: one cut from a longer text would keep that too.
			if _, _, err := tx.Set(strings.Clone(docs[i].Text), string(docs[i].Body), nil); err != nil {
				return err
			}
		}
		return nil
	})
}

// InsertOne implements Engine.
func (e *buntdbEngine) InsertOne(doc Doc) error { return e.Insert([]Doc{doc}) }

// Update implements Engine.
func (e *buntdbEngine) Update(docs []Doc) error { return e.Insert(docs) }

// UpdateOne implements Engine.
func (e *buntdbEngine) UpdateOne(doc Doc) error { return e.Insert([]Doc{doc}) }

// Delete implements Engine.
func (e *buntdbEngine) Delete(keys []Key) error {
	return e.db.Update(func(tx *buntdb.Tx) error {
		for i := range keys {
			if _, err := tx.Delete(keys[i].Text); err != nil && !errors.Is(err, buntdb.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}

// DeleteOne implements Engine.
func (e *buntdbEngine) DeleteOne(key Key) error { return e.Delete([]Key{key}) }

// Get implements Engine.
func (e *buntdbEngine) Get(key Key) (body []byte, err error) {
	err = e.db.View(func(tx *buntdb.Tx) error {
		value, err := tx.Get(key.Text)
		body = []byte(value)
		return err
	})
	if errors.Is(err, buntdb.ErrNotFound) {
		return nil, ErrNotFound
	}
	return body, err
}

// GetTyped implements Engine.
func (e *buntdbEngine) GetTyped(key Key, into *fixture.Order) error { return decode(e, key, into) }

// Scan implements Engine.
func (e *buntdbEngine) Scan(prefix string, fn Visit) error {
	return e.db.View(func(tx *buntdb.Tx) error {
		var failed error
		var id string
		ids := func() string { return id }
		err := tx.AscendGreaterOrEqual("", prefix, func(key, value string) bool {
			if !strings.HasPrefix(key, prefix) {
				return false
			}
			id = key
			failed = fn(ids, []byte(value))
			return failed == nil
		})
		return errors.Join(failed, err)
	})
}

// Rest implements Engine.
func (e *buntdbEngine) Rest() error { return nil }

// Close implements Engine.
func (e *buntdbEngine) Close() error { return e.db.Close() }
