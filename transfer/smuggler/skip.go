package smuggler

import (
	"bytes"
	"errors"
	"io"

	"github.com/jaydb/jay"
)

// maxOpen bounds the memory for open brackets while a value is skipped.
const maxOpen = 1 << 20

// errTooManyOpen is returned while skipping when there are too many open brackets.
var errTooManyOpen = errors.New("too many open brackets")

// Skip copies the value on which Next failed to w and moves after it.
//
// A value that is only too large or too deep ends where the grammar says. In an
// array, a malformed object or array ends at its closing bracket, if that is in
// the same line. Any other malformed value extends to the next line that is not
// indented deeper than its own and does not begin with a closing bracket or a
// comma. That is one line of NDJSON, or the whole of a value that is printed over
// many lines.
func (s *splitter) Skip(w io.Writer) error {
	s.sink, s.i = w, s.start
	defer func() { s.sink = nil }()
	s.restart = true
	if s.form == formEnded {
		s.form = formStream
	}

	// Try the more precise way first; skipLines goes on where it has stopped.
	done := false
	var err error
	switch {
	case s.oversize:
		done, err = s.skipWellFormed()
	case s.form == formArray:
		done, err = s.skipBalanced()
	}
	if err == nil && !done {
		err = s.skipLines()
	}
	if err != nil && err != io.EOF {
		return err
	}
	s.i = min(s.i, len(s.buf))
	return s.release(s.i)
}

// skipWellFormed moves over a value. It stops, and done is false, where the value
// turns out to be malformed.
func (s *splitter) skipWellFormed() (done bool, err error) {
	err = s.value()
	if errors.Is(err, jay.ErrInvalidDocument) || err == errTooManyOpen {
		return false, nil
	}
	return err == nil, err
}

// skipBalanced moves over an object or array by counting brackets outside of
// strings. It stops at the end of the line.
func (s *splitter) skipBalanced() (done bool, err error) {
	if err := s.more(); err != nil {
		return false, err
	}
	if c := s.buf[s.i]; c != '{' && c != '[' {
		return false, nil
	}
	depth, quoted := 0, false
	for ; ; s.i++ {
		if err := s.more(); err != nil {
			return false, err
		}
		switch c := s.buf[s.i]; {
		case c == '\n':
			return false, nil
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			s.i++
		case quoted:
		case c == '{' || c == '[':
			depth++
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				s.i++
				return true, nil
			}
		}
	}
}

// skipLines moves to the next line on which a value may begin.
func (s *splitter) skipLines() error {
	for {
		if err := s.skipPast('\n'); err != nil {
			return err
		}
		indent := 0 // of the new line
		for {
			if err := s.more(); err != nil {
				return err
			}
			if c := s.buf[s.i]; c != ' ' && c != '\t' {
				break
			}
			indent++
			s.i++
		}
		if c := s.buf[s.i]; indent <= s.indent && bytes.IndexByte([]byte("}],\r\n"), c) < 0 {
			s.indent, s.leading = indent, false
			return nil
		}
		if s.form == formArray && indent < s.indent && s.buf[s.i] == ']' {
			return nil
		}
	}
}

// skipPast moves after the next byte c.
func (s *splitter) skipPast(c byte) error {
	for {
		if err := s.more(); err != nil {
			return err
		}
		if n := bytes.IndexByte(s.buf[s.i:], c); n >= 0 {
			s.i += n + 1
			return nil
		}
		s.i = len(s.buf)
	}
}

// release writes the bytes of the value before end to the sink and drops them.
func (s *splitter) release(end int) error {
	if end <= s.start {
		return nil
	}
	_, err := s.sink.Write(s.buf[s.start:end])
	s.start = end
	if err != nil {
		return &sinkError{err}
	}
	return nil
}

// sinkError is the error of a sink that failed.
type sinkError struct{ err error }

// Error returns the text of the writer's error.
func (e *sinkError) Error() string { return e.err.Error() }

// Unwrap returns the writer's error.
func (e *sinkError) Unwrap() error { return e.err }
