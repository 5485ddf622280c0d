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
//	building  dropping  removeIndexes  DropIndex, or a document refuses the index
//	ready     dropping  removeIndexes  DropIndex
//	ready     dropping  finishBuild    the index that replaces it became ready, in this commit
//	dropping  (none)    removeIndexes  every entry is removed
//
// Writers maintain an index that is building or ready; queries use one that is
// ready. (none) and ready are the states of rest. An indexTask brings an index
// to rest. An index that is replaced has a second one of its name beside it: the new
// one, which is building, and then the old one, which is dropping. One task brings both
// to rest. The rules that keep any interleaving of creating, dropping, building
// and failing right:
//
//  1. Only a task makes transitions, on its own goroutine, and there is at most
//     one task for a name of a collection (indexing.tasks). So what a task
//     knows of its index holds until the task ends, and its number, which is
//     never used twice, names the same index throughout.
//  2. EnsureIndex and DropIndex make no transition. Under indexing.mu they
//     start a task or join the one that is there. A drop that joins a build
//     sets drop and cancels the build: the same task then removes the index,
//     and the one that was to replace it or was replaced by it.
//  3. A task leaves indexing.tasks in the critical section in which it finds
//     nothing to remove (indexing.toRemove). So every drop that has joined is
//     carried out, whether or not its caller still waits for it.
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
	replaces  uint32       // the number of the index that a new one is to replace, or 0
	unwatched bool         // no call waits for it
	documents atomic.Int64 // entered so far by this process

	ctx    context.Context // of the build; cancelled by a drop, by Close, and at the end
	cancel context.CancelFunc

	drop bool // the index must be removed. Guarded by indexing.mu.
	all  bool // with drop: and all others of its name, as DropIndex asks for. Guarded by indexing.mu.

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
	replace  bool
}

// IndexProgress makes EnsureIndex report now and then how many documents have been
// added.
func IndexProgress(fn func(documents int64)) IndexOption {
	return func(o *indexOptions) { o.progress = fn }
}

// ReplaceIndex makes EnsureIndex replace an index of the same name that is declared
// otherwise. The new one is built beside the old one, which answers queries until the
// new one is ready and is dropped then; meanwhile Indexes has both. If the process ends,
// the next Open continues. If documents refuse the new one, the old one stays.
func ReplaceIndex() IndexOption {
	return func(o *indexOptions) { o.replace = true }
}

// EnsureIndex makes sure that a collection has an index, and returns nil only when
// the index is ready. An existing index is left as it is; one of the same name with
// another declaration is ErrIndexExists, unless ReplaceIndex is among opts.
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
		t, what, err := db.ensure(IndexInfo{Index: ix, Collection: collection}, o.replace)
		if err != nil {
			return fmt.Errorf("index %s: %w", collection, err)
		}
		if what == isReady {
			return nil
		}
		if err := t.wait(ctx, o.progress); err != nil {
			return err
		}
		if what == isMade {
			return t.buildErr
		}
		if what == isRemoved && t.dropErr != nil {
			return fmt.Errorf("index %q of %s, which is being dropped: %w", ix.Name, collection, t.dropErr)
		}
	}
}

// awaited is what a task does for a call of EnsureIndex.
type awaited int

const (
	isReady    awaited = iota // nothing: the index is ready
	isMade                    // it makes the index ready
	isRemoved                 // it removes an index of the same name, which must be gone first
	isAnothers                // it makes an index of the same name ready that is to be replaced
)

// ensure returns the task that makes an index ready, or the one that must end first,
// and starts it if necessary. With replace, an index of the same name may be declared
// otherwise. The declaration is canonical.
func (db *DB) ensure(info IndexInfo, replace bool) (t *indexTask, what awaited, err error) {
	in := &db.indexing
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped {
		return nil, 0, ErrClosed
	}
	key := keyOf(info.Collection, info.Name)
	if t := in.tasks[key]; t != nil {
		switch {
		case t.drop:
			return t, isRemoved, nil
		case catalog.IsSame(t.info.Index, info.Index):
			return t, isMade, nil
		case replace:
			return t, isAnothers, nil
		}
		return nil, 0, existsAs(t.info.Index)
	}
	old := db.indexes.Load().Find(info.Collection, info.Name)
	switch {
	case old == nil:
		return db.startTask(&indexTask{key: key, info: info, unwatched: info.Automatic}), isMade, nil
	case old.Info.State == IndexDropping:
		return db.startTask(taskOf(old, true)), isRemoved, nil
	case !catalog.IsSame(old.Info.Index, info.Index) && !replace:
		return nil, 0, existsAs(old.Info.Index)
	case !catalog.IsSame(old.Info.Index, info.Index):
		return db.startTask(db.taskOfReplacement(old, info)), isMade, nil
	case old.Info.State == IndexBuilding:
		return db.startTask(taskOf(old, false)), isMade, nil
	}
	return nil, isReady, nil
}

// taskOfReplacement returns a task that replaces an index. It continues one that has
// been begun.
func (db *DB) taskOfReplacement(old *catalog.Index, info IndexInfo) *indexTask {
	for _, ix := range db.indexes.Load().Named(info.Collection, info.Name) {
		if ix.Replaces == old.Number && ix.Info.State == IndexBuilding && catalog.IsSame(ix.Info.Index, info.Index) {
			return taskOf(ix, false)
		}
	}
	return &indexTask{key: keyOf(info.Collection, info.Name), info: info, replaces: old.Number}
}

func existsAs(old Index) error {
	return fmt.Errorf("%w: %q has the fields %v, unique %v, where %q", ErrIndexExists, old.Name, old.Fields, old.Unique, old.Where)
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
		return fmt.Errorf("drop index %q of %s: %w", name, collection, err)
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
		t.drop, t.all = true, true
		t.cancel()
		return t, nil
	}
	return db.startTask(taskOf(ix, true)), nil
}

// taskOf returns a task for an index of the catalog.
func taskOf(ix *catalog.Index, drop bool) *indexTask {
	return &indexTask{key: keyOf(ix.Info.Collection, ix.Info.Name), info: ix.Info, number: ix.Number, drop: drop, all: drop}
}

// startTask runs a task in the background. indexing.mu is held, and there is
// no task of its key.
func (db *DB) startTask(t *indexTask) *indexTask {
	in := &db.indexing
	t.done = make(chan struct{})
	t.ctx, t.cancel = context.WithCancel(in.ctx)
	in.tasks[t.key] = t
	build := !t.drop && (t.number == 0 || db.indexes.Load().ByNumber(t.number).Info.State == IndexBuilding)
	in.workers.Go(func() { db.runTask(t, build) })
	return t
}

// runTask is the goroutine of a task.
func (db *DB) runTask(t *indexTask, build bool) {
	in := &db.indexing
	t.buildErr, t.dropErr = errTaskEnded, errTaskEnded // unless it gets further
	defer close(t.done)
	defer in.forget(t)
	defer t.cancel()

	if build {
		t.buildErr = db.taskError(t, t.guard(func() error { return db.makeReady(t) }))
	}
	isDropped, removeErr := false, error(nil)
	for removeErr == nil {
		numbers, own := db.toRemove(t, build)
		if len(numbers) == 0 {
			break
		}
		isDropped = isDropped || own
		removeErr = db.taskError(t, t.guard(func() error { return db.removeIndexes(numbers) }))
	}
	switch {
	case isDropped:
		t.dropErr = removeErr
		if build && t.buildErr != nil {
			t.buildErr = joined(t.buildErr, removeErr)
		} else {
			t.buildErr = t.dropped()
		}
	case build:
		t.buildErr = joined(t.buildErr, removeErr)
		t.dropErr = t.buildErr
	default: // only what was left of an index that has been replaced
		t.buildErr, t.dropErr = removeErr, removeErr
	}
	db.logTask(t, errs.First(t.dropErr, t.buildErr))
}

// joined is errors.Join, but returns an only error as it is.
func joined(err, other error) error {
	if err == nil || other == nil {
		return errs.First(err, other)
	}
	return errors.Join(err, other)
}

// toRemove returns the indexes that a task must remove now, and reports whether its own
// is among them: from now on EnsureIndex sees that, and waits. If there are none the
// task ends.
func (db *DB) toRemove(t *indexTask, built bool) (numbers []uint32, own bool) {
	in := &db.indexing
	in.mu.Lock()
	defer in.mu.Unlock()
	if built && refuses(t.buildErr) && t.number != 0 && db.indexes.Load().ByNumber(t.number) != nil {
		t.drop = true
	}
	for _, ix := range db.indexes.Load().Named(t.info.Collection, t.info.Name) {
		mine := t.drop && (t.all || ix.Number == t.number)
		if mine || ix.Info.State == IndexDropping {
			numbers = append(numbers, ix.Number)
			own = own || mine
		}
	}
	if len(numbers) == 0 {
		delete(in.tasks, t.key)
	}
	return numbers, own
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
	return fmt.Errorf("%w: %q was dropped while it was being built", ErrIndex, t.info.Name)
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
	_, _, err = db.ensure(IndexInfo{Index: ix, Collection: collection, Automatic: true}, false)
	return err
}

// resumeIndexes continues what the last process has left unfinished, for Open.
func (db *DB) resumeIndexes() {
	in := &db.indexing
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, ix := range db.indexes.Load().All {
		key := keyOf(ix.Info.Collection, ix.Info.Name)
		if ix.Info.State == IndexReady || in.tasks[key] != nil {
			continue
		}
		t := db.taskOfName(key)
		t.unwatched = true
		db.startTask(t)
	}
}

// taskOfName returns the task that brings all indexes of a name to rest: it goes on
// with the newest that is building, or removes what is dropping.
func (db *DB) taskOfName(key taskKey) *indexTask {
	c := db.indexes.Load()
	owner := c.Find(key.collection, key.name)
	if owner == nil || owner.Info.State == IndexDropping {
		return taskOf(c.Named(key.collection, key.name)[0], true)
	}
	for _, ix := range c.Named(key.collection, key.name) {
		if ix.Replaces != 0 && ix.Info.State == IndexBuilding {
			return taskOf(ix, false)
		}
	}
	return taskOf(owner, false)
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
		for _, e := range r.Indexes { // a replacement that was begun and declared otherwise
			if t.replaces != 0 && e.Replaces == t.replaces && e.State == IndexBuilding {
				r.Move(e.Number, IndexDropping)
			}
		}
		kept, automatic := r.Count(t.key.collection)
		if t.replaces != 0 {
			kept-- // the one that it replaces
		}
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
		r.Indexes = append(r.Indexes, catalog.RecordEntry{Number: number, Replaces: t.replaces, Info: info})
		return nil
	})
	if err == nil {
		t.number = number
	}
	return err
}
