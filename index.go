package jay

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// Index declares a secondary index on one collection, for EnsureIndex. Its fields
// (see package index):
//
//	Name    string    the default is the fields, joined by commas
//	Fields  []string  one to eight paths, such as "Address.City"; "-Total" is descending
//	Unique  bool      refuses a document that has the values of another one
//	Where   string    indexes only documents of which this condition is true
type Index = index.Index

// IndexState is the stage of an index's life: IndexBuilding, IndexReady or
// IndexDropping. See package index.
type IndexState = index.State

const (
	// IndexBuilding is an index to which existing documents are being added. Writes
	// maintain it already; queries do not use it yet.
	IndexBuilding = index.Building

	// IndexReady is an index that queries use.
	IndexReady = index.Ready

	// IndexDropping is an index whose entries are being removed.
	IndexDropping = index.Dropping
)

// IndexInfo is the declaration of an index and its state, as Indexes returns them. Its fields (see
// package index), and those of the embedded Index:
//
//	Index                   its declaration
//	Collection  string      the collection that it indexes
//	State       IndexState  whether it is being built, ready or being dropped
//	Automatic   bool        whether a query made it, by Options.AutoIndexes
type IndexInfo = index.Info

// UniqueError is returned for a write that would give two documents the same values
// in a unique index. Nothing was changed. errors.Is(err, ErrUnique) is true. Its
// fields (see package index):
//
//	Index       string  the name of the index
//	Collection  string  its collection
//	Value       string  the values, as a JSON array
//	ID          string  the refused document
//	Other       string  the document that has the values
type UniqueError = index.UniqueError

// indexing is what DB needs to change its indexes. See index_task.go.
type indexing struct {
	mu      sync.Mutex // never held while waiting
	tasks   map[taskKey]*indexTask
	stopped bool // no task may begin. Guarded by mu.

	ctx     context.Context // of all tasks; cancelled by Close
	stop    context.CancelFunc
	workers sync.WaitGroup // the running tasks

	changing chan struct{} // of one element, which is in it while the catalog is changed
}

// loadIndexes opens the catalog, for Open.
func (db *DB) loadIndexes() error {
	db.indexing.ctx, db.indexing.stop = context.WithCancel(context.Background())
	db.indexing.tasks = make(map[taskKey]*indexTask)
	db.indexing.changing = make(chan struct{}, 1)
	record := catalog.Record{Next: 1}
	value, closer, err := db.env.Engine.Get(format.AppendKey(nil, format.SpaceMeta, format.IndexesName))
	switch {
	case err == nil:
		err = json.Unmarshal(value, &record)
		if err := errs.First(err, closer.Close()); err != nil {
			return fmt.Errorf("record of indexes: %w: %w", ErrCorrupt, err)
		}
	case !errors.Is(err, storage.ErrNotFound):
		return err
	}
	c, err := catalog.New(record)
	if err != nil {
		return fmt.Errorf("record of indexes: %w: %w", ErrCorrupt, err)
	}
	db.indexes.Replace(c)
	return nil
}

// changeIndexes commits a new list of indexes and makes it the current one. Only
// tasks call it, and changes are serialized. edit may refuse.
func (db *DB) changeIndexes(edit func(*catalog.Record) error) error {
	in := &db.indexing
	select {
	case in.changing <- struct{}{}:
		defer func() { <-in.changing }()
	case <-in.ctx.Done():
		return in.ctx.Err()
	}
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()

	old := db.indexes.Load()
	record := catalog.Record{Next: old.Record.Next, Indexes: slices.Clone(old.Record.Indexes)}
	if err := edit(&record); err != nil {
		return err
	}
	c, err := catalog.New(record)
	if err != nil {
		return err
	}
	err = db.env.Engine.Update(in.ctx, true, func(tx storage.Tx) error {
		return env.SetJSON(tx, format.AppendKey(nil, format.SpaceMeta, format.IndexesName), record)
	})
	if err != nil {
		return err
	}
	db.indexes.Replace(c)
	return nil
}

// Indexes returns the indexes of a collection, or all of them if collection
// is "", by collection and name.
func (db *DB) Indexes(ctx context.Context, collection string) ([]IndexInfo, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := db.env.Enter(); err != nil {
		return nil, err
	}
	defer db.env.Exit()
	out := []IndexInfo{}
	for _, ix := range db.indexes.Load().All {
		if collection == "" || format.FoldName(collection) == ix.Collection {
			out = append(out, ix.Info)
		}
	}
	slices.SortFunc(out, func(a, b IndexInfo) int {
		return cmp.Or(strings.Compare(format.FoldName(a.Collection), format.FoldName(b.Collection)), strings.Compare(format.FoldName(a.Name), format.FoldName(b.Name)))
	})
	return out, nil
}
