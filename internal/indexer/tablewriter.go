package indexer

import (
	"bytes"
	"context"
	"errors"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/parallel"
	"github.com/jaydb/jay/internal/sorter"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// prefixBytes is how long the prefix of an index's keys is, which sorted keys lack.
const prefixBytes = 5

// tableWriter writes the tables of a range of the entries of one index.
type tableWriter struct {
	b       *tableBuild
	p       *part
	entries *sorter.Range
	tables  []storage.Table     // finished
	writing storage.TableWriter // or nil
	added   int                 // entries
	unseen  uint64              // bytes since its size was looked at, which takes as long as adding an entry
	key     []byte              // scratch, with the prefix
	lastKey []byte              // of the entry that was read last, of a unique index
	last    []byte              // its value; it is not written yet
	sum     *sum                // of a Tabler's index: what is added at lastKey; nil for nothing that is not written yet
}

// errPartEnded ends a tableWriter whose part has ended.
var errPartEnded = errors.New("the build of this index has ended")

// write writes the sorted entries of all parts to tables.
func (b *tableBuild) write() (err error) {
	var writers []*tableWriter
	gather := func() {
		for _, w := range writers {
			if w.writing != nil {
				w.writing.Abandon()
			}
			w.p.tables = append(w.p.tables, w.tables...)
		}
		writers = nil
	}
	defer gather() // if one panics
	for _, p := range b.parts {
		ranges, err := p.sorter.Split(b.ctx, parallel.Workers(), int(TableBytes/16))
		if err != nil {
			return sortError(err)
		}
		for _, r := range ranges {
			writers = append(writers, &tableWriter{b: b, p: p, entries: r, key: format.AppendIndexPrefix(nil, p.ix.Number)})
		}
	}
	err = b.share(len(writers), func(ctx context.Context, i int) error { return writers[i].run(ctx) })
	gather()
	for _, p := range b.parts {
		err = errs.First(err, sortError(p.sorter.Close()))
	}
	if err != nil {
		return err
	}
	if b.settle(); len(b.parts) > 0 {
		onTables(b.ctx, TablesWritten)
	}
	return nil
}

// run writes the tables. What ends the part only is no error.
func (w *tableWriter) run(ctx context.Context) error {
	err := w.addAll(ctx)
	if err == nil {
		err = w.endTable()
	}
	if err == errPartEnded {
		return nil
	}
	return err
}

// addAll adds the entries of the range.
func (w *tableWriter) addAll(ctx context.Context) error {
	add := w.add
	if w.p.ix.Info.Unique {
		add = w.addUnique
	}
	if w.p.tabler != nil {
		add = w.addTagged
	}
	var failed error // of add
	err := w.entries.Merge(ctx, func(key, value []byte) error {
		failed = add(ctx, key, value)
		return failed
	})
	switch {
	case failed != nil:
		return failed
	case err != nil:
		return sortError(err)
	case w.p.tabler != nil:
		return w.endSum(ctx)
	case w.lastKey != nil:
		return w.add(ctx, w.lastKey, w.last)
	}
	return nil
}

// add adds an entry to the table. The key lacks the prefix.
func (w *tableWriter) add(ctx context.Context, key, value []byte) (err error) {
	if w.writing == nil {
		if err := w.b.in.env.Room.Wait(ctx); err != nil {
			return err
		}
		if w.writing, err = w.b.to.NewTable(w.p.ix.Info.Unique || w.p.tabler != nil); err != nil {
			return sortError(err)
		}
	}
	if w.added++; w.added%batchEntries == 0 {
		if w.p.cause() != nil {
			return errPartEnded
		}
		w.b.to.GiveWay()
	}
	w.key = append(w.key[:prefixBytes], key...)
	if err := w.writing.Set(w.key, value); err != nil {
		return sortError(err)
	}
	if w.unseen += uint64(len(w.key) + len(value)); w.unseen < TableBytes/64 {
		return nil
	}
	if w.unseen = 0; w.writing.Bytes() < TableBytes {
		return nil
	}
	return w.endTable()
}

// endTable ends the table that is being written, if there is one.
func (w *tableWriter) endTable() error {
	if w.writing == nil {
		return nil
	}
	writing := w.writing
	w.writing = nil
	table, err := writing.Finish()
	if err != nil {
		return sortError(err)
	}
	w.tables = append(w.tables, table)
	return nil
}

// addUnique is add for a unique index: it adds the entry before this one, unless both
// have the same key. One of the two documents must have been changed since the snapshot
// then; the entry of the other one is kept, as those that were changed are corrected.
func (w *tableWriter) addUnique(ctx context.Context, key, value []byte) error {
	if w.lastKey != nil && bytes.Equal(w.lastKey, key) {
		keepNew, err := w.settle(ctx, key, w.last, value)
		if err == nil && keepNew {
			w.last = append(w.last[:0], value...)
		}
		return err
	}
	if w.lastKey != nil {
		if err := w.add(ctx, w.lastKey, w.last); err != nil {
			return err
		}
	}
	w.lastKey, w.last = append(w.lastKey[:0], key...), append(w.last[:0], value...)
	return nil
}

// settle returns which of two entries with the same key is to be kept. Two documents with
// the same values end the part.
func (w *tableWriter) settle(ctx context.Context, key, one, other []byte) (keepOther bool, err error) {
	keepOther, err = w.b.settleOwners(ctx, w.p.ix, key, [2]string{ownerOf(one), ownerOf(other)})
	if err != nil && ctx.Err() == nil {
		w.p.refuse(err)
		err = errPartEnded
	}
	return keepOther, err
}

// settleOwners returns which of two documents, that have the same values in a unique index in the snapshot, may keep
// them now, or a *index.UniqueError.
func (b *tableBuild) settleOwners(ctx context.Context, ix *catalog.Index, key []byte, ids [2]string) (keepOther bool, err error) {
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
	err = b.in.writer.Transact(ctx, false, func(t *write.Txn) error {
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
		e := catalog.Entry{Index: ix, Values: key, Unique: true}
		return &index.UniqueError{Index: ix.Info.Name, Collection: ix.Info.Collection, Value: e.Text(), ID: t.Written(ids[1]), Other: t.Written(ids[0])}
	})
	return keepOther, err
}
