package main

import (
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text of documents, files and servers can have characters that a terminal obeys: escape
// sequences move the cursor, set the title or answer as if the user had typed, and marks of
// direction show a text in another order. On a terminal, and in messages, they are written
// as the escapes of JSON. What goes into a file or a pipe stays as it is.

// isHarmless reports whether a terminal shows a character, and does no more.
func isHarmless(r rune) bool {
	switch {
	case r == '\n', r == '\t':
		return true
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return false
	}
	return !unicode.IsControl(r)
}

// printable returns text with escapes for the characters that a terminal obeys.
func printable(text string) string {
	if strings.IndexFunc(text, func(r rune) bool { return !isHarmless(r) || r == utf8.RuneError }) < 0 {
		return text
	}
	return string(appendPrintable(nil, []byte(text)))
}

func appendPrintable(dst, text []byte) []byte {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		switch {
		case r == utf8.RuneError && size == 1:
			dst = fmt.Appendf(dst, `\x%02x`, text[0])
		case isHarmless(r):
			dst = append(dst, text[:size]...)
		default:
			dst = fmt.Appendf(dst, `\u%04x`, r)
		}
		text = text[size:]
	}
	return dst
}

// printableWriter writes to a terminal what printable returns.
type printableWriter struct {
	w    io.Writer
	text []byte
	rest []byte // of a character of which not all bytes have come
}

// Write implements io.Writer.
func (p *printableWriter) Write(b []byte) (int, error) {
	whole := b
	if len(p.rest) > 0 {
		whole = append(p.rest, b...)
	}
	end := len(whole)
	for i := 1; i < utf8.UTFMax && i <= len(whole); i++ {
		if first := whole[len(whole)-i]; utf8.RuneStart(first) {
			if !utf8.FullRune(whole[len(whole)-i:]) {
				end = len(whole) - i
			}
			break
		}
	}
	p.text = appendPrintable(p.text[:0], whole[:end])
	p.rest = append([]byte(nil), whole[end:]...)
	if _, err := p.w.Write(p.text); err != nil {
		return 0, err
	}
	return len(b), nil
}
