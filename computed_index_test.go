package jay_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/index"
	private "github.com/jaydb/jay/internal/jaytest"
)

// sales is the computed index of the tests: stock per product, over lines and over returns.
var sales = jay.Computed{
	Name: "Orders/ByProduct",
	Maps: []index.Map{
		{Collection: "Orders", Each: "Lines", As: "line", Where: "line.Quantity > 0", Select: []index.Member{{Name: "Product", Expression: "line.Product"}, {Name: "Total", Expression: "line.Price * line.Quantity"}, {Name: "Count", Expression: "1"}}},
		{Collection: "Returns", Select: []index.Member{{Name: "Product"}, {Name: "Total", Expression: "0 - Price"}, {Name: "Count", Expression: "0"}}},
	},
	Reduce: &index.Reduce{GroupBy: []string{"Product"}, Select: []index.Member{{Name: "Product"}, {Name: "Count", Expression: "sum(Count)"}, {Name: "Total", Expression: "sum(Total)"}, {Name: "Mean", Expression: "sum(Total) / count()"}}},
}

// indexRows returns the rows of a query of an index, and of the same without the indexes that keep its answers.
func indexRows(t *testing.T, from interface {
	RQL(string, map[string]any) (jay.Query[jay.Row], error)
}, rql string) (kept, scanned []string) {
	t.Helper()
	q, err := from.RQL(rql, nil)
	private.Must(t, err)
	all, err := q.All(t.Context())
	private.Must(t, err)
	plain, err := q.NoIndex().All(t.Context())
	private.Must(t, err)
	for _, r := range all {
		kept = append(kept, string(r.JSON))
	}
	for _, r := range plain {
		scanned = append(scanned, string(r.JSON))
	}
	return kept, scanned
}

// Ensure that a computed index adds up its maps, answers conditions, orders and columns of its results, and says how.
func TestComputed_Reduce(t *testing.T) {
	ctx, db := t.Context(), private.Memory(t, nil)
	put := func(id, in, body string) {
		t.Helper()
		_, err := db.Put(ctx, id, json.RawMessage(body), jay.InCollection(in))
		private.Must(t, err)
	}
	put("orders/1", "Orders", `{"Lines":[{"Product":"a","Price":1.10,"Quantity":3},{"Product":"b","Price":2,"Quantity":1},{"Product":"a","Price":5,"Quantity":0}]}`)
	private.Must(t, jay.ComputedOf(db).Ensure(ctx, sales))
	private.Must(t, jay.ComputedOf(db).Ensure(ctx, sales))
	put("returns/1", "Returns", `{"Product":"a","Price":0.30}`)
	put("orders/2", "Orders", `{"Lines":[{"Product":"a","Price":1,"Quantity":1}]}`)
	for _, row := range []struct{ rql, want string }{
		{"from index 'orders/byproduct' order by Product", `[{"Product":"a","Count":2,"Total":4.0,"Mean":1.3333333333333333} {"Product":"b","Count":1,"Total":2,"Mean":2}]`},
		{"from index 'Orders/ByProduct' as x where x.Product = 'A' select x.Total, x.Count as N", `[{"Total":4.0,"N":2}]`},
		{"from index 'Orders/ByProduct' where Total > 3 select Product", `[{"Product":"a"}]`},
		{"from index 'Orders/ByProduct' order by Total * 2 desc select distinct Product limit 1 offset 1", `[{"Product":"b"}]`},
	} {
		kept, scanned := indexRows(t, db, row.rql)
		private.Equal(t, strings.ReplaceAll(fmt.Sprint(kept), "4.0", "4"), strings.ReplaceAll(row.want, "4.0", "4"))
		private.Equal(t, fmt.Sprint(kept), fmt.Sprint(scanned))
	}
	type result struct {
		Product string
		Count   int
		Total   json.Number
	}
	q := jay.QueryIndex[result](db, "Orders/ByProduct").Where(jay.Eq("Product", "b"))
	one, err := q.NoScan().First(ctx)
	private.Must(t, err)
	private.Equal(t, fmt.Sprint(*one), "{b 1 2}")
	x, err := q.Explain(ctx)
	private.Must(t, err)
	if plan := strings.Join(x.Plan, "\n"); x.Documents != 0 || !strings.Contains(plan, "one range of groups") || !strings.Contains(plan, "reduce by Product") || !strings.Contains(plan, "add up the groups of 2 maps") {
		t.Errorf("%d documents, %s", x.Documents, plan)
	}
	var pages []string
	for cursor := ""; ; {
		page, err := jay.QueryIndex[result](db, "Orders/ByProduct").OrderBy("-Total").Limit(1).After(cursor).Page(ctx)
		private.Must(t, err)
		pages = append(pages, page.Items[0].Product)
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	private.Equal(t, fmt.Sprint(pages), "[a b]")
	private.Must(t, db.Update(ctx, func(tx *jay.Tx) error {
		if _, err := tx.Put(ctx, "returns/2", json.RawMessage(`{"Product":"c","Price":1}`), jay.InCollection("Returns")); err != nil {
			return err
		}
		n, err := jay.QueryIndex[result](tx, "Orders/ByProduct").Count(ctx)
		private.Equal(t, fmt.Sprint(n), "3")
		return err
	}))
	list, err := jay.ComputedOf(db).List(ctx)
	private.Must(t, err)
	if len(list) != 1 || len(list[0].Parts) != 2 || list[0].State != jay.IndexReady || len(list[0].Without) > 0 {
		t.Errorf("got %+v", list)
	}
	if err := db.DropIndex(ctx, "Orders", list[0].Parts[0].Name); !errors.Is(err, jay.ErrIndex) {
		t.Errorf("a part was dropped: %v", err)
	}
	other := sales
	other.Reduce = &index.Reduce{GroupBy: []string{"Product"}, Select: []index.Member{{Name: "Product"}, {Name: "N", Expression: "count()"}}}
	if err := jay.ComputedOf(db).Ensure(ctx, other); !errors.Is(err, jay.ErrIndexExists) {
		t.Errorf("got %v", err)
	}
	private.Must(t, jay.ComputedOf(db).Ensure(ctx, other, jay.ReplaceIndex()))
	kept, scanned := indexRows(t, db, "from index 'Orders/ByProduct' order by Product")
	private.Equal(t, fmt.Sprint(kept), `[{"Product":"a","N":3} {"Product":"b","N":1} {"Product":"c","N":1}]`)
	private.Equal(t, fmt.Sprint(kept), fmt.Sprint(scanned))
	private.Verify(t, db)
	private.Must(t, jay.ComputedOf(db).Drop(ctx, "orders/BYPRODUCT"))
	indexes, err := db.Indexes(ctx, "")
	private.Must(t, err)
	if len(indexes) != 0 {
		t.Errorf("got %v", indexes)
	}
	if _, err := jay.QueryIndex[result](db, "Orders/ByProduct").All(ctx); !errors.Is(err, jay.ErrNoIndex) {
		t.Errorf("got %v", err)
	}
}

// Ensure that an index without groups answers with members, one for each document or element.
func TestComputed_Maps(t *testing.T) {
	ctx, db := t.Context(), private.Memory(t, nil)
	for i := range 6 {
		_, err := db.Put(ctx, fmt.Sprint("users/", i), json.RawMessage(fmt.Sprintf(`{"First":"f%d","Last":"l","Tags":["t%d","x"]}`, i, i%2)), jay.InCollection("Users"))
		private.Must(t, err)
	}
	private.Must(t, jay.ComputedOf(db).Ensure(ctx, jay.Computed{Name: "Users/ByName", Maps: []index.Map{{Collection: "Users", Select: []index.Member{{Name: "Name", Expression: "concat(First, ' ', Last)"}, {Name: "F", Expression: "First"}}}}}))
	private.Must(t, jay.ComputedOf(db).Ensure(ctx, jay.Computed{Name: "Users/Tags", Maps: []index.Map{{Collection: "Users", Each: "Tags", As: "tag", Select: []index.Member{{Name: "Tag", Expression: "tag"}, {Name: "F", Expression: "First"}}}}}))
	for _, row := range []struct{ rql, want string }{
		{"from index 'Users/ByName' where F in ('f1', 'f2') order by Name desc", `[{"Name":"f2 l","F":"f2"} {"Name":"f1 l","F":"f1"}]`},
		{"from index 'Users/ByName' where Name = 'f3 l' select F", `[{"F":"f3"}]`},
		{"from index 'Users/Tags' where Tag = 't1' and F > 'f2' order by F", `[{"Tag":"t1","F":"f3"} {"Tag":"t1","F":"f5"}]`},
	} {
		kept, scanned := indexRows(t, db, row.rql)
		private.Equal(t, fmt.Sprint(kept), row.want)
		private.Equal(t, fmt.Sprint(kept), fmt.Sprint(scanned))
	}
	for _, rql := range []string{"from index 'Users/ByName' where Nam = 'x'", "from index 'Users/ByName' select count()", "from index 'Users/ByName' include F"} {
		q, err := db.RQL(rql, nil)
		private.Must(t, err)
		if _, err := q.All(ctx); !errors.Is(err, jay.ErrQuery) {
			t.Errorf("%s: got %v", rql, err)
		}
	}
}

// Ensure that declarations that mean nothing are refused, and change nothing.
func TestComputed_Refused(t *testing.T) {
	ctx, db := t.Context(), private.Memory(t, nil)
	one := func(expression string) []index.Map {
		return []index.Map{{Collection: "A", Select: []index.Member{{Name: "X", Expression: expression}}}}
	}
	for _, row := range []struct {
		c    jay.Computed
		want string
	}{
		{jay.Computed{Maps: one("A")}, "its name"},
		{jay.Computed{Name: "i"}, "0 maps"},
		{jay.Computed{Name: "i", Maps: one("A +")}, "member"},
		{jay.Computed{Name: "i", Maps: one("sum(A)")}, "of groups"},
		{jay.Computed{Name: "i", Strict: true, Maps: one("lower(A)")}, "not all is kept"},
		{jay.Computed{Name: "i", Maps: one("A"), Reduce: &index.Reduce{GroupBy: []string{"Y"}, Select: []index.Member{{Name: "X"}}}}, `no member "Y"`},
		{jay.Computed{Name: "i", Maps: one("A"), Reduce: &index.Reduce{GroupBy: []string{"X"}, Select: []index.Member{{Name: "Y", Expression: "sum(Z)"}}}}, `no member "Z"`},
		{jay.Computed{Name: "i", Maps: one("A"), Reduce: &index.Reduce{GroupBy: []string{"X"}, Select: []index.Member{{Name: "Y", Expression: "first(X)"}}}}, "first() names one"},
	} {
		if err := jay.ComputedOf(db).Ensure(ctx, row.c); !errors.Is(err, jay.ErrIndex) || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: got %v", row.want, err)
		}
	}
}

// Ensure that the kept answers of random documents are those of the scan.
func TestComputed_Random(t *testing.T) {
	ctx, db := t.Context(), private.Memory(t, nil)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 151))
	private.Must(t, jay.ComputedOf(db).Ensure(ctx, sales))
	for range 100 {
		if i := r.IntN(20); r.IntN(3) == 0 {
			_, err := db.Put(ctx, fmt.Sprint("returns/", i), json.RawMessage(fmt.Sprintf(`{"Product":"p%d","Price":%d.5}`, r.IntN(4), r.IntN(5))), jay.InCollection("Returns"))
			private.Must(t, err)
		} else {
			var lines []string
			for range r.IntN(4) {
				lines = append(lines, fmt.Sprintf(`{"Product":"p%d","Price":%d.25,"Quantity":%d}`, r.IntN(4), r.IntN(9), r.IntN(3)))
			}
			_, err := db.Put(ctx, fmt.Sprint("orders/", i), json.RawMessage(`{"Lines":[`+strings.Join(lines, ",")+`]}`), jay.InCollection("Orders"))
			private.Must(t, err)
		}
		for _, rql := range []string{"from index 'Orders/ByProduct'", "from index 'Orders/ByProduct' where Product in ('p1', 'p3') and Count > 1", "from index 'Orders/ByProduct' where Product != 'p1'"} {
			kept, scanned := indexRows(t, db, rql)
			slices.Sort(kept)
			slices.Sort(scanned)
			if !slices.Equal(kept, scanned) {
				t.Fatalf("%s: got %v, want %v", rql, kept, scanned)
			}
		}
	}
	private.Verify(t, db)
}

// Ensure that a Matcher of a computed index says of each document whether the query has an entry of it: of any of its maps, and of one element.
func TestComputed_Matcher(t *testing.T) {
	ctx, db := t.Context(), private.Memory(t, nil)
	flat := jay.Computed{Name: "Flat", Maps: []index.Map{
		{Collection: "Orders", Each: "Lines", As: "line", Where: "line.Quantity > 0", Select: []index.Member{{Name: "Product", Expression: "line.Product"}, {Name: "Total", Expression: "line.Price * line.Quantity"}}},
		{Collection: "Returns", Select: []index.Member{{Name: "Product"}, {Name: "Total", Expression: "0 - Price"}}},
	}}
	private.Must(t, jay.ComputedOf(db).Ensure(ctx, flat))
	private.Must(t, jay.ComputedOf(db).Ensure(ctx, sales))
	random := rand.New(rand.NewPCG(1, 2))
	products := []string{"a", "b", "c"}
	for i := range 60 {
		collection, body := "Returns", fmt.Sprintf(`{"Product":%q,"Price":%d}`, products[random.IntN(3)], random.IntN(5))
		if i%3 > 0 {
			var lines []string
			for range random.IntN(4) {
				lines = append(lines, fmt.Sprintf(`{"Product":%q,"Price":%d,"Quantity":%d}`, products[random.IntN(3)], random.IntN(4), random.IntN(3)))
			}
			collection, body = "Orders", `{"Lines":[`+strings.Join(lines, ",")+`]}`
		}
		if i%10 == 9 {
			collection = "Others"
		}
		_, err := db.Put(ctx, fmt.Sprint("docs/", i), json.RawMessage(body), jay.InCollection(collection))
		private.Must(t, err)
	}
	for _, where := range []string{"", " where Product = 'a'", " where Product = 'b' and Total > 2", " where Total < 0 or Product = 'c'", " where not Product = 'a'", " where id() >= 'docs/3' and Total = 0"} {
		q, err := db.RQL("from index 'Flat'"+where, nil)
		private.Must(t, err)
		matcher, err := q.Limit(1).Matcher()
		private.Must(t, err)
		found := make(map[string]bool)
		for row, err := range jay.Select[string](q, "id()").Iter(ctx) {
			private.Must(t, err)
			found[*row] = true
		}
		n := 0
		for doc, err := range db.Documents(ctx, jay.Scan{}) {
			private.Must(t, err)
			matches, err := matcher.Match(ctx, doc)
			private.Must(t, err)
			if matches != found[doc.ID()] {
				t.Errorf("%s: %s %s is %v", where, doc.ID(), doc.Body(), matches)
			}
			if matches {
				n++
			}
		}
		if n == 0 || n == 60 || n != len(found) {
			t.Errorf("%s: %d documents match, %d are found", where, n, len(found))
		}
	}
	for name, want := range map[string]error{"Orders/ByProduct": jay.ErrQuery, "None": jay.ErrNoIndex} {
		if _, err := jay.QueryIndex[json.RawMessage](db, name).Matcher(); !errors.Is(err, want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Ensure that the declaration of an index is found by its name, whatever its case, and that its parts have the numbers of documents for which
// expressions fail.
func TestComputed_DeclaredAndErrors(t *testing.T) {
	ctx, db := t.Context(), private.Memory(t, nil)
	declared := jay.Computed{Name: "Shares", Maps: []index.Map{{Collection: "As", Select: []index.Member{{Name: "Share", Expression: "12 /  N"}}}}}
	private.Must(t, jay.ComputedOf(db).Ensure(ctx, declared))
	for i := range 4 {
		_, err := db.Put(ctx, fmt.Sprint("a/", i), json.RawMessage(fmt.Sprintf(`{"N":%d}`, i/2)), jay.InCollection("As"))
		private.Must(t, err)
	}
	one, err := jay.ComputedOf(db).Declared(ctx, "SHARES")
	private.Must(t, err)
	private.Equal(t, fmt.Sprint(one), "{Shares [{As      [{Share 12 / N}]}] <nil> false}")
	list, err := jay.ComputedOf(db).List(ctx)
	private.Must(t, err)
	if len(list) != 1 || len(list[0].Parts) != 1 || list[0].Parts[0].Errors != 2 {
		t.Errorf("got %+v", list)
	}
	if _, err := jay.ComputedOf(db).Declared(ctx, "None"); !errors.Is(err, jay.ErrNoIndex) {
		t.Errorf("got %v", err)
	}
}
