package jay_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/jaydb/jay"
)

// Ensure that the builder names metadata as RQL does, in any case, and refuses
// what of it cannot be asked for, instead of finding nothing.
func TestCondition_Metadata(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "orders/1", `{"@metadata":{"@collection":"Orders","mine":1}}`)
	for _, field := range []string{"id()", "ID()", "@metadata.@id", "@metadata.@ID"} {
		if n, err := db.Query("Orders").Where(jay.Eq(field, "orders/1")).Count(ctx); n != 1 || err != nil {
			t.Errorf("%s: got %d, %v, want 1", field, n, err)
		}
	}
	for _, field := range []string{"@metadata.mine", "@metadata.@etag"} {
		if n, err := db.Query("Orders").Where(jay.Eq(field, 1)).Count(ctx); n != 1 || err != nil {
			t.Errorf("%s: got %d, %v, want 1", field, n, err)
		}
	}
	for _, field := range []string{"@metadata", "@metadata[0]", "@metadata.@id.x", "@metadata.@colection"} {
		if _, err := db.Query("Orders").Where(jay.Eq(field, 1)).Count(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: got %v, want ErrQuery", field, err)
		}
	}
}

// Ensure that the index that Explain asks for can be pasted into a shell,
// whatever the names are, and that no bound overflows in what it says.
func TestExplanation_Hint(t *testing.T) {
	db := memory(t, nil)
	_, err := db.Put(ctx, "a", json.RawMessage(`{}`), jay.InCollection("My Orders"))
	must(t, err)
	e, err := db.Query("My Orders").Where(jay.Eq("Lines[].P", 1)).OrderBy("-'it\\'s'").Explain(ctx)
	must(t, err)
	if want := `hint: jay index create 'My Orders' 'Lines[].P,-'\''it\'\''s'\'''`; !strings.HasSuffix(e.String(), want) {
		t.Errorf("got %s, want %s", e, want)
	}
	e, err = db.Query("My Orders").OrderBy("-a").Skip(1 << 62).Limit(1 << 62).Explain(ctx)
	must(t, err)
	if !strings.HasSuffix(e.String(), "hint: jay index create 'My Orders' -- -a") || strings.Contains(e.String(), "keeping") {
		t.Errorf("got %s", e)
	}
}

// Ensure that what differs a little, and Lucene's syntax, mean in Go what they mean in RQL, and are refused alike.
func TestCondition_Lucene(t *testing.T) {
	db := memory(t, nil)
	put(t, db, "notes/1", `{"By":"Ernst","Text":"The oak leaves fall","@metadata":{"@collection":"Notes"}}`)
	put(t, db, "notes/2", `{"By":"ANN","Text":"leaves of an old oak","@metadata":{"@collection":"Notes"}}`)
	for rql, c := range map[string]jay.Condition{
		"fuzzy(By = 'amn', 0.5)":                      jay.Fuzzy(jay.IgnoreCase(jay.Eq("By", "amn")), 0.5),
		"fuzzy(By = 'AMN', 0.5)":                      jay.IgnoreCase(jay.Fuzzy(jay.Eq("By", "AMN"), 0.5)),
		"fuzzy(exact(By = 'Ermst'), 0.5)":             jay.Fuzzy(jay.Eq("By", "Ermst"), 0.5),
		"fuzzy(search(Text, 'leeves fal', and), 0.5)": jay.Fuzzy(jay.Search("Text", "leeves fal", jay.AllWords()), 0.5),
		"proximity(search(Text, 'oak leaves'), 1)":    jay.Proximity(jay.Search("Text", "oak leaves"), 1),
		"lucene(Text, 'oak AND (old OR new)')":        jay.Lucene("Text", "oak AND (old OR new)"),
		"lucene(Text, 'falling', 'english')":          jay.Lucene("Text", "falling", jay.WithAnalyzer("english")),
		"boost(lucene(Text, 'By:ernst AND oak'), 2)":  jay.Boost(jay.Lucene("Text", "By:ernst AND oak"), 2),
	} {
		q, err := db.RQL("from Notes where "+rql, nil)
		must(t, err)
		want, err := q.Count(ctx)
		must(t, err)
		if n, err := db.Query("Notes").Where(c).Count(ctx); n != want || err != nil || n == 0 {
			t.Errorf("%s: got %d, %v, want %d", rql, n, err, want)
		}
		e, err := db.Query("Notes").Where(c).Explain(ctx)
		must(t, err)
		of, err := q.Explain(ctx)
		must(t, err)
		if e.Query != of.Query {
			t.Errorf("%s: got %s, want %s", rql, e.Query, of.Query)
		}
	}
	for name, c := range map[string]jay.Condition{
		"a similarity of 1":      jay.Fuzzy(jay.Eq("By", "x"), 1),
		"a number":               jay.Fuzzy(jay.Eq("By", 1), 0.5),
		"no condition":           jay.Fuzzy(jay.Condition{}, 0.5),
		"a bad condition":        jay.Fuzzy(jay.Eq("", "x"), 0.5),
		"an analyzer":            jay.Lucene("Text", "oak", jay.WithAnalyzer("klingon")),
		"all words":              jay.Lucene("Text", "oak", jay.AllWords()),
		"a range":                jay.Lucene("Text", "[a TO b]"),
		"no search":              jay.Proximity(jay.Eq("By", "x"), 1),
		"words that are too far": jay.Proximity(jay.Search("Text", "oak leaves"), 51),
		"a pattern":              jay.Proximity(jay.Search("Text", "oak leav*"), 1),
	} {
		if _, err := db.Query("Notes").Where(c).Count(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: got %v, want ErrQuery", name, err)
		}
	}
}
