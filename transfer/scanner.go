package transfer

import (
	"fmt"
	"io"
)

// scanner reads JSON with bytes between its values. It holds one value at a time.
type scanner struct {
	src      io.Reader
	maxBytes int
	maxDepth int

	buf     []byte
	start   int // of what must stay in buf
	i       int // of the next byte
	base    int64
	readErr error
	open    []byte // brackets
}

func newScanner(src io.Reader, maxBytes, maxDepth int) *scanner {
	return &scanner{src: src, maxBytes: maxBytes, maxDepth: maxDepth, buf: make([]byte, 0, 256<<10)}
}

// offset returns the offset of the next byte in the input.
func (s *scanner) offset() int64 { return s.base + int64(s.i) }

// more reads until there is a byte at i.
func (s *scanner) more() error {
	for tries := 0; s.i >= len(s.buf); tries++ {
		if s.readErr != nil {
			return s.readErr
		}
		if tries > 100 {
			return io.ErrNoProgress
		}
		if s.start > 0 {
			s.base += int64(s.start)
			s.i -= s.start
			s.buf = s.buf[:copy(s.buf, s.buf[s.start:])]
			s.start = 0
		}
		if len(s.buf) == cap(s.buf) {
			grown := make([]byte, len(s.buf), 2*cap(s.buf))
			copy(grown, s.buf)
			s.buf = grown
		}
		n, err := s.src.Read(s.buf[len(s.buf):cap(s.buf)])
		s.buf, s.readErr = s.buf[:len(s.buf)+n], err
	}
	return nil
}

// space moves to the next byte that is no white space, and returns it.
func (s *scanner) space() (byte, error) {
	for {
		s.start = s.i
		if err := s.more(); err != nil {
			return 0, err
		}
		switch c := s.buf[s.i]; c {
		case ' ', '\n', '\t', '\r':
			s.i++
		default:
			s.start = s.i
			return c, nil
		}
	}
}

// capture moves over the value that begins at i, and returns it. It is valid until the
// next call of a method. Brackets match, strings are closed; the rest is not validated.
func (s *scanner) capture() ([]byte, error) {
	s.start, s.open = s.i, s.open[:0]
	if cap(s.buf) > 4<<20 && s.maxBytes > 4<<20 && len(s.buf)-s.start < 256<<10 { // behind a large one
		small := make([]byte, len(s.buf)-s.start, 256<<10)
		copy(small, s.buf[s.start:])
		s.base += int64(s.start)
		s.buf, s.start, s.i = small, 0, 0
	}
	text := false
	for {
		if s.i-s.start > s.maxBytes {
			return nil, invalid(fmt.Sprintf("a value has at most %d bytes", s.maxBytes), "this one has more")
		}
		if err := s.more(); err != nil {
			if err == io.EOF && len(s.open) == 0 && !text && s.i > s.start {
				return s.buf[s.start:s.i], nil
			}
			return nil, err
		}
		// What is in the buffer, in one loop.
		for s.i < len(s.buf) && s.i-s.start <= s.maxBytes {
			c := s.buf[s.i]
			if text {
				if c == '\\' {
					s.i += 2
					continue
				}
				s.i++
				if c == '"' {
					if text = false; len(s.open) == 0 {
						return s.buf[s.start:s.i], nil
					}
				}
				continue
			}
			switch c {
			case '"':
				if len(s.open) == 0 && s.i > s.start {
					return s.buf[s.start:s.i], nil
				}
				text = true
			case '{', '[':
				if len(s.open) == 0 && s.i > s.start {
					return s.buf[s.start:s.i], nil
				}
				if len(s.open) >= s.maxDepth {
					return nil, invalid(fmt.Sprintf("a value has at most %d levels", s.maxDepth), "this one has more")
				}
				s.open = append(s.open, c+2) // its closing bracket
			case '}', ']':
				if len(s.open) == 0 {
					if s.i > s.start {
						return s.buf[s.start:s.i], nil
					}
					return nil, invalid("a value is expected", "%q", c)
				}
				if s.open[len(s.open)-1] != c {
					return nil, invalid("brackets must match", "%q at byte %d", c, s.offset())
				}
				s.open = s.open[:len(s.open)-1]
				if len(s.open) == 0 {
					s.i++
					return s.buf[s.start:s.i], nil
				}
			case ',', ':', ' ', '\n', '\t', '\r':
				if len(s.open) == 0 {
					if s.i > s.start {
						return s.buf[s.start:s.i], nil
					}
					return nil, invalid("a value is expected", "%q", c)
				}
			}
			s.i++
		}
	}
}

// read reads raw bytes that follow a value.
func (s *scanner) read(p []byte) (int, error) {
	s.start = s.i
	if err := s.more(); err != nil {
		return 0, err
	}
	n := copy(p, s.buf[s.i:])
	s.i += n
	s.start = s.i
	return n, nil
}
