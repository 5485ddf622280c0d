package jay

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// buildChunk is how many documents one commit adds to an index, dropChunk how many
// entries one commit removes. Variables for tests.
var (
	buildChunk = 500
	dropChunk  = 5000
)

// onChunk, if it is set, is called before each commit of a build or a drop, with
// the context that Close ends. A variable for tests.
var onChunk func(ctx context.Context, state IndexState)

// chunkBytes is about how many bytes of entries one commit adds or removes, where
// documents and entries are few and long: writers wait for it.
const chunkBytes = 1 << 20

// buildIndex adds all existing documents. Documents written since the index was
// declared are added by their writers.
func (db *DB) buildIndex(t *indexTask) error {
	ctx, ix := t.ctx, db.indexes.Load().ByNumber(t.number)
	if err := db.passWrites(); err != nil {
		return err
	}
	after, err := db.buildCursor(ix.Number)
	if err != nil {
		return err
	}
	// Latest, not the durable state: a document that is committed and not yet on
	// disk would be added neither by the build nor by a later write.
	w, err := db.startScan(docs.Range{Collection: ix.Info.Collection, After: after}, db.env.Engine.Latest)
	if err != nil {
		return err
	}
	defer w.Close()
	e := newBuildExtraction(ix)
	for more := true; more; {
		var chunk []builtDocument
		if chunk, more, err = db.nextChunk(ctx, w, e); err != nil {
			return err
		}
		if err := db.enterChunk(ix, chunk); err != nil {
			return err
		}
		t.documents.Add(int64(len(chunk)))
	}
	return db.finishBuild(t)
}

// passWrites waits for the write that is being staged. That write may have read the
// catalog before the index was in it, so the build must scan from a state after its
// commit: otherwise neither would add the document. This relies on the engine to
// run transactions one at a time.
func (db *DB) passWrites() error {
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	return db.env.Engine.Update(db.indexing.ctx, false, func(storage.Tx) error { return nil })
}

// buildCursor returns the ID up to which an earlier process has built the index.
func (db *DB) buildCursor(number uint32) (string, error) {
	if err := db.env.Enter(); err != nil {
		return "", err
	}
	defer db.env.Exit()
	value, closer, err := db.env.Engine.Get(format.IndexCursorKey(number))
	if err == storage.ErrNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	after := string(value)
	return after, closer.Close()
}

// builtDocument is a document as the build has read it.
type builtDocument struct {
	id, foldedID string
	seen         write.Version
	entries      *catalog.Entries
}

// buildExtraction makes the entries of one index that is being built.
type buildExtraction struct {
	ix    *catalog.Index
	alone *catalog.Collection // of this index only
}

func newBuildExtraction(ix *catalog.Index) *buildExtraction {
	alone := &catalog.Collection{Indexes: []*catalog.Index{ix}}
	alone.Prepare()
	return &buildExtraction{ix, alone}
}

// extract returns the entries of a document. A body without an array has one entry
// in each index, and MaxPerCollection of the longest are within the bounds: then
// the other indexes need not be considered.
func (e *buildExtraction) extract(db *DB, body []byte) (*catalog.Entries, error) {
	all := db.indexes.Load().Of(e.ix.Collection)
	if all == nil || len(all.Indexes) == 1 || bytes.IndexByte(body, '[') < 0 {
		return e.alone.ExtractForBuild(body, e.ix.Number)
	}
	return all.ExtractForBuild(body, e.ix.Number)
}

// nextChunk reads documents and makes their entries, without a lock.
func (db *DB) nextChunk(ctx context.Context, w *docs.Cursor, e *buildExtraction) (chunk []builtDocument, more bool, err error) {
	size := 0
	for len(chunk) < buildChunk && size < chunkBytes {
		doc, err := w.Next(ctx)
		if err != nil {
			return nil, false, err
		}
		if doc == nil {
			return chunk, false, nil
		}
		entries, err := e.extract(db, doc.JSON())
		if err != nil {
			return nil, false, fmt.Errorf("document %q: %w", doc.ID(), err)
		}
		size += len(entries.Arena) + catalog.EntryBytes*len(entries.List)
		chunk = append(chunk, builtDocument{doc.ID(), doc.FoldedID(), write.Version{Node: doc.Header().Node, Etag: doc.Header().Etag}, entries})
	}
	return chunk, true, nil
}

// enterChunk writes the entries of documents that have not changed since they were
// read, and the position of the build. It does not wait for the disk: a build
// repeats what a crash undoes. A drop waits for the commit: only Close cancels it.
func (db *DB) enterChunk(ix *catalog.Index, chunk []builtDocument) error {
	if len(chunk) == 0 {
		return nil
	}
	if onChunk != nil {
		onChunk(db.indexing.ctx, IndexBuilding)
	}
	if err := db.env.Enter(); err != nil {
		return err
	}
	defer db.env.Exit()
	return db.writer.Transact(db.indexing.ctx, false, func(t *write.Txn) error {
		for _, d := range chunk {
			now, err := t.Version(d.foldedID)
			if err != nil {
				return err
			}
			if now != d.seen {
				continue // the write that changed it has added it
			}
			if err := t.StageIndexes(nil, d.id, d.foldedID, write.OldDocument{}, d.entries); err != nil {
				return err
			}
		}
		t.Tx.Set(format.IndexCursorKey(ix.Number), []byte(chunk[len(chunk)-1].foldedID), nil)
		return nil
	})
}

// finishBuild makes the index ready. The commit waits for the disk, and so for
// every entry.
func (db *DB) finishBuild(t *indexTask) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	return db.moveIndex(t.number, IndexReady)
}

// removeIndex removes an index with all its entries.
func (db *DB) removeIndex(number uint32) error {
	if db.indexes.Load().ByNumber(number).Info.State != IndexDropping {
		if err := db.moveIndex(number, IndexDropping); err != nil {
			return err
		}
	}
	for left := true; left; {
		var err error
		if left, err = db.removeChunk(number); err != nil {
			return err
		}
	}
	return db.moveIndex(number, catalog.Gone)
}

func (db *DB) removeChunk(number uint32) (left bool, err error) {
	if onChunk != nil {
		onChunk(db.indexing.ctx, IndexDropping)
	}
	if err := db.env.Enter(); err != nil {
		return false, err
	}
	defer db.env.Exit()
	err = db.env.Engine.Update(db.indexing.ctx, false, func(tx storage.Tx) error {
		left = false
		lo := format.AppendIndexPrefix(nil, number)
		it, err := tx.Iterate(lo, format.PrefixEnd(lo))
		if err != nil {
			return err
		}
		n, size := 0, 0
		for ok := it.First(); ok; ok = it.Next() {
			if n++; n > dropChunk || size > chunkBytes {
				left = true
				break
			}
			size += len(it.Key())
			tx.Delete(bytes.Clone(it.Key()))
		}
		if !left {
			tx.Delete(format.IndexFlagsKey(number))
			tx.Delete(format.IndexCursorKey(number))
		}
		return errors.Join(it.Error(), it.Close())
	})
	return left, err
}
