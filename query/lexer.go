package query

import (
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// tokenKind is the kind of a token.
type tokenKind uint8

const (
	tokenEnd       tokenKind = iota // the end of the query
	tokenBad                        // an error: see lexer.err
	tokenWord                       // a keyword or a name
	tokenText                       // 'text' or "text"
	tokenNumber                     // 12, -1.5e3
	tokenParameter                  // $name
	tokenSymbol                     // = ( [ and the like
)

// token is a lexical token of a query.
type token struct {
	kind tokenKind
	// text is the source of a word or symbol, a text without quotes and escapes,
	// a number without _, or a parameter without $.
	text   string
	offset int // of its first byte in the query
	end    int // offset after its last byte
}

// is reports whether t is this keyword, in any case.
func (t token) is(keyword string) bool {
	return t.kind == tokenWord && strings.EqualFold(t.text, keyword)
}

// isSymbol reports whether t is this symbol.
func (t token) isSymbol(symbol string) bool {
	return t.kind == tokenSymbol && t.text == symbol
}

// symbols are all symbols, longer ones first. Some never occur in a valid query:
// the lexer knows them so that the parser can suggest what to write instead.
var symbols = []string{"==", "!=", "<>", "<=", ">=", "&&", "||", "--",
	"=", "<", ">", "(", ")", "[", "]", "{", "}", ",", ".", "*", "!", ";", "-", "+", "/", "%", "&", "|", "#", ":", "?"}

// lexer splits a query, which must be valid UTF-8, into tokens.
type lexer struct {
	text string
	pos  int   // offset of the next unread byte
	end  int   // offset after the last token
	err  error // of the first tokenBad
}

// next returns the next token. After the last one it always returns a tokenEnd.
// After a tokenBad, err holds the error.
func (l *lexer) next() token {
	if err := l.skipSpace(); err != nil {
		return l.bad(err)
	}
	if l.pos == len(l.text) {
		return token{kind: tokenEnd, offset: l.end, end: l.end}
	}

	start := l.pos
	kind, text, err := l.read()
	if err != nil {
		return l.bad(err)
	}
	l.end = l.pos
	return token{kind: kind, text: text, offset: start, end: l.pos}
}

// bad ends the lexing with an error.
func (l *lexer) bad(err *SyntaxError) token {
	if l.err == nil {
		l.err = err
	}
	l.pos = len(l.text)
	return token{kind: tokenBad, offset: err.Offset, end: err.Offset}
}

// fail returns an error at offset.
func (l *lexer) fail(offset int, format string, args ...any) *SyntaxError {
	return newSyntaxError(l.text, offset, format, args...)
}

// skipSpace skips white space, comments and a byte order mark.
func (l *lexer) skipSpace() *SyntaxError {
	if l.pos == 0 {
		l.pos = len(l.text) - len(strings.TrimPrefix(l.text, "\ufeff"))
	}
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		r, size := utf8.DecodeRuneInString(rest)

		switch {
		case unicode.IsSpace(r):
			l.pos += size
		case strings.HasPrefix(rest, "//"):
			if length := strings.IndexAny(rest, "\r\n"); length >= 0 {
				l.pos += length
			} else {
				l.pos = len(l.text)
			}
		case strings.HasPrefix(rest, "/*"):
			length := strings.Index(rest[2:], "*/")
			if length < 0 {
				return l.fail(l.pos, "the comment that begins here has no end").expecting("*/")
			}
			l.pos += length + 4
		default:
			return nil
		}
	}
	return nil
}

// read reads the token at pos, where there is no white space.
func (l *lexer) read() (tokenKind, string, *SyntaxError) {
	rest := l.text[l.pos:]
	r, _ := utf8.DecodeRuneInString(rest)

	switch {
	case r == '\'' || r == '"':
		text, err := l.quoted(byte(r))
		return tokenText, text, err
	case isDigit(rest[0]) || r == '-' && len(rest) > 1 && isDigit(rest[1]):
		number, err := l.number()
		return tokenNumber, number, err
	case r == '$':
		name, err := l.parameter()
		return tokenParameter, name, err
	case r == '@' || isWordStart(r):
		word, err := l.word()
		return tokenWord, word, err
	}
	for _, symbol := range symbols {
		if strings.HasPrefix(rest, symbol) {
			l.pos += len(symbol)
			return tokenSymbol, symbol, nil
		}
	}
	return tokenBad, "", l.fail(l.pos, "unexpected character %q", r)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isWordStart(r rune) bool { return r == '_' || unicode.IsLetter(r) }

func isWordPart(r rune) bool {
	return isWordStart(r) || unicode.IsDigit(r) || unicode.In(r, unicode.Mn, unicode.Mc)
}

// word reads a keyword or a name. One that begins with @ may have hyphens in
// it, as RavenDB's @last-modified does, and so may a member of @metadata.
func (l *lexer) word() (string, *SyntaxError) {
	start := l.pos
	system := l.text[start] == '@'
	if system {
		l.pos++
	}
	member := strings.HasSuffix(l.text[:start], metadataMember+".")
	for l.pos < len(l.text) {
		r, size := utf8.DecodeRuneInString(l.text[l.pos:])
		hyphen := (system || member) && r == '-' && l.pos > start+1
		if !isWordPart(r) && !hyphen {
			break
		}
		l.pos += size
	}
	return l.name(start, start)
}

// parameter reads a $ and the name after it.
func (l *lexer) parameter() (string, *SyntaxError) {
	start := l.pos
	for l.pos++; l.pos < len(l.text); {
		r, size := utf8.DecodeRuneInString(l.text[l.pos:])
		if !isWordPart(r) {
			break
		}
		l.pos += size
	}
	if l.pos == start+1 {
		return "", l.fail(start, "unexpected \"$\"").expecting("the name of a parameter behind it, such as $name")
	}
	return l.name(start, start+1)
}

// name returns the text between from and pos, or an error if it is too long or
// only an @. The token begins at start.
func (l *lexer) name(start, from int) (string, *SyntaxError) {
	name := l.text[from:l.pos]
	if name == "@" {
		return "", l.fail(start, "unexpected \"@\"").expecting("a name behind it, such as @all_docs")
	}
	if len(name) > MaxName {
		return "", l.fail(start, "a name of %d bytes is too long: %d are the most", len(name), MaxName)
	}
	return name, nil
}

// number reads a number in JSON's notation. A _ may separate digits.
func (l *lexer) number() (string, *SyntaxError) {
	start := l.pos
	if l.text[l.pos] == '-' {
		l.pos++
	}
	whole := l.digits()
	if len(whole) > 1 && whole[0] == '0' {
		return "", l.fail(start, "a number cannot begin with 0").hinting("write text in quotes")
	}

	if l.has('.') {
		if l.pos++; l.digits() == "" {
			return "", l.fail(l.pos, "a number cannot end with a point").expecting("a digit")
		}
	}
	if l.has('e') || l.has('E') {
		l.pos++
		if l.has('+') || l.has('-') {
			l.pos++
		}
		if l.digits() == "" {
			return "", l.fail(l.pos, "a number cannot end with its exponent's sign").expecting("a digit")
		}
	}

	if r, _ := utf8.DecodeRuneInString(l.text[l.pos:]); l.pos < len(l.text) && isWordPart(r) {
		return "", l.fail(l.pos, "unexpected %q in a number", r).hinting("write text and names that begin with a digit in quotes")
	}
	return strings.ReplaceAll(l.text[start:l.pos], "_", ""), nil
}

// has reports whether the next byte is c.
func (l *lexer) has(c byte) bool { return l.pos < len(l.text) && l.text[l.pos] == c }

// digits reads digits, and single _ between two of them.
func (l *lexer) digits() string {
	start := l.pos
	for l.pos < len(l.text) {
		between := l.text[l.pos] == '_' && l.pos > start && l.pos+1 < len(l.text) && isDigit(l.text[l.pos+1])
		if !isDigit(l.text[l.pos]) && !between {
			break
		}
		l.pos++
	}
	return l.text[start:l.pos]
}

// quoted reads a text in quotes. A quote inside it is doubled, as in SQL, or
// escaped. The other escapes are those of JSON.
func (l *lexer) quoted(quote byte) (string, *SyntaxError) {
	start := l.pos
	var b strings.Builder
	for l.pos++; l.pos < len(l.text); {
		c := l.text[l.pos]
		switch {
		case c == quote && strings.HasPrefix(l.text[l.pos+1:], string(quote)):
			b.WriteByte(quote)
			l.pos += 2
		case c == quote:
			l.pos++
			return b.String(), nil
		case c == '\\':
			r, err := l.escape()
			if err != nil {
				return "", err
			}
			b.WriteRune(r)
		default:
			b.WriteByte(c)
			l.pos++
		}
	}
	return "", l.fail(start, "the text that begins here has no end").expecting("the quote " + string(quote) + " at its end")
}

// escapes maps the character after a backslash to the one that it stands for.
var escapes = map[byte]rune{'\\': '\\', '/': '/', '\'': '\'', '"': '"', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// escape reads a backslash and the escape that follows.
func (l *lexer) escape() (rune, *SyntaxError) {
	start := l.pos
	if start+1 == len(l.text) {
		l.pos++
		return 0, l.fail(start, "the text ends in a backslash").hinting(`write \\ for a backslash`)
	}
	c := l.text[start+1]
	if r, ok := escapes[c]; ok {
		l.pos += 2
		return r, nil
	}
	if c != 'u' {
		r, _ := utf8.DecodeRuneInString(l.text[start+1:])
		return 0, l.fail(start, `unknown escape \%c`, r).hinting(`write \\ for a backslash`)
	}

	r, ok := l.hex(start)
	if ok && utf16.IsSurrogate(r) { // the first of a pair
		low, _ := l.hex(start + 6)
		r = utf16.DecodeRune(r, low)
		ok = r != utf8.RuneError
		l.pos += 6
	}
	if !ok {
		return 0, l.fail(start, `\u stands before something else than a character's number`).
			expecting(`four hexadecimal digits, or two such escapes for a character beyond \uffff`)
	}
	l.pos += 6
	return r, nil
}

// hex returns the number of the escape \u1234 at offset.
func (l *lexer) hex(offset int) (rune, bool) {
	if len(l.text) < offset+6 || l.text[offset:offset+2] != `\u` {
		return 0, false
	}
	var r rune
	for _, c := range []byte(l.text[offset+2 : offset+6]) {
		digit := strings.IndexByte("0123456789abcdef", c|0x20)
		if digit < 0 || c < '0' {
			return 0, false
		}
		r = r<<4 | rune(digit)
	}
	return r, true
}
