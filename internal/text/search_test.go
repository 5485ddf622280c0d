package text_test

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jaydb/jay/internal/text"
)

// counts returns how often each clause of a search occurs in the texts of a field.
func counts(t testing.TB, analyzerName, search string, texts ...string) (s *text.Search, list []int) {
	t.Helper()
	a := analyzer(t, analyzerName)
	s, err := text.Parse(a, search, false)
	if err != nil {
		t.Fatalf("%q: %v", search, err)
	}
	d := text.NewDocument(a, s)
	for range 2 { // the second time after Reset
		d.Reset()
		for _, one := range texts {
			d.Add(one)
		}
	}
	for i := range s.Clauses {
		list = append(list, d.Count(i))
	}
	length, base := d.Length, 0
	terms, positions := map[string][]int{}, 0
	for _, one := range texts {
		base += a.Each(one, func(t text.Token) bool {
			terms[string(t.Term)] = append(terms[string(t.Term)], base+t.Position)
			positions++
			return true
		}) + text.ValueGap
	}
	names := slices.Sorted(maps.Keys(terms))
	d.Reset()
	d.AddTerms(positions, len(names), func(i int) ([]byte, []int) { return []byte(names[i]), terms[names[i]] })
	for i := range s.Clauses {
		if d.Count(i) != list[i] || d.Length != length {
			t.Fatalf("%q in %.200q: clause %d, by terms %d of %d, by texts %d of %d", search, texts, i, d.Count(i), d.Length, list[i], length)
		}
	}
	return s, list
}

// Ensure that each form of a clause means what Parse promises.
func TestParse_Clauses(t *testing.T) {
	t.Parallel()
	const leaves = "The oak tree has fallen leaves; fallen oak leaves rot. Oaks!"
	for _, test := range []struct {
		analyzer, search, text string
		want                   []int
	}{
		{"standard", "oak", leaves, []int{2}},
		{"standard", "OAK rot beech", leaves, []int{2, 1, 0}},
		{"standard", "oak*", leaves, []int{3}},
		{"standard", "*ves", leaves, []int{2}},
		{"standard", "*", "a b", []int{2}},
		{"standard", "l*s f?llen ?ak o?k", leaves, []int{2, 2, 2, 2}},
		{"standard", "LEA*", leaves, []int{2}},
		{"standard", `"fallen leaves"`, leaves, []int{1}},
		{"standard", `"fallen leaves"~0 "fallen leaves"~1`, leaves, []int{2, 3}},
		{"standard", `"leaves fallen" "leaves oak"~0`, leaves, []int{1, 1}},
		{"standard", `"oak oak"~3`, "oak ash oak", []int{1}},
		{"standard", `"oak oak"`, "oak oak oak", []int{2}},
		{"standard", `"oak oak ash"`, "oak oak oak ash", []int{1}},
		{"standard", "fallen-leaves", leaves, []int{1}},
		{"standard", "trea~ taer~1 oka~1 oak~0", leaves, []int{2, 0, 2, 2}},
		{"standard", "laeves~1", leaves, []int{2}},
		{"standard", `oak\* \"rot\" \-x`, leaves, []int{2, 1, 0}},
		{"standard", "日本", "東京日本語", []int{1}},
		{"standard", "本", "東京日本語 本", []int{2}},
		{"standard", "語", "東京日本語", []int{1}},
		{"standard", "日本*", "東京日本語", []int{1}},
		{"standard", "日本語", "日本 本語", []int{0}},
		{"standard", `"日 日本" "日 日本"~0`, "日日本", []int{1, 1}},
		{"standard", "rock - roll +", "rock and roll", []int{1, 1}},
		{"english", "running", "he runs, and ran", []int{1}},
		{"english", "the", leaves, nil},
		{"english", `"leaf of the tree"`, "leaf of a tree; leaf tree", []int{1}},
		{"ngram", "alle fa lv alle*", leaves, []int{2, 2, 0, 2}},
		{"keyword", `"Oak tree"`, "Oak tree", []int{1}},
		{"keyword", `Oak*`, "Oak tree", []int{1}},
		{"whitespace", "Oak oak", "Oak, Oak", []int{1, 0}},
		{"simple", "b2b", "b b", []int{1}},
	} {
		if _, got := counts(t, test.analyzer, test.search, test.text); !slices.Equal(got, test.want) {
			t.Errorf("%s: %s in %q: %v, want %v", test.analyzer, test.search, test.text, got, test.want)
		}
	}
}

// Ensure that a phrase with a stop word is found where one of its own words stands in the place of that word.
func TestDocument_Gaps(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]int{
		"oak the leaf": 1, "oak leaf leaf": 1, "oak oak leaf": 1, "oak ash leaf": 1,
		"oak leaf": 0, "oak leaf ash": 0, "leaf the oak": 0, "oak the the leaf": 0, "oak oak leaf leaf": 2,
	} {
		if _, got := counts(t, "english", `"oak the leaf"`, text); got[0] != want {
			t.Errorf("%q: %d, want %d", text, got[0], want)
		}
	}
}

// Ensure that no phrase reaches from one text of a field into the next.
func TestDocument_Values(t *testing.T) {
	t.Parallel()
	_, got := counts(t, "standard", `"oak ash" "oak ash"~50 oak ash`, "an oak", "ash oak")
	if want := []int{0, 1, 2, 1}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// Ensure that +, - and all decide which documents are found.
func TestSearch_Matches(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		search, text string
		any, all     bool
	}{
		{"oak ash", "oak", true, false},
		{"oak ash", "ash oak", true, true},
		{"oak ash", "elm", false, false},
		{"oak -ash", "oak", true, true},
		{"oak -ash", "oak ash", false, false},
		{"-ash", "oak", true, true},
		{"-ash", "ash", false, false},
		{"+oak ash", "oak", true, false},
		{"+oak ash", "ash", false, false},
		{"", "oak", false, false},
		{"!", "oak", false, false},
	} {
		for all, want := range map[bool]bool{false: test.any, true: test.all} {
			a := analyzer(t, "standard")
			s, err := text.Parse(a, test.search, all)
			if err != nil {
				t.Fatal(err)
			}
			d := text.NewDocument(a, s)
			d.Add(test.text)
			if got := s.Matches(d.Count); got != want {
				t.Errorf("%q, all %v, finds %q: %v", test.search, all, test.text, got)
			}
		}
	}
}

// Ensure that what breaks a rule is refused, with its place.
func TestParse_Refused(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		analyzer, search, rule string
		offset                 int
	}{
		{"standard", `oak "fallen`, "quotation mark", 4},
		{"standard", `oak"x`, `\"`, 3},
		{"standard", `oak \`, `follows \`, 4},
		{"standard", `"oak\`, `follows \`, 4},
		{"standard", `oak^`, "follows ^", 4},
		{"standard", `oak^0`, "follows ^", 4},
		{"standard", `oak^1001`, "follows ^", 4},
		{"standard", `oak^1x`, "a space", 5},
		{"standard", `~1`, "missing", 0},
		{"standard", `oak~3`, "0 to 2", 4},
		{"standard", `o*k~1`, "fuzzy", 0},
		{"standard", `a-b~1`, "single", 0},
		{"standard", `"a b"~51`, "0 to 50", 6},
		{"standard", `"a b"~`, "0 to 50", 6},
		{"standard", `"a b"c`, "a space", 5},
		{"standard", "日*本", "analyzer standard", 0},
		{"standard", "日本~1", "analyzer standard", 0},
		{"ngram", "oa*k", "analyzer ngram", 0},
		{"ngram", "*oak", "analyzer ngram", 0},
		{"ngram", "oak~", "analyzer ngram", 0},
		{"standard", many("a", text.MaxClauses+1), "1024 words", len(many("a", text.MaxClauses))},
		{"standard", many("*a", text.MaxPatterns+1), "64 words", len(many("*a", text.MaxPatterns))},
		{"standard", `"` + strings.Repeat("a ", text.MaxSlots+1) + `"`, "4096 terms", 0},
		{"standard", `"` + strings.Repeat("a ", text.MaxNear+1) + `"~1`, "64 terms", 0},
		{"standard", strings.Repeat("a", text.MaxTermBytes) + "*", "128 characters", 0},
		{"standard", strings.Repeat("a", text.MaxSearchBytes+1), "65536 bytes", text.MaxSearchBytes},
	} {
		_, err := text.Parse(analyzer(t, test.analyzer), test.search, false)
		var syntax *text.SyntaxError
		if !errors.As(err, &syntax) || syntax.Offset != test.offset || !strings.Contains(err.Error(), test.rule) {
			t.Errorf("%.40q: %v, want %q at %d", test.search, err, test.rule, test.offset)
		}
	}
}

// many returns n words, each with a space behind it.
func many(word string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%s%d ", word, i)
	}
	return b.String()
}

// Ensure that a word that a search has twice counts twice.
func TestParse_Repeated(t *testing.T) {
	t.Parallel()
	s, got := counts(t, "standard", "oak ash Oak^2 -oak a* a*", "oak")
	if !slices.Equal(got, []int{1, 0, 1, 0}) || s.Clauses[0].Boost != 3 || s.Clauses[2].Occur != text.MustNot || s.Clauses[3].Boost != 2 {
		t.Errorf("%v of %+v", got, s.Clauses)
	}
}

// distance is the optimal string alignment distance by its whole table.
func distance(a, b []rune) int {
	table := make([][]int, len(a)+1)
	for i := range table {
		table[i] = make([]int, len(b)+1)
		for j := range table[i] {
			switch {
			case i == 0:
				table[i][j] = j
			case j == 0:
				table[i][j] = i
			default:
				d := table[i-1][j-1]
				if a[i-1] != b[j-1] {
					d++
				}
				d = min(d, table[i-1][j]+1, table[i][j-1]+1)
				if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
					d = min(d, table[i-2][j-2]+1)
				}
				table[i][j] = d
			}
		}
	}
	return table[len(a)][len(b)]
}

// naive counts a clause in words, each at its position.
func naive(clause string, words []string) (n int) {
	phrase := strings.Trim(clause, `"`)
	switch parts := strings.Fields(phrase); {
	case len(parts) > 1:
		for i := range words {
			if i+len(parts) <= len(words) && slices.Equal(words[i:i+len(parts)], parts) {
				n++
			}
		}
		return n
	case strings.ContainsAny(phrase, "*?"):
		re := regexp.MustCompile("(?s)^" + strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(phrase)) + "$")
		for _, w := range words {
			if re.MatchString(w) {
				n++
			}
		}
	case strings.Contains(phrase, "~"):
		word, limit, _ := strings.Cut(phrase, "~")
		for _, w := range words {
			if distance([]rune(word), []rune(w)) <= int(limit[0]-'0') {
				n++
			}
		}
	default:
		for _, w := range words {
			if w == phrase {
				n++
			}
		}
	}
	return n
}

// Ensure that random searches count in random texts what a naive reading of them counts.
func TestDocument_Random(t *testing.T) {
	t.Parallel()
	rounds := 20_000
	if testing.Short() {
		rounds = 2000
	}
	r := rand.New(rand.NewPCG(36, 1))
	word := func() string {
		w := make([]rune, 1+r.IntN(4))
		for i := range w {
			w[i] = []rune("abö")[r.IntN(3)]
		}
		return string(w)
	}
	found := 0
	for range rounds {
		words := make([]string, r.IntN(12))
		for i := range words {
			words[i] = word()
		}
		var clauses []string
		for range 1 + r.IntN(4) {
			switch c := word(); r.IntN(5) {
			case 0:
				clauses = append(clauses, `"`+c+" "+word()+strings.Repeat(" "+word(), r.IntN(2))+`"`)
			case 1:
				clauses = append(clauses, c+"~"+fmt.Sprint(r.IntN(3)))
			case 2, 3:
				runes := []rune(c)
				runes[r.IntN(len(runes))] = []rune("*?")[r.IntN(2)]
				clauses = append(clauses, string(runes)+strings.Repeat("*", r.IntN(2)))
			default:
				clauses = append(clauses, c)
			}
		}
		_, got := counts(t, "standard", strings.Join(clauses, " "), strings.Join(words, " "))
		if len(got) < len(clauses) {
			continue // one was repeated
		}
		for i, clause := range clauses {
			want := naive(clause, words)
			if got[i] != want {
				t.Fatalf("%s in %q: %d, want %d", clause, words, got[i], want)
			}
			found += want
		}
	}
	if found < rounds/2 {
		t.Errorf("only %d found in %d rounds", found, rounds)
	}
}

// Ensure that a stretch is found in any order with words between, as a look at all stretches finds it.
func TestDocument_Near(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(36, 2))
	for range 5000 {
		words := make([]string, r.IntN(10))
		for i := range words {
			words[i] = string(rune('a' + r.IntN(4)))
		}
		phrase := make([]string, 2+r.IntN(2))
		for i := range phrase {
			phrase[i] = string(rune('a' + r.IntN(3)))
		}
		slop := r.IntN(4)
		want := false
		for i := range words {
			for j := i + 1; j <= min(len(words), i+len(phrase)+slop); j++ {
				rest := slices.Clone(words[i:j])
				all := true
				for _, p := range phrase {
					k := slices.Index(rest, p)
					if all = all && k >= 0; all {
						rest = slices.Delete(rest, k, k+1)
					}
				}
				want = want || all
			}
		}
		search := fmt.Sprintf(`"%s"~%d`, strings.Join(phrase, " "), slop)
		if _, got := counts(t, "standard", search, strings.Join(words, " ")); got[0] > 0 != want {
			t.Fatalf("%s in %q: %d, want %v", search, words, got[0], want)
		}
	}
}

// Ensure that a class of lengths is near its length, and that classes are in the order of lengths.
func TestLengthClass(t *testing.T) {
	t.Parallel()
	last := 0
	for n := range 600_000 {
		c := text.ClassOf(n)
		if int(c) < last || int(c) > last+1 || c.Length() > n || text.ClassOf(c.Length()) != c || n < 500_000 && float64(n-c.Length()) > float64(n)/16 || n < 32 && c.Length() != n {
			t.Fatalf("length %d: class %d after %d, of length %d", n, c, last, c.Length())
		}
		last = int(c)
	}
	if text.ClassOf(math.MaxInt) != math.MaxUint8 || last != math.MaxUint8 {
		t.Errorf("the last classes are %d and %d", text.ClassOf(math.MaxInt), last)
	}
}

// Ensure that the parts of a score have the values of the formula, and its order.
func TestScore(t *testing.T) {
	t.Parallel()
	near := func(what string, got, want float64) {
		t.Helper()
		if math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	parsed, err := text.Parse(analyzer(t, "standard"), "oak", false)
	if err != nil {
		t.Fatal(err)
	}
	weight := func(count, length int, average float64) float64 { // of one word, without its rarity
		f := &text.Frequencies{Documents: 100, Terms: int64(100 * average), Found: []int64{1}, Weight: 1}
		return text.NewRanking(parsed, f).Score(0, count, text.ClassOf(length)) / text.Rarity(f.Documents, f.Found[0])
	}
	near("rarity", text.Rarity(1000, 10), math.Log(1+(1000-10+0.5)/(10+0.5)))
	near("weight", weight(3, 50, 100), 3*2.2/(3+1.2*(0.25+0.75*0.5)))
	near("no occurrence", weight(0, 50, 100), 0)
	if text.Rarity(10, 10) <= 0 || text.Rarity(10, 9) <= text.Rarity(10, 10) || weight(1, 10, 10) >= weight(2, 10, 10) || weight(1, 10, 10) <= weight(1, 20, 10) || weight(1, 0, 0) <= 0 {
		t.Error("scores are in another order")
	}
}

// Ensure that no search and no text together take long: the work grows with the text, not with what it repeats.
func TestDocument_Hostile(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a ", 200_000)
	for _, search := range []string{
		`"` + strings.Repeat("a ", 4000) + `"`, `"` + strings.Repeat("a ", 64) + `"~50`, strings.Repeat("a*b ", 64), strings.Repeat("ab~2 ", 64),
		strings.Repeat("*a*a*a*a*a*a*b ", 8),
	} {
		begun := time.Now()
		counts(t, "standard", search, long, strings.Repeat("a", 200_000))
		if took := time.Since(begun); took > 20*time.Second {
			t.Errorf("%.20s took %v", search, took)
		}
	}
}

// Ensure that no text of a search does harm.
func FuzzParse(f *testing.F) {
	for _, s := range []string{`oak tre* "fallen leaves"~3 -rotten^2`, `+a~1 \" *x? 日*`, `"`, `-`, "a^1.5", "\xff*"} {
		f.Add(s, "oak a b")
	}
	f.Fuzz(func(t *testing.T, search, document string) {
		for _, name := range []string{"standard", "ngram", "english", "keyword"} {
			a := analyzer(t, name)
			s, err := text.Parse(a, search, false)
			if err != nil {
				var syntax *text.SyntaxError
				if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(search) {
					t.Fatalf("%q: %v", search, err)
				}
				continue
			}
			d := text.NewDocument(a, s)
			d.Add(document)
			for i, c := range s.Clauses {
				if len(c.Slots) == 0 || c.Slots[0].Offset != 0 || c.Boost <= 0 || d.Count(i) > 2*utf8.RuneCountInString(document) {
					t.Fatalf("%q: clause %+v is found %d times in %q", search, c, d.Count(i), document)
				}
			}
		}
	})
}
