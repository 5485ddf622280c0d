package indexer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// BuildChunk is how many documents one commit adds to an index, dropChunk how many
// entries one commit removes. Variables for tests.
var (
	BuildChunk = 500
	DropChunk  = 5000
)

// OnChunk, if it is set, is called before each commit of a build or a drop, with
// the context that Close ends. A variable for tests.
var OnChunk func(ctx context.Context, state index.State)

// chunkBytes is about how many bytes of entries one commit adds or removes, where
// documents and entries are few and long: writers wait for it.
const chunkBytes = 1 << 20

// Build adds all existing documents. Documents written since the index was
// declared are added by their writers. Many documents are added by tables: see
// tables.go.
func (in *Indexer) Build(t *Task) error {
	begun := time.Now()
	ctx, ix := t.Ctx, in.indexes.Load().ByNumber(t.Number)
	if ix == nil { // another process has dropped it
		return t.dropped()
	}
	if ix.Info.State == index.Ready { // another process has built it
		return nil
	}
	if ix.Unknown != nil {
		return ix.Unknown // the index stays: a version that knows its kind goes on
	}
	if err := in.passWrites(); err != nil {
		return err
	}
	// Cluster-wide commits that are under way were checked, and have claimed the values of the unique
	// indexes, before this index was there. They are applied whatever it says.
	if err := in.writer.AwaitCommits(ctx); err != nil {
		return err
	}
	if err := in.clearIngested(ix.Number); err != nil {
		return err
	}
	after, err := in.buildCursor(ix.Number)
	if err != nil {
		return err
	}
	if _, ok := in.env.Engine.(storage.Ingester); ok && after == "" && byTables(ix) {
		if many, err := in.isLarge(ix.Info.Collection); err != nil {
			return err
		} else if many {
			if err := in.buildTables(t, ix); err != nil {
				return err
			}
			in.logReady(t, begun)
			return nil
		}
	}
	in.leaveTeam(t)
	// Latest, not the durable state: a document that is committed and not yet on
	// disk would be added neither by the build nor by a later write.
	w, err := in.scan(docs.Range{Collection: ix.Info.Collection, After: after})
	if err != nil {
		return err
	}
	defer func() { w.Close() }()
	begin := after // of w
	e := NewBuildExtraction(ix)
	for more := true; more; {
		var chunk []builtDocument
		chunk, more, err = in.NextChunk(ctx, w, e)
		if errors.Is(err, storage.ErrSnapshotExpired) && after != begin {
			// The build goes on from a new moment: documents that were written since are in the index already, or are
			// read again.
			renewed, err := in.scan(docs.Range{Collection: ix.Info.Collection, After: after})
			if err != nil {
				return err
			}
			w.Close()
			w, begin, more = renewed, after, true
			continue
		}
		if err != nil {
			return err
		}
		if err := in.env.Room.Wait(ctx); err != nil {
			return err
		}
		if err := in.EnterChunk(ix, chunk); err != nil {
			return err
		}
		t.documents.Add(int64(len(chunk)))
		if len(chunk) > 0 {
			after = chunk[len(chunk)-1].foldedID
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := in.FinishBuild(t); err != nil {
		return err
	}
	in.logReady(t, begun)
	return nil
}

// logReady logs the end of a build that has begun then.
func (in *Indexer) logReady(t *Task, begun time.Time) {
	if in.env.Logger != nil {
		in.env.Logger.Info("jay: an index is ready", "dir", in.env.Dir, "collection", t.Info.Collection, "name", t.Info.Name, "documents", t.documents.Load(), "took", time.Since(begun))
	}
}

// passWrites waits for the write that is being staged. That write may have read the
// catalog before the index was in it, so the build must scan from a state after its
// commit: otherwise neither would add the document. A write of another process conflicts
// with the declaration of the index, which it has read (package shared), and runs again.
func (in *Indexer) passWrites() error {
	if err := in.env.Enter(); err != nil {
		return err
	}
	defer in.env.Exit()
	return in.env.Engine.Update(in.ctx, false, func(storage.Tx) error { return nil })
}

// buildCursor returns the ID up to which an earlier process has built the index.
func (in *Indexer) buildCursor(number uint32) (string, error) {
	if err := in.env.Enter(); err != nil {
		return "", err
	}
	defer in.env.Exit()
	value, closer, err := in.env.Engine.Get(format.IndexCursorKey(number))
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
	ix     *catalog.Index
	single *catalog.Collection // of this index only
}

func NewBuildExtraction(ix *catalog.Index) *buildExtraction {
	return &buildExtraction{ix, catalog.Only(ix)}
}

// extract returns the entries of a document. A body without an array has one entry
// in each ordered index, and MaxPerCollection of the longest are within the bounds: then
// the other indexes need not be considered.
func (e *buildExtraction) extract(db *Indexer, body []byte) (*catalog.Entries, error) {
	return e.among(db, body).ExtractForBuild(body, e.ix.Number)
}

// among returns the indexes whose entries count together.
func (e *buildExtraction) among(db *Indexer, body []byte) *catalog.Collection {
	current := db.indexes.Load()
	all := current.Of(e.ix.Collection)
	if all == nil || len(all.Indexes) == 1 || current.AllOrdered && bytes.IndexByte(body, '[') < 0 {
		return e.single
	}
	return all
}

// NextChunk reads documents and makes their entries, without a lock.
func (in *Indexer) NextChunk(ctx context.Context, w *docs.Cursor, e *buildExtraction) (chunk []builtDocument, more bool, err error) {
	size := 0
	for len(chunk) < BuildChunk && size < chunkBytes {
		doc, err := w.Next(ctx)
		if errors.Is(err, storage.ErrSnapshotExpired) && len(chunk) > 0 {
			return chunk, true, nil // the next call meets it again
		}
		if err != nil {
			return nil, false, err
		}
		if doc == nil {
			return chunk, false, nil
		}
		var entries *catalog.Entries
		if e.ix.Loads != nil { // they are made in the transaction
			size += len(doc.JSON())
		} else {
			if entries, err = e.extract(in, doc.JSON()); err != nil {
				return nil, false, fmt.Errorf("document %q: %w", doc.ID(), catalog.WithID(err, doc.ID()))
			}
			size += len(entries.Arena) + catalog.EntryBytes*len(entries.List)
		}
		node, etag := doc.Version()
		chunk = append(chunk, builtDocument{doc.ID(), doc.FoldedID(), write.Version{Node: node, Etag: etag}, entries})
	}
	return chunk, true, nil
}

// EnterChunk writes the entries of documents that have not changed since they were
// read, and the position of the build. It does not wait for the disk: a build
// repeats what a crash undoes. A drop waits for the commit: only Close cancels it.
func (in *Indexer) EnterChunk(ix *catalog.Index, chunk []builtDocument) error {
	if len(chunk) == 0 {
		return nil
	}
	if OnChunk != nil {
		OnChunk(in.ctx, index.Building)
	}
	if err := in.env.Enter(); err != nil {
		return err
	}
	defer in.env.Exit()
	single := catalog.Only(ix)
	return in.writer.Transact(in.ctx, false, func(t *write.Txn) error {
		switch now := in.indexes.Load().ByNumber(ix.Number); {
		case now == nil || now.Info.State == index.Dropping:
			return droppedError(ix.Info.Name) // by another process, which would not find these entries
		case now.Info.State == index.Ready:
			return nil // another process has built it
		}
		for _, d := range chunk {
			now, err := t.Version(d.foldedID)
			if err != nil {
				return err
			}
			if now != d.seen {
				continue // the write that changed it has added it
			}
			if ix.Loads != nil {
				if err := (write.Loads{T: t}).Enter(single, d.foldedID); err != nil {
					return fmt.Errorf("document %q: %w", d.id, err)
				}
				continue
			}
			if ix.Info.Unique {
				if err := t.MeetExpired(d.foldedID); err != nil {
					return err
				}
			}
			if err := t.StageIndexes(single, d.id, d.foldedID, &write.OldDocument{}, d.entries); err != nil {
				return err
			}
		}
		t.Tx.Set(format.IndexCursorKey(ix.Number), []byte(chunk[len(chunk)-1].foldedID), nil)
		return nil
	})
}

// isKept reports whether writes maintain an index.
func (in *Indexer) isKept(number uint32) bool {
	ix := in.indexes.Load().ByNumber(number)
	return ix != nil && ix.Info.State != index.Dropping
}

// FinishBuild makes the indexes of tasks ready, in one commit, and each in place of the one that it
// replaces, if any. The commit waits for the disk, and so for every entry.
func (in *Indexer) FinishBuild(tasks ...*Task) error {
	return in.change(func(r *catalog.Record) error {
		for _, t := range tasks {
			switch e := r.Entry(t.Number); {
			case e == nil || e.State == index.Dropping:
				return t.dropped() // by another process
			case e.State == index.Ready: // another process has built it, too
			case e.Replaces != 0:
				r.Replace(t.Number)
			default:
				r.Move(t.Number, index.Ready)
			}
		}
		return nil
	})
}

// removeIndexes removes indexes with all their entries. All of them begin to be dropped
// in one commit, and are gone in another one.
func (in *Indexer) removeIndexes(numbers []uint32) error {
	if slices.ContainsFunc(numbers, in.isKept) {
		err := in.change(func(r *catalog.Record) error {
			for _, number := range numbers {
				if e := r.Entry(number); e != nil && e.State != index.Dropping {
					r.Move(number, index.Dropping)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	for _, number := range numbers {
		if err := in.removeEntries(number); err != nil {
			return err
		}
	}
	return in.change(func(r *catalog.Record) error {
		for _, number := range numbers {
			if r.Entry(number) != nil { // else another process has dropped it, too
				r.Move(number, catalog.Gone)
			}
		}
		return nil
	})
}

// removeEntries removes the entries of an index that were there when it was called, and
// the record of its state.
func (in *Indexer) removeEntries(number uint32) error {
	for after := []byte(nil); ; {
		var err error
		if after, err = in.RemoveChunk(number, after); err != nil || after == nil {
			return err
		}
	}
}

// RemoveChunk removes some entries of an index, those behind the key after. It returns the
// last of them, or nil if there are no more: the record of the state is removed then. Without after, each chunk
// would walk over all that those before it have deleted.
func (in *Indexer) RemoveChunk(number uint32, after []byte) (last []byte, err error) {
	if OnChunk != nil {
		OnChunk(in.ctx, index.Dropping)
	}
	if err := in.env.Enter(); err != nil {
		return nil, err
	}
	defer in.env.Exit()
	lo := format.AppendIndexPrefix(nil, number)
	hi := format.PrefixEnd(lo)
	if after != nil {
		lo = append(bytes.Clone(after), 0)
	}
	err = in.env.Engine.Update(in.ctx, false, func(tx storage.Tx) error {
		left := false
		it, err := tx.Iterate(lo, hi)
		if err != nil {
			return err
		}
		n, size := 0, 0
		for ok := it.First(); ok; ok = it.Next() {
			if n++; n > DropChunk || size > chunkBytes {
				left = true
				break
			}
			size += len(it.Key())
			last = append(last[:0], it.Key()...)
			tx.Delete(it.Key())
		}
		if !left {
			last = nil
			tx.Delete(format.IndexFlagsKey(number))
			tx.Delete(format.IndexCursorKey(number))
			tx.Delete(format.IndexIngestKey(number))
		}
		return errors.Join(it.Error(), it.Close())
	})
	return last, err
}

// scan opens a cursor over the newest documents, durable or not.
func (in *Indexer) scan(over docs.Range) (*docs.Cursor, error) {
	if err := in.env.Enter(); err != nil {
		return nil, err
	}
	defer in.env.Exit()
	return in.docs.Scan(over, in.env.Engine.Latest)
}
