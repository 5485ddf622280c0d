package ids

import (
	"sort"
	"strings"
	"unicode/utf8"
)

//go:generate go run fold_gen.go

// foldRange maps the characters lo, lo+stride, … hi to themselves plus delta.
type foldRange struct {
	lo, hi, stride uint16
	delta          int32
}

// Fold returns the form of id under which it is looked up: every character
// lower-cased on its own by the table in fold_table.go. There is no mapping
// outside the Basic Multilingual Plane, none from one character to several,
// and no normalisation: ß and SS differ, and so do é and e with an accent.
// The Kelvin sign folds to k and U+0130 to i.
//
// The table belongs to the on-disk format, as keys are made of folded IDs; it
// does not follow the Unicode version of the Go that compiles it.
func Fold(id string) string {
	for i := 0; i < len(id); i++ {
		if c := id[i]; c >= utf8.RuneSelf || 'A' <= c && c <= 'Z' {
			return string(AppendFold(make([]byte, 0, len(id)+8), id))
		}
	}
	return id
}

// AppendFold appends Fold(id) to dst.
func AppendFold(dst []byte, id string) []byte {
	for i := 0; i < len(id); {
		c := id[i]
		if c < utf8.RuneSelf {
			if 'A' <= c && c <= 'Z' {
				c += 'a' - 'A'
			}
			dst = append(dst, c)
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(id[i:])
		if r == utf8.RuneError {
			dst = append(dst, id[i:i+size]...) // never in a checked ID; kept as it is
		} else {
			dst = utf8.AppendRune(dst, foldRune(r))
		}
		i += size
	}
	return dst
}

// FoldGrowth returns how many bytes Fold(id) has more than id. It can be
// negative.
func FoldGrowth(id string) int {
	growth := 0
	for i := 0; i < len(id); {
		if id[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(id[i:])
		if r != utf8.RuneError {
			growth += utf8.RuneLen(foldRune(r)) - size
		}
		i += size
	}
	return growth
}

// EqualFold tells whether a and b have the same folded form.
func EqualFold(a, b string) bool {
	if strings.Compare(a, b) == 0 {
		return true
	}
	return Fold(a) == Fold(b)
}

func foldRune(r rune) rune {
	if r > 0xffff {
		return r
	}
	c := uint16(r)
	i := sort.Search(len(foldTable), func(i int) bool { return foldTable[i].hi >= c })
	if i == len(foldTable) {
		return r
	}
	f := foldTable[i]
	if c < f.lo || (c-f.lo)%f.stride != 0 {
		return r
	}
	return r + f.delta
}
