// Package indexer creates, builds, replaces and drops indexes in the background, while
// documents are written. What an index is, and what a document has in it, is catalog's.
//
// Its tasks enter the gate of the database for one commit at a time.
package indexer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/catalog"
	"github.com/jaydb/jay/internal/docs"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/write"
	"github.com/jaydb/jay/storage"
)

// Indexer changes the indexes of an open database. See task.go for the life of an
// index.
type Indexer struct {
	// MaxAutomatic is how many automatic indexes there may be.
	MaxAutomatic int

	env     *env.Env
	docs    *docs.Reader
	indexes *catalog.Current
	writer  *write.Writer
	settler *settler

	mu      sync.Mutex // never held while waiting
	tasks   map[Name]*Task
	stopped bool             // no task may begin. Guarded by mu.
	refused map[string]error // why documents refused a part, by the folded name of a computed index that EnsureComputed waits for. Guarded by mu.

	ctx     context.Context // of all tasks; cancelled by Close
	stop    context.CancelFunc
	workers sync.WaitGroup // the running tasks

	changing chan struct{} // of one element, which is in it while the catalog is changed
	sorting  chan struct{} // of maxSorts elements, which are in it while builds sort
	sharing  chan struct{} // of one element, which is in it while a build of several indexes takes its elements of sorting
}

// New returns the Indexer of an open database. Resume must follow.
func New(e *env.Env, d *docs.Reader, current *catalog.Current, w *write.Writer) *Indexer {
	in := &Indexer{env: e, docs: d, indexes: current, writer: w, tasks: make(map[Name]*Task), refused: make(map[string]error), changing: make(chan struct{}, 1), sorting: make(chan struct{}, maxSorts), sharing: make(chan struct{}, 1)}
	in.ctx, in.stop = context.WithCancel(context.Background())
	in.settler = newSettler(in)
	w.Unsettled = in.settler.written
	return in
}

// Load makes the catalog that is on disk the current one, for Open.
func Load(e *env.Env, current *catalog.Current) error {
	c, err := Read(e.Engine)
	if err == nil {
		current.Replace(c)
	}
	return err
}

// Read returns the catalog that r shows.
func Read(r docs.Getter) (*catalog.Catalog, error) {
	record := catalog.Record{Next: 1}
	value, closer, err := r.Get(format.AppendKey(nil, format.SpaceMeta, format.IndexesName))
	switch {
	case err == nil:
		err = json.Unmarshal(value, &record)
		if err := errs.First(err, closer.Close()); err != nil {
			return nil, fmt.Errorf("record of indexes: %w: %w", storage.ErrCorrupt, err)
		}
	case !errors.Is(err, storage.ErrNotFound):
		return nil, err
	}
	c, err := catalog.New(record)
	if err != nil {
		return nil, fmt.Errorf("record of indexes: %w: %w", storage.ErrCorrupt, err)
	}
	return c, nil
}

// isBuilding reports whether an index is being built.
func (in *Indexer) isBuilding(number uint32) bool {
	ix := in.indexes.Load().ByNumber(number)
	return ix != nil && ix.Info.State == index.Building
}

// change commits a new list of indexes and makes it the current one. Only
// tasks and changes of computed indexes call it, and changes are serialized. edit may refuse, and runs again if another process
// was quicker. The parts of computed indexes follow, and their tasks are started.
func (in *Indexer) change(edit func(*catalog.Record) error) error {
	if err := in.commit(edit); err != nil {
		return err
	}
	if err := in.env.Renew(); err == nil { // otherwise Close has begun, or the store is away: the next Open goes on
		in.startParts(in.indexes.Load())
	}
	return nil
}

// commit is change without the tasks.
func (in *Indexer) commit(edit func(*catalog.Record) error) error {
	select {
	case in.changing <- struct{}{}:
		defer func() { <-in.changing }()
	case <-in.ctx.Done():
		return in.ctx.Err()
	}
	if err := in.env.Enter(); err != nil {
		return err
	}
	defer in.env.Exit()

	for {
		c, err := in.tryChange(edit)
		if errors.Is(err, errOvertaken) {
			continue
		}
		if err == nil && !in.env.Engine.Shared() { // a shared engine follows the catalog
			in.indexes.Replace(c)
		}
		return err
	}
}

// errOvertaken means that another process has changed the list of indexes meanwhile.
var errOvertaken = errors.New("the list of indexes has changed")

// tryChange is change from the list that is known. It returns the new one.
func (in *Indexer) tryChange(edit func(*catalog.Record) error) (*catalog.Catalog, error) {
	old := in.indexes.Load()
	record := old.Record.Clone()
	if err := record.Edit(edit); err != nil {
		return nil, err
	}
	c, err := catalog.New(record)
	if err != nil {
		return nil, err
	}
	return c, in.env.Engine.Update(in.ctx, true, func(tx storage.Tx) error {
		if in.indexes.Load() != old {
			return errOvertaken
		}
		for _, f := range c.Features {
			tx.RequireFeature(f)
		}
		return env.SetJSON(tx, format.AppendKey(nil, format.SpaceMeta, format.IndexesName), record)
	})
}

// Resume continues what the last process has left unfinished, for Open.
func (in *Indexer) Resume() {
	in.mu.Lock()
	defer in.mu.Unlock()
	unfinished := make(map[string][]*Task) // by collection
	seen := make(map[Name]bool)
	for _, ix := range in.indexes.Load().All {
		key := KeyOf(ix.Info.Collection, ix.Info.Name)
		if ix.Info.State == index.Ready || in.tasks[key] != nil || seen[key] {
			continue
		}
		seen[key] = true
		t := in.taskOfName(key)
		t.unwatched = true
		unfinished[ix.Collection] = append(unfinished[ix.Collection], t)
	}
	for _, tasks := range unfinished {
		in.startTasks(tasks)
	}
	in.settler.resume()
}

// Stop ends all tasks, for Close. No other task begins.
func (in *Indexer) Stop() {
	in.mu.Lock()
	in.stopped = true
	in.mu.Unlock()
	in.stop()
	in.workers.Wait()
	in.settler.stop()
}

// Wait returns when there is no task any more.
func (in *Indexer) Wait() {
	for {
		in.mu.Lock()
		var t *Task
		for _, t = range in.tasks {
			break
		}
		in.mu.Unlock()
		if t == nil {
			return
		}
		<-t.Done
	}
}
