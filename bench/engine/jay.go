package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/bench/fixture"
)

var jayMaker = Maker{
	Name:     Jay,
	Module:   "github.com/jaydb/jay",
	Synced:   "Durability: Synced, the default",
	Unsynced: "Durability: Relaxed: in the log's memory; reserved ranges of IDs are synced",
	Notes: "By its public API, default options but for the durability and, where a row says so, the cache. Checks the JSON, and that a new ID is free; " +
		"keeps metadata, change vectors and the order of changes. New documents: DB.Store and Batch.Store (HiLo IDs).",
	Queries:  true,
	Open:     openJay,
	OpenBare: openBare,
}

// collection holds every document that Jay writes here.
const collection = "Orders"

// jayEngine is Jay by its public API.
type jayEngine struct {
	settings Settings
	ctx      context.Context
	db       *jay.DB
	orders   *jay.Collection[fixture.Order]
	batches  sync.Pool // of *jay.Batch
}

// batch returns an empty batch; e.batches gets it back.
func (e *jayEngine) batch() *jay.Batch {
	if b, ok := e.batches.Get().(*jay.Batch); ok {
		b.Reset()
		return b
	}
	return &jay.Batch{}
}

// jayContext never ends.
var jayContext = context.Background()

func openJay(s Settings) (Engine, error) {
	e := &jayEngine{settings: s, ctx: jayContext}
	return e, e.open()
}

func (e *jayEngine) open() (err error) {
	options := jay.Options{
		Durability:   jay.Relaxed,
		OrderedGUIDs: e.settings.IDs == GUIDv7,
		CacheBytes:   e.settings.CacheBytes,
	}
	if e.settings.Synced {
		options.Durability = jay.Synced
	}
	if e.db, err = jay.Open(e.settings.Dir, &options); err != nil {
		return err
	}
	e.orders, err = jay.CollectionOf[fixture.Order](e.db, jay.Named(collection))
	return err
}

// Insert implements Engine.
func (e *jayEngine) Insert(docs []Doc) error {
	b := e.batch()
	defer e.batches.Put(b)
	for i := range docs {
		if e.settings.IDs == HiLo {
			b.Store(collection, docs[i].Body)
		} else {
			b.Insert("", docs[i].Body, jay.InCollection(collection))
		}
	}
	written, err := e.db.Apply(e.ctx, b)
	if err == nil && len(written) != len(docs) {
		return fmt.Errorf("%d of %d documents written", len(written), len(docs))
	}
	return err
}

// InsertOne implements Engine.
func (e *jayEngine) InsertOne(doc Doc) (err error) {
	if e.settings.IDs == HiLo {
		_, err = e.db.Store(e.ctx, collection, doc.Body)
	} else {
		_, err = e.db.Insert(e.ctx, "", doc.Body, jay.InCollection(collection))
	}
	return err
}

// Update implements Engine.
func (e *jayEngine) Update(docs []Doc) error {
	b := e.batch()
	defer e.batches.Put(b)
	for i := range docs {
		b.Replace(docs[i].Text, docs[i].Body, jay.InCollection(collection))
	}
	_, err := e.db.Apply(e.ctx, b)
	return err
}

// UpdateOne implements Engine.
func (e *jayEngine) UpdateOne(doc Doc) error {
	_, err := e.db.Replace(e.ctx, doc.Text, doc.Body, jay.InCollection(collection))
	return err
}

// Delete implements Engine.
func (e *jayEngine) Delete(keys []Key) error {
	b := e.batch()
	defer e.batches.Put(b)
	for i := range keys {
		b.Delete(keys[i].Text)
	}
	_, err := e.db.Apply(e.ctx, b)
	return err
}

// DeleteOne implements Engine.
func (e *jayEngine) DeleteOne(key Key) error { return e.db.Delete(e.ctx, key.Text) }

// Get implements Engine.
func (e *jayEngine) Get(key Key) ([]byte, error) {
	doc, err := e.db.Get(e.ctx, key.Text)
	if errors.Is(err, jay.ErrNotFound) {
		return nil, ErrNotFound
	}
	if err != nil {
		return nil, err
	}
	return doc.Body(), nil
}

// GetTyped implements Engine.
func (e *jayEngine) GetTyped(key Key, into *fixture.Order) error {
	order, err := e.orders.Get(e.ctx, key.Text)
	if err != nil {
		return err
	}
	*into = *order
	return nil
}

// Scan implements Engine.
func (e *jayEngine) Scan(prefix string, fn Visit) error {
	var doc *jay.Document
	id := func() string { return doc.ID() }
	for d, err := range e.db.Documents(e.ctx, jay.Scan{Collection: collection, Prefix: prefix}) {
		if err != nil {
			return err
		}
		doc = d
		if err := fn(id, d.Body()); err != nil {
			return err
		}
	}
	return nil
}

// forgetFiles turns a database into one of format 1, which has no record of the
// files that must exist. Otherwise Jay would report changed files as damage. The
// next Open upgrades the database to the newest format.
func forgetFiles(dir string) error {
	return errors.Join(
		os.WriteFile(filepath.Join(dir, "JAY"), []byte("jay database, format 1\n"), 0o666),
		os.Remove(filepath.Join(dir, "JAY.control")),
	)
}

// Rest implements Engine. Jay has no call that compacts: its files are
// compacted from outside.
func (e *jayEngine) Rest() error {
	if err := errors.Join(e.db.Close(), fixture.Compact(e.settings.Dir), forgetFiles(e.settings.Dir)); err != nil {
		return err
	}
	return e.open()
}

// Sync implements Syncer. A number of an identity is on disk when the call
// returns, and so are all earlier writes.
func (e *jayEngine) Sync() error {
	_, err := e.db.NextIdentity(e.ctx, "syncs")
	return err
}

// Close implements Engine.
func (e *jayEngine) Close() error { return e.db.Close() }
