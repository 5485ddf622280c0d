package score_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// rql returns a query.
func rql(t testing.TB, in interface {
	RQL(text string, params map[string]any) (jay.Query[jay.Row], error)
}, text string) jay.Query[jay.Row] {
	t.Helper()
	q, err := in.RQL(text, nil)
	jaytest.Must(t, err)
	return q
}

// explained checks that explanations add up to the scores of answers, name what is found, and that highlights show it.
func (a asked) explained(t *testing.T, db *jay.DB, notes map[string]note, all []scored) {
	t.Helper()
	i := 0
	for row, err := range rql(t, db, "from Notes where "+a.rql+" order by score() select id(), score() include explanations()").NoScan().Iter(ctx) {
		jaytest.Must(t, err)
		e := row.Explanation
		if e == nil || row.ID != all[i].ID || row.Document != nil || math.Abs(e.Score-all[i].Score) > 1e-9 {
			t.Fatalf("%s: %s has the score %v and is explained by %+v", a.rql, row.ID, all[i], e)
		}
		sum := 0.0
		for _, p := range e.Parts {
			if strings.HasSuffix(p.Condition, ", and)") && len(p.Words) < 2 {
				t.Fatalf("%s: %s is explained by %+v, which is not true", a.rql, row.ID, p)
			}
			words := 0.0
			for _, w := range p.Words {
				clause := strings.Trim(w.Text, `"`)
				seen := wordsOf(notes[row.ID].Text)
				if p.Field == "Title" {
					seen = wordsOf(notes[row.ID].Title)
				}
				if n := count(seen, clause); n != w.Count || n == 0 {
					t.Fatalf("%s: %s has %q %d times, and not %d times", a.rql, row.ID, w.Text, n, w.Count)
				}
				if product := p.Boost * w.Boost * p.Weight * w.Rarity * w.Frequency; math.Abs(product-w.Score) > 1e-9 || w.Documents > p.Documents || w.Documents < 1 {
					t.Fatalf("%s: %+v in %+v", a.rql, w, p)
				}
				words += w.Score
			}
			if math.Abs(words-p.Score) > 1e-9 {
				t.Fatalf("%s: words of %v, and a part of %v", a.rql, words, p.Score)
			}
			sum += p.Score
		}
		if math.Abs(sum-e.Score) > 1e-9 {
			t.Fatalf("%s: parts of %v, and a score of %v", a.rql, sum, e.Score)
		}
		i++
	}
	if i != len(all) {
		t.Fatalf("%s: %d answers are explained, of %d", a.rql, i, len(all))
	}
}

// articles stores some articles.
func articles(t testing.TB, db *jay.DB) {
	t.Helper()
	for id, body := range map[string]string{
		"articles/1": `{"Title":"Oaks <old>","Text":["An oak stands here.","No oak stands there."],"Author":"authors/1"}`,
		"articles/2": `{"Title":"Ashes","Text":"The ash stands near the oak."}`,
		"articles/3": `{"Title":"Oaks","Text":5}`,
		"authors/1":  `{"Name":"Ada"}`,
	} {
		collection := "Articles"
		if strings.HasPrefix(id, "authors") {
			collection = "Authors"
		}
		jaytest.Put(t, db, id, body, jay.InCollection(collection))
	}
}

// lines returns the answers of a query with their highlights, one a line.
func lines(t testing.TB, q jay.Query[jay.Row]) string {
	t.Helper()
	var out []string
	for row, err := range q.Iter(ctx) {
		jaytest.Must(t, err)
		out = append(out, fmt.Sprintf("%s %v", row.ID, row.Highlights))
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}

// Ensure that highlights are of each field that is asked for, with and without an index, of whole documents and of columns, sorted or as they come, and
// of what a transaction has written itself.
func TestHighlights(t *testing.T) {
	quickly(t)
	db := jaytest.Memory(t, nil)
	articles(t, db)
	const where = "from Articles where search(Text, 'oak') or search(Title, 'oaks -beech') "
	const want = `articles/1 map[Text:[An <b>oak</b> stands here. No <b>oak</b> stands there.] Title:[<b>Oaks</b> &lt;old&gt;]]
articles/2 map[Text:[stands near the <b>oak</b>.] Title:[]]
articles/3 map[Text:[] Title:[<b>Oaks</b>]]`
	const included = " include highlight(Title, 20, 1), highlight(Text, 20, 2)"
	check := func(t *testing.T, in interface {
		RQL(text string, params map[string]any) (jay.Query[jay.Row], error)
	}, want string) {
		t.Helper()
		for _, rest := range []string{"", "order by Title", "order by score()", "order by id() desc", "select Title", "select distinct Title, id()", "order by Title select Author", "order by Title select score(), id()"} {
			if got := lines(t, rql(t, in, where+rest+included)); got != want {
				t.Errorf("%s:\n got %s\nwant %s", rest, got, want)
			}
		}
	}
	check(t, db, want)
	jaytest.Must(t, db.EnsureIndex(ctx, "Articles", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Title", "Text"}}))
	jaytest.Must(t, db.EnsureIndex(ctx, "Articles", jay.Index{Fields: []string{"Title"}}))
	check(t, db, want)
	settle(t, db)
	check(t, db, want)
	rolledBack := errors.New("enough")
	if err := db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "articles/2", []byte(`{"Title":"Oaks & ashes","Text":""}`), jay.InCollection("Articles"))
		jaytest.Must(t, err)
		check(t, tx, strings.Replace(want, "articles/2 map[Text:[stands near the <b>oak</b>.] Title:[]]", "articles/2 map[Text:[] Title:[<b>Oaks</b> &amp; ashes]]", 1))
		return rolledBack
	}); !errors.Is(err, rolledBack) {
		t.Error(err)
	}
}

// Ensure that rows bring included documents beside highlights, each page its own, that their JSON has them, and that Count and Exists need none.
func TestHighlights_Rows(t *testing.T) {
	t.Parallel()
	db := jaytest.Memory(t, nil)
	articles(t, db)
	q := db.Query("Articles").Where(jay.Search("Text", "oak")).OrderBy("id()").
		Highlight(jay.Highlight{Field: "Text", Length: 50, PreTags: []string{"*"}, PostTags: []string{"*"}, Plain: true}).ExplainScores().Include("Author")
	page, err := q.Rows().Limit(1).Page(ctx)
	jaytest.Must(t, err)
	row := page.Items[0]
	if len(row.Included) != 1 || row.Document == nil || row.Explanation == nil || !slices.Equal(row.Highlights["Text"], []string{"An *oak* stands here."}) {
		t.Errorf("the first page has %+v", row)
	}
	raw, err := json.Marshal(row)
	jaytest.Must(t, err)
	if !json.Valid(raw) || !strings.Contains(string(raw), `,"@highlights":{"Text":["An *oak* stands here."]},"@explanation":{"score":`) {
		t.Errorf("its JSON is %s", raw)
	}
	second, err := q.Rows().Limit(1).After(page.Next).Page(ctx)
	jaytest.Must(t, err)
	if got := second.Items[0].Highlights["Text"]; !slices.Equal(got, []string{"The ash stands near the *oak*."}) {
		t.Errorf("the second page has %q", got)
	}
	if n, err := q.Count(ctx); n != 2 || err != nil {
		t.Errorf("Count: %d, %v", n, err)
	}
	if found, err := q.Exists(ctx); !found || err != nil {
		t.Errorf("Exists: %v, %v", found, err)
	}
	empty := jay.Select[json.RawMessage](q, "Nothing").Rows()
	for row, err := range empty.Iter(ctx) {
		jaytest.Must(t, err)
		if raw, err := row.MarshalJSON(); err != nil || !json.Valid(raw) || len(row.Highlights) != 1 {
			t.Errorf("a row without columns is %s, %v", raw, err)
		}
	}
}

// Ensure that JavaScript of documents goes with highlights.
func TestHighlights_Script(t *testing.T) {
	t.Parallel()
	db := jaytest.Memory(t, nil)
	articles(t, db)
	got := lines(t, rql(t, db, "from Articles as a where search(a.Text, 'ash') select { Big: a.Title.toUpperCase() } include highlight(a.Text, 20, 1), explanations()"))
	if want := "articles/2 map[Text:[The <b>ash</b> stands near]]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Ensure that highlights and explanations are refused where there can be none.
func TestHighlights_Refused(t *testing.T) {
	t.Parallel()
	db := jaytest.Memory(t, nil)
	articles(t, db)
	for text, part := range map[string]string{
		"from Articles where search(Title, 'oak') include highlight(Text)":                                     "the query does not search Text",
		"from Articles where not search(Text, 'oak') include highlight(Text)":                                  "the query does not search Text",
		"from Articles group by Title where search(Text, 'oak') select key(), count() include highlight(Text)": "include is of documents",
		"from Articles include explanations()":                                                                 "score() is of searches",
		"from Articles where search(Text, 'oak') select count() include explanations()":                        "include is of documents",
	} {
		q, err := db.RQL(text, nil)
		if err == nil {
			_, err = q.All(ctx)
		}
		if err == nil || !strings.Contains(err.Error(), part) || !errors.Is(err, jay.ErrQuery) && !errors.Is(err, jay.ErrSyntax) {
			t.Errorf("%s: %v", text, err)
		}
	}
	plain := db.Query("Articles").Where(jay.Search("Text", "oak"))
	for name, q := range map[string]jay.Query[jay.Document]{
		"no place":          plain.Highlight(jay.Highlight{Field: "Text"}),
		"no place, either":  plain.ExplainScores(),
		"short":             plain.Highlight(jay.Highlight{Field: "Text", Length: 5}),
		"not a field":       plain.Highlight(jay.Highlight{Field: "id()"}),
		"twice":             plain.Highlight(jay.Highlight{Field: "Text"}, jay.Highlight{Field: "Text"}),
		"tags without ends": plain.Highlight(jay.Highlight{Field: "Text", PreTags: []string{"<i>"}}),
	} {
		if _, err := q.All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := jay.Select[string](plain.Rows().Highlight(jay.Highlight{Field: "Text"}), "Title").All(ctx); !errors.Is(err, jay.ErrQuery) {
		t.Errorf("strings with highlights: %v", err)
	}
}
