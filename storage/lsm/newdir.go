package lsm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Unfinished is the suffix of the name of a directory that is being made.
const Unfinished = ".unfinished"

// NewDirectory is a directory that appears in one step: it is made under another name, Name, and
// Commit renames it.
type NewDirectory struct {
	path string // of the directory while it is made
	fs   vfs.FS
	dir  string
}

// PrepareDirectory returns the directory under whose name dir is to be made. It makes nothing.
// Neither may exist: otherwise the error is an fs.ErrExist. A nil file system means the file system
// of the machine.
func PrepareDirectory(files FS, dir string) (*NewDirectory, error) {
	if files == nil {
		files = vfs.Default
	}
	d := &NewDirectory{path: dir + Unfinished, fs: files, dir: dir}
	for _, name := range []string{dir, d.path} {
		_, err := files.Stat(name)
		if err == nil {
			err = &fs.PathError{Op: "make", Path: name, Err: fs.ErrExist}
			if name != dir {
				return nil, fmt.Errorf("%w: it is being made, or was left by a process that ended before it was whole: remove it then", err)
			}
			return nil, err
		}
		if !errors.Is(err, os.ErrNotExist) {
			return nil, openError(err)
		}
	}
	return d, nil
}

// Name returns the path of the directory while it is made.
func (d *NewDirectory) Name() string { return d.path }

// Commit gives the directory its final name, durably, or removes it. No file in it may be open.
func (d *NewDirectory) Commit() error {
	_, err := d.fs.Stat(d.dir)
	if err == nil {
		err = &fs.PathError{Op: "rename", Path: d.dir, Err: fs.ErrExist}
	} else if errors.Is(err, os.ErrNotExist) {
		err = d.fs.Rename(d.path, d.dir)
	}
	if err != nil {
		return errors.Join(openError(err), d.Abandon())
	}
	return openError(syncDir(d.fs, d.fs.PathDir(d.dir)))
}

// Abandon removes the unfinished directory.
func (d *NewDirectory) Abandon() error { return d.fs.RemoveAll(d.path) }
