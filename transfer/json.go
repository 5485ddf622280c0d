package transfer

import (
	"encoding/json"
	"unicode/utf8"
)

// skipSpace returns the offset of the first byte from i on that is no white space.
func skipSpace(src []byte, i int) int {
	for i < len(src) && (src[i] == ' ' || src[i] == '\n' || src[i] == '\t' || src[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the offset behind the string that begins at i, or -1.
func skipString(src []byte, i int) int {
	if i >= len(src) || src[i] != '"' {
		return -1
	}
	for i++; i < len(src); i++ {
		switch src[i] {
		case '"':
			return i + 1
		case '\\':
			i++
		}
	}
	return -1
}

// skipValue returns the offset behind the value that begins at i, or -1. It counts
// brackets outside of strings, and validates nothing else.
func skipValue(src []byte, i int) int {
	if i >= len(src) {
		return -1
	}
	switch src[i] {
	case '"':
		return skipString(src, i)
	case '{', '[':
		depth := 0
		for ; i < len(src); i++ {
			switch src[i] {
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					return i + 1
				}
			case '"':
				if i = skipString(src, i); i < 0 {
					return -1
				}
				i--
			}
		}
		return -1
	}
	start := i
	for i < len(src) && !endsScalar(src[i]) {
		i++
	}
	if i == start {
		return -1
	}
	return i
}

// endsScalar reports whether a byte ends a number or a literal.
func endsScalar(c byte) bool {
	return c <= ' ' || c == ',' || c == ':' || c == '"' || c == '{' || c == '}' || c == '[' || c == ']'
}

// skipKey returns the key of the member that begins at i, without its quotes, and the
// offset of its value.
func skipKey(src []byte, i int) (key []byte, value int) {
	end := skipString(src, i)
	if end < 0 {
		return nil, -1
	}
	value = skipSpace(src, end)
	if value >= len(src) || src[value] != ':' {
		return nil, -1
	}
	return src[i+1 : end-1], skipSpace(src, value+1)
}

// afterValue returns the offset of the next member or element behind a value that ends at
// i, with more false if closing follows; -1 if neither does.
func afterValue(src []byte, i int, closing byte) (next int, more bool) {
	i = skipSpace(src, i)
	switch {
	case i >= len(src):
		return -1, false
	case src[i] == closing:
		return i + 1, false
	case src[i] == ',':
		return skipSpace(src, i+1), true
	}
	return -1, false
}

// member returns the raw value of a member of an object, or nil. It is for small objects.
func member(object []byte, name string) []byte {
	i := skipSpace(object, 0)
	if i >= len(object) || object[i] != '{' {
		return nil
	}
	i = skipSpace(object, i+1)
	for more := true; more; {
		key, value := skipKey(object, i)
		if value < 0 {
			return nil
		}
		end := skipValue(object, value)
		if end < 0 {
			return nil
		}
		if string(key) == name {
			return object[value:end]
		}
		if i, more = afterValue(object, end, '}'); i < 0 {
			return nil
		}
	}
	return nil
}

// memberText returns the text of a member that is a string, or "".
func memberText(object []byte, name string) string {
	text, _ := unquote(member(object, name))
	return text
}

// unquote returns the text of a JSON string. It is not exact if the string has a lone
// half of a surrogate pair, which no UTF-8 text can have, or is no string.
func unquote(raw []byte) (text string, exact bool) {
	if len(raw) < 2 || raw[0] != '"' {
		return "", false
	}
	plain := true
	for _, c := range raw[1 : len(raw)-1] {
		if c == '\\' {
			plain = false
			break
		}
	}
	if plain {
		return string(raw[1 : len(raw)-1]), true
	}
	if json.Unmarshal(raw, &text) != nil {
		return "", false
	}
	return text, !hasLoneSurrogate(raw)
}

// hasLoneSurrogate reports whether a JSON string has an escape of half a pair without
// the other half.
func hasLoneSurrogate(raw []byte) bool {
	for i := 0; i+1 < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		if raw[i+1] != 'u' {
			i++
			continue
		}
		switch half(raw, i) {
		case 0:
			i += 5
		case 'h':
			if half(raw, i+6) != 'l' {
				return true
			}
			i += 11
		default:
			return true
		}
	}
	return false
}

// half returns 'h' or 'l' if an escape at i is the high or the low half of a surrogate
// pair, else 0.
func half(raw []byte, i int) byte {
	if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' || raw[i+2]|0x20 != 'd' {
		return 0
	}
	switch c := raw[i+3] | 0x20; {
	case c == '8', c == '9', c == 'a', c == 'b':
		return 'h'
	case c >= 'c' && c <= 'f':
		return 'l'
	}
	return 0
}

const hexDigits = "0123456789abcdef"

// AppendString appends text as a JSON string. Bytes that are not UTF-8 stay as they are: the
// database refuses them.
func AppendString[T string | []byte](dst []byte, text T) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		dst = append(dst, text[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			dst = append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(dst, text[start:]...), '"')
}

// isNumber reports whether text is a number of JSON's grammar.
func isNumber[T string | []byte](text T) bool {
	i := 0
	digits := func() bool {
		start := i
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
		return i > start
	}
	if i < len(text) && text[i] == '-' {
		i++
	}
	switch {
	case i < len(text) && text[i] == '0':
		i++
	case !digits():
		return false
	}
	if i < len(text) && text[i] == '.' {
		i++
		if !digits() {
			return false
		}
	}
	if i < len(text) && text[i]|0x20 == 'e' {
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if !digits() {
			return false
		}
	}
	return i == len(text)
}

// isPlainText reports whether a text has no control characters but tabs and line breaks,
// and is UTF-8.
func isPlainText(text string) bool {
	for i := 0; i < len(text); i++ {
		if c := text[i]; c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return false
		}
	}
	return utf8.ValidString(text)
}

// cutText shortens a text for an error.
func cutText[T string | []byte](text T) string {
	if len(text) > 60 {
		return string(text[:60]) + "…"
	}
	return string(text)
}
