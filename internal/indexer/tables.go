package indexer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"

	"github.com/jaydb/jay/index"
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

// How an index over many documents is built
//
//  1. A snapshot is taken. All cores extract the entries of its documents, and sort them
//     in bounded memory (package sorter).
//  2. The entries are written to tables of the storage engine. Of a unique index, two with
//     the same key are met here.
//  3. The key format.IndexIngestKey is committed, and the tables are ingested.
//  4. The entries of all documents that were changed between 1 and 3 are corrected.
//  5. The key is removed, and the index becomes ready.
//
// Writers go on all the time, and maintain the index since it was declared. What they
// write before 3 is older, to the engine, than the tables, though it is newer: the tables
// hide it. An entry that a writer removed comes back with them, and one that it added is
// hidden if the tables have its key. Only a document that was changed in
// between is affected, and each such document has a change record above the
// last one of the snapshot: its newest write, or its deletion, whose record is held. They
// are read in the state that the tables were put on top of, so that none is missed, and none
// that comes later is waited for: its writer has corrected it.
//
// For each, a transaction removes the entries that the document gives in the snapshot, and
// sets those that it gives now. See internal/write/hidden.go for what writers of a unique
// index do meanwhile.
//
// After a crash between 3 and 5 the snapshot is gone. The key says so: all entries
// are removed then, and the build begins again. A crash before 3 leaves temporary
// files, which the engine removes when it is opened, and entries of writers, which are
// right.

// Bounds of builds by tables. docs/limits.md has them.
var (
	// TableDocuments is how many documents a collection must have: for fewer, the syncs of
	// an ingestion take longer than entering them. A variable for tests.
	TableDocuments = 10_000

	// SortBytes is the memory of one sort. A variable for tests.
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
// gate and with the context of the task. A variable for tests.
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
	if err := in.removeEntries(number); err != nil {
		return err
	}
	return in.passWrites()
}

func (in *Indexer) hasKey(key []byte) (bool, error) {
	if err := in.env.Enter(); err != nil {
		return false, err
	}
	defer in.env.Exit()
	return docs.Exists(in.env.Engine, key)
}

// tableBuild is one build by tables.
type tableBuild struct {
	in      *Indexer
	t       *Task
	ix      *catalog.Index
	single  *catalog.Collection
	to      storage.Ingester
	from    storage.Snapshot // of step 1
	newest  uint64           // etag of the last change in it
	skip    int              // bytes of the prefix of the index's keys
	sorter  *sorter.Sorter
	flags   byte // of all entries
	tables  []storage.Table
	writing storage.TableWriter // or nil
	added   int                 // entries
	key     []byte              // scratch
	lastKey []byte              // of the entry that was read last, of a unique index
	last    []byte              // its value; it is not written yet
}

// buildTables adds all documents by tables. The index is declared, and writers know it.
func (in *Indexer) buildTables(t *Task, ix *catalog.Index, to storage.Ingester) (err error) {
	select {
	case in.sorting <- struct{}{}:
		defer func() { <-in.sorting }()
	case <-t.Ctx.Done():
		return t.Ctx.Err()
	}
	b := &tableBuild{in: in, t: t, ix: ix, single: catalog.Single(ix), to: to}
	b.key = format.AppendIndexPrefix(nil, ix.Number)
	b.skip = len(b.key)
	hold := in.writer.Horizon.Hold() // deletions that the snapshot does not see keep their records
	defer hold.Release()
	defer func() { err = errs.First(err, in.writer.Hidden.End(ix.Number)) }()
	defer func() { err = errs.First(err, b.close()) }()

	if err := b.read(); err != nil {
		return err
	}
	if err := b.write(); err != nil {
		return err
	}
	onTables(t.Ctx, TablesWritten)
	if len(b.tables) > 0 {
		if err := b.ingest(); err != nil {
			return err
		}
	}
	return b.finish()
}

// close removes what is left of the build.
func (b *tableBuild) close() error {
	var err error
	if b.writing != nil {
		b.writing.Abandon()
	}
	for _, table := range b.tables {
		err = errors.Join(err, table.Remove())
	}
	if b.sorter != nil {
		err = errors.Join(err, b.sorter.Close())
	}
	if b.from != nil {
		err = errors.Join(err, b.from.Close())
	}
	return err
}

// read takes the snapshot, and extracts and sorts the entries of its documents.
func (b *tableBuild) read() error {
	if err := b.in.env.Enter(); err != nil {
		return err
	}
	b.from = b.in.env.Engine.Latest()
	w, err := b.in.docs.NewCursor(docs.Range{Collection: b.ix.Info.Collection}, b.from)
	b.in.env.Exit()
	if err != nil {
		return err
	}
	defer w.Close()
	if b.newest, err = b.lastChange(); err != nil {
		return err
	}
	onTables(b.t.Ctx, TablesRead)

	workers := min(runtime.GOMAXPROCS(0), parallel.MaxWorkers)
	b.sorter = sorter.New(SortBytes, workers, b.to.NewTemporary)
	ctx, cancel := context.WithCancelCause(b.t.Ctx)
	defer cancel(nil)
	flags := make([]byte, workers)
	err = parallel.Do(workers, 1, func(lo, hi int) error {
		for i := lo; i < hi; i++ {
			if err := b.extract(ctx, w, &flags[i]); err != nil {
				cancel(err) // the others need not go on
				return err
			}
		}
		return nil
	})
	for _, f := range flags {
		b.flags |= f
	}
	if err != nil {
		err = context.Cause(ctx) // the first one: those of the others may be that they were ended
	}
	return errs.First(b.t.Ctx.Err(), err)
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

// record is a document of a batch, in its arena.
type record struct{ id, start, end int }

// extract is the work of one goroutine: it takes documents of w and adds their entries
// to a buffer of its own, until there are no more.
func (b *tableBuild) extract(ctx context.Context, w *docs.Cursor, flags *byte) error {
	e := NewBuildExtraction(b.ix)
	buffer := b.sorter.NewBuffer()
	var entries catalog.Entries
	var arena []byte
	var batch []record
	var key, value []byte
	collection := "" // as written in the last document of the collection
	for more := true; more; {
		if err := b.in.env.Room.Wait(ctx); err != nil {
			return err
		}
		runtime.Gosched()
		arena, batch = arena[:0], batch[:0]
		if cap(arena) > 8*batchBytes {
			arena = nil // of a large document
		}
		var err error
		more, err = w.Records(ctx, func(folded, stored []byte) bool {
			r := record{id: len(arena)}
			arena = append(arena, folded...)
			r.start = len(arena)
			arena = append(arena, stored...)
			r.end = len(arena)
			batch = append(batch, r)
			return len(batch) < batchDocuments && len(arena) < batchBytes
		})
		if err != nil {
			return err
		}
		for _, r := range batch {
			folded := string(arena[r.id:r.start])
			h, body, err := metadata.Decode(arena[r.start:r.end])
			if err != nil {
				return fmt.Errorf("document %q: %w", folded, err)
			}
			if collection == "" || string(h.Collection) != collection {
				if !docs.SameCollection(h.Collection, b.ix.Collection) {
					continue
				}
				collection = string(h.Collection)
			}
			id := docs.WrittenID(&h, folded)
			if err := e.among(b.in, body).ExtractForBuildInto(&entries, body, b.ix.Number); err != nil {
				return fmt.Errorf("document %q: %w", id, err)
			}
			for i := range entries.List {
				entry := &entries.List[i]
				key, value = entry.AppendKey(key[:0], folded), entry.AppendValue(value[:0], id, folded)
				if err := buffer.Add(key[b.skip:], value); err != nil {
					return sortError(err)
				}
			}
			for _, f := range entries.Flags {
				*flags |= f.Flags
			}
		}
		b.t.documents.Add(int64(len(batch)))
	}
	buffer.Sort()
	return nil
}

func sortError(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, storage.ErrFailed) || errors.Is(err, storage.ErrUnknownOutcome) {
		return err
	}
	return fmt.Errorf("%w: %w", errSort, err)
}

// write writes the sorted entries to tables.
func (b *tableBuild) write() error {
	add := b.add
	if b.ix.Info.Unique {
		add = b.addUnique
	}
	var refused error // by add
	err := b.sorter.Merge(b.t.Ctx, func(key, value []byte) error {
		refused = add(key, value)
		return refused
	})
	switch {
	case refused != nil:
		return refused
	case err != nil:
		return sortError(err)
	}
	if b.lastKey != nil {
		if err := b.add(b.lastKey, b.last); err != nil {
			return err
		}
	}
	if err := b.endTable(); err != nil {
		return err
	}
	err = b.sorter.Close()
	b.sorter = nil
	return err
}

// add adds an entry to the table. The key lacks the prefix.
func (b *tableBuild) add(key, value []byte) (err error) {
	if b.writing == nil {
		if err := b.in.env.Room.Wait(b.t.Ctx); err != nil {
			return err
		}
		if b.writing, err = b.to.NewTable(b.ix.Info.Unique); err != nil {
			return sortError(err)
		}
	}
	if b.added++; b.added%batchEntries == 0 {
		runtime.Gosched()
	}
	b.key = append(b.key[:b.skip], key...)
	if err := b.writing.Set(b.key, value); err != nil {
		return sortError(err)
	}
	if b.writing.Bytes() < TableBytes {
		return nil
	}
	return b.endTable()
}

// endTable ends the table that is being written, if there is one.
func (b *tableBuild) endTable() error {
	if b.writing == nil {
		return nil
	}
	w := b.writing
	b.writing = nil
	table, err := w.Finish()
	if err != nil {
		return sortError(err)
	}
	b.tables = append(b.tables, table)
	return nil
}

// addUnique is add for a unique index: it adds the entry before this one, unless both
// have the same key. One of the two documents must have been changed since the snapshot
// then; the entry of the other one is kept, as those that were changed are corrected.
func (b *tableBuild) addUnique(key, value []byte) error {
	if b.lastKey != nil && bytes.Equal(b.lastKey, key) {
		keepNew, err := b.settle(key, b.last, value)
		if err == nil && keepNew {
			b.last = append(b.last[:0], value...)
		}
		return err
	}
	if b.lastKey != nil {
		if err := b.add(b.lastKey, b.last); err != nil {
			return err
		}
	}
	b.lastKey, b.last = append(b.lastKey[:0], key...), append(b.last[:0], value...)
	return nil
}

// settle returns which of two entries with the same key is to be kept, or the error of
// two documents with the same values.
func (b *tableBuild) settle(key, one, other []byte) (keepOther bool, err error) {
	ids := [2]string{ownerOf(one), ownerOf(other)}
	var seen [2]write.Version
	for i, folded := range ids {
		if seen[i], _, _, err = versionAndBody(b.from, folded); err != nil {
			return false, err
		}
	}
	if err := b.in.env.Enter(); err != nil {
		return false, err
	}
	defer b.in.env.Exit()
	err = b.in.writer.Transact(b.t.Ctx, false, func(t *write.Txn) error {
		for i, folded := range ids {
			now, err := t.Version(folded)
			if err != nil {
				return err
			}
			if now != seen[i] {
				keepOther = i == 0
				return nil
			}
		}
		for _, folded := range ids {
			if err := t.MeetExpired(folded); err != nil {
				return err
			}
		}
		e := catalog.Entry{Index: b.ix, Values: key, Unique: true}
		return &index.UniqueError{Index: b.ix.Info.Name, Collection: b.ix.Info.Collection, Value: e.Text(), ID: t.Written(ids[1]), Other: t.Written(ids[0])}
	})
	return keepOther, err
}

func ownerOf(value []byte) string {
	folded, _ := catalog.SplitValue(value, true)
	return string(folded)
}

// ingest commits the tables, and corrects what they hide.
func (b *tableBuild) ingest() error {
	if err := b.mark(); err != nil {
		return err
	}
	err := b.enter(func() error {
		tables := b.tables
		b.tables = nil // Ingest uses them up; if the database is closed before, close removes them
		return b.to.Ingest(b.t.Ctx, tables, func(before storage.Snapshot) { b.in.writer.Hidden.Show(b.ix.Number, before) })
	})
	if err != nil {
		return sortError(err)
	}
	onTables(b.t.Ctx, TablesTaken)
	return b.in.writer.Hidden.With(b.ix.Number, b.correctAll)
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

// mark commits that the index may have entries that its documents do not give.
func (b *tableBuild) mark() error {
	return b.enter(func() error {
		return b.in.env.Engine.Update(b.t.Ctx, false, func(tx storage.Tx) error {
			tx.Set(format.IndexIngestKey(b.ix.Number), nil, nil)
			return nil
		})
	})
}

// finish commits the flags, and that all entries are right.
func (b *tableBuild) finish() error {
	return b.enter(func() error {
		return b.in.writer.Transact(b.t.Ctx, false, func(t *write.Txn) error {
			t.Tx.Delete(format.IndexIngestKey(b.ix.Number))
			if b.flags == 0 {
				return nil
			}
			flags := &catalog.Entries{Flags: []catalog.Flag{{Number: b.ix.Number, Flags: b.flags}}}
			return t.StageIndexes(b.single, "", "", &write.OldDocument{}, flags)
		})
	})
}

// touched is a document that was changed between the snapshot and the tables.
type touched struct {
	folded string
	old    []byte // its body in the snapshot; nil if it was not there
}

// correctAll corrects the entries of all documents that were changed.
func (b *tableBuild) correctAll(before storage.Reader) error {
	var chunk []touched
	size := 0
	node := b.in.env.Node
	err := env.Each(before, format.ChangeKey(nil, node, b.newest+1), format.ChangeKey(nil, node, math.MaxUint64), func(_, value []byte) error {
		_, collection, folded, err := format.SplitChange(value)
		if err != nil || !docs.SameCollection(collection, b.ix.Collection) {
			return err
		}
		d := touched{folded: string(folded)}
		version, from, body, err := versionAndBody(b.from, d.folded)
		if err != nil {
			return err
		}
		if version != (write.Version{}) && docs.SameCollection(from, b.ix.Collection) {
			d.old = body
		}
		if d.old == nil && !b.ix.Info.Unique {
			return nil // the tables have no key of this document
		}
		chunk = append(chunk, d)
		if size += len(body); len(chunk) < BuildChunk && size < chunkBytes {
			return nil
		}
		err = b.correct(chunk)
		chunk, size = chunk[:0], 0
		return err
	})
	if err == nil && len(chunk) > 0 {
		err = b.correct(chunk)
	}
	return err
}

// correct makes the entries of documents those that they give.
func (b *tableBuild) correct(chunk []touched) error {
	if err := b.t.Ctx.Err(); err != nil {
		return err
	}
	return b.enter(func() error {
		return b.in.writer.Transact(b.t.Ctx, false, func(t *write.Txn) error {
			for i := range chunk {
				if err := b.correctOne(t, &chunk[i]); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

func (b *tableBuild) correctOne(t *write.Txn, d *touched) error {
	if b.ix.Info.Unique {
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
	if version != (write.Version{}) && docs.SameCollection(collection, b.ix.Collection) {
		if entries, err = b.single.ExtractForBuild(body, b.ix.Number); err != nil {
			return fmt.Errorf("document %q: %w", d.folded, err)
		}
		id = t.Written(d.folded)
	}
	return t.StageIndexes(b.single, id, d.folded, &write.OldDocument{Body: d.old}, entries)
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
