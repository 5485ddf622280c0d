package jay

import (
	"context"
	"fmt"

	"github.com/jaydb/jay/internal/collections"
	"github.com/jaydb/jay/internal/core"
)

// CollectionCount is the number of documents of a collection.
type CollectionCount struct {
	Name      string `json:"name"` // as in its first document; "@empty" for documents without a collection
	Documents int64  `json:"documents"`
}

// Collections returns all collections that have documents, sorted by name, with the number of documents of
// each. The numbers are exact, and come from one snapshot. Every commit maintains them: Collections reads no
// documents but the first of each collection. Names that begin with @ belong to the system: @empty has the
// documents without a collection, and @hilo has the documents of HiLo.
//
// Open counts a database of an older Jay in the background. Until that is done, Collections reads the metadata
// of all documents.
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

// Collections returns the collections as the transaction sees them, as DB.Collections does. It counts the
// transaction's own writes, except documents whose ID the commit will make. In a transaction of Update all
// documents join the read set, as with Documents, so any write of another transaction is a conflict. View has
// no such cost.
func (t *Tx) Collections(ctx context.Context) ([]CollectionCount, error) {
	return collectionCounts(t.inner().Collections(ctx))
}

// DropCollection deletes the documents of a collection, and then drops its indexes. It returns the number of
// deleted documents.
//
// DropCollection deletes the documents in batches, as Query.Delete does. Other callers see the collection
// shrink. Documents that are created after DropCollection began stay, with the collection but without its
// indexes. If ctx ends or an error occurs, the rest of the collection and all its indexes remain: call
// DropCollection again to continue. Dropping a missing collection does nothing.
//
// Each deletion keeps a revision if the collection has a rule. Existing revisions stay. Revisions.Purge removes
// revisions.
//
// The numbers of HiLo IDs continue: no new document gets the ID of a dropped one. So @hilo, which has the
// documents of these numbers, cannot be dropped (ErrUsage).
func (db *DB) DropCollection(ctx context.Context, name string, opts ...CollectionChange) (documents int64, err error) {
	return collections.Drop(ctx, &db.core, name, progressOf(opts))
}

// Count returns the number of documents of the collection. On a database it costs one look-up; in a transaction
// of Update, the whole collection joins the read set.
func (c *Collection[T]) Count(ctx context.Context) (int64, error) { return c.Query().Count(ctx) }

// CollectionChange is an option of RenameCollection and DropCollection.
type CollectionChange func(*collectionChange)

type collectionChange struct{ progress func(documents int64) }

// CollectionProgress makes the call run fn after each batch, with the number of documents that it has renamed
// or deleted so far. These changes are committed, and on disk when the call returns.
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

// RenameCollection moves all documents of a collection into another collection, which must have no documents,
// and moves its indexes. It returns the number of documents that this call has moved. It is the only way to
// change the collection of a document without deleting it.
//
// IDs, bodies, custom metadata and attachments do not change. In a change feed, a renamed document is deleted
// in one collection and new in the other. It has a new change vector and a new time of change, so a session or
// a transaction that read it before gets a conflict. Names that differ only in case are one collection:
// RenameCollection then writes its documents again with the new spelling.
//
// The documents move in batches of up to 128 documents and about 4 MiB. Each batch is one transaction; batches
// share syncs of the disk, and are durable, as Options.Durability says, when RenameCollection returns. During
// the call every snapshot has each document in exactly one of the two collections, and both can be read and
// written. Documents that are written to the old collection during the call move, too. If a program keeps
// writing to the old collection, that collection continues to exist, without its indexes.
//
// RenameCollection declares every index of the old collection on the new one before the first document moves,
// and drops it on the old collection after the last; automatic indexes are only dropped. An index that is
// declared on the old collection during the call moves, too. A unique index is enforced in each collection at
// any time: if a document that was written during the call has the values of another one, RenameCollection
// stops there with a *UniqueError.
//
// RenameCollection does not change HiLo: new IDs of the new collection begin with its own prefix and with
// number 1, unless Conventions or WithPrefix keep the old prefix.
//
// If ctx or the process ends, or an error occurs, the documents moved so far stay moved: call RenameCollection
// with the same names to continue, or with the names exchanged to revert. Until then other renames of either
// collection return ErrUsage. Names that begin with @ return ErrUsage as well. A collection with neither
// documents nor indexes returns ErrNotFound. One call runs at a time: a concurrent call returns ErrUsage.
func (db *DB) RenameCollection(ctx context.Context, from, to string, opts ...CollectionChange) (documents int64, err error) {
	return collections.Rename(ctx, &db.core, from, to, progressOf(opts))
}
