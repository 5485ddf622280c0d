package jay

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// CollectionChange changes one RenameCollection or DropCollection.
type CollectionChange func(*collectionChange)

type collectionChange struct{ progress func(documents int64) }

// CollectionProgress has fn called after each batch, with how many documents the call
// has renamed or deleted so far.
func CollectionProgress(fn func(documents int64)) CollectionChange {
	return func(c *collectionChange) { c.progress = fn }
}

func newCollectionChange(opts []CollectionChange) collectionChange {
	c := collectionChange{progress: func(int64) {}}
	for _, option := range opts {
		if option != nil {
			option(&c)
		}
	}
	if c.progress == nil {
		c.progress = func(int64) {}
	}
	return c
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
// transaction, durable as Options.Durability says. Meanwhile every snapshot has each
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
	r := renaming{db: db, Rename: format.Rename{From: from, To: to}, collectionChange: newCollectionChange(opts)}
	if err = r.checkNames(); err == nil {
		err = ctx.Err()
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
	collectionChange
	db    *DB
	moved int64
}

func (r *renaming) checkNames() error {
	for _, name := range []string{r.From, r.To} {
		if err := metadata.CheckCollection(name); err != nil {
			return err
		}
		if name == "" || name[0] == '@' {
			return fmt.Errorf("%w: %q is no collection that can be renamed", ErrUsage, name)
		}
	}
	if r.From == r.To {
		return fmt.Errorf("%w: the names are the same", ErrUsage)
	}
	return nil
}

// isOne reports whether the names are two spellings of one collection.
func (r *renaming) isOne() bool { return format.CollectionKey(r.From) == format.CollectionKey(r.To) }

func (r *renaming) run(ctx context.Context) error {
	if !r.db.renaming.TryLock() {
		return fmt.Errorf("%w: another collection is being renamed", ErrUsage)
	}
	defer r.db.renaming.Unlock()
	if r.isOne() {
		return r.respell(ctx)
	}

	// The indexes come first: an error there has changed no document.
	begun, err := r.isBegun()
	if err != nil {
		return err
	}
	if !begun {
		if err := r.checkCollections(ctx); err != nil {
			return err
		}
	}
	if err := r.copyIndexes(ctx); err != nil {
		return err
	}
	if err := r.store(ctx); err != nil {
		return err
	}
	if err := r.moveAll(ctx); err != nil {
		return err
	}
	if err := dropIndexes(ctx, r.db, r.From); err != nil {
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
		return fmt.Errorf("%w: there is no document", ErrNotFound)
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
	indexes, err := r.db.Indexes(ctx, r.From)
	if err != nil {
		return err
	}
	if !there && len(indexes) == 0 {
		return fmt.Errorf("%w: it has neither documents nor indexes", ErrNotFound)
	}
	taken, err := r.hasDocuments(ctx, r.To)
	if taken {
		err = fmt.Errorf("%w: %q has documents: two collections would become one, which nothing could undo", ErrUsage, r.To)
	}
	return err
}

func (r *renaming) hasDocuments(ctx context.Context, name string) (bool, error) {
	found, err := readBatch(ctx, r.db, docs.Range{Collection: name, Moment: r.db.docs.Moment()}, 1)
	return len(found) > 0, err
}

// copyIndexes makes sure that the new collection has the indexes of the old one. It
// begins with none if one of them cannot be there.
func (r *renaming) copyIndexes(ctx context.Context) error {
	all, err := r.db.Indexes(ctx, r.From)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(ix IndexInfo) bool { return ix.Automatic || ix.State == IndexDropping })
	current := r.db.indexes.Load()
	for i, ix := range all { // sorted by name
		if i > 0 && format.FoldName(ix.Name) == format.FoldName(all[i-1].Name) {
			return fmt.Errorf("%w: %.100q is being replaced: wait until EnsureIndex has done so", ErrIndex, ix.Name)
		}
		if other := current.Find(r.To, ix.Name); other != nil && !catalog.IsSame(other.Info.Index, ix.Index) {
			return fmt.Errorf("%w: both collections have an index %.100q, and they differ", ErrIndexExists, ix.Name)
		}
	}
	declared := make([]Index, len(all))
	for i, ix := range all {
		declared[i] = ix.Index
	}
	return r.db.EnsureIndexes(ctx, r.To, declared)
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
	for {
		found, err := readBatch(ctx, r.db, over, changeDocuments)
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
		r.progress(r.moved)
	}
}

func (r *renaming) move(ctx context.Context, found []*docs.Document) (int, error) {
	if err := r.db.env.Enter(); err != nil {
		return 0, err
	}
	defer r.db.env.Exit()
	return r.db.writer.Move(ctx, found, r.To)
}

// readBatch returns the first documents of a range, at most n and about changeBytes,
// as they are now, on disk or not: a write depends on them, which comes after them.
func readBatch(ctx context.Context, db *DB, over docs.Range, n int) ([]*docs.Document, error) {
	w, err := db.startScan(over, db.env.Engine.Latest)
	if err != nil {
		return nil, err
	}
	defer w.Close()
	var found []*docs.Document
	for size := 0; len(found) < n && size < changeBytes; {
		doc, err := w.Next(ctx)
		if err != nil {
			return nil, err
		}
		if doc == nil {
			break
		}
		size += len(doc.JSON())
		found = append(found, doc)
	}
	return found, nil
}

// The record of a rename says that the new collection may have documents: those that
// were moved before a crash.

func renameKey(from string) []byte {
	return format.AppendKey(nil, format.SpaceMeta, format.RenamePrefix+format.CollectionKey(from))
}

// isBegun reports whether this rename, or the opposite one, was begun. It refuses
// renames of the same collections that are not finished.
func (r *renaming) isBegun() (bool, error) {
	if err := r.db.env.Enter(); err != nil {
		return false, err
	}
	defer r.db.env.Exit()
	begun := false
	from, to := format.CollectionKey(r.From), format.CollectionKey(r.To)
	lo := format.AppendKey(nil, format.SpaceMeta, format.RenamePrefix)
	lo = lo[:len(lo)-1] // without the end of a name
	it, err := r.db.env.Engine.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return false, err
	}
	for ok := it.First(); ok && err == nil; ok = it.Next() {
		var other format.Rename
		if err = json.Unmarshal(it.Value(), &other); err != nil {
			err = fmt.Errorf("record of a rename: %w: %w", ErrCorrupt, err)
			break
		}
		a, b := format.CollectionKey(other.From), format.CollectionKey(other.To)
		switch {
		case a == from && b == to, a == to && b == from:
			begun = true
		case a == from || a == to || b == from || b == to:
			err = fmt.Errorf("%w: the rename of %q to %q is not finished: repeat it, or go back by exchanging its names", ErrUsage, other.From, other.To)
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
	if err := r.db.env.Enter(); err != nil {
		return err
	}
	defer r.db.env.Exit()
	return r.db.env.Engine.Update(ctx, true, fn)
}
