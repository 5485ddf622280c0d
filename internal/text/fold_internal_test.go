package text

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Ensure that folding twice is folding once, and that case and form make no difference, for each character within a word.
func TestFold_Stable(t *testing.T) {
	t.Parallel()
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		s := "x" + string(r) + "x"
		once := string(appendFolded(nil, s))
		if again := string(appendFolded(nil, once)); again != once {
			t.Errorf("%U: %q becomes %q", r, once, again)
		}
		for _, same := range []string{norm.NFD.String(s), norm.NFKC.String(s), norm.NFKD.String(s)} {
			if got := string(appendFolded(nil, same)); got != once {
				t.Errorf("%U: %q is folded to %q, and %q to %q", r, s, once, same, got)
			}
		}
		if upper := "X" + string(unicode.ToUpper(r)) + "X"; unicode.ToLower(unicode.ToUpper(r)) == unicode.ToLower(r) {
			if got := string(appendFolded(nil, upper)); got != once {
				t.Errorf("%U: %q is folded to %q, and %q to %q", r, s, once, upper, got)
			}
		}
	}
}
