package jay

import (
	"context"
	"errors"
	"fmt"

	"github.com/jaydb/jay/storage"
	"github.com/jaydb/jay/storage/lsm"
)

// VerifyDir is Verify of the database in a directory that is not in use, be it one that
// Open refuses because it is damaged. It reads as much as can be read, and changes nothing: it writes
// neither to files nor to the log. Of the options, nil for the defaults, it uses CacheBytes, FS and Logger.
//
// It takes memory for the logs of the database, twice: a few times Options.MemTableBytes
// of the program that wrote it. The errors are those of Open, but for damage, which is in the report.
func VerifyDir(ctx context.Context, dir string, opts *Options, how *VerifyOptions) (VerifyReport, error) {
	c, err := newChecking(ctx, how)
	if err != nil {
		return VerifyReport{}, err
	}
	s, err := openSalvage(dir, opts)
	if err != nil {
		return VerifyReport{}, err
	}
	if err = errors.Join(c.runOn(s), s.Close()); err != nil {
		return c.result(), fmt.Errorf("verify %q: %w", dir, err)
	}
	return c.result(), nil
}

// openSalvage opens a directory for reading.
func openSalvage(dir string, opts *Options) (*lsm.Salvage, error) {
	o, err := opts.withDefaults()
	if dir == "" && err == nil {
		err = fmt.Errorf("%w: no directory is named", ErrOption)
	}
	if err != nil {
		return nil, fmt.Errorf("open %q: %w", dir, err)
	}
	s, err := lsm.OpenSalvage(dir, lsm.Options{CacheBytes: o.CacheBytes, Logger: o.Logger, FS: o.FS})
	if err != nil {
		return nil, fmt.Errorf("jay: %w", err)
	}
	return s, nil
}

// runOn checks the files and then the records of a directory.
func (c *checking) runOn(s *lsm.Salvage) error {
	if !c.opts.SkipFiles {
		if err := c.directory(s); err != nil {
			return err
		}
	}
	r, err := s.Reader()
	for _, d := range s.Damage() {
		c.damagedFile(d)
	}
	if err != nil && !errors.Is(err, ErrCorrupt) {
		return err
	}
	if r == nil {
		c.unreadable(s, err)
		return nil
	}
	return c.records(func(fn func(storage.Reader) error) error { return fn(r) })
}

// directory checks the tables of a directory.
func (c *checking) directory(s *lsm.Salvage) error {
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
func (c *checking) unreadable(s *lsm.Salvage, err error) {
	why := "the creation of the database was not finished: it has no records"
	if err != nil {
		why = err.Error()
	} else if len(s.Damage()) > 0 {
		why = "no record can be read: see the damage to files"
	}
	c.report.NotCompared = append(c.report.NotCompared, why)
}
