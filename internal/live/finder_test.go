package live

// These tests look at which watches a finder proposes, which no event shows.

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay/query"
)

// randomCondition returns a condition in RQL.
func randomCondition(r *rand.Rand, depth int) string {
	field := []string{"A", "B.C", "D", "L.P"}[r.IntN(4)]
	value := func() string {
		return []string{"null", "true", "false", "0", "1", "1.50", "-3", "1e3", "'x'", "'X'", "'xy'", "''", "'äé'", "'" + strings.Repeat("long", 200) + "'", "'" + strings.Repeat("LONG", 200) + "1'"}[r.IntN(15)]
	}
	switch n := r.IntN(16); {
	case n < 3 && depth > 0:
		return "(" + randomCondition(r, depth-1) + " and " + randomCondition(r, depth-1) + ")"
	case n < 5 && depth > 0:
		return "(" + randomCondition(r, depth-1) + " or " + randomCondition(r, depth-1) + ")"
	case n < 6 && depth > 0:
		return "not (" + randomCondition(r, depth-1) + ")"
	case n < 8:
		return field + " = " + value()
	case n < 9:
		return "exact(" + field + []string{" = ", " = ", " < ", " <= ", " > ", " >= "}[r.IntN(6)] + value() + ")"
	case n < 10:
		return field + []string{" < ", " <= ", " > ", " >= "}[r.IntN(4)] + []string{"0", "1", "'x'", "'xya'", "-2.5", "'" + strings.Repeat("long", 200) + "0'"}[r.IntN(6)]
	case n < 11:
		return field + " between 0 and 2"
	case n < 12:
		return field + " in (" + value() + ", " + value() + ")"
	case n < 13:
		return field + " all in (" + value() + ", " + value() + ")"
	}
	if n := r.IntN(3); n < 2 { // of elements and texts that are instants; the second is 23:00 of the day before, in UTC
		instant := []string{"'2026-05-01T00:00:00Z'", "'2026-05-01T00:00:00+01:00'", "'2026-05-02T00:00:00Z'"}[r.IntN(3)]
		return "W" + []string{" as date", " as utc"}[n] + []string{" = ", " < ", " >= "}[r.IntN(3)] + instant
	}
	return "startsWith(" + field + ", '" + []string{"x", "X", "lon", "ä"}[r.IntN(4)] + "')"
}

func randomDocument(r *rand.Rand) string {
	value := func() string {
		return []string{"null", "true", "0", "1.5", "1e3", "-3.0", `"x"`, `"X"`, `"xY"`, `""`, `"ÄÉ"`, `"` + strings.Repeat("long", 200) + `"`, `"` + strings.Repeat("long", 200) + `1"`, `[1,"x",null]`, `[]`, `{"Q":1}`, `[[1]]`}[r.IntN(17)]
	}
	instants := []string{`"2026-05-01T00:00:00Z"`, `"2026-05-01T01:00:00+01:00"`, `"2026-04-30T23:00:00"`, `"2026-05-01"`, `["2026-05-03T00:00:00Z",null]`, `7`}
	return fmt.Sprintf(`{"W":`+instants[r.IntN(len(instants))]+`,"A":%s,"B":{"C":%s},"L":[{"P":%s},{"P":%s}]%s}`, value(), value(), value(), value(), []string{"", `,"D":` + value()}[r.IntN(2)])
}

// Ensure that a finder proposes every watch whose condition is true of a document, and no other
// of those that their bounds decide; and that it proposes few of many.
func TestFinder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	rounds, proposed, decided, all := 40, 0, 0, 0
	for range rounds {
		g := &group{watches: make(map[*watch]struct{}), stale: true}
		matchers := make(map[*watch]*query.Matcher)
		texts := make(map[*watch]string)
		for range 60 {
			text := randomCondition(r, 2)
			q, err := query.Parse("from Docs where "+text, nil)
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			if r.IntN(6) == 0 { // one element must satisfy it
				text = "an element of E: " + text
				of, err := query.Parse("from Docs where E = 1", nil)
				if err != nil {
					t.Fatal(err)
				}
				q.Where = query.ElemMatch{Field: of.Where.(query.Compare).Field, Where: q.Where}
			}
			w := new(watch)
			w.bounds, w.bounded = boundsOf(q.Where)
			if w.decided = w.bounded && decidedByBounds(q.Where); w.decided {
				decided++
			}
			if matchers[w], err = query.Compile(q.Where); err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			g.watches[w], texts[w] = struct{}{}, text
		}
		for range 50 {
			doc := query.Doc{Body: []byte(strings.TrimSuffix(randomDocument(r), "}") + `,"E":[` + randomDocument(r) + `,` + randomDocument(r) + `]}`)}
			found := make(map[*watch]bool)
			g.find(doc, func(w *watch) { found[w] = true })
			for w, m := range matchers {
				is := m.Match(doc)
				if is && !found[w] {
					t.Fatalf("%s is true of %s, and the finder does not propose it", texts[w], doc.Body)
				}
				if !is && found[w] && w.decided {
					t.Fatalf("%s is false of %s, and its bounds have decided that it is true", texts[w], doc.Body)
				}
			}
			proposed, all = proposed+len(found), all+len(g.watches)
		}
	}
	if proposed*3 > all*2 {
		t.Errorf("it proposes %d of %d: more than two thirds", proposed, all)
	}
	if decided < rounds*60/4 {
		t.Errorf("bounds decide %d of %d conditions: less than a quarter", decided, rounds*60)
	}
}

// Ensure that a case-sensitive comparison proposes the texts that differ from its value in case alone: some are less, and some greater.
func TestFinder_ExactRange(t *testing.T) {
	for _, row := range []struct{ condition, body string }{
		{"exact(A < 'a')", `{"A":"A"}`},
		{"exact(A > 'A')", `{"A":"a"}`},
		{"exact(A <= 'a')", `{"A":"A"}`},
		{"exact(A >= 'A')", `{"A":"a"}`},
		{"exact(A < 'a') or B = 1", `{"A":"A"}`},
		{"exact(A > 'A') and exact(A < 'b')", `{"A":"a"}`},
		{"exact(A > 'A') and exact(A < 'B')", `{"A":["a","c"]}`},
	} {
		q, err := query.Parse("from Docs where "+row.condition, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := new(watch)
		if w.bounds, w.bounded = boundsOf(q.Where); !w.bounded || decidedByBounds(q.Where) {
			t.Errorf("%s is bounded: %v, and decided by its bounds: %v", row.condition, w.bounded, decidedByBounds(q.Where))
		}
		m, err := query.Compile(q.Where)
		if err != nil {
			t.Fatal(err)
		}
		g, found, doc := &group{watches: map[*watch]struct{}{w: {}}, stale: true}, false, query.Doc{Body: []byte(row.body)}
		if g.find(doc, func(*watch) { found = true }); !found || !m.Match(doc) {
			t.Errorf("%s: proposed for %s: %v, and true of it: %v", row.condition, row.body, found, m.Match(doc))
		}
	}
}

// Ensure that of a thousand watches that ask for a value each only the one is proposed whose
// value the document has, and that ranges are found by each value in them.
func TestFinder_Few(t *testing.T) {
	g := &group{watches: make(map[*watch]struct{}), stale: true}
	add := func(text string) {
		q, err := query.Parse("from Docs where "+text, nil)
		if err != nil {
			t.Fatal(err)
		}
		w := new(watch)
		w.bounds, w.bounded = boundsOf(q.Where)
		g.watches[w] = struct{}{}
	}
	for i := range 1000 {
		add(fmt.Sprintf("A = %d and B > 0", i))
		add(fmt.Sprintf("C >= %d and C < %d or D = 'd%d'", 10*i, 10*i+10, i))
	}
	for body, want := range map[string]int{
		`{"A":7,"B":1}`:          1,
		`{"A":[7,8,2000]}`:       2,
		`{"C":15}`:               1,
		`{"C":[15,17,25]}`:       1000 + 3, // each value may satisfy another condition
		`{"A":-1}`:               0,
		`{"D":"D5"}`:             1,
		`{"D":["D5","d6",null]}`: 2,
		`{}`:                     0,
	} {
		n := 0
		g.find(query.Doc{Body: []byte(body)}, func(*watch) { n++ })
		if n != want {
			t.Errorf("%s: %d are proposed, want %d", body, n, want)
		}
	}
}
