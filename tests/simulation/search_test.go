package simulation_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/ids"
)

// searched are conditions on the words of t, and which texts they find; "" is a document without one.
var searched = []struct {
	rql   string
	finds func(text string) bool
}{
	{"search(t, 'red blue')", func(text string) bool { return text == "red" || text == "Red" || text == "blue" }},
	{"search(t, 'gre*')", func(text string) bool { return text == "green" }},
	{"search(t, 'bleu~ nothing')", func(text string) bool { return text == "blue" }},
	{"lucene(t, '(red OR green) AND -\"green\"')", func(text string) bool { return text == "red" || text == "Red" }},
	{"search(t, 'red green blue') and not search(t, 'red')", func(text string) bool { return text == "green" || text == "blue" }},
	{"not search(t, 'blue')", func(text string) bool { return text != "blue" }},
	{"fuzzy(exact(t = 'rad'), 0.5)", func(text string) bool { return text == "red" }},
	{"search(t, 'Red', 'whitespace')", func(text string) bool { return text == "Red" }},
	{"proximity(search(t, 'green'), 2) or a = 3", nil},
}

// search asks for words, by an index of words or without one, the best first where something counts, in a transaction or not.
func search(w *world) {
	collection := w.pick(collections)
	s := searched[w.intn(len(searched))]
	text, scored := fmt.Sprintf("from '%s' where %s", collection, s.rql), !strings.HasPrefix(s.rql, "not") && !strings.HasPrefix(s.rql, "fuzzy") && w.intn(2) == 0
	if scored {
		text += " order by score() select id() as id, score() as score"
	} else {
		text += " select id() as id"
	}
	var want, got []string
	for _, key := range w.model.documents(collection) {
		if d := w.model.state[key]; s.finds == nil && (d.text == "green" || d.a == 3) || s.finds != nil && s.finds(d.text) {
			want = append(want, key)
		}
	}
	q, err := w.db.RQL(text, nil)
	w.must(err)
	last := -1.0
	for row, err := range q.Iter(ctx) {
		w.must(err)
		var one struct {
			ID    string
			Score float64
		}
		w.must(json.Unmarshal(row.JSON, &one))
		if scored && last >= 0 && one.Score > last {
			w.fail("%s: %s has %v behind %v", text, one.ID, one.Score, last)
		}
		got, last = append(got, ids.Fold(one.ID)), one.Score
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		w.fail("%s gives %v, want %v", text, got, want)
	}
	fmt.Fprintf(w.log, "%s: %d. ", text, len(want))
	w.suggest(collection)
}

// suggest compares the words that an index of words suggests with those of the documents.
func (w *world) suggest(collection string) {
	if !w.model.indexes[collection]["x"] || w.unready {
		return
	}
	want := make(map[string]int64)
	for _, key := range w.model.documents(collection) {
		if text := strings.ToLower(w.model.state[key].text); text == "green" {
			want[text]++
		}
	}
	found, err := w.db.Query(collection).Suggest(ctx, "t", "greenx", jay.SuggestOptions{})
	w.must(err)
	for _, one := range found {
		if want[one.Word] != one.Documents {
			w.fail("%s suggests %v, want %v", collection, found, want)
		}
	}
	if len(found) != len(want) {
		w.fail("%s suggests %v, want %v", collection, found, want)
	}
}
