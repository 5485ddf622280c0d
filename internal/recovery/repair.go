package recovery

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jaydb/jay/index"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/salvage"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/storage"
)

// Repaired is RepairReport of package jay.
type Repaired struct {
	Before, After Report
	Lost          []salvage.Lost
	Missing       int64

	Documents, Revisions, Attachments, Deletions int64
	Counters, Subscriptions, Indexes             int64
	Raised                                       []string
}

// Repair makes a new database in the directory into of what can be read of the one in dir:
// see Repair of package jay. o are the options of the new database, and its settings if
// those in dir are lost; dir is read by from, the options of a database that is there.
func Repair(ctx context.Context, dir, into string, from, o *core.Options, how CheckOptions) (r Repaired, err error) {
	c, err := newChecking(ctx, how)
	if err != nil {
		return r, err
	}
	s, err := openDirectory(dir, from)
	if err != nil {
		return r, err
	}
	defer s.Close()
	target, err := o.Driver.Prepare(into)
	if err != nil {
		return r, fmt.Errorf("repair: %w", err)
	}
	engine, err := claim(target, o) // before dir is read, which may take hours
	if err != nil {
		return r, fmt.Errorf("repair: %w", err)
	}
	if err = repair(c, s, engine, target.Name(), o, &r); err != nil {
		return r, errors.Join(fmt.Errorf("repair %q: %w", dir, err), target.Abandon())
	}
	if err = target.Commit(); err != nil {
		err = fmt.Errorf("repair %q: %w", dir, err)
	}
	return r, err
}

// claim makes the store of target and opens it. If another has made one by now, the error
// is an fs.ErrExist or storage.ErrLocked, and that store stays as it is.
func claim(target storage.NewStore, o *core.Options) (storage.Engine, error) {
	engine, err := o.Driver.Open(target.Name(), storage.OpenOptions{Bounds: format.TableBounds, Logger: o.Engine.Logger})
	if err != nil {
		return nil, err
	}
	if !engine.Creating() {
		return nil, errors.Join(&fs.PathError{Op: "make", Path: target.Name(), Err: fs.ErrExist}, engine.Close())
	}
	return engine, nil
}

// repair fills the new store, whose engine it closes, and makes a database of it.
func repair(c *checking, s storage.Salvage, engine storage.Engine, into string, o *core.Options, r *Repaired) error {
	unfinished, err := c.fill(s, engine, o, r)
	if err = errors.Join(err, engine.Close()); err != nil {
		return err
	}
	return c.finishRepair(into, o, unfinished, r)
}

// fill checks what is there, and copies what can be read. It returns the indexes that were
// being built.
func (c *checking) fill(s storage.Salvage, engine storage.Engine, o *core.Options, r *Repaired) ([]index.Info, error) {
	if err := c.directory(s); err != nil {
		return nil, err
	}
	from := salvage.Source{Format: s.Format()}
	var err error
	if from.Main, err = s.Reader(); err != nil {
		return nil, err
	}
	for _, d := range s.Damage() {
		c.damagedFile(d)
	}
	r.Before = c.result()
	if from.Main == nil {
		return nil, fmt.Errorf("%w: nothing in it can be read", storage.ErrCorrupt)
	}
	if len(c.broken) > 0 {
		if from.Rest, err = s.Reader(c.broken...); err != nil {
			return nil, err
		}
	}
	done, err := salvage.Copy(c.ctx, from, engine, salvage.Config{
		MaxLost:  c.opts.MaxDamages,
		Progress: func(step string, keys int64) { c.progress("save "+step, 0, keys) },
		Default: func() (format.Settings, format.Origin, error) {
			return settings.New(o.Settings, o.Now, o.Rand)
		},
	})
	if err == nil {
		err = engine.FinishCreation()
	}
	if err != nil {
		return nil, err
	}
	r.Documents, r.Revisions, r.Attachments, r.Deletions = done.Documents, done.Revisions, done.Contents, done.Deletions
	r.Counters, r.Subscriptions, r.Raised, r.Missing = done.Counters, done.Subscriptions, done.Raised, done.LostCount
	r.Lost = done.Lost
	return done.Unfinished, nil
}

// finishRepair opens the new database, so that it makes what follows from the documents,
// and checks it.
func (c *checking) finishRepair(into string, o *core.Options, unfinished []index.Info, r *Repaired) (err error) {
	again := *o
	again.Engine.MustExist, again.Rebuilding = true, true
	s := &again.Settings
	s.Separator, s.NodeTag, s.CaseSensitive = "", "", false // as they were copied
	accept := func(*storage.DamageError) {}                 // counts, histories and what is due are made anew
	s.AcceptLoss, again.Engine.AcceptLoss = accept, accept
	db := new(core.Database)
	if err := db.Open(into, &again); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.Counts.Wait()
	if err := waitRepaired(c.ctx, db); err != nil {
		return err
	}
	refused, err := db.Indexer.Rebuild(c.ctx, unfinished)
	if err != nil {
		return err
	}
	for _, ix := range refused {
		r.Missing++
		r.Lost = append(r.Lost, salvage.Lost{What: "index", ID: ix.Info.Name, Why: fmt.Sprintf("index %q of %s cannot be built again: %v", ix.Info.Name, ix.Info.Collection, ix.Err)})
	}
	r.Indexes = int64(len(db.Indexes.Load().All))
	r.After, err = Check(c.ctx, db, CheckOptions{Progress: c.opts.Progress, MaxDamages: c.opts.MaxDamages})
	return err
}

// waitRepaired waits until all documents were looked at for what is due.
func waitRepaired(ctx context.Context, db *core.Database) error {
	for {
		state, err := db.Expiry.State()
		if err != nil || state.All {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
