package text_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/text"
)

// analyzer returns an analyzer that is there.
func analyzer(t testing.TB, name string) *text.Analyzer {
	t.Helper()
	a, found := text.Find(name)
	if !found {
		t.Fatalf("there is no analyzer %q", name)
	}
	return a
}

// terms returns the terms of a text, each with its position.
func terms(a *text.Analyzer, s string) (list []string) {
	a.Each(s, func(t text.Token) bool {
		list = append(list, fmt.Sprintf("%d:%s", t.Position, t.Term))
		return true
	})
	return list
}

// Ensure that each analyzer finds the words that its documentation promises.
func TestAnalyzer_Terms(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ analyzer, text, want string }{
		{"standard", "The Oak, and the ASH.", "0:the 1:oak 2:and 3:the 4:ash"},
		{"standard", "don’t can't", "0:don't 1:can't"},
		{"standard", "foo_bar v1.2.3 3,500.25 a-b", "0:foo_bar 1:v1.2.3 2:3,500.25 3:a 4:b"},
		{"standard", "Straße STRASSE straẞe", "0:strasse 1:strasse 2:strasse"},
		{"standard", "ΟΔΟΣ οδος", "0:οδοσ 1:οδοσ"},
		{"standard", "Ｊａｙ　ｶﾞｷﾞ", "0:jay 1:ガギ 2:ギ"},
		{"standard", "café cafe\u0301 CAFÉ", "0:café 1:café 2:café"},
		{"standard", "日本語テ", "0:日本 1:本語 2:語テ 3:テ"},
		{"standard", "日 本", "0:日 1:本"},
		{"standard", "3月", "0:3 1:月"},
		{"standard", "한국어 말", "0:한국 1:국어 2:어 3:말"},
		{"standard", "ok 👍🏽 – … !", "0:ok 1:👍🏽"},
		{"standard", "", ""},
		{"standard", "\xff\xfea\xff", "0:a"},
		{"simple", "Oak2Ash don't É\u0301a", "0:oak 1:ash 2:don 3:t 4:é\u0301a"},
		{"whitespace", " Oak,\t\u00A0ash\n", "0:Oak, 1:ash"},
		{"keyword", " Oak, ash ", "0: Oak, ash "},
		{"keyword", "", ""},
		{"ngram", "Oaks an", "0:oak 1:aks 2:ks 3:s 4:an 5:n"},
		{"ngram(2)", "oak", "0:oa 1:ak 2:k"},
		{"NGRAM(3)", "oak", "0:oak 1:ak 2:k"},
		{"ngram", "日本語テ", "0:日本語 1:本語テ 2:語テ 3:テ"},
		{"english", "The runners were running to Ann's houses", "1:runner 3:run 5:ann 6:hous"},
		{"german", "Die Häuser über den Straßen", "1:haus 4:strass"},
		{"french", "L'école d’Hélène n'est pas grande", "0:écol 1:hélen 4:grand"},
		{"italian", "L'amica dell'albero", "0:amic 1:alber"},
		{"spanish", "las canciones", "1:cancion"},
		{"portuguese", "os corações", "1:coraçõ"},
		{"dutch", "de lichamelijke", "1:licham"},
		{"russian", "красивые и книги", "0:красив 2:книг"},
		{"swedish", "och flickorna", "1:flick"},
		{"finnish", "taloissa", "0:talo"},
	} {
		if got := strings.Join(terms(analyzer(t, test.analyzer), test.text), " "); got != test.want {
			t.Errorf("%s of %q:\n got %s\nwant %s", test.analyzer, test.text, got, test.want)
		}
	}
}

// Ensure that all analyzers can be found, and nothing else.
func TestFind(t *testing.T) {
	t.Parallel()
	names := text.Names()
	for _, want := range []string{"english", "keyword", "ngram", "ngram(2)", "ngram(6)", "russian", "simple", "standard", "swedish", "turkish", "whitespace"} {
		if !slices.Contains(names, want) {
			t.Errorf("no analyzer %q in %q", want, names)
		}
	}
	versions := make(map[string]bool)
	for _, name := range names {
		a := analyzer(t, strings.ToUpper(name))
		if a.Name() != name || versions[a.Version()] {
			t.Errorf("analyzer %q: name %q, version %q", name, a.Name(), a.Version())
		}
		versions[a.Version()] = true
	}
	for _, name := range []string{"", "klingon", "ngram(1)", "ngram(7)", "ngram()"} {
		if _, found := text.Find(name); found {
			t.Errorf("there is an analyzer %q", name)
		}
	}
}

// Ensure that the terms of a long word are bounded, and that they are parts of it.
func TestAnalyzer_LongWords(t *testing.T) {
	t.Parallel()
	for _, word := range []string{strings.Repeat("a", 1000), strings.Repeat("ö", 1000), strings.Repeat("a\u0301", 1000), "a" + strings.Repeat("\u0301", 10_000), strings.Repeat("語", 1000)} {
		for _, name := range text.Names() {
			n := 0
			analyzer(t, name).Each(word, func(token text.Token) bool {
				n++
				if len(token.Term) > text.MaxTermBytes || len(token.Term) == 0 || !utf8.Valid(token.Term) {
					t.Errorf("%s: a term of %d bytes: %q", name, len(token.Term), token.Term)
				}
				return !t.Failed()
			})
			if n > len(word) {
				t.Errorf("%s: %d terms of %d bytes", name, n, len(word))
			}
		}
	}
}

// Ensure that whatever a text is, its tokens are in order and within it.
func FuzzAnalyzer(f *testing.F) {
	for _, s := range []string{"The Oak's 3,5", "日本語テキスト", "e\u0301\u0301", "\xff", "👩‍👩‍👧 ﷺ ǅ", "l'école d’or"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		for _, name := range text.Names() {
			last := -1
			positions := analyzer(t, name).Each(s, func(token text.Token) bool {
				if token.Position <= last || token.End > len(s) || token.Start >= token.End || len(token.Term) == 0 || len(token.Term) > text.MaxTermBytes {
					t.Fatalf("%s of %q: token %+v after position %d", name, s, token, last)
				}
				last = token.Position
				return true
			})
			if positions <= last || positions > len(s)+1 {
				t.Fatalf("%s of %q: %d positions, the last is %d", name, s, positions, last)
			}
		}
	})
}
