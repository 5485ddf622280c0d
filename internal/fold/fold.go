// Package fold lower-cases text, character by character, by a fixed table. Keys
// of documents and indexes hold folded text, so the table is part of the on-disk
// format and does not follow the Unicode version of the Go release.
//
// Characters outside the Basic Multilingual Plane stay, no character becomes
// several, and nothing is normalised: ß and SS differ, and so do é and e with a
// combining accent. The Kelvin sign folds to k and U+0130 to i.
//
// All functions are safe for concurrent use.
package fold

import (
	"sort"
	"unicode/utf8"
)

//go:generate go run gen.go

// span maps each of the characters lo, lo+stride, … hi to itself plus delta.
type span struct {
	lo, hi, stride uint16
	delta          int32
}

// String returns s folded: s itself, without a copy, if it is ASCII without
// capital letters.
func String(s string) string {
	for i := 0; i < len(s); i++ {
		if c := s[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return string(Append(make([]byte, 0, len(s)+8), s)) // a few characters grow by a byte
		}
	}
	return s
}

// Append appends s, folded, to dst. It copies bytes that are not UTF-8.
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

// AppendString is Append for a string, with a fast path for ASCII. Since it is
// not generic, escape analysis sees in other packages that it does not keep dst,
// and dst can be on the stack.
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

// Growth returns by how many bytes folding lengthens s. It can be negative.
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

// Byte returns the folded form of an ASCII character.
func Byte(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		c += 'a' - 'A'
	}
	return c
}

// Rune returns the folded form of a character. Folding it again changes nothing.
func Rune(r rune) rune {
	if r < utf8.RuneSelf {
		return rune(Byte(byte(r)))
	}
	if r > 0xffff {
		return r
	}
	// The first span that does not end before c is the only one that can hold it.
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
