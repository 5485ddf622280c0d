package query_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
	"github.com/jaydb/jay/query"
)

// cameras fills Cameras.
func cameras(t *testing.T, opts *jay.Options) *jay.DB {
	t.Helper()
	db := memory(t, opts)
	for i, body := range []string{
		`{"Brand":"Canon","Price":90,"Stock":1}`, `{"Brand":"Canon","Price":250.5,"Stock":2}`, `{"Brand":"canon","Price":700}`,
		`{"Brand":"Nikon","Price":100,"Stock":7}`, `{"Brand":["Nikon","Leica"],"Price":1000,"Stock":1}`, `{"Brand":null,"Price":5}`, `{"Brand":"","Price":6}`, `{"Price":499.99}`,
	} {
		put(t, db, fmt.Sprint("cameras/", i), body, jay.InCollection("Cameras"))
	}
	return db
}

// Ensure that facets count terms, ranges and all answers, with functions, names and options, and that their text is RQL.
func TestFacets(t *testing.T) {
	t.Parallel()
	db := cameras(t, nil)
	put(t, db, "facets/Cameras", `{"Facets":[{"FieldName":"Brand","Options":{"TermSortMode":"CountDesc","PageSize":1,"Start":0,"IncludeRemainingTerms":true},"Aggregations":{"Sum":[{"Name":"Stock","DisplayName":"Stocked"}]},"DisplayFieldName":"Make"}],"RangeFacets":[{"Ranges":["Price < 100","Price >= 100"],"Aggregations":{"Max":"Stock"}}]}`)
	params := map[string]any{"o": map[string]any{"TermSortMode": "CountDesc", "Start": 1, "PageSize": 2, "IncludeRemainingTerms": true}, "from": 100, "max": map[string]any{"PageSize": 2147483647}}
	none := `"RemainingTerms":[],"RemainingTermsCount":0,"RemainingHits":0}`
	for text, want := range map[string]string{
		"select facet(Brand)":             `{"Name":"Brand","Values":[{"Range":"NULL_VALUE","Count":1},{"Range":"EMPTY_STRING","Count":1},{"Range":"Canon","Count":2},{"Range":"canon","Count":1},{"Range":"Leica","Count":1},{"Range":"Nikon","Count":2}],` + none,
		"select facet(Brand, $o) as Make": `{"Name":"Make","Values":[{"Range":"Nikon","Count":2},{"Range":"NULL_VALUE","Count":1}],"RemainingTerms":["EMPTY_STRING","canon","Leica"],"RemainingTermsCount":3,"RemainingHits":3}`,
		"where Stock >= 1 select facet(Brand, $max, sum(Stock), max(Stock), avg(Price) as Mean)":       `{"Name":"Brand","Values":[{"Range":"Canon","Count":2,"Name":"Stock","Sum":3,"Max":2},{"Range":"Canon","Count":2,"Name":"Mean","Average":170.25},{"Range":"Leica","Count":1,"Name":"Stock","Sum":1,"Max":1},{"Range":"Leica","Count":1,"Name":"Mean","Average":1000},{"Range":"Nikon","Count":2,"Name":"Stock","Sum":8,"Max":7},{"Range":"Nikon","Count":2,"Name":"Mean","Average":550}],` + none,
		"select facet(Price < $from, Price >= 100 and Price < 500, Price >= 500, count(), min(Price))": `{"Name":"Price","Values":[{"Range":"Price < 100","Count":3,"Name":"Price","Min":5},{"Range":"Price >= 100 and Price < 500","Count":3,"Name":"Price","Min":100},{"Range":"Price >= 500","Count":2,"Name":"Price","Min":700}],` + none,
		"where Price > 1e9 select facet(), facet(Brand), facet(Price < 1)":                             `{"Name":"@AllResults","Values":[{"Range":"@AllResults","Count":0}],` + none + ` {"Name":"Brand","Values":[],` + none + ` {"Name":"Price","Values":[{"Range":"Price < 1","Count":0}],` + none,
		"select facet(id('facets/Cameras'))":                                                           `{"Name":"Make","Values":[{"Range":"Canon","Count":2,"Name":"Stocked","Sum":3}],"RemainingTerms":["Nikon","NULL_VALUE","EMPTY_STRING","canon","Leica"],"RemainingTermsCount":5,"RemainingHits":6} {"Name":"Price","Values":[{"Range":"Price < 100","Count":3,"Name":"Stock","Max":1},{"Range":"Price >= 100","Count":5,"Name":"Stock","Max":7}],` + none,
	} {
		q, err := db.RQL("from Cameras "+text, named(text, params))
		must(t, err)
		again, err := db.RQL(q.String(), nil)
		must(t, err)
		equal(t, again.String(), q.String())
		for _, q := range []jay.Query[jay.Row]{q, again} {
			if got := facetRows(t, q); got != want {
				t.Errorf("%s:\ngot  %s\nwant %s", q, got, want)
			}
		}
	}
}

// named returns those of params that a query names.
func named(text string, params map[string]any) map[string]any {
	out := map[string]any{}
	for name, value := range params {
		if strings.Contains(text, "$"+name) {
			out[name] = value
		}
	}
	return out
}

func facetRows(t *testing.T, q jay.Query[jay.Row]) string {
	t.Helper()
	var rows []string
	for row, err := range q.Iter(ctx) {
		must(t, err)
		rows = append(rows, string(row.JSON))
	}
	return strings.Join(rows, " ")
}

// Ensure that facets without meaning are refused, and those that take too much memory.
func TestFacets_Refused(t *testing.T) {
	t.Parallel()
	db := cameras(t, &jay.Options{MaxQueryBytes: 3000})
	params := map[string]any{"bad": map[string]any{"TermSortMode": "Up"}, "unknown": map[string]any{"Pages": 1}, "n": 1, "neg": map[string]any{"Start": -1}}
	for _, text := range []string{
		"select facet(Brand), Brand", "select Brand, facet(Brand)", "group by Brand select facet(Brand)", "order by Brand select facet(Brand)", "select facet(Brand) limit 1", "select distinct facet(Brand)",
		"select facet(Brand) include Brand", "select facet(Brand, Price)", "select facet(Brand, Price < 1)", "select facet(Price < 1, $neg)", "select facet(Price < 1, options('{\"PageSize\":1}'))",
		"select facet(Brand, $bad)", "select facet(Brand, $unknown)", "select facet(Brand, $n)", "select facet(Brand, $missing)", "select facet(id(1))", "select facet(id('a')) as b", "select facet(Brand", "select facet(count(distinct Brand))",
		"select facet(count() > 1)", "select facet(Brand, options('{}{}'))", "where count() > 1 select facet(Brand)", "select " + strings.Repeat("facet(Brand), ", 64) + "facet(Brand)",
	} {
		if _, err := db.RQL("from Cameras "+text, named(text, params)); !errors.As(err, new(*jay.SyntaxError)) {
			t.Errorf("%s: %v", text, err)
		}
	}
	for id, body := range map[string]string{"none": "", "empty": "{}", "bad": `{"Facets":[{"FieldName":"a b"}]}`, "two": `{"Facets":[{"FieldName":"a), facet(b"}]}`, "function": `{"Facets":[{"FieldName":"a","Aggregations":{"Median":"b"}}]}`, "ranges": `{"RangeFacets":[{"Ranges":["a"],"Options":{"Start":-1}}]}`} {
		if body != "" {
			put(t, db, "facets/"+id, body)
		}
		q, err := db.RQL("from Cameras select facet(id('facets/"+id+"'))", nil)
		must(t, err)
		if _, err := q.All(ctx); !errors.Is(err, jay.ErrQuery) || !errors.Is(err, query.ErrFacet) {
			t.Errorf("%s: %v", id, err)
		}
	}
	for i := range 50 {
		put(t, db, fmt.Sprint("cameras/more", i), fmt.Sprintf(`{"Brand":"b%d"}`, i), jay.InCollection("Cameras"))
	}
	q, err := db.RQL("from Cameras select facet(Brand)", nil)
	must(t, err)
	if _, err := q.All(ctx); !errors.Is(err, jay.ErrQuery) || !errors.As(err, new(*query.LimitError)) {
		t.Errorf("got %v", err)
	}
}

// Ensure that facets are the groups of queries, in transactions with their own writes, too.
func TestFacets_LikeGroups(t *testing.T) {
	t.Parallel()
	db := memory(t, nil)
	r := rand.New(rand.NewPCG(1, rand.Uint64()))
	must(t, db.EnsureIndexes(ctx, "Things", []jay.Index{{Fields: []string{"A", "T"}}, {Fields: []string{"T"}}}))
	for i := range 300 {
		put(t, db, fmt.Sprint("Things/", i), alongThing(r, true), jay.InCollection("Things"))
	}
	compare := func(from querier) {
		for _, field := range []string{"A", "B", "T", "N.X"} {
			for _, where := range []string{"T > 1", "A = 'a'", "T < 500 and B != 'b'"} {
				got := map[string]string{}
				q, err := from.RQL(fmt.Sprintf("from Things where %s select facet(%s, sum(T)), facet(T < 3, sum(T))", where, field), nil)
				must(t, err)
				var results []struct {
					Values []struct {
						Range string
						Count int
						Sum   json.Number
					}
				}
				must(t, json.Unmarshal([]byte("["+strings.ReplaceAll(facetRows(t, q), "} {\"Name", "},{\"Name")+"]"), &results))
				for i, result := range results {
					for _, v := range result.Values {
						got[fmt.Sprint(i, v.Range)] = fmt.Sprint(v.Count, v.Sum)
					}
				}
				want := map[string]string{}
				for i, text := range []string{fmt.Sprintf("group by %s where %s select key() as k, count() as n, sum(T) as s", field, where), fmt.Sprintf("where %s and T < 3 select count() as n, sum(T) as s", where)} {
					groups, err := from.RQL("from Things "+text, nil)
					must(t, err)
					for row, err := range groups.NoIndex().Iter(ctx) {
						must(t, err)
						var g struct {
							K json.RawMessage
							N int
							S json.Number
						}
						must(t, json.Unmarshal(row.JSON, &g))
						label := strings.Trim(string(g.K), `"`)
						if i == 1 {
							label = "T < 3"
						}
						if label != "null" {
							want[fmt.Sprint(i, label)] = fmt.Sprint(g.N, g.S)
						}
					}
				}
				for label := range got {
					if strings.HasSuffix(label, "NULL_VALUE") {
						delete(got, label) // groups count what is missing there, too
					}
				}
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Errorf("%s by %s:\ngot  %v\nwant %v", where, field, got, want)
				}
			}
		}
	}
	compare(db)
	must(t, db.Update(ctx, func(tx *jay.Tx) error {
		for i := range 30 {
			if _, err := tx.Put(ctx, fmt.Sprint("Things/", i*11), []byte(alongThing(r, true)), jay.InCollection("Things")); err != nil {
				return err
			}
		}
		compare(tx)
		return nil
	}))
}

// Ensure that a facet has no more ranges and functions than it may have, in RQL and in Go.
func TestFacets_Bounds(t *testing.T) {
	t.Parallel()
	db := cameras(t, nil)
	many := make([]string, query.MaxFacetRanges+1)
	for i := range many {
		many[i] = fmt.Sprint("Price < ", i)
	}
	if _, err := db.RQL("from Cameras select facet("+strings.Join(many, ", ")+")", nil); !errors.As(err, new(*jay.SyntaxError)) {
		t.Errorf("got %v", err)
	}
	q := db.Query("Cameras")
	for name, facets := range map[string][]jay.Facet{
		"ranges":    {{Ranges: many}},
		"facets":    make([]jay.Facet, query.MaxFacets+1),
		"both":      {{Field: "Brand", Ranges: many[:2]}},
		"two":       {{Field: "Brand), facet(Price"}},
		"options":   {{Ranges: many[:2], Options: jay.FacetOptions{Start: 1}}},
		"negative":  {{Field: "Brand", Options: jay.FacetOptions{Start: -1}}},
		"function":  {{Field: "Brand", Functions: []string{"count(distinct Price)"}}},
		"condition": {{Ranges: []string{"Price <"}}},
	} {
		if _, err := q.Facets(ctx, facets...); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, q := range map[string]jay.Query[jay.Document]{"order": q.OrderBy("Price"), "limit": q.Limit(1), "distinct": q.Distinct()} {
		if _, err := q.Facets(ctx, jay.Facet{Field: "Brand"}); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got, err := q.Facets(ctx); len(got) > 0 || err != nil {
		t.Errorf("got %v, %v", got, err)
	}
}

// Ensure that Count of a query with facets is the number of its rows.
func TestFacets_Count(t *testing.T) {
	db := jaytest.Memory(t, nil)
	for i := range 18 {
		_, err := db.Put(ctx, fmt.Sprint("docs/", i), json.RawMessage(`{"C":1}`), jay.InCollection("Docs"))
		jaytest.Must(t, err)
	}
	for _, rql := range []string{"from Docs where true select facet(C)", "from Docs where C = 1 select facet(C)", "from Docs select facet(C)"} {
		q, err := db.RQL(rql, nil)
		jaytest.Must(t, err)
		n, err := q.Count(ctx)
		jaytest.Must(t, err)
		rows, err := q.All(ctx)
		jaytest.Must(t, err)
		if int(n) != len(rows) {
			t.Errorf("%s: Count %d, All has %d rows", rql, n, len(rows))
		}
	}
}
