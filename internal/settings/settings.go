// Package settings is what a database knows about itself from its creation on: the
// rules of its IDs, and the node and the database ID under which it writes. Open
// reads the records, writes those of a new database, and compares them with what the
// user asked for.
package settings

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/counts"
	"github.com/jaydb/jay/internal/env"
	"github.com/jaydb/jay/internal/errs"
	"github.com/jaydb/jay/internal/format"
	"github.com/jaydb/jay/internal/shared"
	"github.com/jaydb/jay/storage"
)

// Options are the options of the user that concern the settings, as in Options of
// package jay.
type Options struct {
	Separator     string
	NodeTag       string
	CopyTag       string
	CaseSensitive bool
	MaxIDBytes    int
	// PrefixCollections is nil for what is stored.
	PrefixCollections *bool
	// ExpirationDisabled and RefreshDisabled are for a new database; another one keeps what
	// it has stored.
	ExpirationDisabled, RefreshDisabled bool
	AcceptLoss                          func(*storage.DamageError)

	// Leased says that NodeTag is leased, and need not be the tag under which the database was made.
	Leased bool

	// Alone says that no other process can have the store open, even if it is shared.
	Alone bool

	// Refuse returns why a database must not be created in a store, nil if it may be. It is called in the transaction that creates it.
	Refuse func(env.Getter) error
}

// opening is an Open under way.
type opening struct {
	env     *env.Env
	options Options
	lost    bool // the settings were lost, and Options.AcceptLoss made them anew
}

// Open reads the settings of the database of e, or writes them if the database is
// new, and sets what follows from them in e: Origins, Node, Rules, FoldedSeparator,
// ExpirationDisabled and RefreshDisabled.
// It returns ErrFixed for options that contradict those the database was created
// with, and ErrOption for invalid ones.
func Open(ctx context.Context, e *env.Env, options Options) (format.Settings, error) {
	o := &opening{env: e, options: options}
	stored, err := o.loadOrCreate(ctx)
	if err != nil {
		return stored, err
	}
	if e.Origins, err = Origins(e.Engine); err != nil {
		return stored, err
	}
	if _, found := e.Origins[stored.Node]; !found {
		return stored, fmt.Errorf("node %d has no record: %w", stored.Node, errs.ErrCorrupt)
	}
	if tag := options.CopyTag; tag != "" && tag != e.Origins[stored.Node].Tag {
		if e.Engine.Shared() && !options.Alone {
			return stored, fmt.Errorf("%w: CopyTag: others may write under the node tag %q", shared.ErrRefused, e.Origins[stored.Node].Tag)
		}
		if stored, err = o.retag(ctx, stored, tag); err != nil {
			return stored, err
		}
	}
	own := e.Origins[stored.Node]
	if err := o.checkFixed(stored, own); err != nil {
		return stored, err
	}
	if stored, err = o.setPrefixCollections(ctx, stored); err != nil {
		return stored, err
	}

	e.Node = stored.Node
	e.Rules = ids.Rules{Separator: stored.Separator, NodeTag: own.Tag, CaseSensitive: stored.CaseSensitive, MaxBytes: options.MaxIDBytes}
	if err := e.Rules.Validate(); err != nil {
		return stored, fmt.Errorf("%w: %w", errs.ErrOption, err)
	}
	e.FoldedSeparator = e.Rules.Fold(stored.Separator)
	e.ExpirationDisabled.Store(stored.ExpirationDisabled)
	e.RefreshDisabled.Store(stored.RefreshDisabled)
	return stored, nil
}

// loadOrCreate reads the settings, or creates a database whose creation was not
// finished.
func (o *opening) loadOrCreate(ctx context.Context) (format.Settings, error) {
	stored, err := Load(o.env.Engine)
	if errors.Is(err, storage.ErrNotFound) {
		if err = o.checkNew(); err == nil {
			stored, err = o.create(ctx)
		} else if o.env.Engine.Shared() {
			if found, again := Load(o.env.Engine); again == nil {
				stored, err = found, nil // another process has created it meanwhile
			}
		}
	}
	if err == nil && o.env.Engine.Creating() {
		err = o.env.Engine.FinishCreation()
	}
	return stored, err
}

// Load reads the settings.
func Load(r env.Getter) (format.Settings, error) {
	var s format.Settings
	value, closer, err := r.Get(format.AppendKey(nil, format.SpaceMeta, format.SettingsName))
	if err != nil {
		return s, err
	}
	defer closer.Close()
	if err := json.Unmarshal(value, &s); err != nil {
		return s, fmt.Errorf("database record: %w: %w", errs.ErrCorrupt, err)
	}
	return s, nil
}

// checkNew returns an error for a store without settings, unless its creation was
// cut short: the first commit has the settings. With Options.AcceptLoss they are
// made anew.
func (o *opening) checkNew() error {
	problem := "the settings of the database are missing"
	if o.env.Engine.Creating() {
		if empty, err := env.IsEmpty(o.env.Engine); err != nil || empty {
			return err
		}
		problem += ", though it has keys"
	}
	damage := &storage.DamageError{Dir: o.env.Dir, File: "database record", Offset: -1, Problem: problem, Loss: "the separator, the node tag and the ID of the database, and what was lost with them; expiration and refresh are switched off, as they may have been"}
	if o.options.AcceptLoss == nil {
		return damage
	}
	o.options.AcceptLoss(damage)
	o.lost = true
	return nil
}

// create writes the records of a new database in one synced commit. A crash
// before it leaves an empty store, which the next Open creates again.
func (o *opening) create(ctx context.Context) (format.Settings, error) {
	created, err := o.env.Date()
	if err != nil {
		return format.Settings{}, err
	}
	s := format.Settings{Separator: o.options.Separator, CaseSensitive: o.options.CaseSensitive, Created: created}
	s.PrefixCollections = o.options.PrefixCollections != nil && *o.options.PrefixCollections
	s.ExpirationDisabled, s.RefreshDisabled = o.options.ExpirationDisabled, o.options.RefreshDisabled
	if o.lost { // what is kept may have been switched off
		s.ExpirationDisabled, s.RefreshDisabled = true, true
	}
	if s.Separator == "" {
		s.Separator = ids.DefaultSeparator
	}
	if err := ids.CheckSeparator(s.Separator); err != nil {
		return s, fmt.Errorf("%w: %w", errs.ErrOption, err)
	}
	own, err := newOrigin(o.env.Random(), cmp.Or(o.options.CopyTag, o.options.NodeTag, ids.DefaultNodeTag))
	if err != nil {
		return s, err
	}
	fresh := s
	err = o.env.Engine.Update(ctx, true, func(tx storage.Tx) error {
		if err := o.options.Refuse(tx); err != nil {
			return err
		}
		found, err := Load(tx)
		if err == nil { // another process was quicker
			s = found
			return nil
		}
		if s = fresh; !errors.Is(err, storage.ErrNotFound) {
			return err
		}
		if err := set(tx, s); err != nil {
			return err
		}
		counts.Finish(tx) // there is none
		if err := env.SetJSON(tx, format.AppendKey(nil, format.SpaceMeta, format.TimesName), format.TimesState{All: true}); err != nil {
			return err
		}
		return env.SetJSON(tx, format.NodeKey(s.Node), own)
	})
	return s, err
}

// set stages the settings.
func set(tx storage.Tx, s format.Settings) error {
	return env.SetJSON(tx, format.AppendKey(nil, format.SpaceMeta, format.SettingsName), s)
}

// Change changes the settings of an open database, on disk.
func Change(ctx context.Context, engine storage.Engine, change func(*format.Settings)) error {
	return engine.Update(ctx, true, func(tx storage.Tx) error {
		s, err := Load(tx)
		if err == nil {
			change(&s)
			err = set(tx, s)
		}
		return err
	})
}

// setPrefixCollections stores Options.PrefixCollections, if that is not what the
// database has stored.
func (o *opening) setPrefixCollections(ctx context.Context, stored format.Settings) (format.Settings, error) {
	on := o.options.PrefixCollections
	if on == nil || *on == stored.PrefixCollections {
		return stored, nil
	}
	if o.env.Engine.Shared() && !o.options.Alone {
		return stored, fmt.Errorf("%w: PrefixCollections: others may have the database open, in which it is %v", shared.ErrRefused, stored.PrefixCollections)
	}
	stored.PrefixCollections = *on
	return stored, o.env.Engine.Update(ctx, true, func(tx storage.Tx) error { return set(tx, stored) })
}

// Origins reads the records of the nodes that have written in the database.
func Origins(r storage.Reader) (env.Origins, error) {
	lo := []byte{format.SpaceNode}
	it, err := r.Iterate(lo, format.PrefixEnd(lo))
	if err != nil {
		return nil, err
	}
	defer it.Close()
	nodes := make(env.Origins)
	for ok := it.First(); ok; ok = it.Next() {
		var o format.Origin
		if err := json.Unmarshal(it.Value(), &o); err != nil || len(it.Key()) != 5 {
			return nil, fmt.Errorf("node record %x: %w", it.Key(), errs.ErrCorrupt)
		}
		k := it.Key()[1:]
		nodes[uint64(k[0])<<24|uint64(k[1])<<16|uint64(k[2])<<8|uint64(k[3])] = o
	}
	return nodes, it.Error()
}

// checkFixed compares the options with what the database was created with.
func (o *opening) checkFixed(stored format.Settings, own format.Origin) error {
	switch {
	case o.options.Separator != "" && o.options.Separator != stored.Separator:
		return fmt.Errorf("%w: its separator is %q, not %q", errs.ErrFixed, stored.Separator, o.options.Separator)
	case o.options.NodeTag != "" && o.options.NodeTag != own.Tag && !o.options.Leased:
		return fmt.Errorf("%w: its node tag is %q, not %q", errs.ErrFixed, own.Tag, o.options.NodeTag)
	case o.options.CaseSensitive && !stored.CaseSensitive:
		return fmt.Errorf("%w: its ids are not case-sensitive", errs.ErrFixed)
	}
	return nil
}
