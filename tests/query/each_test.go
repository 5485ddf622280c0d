package query_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/jaydb/jay"
	"github.com/jaydb/jay/internal/jaytest"
)

// eachIndexes look as if they had what the elements have: the documents have a member with the name of the element.
var eachIndexes = []jay.Index{
	{Name: "Customer", Fields: []string{"Customer"}},
	{Name: "line", Fields: []string{"line.P", "line.N"}},
	{Name: "computed", Fields: []string{"line.N * 2"}},
	{Name: "part", Fields: []string{"Customer"}, Where: "line.N > 1"},
	{Name: "Lines", Fields: []string{"Lines.P", "Lines.N"}},
	{Name: "kept", Kind: "groups", Fields: []string{"line.P"}, Options: map[string]string{"sums": "line.N"}},
	{Name: "words", Kind: "text", Fields: []string{"line.P"}},
}

// eachQueries are queries of elements.
var eachQueries = []string{
	"from Orders each Lines as line where line.P = 'a' order by line.N, id() select line.P, line.N, Customer",
	"from Orders each Lines as line where line.N * 2 > 4 order by id(), line.N select line.N",
	"from Orders each Lines as line where line.N > 1 order by Customer, id() select Customer, line.N",
	"from Orders each Lines as line group by line.P order by line.P select line.P, count() as C, sum(line.N) as S",
	"from Orders each Lines as line group by line.P where Customer = 'c1' order by line.P select line.P, min(line.N) as A, max(line.N) as Z",
	"from Orders each Lines as line group by line.N * 2 order by line.N * 2 select line.N * 2 as D, count() as C",
	"from Orders each Lines as line group by Customer order by Customer select Customer, count() as C, min(line.P) as P, count(distinct line.P) as D",
	"from Orders each Lines as line group by Customer order by Customer desc select Customer, max(Customer) as C",
	"from Orders each Lines as line select min(Customer) as A, max(Customer) as Z",
	"from Orders each Lines as line select min(line.P) as A, max(line.P) as Z",
	"from Orders each Lines as line select count() as N",
	"from Orders each Lines as line where Customer = 'c1' select count() as N",
	"from Orders each Lines as line order by Customer, id() select distinct Customer",
	"from Orders each Lines as line where search(line.P, 'a') order by id() select line.P",
	"from Orders each Lines as line where Customer > 'c0' and line.P in ('a', 'b') order by Customer desc, id() select line.P limit 1, 3",
	"from Orders each Lines as line where Customer = 'c0' or line.N = 3 order by Customer, id(), line.N select Customer, line.N",
}

// Ensure that queries of elements answer the same with indexes of the documents as without, whatever the names of these.
func TestQuery_EachWithIndexes(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	db := jaytest.Memory(t, nil)
	for _, ix := range eachIndexes {
		jaytest.Must(t, db.EnsureIndex(ctx, "Orders", ix))
	}
	part := func() string { return fmt.Sprintf(`{"P":%q,"N":%d}`, string(rune('a'+r.IntN(3))), r.IntN(5)) }
	for i := range 60 {
		var lines []string
		for range r.IntN(4) {
			lines = append(lines, part())
		}
		body := fmt.Sprintf(`{"Customer":"c%d","line":%s,"Lines":[%s]}`, r.IntN(4), part(), strings.Join(lines, ","))
		if i == 0 {
			body = `{"Customer":"b","Lines":[]}` // the least customer has no lines
		}
		_, err := db.Put(ctx, fmt.Sprint("orders/", i), json.RawMessage(body), jay.InCollection("Orders"))
		jaytest.Must(t, err)
	}
	for _, rql := range eachQueries {
		q, err := db.RQL(rql, nil)
		jaytest.Must(t, err)
		rows := func(q jay.Query[jay.Row]) (all []string) {
			got, err := q.All(ctx)
			jaytest.Must(t, err)
			for _, row := range got {
				all = append(all, string(row.JSON))
			}
			return all
		}
		if got, want := rows(q), rows(q.NoIndex()); !slices.Equal(got, want) || len(want) == 0 {
			t.Errorf("%s\ngot  %v\nwant %v", rql, got, want)
		}
	}
}

// Ensure that elements are the same with an index whose plan gives way to a scan under way.
func TestQuery_EachReplanned(t *testing.T) {
	t.Parallel()
	db := jaytest.Memory(t, nil)
	jaytest.Must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "Customer", Fields: []string{"Customer"}}))
	jaytest.Must(t, db.EnsureIndex(ctx, "Orders", jay.Index{Name: "B", Fields: []string{"B"}}))
	for i := range 3000 {
		c := "c0"
		if i%3 == 0 {
			c = "c1"
		}
		body := fmt.Sprintf(`{"Customer":%q,"B":%d,"Lines":[{"P":"a","N":1},{"P":"b","N":2}]}`, c, i%2)
		_, err := db.Put(ctx, fmt.Sprintf("orders/%05d", i), json.RawMessage(body), jay.InCollection("Orders"))
		jaytest.Must(t, err)
	}
	for _, rql := range []string{
		"from Orders each Lines as line group by line.P where Customer = 'c0' order by line.P select line.P, count() as C",
		"from Orders each Lines as line where Customer = 'c0' select count() as C",
		"from Orders each Lines as line group by Customer where Customer = 'c0' select Customer, count() as C",
		"from Orders each Lines as line where Customer = 'c0' and B >= 0 select sum(line.N) as C",
		"from Orders each Lines as line where Customer = 'c0' order by id(), line.N select line.N",
		"from Orders each Lines as line where Customer = 'c0' select distinct Customer",
	} {
		q, err := db.RQL(rql, nil)
		jaytest.Must(t, err)
		rows := func(q jay.Query[jay.Row]) (all []string) {
			got, err := q.All(ctx)
			jaytest.Must(t, err)
			for _, row := range got {
				all = append(all, string(row.JSON))
			}
			return all
		}
		n, err := q.Count(ctx)
		jaytest.Must(t, err)
		m, err := q.NoIndex().Count(ctx)
		jaytest.Must(t, err)
		if n != m {
			t.Errorf("%s: count %d, without indexes %d", rql, n, m)
		}
		if got, want := rows(q), rows(q.NoIndex()); !slices.Equal(got, want) {
			e, _ := q.Explain(ctx)
			t.Errorf("%s\ngot  %.200v (%d)\nwant %.200v (%d)\n%v", rql, got, len(got), want, len(want), e)
		}
	}
}

// Ensure that facets of elements are refused.
func TestQuery_EachFacets(t *testing.T) {
	db := jaytest.Memory(t, nil)
	_, err := db.RQL("from Orders each Lines as line select facet(line.P)", nil)
	if err == nil || !strings.Contains(err.Error(), "facets count documents") {
		t.Errorf("got %v", err)
	}
}

// Ensure that what Go adds to the text of a query is of its elements, too.
func TestQuery_EachFromGo(t *testing.T) {
	db := jaytest.Memory(t, nil)
	_, err := db.Put(ctx, "orders/1", json.RawMessage(`{"line":{"P":"b","N":9},"Lines":[{"P":"a","N":2},{"P":"b","N":1}]}`), jay.InCollection("Orders"))
	jaytest.Must(t, err)
	q, err := db.RQL("from Orders each Lines as line where line.N > 0 select line.P", nil)
	jaytest.Must(t, err)
	for _, row := range []struct {
		q    jay.Query[jay.Row]
		want string
	}{
		{q.Where(jay.Eq("line.P", "b")), `[{"line.P":"b"}]`},
		{q.Where(jay.Eq("line.N", 9)), `[]`},
		{q.OrderBy("line.N"), `[{"line.P":"b"} {"line.P":"a"}]`},
		{q.OrderBy("-line.N"), `[{"line.P":"a"} {"line.P":"b"}]`},
	} {
		rows, err := row.q.All(ctx)
		jaytest.Must(t, err)
		got := []string{}
		for _, r := range rows {
			got = append(got, string(r.JSON))
		}
		equal(t, fmt.Sprint(got), row.want)
	}
	equal(t, fmt.Sprint(rows(t, db, "from Orders each Lines as line where line.N > 0 select line.P")), `[{"line.P":"a"} {"line.P":"b"}]`)
}

// Ensure that what is done to documents is not done to elements.
func TestQuery_EachRefused(t *testing.T) {
	db := jaytest.Memory(t, nil)
	_, err := db.Put(ctx, "orders/1", json.RawMessage(`{"Lines":[{"P":"a"}]}`), jay.InCollection("Orders"))
	jaytest.Must(t, err)
	for _, text := range []string{
		"from Orders each Lines as line where line.P = 'a' update { this.Changed = true }",
		"from Orders each Lines as line update { this.Changed = true }",
	} {
		if _, _, err := db.UpdateRQL(text, nil); err == nil || !strings.Contains(err.Error(), "each does not go with update") {
			t.Errorf("%s: got %v", text, err)
		}
	}
	err = db.Subscriptions().Ensure(ctx, jay.Subscription{Name: "s", Query: "from Orders each Lines as line select line.P"})
	if err == nil {
		t.Error("a subscription to elements")
	}
	q, err := db.RQL("from Orders each Lines as line select line.P", nil)
	jaytest.Must(t, err)
	if _, err := q.Delete(ctx); err == nil {
		t.Error("the elements of a query were deleted")
	}
}
