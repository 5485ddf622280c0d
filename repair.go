package jay

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/salvage"
	"github.com/jaydb/jay/internal/settings"
	"github.com/jaydb/jay/storage/lsm"
)

// RepairReport is what Repair has done.
type RepairReport struct {
	Before  VerifyReport `json:"before"`  // of the damaged directory: its files only
	After   VerifyReport `json:"after"`   // of the new one
	Lost    []LostItem   `json:"lost"`    // what is not in the new directory, or not as it was
	Missing int64        `json:"missing"` // how many those are, also those that are not listed

	Documents     int64    `json:"documents"`
	Revisions     int64    `json:"revisions"`
	Attachments   int64    `json:"attachments"` // different contents
	Deletions     int64    `json:"deletions"`   // that are remembered
	Counters      int64    `json:"counters"`
	Subscriptions int64    `json:"subscriptions"`
	Indexes       int64    `json:"indexes"`          // built again
	Raised        []string `json:"raised,omitempty"` // counters that were below a number in use
}

// LostItem is something that Repair could not save, or not as it was.
type LostItem struct {
	What string `json:"what"` // "document", "attachment", "revision", "subscription", "record", "range" or "index"
	ID   string `json:"id,omitempty"`
	Why  string `json:"why"`
}

// Repair makes a new database in the directory into, which must not exist, of what can be
// read of the one in dir, which is only read and must not be in use. Documents, revisions,
// attachments, compare-exchange values, counters, subscriptions and settings are copied if they are whole. The order of changes, collections,
// counts, what is due and indexes are made anew from them. Results of calls with a RequestID are left behind: such
// a call is carried out when it is made again. Counters are raised above all numbers
// that were found, so that no ID comes twice. The new database is checked: see
// RepairReport.After.
//
// What was lost is listed, with the IDs of documents as far as they are known. An error means that there
// is no new database; what was made of it is removed. opts are those of Open, and of the new
// database if its settings are lost.
func Repair(ctx context.Context, dir, into string, opts *Options, how *VerifyOptions) (RepairReport, error) {
	var r RepairReport
	c, err := newChecking(ctx, how)
	if err != nil {
		return r, err
	}
	s, err := openSalvage(dir, opts)
	if err != nil {
		return r, err
	}
	defer s.Close()
	if err := os.Mkdir(into, 0o777); err != nil {
		return r, fmt.Errorf("repair: %w", err)
	}
	if err = repair(c, s, into, opts, &r); err != nil {
		return r, errors.Join(fmt.Errorf("repair %q: %w", dir, err), os.RemoveAll(into))
	}
	return r, nil
}

func repair(c *checking, s *lsm.Salvage, into string, opts *Options, r *RepairReport) error {
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
		return fmt.Errorf("%w: nothing in it can be read", ErrCorrupt)
	}
	if len(c.broken) > 0 {
		if from.Rest, err = s.Reader(c.broken...); err != nil {
			return err
		}
	}
	if err := c.salvageInto(from, into, opts, r); err != nil {
		return err
	}
	return c.finishRepair(into, opts, r)
}

// salvageInto copies what can be read.
func (c *checking) salvageInto(from salvage.Source, into string, opts *Options, r *RepairReport) error {
	given, err := opts.withDefaults()
	if err != nil {
		return err
	}
	engine, err := lsm.Open(into, lsm.Options{CacheBytes: given.CacheBytes, MemTableBytes: given.MemTableBytes, TableBounds: format.TableBounds, Logger: given.Logger})
	if err != nil {
		return err
	}
	done, err := salvage.Copy(c.ctx, from, engine, salvage.Config{
		MaxLost:  c.opts.MaxDamages,
		Progress: func(step string, keys int64) { c.progress("save "+step, 0, keys) },
		Default: func() (format.Settings, format.Origin, error) {
			return settings.New(given.settings(), given.Now, given.Rand)
		},
	})
	if err == nil {
		err = engine.FinishCreation()
	}
	if err = errors.Join(err, engine.Close()); err != nil {
		return err
	}
	r.Documents, r.Revisions, r.Attachments, r.Deletions = done.Documents, done.Revisions, done.Contents, done.Deletions
	r.Counters, r.Subscriptions, r.Indexes, r.Raised, r.Missing = done.Counters, done.Subscriptions, done.Indexes, done.Raised, done.LostCount
	r.Lost = []LostItem{}
	for _, l := range done.Lost {
		r.Lost = append(r.Lost, LostItem(l))
	}
	return nil
}

// finishRepair opens the new database, so that it makes what follows from the documents,
// and checks it.
func (c *checking) finishRepair(into string, opts *Options, r *RepairReport) (err error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	o.MustExist, o.FS = true, nil
	o.Separator, o.NodeTag, o.CaseSensitive = "", "", false // as they were copied
	o.AcceptLoss = func(*DamageError) {}                    // counts, histories and what is due are made anew
	db, err := Open(into, &o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.counts.Wait()
	if err := waitRepaired(c.ctx, db); err != nil {
		return err
	}
	before := db.indexes.Load().Record.Indexes
	for _, e := range before {
		if err := db.EnsureIndex(c.ctx, e.Collection, e.Index); err != nil {
			if c.ctx.Err() != nil {
				return c.ctx.Err()
			}
			r.Missing++
			r.Lost = append(r.Lost, LostItem{"index", e.Name, fmt.Sprintf("index %q of %s cannot be built again: %v", e.Name, e.Collection, err)})
		}
	}
	db.indexer.Wait()
	r.After, err = db.Verify(c.ctx, &VerifyOptions{Progress: c.opts.Progress, MaxDamages: c.opts.MaxDamages})
	return err
}

// waitRepaired waits until all documents were looked at for what is due.
func waitRepaired(ctx context.Context, db *DB) error {
	for {
		state, err := db.expiry.State()
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
