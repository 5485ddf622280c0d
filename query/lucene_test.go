package query_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/query"
)

// Ensure that a query in Lucene's syntax is the searches that it means, and that RQL writes these.
func TestLucene(t *testing.T) {
	t.Parallel()
	for search, want := range map[string]string{
		`oak`:                              `search(Text, 'oak')`,
		`oak OR ripe`:                      `search(Text, 'oak ripe')`,
		`oak || ripe`:                      `search(Text, 'oak ripe')`,
		`oak AND ripe`:                     `search(Text, '+oak +ripe')`,
		`oak && NOT ripe`:                  `search(Text, '+oak -ripe')`,
		`oak OR ash AND ripe !bad`:         `search(Text, 'oak +ash +ripe -bad')`,
		`+oak -"bad leaf"~3^2`:             `search(Text, '+oak -"bad leaf"~3^2')`,
		`tre* w?nd* oak~ ash~0.7^1.5`:      `search(Text, 'tre* w?nd* oak~0.5 ash~0.7^1.5')`,
		`a\\:b o\\*k \\-x`:                 `search(Text, 'a:b o\\*k \\-x')`,
		`a-b`:                              `search(Text, 'a-b')`,
		`Title:oak`:                        `search(Title, 'oak')`,
		`oak Title:(ash elm) Tags\\[\\]:x`: `search(Text, 'oak') or search(Title, 'ash elm') or search(Tags[], 'x')`,
		`(oak OR ash) AND ripe`:            `search(Text, 'oak ash') and search(Text, '+ripe')`,
		`(oak ash)^2 ripe`:                 `boost(search(Text, 'oak ash'), 2) or search(Text, 'ripe')`,
		`+(oak ash) ripe big`:              `search(Text, 'oak ash') and (true or search(Text, 'ripe big'))`,
		`oak -(ripe AND bad)`:              `search(Text, 'oak') and not search(Text, '+ripe +bad')`,
		`*:* -rotten`:                      `true and not search(Text, 'rotten')`,
		`*`:                                `exists(Text)`,
		`Title:*^2 oak`:                    `boost(exists(Title), 2) or search(Text, 'oak')`,
		``:                                 `search(Text, '')`,
		`()`:                               `search(Text, '')`,
		`AND`:                              ``,
		`oak AND`:                          ``,
		`-oak`:                             ``,
		`oak AND (-ripe)`:                  ``,
		`[a TO b]`:                         ``,
		`Title:{a TO b}`:                   ``,
		`(oak`:                             ``,
		`oak)`:                             ``,
		`"oak`:                             ``,
		`oak\\`:                            ``,
		`a:b:c`:                            ``,
		`oak^0`:                            ``,
		`(oak)^1001`:                       ``,
		`oak~3`:                            ``,
		`oak~1.0`:                          ``,
		`"oak ash"~51`:                     ``,
		`Ti*:oak`:                          ``,
		`T[x:oak`:                          ``,
		strings.Repeat("(", 51) + "a" + strings.Repeat(")", 51): ``,
		strings.Repeat("a", 65537):                              ``,
		strings.Repeat("a ", 1025):                              ``,
	} {
		e, err := query.ParseCondition("lucene(Text, '"+search+"')", nil)
		if err != nil {
			if want != "" || !errors.As(err, new(*query.SyntaxError)) {
				t.Errorf("%.50s: %v", search, err)
			}
			continue
		}
		if got := query.FormatCondition(e); got != want {
			t.Errorf("%.50s: got %s, want %s", search, got, want)
		}
	}
	for condition, want := range map[string]string{
		`exact(lucene(Text, 'Oak'))`:                                     `search(Text, 'Oak', 'keyword')`,
		`lucene(Text, '+the +oak', 'English')`:                           `search(Text, '+oak', 'english')`,
		`lucene(Text, 'the', 'english')`:                                 `search(Text, '', 'english')`,
		`elemMatch(Lines, lucene(Note, 'a AND (b c)'))`:                  `elemMatch(Lines, search(Note, '+a') and search(Note, 'b c'))`,
		`boost(lucene(Text, 'a'), 2)`:                                    `boost(search(Text, 'a'), 2)`,
		`exact(lucene(Text, 'Oak', 'english'))`:                          ``,
		`lucene(Text, 'oak', 'klingon')`:                                 ``,
		`lucene(Text, 'oak', and)`:                                       ``,
		`fuzzy(search(Text, 'maple +oak^2 \\-x', 'english'), 0.5)`:       `search(Text, 'maple~0.5 +oak~0.5^2 \\-x~0.5', 'english')`,
		`fuzzy(search(Text, 'oak - ash', and), 0)`:                       `search(Text, 'oak~0.0 - ash~0.0', and)`,
		`proximity(search(Text, 'oak leaves'), 5)`:                       `search(Text, '"oak leaves"~5')`,
		`boost(fuzzy(exact(Name = 'Ernst'), 0.25), 2)`:                   `boost(fuzzy(exact(Name = 'Ernst'), 0.25), 2)`,
		`fuzzy(Name = 'Ernst', 0)`:                                       `fuzzy(Name = 'Ernst', 0)`,
		`fuzzy(Name = 'Ernst', 1)`:                                       ``,
		`fuzzy(Name = 'Ernst', -0.1)`:                                    ``,
		`fuzzy(Name = 'Ernst', 'x')`:                                     ``,
		`fuzzy(Name = 7, 0.5)`:                                           ``,
		`fuzzy(Name != 'Ernst', 0.5)`:                                    ``,
		`fuzzy(startsWith(Name, 'E'), 0.5)`:                              ``,
		`fuzzy(search(Text, '"a b"'), 0.5)`:                              ``,
		`fuzzy(search(Text, 'a*'), 0.5)`:                                 ``,
		`fuzzy(Name = '` + strings.Repeat("x", 257) + `', 0.5)`:          ``,
		`proximity(search(Text, 'oak leaves'), 51)`:                      ``,
		`proximity(search(Text, 'oak leaves'), 1.5)`:                     ``,
		`proximity(search(Text, 'oak leav*'), 5)`:                        ``,
		`proximity(search(Text, '+oak leaves'), 5)`:                      ``,
		`proximity(Text = 'oak', 5)`:                                     ``,
		`fuzzy(` + strings.Repeat("not ", 250) + `Name = 'Ernst', 0.5)`:  ``,
		`fuzzy(search(Text, '` + strings.Repeat("a b", 65) + `'), 0.5)`:  ``,
		`proximity(search(Text, '` + strings.Repeat("a ", 65) + `'), 1)`: ``,
	} {
		e, err := query.ParseCondition(condition, nil)
		if err != nil {
			if want != "" || !errors.As(err, new(*query.SyntaxError)) {
				t.Errorf("%.80s: %v", condition, err)
			}
			continue
		}
		if got := query.FormatCondition(e); got != want {
			t.Errorf("%.80s: got %s, want %s", condition, got, want)
		}
	}
}

// clause is a clause of Lucene as its documentation has it, for words of one letter.
type clause struct {
	occur rune // '+', '-' or ' '
	word  byte
	group []clause
}

func (c *clause) write(b *strings.Builder) {
	if c.occur != ' ' {
		b.WriteRune(c.occur)
	}
	if c.group == nil {
		b.WriteByte(c.word)
		return
	}
	b.WriteByte('(')
	for i := range c.group {
		if i > 0 {
			b.WriteByte(' ')
		}
		c.group[i].write(b)
	}
	b.WriteByte(')')
}

// finds is a Boolean query of Lucene: what must be there is, nothing that must not, and one of the others if none must.
func (c *clause) finds(text string) bool {
	if c.group == nil {
		return strings.IndexByte(text, c.word) >= 0
	}
	must, should, found := false, false, false
	for i := range c.group {
		is := c.group[i].finds(text)
		switch c.group[i].occur {
		case '+':
			if must = true; !is {
				return false
			}
		case '-':
			if is {
				return false
			}
		default:
			should, found = true, found || is
		}
	}
	return must || should && found
}

// Ensure that groups of all shapes find what Lucene's Boolean queries do.
func TestLucene_Groups(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 36))
	var group func(depth int) clause
	group = func(depth int) clause {
		g := clause{occur: ' ', group: []clause{}}
		for i := range 1 + random.IntN(3) {
			one := clause{occur: ' ', word: "abcdef"[random.IntN(6)]}
			if depth > 0 && random.IntN(3) == 0 {
				one = group(depth - 1)
			}
			if one.occur = rune(" +-"[random.IntN(3)]); i == 0 && one.occur == '-' { // something must be found
				one.occur = '+'
			}
			g.group = append(g.group, one)
		}
		return g
	}
	for range sample.Of(t, 4).Rounds(2000) {
		c := group(3)
		var b strings.Builder
		c.write(&b)
		for range 10 {
			text := ""
			for range random.IntN(5) {
				text += string("abcdef"[random.IntN(6)]) + " "
			}
			if got, want := finds(t, "lucene(Text, '"+b.String()+"')", `{"Text":"`+text+`"}`), c.finds(text); got != want {
				t.Fatalf("seed %d: %s of %q: got %v, want %v", seed, b.String(), text, got, want)
			}
		}
	}
}

// Ensure that fuzzy() finds texts that are similar, by the measure of Lucene, and those only.
func TestFuzzy(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 37))
	word := func() string {
		w := ""
		for range random.IntN(9) {
			w += string([]rune("abäÄ")[random.IntN(4)])
		}
		return w
	}
	for range sample.Of(t, 4).Rounds(20_000) {
		a, b, above := word(), word(), float64(random.IntN(10))/10
		x, y := []rune(strings.ReplaceAll(a, "Ä", "ä")), []rune(strings.ReplaceAll(b, "Ä", "ä"))
		want := string(x) == string(y)
		if n := min(len(x), len(y)); n > 0 {
			want = want || 1-float64(levenshtein(x, y))/float64(n) > above
		}
		if got := finds(t, fmt.Sprintf("fuzzy(Text = '%s', %v)", a, above), `{"Text":[7,"`+b+`",null]}`); got != want {
			t.Fatalf("seed %d: %q, %q, %v: got %v, want %v", seed, a, b, above, got, want)
		}
	}
	for condition, want := range map[string]bool{
		`fuzzy(Text = 'ernts handel', 0.7)`:          true,
		`fuzzy(Text = 'ernts handel', 0.9)`:          false,
		`fuzzy(exact(Text = 'ERNST HANDEL'), 0.7)`:   false,
		`fuzzy(exact(Text = 'Ernst Handle'), 0.7)`:   true,
		`fuzzy(Text = '', 0)`:                        false,
		`fuzzy(search(Text, 'ernts'), 0.7)`:          true,
		`fuzzy(search(Text, 'ernts'), 0.8)`:          false,
		`fuzzy(search(Text, 'hendel ernts'), 0.7)`:   true,
		`proximity(search(Text, 'handel ernst'), 0)`: true,
		`lucene(Text, 'hendel~')`:                    true,
		`lucene(Text, 'hendel~0.9')`:                 false,
	} {
		if got := finds(t, condition, `{"Text":"Ernst Handel"}`); got != want {
			t.Errorf("%s: got %v, want %v", condition, got, want)
		}
	}
	if finds(t, `fuzzy(Text = 'oak', 0)`, `{"Text":"`+strings.Repeat("oak", 1<<20)+`"}`) {
		t.Error("a text of 3 MiB is similar to a word")
	}
	for _, e := range []query.Expr{query.Fuzzy{Field: field(t, "Text"), Text: "a", Similarity: 1}, query.Fuzzy{Text: "a"}} {
		if _, err := query.Compile(e); !errors.Is(err, query.ErrCondition) {
			t.Errorf("%v: got %v, want ErrCondition", e, err)
		}
	}
}

// levenshtein is the distance by its definition.
func levenshtein(a, b []rune) int {
	last := make([]int, len(b)+1)
	for j := range last {
		last[j] = j
	}
	for i := range a {
		row := append(make([]int, 0, len(b)+1), i+1)
		for j := range b {
			d := last[j]
			if a[i] != b[j] {
				d++
			}
			row = append(row, min(d, last[j+1]+1, row[j]+1))
		}
		last = row
	}
	return last[len(b)]
}
