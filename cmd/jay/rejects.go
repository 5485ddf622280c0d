package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"os"
)

// rejects is the file of the values that an import skips, one a line. White space
// inside a value becomes blanks, which does not change the meaning of JSON.
type rejects struct {
	file  *os.File
	w     *bufio.Writer
	a     *app
	count int64

	blanks int  // not written yet: dropped at the beginning and the end of a value
	begun  bool // a part of the value is written
}

// maxExplained is the greatest number of rejects whose errors are printed.
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

// writeText writes text without white space, and the blanks before it.
func (r *rejects) writeText(text []byte) error {
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
	r.blanks, r.begun = 0, false
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

// close flushes and closes the file. A nil rejects has no file.
func (r *rejects) close() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.w.Flush(), r.file.Close())
}
