package jsonpath

import (
	"bytes"
	"encoding/binary"
	"iter"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"
)

// Kind is the kind of a JSON value.
type Kind uint8

const (
	Invalid Kind = iota // no value
	Null
	Bool
	Number
	String
	Array
	Object
)

// String returns the name of the kind, such as "object".
func (k Kind) String() string {
	return [...]string{"nothing", "null", "boolean", "number", "string", "array", "object"}[k]
}

// KindOf returns the kind of a raw value. It looks at the first byte only.
func KindOf(raw []byte) Kind {
	if len(raw) == 0 {
		return Invalid
	}
	switch c := raw[0]; c {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	default:
		if c == '-' || '0' <= c && c <= '9' {
			return Number
		}
	}
	return Invalid
}

// Members yields the members of an object in document order: the raw key with its
// quotes, and the raw value. It yields nothing for another kind of value.
func Members(object []byte) iter.Seq2[[]byte, []byte] {
	return func(yield func(key, value []byte) bool) {
		if len(object) == 0 || object[0] != '{' {
			return
		}
		for i := 1; i < len(object) && object[i] == '"'; i++ {
			colon := stringEnd(object, i)
			end := Skip(object, colon+1)
			if end > len(object) || !yield(object[i:colon], object[colon+1:end]) {
				return
			}
			i = end
		}
	}
}

// Elements yields the elements of an array in order, with their indexes. It
// yields nothing for another kind of value.
func Elements(array []byte) iter.Seq2[int, []byte] {
	return func(yield func(index int, element []byte) bool) {
		if len(array) == 0 || array[0] != '[' {
			return
		}
		i := 1
		for index := 0; i < len(array) && array[i] != ']'; index++ {
			end := Skip(array, i)
			if !yield(index, array[i:end]) {
				return
			}
			i = end + 1
		}
	}
}

// Skip returns the offset after the value at offset i of a body. It is never less
// than i.
func Skip(body []byte, i int) int {
	if i >= len(body) {
		return max(i, len(body))
	}
	switch body[i] {
	case '"':
		return stringEnd(body, i)
	case '{', '[':
		return closing(body, i+1)
	}
	return scalarEnd(body, i)
}

// closing returns the offset after the bracket that closes the object or array
// around i. Offset i must not be inside a string.
func closing(body []byte, i int) int {
	for depth := 1; i < len(body); i++ {
		switch brackets[body[i]] {
		case 1:
			depth++
		case 2:
			if depth--; depth == 0 {
				return i + 1
			}
		case 3:
			i = stringEnd(body, i) - 1
		}
	}
	return len(body)
}

// brackets classifies bytes for closing: 1 opens, 2 closes, 3 begins a string. A
// table is faster than comparisons.
var brackets = [256]uint8{'{': 1, '[': 1, '}': 2, ']': 2, '"': 3}

// stringEnd returns the offset after the string that begins at i.
func stringEnd(body []byte, i int) int {
	for i++; ; {
		n := bytes.IndexByte(body[i:], '"')
		if n < 0 {
			return len(body)
		}
		i += n + 1
		if body[i-2] != '\\' || !escaped(body, i-1) {
			return i
		}
	}
}

// escaped reports whether the byte at i follows an odd number of backslashes.
func escaped(body []byte, i int) bool {
	n := 0
	for i-1-n >= 0 && body[i-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// keyEnd returns the offset after the key that begins at i, and whether it has
// escapes. For short keys, testing eight bytes at a time is faster than
// bytes.IndexByte.
func keyEnd(body []byte, i int) (end int, escapes bool) {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	start := i
	for i++; i+8 <= len(body); i += 8 {
		word := binary.LittleEndian.Uint64(body[i:])
		quote, backslash := word^ones*'"', word^ones*'\\'
		// The lowest bit that is set marks a quote or backslash; borrows may set
		// higher ones wrongly. See Bit Twiddling Hacks, "Determine if a word has a
		// zero byte".
		if found := ((quote-ones)&^quote | (backslash-ones)&^backslash) & tops; found != 0 {
			i += bits.TrailingZeros64(found) >> 3
			if body[i] == '"' {
				return i + 1, false
			}
			return stringEnd(body, start), true
		}
	}
	for ; i < len(body); i++ {
		switch body[i] {
		case '"':
			return i + 1, false
		case '\\':
			return stringEnd(body, start), true
		}
	}
	return len(body), false
}

// scalarEnd returns the offset after the number or literal that begins at i.
func scalarEnd(body []byte, i int) int {
	for ; i < len(body); i++ {
		if c := body[i]; c == ',' || c == '}' || c == ']' {
			return i
		}
	}
	return i
}

// sameKey reports whether a raw key, unescaped, is name.
func sameKey(raw []byte, name string) bool {
	var buf [64]byte
	return string(AppendUnquoted(buf[:0], raw)) == name
}

// KeyIs reports whether a raw key, or any other raw string, stands for text.
func KeyIs(raw []byte, text string) bool {
	if len(raw) < 2 || len(raw)-2 < len(text) {
		return false // an escape is never shorter than what it stands for
	}
	if len(raw)-2 == len(text) && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1:len(raw)-1]) == text
	}
	return len(raw)-2 > len(text) && sameKey(raw, text)
}

// AppendUnquoted appends the text of a raw JSON string to dst. Lone surrogates
// become U+FFFD, as with encoding/json.
func AppendUnquoted(dst, raw []byte) []byte {
	if len(raw) < 2 {
		return dst
	}
	text := raw[1 : len(raw)-1]
	for {
		n := bytes.IndexByte(text, '\\')
		if n < 0 || n+1 >= len(text) {
			return append(dst, text...)
		}
		dst = append(dst, text[:n]...)
		c := text[n+1]
		text = text[n+2:]
		if c != 'u' {
			dst = append(dst, unescaped(c))
			continue
		}
		r := hex4(text)
		text = text[min(4, len(text)):]
		if utf16.IsSurrogate(r) {
			// The other half must follow in an escape of its own.
			if len(text) >= 6 && text[0] == '\\' && text[1] == 'u' {
				if pair := utf16.DecodeRune(r, hex4(text[2:])); pair != utf8.RuneError {
					dst, text = utf8.AppendRune(dst, pair), text[6:]
					continue
				}
			}
			r = utf8.RuneError
		}
		dst = utf8.AppendRune(dst, r)
	}
}

// Unquoted returns the text of a raw JSON string: see AppendUnquoted.
func Unquoted(raw []byte) string {
	if len(raw) >= 2 && bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1])
	}
	return string(AppendUnquoted(nil, raw))
}

// LoneSurrogate returns the offset of the first escape in well-formed JSON that is
// a lone surrogate, such as \ud800 without \udc00 after it, or -1.
func LoneSurrogate(raw []byte) int {
	for i := 0; ; i += 2 {
		n := bytes.IndexByte(raw[i:], '\\')
		if n < 0 {
			return -1
		}
		if i += n; i+6 > len(raw) || raw[i+1] != 'u' {
			continue
		}
		r := hex4(raw[i+2:])
		if !utf16.IsSurrogate(r) {
			continue
		}
		if i+12 > len(raw) || raw[i+6] != '\\' || raw[i+7] != 'u' || utf16.DecodeRune(r, hex4(raw[i+8:])) == utf8.RuneError {
			return i
		}
		i += 10
	}
}

// unescaped returns the character that \c stands for.
func unescaped(c byte) byte {
	switch c {
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return c
}

// hex4 returns the number of the four hexadecimal digits at the beginning of text.
func hex4(text []byte) rune {
	var r rune
	for _, c := range text[:min(4, len(text))] {
		switch {
		case '0' <= c && c <= '9':
			r = r<<4 | rune(c-'0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			r = r<<4 | rune(c|0x20-'a'+10)
		}
	}
	return r
}

// AppendQuoted appends text, which must be valid UTF-8, as a JSON string. It
// escapes only what JSON demands: quotes, backslashes and control characters.
func AppendQuoted(dst []byte, text string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for i := range len(text) {
		switch c := text[i]; {
		case c == '"' || c == '\\':
			dst = append(dst, '\\', c)
		case c == '\n':
			dst = append(dst, `\n`...)
		case c == '\t':
			dst = append(dst, `\t`...)
		case c == '\r':
			dst = append(dst, `\r`...)
		case c < ' ':
			dst = append(dst, '\\', 'u', '0', '0', digits[c>>4], digits[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return append(dst, '"')
}
