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
type freezeFS struct {
	vfs.FS
	frozen atomic.Bool
	memory *vfs.MemFS // new files, by their names without the directory
}

func newFreezeFS(fs vfs.FS) *freezeFS { return &freezeFS{FS: fs, memory: vfs.NewMem()} }

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
	if err != nil {
		return nil, err
	}
	return &freezeFile{File: file, frozen: &f.frozen}, nil
}

// ReuseForWrite implements vfs.FS.
func (f *freezeFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	if f.frozen.Load() {
		return f.memory.Create(f.PathBase(newname), category)
	}
	file, err := f.FS.ReuseForWrite(oldname, newname, category)
	if err != nil {
		return nil, err
	}
	return &freezeFile{File: file, frozen: &f.frozen}, nil
}

// OpenReadWrite implements vfs.FS.
func (f *freezeFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	if f.frozen.Load() {
		return f.memory.OpenReadWrite(f.PathBase(name), category, opts...)
	}
	file, err := f.FS.OpenReadWrite(name, category, opts...)
	if err != nil {
		return nil, err
	}
	return &freezeFile{File: file, frozen: &f.frozen}, nil
}

// OpenDir implements vfs.FS.
func (f *freezeFS) OpenDir(name string) (vfs.File, error) {
	file, err := f.FS.OpenDir(name)
	if err != nil {
		return nil, err
	}
	return &freezeFile{File: file, frozen: &f.frozen}, nil
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
	return f.FS.Remove(name)
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
	return f.FS.Rename(oldname, newname)
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
	return f.FS.MkdirAll(dir, perm)
}

// freezeFile is a file that was opened before the freeze.
type freezeFile struct {
	vfs.File
	frozen *atomic.Bool
}

// Write implements vfs.File.
func (f *freezeFile) Write(p []byte) (int, error) {
	if f.frozen.Load() {
		return len(p), nil
	}
	return f.File.Write(p)
}

// WriteAt implements vfs.File.
func (f *freezeFile) WriteAt(p []byte, offset int64) (int, error) {
	if f.frozen.Load() {
		return len(p), nil
	}
	return f.File.WriteAt(p, offset)
}

// Preallocate implements vfs.File.
func (f *freezeFile) Preallocate(offset, length int64) error {
	if f.frozen.Load() {
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
	if f.frozen.Load() {
		return true, nil
	}
	return f.File.SyncTo(length)
}

func (f *freezeFile) unlessFrozen(sync func() error) error {
	if f.frozen.Load() {
		return nil
	}
	return sync()
}
