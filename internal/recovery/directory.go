package recovery

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/internal/core"
	"github.com/jaydb/jay/storage"
)

// CheckDirectory checks a directory that is not in use, and changes nothing: see VerifyDir
// of package jay. The report is as far as it came if there is an error.
func CheckDirectory(ctx context.Context, dir string, open *core.Options, o CheckOptions) (Report, error) {
	c, err := newChecking(ctx, o)
	if err != nil {
		return Report{}, err
	}
	s, err := openDirectory(dir, open)
	if err != nil {
		return Report{}, err
	}
	if err = errors.Join(c.runOn(s), s.Close()); err != nil {
		return c.result(), fmt.Errorf("verify %q: %w", dir, err)
	}
	return c.result(), nil
}

// openDirectory opens a directory for reading.
func openDirectory(dir string, o *core.Options) (storage.Salvage, error) {
	driver, is := o.Driver.(storage.Salvager)
	if !is {
		return nil, fmt.Errorf("%w: %q is a store of an engine that has no files to read when it is not in use: check the open database with Verify, and repair the store with what belongs to its server", ids.ErrUsage, dir)
	}
	s, err := driver.OpenSalvage(dir, storage.OpenOptions{Logger: o.Engine.Logger})
	if err != nil {
		return nil, fmt.Errorf("jay: %w", err)
	}
	return s, nil
}

// runOn checks the files and then the records of a directory.
func (c *checking) runOn(s storage.Salvage) error {
	if !c.opts.SkipFiles {
		if err := c.directory(s); err != nil {
			return err
		}
	}
	r, err := s.Reader()
	for _, d := range s.Damage() {
		c.damagedFile(d)
	}
	if err != nil && !errors.Is(err, storage.ErrCorrupt) {
		return err
	}
	if r == nil {
		c.unreadable(s, err)
		return nil
	}
	return c.records(func(fn func(storage.Reader) error) error { return fn(r) })
}

// directory checks the tables of a directory.
func (c *checking) directory(s storage.Salvage) error {
	files, err := s.Files()
	if err != nil {
		return err
	}
	for _, f := range files {
		c.total += f.Bytes
	}
	for _, f := range files {
		c.progress("files", 0, 0)
		found := c.report.Found
		if err := c.file(s, f); err != nil {
			return err
		}
		if c.report.Found > found {
			c.broken = append(c.broken, f.Name)
		}
	}
	c.progress("files", 0, 0)
	return nil
}

// unreadable notes that no record can be read.
func (c *checking) unreadable(s storage.Salvage, err error) {
	why := "the creation of the database was not finished: it has no records"
	if err != nil {
		why = err.Error()
	} else if len(s.Damage()) > 0 {
		why = "no record can be read: see the damage to files"
	}
	c.report.NotCompared = append(c.report.NotCompared, why)
}
