package text_test

import (
	"fmt"
	"html"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/text"
)

var bold = text.Tags{Before: []string{"<b>"}, After: []string{"</b>"}}

// highlight returns the fragments of texts for a search.
func highlight(t testing.TB, analyzer, search string, length, count int, tags *text.Tags, texts ...string) (out []string) {
	t.Helper()
	for _, f := range fragments(t, analyzer, search, length, count, texts...) {
		out = append(out, string(f.Append(nil, texts[f.Text], tags)))
	}
	return out
}

func fragments(t testing.TB, name, search string, length, count int, texts ...string) []text.Fragment {
	t.Helper()
	a := analyzer(t, name)
	s, err := text.Parse(a, search, false)
	if err != nil {
		t.Fatal(err)
	}
	m := text.NewMarker(a, s)
	for _, one := range texts {
		m.Add(one)
	}
	return text.Fragments(texts, m.Marks(), length, count)
}

// Ensure that fragments show what is found, and nothing else, and begin and end at words.
func TestFragments(t *testing.T) {
	t.Parallel()
	const tale = "The old oak lost its leaves. In spring, oaks have new leaves; the fallen leaves are earth by then, and nobody misses the oak's acorns."
	for _, test := range []struct {
		name, analyzer, search string
		length, count          int
		texts                  []string
		want                   string
	}{
		{"a word", "standard", "oak", 40, 1, []string{tale}, "The old <b>oak</b> lost its leaves. In spring,"},
		{"other forms", "english", "oak", 44, 1, []string{tale}, "old <b>oak</b> lost its leaves. In spring, <b>oaks</b>"},
		{"two fragments", "standard", "oak earth", 24, 2, []string{tale}, "The old <b>oak</b> lost its | are <b>earth</b> by then, and"},
		{"the one with more words is taken", "standard", "leaves fallen", 30, 1, []string{tale}, "<b>leaves</b>; the <b>fallen</b> <b>leaves</b> are"},
		{"a phrase is one", "standard", `"fallen leaves"`, 30, 3, []string{tale}, "the <b>fallen leaves</b> are earth by"},
		{"only a whole phrase", "standard", `"new leaves"`, 26, 3, []string{tale}, "have <b>new leaves</b>; the"},
		{"a phrase with words that are left out", "english", `"leaves are earth"`, 40, 1, []string{tale}, "the fallen <b>leaves are earth</b> by then, and"},
		{"words near each other", "standard", `"spring new"~3`, 40, 1, []string{tale}, "In <b>spring</b>, oaks have <b>new</b> leaves; the"},
		{"a prefix", "standard", "acor*", 20, 1, []string{tale}, "the oak&#39;s <b>acorns</b>."},
		{"a fuzzy word", "standard", "sprong~1", 20, 1, []string{tale}, "In <b>spring</b>, oaks have"},
		{"not what must not be there", "standard", "oak -leaves", 40, 1, []string{tale}, "The old <b>oak</b> lost its leaves. In spring,"},
		{"nothing", "standard", "beech", 40, 1, []string{tale}, ""},
		{"the second text", "standard", "oak", 40, 2, []string{"An ash", "An oak", "No tree"}, "An <b>oak</b>"},
		{"no phrase from one text into the next", "standard", `"ash an"`, 40, 2, []string{"An ash", "An oak"}, ""},
		{"no words from one text into the next", "standard", `"ash an"~50`, 40, 2, []string{"Ash", "An oak"}, ""},
		{"a whole text", "standard", "oak", 1000, 1, []string{"  An oak.  "}, "An <b>oak</b>."},
		{"escaped", "standard", "oak", 100, 1, []string{`<i title="a's">oak</i> & ash`}, "&lt;i title=&#34;a&#39;s&#34;&gt;<b>oak</b>&lt;/i&gt; &amp; ash"},
		{"characters, not bytes", "standard", "größe", 18, 1, []string{"Überübergroß ist die Größe öfter für ähnliche"}, "die <b>Größe</b> öfter"},
		{"without spaces", "standard", "林里", 18, 1, []string{"松鸦把橡子藏在树林里，每个都记得。松鸦把橡子藏在树林里。"}, "松鸦把橡子藏在树<b>林里</b>，每个都记得。松"},
		{"parts of words", "ngram", "eav", 18, 1, []string{"the leaves"}, "the l<b>eav</b>es"},
		{"parts that overlap are one", "ngram", "leaves", 18, 1, []string{"the leaves"}, "the <b>leaves</b>"},
		{"a word that is too long", "keyword", "aaa*", 18, 1, []string{strings.Repeat("a", 100)}, "<b>" + strings.Repeat("a", 18) + "</b>"},
		{"marks stay with their letters", "standard", "cafe\u0301", 18, 1, []string{"a\u0301b\u0301c\u0301d\u0301e\u0301f\u0301 cafe\u0301 xyz"}, "<b>cafe\u0301</b> xyz"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			if got := strings.Join(highlight(t, test.analyzer, test.search, test.length, test.count, &bold, test.texts...), " | "); got != test.want {
				t.Errorf("\n got %q\nwant %q", got, test.want)
			}
		})
	}
}

// Ensure that the words of a search have the tags in turn, and that plain text is as it is.
func TestFragment_Tags(t *testing.T) {
	t.Parallel()
	tags := &text.Tags{Before: []string{"(1 ", "(2 "}, After: []string{" 1)", " 2)"}, Plain: true}
	got := highlight(t, "standard", "-beech oak ash elm", 100, 1, tags, "<oak> & ash, elm and oak")
	if want := []string{"<(1 oak 1)> & (2 ash 2), (1 elm 1) and (1 oak 1)"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// found returns where words and phrases in order are, one token after another.
func found(t *testing.T, a *text.Analyzer, s *text.Search, texts []string) (all []text.Mark) {
	for n, one := range texts {
		tokens := make(map[int]text.Token)
		a.Each(one, func(token text.Token) bool {
			token.Term = slices.Clone(token.Term)
			tokens[token.Position] = token
			return true
		})
		for i := range s.Clauses {
			c := &s.Clauses[i]
			for position, first := range tokens {
				end := 0
				for j := range c.Slots {
					token, there := tokens[position+c.Slots[j].Offset]
					if !there || !c.Slots[j].Matches(token.Term) {
						end = -1
						break
					}
					end = token.End
				}
				if end > 0 {
					all = append(all, text.Mark{Text: n, Start: first.Start, End: end, Clause: i})
				}
			}
		}
	}
	return all
}

func sortMarks(marks []text.Mark) []text.Mark {
	return slices.SortedFunc(slices.Values(marks), func(a, b text.Mark) int {
		return slices.Compare([]int{a.Text, a.Start, a.End, a.Clause}, []int{b.Text, b.Start, b.End, b.Clause})
	})
}

// Ensure that marks are where a plain look at all tokens finds words and phrases, and that a Marker may be used again.
func TestMarker_Random(t *testing.T) {
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	r := rand.New(rand.NewPCG(seed, 1))
	words := []string{"oak", "oaks", "the", "leaf", "leaves", "a-b", "日本語", "é", "don't", "ash"}
	phrase := func(n int) string {
		list := make([]string, n)
		for i := range list {
			list[i] = words[r.IntN(len(words))]
		}
		return strings.Join(list, []string{" ", ", ", " - "}[r.IntN(3)])
	}
	for range 300 {
		a := analyzer(t, []string{"standard", "english", "ngram", "whitespace"}[r.IntN(4)])
		query := phrase(1 + r.IntN(3))
		if r.IntN(2) == 0 {
			query += ` "` + phrase(1+r.IntN(4)) + `" ` + []string{"", "lea*", "o*k"}[r.IntN(3)]
		}
		s, err := text.Parse(a, query, false)
		if err != nil {
			continue // a pattern for parts of words
		}
		m, d := text.NewMarker(a, s), text.NewDocument(a, s)
		for range 3 {
			m.Reset()
			d.Reset()
			var texts []string
			for range 1 + r.IntN(3) {
				texts = append(texts, phrase(r.IntN(12)))
				m.Add(texts[len(texts)-1])
				d.Add(texts[len(texts)-1])
			}
			got, want := sortMarks(m.Marks()), sortMarks(found(t, a, s, texts))
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d: %s, %q in %q:\n got %v\nwant %v", seed, a.Name(), query, texts, got, want)
			}
			counts := 0
			for i := range s.Clauses {
				counts += d.Count(i)
			}
			if counts != len(got) {
				t.Fatalf("seed %d: %s, %q in %q: %d marks, and a Document counts %d", seed, a.Name(), query, texts, len(got), counts)
			}
		}
	}
}

// Ensure that a word which may go on behind the part of a text that is looked at is not marked, and that a phrase with many words that are left out
// is not marked from one text into the next.
func TestMarker_Ends(t *testing.T) {
	t.Parallel()
	blank := strings.Repeat(" ", text.MaxMarkedBytes-3)
	for end, want := range map[string]int{"oak": 1, "oakwood": 0, "oak wood": 0} {
		if got := len(fragments(t, "standard", "oak", 18, 1, blank+end)); got != want {
			t.Errorf("%q at the end: %d fragments, want %d", end, got, want)
		}
	}
	long := `"oak` + strings.Repeat(" the", text.ValueGap) + ` ash"`
	if got := highlight(t, "english", long, 18, 1, &bold, "oak", "ash"); len(got) > 0 {
		t.Errorf("a phrase over two texts: %q", got)
	}
}

// FuzzFragments ensures that fragments are parts of the texts, within their bounds, whatever the texts and searches are.
func FuzzFragments(f *testing.F) {
	f.Add("oak leaves", "The oak's leaves & <b>more</b> oak leaves", uint8(20), uint8(2))
	f.Add(`"a b" c~ d*`, "a b c d a\u0301\u0301\u0301 日本語テキスト", uint8(18), uint8(3))
	f.Fuzz(func(t *testing.T, search, one string, length, count uint8) {
		if !utf8.ValidString(one) || length < 1 || count < 1 {
			return
		}
		a := analyzer(t, []string{"standard", "english", "ngram(2)", "keyword"}[int(length)%4])
		s, err := text.Parse(a, search, false)
		if err != nil {
			return
		}
		texts := []string{one, one}
		m := text.NewMarker(a, s)
		for _, one := range texts {
			m.Add(one)
		}
		marked := len(m.Marks())
		all := text.Fragments(texts, m.Marks(), int(length), int(count))
		if (len(all) == 0) != (marked == 0) || len(all) > int(count) {
			t.Fatalf("%d fragments of %d marks, of at most %d", len(all), marked, count)
		}
		checkFragments(t, texts, all, int(length))
	})
}

// checkFragments checks fragments of at most length characters.
func checkFragments(t testing.TB, texts []string, all []text.Fragment, length int) {
	t.Helper()
	for i, f := range all {
		part := texts[f.Text][f.Start:f.End]
		plain := f.Append(nil, texts[f.Text], &text.Tags{Before: []string{""}, After: []string{""}})
		switch {
		case !utf8.ValidString(part) || utf8.RuneCountInString(part) > length || len(f.Marks) == 0:
			t.Fatalf("fragment %q with %d marks", part, len(f.Marks))
		case html.UnescapeString(string(plain)) != part:
			t.Fatalf("fragment %q is written as %q", part, plain)
		case i > 0 && (all[i-1].Text > f.Text || all[i-1].Text == f.Text && all[i-1].End > f.Start):
			t.Fatalf("fragment %+v comes behind %+v", f, all[i-1])
		}
		at := f.Start
		for _, m := range f.Marks {
			if m.Start < at || m.End <= m.Start || m.End > f.End {
				t.Fatalf("mark %+v of %+v", m, f)
			}
			at = m.End
		}
	}
}

// Ensure that what texts are made to cost is bounded: they may be as long as a document, have a single word, or nothing but words that are found.
func TestFragments_Hostile(t *testing.T) {
	t.Parallel()
	const size = 32 << 20
	many := strings.Builder{}
	for i := 0; many.Len() < 4<<20; i++ {
		fmt.Fprintf(&many, "w%d ", i)
	}
	for name, test := range map[string]struct{ analyzer, search, text string }{
		"one word":                   {"standard", "a*", strings.Repeat("a", size)},
		"marks without end":          {"standard", "a*", "a" + strings.Repeat("\u0301", size/2)},
		"a word again and again":     {"standard", "a", strings.Repeat("a ", size/2)},
		"a phrase again and again":   {"standard", `"a a a a a a a a"`, strings.Repeat("a ", size/2)},
		"words near each other":      {"standard", `"a b"~50`, strings.Repeat("a b ", size/4)},
		"words that are all others":  {"standard", "*7 w1~2 w*", many.String()},
		"parts of one word":          {"ngram(2)", "ab", strings.Repeat("ab", size/2)},
		"characters without a space": {"standard", "日", strings.Repeat("日", size/3)},
		"tags":                       {"standard", "b", strings.Repeat("<b>", size/3)},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			all := fragments(t, test.analyzer, test.search, 10_000, 100, test.text)
			checkFragments(t, []string{test.text}, all, 10_000)
			if took := time.Since(start); took > 20*time.Second {
				t.Errorf("took %v", took)
			}
			for _, f := range all {
				if f.Start > text.MaxMarkedBytes {
					t.Errorf("a fragment at %d", f.Start)
				}
			}
		})
	}
}
