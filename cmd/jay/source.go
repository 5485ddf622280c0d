package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/transfer"
)

// source yields the documents of an input.
type source interface {
	// next returns the next document, or io.EOF. After an error that canSkip accepts, skip
	// goes on behind the value. Any other error is final. Number and place of the value are
	// also set with an error.
	next() (value, error)
	// skip writes the value on which next failed to w.
	skip(w io.Writer) error
}

// finalError is an error of the input after which nothing more can be read.
type finalError struct{ err error }

// Error returns the text of the error.
func (e *finalError) Error() string { return e.err.Error() }

// Unwrap returns the error.
func (e *finalError) Unwrap() error { return e.err }

// canSkip reports whether an import can continue after an error of a source.
func canSkip(err error) bool {
	if _, final := errors.AsType[*finalError](err); final {
		return false
	}
	return errors.Is(err, jay.ErrInvalidDocument)
}

// refused makes an error of a format one of a document, which can be skipped if the
// record is known.
func refused(err error) error {
	bad, is := errors.AsType[*transfer.Error](err)
	if !is {
		return err
	}
	err = &formatError{bad}
	if bad.Raw == nil {
		return &finalError{err}
	}
	return err
}

// formatError is an error of a format, as the error of a document that it is.
type formatError struct{ err *transfer.Error }

// Error returns the rule, and what was found.
func (e *formatError) Error() string {
	if e.err.Detail == "" {
		return e.err.Rule
	}
	return e.err.Rule + ": " + e.err.Detail
}

// Is makes errors.Is(err, jay.ErrInvalidDocument) true.
func (e *formatError) Is(target error) bool { return target == jay.ErrInvalidDocument }

// csvSource reads a CSV file.
type csvSource struct {
	r   *transfer.CSVReader
	raw []byte // of the row that was refused
}

func (s *csvSource) next() (value, error) {
	r, err := s.r.Next()
	v := value{number: r.Number, line: r.Line, offset: r.Offset, text: r.Text, converted: true}
	if bad, is := errors.AsType[*transfer.Error](err); is {
		s.raw = bad.Raw
	}
	return v, refused(err)
}

func (s *csvSource) skip(w io.Writer) error {
	_, err := w.Write(s.raw)
	return err
}

// extendedSource reads Extended JSON: values as a splitter finds them.
type extendedSource struct {
	values *splitter
	to     transfer.Placing
	text   []byte // the last document
	raw    []byte // of the document that was refused; nil if the splitter refused it
}

func (s *extendedSource) next() (value, error) {
	v, err := s.values.next()
	if s.raw = nil; err != nil {
		return v, err
	}
	if cap(s.text) > 1<<20 {
		s.text = nil
	}
	s.text, err = transfer.FromExtended(s.text[:0], v.text, s.to)
	if bad, is := errors.AsType[*transfer.Error](err); is {
		s.raw, bad.Raw = v.text, v.text
		return v, refused(bad)
	}
	v.text, v.converted = s.text, true
	return v, nil
}

func (s *extendedSource) skip(w io.Writer) error {
	if s.raw == nil {
		return s.values.skip(w)
	}
	_, err := w.Write(s.raw)
	return err
}

// errInputTooLarge is the error of an input beyond --max-input-bytes.
type errInputTooLarge int64

// Error names the limit.
func (e errInputTooLarge) Error() string {
	return fmt.Sprintf("the input has at most %s bytes, unpacked (--max-input-bytes)", thousands(int64(e)))
}

// Is makes errors.Is(err, jay.ErrTooLarge) true.
func (errInputTooLarge) Is(target error) bool { return target == jay.ErrTooLarge }

// boundedReader fails once more than max bytes were read. A max of 0 is no bound.
type boundedReader struct {
	r    io.Reader
	max  int64
	read int64
}

// Read implements io.Reader.
func (b *boundedReader) Read(p []byte) (int, error) {
	n, err := b.r.Read(p)
	if b.read += int64(n); b.max > 0 && b.read > b.max {
		return 0, errInputTooLarge(b.max)
	}
	return n, err
}
