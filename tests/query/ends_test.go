package query_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/checks"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/internal/sample"
	"github.com/jaydb/jay/query"
)

// Ensure that queries by indexes of all kinds look at their contexts also while they find nothing.
func TestQuery_EndsWhileNothingIsFound(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	circle := func(around float64, vertices int) string {
		var p []string
		for i := range vertices {
			a := 2 * math.Pi * float64(i) / float64(vertices)
			p = append(p, fmt.Sprintf("%.9f %.9f", around+3*math.Cos(a), 10+3*math.Sin(a)))
		}
		return "POLYGON((" + strings.Join(append(p, p[0]), ",") + "))"
	}
	for _, test := range []struct {
		ix        jay.Index
		documents int
		body      func(i int) string
		queries   []string
	}{
		{
			jay.Index{Name: "at", Kind: "places", Fields: []string{"At"}}, 200,
			func(i int) string { return fmt.Sprintf(`{"At":%q}`, circle(10+float64(i)/1e4, 300)) },
			[]string{
				"where spatial.within(At, spatial.circle(200, 10, 10))",
				"where spatial.within(At, spatial.circle(200, 10, 10)) order by spatial.distance(At, spatial.point(10, 10)) limit 1",
			},
		},
		{
			jay.Index{Name: "v", Kind: "vectors", Fields: []string{"V"}, Options: map[string]string{"dimensions": "4"}}, 20_000,
			func(i int) string { return fmt.Sprintf(`{"V":[1,1,1,%d]}`, i%7) },
			[]string{"where vector.search(V, [-1,-1,-1,0], 0.9)"},
		},
		{
			jay.Index{Name: "words", Kind: "text", Fields: []string{"T"}}, 9_000,
			func(i int) string {
				return fmt.Sprintf(`{"T":%q}`, strings.Repeat("oak elm ash fir ", 20)+[]string{"one", "two"}[i%2])
			},
			[]string{
				`where search(T, '"elm oak" -ash')`,
				`where search(T, 'one') and search(T, '"ash oak"')`,
				`where search(T, 'one "elm oak"', and) order by score() limit 1`,
			},
		},
	} {
		db := jaytest.Memory(t, nil)
		jaytest.Must(t, db.EnsureIndex(ctx, "Docs", test.ix))
		for from := 0; from < test.documents; from += 1000 {
			var b jay.Batch
			for i := from; i < min(from+1000, test.documents); i++ {
				b.Put(fmt.Sprint("docs/", i), json.RawMessage(test.body(i)), jay.InCollection("Docs"))
			}
			_, err := db.Apply(ctx, &b)
			jaytest.Must(t, err)
		}
		checks.WaitSettled(db)
		for _, rql := range test.queries {
			q, err := db.RQL("from Docs "+rql, nil)
			jaytest.Must(t, err)
			asked := &countedContext{Context: ctx, left: math.MaxInt}
			rows, err := q.All(asked)
			jaytest.Must(t, err)
			if len(rows) > 0 {
				t.Errorf("%s: %d answers", rql, len(rows))
			}
			// The last looks are at the end, when nothing more is to be done.
			times := math.MaxInt - asked.left
			if times < 5 {
				t.Errorf("%s: the context was asked %d times", rql, times)
			}
			if _, err := q.All(&countedContext{Context: ctx, left: times / 2}); !errors.Is(err, context.Canceled) {
				t.Errorf("%s: got %v, want context.Canceled", rql, err)
			}
		}
	}
}

// Ensure that what an index of words finds counts for MaxQueryBytes, and that of many searches only what is needed is in
// memory.
func TestQuery_MemoryOfSearches(t *testing.T) {
	sample.OneGoroutine(t)
	t.Parallel()
	db := jaytest.Memory(t, &jay.Options{MaxQueryBytes: 512 << 10})
	jaytest.Must(t, db.EnsureIndex(ctx, "Docs", jay.Index{Name: "words", Kind: "text", Fields: []string{"T"}}))
	jaytest.Must(t, db.EnsureIndex(ctx, "Docs", jay.Index{Name: "n", Fields: []string{"N"}}))
	var words []string
	for i := range 40 {
		words = append(words, fmt.Sprint("w", i))
	}
	const n = 2000
	var b jay.Batch
	for i := range n {
		b.Put(fmt.Sprint("docs/", i), json.RawMessage(fmt.Sprintf(`{"T":"%s","N":1}`, strings.Join(words, " "))), jay.InCollection("Docs"))
	}
	_, err := db.Apply(ctx, &b)
	jaytest.Must(t, err)
	checks.WaitSettled(db)
	search := func(from, to int) string { return "search(T, '" + strings.Join(words[from:to], " ") + "')" }
	var many []string
	for i := range 30 {
		many = append(many, search(i, i+8))
	}
	for _, test := range []struct {
		where string
		fits  bool
	}{
		{search(0, 10), true},
		{strings.Join(many, " and "), true},
		{strings.Join(many, " or "), true},
		{"(" + strings.Join(many[:10], " and ") + ") or " + strings.Join(many[10:], " and "), true},
		{search(0, 40), false},
		{search(0, 10) + " order by score()", true},
		{"N = 1 and " + search(0, 10) + " order by score()", true}, // the planner looks it up, too
		{search(0, 40) + " order by score() limit 1", false},
		{strings.Join(many, " and ") + " order by score() limit 1", false}, // all words count
		{`search(T, '"w0 w1 w2"')`, true},
		{`search(T, '"w0 w1 w2 w3 w4 w5 w6 w7 w8 w9"')`, false},
	} {
		q, err := db.RQL("from Docs where "+test.where, nil)
		jaytest.Must(t, err)
		rows, err := q.All(ctx)
		large := new(query.LimitError)
		switch {
		case test.fits && (err != nil || len(rows) != n):
			t.Errorf("%.80s: got %d answers, %v", test.where, len(rows), err)
		case !test.fits && (!errors.Is(err, jay.ErrQuery) || !errors.As(err, &large) || large.Limit != 512<<10):
			t.Errorf("%.80s: got %v, want a *LimitError", test.where, err)
		}
	}

	// What the planner has looked up does not count any more when the frequencies of the words are looked up.
	q, err := db.RQL("from Docs where N = 1 and "+search(0, 12)+" order by score(), N limit 1", nil)
	jaytest.Must(t, err)
	if rows, err := q.All(ctx); err != nil || len(rows) != 1 {
		t.Errorf("got %d answers, %v", len(rows), err)
	}
}
