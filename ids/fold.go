package ids

import "github.com/jaydb/jay/internal/fold"

// Fold returns the case-folded id, under which the document is looked up: each
// character is lower-cased by the table of package fold. Characters outside the
// Basic Multilingual Plane stay, no character becomes several, and nothing is
// normalised: ß and SS differ, and so do é and e with a combining accent. The
// Kelvin sign folds to k and U+0130 to i.
//
// The table is part of the on-disk format, since keys hold folded IDs. It does
// not follow the Unicode version of the Go release.
func Fold(id string) string { return fold.String(id) }

// AppendFold appends Fold(id) to dst.
func AppendFold(dst []byte, id string) []byte { return fold.AppendString(dst, id) }

// FoldGrowth returns len(Fold(id)) - len(id), which can be negative.
func FoldGrowth(id string) int { return fold.Growth(id) }

// EqualFold reports whether a and b fold to the same ID.
func EqualFold(a, b string) bool {
	if a == b {
		return true
	}
	var x, y [64]byte // most are short, and take no memory
	return string(AppendFold(x[:0], a)) == string(AppendFold(y[:0], b))
}
