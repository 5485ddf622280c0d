package lsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/objstorage/objstorageprovider"
	"github.com/cockroachdb/pebble/v2/sstable"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

// How tables are ingested
//
// A table is a file of Pebble's that the caller of NewTable fills, with a temporary name
// in the directory of the database. Ingest links all of them into the store by one record
// of the manifest, with a sequence number above all that was committed: the keys in them
// hide older writes of the same keys. Nothing of that goes through the log. So:
//
//   - The log is synced first, or a crash could lose an older commit and keep this one.
//   - It happens in the function of a transaction that is the first of its group:
//     Engine.mu is held, and no transaction has staged anything that is not in Pebble.
//   - It has a number among the commits, so that readers of what is durable get a view of
//     it, and what remembers keys is told: the group's iterator, write trackers, numbers, counts.
//   - Pebble must write keys in memory that overlap the tables to tables of their own first. As
//     writers wait for that, Ingest does it once before.

var _ storage.Ingester = (*Engine)(nil)

// temporaryPrefix begins the names of temporary files, and of tables that are not
// ingested yet. Open removes them. Part of the on-disk format. Must not change.
const temporaryPrefix = "JAY.sort."

// removeTemporaries removes what a crash has left of sorts. A file that stays costs
// space, and the next Open tries again.
func (e *Engine) removeTemporaries() {
	names, err := e.fs.List(e.path)
	for _, name := range names {
		if strings.HasPrefix(name, temporaryPrefix) {
			err = errors.Join(err, e.fs.Remove(e.fs.PathJoin(e.path, name)))
		}
	}
	if err != nil {
		e.log.Warn("jay: temporary files of an earlier process stay", "dir", e.dir, "err", err)
	}
}

// createTemporary makes a file with a name that no other has.
func (e *Engine) createTemporary() (path string, f vfs.File, err error) {
	if e.readOnly {
		return "", nil, storage.ErrReadOnly
	}
	path = e.fs.PathJoin(e.path, fmt.Sprintf("%s%06d", temporaryPrefix, e.temporaries.Add(1)))
	f, err = e.checkpointFS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return "", nil, err
	}
	return path, f, nil
}

// temporary is a storage.Temporary.
type temporary struct {
	engine *Engine
	path   string
	file   vfs.File // nil when it is finished
}

// NewTemporary implements storage.Ingester.
func (e *Engine) NewTemporary() (storage.Temporary, error) {
	path, f, err := e.createTemporary()
	if err != nil {
		return nil, err
	}
	return &temporary{e, path, f}, nil
}

// Write implements io.Writer.
func (t *temporary) Write(p []byte) (int, error) { return t.file.Write(p) }

// Finish implements storage.Temporary.
func (t *temporary) Finish() error {
	f := t.file
	t.file = nil
	return f.Close()
}

// Open implements storage.Temporary.
func (t *temporary) Open() (io.ReadCloser, error) {
	f, err := t.engine.checkpointFS.Open(t.path, vfs.SequentialReadsOption)
	if err != nil {
		return nil, readError(err)
	}
	return f, nil
}

// Remove implements storage.Temporary.
func (t *temporary) Remove() error {
	var err error
	if t.file != nil {
		err = t.Finish()
	}
	return errors.Join(err, t.engine.checkpointFS.Remove(t.path))
}

// tableWriter is a storage.TableWriter.
type tableWriter struct {
	engine      *Engine
	path        string
	w           *sstable.Writer
	first, last []byte
}

// NewTable implements storage.Ingester. A table goes to the last level if nothing overlaps it.
func (e *Engine) NewTable(lookups bool) (storage.TableWriter, error) {
	path, f, err := e.createTemporary()
	if err != nil {
		return nil, err
	}
	o := e.pebble.MakeWriterOptions(len(e.pebble.Levels)-1, e.db.TableFormat())
	o.WritingToLowestLevel = false // else Pebble takes deletions for obsolete, and ignores them
	if !lookups {
		o.FilterPolicy = nil
	}
	return &tableWriter{engine: e, path: path, w: sstable.NewWriter(objstorageprovider.NewFileWritable(f), o)}, nil
}

// Set implements storage.TableWriter.
func (t *tableWriter) Set(key, value []byte) error {
	t.note(key)
	return t.w.Set(key, value)
}

// Delete implements storage.TableWriter.
func (t *tableWriter) Delete(key []byte) error {
	t.note(key)
	return t.w.Delete(key)
}

// note notes the bounds of the table.
func (t *tableWriter) note(key []byte) {
	if t.first == nil {
		t.first = bytes.Clone(key)
	}
	t.last = append(t.last[:0], key...)
}

// Bytes implements storage.TableWriter.
func (t *tableWriter) Bytes() uint64 { return t.w.Raw().EstimatedSize() }

// Finish implements storage.TableWriter.
func (t *tableWriter) Finish() (storage.Table, error) {
	if err := t.w.Close(); err != nil {
		return nil, errors.Join(err, removeTable(t.engine.checkpointFS, t.path))
	}
	return &table{t.engine, t.path, t.first, t.last}, nil
}

// Abandon implements storage.TableWriter.
func (t *tableWriter) Abandon() {
	// Pebble has no other way to end a table. It may fail, for the reason that it is abandoned for.
	_ = t.w.Close()
	if err := removeTable(t.engine.checkpointFS, t.path); err != nil {
		t.engine.log.Warn("jay: a temporary file stays", "dir", t.engine.dir, "file", t.path, "err", err)
	}
}

// table is a storage.Table.
type table struct {
	engine      *Engine
	path        string
	first, last []byte
}

// Remove implements storage.Table.
func (t *table) Remove() error { return removeTable(t.engine.checkpointFS, t.path) }

// removeTable removes a temporary file, which may be gone.
func removeTable(fs vfs.FS, path string) error {
	err := fs.Remove(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}

// Ingest implements storage.Ingester.
func (e *Engine) Ingest(ctx context.Context, tables []storage.Table, taken func(before storage.Snapshot)) (err error) {
	var all []*table
	for _, t := range tables {
		all = append(all, t.(*table))
	}
	defer func() {
		if errors.Is(err, storage.ErrUnknownOutcome) {
			return // Pebble may be reading them: the next Open removes what is left
		}
		for _, t := range all {
			err = errors.Join(err, t.Remove())
		}
	}()
	if e.readOnly {
		return storage.ErrReadOnly
	}
	if len(all) == 0 {
		return errors.New("no tables")
	}
	if err := e.flushBelow(ctx, all[0].first, all[len(all)-1].last); err != nil {
		return err
	}
	if err := e.Sync(ctx); err != nil {
		return err
	}
	return e.Update(ctx, false, func(tx storage.Tx) error {
		t := tx.(*transaction)
		if t.before > 0 {
			t.rerun = true
			return errFirst
		}
		t.reader.close() // it does not see the tables
		return e.ingest(all, taken)
	})
}

// flushBelow writes what is in memory to tables, if there are keys from first to last.
// Those that are only deleted are not found, and left to Pebble.
func (e *Engine) flushBelow(ctx context.Context, first, last []byte) error {
	it, err := iterate(e.db, first, append(bytes.Clone(last), 0))
	if err != nil {
		return err
	}
	found := it.First()
	if err := errors.Join(it.Error(), it.Close()); err != nil || !found {
		return err
	}
	var flushed <-chan struct{}
	if err := e.protect(func() (err error) { flushed, err = e.db.AsyncFlush(); return err }); err != nil {
		return err
	}
	select {
	case <-flushed:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	case <-e.failed:
		return fmt.Errorf("%w: %w", storage.ErrFailed, *e.failure.Load())
	}
}

// ingest takes tables in. e.mu is held, and the group has staged nothing.
func (e *Engine) ingest(tables []*table, taken func(before storage.Snapshot)) error {
	if err := e.protect(func() error { return e.db.LogData(nil, pebble.Sync) }); err != nil {
		e.fail(err)
	}
	if failure := e.failure.Load(); failure != nil {
		return fmt.Errorf("%w: %w", storage.ErrFailed, *failure)
	}
	e.durability.reached(e.applied)

	before := &latest{&state{of: &e.states, snapshot: e.db.NewSnapshot(), commit: e.applied}, e}
	paths := make([]string, len(tables))
	for i, t := range tables {
		paths[i] = t.path
	}
	number := e.applied + 1
	e.durability.begin(e.db, number)
	e.keyCounts.forgetAll()
	err := e.protect(func() error { return e.db.Ingest(context.Background(), paths) })
	if failure := e.failure.Load(); failure != nil {
		_ = before.Close() // it never fails
		return fmt.Errorf("%w: %w", storage.ErrUnknownOutcome, *failure)
	}

	// If it failed, the number is that of a commit without writes: readers wait for none
	// that does not come.
	e.durability.applied(e.db, number)
	e.applied = number
	e.writes.recordAll(number)
	e.watcher.showTables(number)
	e.visible.Store(number) // after recordAll: see TrackWrites
	e.numbers.forget()
	e.durability.reached(number)
	e.notice.send()
	if err != nil {
		_ = before.Close()
		return fmt.Errorf("ingest tables: %w", err)
	}
	if taken == nil {
		_ = before.Close()
		return nil
	}
	taken(before)
	return nil
}
