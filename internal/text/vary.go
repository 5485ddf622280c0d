package text

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Varied returns a search in which each word may differ: its similarity with a word of a text is above the given one, which is from 0 up to but without 1, as
// maple~0.7 has it. Patterns, phrases and words that have a ~ already are refused by a *SyntaxError.
func Varied(search string, similarity float64) (string, error) {
	sign := "~" + strconv.FormatFloat(similarity, 'f', -1, 64)
	if !strings.Contains(sign, ".") {
		sign += ".0" // maple~0 is maple
	}
	var b strings.Builder
	for at := 0; at < len(search); {
		r, size := utf8.DecodeRuneInString(search[at:])
		if unicode.IsSpace(r) {
			b.WriteString(search[at : at+size])
			at += size
			continue
		}
		word, end, err := plainWord(search, at, "which differ a little, are single words")
		if err != nil {
			return "", err
		}
		b.WriteString(search[at : at+word])
		if word > 1 || r != '-' && r != '+' {
			b.WriteString(sign)
		}
		b.WriteString(search[at+word : end])
		at = end
	}
	return b.String(), nil
}

// Nearby returns a search for all words of one, in any order, with up to slop other words between them: "oak leaves"~5. Signs of a search, such as wildcards, are
// refused by a *SyntaxError.
func Nearby(search string, slop int) (string, error) {
	for at := 0; at < len(search); {
		r, size := utf8.DecodeRuneInString(search[at:])
		if unicode.IsSpace(r) {
			at += size
			continue
		}
		word, end, err := plainWord(search, at, "which are near each other, are single words")
		if err != nil {
			return "", err
		}
		if end > at+word || (r == '-' || r == '+') && word > 1 {
			return "", &SyntaxError{at, "words which are near each other have no +, - and ^ of their own"}
		}
		at = end
	}
	return `"` + search + `"~` + strconv.Itoa(slop), nil
}

// plainWord returns the length of the word at a place of a search, with a sign in front of it, and where what follows it ends, such as a boost.
func plainWord(search string, at int, which string) (word, end int, err error) {
	word = -1
	for end = at; end < len(search); {
		r, size := utf8.DecodeRuneInString(search[end:])
		if unicode.IsSpace(r) {
			break
		}
		switch {
		case r == '\\' && end+size < len(search):
			_, next := utf8.DecodeRuneInString(search[end+size:])
			size += next
		case strings.ContainsRune(`"*?~`, r):
			return 0, 0, &SyntaxError{end, "words " + which + `: no "phrases", no wildcards, no ~`}
		case r == '^' && word < 0:
			word = end - at
		}
		end += size
	}
	if word < 0 {
		word = end - at
	}
	return word, end, nil
}
