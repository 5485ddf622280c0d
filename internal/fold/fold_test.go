package fold_test

import (
	"crypto/sha256"
	"encoding/hex"
	"testing"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/fold"
)

// Ensure that no release of Go or of Jay folds any character differently:
// this is the hash of all of them, one after the other, as format 1 has them.
func TestAppend_Golden(t *testing.T) {
	var all []byte
	for r := rune(0); r <= utf8.MaxRune; r++ {
		if utf8.ValidRune(r) {
			all = fold.Append(all, string(r))
		}
	}
	sum := sha256.Sum256(all)
	if got, want := hex.EncodeToString(sum[:8]), "8c2dda6ff9191f8e"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Ensure that text and bytes fold alike, even where they are not UTF-8.
func TestAppend_Bytes(t *testing.T) {
	for _, s := range []string{"", "Users/ANN", "ÄÖ\u212a\u0130", "a\xffB", "\U00010400X", "\xe2\x84", "A\uFFFDB"} {
		text, raw := fold.Append(nil, s), fold.Append(nil, []byte(s))
		if string(text) != string(raw) || string(text) != fold.String(s) {
			t.Errorf("%q: got %q and %q and %q", s, text, raw, fold.String(s))
		}
		if got, want := string(fold.AppendString([]byte("AÄ"), s)), "AÄ"+string(text); got != want {
			t.Errorf("AppendString(%q): got %q, want %q", s, got, want)
		}
		if got, want := fold.Growth(s), len(text)-len(s); got != want {
			t.Errorf("Growth(%q): got %d, want %d", s, got, want)
		}
	}
}
