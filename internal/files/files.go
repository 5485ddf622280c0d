// Package files decides how a single file appears: whole, under its name, in one step. It works on any
// file system that a database can be on. Directories that appear so are those of storage/lsm.
package files

import (
	"bufio"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"github.com/jaydb/jay/ids"
	"github.com/jaydb/jay/storage/lsm"
)

// category is what the file system counts the writes of this package under.
const category = "jay-file"

// File is a file that is being written under another name, and gets its own by Commit. It belongs to one
// goroutine.
type File struct {
	files     lsm.FS
	name      string
	temporary string
	out       output // nil when the file is closed
}

// output is what a File needs of a file.
type output interface {
	io.WriteCloser
	Sync() error
}

// Create begins a file of this name. The name must be free, or that of a regular file, which Commit
// replaces: ids.ErrUsage otherwise.
func Create(files lsm.FS, name string) (*File, error) {
	if name == "" {
		return nil, fmt.Errorf("%w: no file is named", ids.ErrUsage)
	}
	info, err := files.Stat(name)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return nil, fmt.Errorf("%w: %q is no regular file", ids.ErrUsage, name)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return nil, err
	}
	// Two files of one name can be written at a time: the last to be complete stays.
	f := &File{files: files, name: name, temporary: name + "." + rand.Text()[:8] + lsm.Unfinished}
	out, err := files.Create(f.temporary, category)
	if err != nil {
		return nil, err
	}
	f.out = out
	return f, nil
}

// Write implements io.Writer.
func (f *File) Write(p []byte) (int, error) { return f.out.Write(p) }

// Commit syncs the file and gives it its name, durably, in place of a file that has it. After an error of
// that the file is removed, unless only the sync of the directory has failed: then the whole file is there, and a
// loss of power may bring back what was there before.
func (f *File) Commit() error {
	if err := f.out.Sync(); err != nil {
		return errors.Join(err, f.Abandon())
	}
	out := f.out
	f.out = nil
	err := out.Close()
	if err == nil {
		err = f.files.Rename(f.temporary, f.name)
	}
	if err != nil {
		return errors.Join(err, f.files.Remove(f.temporary))
	}
	return SyncDir(f.files, f.files.PathDir(f.name))
}

// Abandon removes the file. It does nothing after Commit.
func (f *File) Abandon() error {
	if f.out == nil {
		return nil
	}
	out := f.out
	f.out = nil
	return errors.Join(out.Close(), f.files.Remove(f.temporary))
}

// SyncDir makes the names in a directory durable.
func SyncDir(files lsm.FS, dir string) error {
	d, err := files.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Reader reads a file, which it opens at the first Read and closes at the end or at an error, so that a list
// of many files has one open at a time.
type Reader struct {
	files lsm.FS
	name  string
	in    io.ReadCloser // nil before the first Read and after the last
	buf   *bufio.Reader
	err   error // with which every further Read ends
}

// NewReader returns a reader of a file, which must be there.
func NewReader(files lsm.FS, name string) (*Reader, error) {
	info, err := files.Stat(name)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return nil, fmt.Errorf("%w: %q is a directory", ids.ErrUsage, name)
	}
	return &Reader{files: files, name: name}, nil
}

// Read implements io.Reader.
func (r *Reader) Read(p []byte) (n int, err error) {
	if r.err != nil {
		return 0, r.err
	}
	if r.in == nil {
		if r.in, r.err = r.files.Open(r.name); r.err != nil {
			return 0, r.err
		}
		r.buf = bufio.NewReaderSize(r.in, 256<<10)
	}
	if n, err = r.buf.Read(p); err != nil {
		r.err = err
		_ = r.Close() // what was read is not lost by that
	}
	return n, err
}

// Close closes the file. It may be called at any time.
func (r *Reader) Close() error {
	if r.in == nil {
		return nil
	}
	in := r.in
	r.in, r.buf = nil, nil
	if r.err == nil {
		r.err = fs.ErrClosed
	}
	return in.Close()
}
