package jay

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/storage"
)

// build is the making of an index, or its removal, under way.
type build struct {
	done      chan struct{} // closed at the end
	err       error         // why it failed. Valid once done is closed.
	documents atomic.Int64  // entered so far by this process
	ctx       context.Context
	cancel    context.CancelFunc
	building  bool // not dropping
}

// IndexOption changes one EnsureIndex.
type IndexOption func(*indexOptions)

type indexOptions struct {
	progress  func(documents int64)
	automatic bool
}

// IndexProgress makes EnsureIndex tell now and then how many documents have
// been looked at.
func IndexProgress(fn func(documents int64)) IndexOption {
	return func(o *indexOptions) { o.progress = fn }
}

// EnsureIndex makes sure that a collection has an index, and returns when it
// is ready. An index that is there already is left as it is; one of the same
// name with another declaration is ErrIndexExists: drop it first.
//
// A new index is built while reads and writes go on. If ctx ends before it is
// ready, EnsureIndex returns its error and the build goes on; if the process
// ends, the next Open goes on. If documents break the uniqueness that is
// asked for, EnsureIndex returns the *UniqueError and there is no index.
func (db *DB) EnsureIndex(ctx context.Context, collection string, ix Index, opts ...IndexOption) error {
	var o indexOptions
	for _, option := range opts {
		option(&o)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := db.declare(ctx, collection, ix, o.automatic)
	if err != nil {
		return fmt.Errorf("index %s: %w", collection, err)
	}
	return b.wait(ctx, o.progress)
}

// declare returns the build of an index, starting it if the index is new; nil
// if the index is ready.
func (db *DB) declare(ctx context.Context, collection string, ix Index, automatic bool) (*build, error) {
	ix, err := ix.canonical(collection)
	if err != nil {
		return nil, err
	}
	if err := db.enter(); err != nil {
		return nil, err
	}
	defer db.exit()
	in := &db.indexing
	in.changing.Lock()
	defer in.changing.Unlock()
	if in.stopped {
		return nil, ErrClosed
	}

	if old := db.indexes().find(collection, ix.Name); old != nil {
		switch {
		case !old.info.Index.equal(ix):
			return nil, fmt.Errorf("%w: %q has the fields %v, unique %v, where %q", ErrIndexExists, ix.Name, old.info.Fields, old.info.Unique, old.info.Where)
		case old.info.State == IndexDropping:
			return nil, fmt.Errorf("%w: %q is being dropped: wait until it is gone", ErrIndexExists, ix.Name)
		}
		return in.builds[old.number], nil
	}
	if automatic && db.indexes().automatic() >= db.opts.AutoIndexes {
		return nil, nil // another query was quicker
	}
	if ci := db.indexes().of(foldName(collection)); ci != nil && len(ci.indexes) >= maxIndexes {
		return nil, fmt.Errorf("%w: %s has %d indexes already, the most there can be", ErrIndex, collection, maxIndexes)
	}

	var number uint32
	c, err := db.changeIndexes(ctx, func(r *indexRecord) {
		number = r.Next
		r.Next++
		r.Indexes = append(r.Indexes, indexEntry{number, IndexInfo{Index: ix, Collection: collection, State: IndexBuilding, Automatic: automatic}})
	})
	if err != nil {
		return nil, err
	}
	return db.startBuild(c, number), nil
}

// progressEvery is how often a build tells how far it is.
const progressEvery = 200 * time.Millisecond

// wait waits for the end of a build; nil is one that has ended well.
func (b *build) wait(ctx context.Context, progress func(int64)) error {
	if b == nil {
		return nil
	}
	if progress == nil {
		progress = func(int64) {}
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-b.done:
			progress(b.documents.Load())
			return b.err
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			progress(b.documents.Load())
		}
	}
}

// startBuild runs the build of an index in the background. indexing.changing
// is held, or nothing else runs yet.
func (db *DB) startBuild(c *catalog, number uint32) *build {
	ix := c.byNumber(number)
	b := &build{done: make(chan struct{}), building: ix.info.State == IndexBuilding}
	b.ctx, b.cancel = context.WithCancel(db.indexing.ctx)
	db.indexing.builds[number] = b
	db.indexing.workers.Go(func() {
		defer close(b.done)
		defer b.cancel()
		defer func() {
			if errors.Is(b.err, context.Canceled) {
				b.err = ErrClosed // only Close cancels what runs in the background
			}
		}()
		if ix.info.State == IndexBuilding {
			b.err = db.buildIndex(ix, b)
		}
		if interrupted(b.err) {
			// Whoever drops the index goes on, or the next Open.
			if errors.Is(b.err, context.Canceled) && db.indexing.ctx.Err() == nil {
				b.err = fmt.Errorf("%w: %q was dropped while it was being built", ErrIndex, ix.info.Name)
			}
			db.endBuild(number)
			return
		}
		if b.err != nil || ix.info.State == IndexDropping {
			b.err = firstError(b.err, db.removeIndex(number))
		}
		db.endBuild(number)
	})
	return b
}

// interrupted tells whether a build ended for reasons that are not its own.
func interrupted(err error) bool {
	return errors.Is(err, ErrClosed) || errors.Is(err, ErrFailed) || errors.Is(err, ErrUnknownOutcome) || errors.Is(err, context.Canceled)
}

func (db *DB) endBuild(number uint32) {
	db.indexing.changing.Lock()
	defer db.indexing.changing.Unlock()
	delete(db.indexing.builds, number)
}

func (c *catalog) byNumber(number uint32) *index {
	i := slices.IndexFunc(c.all, func(ix *index) bool { return ix.number == number })
	if i < 0 {
		return nil
	}
	return c.all[i]
}

// resumeIndexes goes on with what the last process has left, for Open.
func (db *DB) resumeIndexes() {
	c := db.indexes()
	for _, ix := range c.all {
		if ix.info.State != IndexReady {
			db.startBuild(c, ix.number)
		}
	}
}

// stopIndexes ends what runs in the background, for Close.
func (db *DB) stopIndexes() {
	db.indexing.changing.Lock()
	db.indexing.stopped = true
	db.indexing.changing.Unlock()
	db.indexing.stop()
	db.indexing.workers.Wait()
}

// buildChunk is how many documents are entered in one commit, dropChunk how
// many entries are removed in one. Variables for tests.
var (
	buildChunk = 500
	dropChunk  = 5000
)

// buildIndex enters all documents that are there. Documents written since the
// index was declared are entered by those who write them.
func (db *DB) buildIndex(ix *index, b *build) error {
	ctx := b.ctx
	if err := db.passWrites(ctx); err != nil {
		return err
	}
	after, err := db.buildCursor(ix.number)
	if err != nil {
		return err
	}
	// Latest: a document that is committed and not yet on disk is in no later
	// write's way into the index.
	w, err := db.startScan(Scan{Collection: ix.info.Collection, After: after}, db.engine.Latest)
	if err != nil {
		return err
	}
	defer w.close()
	// The index alone: its entries are all that is to be made.
	alone := &collectionIndexes{indexes: []*index{ix}}
	alone.prepare()
	for more := true; more; {
		var chunk []builtDocument
		if chunk, more, err = nextChunk(ctx, w, alone); err != nil {
			return err
		}
		if err := db.enterChunk(ctx, ix, chunk); err != nil {
			return err
		}
		b.documents.Add(int64(len(chunk)))
	}
	return db.finishBuild(ix.number)
}

// passWrites waits for the write that is being staged. It may have looked at
// the catalog before the index was in it, and the walk of the build must begin
// behind its commit: else neither enters the document. Transactions of the
// engine run one at a time.
func (db *DB) passWrites(ctx context.Context) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.exit()
	return db.engine.Update(ctx, false, func(storage.Tx) error { return nil })
}

// buildCursor returns the ID up to which an earlier process has come.
func (db *DB) buildCursor(number uint32) (string, error) {
	if err := db.enter(); err != nil {
		return "", err
	}
	defer db.exit()
	value, closer, err := db.engine.Get(indexCursorKey(number))
	if err == storage.ErrNotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	after := string(value)
	return after, closer.Close()
}

// builtDocument is a document as the build has seen it.
type builtDocument struct {
	id, folded string
	seen       version
	entries    *entries
}

// nextChunk reads documents and makes their entries, outside of any lock.
func nextChunk(ctx context.Context, w *scan, alone *collectionIndexes) (chunk []builtDocument, more bool, err error) {
	for len(chunk) < buildChunk {
		doc, err := w.next(ctx)
		if err != nil {
			return nil, false, err
		}
		if doc == nil {
			return chunk, false, nil
		}
		entries, err := alone.extractEntries(doc.body)
		if err != nil {
			return nil, false, fmt.Errorf("document %q: %w", doc.ID(), err)
		}
		chunk = append(chunk, builtDocument{doc.ID(), doc.folded, version{doc.header.Node, doc.header.Etag}, entries})
	}
	return chunk, true, nil
}

// enterChunk writes the entries of documents that have not changed since they
// were read, and how far the build is. It waits for no disk: what a crash
// takes is done again.
func (db *DB) enterChunk(ctx context.Context, ix *index, chunk []builtDocument) error {
	if len(chunk) == 0 {
		return nil
	}
	if err := db.enter(); err != nil {
		return err
	}
	defer db.exit()
	return db.transact(ctx, false, func(t *transaction) error {
		for _, d := range chunk {
			now, err := t.version(d.folded)
			if err != nil {
				return err
			}
			if now != d.seen {
				continue // whoever changed it has entered it
			}
			if err := t.stageIndexes(nil, d.id, d.folded, oldDocument{}, d.entries); err != nil {
				return err
			}
		}
		t.tx.Set(indexCursorKey(ix.number), []byte(chunk[len(chunk)-1].folded), nil)
		return nil
	})
}

// finishBuild makes the index ready. The commit waits for the disk, and with
// it for every entry.
func (db *DB) finishBuild(number uint32) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.exit()
	db.indexing.changing.Lock()
	defer db.indexing.changing.Unlock()
	_, err := db.changeIndexes(db.indexing.ctx, func(r *indexRecord) { r.setState(number, IndexReady) })
	return err
}

func (r *indexRecord) setState(number uint32, state IndexState) {
	for i := range r.Indexes {
		if r.Indexes[i].Number == number {
			r.Indexes[i].State = state
		}
	}
}

// DropIndex removes an index of a collection and its entries. Queries that
// have begun end undisturbed; a build under way is given up, and who waits for
// it gets ErrIndex. DropIndex returns ErrIndex if there is no such index. If
// the process ends meanwhile, the next Open goes on.
func (db *DB) DropIndex(ctx context.Context, collection, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	b, err := db.drop(ctx, collection, name)
	if err != nil {
		return fmt.Errorf("drop index %q of %s: %w", name, collection, err)
	}
	return b.wait(ctx, nil)
}

func (db *DB) drop(ctx context.Context, collection, name string) (*build, error) {
	if err := db.enter(); err != nil {
		return nil, err
	}
	defer db.exit()
	in := &db.indexing
	in.changing.Lock()
	defer in.changing.Unlock()
	if in.stopped {
		return nil, ErrClosed
	}
	ix := db.indexes().find(collection, name)
	if ix == nil {
		return nil, fmt.Errorf("%w: there is none of that name", ErrIndex)
	}
	if b := in.builds[ix.number]; b != nil {
		if !b.building {
			return b, nil
		}
		in.changing.Unlock() // the end of the build takes it
		b.cancel()
		<-b.done
		in.changing.Lock()
		if in.stopped {
			return nil, ErrClosed
		}
		if ix = db.indexes().find(collection, name); ix == nil {
			return nil, nil // it has failed, and is gone
		}
	}
	c, err := db.changeIndexes(ctx, func(r *indexRecord) { r.setState(ix.number, IndexDropping) })
	if err != nil {
		return nil, err
	}
	return db.startBuild(c, ix.number), nil
}

// removeIndex removes an index, with all its entries.
func (db *DB) removeIndex(number uint32) error {
	if err := db.changeState(number, IndexDropping); err != nil {
		return err
	}
	for {
		left, err := db.removeChunk(number)
		if err != nil {
			return err
		}
		if !left {
			break
		}
	}
	return db.changeState(number, "")
}

// changeState commits a state; "" takes the index from the list.
func (db *DB) changeState(number uint32, state IndexState) error {
	if err := db.enter(); err != nil {
		return err
	}
	defer db.exit()
	db.indexing.changing.Lock()
	defer db.indexing.changing.Unlock()
	if ix := db.indexes().byNumber(number); ix == nil || ix.info.State == state {
		return nil
	}
	_, err := db.changeIndexes(db.indexing.ctx, func(r *indexRecord) {
		r.setState(number, state)
		r.Indexes = slices.DeleteFunc(r.Indexes, func(e indexEntry) bool { return e.State == "" })
	})
	return err
}

func (db *DB) removeChunk(number uint32) (left bool, err error) {
	if err := db.enter(); err != nil {
		return false, err
	}
	defer db.exit()
	err = db.engine.Update(db.indexing.ctx, false, func(tx storage.Tx) error {
		left = false
		lo := appendIndexPrefix(nil, number)
		it, err := tx.Iterate(lo, prefixEnd(lo))
		if err != nil {
			return err
		}
		n := 0
		for ok := it.First(); ok; ok = it.Next() {
			if n++; n > dropChunk {
				left = true
				break
			}
			tx.Delete(bytes.Clone(it.Key()))
		}
		if !left {
			tx.Delete(indexFlagsKey(number))
			tx.Delete(indexCursorKey(number))
		}
		return errors.Join(it.Error(), it.Close())
	})
	return left, err
}
