package smuggler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"

	"github.com/jaydb/jay"
)

// splitter splits a stream into JSON values: one a line, concatenated, or the
// elements of one array. It finds the end of each value and leaves validation to
// the database.
//
// It holds one value at a time, and at most about maxBytes of it. It checks the
// grammar of brackets, keys, commas and strings, so that it finds an error where
// it is and not at the end of the input. It does not check numbers and literals,
// unless they are the whole value.
//
// After an error of Next, Skip skips the value.
type splitter struct {
	src io.Reader
	limits

	buf     []byte // input that has been read and may still be needed
	start   int    // offset in buf of the current value
	i       int    // offset in buf of the next byte to read
	base    int64  // offset of buf[0] in the input
	readErr error  // of src, sticky
	number  int64  // of the current value, from 1
	counted int    // offset in buf up to which line breaks are counted
	breaks  int64  // number of line breaks in the input up to counted

	form     form
	first    bool   // the next element is the first: no comma precedes it
	restart  bool   // after a skip: the comma before the next element is optional
	open     []byte // open brackets of the value, outermost first
	indent   int    // number of blanks at the start of the value's line
	leading  bool   // only blanks so far in this line
	oversize bool   // Next failed because of a limit, not of the grammar

	sink io.Writer // while a value is skipped, receives the bytes that leave buf
}

// form is the form of the input.
type form uint8

const (
	formUnknown form = iota
	formStream       // concatenated values, with or without white space
	formArray        // the elements of one array
	formEnded        // after the end of the array
)

const firstBuffer = 256 << 10

// limits are the limits of one value.
type limits struct {
	maxBytes, maxDepth int
	names              Names
	room               func(n int64) error // pays for a buffer of n bytes; nil if nobody counts
}

func newSplitter(src io.Reader, l limits) *splitter {
	return &splitter{src: src, limits: l, buf: make([]byte, 0, firstBuffer), leading: true}
}

// Next returns the next value, or io.EOF. It returns a *jay.DocumentError, whose
// offset counts from the first byte of the value, if the value is malformed or
// exceeds a limit: then Skip can skip it. Any other error comes from src and is
// final. Number and offset of the value are also set with an error.
func (s *splitter) Next() (Record, error) {
	s.oversize = false
	err := s.approach()
	if err == io.EOF {
		return Record{}, io.EOF
	}
	s.number++
	s.countLines(min(s.i, len(s.buf)))
	// The place of the value is known before it is read, for errors in it.
	v := Record{Number: s.number, Line: s.breaks + 1, Offset: s.base + int64(s.i)}
	s.start = s.i
	if err == nil {
		err = s.value()
	}
	s.first, s.restart = false, false
	if err != nil {
		return v, err
	}
	v.Text = s.buf[s.start:s.i]
	if s.isBroken(v.Text) {
		s.i = s.start
		return v, s.expected("a JSON value")
	}
	return v, nil
}

// isBroken reports whether a value is a literal or number that is not valid JSON.
func (s *splitter) isBroken(text []byte) bool {
	switch text[0] {
	case '{', '[', '"':
		return false
	}
	return !json.Valid(text)
}

// approach moves to the first byte of the next value, over the white space and
// punctuation before it.
func (s *splitter) approach() error {
	s.start = s.i
	if s.form == formUnknown {
		if err := s.begin(); err != nil {
			return err
		}
	}
	c, err := s.space()
	switch {
	case err == io.EOF && s.form == formArray && !s.restart:
		return s.malformed("it ends where the end of the array is expected")
	case err != nil:
		return err
	case s.form == formEnded:
		return s.fault("must be the end of the input", "more follows after the end of the array")
	case s.form == formStream:
		return nil
	}
	return s.approachElement(c)
}

// begin skips a byte order mark and determines the form of the input.
func (s *splitter) begin() error {
	for _, want := range []byte("\xef\xbb\xbf") {
		if err := s.more(); err != nil {
			break
		}
		if s.buf[s.i] != want {
			break
		}
		s.i++
	}
	if n := s.i; n > 0 && n < 3 {
		s.i = 0 // an incomplete mark is a part of the first value
	}

	c, err := s.space()
	if err != nil {
		return err
	}
	s.form = formStream
	if c == '[' {
		s.form, s.first = formArray, true
		s.i++
	}
	return nil
}

// approachElement moves over the comma before an element of the array, or over the
// end of the array.
func (s *splitter) approachElement(c byte) (err error) {
	switch {
	case c == ']':
		s.i++
		s.form = formEnded
		return s.approach()
	case s.first, s.restart && c != ',':
		return nil
	case c != ',':
		return s.expected("a comma or the end of the array")
	}
	s.i++
	if _, err = s.space(); err == io.EOF {
		return s.malformed("it ends where a value is expected")
	}
	return err
}

// space moves to the next byte that is not white space and returns it.
func (s *splitter) space() (byte, error) {
	for {
		if s.i >= len(s.buf) {
			s.start = s.i
			if err := s.more(); err != nil {
				return 0, err
			}
		}
		switch c := s.buf[s.i]; c {
		case '\n':
			s.indent, s.leading = 0, true
		case ' ', '\t':
			if s.leading {
				s.indent++
			}
		case '\r':
		default:
			s.leading = false
			s.start = s.i
			return c, nil
		}
		s.i++
	}
}

// more reads input until there is a byte at s.i.
func (s *splitter) more() error {
	for s.i >= len(s.buf) {
		if err := s.makeRoom(); err != nil {
			return err
		}
		if s.readErr != nil {
			return s.readErr
		}
		n, err := s.src.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf = s.buf[:len(s.buf)+n]
		s.readErr = err
	}
	return nil
}

// countLines counts the line breaks up to the offset end of buf.
func (s *splitter) countLines(end int) {
	if end > s.counted {
		s.breaks += int64(bytes.Count(s.buf[s.counted:end], []byte{'\n'}))
		s.counted = end
	}
}

// makeRoom makes room in buf for at least one byte. It drops the bytes before the
// value and then grows buf, up to the limit.
func (s *splitter) makeRoom() error {
	if s.sink != nil {
		if err := s.release(min(s.i, len(s.buf))); err != nil {
			return err
		}
	}
	if s.i-s.start > s.maxBytes && s.sink == nil { // a skipped value may have any size
		s.oversize = true
		return &jay.DocumentError{Rule: fmt.Sprintf("at most %d bytes%s", s.maxBytes, inBrackets(s.names.MaxBytes)), Offset: s.maxBytes}
	}
	if len(s.buf) < cap(s.buf) {
		return nil
	}
	s.countLines(s.start)
	s.counted -= s.start
	// Move the value to the front. If it fills more than half of buf, grow, so that
	// bytes are moved a constant number of times on average.
	kept := s.buf[s.start:]
	if len(kept) > cap(s.buf)/2 {
		size := min(2*cap(s.buf), s.maxBytes+2*firstBuffer)
		if s.room != nil {
			if err := s.room(int64(size)); err != nil {
				return err
			}
		}
		grown := make([]byte, len(kept), size)
		copy(grown, kept)
		s.buf = grown
	} else {
		s.buf = s.buf[:copy(s.buf, kept)]
	}
	s.base += int64(s.start)
	s.i -= s.start
	s.start = 0
	return nil
}
