package jay

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
)

// The life of an index.
//
// The catalog holds the state of every index. These are all transitions, each
// one synced commit of the catalog; catalog.Record.Move panics on any other:
//
//	from      to        made by        when
//	(none)    building  declareIndex   EnsureIndex, or a query with AutoIndexes
//	building  ready     finishBuild    every document is entered
//	building  dropping  removeIndex    DropIndex, or a document refuses the index
//	ready     dropping  removeIndex    DropIndex
//	dropping  (none)    removeIndex    every entry is removed
//
// Writers maintain an index that is building or ready; queries use one that is
// ready. (none) and ready are the states of rest. An indexTask brings an index
// to rest. The rules that keep any interleaving of creating, dropping, building
// and failing right:
//
//  1. Only a task makes transitions, on its own goroutine, and there is at most
//     one task for a name of a collection (indexing.tasks). So what a task
//     knows of its index holds until the task ends, and its number, which is
//     never used twice, names the same index throughout.
//  2. EnsureIndex and DropIndex make no transition. Under indexing.mu they
//     start a task or join the one that is there. A drop that joins a build
//     sets drop and cancels the build: the same task then removes the index.
//  3. A task leaves indexing.tasks in the critical section in which it finds
//     drop unset (indexing.rests). So every drop that has joined is carried
//     out, whether or not its caller still waits for it.
//  4. A task that meets Close, a failure of the engine or a panic ends and
//     leaves its index in building or dropping: the index is stalled. The next
//     EnsureIndex, DropIndex or Open starts another task from that state.
//  5. The catalog in memory follows the one on disk: it is replaced when the
//     commit is synced. After a commit of unknown outcome memory keeps the
//     state before it, which is safe. The engine takes no more writes, or
//     Close has begun, and the next Open finds one of the two states: building
//     instead of (none) is built from the first document; ready instead of
//     building was maintained by every writer; dropping instead of ready or
//     building is removed; (none) instead of dropping has no entries any more.

// indexTask brings one index to rest: it builds it, removes it, or both, one
// after the other.
type indexTask struct {
	key       taskKey
	info      IndexInfo    // as declared
	number    uint32       // 0 until the index is in the catalog. Used by the task only.
	unwatched bool         // no call waits for it
	documents atomic.Int64 // entered so far by this process

	ctx    context.Context // of the build; cancelled by a drop, by Close, and at the end
	cancel context.CancelFunc

	drop bool // the index must be removed. Guarded by indexing.mu.

	done     chan struct{} // closed at the end
	buildErr error         // nil if the index became ready. Valid once done is closed.
	dropErr  error         // nil if the index is gone. Valid once done is closed.
}

// taskKey names an index of a collection. Both names are folded.
type taskKey struct{ collection, name string }

func keyOf(collection, name string) taskKey {
	return taskKey{format.FoldName(collection), format.FoldName(name)}
}

// IndexOption changes one EnsureIndex.
type IndexOption func(*indexOptions)

type indexOptions struct {
	progress func(documents int64)
}

// IndexProgress makes EnsureIndex report now and then how many documents have been
// added.
func IndexProgress(fn func(documents int64)) IndexOption {
	return func(o *indexOptions) { o.progress = fn }
}

// EnsureIndex makes sure that a collection has an index, and returns nil only when
// the index is ready. An existing index is left as it is; one of the same name with
// another declaration is ErrIndexExists: drop it first.
//
// A new index is built while reads and writes continue. If ctx ends before it is
// ready, EnsureIndex returns its error and the build continues; if the process
// ends, the next Open continues it. If documents violate the uniqueness, or have
// more entries than an index can hold, EnsureIndex returns the *UniqueError or
// *DocumentError and there is no index.
//
// EnsureIndex continues what an earlier call has left unfinished. If an index of
// the name is being dropped, it waits and then builds the index anew; if a build
// has failed with the disk, it builds again. If the index is dropped while
// EnsureIndex waits for it, the error is ErrIndex.
func (db *DB) EnsureIndex(ctx context.Context, collection string, ix Index, opts ...IndexOption) error {
	var o indexOptions
	for _, option := range opts {
		option(&o)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ix, err := catalog.Canonical(ix, collection)
	if err != nil {
		return fmt.Errorf("index %s: %w", collection, err)
	}
	for {
		t, removal, err := db.ensure(IndexInfo{Index: ix, Collection: collection})
		if err != nil {
			return fmt.Errorf("index %s: %w", collection, err)
		}
		if t == nil {
			return nil
		}
		if err := t.wait(ctx, o.progress); err != nil {
			return err
		}
		if !removal {
			return t.buildErr
		}
		if t.dropErr != nil {
			return fmt.Errorf("index %.100q of %s, which is being dropped: %w", ix.Name, collection, t.dropErr)
		}
	}
}

// ensure returns the task that makes an index ready, or the one that must first
// remove an index of its name (removal), and starts it if necessary. It returns nil
// if the index is ready. The declaration is canonical.
func (db *DB) ensure(info IndexInfo) (t *indexTask, removal bool, err error) {
	in := &db.indexing
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped {
		return nil, false, ErrClosed
	}
	key := keyOf(info.Collection, info.Name)
	if t := in.tasks[key]; t != nil {
		if !t.drop && !catalog.IsSame(t.info.Index, info.Index) {
			return nil, false, existsAs(t.info.Index)
		}
		return t, t.drop, nil
	}
	old := db.indexes.Load().Find(info.Collection, info.Name)
	switch {
	case old == nil:
		return db.startTask(&indexTask{key: key, info: info, unwatched: info.Automatic}), false, nil
	case old.Info.State == IndexDropping:
		return db.startTask(taskOf(old, true)), true, nil
	case !catalog.IsSame(old.Info.Index, info.Index):
		return nil, false, existsAs(old.Info.Index)
	case old.Info.State == IndexBuilding:
		return db.startTask(taskOf(old, false)), false, nil
	}
	return nil, false, nil
}

func existsAs(old Index) error {
	return fmt.Errorf("%w: %.100q has the fields %v, unique %v, where %.100q", ErrIndexExists, old.Name, old.Fields, old.Unique, old.Where)
}

// DropIndex removes an index of a collection and its entries. Queries that have
// begun are not affected; a build in progress is cancelled, and its EnsureIndex
// returns ErrIndex. DropIndex returns ErrIndex if there is no such index. If ctx
// ends before the index is removed, DropIndex returns its error and the drop
// continues; if the process ends, the next Open continues it.
func (db *DB) DropIndex(ctx context.Context, collection, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t, err := db.drop(collection, name)
	if err == nil {
		if err := t.wait(ctx, nil); err != nil {
			return err
		}
		err = t.dropErr
	}
	if err != nil {
		return fmt.Errorf("drop index %.100q of %s: %w", name, collection, err)
	}
	return nil
}

// drop returns the task that removes an index, and starts it if necessary.
func (db *DB) drop(collection, name string) (*indexTask, error) {
	in := &db.indexing
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped {
		return nil, ErrClosed
	}
	ix := db.indexes.Load().Find(collection, name)
	if ix == nil {
		return nil, fmt.Errorf("%w: there is none of that name", ErrIndex)
	}
	if t := in.tasks[keyOf(collection, name)]; t != nil {
		t.drop = true
		t.cancel()
		return t, nil
	}
	return db.startTask(taskOf(ix, true)), nil
}

// taskOf returns a task for an index of the catalog.
func taskOf(ix *catalog.Index, drop bool) *indexTask {
	return &indexTask{key: keyOf(ix.Info.Collection, ix.Info.Name), info: ix.Info, number: ix.Number, drop: drop}
}

// startTask runs a task in the background. indexing.mu is held, and there is
// no task of its key.
func (db *DB) startTask(t *indexTask) *indexTask {
	in := &db.indexing
	t.done = make(chan struct{})
	t.ctx, t.cancel = context.WithCancel(in.ctx)
	in.tasks[t.key] = t
	removal := t.drop
	in.workers.Go(func() { db.runTask(t, removal) })
	return t
}

// runTask is the goroutine of a task.
func (db *DB) runTask(t *indexTask, removal bool) {
	in := &db.indexing
	t.buildErr, t.dropErr = errTaskEnded, errTaskEnded // unless it gets further
	defer close(t.done)
	defer in.forget(t)
	defer t.cancel()

	if !removal {
		t.buildErr = db.taskError(t, t.guard(func() error { return db.makeReady(t) }))
	}
	if db.rests(t) {
		t.dropErr = t.buildErr
		db.logTask(t, t.buildErr)
		return
	}
	t.dropErr = db.taskError(t, t.guard(func() error { return db.removeIndex(t.number) }))
	switch {
	case t.buildErr == nil:
		t.buildErr = t.dropped()
	case !removal && t.dropErr != nil:
		t.buildErr = errors.Join(t.buildErr, t.dropErr)
	}
	db.logTask(t, errs.First(t.dropErr, t.buildErr))
}

// rests ends a task whose index needs no removal. Otherwise the index must be
// removed: from now on EnsureIndex sees that, and waits.
func (db *DB) rests(t *indexTask) bool {
	in := &db.indexing
	in.mu.Lock()
	defer in.mu.Unlock()
	exists := t.number != 0 && db.indexes.Load().ByNumber(t.number) != nil
	if exists && (t.drop || refuses(t.buildErr)) {
		t.drop = true
		return false
	}
	delete(in.tasks, t.key)
	return true
}

// forget removes a task from the tasks, if it is still there.
func (in *indexing) forget(t *indexTask) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.tasks[t.key] == t {
		delete(in.tasks, t.key)
	}
}

// refuses reports whether a build has failed because of the contents of the
// database: the index is impossible, and is removed. Close, a failed engine and a
// panic say nothing about the index.
func refuses(err error) bool {
	for _, other := range []error{ErrClosed, ErrFailed, ErrUnknownOutcome, ErrIndex, context.Canceled, errTaskEnded} {
		if errors.Is(err, other) {
			return false
		}
	}
	return err != nil
}

// errTaskEnded is the error of a task that met a bug, in Jay or in code that Jay
// was given to call. Its index is stalled.
var errTaskEnded = errors.New("jay: the work on an index ended before its time")

// guard runs a part of a task. A panic becomes an error for the callers that wait
// for the task, now or later: it must not end the process whenever the database is
// opened.
func (t *indexTask) guard(fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: index %q of %s: panic: %v\n%s", errTaskEnded, t.info.Name, t.info.Collection, p, debug.Stack())
		}
	}()
	return fn()
}

// taskError replaces the error of a cancelled context for the callers that wait for
// a task: the context is not theirs.
func (db *DB) taskError(t *indexTask, err error) error {
	switch {
	case !errors.Is(err, context.Canceled):
		return err
	case db.indexing.ctx.Err() != nil:
		return ErrClosed
	}
	return t.dropped()
}

func (t *indexTask) dropped() error {
	return fmt.Errorf("%w: %.100q was dropped while it was being built", ErrIndex, t.info.Name)
}

// logTask logs the failure of a task that no call waits for.
func (db *DB) logTask(t *indexTask, err error) {
	if !t.unwatched || err == nil || db.env.Logger == nil || errors.Is(err, ErrClosed) || errors.Is(err, errEnough) {
		return
	}
	// A panic of the logger's handler is the only error that guard could return
	// here.
	_ = t.guard(func() error {
		db.env.Logger.Warn("jay: index", "collection", t.info.Collection, "fields", t.info.Fields, "automatic", t.info.Automatic, "err", err)
		return nil
	})
}

// progressEvery is how often EnsureIndex reports how far a build is.
const progressEvery = 200 * time.Millisecond

// wait returns nil at the end of the task, or the error of ctx.
func (t *indexTask) wait(ctx context.Context, progress func(int64)) error {
	if progress == nil {
		progress = func(int64) {}
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.done:
			progress(t.documents.Load())
			return nil
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			progress(t.documents.Load())
		}
	}
}

// errEnough means that there are as many automatic indexes as are allowed.
var errEnough = errors.New("jay: there are as many automatic indexes as Options.AutoIndexes allows")

// autoIndex makes an index for queries, in the background.
func (db *DB) autoIndex(collection string, ix Index) error {
	ix, err := catalog.Canonical(ix, collection)
	if err != nil {
		return err
	}
	_, _, err = db.ensure(IndexInfo{Index: ix, Collection: collection, Automatic: true})
	return err
}

// resumeIndexes continues what the last process has left unfinished, for Open.
func (db *DB) resumeIndexes() {
	in := &db.indexing
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, ix := range db.indexes.Load().All {
		if ix.Info.State != IndexReady {
			t := taskOf(ix, ix.Info.State == IndexDropping)
			t.unwatched = true
			db.startTask(t)
		}
	}
}

// stopIndexes ends all tasks, for Close. No other task begins.
func (db *DB) stopIndexes() {
	in := &db.indexing
	in.mu.Lock()
	in.stopped = true
	in.mu.Unlock()
	in.stop()
	in.workers.Wait()
}

// makeReady declares the index of a task, if it is new, and builds it.
func (db *DB) makeReady(t *indexTask) error {
	if t.number == 0 {
		if err := db.declareIndex(t); err != nil {
			return fmt.Errorf("index %s: %w", t.info.Collection, err)
		}
	}
	return db.buildIndex(t)
}

// declareIndex adds the index of a task to the catalog.
func (db *DB) declareIndex(t *indexTask) error {
	number := uint32(0)
	err := db.changeIndexes(func(r *catalog.Record) error {
		kept, automatic := r.Count(t.key.collection)
		if kept >= catalog.MaxPerCollection {
			return fmt.Errorf("%w: %s has %d indexes already, the most there can be", ErrIndex, t.info.Collection, catalog.MaxPerCollection)
		}
		if t.info.Automatic && automatic >= db.opts.AutoIndexes {
			return errEnough
		}
		number = r.Next
		r.Next++
		info := t.info
		info.State = IndexBuilding
		r.Indexes = append(r.Indexes, catalog.RecordEntry{Number: number, Info: info})
		return nil
	})
	if err == nil {
		t.number = number
	}
	return err
}

// moveIndex commits a transition.
func (db *DB) moveIndex(number uint32, to IndexState) error {
	return db.changeIndexes(func(r *catalog.Record) error {
		r.Move(number, to)
		return nil
	})
}
