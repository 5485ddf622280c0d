package score_test

import (
	"cmp"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/text"
)

// like returns the words that tell most of a note, as a test computes it from all notes.
func like(notes map[string]note, of string, o jay.MoreLikeThisOptions) []string {
	documents := int64(0)
	found := make(map[string]int64)
	for _, n := range notes {
		words := wordsOf(n.Text)
		if len(words) > 0 {
			documents++
		}
		for _, w := range slices.Compact(slices.Sorted(slices.Values(words))) {
			found[w]++
		}
	}
	var all []string
	count := make(map[string]int)
	for _, w := range wordsOf(notes[of].Text) {
		if count[w]++; count[w] == 1 {
			all = append(all, w)
		}
	}
	slices.SortStableFunc(all, func(a, b string) int { return count[b] - count[a] })
	weight := func(w string) float64 { return float64(count[w]) * text.Rarity(documents, found[w]) }
	all = slices.DeleteFunc(all, func(w string) bool {
		return count[w] < cmp.Or(o.MinimumTermFrequency, 2) || found[w] < int64(cmp.Or(o.MinimumDocumentFrequency, 5)) ||
			o.MaximumDocumentFrequency > 0 && found[w] > int64(o.MaximumDocumentFrequency) || len(w) < o.MinimumWordLength
	})
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(weight(b), weight(a)) })
	return all[:min(len(all), cmp.Or(o.MaximumQueryTerms, 25))]
}

// Ensure that documents like another one are those that a search for its most telling words finds, by scores and pages, in random histories, with an
// index and without, and with what a transaction has written.
func TestMoreLikeThis_Histories(t *testing.T) {
	quickly(t)
	for seed := range uint64(3) {
		r := rand.New(rand.NewPCG(seed, 172))
		db := jaytest.Memory(t, nil)
		notes := make(map[string]note)
		write := func(id string) note {
			var words []string
			for range r.IntN(40) {
				words = append(words, fmt.Sprintf("w%d", min(r.IntN(25), r.IntN(25))))
			}
			return note{Text: strings.Join(words, " ")}
		}
		for i := range 30 {
			id := fmt.Sprintf("notes/%d", i)
			notes[id] = write(id)
			jaytest.Put(t, db, id, string(notes[id].body()), jay.InCollection("Notes"))
		}
		check := func(in interface {
			Query(collection string) jay.Query[jay.Document]
		}, of string, o jay.MoreLikeThisOptions, want []string) {
			t.Helper()
			columns := []string{"id()", "score()"}
			asked := jay.Select[scored](in.Query("Notes").Where(jay.MoreLikeThis(of, o)).OrderBy(jay.Score), columns...)
			var searched []*scored
			if len(want) > 0 {
				var err error
				searched, err = jay.Select[scored](in.Query("Notes").Where(jay.Search("Text", strings.Join(want, " ")), jay.Ne("id()", of)).OrderBy(jay.Score), columns...).All(ctx)
				jaytest.Must(t, err)
			}
			found, err := asked.All(ctx)
			jaytest.Must(t, err)
			if !slices.EqualFunc(found, searched, func(a, b *scored) bool { return a.ID == b.ID && a.Score-b.Score < 1e-9 && b.Score-a.Score < 1e-9 }) {
				t.Fatalf("like %s by %+v, for %q: %d answers, want %d", of, o, want, len(found), len(searched))
			}
		}
		options := func() jay.MoreLikeThisOptions {
			return jay.MoreLikeThisOptions{Fields: []string{"Text"}, MinimumTermFrequency: r.IntN(4), MinimumDocumentFrequency: r.IntN(6), MaximumDocumentFrequency: []int{0, 10}[r.IntN(2)], MaximumQueryTerms: r.IntN(6), MinimumWordLength: 2 + r.IntN(2)}
		}
		for range 4 {
			o, of := options(), fmt.Sprintf("notes/%d", r.IntN(30))
			check(db, of, o, like(notes, of, o))
		}
		jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}}))
		for range 30 {
			id := fmt.Sprintf("notes/%d", r.IntN(30))
			notes[id] = write(id)
			jaytest.Put(t, db, id, string(notes[id].body()), jay.InCollection("Notes"))
			if r.IntN(3) == 0 {
				settle(t, db)
			}
			// The index counts documents that have changed until a sweep, so an index that is made anew is compared.
			if r.IntN(5) == 0 {
				jaytest.Must(t, db.DropIndex(ctx, "Notes", "Words"))
				jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Text"}}))
				o, of := options(), fmt.Sprintf("notes/%d", r.IntN(30))
				check(db, of, o, like(notes, of, o))
				o.Fields = nil
				check(db, of, o, like(notes, of, o))
			}
		}
	}
}

// Ensure that the pages of a query have the words that it began with, that a transaction finds words of what it has written, that words are shown where
// they are, and that stop words, given documents and boosts are heeded.
func TestMoreLikeThis(t *testing.T) {
	t.Parallel()
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Notes", jay.Index{Name: "Words", Kind: "text", Fields: []string{"Title", "Text"}, Options: map[string]string{"analyzer": "keyword, english"}}))
	texts := []string{"Oaks and acorns, an oak's acorns", "acorns of an oak", "oaks", "the jay", "acorns", "an ash"}
	for i, one := range texts {
		jaytest.Put(t, db, fmt.Sprintf("notes/%d", i), fmt.Sprintf(`{"Title":"a-b \"c\"* %d","Text":%q}`, i%5, one), jay.InCollection("Notes"))
	}
	jaytest.Put(t, db, "stops/1", `{"StopWords":["Acorns"]}`, jay.InCollection("Stops"))
	ids := func(q jay.Query[jay.Row]) string {
		t.Helper()
		var list []string
		for row, err := range q.Iter(ctx) {
			jaytest.Must(t, err)
			list = append(list, strings.TrimPrefix(row.Document.ID(), "notes/"))
		}
		return strings.Join(list, " ")
	}
	for where, want := range map[string]string{
		`moreLikeThis(id() = 'notes/0', '{"MinimumDocumentFrequency":1,"Fields":["Text"]}')`:                                     "1 4 2",
		`moreLikeThis(id() = 'NOTES/0', '{"minimumDocumentFrequency":0,"minimumTermFrequency":0}')`:                              "1 5 4 2",
		`moreLikeThis(id() = 'notes/0', '{"MinimumDocumentFrequency":1,"MaximumQueryTerms":1,"StopWordsDocumentId":"stops/1"}')`: "2 1",
		`moreLikeThis(id() = 'notes/3', '{"MinimumTermFrequency":1,"MinimumDocumentFrequency":2,"Fields":["Text"]}')`:            "",
		`moreLikeThis(id() = 'notes/3')`:                                       "",
		`moreLikeThis('{"Text":"jay jay"}', '{"MinimumDocumentFrequency":1}')`: "3",
		`not moreLikeThis('{"Text":"jay jay oak oak acorn acorn"}', '{"MinimumDocumentFrequency":1}') and search(Text, 'ash', 'english')`:                 "5",
		`boost(moreLikeThis('{"Text":"jay jay"}', '{"MinimumDocumentFrequency":1,"Boost":true,"BoostFactor":2}'), 3) or search(Text, 'ashes', 'english')`: "3 5",
	} {
		q := rql(t, db, "from Notes where "+where+" order by score()")
		if got := ids(q); got != want {
			t.Errorf("%s: got %q, want %q", where, got, want)
		}
		if n, err := q.Count(ctx); err != nil || int(n) != len(strings.Fields(want)) {
			t.Errorf("%s: %d are counted, %v", where, n, err)
		}
	}

	q := rql(t, db, `from Notes where moreLikeThis(id() = 'notes/0', '{"MinimumDocumentFrequency":1,"Fields":["Text"]}') order by score()`).Limit(1)
	page, err := q.Page(ctx)
	jaytest.Must(t, err)
	jaytest.Put(t, db, "notes/0", `{"Text":"jay jay"}`, jay.InCollection("Notes"))
	second, err := q.After(page.Next).Page(ctx)
	jaytest.Must(t, err)
	if got := page.Items[0].Document.ID() + " " + second.Items[0].Document.ID(); got != "notes/1 notes/4" {
		t.Errorf("pages have %s", got)
	}
	if page, err := q.Page(ctx); err != nil || page.Items[0].Document.ID() != "notes/3" {
		t.Errorf("a page of what is like the new text: %v", err)
	}
	rolledBack := errors.New("enough")
	if err := db.Update(ctx, func(tx *jay.Tx) error {
		_, err := tx.Put(ctx, "notes/0", []byte(`{"Text":"ashes ash"}`), jay.InCollection("Notes"))
		jaytest.Must(t, err)
		row, err := rql(t, tx, `from Notes where moreLikeThis(id() = 'notes/0', '{"MinimumDocumentFrequency":1}') include highlight(Text), explanations()`).First(ctx)
		jaytest.Must(t, err)
		if row.ID != "notes/5" || row.Highlights["Text"][0] != "an <b>ash</b>" || len(row.Explanation.Parts) != 1 {
			t.Errorf("in a transaction: %+v", row)
		}
		return rolledBack
	}); !errors.Is(err, rolledBack) {
		t.Error(err)
	}
}

// Ensure that moreLikeThis() is refused where it has no meaning.
func TestMoreLikeThis_Refused(t *testing.T) {
	t.Parallel()
	db := jaytest.Memory(t, nil)
	jaytest.Put(t, db, "notes/0", `{"Text":"oak oak"}`, jay.InCollection("Notes"))
	all := func(q jay.Query[jay.Document]) error { _, err := q.All(ctx); return err }
	q := db.Query("Notes")
	fields := jay.MoreLikeThisOptions{Fields: []string{"Text"}}
	for name, test := range map[string]struct {
		err  error
		want error
	}{
		"no document":     {all(q.Where(jay.MoreLikeThis("notes/9", fields))), jay.ErrNotFound},
		"no ID":           {all(q.Where(jay.MoreLikeThis("", fields))), jay.ErrQuery},
		"no index":        {all(q.Where(jay.MoreLikeThis("notes/0", jay.MoreLikeThisOptions{}))), jay.ErrNoIndex},
		"no scan":         {all(q.NoScan().Where(jay.MoreLikeThis("notes/0", fields))), jay.ErrNoIndex},
		"too many words":  {all(q.Where(jay.MoreLikeThis("notes/0", jay.MoreLikeThisOptions{MaximumQueryTerms: 257}))), jay.ErrQuery},
		"below 0":         {all(q.Where(jay.MoreLikeThis("notes/0", jay.MoreLikeThisOptions{MinimumWordLength: -1}))), jay.ErrQuery},
		"no stop words":   {all(q.Where(jay.MoreLikeThis("notes/0", jay.MoreLikeThisOptions{Fields: []string{"Text"}, StopWordsDocumentID: "stops/9"}))), jay.ErrNotFound},
		"of elements":     {all(q.Where(jay.ElemMatch("Lines", jay.MoreLikeThis("notes/0", fields)))), jay.ErrQuery},
		"five of them":    {all(q.Where(jay.MoreLikeThis("notes/0", fields), jay.MoreLikeThis("notes/0", fields), jay.MoreLikeThis("notes/0", fields), jay.MoreLikeThis("notes/0", fields), jay.MoreLikeThis("notes/0", fields))), jay.ErrQuery},
		"a partial index": {db.EnsureIndex(ctx, "Notes", jay.Index{Fields: []string{"Text"}, Where: "moreLikeThis(id() = 'notes/0')"}), jay.ErrIndex},
		"a changed query": {deleted(q.Where(jay.MoreLikeThis("notes/0", fields))), jay.ErrQuery},
	} {
		if !errors.Is(test.err, test.want) {
			t.Errorf("%s: %v", name, test.err)
		}
	}
}

func deleted(q jay.Query[jay.Document]) error { _, err := q.Delete(ctx); return err }
