package recovery

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/backup"
	"github.com/jaydb/jay/internal/copier"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/storage"
)

// CopyOptions are CopyOptions of package jay.
type CopyOptions struct {
	// From and To are the options that the source and the target are opened under. To.Settings.CopyTag is set, or the copy has the
	// tag of the source.
	From, To core.Options
	Floors   core.Counters
	Progress func(copier.Progress)
}

// Copied is CopyInfo of package jay.
type Copied struct {
	NodeTag string
	Size    format.CopySize
	Resumed bool
}

// Copy copies a database from one store to another: see Copy of package jay.
func Copy(ctx context.Context, from, to string, o CopyOptions) (info Copied, err error) {
	if from == "" || to == "" {
		return info, fmt.Errorf("%w: a copy needs a source and a target", ids.ErrUsage)
	}
	if err := ctx.Err(); err != nil {
		return info, err
	}
	if o.Progress == nil {
		o.Progress = func(copier.Progress) {}
	}
	engine, err := o.From.Driver.Open(from, storage.OpenOptions{ReadOnly: true, MustExist: true, Bounds: format.TableBounds, Logger: o.From.Engine.Logger})
	if err != nil {
		return info, fmt.Errorf("source: %w", err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	source, err := copier.OpenSource(engine, storage.Shown(o.From.Driver, from))
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, source.Close()) }()
	if err := checkCopyTag(o.To.Settings.CopyTag, source.Origins); err != nil {
		return info, err
	}
	c := copying{ctx, to, &o, source}
	if err := c.fill(&info); err != nil {
		return info, err
	}
	return info, c.complete(&info)
}

// copying is a Copy under way.
type copying struct {
	ctx    context.Context
	to     string
	o      *CopyOptions
	source *copier.Source
}

// fill makes the target equal to the source, but for its mark.
func (c copying) fill(info *Copied) (err error) {
	engine, total, err := c.openTarget()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	target, err := copier.OpenTarget(engine, c.shown(), c.source, c.o.To.Settings.CopyTag)
	if err != nil {
		return err
	}
	if err := target.Begin(c.ctx, rand.Text(), total); err != nil {
		return err
	}
	if err := target.Copy(c.ctx, c.o.Progress); err != nil {
		return err
	}
	if err := target.Compare(c.ctx, c.o.Progress); err != nil {
		return err
	}
	info.NodeTag, info.Size, info.Resumed = c.source.Own.Tag, target.Mark.Done, target.Resumed
	return nil
}

func (c copying) shown() string { return storage.Shown(c.o.To.Driver, c.to) }

// openTarget opens the store of the target, or makes it, after looking for what it cannot store. total is what there is to copy, if that is known.
func (c copying) openTarget() (engine storage.Engine, total format.CopySize, err error) {
	options := storage.OpenOptions{MustExist: true, Bounds: format.TableBounds, Logger: c.o.To.Engine.Logger}
	engine, err = c.o.To.Driver.Open(c.to, options)
	if err == nil {
		target, err := copier.OpenTarget(engine, c.shown(), c.source, c.o.To.Settings.CopyTag)
		if err == nil && !target.Resumed {
			total, err = c.measure(engine.Limits())
		}
		if err != nil {
			return nil, total, errors.Join(err, engine.Close())
		}
		return engine, total, nil
	}
	if !errors.Is(err, storage.ErrNoDatabase) {
		return nil, total, fmt.Errorf("target: %w", err)
	}
	if l, is := c.o.To.Driver.(storage.Limiter); is {
		if total, err = c.measure(l.StoreLimits()); err != nil {
			return nil, total, err
		}
	}
	options.MustExist = false
	if engine, err = c.o.To.Driver.Open(c.to, options); err != nil {
		err = fmt.Errorf("target: %w", err)
	}
	return engine, total, err
}

// measure returns how much there is to copy, if the target has limits.
func (c copying) measure(limits storage.Limits) (total format.CopySize, err error) {
	if limits.KeyBytes == 0 && limits.ValueBytes == 0 && limits.TxBytes == 0 {
		return total, nil
	}
	return c.source.Measure(c.ctx, limits, c.shown(), c.o.Progress)
}

// complete makes a database of a target that is equal to the source.
func (c copying) complete(info *Copied) (err error) {
	if c.o.To.Settings.CopyTag != "" {
		if err := c.retag(info); err != nil {
			return err
		}
	}
	engine, err := c.o.To.Driver.Open(c.to, storage.OpenOptions{MustExist: true, Bounds: format.TableBounds, Logger: c.o.To.Engine.Logger})
	if err != nil {
		return fmt.Errorf("target: %w", err)
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	return backup.Finish(c.ctx, engine)
}

// retag gives the target a node of its own, and counters above the floors. It can be done again.
func (c copying) retag(info *Copied) (err error) {
	open := c.o.To
	open.Engine.MustExist, open.Restoring, open.Rebuilding = true, true, true
	db := new(core.Database)
	if err := db.Open(c.to, &open); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if f := c.o.Floors; f.Etag > 0 || len(f.Identities) > 0 || len(f.HiLo) > 0 {
		if err := db.RaiseCounters(c.ctx, f); err != nil {
			return err
		}
	}
	info.NodeTag = db.Env.Rules.NodeTag
	return nil
}
