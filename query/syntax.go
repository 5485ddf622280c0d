package query

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// ErrSyntax matches every *SyntaxError: errors.Is(err, ErrSyntax).
var ErrSyntax = errors.New("query: syntax error")

// SyntaxError is returned by [Parse] and [ParseCondition] for a text that is not
// a query, or uses features that Jay does not have. Its fields are for programs,
// [SyntaxError.Error] and [SyntaxError.Caret] for users.
type SyntaxError struct {
	Line     int    // of the first wrong character, from 1
	Column   int    // of it in characters, from 1
	Offset   int    // of it in bytes, from 0 to the length of the text
	Message  string // what is wrong
	Expected string // what is valid here; may be empty
	Hint     string // what to write instead; may be empty
	Text     string // the line, without its line end

	cause error // why a value was refused, or nil
}

// newSyntaxError returns an error at offset, or at the end of text if that is
// less.
func newSyntaxError(text string, offset int, format string, args ...any) *SyntaxError {
	offset = min(offset, len(text))
	start := strings.LastIndexByte(text[:offset], '\n') + 1
	line, _, _ := strings.Cut(text[start:], "\n")

	return &SyntaxError{
		Line:    strings.Count(text[:start], "\n") + 1,
		Column:  utf8.RuneCountInString(text[start:offset]) + 1,
		Offset:  offset,
		Message: oneLine(fmt.Sprintf(format, args...)),
		Text:    strings.TrimSuffix(line, "\r"),
	}
}

// expecting sets what is valid here.
func (e *SyntaxError) expecting(what string) *SyntaxError {
	e.Expected = what
	return e
}

// hinting sets what to write instead.
func (e *SyntaxError) hinting(hint string) *SyntaxError {
	e.Hint = oneLine(hint)
	return e
}

// because sets the cause, for errors.Is and errors.As.
func (e *SyntaxError) because(cause error) *SyntaxError {
	e.cause = cause
	return e
}

// Error returns the error in one line: position, what is wrong, what was
// expected and what to write instead.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("query: line %d, column %d: %s", e.Line, e.Column, e.Explanation())
}

// Explanation returns Error without the position.
func (e *SyntaxError) Explanation() string {
	s := e.Message
	if e.Expected != "" {
		s += ", expected " + e.Expected
	}
	if e.Hint != "" {
		s += "; " + e.Hint
	}
	return s
}

// Is makes errors.Is(err, ErrSyntax) true.
func (e *SyntaxError) Is(target error) bool { return target == ErrSyntax }

// Unwrap returns the error of the value that was refused, or nil.
func (e *SyntaxError) Unwrap() error { return e.cause }

// caretBefore and caretAfter are the numbers of characters that Caret shows before
// and after the error, so that a query in one long line stays readable.
const (
	caretBefore = 60
	caretAfter  = 40
)

// Caret returns two lines, the second without a line end: the line of the query,
// cut if it is long, and a caret under the first wrong character. Tabs are kept in
// both lines, so that the caret is in place whatever their width. Characters that
// terminals show in two cells count as two.
func (e *SyntaxError) Caret() string {
	runes := []rune(e.Text)
	at := min(e.Column-1, len(runes))

	// Cut a long line on both sides, and mark the cuts by dots.
	from, to := 0, len(runes)
	var source, caret strings.Builder
	if at > caretBefore+3 {
		from = at - caretBefore
		source.WriteString("...")
		caret.WriteString("   ")
	}
	end := ""
	if to > at+caretAfter+3 {
		to = at + caretAfter
		end = "..."
	}

	for i, r := range runes[from:to] {
		source.WriteRune(shown(r))
		if i < at-from {
			caret.WriteString(blank(r))
		}
	}
	return source.String() + end + "\n" + caret.String() + "^"
}

// oneLine returns a message with its control characters, line ends among them,
// replaced: the message may quote any text.
func oneLine(message string) string { return strings.Map(shown, message) }

// shown returns r, or U+FFFD for a control character that would move a terminal's
// cursor.
func shown(r rune) rune {
	if r != '\t' && unicode.Is(unicode.Cc, r) {
		return utf8.RuneError
	}
	return r
}

// blank returns white space as wide as r.
func blank(r rune) string {
	switch {
	case r == '\t':
		return "\t"
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return ""
	case unicode.Is(wide, r):
		return "  "
	}
	return " "
}

// wide holds the blocks whose characters terminals show in two cells: those of the
// wide and fullwidth characters of Unicode Standard Annex 11. Whole blocks are
// precise enough: an error moves a caret by one cell.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1}, // Hangul Jamo, initials
		{Lo: 0x2e80, Hi: 0x303e, Stride: 1}, // radicals, CJK punctuation
		{Lo: 0x3041, Hi: 0xa4cf, Stride: 1}, // kana to Yi
		{Lo: 0xa960, Hi: 0xa97f, Stride: 1}, // Hangul Jamo, extended
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1}, // Hangul
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1}, // CJK, compatible
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1}, // CJK, vertical and small
		{Lo: 0xff01, Hi: 0xff60, Stride: 1}, // fullwidth
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x16fe0, Hi: 0x18cff, Stride: 1}, // Tangut
		{Lo: 0x1aff0, Hi: 0x1b2ff, Stride: 1}, // kana, extended
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1}, // pictographs
		{Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1f9ff, Stride: 1},
		{Lo: 0x1fa70, Hi: 0x1faff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1}, // CJK, extensions
	},
}
