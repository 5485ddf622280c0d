package docs

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/jaydb/jay/ids"
)

// maxGlobBytes bounds Scan.Matches and Scan.Exclude. Matching takes at most the
// length of the pattern times that of the ID.
const maxGlobBytes = 1024

// glob is a list of alternatives, each cut at its stars.
type glob [][]string

// parseGlob reads a pattern. Empty alternatives are left out; nil means that
// there is no pattern at all.
func parseGlob(pattern string) (glob, error) {
	if len(pattern) > maxGlobBytes {
		return nil, fmt.Errorf("%w: a pattern of %d bytes, at most %d", ids.ErrUsage, len(pattern), maxGlobBytes)
	}
	var g glob
	for alternative := range strings.SplitSeq(pattern, "|") {
		if alternative != "" {
			g = append(g, strings.Split(alternative, "*"))
		}
	}
	return g, nil
}

// match reports whether one alternative matches all of text.
func (g glob) match(text string) bool {
	for _, parts := range g {
		if matchParts(text, parts) {
			return true
		}
	}
	return false
}

// matchParts matches the parts between stars: the first at the beginning, the last
// at the end, every other one at the first place where it fits, which leaves the
// longest rest for the parts after it.
func matchParts(text string, parts []string) bool {
	n, ok := matchPrefix(text, parts[0])
	if !ok || len(parts) == 1 {
		return ok && n == len(text)
	}
	text = text[n:]
	for _, part := range parts[1 : len(parts)-1] {
		if text, ok = cutBehind(text, part); !ok {
			return false
		}
	}
	return matchSuffix(text, parts[len(parts)-1])
}

// matchPrefix reports whether text begins with part, and how many bytes that takes.
func matchPrefix(text, part string) (n int, ok bool) {
	for _, c := range part {
		got, size := utf8.DecodeRuneInString(text[n:])
		if size == 0 || c != '?' && c != got {
			return 0, false
		}
		n += size
	}
	return n, true
}

// cutBehind returns the text after the first place where part fits.
func cutBehind(text, part string) (rest string, ok bool) {
	if !strings.Contains(part, "?") {
		_, rest, ok = strings.Cut(text, part)
		return rest, ok
	}
	for i := range text {
		if n, ok := matchPrefix(text[i:], part); ok {
			return text[i+n:], true
		}
	}
	return "", false
}

// matchSuffix reports whether text ends with part.
func matchSuffix(text, part string) bool {
	start := len(text)
	for range utf8.RuneCountInString(part) {
		_, size := utf8.DecodeLastRuneInString(text[:start])
		if size == 0 {
			return false
		}
		start -= size
	}
	_, ok := matchPrefix(text[start:], part)
	return ok
}
