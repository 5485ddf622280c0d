package score_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/fulltext"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/kindtest"
	"github.com/jaydb/jay/internal/score"
	"github.com/jaydb/jay/internal/text"
	"github.com/jaydb/jay/query"
	"github.com/jaydb/jay/storage/memory"
)

var ctx = context.Background()

// quickly makes parts small and sweeps frequent, and leaves settling to the test, which must not run beside others.
func quickly(t *testing.T) {
	t.Cleanup(fulltext.Quickly())
	t.Cleanup(checks.NoSettler())
}

// note is a document as the naive scores see it.
type note struct{ Title, Text string }

func (n note) body() []byte {
	body, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	return body
}

// naive is one search of a condition, as a test computes what it counts: words that must occur in a row, by clause.
type naive struct {
	field   string
	clauses []string
	boost   float64 // of the search and of the field
	all     bool
}

func wordsOf(s string) []string { return strings.Fields(strings.ToLower(s)) }

func (s naive) of(n note) []string {
	if s.field == "Title" {
		return wordsOf(n.Title)
	}
	return wordsOf(n.Text)
}

// count returns how often a clause occurs.
func count(words []string, clause string) (n int) {
	slots := strings.Fields(clause)
	for i := range words {
		found := true
		for j, slot := range slots {
			if i+j >= len(words) || words[i+j] != slot && !(strings.HasSuffix(slot, "*") && strings.HasPrefix(words[i+j], slot[:len(slot)-1])) {
				found = false
			}
		}
		if found {
			n++
		}
	}
	return n
}

// frequencies returns how often the words of a search are in some notes.
func (s naive) frequencies(notes map[string]note) text.Frequencies {
	f := text.Frequencies{Found: make([]int64, len(s.clauses)), Weight: 1}
	for _, n := range notes {
		words := s.of(n)
		if len(words) == 0 {
			continue
		}
		f.Documents++
		f.Terms += int64(len(words))
		for c := range s.clauses {
			if count(words, s.clauses[c]) > 0 {
				f.Found[c]++
			}
		}
	}
	return f
}

// score returns what a search counts in a note by BM25, and whether it finds it.
func (s naive) score(n note, f *text.Frequencies) (sum float64, found bool) {
	words := s.of(n)
	length := float64(text.ClassOf(len(words)).Length())
	missing := false
	for c, clause := range s.clauses {
		tf := float64(count(words, clause))
		if tf == 0 {
			missing = true
			continue
		}
		found = true
		df, all := math.Min(float64(f.Found[c]), float64(f.Documents)), float64(f.Documents)
		idf := math.Log(1 + (all-df+0.5)/(df+0.5))
		sum += idf * tf * 2.2 / (tf + 1.2*(0.25+0.75*length/(float64(f.Terms)/all)))
	}
	if s.all && missing {
		return 0, false
	}
	return sum * s.boost * f.Weight, found
}

// asked is a condition with what the naive scores know of it.
type asked struct {
	rql      string
	searches []naive
	and      bool // all searches must find a document, and not one of them
}

var conditions = []asked{
	{"search(Text, 'w1')", []naive{{"Text", []string{"w1"}, 1, false}}, true},
	{"search(Text, 'w1 w2 w3')", []naive{{"Text", []string{"w1", "w2", "w3"}, 1, false}}, true},
	{"search(Text, 'w1 w0', and)", []naive{{"Text", []string{"w1", "w0"}, 1, true}}, true},
	{"search(Text, 'w4 \"w1 w2\"')", []naive{{"Text", []string{"w4", "w1 w2"}, 1, false}}, true},
	{"search(Text, 'w1*')", []naive{{"Text", []string{"w1*"}, 1, false}}, true},
	{"search(Text, 'w2') and boost(search(Title, 'w2 w1'), 2.5)", []naive{{"Text", []string{"w2"}, 1, false}, {"Title", []string{"w2", "w1"}, 2.5, false}}, true},
	{"search(Text, 'w3') or boost(search(Title, 'w3') or search(Title, 'w1'), 3)", []naive{{"Text", []string{"w3"}, 1, false}, {"Title", []string{"w3"}, 3, false}, {"Title", []string{"w1"}, 3, false}}, false},
	{"search(Text, 'w1 w0', and) or search(Title, 'w1')", []naive{{"Text", []string{"w1", "w0"}, 1, true}, {"Title", []string{"w1"}, 1, false}}, false},
	{"search(Text, 'nothing')", []naive{{"Text", []string{"nothing"}, 1, false}}, true},
}

// score returns the score of a note, and whether it is an answer.
func (a asked) score(n note, frequencies []*text.Frequencies) (sum float64, is bool) {
	is = a.and
	for i, s := range a.searches {
		one, found := s.score(n, frequencies[i])
		if sum += one; a.and {
			is = is && found
		} else {
			is = is || found
		}
	}
	return sum, is
}

// frequenciesOf returns the frequencies that a page began with, as its cursor has them.
func frequenciesOf(t *testing.T, where, cursor string) []*text.Frequencies {
	t.Helper()
	raw, err := base64.RawURLEncoding.DecodeString(cursor)
	jaytest.Must(t, err)
	var fields struct {
		Scores []byte `json:"s"`
	}
	jaytest.Must(t, json.Unmarshal(raw, &fields))
	e, err := query.ParseCondition(where, nil)
	jaytest.Must(t, err)
	s, err := score.New(e)
	jaytest.Must(t, err)
	jaytest.Must(t, s.SetFrequencies(fields.Scores))
	return s.Frequencies
}

// scored is an answer.
type scored struct {
	ID    string  `json:"id()"`
	Score float64 `json:"score()"`
}

func answers(t *testing.T, q jay.Query[jay.Row]) (list []scored) {
	t.Helper()
	for row, err := range q.Iter(ctx) {
		jaytest.Must(t, err)
		list = append(list, decoded(t, row))
	}
	return list
}

func decoded(t *testing.T, row *jay.Row) (s scored) {
	t.Helper()
	jaytest.Must(t, json.Unmarshal(row.JSON, &s))
	return s
}

// check compares the answers of a query with naive ones.
func (a asked) check(t *testing.T, db *jay.DB, notes map[string]note, exact bool, weights map[string]float64) {
	t.Helper()
	q, err := db.RQL("from Notes where "+a.rql+" order by score() select id(), score()", nil)
	jaytest.Must(t, err)
	all := answers(t, q.NoScan())
	plain, err := db.RQL("from Notes where "+a.rql, nil)
	jaytest.Must(t, err)
	n, err := plain.NoScan().Count(ctx)
	jaytest.Must(t, err)
	if n != int64(len(all)) {
		t.Errorf("%s: %d are counted, and %d found", a.rql, n, len(all))
	}
	frequencies := make([]*text.Frequencies, len(a.searches))
	for i, s := range a.searches {
		f := s.frequencies(notes)
		frequencies[i] = &f
	}
	if len(all) > 1 { // a page of the first has a cursor, with the frequencies of the index
		page, err := q.Limit(1).Page(ctx)
		jaytest.Must(t, err)
		indexed := frequenciesOf(t, a.rql, page.Next)
		for i, s := range a.searches {
			f := frequencies[i]
			g := indexed[i]
			if g.Documents != f.Documents || g.Terms != f.Terms || g.Weight != weights[s.field] {
				t.Errorf("%s: the index has %+v, and the documents %+v", a.rql, g, f)
			}
			for c := range g.Found {
				if g.Found[c] < f.Found[c] || exact && g.Found[c] != f.Found[c] {
					t.Errorf("%s: the index has %d documents with %q, of %d", a.rql, g.Found[c], s.clauses[c], f.Found[c])
				}
			}
		}
		frequencies = indexed
	} else {
		for i := range frequencies {
			frequencies[i] = nil
		}
	}
	want := 0
	for id, n := range notes {
		if frequencies[0] == nil {
			break
		}
		sum, is := a.score(n, frequencies)
		at := slices.IndexFunc(all, func(s scored) bool { return s.ID == id })
		if is != (at >= 0) {
			t.Errorf("%s: %s is an answer: %v", a.rql, id, at >= 0)
		} else if is && math.Abs(all[at].Score-sum) > 1e-9 {
			t.Errorf("%s: %s has %v, want %v", a.rql, id, all[at].Score, sum)
		}
		if is {
			want++
		}
	}
	if frequencies[0] != nil && want != len(all) {
		t.Errorf("%s: %d answers, want %d", a.rql, len(all), want)
	}
	if !slices.IsSortedFunc(all, func(x, y scored) int {
		if x.Score != y.Score {
			return -compare(x.Score, y.Score)
		}
		return -strings.Compare(x.ID, y.ID)
	}) {
		t.Errorf("%s: not in order: %v", a.rql, all)
	}
	paged(t, q, all)
	a.explained(t, db, notes, all)
}

func compare(x, y float64) int {
	if x < y {
		return -1
	}
	return 1
}

// paged compares the pages of a query with all of its answers.
func paged(t *testing.T, q jay.Query[jay.Row], all []scored) {
	t.Helper()
	var got []scored
	for next := q.Limit(3); ; {
		page, err := next.Page(ctx)
		jaytest.Must(t, err)
		for _, row := range page.Items {
			got = append(got, decoded(t, row))
		}
		if page.Next == "" {
			break
		}
		next = q.Limit(3).After(page.Next)
	}
	if !slices.Equal(got, all) {
		t.Errorf("%s: pages have %v, and all are %v", q, got, all)
	}
}

// Ensure that scores are those of a naive BM25 with the frequencies of the index, after a third of the steps of random histories and at their end: with tails of each length,
// documents that changed, and sweeps; that pages have the same; and that a scan computes those of the documents.
func TestScores_Histories(t *testing.T) {
	quickly(t)
	first, count := kindtest.CampaignSeeds(t)
	for seed := first; seed < first+count; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { history(t, seed) })
	}
}

// history is one of TestScores_Histories.
func history(t *testing.T, seed uint64) {
	r := rand.New(rand.NewPCG(seed, 164))
	db := jaytest.Memory(t, nil)
	if seed%2 == 1 { // in a store that others may write to
		db = jaytest.Open(t, "db", &jay.Options{Engine: &memory.Driver{Shared: true}})
		defer jaytest.Close(t, db)
	}
	options, weights := map[string]string{"weights": "3, 1"}, map[string]float64{"Title": 3, "Text": 1}
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Title", "Text"}, Options: options}))
	sentence := func(n int) string {
		var words []string
		for range r.IntN(n) {
			words = append(words, fmt.Sprintf("w%d", min(r.IntN(15), r.IntN(15))))
		}
		return strings.Join(words, " ")
	}
	notes := make(map[string]note)
	for range 60 {
		id := fmt.Sprintf("notes/%d", r.IntN(25))
		switch _, there := notes[id]; {
		case r.IntN(6) == 0:
			settle(t, db)
		case there && r.IntN(4) == 0:
			jaytest.Must(t, db.Delete(ctx, id))
			delete(notes, id)
		default:
			notes[id] = note{sentence(4), sentence(40)}
			jaytest.Put(t, db, id, string(notes[id].body()), jay.InCollection("Notes"))
		}
		if r.IntN(3) > 0 {
			continue
		}
		a := conditions[r.IntN(len(conditions))]
		a.check(t, db, notes, false, weights)
		scanned(t, db, a, notes)
	}
	jaytest.Must(t, db.DropIndex(ctx, "Notes", "Words"))
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Title", "Text"}, Options: options}))
	for range 2 {
		for _, a := range conditions {
			a.check(t, db, notes, true, weights)
		}
		settle(t, db)
	}
	jaytest.Verify(t, db)
}

// settle settles all, on disk, where queries read.
func settle(t *testing.T, db *jay.DB) {
	t.Helper()
	jaytest.Must(t, checks.Settle(db))
	jaytest.Must(t, db.Flush(ctx))
}

// scanned compares the scores that a scan computes with naive ones.
func scanned(t *testing.T, db *jay.DB, a asked, notes map[string]note) {
	t.Helper()
	q, err := db.RQL("from Notes use no index where "+a.rql+" order by score() select id(), score()", nil)
	jaytest.Must(t, err)
	var frequencies []*text.Frequencies
	for _, s := range a.searches {
		f := s.frequencies(notes)
		frequencies = append(frequencies, &f)
	}
	all := answers(t, q)
	for _, s := range all {
		if want, is := a.score(notes[s.ID], frequencies); !is || math.Abs(want-s.Score) > 1e-9 {
			t.Errorf("%s, scanned: %s has %v, want %v", a.rql, s.ID, s.Score, want)
		}
	}
	paged(t, q, all)
}

// filled returns a database with notes of which the words are settled but for two, and with its index.
func filled(t *testing.T) *jay.DB {
	quickly(t)
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Title", "Text"}}))
	for i, s := range []string{"oak", "oak oak", "acorn of an old oak beside the brook", "a jay", "acorn acorn oak", "tree"} {
		if i == 4 {
			settle(t, db)
		}
		jaytest.Put(t, db, fmt.Sprintf("notes/%d", i), fmt.Sprintf(`{"Title":"Note","Text":"%s","N":%d}`, s, i), jay.InCollection("Notes"))
	}
	return db
}

func ids(t *testing.T, list []*jay.Document, err error) string {
	t.Helper()
	jaytest.Must(t, err)
	var text []string
	for _, doc := range list {
		text = append(text, strings.TrimPrefix(doc.ID(), "notes/"))
	}
	return strings.Join(text, "")
}

// Ensure that a transaction finds what it has written in its place among the others, by the frequencies of what it began with.
func TestScores_Transaction(t *testing.T) {
	db := filled(t)
	jaytest.Must(t, db.Update(ctx, func(tx *jay.Tx) error {
		jaytest.Equal(t, ids2(t, tx.Query("Notes").Where(jay.Search("Text", "acorn")).OrderBy(jay.Score)), "42")
		_, err := tx.Put(ctx, "notes/2", []byte(`{"Text":"acorn"}`), jay.InCollection("Notes"))
		jaytest.Must(t, err)
		_, err = tx.Put(ctx, "notes/9", []byte(`{"Text":"acorn acorn acorn acorn"}`), jay.InCollection("Notes"))
		jaytest.Must(t, err)
		jaytest.Equal(t, ids2(t, tx.Query("Notes").Where(jay.Search("Text", "acorn")).OrderBy(jay.Score)), "924")
		jaytest.Equal(t, ids2(t, tx.Query("Notes").Where(jay.Search("Text", "acorn")).OrderBy(jay.Score).Limit(1)), "9")
		return nil
	}))
	jaytest.Equal(t, ids2(t, db.Query("Notes").Where(jay.Search("Text", "acorn")).OrderBy(jay.Score)), "924")
}

func ids2(t *testing.T, q jay.Query[jay.Document]) string {
	t.Helper()
	list, err := q.All(ctx)
	return ids(t, list, err)
}

// Ensure that conditions without words change scores by their boosts only, and the directions of an order by score().
func TestScores_Boosts(t *testing.T) {
	db := filled(t)
	rows := func(rql string) string {
		t.Helper()
		q, err := db.RQL(rql, nil)
		jaytest.Must(t, err)
		list := []string{}
		for _, s := range answers(t, q) {
			list = append(list, strings.TrimPrefix(s.ID, "notes/"))
		}
		return strings.Join(list, "")
	}
	for rql, want := range map[string]string{
		"where search(Text, 'oak') order by score()":                                         "1042",
		"where search(Text, 'oak') order by score() asc":                                     "1042",
		"where search(Text, 'oak') order by score() desc":                                    "2401",
		"where search(Text, 'oak') and N < 3 order by score()":                               "102",
		"where search(Text, 'oak') or boost(N = 5, 9) order by score()":                      "51042",
		"where search(Text, 'oak') and (N > 3 or boost(N = 2, 9) or N < 2) order by score()": "2104",
		"where boost(search(Text, 'oak'), 2) and not search(Text, 'acorn') order by score()": "10",
		"where search(Text, 'oak') and search(Title, 'note') order by score(), N desc":       "1042",
		"where search(Text, 'oak') order by N, score()":                                      "0124",
		"where boost(N = 1, 2) or boost(N = 3, 3) or N = 4 order by score()":                 "314",
		"where id() in ('notes/2', 'notes/4') and search(Text, 'oak') order by score()":      "42",
		"where search(Text, 'oak') order by score() limit 2 offset 1":                        "04",
	} {
		jaytest.Equal(t, rql+": "+rows("from Notes "+rql[:strings.LastIndex(rql, " limit")+lastOf(rql)]+" select id(), score()"+limitOf(rql)), rql+": "+want)
		jaytest.Equal(t, rql+": "+rows("from Notes use no index "+rql[:strings.LastIndex(rql, " limit")+lastOf(rql)]+" select id(), score()"+limitOf(rql)), rql+": "+want)
	}
}

// lastOf and limitOf cut the limit off a query.
func lastOf(rql string) int {
	if i := strings.LastIndex(rql, " limit"); i >= 0 {
		return 0
	}
	return len(rql) + 1
}

func limitOf(rql string) string {
	if i := strings.LastIndex(rql, " limit"); i >= 0 {
		return rql[i:]
	}
	return ""
}

// Ensure that what has no score is refused by name.
func TestScores_Refused(t *testing.T) {
	db := filled(t)
	oak := db.Query("Notes").Where(jay.Search("Text", "oak"))
	many := strings.Builder{}
	for i := range 600 {
		fmt.Fprintf(&many, "w%d ", i)
	}
	for name, q := range map[string]jay.Query[jay.Document]{
		"without a search":   db.Query("Notes").OrderBy(jay.Score),
		"below not":          db.Query("Notes").Where(jay.Not(jay.Search("Text", "oak"))).OrderBy(jay.Score),
		"in a condition":     oak.Where(jay.Gt(jay.Score, 1)),
		"a boost of nothing": db.Query("Notes").Where(jay.Boost(jay.Search("Text", "oak"), 0)),
		"too great a boost":  db.Query("Notes").Where(jay.Boost(jay.Search("Text", "oak"), 1001)),
		"not a number":       db.Query("Notes").Where(jay.Boost(jay.Search("Text", "oak"), math.NaN())),
		"as a date":          oak.OrderBy("score() as date"),
		"too many words":     db.Query("Notes").Where(jay.Search("Text", many.String()), jay.Search("Title", many.String())).OrderBy(jay.Score),
		"a group":            oak.GroupBy(jay.Score),
	} {
		if _, err := q.All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	for _, rql := range []string{
		"from Notes where score() > 1", "from Notes where search(Text, 'a') order by score() as long", "from Notes where search(Text, 'a') order by score() + 1", "from Notes group by score() select count()",
		"from Notes where search(Text, 'a') order by score() select count()", "from Notes where search(Text, 'a') group by N order by score() select N, count()", "from Notes where search(Text, 'a') select sum(score())",
		"from Notes where boost(search(Text, 'a'), 0)", "from Notes where boost(search(Text, 'a'), -1)", "from Notes where boost(search(Text, 'a'), 'x')", "from Notes where boost(search(Text, 'a'))", "from Notes where boost(search(Text, 'a'), 1001)",
		"from Notes each N as n where search(Text, 'a') order by score() select n", "from Notes where search(Text, 'a') order by score(1)",
	} {
		q, err := db.RQL(rql, nil)
		if err == nil {
			_, err = q.All(ctx)
		}
		if !errors.Is(err, jay.ErrQuery) && !errors.Is(err, jay.ErrSyntax) {
			t.Errorf("%s: got %v", rql, err)
		}
	}
	if _, err := db.Query("Notes").Where(jay.Search("Text", "oak", jay.WithAnalyzer("english"))).OrderBy(jay.Score).NoScan().All(ctx); !errors.Is(err, jay.ErrNoIndex) {
		t.Errorf("no index: got %v", err)
	}
	page, err := oak.OrderBy(jay.Score).Limit(1).Page(ctx)
	jaytest.Must(t, err)
	raw, err := base64.RawURLEncoding.DecodeString(page.Next)
	jaytest.Must(t, err)
	for _, bad := range []string{`"s":""`, `"s":"AAAA"`, `"s":"` + strings.Repeat("/", 40) + `"`} {
		cursor := string(raw)
		at := strings.Index(cursor, `"s":"`)
		end := at + 5 + strings.Index(cursor[at+5:], `"`) + 1
		cursor = cursor[:at] + bad + cursor[end:]
		if _, err := oak.OrderBy(jay.Score).After(base64.RawURLEncoding.EncodeToString([]byte(cursor))).All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("a cursor with %s: got %v", bad, err)
		}
	}
}

// Ensure that counts and distinct rows of what is ordered by scores are those without.
func TestScores_Counts(t *testing.T) {
	db := filled(t)
	oak := db.Query("Notes").Where(jay.Search("Text", "oak")).OrderBy(jay.Score)
	n, err := oak.Count(ctx)
	jaytest.Must(t, err)
	jaytest.Equal(t, n, 4)
	found, err := oak.Exists(ctx)
	jaytest.Must(t, err)
	jaytest.Equal(t, found, true)
	q, err := db.RQL("from Notes where search(Text, 'oak') order by score() select distinct Title", nil)
	jaytest.Must(t, err)
	rows, err := q.All(ctx)
	jaytest.Must(t, err)
	jaytest.Equal(t, len(rows), 1)
}

// Ensure that the fields of an index have analyzers of their own.
func TestAnalyzers(t *testing.T) {
	quickly(t)
	db := jaytest.Memory(t, nil)
	declare := func(options map[string]string) error {
		return db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Title", "Text"}, Options: options})
	}
	for option, value := range map[string]string{"analyzer": "english, german, french", "weights": "1, 2, 3"} {
		var refused *jay.OptionError
		if err := declare(map[string]string{option: value}); !errors.As(err, &refused) || refused.Option != option || refused.Value != value {
			t.Errorf("%s %s: got %v", option, value, err)
		}
	}
	for _, weights := range []string{"0", "-1", "1001", "x", "NaN", "1,,2", ""} {
		if err := declare(map[string]string{"weights": weights}); !errors.Is(err, jay.ErrIndex) {
			t.Errorf("weights %q: got %v", weights, err)
		}
	}
	jaytest.Must(t, declare(map[string]string{"analyzer": "Keyword,English", "weights": "2.50,1"}))
	list, err := db.Indexes(ctx, "Notes")
	jaytest.Must(t, err)
	jaytest.Equal(t, fmt.Sprint(list[0].Options), "map[analyzer:keyword, english weights:2.5, 1]")
	jaytest.Put(t, db, "notes/1", `{"Title":"Falling Leaves","Text":"Falling Leaves"}`, jay.InCollection("Notes"))
	for range 2 {
		for _, c := range []struct {
			field, search, analyzer string
			want                    int64
		}{{"Title", `"Falling Leaves"`, "keyword", 1}, {"Title", "falling", "keyword", 0}, {"Text", "leaf fall", "english", 0}, {"Text", "leave fall", "english", 1}} {
			n, err := db.Query("Notes").Where(jay.Search(c.field, c.search, jay.WithAnalyzer(c.analyzer), jay.AllWords())).NoScan().Count(ctx)
			jaytest.Must(t, err)
			if n != c.want {
				t.Errorf("%v: found %d", c, n)
			}
		}
		if _, err := db.Query("Notes").Where(jay.Search("Title", "leaf", jay.WithAnalyzer("english"))).NoScan().Count(ctx); !errors.Is(err, jay.ErrNoIndex) {
			t.Errorf("another analyzer: got %v", err)
		}
		settle(t, db)
	}
	jaytest.Verify(t, db)
}

// Ensure that all pages have the frequencies of the first one, so that none repeats or misses an answer because others were written.
func TestScores_Pages(t *testing.T) {
	db := filled(t)
	q, err := db.RQL("from Notes where search(Text, 'oak acorn') order by score() select id(), score() limit 2", nil)
	jaytest.Must(t, err)
	all := answers(t, q.Limit(100))
	var got []scored
	for next, i := q, 0; ; i++ {
		page, err := next.Page(ctx)
		jaytest.Must(t, err)
		for _, row := range page.Items {
			got = append(got, decoded(t, row))
		}
		if page.Next == "" {
			break
		}
		next = q.After(page.Next)
		for j := range 7 { // other frequencies, and other lengths on the average
			jaytest.Put(t, db, fmt.Sprintf("notes/x%d-%d", i, j), `{"Text":"no such words are to be found in this text"}`, jay.InCollection("Notes"))
		}
		if i%2 == 0 {
			settle(t, db)
		}
	}
	if !slices.Equal(got, all) {
		t.Errorf("got %v, want %v", got, all)
	}
}

// Ensure that a query without an index of its words counts them in all documents, unless that is refused.
func TestScores_NoScan(t *testing.T) {
	db := filled(t)
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Fields: []string{"N"}}))
	q := db.Query("Notes").Where(jay.Search("Text", "oak", jay.WithAnalyzer("english")), jay.Lt("N", 3)).OrderBy(jay.Score)
	jaytest.Equal(t, ids2(t, q), "102")
	if _, err := q.NoScan().All(ctx); !errors.Is(err, jay.ErrNoIndex) {
		t.Errorf("got %v", err)
	}
	x, err := q.Explain(ctx)
	jaytest.Must(t, err)
	if !strings.Contains(fmt.Sprint(x), "score by the words of all documents, which are read first") {
		t.Errorf("got %v", x)
	}
}

// Ensure that searches of two indexes are scored together, by the frequencies of each.
func TestScores_TwoIndexes(t *testing.T) {
	db := filled(t)
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Stems", Kind: "text", Fields: []string{"Text"}, Options: map[string]string{"analyzer": "english"}}))
	settle(t, db)
	jaytest.Put(t, db, "notes/6", `{"Text":"oak oak oak oak oak oak tree"}`, jay.InCollection("Notes"))
	for _, rql := range []string{"search(Text, 'oak') and boost(search(Text, 'acorns', 'english') or search(Text, 'tree'), 9)", "search(Text, 'oak') and search(Text, 'acorns tree', 'english')", "search(Text, 'oak') or search(Text, 'acorns tree', 'english')"} {
		indexed, err := db.RQL("from Notes where "+rql+" order by score() select id(), score()", nil)
		jaytest.Must(t, err)
		scanned, err := db.RQL("from Notes use no index where "+rql+" order by score() select id(), score()", nil)
		jaytest.Must(t, err)
		got, want := answers(t, indexed.NoScan()), answers(t, scanned)
		if len(got) < 2 || !slices.Equal(got, want) {
			t.Errorf("%s: got %v, want %v", rql, got, want)
		}
		x, err := indexed.Explain(ctx)
		jaytest.Must(t, err)
		if !strings.Contains(fmt.Sprint(x), "score by the words of index") {
			t.Errorf("got %v", x)
		}
	}
}

// Ensure that tags declare an index of words, with an analyzer and a weight for each field, and that invalid ones are refused.
func TestAnalyzers_Tags(t *testing.T) {
	quickly(t)
	db := jaytest.Memory(t, nil)
	type inner struct {
		Note string `jay:"text=Other"`
	}
	type Note struct {
		ID    string
		Title string `jay:"index,text,weight=3"`
		Text  string `jay:"text,analyzer=english"`
		Inner []inner
	}
	notes, err := jay.CollectionOf[Note](db)
	jaytest.Must(t, err)
	jaytest.Must(t, notes.EnsureIndexes(ctx))
	list, err := db.Indexes(ctx, "Notes")
	jaytest.Must(t, err)
	var got []string
	for _, ix := range list {
		got = append(got, fmt.Sprint(ix.Name, ix.Kind, ix.Fields, ix.Options))
	}
	slices.Sort(got)
	jaytest.Equal(t, strings.Join(got, "; "), "Othertext[Inner.Note] map[]; Title[Title] map[]; texttext[Title Text] map[analyzer:standard, english weights:3, 1]")
	_, err = notes.Insert(ctx, &Note{Title: "Oak", Text: "Falling leaves", Inner: []inner{{"acorn"}}})
	jaytest.Must(t, err)
	for _, c := range []jay.Condition{jay.Search("Title", "oak"), jay.Search("Text", "fall", jay.WithAnalyzer("english")), jay.Search("Inner.Note", "acorn")} {
		n, err := notes.Query().Where(c).NoScan().Count(ctx)
		jaytest.Must(t, err)
		jaytest.Equal(t, n, 1)
	}
	for name, try := range map[string]func() error{
		"an unknown analyzer": declare[struct {
			ID   string
			Text string `jay:"text,analyzer=klingon"`
		}](db),
		"a weight of nothing": declare[struct {
			ID   string
			Text string `jay:"text,weight=0"`
		}](db),
		"an analyzer of an ordered index": declare[struct {
			ID   string
			Text string `jay:"index,analyzer=english"`
		}](db),
		"words of a time": declare[struct {
			ID string
			At time.Time `jay:"text"`
		}](db),
		"descending words": declare[struct {
			ID   string
			Text string `jay:"text,desc"`
		}](db),
	} {
		if err := try(); !errors.Is(err, jay.ErrIndex) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func declare[T any](db *jay.DB) func() error {
	return func() error {
		_, err := jay.CollectionOf[T](db, jay.Named("Others"))
		return err
	}
}
