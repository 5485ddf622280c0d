package recovery

import (
	"context"
	"errors"
	"fmt"
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
	if err = repair(c, s, target.Name(), o, &r); err != nil {
		return r, errors.Join(fmt.Errorf("repair %q: %w", dir, err), target.Abandon())
	}
	if err = target.Commit(); err != nil {
		err = fmt.Errorf("repair %q: %w", dir, err)
	}
	return r, err
}

func repair(c *checking, s storage.Salvage, into string, o *core.Options, r *Repaired) error {
	if err := c.directory(s); err != nil {
		return err
	}
	from := salvage.Source{}
	var err error
	if from.Main, err = s.Reader(); err != nil {
		return err
	}
	for _, d := range s.Damage() {
		c.damagedFile(d)
	}
	r.Before = c.result()
	if from.Main == nil {
		return fmt.Errorf("%w: nothing in it can be read", storage.ErrCorrupt)
	}
	if len(c.broken) > 0 {
		if from.Rest, err = s.Reader(c.broken...); err != nil {
			return err
		}
	}
	unfinished, err := c.salvageInto(from, into, o, r)
	if err != nil {
		return err
	}
	return c.finishRepair(into, o, unfinished, r)
}

// salvageInto copies what can be read. It returns the indexes that were being built.
func (c *checking) salvageInto(from salvage.Source, into string, o *core.Options, r *Repaired) ([]index.Info, error) {
	engine, err := o.Driver.Open(into, storage.OpenOptions{Bounds: format.TableBounds, Logger: o.Engine.Logger})
	if err != nil {
		return nil, err
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
	if err = errors.Join(err, engine.Close()); err != nil {
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
