package indexer

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/budget"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/internal/sorter"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/metadata"
	"github.com/jaydb/jay/storage"
)

// How indexes over many documents are built, one or several of a collection
//
//  1. A snapshot is taken. All cores extract the entries of its documents, and sort them
//     in bounded memory (package sorter).
//  2. The entries are written to tables of the storage engine. Of a unique index, two with
//     the same key are met here.
//  3. The key format.IndexIngestKey is committed, and the tables are ingested.
//  4. The entries of all documents that were changed between 1 and 3 are corrected.
//  5. The key is removed, and the index becomes ready.
//
// Each step is one for all indexes of the build: one snapshot, one pass over the documents, one
// ingestion, one commit that makes them ready. An error that concerns one index, such as a document
// that cannot be in it, ends only its part; an error of the pass, such as a full disk, ends all
// parts.
//
// Writers continue throughout, and maintain the index from its declaration on. The engine orders
// ingested tables above everything committed before the ingestion, so the tables hide the newer
// entries that writers have committed since the snapshot: an entry that a writer removed reappears,
// and one that it added is hidden if the tables have its key. This concerns only documents that
// were changed in between. Each of them has a change record above the last one of the snapshot,
// that of its newest write or of its deletion, which is held. These records are read in the state
// just before the ingestion, so none is missed. Later changes need no correction, as their writers
// see the tables.
//
// For each such document a transaction removes the entries of its version in the snapshot and sets
// those of its present version. internal/write/hidden.go has what writers of a unique index do
// meanwhile.
//
// Into an index of a Stager (catalog.Tabler) writers stage nothing from before 1 until after 3: tables that hide a part of a sum would
// leave no sum from which it can be found again. All that the index has after 3 is what the documents of the snapshot give, and step 4 enters each
// document that was changed until writers stage again.
//
// A crash between 3 and 5 loses the snapshot. The key shows that it happened: all entries are then
// removed, and the build starts over. A crash before 3 leaves only entries of writers, which are
// right, and temporary files, which the engine removes when it is opened.

// Bounds of builds by tables. docs/limits.md has them.
var (
	// TableDocuments is how many documents a collection must have: for fewer, the syncs of
	// an ingestion take longer than entering them. A variable for tests.
	TableDocuments = 10_000

	// SortBytes is the most memory of one sort, if its share of Options.MaxMemory is not less. A variable for tests.
	SortBytes = 32 << 20

	// TableBytes is how large a table becomes. A variable for tests.
	TableBytes uint64 = 32 << 20
)

const (
	// maxSorts is how many builds sort at once: others wait. One uses all cores.
	maxSorts = 2

	// A goroutine reads this many documents at once, or bytes of them, and writes so many
	// entries, before it lets others run. A durable insert is passed on between goroutines
	// a few times, and would wait for the scheduler's 10 ms each time if all cores build.
	batchDocuments = 64
	batchBytes     = 64 << 10
	batchEntries   = 128
)

// OnTables, if it is set, is called in the steps of a build by tables, outside of the
// gate and with the context of the build. A variable for tests.
var OnTables func(ctx context.Context, step TableStep)

// TableStep is a step of a build by tables.
type TableStep int

const (
	TablesRead    TableStep = iota // the snapshot is taken
	TablesWritten                  // the tables are whole
	TablesTaken                    // they are ingested
)

func onTables(ctx context.Context, step TableStep) {
	if OnTables != nil {
		OnTables(ctx, step)
	}
}

// errSort wraps errors of temporary files and of ingestion, which say nothing about the index.
var errSort = errors.New("sorting the entries of an index")

// isLarge reports whether a collection has enough documents to be built by tables.
func (in *Indexer) isLarge(collection string) (bool, error) {
	w, err := in.scan(docs.Range{Collection: collection})
	if err != nil {
		return false, err
	}
	defer w.Close()
	n := 0
	_, err = w.Records(in.ctx, func(_, _ []byte) bool { n++; return n < TableDocuments })
	return n >= TableDocuments, err
}

// clearIngested removes all entries of an index if an earlier build has ended between
// steps 3 and 5.
func (in *Indexer) clearIngested(number uint32) error {
	found, err := in.hasKey(format.IndexIngestKey(number))
	if err != nil || !found {
		return err
	}
	defer in.writer.Withheld.End(number)
	if err := in.withhold(number); err != nil {
		return err
	}
	in.writer.Withheld.End(number)
	return in.passWrites()
}

// withhold makes writers stage nothing into an index, if it is of a Stager, and removes all of its entries. Withheld.End ends it, with any error, too.
func (in *Indexer) withhold(number uint32) error {
	in.writer.Withheld.Begin(number)
	if err := in.passWrites(); err != nil {
		return err
	}
	if err := in.removeEntries(number); err != nil {
		return err
	}
	return in.passWrites()
}

// byTables reports whether an index over many documents is built by tables.
func byTables(ix *catalog.Index) bool {
	_, is := ix.Stager.(catalog.Tabler)
	return ix.Loads == nil && (is || ix.Stager == nil) // what is loaded changes while a table is made
}

func (in *Indexer) hasKey(key []byte) (bool, error) {
	if err := in.env.Enter(); err != nil {
		return false, err
	}
	defer in.env.Exit()
	return docs.Exists(in.env.Engine, key)
}

// tableBuild is one build by tables, of one index or of several of a collection.
type tableBuild struct {
	in         *Indexer
	ctx        context.Context
	name       string   // of the collection, as it was declared
	collection string   // folded
	parts      []*part  // those that go on, by number
	begun      []uint32 // the numbers of all
	to         storage.Ingester
	from       storage.Snapshot // of step 1
	newest     uint64           // etag of the last change in it
}

// part is what a tableBuild does for one index.
type part struct {
	t       *Task
	ix      *catalog.Index
	single  *catalog.Collection
	tabler  catalog.Tabler // of an index of a Stager, or nil
	sorter  *sorter.Sorter
	flags   atomic.Uint32 // of all entries
	tables  []storage.Table
	refused atomic.Pointer[error] // what ends this part, and no other one

	err  error         // nil if the index became ready. Valid once done is closed.
	done chan struct{} // closed when the build has let go of the index
}

func newPart(t *Task, ix *catalog.Index) *part {
	tabler, _ := ix.Stager.(catalog.Tabler)
	return &part{t: t, ix: ix, single: catalog.Only(ix), tabler: tabler, done: make(chan struct{})}
}

// refuse ends a part, unless an error has done so before.
func (p *part) refuse(err error) { p.refused.CompareAndSwap(nil, &err) }

// cause returns why the part must end, or nil.
func (p *part) cause() error {
	if refused := p.refused.Load(); refused != nil {
		return *refused
	}
	return p.t.Ctx.Err()
}

// newTableBuild returns a build of these indexes of one collection.
func (in *Indexer) newTableBuild(ctx context.Context, parts []*part) *tableBuild {
	slices.SortFunc(parts, func(p, q *part) int { return cmp.Compare(p.ix.Number, q.ix.Number) })
	var begun []uint32
	for _, p := range parts {
		begun = append(begun, p.ix.Number)
	}
	return &tableBuild{in: in, begun: begun, ctx: ctx, name: parts[0].ix.Info.Collection, collection: parts[0].ix.Collection, parts: parts, to: in.env.Engine.(storage.Ingester)}
}

// buildTables builds the index of a task by tables, together with those of its team. The index is
// declared, and writers know it.
func (in *Indexer) buildTables(t *Task, ix *catalog.Index) error {
	p := newPart(t, ix)
	if t.team != nil {
		t.team.arrive(p)
	} else {
		in.newTableBuild(t.Ctx, []*part{p}).build()
	}
	<-p.done
	return p.err
}

// build builds the indexes, and ends all parts.
func (b *tableBuild) build() {
	err := ErrTaskEnded // if it panics
	defer func() { b.end(err) }()
	err = b.run()
}

// run builds the indexes. Its error is one of all parts that are left.
func (b *tableBuild) run() error {
	release, err := b.in.startSort(b.ctx, len(b.parts) > 1)
	if err != nil {
		return err
	}
	defer release()
	memory := b.in.env.Work.NewDraw("build of an index")
	if err := b.in.drawSort(b.ctx, &memory, int64(b.in.sortBytes()*min(len(b.parts), maxSorts))); err != nil {
		return err
	}
	defer memory.End()
	hold := b.in.writer.Horizon.Hold() // deletions that the snapshot does not see keep their records
	defer hold.Release()

	for _, step := range []func() error{b.read, b.write, b.ingest, b.correctParts, b.finish, b.closeSnapshot, b.makeReady} {
		if err := step(); err != nil {
			return err
		}
		if b.settle(); len(b.parts) == 0 {
			break
		}
	}
	return nil
}

// startSort waits until a build may sort. One of several indexes takes the memory of two.
func (in *Indexer) startSort(ctx context.Context, several bool) (release func(), err error) {
	want := 1
	if several {
		want = maxSorts
		// Only one at a time waits for more than one: two could wait for each other.
		select {
		case in.sharing <- struct{}{}:
			defer func() { <-in.sharing }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	taken := 0
	release = func() {
		for ; taken > 0; taken-- {
			<-in.sorting
		}
	}
	for taken < want {
		select {
		case in.sorting <- struct{}{}:
			taken++
		case <-ctx.Done():
			release()
			return nil, ctx.Err()
		}
	}
	return release, nil
}

// sortBytes is the memory of one sort.
func (in *Indexer) sortBytes() int { return min(SortBytes, in.env.SortBytes) }

// drawSort draws the memory of a build, which holds nothing while it waits, and so can wait until its end.
func (in *Indexer) drawSort(ctx context.Context, memory *budget.Draw, n int64) error {
	for {
		err := memory.Take(ctx, n)
		if !errors.Is(err, storage.ErrMemory) {
			return err
		}
	}
}

// settle ends the parts that must not go on.
func (b *tableBuild) settle() {
	b.parts = slices.DeleteFunc(b.parts, func(p *part) bool {
		err := p.cause()
		if err != nil {
			b.endPart(p, err)
		}
		return err != nil
	})
}

// end ends all parts that are left.
func (b *tableBuild) end(err error) {
	err = errs.First(err, b.closeSnapshot())
	for _, p := range b.parts {
		b.endPart(p, errs.First(p.cause(), err))
	}
	b.parts = nil
}

// endPart removes what is left of a part, and lets its task go on.
func (b *tableBuild) endPart(p *part, err error) {
	for _, table := range p.tables {
		err = errs.First(err, table.Remove())
	}
	if p.sorter != nil {
		err = errs.First(err, p.sorter.Close())
	}
	b.in.writer.Withheld.End(p.ix.Number)
	p.err = errs.First(err, b.in.writer.Hidden.End(p.ix.Number))
	close(p.done)
}

// closeSnapshot closes the snapshot of step 1, if it is open.
func (b *tableBuild) closeSnapshot() error {
	from := b.from
	b.from = nil
	if from == nil {
		return nil
	}
	return from.Close()
}

// read takes the snapshot, and extracts and sorts the entries of its documents.
func (b *tableBuild) read() error {
	for _, p := range b.parts {
		if p.tabler == nil {
			continue
		}
		if err := b.in.withhold(p.ix.Number); err != nil {
			return err
		}
	}
	if err := b.in.env.Enter(); err != nil {
		return err
	}
	b.from = b.in.env.Engine.Latest()
	b.in.env.Exit()
	var err error
	if b.newest, err = b.lastChange(); err != nil {
		return err
	}
	last, err := b.lastDocument()
	if err != nil {
		return err
	}
	onTables(b.ctx, TablesRead)

	memory := b.in.sortBytes() * min(len(b.parts), maxSorts) / len(b.parts)
	for _, p := range b.parts {
		p.sorter = sorter.New(memory, parallel.Workers(), b.to.NewTemporary)
	}
	documents := newRanges(idRange{high: last + "\x01"})
	return b.share(parallel.Workers(), func(ctx context.Context, _ int) error { return b.extract(ctx, documents) })
}

// lastDocument returns the last folded ID of the collection in the snapshot.
func (b *tableBuild) lastDocument() (folded string, err error) {
	w, err := b.cursor(docs.Range{Reverse: true})
	if err != nil {
		return "", err
	}
	defer w.Close()
	_, err = w.Records(b.ctx, func(id, _ []byte) bool {
		folded = string(id)
		return false
	})
	return folded, err
}

// share calls fn for the numbers below n, on all cores, until one call fails, and returns its error.
func (b *tableBuild) share(n int, fn func(ctx context.Context, i int) error) error {
	ctx, cancel := context.WithCancelCause(b.ctx)
	defer cancel(nil)
	err := parallel.Do(n, 1, func(lo, hi int) error {
		for i := lo; i < hi; i++ {
			if err := fn(ctx, i); err != nil {
				cancel(err) // the others need not go on
				return err
			}
		}
		return nil
	})
	if err != nil {
		err = context.Cause(ctx) // the first one: those of the others may be that they were ended
	}
	return errs.First(b.ctx.Err(), err)
}

// lastChange returns the etag of the newest change of this database in the snapshot.
func (b *tableBuild) lastChange() (etag uint64, err error) {
	node := b.in.env.Node
	it, err := b.from.Iterate(format.ChangeKey(nil, node, 0), format.ChangeKey(nil, node, math.MaxUint64))
	if err != nil {
		return 0, err
	}
	defer func() { err = errs.First(err, it.Close()) }()
	if !it.Last() {
		return 0, it.Error()
	}
	return format.EtagOf(it.Key())
}

func sortError(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, storage.ErrFailed) || errors.Is(err, storage.ErrUnknownOutcome) {
		return err
	}
	return fmt.Errorf("%w: %w", errSort, err)
}

func ownerOf(value []byte) string {
	folded, _ := catalog.SplitValue(value, true)
	return string(folded)
}

// ingest commits the tables of all parts.
func (b *tableBuild) ingest() error {
	var tables []storage.Table
	var numbers []uint32
	for _, p := range b.parts {
		if len(p.tables) > 0 {
			tables, numbers = append(tables, p.tables...), append(numbers, p.ix.Number)
		}
	}
	if len(tables) == 0 {
		return nil
	}
	if err := b.mark(numbers); err != nil {
		return err
	}
	err := b.enter(func() error {
		for _, p := range b.parts {
			p.tables = nil // Ingest uses them up; if the database is closed before, endPart removes them
		}
		return b.to.Ingest(b.ctx, tables, func(before storage.Snapshot) {
			shared := &sharedSnapshot{Snapshot: before}
			shared.users.Store(int32(len(numbers)))
			for _, number := range numbers {
				b.in.writer.Hidden.Show(number, shared)
			}
		})
	})
	if err != nil {
		return sortError(err)
	}
	onTables(b.ctx, TablesTaken)
	return nil
}

// sharedSnapshot is a snapshot that is closed when each of its users has closed it.
type sharedSnapshot struct {
	storage.Snapshot
	users atomic.Int32
}

// Close implements storage.Snapshot.
func (s *sharedSnapshot) Close() error {
	if s.users.Add(-1) > 0 {
		return nil
	}
	return s.Snapshot.Close()
}

// correctParts corrects what the tables hide. What fails that of one index ends its part.
func (b *tableBuild) correctParts() error {
	for _, p := range b.parts {
		if p.tabler != nil {
			if err := b.enterChanged(p); err != nil {
				p.refuse(err)
			}
			continue
		}
		err := b.in.writer.Hidden.With(p.ix.Number, func(before storage.Reader) error {
			if before == nil {
				return nil // there was no table
			}
			return b.correctAll(p, before)
		})
		if err != nil {
			p.refuse(err)
		}
	}
	return nil
}

// enterChanged lets writers stage into the index of a Stager again, and enters the documents that were changed until then.
func (b *tableBuild) enterChanged(p *part) (err error) {
	b.in.writer.Withheld.End(p.ix.Number)
	if err := b.in.passWrites(); err != nil {
		return err
	}
	if err := b.in.env.Enter(); err != nil {
		return err
	}
	now := b.in.env.Engine.Latest()
	b.in.env.Exit()
	defer func() { err = errs.First(err, now.Close()) }()
	return b.correctAll(p, now)
}

// enter runs fn within the gate.
func (b *tableBuild) enter(fn func() error) error {
	if OnChunk != nil {
		OnChunk(b.in.ctx, index.Building)
	}
	if err := b.in.env.Enter(); err != nil {
		return err
	}
	defer b.in.env.Exit()
	return fn()
}

// mark commits that indexes may have entries that their documents do not give.
func (b *tableBuild) mark(numbers []uint32) error {
	return b.enter(func() error {
		return b.in.env.Engine.Update(b.ctx, false, func(tx storage.Tx) error {
			for _, number := range numbers {
				tx.Set(format.IndexIngestKey(number), nil, nil)
			}
			return nil
		})
	})
}

// finish commits the flags, and that all entries are right.
func (b *tableBuild) finish() error {
	return b.enter(func() error {
		return b.in.writer.Transact(b.ctx, false, func(t *write.Txn) error {
			for _, p := range b.parts {
				t.Tx.Delete(format.IndexIngestKey(p.ix.Number))
				set := byte(p.flags.Load())
				if set == 0 {
					continue
				}
				flags := &catalog.Entries{Flags: []catalog.Flag{{Number: p.ix.Number, Flags: set}}}
				if err := t.StageIndexes(p.single, "", "", &write.OldDocument{}, flags); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// makeReady makes the indexes ready, in one commit.
func (b *tableBuild) makeReady() error {
	tasks := make([]*Task, len(b.parts))
	for i, p := range b.parts {
		tasks[i] = p.t
	}
	return b.in.FinishBuild(tasks...)
}

// touched is a document that was changed between the snapshot and the tables.
type touched struct {
	folded string
	old    []byte // its body in the snapshot; nil if it was not there
}

// correctAll corrects the entries of all documents that were changed in one index.
func (b *tableBuild) correctAll(p *part, before storage.Reader) error {
	var chunk []touched
	size := 0
	node := b.in.env.Node
	err := env.Each(before, format.ChangeKey(nil, node, b.newest+1), format.ChangeKey(nil, node, math.MaxUint64), func(_, value []byte) error {
		c, err := format.SplitChange(value)
		if err != nil || !docs.SameCollection(c.Collection, p.ix.Collection) {
			return err
		}
		d := touched{folded: string(c.FoldedID)}
		version, from, body, err := versionAndBody(b.from, d.folded)
		if err != nil {
			return err
		}
		if version != (write.Version{}) && docs.SameCollection(from, p.ix.Collection) {
			d.old = body
		}
		if d.old == nil && !p.ix.Info.Unique && p.tabler == nil {
			return nil // the tables have no key of this document
		}
		chunk = append(chunk, d)
		if size += len(body); len(chunk) < BuildChunk && size < chunkBytes {
			return nil
		}
		err = b.correct(p, chunk)
		chunk, size = chunk[:0], 0
		return err
	})
	if err == nil && len(chunk) > 0 {
		err = b.correct(p, chunk)
	}
	return err
}

// correct makes the entries of documents those that they give.
func (b *tableBuild) correct(p *part, chunk []touched) error {
	if err := p.cause(); err != nil {
		return err
	}
	return b.enter(func() error {
		return b.in.writer.Transact(p.t.Ctx, false, func(t *write.Txn) error {
			for i := range chunk {
				if err := p.correctOne(t, &chunk[i]); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (p *part) correctOne(t *write.Txn, d *touched) error {
	if p.ix.Info.Unique {
		if err := t.MeetExpired(d.folded); err != nil {
			return err
		}
	}
	version, collection, body, err := versionAndBody(t.Tx, d.folded)
	if err != nil {
		return err
	}
	var entries *catalog.Entries
	id := d.folded
	if version != (write.Version{}) && docs.SameCollection(collection, p.ix.Collection) {
		if entries, err = p.single.ExtractForBuild(body, p.ix.Number); err != nil {
			return fmt.Errorf("document %q: %w", d.folded, catalog.WithID(err, d.folded))
		}
		id = t.Written(d.folded)
	}
	return t.StageIndexes(p.single, id, d.folded, &write.OldDocument{Body: d.old}, entries)
}

// versionAndBody returns copies of what r has of a document, and a zero version for one
// that is not there.
func versionAndBody(r docs.Getter, folded string) (v write.Version, collection, body []byte, err error) {
	stored, closer, err := r.Get(format.NewDocumentKey(folded))
	if err == storage.ErrNotFound {
		return v, nil, nil, nil
	}
	if err != nil {
		return v, nil, nil, err
	}
	h, found, err := metadata.Decode(bytes.Clone(stored))
	return write.Version{Node: h.Node, Etag: h.Etag}, h.Collection, found, errs.First(err, closer.Close())
}
