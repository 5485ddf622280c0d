package lsm

import (
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// progress counts the calls into the file system that have begun and ended, to
// find out whether the disk answers.
type progress struct {
	begun atomic.Uint64
	ended atomic.Uint64
}

func (p *progress) begin() { p.begun.Add(1) }

func (p *progress) end() { p.ended.Add(1) }

// stuck reports whether a call is under way and none has ended since the number
// of ended calls was before. It returns that number, for the next time.
func (p *progress) stuck(before uint64) (now uint64, stuck bool) {
	begun, now := p.begun.Load(), p.ended.Load()
	return now, now == before && begun > now
}

// progressFS is a file system whose calls are counted, but for those that only
// work on paths.
type progressFS struct {
	vfs.FS
	*progress
}

// Unwrap returns the file system underneath.
func (f progressFS) Unwrap() vfs.FS { return f.FS }

// Create implements vfs.FS.
func (f progressFS) Create(name string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f.begin()
	defer f.end()
	return f.file(f.FS.Create(name, category))
}

// Open implements vfs.FS.
func (f progressFS) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	f.begin()
	defer f.end()
	return f.file(f.FS.Open(name, opts...))
}

// OpenReadWrite implements vfs.FS.
func (f progressFS) OpenReadWrite(name string, category vfs.DiskWriteCategory, opts ...vfs.OpenOption) (vfs.File, error) {
	f.begin()
	defer f.end()
	return f.file(f.FS.OpenReadWrite(name, category, opts...))
}

// OpenDir implements vfs.FS.
func (f progressFS) OpenDir(name string) (vfs.File, error) {
	f.begin()
	defer f.end()
	return f.file(f.FS.OpenDir(name))
}

// ReuseForWrite implements vfs.FS.
func (f progressFS) ReuseForWrite(oldname, newname string, category vfs.DiskWriteCategory) (vfs.File, error) {
	f.begin()
	defer f.end()
	return f.file(f.FS.ReuseForWrite(oldname, newname, category))
}

// Remove implements vfs.FS.
func (f progressFS) Remove(name string) error {
	f.begin()
	defer f.end()
	return f.FS.Remove(name)
}

// Rename implements vfs.FS.
func (f progressFS) Rename(oldname, newname string) error {
	f.begin()
	defer f.end()
	return f.FS.Rename(oldname, newname)
}

func (f progressFS) file(file vfs.File, err error) (vfs.File, error) {
	if err != nil {
		return nil, err
	}
	return progressFile{file, f.progress}, nil
}

// progressFile is a file whose calls are counted.
type progressFile struct {
	vfs.File
	*progress
}

// Read implements vfs.File.
func (f progressFile) Read(p []byte) (int, error) {
	f.begin()
	defer f.end()
	return f.File.Read(p)
}

// ReadAt implements vfs.File.
func (f progressFile) ReadAt(p []byte, offset int64) (int, error) {
	f.begin()
	defer f.end()
	return f.File.ReadAt(p, offset)
}

// Write implements vfs.File.
func (f progressFile) Write(p []byte) (int, error) {
	f.begin()
	defer f.end()
	return f.File.Write(p)
}

// WriteAt implements vfs.File.
func (f progressFile) WriteAt(p []byte, offset int64) (int, error) {
	f.begin()
	defer f.end()
	return f.File.WriteAt(p, offset)
}

// Preallocate implements vfs.File.
func (f progressFile) Preallocate(offset, length int64) error {
	f.begin()
	defer f.end()
	return f.File.Preallocate(offset, length)
}

// Sync implements vfs.File.
func (f progressFile) Sync() error {
	f.begin()
	defer f.end()
	return f.File.Sync()
}

// SyncData implements vfs.File.
func (f progressFile) SyncData() error {
	f.begin()
	defer f.end()
	return f.File.SyncData()
}

// SyncTo implements vfs.File.
func (f progressFile) SyncTo(length int64) (bool, error) {
	f.begin()
	defer f.end()
	return f.File.SyncTo(length)
}

// Close implements vfs.File.
func (f progressFile) Close() error {
	f.begin()
	defer f.end()
	return f.File.Close()
}
