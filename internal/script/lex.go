package script

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

type kind int

const (
	endOfScript kind = iota
	word
	textToken
	numberToken
	symbol
	template // `...`: text has the source inside
)

type token struct {
	kind    kind
	text    string
	place   int  // offset in the script, and 1
	newLine bool // there is a line break before it
}

// symbols lists the operators and punctuation, the longest first.
var symbols = []string{"===", "!==", "...", "**=", ">>>", "&&=", "||=", "??=", "=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "**", "<<", ">>",
	"{", "}", "(", ")", "[", "]", ";", ",", ".", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", "=", "&", "|", "^", "~"}

// lineBreak returns the length of the line break at the beginning of a script, 0 for none.
// JavaScript has four, and takes CR LF for one.
func lineBreak(source string) int {
	switch {
	case strings.HasPrefix(source, "\r\n"):
		return 2
	case source[0] == '\n' || source[0] == '\r':
		return 1
	case strings.HasPrefix(source, "\u2028") || strings.HasPrefix(source, "\u2029"):
		return 3
	}
	return 0
}

// lineBreaks counts the line breaks in a part of a script.
func lineBreaks(text string) (count int) {
	for i := 0; i < len(text); {
		n := lineBreak(text[i:])
		if n > 0 {
			count++
		}
		i += max(n, 1)
	}
	return count
}

// lex splits a script into tokens. The script is a part of another one that begins at base.
func lex(source string, base int) ([]token, error) {
	tokens, _, err := lexPart(source, base, false)
	return tokens, err
}

// lexPart is lex. If the script is only the beginning of the text, which begins with a bracket, it ends behind the bracket that closes
// it; its length is returned.
func lexPart(source string, base int, bracketed bool) (out []token, length int, err error) {
	newLine, i, depth := false, 0, 0
	fail := func(format string, args ...any) error {
		return &Error{place: base + i + 1, Message: fmt.Sprintf(format, args...)}
	}
	for i < len(source) {
		c := source[i]
		n := lineBreak(source[i:])
		switch {
		case n > 0:
			newLine = true
			i += n
			continue
		case c == ' ' || c == '\t' || strings.HasPrefix(source[i:], "\ufeff"):
			if c >= utf8.RuneSelf {
				i += 2
			}
			i++
			continue
		case strings.HasPrefix(source[i:], "//"):
			for i < len(source) && lineBreak(source[i:]) == 0 {
				i++
			}
			continue
		case strings.HasPrefix(source[i:], "/*"):
			n := strings.Index(source[i+2:], "*/")
			if n < 0 {
				return nil, 0, fail("a comment has no end")
			}
			newLine = newLine || lineBreaks(source[i:i+n+4]) > 0
			i += n + 4
			continue
		}
		t := token{place: base + i + 1, newLine: newLine}
		newLine = false
		r, _ := utf8.DecodeRuneInString(source[i:])
		switch {
		case r == '_' || r == '$' || unicode.IsLetter(r):
			start := i
			for i < len(source) {
				r, size := utf8.DecodeRuneInString(source[i:])
				if r != '_' && r != '$' && !unicode.IsLetter(r) && !unicode.IsDigit(r) {
					break
				}
				i += size
			}
			t.kind, t.text = word, source[start:i]
		case c >= '0' && c <= '9' || c == '.' && i+1 < len(source) && source[i+1] >= '0' && source[i+1] <= '9':
			n := numberLength(source[i:])
			t.kind, t.text = numberToken, source[i:i+n]
			if i += n; i < len(source) {
				if r, _ := utf8.DecodeRuneInString(source[i:]); r == '_' || r == '$' || unicode.IsLetter(r) || unicode.IsDigit(r) {
					return nil, 0, fail("a number must be like 12, 1.5 or 1e3")
				}
			}
		case c == '"' || c == '\'':
			text, n, err := quoted(source[i:], fail)
			if err != nil {
				return nil, 0, err
			}
			t.kind, t.text = textToken, text
			i += n
		case c == '`':
			n := templateEnd(source[i:], 0)
			if n < 0 {
				return nil, 0, fail("a text in ` has no end")
			}
			t.kind, t.text = template, source[i+1:i+n]
			i += n + 1
		default:
			for _, s := range symbols {
				if strings.HasPrefix(source[i:], s) {
					t.kind, t.text = symbol, s
					break
				}
			}
			if t.kind != symbol {
				return nil, 0, fail("unexpected %q", string(r))
			}
			i += len(t.text)
		}
		out = append(out, t)
		if t.kind != symbol || !bracketed {
			continue
		}
		switch t.text {
		case "(", "[", "{":
			depth++
		case ")", "]", "}":
			depth--
		}
		if depth == 0 {
			return append(out, token{kind: endOfScript, place: base + i + 1, newLine: true}), i, nil
		}
	}
	if bracketed {
		return nil, 0, fail("the script has no end: a bracket is open")
	}
	return append(out, token{kind: endOfScript, place: base + i + 1, newLine: true}), i, nil
}

// numberLength returns the length of the number at the beginning.
func numberLength(s string) int {
	digits := func(i int) int {
		for i < len(s) && s[i] >= '0' && s[i] <= '9' {
			i++
		}
		return i
	}
	i := digits(0)
	if i < len(s) && s[i] == '.' {
		i = digits(i + 1)
	}
	if i < len(s) && (s[i] == 'e' || s[i] == 'E') {
		j := i + 1
		if j < len(s) && (s[j] == '+' || s[j] == '-') {
			j++
		}
		if k := digits(j); k > j {
			i = k
		}
	}
	return i
}

// quoted reads the quoted text at the beginning of s, and returns its length in s.
func quoted(s string, fail func(string, ...any) error) (text string, n int, err error) {
	var out strings.Builder
	for i := 1; i < len(s); i++ {
		switch s[i] {
		case s[0]:
			return out.String(), i + 1, nil
		case '\n':
			return "", 0, fail("a text has no end on its line")
		case '\\':
			skip, err := escape(&out, s[i:], fail)
			if err != nil {
				return "", 0, err
			}
			i += skip - 1
		default:
			out.WriteByte(s[i])
		}
	}
	return "", 0, fail("a text has no end")
}

// escape appends the character of the escape sequence at the beginning of s, and returns
// its length.
func escape(out *strings.Builder, s string, fail func(string, ...any) error) (n int, err error) {
	if len(s) < 2 {
		return 0, fail("a text has no end")
	}
	hex := func(from, to int) (rune, bool) {
		if to > len(s) {
			return 0, false
		}
		n, err := strconv.ParseUint(s[from:to], 16, 32)
		return rune(n), err == nil
	}
	switch c := s[1]; c {
	case 'n':
		out.WriteByte('\n')
	case 't':
		out.WriteByte('\t')
	case 'r':
		out.WriteByte('\r')
	case 'b':
		out.WriteByte('\b')
	case 'f':
		out.WriteByte('\f')
	case 'v':
		out.WriteByte('\v')
	case '0':
		out.WriteByte(0)
	case 'x':
		r, found := hex(2, 4)
		if !found {
			return 0, fail(`\x needs two hexadecimal digits`)
		}
		out.WriteRune(r)
		return 4, nil
	case 'u':
		r, found := hex(2, 6)
		if !found {
			return 0, fail(`\u needs four hexadecimal digits`)
		}
		if utf16.IsSurrogate(r) {
			if len(s) < 12 || s[6:8] != `\u` {
				return 0, fail("half a character")
			}
			low, found := hex(8, 12)
			if r = utf16.DecodeRune(r, low); !found || r == utf8.RuneError {
				return 0, fail("half a character")
			}
			out.WriteRune(r)
			return 12, nil
		}
		out.WriteRune(r)
		return 6, nil
	case '\n':
	default:
		_, size := utf8.DecodeRuneInString(s[1:])
		out.WriteString(s[1 : 1+size])
		return 1 + size, nil
	}
	return 2, nil
}

// templateEnd returns the offset of the ` that ends the template which begins at i, or -1.
func templateEnd(text string, i int) int {
	for i++; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == '`':
			return i
		case strings.HasPrefix(text[i:], "${"):
			if i = holeEnd(text, i); i < 0 {
				return -1
			}
		}
	}
	return -1
}

// holeEnd returns the offset of the } that ends the ${ at i, or -1. One in a text or in another template is none.
func holeEnd(text string, i int) int {
	depth := 0
	for i++; i < len(text); i++ {
		switch c := text[i]; c {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return i
			}
		case '\'', '"':
			for i++; i < len(text) && text[i] != c; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		case '`':
			if i = templateEnd(text, i); i < 0 {
				return -1
			}
		}
	}
	return -1
}
