package jay

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/collections"
	"github.com/jaydb/jay/internal/core"
)

// CollectionCount says how many documents a collection has.
type CollectionCount struct {
	Name      string `json:"name"` // as its first document has it; "@empty" for documents without a collection
	Documents int64  `json:"documents"`
}

// Collections returns all collections that have documents, sorted by name, and how
// many. The numbers are exact, those of one moment, and kept by every commit: no
// document but the first of each collection is read. Names that begin with @ belong to
// the system: @empty has the documents without a collection, and @hilo those of HiLo.
//
// A database that an older Jay has written is counted in the background when it is
// opened. Until that is done, Collections reads the metadata of all documents.
func (db *DB) Collections(ctx context.Context) ([]CollectionCount, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return collectionCounts(db.core.Collections(ctx))
}

func collectionCounts(found []core.CollectionCount, err error) ([]CollectionCount, error) {
	if err != nil {
		return nil, fmt.Errorf("collections: %w", err)
	}
	all := make([]CollectionCount, len(found))
	for i, c := range found {
		all[i] = CollectionCount(c)
	}
	return all, nil
}

// Collections is DB.Collections as the transaction sees it, with its own writes, except
// documents whose ID the commit will make. In a transaction of Update all documents join
// the read set, as with Documents, so that any write of another one is a conflict: View
// has no such cost.
func (t *Tx) Collections(ctx context.Context) ([]CollectionCount, error) {
	return collectionCounts(t.inner().Collections(ctx))
}

// DropCollection deletes the documents of a collection, and then drops its indexes. It
// returns how many documents it has deleted.
//
// The documents are deleted as by Query.Delete, in batches: meanwhile others see a
// collection that shrinks, and documents that are written after DropCollection began
// stay, with the collection but without its indexes. If ctx ends or there is an error,
// the rest of the collection and all its indexes remain: call DropCollection again to
// go on. Dropping a collection that is not there does nothing.
//
// Each deletion keeps a revision if the collection has a rule, and those that are there
// stay: Revisions.Purge removes them.
//
// The numbers of HiLo IDs go on: no ID of a dropped document is given to another one.
// So @hilo, which has the documents of those numbers, cannot be dropped (ErrUsage).
func (db *DB) DropCollection(ctx context.Context, name string, opts ...CollectionChange) (documents int64, err error) {
	return collections.Drop(ctx, &db.core, name, progressOf(opts))
}

// Count returns how many documents the collection has. On a database it is a look-up;
// in a transaction of Update, the whole collection joins the read set.
func (c *Collection[T]) Count(ctx context.Context) (int64, error) { return c.Query().Count(ctx) }

// CollectionChange changes one RenameCollection or DropCollection.
type CollectionChange func(*collectionChange)

type collectionChange struct{ progress func(documents int64) }

// CollectionProgress has fn called after each batch, with how many documents the call
// has renamed or deleted so far: committed, and on disk when the call returns.
func CollectionProgress(fn func(documents int64)) CollectionChange {
	return func(c *collectionChange) { c.progress = fn }
}

// progressOf returns what is called after each batch; nil for nothing.
func progressOf(opts []CollectionChange) func(documents int64) {
	var c collectionChange
	for _, option := range opts {
		if option != nil {
			option(&c)
		}
	}
	return c.progress
}

// RenameCollection puts all documents of a collection into another one, which must
// have none, and moves its indexes. It returns how many documents this call has moved. It is
// the one way to change the collection of a document that stays.
//
// IDs, bodies, custom metadata and attachments stay as they are. To whatever follows changes, a
// renamed document is deleted in one collection and new in the other one: it has a new
// change vector and a new time of change, and a session or a transaction that has read
// it before gets a conflict. Names that differ in case only are one collection:
// its documents are then written again with the new spelling.
//
// The documents move in batches of up to 128 documents and about 4 MiB, each of them one
// transaction; they share syncs of the disk, and are durable, as Options.Durability says,
// when RenameCollection returns. Meanwhile every snapshot has each
// document in one of the two collections, and both can be read and written.
// What is written to the old collection meanwhile moves too. A program that does not
// stop to write there keeps the collection, without its indexes.
//
// Every index of the old collection is declared on the new one before the first
// document moves, and dropped on the old one after the last; automatic ones are only
// dropped. A unique index holds for each collection at any time: if a document
// that was written meanwhile has the values of another one, RenameCollection stops
// at it with the *UniqueError.
//
// HiLo goes on as before: new IDs of the new collection begin with its own prefix and
// with number 1, unless Conventions or WithPrefix keep the old one.
//
// If ctx ends, the process ends or there is an error, the documents moved so far
// stay moved: call RenameCollection with the same names to go on, or with the names
// exchanged to go back. Until then other renames of either collection are ErrUsage.
// Names that begin with @ are ErrUsage as well, and a collection with neither documents
// nor indexes is ErrNotFound. One call runs at a time: others are ErrUsage.
func (db *DB) RenameCollection(ctx context.Context, from, to string, opts ...CollectionChange) (documents int64, err error) {
	return collections.Rename(ctx, &db.core, from, to, progressOf(opts))
}
