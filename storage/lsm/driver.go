package lsm

import (
	"cmp"

	"github.com/jaydb/jay/storage"
)

// Driver opens engines of this package. The name of a store is a directory. Fields that Options and
// storage.OpenOptions share are taken from storage.OpenOptions.
type Driver struct {
	Options Options
}

// with returns the options of the driver with those of a call.
func (d Driver) with(o storage.OpenOptions) Options {
	opts := d.Options
	opts.ReadOnly, opts.MustExist, opts.AcceptLoss, opts.DurableReads = o.ReadOnly, o.MustExist, o.AcceptLoss, o.DurableReads
	opts.TableBounds, opts.CloseTimeout, opts.Logger = o.Bounds, cmp.Or(o.CloseTimeout, opts.CloseTimeout), o.Logger
	return opts
}

// Open implements storage.Driver.
func (d Driver) Open(dir string, o storage.OpenOptions) (storage.Engine, error) {
	e, err := Open(dir, d.with(o))
	if err != nil {
		return nil, err
	}
	return e, nil
}

// Prepare implements storage.Driver. Until a directory is complete, its name ends in Unfinished.
func (d Driver) Prepare(dir string) (storage.NewStore, error) {
	n, err := PrepareDirectory(d.Options.FS, dir)
	if err != nil {
		return nil, err
	}
	return n, nil
}

// OpenSalvage implements storage.Salvager.
func (d Driver) OpenSalvage(dir string, o storage.OpenOptions) (storage.Salvage, error) {
	s, err := OpenSalvage(dir, d.with(o))
	if err != nil {
		return nil, err
	}
	return s, nil
}
