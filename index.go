package jay

import (
	"context"
	"fmt"
	"slices"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/indexer"
)

// Index declares a secondary index on one collection, for EnsureIndex. Its fields
// (see package index):
//
//	Name    string    the default is the fields, joined by commas
//	Fields  []string  one to eight paths, such as "Address.City"; "-Total" is descending
//	Unique  bool      refuses a document that has the values of another one
//	Where   string    indexes only documents of which this condition is true
//	Kind    string    its kind; "" for an ordered index, the only one there is
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

// KindError is returned for an index of a kind that this version does not know: by
// EnsureIndex, and by writes into a collection that a newer version has given one. Nothing
// was changed. errors.Is(err, ErrIndex) is true. Its fields (see package index):
//
//	Index       string  the name of the index
//	Collection  string  its collection
//	Kind        string  its kind
type KindError = index.KindError

// Indexes returns the indexes of a collection, or all of them if collection
// is "", by collection and name.
func (db *DB) Indexes(ctx context.Context, collection string) ([]IndexInfo, error) {
	return db.core.ListIndexes(ctx, collection)
}

// IndexOption changes one EnsureIndex.
type IndexOption func(*indexOptions)

type indexOptions struct{ inner indexer.Options }

// IndexProgress makes EnsureIndex report now and then how many documents have been
// added. EnsureIndexes reports it for one index after another: those that are built in one pass are
// at the same number.
func IndexProgress(fn func(documents int64)) IndexOption {
	return func(o *indexOptions) { o.inner.Progress = fn }
}

// ReplaceIndex makes EnsureIndex replace an index of the same name that is declared
// otherwise. The new one is built beside the old one, which answers queries until the
// new one is ready and is dropped then; meanwhile Indexes has both. If the process ends,
// the next Open continues. If documents refuse the new one, the old one stays.
func ReplaceIndex() IndexOption {
	return func(o *indexOptions) { o.inner.Replace = true }
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
	return db.core.Indexer.EnsureIndexes(ctx, collection, indexes, o.inner)
}

// DropIndex removes an index of a collection and its entries. Queries that have
// begun are not affected; a build in progress is cancelled, and its EnsureIndex
// returns ErrIndex. DropIndex returns ErrIndex if there is no such index. If ctx
// ends before the index is removed, DropIndex returns its error and the drop
// continues; if the process ends, the next Open continues it.
func (db *DB) DropIndex(ctx context.Context, collection, name string) error {
	return db.core.Indexer.DropIndex(ctx, collection, name)
}

// EnsureIndexes makes sure that the collection has the indexes declared by the tags
// of T's fields, and returns when all are ready:
//
//	type User struct {
//		ID    string
//		Email string    `jay:"unique"`
//		City  string    `jay:"index,index=byCityAndAge"`
//		Born  time.Time `jay:"index=byCityAndAge,desc"`
//		Tags  []string  `jay:"index"`
//		Home  Address   // fields of its own may be tagged, too
//	}
//
// "index" and "unique" declare an index on the field; with a name, all fields with
// that name form one index, in the order of the struct. A name has letters, digits, _, -, . and
// /. "desc" makes the field descending in the declaration before it. Both words, "index,unique", declare one unique
// index. Fields of type time.Time, of pointers to it and of slices of it are entered as
// instants.
//
// An existing index that is declared otherwise now, as by a Jay that entered times as
// text, is replaced: see ReplaceIndex. Indexes that are no longer declared are kept. See
// DB.EnsureIndex for the rest. Indexes are no part of a transaction: on a collection
// from In EnsureIndexes returns ErrUsage.
func (c *Collection[T]) EnsureIndexes(ctx context.Context, opts ...IndexOption) error {
	db, ok := c.via.(*DB)
	if !ok {
		return fmt.Errorf("%w: EnsureIndexes in a transaction", ErrUsage)
	}
	declared, err := c.DeclaredIndexes()
	if err != nil {
		return err
	}
	opts = append(slices.Clip(opts), ReplaceIndex())
	return db.EnsureIndexes(ctx, c.m.Collection, declared, opts...)
}

// DeclaredIndexes returns the indexes declared by the tags of T's fields, in the
// order of the fields. It returns ErrIndex for an invalid tag.
func (c *Collection[T]) DeclaredIndexes() ([]Index, error) {
	return catalog.Tagged(c.m.Type, c.m.Collection)
}
