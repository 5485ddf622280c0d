package collections

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/ask"
	"github.com/jaydb/jay/internal/builder"
	"github.com/jaydb/jay/internal/bulk"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/indexer"
	"github.com/jaydb/jay/internal/knobs"
	"github.com/jaydb/jay/internal/shared"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// Rename puts all documents of a collection into another one, with its indexes, and returns how
// many it has moved: see DB.RenameCollection of package jay. progress is called after each batch; nil
// for none.
func Rename(ctx context.Context, db *core.Database, from, to string, progress func(documents int64)) (documents int64, err error) {
	if db.Owner != nil {
		err = core.Ask(ctx, db, ask.RenameCollection, ask.RenameCollectionArguments{Name: from, To: to}, &documents, progress)
		return documents, err
	}
	r := renaming{db: db, Rename: format.Rename{From: from, To: to}, progress: progress}
	if err = r.checkNames(); err == nil {
		err = ctx.Err()
	}
	if err == nil && db.Env.Engine.Shared() {
		err = fmt.Errorf("%w: another process may rename it, too", shared.ErrRefused)
	}
	if err == nil {
		err = r.run(ctx)
	}
	if err != nil {
		return r.moved, fmt.Errorf("rename collection %q to %q: %w", errs.Shorten(from), errs.Shorten(to), err)
	}
	return r.moved, nil
}

// renaming is one RenameCollection.
type renaming struct {
	format.Rename
	db       *core.Database
	progress func(documents int64) // nil for none
	moved    int64
}

func (r *renaming) checkNames() error {
	for _, name := range []string{r.From, r.To} {
		if err := metadata.CheckCollection(name); err != nil {
			return err
		}
		if name == "" || name[0] == '@' {
			return fmt.Errorf("%w: %q is no collection that can be renamed", ids.ErrUsage, name)
		}
	}
	if r.From == r.To {
		return fmt.Errorf("%w: the names are the same", ids.ErrUsage)
	}
	return nil
}

// isOne reports whether the names are two spellings of one collection.
func (r *renaming) isOne() bool { return format.CollectionKey(r.From) == format.CollectionKey(r.To) }

func (r *renaming) run(ctx context.Context) error {
	if !r.db.Renaming.TryLock() {
		return fmt.Errorf("%w: another collection is being renamed", ids.ErrUsage)
	}
	defer r.db.Renaming.Unlock()
	if r.isOne() {
		return r.respell(ctx)
	}

	if err := r.checkWritable(); err != nil {
		return err
	}

	// What refuses the rename comes first, and changes nothing. Then the record, with which the rename can be continued, or taken
	// back, whatever has been done of it.
	begun, err := r.isBegun()
	if err != nil {
		return err
	}
	if !begun {
		if err := r.checkCollections(ctx); err != nil {
			return err
		}
	}
	indexes, err := r.indexes(ctx)
	if err != nil {
		return err
	}
	if err := r.db.Inside(func() error { return r.db.Schemas.CheckMove(r.db.Env, r.From, r.To) }); err != nil {
		return err
	}
	if err := r.store(ctx); err != nil {
		return err
	}

	if err := r.db.EnsureIndexes(ctx, r.To, indexes, indexer.Options{}); err != nil {
		return err
	}
	if err := r.db.Schemas.Move(ctx, r.db.Env, r.From, r.To, false); err != nil {
		return err
	}
	// Until all documents are in the new collection computed indexes are of both: so their answers have each document once.
	if err := r.db.Indexer.RetargetComputed(ctx, r.From, r.To, true); err != nil {
		return err
	}
	if err := r.moveAll(ctx); err != nil {
		return err
	}
	if err := r.db.Indexer.RetargetComputed(ctx, r.From, r.To, false); err != nil {
		return err
	}
	if err := r.dropIndexes(ctx); err != nil {
		return err
	}
	if err := r.db.Schemas.Move(ctx, r.db.Env, r.From, r.To, true); err != nil {
		return err
	}
	return r.forget(ctx)
}

// respell writes the documents again that spell the collection otherwise.
func (r *renaming) respell(ctx context.Context) error {
	there, err := r.hasDocuments(ctx, r.From)
	if err != nil {
		return err
	}
	if !there {
		return fmt.Errorf("%w: there is no document", errs.ErrNotFound)
	}
	_, err = r.pass(ctx)
	return err
}

// checkCollections checks that there is something to rename, and that it does not mix
// with another collection.
func (r *renaming) checkCollections(ctx context.Context) error {
	there, err := r.hasDocuments(ctx, r.From)
	if err != nil {
		return err
	}
	indexes, err := r.db.ListIndexes(ctx, r.From)
	if err != nil {
		return err
	}
	if !there && len(indexes) == 0 {
		return fmt.Errorf("%w: it has neither documents nor indexes", errs.ErrNotFound)
	}
	taken, err := r.hasDocuments(ctx, r.To)
	if taken {
		err = fmt.Errorf("%w: %q has documents: two collections would become one, which nothing could undo", ids.ErrUsage, r.To)
	}
	return err
}

// checkWritable returns why this program cannot write into one of the collections, as it does not know an index of it. A computed index would be
// of both collections otherwise, and the documents would stay.
func (r *renaming) checkWritable() error {
	for _, name := range []string{r.From, r.To} {
		if of := r.db.Indexes.Load().Of(format.CollectionKey(name)); of != nil && of.Unknown != nil {
			return of.Unknown
		}
	}
	return nil
}

func (r *renaming) hasDocuments(ctx context.Context, name string) (bool, error) {
	found, err := r.db.ReadBatch(ctx, docs.Range{Collection: name, Moment: r.db.Docs.Moment()}, 1, builder.ChangeBytes)
	return len(found) > 0, err
}

// indexes returns the indexes of the old collection that the new one will have. It returns an error if one of them
// cannot be there.
func (r *renaming) indexes(ctx context.Context) ([]index.Index, error) {
	all, err := r.db.ListIndexes(ctx, r.From)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(ix index.Info) bool { return ix.Automatic || ix.State == index.Dropping || isPart(r.db, ix) })
	current := r.db.Indexes.Load()
	record := current.Record.Clone()
	if _, err := record.Retarget(r.From, r.To, true); err != nil {
		return nil, err
	}
	declared := make([]index.Index, len(all))
	for i, ix := range all { // sorted by name
		if i > 0 && format.FoldName(ix.Name) == format.FoldName(all[i-1].Name) {
			return nil, fmt.Errorf("%w: %.100q is being replaced: wait until EnsureIndex has done so", errs.ErrIndex, ix.Name)
		}
		if other := current.Find(r.To, ix.Name); other != nil && !catalog.IsSame(other.Info.Index, ix.Index) {
			return nil, fmt.Errorf("%w: both collections have an index %.100q, and they differ", errs.ErrIndexExists, ix.Name)
		}
		declared[i] = ix.Index
	}
	return declared, nil
}

// dropIndexes drops the indexes of the old collection, but only those that the new one has: those that were declared
// while the documents moved are declared there first.
func (r *renaming) dropIndexes(ctx context.Context) error {
	for range renamePasses {
		declared, err := r.indexes(ctx)
		if err != nil {
			return err
		}
		if err := r.db.EnsureIndexes(ctx, r.To, declared, indexer.Options{}); err != nil {
			return err
		}
		left := false
		err = dropIndexes(ctx, r.db, r.From, func(ix index.Info) bool {
			other := r.db.Indexes.Load().Find(r.To, ix.Name)
			has := ix.Automatic || ix.State == index.Dropping || other != nil && catalog.IsSame(other.Info.Index, ix.Index)
			left = left || !has
			return has
		})
		if err != nil || !left {
			return err
		}
	}
	return nil // the old collection goes on, with what is declared again and again
}

// renamePasses is how often the old collection is walked at most: writers that do not
// stop must not keep RenameCollection from ending.
const renamePasses = 3

// moveAll moves all documents, and those that were written behind it meanwhile.
func (r *renaming) moveAll(ctx context.Context) error {
	for range renamePasses {
		n, err := r.pass(ctx)
		if err != nil || n == 0 {
			return err
		}
	}
	return nil
}

// pass moves the documents of the old collection, in the order of their IDs.
func (r *renaming) pass(ctx context.Context) (moved int, err error) {
	over := docs.Range{Collection: r.From}
	lazy := bulk.NewLazy(r.db)
	defer func() { err = lazy.Finish(ctx, err) }()
	for {
		found, err := r.db.ReadBatch(ctx, over, knobs.ChangeDocuments, builder.ChangeBytes)
		if err != nil || len(found) == 0 {
			return moved, err
		}
		over.After = found[len(found)-1].ID()
		if r.isOne() {
			kept := found[:0]
			for _, doc := range found {
				if doc.Collection() != r.To {
					kept = append(kept, doc)
				}
			}
			if found = kept; len(found) == 0 {
				continue
			}
		}
		n, err := r.move(ctx, found)
		if err != nil {
			return moved, err
		}
		moved += n
		r.moved += int64(n)
		size := 0
		for _, doc := range found {
			size += len(doc.JSON())
		}
		if err := lazy.Committed(ctx, size); err != nil {
			return moved, err
		}
		if r.progress != nil {
			r.progress(r.moved)
		}
	}
}

func (r *renaming) move(ctx context.Context, found []*docs.Document) (int, error) {
	if err := r.db.Env.Enter(); err != nil {
		return 0, err
	}
	defer r.db.Env.Exit()
	return r.db.Writer.Move(ctx, found, r.To)
}

// The record of a rename says that the new collection may have documents: those that
// were moved before a crash.

func renameKey(from string) []byte {
	return format.AppendKey(nil, format.SpaceMeta, format.RenamePrefix+format.CollectionKey(from))
}

// isBegun reports whether this rename, or the opposite one, was begun. It refuses
// renames of the same collections that are not finished.
func (r *renaming) isBegun() (bool, error) {
	if err := r.db.Env.Enter(); err != nil {
		return false, err
	}
	defer r.db.Env.Exit()
	begun := false
	from, to := format.CollectionKey(r.From), format.CollectionKey(r.To)
	lo := format.AppendKey(nil, format.SpaceMeta, format.RenamePrefix)
	lo = lo[:len(lo)-1] // without the end of a name
	it, err := r.db.Env.Engine.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return false, err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var other format.Rename
		if err = json.Unmarshal(it.Value(), &other); err != nil {
			err = fmt.Errorf("record of a rename: %w: %w", storage.ErrCorrupt, err)
			break
		}
		a, b := format.CollectionKey(other.From), format.CollectionKey(other.To)
		switch {
		case a == from && b == to, a == to && b == from:
			begun = true
		case a == from || a == to || b == from || b == to:
			err = fmt.Errorf("%w: the rename of %q to %q is not finished: repeat it, or go back by exchanging its names", ids.ErrUsage, other.From, other.To)
		}
	}
	return begun, errs.First(err, errors.Join(it.Error(), it.Close()))
}

// store records that the rename has begun, in place of the opposite one.
func (r *renaming) store(ctx context.Context) error {
	return r.change(ctx, func(tx storage.Tx) error {
		tx.Delete(renameKey(r.To))
		return env.SetJSON(tx, renameKey(r.From), r.Rename)
	})
}

// forget removes the record.
func (r *renaming) forget(ctx context.Context) error {
	return r.change(ctx, func(tx storage.Tx) error {
		tx.Delete(renameKey(r.From))
		return nil
	})
}

func (r *renaming) change(ctx context.Context, fn func(storage.Tx) error) error {
	if err := r.db.Env.Enter(); err != nil {
		return err
	}
	defer r.db.Env.Exit()
	return r.db.Env.Engine.Update(ctx, true, fn)
}
