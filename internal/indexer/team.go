package indexer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/errs"
)

// How several indexes of a collection are built in one pass
//
// Tasks that EnsureAll or Resume starts together form a team. The first task that runs declares the
// indexes of all members, in one commit. A member whose index is to be built by tables arrives; any
// other member leaves. Once every member has arrived or left, one tableBuild builds the indexes of
// those that have arrived. It has a goroutine of its own, so each member can be dropped or fail
// without the others. A member waits until the tableBuild is done with its part, so that nothing is
// written into an index that its task is removing.

// maxTogether is how many indexes are built in one pass: they share the memory of a sort.
const maxTogether = 8

// team is some tasks that build together.
type team struct {
	in      *Indexer
	declare func() // of all members; the first call does it, the others wait for it

	mu      sync.Mutex
	awaited int     // members that have neither arrived nor left. Guarded by mu.
	arrived []*part // Guarded by mu.
}

// startTasks starts tasks of one collection; those that build do so together. Indexer.mu is
// held, and there is no task of their keys.
func (in *Indexer) startTasks(tasks []*Task) {
	var builders, others []*Task
	for _, t := range tasks {
		if !t.drop && (t.Number == 0 || in.isBuilding(t.Number)) {
			builders = append(builders, t)
		} else {
			others = append(others, t)
		}
	}
	for members := range slices.Chunk(builders, maxTogether) {
		if len(members) == 1 {
			break
		}
		tm := &team{in: in, awaited: len(members), declare: sync.OnceFunc(func() { in.declareAll(members) })}
		for _, t := range members {
			t.team = tm
		}
	}
	// A task gives numbers to all of its team as soon as it runs.
	for _, t := range builders {
		in.startTask(t, true)
	}
	for _, t := range others {
		in.startTask(t, false)
	}
}

// leaveTeam ends the membership of a task, unless it has arrived.
func (in *Indexer) leaveTeam(t *Task) {
	tm := t.team
	if tm == nil {
		return
	}
	tm.mu.Lock()
	defer tm.mu.Unlock()
	if !t.left {
		tm.count(t)
	}
}

// arrive adds the part of a task, and ends its membership.
func (tm *team) arrive(p *part) {
	tm.mu.Lock()
	defer tm.mu.Unlock()
	tm.arrived = append(tm.arrived, p)
	tm.count(p.t)
}

// count begins the build if the others were waiting for this task only.
func (tm *team) count(t *Task) {
	t.left = true
	if tm.awaited--; tm.awaited == 0 && len(tm.arrived) > 0 {
		parts := tm.arrived
		tm.in.workers.Go(func() { tm.in.buildTogether(parts) })
	}
}

// buildTogether builds the indexes of parts, and ends each of them.
func (in *Indexer) buildTogether(parts []*part) {
	ctx, cancel := context.WithCancel(in.ctx)
	defer cancel()
	for _, p := range parts {
		// The last one that is cancelled ends the build.
		defer context.AfterFunc(p.t.Ctx, func() {
			if !slices.ContainsFunc(parts, func(p *part) bool { return p.t.Ctx.Err() == nil }) {
				cancel()
			}
		})()
	}
	b := in.newTableBuild(ctx, slices.Clone(parts))
	err := ErrTaskEnded // unless it gets further: code that it calls may end the goroutine
	defer func() { b.end(err) }()
	err = guard(fmt.Sprint("indexes of ", b.collection), b.run)
}

// declareAll adds the indexes of tasks that are new to the catalog, in one commit. Afterwards
// each task has a number or a declareErr.
func (in *Indexer) declareAll(tasks []*Task) {
	var added []*Task
	for _, t := range tasks {
		if t.Number == 0 {
			added = append(added, t)
		}
	}
	if len(added) == 0 {
		return
	}
	err := in.change(func(r *catalog.Record) error {
		refused := 0
		for _, t := range added {
			t.Number = 0 // of a run that another process has overtaken: the number may be that of its index
			if t.declareErr = in.declareIn(r, t); t.declareErr != nil {
				refused++
			}
		}
		if refused == len(added) {
			return errNoneDeclared
		}
		return nil
	})
	if err == nil {
		return
	}
	for _, t := range added {
		if t.Number = 0; t.declareErr == nil {
			t.declareErr = err
		}
	}
}

// errNoneDeclared means that the catalog need not be changed.
var errNoneDeclared = errors.New("no index is declared")

// Awaitable is what EnsureAll returns for an index.
type Awaitable struct {
	Task *Task // nil for IsReady
	What Awaited
}

// EnsureAll is Ensure for several indexes of a collection, whose names differ. Those that are
// new are built together. With an error nothing was started.
func (in *Indexer) EnsureAll(infos []index.Info, replace bool) ([]Awaitable, error) {
	if err := in.env.Renew(); err != nil {
		return nil, err
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.stopped {
		return nil, errs.ErrClosed
	}
	var started []*Task
	out := make([]Awaitable, len(infos))
	for i, info := range infos {
		t, what, isNew, err := in.taskFor(info, replace)
		if err != nil {
			return nil, err
		}
		out[i] = Awaitable{t, what}
		if isNew {
			started = append(started, t)
		}
	}
	in.startTasks(started)
	return out, nil
}
