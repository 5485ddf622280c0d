package indexer

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"time"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
)

// The life of an index.
//
// The catalog holds the state of every index. These are all transitions, each
// one synced commit of the catalog; catalog.Record.Move panics on any other:
//
//	from      to        made by        when
//	(none)    building  Declare   EnsureIndex, or a query with AutoIndexes
//	building  ready     FinishBuild    every document is entered
//	building  dropping  removeIndexes  DropIndex, or a document refuses the index
//	ready     dropping  removeIndexes  DropIndex
//	ready     dropping  FinishBuild    the index that replaces it became ready, in this commit
//	dropping  (none)    removeIndexes  every entry is removed
//
// Writers maintain an index that is building or ready; queries use one that is
// ready. (none) and ready are the states of rest. A Task brings an index
// to rest. An index that is replaced has a second one of its name beside it: the new
// one, which is building, and then the old one, which is dropping. One task brings both
// to rest. The rules that keep any interleaving of creating, dropping, building
// and failing right:
//
//  1. Only a task makes transitions, on its own goroutine, and there is at most
//     one task for a name of a collection (Indexer.tasks). So what a task
//     knows of its index holds until the task ends, and its number, which is
//     never used twice, names the same index throughout.
//  2. EnsureIndex and DropIndex make no transition. Under Indexer.mu they
//     start a task or join the one that is there. A drop that joins a build
//     sets drop and cancels the build: the same task then removes the index,
//     and the one that was to replace it or was replaced by it.
//  3. A task leaves Indexer.tasks in the critical section in which it finds
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

// Task brings one index to rest: it builds it, removes it, or both, one
// after the other.
type Task struct {
	Key       Name
	Info      index.Info   // as declared
	Number    uint32       // 0 until the index is in the catalog. Used by the task only.
	Replaces  uint32       // the number of the index that a new one is to replace, or 0
	unwatched bool         // no call waits for it
	documents atomic.Int64 // entered so far by this process

	team       *team // of those that it builds with, or nil
	left       bool  // the team does not wait for it any more. Guarded by team.mu.
	declareErr error // why the team has not declared the index. Valid after team.declare.

	Ctx    context.Context // of the build; cancelled by a drop, by Close, and at the end
	Cancel context.CancelFunc

	drop bool // the index must be removed. Guarded by Indexer.mu.
	all  bool // with drop: and all others of its name, as DropIndex asks for. Guarded by Indexer.mu.

	Done     chan struct{} // closed at the end
	BuildErr error         // nil if the index became ready. Valid once done is closed.
	DropErr  error         // nil if the index is gone. Valid once done is closed.
}

// Name names an index of a collection. Both names are folded.
type Name struct{ collection, name string }

func KeyOf(collection, name string) Name {
	return Name{format.FoldName(collection), format.FoldName(name)}
}

// Awaited is what a task does for a call of EnsureIndex.
type Awaited int

const (
	IsReady    Awaited = iota // nothing: the index is ready
	IsMade                    // it makes the index ready
	IsRemoved                 // it removes an index of the same name, which must be gone first
	isAnothers                // it makes an index of the same name ready that is to be replaced
)

// Ensure returns the task that makes an index ready, or the one that must end first,
// and starts it if necessary. With replace, an index of the same name may be declared
// otherwise. The declaration is canonical.
func (in *Indexer) Ensure(info index.Info, replace bool) (*Task, Awaited, error) {
	all, err := in.EnsureAll([]index.Info{info}, replace)
	if err != nil {
		return nil, 0, err
	}
	return all[0].Task, all[0].What, nil
}

// taskFor is Ensure for one index, but leaves it to the caller to start a task that is new.
// Indexer.mu is held.
func (in *Indexer) taskFor(info index.Info, replace bool) (t *Task, what Awaited, isNew bool, err error) {
	key := KeyOf(info.Collection, info.Name)
	if t := in.tasks[key]; t != nil {
		switch {
		case t.drop:
			return t, IsRemoved, false, nil
		case catalog.IsSame(t.Info.Index, info.Index):
			return t, IsMade, false, nil
		case replace:
			return t, isAnothers, false, nil
		}
		return nil, 0, false, existsAs(t.Info.Index)
	}
	old := in.indexes.Load().Find(info.Collection, info.Name)
	switch {
	case old == nil:
		return &Task{Key: key, Info: info, unwatched: info.Automatic}, IsMade, true, nil
	case old.Info.State == index.Dropping:
		return taskOf(old, true), IsRemoved, true, nil
	case !catalog.IsSame(old.Info.Index, info.Index) && !replace:
		return nil, 0, false, existsAs(old.Info.Index)
	case !catalog.IsSame(old.Info.Index, info.Index):
		return in.taskOfReplacement(old, info), IsMade, true, nil
	case old.Info.State == index.Building:
		return taskOf(old, false), IsMade, true, nil
	}
	return nil, IsReady, false, nil
}

// taskOfReplacement returns a task that replaces an index. It continues one that has
// been begun.
func (in *Indexer) taskOfReplacement(old *catalog.Index, info index.Info) *Task {
	for _, ix := range in.indexes.Load().Named(info.Collection, info.Name) {
		if ix.Replaces == old.Number && ix.Info.State == index.Building && catalog.IsSame(ix.Info.Index, info.Index) {
			return taskOf(ix, false)
		}
	}
	return &Task{Key: KeyOf(info.Collection, info.Name), Info: info, Replaces: old.Number}
}

func existsAs(old index.Index) error {
	kind := ""
	if old.Kind != "" {
		kind = fmt.Sprintf(", kind %.100q", old.Kind)
	}
	if len(old.Options) > 0 {
		kind += fmt.Sprintf(", options %.300s", strings.Join(old.OptionTexts(), ", "))
	}
	return fmt.Errorf("%w: %.100q has the fields %v, unique %v, where %.100q%s", errs.ErrIndexExists, old.Name, old.Fields, old.Unique, old.Where, kind)
}

// Drop returns the task that removes an index, and starts it if necessary.
func (in *Indexer) Drop(collection, name string) (*Task, error) {
	if err := in.env.Renew(); err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped {
		return nil, errs.ErrClosed
	}
	ix := in.indexes.Load().Find(collection, name)
	if ix == nil {
		return nil, fmt.Errorf("%w: there is none of that name", errs.ErrIndex)
	}
	if t := in.tasks[KeyOf(collection, name)]; t != nil {
		t.drop, t.all = true, true
		t.Cancel()
		return t, nil
	}
	t := taskOf(ix, true)
	t.all = true
	in.startTasks([]*Task{t})
	return t, nil
}

// taskOf returns a task for an index of the catalog. With drop it removes that index, and not the others of its name: another process may have
// declared one since.
func taskOf(ix *catalog.Index, drop bool) *Task {
	return &Task{Key: KeyOf(ix.Info.Collection, ix.Info.Name), Info: ix.Info, Number: ix.Number, drop: drop}
}

// startTask runs a task in the background, for startTasks.
func (in *Indexer) startTask(t *Task, build bool) {
	t.Done = make(chan struct{})
	t.Ctx, t.Cancel = context.WithCancel(in.ctx)
	in.tasks[t.Key] = t
	in.workers.Go(func() { in.runTask(t, build) })
}

// runTask is the goroutine of a task.
func (in *Indexer) runTask(t *Task, build bool) {
	t.BuildErr, t.DropErr = ErrTaskEnded, ErrTaskEnded // unless it gets further
	defer close(t.Done)
	defer in.forget(t)
	defer t.Cancel()

	if build {
		t.BuildErr = in.taskError(t, t.guard(func() error { return in.makeReady(t) }))
		in.noteRefused(t)
	}
	isDropped, removeErr := false, error(nil)
	for removeErr == nil {
		numbers, own := in.toRemove(t, build)
		if len(numbers) == 0 {
			break
		}
		isDropped = isDropped || own
		removeErr = in.taskError(t, t.guard(func() error { return in.removeIndexes(numbers) }))
	}
	switch {
	case isDropped:
		t.DropErr = removeErr
		if build && t.BuildErr != nil {
			t.BuildErr = joined(t.BuildErr, removeErr)
			break
		}
		t.BuildErr = t.dropped() // for those who wait for it; nothing has failed
		in.logTask(t, t.DropErr)
		return
	case build:
		t.BuildErr = joined(t.BuildErr, removeErr)
		t.DropErr = t.BuildErr
	default: // only what was left of an index that has been replaced
		t.BuildErr, t.DropErr = removeErr, removeErr
	}
	in.logTask(t, errs.First(t.DropErr, t.BuildErr))
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
func (in *Indexer) toRemove(t *Task, built bool) (numbers []uint32, own bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if built && refuses(t.BuildErr) && t.Number != 0 && in.indexes.Load().ByNumber(t.Number) != nil {
		t.drop = true
	}
	for _, ix := range in.indexes.Load().Named(t.Info.Collection, t.Info.Name) {
		mine := t.drop && (t.all || ix.Number == t.Number)
		if mine || ix.Info.State == index.Dropping {
			numbers = append(numbers, ix.Number)
			own = own || mine
		}
	}
	if len(numbers) == 0 {
		delete(in.tasks, t.Key)
	}
	return numbers, own
}

// forget removes a task from the tasks, if it is still there.
func (in *Indexer) forget(t *Task) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.tasks[t.Key] == t {
		delete(in.tasks, t.Key)
	}
}

// refuses reports whether a build has failed because of the contents of the
// database: the index is impossible, and is removed. Close, an engine that has failed or is away, a disk
// without room for a sort, a panic and a commit of the cluster that is not decided say nothing about the index.
func refuses(err error) bool {
	for _, other := range []error{errs.ErrIndex, context.Canceled, ErrTaskEnded, errSort, write.ErrLocked} {
		if errors.Is(err, other) {
			return false
		}
	}
	return err != nil && !env.IsOfEngine(err)
}

// ErrTaskEnded is the error of a task that met a bug, in Jay or in code that Jay
// was given to call. Its index is stalled.
var ErrTaskEnded = errors.New("jay: the work on an index ended before its time")

// guard runs a part of a task. A panic becomes an error for the callers that wait
// for the task, now or later: it must not end the process whenever the database is
// opened.
func (t *Task) guard(fn func() error) error {
	return guard(fmt.Sprintf("index %q of %s", t.Info.Name, t.Info.Collection), fn)
}

func guard(what string, fn func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %s: panic: %v\n%s", ErrTaskEnded, what, p, debug.Stack())
		}
	}()
	return fn()
}

// taskError replaces the error of a cancelled context for the callers that wait for
// a task: the context is not theirs.
func (in *Indexer) taskError(t *Task, err error) error {
	switch {
	case !errors.Is(err, context.Canceled):
		return err
	case in.ctx.Err() != nil:
		return errs.ErrClosed
	}
	return t.dropped()
}

func (t *Task) dropped() error { return droppedError(t.Info.Name) }

func droppedError(name string) error {
	return fmt.Errorf("%w: %.100q was dropped while it was being built", errs.ErrIndex, name)
}

// logTask logs the failure of a task that no call waits for.
func (in *Indexer) logTask(t *Task, err error) {
	if !t.unwatched || err == nil || in.env.Logger == nil || errors.Is(err, errs.ErrClosed) || errors.Is(err, errEnough) {
		return
	}
	// A panic of the logger's handler is the only error that guard could return
	// here.
	_ = t.guard(func() error {
		in.env.Logger.Warn("jay: index", "collection", t.Info.Collection, "fields", t.Info.Fields, "automatic", t.Info.Automatic, "err", err)
		return nil
	})
}

// progressEvery is how often EnsureIndex reports how far a build is.
const progressEvery = 200 * time.Millisecond

// Wait returns nil at the end of the task, or the error of ctx.
func (t *Task) Wait(ctx context.Context, progress func(int64)) error {
	if progress == nil {
		progress = func(int64) {}
	}
	tick := time.NewTicker(progressEvery)
	defer tick.Stop()
	for {
		select {
		case <-t.Done:
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

// Auto makes an index for queries, in the background.
func (in *Indexer) Auto(collection string, ix index.Index) error {
	ix, err := catalog.Canonical(ix, collection)
	if err != nil {
		return err
	}
	_, _, err = in.Ensure(index.Info{Index: ix, Collection: collection, Automatic: true}, false)
	return err
}

// taskOfName returns the task that brings all indexes of a name to rest: it goes on
// with the newest that is building, or removes what is dropping.
func (in *Indexer) taskOfName(key Name) *Task {
	c := in.indexes.Load()
	owner := c.Find(key.collection, key.name)
	if owner == nil || owner.Info.State == index.Dropping {
		return taskOf(c.Named(key.collection, key.name)[0], true)
	}
	for _, ix := range c.Named(key.collection, key.name) {
		if ix.Replaces != 0 && ix.Info.State == index.Building {
			return taskOf(ix, false)
		}
	}
	return taskOf(owner, false)
}

// makeReady declares the index of a task, if it is new, and builds it.
func (in *Indexer) makeReady(t *Task) error {
	defer in.leaveTeam(t)
	if t.team != nil {
		t.team.declare()
		if t.declareErr != nil {
			return fmt.Errorf("index %s: %w", t.Info.Collection, t.declareErr)
		}
	}
	if t.Number == 0 {
		if err := in.Declare(t); err != nil {
			return fmt.Errorf("index %s: %w", t.Info.Collection, err)
		}
	}
	return in.Build(t)
}

// Declare adds the index of a task to the catalog.
func (in *Indexer) Declare(t *Task) error {
	in.declareAll([]*Task{t})
	return t.declareErr
}

// adopt gives a task the index that another process has declared for it since it was started.
// Without another process it finds none.
func adopt(r *catalog.Record, t *Task) (found bool, err error) {
	var owner *catalog.RecordEntry // of the name
	for i := range r.Indexes {
		e := &r.Indexes[i]
		switch {
		case KeyOf(e.Collection, e.Name) != t.Key || e.State == index.Dropping:
		case e.Replaces == 0:
			owner = e
		case e.Replaces == t.Replaces && catalog.IsSame(e.Index, t.Info.Index):
			t.Number = e.Number
			return true, nil
		}
	}
	switch {
	case owner == nil:
		t.Replaces = 0
	case owner.Number == t.Replaces:
	case catalog.IsSame(owner.Index, t.Info.Index):
		t.Number = owner.Number
		return true, nil
	default:
		return false, existsAs(owner.Index)
	}
	return false, nil
}

// declareIn adds the index of a task to a record of indexes, and gives it its number.
func (in *Indexer) declareIn(r *catalog.Record, t *Task) error {
	if found, err := adopt(r, t); found || err != nil {
		return err
	}
	kept, automatic := r.Count(t.Key.collection)
	var begun []uint32 // replacements that were begun and declared otherwise
	for _, e := range r.Indexes {
		if t.Replaces != 0 && e.Replaces == t.Replaces && e.State == index.Building {
			begun = append(begun, e.Number)
		}
	}
	kept -= len(begun)
	if t.Replaces != 0 {
		kept-- // the one that it replaces
	}
	if kept >= catalog.MaxPerCollection {
		return fmt.Errorf("%w: %s has %d indexes already, the most there can be", errs.ErrIndex, t.Info.Collection, catalog.MaxPerCollection)
	}
	if t.Info.Automatic && automatic >= in.MaxAutomatic {
		return errEnough
	}
	for _, number := range begun {
		r.Move(number, index.Dropping)
	}
	t.Number = r.Next
	r.Next++
	info := t.Info
	info.State = index.Building
	r.Indexes = append(r.Indexes, catalog.RecordEntry{Number: t.Number, Replaces: t.Replaces, Notes: info.Kind != "", Info: info})
	return nil
}
