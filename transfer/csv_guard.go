package transfer

import (
	"fmt"
	"io"
	"unicode/utf8"
)

// A spreadsheet evaluates a cell of CSV that begins with one of =, +, - and @, in full
// width, too, and formulas can start programs and send what other cells hold. Which byte
// separates cells depends on the country of the reader: where a semicolon does, a quoted
// "x;=1+1" in a file with commas is two cells, the second of which is a formula.

// NewSpreadsheetWriter is like [NewCSVWriter], for a file that a spreadsheet opens: no cell becomes
// a formula. The writer guards texts with [GuardText] and JSON with [GuardJSON]. So an import of
// the file finds apostrophes in texts that had none.
func NewSpreadsheetWriter(w io.Writer, columns *CSVColumns, comma byte) (*CSVWriter, error) {
	return newCSVWriter(w, columns, comma, true)
}

// GuardText appends text to dst, with an apostrophe before each place that a spreadsheet may take
// for the beginning of a formula. These places are the beginning of the text, and the places after
// a line break, a comma, a semicolon, a tab and a bar, but not after the character comma, which
// separates the cells of the file. A spreadsheet shows the text with or without the apostrophe, and
// does not evaluate it.
func GuardText(dst, text []byte, comma byte) []byte {
	if len(text) > 0 && (text[0] == '\t' || text[0] == '\r' || text[0] == '\n') {
		dst = append(dst, '\'')
	}
	done := 0
	findFormulas(text, comma, func(cell, _, _ int) {
		dst = append(append(dst, text[done:cell]...), '\'')
		done = cell
	})
	return append(dst, text[done:]...)
}

// GuardJSON is like [GuardText] for a cell that holds the JSON raw. Instead of writing an
// apostrophe, it escapes the character that would begin a formula. The value of the JSON stays the
// same.
func GuardJSON(dst, raw []byte, comma byte) []byte {
	done, quoted, at := 0, false, 0
	inString := func(i int) bool { // whether i, which never falls, is in a string
		for ; at < i; at++ {
			switch {
			case raw[at] == '"':
				quoted = !quoted
			case raw[at] == '\\':
				at++
			}
		}
		return quoted
	}
	findFormulas(raw, comma, func(_, sign, end int) {
		if !inString(sign) {
			return // the sign of a number
		}
		r, _ := utf8.DecodeRune(raw[sign:end])
		dst = fmt.Appendf(append(dst, raw[done:sign]...), `\u%04x`, r)
		done = end
	})
	return append(dst, raw[done:]...)
}

// findFormulas calls found for each place in text where a spreadsheet may see a formula,
// with the offset at which the cell would begin, and those of its sign.
func findFormulas(text []byte, comma byte, found func(cell, sign, end int)) {
	cell := 0 // where a cell may begin of which only blanks and quotes have come, or -1
	for i := 0; i < len(text); {
		b := text[i]
		size := 1
		switch {
		case b == '\n', b == '\r', b != comma && (b == ',' || b == ';' || b == '\t' || b == '|'):
			cell = i + 1
		case b == ' ', b == '"', b == '\t':
			// A spreadsheet may drop them at the beginning of a cell.
		case cell >= 0 && (b == '=' || b == '+' || b == '-' || b == '@'):
			found(cell, i, i+1)
			cell = -1
		case cell >= 0 && b >= utf8.RuneSelf:
			var r rune
			r, size = utf8.DecodeRune(text[i:])
			switch r {
			case '\u00a0', '\u200b', '\ufeff', '\u3000': // blanks, too
			case '＝', '＋', '－', '＠':
				found(cell, i, i+size)
				cell = -1
			default:
				cell = -1
			}
		default:
			cell = -1
		}
		i += size
	}
}
