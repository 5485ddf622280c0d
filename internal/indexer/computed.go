package indexer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/computed"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
)

// Computed indexes are changed by commits of the catalog, in which their parts follow: see catalog.Record.Edit. Behind each commit the
// tasks of the parts are started, and those of parts that are to be dropped end their builds. A crash in between leaves what Resume goes on with.

// startParts starts the tasks of parts that a change of the catalog has left to be built or dropped.
func (in *Indexer) startParts(c *catalog.Catalog) {
	if len(c.Computed) == 0 && !slices.ContainsFunc(c.All, func(ix *catalog.Index) bool { return ix.Part }) {
		return
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped {
		return
	}
	unfinished := make(map[string][]*Task) // by collection
	for _, ix := range c.All {
		if !ix.Part || ix.Info.State == index.Ready {
			continue
		}
		t := in.tasks[KeyOf(ix.Info.Collection, ix.Info.Name)]
		switch {
		case t == nil:
			t = taskOf(ix, ix.Info.State == index.Dropping)
			t.unwatched = true
			unfinished[ix.Collection] = append(unfinished[ix.Collection], t)
		case ix.Info.State == index.Dropping && !t.drop:
			t.drop, t.all = true, true
			t.Cancel()
		}
	}
	for _, tasks := range unfinished {
		in.startTasks(tasks)
	}
}

// errUnchanged ends a change of the catalog that has nothing to change.
var errUnchanged = errors.New("nothing is to be changed")

// EnsureComputed makes sure that there is a computed index, and returns nil when its parts are ready: see ComputedIndexes.Ensure of
// package jay.
func (in *Indexer) EnsureComputed(ctx context.Context, declared index.Computed, o Options) error {
	d, err := catalog.CanonicalComputed(declared)
	if err != nil {
		return err
	}
	defer in.watchRefused(d.Declared.Name)()
	err = in.changeComputed(ctx, func(r *catalog.Record) (bool, error) { return r.Declare(d, o.Replace) })
	if err == nil {
		err = in.awaitComputed(ctx, d, o.Progress)
	}
	return ofComputed(d.Declared.Name, err)
}

// watchRefused begins to keep why documents refuse a part of a computed index, until the function that it returns is called. The task that builds
// the part may have ended, and taken the declaration with it, before anybody waits for it.
func (in *Indexer) watchRefused(name string) (end func()) {
	key := format.FoldName(name)
	in.mu.Lock()
	defer in.mu.Unlock()
	in.refused[key] = nil
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		delete(in.refused, key)
	}
}

// noteRefused keeps why documents refuse the index of a task, if it is a part that somebody waits for. It must be called before the declaration
// is withdrawn.
func (in *Indexer) noteRefused(t *Task) {
	owner := catalog.OwnerOf(t.Info.Name)
	in.mu.Lock()
	defer in.mu.Unlock()
	if _, waited := in.refused[owner]; waited && refuses(t.BuildErr) {
		in.refused[owner] = t.BuildErr
	}
}

// gone returns why a declaration that is awaited is no longer there: documents have refused it, or what else has happened.
func (in *Indexer) gone(d *computed.Definition, otherwise string) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	if err := in.refused[format.FoldName(d.Declared.Name)]; err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", errs.ErrIndex, otherwise)
}

// ofComputed wraps an error of a computed index.
func ofComputed(name string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("computed index %q: %w", errs.Shorten(name), err)
}

// changeComputed commits a change of the catalog, if there is anything to change.
func (in *Indexer) changeComputed(ctx context.Context, edit func(*catalog.Record) (bool, error)) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := in.env.Renew(); err != nil {
		return err
	}
	err := in.change(func(r *catalog.Record) error {
		changed, err := edit(r)
		if err == nil && !changed {
			err = errUnchanged
		}
		return err
	})
	if errors.Is(err, errUnchanged) {
		return nil
	}
	if errors.Is(err, context.Canceled) && in.ctx.Err() != nil {
		return errs.ErrClosed
	}
	return err
}

// awaitComputed returns nil when a declaration is in force and its parts are ready.
func (in *Indexer) awaitComputed(ctx context.Context, d *computed.Definition, progress func(int64)) error {
	for {
		if err := in.env.Renew(); err != nil {
			return err
		}
		c := in.indexes.Load()
		one := c.FindComputed(d.Declared.Name)
		switch {
		case one == nil || one.Unknown != nil:
			return in.gone(d, "it was dropped while it was being built")
		case catalog.IsSameComputed(one.Declared, d):
		case one.Next == nil || !catalog.IsSameComputed(one.Next, d):
			return in.gone(d, "it was declared otherwise while it was being built")
		}
		t, building, err := in.partTask(c, d)
		if err != nil || !building {
			return err
		}
		if t == nil {
			in.startParts(in.indexes.Load()) // one was stalled, or has just become ready
			continue
		}
		if err := t.Wait(ctx, progress); err != nil {
			return err
		}
		if t.BuildErr != nil {
			return t.BuildErr
		}
	}
}

// partTask returns a task that builds a part of a declaration, if there is one, and whether any part is being built.
func (in *Indexer) partTask(c *catalog.Catalog, d *computed.Definition) (t *Task, building bool, err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped {
		return nil, false, errs.ErrClosed
	}
	for _, ix := range c.PartsOf(d) {
		if ix.Info.State == index.Building {
			if building, t = true, in.tasks[KeyOf(ix.Info.Collection, ix.Info.Name)]; t != nil {
				return t, true, nil
			}
		}
	}
	return nil, building, nil
}

// DropComputed removes a computed index and its parts, and returns when they are gone: see ComputedIndexes.Drop of package jay.
func (in *Indexer) DropComputed(ctx context.Context, name string) error {
	err := in.changeComputed(ctx, func(r *catalog.Record) (bool, error) {
		if !r.RemoveComputed(name) {
			return false, fmt.Errorf("%w: there is none of that name", errs.ErrIndex)
		}
		return true, nil
	})
	if err == nil {
		err = in.awaitDropped(ctx)
	}
	return ofComputed(name, err)
}

// DropComputedOf removes the computed indexes all of whose maps are of a collection.
func (in *Indexer) DropComputedOf(ctx context.Context, collection string) error {
	err := in.changeComputed(ctx, func(r *catalog.Record) (bool, error) { return r.RemoveComputedOf(collection), nil })
	if err == nil {
		err = in.awaitDropped(ctx)
	}
	return err
}

// RetargetComputed gives computed indexes maps of the collection to in place of those of from, or beside them: see catalog.Record.Retarget.
func (in *Indexer) RetargetComputed(ctx context.Context, from, to string, both bool) error {
	changed := false
	err := in.changeComputed(ctx, func(r *catalog.Record) (_ bool, err error) {
		changed, err = r.Retarget(from, to, both)
		return changed, err
	})
	if err != nil {
		return err
	}
	for _, one := range in.indexes.Load().Computed {
		if one.Next == nil || !slices.Contains(one.Next.Collections(), format.FoldName(to)) {
			continue // also one of other collections that is being replaced
		}
		changed = true
		if err := in.awaitComputed(ctx, one.Next, nil); err != nil {
			return ofComputed(one.Name, err)
		}
	}
	if !changed {
		return nil
	}
	return in.awaitDropped(ctx)
}

// awaitDropped returns when the parts that are being dropped are gone.
func (in *Indexer) awaitDropped(ctx context.Context) error {
	in.mu.Lock()
	var tasks []*Task
	for _, ix := range in.indexes.Load().All {
		if t := in.tasks[KeyOf(ix.Info.Collection, ix.Info.Name)]; ix.Part && ix.Info.State == index.Dropping && t != nil {
			tasks = append(tasks, t)
		}
	}
	in.mu.Unlock()
	for _, t := range tasks {
		if err := t.Wait(ctx, nil); err != nil {
			return err
		}
		if t.DropErr != nil {
			return t.DropErr
		}
	}
	return nil
}

// checkNames refuses names of parts for indexes that are none. An older version may have declared one.
func (in *Indexer) checkNames(infos []index.Info) error {
	for _, info := range infos {
		if !strings.HasPrefix(format.FoldName(info.Name), catalog.PartPrefix) {
			continue
		}
		if old := in.indexes.Load().Find(info.Collection, info.Name); old == nil || old.Part {
			return fmt.Errorf("%w: the name %.100q begins with %q, as those of the parts of computed indexes do", errs.ErrIndex, info.Name, catalog.PartPrefix)
		}
	}
	return nil
}

// CheckDropped refuses to drop an index that is a part of a computed one.
func (in *Indexer) CheckDropped(collection, name string) error {
	if ix := in.indexes.Load().Find(collection, name); ix != nil && ix.Part {
		return fmt.Errorf("drop index %.100q of %s: %w: it is a part of a computed index, and is dropped with it", name, collection, errs.ErrIndex)
	}
	return nil
}
