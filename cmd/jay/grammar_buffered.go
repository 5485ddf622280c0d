package main

import (
	"encoding/binary"
	"math/bits"
)

// bufferedObject is value for an object that lies in the buffer as a whole, as nearly all
// do: it asks neither for more input nor what may follow after each token. It moves over
// the object and returns true. In any other case, such as a malformed or a deep object, it
// moves nowhere and returns false, and value finds out why.
func (s *splitter) bufferedObject() bool {
	buf, i := s.buf, s.i
	if i >= len(buf) || buf[i] != '{' {
		return false
	}
	open := s.open[:0]
	defer func() { s.open = open[:0] }() // its memory

	for {
		// The first byte of a value.
		i = skipBlanks(buf, i)
		if i >= len(buf) {
			return false
		}
		opened := false
		switch c := buf[i]; {
		case c == '"':
			if i = stringEnd(buf, i+1); i < 0 {
				return false
			}
		case c == '{' || c == '[':
			if len(open) >= s.maxDepth {
				return false
			}
			open = append(open, c+2) // its closing bracket
			if i = skipBlanks(buf, i+1); i >= len(buf) {
				return false
			}
			opened = buf[i] != c+2
		case endsScalar[c]:
			return false
		default:
			for i++; i < len(buf) && !endsScalar[buf[i]]; i++ {
			}
		}

		// What is closed behind it, and the comma before the next one.
		for !opened {
			i = skipBlanks(buf, i)
			if i >= len(buf) {
				return false
			}
			c := buf[i]
			i++
			if c == ',' {
				if i = skipBlanks(buf, i); i >= len(buf) {
					return false
				}
				break
			}
			last := len(open) - 1
			if c != open[last] {
				return false
			}
			if open = open[:last]; last == 0 {
				s.i = i
				return true
			}
		}
		if open[len(open)-1] == ']' {
			continue
		}

		// The key, and its colon.
		if buf[i] != '"' {
			return false
		}
		if i = stringEnd(buf, i+1); i < 0 {
			return false
		}
		if i = skipBlanks(buf, i); i >= len(buf) || buf[i] != ':' {
			return false
		}
		i++
	}
}

// endsScalar has the bytes that end a number or a literal: see scalar.
var endsScalar = func() (ends [256]bool) {
	for c := range ' ' + 1 {
		ends[c] = true
	}
	for _, c := range `,:"{}[]` {
		ends[c] = true
	}
	return ends
}()

// skipBlanks returns the offset of the first byte from i on that is no white space, or
// the end of buf.
func skipBlanks(buf []byte, i int) int {
	for i < len(buf) && (buf[i] == ' ' || buf[i] == '\n' || buf[i] == '\t' || buf[i] == '\r') {
		i++
	}
	return i
}

// stringEnd returns the offset behind the string whose text begins at i, or -1 if it has a
// control character or does not end in buf. It looks at eight bytes at a time.
func stringEnd(buf []byte, i int) int {
	for i+8 <= len(buf) {
		special := stringSpecials(binary.LittleEndian.Uint64(buf[i:]))
		if special == 0 {
			i += 8
			continue
		}
		i += bits.TrailingZeros64(special) >> 3
		switch buf[i] {
		case '"':
			return i + 1
		case '\\':
			i += 2
		default:
			return -1
		}
	}
	return -1 // or so close to the end of buf that value looks at it
}

// stringSpecials returns a word whose lowest bit that is set lies in the first byte of word that
// is a quote, a backslash or a control character; 0 if there is none.
func stringSpecials(word uint64) uint64 {
	const ones, highs = 0x0101010101010101, 0x8080808080808080
	quote, backslash := word^'"'*ones, word^'\\'*ones
	return ((quote-ones)&^quote | (backslash-ones)&^backslash | (word-' '*ones)&^word) & highs
}
