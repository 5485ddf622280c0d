package lsm

import (
	"fmt"
	"io"
	"os"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/jaydb/jay/storage"
)

// openReadOnly is open for an engine that changes nothing on disk, not even a lock file.
// The directory is locked against those that would write to it, and shared with
// other readers. What is in the log is read into memory.
func (e *Engine) openReadOnly(dir string, opts Options) (*Engine, error) {
	e.readOnly = true
	e.fs = readOnlyFS{progressFS{e.fs, e.progress}}
	e.controlFS = newControlFS(e.fs, e.fail)
	format, err := checkFormatFile(e.fs, dir, e.uses.known)
	if err != nil {
		return nil, openError(err)
	}
	if format.number == 0 {
		return nil, storage.ErrNoDatabase
	}
	if format.number < storage.BaseFormat {
		e.uses.older = format.number
	}
	if e.path, err = realPath(e.fs, dir); err != nil {
		return nil, openError(err)
	}
	if e.lock, err = lockShared(e.fs, e.path); err != nil {
		return nil, err
	}
	if format, err = (unlocking{e.sealFS, e.path, opts.EncryptionKeys}).open(format, &e.uses, nil); err != nil {
		return nil, e.unlock(openError(err))
	}
	if err := e.checkReadOnly(format.number); err != nil {
		return nil, e.unlock(openError(err))
	}
	options := e.pebbleOptions(opts)
	options.ReadOnly = true
	if options.FS, err = withoutDamagedOptions(e.fs, e.path, e.log); err != nil {
		e.reservation.cache.Unref()
		return nil, e.unlock(openError(err))
	}
	if err := e.openPebble(options, false); err != nil {
		return nil, err
	}
	e.reservation.start(e.db)
	return e, nil
}

// checkReadOnly refuses a directory that is damaged, or whose creation was not finished. That
// of a database of format 1, which has no record of it, was finished if it has a manifest.
func (e *Engine) checkReadOnly(format int) error {
	d, err := checkDirectory(e.fs, e.path, format)
	if err != nil {
		return err
	}
	if len(d.damage) > 0 {
		return d.damage[0]
	}
	d.record.created = d.record.created || format == 1
	if !d.record.created || d.current == 0 {
		return fmt.Errorf("%w: its creation was not finished", storage.ErrNoDatabase)
	}
	e.controlFS.control.record = d.record
	return nil
}

// readOnlyFS is a file system that refuses to change anything.
type readOnlyFS struct{ vfs.FS }

func refused(verb, name string) error {
	return fmt.Errorf("%w: %s %s", storage.ErrReadOnly, verb, name)
}

// Unwrap implements vfs.FS, and so do those that follow.
func (f readOnlyFS) Unwrap() vfs.FS { return f.FS }

func (f readOnlyFS) Create(name string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refused("create", name)
}

func (f readOnlyFS) Link(_, newname string) error { return refused("link", newname) }

func (f readOnlyFS) OpenReadWrite(name string, _ vfs.DiskWriteCategory, _ ...vfs.OpenOption) (vfs.File, error) {
	return nil, refused("write", name)
}

func (f readOnlyFS) Remove(name string) error { return refused("remove", name) }

func (f readOnlyFS) RemoveAll(name string) error { return refused("remove", name) }

func (f readOnlyFS) Rename(_, newname string) error { return refused("rename", newname) }

func (f readOnlyFS) ReuseForWrite(_, newname string, _ vfs.DiskWriteCategory) (vfs.File, error) {
	return nil, refused("write", newname)
}

func (f readOnlyFS) MkdirAll(dir string, _ os.FileMode) error { return refused("make", dir) }

// Lock takes none: the directory is locked already, and a lock file would be written.
func (f readOnlyFS) Lock(string) (io.Closer, error) { return io.NopCloser(nil), nil }
