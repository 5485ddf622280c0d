// Package fold lower-cases text character by character, the same way for
// ever: keys of documents and of indexes are made of folded text, so that its
// table belongs to the on-disk format and does not follow the Unicode version
// of the Go that compiles it.
//
// There is no mapping outside the Basic Multilingual Plane, none from one
// character to several, and no normalisation: ß and SS differ, and so do é
// and e with an accent. The Kelvin sign folds to k and U+0130 to i.
package fold

import (
	"sort"
	"unicode/utf8"
)

//go:generate go run gen.go

// span maps the characters lo, lo+stride, … hi to themselves plus delta.
type span struct {
	lo, hi, stride uint16
	delta          int32
}

// String returns s folded. It is s itself if nothing changes in ASCII.
func String(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return string(Append(make([]byte, 0, len(s)+8), s))
		}
	}
	return s
}

// Append appends s, folded, to dst. Bytes that are not UTF-8 are kept as they
// are.
func Append[T string | []byte](dst []byte, s T) []byte {
	for i := 0; i < len(s); {
		c := s[i]
		if c < utf8.RuneSelf {
			dst = append(dst, Byte(c))
			i++
			continue
		}
		r, size := decode(s, i)
		if r == utf8.RuneError {
			dst = append(dst, s[i:i+size]...)
		} else {
			dst = utf8.AppendRune(dst, Rune(r))
		}
		i += size
	}
	return dst
}

// AppendString is Append for a string, quick for ASCII. The compiler sees that
// it does not keep dst, which it does not see of a generic function of another
// package: dst can be on the stack.
func AppendString(dst []byte, s string) []byte {
	start := len(dst)
	dst = append(dst, s...)
	for i := start; i < len(dst); i++ {
		if dst[i] >= utf8.RuneSelf {
			return Append(dst[:i], s[i-start:])
		}
		dst[i] = Byte(dst[i])
	}
	return dst
}

// Growth returns how many bytes s has more when it is folded. It can be
// negative.
func Growth(s string) int {
	growth := 0
	for i := 0; i < len(s); {
		if s[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r != utf8.RuneError {
			growth += utf8.RuneLen(Rune(r)) - size
		}
		i += size
	}
	return growth
}

// Byte returns an ASCII character folded.
func Byte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// Rune returns a character folded. It is its own folded form after that.
func Rune(r rune) rune {
	if r < utf8.RuneSelf {
		return rune(Byte(byte(r)))
	}
	if r > 0xffff {
		return r
	}
	c := uint16(r)
	i := sort.Search(len(table), func(i int) bool { return table[i].hi >= c })
	if i == len(table) {
		return r
	}
	t := table[i]
	if c < t.lo || (c-t.lo)%t.stride != 0 {
		return r
	}
	return r + t.delta
}

// decode returns the character at i of s and its size.
func decode[T string | []byte](s T, i int) (rune, int) {
	return utf8.DecodeRuneInString(string(s[i:min(i+utf8.UTFMax, len(s))]))
}
