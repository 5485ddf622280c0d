package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// rejects is the file of the values that an import skips, one a line. White space
// inside a value becomes blanks, which does not change the meaning of JSON.
type rejects struct {
	name  string
	file  *os.File // nil until the first reject
	w     *bufio.Writer
	a     *app
	count int64
	grows bool // append to an existing file: an import is resumed

	blanks int  // not written yet: dropped at the beginning and the end of a value
	begun  bool // a part of the value is written
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
	f, err := os.OpenFile(r.name, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o666)
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
	r.file, r.w = f, bufio.NewWriterSize(f, 64<<10)
	return nil
}

// keep writes a whole value.
func (r *rejects) keep(text []byte) error {
	if _, err := r.Write(text); err != nil {
		return err
	}
	return r.endLine()
}

// Write writes a part of a value.
func (r *rejects) Write(p []byte) (int, error) {
	for rest := p; len(rest) > 0; {
		n := bytes.IndexAny(rest, " \t\r\n")
		if n < 0 {
			n = len(rest)
		}
		if n > 0 {
			if err := r.writeText(rest[:n]); err != nil {
				return 0, err
			}
		}
		if rest = rest[n:]; len(rest) > 0 {
			r.blanks++
			rest = rest[1:]
		}
	}
	return len(p), nil
}

// writeText writes text without white space, and the blanks before it.
func (r *rejects) writeText(text []byte) error {
	if r.file == nil {
		if err := r.open(); err != nil {
			return err
		}
	}
	for ; r.blanks > 0; r.blanks-- {
		if r.begun {
			// The writer returns an error again at the next write.
			_ = r.w.WriteByte(' ')
		}
	}
	r.begun = true
	_, err := r.w.Write(text)
	return err
}

// endLine ends a value.
func (r *rejects) endLine() error {
	begun := r.begun
	r.blanks, r.begun = 0, false
	if !begun {
		return nil // the value could not be written
	}
	return r.w.WriteByte('\n')
}

// explain counts a reject and prints its error, up to maxExplained of them.
func (r *rejects) explain(err error) {
	r.count++
	switch {
	case r.count <= maxExplained:
		r.a.complain(err, kindOf(err))
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
