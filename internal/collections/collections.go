// Package collections renames and drops whole collections.
//
// Both are made of batches, each of which is one transaction, and go on where they were when the
// process ended. Drop deletes what a query finds. Rename moves documents by writes of their own
// kind (write.Writer.Move), with a record of the names, so that nothing else is put together with the
// part that was moved.
package collections

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/ask"
	"github.com/jaydb/jay/internal/builder"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
)

// Drop deletes the documents of a collection, and then drops its indexes, and the computed ones that are of it alone: see DB.DropCollection
// of package jay. progress is called after each batch; nil for none.
func Drop(ctx context.Context, db *core.Database, name string, progress func(documents int64)) (documents int64, err error) {
	if db.Owner != nil {
		err = core.Ask(ctx, db, ask.DropCollection, ask.DropCollectionArguments{Name: name}, &documents, progress)
		return documents, err
	}
	if err := metadata.CheckCollection(name); err != nil {
		return 0, fmt.Errorf("drop collection: %w", err)
	}
	if name == "" || format.CollectionKey(name) == format.HiLoCollection {
		return 0, fmt.Errorf("drop collection: %w: %q cannot be dropped", ids.ErrUsage, name)
	}
	q := builder.Collection(db, name)
	if progress != nil {
		q.Progress = func(n builder.Changed) { progress(n.Documents) }
	}
	done, err := q.Delete(ctx)
	if err == nil {
		err = db.Indexer.DropComputedOf(ctx, name)
	}
	if err == nil {
		err = dropIndexes(ctx, db, name, func(index.Info) bool { return true })
	}
	if err != nil {
		return done.Documents, fmt.Errorf("drop collection %q: %w", name, err)
	}
	return done.Documents, nil
}

// dropIndexes drops the indexes of a collection that go, but for the parts of computed indexes.
func dropIndexes(ctx context.Context, db *core.Database, collection string, goes func(index.Info) bool) error {
	indexes, err := db.ListIndexes(ctx, collection)
	for _, ix := range indexes {
		if err != nil {
			return err
		}
		if isPart(db, ix) || !goes(ix) {
			continue
		}
		if err = db.DropIndex(ctx, collection, ix.Name); errors.Is(err, errs.ErrIndex) {
			err = nil // another call has dropped it meanwhile
		}
	}
	return err
}

// isPart reports whether an index is a part of a computed one.
func isPart(db *core.Database, info index.Info) bool {
	ix := db.Indexes.Load().Find(info.Collection, info.Name)
	return ix != nil && ix.Part
}
