package smuggler

import (
	"fmt"
	"io"

	"github.com/jaydb/jay"
)

// want is what the grammar allows next.
type want uint8

const (
	wantValue        want = iota
	wantFirstElement      // a value, or the end of the array
	wantFirstKey          // a key, or the end of the object
	wantKey
	wantColon
	wantComma // a comma, or the end of what is open
)

// wantNames are the names of the constants in errors.
var wantNames = [...]string{"a value", "a value or the end of the array", "a key or the end of the object", "a key", "a colon", "a comma or the end of what is open"}

// value moves from the first byte of a value to the byte after its last. It keeps
// the open brackets in s.open instead of recursing.
func (s *splitter) value() error {
	s.open = s.open[:0]
	want := wantValue
	for {
		if s.i >= len(s.buf) {
			if err := s.more(); err != nil {
				return s.cutShort(err, wantNames[want])
			}
		}
		c := s.buf[s.i]
		if c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			s.i++
			continue
		}
		if !s.allows(want, c) {
			return s.expected(wantNames[want])
		}
		var err error
		if want, err = s.token(want, c); err != nil {
			return err
		}
		if want == wantComma && len(s.open) == 0 {
			return nil
		}
	}
}

// allows reports whether the grammar allows a token that begins with c.
func (s *splitter) allows(w want, c byte) bool {
	inside := byte(0)
	if n := len(s.open); n > 0 {
		inside = s.open[n-1]
	}
	switch c {
	case '"':
		return w != wantColon && w != wantComma
	case '{', '[':
		return w == wantValue || w == wantFirstElement
	case '}':
		return inside == '{' && (w == wantComma || w == wantFirstKey)
	case ']':
		return inside == '[' && (w == wantComma || w == wantFirstElement)
	case ':':
		return w == wantColon
	case ',':
		return w == wantComma
	}
	return c > ' ' && (w == wantValue || w == wantFirstElement)
}

// token moves over a token that the grammar allows, and returns what it allows
// next.
func (s *splitter) token(w want, c byte) (want, error) {
	switch c {
	case '"':
		if w == wantKey || w == wantFirstKey {
			return wantColon, s.text()
		}
		return wantComma, s.text()
	case '{':
		return wantFirstKey, s.push(c)
	case '[':
		return wantFirstElement, s.push(c)
	case '}', ']':
		s.i++
		s.open = s.open[:len(s.open)-1]
		return wantComma, nil
	case ':':
		s.i++
		return wantValue, nil
	case ',':
		s.i++
		if s.open[len(s.open)-1] == '{' {
			return wantKey, nil
		}
		return wantValue, nil
	}
	return wantComma, s.scalar()
}

// push opens a bracket.
func (s *splitter) push(c byte) error {
	if s.sink == nil && len(s.open) >= s.maxDepth {
		s.oversize = true
		return s.fault(fmt.Sprintf("at most %d levels deep%s", s.maxDepth, inBrackets(s.names.MaxDepth)), "")
	}
	if len(s.open) >= maxOpen {
		return errTooManyOpen
	}
	s.open = append(s.open, c)
	s.i++
	return nil
}

// text moves over a string.
func (s *splitter) text() error {
	i := s.i + 1
	for {
		for ; i < len(s.buf); i++ {
			c := s.buf[i]
			if c == '"' {
				s.i = i + 1
				return nil
			}
			if c == '\\' {
				i++
			} else if c < ' ' {
				s.i = i
				return s.malformed(fmt.Sprintf("control character %q inside a string", c))
			}
		}
		s.i = i
		if err := s.more(); err != nil {
			return s.cutShort(err, "the end of a string")
		}
		i = s.i
	}
}

// scalar moves over a number or a literal, without validating it.
func (s *splitter) scalar() error {
	for {
		if s.i >= len(s.buf) {
			if err := s.more(); err == io.EOF {
				return nil
			} else if err != nil {
				return err
			}
		}
		switch c := s.buf[s.i]; {
		case c <= ' ' || c == ',' || c == ':' || c == '"' || c == '{' || c == '}' || c == '[' || c == ']':
			return nil
		}
		s.i++
	}
}

// cutShort returns the error for a value that the end of the input cuts off. It
// returns other errors unchanged.
func (s *splitter) cutShort(err error, what string) error {
	if err != io.EOF {
		return err
	}
	s.i = len(s.buf)
	return s.malformed("it ends where " + what + " is expected")
}

func (s *splitter) expected(what string) error {
	return s.malformed(fmt.Sprintf("%q where %s is expected", s.buf[s.i], what))
}

func (s *splitter) malformed(detail string) error {
	return s.fault("must be well-formed JSON", detail)
}

func (s *splitter) fault(rule, detail string) error {
	return &jay.DocumentError{Rule: rule, Detail: detail, Offset: s.i - s.start}
}
