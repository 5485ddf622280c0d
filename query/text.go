package query

import (
	"bytes"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/fold"
)

// compareFolded compares the case-folded forms of x and y. It compares bytes,
// which for UTF-8 is the order of the characters.
func compareFolded(x, y []byte) int {
	n := min(len(x), len(y))
	for i := 0; i < n; i++ {
		a, b := x[i], y[i]
		if a|b >= utf8.RuneSelf {
			return compareFoldedRunes(x[i:], y[i:])
		}
		if a == b {
			continue
		}
		if a, b = fold.Byte(a), fold.Byte(b); a != b {
			if a < b {
				return -1
			}
			return 1
		}
	}
	if len(x) == len(y) {
		return 0
	}
	if len(x) < len(y) {
		return -1
	}
	return 1
}

// compareFoldedRunes is compareFolded for texts beyond ASCII.
func compareFoldedRunes(x, y []byte) int {
	var bufX, bufY [utf8.UTFMax]byte
	for len(x) > 0 && len(y) > 0 {
		a, n := foldNext(bufX[:0], x)
		b, m := foldNext(bufY[:0], y)
		if c := bytes.Compare(a, b); c != 0 {
			return c
		}
		x, y = x[n:], y[m:]
	}
	if len(x) == len(y) { // both are 0: one of them is used up
		return 0
	}
	if len(x) < len(y) {
		return -1
	}
	return 1
}

// foldNext appends the folded form of the first character of x to dst, and
// returns the size of that character in x, which must not be empty.
func foldNext(dst, x []byte) (folded []byte, size int) {
	if x[0] < utf8.RuneSelf {
		return append(dst, fold.Byte(x[0])), 1
	}
	_, size = utf8.DecodeRune(x)
	return fold.Append(dst, x[:size]), size
}

// hasFoldedPrefix reports whether the folded form of text begins with folded.
func hasFoldedPrefix(text, folded []byte) bool {
	var buf [utf8.UTFMax]byte
	for len(folded) > 0 {
		if len(text) == 0 {
			return false
		}
		c, size := foldNext(buf[:0], text)
		if !bytes.HasPrefix(folded, c) {
			return false
		}
		folded, text = folded[len(c):], text[size:]
	}
	return true
}

// equalFolded reports whether the folded form of text is folded.
func equalFolded(text, folded []byte) bool {
	i := 0
	for ; i < len(text) && i < len(folded) && text[i] < utf8.RuneSelf; i++ {
		if fold.Byte(text[i]) != folded[i] {
			return false
		}
	}
	if i == len(text) || i == len(folded) {
		return len(text) == len(folded)
	}
	return compareFoldedRunes(text[i:], folded[i:]) == 0
}
