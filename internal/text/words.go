package text

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

// splitWords splits a text by the word boundaries of Unicode. Parts without a letter, a digit or a pictogram are no words.
func splitWords(text string, fn func(word) bool) {
	it := words.FromString(text)
	for it.Next() {
		w := word{start: it.Start(), end: it.End()}
		if w.kind = kindOf(text[w.start:w.end]); w.kind != none && !fn(w) {
			return
		}
	}
}

// inLowerCase makes words that a splitter leaves as they are written some without regard to case and width.
func inLowerCase(split splitter) splitter {
	return func(text string, fn func(word) bool) {
		split(text, func(w word) bool {
			w.kind = folded
			return fn(w)
		})
	}
}

// luceneStops are the words that Lucene's analyzers for English leave out, of its StopAnalyzer.
var luceneStops = func() map[string]bool {
	stops := make(map[string]bool)
	for w := range strings.FieldsSeq("a an and are as at be but by for if in into is it no not of on or such that the their then there these they this to was will with") {
		stops[w] = true
	}
	return stops
}()

// none is a part of a text that is no word.
const none kind = 255

// kindOf returns what becomes of a part of a text between two word boundaries.
func kindOf(part string) kind {
	if b := part[0]; b < utf8.RuneSelf {
		if isASCIIWord(b) {
			return folded
		}
		if len(part) == 1 {
			return none
		}
	}
	for _, r := range part {
		switch {
		case r < utf8.RuneSelf:
			if isASCIIWord(byte(r)) {
				return folded
			}
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) || r == 'ー' || r == 'ｰ':
			return joined
		case unicode.IsLetter(r), unicode.IsNumber(r), unicode.Is(unicode.So, r) && r != utf8.RuneError:
			return folded
		}
	}
	return none
}

func isASCIIWord(b byte) bool {
	return 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z' || '0' <= b && b <= '9'
}

// splitLetters splits a text into runs of letters and their marks.
func splitLetters(text string, fn func(word) bool) {
	start := -1
	for i, r := range text {
		switch in := unicode.IsLetter(r) || start >= 0 && unicode.IsMark(r); {
		case in && start < 0:
			start = i
		case !in && start >= 0:
			if !fn(word{start: start, end: i}) {
				return
			}
			start = -1
		}
	}
	if start >= 0 {
		fn(word{start: start, end: len(text)})
	}
}

// splitSpaces splits a text at white space.
func splitSpaces(text string, fn func(word) bool) {
	for i := 0; i < len(text); {
		rest := strings.TrimLeftFunc(text[i:], unicode.IsSpace)
		i = len(text) - len(rest)
		n := strings.IndexFunc(rest, unicode.IsSpace)
		if n < 0 {
			n = len(rest)
		}
		if n == 0 || !fn(word{start: i, end: i + n, kind: exact}) {
			return
		}
		i += n
	}
}

// splitNothing makes one word of a text, unless it is empty.
func splitNothing(text string, fn func(word) bool) {
	if text != "" {
		fn(word{end: len(text), kind: exact})
	}
}
