package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/jaydb/jay/transfer/smuggler"
)

// rejects is the file of the records that an import skips, one a line.
type rejects struct {
	name  string
	file  *os.File // nil until the first reject
	w     *bufio.Writer
	a     *app
	count int64
	grows bool // append to an existing file: an import is resumed
}

// maxExplained is the greatest number of rejects whose errors are printed.
const maxExplained = 10

// newRejects returns rejects that create the file at the first reject. It refuses a
// name under which no file can be created, and a file that holds something, unless it
// grows.
func newRejects(name string, a *app, grows bool) (*rejects, error) {
	dir, err := os.Stat(filepath.Dir(name))
	if err != nil {
		return nil, err
	}
	if !dir.IsDir() {
		return nil, usageError{text: fmt.Sprintf("--rejects %s: %s is not a directory", name, filepath.Dir(name))}
	}
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, usageError{text: fmt.Sprintf("--rejects %s: it is a directory, not a file", name)}
	case info.Mode().IsRegular() && info.Size() > 0 && !grows:
		return nil, filledRejects(name)
	}
	return &rejects{name: name, a: a, grows: grows}, nil
}

// filledRejects is the error for a file that rejects would overwrite.
func filledRejects(name string) error {
	return usageError{text: fmt.Sprintf("--rejects %s: the file exists and is not empty; rejects go to a new file, and documents are read from the FILE arguments", name)}
}

// open opens the file for the first reject. It never truncates one.
func (r *rejects) open() error {
	f, err := os.OpenFile(r.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, r.a.fileMode())
	if err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil && info.Mode().IsRegular() && info.Size() > 0 && !r.grows {
		err = filledRejects(r.name) // written to since the import began
	}
	if err != nil {
		return errors.Join(err, f.Close())
	}
	syncDirectory(filepath.Dir(r.name))
	r.file, r.w = f, bufio.NewWriterSize(f, 64<<10)
	if whole, err := endsLine(r.name, info); err != nil || whole {
		return err
	}
	return r.w.WriteByte('\n') // the import was killed within a record, which comes again
}

// endsLine reports whether a file is empty, ends with a line break, or is not regular.
func endsLine(name string, info fs.FileInfo) (bool, error) {
	if !info.Mode().IsRegular() || info.Size() == 0 {
		return true, nil
	}
	f, err := os.Open(name)
	if err != nil {
		return false, err
	}
	defer f.Close()
	last := make([]byte, 1)
	_, err = f.ReadAt(last, info.Size()-1)
	return last[0] == '\n', err
}

// Write implements smuggler.Rejects.
func (r *rejects) Write(p []byte) (int, error) {
	if r.file == nil {
		if err := r.open(); err != nil {
			return 0, err
		}
	}
	return r.w.Write(p)
}

// Sync implements smuggler.SyncedRejects. What is no regular file, such as a pipe, has no disk.
func (r *rejects) Sync() error {
	if r.file == nil {
		return nil
	}
	if err := r.w.Flush(); err != nil {
		return err
	}
	if info, err := r.file.Stat(); err != nil || !info.Mode().IsRegular() {
		return err
	}
	return r.file.Sync()
}

// Reject implements smuggler.Rejects: it prints why, up to maxExplained times.
func (r *rejects) Reject(why *smuggler.ImportError) {
	r.count++
	switch {
	case r.count <= maxExplained:
		r.a.complain(why, kindOf(why))
	case r.count == maxExplained+1:
		r.a.complain(fmt.Errorf("more than %d documents are skipped; no word on the others", maxExplained), "")
	}
}

// close flushes and closes the file. Without a reject there is none.
func (r *rejects) close() error {
	if r == nil || r.file == nil {
		return nil
	}
	return errors.Join(r.w.Flush(), r.file.Close())
}
