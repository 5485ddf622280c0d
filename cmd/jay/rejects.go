package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
)

// rejects is the file of the values that an import skips, one a line. Line
// breaks inside a value become blanks, which leaves valid JSON as it was.
type rejects struct {
	file  *os.File
	w     *bufio.Writer
	a     *app
	count int64

	blanks int  // held back: they go if nothing follows on the line
	begun  bool // something stands on the line
}

// maxExplained is the number of rejects whose errors are printed.
const maxExplained = 10

func createRejects(name string, a *app) (*rejects, error) {
	f, err := os.Create(name)
	if err != nil {
		return nil, err
	}
	return &rejects{file: f, w: bufio.NewWriterSize(f, 64<<10), a: a}, nil
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

// writeText writes what is not white space, and the blanks before it.
func (r *rejects) writeText(text []byte) error {
	for ; r.blanks > 0; r.blanks-- {
		if r.begun {
			// An error stays with the writer until the next write.
			_ = r.w.WriteByte(' ')
		}
	}
	r.begun = true
	_, err := r.w.Write(text)
	return err
}

// endLine ends a value.
func (r *rejects) endLine() error {
	r.blanks, r.begun = 0, false
	return r.w.WriteByte('\n')
}

// explain counts a reject and says why it is one, if there are not too many.
func (r *rejects) explain(err error) {
	r.count++
	switch {
	case r.count <= maxExplained:
		r.a.complain(err, kindOf(err))
	case r.count == maxExplained+1:
		r.a.complain(fmt.Errorf("more than %d documents are skipped; no word on the others", maxExplained), "")
	}
}

// close makes the file complete. A nil rejects is none.
func (r *rejects) close() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.w.Flush(), r.file.Close())
}
