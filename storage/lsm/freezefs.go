package lsm

import (
	"errors"
	"os"
	"slices"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// freezeFS is a file system that can be frozen: from then on nothing reaches the
// disk, and Pebble does not notice. New files are made in memory, and writes to
// others are dropped. The disk is left as a crash would leave it.
//
// It serves an Open on a disk that refuses writes, and the Close of a failed
// engine. Pebble would retry to write a table for ever, and cannot be made to stop;
// frozen, it ends, and the directory can be unlocked. What it keeps in memory is
// bounded by the size of the logs and memtables.
//
// While Pebble opens a store, the first error of a change freezes the file system, and
// makes the engine fail: an Open of Pebble's that returns an error closes what a
// goroutine of its own, which reads statistics of new tables, may still use, and that
// panics. So it ends well instead, and the engine is closed.
type freezeFS struct {
	vfs.FS
	frozen  atomic.Bool
	opening atomic.Bool
	fail    func(error) // of the engine
	memory  *vfs.MemFS  // new files, by their names without the directory
}

func newFreezeFS(fs vfs.FS, fail func(error)) *freezeFS {
	return &freezeFS{FS: fs, fail: fail, memory: vfs.NewMem()}
}

// absorbs reports whether the error of a change is kept from Pebble: then the file
// system is frozen, and the change is to be made again.
func (f *freezeFS) absorbs(err error) bool {
	if err == nil || !f.opening.Load() || errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrExist) {
		return false
	}
	f.fail(err)
	f.freeze()
	return true
}

// freeze freezes the file system, for good.
func (f *freezeFS) freeze() { f.frozen.Store(true) }

// inMemory reports whether a file was made after the freeze.
func (f *freezeFS) inMemory(name string) bool {
	if !f.frozen.Load() {
		return false
	}
	_, err := f.memory.Stat(f.PathBase(name))
	return err == nil
}

// Unwrap returns the file system underneath.
func (f *freezeFS) Unwrap() vfs.FS { return f.FS }

// Create implements vfs.FS.
func (f *freezeFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if f.frozen.Load() {
		return f.memory.Create(f.PathBase(name), category)
	}
	file, err := f.FS.Create(name, category)
	if f.absorbs(err) {
		return f.Create(name, category)
	}
	if err != nil {
		return nil, err
	}
	return &freezeFile{File: file, fs: f}, nil
}

// ReuseForWrite implements vfs.FS.
func (f *freezeFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if f.frozen.Load() {
		return f.memory.Create(f.PathBase(newname), category)
	}
	file, err := f.FS.ReuseForWrite(oldname, newname, category)
	if f.absorbs(err) {
		return f.ReuseForWrite(oldname, newname, category)
	}
	if err != nil {
		return nil, err
	}
	return &freezeFile{File: file, fs: f}, nil
}

// OpenReadWrite implements vfs.FS.
func (f *freezeFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.frozen.Load() {
		return f.memory.OpenReadWrite(f.PathBase(name), category, opts...)
	}
	file, err := f.FS.OpenReadWrite(name, category, opts...)
	if f.absorbs(err) {
		return f.OpenReadWrite(name, category, opts...)
	}
	if err != nil {
		return nil, err
	}
	return &freezeFile{File: file, fs: f}, nil
}

// OpenDir implements vfs.FS.
func (f *freezeFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &freezeFile{File: file, fs: f}, nil
}

// Open implements vfs.FS.
func (f *freezeFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.inMemory(name) {
		return f.memory.Open(f.PathBase(name), opts...)
	}
	return f.FS.Open(name, opts...)
}

// Stat implements vfs.FS.
func (f *freezeFS) Stat(name string) (vfs.FileInfo, error) {
	if f.inMemory(name) {
		return f.memory.Stat(f.PathBase(name))
	}
	return f.FS.Stat(name)
}

// List implements vfs.FS.
func (f *freezeFS) List(dir string) ([]string, error) {
	names, err := f.FS.List(dir)
	if err != nil || !f.frozen.Load() {
		return names, err
	}
	more, err := f.memory.List("/")
	names = append(names, more...)
	slices.Sort(names)
	return slices.Compact(names), err
}

// Remove implements vfs.FS.
func (f *freezeFS) Remove(name string) error {
	switch {
	case f.inMemory(name):
		return f.memory.Remove(f.PathBase(name))
	case f.frozen.Load():
		return nil
	}
	err := f.FS.Remove(name)
	if f.absorbs(err) {
		return nil
	}
	return err
}

// RemoveAll implements vfs.FS.
func (f *freezeFS) RemoveAll(name string) error {
	if f.frozen.Load() {
		return nil
	}
	return f.FS.RemoveAll(name)
}

// Rename implements vfs.FS.
func (f *freezeFS) Rename(oldname, newname string) error {
	switch {
	case f.inMemory(oldname):
		return f.memory.Rename(f.PathBase(oldname), f.PathBase(newname))
	case f.frozen.Load():
		return nil
	}
	err := f.FS.Rename(oldname, newname)
	if f.absorbs(err) {
		return nil
	}
	return err
}

// Link implements vfs.FS.
func (f *freezeFS) Link(oldname, newname string) error {
	if f.frozen.Load() {
		return errors.ErrUnsupported
	}
	return f.FS.Link(oldname, newname)
}

// MkdirAll implements vfs.FS.
func (f *freezeFS) MkdirAll(dir string, perm os.FileMode) error {
	if f.frozen.Load() {
		return nil
	}
	err := f.FS.MkdirAll(dir, perm)
	if f.absorbs(err) {
		return nil
	}
	return err
}

// freezeFile is a file that was opened before the freeze.
type freezeFile struct {
	vfs.File
	fs *freezeFS
}

// Write implements vfs.File.
func (f *freezeFile) Write(p []byte) (int, error) {
	if f.fs.frozen.Load() {
		return len(p), nil
	}
	n, err := f.File.Write(p)
	if f.fs.absorbs(err) {
		return len(p), nil
	}
	return n, err
}

// WriteAt implements vfs.File.
func (f *freezeFile) WriteAt(p []byte, offset int64) (int, error) {
	if f.fs.frozen.Load() {
		return len(p), nil
	}
	n, err := f.File.WriteAt(p, offset)
	if f.fs.absorbs(err) {
		return len(p), nil
	}
	return n, err
}

// Preallocate implements vfs.File.
func (f *freezeFile) Preallocate(offset, length int64) error {
	if f.fs.frozen.Load() {
		return nil
	}
	return f.File.Preallocate(offset, length)
}

// Sync implements vfs.File.
func (f *freezeFile) Sync() error { return f.unlessFrozen(f.File.Sync) }

// SyncData implements vfs.File.
func (f *freezeFile) SyncData() error { return f.unlessFrozen(f.File.SyncData) }

// SyncTo implements vfs.File.
func (f *freezeFile) SyncTo(length int64) (bool, error) {
	if f.fs.frozen.Load() {
		return true, nil
	}
	full, err := f.File.SyncTo(length)
	if f.fs.absorbs(err) {
		return true, nil
	}
	return full, err
}

func (f *freezeFile) unlessFrozen(sync func() error) error {
	if f.fs.frozen.Load() {
		return nil
	}
	err := sync()
	if f.fs.absorbs(err) {
		return nil
	}
	return err
}
