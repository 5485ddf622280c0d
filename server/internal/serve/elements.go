package serve

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/bits"
	"unicode/utf8"
)

// ErrElement is wrapped by the errors for invalid JSON in a stream.
var ErrElement = errors.New("the stream is no JSON array of objects")

// ElementReader reads the elements of a JSON array, which must be objects, one at a time.
// It only finds the ends of elements: the caller must validate their contents.
type ElementReader struct {
	reader *bufio.Reader
	most   int64               // largest element in bytes
	take   func(n int64) error // takes memory for a larger element
	taken  int64               // bytes taken
	began  bool                // the opening bracket was read
	ended  bool                // the closing bracket was read
	Read   int                 // number of elements read
	buf    []byte
}

// ElementBufferBytes is what a reader of elements reads ahead.
const ElementBufferBytes = 64 << 10

// NewElementReader returns a reader of the elements of r, of at most so many bytes each. It
// calls take before it holds more than ElementBufferBytes.
func NewElementReader(r io.Reader, most int64, take func(n int64) error) *ElementReader {
	return &ElementReader{reader: bufio.NewReaderSize(r, ElementBufferBytes), most: most, take: take}
}

// Next returns the next element, which is valid until the next call. At the closing
// bracket it returns io.EOF without reading on, as the Node.js
// client never ends its stream. It returns io.ErrUnexpectedEOF if the stream ends before.
func (e *ElementReader) Next() ([]byte, error) {
	if e.ended {
		return nil, io.EOF
	}
	b, err := e.skipSpace()
	if err != nil {
		return nil, unexpected(err)
	}
	if !e.began {
		if b != '[' {
			return nil, ErrElement
		}
		e.began = true
		if b, err = e.skipSpace(); err != nil {
			return nil, unexpected(err)
		}
		if b == ']' {
			e.ended = true
			return nil, io.EOF
		}
	} else {
		switch b {
		case ']':
			e.ended = true
			return nil, io.EOF
		case ',':
		default:
			return nil, ErrElement
		}
		if b, err = e.skipSpace(); err != nil {
			return nil, unexpected(err)
		}
	}
	if b != '{' {
		return nil, ErrElement
	}
	e.Read++
	return e.object()
}

// Raw returns a reader of the n bytes after the element, which are not JSON. It returns
// io.ErrUnexpectedEOF if the stream ends before.
func (e *ElementReader) Raw(n int64) io.Reader { return &exactReader{e.reader, n} }

type exactReader struct {
	r    io.Reader
	left int64
}

// Read implements io.Reader.
func (e *exactReader) Read(b []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n, err := e.r.Read(b[:min(int64(len(b)), e.left)])
	if e.left -= int64(n); e.left > 0 {
		err = unexpected(err)
	}
	return n, err
}

// skipSpace returns the next byte that is no white space.
func (e *ElementReader) skipSpace() (byte, error) {
	for {
		b, err := e.reader.ReadByte()
		if err != nil {
			return 0, err
		}
		switch b {
		case ' ', '\t', '\r', '\n':
		default:
			return b, nil
		}
	}
}

// object reads the rest of an object whose opening brace was read.
func (e *ElementReader) object() ([]byte, error) {
	e.buf = append(e.buf[:0], '{')
	s := scanner{depth: 1}
	for {
		if _, err := e.reader.Peek(1); err != nil {
			return nil, unexpected(err)
		}
		chunk, err := e.reader.Peek(e.reader.Buffered())
		if err != nil {
			return nil, unexpected(err)
		}
		n, done := s.scan(chunk)
		if size := int64(len(e.buf) + n); size > e.most {
			return nil, TooLarge("element %d of the stream has more than %d bytes, which is the most", e.Read, e.most)
		} else if size > e.taken+ElementBufferBytes {
			if err := e.take(size - e.taken); err != nil {
				return nil, err
			}
			e.taken = size
		}
		e.buf = append(e.buf, chunk[:n]...)
		if _, err := e.reader.Discard(n); err != nil {
			return nil, err
		}
		if done {
			return e.buf, nil
		}
	}
}

// scanner finds the end of a JSON object or array that arrives in pieces.
type scanner struct {
	depth   int
	text    bool // inside a string
	escaped bool // after a backslash in it
}

// scan returns how many bytes of the piece belong to the value, and whether it has
// ended with them.
func (s *scanner) scan(piece []byte) (n int, done bool) {
	for i := 0; i < len(piece); i++ {
		if s.escaped {
			s.escaped = false
			continue
		}
		if s.text {
			if i += plainRun(piece[i:]); i == len(piece) {
				break
			}
			s.text, s.escaped = piece[i] != '"', piece[i] == '\\'
			continue
		}
		switch piece[i] {
		case '"':
			s.text = true
		case '{', '[':
			s.depth++
		case '}', ']':
			if s.depth--; s.depth == 0 {
				return i + 1, true
			}
		}
	}
	return len(piece), false
}

// plainRun returns the number of bytes before the first quote or backslash. It examines
// eight bytes at a time.
func plainRun(text []byte) int {
	const low, high = 0x0101010101010101, 0x8080808080808080
	n := 0
	for ; n+8 <= len(text); n += 8 {
		word := binary.LittleEndian.Uint64(text[n:])
		quotes, backslashes := word^(low*'"'), word^(low*'\\')
		// Of the bytes that are zero in either, the lowest has its high bit set in found.
		found := ((quotes-low)&^quotes | (backslashes-low)&^backslashes) & high
		if found != 0 {
			return n + bits.TrailingZeros64(found)/8
		}
	}
	for n < len(text) && text[n] != '"' && text[n] != '\\' {
		n++
	}
	return n
}

// unexpected converts io.EOF to io.ErrUnexpectedEOF.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// EachMember calls fn with the members of an object. Names are as written, without their
// quotes. Only the ends of values are found; their contents are not checked.
func EachMember(object []byte, fn func(name, value []byte) error) error {
	rest := trimSpace(object[1:])
	if len(rest) > 0 && rest[0] == '}' {
		return nil
	}
	for {
		name, behind, err := cutValue(rest)
		if err != nil || len(name) < 2 || name[0] != '"' {
			return ErrElement
		}
		behind = trimSpace(behind)
		if len(behind) == 0 || behind[0] != ':' {
			return ErrElement
		}
		value, behind, err := cutValue(trimSpace(behind[1:]))
		if err != nil {
			return err
		}
		if err := fn(name[1:len(name)-1], value); err != nil {
			return err
		}
		behind = trimSpace(behind)
		switch {
		case len(behind) == 1 && behind[0] == '}':
			return nil
		case len(behind) == 0 || behind[0] != ',':
			return ErrElement
		}
		rest = trimSpace(behind[1:])
	}
}

// trimSpace returns the text without leading white space.
func trimSpace(text []byte) []byte {
	for len(text) > 0 && (text[0] == ' ' || text[0] == '\n' || text[0] == '\r' || text[0] == '\t') {
		text = text[1:]
	}
	return text
}

// cutValue splits the text after the value at its beginning.
func cutValue(text []byte) (value, rest []byte, err error) {
	if len(text) == 0 {
		return nil, nil, ErrElement
	}
	switch text[0] {
	case '{', '[':
		s := scanner{}
		n, done := s.scan(text)
		if !done {
			return nil, nil, ErrElement
		}
		return text[:n], text[n:], nil
	case '"':
		for i := 1; ; i++ {
			if i += plainRun(text[min(i, len(text)):]); i >= len(text) {
				return nil, nil, ErrElement
			}
			if text[i] == '"' {
				return text[:i+1], text[i+1:], nil
			}
			i++ // skip the escaped byte
		}
	}
	n := bytes.IndexAny(text, ",}] \t\r\n")
	if n <= 0 {
		return nil, nil, ErrElement
	}
	return text[:n], text[n:], nil
}

// TextOf returns the text of a JSON string; "" for null.
func TextOf(value []byte) (string, error) {
	if string(value) == `"PUT"` { // the most frequent one
		return "PUT", nil
	}
	if n := len(value); n >= 2 && value[0] == '"' && plainText(value[1:n-1]) {
		return string(value[1 : n-1]), nil
	}
	var text *string
	if err := json.Unmarshal(value, &text); err != nil {
		return "", ErrElement
	}
	if text == nil {
		return "", nil
	}
	return *text, nil
}

// plainText reports whether the contents of a JSON string have no escapes.
func plainText(text []byte) bool {
	for _, b := range text {
		if b < ' ' || b >= utf8.RuneSelf || b == '\\' {
			return false
		}
	}
	return true
}
