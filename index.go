package jay

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/indexer"
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

// IndexOption changes one EnsureIndex.
type IndexOption func(*indexOptions)

type indexOptions struct {
	progress func(documents int64)
	replace  bool
}

// IndexProgress makes EnsureIndex report now and then how many documents have been
// added. EnsureIndexes reports it for one index after another: those that are built in one pass are
// at the same number.
func IndexProgress(fn func(documents int64)) IndexOption {
	return func(o *indexOptions) { o.progress = fn }
}

// ReplaceIndex makes EnsureIndex replace an index of the same name that is declared
// otherwise. The new one is built beside the old one, which answers queries until the
// new one is ready and is dropped then; meanwhile Indexes has both. If the process ends,
// the next Open continues. If documents refuse the new one, the old one stays.
func ReplaceIndex() IndexOption {
	return func(o *indexOptions) { o.replace = true }
}

// EnsureIndex makes sure that a collection has an index, and returns nil only when
// the index is ready. An existing index is left as it is; one of the same name with
// another declaration is ErrIndexExists, unless ReplaceIndex is among opts.
//
// A new index is built while reads and writes continue. If ctx ends before it is
// ready, EnsureIndex returns its error and the build continues; if the process
// ends, the next Open continues it. If documents violate the uniqueness, or have
// more entries than an index can hold, EnsureIndex returns the *UniqueError or
// *DocumentError and there is no index.
//
// EnsureIndex continues what an earlier call has left unfinished. If an index of
// the name is being dropped, it waits and then builds the index anew; if a build
// has failed with the disk, it builds again. If the index is dropped while
// EnsureIndex waits for it, the error is ErrIndex.
func (db *DB) EnsureIndex(ctx context.Context, collection string, ix Index, opts ...IndexOption) error {
	return db.EnsureIndexes(ctx, collection, []Index{ix}, opts...)
}

// EnsureIndexes makes sure that a collection has these indexes, and returns nil only when
// all are ready. Those that are new are declared in one commit and built in one pass over the
// documents, which takes much less time than one EnsureIndex after another.
//
// If one of the declarations is invalid or is refused with ErrIndexExists, nothing
// is changed. Otherwise each index ends as EnsureIndex would end it: documents that refuse one of
// them, by its uniqueness or its bounds, do not keep the others from becoming ready. The error joins those of
// all indexes that are not. Two declarations of one name must be the same.
func (db *DB) EnsureIndexes(ctx context.Context, collection string, indexes []Index, opts ...IndexOption) error {
	var o indexOptions
	for _, option := range opts {
		option(&o)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	infos, err := declarations(collection, indexes)
	if err != nil {
		return fmt.Errorf("index %s: %w", collection, err)
	}
	all, err := db.indexer.EnsureAll(infos, o.replace)
	if err != nil {
		return fmt.Errorf("index %s: %w", collection, err)
	}
	var failed []error
	for i, info := range infos {
		if err := db.awaitIndex(ctx, info, all[i], &o); err != nil {
			failed = append(failed, err)
		}
		if ctx.Err() != nil {
			break // the others would return the same
		}
	}
	if len(failed) == 1 {
		return failed[0]
	}
	return errors.Join(failed...)
}

// declarations returns the canonical form of indexes of a collection, each name once.
func declarations(collection string, indexes []Index) ([]IndexInfo, error) {
	var infos []IndexInfo
	places := make(map[string]int) // in infos, by folded name
	for _, ix := range indexes {
		ix, err := catalog.Canonical(ix, collection)
		if err != nil {
			return nil, err
		}
		at, found := places[format.FoldName(ix.Name)]
		if !found {
			places[format.FoldName(ix.Name)] = len(infos)
			infos = append(infos, IndexInfo{Index: ix, Collection: collection})
		} else if !catalog.IsSame(infos[at].Index, ix) {
			return nil, fmt.Errorf("%w: two indexes of the name %.100q, with the fields %v and %v", ErrIndex, ix.Name, infos[at].Fields, ix.Fields)
		}
	}
	return infos, nil
}

// awaitIndex waits until an index is ready, or cannot become so.
func (db *DB) awaitIndex(ctx context.Context, info IndexInfo, a indexer.Awaitable, o *indexOptions) error {
	for a.What != indexer.IsReady {
		if err := a.Task.Wait(ctx, o.progress); err != nil {
			return err
		}
		if a.What == indexer.IsMade {
			return a.Task.BuildErr
		}
		if a.What == indexer.IsRemoved && a.Task.DropErr != nil {
			return fmt.Errorf("index %.100q of %s, which is being dropped: %w", info.Name, info.Collection, a.Task.DropErr)
		}
		var err error
		if a.Task, a.What, err = db.indexer.Ensure(info, o.replace); err != nil {
			return fmt.Errorf("index %s: %w", info.Collection, err)
		}
	}
	return nil
}

// DropIndex removes an index of a collection and its entries. Queries that have
// begun are not affected; a build in progress is cancelled, and its EnsureIndex
// returns ErrIndex. DropIndex returns ErrIndex if there is no such index. If ctx
// ends before the index is removed, DropIndex returns its error and the drop
// continues; if the process ends, the next Open continues it.
func (db *DB) DropIndex(ctx context.Context, collection, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := db.indexer.Drop(collection, name)
	if err == nil {
		if err := t.Wait(ctx, nil); err != nil {
			return err
		}
		err = t.DropErr
	}
	if err != nil {
		return fmt.Errorf("drop index %.100q of %s: %w", name, collection, err)
	}
	return nil
}
