package vocabulary_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/fulltext"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/query"
)

var ctx = context.Background()

// quickly makes parts small and sweeps frequent, and leaves settling to the test, which must not run beside others.
func quickly(t *testing.T) {
	t.Cleanup(fulltext.Quickly())
	t.Cleanup(checks.NoSettler())
}

// distance is the optimal string alignment distance, by the whole table.
func distance(a, b []rune) int {
	d := make([][]int, len(a)+1)
	for i := range d {
		d[i] = make([]int, len(b)+1)
		d[i][0] = i
	}
	for j := range d[0] {
		d[0][j] = j
	}
	for i := 1; i <= len(a); i++ {
		for j := 1; j <= len(b); j++ {
			same := 1
			if a[i-1] == b[j-1] {
				same = 0
			}
			d[i][j] = min(d[i-1][j]+1, d[i][j-1]+1, d[i-1][j-1]+same)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				d[i][j] = min(d[i][j], d[i-2][j-2]+1)
			}
		}
	}
	return d[len(a)][len(b)]
}

// notes are documents as the naive answers see them: the words of each.
type notes map[string][]string

// terms returns how many documents have each word.
func (n notes) terms() map[string]int64 {
	count := make(map[string]int64)
	for _, words := range n {
		for _, w := range slices.Compact(slices.Sorted(slices.Values(words))) {
			count[w]++
		}
	}
	return count
}

// suggest returns what is suggested for a word.
func (n notes) suggest(word string, complete bool, o query.SuggestOptions) []query.Suggestion {
	all := []query.Suggestion{}
	for term, documents := range n.terms() {
		s := query.Suggestion{Word: term, Documents: documents}
		if complete {
			if strings.HasPrefix(term, word) {
				all = append(all, s)
			}
			continue
		}
		a, b := []rune(word), []rune(term)
		s.Distance = distance(a, b)
		if s.Distance > 0 && s.Distance <= 2 && 1-float64(s.Distance)/float64(max(len(a), len(b))) >= cmp.Or(o.Accuracy, 0.5) {
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y query.Suggestion) int {
		frequency := cmp.Compare(y.Documents, x.Documents)
		if o.Alphabetic {
			frequency = 0
		}
		return cmp.Or(cmp.Compare(x.Distance, y.Distance), frequency, cmp.Compare(x.Word, y.Word))
	})
	return all[:min(len(all), cmp.Or(o.Size, 15))]
}

// list returns the terms with a prefix.
func (n notes) list(prefix string) []jay.IndexTerm {
	list := []jay.IndexTerm{}
	for term, documents := range n.terms() {
		if strings.HasPrefix(term, prefix) {
			list = append(list, jay.IndexTerm{Text: term, Documents: documents})
		}
	}
	slices.SortFunc(list, func(a, b jay.IndexTerm) int { return strings.Compare(a.Text, b.Text) })
	return list
}

// asker is a database or a transaction.
type asker interface {
	Query(collection string) jay.Query[jay.Document]
}

// check compares suggestions with naive ones.
func (n notes) check(t *testing.T, in asker, r *rand.Rand, word func() string) {
	t.Helper()
	for range 3 {
		w, complete := word(), r.IntN(2) == 0
		if complete {
			w = w[:firstSize(w)]
		}
		o := query.SuggestOptions{Size: r.IntN(4), Accuracy: []float64{0, 0.6, 1}[r.IntN(3)], Alphabetic: r.IntN(3) == 0}
		ask := in.Query("Notes").Suggest
		if complete {
			ask = in.Query("Notes").Complete
		}
		got, err := ask(ctx, "Text", w, o)
		jaytest.Must(t, err)
		if want := n.suggest(w, complete, o); !slices.Equal(got, want) {
			t.Fatalf("%q, %v, %+v of %v:\n got %v\nwant %v", w, complete, o, n, got, want)
		}
	}
}

func firstSize(s string) int {
	_, size := utf8.DecodeRuneInString(s)
	return size
}

// listed compares the terms of the index with naive ones, a few at a time.
func (n notes) listed(t *testing.T, db *jay.DB, prefix string, limit int) {
	t.Helper()
	got := []jay.IndexTerm{}
	for o := (jay.IndexTermList{Field: "Text", Prefix: prefix, Limit: limit}); ; {
		some, err := jay.IndexOf(db, "Notes", "Words").Terms(ctx, o)
		jaytest.Must(t, err)
		got = append(got, some...)
		if len(some) < limit {
			break
		}
		o.After = some[limit-1].Text
	}
	if want := n.list(prefix); !slices.Equal(got, want) {
		t.Fatalf("%q of %v:\n got %v\nwant %v", prefix, n, got, want)
	}
}

// Ensure that terms, completions and suggestions are those of a plain look at all documents, after each step of random histories: with tails of each
// length, documents that changed, sweeps, and what a transaction has written.
func TestVocabulary_Histories(t *testing.T) {
	quickly(t)
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 171))
		db := jaytest.Memory(t, nil)
		jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Title", "Text"}}))
		word := func() string {
			letters := []rune("aböé")
			w := make([]rune, 1+r.IntN(5))
			for i := range w {
				w[i] = letters[r.IntN(len(letters))]
			}
			return string(w)
		}
		write := func(n notes, id string, put func(id string, body string)) {
			words := make([]string, r.IntN(8))
			for i := range words {
				words[i] = word()
			}
			raw, err := json.Marshal(map[string]string{"Text": strings.Join(words, " "), "Title": "other words"})
			jaytest.Must(t, err)
			put(id, string(raw))
			n[id] = words
		}
		all := make(notes)
		for range 60 {
			id := fmt.Sprintf("notes/%d", r.IntN(20))
			switch {
			case r.IntN(6) == 0:
				if r.IntN(2) == 0 {
					jaytest.Must(t, checks.Settle(db))
				} else {
					_, err := checks.SettleSome(db)
					jaytest.Must(t, err)
				}
			case all[id] != nil && r.IntN(3) == 0:
				jaytest.Must(t, db.Delete(ctx, id))
				delete(all, id)
			default:
				write(all, id, func(id, body string) { jaytest.Put(t, db, id, body, jay.InCollection("Notes")) })
			}
			all.check(t, db, r, word)
			all.listed(t, db, []string{"", "a", "ö", "zz"}[r.IntN(4)], 1+r.IntN(5))
		}
		enough := errors.New("enough")
		if err := db.Update(ctx, func(tx *jay.Tx) error {
			own := make(notes)
			for id, words := range all {
				own[id] = words
			}
			for range 8 {
				write(own, fmt.Sprintf("notes/%d", r.IntN(25)), func(id, body string) {
					_, err := tx.Put(ctx, id, []byte(body), jay.InCollection("Notes"))
					jaytest.Must(t, err)
				})
				own.check(t, tx, r, word)
			}
			return enough
		}); !errors.Is(err, enough) {
			t.Fatal(err)
		}
	}
}

// Ensure that words of documents that have expired are not suggested, from the tail and from blocks.
func TestVocabulary_Expired(t *testing.T) {
	quickly(t)
	for _, settled := range []bool{false, true} {
		clock := jaytest.NewClock()
		db := jaytest.Memory(t, &jay.Options{Now: clock.Now, ExactExpiry: true})
		jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}}))
		jaytest.Put(t, db, "notes/1", `{"Text":"acorn oaks"}`, jay.InCollection("Notes"))
		jaytest.Put(t, db, "notes/2", `{"Text":"acorn acorns"}`, jay.InCollection("Notes"), jay.ExpiresAt(clock.Now().Add(time.Minute)))
		if settled {
			jaytest.Must(t, checks.Settle(db))
			jaytest.Must(t, db.Flush(ctx))
		}
		says := func() string {
			near, err := db.Query("Notes").Suggest(ctx, "Text", "acrn", jay.SuggestOptions{})
			jaytest.Must(t, err)
			whole, err := db.Query("Notes").Complete(ctx, "Text", "ac", jay.SuggestOptions{})
			jaytest.Must(t, err)
			return fmt.Sprint(near, whole)
		}
		jaytest.Equal(t, says(), "[{acorn 2 1} {acorns 1 2}] [{acorn 2 0} {acorns 1 0}]")
		clock.Advance(time.Hour)
		jaytest.Equal(t, says(), "[{acorn 1 1}] [{acorn 1 0}]")
	}
}

// Ensure that what cannot be answered is refused, and says why.
func TestVocabulary_Refused(t *testing.T) {
	t.Parallel()
	db := jaytest.Memory(t, nil)
	jaytest.Put(t, db, "notes/1", `{"Text":"oak leaves","Code":"a1"}`, jay.InCollection("Notes"))
	if _, err := db.Query("Notes").Suggest(ctx, "Text", "oka", jay.SuggestOptions{}); !errors.Is(err, jay.ErrNoIndex) {
		t.Errorf("without an index: %v", err)
	}
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}}))
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Parts", Kind: "text", Fields: []string{"Code"}, Options: map[string]string{"analyzer": "ngram"}}))
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Some", Kind: "text", Fields: []string{"Title"}, Where: "Code = 'a1'"}))
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Ordered", Fields: []string{"Text"}}))
	q := db.Query("Notes")
	for name, test := range map[string]struct {
		q     jay.Query[jay.Document]
		field string
		word  string
		want  error
	}{
		"another field":   {q, "Code.Name", "oka", jay.ErrNoIndex},
		"a partial index": {q, "Title", "oka", jay.ErrNoIndex},
		"another index":   {q.UseIndex("Parts"), "Text", "oka", jay.ErrNoIndex},
		"no index":        {q.NoIndex(), "Text", "oka", jay.ErrQuery},
		"a condition":     {q.Where(jay.Eq("Code", "a1")), "Text", "oka", jay.ErrQuery},
		"an order":        {q.OrderBy("Text"), "Text", "oka", jay.ErrQuery},
		"a limit":         {q.Limit(3), "Text", "oka", jay.ErrQuery},
		"two words":       {q, "Text", "oka laeves", jay.ErrQuery},
		"parts of words":  {q, "Code", "a123", jay.ErrQuery},
		"a long word":     {q, "Text", strings.Repeat("a", 200), jay.ErrQuery},
		"not a field":     {q, "id()", "oka", jay.ErrQuery},
		"all collections": {db.Query(""), "Text", "oka", jay.ErrNoIndex},
	} {
		if _, err := test.q.Suggest(ctx, test.field, test.word, jay.SuggestOptions{}); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := q.Suggest(ctx, "Text", "oka", jay.SuggestOptions{Size: 5000}); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("many: %v", err)
	}
	for name, test := range map[string]struct {
		index string
		list  jay.IndexTermList
		want  error
	}{
		"no index":         {"None", jay.IndexTermList{}, jay.ErrIndex},
		"an ordered index": {"Ordered", jay.IndexTermList{}, jay.ErrIndex},
		"another field":    {"Words", jay.IndexTermList{Field: "Code"}, jay.ErrIndex},
		"a limit":          {"Words", jay.IndexTermList{Limit: 10_001}, jay.ErrUsage},
	} {
		if _, err := jay.IndexOf(db, "Notes", test.index).Terms(ctx, test.list); !errors.Is(err, test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Ensure that the language and the case of an index are heeded, that words are suggested by RQL in RavenDB's shape, and that Explain says how.
func TestVocabulary_RQL(t *testing.T) {
	t.Parallel()
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Title", "Text"}, Options: map[string]string{"analyzer": "standard, english"}}))
	for i, text := range []string{"Oak leaves", "Oaks and ASHES", "oat"} {
		jaytest.Put(t, db, fmt.Sprintf("notes/%d", i), fmt.Sprintf(`{"Title":%q,"Text":[%q]}`, text, text), jay.InCollection("Notes"))
	}
	for text, want := range map[string]string{
		"from Notes select suggest(Title, 'OAL')":                       `{"Name":"Title","Suggestions":["oak","oat","oaks"],"Documents":[1,1,1],"Distances":[1,1,2]}`,
		"from Notes select suggest(Text, $words, $options) as T":        `{"Name":"T","Suggestions":["oak","ash"],"Documents":[2,1],"Distances":[1,1]}`,
		"from Notes select complete(Title, 'O'), suggest(Title, 'the')": `{"Name":"Title","Suggestions":["oak","oaks","oat"],"Documents":[1,1,1],"Distances":[0,0,0]}{"Name":"Title","Suggestions":[],"Documents":[],"Distances":[]}`,
		"from Notes use index 'Words' select suggest(Text, 'the')":      `{"Name":"Text","Suggestions":[],"Documents":[],"Distances":[]}`,
	} {
		params := map[string]any{}
		if strings.Contains(text, "$") {
			params = map[string]any{"words": []string{"oka", "asj"}, "options": map[string]any{"pageSize": 1, "sortMode": "Popularity", "distance": "Levenshtein", "accuracy": 0.5}}
		}
		q, err := db.RQL(text, params)
		jaytest.Must(t, err)
		got := ""
		for row, err := range q.Iter(ctx) {
			jaytest.Must(t, err)
			got += string(row.JSON)
		}
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", text, got, want)
		}
		n, err := q.Count(ctx)
		jaytest.Must(t, err)
		e, err := q.Explain(ctx)
		jaytest.Must(t, err)
		if n != int64(strings.Count(want, "{")) || !strings.Contains(strings.Join(e.Plan, " "), `in index "Words"`) || e.Documents != 0 {
			t.Errorf("%s: %d results, %+v", text, n, e)
		}
	}
}

// Ensure that a suggestion among very many words takes bounded work, and that what takes more is refused.
func TestVocabulary_Hostile(t *testing.T) {
	if testing.Short() {
		t.Skip("makes 200,000 words")
	}
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}}))
	all := make(notes)
	for i := range 200_000 {
		all["notes/1"] = append(all["notes/1"], fmt.Sprintf("w%d", i))
	}
	jaytest.Put(t, db, "notes/1", fmt.Sprintf(`{"Text":%q}`, strings.Join(all["notes/1"], " ")), jay.InCollection("Notes"))
	want := all.suggest("w12345x", false, query.SuggestOptions{Size: 1000})
	for range 2 {
		found, err := db.Query("Notes").Suggest(ctx, "Text", "w12345x", jay.SuggestOptions{Size: 1000})
		jaytest.Must(t, err)
		if len(found) < 100 || !slices.Equal(found, want) {
			t.Errorf("%d suggestions, want %d", len(found), len(want))
		}
		e, err := explain(db, "from Notes select suggest(Text, 'w12345x')")
		jaytest.Must(t, err)
		if e.Keys > 40_000 {
			t.Errorf("%d keys were examined for a suggestion", e.Keys)
		}
		_, err = db.Query("Notes").Complete(ctx, "Text", "w", jay.SuggestOptions{})
		if limit := (*query.LimitError)(nil); !errors.As(err, &limit) || !errors.Is(err, jay.ErrQuery) {
			t.Errorf("200,000 words to complete: %v", err)
		}
		jaytest.Must(t, checks.Settle(db))
	}
}

func explain(db *jay.DB, text string) (e jay.Explanation, err error) {
	q, err := db.RQL(text, nil)
	if err != nil {
		return e, err
	}
	return q.Explain(ctx)
}
