package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// statement is one statement for the shell.
type statement struct {
	word string // first word, in lower case
	text string // the whole statement, without its terminator
	line int    // line of its first character, from 1
}

// statements splits lines into statements. A query ends with a semicolon or an empty
// line, so it can have several lines. Any other command ends with its line, or with a
// semicolon, except that one with a document continues until its brackets are closed.
type statements struct {
	limit int // the greatest length of a statement, in bytes

	pending []byte // input that is not part of a complete statement yet
	at      int    // offset in pending of the next character to scan
	lines   int    // number of lines before pending

	shape   shape
	start   int  // offset of the statement in pending
	depth   int  // number of open brackets
	quote   byte // quote of an unfinished text, 0 for none
	comment byte // kind of an open comment: '/' to the end of the line, '*' for /* */, 0 for none
	empty   bool // only white space so far in this line
}

// shape decides how a statement ends.
type shape uint8

const (
	shapeNone     shape = iota // no statement has begun
	shapeLine                  // words on a line
	shapeDocument              // a line, with a document that may have several lines
	shapeQuery                 // a query
)

// shapes has the shapes of statements that are not single lines, by first word.
var shapes = map[string]shape{
	"from": shapeQuery, "explain": shapeQuery, "declare": shapeQuery, "with": shapeQuery, "match": shapeQuery,
	"put": shapeDocument, "insert": shapeDocument, "store": shapeDocument, "patch": shapeDocument,
}

// add adds a line, without its line break, and returns the statements that it
// completes.
func (s *statements) add(line string) ([]statement, error) {
	s.pending = append(append(s.pending, line...), '\n')
	s.empty = true
	var done []statement
	for s.at < len(s.pending) {
		one, complete := s.step()
		if complete {
			done = append(done, one)
		}
	}
	if s.shape == shapeNone {
		s.drop(len(s.pending))
	}
	if len(s.pending) > s.limit {
		n := len(s.pending)
		at := s.line(s.start)
		s.reset()
		return done, fmt.Errorf("line %d: a statement of more than %d bytes, got %d: %s", at, s.limit, n, "end a query with a semicolon, and import large documents with jay import")
	}
	return done, nil
}

// open reports whether a statement has begun that is not complete.
func (s *statements) open() bool { return s.shape != shapeNone }

// end returns the statement that the end of the input completes, if there is one.
func (s *statements) end() (statement, bool) {
	if s.shape == shapeNone {
		return statement{}, false
	}
	return s.cut(len(s.pending)), true
}

// reset forgets what is pending.
func (s *statements) reset() {
	s.drop(len(s.pending))
	s.shape = shapeNone
}

// step scans one character, or one run of white space before a statement.
func (s *statements) step() (one statement, complete bool) {
	if s.shape == shapeNone {
		s.begin()
		return one, false
	}
	c := s.pending[s.at]
	s.at++
	if c != ' ' && c != '\t' && c != '\r' && c != '\n' {
		s.empty = false
	}
	switch {
	case s.comment != 0:
		s.inComment(c)
		if c != '\n' || s.comment != 0 {
			return one, false
		}
	case s.quote != 0 && (c != '\n' || s.shape != shapeLine):
		if c == '\\' && s.at < len(s.pending) && (s.shape == shapeQuery || s.depth > 0) {
			s.at++
		} else if c == s.quote {
			s.quote = 0
		}
		return one, false
	}
	return s.between(c)
}

// between scans a character outside of quotes and comments.
func (s *statements) between(c byte) (one statement, complete bool) {
	switch c {
	case ';':
		if s.depth == 0 {
			one = s.cut(s.at - 1)
			s.drop(s.at)
			return one, true
		}
	case '\n':
		ends := s.depth == 0 && (s.shape != shapeQuery || s.empty)
		if ends || s.shape == shapeLine {
			one = s.cut(s.at)
			s.drop(s.at)
			return one, true
		}
	case '"', '\'':
		if s.quotes(c) {
			s.quote = c
		}
	case '/':
		if s.shape == shapeQuery && s.at < len(s.pending) && (s.pending[s.at] == '/' || s.pending[s.at] == '*') {
			s.comment = s.pending[s.at]
			s.at++
		}
	case '{', '[':
		if c == '{' || s.shape == shapeDocument {
			s.depth++
		}
	case '}', ']':
		if s.depth > 0 && (c == '}' || s.shape == shapeDocument) {
			s.depth--
		}
	}
	return one, false
}

// quotes reports whether a quote opens a text here. In a command it does so only at the
// beginning of a word, and in a document ' never does.
func (s *statements) quotes(c byte) bool {
	if s.shape == shapeQuery || s.shape == shapeDocument && s.depth > 0 {
		return s.shape == shapeQuery || c == '"'
	}
	before, _ := utf8.DecodeLastRune(s.pending[:s.at-1])
	return unicode.IsSpace(before)
}

// inComment scans a character of a comment.
func (s *statements) inComment(c byte) {
	switch {
	case s.comment == '/' && c == '\n':
		s.comment = 0
	case s.comment == '*' && c == '*' && s.at < len(s.pending) && s.pending[s.at] == '/':
		s.comment = 0
		s.at++
	}
}

// begin skips white space and comments, and determines the shape of the next statement.
func (s *statements) begin() {
	rest := s.pending[s.at:]
	r, size := utf8.DecodeRune(rest)
	switch {
	case s.comment != 0:
		s.at++
		s.inComment(rest[0])
	case unicode.IsSpace(r) || r == '\ufeff' || r == ';':
		s.at += size
	case len(rest) > 1 && r == '/' && (rest[1] == '/' || rest[1] == '*'):
		s.comment = rest[1]
		s.at += 2
	case s.lines == 0 && s.at == 0 && strings.HasPrefix(string(rest), "#!"):
		s.comment = '/' // the #! line of a script
	default:
		s.start, s.depth, s.quote, s.comment, s.empty = s.at, 0, 0, 0, false
		s.shape = shapeLine
		if found, is := shapes[firstWord(string(rest))]; is {
			s.shape = found
		}
	}
}

// firstWord returns the first word of a text in lower case.
func firstWord(text string) string {
	end := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsLetter(r) })
	if end < 0 {
		end = len(text)
	}
	return strings.ToLower(text[:end])
}

// cut returns the statement that ends before pending[end].
func (s *statements) cut(end int) statement {
	text := strings.TrimSpace(string(s.pending[s.start:end]))
	return statement{word: firstWord(text), text: text, line: s.line(s.start)}
}

// drop removes the first n bytes of pending.
func (s *statements) drop(n int) {
	s.lines += strings.Count(string(s.pending[:n]), "\n")
	s.pending = append(s.pending[:0], s.pending[n:]...)
	s.at, s.start, s.depth, s.quote, s.shape = 0, 0, 0, 0, shapeNone
}

// line returns the line of an offset in pending.
func (s *statements) line(at int) int {
	return s.lines + 1 + strings.Count(string(s.pending[:at]), "\n")
}

// words splits the rest of a command at white space. A word in single or double quotes
// may have blanks; the quote is doubled inside.
func words(text string) ([]string, error) {
	var all []string
	for {
		text = strings.TrimSpace(text)
		if text == "" {
			return all, nil
		}
		word, rest, err := cutWord(text)
		if err != nil {
			return nil, err
		}
		all, text = append(all, word), rest
	}
}

// cutWord returns the first word of a text that does not begin with white space, and
// what follows it.
func cutWord(text string) (word, rest string, err error) {
	if text == "" {
		return "", "", nil
	}
	quote := text[0]
	if quote != '\'' && quote != '"' {
		end := strings.IndexFunc(text, unicode.IsSpace)
		if end < 0 {
			return text, "", nil
		}
		return text[:end], strings.TrimSpace(text[end:]), nil
	}
	var b strings.Builder
	for i := 1; i < len(text); i++ {
		if text[i] != quote {
			b.WriteByte(text[i])
			continue
		}
		if i+1 < len(text) && text[i+1] == quote {
			b.WriteByte(quote)
			i++
			continue
		}
		return b.String(), strings.TrimSpace(text[i+1:]), nil
	}
	return "", "", fmt.Errorf("the quote %c of %s has no end", quote, fit(text, tableCell))
}
