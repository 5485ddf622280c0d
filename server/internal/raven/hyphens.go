package raven

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A name in RavenDB's RQL may have hyphens, and its clients do not put such a name in quotes:
// where first-name = $p0. In Jay's this is a difference, and a name with a hyphen stands in quotes.

// quoteHyphens puts the names that have a hyphen in quotes. It leaves alone what is in quotes, what
// begins with @ or $, the members of @metadata, and JavaScript.
func quoteHyphens(text string) string {
	if !strings.Contains(text, "-") {
		return text
	}
	var out strings.Builder
	for at := 0; at < len(text); {
		from := at
		r, size := utf8.DecodeRuneInString(text[at:])
		at += size
		switch {
		case r == '{':
			at = behindScript(text, from)
		case r == '$' || r == '@' || unicode.IsDigit(r):
			at, _ = behindName(text, at)
		case r == '_' || unicode.IsLetter(r):
			end, hyphen := behindName(text, at)
			if at = end; hyphen && !strings.HasSuffix(text[:from], "@metadata.") {
				out.WriteString("'" + text[from:at] + "'")
				continue
			}
		default:
			at = behindQuoted(text, from, at)
		}
		out.WriteString(text[from:at])
	}
	return out.String()
}

// behindName returns the end of a name, of which at is in the middle, and reports whether it has a
// hyphen. A hyphen is a part of it if more of the name is on both of its sides.
func behindName(text string, at int) (end int, hyphen bool) {
	part := func(at int) int {
		r, size := utf8.DecodeRuneInString(text[at:])
		if r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.In(r, unicode.Mn, unicode.Mc) {
			return size
		}
		return 0
	}
	for {
		if n := part(at); n > 0 {
			at += n
			continue
		}
		if !strings.HasPrefix(text[at:], "-") || part(at+1) == 0 {
			return at, hyphen
		}
		at, hyphen = at+1, true
	}
}

// behindQuoted returns the end of a text in quotes or of a comment, if one begins at from, and
// otherwise at.
func behindQuoted(text string, from, at int) int {
	end := ""
	switch rest := text[from:]; {
	case strings.HasPrefix(rest, "//"):
		if length := strings.IndexAny(rest, "\r\n"); length >= 0 {
			return from + length
		}
		return len(text)
	case strings.HasPrefix(rest, "/*"):
		end = "*/"
		at++
	case rest[0] == '\'', rest[0] == '"', rest[0] == '`':
		end = rest[:1]
	default:
		return at
	}
	for ; at < len(text); at++ {
		if text[at] == '\\' && end != "*/" {
			at++
		} else if strings.HasPrefix(text[at:], end) {
			return at + len(end)
		}
	}
	return len(text)
}

// behindScript returns the end of the JavaScript that the brace at from begins.
func behindScript(text string, from int) int {
	depth := 0
	for at := from; at < len(text); {
		switch text[at] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return at + 1
			}
		}
		at = behindQuoted(text, at, at+1)
	}
	return len(text)
}
