package ids

import (
	"strings"

	"github.com/jaydb/jay/internal/fold"
)

// Fold returns the form of id under which it is looked up: every character
// lower-cased on its own by the table of package fold. There is no mapping
// outside the Basic Multilingual Plane, none from one character to several,
// and no normalisation: ß and SS differ, and so do é and e with an accent.
// The Kelvin sign folds to k and U+0130 to i.
//
// The table belongs to the on-disk format, as keys are made of folded IDs; it
// does not follow the Unicode version of the Go that compiles it.
func Fold(id string) string { return fold.String(id) }

// AppendFold appends Fold(id) to dst.
func AppendFold(dst []byte, id string) []byte { return fold.AppendString(dst, id) }

// FoldGrowth returns how many bytes Fold(id) has more than id. It can be
// negative.
func FoldGrowth(id string) int { return fold.Growth(id) }

// EqualFold tells whether a and b have the same folded form.
func EqualFold(a, b string) bool {
	if strings.Compare(a, b) == 0 {
		return true
	}
	return Fold(a) == Fold(b)
}
