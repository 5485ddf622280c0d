package algebra

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// kindOfToken is the kind of a token.
type kindOfToken int

const (
	tokenEnd kindOfToken = iota
	tokenWord
	tokenText     // text has the value
	tokenNumber   // text has the digits, suffix what follows them
	tokenSymbol   //
	tokenTemplate // pieces has the texts, and where the expressions between them are
)

// token is a token of a text in C# or JavaScript.
type token struct {
	kind    kindOfToken
	text    string
	suffix  string // of a number in C#: m, L
	at      int    // offset in bytes
	newLine bool   // there is a line break before it
	pieces  []piece
}

// piece is a part of a template: a text, or the place of an expression.
type piece struct {
	text     string
	from, to int // of an expression; to is 0 for a text
}

func (t token) is(text string) bool {
	return (t.kind == tokenSymbol || t.kind == tokenWord) && t.text == text
}

// symbolsOf lists the symbols of both languages, the longest first.
var symbolsOf = []string{">>>=", "===", "!==", "...", "**=", ">>>", "<<=", ">>=", "&&=", "||=", "??=", "=>", "==", "!=", "<=", ">=", "&&", "||", "??", "?.", "++", "--", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "**", "<<", "::",
	"{", "}", "(", ")", "[", "]", ";", ",", ".", "<", ">", "+", "-", "*", "/", "%", "!", "?", ":", "=", "&", "|", "^", "~"}

// lexer splits a text into tokens.
type lexer struct {
	text   string
	i, end int
	script bool // JavaScript
	fail   func(at int, format string, args ...any) error
}

// tokens returns the tokens up to the end, of which the last is tokenEnd.
func (l *lexer) tokens() (out []token, err error) {
	for {
		newLine, err := l.blank()
		if err != nil {
			return nil, err
		}
		t := token{at: l.i, newLine: newLine}
		if l.i >= l.end {
			return append(out, t), nil
		}
		if err := l.next(&t); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
}

// blank skips blanks and comments.
func (l *lexer) blank() (newLine bool, err error) {
	for l.i < l.end {
		r, size := utf8.DecodeRuneInString(l.text[l.i:l.end])
		rest := l.text[l.i:l.end]
		switch {
		case r == '\n' || r == '\r' || r == '\u2028' || r == '\u2029':
			newLine = true
			l.i += size
		case unicode.IsSpace(r) || r == '\ufeff':
			l.i += size
		case strings.HasPrefix(rest, "//"):
			n := strings.IndexAny(rest, "\n\r")
			if n < 0 {
				n = len(rest)
			}
			l.i += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return newLine, l.fail(l.i, "the comment has no end")
			}
			newLine = newLine || strings.ContainsAny(rest[:n+4], "\n\r")
			l.i += n + 4
		default:
			return newLine, nil
		}
	}
	return newLine, nil
}

func (l *lexer) next(t *token) error {
	rest := l.text[l.i:l.end]
	r, _ := utf8.DecodeRuneInString(rest)
	switch {
	case r == utf8.RuneError:
		return l.fail(l.i, "the text is not UTF-8")
	case beginsWord(r) && (l.script || r != '$'):
		t.kind, t.text = tokenWord, rest[:wordLength(rest)]
		l.i += len(t.text)
		return nil
	case r >= '0' && r <= '9' || r == '.' && len(rest) > 1 && rest[1] >= '0' && rest[1] <= '9':
		return l.number(t, rest)
	case r == '"', r == '\'':
		return l.quoted(t, l.i)
	case r == '`' && l.script:
		return l.template(t, l.i+1, '`', true)
	case !l.script && strings.HasPrefix(rest, `$"`):
		return l.template(t, l.i+2, '"', false)
	case !l.script && strings.HasPrefix(rest, `@"`):
		return l.verbatim(t)
	case !l.script && r == '@' && len(rest) > 1 && beginsWord(rune(rest[1])): // a name that is a keyword
		t.kind, t.text = tokenWord, rest[1:1+wordLength(rest[1:])]
		l.i += 1 + len(t.text)
		return nil
	}
	for _, s := range symbolsOf {
		if strings.HasPrefix(rest, s) {
			// A member behind ?. is no number: a ?.5 : b is a choice.
			if s == "?." && len(rest) > 2 && rest[2] >= '0' && rest[2] <= '9' {
				s = "?"
			}
			t.kind, t.text = tokenSymbol, s
			l.i += len(s)
			return nil
		}
	}
	return l.fail(l.i, "the character %q is not expected", r)
}

func beginsWord(r rune) bool { return r == '_' || r == '$' || unicode.IsLetter(r) }

func wordLength(s string) int {
	for i, r := range s {
		if !beginsWord(r) && !unicode.IsDigit(r) && !unicode.In(r, unicode.Mn, unicode.Mc) {
			return i
		}
	}
	return len(s)
}

// number reads a decimal number.
func (l *lexer) number(t *token, rest string) error {
	n := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if n < 0 {
		n = len(rest)
	}
	digits := func() {
		for n < len(rest) && (rest[n] >= '0' && rest[n] <= '9' || rest[n] == '_' && n+1 < len(rest) && rest[n+1] >= '0' && rest[n+1] <= '9') {
			n++
		}
	}
	digits()
	if n+1 < len(rest) && rest[n] == '.' && rest[n+1] >= '0' && rest[n+1] <= '9' {
		n++
		digits()
	}
	if n < len(rest) && (rest[n] == 'e' || rest[n] == 'E') {
		m := n + 1
		if m < len(rest) && (rest[m] == '+' || rest[m] == '-') {
			m++
		}
		if m < len(rest) && rest[m] >= '0' && rest[m] <= '9' {
			n = m
			digits()
		}
	}
	t.kind, t.text = tokenNumber, strings.ReplaceAll(rest[:n], "_", "")
	t.suffix = strings.ToLower(rest[n : n+wordLength(rest[n:])])
	switch {
	case t.suffix == "", !l.script && strings.Contains(" m d f l u ul lu ", " "+t.suffix+" "):
	default:
		return l.fail(l.i, "a number is decimal, such as 12, 1.5 or 1e3")
	}
	if len(t.text) > 1 && t.text[0] == '0' && t.text[1] >= '0' && t.text[1] <= '9' {
		return l.fail(l.i, "a number does not begin with 0")
	}
	if t.text[0] == '.' {
		t.text = "0" + t.text
	}
	l.i += n + len(t.suffix)
	return nil
}

// quoted reads a text in quotes.
func (l *lexer) quoted(t *token, start int) error {
	quote := l.text[start]
	var out strings.Builder
	for i := start + 1; i < l.end; {
		switch c := l.text[i]; c {
		case quote:
			t.kind, t.text = tokenText, out.String()
			if quote == '\'' && !l.script && utf8.RuneCountInString(t.text) != 1 {
				return l.fail(start, "a text of C# stands in double quotes")
			}
			l.i = i + 1
			return nil
		case '\n', '\r':
			return l.fail(start, "the text has no end on its line")
		case '\\':
			n, err := l.escape(&out, i)
			if err != nil {
				return err
			}
			i += n
		default:
			out.WriteByte(c)
			i++
		}
	}
	return l.fail(start, "the text has no end")
}

// verbatim reads @"text" of C#, in which quotes are doubled.
func (l *lexer) verbatim(t *token) error {
	start := l.i
	var out strings.Builder
	for i := start + 2; i < l.end; i++ {
		if l.text[i] != '"' {
			out.WriteByte(l.text[i])
			continue
		}
		if i+1 < l.end && l.text[i+1] == '"' {
			out.WriteByte('"')
			i++
			continue
		}
		t.kind, t.text = tokenText, out.String()
		l.i = i + 1
		return nil
	}
	return l.fail(start, "the text has no end")
}

var escapes = map[byte]byte{'n': '\n', 't': '\t', 'r': '\r', 'b': '\b', 'f': '\f', 'v': '\v', '0': 0}

// escape writes the character of an escape sequence, and returns the length of the sequence.
func (l *lexer) escape(out *strings.Builder, at int) (int, error) {
	if at+1 >= l.end {
		return 0, l.fail(at, "the text has no end")
	}
	hex := func(at, n int) (rune, error) {
		if at+n <= l.end {
			if v, err := strconv.ParseUint(l.text[at:at+n], 16, 32); err == nil {
				return rune(v), nil
			}
		}
		return 0, l.fail(at, "%d hexadecimal digits are expected", n)
	}
	c := l.text[at+1]
	if to, simple := escapes[c]; simple {
		out.WriteByte(to)
		return 2, nil
	}
	switch c {
	case 'x':
		r, err := hex(at+2, 2)
		out.WriteRune(r)
		return 4, err
	case 'u':
		r, err := hex(at+2, 4)
		if err != nil || !utf16.IsSurrogate(r) {
			out.WriteRune(r)
			return 6, err
		}
		if at+8 > l.end || l.text[at+6:at+8] != `\u` {
			return 0, l.fail(at, "half a character")
		}
		low, err := hex(at+8, 4)
		if err != nil {
			return 0, err
		}
		both := utf16.DecodeRune(r, low)
		if both == utf8.RuneError {
			return 0, l.fail(at, "half a character")
		}
		out.WriteRune(both)
		return 12, nil
	case '\\', '\'', '"', '`', '$', '{', '}', '/':
		out.WriteByte(c)
		return 2, nil
	}
	return 0, l.fail(at, "there is no escape sequence \\%c", c)
}

// template reads a template of JavaScript, or an interpolated text of C#.
func (l *lexer) template(t *token, i int, quote byte, dollar bool) error {
	start := l.i
	var out strings.Builder
	text := func() {
		t.pieces = append(t.pieces, piece{text: out.String()})
		out.Reset()
	}
	for i < l.end {
		c := l.text[i]
		opens := c == '{'
		if dollar {
			opens = c == '$' && i+1 < l.end && l.text[i+1] == '{'
		}
		switch {
		case c == quote:
			text()
			t.kind, l.i = tokenTemplate, i+1
			return nil
		case c == '\\':
			n, err := l.escape(&out, i)
			if err != nil {
				return err
			}
			i += n
		case !dollar && (c == '{' || c == '}') && i+1 < l.end && l.text[i+1] == c:
			out.WriteByte(c)
			i += 2
		case opens:
			text()
			from := i + 1
			if dollar {
				from++
			}
			to, err := l.closing(from)
			if err != nil {
				return err
			}
			t.pieces = append(t.pieces, piece{from: from, to: to})
			i = to + 1
		case !dollar && (c == '\n' || c == '\r' || c == '}'):
			return l.fail(i, "the text %s has no end on its line, or a } too many", fmt.Sprintf("%c%c", '$', quote))
		default:
			out.WriteByte(c)
			i++
		}
	}
	return l.fail(start, "the text has no end")
}

// closing returns the offset of the } of an expression in a template. Neither braces nor quotes are in it.
func (l *lexer) closing(from int) (int, error) {
	for i := from; i < l.end; i++ {
		switch l.text[i] {
		case '}':
			return i, nil
		case '{', '`':
			return 0, l.fail(i, "an expression in a text has no braces and no other template")
		case '"', '\'':
			n := strings.IndexByte(l.text[i+1:l.end], l.text[i])
			if n < 0 {
				return 0, l.fail(i, "the text has no end")
			}
			i += n + 1
		}
	}
	return 0, l.fail(from, "the expression in the text has no }")
}
