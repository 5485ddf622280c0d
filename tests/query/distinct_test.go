package query_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/query"
)

// Ensure that count(distinct path) counts values and not documents: case makes a difference, the notation of a number does not, each element of
// an array counts, and neither null nor a missing value does.
func TestGroupBy_CountDistinct(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	for i, value := range []string{`"a"`, `"A"`, `"a"`, "1", "1.0", "1e0", "null", `["b","c","a"]`, "[]", "true", `{"x":1}`, `{"x":1}`} {
		put(t, db, fmt.Sprint("Things/", i), fmt.Sprintf(`{"K":%d,"V":%s}`, i%2, value), jay.InCollection("Things"))
	}
	put(t, db, "Things/none", `{"K":0}`, jay.InCollection("Things"))
	for text, want := range map[string]string{
		"select count(distinct V) as n":                                                                                `{"n":7}`,
		"select count(distinct V) as n, count() as all":                                                                `{"n":7,"all":13}`,
		"group by K order by K select K, count(distinct V) as n":                                                       `{"K":0,"n":3} {"K":1,"n":7}`,
		"group by K where count(distinct V) > 3 select K":                                                              `{"K":1}`,
		"group by K order by count(distinct V) desc select K, count(distinct V) limit 1":                               `{"K":1,"count(distinct V)":7}`,
		"select count(distinct K) as k, count(distinct Nothing) as none, COUNT(DISTINCT lower(coalesce(V,''))) as low": `{"k":2,"none":0,"low":2}`,
	} {
		q, err := db.RQL("from Things "+text, nil)
		must(t, err)
		if got := strings.Trim(jsonRows(t, q), "[]"); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
		again, err := db.RQL(q.String(), nil)
		must(t, err)
		equal(t, again.String(), q.String())
	}
	type row struct {
		K int
		N int `json:"n"`
	}
	typed, err := jay.Select[row](db.Query("Things").GroupBy("K").OrderBy("K").Having(jay.Gt("count(distinct V)", 1)), "K", "count(distinct V) as n").All(ctx)
	must(t, err)
	equal(t, fmt.Sprint(*typed[0], *typed[1]), "{0 3} {1 7}")
	for _, text := range []string{"count(distinct)", "count(distinct *)", "sum(distinct V)", "count(distinct V, K)"} {
		if _, err := db.RQL("from Things select "+text, nil); !errors.As(err, new(*jay.SyntaxError)) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// Ensure that the values of count(distinct path) are bounded by MaxQueryBytes, and that along an index they are jumped to.
func TestGroupBy_CountDistinct_Bounds(t *testing.T) {
	t.Parallel()
	db := memory(t, &jay.Options{MaxQueryBytes: 20_000})
	b := new(jay.Batch)
	for i := range 1000 {
		b.Put(fmt.Sprint("Things/", i), fmt.Appendf(nil, `{"V":%d,"Few":%d}`, i, i%3), jay.InCollection("Things"))
	}
	_, err := db.Apply(ctx, b)
	must(t, err)
	must(t, db.EnsureIndex(ctx, "Things", jay.Index{Fields: []string{"Few"}}))
	q, err := db.RQL("from Things select count(distinct V) as n", nil)
	must(t, err)
	large := (*query.LimitError)(nil)
	if _, err = q.All(ctx); !errors.Is(err, jay.ErrQuery) || !errors.As(err, &large) {
		t.Errorf("got %v", err)
	}
	e := explained(t, db, "from Things select count(distinct Few) as n")
	if e.Keys > 400 || e.Documents > 0 {
		t.Errorf("%s", e)
	}
}
